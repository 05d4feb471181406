"""Node.js's raw layer: gcx.h for koffi."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from bindings.generator.api import Api, Field, Function, Parameter, Struct, Type, Value
from bindings.generator.text import commented, render_file, wrapped

PATH = "bindings/node/generated/gcx.js"
WAYS = {"in": "pointer", "out": "out", "inout": "inout"}


def files(api: Api) -> dict[str, str]:
    parts: dict[str, list[str]] = defaultdict(list)
    for enum in api.enums:
        parts["enums"] += ["", *wrapped(f"{enum.name}. {enum.brief}", "// ")]
        parts["enums"] += _constants(enum.values)
    parts["constants"] = _constants(api.constants)
    parts["handles"] = [
        f"export const {handle.name} = koffi.pointer(koffi.opaque());" for handle in api.handles
    ]
    for callback in api.callbacks:
        types = ", ".join(koffi_type(parameter) for parameter in callback.parameters)
        parts["callbacks"] += ["", *wrapped(callback.brief, "// ")]
        parts["callbacks"].append(f"export const {callback.name} = koffi.pointer(")
        parts["callbacks"] += [f'  koffi.proto("{callback.result.type}", [{types}]),', ");"]
    for struct in api.structs:
        parts["structs"] += ["", *_struct(struct)]
    for function in api.functions:
        parts["functions"] += _function(function)
    return {PATH: render_file("node.js.in", soname=api.soname, **parts)}


def _constants(of: Sequence[Value]) -> list[str]:
    return commented([(one.brief, f"export const {one.name} = {one.value};") for one in of], "// ")


def koffi_type(of: Type) -> str:
    """A value's type."""
    if of.kind in ("struct", "handle", "callback"):
        return of.base
    if of.kind in ("native", "user_data"):
        return '"const void*"' if of.is_const else '"void*"'
    return {"enum": '"int32_t"', "string": '"const char*"'}.get(of.kind, f'"{of.base}"')


def _struct(struct: Struct) -> list[str]:
    rows = [(field.brief, f"  {field.name}: {_member(field)},") for field in struct.fields]
    begin = f"export const {struct.name} = koffi.struct({{"
    return [*wrapped(struct.brief, "// "), begin, *commented(rows, "  // "), "});"]


def _member(field: Field) -> str:
    if field.kind == "text":
        return f'koffi.array("char", {field.elements}, "String")'
    if field.elements:
        return f"koffi.array({koffi_type(field)}, {field.elements})"
    return f"pointer({koffi_type(field)})" if field.pointer else koffi_type(field)


def _passed(parameter: Parameter) -> str:
    if parameter.kind == "string" and parameter.direction == "out":
        return 'pointer("uint8_t")'  # room: a Buffer
    type_ = koffi_type(parameter)
    return f"{WAYS[parameter.direction]}({type_})" if parameter.pointer else type_


def _function(function: Function) -> list[str]:
    types = [f"{parameter.name}: {_passed(parameter)}" for parameter in function.parameters]
    lengths = ", ".join(
        f'{parameter.name}: "{parameter.elements}"'
        for parameter in function.parameters
        if parameter.elements is not None
    )
    end = f"}}, {{ {lengths} }}]," if lengths else "}],"
    begin = f"  {function.name}: [{koffi_type(function.result)}, {{"
    line = f"{begin} {', '.join(types)} {end}" if types else f"{begin}{end}"
    split = [begin, *(f"    {type_}," for type_ in types), f"  {end}"]
    lines = [line] if len(line) <= 100 else split
    return [*wrapped(function.brief, "  // "), *lines]
