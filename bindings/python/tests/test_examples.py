"""The programs in examples/python, as far as they go without a GPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import gcx
import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"
COMPUTE = (
    *("l2_window", "latency", "overlap_copy", "persistent", "serving", "triton_autotune"),
    *("two_batch_overlap", "two_matmuls"),
)


def run(name: str, *arguments: str, driver: str | None = None) -> tuple[int, str, str]:
    """Status, standard output and standard error of an example, run as a user runs it."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if driver is not None:
        environment["GCX_DRIVER"] = driver
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def one_line(text: str) -> str:
    """The text, which has to be a single line."""
    assert text.endswith("\n")
    assert text.count("\n") == 1, text
    return text


def test_each_example_is_known_here_and_in_the_readme() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")} - {"common"}
    assert names == {"split", "scenario", "leases", "ray_actors", *COMPUTE}
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\((\w+)\.py\)", readme)) == names


def test_scenario() -> None:
    status, out, err = run("scenario", driver="sim:h100@13.0")
    assert (status, err) == (0, "")
    device, first, second, disjoint, refused, given_back = out.splitlines()
    assert device == "SIMULATED NVIDIA H100 80GB HBM3, 132 SMs"
    sms = []
    for line, start in (
        (first, "partition 0 runs on 108 SMs: "),
        (second, "partition 1 runs on 24 SMs: "),
    ):
        assert line.startswith(start)
        sms.append({int(sm) for sm in line[len(start) :].split()})
    assert [len(part) for part in sms] == [108, 24]
    assert sms[0] | sms[1] == set(range(132))
    assert disjoint == "no SM is in both"
    assert re.fullmatch(r"140 SMs: .*asked for 140 SMs.* has 132 \[GCX_ERROR_\w+, 915\]", refused)
    assert given_back == "given back: 0 contexts in use"


def test_scenario_on_a_device_too_small() -> None:
    status, out, err = run("scenario", driver="sim:a100@13.0")
    assert (status, out) == (2, "SIMULATED NVIDIA A100-SXM4-80GB, 108 SMs\n")
    assert "asked for 108 + 24 SMs" in one_line(err)


@pytest.mark.parametrize("gpu", ["h100", "rtx4090", "orin"])
def test_leases(gpu: str) -> None:
    driver = f"sim:{gpu}@{'.'.join(map(str, gcx.driver_info().version))}"
    status, out, err = run("leases", "--steps", "14", driver=driver)
    assert (status, err) == (0, "")
    simulated, device, head, *steps, changes, handed_over, given_back = out.splitlines()
    assert simulated == "SIMULATED: no GPU is involved"
    found = re.search(r"(\d+) SMs", device)
    assert found is not None
    count = int(found[1])
    assert head.split() == ["step", "prompts", "decode", "SMs", "prefill", "SMs", "resize,", "us"]
    rows = [[int(cell) for cell in step.split()] for step in steps]
    assert [row[0] for row in rows] == list(range(14))
    assert all(row[2] + row[3] == count for row in rows)
    # Decode has the more the fewer prompts wait.
    ordered = [row[2] for row in sorted(rows, key=lambda row: row[1])]
    assert ordered == sorted(ordered, reverse=True)
    assert len(set(ordered)) > 2
    assert re.fullmatch(r"[5-9] changes of decode; resize took \d+ us in the median", changes)
    assert handed_over == f"handed over: decode has {count}"
    assert given_back == "given back: 0 leases"


def test_split() -> None:
    status, out, err = run("split")
    assert (status, err) == (0, "")
    assert out.startswith("SIMULATED: no GPU is involved\n")
    assert "asked for 24: got 24 SMs, and 108 are left" in out
    assert ".".join(map(str, gcx.driver_info().version)) in out
    assert "ok: each partition ran on as many SMs as promised" in out


def test_split_says_what_it_got() -> None:
    status, out, _ = run("split", "--sms", "10")
    assert status == 0
    assert "asked for 10: got 12 SMs, and 120 are left" in out


@pytest.mark.parametrize(
    ("count", "words"),
    [("0", "at least 1, not 0"), ("200", "asked for 200"), ("132", "no SMs are left")],
)
def test_a_wrong_count_is_told_in_gcx_words(count: str, words: str) -> None:
    status, _, err = run("split", "--sms", count)
    assert status == 2
    assert re.match(rf"split\.py: .*{words}.*\[GCX_ERROR_\w+, \d+\]$", one_line(err))


@pytest.mark.parametrize("name", COMPUTE)
def test_what_computes_refuses_the_simulated_driver(name: str) -> None:
    status, out, err = run(name)
    assert status == 2
    assert "SIMULATED" in out
    line = one_line(err)
    assert line.startswith(f"{name}.py: needs a GPU")
    assert "GCX_DRIVER" in line


@pytest.mark.parametrize("name", ["split", "leases", *COMPUTE])
def test_without_a_driver(name: str) -> None:
    status, _, err = run(name, driver="/nowhere/libcuda.so.1")
    assert status == 2
    assert "/nowhere/libcuda.so.1" in one_line(err)


@pytest.mark.parametrize("name", ["split", "leases", *COMPUTE])
def test_without_gcx(name: str) -> None:
    code = f"""
import runpy, sys
sys.path.insert(0, {str(EXAMPLES)!r})
sys.modules["gcx"] = None
sys.argv = [{str(EXAMPLES / name) + ".py"!r}]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 2
    assert re.match(rf"{name}\.py: needs the package gcx .*pip install", one_line(done.stderr))


@pytest.mark.parametrize("module", ["torch", "cupy", "triton"])
def test_a_library_that_is_missing(module: str) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(EXAMPLES)!r})
sys.modules[{module!r}] = None
import common
common.run(lambda: common.library({module!r}))
"""
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 2
    assert re.search(rf"needs {module} .*pip install {module}", one_line(done.stderr))


@pytest.mark.parametrize("name", ["split", "leases", *COMPUTE])
def test_help(name: str) -> None:
    status, out, err = run(name, "--help", driver="/nowhere/libcuda.so.1")
    assert (status, err) == (0, "")
    assert ("--steps" if name == "leases" else "--sms") in out


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("latency", ["--launches", "0"]),
        ("leases", ["--steps", "0"]),
        ("overlap_copy", ["--chunks", "-1"]),
        ("overlap_copy", ["--mib", "1", "--chunks", "1000000"]),
        ("persistent", ["--steps", "many"]),
        ("split", ["--sms", "few"]),
        ("triton_autotune", ["--size", "128", "128", "100"]),
        ("two_matmuls", ["--small", "512", "0"]),
    ],
)
def test_wrong_arguments(name: str, arguments: list[str]) -> None:
    status, _, err = run(name, *arguments)
    assert status == 2
    assert err.startswith("usage: ")
    assert arguments[0] in err or arguments[-1] in err
