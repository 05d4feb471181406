"""Compiles the public headers alone with every compiler there is, in the strictest way.

Usage: header.py INCLUDE
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

COMPILERS = ["gcc", "clang", "clang-19", "cc"]
STANDARDS = {"c99": "c", "c11": "c", "c++17": "c++", "c++20": "c++", "c++23": "c++"}
SOURCES = {"c": ("header.c", "header_sim.c"), "c++": ("header.c", "header_sim.c", "header.cpp")}
STRICTER = ["-fno-rtti", "-Wold-style-cast", "-Wsign-conversion", "-Wnon-virtual-dtor",
            "-Wextra-semi", "-Woverloaded-virtual"]  # fmt: skip
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wconversion", "-Wshadow",
            "-Wno-missing-field-initializers"]  # fmt: skip


def main() -> int:
    include = sys.argv[1]
    tried = 0
    failed = 0
    found = {os.path.realpath(path): path for path in map(shutil.which, COMPILERS) if path}
    for compiler in found.values():
        for standard, language in STANDARDS.items():
            for source in SOURCES[language]:
                command = [compiler, "-x", language, f"-std={standard}", *WARNINGS, "-I", include,
                           "-fsyntax-only", str(Path(__file__).parent / source)]  # fmt: skip
                if source.endswith(".cpp"):
                    command += STRICTER
                tried += 1
                if subprocess.run(command, check=False).returncode != 0:
                    print(f"failed: {' '.join(command)}", file=sys.stderr)
                    failed += 1
    print(f"{tried - failed} passed, {failed} failed")
    return 1 if failed or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
