"""Compares libgcx's ABI with the record beside this file, by abidiff.

Usage: compare.py LIBRARY HEADERS RECORD [--update]

Functions and fields may be added; nothing that a program was built against may change. An addition
is written down by --update. Exits with 77, which is "skipped", without abidiff.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

SKIPPED = 77


def main() -> int:
    library, headers, record = sys.argv[1:4]
    if shutil.which("abidiff") is None or shutil.which("abidw") is None:
        print("skipped: abidiff is not installed; Debian has it in abigail-tools")
        return SKIPPED
    if "--update" in sys.argv[4:]:
        command = ["abidw", "--headers-dir", headers, "--no-corpus-path", "--no-comp-dir-path",
                   "--no-elf-needed", "--no-show-locs", "--drop-private-types",
                   "--exported-interfaces-only", "--out-file", record, library]  # fmt: skip
        return subprocess.run(command, check=False).returncode
    if "<function-decl name='gcx_version'" not in Path(record).read_text():
        print(f"{record} does not record libgcx", file=sys.stderr)
        return 1
    command = ["abidiff", "--headers-dir2", headers, "--drop-private-types",
               "--exported-interfaces-only", record, library]  # fmt: skip
    done = subprocess.run(command, check=False)
    if done.returncode != 0:
        print(
            "The ABI is another one than recorded. If that is meant, and no program breaks by it, "
            "record it: ninja update-abi",
            file=sys.stderr,
        )
    return 1 if done.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
