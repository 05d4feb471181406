"""Random programs notice a missing order: in a green context the driver orders NULL and the other streams in no way."""

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
                options = ["--threads", threads, "--seed", str(seed), "--in-green", "--operations", "3000"]
                run(program, "--driver", driver, *options, "--failed", failed)
        # A program whose threads take turns fails in the same place again.
        options = ["--seed", "1", "--in-green", "--operations", "3000"]
        first = run(program, "--driver", driver, *options, "--failed", failed)
        again = run(program, "--driver", driver, "--replay", failed, "--failed", failed)
        if first != again:
            sys.exit(f"{first}{again}")


if __name__ == "__main__":
    main()
