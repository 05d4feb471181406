"""Checks that all functions of cuda.h with a stream are in the table of hooks, with their types.

Checks cudaGL.h too if it is in the same folder.

check_stream_hooks.py CUDA_H TABLE
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# Rows without types.
ONLY_NAMED = "EP"
NUMBERS = {
    "size_t": "std::size_t",
    "unsigned int": "unsigned",
    "cuuint32_t": "unsigned",
    "CUdeviceptr_v1": "unsigned",
    "GLuint": "unsigned",
    "CUstreamCaptureMode": "unsigned",
    "CUstreamAttrID": "unsigned",
    "CUdevResourceType": "unsigned",
}
AS_THEY_ARE = {
    "int", "unsigned char", "unsigned short", "unsigned long long", "cuuint64_t", "CUdeviceptr",
    "CUdevice", "CUmemLocation", "CUstream",
}  # fmt: skip
# Types that are pointers.
HANDLES = {
    "CUfunction", "CUevent", "CUgraph", "CUgraphExec", "CUarray", "CUcontext", "CUmemoryPool",
    "CUhostFn", "CUstreamCallback", "CUgraphRecaptureCallback",
}  # fmt: skip


class Header:
    """Functions by their symbols, with the types of their parameters."""

    def __init__(self, text: str) -> None:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
        # Structs that contain a stream. Functions take pointers to them.
        self.structs = {
            name
            for body, name in re.findall(r"typedef struct \w+\s*\{([^{}]*)\}\s*(\w+);", text)
            if re.search(r"\bCUstream\s+\w+;", body)
        }
        aliases = re.findall(r"typedef (\w+) (\w+);", text)
        self.structs |= {alias for name, alias in aliases if name in self.structs}
        newest = dict(re.findall(r"^#\s*define (cu\w+)\s+(cu\w+_v\d)\s*$", text, re.MULTILINE))
        per_thread = re.findall(r"#\s*define (cu\w+)\s+__CUDA_API_PT(DS|SZ)\((\w+)\)", text)
        suffix = {symbol: "_pt" + kind.lower() for _, kind, symbol in per_thread}
        newest.update({name: symbol for name, _, symbol in per_thread})
        # First the functions as programs see them, then older variants by their symbols.
        programs, _, internal = text.rpartition("#if defined(__CUDA_API_VERSION_INTERNAL)")
        self.functions: dict[str, list[str]] = {}
        for part, names in ((programs, newest), (internal, {})):
            for name, list_of in re.findall(r"CUresult\s+CUDAAPI\s+(cu\w+)\(([^;]*?)\);", part):
                symbol = names.get(name, name)
                types = [self.type_of(parameter) for parameter in list_of.split(",")]
                self.functions.setdefault(symbol, types)
        for symbol, its_suffix in suffix.items():
            self.functions.setdefault(symbol + its_suffix, self.functions[symbol])

    @staticmethod
    def type_of(parameter: str) -> str:
        """The declaration without the parameter's name."""
        words = re.sub(r"\s+", " ", parameter.replace("*", " * ")).strip()
        return words if words == "void" else words.rpartition(" ")[0]

    def wanted(self) -> dict[str, list[str]]:
        """Functions with a stream, and those that use a default stream implicitly."""

        def names_stream(kind: str) -> bool:
            return kind == "CUstream" or kind.removeprefix("const ")[:-2] in self.structs

        return {
            symbol: types
            for symbol, types in self.functions.items()
            if any(map(names_stream, types))
            or re.search("_pt[ds][sz]$", symbol)
            or re.fullmatch(r"cu(Memcpy|Memset|Launch(Grid)?(?!\w))\w*?(_v2)?", symbol)
        }


def in_table(kind: str, structs: set[str]) -> str:
    """Returns the table's spelling of a type of the header."""
    pointed = kind.removeprefix("const ").removesuffix(" *")
    if pointed in structs:
        return kind.replace(" *", "*")
    if kind.endswith("*") or kind in HANDLES:
        return "void*"
    return kind if kind in AS_THEY_ARE else NUMBERS.get(kind, f"no rule for {kind}")


def read_table(path: str) -> dict[str, list[str] | None]:
    """Returns the types by symbol, None for rows without types."""
    found: dict[str, list[str] | None] = {}
    for kind, row in re.findall(r"^([A-Z]+)\((.*)\)$", Path(path).read_text(), re.MULTILINE):
        fields = [field.strip() for field in row.split(",")]
        symbol = fields[1]
        if kind in ONLY_NAMED:
            found.update(dict.fromkeys([symbol, *fields[3:]]))
        elif kind in "DL":
            types = fields[5:] if kind == "D" else fields[3:]
            found.update({symbol: types, symbol + "_ptds": types})
        elif kind in "SBNCR":
            found[fields[2]] = fields[4:]
            if kind in "SB":
                found[fields[2] + "_ptsz"] = fields[4:]
        else:
            found[symbol] = fields[3:]
    return found


def main() -> int:
    path, table = sys.argv[1:]
    header = Header(Path(path).read_text(encoding="utf-8"))
    known = read_table(table)
    wanted = header.wanted()
    graphics = Path(path).with_name("cudaGL.h")
    if graphics.is_file():
        wanted.update(Header(graphics.read_text(encoding="utf-8")).wanted())
    wrong = 0
    for symbol, types in sorted(wanted.items()):
        expected = [in_table(kind, header.structs) for kind in types]
        if symbol not in known:
            print(f"{symbol} takes a stream and is not in the table: ({', '.join(expected)})")
            wrong += 1
        elif known[symbol] is not None and known[symbol] != expected:
            print(f"{symbol} is ({', '.join(expected)}), its row has ({known[symbol]})")
            wrong += 1
    print(f"{len(wanted)} functions take a stream, of {len(header.functions)}")
    return 1 if wrong or len(wanted) < 150 else 0


if __name__ == "__main__":
    sys.exit(main())
