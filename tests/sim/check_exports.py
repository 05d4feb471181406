"""Checks that the library exports the functions of its table, gcx_sim_ functions, and nothing else.

check_exports.py NM LIBRARY FUNCTIONS HEADER
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def main() -> int:
    nm, library, functions, header = sys.argv[1:]
    listed = subprocess.run(
        [nm, "-D", "--defined-only", "--format=posix", library],
        check=True,
        capture_output=True,
        text=True,
    )
    exported = {line.split()[0].split("@")[0] for line in listed.stdout.splitlines()}
    wanted = set(re.findall(r"\b(gcx_sim_\w+)\(", Path(header).read_text()))
    for row in re.findall(r"^[FP]\((.*)\)$", Path(functions).read_text(), re.MULTILINE):
        fields = [field.strip() for field in row.split(",")]
        wanted.update(fields[1:2] + fields[3:])
    for name in sorted(exported - wanted):
        print(f"exported, but in no table: {name}")
    for name in sorted(wanted - exported):
        print(f"in a table, but not exported: {name}")
    print(f"{len(exported & wanted)} functions are exported and in a table")
    return 1 if exported != wanted else 0


if __name__ == "__main__":
    sys.exit(main())
