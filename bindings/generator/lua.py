"""LuaJIT's raw layer: gcx.h as ffi.cdef takes it."""

from __future__ import annotations

from bindings.generator.api import Api, Field, Function, Parameter, Struct, Type, Value
from bindings.generator.text import NOTICE, wrapped

PATH = "bindings/lua/generated/gcx.lua"
# What follows the declarations.
END = """\
]=]) end

-- Ranges of integers, which LuaJIT would cut in silence.
local ranges = {
    int32_t = { -0x80000000, 0x7fffffff },
    uint32_t = { 0, 0xffffffff },
    uint64_t = { 0, 0xffffffffffffffffULL },
}

-- Raises an error unless C gets a value as it is.
local function check(what, type_, value)
    local range = ranges[type_]
    if not range then
        if type(value) == "string" and value:find("\\0", 1, true) then
            error(("%%s is %%q; a string can't have a byte 0"):format(what, value), 0)
        end
        return
    end
    local whole
    if type(value) == "number" then
        local most = math.min(tonumber(range[2]), 2^53)
        whole = value == math.floor(value) and value >= range[1] and value <= most
    elseif ffi.istype("int64_t", value) then
        whole = value >= range[1] and (value < 0 or ffi.cast("uint64_t", value) <= range[2])
    elseif ffi.istype("uint64_t", value) then
        whole = value <= range[2]
    end
    if not whole then
        error(what .. " is " .. tostring(value) .. "; it must be an integer from "
            .. tostring(range[1]) .. " to " .. tostring(range[2]), 0)
    end
end

local function closed(_, name)
    error(name .. ": the library is not open; call gcx.open() first", 0)
end

local gcx = { C = setmetatable({}, { __index = closed }) }

-- A function that refuses what its parameters can't hold.
local function checked(name, call, parameters)
    return function(...)
        for _, parameter in ipairs(parameters) do
            local place, is, type_ = unpack(parameter)
            check(name .. ": " .. is, type_, (select(place, ...)))
        end
        return call(...)
    end
end

-- Loads libgcx from a path, or by a name that the loader looks up. What it returns has every
-- function, enum value and constant of gcx.h under its name: C.gcx_lease_acquire, C.GCX_REST.
function gcx.open(library)
    library = library or "%(soname)s"
    local loaded = ffi.load(library)
    local C = setmetatable({}, { __index = loaded })
    for name, parameters in pairs(functions) do
        local found, call = pcall(function() return loaded[name] end)
        if not found then
            error(library .. " has no " .. name .. ": it is no libgcx of this version", 0)
        end
        C[name] = checked(name, call, parameters)
    end
    gcx.C = C
    return C
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

-- A struct of gcx.h: struct_size is filled in, fields are as given, and the others zero. A string
-- in it must live as long as the struct.
function gcx.new(name, fields)
    local value = ffi.new(name)
    if ffi.offsetof(name, "struct_size") then
        value.struct_size = ffi.sizeof(name)
    end
    for field, given in pairs(fields or {}) do
        check(name .. ": " .. field, (structs[name] or {})[field], given)
        value[field] = given
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
        "-- Of each function the parameters that are checked: place, name, type.",
        "local functions = {",
        *(line for function in api.functions for line in checks(function)),
        "}",
        "",
        "-- The same of structs that callers fill in.",
        "local structs = {",
        *(line for struct in api.structs for line in field_checks(api, struct)),
        "}",
        "",
        "-- A second copy of this file has the declarations of the first.",
        'local declared = pcall(ffi.typeof, "gcx_resource")',
        "if not declared then ffi.cdef([=[",
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


def checked_type(of: Type) -> str | None:
    """The type, if values of it are checked."""
    if of.pointer or of.kind not in ("integer", "enum", "string"):
        return None
    return {"enum": "int32_t", "string": "string"}.get(of.kind, of.base)


def table(name: str, items: list[str]) -> list[str]:
    one = f"    {name} = {{ {', '.join(items)} }}," if items else f"    {name} = {{}},"
    if len(one) <= 100:
        return [one]
    return [f"    {name} = {{", *(f"        {item}," for item in items), "    },"]


def checks(function: Function) -> list[str]:
    items = [
        f'{{ {place}, "{parameter.name}", "{type_}" }}'
        for place, parameter in enumerate(function.parameters, 1)
        if (type_ := checked_type(parameter)) is not None and parameter.direction == "in"
    ]
    return table(function.name, items)


def field_checks(api: Api, struct: Struct) -> list[str]:
    passed = (parameter for function in api.functions for parameter in function.parameters)
    if not any(one.base == struct.name and one.direction == "in" for one in passed):
        return []
    fields = [field for field in struct.fields if field.elements is None]
    items = [
        f'{field.name} = "{type_}"'
        for field in fields
        if (type_ := checked_type(field)) is not None
    ]
    return table(struct.name, items) if items else []


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
