"""What every test of the command gets."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private folder for the reservations and the published leases of this test."""
    path = tmp_path / "run"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("GCX_RESERVATION_DIR", str(path))
    return path
