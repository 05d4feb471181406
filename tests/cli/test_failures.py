"""Each driver call fails once: the command reports an error or succeeds, and never crashes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .command import fail, fail_json, gcx
from .test_messages import check

# More calls than any of these lines makes except bench, which repeats its first calls.
CALLS = 250
SMS = "--sms 108,24"


@pytest.mark.parametrize(
    "line",
    ["info", "info --limits", f"plan {SMS}", f"split {SMS}", f"verify {SMS}", "bench --rounds 2",
     "bench repartition --rounds 2"],
)  # fmt: skip
def test_command_with_any_failing_driver_call_reports_it(line: str) -> None:
    failures = 0
    for nth in range(1, CALLS + 1):
        done = gcx(*line.split(), "--json", env={"GCX_SIM_FAIL": f"*:{nth}:999"})
        assert done.returncode in {0, 1}, (nth, done)
        document = json.loads(done.stdout)
        assert document["simulated"] is True
        if done.returncode == 0:
            assert done.stderr == "", (nth, done)
            assert "error" not in document
            assert document.get("ok", True) is True
            continue
        failures += 1
        assert "SIMULATED" in done.stderr, (nth, done)
        check(done.stderr)
        # Either an error, or a result with problems.
        assert "error" in document or document.get("ok") is not True, (nth, done)
    assert failures > 10


def test_exec_with_any_failing_driver_call_runs_nothing() -> None:
    failures = 0
    for nth in range(1, 60):
        done = gcx("exec", "--sms", "24", "--", "echo", "ran", env={"GCX_SIM_FAIL": f"*:{nth}:999"})
        if done.returncode == 0:
            assert done.stdout == "ran\n"
            continue
        failures += 1
        assert (done.returncode, done.stdout) == (125, ""), (nth, done)
        assert "SIMULATED" in done.stderr
        check(done.stderr)
    assert failures > 3


@pytest.mark.parametrize(
    ("line", "function", "nth", "code"),
    [
        (f"split {SMS}", "cuInit", 1, 999),
        (f"split {SMS}", "cuDeviceGetDevResource", 1, 999),
        (f"split {SMS}", "cuDevSmResourceSplitByCount", 1, 915),
        (f"split {SMS}", "cuDevResourceGenerateDesc", 2, 2),
        (f"split {SMS}", "cuGreenCtxCreate", 1, 2),
        (f"split {SMS}", "cuGreenCtxCreate", 2, 2),
        (f"split {SMS}", "cuGreenCtxStreamCreate", 2, 2),
        (f"split {SMS}", "cuLaunchKernel", 2, 719),
        (f"verify {SMS}", "cuLaunchKernel", 2, 719),
        ("info --limits", "cuGreenCtxCreate", 1, 2),
        ("bench --rounds 3", "cuGreenCtxCreate", 2, 2),
        ("bench repartition", "cuGreenCtxCreate", 3, 2),
    ],
)
def test_failing_driver_call_is_named(line: str, function: str, nth: int, code: int) -> None:
    """The driver's result and the function's name are reported."""
    document, message = fail_json(*line.split(), env={"GCX_SIM_FAIL": f"{function}:{nth}:{code}"})
    assert function in message
    assert document["error"]["code"] == code


@pytest.mark.parametrize("line", ["info --record", f"verify {SMS} --svg"])
@pytest.mark.parametrize("path", ["/nonexistent/file", "/dev/full", "/"])
def test_unwritable_file_is_reported(line: str, path: str) -> None:
    document, message = fail_json(*line.split(), path)
    assert path in message
    assert document["error"]["result"] == "GCX_ERROR_OPERATING_SYSTEM"


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_record_with_a_failing_driver_writes_nothing(tmp_path: Path, nth: int) -> None:
    path = tmp_path / "gpu.profile"
    failing = {"GCX_SIM_FAIL": f"cuGreenCtxCreate:{nth}:2"}
    assert "cuGreenCtxCreate" in fail("info", "--record", str(path), env=failing)
    assert not path.exists()
