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
# Without the answer of a query.
OPERATION = re.compile(r"^(\d+ thread \d+: .*?)(?:: 0|: 600)?$", re.MULTILINE)


def run(*words: str | Path) -> str:
    """Run a program that must fail because of a value, and return what it says."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 1 or not VALUE.search(done.stderr):
        sys.exit(f"exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr


def main() -> None:
    program, driver = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        failed = Path(folder) / "failed"
        for threads in "global", "free":
            for seed in range(1, 6):
                options = ["--threads", threads, "--seed", str(seed), "--failed", failed]
                run(program, "--driver", driver, "--in-green", "--operations", "3000", *options)
        # A program whose threads take turns makes the same calls again. On a busy machine it fails
        # earlier, later, or not at all: while host functions run, the simulated clock follows the
        # real one.
        options = ["--in-green", "--operations", "3000", "--failed", failed, "--trace"]
        first = OPERATION.findall(run(program, "--driver", driver, *options))
        options = ["--replay", failed, "--trace", "--failed", "/dev/null"]
        replay = [program, "--driver", driver, *options]
        done = subprocess.run(replay, capture_output=True, text=True)
        again = OPERATION.findall(done.stderr)
        size = min(len(first), len(again))
        if size == 0 or first[:size] != again[:size]:
            sys.exit("\n".join([*first, "and again:", *again]))


if __name__ == "__main__":
    main()
