"""LuaJIT's raw layer: gcx.h as ffi.cdef takes it."""

from __future__ import annotations

from bindings.generator.api import Api, Field, Function, Parameter, Struct, Value
from bindings.generator.text import NOTICE, wrapped

PATH = "bindings/lua/generated/gcx.lua"
# What follows the declarations.
END = """\
]=])

local gcx = {}

-- Loads libgcx from a path, or by a name that the loader looks up. What it returns has every
-- function, enum value and constant of gcx.h under its name: C.gcx_lease_acquire, C.GCX_REST.
function gcx.open(library)
    library = library or "%(soname)s"
    gcx.C = ffi.load(library)
    for _, name in ipairs(functions) do
        if not pcall(function() return gcx.C[name] end) then
            error(library .. " has no " .. name .. ": it is no libgcx of this version", 0)
        end
    end
    return gcx.C
end

-- What a failed call raises: a table with the result's number and name, and the message in words.
local Error = {}
Error.__index = Error
function Error:__tostring()
    return self.name .. ": " .. self.message
end

-- Raises an Error unless a gcx_result is GCX_SUCCESS. The message is the thread's last one.
function gcx.check(result)
    if result ~= 0 then
        error(setmetatable({
            result = tonumber(result),
            name = ffi.string(gcx.C.gcx_result_name(result)),
            message = ffi.string(gcx.C.gcx_last_error_message()),
        }, Error), 0)
    end
end

-- A struct of gcx.h, all zero but for struct_size, which is filled in.
function gcx.new(name)
    local value = ffi.new(name)
    if ffi.offsetof(name, "struct_size") then
        value.struct_size = ffi.sizeof(name)
    end
    return value
end

return gcx
"""


def files(api: Api) -> dict[str, str]:
    lines = [
        f"-- {NOTICE}",
        "--",
        "-- All of gcx.h for LuaJIT's ffi.",
        "",
        'local ffi = require("ffi")',
        "",
        "local functions = {",
        *(f'    "{function.name}",' for function in api.functions),
        "}",
        "",
        "ffi.cdef([=[",
    ]
    for native in api.natives:
        lines.append(f"struct {native.name};")
    for handle in api.handles:
        lines.append(f"typedef struct {handle.name}_s* {handle.name};")
    for enum in api.enums:
        lines += ["", *comment(enum.brief), f"typedef int32_t {enum.name};", "enum {"]
        for value in enum.values:
            lines += [*comment(value.brief, "    "), f"    {value.name} = {value.value},"]
        lines.append("};")
    lines.append("")
    for constant in api.constants:
        lines += [
            *comment(constant.brief),
            f"static const {constant.type} {constant.name} = {number(constant)};",
        ]
    for callback in api.callbacks:
        lines += ["", *comment(callback.brief)]
        lines.append(
            f"typedef {callback.result.type} (*{callback.name})({parameters(callback.parameters)});"
        )
    for struct in api.structs:
        lines += ["", *declared(struct)]
    lines.append("")
    for function in api.functions:
        lines += [*comment(function.brief), *prototype(function)]
    return {PATH: "\n".join(lines) + "\n" + END % {"soname": api.soname}}


def comment(text: str, indent: str = "") -> list[str]:
    return wrapped(text, f"{indent}// ")


def number(value: Value) -> str:
    return f"{value.value:#x}" if value.value > 0xFFFF else str(value.value)


def declared(struct: Struct) -> list[str]:
    lines = [*comment(struct.brief), "typedef struct {"]
    for field in struct.fields:
        lines += [*comment(field.brief, "    "), f"    {member(field)};"]
    return [*lines, f"}} {struct.name};"]


def member(field: Field) -> str:
    if field.elements:
        return f"{field.type.split('[')[0]} {field.name}[{field.elements}]"
    return f"{field.type} {field.name}"


def parameters(of: tuple[Parameter, ...]) -> str:
    return ", ".join(f"{parameter.type} {parameter.name}" for parameter in of) or "void"


def prototype(function: Function) -> list[str]:
    begin = f"{function.result.type} {function.name}("
    return wrapped_after(begin, f"{parameters(function.parameters)});")


def wrapped_after(begin: str, rest: str) -> list[str]:
    if len(begin + rest) <= 100:
        return [begin + rest]
    return [begin, *wrapped(rest, "    ")]
