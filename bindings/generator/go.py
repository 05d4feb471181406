"""Go's raw layer, package raw: constants, results, structs and the table of functions."""

from __future__ import annotations

from collections.abc import Sequence

from bindings.generator.api import Api, Callback, Function, Struct, Type, Value
from bindings.generator.text import plain, render_file, wrapped

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
    texts = {"constants": _constants(api), "structs": _structs(api), "functions": _functions(api)}
    return {f"{FOLDER}/{name}.go": text for name, text in texts.items()}


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
    """The lines of a text, as in the header."""
    return [f"{prefix}{line}".rstrip() for line in text.splitlines()]


def documented(name: str, of: str, doc: str) -> list[str]:
    """The comment of a declaration, which begins with its name."""
    return comment(f"{name} is {of}." + (f"\n\n{doc}" if doc else ""))


def go_type(of: Type) -> str:
    """A value's type, without pointer or array."""
    if of.kind in ("enum", "struct", "handle"):
        return exported(of.base)
    if of.kind == "string" or (of.kind == "user_data" and of.is_const):
        return "*byte"  # Go has to keep the bytes alive
    if of.kind in ("native", "callback", "user_data"):
        return "uintptr"
    return TYPES.get(of.base, of.base)


def aligned(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """Rows of comment, name and the rest, aligned as by gofmt: a comment begins a new block."""
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


def _constants(api: Api) -> str:
    lines: list[str] = []
    for enum in api.enums:
        name = exported(enum.name)
        lines += [*documented(name, enum.name, enum.doc), f"type {name} int32", ""]
        lines += [f"// Values of {name}.", *values(enum.values, name)]
    for group in api.groups:
        for type_ in ("int32_t", "uint32_t"):
            found = [c for c in api.constants if (c.group, c.type) == (group, type_)]
            if found:
                number = "#x" if "u" in type_ else "d"
                lines += [f"// {group}.", *values(found, TYPES[type_], number)]
    names = [(exported(v.name) + ":", f'"{v.name}",') for v in api.enum["gcx_result"].values]
    width = max(len(name) for name, _ in names)
    results = [f"\t{name:{width}} {text}" for name, text in names]
    return render_file("constants.go.in", values=lines, results=results)


def _structs(api: Api) -> str:
    handles: list[str] = []
    for handle in api.handles:
        name, ended = exported(handle.name), exported(handle.destroy)
        handles += [f"// {name} is a {handle.name}. {ended} ends it; 0 is none."]
        handles += [f"type {name} uintptr", ""]
    lengths = {f.elements or 0 for s in api.structs for f in s.fields if f.kind == "text"}
    texts: list[str] = []
    for length in sorted(lengths):
        texts += [f"// Text{length} is a text in a struct, which ends at its first 0."]
        texts += [f"type Text{length} [{length}]byte", "", "// String is the text: any bytes."]
        texts += [f"func (text Text{length}) String() string {{ return String(text[:]) }}", ""]
    structs = [line for struct in api.structs for line in ("", *declared(struct))]
    return render_file("structs.go.in", handles=handles, texts=texts, structs=structs)


def declared(struct: Struct) -> list[str]:
    name = exported(struct.name)
    rows = []
    for field in struct.fields:
        type_ = f"Text{field.elements}" if field.kind == "text" else go_type(field)
        if field.elements and field.kind != "text":
            type_ = f"[{field.elements}]{type_}"
        elif field.pointer:
            type_ = f"*{type_}"
        # Reserved fields have to be 0, so that they have no name.
        rows.append((field.brief, "_" if field.name == "reserved" else exported(field.name), type_))
    return [
        *documented(name, struct.name, struct.doc),
        f"type {name} struct {{",
        *aligned(rows),
        "}",
    ]


def _functions(api: Api) -> str:
    functions: list[str] = []
    for index, function in enumerate(api.functions):
        name = exported(function.name)
        doc = f"{name} is {function.name}.\n\n{function.doc}" + described(function)
        functions += [*([""] if index else []), *comment(doc, "\t// ")]
        functions.append(f'\t{name} {signature(function)} `c:"{function.name}"`')
    callbacks: list[str] = []
    for callback in api.callbacks:
        name = exported(callback.name)
        callbacks += ["", *documented(name, f"what makes a {callback.name}", callback.doc)]
        callbacks.append(f"type {name} {signature(callback)}")
    return render_file("functions.go.in", functions=functions, callbacks=callbacks)


def described(function: Function) -> str:
    also = [exported(answer) for answer in function.answers]
    return f"\n\nNot a failure: {' or '.join(also)}." if also else ""


def signature(of: Function | Callback) -> str:
    """func(device int32, info *DeviceInfo) Result."""
    pieces = []
    for parameter in of.parameters:
        pointer = "*" if parameter.pointer else ""
        pieces.append(f"{local(parameter.name)} {pointer}{go_type(parameter)}")
    result = {"none": "", "string": " string"}  # purego copies what C returns
    return f"func({', '.join(pieces)})" + result.get(of.result.kind, f" {go_type(of.result)}")
