"""The programs in examples/python with small sizes. pytest -s shows their output."""

from __future__ import annotations

import importlib.util
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
FIGURES = Path(__file__).resolve().parents[1]


def run(
    name: str,
    *arguments: str,
    needs: tuple[str, ...] = (),
    status: int = 0,
    folder: Path = EXAMPLES,
) -> str:
    for module in needs:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} isn't installed")
    done = subprocess.run(
        [sys.executable, str(folder / f"{name}.py"), *arguments],
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
        part = text[text.index(f"x {size}^3 next to") :]
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
    file = tmp_path / "latency.svg"
    plot = ("--plot", str(file)) if importlib.util.find_spec("matplotlib") else ()
    text = run("latency", "--launches", "300", *plot, needs=("cupy",))
    assert f"critical 24 SMs, heavy {rest}" in text
    cases = rows(text)
    assert set(cases) == {"alone", "plain streams", "stream priority", "partition"}
    for p50, p90, p99, most, _ in cases.values():
        assert 0 < p50 <= p90 <= p99 <= most
    p50s = {name: cells[0] for name, cells in cases.items()}
    assert p50s["partition"] < p50s["stream priority"] < p50s["plain streams"]
    assert cases["partition"][2] < cases["plain streams"][2]
    assert cases["partition"][4] > 0
    if plot:
        assert ElementTree.parse(file).getroot().tag.endswith("svg")


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


def test_serving() -> None:
    text = run("serving", needs=("torch",))
    assert re.search(r"ms promised: kept$", text, re.MULTILINE)
    assert re.search(r"^64 prompts: first token after \d+ ms", text, re.MULTILINE)


def test_serving_figures() -> None:
    few = ("--rates", "4", "--seconds", "4", "--promise", "17.5", "14")
    text = run("serving_figures", *few, needs=("torch",), folder=FIGURES)
    (alone,) = re.findall(r"^decode alone on all SMs: ([\d.]+)", text, re.MULTILINE)
    assert "4 prompts a second, 16 prompts" in text
    cells = rows(text)
    for promise in ("17.5", "14"):
        fast, _, slow, _, _ = cells[f"policy, {promise} ms promised"]
        assert slow <= float(promise)
        assert fast < 1.05 * float(alone)  # Without prompts decode is as fast as alone.
    ours, chunks = cells["policy, 17.5 ms promised"], cells["chunks of 512"]
    assert ours[2] < 0.9 * chunks[2]
    assert ours[4] < 1.1 * chunks[4]


def test_overlap_copy() -> None:
    text = run("overlap_copy", "--mib", "128", needs=("torch",))
    assert "24 SMs; 128 MiB in 16 chunks" in text
    times = {name: cells[0] for name, cells in rows(text).items()}
    alone = ("copies in alone", "compute alone", "copies out alone")
    assert times["overlapped"] < times["one stream"]
    assert times["overlapped"] > 0.8 * max(times[name] for name in alone)


def test_l2_window(rest: int) -> None:
    text = run("l2_window", "--mib", "8", "16", "--rounds", "5", needs=("cupy",))
    assert f"the table's partition has 24 SMs, the neighbour's {rest}" in text
    for part in text.split("walk, a table of")[1:]:
        cells = rows(part)
        assert set(cells) == {"alone", "next to the neighbour", "window", "neighbour marked"}
        assert all(took > 0 for took, _ in cells.values())
        assert all(rate > 0 for name, (_, rate) in cells.items() if name != "alone")
    gains = re.findall(r"with the window it is ([\d.]+) times as fast", text)
    assert len(gains) == 2
    assert max(map(float, gains)) >= 1.3
    text = run("l2_window", "--mib", "8", "--rounds", "2", "--pattern", "look_up", needs=("cupy",))
    assert "look_up, a table of 8 MiB" in text


def test_two_batches_need_several_gpus() -> None:
    text = run("two_batches", needs=("torch",), status=2, folder=FIGURES)
    assert "needs 2, 4 or 8 GPUs of one host" in text


def test_two_batches(torch: Any) -> None:
    if int(torch.cuda.device_count()) < 2:
        pytest.skip("needs 2 GPUs")
    names = ("compute", "sequence", "plain", "plain-copies", "split-4-target")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", str(FIGURES / "two_batches.py"), "--variants", *names),
            *("--tokens", "2048", "--repeats", "3", "--layers", "3"),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    for part in done.stdout.split("2 batches of 2048 tokens")[1:]:
        medians = {name: cells[0] for name, cells in rows(part).items()}
        assert set(medians) == {*names}  # None was refused, and each result was right.
        assert all(took > 0.9 * medians["compute"] for took in medians.values())
    assert done.stdout.count("2 batches of 2048 tokens") == 2
