"""Diagnostics as Python's logging."""

from __future__ import annotations

import logging
from typing import Any

import gcx
import pytest


def test_messages_reach_the_logger(sms: gcx.SMResource, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "gcx")
    with pytest.raises(gcx.ResourceConfigurationError) as caught:
        sms.split([1000])
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("gcx", logging.DEBUG)
    assert str(caught.value).split(" [")[0] in record.getMessage()
    assert "gcx_" not in record.getMessage()


def test_levels_are_those_of_the_logger(
    sms: gcx.SMResource, caplog: pytest.LogCaptureFixture
) -> None:
    kept = gcx.cache_stats().limit
    try:
        for level, expected in ((logging.INFO, True), (logging.WARNING, False)):
            gcx.set_cache_limit(0)
            caplog.set_level(level, "gcx")
            caplog.clear()
            gcx.Context(sms).close()
            assert bool(caplog.records) == expected
    finally:
        gcx.set_cache_limit(kept)


def test_a_handler_may_call_gcx(sms: gcx.SMResource) -> None:
    """Also what fails, and in a thread: nothing is locked, and the error stays its call's own."""
    seen: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record.getMessage())
            if len(seen) < 3:
                with pytest.raises(gcx.ResourceConfigurationError, match="2000"):
                    sms.split([2000])

    logger, handler = logging.getLogger("gcx"), Handler()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        with pytest.raises(gcx.ResourceConfigurationError, match="1000"):
            sms.split([1000])
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert ["1000" in seen[0], "2000" in seen[1], len(seen)] == [True, True, 3]


def test_nothing_is_printed_unasked(script: Any) -> None:
    """Neither by the library nor by logging's last resort, though a context was lost."""
    code = """
import logging, gcx
part, = gcx.split([8])
try: gcx.split([1000])
except gcx.Error: pass
part.close()
"""
    assert script(code) == ""
    assert script("import sys, gcx; gcx.split([8]); print('logging' in sys.modules)") == "False\n"


def test_gcx_log_prints_instead(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    import subprocess
    import sys

    monkeypatch.setenv("GCX_LOG", "info")
    code = """
import logging, gcx
logging.basicConfig(level=logging.DEBUG, format="logging: %(message)s")
gcx.split([8])
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    printed = capfd.readouterr().err
    assert "gcx info: " in printed
    assert "logging: " not in printed
