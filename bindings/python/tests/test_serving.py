"""examples/python/serving.py as far as it goes without a GPU: its policy and arms on a simulated
machine, its leases on the simulated driver."""

from __future__ import annotations

import dataclasses
import importlib
import json
import random
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gcx
import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"


def module(name: str) -> Any:
    """One of the example's: they find each other as the program finds them."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    return importlib.import_module(f"serve.{name}")


# What knows no driver is tested once.
pure = pytest.mark.skipif(
    gcx.driver_info().version != (13, 0), reason="another driver's run has it"
)
costs, engine, arms, policy = (module(name) for name in ("costs", "engine", "arms", "policy"))
H200 = costs.H200


def served(arm: Any, rate: float, seconds: float = 2, noise: float = 0.015) -> Any:
    machine = module("simulated").Simulated(H200, noise)
    return engine.serve(machine, arm, engine.poisson(rate, seconds), 300)


def p99(times: list[float]) -> float:
    return float(module("report").percentile(times, 0.99))


@pure
def test_without_noise_a_fixed_split_takes_what_the_table_says() -> None:
    machine = module("simulated").Simulated(H200, noise=0)
    record = engine.serve(machine, arms.Fixed(24), [0.0] * 8)
    assert statistics.median(record.tokens) == pytest.approx(16.4, abs=0.1)
    assert record.elapsed / 8 == pytest.approx(147.0, rel=0.02)
    assert record.first == sorted(record.first)


@pure
def test_chunks_and_steps_take_turns() -> None:
    machine = module("simulated").Simulated(H200, noise=0)
    record = engine.serve(machine, arms.Chunked("512"), [0.0])
    # One step may have been under way, and the last chunk's step is waited for.
    assert 8 * (13.1 + 6.77) <= record.first[0] <= 8 * (13.1 + 6.77) + 6.77 + 0.5


@pure
@pytest.mark.parametrize("rate", [2, 4, 5.5])
@pytest.mark.parametrize("promise", [17.5, 14, 10])
def test_the_promise_is_kept(promise: float, rate: float) -> None:
    record = served(policy.Promise(H200, promise), rate)
    assert p99(record.tokens) <= promise
    assert len(record.first) == round(rate * 2)
    assert all(took > 106 for took in record.first)


@pure
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_the_promise_is_kept_whatever_the_noise(noise: float) -> None:
    assert p99(served(policy.Promise(H200, 17.5), 5.5, 4, noise).tokens) <= 17.5


@pure
def test_it_is_kept_where_the_tables_are_wrong() -> None:
    """Steps really take 8 percent longer than was measured."""
    slower = dataclasses.replace(
        H200,
        decode_beside={sms: 1.08 * took for sms, took in H200.decode_beside.items()},
        decode_alone={sms: 1.08 * took for sms, took in H200.decode_alone.items()},
    )
    machine = module("simulated").Simulated(slower)
    record = engine.serve(machine, policy.Promise(H200, 17.5), engine.poisson(4, 4), 1000)
    assert p99(record.tokens) <= 17.5


@pure
@pytest.mark.parametrize("arm", [arms.Fixed(24), arms.Dynamic(24, 132), arms.Chunked("512")])
def test_prompts_wait_less_than_with(arm: Any) -> None:
    """With many prompts; those arms break 17.5 ms, or just keep it."""
    ours = served(policy.Promise(H200, 17.5), 6, 5)
    assert statistics.median(ours.first) < 0.98 * statistics.median(served(arm, 6, 5).first)


@pure
def test_a_longer_promise_prefills_sooner() -> None:
    medians = [
        statistics.median(served(policy.Promise(H200, promise), 5.5, 3).first)
        for promise in (11, 14, 17.5, 25)
    ]
    assert medians == sorted(medians, reverse=True)


@pure
def test_without_prompts_decode_is_as_fast_as_alone() -> None:
    record = served(policy.Promise(H200, 14), 0.5, 2, noise=0)
    assert statistics.median(record.tokens) == pytest.approx(6.77, abs=0.05)


@pure
def test_what_no_step_keeps_is_not_promised() -> None:
    with pytest.raises(ValueError, match=r"6\.5 ms a token can't be promised: .* takes 6\.77 ms"):
        policy.Promise(H200, 6.5)


@pure
def test_below_the_splits_it_takes_turns_on_all_sms() -> None:
    promise = policy.Promise(H200, 9)
    record = served(promise, 1, 3)
    assert p99(record.tokens) <= 9
    assert {layout for _, layout in record.layouts} == {0, 132}
    assert len(record.first) == 3


@pure
def test_slow_steps_are_remembered_and_forgotten() -> None:
    steps = policy.Steps(10.0)
    assert steps.slow == 10.5
    chance = random.Random(1)
    for _ in range(500):
        steps.add(chance.gauss(10, 0.1))
    assert 10.1 < steps.slow < 10.5
    for _ in range(500):
        steps.add(8.0)
    assert steps.slow == 8.0
    assert steps.mean == pytest.approx(8.0)


@pure
def test_prompts_come_as_often_as_asked_and_the_same_each_time() -> None:
    times = engine.poisson(5.5, 8)
    assert times == engine.poisson(5.5, 8)
    assert times != engine.poisson(5.5, 8, seed=2)
    assert len(times) == 44
    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] < 8000


def test_the_leases_have_all_sms_whatever_the_order() -> None:
    """Each layout has the same SMs each time, so that contexts and executables are found again."""
    sides = module("sides").Sides(132)
    chance = random.Random(1)
    seen: dict[int, set[tuple[tuple[int, ...], ...]]] = {}
    try:
        for _ in range(100):
            layout = chance.choice([0, 24, 32, 48, 64, 132])
            sides.arrange(layout)
            have = [
                lease.stream.sm_ids() if lease is not None else ()
                for lease in (sides.decode, sides.prefill)
            ]
            assert [len(sms) for sms in have] == [layout, 132 - layout]
            assert len({*have[0], *have[1]}) == 132
            seen.setdefault(layout, set()).add(tuple(have))
        assert {len(sets) for sets in seen.values()} == {1}
        assert len(seen) == 6
    finally:
        sides.close()
    assert gcx.leases() == []


def run(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-B", str(EXAMPLES / "serving.py"), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


@pure
def test_the_program(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    few = ("--arms", "chunked-512", "dynamic-24", "policy", "--seconds", "2", "--rates", "4")
    status, out, err = run("--simulate", *few, "--promise", "17.5", "6", "--json", str(file))
    assert (status, err) == (0, "")
    assert out.startswith("SIMULATED: no GPU is involved; by what an NVIDIA H200 took\n")
    assert "policy 6 ms: 6 ms a token can't be promised" in out
    table = out[out.index("4 prompts/s, 8 prompts; in ms:") :]
    assert [line.split("  ")[1] for line in table.splitlines()[2:]] == [
        "chunked-512",
        "dynamic-24",
        "policy 17.5 ms",
    ]
    assert table.endswith(" yes\n")
    results = json.loads(file.read_text(encoding="utf-8"))
    assert results["simulated"] is True
    assert [len(cell["first"]) for cell in results["cells"]] == [8, 8, 8]
    # What was written is read again.
    assert run("--from", str(file)) == (0, table, "")


@pure
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--arms", "magic"), "'magic' is none of plain, priority"),
        (("--arms", "static-0"), "'static-0' is none of"),
        (("--rates", "-1"), "must be a number above 0, not '-1'"),
        (("--promise", "soon"), "must be a number above 0, not 'soon'"),
        (("--simulate", "--arms", "static-40"), "the tables have splits of [24, 32, 48, 64] SMs"),
        (("--from", "/nowhere/results.json"), "--from: "),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], words: str) -> None:
    status, _, err = run(*arguments)
    assert status == 2
    assert words in err


@pure
def test_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "results.json"
    few = ("--arms", "chunked-512", "policy", "--seconds", "2", "--rates", "4", "2")
    status, out, _ = run("--simulate", *few, "--json", str(file), "--plot", str(tmp_path))
    assert status == 0
    for name in ("latency", "split", "frontier"):
        assert f"wrote {tmp_path / name}.svg" in out
        assert "SIMULATED" in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def disagreement() -> Callable[..., float]:
    pytest.importorskip("torch")
    found: Callable[..., float] = module("model").disagreement
    return found


@pure
@pytest.mark.parametrize(("kind", "bound"), [("float32", 1e-4), ("bfloat16", 0.2)])
def test_decode_after_prefill_is_attention_over_all_tokens(
    disagreement: Callable[..., float], kind: str, bound: float
) -> None:
    assert disagreement("cpu", getattr(module("model").torch, kind)) < bound
