"""What every test of the command gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from .command import compiled


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private folder for the reservations and the published leases of this test."""
    path = tmp_path / "run"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("GCX_RESERVATION_DIR", str(path))
    return path


@pytest.fixture(scope="session")
def unaware(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program of exec_program.c, built."""
    source = Path(__file__).with_name("exec_program.c")
    return compiled(tmp_path_factory.mktemp("exec") / "unaware", source, "-ldl", "-pthread")
