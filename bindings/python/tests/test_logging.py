"""Diagnostics as Python's logging, and signals at any moment of any call."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

import gcx
import pytest
from work import run_program  # type: ignore[import-not-found]

# Signals for each case of interrupts.py.
COUNT = os.environ.get("GCX_TEST_INTERRUPTS", "30")


def test_messages_reach_the_logger(sms: gcx.SMResource, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "gcx")
    with pytest.raises(gcx.ResourceConfigurationError) as caught:
        sms.split([1000])
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("gcx", logging.DEBUG)
    assert str(caught.value).split(" [")[0] in record.getMessage()
    assert "gcx_" not in record.getMessage()
    caplog.set_level(logging.INFO, "gcx")
    caplog.clear()
    with pytest.raises(gcx.ResourceConfigurationError):
        sms.split([1000])
    assert not caplog.records


def test_handler_may_call_gcx(sms: gcx.SMResource) -> None:
    """The error of the outer call stays its own."""
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


def test_nothing_is_printed_by_default(script: Any) -> None:
    code = """
import sys, gcx
part, = gcx.split([8])
print("logging" in sys.modules)
import logging
try: gcx.split([1000])
except gcx.Error: pass
part.close()
"""
    assert script(code) == "False\n"


def test_gcx_log_prints_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCX_LOG", "info")
    code = """
import logging, gcx
logging.basicConfig(level=logging.DEBUG, format="logging: %(message)s")
gcx.split([8])
"""
    done = run_program(sys.executable, "-c", code)
    assert done.returncode == 0
    assert "gcx info: " in done.stderr
    assert "logging: " not in done.stderr


@pytest.mark.parametrize(
    ("wanted", "setting"),
    [
        (False, ""),
        (False, "logging.getLogger('gcx.part').setLevel(1)"),
        (False, "logging.basicConfig(level=logging.WARNING)"),
        (False, "logging.getLogger('gcx').setLevel(logging.INFO)"),
        (False, "logging.getLogger('gcx').setLevel(1); logging.disable(logging.CRITICAL)"),
        (False, "logging.getLogger('gcx').setLevel(1); logging.getLogger('gcx').disabled = True"),
        (True, "logging.getLogger('gcx').setLevel(logging.DEBUG)"),
        (True, "logging.getLogger().setLevel(logging.NOTSET)"),
        (True, "logging.getLogger('gcx.part'); logging.basicConfig(level=1, stream=sys.stdout)"),
        (True, "logging.disable(logging.NOTSET); logging.getLogger('gcx').setLevel(1)"),
        (
            True,
            "logging.Manager._disable = 'unknown'; logging.root.manager.__dict__.clear()\n"
            "logging.root.manager.__init__(logging.root); logging.getLogger('gcx').setLevel(1)",
        ),
    ],
)
def test_only_wanted_messages_run_python(script: Any, wanted: bool, setting: str) -> None:
    code = f"""
import logging, sys, gcx
{setting}
logging.getLogger().addHandler(logging.StreamHandler(sys.stdout))
def refuse():
    try:
        gcx.acquire(1000)
    except gcx.ResourceConfigurationError:
        pass
refuse()
called = []
def trace(frame, event, argument):
    if event == "call":
        called.append(frame.f_code.co_filename)
sys.setprofile(trace)
refuse()
sys.setprofile(None)
print("traced", [name for name in called if "logging" in name or "_log.py" in name])
"""
    printed = script(code)
    assert ("1000 SMs" in printed) == wanted
    assert printed.endswith("traced []\n") != wanted


def test_signals_at_any_moment_leave_nothing_and_are_raised() -> None:
    done = run_program(
        sys.executable, Path(__file__).with_name("interrupts.py"), COUNT, timeout=None
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_signal_in_a_log_handler_is_raised_by_the_call(script: Any) -> None:
    script("""
import logging, os, signal, sys, gcx

class Stop(BaseException):
    pass

def stop(*_):
    raise Stop

signal.signal(signal.SIGUSR1, stop)
swallowed = []
sys.unraisablehook = swallowed.append

class Handler(logging.Handler):
    def emit(self, record):
        os.kill(os.getpid(), signal.SIGUSR1)

sms = gcx.Device(0).resources.sm
logger = logging.getLogger("gcx")
logger.addHandler(Handler())
logger.setLevel(logging.DEBUG)
in_use = gcx.cache_stats().in_use
for call in (lambda: sms.split([1000]), lambda: gcx.Context(sms), lambda: gcx.acquire(1000)):
    try:
        call()
    except Stop:
        pass
    else:
        raise SystemExit("lost")
logger.setLevel(logging.CRITICAL)
assert (gcx.cache_stats().in_use, gcx.leases(), swallowed) == (in_use, [], [])
""")


def test_handle_not_released_at_collection_is_logged(script: Any) -> None:
    """The next call logs it, since a finalizer can't raise. Here the context is current."""
    code = """
import logging, sys, gcx
from gcx import _gcx
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
context = gcx.Context(gcx.Device(0).resources.sm)
_gcx.gcx_context_push(context._handle)
del context
print("collected")
gcx.driver_info()
_gcx.gcx_context_pop()
"""
    before, after = script(code).split("collected\n")
    assert before == ""
    assert after.startswith("ERROR an object was collected, and its handle is not released: ")
