"""Node.js's raw layer: gcx.h for koffi."""

from __future__ import annotations

from bindings.generator.api import Api, Field, Function, Parameter, Struct, Type
from bindings.generator.text import NOTICE, wrapped

PATH = "bindings/node/generated/gcx.js"
BEGIN = """\
// All of gcx.h for koffi.
import { inspect } from "node:util";
import koffi from "koffi";

// Types have no names: koffi has one table of names for all modules of a thread, so that a second
// copy of this file could not declare them again.
const pointer = (type) => koffi.pointer(type);
const out = (type) => koffi.out(koffi.pointer(type));
const inout = (type) => koffi.inout(koffi.pointer(type));
"""
END = """\

// What koffi would cut in silence, or take for an address.
const RANGES = {
  Int32: [-(2 ** 31), 2 ** 31 - 1],
  UInt32: [0, 2 ** 32 - 1],
  UInt64: [0, 2n ** 64n - 1n],
};

// Of a type what says why a value can't be passed, "" if it can; undefined: any may be tried.
function checker(type) {
  const { primitive, ref, members } = koffi.type(type);
  if (primitive in RANGES) {
    const [least, most] = RANGES[primitive];
    const exact = primitive === "UInt64" ? Number.isSafeInteger : Number.isInteger;
    return (value) =>
      (typeof value === "bigint" || exact(value)) && value >= least && value <= most
        ? ""
        : ` is ${inspect(value)}; it must be an integer from ${least} to ${most}`;
  }
  if (primitive === "String") {
    return (value) =>
      value == null || (typeof value === "string" && !value.includes("\\0"))
        ? ""
        : ` is ${inspect(value)}; it must be a string without a byte 0, or null`;
  }
  if (primitive === "Record") {
    const checks = Object.entries(members).map(([name, member]) => [name, checker(member.type)]);
    return (value) => {
      for (const [name, check] of checks) {
        const problem = check && value?.[name] !== undefined ? check(value[name]) : "";
        if (problem) return `.${name}${problem}`;
      }
      return "";
    };
  }
  if (primitive === "Callback") {
    return (value) =>
      value == null || typeof value === "function" || typeof value === "bigint"
        ? ""
        : ` is ${inspect(value)}; it must be a function or null`;
  }
  const isPointer = primitive === "Pointer" && koffi.type(ref).primitive !== "Void";
  if (!isPointer && primitive !== "Array") return undefined;
  const check = checker(ref);
  const isRecord = koffi.type(ref).primitive === "Record";
  return (value) => {
    if (isPointer && value != null && !["object", "bigint"].includes(typeof value)) {
      return ` is ${inspect(value)}; it must be an object, an array or null`;
    }
    if (!check) return "";
    if (!Array.isArray(value)) return isRecord && !ArrayBuffer.isView(value) ? check(value) : "";
    for (const [i, one] of value.entries()) {
      const problem = check(one);
      if (problem) return `[${i}]${problem}`;
    }
    return "";
  };
}

// A function that refuses what its parameters can't hold.
function checked(name, parameters, call) {
  const checks = Object.entries(parameters).flatMap(([parameter, type], i) => {
    const check = checker(type);
    return check ? [[i, parameter, check]] : [];
  });
  if (checks.length === 0) return call;
  const refuse = (values) => {
    for (const [i, parameter, check] of checks) {
      const problem = check(values[i]);
      if (problem) throw new TypeError(`${name}: ${parameter}${problem}`);
    }
  };
  const wrapped = (...values) => {
    refuse(values);
    return call(...values);
  };
  wrapped.async = (...values) => {
    refuse(values);
    return call.async(...values);
  };
  return wrapped;
}

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
      const call = loaded.func(name, result, Object.values(parameters));
      c[name] = checked(name, parameters, call);
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
        return 'pointer("uint8_t")'  # room: a Buffer
    if not parameter.pointer:
        return koffi_type(parameter)
    way = {"in": "pointer", "out": "out", "inout": "inout"}[parameter.direction]
    return f"{way}({koffi_type(parameter)})"


def row(function: Function) -> list[str]:
    types = [f"{parameter.name}: {passed(parameter)}" for parameter in function.parameters]
    begin = f"  {function.name}: [{koffi_type(function.result)}, {{"
    line = f"{begin} {', '.join(types)} }}]," if types else f"{begin}}}],"
    if len(line) > 100:
        line = f"{begin}\n" + "".join(f"    {type_},\n" for type_ in types) + "  }],"
    return [*comment(function.brief, "  "), line]
