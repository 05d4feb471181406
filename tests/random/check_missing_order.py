"""Random programs notice a missing order.

In a green context the driver does not order NULL and the other streams.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

VALUE = re.compile(r"^wrong: .* is \d+ and not \d+", re.MULTILINE)


def run(*words: str | Path) -> str:
    """Run a program that must fail because of a value, and return what it prints."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 1 or not VALUE.search(done.stderr):
        sys.exit(f"exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    program, driver = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        failed = Path(folder) / "failed"
        for threads in "global", "free":
            for seed in range(1, 6):
                options = ["--threads", threads, "--seed", str(seed), "--failed", failed]
                run(program, "--driver", driver, "--in-green", "--operations", "3000", *options)
        # A program whose threads take turns fails in the same place again.
        options = ["--in-green", "--operations", "3000", "--failed", failed]
        first = run(program, "--driver", driver, *options)
        again = run(program, "--driver", driver, "--replay", failed, "--failed", failed)
        if first != again:
            sys.exit(f"{first}{again}")


if __name__ == "__main__":
    main()
