"""Shows that record.py notices each kind of change that breaks programs, and refuses no addition.

    python -m tests.abi.mutations INCLUDE COMPILER...

Each mutation changes the first place of the headers that its pattern finds.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

from tests.abi.record import compile_problems, library_problems, records

HEADERS = ("partition", "lease", "reservation", "graph", "diagnostics", "common")
UINT = r"^( +)uint32_t (?!struct_size|reserved)(\w+);(.*)\n"
BREAKING = {
    "a field's type, of the same size": (UINT, r"\1float \2;\3\n"),
    "a field's sign": (UINT, r"\1int32_t \2;\3\n"),
    "a field's size": (UINT, r"\1uint64_t \2;\3\n"),
    "an array's length": (r"^( +char name)\[128\]", r"\1[256]"),
    "the order of fields": (rf"{UINT} +(\w+) (\w+);", r"    \4 \5;\n    uint32_t \2;"),
    "a field's name": (UINT, r"\1uint32_t \2_renamed;\3\n"),
    "a field fewer": (UINT, ""),
    "a field more, and a larger struct": (UINT, r"\g<0>    uint32_t added_field;\n"),
    "the place that reserved had": (r"^( +uint32_t reserved)\[4\]", r"\1[5]"),
    "an enum's type in a field": (r"^( +)gcx_\w+_type (\w+);", r"\1uint32_t \2;"),
    "an enum's value": (r"^( +GCX_\w+ = 1)(?=[, ])", r"\g<1>7"),
    "an enum's value fewer": (r"^ +GCX_\w+ = 1,.*\n", ""),
    "a result's number": (r"^( +GCX_ERROR_\w+ = \d+)", r"\g<1>99"),
    "a constant's value": (r"^(#define GCX_\w+ 0x)1u", r"\g<1>1000u"),
    "a constant's type": (r"^(#define GCX_\w+ 0x1)u", r"\1"),
    "a function fewer": (r"^GCX_API gcx_result \w+\([^;]*;\n", ""),
    "a function's name": (r"^(GCX_API gcx_result \w+)\(", r"\1_renamed("),
    "a function's result": (r"^GCX_API gcx_result (\w+\()", r"GCX_API void \1"),
    "a parameter's type": (r"^(GCX_API gcx_result \w+\(int)32(_t )", r"\g<1>64\2"),
    "an enum's type in a parameter": (r"^(GCX_API [^;]*, )gcx_\w+_type (\w+,)", r"\1uint32_t \2"),
    "a parameter's const": (r"^(GCX_API gcx_result \w+\()const ", r"\1"),
    "a parameter more": (r"^(GCX_API gcx_result \w+\([^;]*)\);", r"\1, uint32_t added);"),
    "a parameter fewer": (r"^(GCX_API gcx_result \w+\(.*), [^,;]*\);", r"\1);"),
    "a callback's parameter": (r"^(typedef void \(\*gcx_\w+\)\()uint32_t", r"\1uint64_t"),
    "a handle that is no pointer": (r"^typedef struct gcx_\w+_s\* ", "typedef unsigned long "),
}
ADDITIONS = {
    "a function and a struct": (
        r"^GCX_API",
        "typedef struct gcx_added { uint32_t a; } gcx_added;\n"
        "GCX_API gcx_result gcx_add(gcx_added added);\nGCX_API",
    ),
    "an enum's value": (r"^( +)(GCX_\w+ = 1\b)", r"\1GCX_ADDED_VALUE = 12345,\n\1\2"),
    "a constant": (r"^#define GCX_\w+ 0x1u", r"#define GCX_ADDED_CONSTANT 1u\n\g<0>"),
    "a field in place of reserved": (
        r"^( +)uint32_t reserved\[4\];",
        r"\1uint32_t added_field;\n\1uint32_t reserved[3];",
    ),
    "another version": (r"^(#define GCX_VERSION_MINOR) \d+", r"\1 99"),
}


def mutate(include: Path, pattern: str, new: str) -> bool:
    """Changes one place; whether there was one."""
    for header in (include / "gcx" / f"{name}.h" for name in HEADERS):
        text, changed = re.subn(pattern, new, header.read_text(), count=1, flags=re.MULTILINE)
        if changed:
            header.write_text(text)
            return True
    return False


def main() -> int:
    original, *compiler = sys.argv[1:]
    api = json.loads(records()[-1].read_text())
    wrong = []
    cases = [(name, *case, True) for name, case in BREAKING.items()]
    cases += [(name, *case, False) for name, case in ADDITIONS.items()]
    for name, pattern, new, breaks in cases:
        with tempfile.TemporaryDirectory() as folder:
            include = Path(folder) / "include"
            shutil.copytree(original, include)
            if not mutate(include, pattern, new):
                wrong.append(f"{name}: the headers have no such place")
                continue
            problems = compile_problems(api, include, compiler)
        print(f"{name}: {'; '.join(problems[:2]) or 'allowed'}")
        if bool(problems) != breaks:
            wrong.append(f"{name}: {'not noticed' if breaks else 'refused'}")

    functions = {function["name"] for function in api["functions"]}
    soname = api["library"]["soname"]
    for name, exported, its_soname, breaks in (
        ("an export fewer", functions - {max(functions)}, soname, True),
        ("another soname", functions, f"{soname}0", True),
        ("an export more", functions | {"gcx_added"}, soname, False),
    ):
        problems = library_problems(api, exported, its_soname)
        print(f"{name}: {'; '.join(problems) or 'allowed'}")
        if bool(problems) != breaks:
            wrong.append(f"{name}: {'not noticed' if breaks else 'refused'}")
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(cases) + 3} mutations, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
