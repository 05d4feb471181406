"""The programs in examples/python with small sizes. pytest -s shows their output."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gcx
import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"


def run(name: str, *arguments: str, needs: tuple[str, ...] = (), status: int = 0) -> str:
    for module in needs:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} isn't installed")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    if status == 0:
        assert "SIMULATED" not in done.stdout
        assert gcx.Device(0).name in done.stdout
    return done.stdout + done.stderr


def rows(text: str) -> dict[str, list[float]]:
    """Returns the numeric rows of a table by their first cell; the last wins."""
    found = {}
    for line in text.splitlines():
        cells = re.split(r"\s{2,}", line.strip())
        if len(cells) > 1 and all(re.fullmatch(r"-|[\d.]+", cell) for cell in cells[1:]):
            found[cells[0]] = [float("nan") if cell == "-" else float(cell) for cell in cells[1:]]
    return found


@pytest.fixture(scope="module")
def rest() -> int:
    """The SMs left by a partition of 24."""
    return gcx.Device(0).resources.sm.plan([24, None]).groups[1]


def test_split(rest: int) -> None:
    text = run("split")
    assert f"got 24 SMs, {rest} are left" in text
    assert "ok: each partition ran on as many SMs as promised" in text


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("l2_window", ("cupy",)),
        ("latency", ("cupy",)),
        ("overlap_copy", ("torch",)),
        ("persistent", ("cupy",)),
        ("split", ()),
        ("triton_autotune", ("torch", "triton")),
        ("two_matmuls", ("torch",)),
    ],
)
def test_wrong_count_prints_the_error_of_gcx(name: str, needs: tuple[str, ...]) -> None:
    text = run(name, "--sms", "10000", needs=needs, status=2)
    assert f"{name}.py: " in text
    assert "10000" in text
    assert "GCX_ERROR_INVALID_RESOURCE_CONFIGURATION" in text


def test_two_matmuls(rest: int) -> None:
    text = run("two_matmuls", "--small", "512", "2048", "--rounds", "5", needs=("torch",))
    assert f"partitions of 24 and {rest} SMs" in text
    for size in (512, 2048):
        part = text[text.index(f"x {size}^3 beside") :]
        times = rows(part[: part.index("\n\n")])
        assert set(times) == {"one after the other", "two plain streams", "two partitions"}
        for small, big, both, ratio in times.values():
            assert 0 < small <= both * 1.01
            assert 0 < big <= both * 1.01
            assert 0.1 < ratio < 10
        in_order = times["one after the other"]
        assert in_order[0] < in_order[1]  # The small ones come first there.
        assert f"{size}^3: for both together the split" in text


def test_latency(rest: int, tmp_path: Path) -> None:
    plot = tmp_path / "latency.svg"
    text = run("latency", "--launches", "300", "--plot", str(plot), needs=("cupy",))
    assert f"critical 24 SMs, heavy {rest}" in text
    cases = rows(text)
    assert set(cases) == {"alone", "plain streams", "stream priority", "own partition"}
    for p50, p90, p99, most, *_ in cases.values():
        assert 0 < p50 <= p90 <= p99 <= most
    p50s = {name: cells[0] for name, cells in cases.items()}
    assert p50s["own partition"] < p50s["stream priority"] < p50s["plain streams"]
    assert cases["own partition"][2] < cases["plain streams"][2]
    assert cases["own partition"][5] > 0
    if plot.exists():
        assert ElementTree.parse(plot).getroot().tag.endswith("svg")
    else:
        assert "no plot without matplotlib" in text
        assert text.count("|") == 8


def test_triton_autotune(rest: int) -> None:
    text = run("triton_autotune", needs=("torch", "triton"))
    assert "the results agree with PyTorch's" in text
    for name in ("24 SMs", f"{rest} SMs"):
        (verdict,) = re.findall(rf"^{name}: .*$", text, re.MULTILINE)
        assert "is the best here too" in verdict or "another configuration is best" in verdict
    (few,) = re.findall(r"^  24 SMs +([\d.]+)", text, re.MULTILINE)
    (whole,) = re.findall(r"^  whole GPU +([\d.]+)", text, re.MULTILINE)
    assert float(few) > 2 * float(whole)  # The tuned kernel ran on 24 SMs.


def test_persistent(rest: int) -> None:
    text = run("persistent", "--steps", "200", needs=("cupy",))
    for count in (24, rest):
        (answer,) = re.findall(rf"blocks on {count} SMs: (.*)$", text, re.MULTILINE)
        assert answer == "refused: CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"
        for how in ("alone", "both at once"):
            assert re.search(rf"{count} SMs, {how} +\d+ +[\d.]+ +right", text)
    assert re.search(r"both ran for the same [\d.]+ ms", text)


def test_serving(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    few = ("--arms", "chunked-512", "dynamic-24", "policy", "--rates", "4", "--seconds", "4")
    promises = ("--promise", "17.5", "14")
    text = run("serving", *few, *promises, "--json", str(results), needs=("torch",))
    assert re.search(r"\d+ graphs, each captured once, on 7 layouts", text)
    found = json.loads(results.read_text(encoding="utf-8"))
    cells = {cell["arm"]: cell for cell in found["cells"]}
    assert {len(cell["first"]) for cell in cells.values()} == {16}
    median = {arm: sorted(cell["first"])[8] for arm, cell in cells.items()}
    for promise in (17.5, 14):
        tokens = sorted(cells[f"policy {promise:g} ms"]["tokens"])
        assert tokens[int(0.99 * len(tokens))] <= promise
        # Without prompts decode is as fast as alone.
        assert tokens[len(tokens) // 20] < 1.05 * found["costs"]["decode_alone"]["132"]
    assert median["policy 17.5 ms"] < 0.95 * median["chunked-512"]


def test_overlap_copy() -> None:
    text = run("overlap_copy", "--mib", "128", needs=("torch",))
    assert "24 SMs; 128 MiB in 16 chunks" in text
    times = {name: cells[0] for name, cells in rows(text).items()}
    alone = ("copies in alone", "compute alone", "copies out alone")
    assert times["overlapped"] < times["one stream"]
    assert times["overlapped"] > 0.8 * max(times[name] for name in alone)


def test_l2_window(rest: int, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    few = ("--mib", "8", "16", "--rounds", "3", "--json", str(results))
    text = run("l2_window", *few, needs=("cupy",))
    assert f"the table's partition has 24 SMs, the neighbour's {rest}" in text
    found = json.loads(results.read_text(encoding="utf-8"))
    assert len(found["patterns"]) == 2
    for sizes in found["patterns"].values():
        assert set(sizes) == {"8", "16"}
        for times in sizes.values():
            assert {len(rounds) for rounds in times.values()} == {3}
            assert all(took > 0 for rounds in times.values() for took, _ in rounds)
            assert all(rate > 0 for name in times for _, rate in times[name] if name != "alone")


def torchrun(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", str(EXAMPLES / "two_batch_overlap.py"), *arguments),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def gpus(torch: Any) -> int:
    return int(torch.cuda.device_count())


def test_two_batch_overlap_on_one_gpu(torch: Any) -> None:
    text = run("two_batch_overlap", needs=("torch",), status=2)
    assert "needs 2 or more GPUs of one host" in text
    if gpus(torch) < 2:
        done = torchrun()
        assert done.returncode != 0
        assert "rank 1: there are 1 GPUs for 2 processes" in done.stderr


def test_two_batch_overlap(torch: Any, tmp_path: Path) -> None:
    if gpus(torch) < 2:
        pytest.skip("needs 2 GPUs")
    results, picture = tmp_path / "results.json", tmp_path / "timeline.svg"
    names = ("compute", "sequence", "plain", "plain-copies", "split-4-target")
    done = torchrun(
        *("--tokens", "2048", "--sms", "8", "--repeats", "3", "--sweep-repeats", "1"),
        *("--experts", "8", "--layers", "3", "--arms", *names),
        *("--json", str(results), "--timeline", str(picture)),
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(results.read_text(encoding="utf-8"))
    assert [cell["layer"] for cell in found["cells"]] == ["products", "experts"]
    for cell in found["cells"]:
        assert cell["refused"] == {}
        assert {*names} <= {*cell["arms"]}
        medians = {name: sorted(took)[1] for name, took in cell["arms"].items()}
        assert all(took > 0.9 * medians["compute"] for took in medians.values())
        # A part ends before the next of its batch begins, and each lane is in order.
        for rows in cell["spans"].values():
            for batch in (0, 1):
                mine = [row for row in rows if row[1] == batch]
                assert all(one[4] <= other[3] + 0.01 for one, other in zip(mine, mine[1:]))
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
