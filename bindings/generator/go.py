"""Go's raw layer, package raw: constants, results, structs and the table of functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bindings.generator.api import Api, Callback, Function, Struct, Type, Value
from bindings.generator.text import NOTICE, plain, wrapped

FOLDER = "bindings/go/generated/raw"
INITIALISMS = {word.lower(): word for word in ("SM", "SMs", "ID", "IDs", "MPS", "PID", "UUID")}
INITIALISMS |= {"ms": "MS", "ns": "NS"}
KEYWORDS = {"func", "interface", "map", "range", "select", "type", "var"}
TYPES = {
    "int32_t": "int32",
    "uint32_t": "uint32",
    "uint64_t": "uint64",
    "uint8_t": "uint8",
    "float": "float32",
}


def files(api: Api) -> dict[str, str]:
    return {
        f"{FOLDER}/constants.go": source(constants(api)),
        f"{FOLDER}/structs.go": source(structs(api)),
        f"{FOLDER}/functions.go": source(functions(api)),
    }


def source(lines: Iterable[str]) -> str:
    return "\n".join([f"// {NOTICE}", "", *lines]) + "\n"


def exported(name: str) -> str:
    """gcx_lease_get_sm_ids -> LeaseGetSMIDs."""
    words = plain(name).lower().split("_")
    return "".join(INITIALISMS.get(word, word.capitalize()) for word in words)


def local(name: str) -> str:
    """sm_count -> smCount."""
    first, *others = name.split("_")
    joined = first + "".join(INITIALISMS.get(word, word.capitalize()) for word in others)
    return f"{joined}_" if joined in KEYWORDS else joined


def comment(text: str, prefix: str = "// ") -> list[str]:
    """The lines of a text, as the header has them."""
    return [f"{prefix}{line}".rstrip() for line in text.splitlines()]


def documented(name: str, of: str, doc: str) -> list[str]:
    """The comment of a declaration, which begins with its name as Go's do."""
    return comment(f"{name} is {of}." + (f"\n\n{doc}" if doc else ""))


def go_type(of: Type) -> str:
    """A value's type; pointer or array are the caller's business."""
    if of.kind in ("enum", "struct", "handle"):
        return exported(of.base)
    if of.kind == "string" or (of.kind == "user_data" and of.is_const):
        return "*byte"  # of bytes that Go has to keep alive
    if of.kind in ("native", "callback", "user_data"):
        return "uintptr"
    return TYPES.get(of.base, of.base)


def aligned(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """Rows of comment, name and the rest, as gofmt aligns them: a comment begins a new block."""
    lines: list[str] = []
    block: list[tuple[str, str]] = []

    def flush() -> None:
        width = max((len(name) for name, _ in block), default=0)
        lines.extend(f"\t{name:{width}} {rest}" for name, rest in block)
        block.clear()

    for said, name, rest in rows:
        if said:
            flush()
            lines.extend(wrapped(said, "\t// "))
        block.append((name, rest))
    flush()
    return lines


def values(of: Sequence[Value], type_: str, number: str = "d") -> list[str]:
    rows = [
        (value.brief, exported(value.name), f"{type_} = {value.value:{number}}") for value in of
    ]
    return ["const (", *aligned(rows), ")", ""]


def constants(api: Api) -> list[str]:
    lines = [
        "// Package raw declares all of gcx.h by its names without prefixes: constants, results,",
        "// structs with C's layout, and the table of functions, which package gcx fills in.",
        "package raw",
        "",
        'import "strconv"',
        "",
    ]
    for enum in api.enums:
        name = exported(enum.name)
        lines += [*documented(name, enum.name, enum.doc), f"type {name} int32", ""]
        lines += [f"// Values of {name}.", *values(enum.values, name)]
    for group in api.groups:
        for type_ in ("int32_t", "uint32_t"):
            found = [c for c in api.constants if (c.group, c.type) == (group, type_)]
            if found:
                lines += [
                    f"// {group}.",
                    *values(found, TYPES[type_], "#x" if "u" in type_ else "d"),
                ]
    lines += ["var resultNames = map[Result]string{"]
    names = [(exported(v.name) + ":", f'"{v.name}",') for v in api.enum["gcx_result"].values]
    width = max(len(name) for name, _ in names)
    lines += [f"\t{name:{width}} {text}" for name, text in names]
    lines += [
        "}",
        "",
        '// Error is the result\'s name, as in "GCX_ERROR_INVALID_HANDLE".',
        "func (result Result) Error() string {",
        "\tif name, known := resultNames[result]; known {",
        "\t\treturn name",
        "\t}",
        '\treturn "gcx result " + strconv.Itoa(int(result))',
        "}",
    ]
    return lines


def structs(api: Api) -> list[str]:
    lines = ["package raw", ""]
    for handle in api.handles:
        name = exported(handle.name)
        ended = exported(handle.destroy)
        lines += [
            f"// {name} is a {handle.name}. {ended} ends it; 0 is none.",
            f"type {name} uintptr",
            "",
        ]
    for length in sorted(
        {f.elements or 0 for s in api.structs for f in s.fields if f.kind == "text"}
    ):
        lines += [
            f"// Text{length} is a text in a struct, which ends at its first 0.",
            f"type Text{length} [{length}]byte",
            "",
            "// String is the text: any bytes.",
            f"func (text Text{length}) String() string {{ return String(text[:]) }}",
            "",
        ]
    lines += [
        "// String is a text that ends at its first 0: any bytes.",
        "func String(text []byte) string {",
        "\tfor i, b := range text {",
        "\t\tif b == 0 {",
        "\t\t\treturn string(text[:i])",
        "\t\t}",
        "\t}",
        "\treturn string(text)",
        "}",
    ]
    for struct in api.structs:
        lines += ["", *declared(struct)]
    return lines


def declared(struct: Struct) -> list[str]:
    name = exported(struct.name)
    rows = []
    for field in struct.fields:
        type_ = f"Text{field.elements}" if field.kind == "text" else go_type(field)
        if field.elements and field.kind != "text":
            type_ = f"[{field.elements}]{type_}"
        elif field.pointer:
            type_ = f"*{type_}"
        # What is reserved has to be 0: no name, no way to set it.
        rows.append((field.brief, "_" if field.name == "reserved" else exported(field.name), type_))
    return [
        *documented(name, struct.name, struct.doc),
        f"type {name} struct {{",
        *aligned(rows),
        "}",
    ]


def functions(api: Api) -> list[str]:
    lines = [
        "package raw",
        "",
        "// Functions is the table of all functions. It takes an array's first element,",
        "// a text as bytes that end in 0, callbacks and CUDA's objects by their C address.",
        "type Functions struct {",
    ]
    for index, function in enumerate(api.functions):
        name = exported(function.name)
        doc = comment(
            f"{name} is {function.name}.\n\n{function.doc}" + described(function), "\t// "
        )
        lines += [*([""] if index else []), *doc]
        lines.append(f'\t{name} {signature(function)} `c:"{function.name}"`')
    lines.append("}")
    for callback in api.callbacks:
        name = exported(callback.name)
        lines += ["", *documented(name, f"what makes a {callback.name}", callback.doc)]
        lines.append(f"type {name} {signature(callback)}")
    return lines


def described(function: Function) -> str:
    also = [exported(answer) for answer in function.answers]
    return f"\n\nIt is no failure to return {' or '.join(also)}." if also else ""


def signature(of: Function | Callback) -> str:
    """func(device int32, info *DeviceInfo) Result."""
    pieces = []
    for parameter in of.parameters:
        pointer = "*" if parameter.pointer else ""
        pieces.append(f"{local(parameter.name)} {pointer}{go_type(parameter)}")
    result = {"none": "", "string": " string"}  # purego copies what C returns
    return f"func({', '.join(pieces)})" + result.get(of.result.kind, f" {go_type(of.result)}")
