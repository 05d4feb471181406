"""ctypes' raw layer: gcx.h as one module that needs nothing but Python."""

from __future__ import annotations

from collections.abc import Sequence

from bindings.generator.api import Api, Field, Function, Parameter, Struct, Type
from bindings.generator.text import NOTICE, wrapped

PATH = "bindings/ctypes/generated/gcx_ctypes.py"
BEGIN = '''\
"""All of gcx.h for ctypes: types and values by their C names, and open() for the functions."""

from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char,
    c_char_p,
    c_float,
    c_int32,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

# Ranges of integers, which ctypes would cut in silence.
RANGES = {
    c_int32: (-0x80000000, 0x7FFFFFFF),
    c_uint32: (0, 0xFFFFFFFF),
    c_uint64: (0, 0xFFFFFFFFFFFFFFFF),
}


def _check(what: str, type_: Any, value: Any) -> None:
    """Raises a ValueError unless C gets an integer or a string as it is."""
    least, most = RANGES.get(type_, (0, 0))
    if type_ in RANGES and isinstance(value, int) and not least <= value <= most:
        raise ValueError(f"{what} is {value}; it must be an integer from {least} to {most}")
    if type_ is c_char_p and isinstance(value, bytes) and b"\\0" in value:
        raise ValueError(f"{what} is {value!r}; a string can't have a byte 0")


class _Parameter:
    """Of a function: what ctypes asks to convert an argument."""

    def __init__(self, what: str, type_: Any) -> None:
        self._what, self._type = what, type_

    def from_param(self, value: Any) -> Any:
        _check(self._what, self._type, value)
        return self._type.from_param(value)


class _Struct(ctypes.Structure):
    """Refuses what a field can't hold."""

    def __setattr__(self, name: str, value: Any) -> None:
        types: dict[str, Any] = dict(self._fields_)  # type: ignore[arg-type]
        _check(f"{type(self).__name__}.{name}", types.get(name), value)
        super().__setattr__(name, value)

'''
END = '''\


class GcxError(Exception):
    """What gcx answered, in words; result is its number."""

    def __init__(self, c: ctypes.CDLL, result: int) -> None:
        name, message = c.gcx_result_name(result), c.gcx_last_error_message()
        super().__init__(f"{name.decode()}: {message.decode(errors='replace')}")
        self.result = result


def open(library: str = "%(soname)s") -> ctypes.CDLL:
    """Loads libgcx from a path, or by a name that the loader looks up.

    Functions that return a gcx_result return GCX_SUCCESS or one of their ANSWERS. Others raise
    GcxError.
    """
    c = ctypes.CDLL(library)

    def check(result: int, function: Any, _: object) -> int:
        if result == GCX_SUCCESS or result in ANSWERS.get(function.__name__, ()):
            return result
        raise GcxError(c, result)

    for name, (result, parameters) in FUNCTIONS.items():
        function = getattr(c, name)
        function.restype = result
        function.argtypes = [_Parameter(f"{name}: {key}", of) for key, of in parameters.items()]
        if result is gcx_result:
            function.errcheck = check
    return c


def sized(struct: Any, **fields: Any) -> Any:
    """A struct with struct_size, which is filled in: sized(gcx_lease_params, timeout_ms=5)."""
    return struct(struct_size=ctypes.sizeof(struct), **fields)
'''


def files(api: Api) -> dict[str, str]:
    lines = [f"# {NOTICE}", *BEGIN.splitlines()]
    for enum in api.enums:
        lines += ["", *comment(f"{enum.name}. {enum.brief}"), f"{enum.name} = c_int32"]
        for value in enum.values:
            lines += [*comment(value.brief), f"{value.name} = {value.value}"]
    lines.append("")
    for constant in api.constants:
        lines += [*comment(constant.brief), f"{constant.name} = {number(constant.value)}"]
    for handle in api.handles:
        lines += ["", "", f"class {handle.name}(c_void_p):"]
        lines.append(f'    """{handle.destroy} ends it; None is none."""')
    lines += ["", ""]
    for callback in api.callbacks:
        types = [ctypes_type(parameter) for parameter in callback.parameters]
        lines += comment(callback.brief)
        lines += call(f"{callback.name} = CFUNCTYPE(", [ctypes_type(callback.result), *types], ")")
    for struct in api.structs:
        lines += ["", "", *declared(struct)]
    lines += ["", "", "# What each returns, and what it takes."]
    lines.append("FUNCTIONS: dict[str, tuple[Any, dict[str, Any]]] = {")
    for function in api.functions:
        lines += [*comment(function.brief, "    "), *row(function)]
    lines += ["}", "# Results that are no failure.", "ANSWERS: dict[str, tuple[int, ...]] = {"]
    lines += [f'    "{f.name}": ({", ".join(f.answers)},),' for f in api.functions if f.answers]
    lines.append("}")
    return {PATH: "\n".join(lines) + "\n" + END % {"soname": api.soname}}


def comment(text: str, indent: str = "") -> list[str]:
    return wrapped(text, f"{indent}# ")


def number(value: int) -> str:
    return f"0x{value:X}" if value > 0xFFFF else str(value)


def call(begin: str, items: Sequence[str], end: str) -> list[str]:
    """One line, or as ruff format breaks it."""
    one = ", ".join(items) + ("," if len(items) == 1 and end == ")," else "")
    if len(begin + one + end) <= 100:
        return [begin + one + end]
    indent = " " * (len(begin) - len(begin.lstrip()))
    return [begin, *(f"{indent}    {item}," for item in items), indent + end]


def row(function: Function) -> list[str]:
    result = ctypes_type(function.result)
    types = [f'"{parameter.name}": {passed(parameter)}' for parameter in function.parameters]
    one = call(f'    "{function.name}": (', [result, "{" + ", ".join(types) + "}"], "),")
    if len(one) == 1:
        return one
    return [one[0], f"        {result},", *call("        {", types, "},"), one[-1]]


def ctypes_type(of: Type) -> str:
    """A value's type."""
    if of.kind in ("struct", "handle", "enum", "callback"):
        return of.base
    if of.kind == "none":
        return "None"
    if of.kind == "string":
        return "c_char_p"
    if of.kind in ("native", "user_data"):
        return "c_void_p"
    return f"c_{of.base.removesuffix('_t')}"


def declared(struct: Struct) -> list[str]:
    lines = [f"class {struct.name}(_Struct):", *comment(struct.brief, "    ")]
    if len(struct.fields) == 1:  # ruff format keeps it on one line
        (field,) = struct.fields
        return [*lines, f'    _fields_ = (("{field.name}", {member(field)}),)']
    lines.append("    _fields_ = (")
    for field in struct.fields:
        lines += [*comment(field.brief, "        "), f'        ("{field.name}", {member(field)}),']
    return [*lines, "    )"]


def member(field: Field) -> str:
    if field.elements:
        return f"{ctypes_type(field)} * {field.elements}"
    return f"POINTER({ctypes_type(field)})" if field.pointer else ctypes_type(field)


def passed(parameter: Parameter) -> str:
    return f"POINTER({ctypes_type(parameter)})" if parameter.pointer else ctypes_type(parameter)
