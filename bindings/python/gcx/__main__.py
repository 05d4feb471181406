"""`python -m gcx` is the command gcx."""

from __future__ import annotations

from gcx._command import main

if __name__ == "__main__":
    main()
