"""examples/python/serving.py without a GPU: policy and arms on a simulated machine, and leases on
the simulated driver."""

from __future__ import annotations

import dataclasses
import importlib
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import gcx
import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"
sys.path.insert(0, str(EXAMPLES))
costs, engine, arms, policy, report, sides, simulated = (
    importlib.import_module(f"serve.{name}")
    for name in ("costs", "engine", "arms", "policy", "report", "sides", "simulated")
)
H200: Any = costs.H200
pytestmark = pytest.mark.skipif(
    gcx.driver_info().version != (13, 0), reason="it does not depend on the driver's version"
)


def served(arm: Any, rate: float, seconds: float = 2, noise: float = 0.015) -> Any:
    machine = simulated.Simulated(H200, noise)
    return engine.serve(machine, arm, engine.poisson(rate, seconds), 300)


def p99(times: list[float]) -> float:
    return float(report.percentile(times, 0.99))


def test_simulation_without_noise_is_the_table() -> None:
    machine = simulated.Simulated(H200, noise=0)
    record = engine.serve(machine, arms.Fixed(24), [0.0] * 8)
    assert statistics.median(record.tokens) == pytest.approx(16.4, abs=0.1)
    assert record.elapsed / 8 == pytest.approx(147.0, rel=0.02)
    machine = simulated.Simulated(H200, noise=0)
    record = engine.serve(machine, arms.Chunked("512"), [0.0])
    # One step may have been in flight, and the step of the last chunk is waited for.
    assert 8 * (13.1 + 6.77) <= record.first[0] <= 8 * (13.1 + 6.77) + 6.77 + 0.5


@pytest.mark.parametrize("rate", [2, 5.5])
@pytest.mark.parametrize("promise", [17.5, 10, 9])
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_policy_keeps_its_promise(promise: float, rate: float, noise: float) -> None:
    record = served(policy.Promise(H200, promise), rate, 2, noise)
    assert p99(record.tokens) <= promise
    assert len(record.first) == round(rate * 2)
    if promise == 9:  # Below the splits' times decode and prefill take turns on all SMs.
        assert {layout for _, layout in record.layouts} == {0, 132}


def test_policy_keeps_its_promise_if_steps_are_slower_than_measured() -> None:
    slower = dataclasses.replace(
        H200,
        decode_beside={sms: 1.08 * took for sms, took in H200.decode_beside.items()},
        decode_alone={sms: 1.08 * took for sms, took in H200.decode_alone.items()},
    )
    machine = simulated.Simulated(slower)
    record = engine.serve(machine, policy.Promise(H200, 17.5), engine.poisson(4, 4), 1000)
    assert p99(record.tokens) <= 17.5


@pytest.mark.parametrize("arm", [arms.Fixed(24), arms.Dynamic(24, 132), arms.Chunked("512")])
def test_policy_answers_prompts_sooner_than_other_arms(arm: Any) -> None:
    ours = served(policy.Promise(H200, 17.5), 6, 5)
    assert statistics.median(ours.first) < 0.98 * statistics.median(served(arm, 6, 5).first)


def test_policy_uses_a_longer_promise_and_idle_time() -> None:
    medians = [
        statistics.median(served(policy.Promise(H200, promise), 5.5, 3).first)
        for promise in (11, 14, 17.5, 25)
    ]
    assert medians == sorted(medians, reverse=True)
    record = served(policy.Promise(H200, 14), 0.5, 2, noise=0)
    assert statistics.median(record.tokens) == pytest.approx(6.77, abs=0.05)
    with pytest.raises(ValueError, match=r"6\.5 ms a token can't be promised: .* takes 6\.77 ms"):
        policy.Promise(H200, 6.5)


def test_leases_of_a_layout_have_the_same_sms_each_time() -> None:
    both = sides.Sides(132)
    chance = random.Random(1)
    seen: dict[int, set[tuple[tuple[int, ...], ...]]] = {}
    try:
        for _ in range(100):
            layout = chance.choice([0, 24, 32, 48, 64, 132])
            both.arrange(layout)
            have = [
                lease.stream.sm_ids() if lease is not None else ()
                for lease in (both.decode, both.prefill)
            ]
            assert [len(sms) for sms in have] == [layout, 132 - layout]
            assert len({*have[0], *have[1]}) == 132
            seen.setdefault(layout, set()).add(tuple(have))
        assert {len(sets) for sets in seen.values()} == {1}
        assert len(seen) == 6
    finally:
        both.close()


def test_program_simulates_writes_and_reads_results(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-B", str(EXAMPLES / "serving.py"), *arguments],
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    file = tmp_path / "results.json"
    few = ("--arms", "chunked-512", "dynamic-24", "policy", "--seconds", "2", "--rates", "4")
    out = run("--simulate", *few, "--promise", "17.5", "6", "--json", str(file))
    assert out.startswith("SIMULATED: no GPU is involved")
    assert "policy 6 ms: 6 ms a token can't be promised" in out
    table = out[out.index("4 prompts/s, 8 prompts; in ms:") :]
    assert table.endswith(" yes\n")
    results = json.loads(file.read_text(encoding="utf-8"))
    assert results["simulated"] is True
    assert [len(cell["first"]) for cell in results["cells"]] == [8, 8, 8]
    assert run("--from", str(file)) == table
    pytest.importorskip("matplotlib")
    out = run("--from", str(file), "--plot", str(tmp_path))
    for name in ("latency", "split", "frontier"):
        assert "SIMULATED" in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(("kind", "bound"), [("float32", 1e-4), ("bfloat16", 0.2)])
def test_decode_after_prefill_agrees_with_plain_attention(kind: str, bound: float) -> None:
    torch = pytest.importorskip("torch")
    model = importlib.import_module("serve.model")
    assert model.disagreement("cpu", getattr(torch, kind)) < bound
