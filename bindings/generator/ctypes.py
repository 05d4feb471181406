"""ctypes' raw layer: gcx.h as one module that needs nothing but Python."""

from __future__ import annotations

from collections import defaultdict

from bindings.generator.api import Api, Field, Function, Parameter, Struct, Type
from bindings.generator.text import listed, render_file, wrapped

PATH = "bindings/ctypes/generated/gcx_ctypes.py"
TYPES = {"none": "None", "string": "c_char_p", "native": "c_void_p", "user_data": "c_void_p"}


def files(api: Api) -> dict[str, str]:
    parts: dict[str, list[str]] = defaultdict(list)
    for enum in api.enums:
        parts["enums"] += ["", *_comment(f"{enum.name}. {enum.brief}"), f"{enum.name} = c_int32"]
        for value in enum.values:
            parts["enums"] += [*_comment(value.brief), f"{value.name} = {value.value}"]
    for constant in api.constants:
        number = f"0x{constant.value:X}" if constant.value > 0xFFFF else str(constant.value)
        parts["constants"] += [*_comment(constant.brief), f"{constant.name} = {number}"]
    for handle in api.handles:
        parts["handles"] += ["", "", f"class {handle.name}(c_void_p):"]
        parts["handles"].append(f'    """{handle.destroy} ends it; None is none."""')
    for callback in api.callbacks:
        types = [ctypes_type(of) for of in (callback.result, *callback.parameters)]
        parts["callbacks"] += _comment(callback.brief)
        parts["callbacks"] += listed(f"{callback.name} = CFUNCTYPE(", types, ")")
    for struct in api.structs:
        parts["structs"] += ["", "", *_struct(struct)]
    for function in api.functions:
        parts["functions"] += [*_comment(function.brief, "    "), *_function(function)]
    parts["answers"] = [
        f'    "{f.name}": ({", ".join(f.answers)},),' for f in api.functions if f.answers
    ]
    return {PATH: render_file("ctypes.py.in", soname=api.soname, **parts)}


def _comment(text: str, indent: str = "") -> list[str]:
    return wrapped(text, f"{indent}# ")


def _function(function: Function) -> list[str]:
    result = ctypes_type(function.result)
    types = [f'"{parameter.name}": {_passed(parameter)}' for parameter in function.parameters]
    lines = listed(f'    "{function.name}": (', [result, "{" + ", ".join(types) + "}"], "),")
    if len(lines) == 1:
        return lines
    return [lines[0], f"        {result},", *listed("        {", types, "},"), lines[-1]]


def ctypes_type(of: Type) -> str:
    """A value's type."""
    if of.kind in ("struct", "handle", "enum", "callback"):
        return of.base
    return TYPES.get(of.kind, f"c_{of.base.removesuffix('_t')}")


def _struct(struct: Struct) -> list[str]:
    lines = [f"class {struct.name}(_Struct):", *_comment(struct.brief, "    ")]
    if len(struct.fields) == 1:  # ruff format keeps it on one line
        (field,) = struct.fields
        return [*lines, f'    _fields_ = (("{field.name}", {_member(field)}),)']
    lines.append("    _fields_ = (")
    for field in struct.fields:
        lines += [*_comment(field.brief, " " * 8), f'        ("{field.name}", {_member(field)}),']
    return [*lines, "    )"]


def _member(field: Field) -> str:
    if field.elements:
        return f"{ctypes_type(field)} * {field.elements}"
    return f"POINTER({ctypes_type(field)})" if field.pointer else ctypes_type(field)


def _passed(parameter: Parameter) -> str:
    return f"POINTER({ctypes_type(parameter)})" if parameter.pointer else ctypes_type(parameter)
