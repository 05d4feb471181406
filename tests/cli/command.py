"""Runs the built command, whose path is the environment's GCX_CLI."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

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


def gcx(
    *words: str,
    driver: str | None = H100,
    env: Env | None = None,
    under: Sequence[str] = (),
    **options: Any,
) -> Done:
    """Runs the command with its output captured; driver goes into GCX_DRIVER. under has the words
    of a program that runs the command. The other options are those of subprocess.run."""
    defaults = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run(
        [*under, program(), *words],
        env=environment({**chosen(driver), **(env or {})}),
        text=True, errors="backslashreplace", timeout=TIMEOUT, check=False,
        **{**defaults, **options},
    )  # fmt: skip


@contextmanager
def started(
    *words: str, driver: str = H100, under: Sequence[str] = (), **options: Any
) -> Iterator[subprocess.Popen[str]]:
    """Starts the command with pipes, and ends it with the block."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(
        [*under, program(), *words], env=environment(chosen(driver)), text=True,
        **{**pipes, **options},
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def chosen(driver: str | None) -> dict[str, str]:
    return {} if driver is None else {"GCX_DRIVER": driver}


def said(process: subprocess.Popen[str]) -> str:
    """Returns the next line of the process's standard error."""
    assert process.stderr is not None
    return process.stderr.readline()


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


def compiled(path: Path, source: str | Path, *options: str) -> str:
    """Compiles a C file, or a text, to a program or a library; skips if there is no static libc."""
    if isinstance(source, str):
        source_file = path.with_suffix(".c")
        source_file.write_text(source)
        source = source_file
    done = subprocess.run(
        ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-o", str(path), str(source), *options],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0 and "-static" in options:
        pytest.skip("this machine has no static libc")
    assert done.returncode == 0, done.stderr
    return str(path)


def pairs(table: Mapping[str, list[str]]) -> list[tuple[str, str]]:
    """Returns each key with each of its values, for a parametrized test."""
    return [(key, value) for key, values in table.items() for value in values]


def succeed(*words: str, **options: Any) -> str:
    """Runs the command, which must succeed and print no message, and returns its output. The
    options of this and the next functions are those of gcx()."""
    done = gcx(*words, **options)
    assert (done.returncode, done.stderr) == (0, ""), (words, done)
    return done.stdout


def succeed_json(*words: str, **options: Any) -> Json:
    """The same with --json, as an object."""
    value = json.loads(succeed(*words, "--json", **options))
    assert isinstance(value, dict)
    return value


def fail(*words: str, status: int = 1, **options: Any) -> str:
    """Runs the command, which must fail with that status and print nothing on standard output.
    Returns its standard error."""
    done = gcx(*words, **options)
    assert (done.returncode, done.stdout) == (status, ""), (words, done)
    assert done.stderr.startswith("gcx"), done.stderr
    return done.stderr


def fail_json(*words: str, status: int = 1, **options: Any) -> tuple[Json, str]:
    """The same with --json. Returns the document and standard error, which has the same message."""
    done = gcx(*words, "--json", **options)
    assert done.returncode == status, (words, done)
    value = json.loads(done.stdout)
    error = value["error"]
    assert set(error) == {"result", "code", "message"}
    assert isinstance(error["code"], int)
    assert error["message"] in done.stderr
    return value, done.stderr
