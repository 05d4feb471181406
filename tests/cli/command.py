"""Runs the built command, whose path is the environment's GCX_CLI."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

H100 = "sim:h100@13.0"
SM_COUNTS = {
    "a100": 108,
    "h100": 132,
    "h200": 132,
    "b200": 148,
    "gb200": 152,
    "rtx4090": 128,
    "l40s": 142,
    "orin": 16,
}
# Of compute capability below 9.0: they have no max-cluster family.
WITHOUT_CLUSTERS = {"a100", "rtx4090", "l40s", "orin"}
DRIVERS = ["12.4", "12.5", "12.8", "13.0", "13.1", "13.4", "13.5"]
FAMILIES = ["coscheduled", "fine", "max-cluster"]
MACHINES = [f"sim:{gpu}@{driver}" for gpu in SM_COUNTS for driver in DRIVERS]
TIMEOUT = 300

Env = Mapping[str, str]
Json = dict[str, Any]
Done = subprocess.CompletedProcess[str]


def program() -> str:
    """The command's path; absolute, since tests change the folder."""
    path = os.environ.get("GCX_CLI", "")
    assert path, "set GCX_CLI to the path of the built command, e.g. build/src/cli/gcx"
    assert Path(path).is_file(), f"GCX_CLI={path}: there is no such file"
    return str(Path(path).resolve())


def environment(more: Env) -> dict[str, str]:
    """Returns the environment without variables that change the output, and with more."""
    removed = ("GCX_", "CUDA_", "NVIDIA_VISIBLE_DEVICES", "NO_COLOR", "LD_LIBRARY_PATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(removed)}
    # An uninstalled build may name its simulator here, and no test may use the user's folder.
    for name in ("GCX_SIM_LIBRARY", "GCX_RESERVATION_DIR"):
        if name in os.environ:
            kept[name] = os.environ[name]
    return {**kept, **more}


def gcx(*words: str, driver: str | None = H100, env: Env | None = None) -> Done:
    """Runs the command with its output captured; driver goes into GCX_DRIVER."""
    chosen = {} if driver is None else {"GCX_DRIVER": driver}
    return subprocess.run(
        [program(), *words],
        env=environment({**chosen, **(env or {})}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="backslashreplace",
        timeout=TIMEOUT,
        check=False,
    )


def succeed(*words: str, driver: str | None = H100, env: Env | None = None) -> str:
    """Runs the command, which must succeed and print no message, and returns its output."""
    done = gcx(*words, driver=driver, env=env)
    assert (done.returncode, done.stderr) == (0, ""), (words, done)
    return done.stdout


def succeed_json(*words: str, driver: str | None = H100, env: Env | None = None) -> Json:
    """The same with --json, as an object."""
    value = json.loads(succeed(*words, "--json", driver=driver, env=env))
    assert isinstance(value, dict)
    return value


def fail(*words: str, status: int = 1, driver: str | None = H100, env: Env | None = None) -> str:
    """Runs the command, which must fail with that status and print nothing on standard output.
    Returns its standard error."""
    done = gcx(*words, driver=driver, env=env)
    assert (done.returncode, done.stdout) == (status, ""), (words, done)
    assert done.stderr.startswith("gcx"), done.stderr
    return done.stderr


def fail_json(
    *words: str, status: int = 1, driver: str | None = H100, env: Env | None = None
) -> tuple[Json, str]:
    """The same with --json. Returns the document and standard error, which has the same message."""
    done = gcx(*words, "--json", driver=driver, env=env)
    assert done.returncode == status, (words, done)
    value = json.loads(done.stdout)
    error = value["error"]
    assert set(error) == {"result", "code", "message"}
    assert isinstance(error["code"], int)
    assert error["message"] in done.stderr
    return value, done.stderr
