"""`python -m gcx` is the command gcx."""

from __future__ import annotations

import os
import sys

from gcx._driver import command

if __name__ == "__main__":
    program = command()
    os.execv(program, [program, *sys.argv[1:]])
