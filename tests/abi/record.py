"""Compares the library's ABI with the records of releases: what gcx-api.json said of each.

    record.py LIBRARY INCLUDE NM READELF -- COMPILER...    # compares with every record
    record.py --update                # writes the record of the version that is not yet released

Functions, values, structs and names may be added. A program that was built against a recorded
release must go on working: sizes, offsets, types, values, signatures, exports and the soname stay.
A field `reserved` may become other fields.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
API = ROOT / "docs" / "generated" / "gcx-api.json"
Json = dict[str, Any]

# GCC and Clang compare types exactly in C++ alone: an enum is no unsigned int there.
HEAD = """#include <cstddef>
#include <type_traits>
#include <gcx.h>
template <class A, class B> constexpr bool same = std::is_same_v<A, B>;
"""
# Says that there is another release, not another ABI.
VERSION = re.compile(r"GCX_VERSION(_|$)")
COMPARED = {
    "library", "functions", "callbacks", "structs", "enums", "constants", "handles", "name",
    "soname", "version", "parameters", "result", "type", "fields", "size", "align", "offset",
    "values", "value",
}  # fmt: skip


def assertions(api: Json) -> Iterator[str]:
    """C++ that compiles if a compiler sees in gcx.h what the description says."""

    def holds(what: str, said: str) -> str:
        return f"static_assert({what}, {json.dumps(said)});"

    for struct in api["structs"]:
        name = struct["name"]
        for what in ("sizeof", "alignof"):
            size = struct["size" if what == "sizeof" else "align"]
            yield holds(f"{what}({name}) == {size}", f"{what}({name}) was {size}")
        for field in struct["fields"]:
            if field["name"] == "reserved":
                continue
            place = f"{name}.{field['name']}"
            offset = f"offsetof({name}, {field['name']})"
            yield holds(f"{offset} == {field['offset']}", f"{place} was at {field['offset']}")
            of = field["type"]
            yield holds(f"same<decltype({name}::{field['name']}), {of}>", f"{place} was {of}")
    for enum in api["enums"]:
        size = enum["size"]
        yield holds(f"sizeof({enum['name']}) == {size}", f"sizeof({enum['name']}) was {size}")
        for value in enum["values"]:
            number = value["value"]
            yield holds(f"{value['name']} == {number}", f"{value['name']} was {number}")
    for constant in api["constants"]:
        name, number, of = constant["name"], constant["value"], constant["type"]
        if not VERSION.match(name):
            yield holds(f"{name} == {number}", f"{name} was {number}")
            yield holds(f"same<decltype({name} + 0), {of}>", f"{name} was {of}")
    for handle in api["handles"]:
        name = handle["name"]
        yield holds(f"std::is_pointer_v<{name}>", f"{name} was a pointer")
    described = [(f"decltype(&{entry['name']})", entry) for entry in api["functions"]]
    described += [(entry["name"], entry) for entry in api["callbacks"]]
    for seen, entry in described:
        types = ", ".join(parameter["type"] for parameter in entry["parameters"])
        of = f"{entry['result']['type']} (*)({types})"
        yield holds(f"same<{seen}, {of}>", f"{entry['name']} was {of.replace(' (*)', '')}")


def compile_problems(api: Json, include: Path, compiler: Sequence[str]) -> list[str]:
    """What a compiler that reads gcx.h finds otherwise than described."""
    with tempfile.TemporaryDirectory() as folder:
        # Zig fails with -fsyntax-only if there is no error.
        command = [*compiler, "-x", "c++", "-std=c++17", "-w", "-S", "-o", f"{folder}/api.s",
                   f"-I{include}", "-"]  # fmt: skip
        done = subprocess.run(
            command, input=HEAD + "\n".join(assertions(api)), text=True, capture_output=True,
            check=False,
        )  # fmt: skip
    if done.returncode == 0:
        return []
    found = re.findall(r"error: (?:static.assertion failed[^:\"]*[:\"] *)?(.*)", done.stderr)
    return [line.strip('" ') for line in found] or [done.stderr]


def library_problems(api: Json, exported: set[str], soname: str) -> list[str]:
    wanted = {function["name"] for function in api["functions"]}
    problems = [f"{name} is no longer exported" for name in sorted(wanted - exported)]
    if soname != api["library"]["soname"]:
        problems.append(f"the soname was {api['library']['soname']}, and is {soname}")
    return problems


def library_symbols(library: str, nm: str, readelf: str) -> tuple[set[str], str]:
    """The functions that a library exports, and its soname."""

    def output(*command: str) -> str:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    lines = output(nm, "--dynamic", "--defined-only", library).splitlines()
    exported = {line.split()[-1] for line in lines if line.split()[-2:-1] == ["T"]}
    soname = re.search(r"\(SONAME\).*\[(.*)\]", output(readelf, "--dynamic", "--wide", library))
    return exported, soname.group(1) if soname is not None else "none"


def records() -> list[Path]:
    return sorted(HERE.glob("gcx-api-*.json"))


def compared(value: Any) -> Any:
    """What of a description is compared. Its prose and its hints for bindings may change."""
    if isinstance(value, dict):
        return {key: compared(of) for key, of in value.items() if key in COMPARED}
    return [compared(of) for of in value] if isinstance(value, list) else value


def update() -> int:
    api = json.loads(API.read_text())
    version, _, suffix = api["library"]["version"].partition("-")
    record = HERE / f"gcx-api-{version}.json"
    lines = []
    for key, value in compared(api).items():
        many = isinstance(value, list)
        inner = ",\n".join(json.dumps(of) for of in value) if many else json.dumps(value)
        lines.append(f'"{key}": ' + (f"[\n{inner}\n]" if many else inner))
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    if record.exists() and suffix == "" and record.read_text() != text:
        print(f"{record.name} is the record of a release, which never changes", file=sys.stderr)
        return 1
    record.write_text(text)
    return 0


def main() -> int:
    if sys.argv[1:] == ["--update"]:
        return update()
    library, include, nm, readelf, _, *compiler = sys.argv[1:]
    exported, soname = library_symbols(library, nm, readelf)
    failed = 0
    for record in records():
        api = json.loads(record.read_text())
        problems = compile_problems(api, Path(include), compiler)
        problems += library_problems(api, exported, soname)
        for problem in problems:
            print(f"{record.name}: {problem}", file=sys.stderr)
        failed += len(problems)
    if failed:
        print(
            "Programs built against that release would break. If it isn't released yet and this is "
            "meant: python tools/describe_api.py && python tests/abi/record.py --update",
            file=sys.stderr,
        )
    print(f"{len(records())} records, {failed} differences")
    return 1 if failed or not records() else 0


if __name__ == "__main__":
    sys.exit(main())
