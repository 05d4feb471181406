"""Builds the wheel, installs it beside the tree, and runs the tests on each simulated driver.

    python bindings/python/tests/run.py [--wheel FILE] [--python PROGRAM]... [PYTEST ARGUMENT...]

Needs pip and pytest, and what the wheel's build needs unless a wheel is named.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
DRIVERS = ("12.4", "13.0", "13.1", "13.5")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path, help="test this one, in place of building one")
    parser.add_argument("--driver", action="append", help=f"of {', '.join(DRIVERS)}; all of them")
    arguments, rest = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
        wheel = arguments.wheel
        if wheel is None:
            subprocess.run([*pip, "wheel", str(ROOT), "--no-deps", "-w", name], check=True)
            (wheel,) = folder.glob("gcx-*.whl")
        site = folder / "site"
        subprocess.run(
            [*pip, "install", "--no-index", "--no-deps", "--target", str(site), str(wheel)],
            check=True,
        )
        failed = 0
        for driver in arguments.driver or DRIVERS:
            print(f"-- the simulated driver {driver}", flush=True)
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", HERE, *rest],
                cwd=folder,
                env={
                    **os.environ,
                    "PYTHONPATH": str(site),
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "GCX_DRIVER": f"sim:h100@{driver}",
                },
                check=False,
            )
            failed += done.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
