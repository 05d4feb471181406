"""examples/quickstart.sh, with the built command in the place of what it would build."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from .command import environment, program

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree whose build is there already."""
    tree = tmp_path / "tree"
    (tree / "tools").mkdir(parents=True)
    for name in ("examples/quickstart.sh", "tools/setup.sh"):
        (tree / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    (tree / "tools" / "find_cuda_include.py").write_text("")
    build = tree / "build" / "quickstart"
    (build / "src").mkdir(parents=True)
    (build / "examples").mkdir()
    (build / "build.ninja").write_text("")
    (build / "src" / "cli").symlink_to(Path(program()).parent)
    tools = tmp_path / "tools"
    tools.mkdir()
    for path, text in (
        (tools / "ninja", "exit 0"),
        (tools / "meson", "echo 1.9.0"),
        (build / "examples" / "split", "echo split ran"),
        (build / "examples" / "dlopen", "echo dlopen ran"),
    ):
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    return tree


def run(tree: Path, driver: str) -> subprocess.CompletedProcess[str]:
    path = f"{tree.parent}/tools:/usr/local/bin:/usr/bin:/bin"
    return subprocess.run(
        ["bash", str(tree / "examples" / "quickstart.sh")],
        env=environment({"GCX_DRIVER": driver, "PATH": path}),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("driver", "why"),
    [
        ("sim:none@13.0", "has no device"),
        ("sim:nosuch", 'no GPU "nosuch" can be simulated'),
        ("/nonexistent.so", "cannot open shared object file"),
    ],
)
def test_quickstart_unusable_driver_is_a_clear_error(tree: Path, driver: str, why: str) -> None:
    done = run(tree, driver)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: GCX_DRIVER={driver} can't be used: "), done
    assert why in done.stderr
    assert "unset GCX_DRIVER" in done.stderr
    assert "Traceback" not in done.stderr


def test_quickstart_simulated_driver_runs_the_examples(tree: Path) -> None:
    done = run(tree, "sim:a100@13.0")
    assert (done.returncode, done.stderr) == (0, ""), done
    assert "verify --sms rest,27" in done.stdout
    assert "dlopen ran\n" in done.stdout
    assert "gcx exec --sms 24 -- PROGRAM" in done.stdout
