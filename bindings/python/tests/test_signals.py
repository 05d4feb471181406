"""Signals with a handler that raises, as Ctrl-C's does, at any moment of any call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Signals for each case of interrupts.py.
COUNT = os.environ.get("GCX_TEST_INTERRUPTS", "30")


def test_signals_at_any_moment_leave_nothing_and_reach_the_program() -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("interrupts.py")), COUNT],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


LOST = """
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
kept = gcx.cache_stats().in_use
for call in (lambda: sms.split([1000]), lambda: gcx.Context(sms), lambda: gcx.acquire(1000)):
    try:
        call()
    except Stop:
        pass
    else:
        raise SystemExit("lost")
logger.setLevel(logging.CRITICAL)
assert (gcx.cache_stats().in_use, gcx.leases(), swallowed) == (kept, [], [])
"""


def test_signal_in_log_receiver_is_raised_by_the_call(script: Any) -> None:
    script(LOST)


@pytest.mark.parametrize(
    "setting",
    [
        "",
        "import logging",
        "import logging; logging.getLogger('gcx')",
        "import logging; logging.getLogger('gcx.part').setLevel(1)",
        "import logging; logging.basicConfig(level=logging.WARNING)",
        "import logging; logging.getLogger('gcx').setLevel(logging.INFO)",
        "import logging; logging.getLogger('gcx').setLevel(1); logging.disable(logging.CRITICAL)",
        "import logging; logging.getLogger('gcx').setLevel(1)\n"
        "logging.getLogger('gcx').disabled = True",
    ],
)
def test_unwanted_messages_run_no_python(script: Any, setting: str) -> None:
    code = f"""
import sys, gcx
{setting}
called = []
try:
    gcx.acquire(1000)
except gcx.ResourceConfigurationError:
    pass
def trace(frame, event, argument):
    if event == "call":
        called.append((frame.f_code.co_filename, frame.f_code.co_name))
sys.setprofile(trace)
try:
    gcx.acquire(1000)
except gcx.ResourceConfigurationError:
    pass
sys.setprofile(None)
print([call for call in called if "logging" in call[0] or "_log.py" in call[0]])
"""
    assert script(code) == "[]\n"


@pytest.mark.parametrize(
    "setting",
    [
        "logging.getLogger('gcx').setLevel(logging.DEBUG)",
        "logging.getLogger().setLevel(logging.NOTSET)",
        "logging.getLogger('gcx.part'); logging.basicConfig(level=1, stream=sys.stdout)",
        "logging.disable(logging.NOTSET); logging.getLogger('gcx').setLevel(1)",
        "logging.Manager._disable = 'unknown'; logging.root.manager.__dict__.clear()\n"
        "logging.root.manager.__init__(logging.root); logging.getLogger('gcx').setLevel(1)",
    ],
)
def test_wanted_messages_arrive(script: Any, setting: str) -> None:
    code = f"""
import logging, sys, gcx
{setting}
logging.getLogger().addHandler(logging.StreamHandler(sys.stdout))
try:
    gcx.acquire(1000)
except gcx.ResourceConfigurationError:
    pass
"""
    assert "asked for 1000 SMs" in script(code)


def test_handle_that_is_not_released_at_its_end_is_logged(script: Any) -> None:
    """With the next call, whose exceptions reach somebody. Here the context is current."""
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
    assert "current" in after
