"""Describes the C API for programs: gcx-api.json, made by libclang from the public headers.

    tools/describe_api.py            # writes it
    tools/describe_api.py --check    # fails if it isn't what the header gives

docs/reference/gcx-api.md explains the keys.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import clang.cindex as cindex
from clang.cindex import CursorKind, TypeKind

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
HEADERS = ("common", "partition", "lease", "reservation", "graph", "diagnostics")
OUTPUT = ROOT / "docs" / "generated" / "gcx-api.json"
FORMAT = 1
Json = dict[str, Any]

# The headers need these types of the standard's, which are the same on every 64-bit Linux.
STANDARD = {
    "stddef.h": "typedef unsigned long size_t;\n",
    "stdint.h": "".join(
        f"typedef {sign} {of} {name}int{bits}_t;\n"
        for bits, of in ((8, "char"), (16, "short"), (32, "int"), (64, "long"))
        for sign, name in (("signed", ""), ("unsigned", "u"))
    ),
}
NATIVES = {
    "CUctx_st": "CUcontext",
    "CUgreenCtx_st": "CUgreenCtx",
    "CUstream_st": "CUstream",
    "CUevent_st": "CUevent",
    "CUfunc_st": "CUfunction",
    "CUgraph_st": "CUgraph",
    "CUdevResource_st": "CUdevResource*",
}
# What follows from no rule below: the header's words, which must still be in the comment.
NULLABLE = {
    ("gcx_publish_start", "name"): "NULL: the program's name",
    ("gcx_context_pop", "context"): "*context, if not NULL",
    ("gcx_cache_trim", "trimmed"): "*trimmed, if not NULL",
    ("gcx_stream_create", "params"): "params may be NULL, for GCX_STREAM_PARAMS_INIT",
    ("gcx_driver_open", "driver"): 'NULL or ""',
    ("gcx_log_set_callback", "callback"): "NULL goes back to the default",
}
BORROWED = {
    ("gcx_context_pop", "context"): "receives the handle that was pushed",
    ("gcx_context_get_current", "context"): "The caller does not own it",
}
LIFETIMES = {
    "belongs to the thread": "thread",
    "lives as long as the library": "library",
}


class Comments:
    """The comments of a header, by where they are."""

    def __init__(self, unit: Any, path: Path) -> None:
        text = path.read_text()
        self.lines = lines = text.splitlines()
        file = cindex.File.from_name(unit, str(path))
        ends = [cindex.SourceLocation.from_offset(unit, file, at) for at in (0, len(text.encode()))]
        tokens = unit.get_tokens(extent=cindex.SourceRange.from_locations(*ends))
        comments = [token for token in tokens if token.kind == cindex.TokenKind.COMMENT]
        self.before = {
            token.extent.end.line: token
            for token in comments
            if lines[token.location.line - 1][: token.location.column - 1].strip() == ""
        }
        self.trailing = {
            token.location.line: token for token in comments if token not in self.before.values()
        }

    @staticmethod
    def text(token: Any) -> str:
        body = token.spelling.removeprefix("/*").removesuffix("*/")
        # A macro's comment has the macro's line ends.
        lines = (line.removesuffix("\\") for line in body.splitlines())
        return "\n".join(re.sub(r"^\s*\*? ?", "", line).rstrip() for line in lines).strip()

    def of(self, cursor: Any) -> str:
        """That above a declaration, which stands for those that follow it without a gap too."""
        line = cursor.extent.start.line - 1
        while line not in self.before and self.lines[line - 1].strip() not in ("", "}"):
            line -= 1
        found = self.before.get(line)
        return "" if found is None or "-----" in found.spelling else self.text(found)

    def of_line(self, cursor: Any) -> str:
        """The one next to a field, a value or a macro; else one above it."""
        found = self.trailing.get(cursor.extent.end.line)
        found = found or self.before.get(cursor.extent.start.line - 1)
        return "" if found is None or "-----" in found.spelling else joined(self.text(found))

    def groups(self) -> list[tuple[int, str]]:
        """The sections, each with its first line."""
        return [
            (token.location.line, re.split(r"[.:\n]", self.text(token).strip("- \n"))[0])
            for token in self.before.values()
            if "-----" in token.spelling
        ]


def joined(text: str) -> str:
    return " ".join(text.split())


def brief(doc: str) -> str:
    """The first sentence."""
    text = joined(doc)
    found = re.match(r".+?(?<!e\.g)(?<=[^.\s])\.(?=\s|$)", text)
    return found.group() if found else text


class Description:
    def __init__(self, more: str = "") -> None:
        """Reads the headers; more stands behind them."""
        main = str(INCLUDE / "gcx.h")
        files = [(str(INCLUDE / name), content) for name, content in STANDARD.items()]
        files.append((main, (INCLUDE / "gcx.h").read_text() + more))
        self.unit = cindex.Index.create().parse(
            main,
            args=["-x", "c", "-std=c99", "--target=x86_64-linux-gnu", "-nostdinc", f"-I{INCLUDE}"],
            unsaved_files=files,
            options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD,
        )
        for problem in self.unit.diagnostics:
            if problem.severity >= cindex.Diagnostic.Error:
                sys.exit(str(problem))
        paths = [INCLUDE / "gcx" / f"{name}.h" for name in HEADERS]
        self.comments = {str(path): Comments(self.unit, path) for path in paths}
        self.source = "".join(path.read_text() for path in paths)
        wanted = {main, *self.comments}
        cursors = [
            (cursor.location.file.name, cursor)
            for cursor in self.unit.cursor.get_children()
            if cursor.location.file is not None and cursor.location.file.name in wanted
        ]
        # libclang lists all macros first. The order of the headers is that of the declarations.
        order = [*self.comments, main]
        self.cursors = [c for _, c in sorted(cursors, key=lambda of: order.index(of[0]))]

    def of_kind(self, kind: Any) -> list[Any]:
        return [cursor for cursor in self.cursors if cursor.kind == kind]

    def comments_of(self, cursor: Any) -> Comments:
        return self.comments[cursor.location.file.name]

    def group(self, cursor: Any) -> str:
        found = ""
        for line, name in self.comments_of(cursor).groups():
            if line < cursor.location.line:
                found = name
        return found

    def head(self, cursor: Any) -> Json:
        """What everything that has a name and a comment begins with."""
        doc = self.comments_of(cursor).of(cursor)
        return {
            "name": cursor.spelling,
            "group": self.group(cursor),
            "brief": brief(doc),
            "doc": doc,
        }

    # Types

    def type(self, of: Any) -> Json:
        spelled = re.sub(r" ?\*", "*", of.spelling.replace("enum ", ""))
        pointer = False
        length = None
        if of.kind == TypeKind.CONSTANTARRAY:
            length = of.element_count
            of = of.element_type
        while of.kind == TypeKind.ELABORATED:
            of = of.get_named_type()
        pointee = of.get_pointee() if of.kind == TypeKind.POINTER else None
        if pointee is not None and pointee.get_canonical().kind != TypeKind.RECORD:
            if pointee.get_canonical().kind == TypeKind.CHAR_S:
                return {"type": spelled, "kind": "string", "base": "char"}
            if pointee.kind == TypeKind.VOID:
                return {"type": spelled, "kind": "user_data", "base": "void"}
        base = (pointee or of).spelling.replace("const ", "").replace("struct ", "")
        if pointee is not None and base not in NATIVES:
            pointer = True
        answer = {"type": spelled, "kind": self.kind(pointee or of, base), "base": base}
        if length is not None:
            answer["elements"] = length
            answer["kind"] = "text" if base == "char" else answer["kind"]
        if pointer:
            answer["pointer"] = True
        return answer

    @staticmethod
    def kind(of: Any, base: str) -> str:
        canonical = of.get_canonical()
        if base in NATIVES:
            return "native"
        if canonical.kind == TypeKind.POINTER:
            function = canonical.get_pointee().kind == TypeKind.FUNCTIONPROTO
            return "callback" if function else "handle"
        kinds = {TypeKind.RECORD: "struct", TypeKind.ENUM: "enum", TypeKind.FLOAT: "float"}
        kinds[TypeKind.VOID] = "none"
        return kinds.get(canonical.kind, "integer")

    # Functions

    def function(self, cursor: Any) -> Json:
        described = self.head(cursor)
        doc = joined(described["doc"])
        described["parameters"] = self.parameters(cursor, doc)
        described["result"] = result = self.type(cursor.result_type)
        if result["kind"] == "native":
            result |= {"nullable": True, "ownership": "borrowed", "lifetime": "handle"}
        if result["kind"] == "string":
            said = [lifetime for words, lifetime in LIFETIMES.items() if words in doc]
            if len(said) != 1:
                sys.exit(f"{cursor.spelling}: the comment must say how long the string lives")
            result["lifetime"] = said[0]
            if "NULL if" in doc:
                result["nullable"] = True
        if "the latter sets no message" in doc:
            described["answers"] = re.findall(r"GCX_ERROR_NOT_READY", doc)[:1]
        return described

    def parameters(self, cursor: Any, doc: str) -> list[Json]:
        found = []
        for argument in cursor.get_children():
            if argument.kind == CursorKind.PARM_DECL:
                found.append({"name": argument.spelling, **self.type(argument.type)})
        names = [parameter["name"] for parameter in found]
        for index, parameter in enumerate(found):
            following = [*names[index + 1 :], "", ""]
            self.place(cursor.spelling, parameter, following, doc)
            if cursor.kind == CursorKind.FUNCTION_DECL:
                self.own(cursor.spelling, parameter, doc)
            elif parameter["kind"] == "string":
                parameter["lifetime"] = "call"
        return found

    def place(self, function: str, parameter: Json, following: list[str], doc: str) -> None:
        """Direction, NULL, and how many."""
        name, base = parameter["name"], parameter["base"]
        pointer = parameter.get("pointer", False)
        if parameter["type"] == "char*":  # room for a text
            parameter |= {"direction": "out", "elements": following[0]}
        elif not pointer or parameter["type"].startswith("const "):
            parameter["direction"] = "in"
        else:
            parameter["direction"] = "inout" if base in self.sized() else "out"
        said = NULLABLE.get((function, name))
        if said is not None and said not in doc:
            sys.exit(f'{function}: "{said}" is no longer said of {name}: correct NULLABLE')
        if said is not None or re.search(rf"(?<![\w*]){name} may be NULL", doc):
            parameter["nullable"] = True
        if parameter["kind"] == "user_data":
            parameter["nullable"] = True
        if pointer and following[:2] == ["capacity", "count"]:
            parameter |= {"elements": "capacity", "written": "count"}
        elif pointer and (room := re.search(rf"\b{name}\[0 \.\. (\w+) - 1\]", doc)):
            parameter["elements"] = room.group(1)
        elif pointer and parameter["direction"] == "in" and following[0] == "count":
            parameter["elements"] = "count"
        elif pointer and following[0].endswith("_count") and name == f"{following[0][:-6]}s":
            parameter["elements"] = following[0]

    def own(self, function: str, parameter: Json, doc: str) -> None:
        """Whose it is, and for how long."""
        key = (function, parameter["name"])
        kind, out = parameter["kind"], parameter["direction"] != "in"
        if kind == "handle":
            parameter["ownership"] = "given" if out else "borrowed"
            if function == self.end_of(parameter["base"]):
                parameter["ownership"] = "taken"
            if key in BORROWED:
                if BORROWED[key] not in doc:
                    sys.exit(f'{function}: "{BORROWED[key]}" is no longer said: correct BORROWED')
                parameter["ownership"] = "borrowed"
            if parameter["ownership"] == "given":
                parameter["destroy"] = self.end_of(parameter["base"])
        elif kind == "native":
            outlives = "must outlive the handle" in doc
            parameter |= {"ownership": "borrowed", "lifetime": "handle" if outlives else "call"}
        elif kind in ("callback", "user_data"):
            parameter["lifetime"] = "replaced"
        elif kind == "string" or parameter.get("pointer"):
            parameter["lifetime"] = "call"

    # Everything else

    def sized(self) -> set[str]:
        """The structs that begin with struct_size."""
        return {
            cursor.spelling
            for cursor in self.of_kind(CursorKind.STRUCT_DECL)
            if [field.spelling for field in cursor.get_children()][:1] == ["struct_size"]
        }

    def struct(self, cursor: Any) -> Json:
        described = self.head(cursor)
        described |= {"size": cursor.type.get_size(), "align": cursor.type.get_align()}
        described["struct_size"] = cursor.spelling in self.sized()
        if described["struct_size"]:
            described["init"] = f"{cursor.spelling.upper()}_INIT"
            if not re.search(rf"#define {described['init']}\b", self.source):
                sys.exit(f"{cursor.spelling} has no {described['init']}")
        described["fields"] = []
        for field in cursor.get_children():
            if field.kind != CursorKind.FIELD_DECL:
                continue
            doc = self.comments_of(field).of_line(field)
            entry = {"name": field.spelling, "offset": field.get_field_offsetof() // 8}
            entry |= {"size": field.type.get_size(), **self.type(field.type)}
            for words, lifetime in LIFETIMES.items():
                if entry["kind"] == "string" and words in doc:
                    entry["lifetime"] = lifetime
            described["fields"].append({**entry, "brief": doc})
        return described

    def enum(self, cursor: Any) -> Json:
        described = self.head(cursor)
        described["size"] = cursor.type.get_size()
        described["values"] = [
            {
                "name": value.spelling,
                "value": value.enum_value,
                "brief": self.comments_of(value).of_line(value),
            }
            for value in cursor.get_children()
        ]
        return described

    def callback(self, cursor: Any) -> Json:
        described = self.head(cursor)
        prototype = cursor.underlying_typedef_type.get_pointee()
        described["parameters"] = self.parameters(cursor, joined(described["doc"]))
        described["result"] = self.type(prototype.get_result())
        return described

    def typedefs(self, kind: Any) -> list[Any]:
        """Those of pointers to what is of a kind."""
        return [
            cursor
            for cursor in self.of_kind(CursorKind.TYPEDEF_DECL)
            if cursor.underlying_typedef_type.kind == TypeKind.POINTER
            and cursor.underlying_typedef_type.get_pointee().get_canonical().kind == kind
        ]

    def handle(self, cursor: Any) -> Json:
        destroy = self.end_of(cursor.spelling)
        return {"name": cursor.spelling, "group": self.group(cursor), "destroy": destroy}

    def end_of(self, handle: str) -> str:
        """The function that gives a handle up."""
        for name in (f"{handle}_destroy", f"{handle}_release"):
            if re.search(rf"\b{name}\(", self.source):
                return name
        sys.exit(f"nothing gives up a {handle}: there is no {handle}_destroy or {handle}_release")

    def constants(self) -> list[Json]:
        macros = [
            cursor
            for cursor in self.of_kind(CursorKind.MACRO_DEFINITION)
            if len(list(cursor.get_tokens())) > 1 and self.is_value(cursor)
        ]
        lines = (
            f"enum {{ value_{m.spelling} = {m.spelling} }};\n"
            f"typedef __typeof__({m.spelling}) type_{m.spelling};\n"
            for m in macros
        )
        asked = Description("".join(lines))
        values = {
            value.spelling: value.enum_value
            for cursor in asked.of_kind(CursorKind.ENUM_DECL)
            for value in cursor.get_children()
        }
        types = {
            cursor.spelling: cursor.underlying_typedef_type.get_canonical().spelling
            for cursor in asked.of_kind(CursorKind.TYPEDEF_DECL)
        }
        names = {"int": "int32_t", "unsigned int": "uint32_t"}
        return [
            {
                "name": macro.spelling,
                "group": self.group(macro),
                "value": values[f"value_{macro.spelling}"] & 0xFFFFFFFF,
                "type": names[types[f"type_{macro.spelling}"]],
                "brief": self.comments_of(macro).of_line(macro),
            }
            for macro in macros
        ]

    @staticmethod
    def is_value(macro: Any) -> bool:
        """Not one that stands for an attribute, a type or an initializer."""
        words = [token.spelling for token in macro.get_tokens()]
        function = words[1] == "(" and words[2].isidentifier() and words[3:4] == [")"]
        return not function and words[1] not in ("__attribute__", "GCX_STRUCT_INIT", ":")

    def whole(self) -> Json:
        functions = self.of_kind(CursorKind.FUNCTION_DECL)
        structs = [c for c in self.of_kind(CursorKind.STRUCT_DECL) if c.is_definition()]
        enums = [c for c in self.of_kind(CursorKind.ENUM_DECL) if c.is_definition()]
        return {
            "groups": [name for of in self.comments.values() for _, name in of.groups()],
            "functions": [self.function(cursor) for cursor in functions],
            "structs": [self.struct(cursor) for cursor in structs],
            "enums": [self.enum(cursor) for cursor in enums],
            "constants": self.constants(),
            "handles": [self.handle(c) for c in self.typedefs(TypeKind.RECORD)],
            "callbacks": [self.callback(c) for c in self.typedefs(TypeKind.FUNCTIONPROTO)],
        }


def describe() -> Json:
    build = (ROOT / "meson.build").read_text()
    abi = re.search(r"^gcx_abi = '(\d+)'", build, re.MULTILINE)
    version = re.search(r"^  version: '(.+)'", build, re.MULTILINE)
    if abi is None or version is None:
        sys.exit("meson.build no longer says gcx_abi, the soname's number, or the version")
    library = {"name": "gcx", "soname": f"libgcx.so.{abi.group(1)}"}
    library |= {"version": version.group(1), "header": "gcx.h"}
    whole: Json = {"format": FORMAT, "library": library}
    whole |= Description().whole()
    whole["natives"] = [{"name": name, "cuda": cuda} for name, cuda in NATIVES.items()]
    return whole


def written(value: Any, indent: str = "") -> str:
    """JSON in which what holds no objects or lists of them is one line."""
    within = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (dict, list)) or not any(isinstance(v, (dict, list)) for v in within):
        return json.dumps(value, ensure_ascii=False)
    inner = indent + "  "
    if isinstance(value, dict):
        entries = [f"{json.dumps(key)}: {written(of, inner)}" for key, of in value.items()]
    else:
        entries = [written(of, inner) for of in value]
    begin, end = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return f"{begin}\n{inner}" + f",\n{inner}".join(entries) + f"\n{indent}{end}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Describes the C API: gcx-api.json.")
    parser.add_argument("--check", action="store_true", help="fail if the file isn't up to date")
    text = written(describe()) + "\n"
    if not parser.parse_args().check:
        OUTPUT.write_text(text)
        return 0
    if OUTPUT.exists() and OUTPUT.read_text() == text:
        return 0
    name = OUTPUT.relative_to(ROOT)
    print(f"{name} does not match include/gcx.h; run: python tools/describe_api.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
