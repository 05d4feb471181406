"""Fails if no harness calls some function of gcx.h: calls.py FOLDER HARNESS...

FOLDER has the headers that gcx.h includes.
"""

import re
import sys
from pathlib import Path


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


header = "".join(without_comments(path.read_text()) for path in Path(sys.argv[1]).glob("*.h"))
harness = "".join(without_comments(Path(path).read_text()) for path in sys.argv[2:])
functions = re.findall(r"^GCX_API\b[^;(]*?\b(gcx_\w+)\(", header, re.MULTILINE)
if len(functions) < 40:
    sys.exit(f"only {len(functions)} functions found in {sys.argv[1]}")
missing = [name for name in functions if not re.search(rf"\b{name}\b", harness)]
if missing:
    sys.exit("not called by a fuzzer: " + ", ".join(missing))
print(f"all {len(functions)} functions")
