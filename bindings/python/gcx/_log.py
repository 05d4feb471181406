"""Diagnostics as Python's logging: the logger gcx.

GCX_LOG, where it is set, sends them to standard error instead, as from any program.
"""

from __future__ import annotations

import atexit
import os

from gcx import _gcx
from gcx._errors import in_python

# gcx_log_level, from error to debug, as the levels of logging.
_LEVELS = (50, 40, 30, 20, 10)


def _receive(level: int, message: str) -> None:
    import logging  # Importing it takes as long as all of gcx. It was, or this isn't called.

    logger = logging.getLogger("gcx")
    if not logger.handlers:
        # As a library should: without it logging prints what nobody asked for.
        logger.addHandler(logging.NullHandler())
    if logger.isEnabledFor(_LEVELS[level]):
        logger.log(_LEVELS[level], "%s", in_python(message))


if not os.environ.get("GCX_LOG"):
    _gcx.set_log_receiver(_receive)
    atexit.register(_gcx.flush_messages)
