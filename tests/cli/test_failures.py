"""Each driver call fails once: the command reports an error or succeeds, and never crashes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .command import gcx

# More calls than any of these lines makes except bench, which repeats its first calls.
CALLS = 250


@pytest.mark.parametrize(
    "line",
    [
        "info",
        "plan --sms 108,24",
        "split --sms 108,24",
        "verify --sms 108,24",
        "bench --rounds 2",
        "bench repartition --rounds 2",
    ],
)
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
        # Either an error, or a result with problems.
        assert "error" in document or document.get("ok") is not True, (nth, done)
    assert failures > 10


def test_record_with_a_failing_driver_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "gpu.profile"
    for nth in range(1, 4):
        done = gcx("info", "--record", str(path), env={"GCX_SIM_FAIL": f"cuGreenCtxCreate:{nth}:2"})
        assert done.returncode == 1
        assert "cuGreenCtxCreate" in done.stderr
        assert not path.exists()
