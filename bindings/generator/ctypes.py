"""ctypes' raw layer: gcx.h as one module that needs nothing but Python."""

from __future__ import annotations

from collections import defaultdict

from bindings.generator.api import Api, Field, Function, Struct, Type
from bindings.generator.text import commented, listed, render_file, wrapped

PATH = "bindings/ctypes/generated/gcx_ctypes.py"
TYPES = {"none": "None", "string": "c_char_p", "native": "c_void_p", "user_data": "c_void_p"}


def files(api: Api) -> dict[str, str]:
    parts: dict[str, list[str]] = defaultdict(list)
    for enum in api.enums:
        rows = [(f"{enum.name}. {enum.brief}", f"{enum.name} = c_int32")]
        rows += [(value.brief, f"{value.name} = {value.value}") for value in enum.values]
        parts["enums"] += ["", *commented(rows, "# ")]
    for constant in api.constants:
        number = f"0x{constant.value:X}" if constant.value > 0xFFFF else str(constant.value)
        parts["constants"] += commented([(constant.brief, f"{constant.name} = {number}")], "# ")
    for handle in api.handles:
        parts["handles"] += ["", "", f"class {handle.name}(c_void_p):"]
        parts["handles"].append(f'    """{handle.destroy} ends it; None is none."""')
    for callback in api.callbacks:
        types = [ctypes_type(of) for of in (callback.result, *callback.parameters)]
        parts["callbacks"] += wrapped(callback.brief, "# ")
        parts["callbacks"] += listed(f"{callback.name} = CFUNCTYPE(", types, ")")
    for struct in api.structs:
        parts["structs"] += ["", "", *_struct(struct)]
    for function in api.functions:
        parts["functions"] += [*wrapped(function.brief, "    # "), *_function(function)]
    parts["answers"] = [
        f'    "{f.name}": ({", ".join(f.answers)},),' for f in api.functions if f.answers
    ]
    return {PATH: render_file("ctypes.py.in", soname=api.soname, **parts)}


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
    lines = [f"class {struct.name}(_Struct):", *wrapped(struct.brief, "    # ")]
    if len(struct.fields) == 1:  # ruff format keeps it on one line
        (field,) = struct.fields
        return [*lines, f'    _fields_ = (("{field.name}", {_member(field)}),)']
    rows = [(of.brief, f'        ("{of.name}", {_member(of)}),') for of in struct.fields]
    return [*lines, "    _fields_ = (", *commented(rows, "        # "), "    )"]


def _member(field: Field) -> str:
    return f"{ctypes_type(field)} * {field.elements}" if field.elements else _passed(field)


def _passed(of: Type) -> str:
    return f"POINTER({ctypes_type(of)})" if of.pointer else ctypes_type(of)
