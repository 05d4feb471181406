"""Checks what libgcx exports and needs: exactly the functions that gcx.h declares, and libc alone.

Usage: exports.py LIBRARY NM READELF [--any-needed]
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

# libm and the others are libc's own; ld-linux is its loader.
LIBC = re.compile(r"^(libc|libm|libdl|libpthread|ld-linux[\w-]*)\.so\.\d+$")


def declared() -> set[str]:
    """The names of the functions that the public headers declare with GCX_API."""
    headers = (Path(__file__).parents[2] / "include" / "gcx").glob("*.h")
    text = "".join(header.read_text() for header in headers)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    names = set()
    for match in re.finditer(r"^GCX_API\b([^;]*);", text, flags=re.MULTILINE):
        name = re.search(r"(\w+)\s*\(", match.group(1))
        assert name, match.group(0)
        names.add(name.group(1))
    return names


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> int:
    library, nm, readelf = sys.argv[1:4]
    problems = []
    functions = declared()
    if len(functions) < 40:
        problems.append(f"only {len(functions)} functions were found")
    lines = output(nm, "--dynamic", "--defined-only", library).splitlines()
    exported = {line.split()[-1] for line in lines if line.strip()}
    problems += [f"{name} is declared and not exported" for name in sorted(functions - exported)]
    problems += [f"{name} is exported and not declared" for name in sorted(exported - functions)]
    not_functions = [line.split()[-1] for line in lines if line.split()[-2] != "T"]
    problems += [f"{name} is exported and no function" for name in not_functions]

    dynamic = output(readelf, "--dynamic", "--wide", library)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    if "--any-needed" not in sys.argv[4:]:
        problems += [f"it needs {name}" for name in needed if not LIBC.match(name)]
    if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
        problems.append("it has a path to search libraries in")
    for problem in problems:
        print(f"{library}: {problem}", file=sys.stderr)
    print(f"{len(exported)} exports, needs {' '.join(needed)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
