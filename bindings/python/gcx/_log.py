"""Sends diagnostics to the logger "gcx", or to standard error if GCX_LOG is set."""

from __future__ import annotations

import atexit
import os

from gcx import _gcx
from gcx._errors import in_python

# gcx_log_level, from error to debug, as the levels of logging.
_LEVELS = (50, 40, 30, 20, 10)


def _receive(level: int, message: str) -> None:
    import logging  # Importing it takes as long as all of gcx.

    logger = logging.getLogger("gcx")
    if not logger.handlers:
        # Libraries add one, so that logging prints nothing unless configured.
        logger.addHandler(logging.NullHandler())
    if logger.isEnabledFor(_LEVELS[level]):
        logger.log(_LEVELS[level], "%s", in_python(message))


if not os.environ.get("GCX_LOG"):
    _gcx.set_log_receiver(_receive)
    atexit.register(_gcx.flush_messages)
