"""LuaJIT's raw layer: gcx.h as ffi.cdef takes it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from bindings.generator.api import Api, Function, Parameter, Struct, Type
from bindings.generator.text import commented, listed, render_file, wrapped

PATH = "bindings/lua/generated/gcx.lua"


def files(api: Api) -> dict[str, str]:
    parts: dict[str, list[str]] = defaultdict(list)
    for enum in api.enums:
        rows = [(value.brief, f"    {value.name} = {value.value},") for value in enum.values]
        parts["enums"] += ["", *wrapped(enum.brief, "// "), f"typedef int32_t {enum.name};"]
        parts["enums"] += ["enum {", *commented(rows, "    // "), "};"]
    for constant in api.constants:
        number = f"{constant.value:#x}" if constant.value > 0xFFFF else str(constant.value)
        row = (constant.brief, f"static const {constant.type} {constant.name} = {number};")
        parts["constants"] += commented([row], "// ")
    for callback in api.callbacks:
        begin = f"typedef {callback.result.type} (*{callback.name})("
        row = (callback.brief, f"{begin}{_parameters(callback.parameters)});")
        parts["callbacks"] += ["", *commented([row], "// ")]
    for struct in api.structs:
        parts["structs"] += ["", *_struct(struct)]
    for function in api.functions:
        parts["functions"] += [*wrapped(function.brief, "// "), *_prototype(function)]
    text = render_file(
        "lua.lua.in",
        soname=api.soname,
        **parts,
        checks=[line for function in api.functions for line in _checks(function)],
        field_checks=[line for struct in api.structs for line in _field_checks(api, struct)],
        natives=[f"struct {native.name};" for native in api.natives],
        handles=[f"typedef struct {h.name}_s* {h.name};" for h in api.handles],
    )
    return {PATH: text}


def _checked_type(of: Type) -> str | None:
    """The type, if values of it are checked."""
    if of.pointer or of.kind not in ("integer", "enum", "string"):
        return None
    return {"enum": "int32_t", "string": "string"}.get(of.kind, of.base)


def _table(name: str, items: list[str]) -> list[str]:
    if not items:
        return [f"    {name} = {{}},"]
    lines = listed(f"    {name} = {{ ", items, " },")
    return lines if len(lines) == 1 else [lines[0].rstrip(), *lines[1:-1], "    },"]


def _checks(function: Function) -> list[str]:
    names = [parameter.name for parameter in function.parameters]
    items = []
    for place, parameter in enumerate(function.parameters, 1):
        if parameter.elements is not None:
            length = names.index(parameter.elements) + 1
            items.append(f'{{ {place}, "{parameter.name}", "{parameter.base}", {length} }}')
        elif parameter.kind == "callback":
            items.append(f'{{ {place}, "{parameter.name}", "callback" }}')
        elif parameter.direction == "in" and (type_ := _checked_type(parameter)) is not None:
            items.append(f'{{ {place}, "{parameter.name}", "{type_}" }}')
    return _table(function.name, items)


def _field_checks(api: Api, struct: Struct) -> list[str]:
    passed = (parameter for function in api.functions for parameter in function.parameters)
    if not any(one.base == struct.name and one.direction == "in" for one in passed):
        return []
    items = [
        f'{field.name} = "{type_}"'
        for field in struct.fields
        if (type_ := _checked_type(field)) is not None
    ]
    return _table(struct.name, items) if items else []


def _struct(struct: Struct) -> list[str]:
    rows = []
    for field in struct.fields:
        length = f"[{field.elements}]" if field.elements else ""
        rows.append((field.brief, f"    {field.type.split('[')[0]} {field.name}{length};"))
    fields = commented(rows, "    // ")
    return [*wrapped(struct.brief, "// "), "typedef struct {", *fields, f"}} {struct.name};"]


def _parameters(of: Sequence[Parameter]) -> str:
    return ", ".join(f"{parameter.type} {parameter.name}" for parameter in of) or "void"


def _prototype(function: Function) -> list[str]:
    begin = f"{function.result.type} {function.name}("
    rest = f"{_parameters(function.parameters)});"
    return [begin + rest] if len(begin + rest) <= 100 else [begin, *wrapped(rest, "    ")]
