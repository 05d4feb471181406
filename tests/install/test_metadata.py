"""Tests the metadata of all languages' packages, before a release and for one."""

from __future__ import annotations

import sys

import pytest

from .conftest import ROOT, run

METADATA = ROOT / "tools" / "metadata.py"


def test_packages_agree() -> None:
    done = run(sys.executable, METADATA)
    assert done.returncode == 0, done.stderr


def test_a_release_needs_real_addresses() -> None:
    constants = (ROOT / "tools" / "project.json").read_text()
    done = run(sys.executable, METADATA, "--release")
    assert (done.returncode != 0) == ("example" in constants)
    assert ("set it before a release" in done.stderr) == ("example" in constants)


def test_release_script_refuses_placeholders() -> None:
    if "example" not in (ROOT / "tools" / "project.json").read_text():
        pytest.skip("the addresses are real")
    done = run(ROOT / "tools" / "release.sh")
    assert done.returncode == 1
    assert "set these in tools/project.json, or use --draft" in done.stderr
