"""C++: gcx.hpp's names for constants, and functions that throw and return what C writes."""

from __future__ import annotations

import re

from bindings.generator.api import Api, Enum, Function, Parameter
from bindings.generator.text import NOTICE, plain, wrapped

FOLDER = "include/gcx/generated"

NAMESPACES = {
    "gcx_resource_type": "type",
    "gcx_sm_family": "family",
    "gcx_workqueue_scope": "scope",
    "gcx_graph_node_kind": "node_kind",
}
NO_ENUMS = {"gcx_result", "gcx_stream_sync"}
# Constants by prefix that are an enum class of flags.
FLAGS = ("SPLIT", "CONTEXT", "EVENT", "PREPARE", "LEASE", "RESIZE", "RESERVATION", "GRAPH")
# Constants of requests and timeouts, which C++ writes otherwise, and those of the preprocessor.
NO_CONSTANTS = re.compile(r"GCX_(SM_REQUEST_.*|FOREVER|VERSION.*)")
NAMES = {
    "GCX_SPLIT_IGNORE_SM_COSCHEDULING": "fine",
    "GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE": "max_cluster",
    "GCX_LOCALITY_DOMAIN_ID_ANY": "any_locality_domain",
    "GCX_QUEUE_SOURCE_DEFAULT": "by_default",
}
KEYWORDS = {"private"}


def files(api: Api) -> dict[str, str]:
    files = {"constants": _constants(api), "raw": _functions(api)}
    return {f"{FOLDER}/{name}.hpp": text for name, text in files.items()}


def _file(head: str, includes: list[str], body: list[str], namespace: str = "gcx") -> str:
    lines = [f"// {NOTICE}", *wrapped(head, "// "), "// clang-format off", "#pragma once", ""]
    lines += [*includes, "", f"namespace {namespace} {{", "", *body]
    return "\n".join([*lines, "", f"}} // namespace {namespace}"]) + "\n"


def _name(constant: str, prefix: str) -> str:
    name = NAMES.get(constant, constant.removeprefix(prefix).lower())
    return name + "_" if name in KEYWORDS else name


def _constants(api: Api) -> str:
    body: list[str] = []
    for enum in api.enums:
        if enum.name not in NO_ENUMS:
            body += [*_enum(enum), ""]
    for flags in FLAGS:
        body += [*_flags(api, f"GCX_{flags}_", f"{flags.lower()}_flags"), ""]
    for constant in api.constants:
        flag = constant.name.startswith(tuple(f"GCX_{flags}_" for flags in FLAGS))
        if not flag and not NO_CONSTANTS.fullmatch(constant.name):
            body += wrapped(constant.brief, "// ")
            name = _name(constant.name, "GCX_")
            body += [f"inline constexpr {constant.type} {name} = {constant.name};"]
    head = "Part of gcx.hpp: the constants of gcx.h, scoped."
    return _file(head, ['#include "../../gcx.h"', "", "#include <cstdint>"], body)


def _enum(enum: Enum) -> list[str]:
    """The values in a namespace, with C's type."""
    namespace = NAMESPACES.get(enum.name, plain(enum.name))
    lines = [f"namespace {namespace} {{ // {enum.name}"]
    for value in enum.values:
        name = _name(value.name, enum.prefix)
        lines += [f"inline constexpr {enum.name} {name} = {value.name};"]
    return [*lines, f"}} // namespace {namespace}"]


def _flags(api: Api, prefix: str, name: str) -> list[str]:
    none = next((c.name for c in api.constants if c.name == f"{prefix}DEFAULT"), "0")
    lines = [f"enum class {name} : uint32_t {{", f"    none = {none},"]
    for constant in api.constants:
        if constant.name.startswith(prefix) and constant.name != none:
            lines += wrapped(constant.brief, "    // ")
            lines += [f"    {_name(constant.name, prefix)} = {constant.name},"]
    lines += ["};", f"constexpr {name} operator|({name} a, {name} b) noexcept {{"]
    both = "static_cast<uint32_t>(a) | static_cast<uint32_t>(b)"
    return [*lines, f"    return static_cast<{name}>({both});", "}"]


def _functions(api: Api) -> str:
    body: list[str] = []
    for function in api.functions:
        if function.result.type == "gcx_result":
            body += [*_function(api, function), ""]
    head = (
        "Part of gcx.hpp: the functions of gcx.h as gcx::raw, for C's handles. They throw "
        "gcx::error, and return what C's functions write."
    )
    includes = ['#include "../error.hpp"', "", "#include <cstdint>", "#include <vector>"]
    return _file(head, includes, body[:-1], "gcx::raw")


def _function(api: Api, function: Function) -> list[str]:
    parameters = function.parameters
    listed = [parameter for parameter in parameters if parameter.elements == "capacity"]
    if listed and listed[0].base != "char":
        return _list(function, listed[0])
    outputs = [p for p in parameters if p.pointer and p.direction != "in"]
    if len(outputs) == 1 and outputs[0].elements is None and outputs[0].base != "char":
        out = outputs[0]
        kind = _type(out).removesuffix("*")
        struct = api.struct.get(out.base)
        start = " = 0" if struct is None else f" = {struct.init}" if struct.init else ""
        start = " = nullptr" if out.kind == "handle" else start
        passed = ", ".join(f"&{p.name}" if p is out else p.name for p in parameters)
        lines = [f"{kind} {out.name}{start};", f"check({function.name}({passed}));"]
        inputs = tuple(parameter for parameter in parameters if parameter is not out)
        return _defined(function, kind, inputs, [*lines, f"return {out.name};"])
    called = f"{function.name}({', '.join(parameter.name for parameter in parameters)})"
    if function.answers:
        return _defined(function, "bool", parameters, [f"return detail::finished({called});"])
    lines = wrapped(f"check({called});", "", 96)
    return _defined(
        function, "void", parameters, [lines[0], *(f"    {line}" for line in lines[1:])]
    )


def _type(parameter: Parameter) -> str:
    return parameter.type.replace("struct ", "")


def _list(function: Function, array: Parameter) -> list[str]:
    """A function that writes an array and its length."""
    inputs = tuple(p for p in function.parameters if p.direction == "in" and p.name != "capacity")
    passed = ", ".join(parameter.name for parameter in function.parameters)
    lines = [
        f"const auto list = [{'&' if inputs else ''}]({array.base}* {array.name}, "
        "uint32_t capacity, uint32_t* count) {",
        f"    return {function.name}({passed});",
        "};",
        # Called once for SM numbers, since each call runs the kernel that notes them.
        f"return detail::listed<{array.base}>(list"
        + (", GCX_MAX_SMS);" if array.base == "uint32_t" else ");"),
    ]
    return _defined(function, f"std::vector<{array.base}>", inputs, lines)


def _defined(
    function: Function, result: str, parameters: tuple[Parameter, ...], lines: list[str]
) -> list[str]:
    declared = ", ".join(f"{_type(parameter)} {parameter.name}" for parameter in parameters)
    begin = f"inline {result} {plain(function.name)}("
    head = [f"{begin}{declared}) {{"]
    if len(head[0]) > 100:
        # Type and name stay on a line.
        declared = declared.replace(" ", "\0").replace(",\0", ", ")
        head = [begin, *wrapped(f"{declared})\0{{", "        ")]
        head = [line.replace("\0", " ") for line in head]
    return [f"// {function.name}", *head, *(f"    {line}" for line in lines), "}"]
