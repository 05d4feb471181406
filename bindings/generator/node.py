"""Node.js's raw layer: gcx.h for koffi."""

from __future__ import annotations

from bindings.generator.api import Api, Field, Function, Parameter, Struct, Type
from bindings.generator.text import NOTICE, wrapped

PATH = "bindings/node/generated/gcx.js"
BEGIN = """\
// All of gcx.h for koffi.
import koffi from "koffi";

// Types have no names: koffi has one table of names for all modules of a thread, so that a second
// copy of this file could not declare them again.
const pointer = (type) => koffi.pointer(type);
const out = (type) => koffi.out(koffi.pointer(type));
const inout = (type) => koffi.inout(koffi.pointer(type));
"""
END = """\

/** Every function of gcx.h under its name; open() fills it in. */
export const c = {};
for (const name of Object.keys(FUNCTIONS)) {
  c[name] = () => {
    throw new Error(`${name}: the library is not open; call open() first`);
  };
}

/** Loads libgcx from a path, or by a name that the loader looks up. Returns c. */
export function open(library = "%(soname)s") {
  try {
    const loaded = koffi.load(library);
    for (const [name, [result, parameters]] of Object.entries(FUNCTIONS)) {
      c[name] = loaded.func(name, result, parameters);
    }
  } catch (error) {
    throw new Error(`${library} can't be used: ${error.message}`, { cause: error });
  }
  return c;
}

/** A failed call: .code is the result's name, .result its number, .message says what was wrong. */
export class GcxError extends Error {
  constructor(result) {
    super(`${c.gcx_result_name(result)}: ${c.gcx_last_error_message()}`);
    this.name = "GcxError";
    this.code = c.gcx_result_name(result);
    this.result = result;
  }
}

/**
 * Throws a GcxError unless a gcx_result is GCX_SUCCESS. The message is the thread's last one: koffi
 * calls in JavaScript's own thread, but not by .async(), which loses it.
 */
export function check(result) {
  if (result !== 0) throw new GcxError(result);
}

/** A struct with struct_size, which is filled in: of(gcx.gcx_lease_params, { timeout_ms: 5 }). */
export function sized(type, fields = {}) {
  return { struct_size: koffi.sizeof(type), ...fields };
}
"""


def files(api: Api) -> dict[str, str]:
    lines = [f"// {NOTICE}", "//", *BEGIN.splitlines()]
    for enum in api.enums:
        lines += ["", *comment(f"{enum.name}. {enum.brief}")]
        for value in enum.values:
            lines += [*comment(value.brief), f"export const {value.name} = {value.value};"]
    lines.append("")
    for constant in api.constants:
        lines += [*comment(constant.brief), f"export const {constant.name} = {constant.value};"]
    lines.append("")
    lines += [
        f"export const {handle.name} = koffi.pointer(koffi.opaque());" for handle in api.handles
    ]
    for callback in api.callbacks:
        types = ", ".join(koffi_type(parameter) for parameter in callback.parameters)
        lines += ["", *comment(callback.brief), f"export const {callback.name} = koffi.pointer("]
        lines.append(f'  koffi.proto("{callback.result.type}", [{types}]),')
        lines.append(");")
    for struct in api.structs:
        lines += ["", *declared(struct)]
    lines += ["", "// What each returns, and what it takes.", "export const FUNCTIONS = {"]
    for function in api.functions:
        lines += row(function)
    lines.append("};")
    return {PATH: "\n".join(lines) + "\n" + END % {"soname": api.soname}}


def comment(text: str, indent: str = "") -> list[str]:
    return wrapped(text, f"{indent}// ")


def koffi_type(of: Type) -> str:
    """A value's type."""
    if of.kind in ("struct", "handle", "callback"):
        return of.base
    if of.kind == "enum":
        return '"int32_t"'
    if of.kind == "string":
        return '"const char*"'
    if of.kind in ("native", "user_data"):
        return '"const void*"' if of.is_const else '"void*"'
    return f'"{of.base}"'


def declared(struct: Struct) -> list[str]:
    lines = [*comment(struct.brief), f"export const {struct.name} = koffi.struct({{"]
    for field in struct.fields:
        lines += [*comment(field.brief, "  "), f"  {field.name}: {member(field)},"]
    return [*lines, "});"]


def member(field: Field) -> str:
    if field.kind == "text":
        return f'koffi.array("char", {field.elements}, "String")'
    if field.elements:
        return f"koffi.array({koffi_type(field)}, {field.elements})"
    return f"pointer({koffi_type(field)})" if field.pointer else koffi_type(field)


def passed(parameter: Parameter) -> str:
    if parameter.kind == "string" and parameter.direction == "out":
        return '"void*"'  # room: a Buffer
    if not parameter.pointer:
        return koffi_type(parameter)
    way = {"in": "pointer", "out": "out", "inout": "inout"}[parameter.direction]
    return f"{way}({koffi_type(parameter)})"


def row(function: Function) -> list[str]:
    types = [passed(parameter) for parameter in function.parameters]
    begin = f"  {function.name}: [{koffi_type(function.result)}, ["
    line = f"{begin}{', '.join(types)}]],"
    if len(line) > 100:
        line = f"{begin}\n" + "".join(f"    {type_},\n" for type_ in types) + "  ]],"
    return [*comment(function.brief, "  "), line]
