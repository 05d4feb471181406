"""The programs in examples/python, as far as they run without a GPU."""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

import gcx
import pytest
from work import run_program  # type: ignore[import-not-found]

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"
COMPUTE = (
    *("l2_window", "latency", "overlap_copy", "persistent", "serving", "triton_autotune"),
    "two_matmuls",
)


def run(name: str, *arguments: str, driver: str | None = None, code: str = "") -> Any:
    """Returns status, standard output and standard error of an example, after some code."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if driver is not None:
        environment["GCX_DRIVER"] = driver
    program = [str(EXAMPLES / f"{name}.py")]
    if code:
        start = f"import runpy, sys; sys.path.insert(0, {str(EXAMPLES)!r}); "
        start += f"sys.argv = [{program[0]!r}]; {code}; "
        program = ["-c", start + "runpy.run_path(sys.argv[0], run_name='__main__')"]
    done = run_program(sys.executable, "-W", "error", *program, *arguments, env=environment)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def one_line(text: str) -> str:
    """Returns the text, which must be a single line."""
    assert text.count("\n") == 1, text
    assert text.endswith("\n")
    return text


def test_examples_are_listed_here_and_in_the_readme() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")} - {"common"}
    assert names == {"split", "scenario", "leases", "ray_actors", "tune_pair", *COMPUTE}
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\((\w+)\.py\)", readme)) == names


def test_scenario_prints_the_lines_of_the_page() -> None:
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
    assert re.fullmatch(r"140 SMs: .*140.*132 \[GCX_ERROR_\w+, 915\]", refused)
    assert given_back == "given back: 0 contexts in use"
    status, out, err = run("scenario", driver="sim:a100@13.0")
    assert (status, out) == (2, "SIMULATED NVIDIA A100-SXM4-80GB, 108 SMs\n")
    assert "108 + 24 SMs" in one_line(err)


@pytest.mark.parametrize("gpu", ["h100", "rtx4090", "orin"])
def test_leases_print_a_row_for_each_step(gpu: str) -> None:
    driver = f"sim:{gpu}@{'.'.join(map(str, gcx.driver_info().version))}"
    status, out, err = run("leases", "--steps", "14", driver=driver)
    assert (status, err) == (0, "")
    simulated, device, head, *steps, changes, parked, released = out.splitlines()
    assert simulated == "SIMULATED: no GPU is involved"
    found = re.search(r"(\d+) SMs", device)
    assert found is not None
    count = int(found[1])
    assert head.split() == ["step", "prompts", "decode", "SMs", "prefill", "SMs", "resize,", "us"]
    rows = [[int(cell) for cell in step.split()] for step in steps]
    assert [row[0] for row in rows] == list(range(14))
    assert all(row[2] + row[3] == count for row in rows)
    ordered = [row[2] for row in sorted(rows, key=lambda row: row[1])]
    assert ordered == sorted(ordered, reverse=True)  # Decode has fewer with more prompts.
    assert len(set(ordered)) > 2
    assert re.fullmatch(r"[5-9] changes of decode; resize took \d+ us in the median", changes)
    assert (parked, released) == (
        *(f"prefill is parked: decode has {count}, prefill 0", "released: 0 leases remain"),
    )


def test_split_prints_counts_and_verification() -> None:
    status, out, err = run("split")
    assert (status, err) == (0, "")
    assert out.startswith("SIMULATED: no GPU is involved\n")
    assert "requested 24: got 24 SMs, 108 are left" in out
    assert "ok: each partition ran on as many SMs as promised" in out
    assert "requested 10: got 12 SMs, 120 are left" in run("split", "--sms", "10")[1]
    for count, words in (("0", "at least 1, not 0"), ("200", "200"), ("132", "no SMs")):
        status, _, err = run("split", "--sms", count)
        assert status == 2
        assert re.match(rf"split\.py: .*{words}.*\[GCX_ERROR_\w+, \d+\]$", one_line(err))


@pytest.mark.parametrize("name", COMPUTE)
def test_simulated_driver_is_refused_by_examples_that_compute(name: str) -> None:
    status, out, err = run(name)
    assert status == 2
    assert "SIMULATED" in out
    assert one_line(err).startswith(f"{name}.py: needs a GPU")


@pytest.mark.parametrize("name", ["split", "leases", *COMPUTE])
def test_missing_driver_or_package_is_one_line(name: str) -> None:
    status, _, err = run(name, driver="/nowhere/libcuda.so.1")
    assert status == 2
    assert "/nowhere/libcuda.so.1" in one_line(err)
    status, _, err = run(name, code="sys.modules['gcx'] = None")
    assert status == 2
    assert re.match(rf"{name}\.py: needs the package gcx .*pip install", one_line(err))
    status, out, err = run(name, "--help", driver="/nowhere/libcuda.so.1")
    assert (status, err) == (0, "")
    assert ("--steps" if name == "leases" else "--sms") in out


@pytest.mark.parametrize("module", ["torch", "cupy", "triton"])
def test_missing_library_is_one_line(module: str) -> None:
    code = f"sys.modules[{module!r}] = None; import common; "
    status, _, err = run("split", code=f"{code}common.run(lambda: common.library({module!r}))")
    assert status == 2
    assert re.search(rf"needs {module} .*pip install {module}", one_line(err))


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
        ("serving", ["--sms", "0"]),
        ("serving", ["--rate", "-1"]),
    ],
)
def test_wrong_arguments_print_the_usage(name: str, arguments: list[str]) -> None:
    status, _, err = run(name, *arguments)
    assert status == 2
    assert err.startswith("usage: ")
    assert arguments[0] in err or arguments[-1] in err


@pytest.mark.skipif(gcx.driver_info().version != (13, 0), reason="it is the same on all drivers")
def test_l2_window_is_of_one_stream() -> None:
    sys.path.insert(0, str(EXAMPLES))
    l2: Any = importlib.import_module("l2_window")
    cache, table = l2.Cache(), (0x7F0000000000, 16 << 20)
    none = (None, 0, 0.0, 0, 0)

    def window_of(stream: int) -> tuple[Any, ...]:
        found = l2.Window()
        arguments = (ctypes.c_void_p(stream), l2.WINDOW_ATTRIBUTE, ctypes.byref(found))
        cache.call("cuStreamGetAttribute", *arguments)
        return found.base, found.bytes, found.hit_ratio, found.hit, found.miss

    with gcx.split([24, None]) as (part, rest), part.context.make_current():
        stream = part.stream.native
        cache.window(stream, *table, l2.PERSISTING, 0.5)
        assert window_of(stream) == (*table, 0.5, l2.PERSISTING, l2.NORMAL)
        assert window_of(rest.stream.native) == none
        with pytest.raises(RuntimeError, match=r"cuStreamSetAttribute: .*_INVALID_VALUE"):
            cache.window(stream, 0, cache.most_window + 1, l2.PERSISTING)
        with pytest.raises(RuntimeError, match=r"cuCtxSetLimit: .*_INVALID_VALUE"):
            cache.set_aside(1 << 40)
        assert cache.set_aside(cache.most_set_aside) == cache.most_set_aside < cache.bytes
        cache.reset(stream)
        assert window_of(stream)[1] == 0
        assert cache.set_aside(0) == 0
    with gcx.acquire(16) as lease:
        cache.window(lease.stream.native, *table, l2.PERSISTING)
        lease.resize(24)  # The lease's new CUstream has no window.
        assert window_of(lease.stream.native) == none
