"""Java: records, enums, exceptions, the class Raw, and how SWIG and JNI pass types."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from bindings.generator import swig
from bindings.generator.api import ROOT, Api, Enum, Field, Struct, Value
from bindings.generator.docs import LINK, sentence
from bindings.generator.errors import KINDS
from bindings.generator.names import IN_JAVA
from bindings.generator.text import (
    NOTICE,
    camel,
    listed,
    pascal,
    plain,
    render,
    render_file,
    wrapped,
)

SOURCES = ROOT / "bindings" / "java" / "src" / "main" / "java" / "gcx"
GENERATED = "bindings/java/generated"
RESULTS = ROOT / "src" / "api" / "result.cpp"
# Names of components that differ from the fields or flags.
NAMES = {"shared": "isShared", "private": "isPrivate", "resource": "sms"}
# The flags that make an enum of options, and what the options are of.
OPTIONS = {
    "EventOption": ("GCX_EVENT_", "an event"),
    "GraphOption": ("GCX_GRAPH_", "a graph"),
    "PrepareOption": ("GCX_PREPARE_", "a preparation"),
    "ResizeOption": ("GCX_RESIZE_", "a resize"),
    "SplitOption": ("GCX_SPLIT_", "a split, which has at most one family"),
}
# Options whose names differ from the flags'.
OPTION_NAMES = {
    "BLOCKING_SYNC": "BLOCKING",
    "IGNORE_SM_COSCHEDULING": "FINE",
    "MAX_POTENTIAL_CLUSTER_SIZE": "MAX_CLUSTER",
}
# Flags that records lack, and numbers that don't fit an int.
LEFT_OUT = {("gcx_reservation_info", "flags")}
LONG = {("gcx_live_reservation", "user")}
# Ids for which 0 is none.
OPTIONAL = {("gcx_live_reservation", "parent")}
# Further members of records.
MEMBERS = {
    "gcx_graph_node": [
        "  /** As a parent: the node is in no child graph. */",
        "  public static final int NO_PARENT = Raw.GCX_NO_NODE;",
    ]
}


@dataclass(frozen=True)
class Component:
    """A component of a record."""

    type: str
    name: str
    doc: str
    value: str  # Java, of the arguments that JNI passes


def files(api: Api) -> dict[str, str]:
    java = f"{GENERATED}/java/gcx"
    files = {f"{java}/{pascal(struct.name)}.java": _record(api, struct) for struct in api.records}
    for enum in _enums(api):
        files[f"{java}/{pascal(enum.name)}.java"] = _enum(api, enum)
    files |= {f"{java}/{name}.java": _options(api, name) for name in OPTIONS}
    return {
        **files,
        f"{java}/Result.java": _result(api),
        f"{java}/GcxException.java": _exceptions(),
        f"{java}/Structs.java": _structs(api),
        f"{java}/Raw.java": _raw(api),
        f"{GENERATED}/upcalls.h": _jni(api),
        f"{GENERATED}/types.i": _types(api),
    }


def _file(imports: set[str], lines: list[str]) -> str:
    imported = [f"import {name};" for name in sorted(imports)]
    return "\n".join(
        [f"// {NOTICE}", "package gcx;", "", *imported, *[""][: len(imported)], *lines, ""]
    )


# ---- Texts ----


def _text(api: Api, text: str) -> str:
    """The header's text as Javadoc."""

    def named(found: re.Match[str]) -> str:
        name = found[0]
        if name in {struct.name for struct in api.records}:
            return f"{{@link {pascal(name)}}}"
        return f"{{@code {IN_JAVA.get(name, name)}}}"

    escaped = html.escape(text, quote=False).replace("@", "{@literal @}")
    return re.sub(r"\b(?:gcx|GCX)_\w+", named, escaped)


def _documented(api: Api, key: str, brief: str, none: str = "0") -> str:
    """The documentation of a name as Javadoc."""
    text = sentence(key, brief).replace("`None`", none)
    text = _text(api, text.replace("Major and minor: (13, 0)", "13000"))
    return inline_tags(text)


def inline_tags(text: str) -> str:
    """Markdown's links and code as Javadoc's tags."""
    text = LINK.sub(lambda found: f"{{@link {found[1]}#{camel(found[2])}}}", text)
    text = re.sub(r"`(\{@[^`]*)`", r"\1", text)
    return re.sub(r"`([^`]*)`", r"{@code \1}", text)


def _part(api: Api, key: str, brief: str, none: str = "0") -> str:
    """The same as the text of a tag."""
    text = _documented(api, key, brief, none).removesuffix(".")
    return text if text[0] == "{" or text[1].isupper() else text[0].lower() + text[1:]


def _said(name: str) -> str:
    """A name in words, if the header has no comment."""
    words = name.lower().replace("_", " ")
    return re.sub(r"\bsms?\b", lambda found: found[0].upper().replace("S", "SM", 1)[:2], words)


def _comment(lines: list[str], indent: str = "") -> list[str]:
    """A Javadoc comment; each entry is a paragraph or a tag, and an empty one a blank line."""
    if len(lines) == 1 and len(indent + lines[0]) <= 92:
        return [f"{indent}/** {lines[0]} */"]
    comment = [f"{indent}/**"]
    for line in lines:
        if line.startswith("@"):
            comment += _tag(line, indent)
        else:
            comment += wrapped(line, f"{indent} * ") or [f"{indent} *"]
    return [*comment, f"{indent} */"]


def _tag(line: str, indent: str) -> list[str]:
    lines = wrapped(line, f"{indent} *     ")
    lines[0] = lines[0].replace(" *     ", " * ", 1)
    return lines


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."


# ---- Records ----


def _components(api: Api, struct: Struct) -> list[Component]:
    return [made for field in struct.own_fields for made in _component(api, struct, field)]


def _component(api: Api, struct: Struct, field: Field) -> list[Component]:
    if (struct.name, field.name) in LEFT_OUT:
        return []
    value = _argument(field.name)
    made = []
    for flag in api.flags(field):
        name = re.sub("^GCX_[A-Z]+_", "", flag.name).lower()
        doc = _part(api, flag.name, flag.brief)
        set_ = f"({value} & Raw.{flag.name}) != 0"
        made.append(Component("boolean", NAMES.get(name, camel(name)), doc, set_))
    if made:
        return made
    name = re.sub("_(ms|ns)$", "", field.name)
    type_, converted = _converted(api, struct, field, value)
    none = "empty" if type_.startswith("Optional") else "0"
    doc = _part(api, f"{struct.name}.{field.name}", field.brief, none)
    return [Component(type_, NAMES.get(name, camel(name)), doc, converted)]


def _converted(api: Api, struct: Struct, field: Field, value: str) -> tuple[str, str]:
    """A field's type in Java, and how it is made."""
    if field.kind in ("text", "string"):
        return "String", f"text({value})"
    if field.kind == "enum":
        return pascal(field.base), f"{pascal(field.base)}.of((int) {value})"
    if field.base == "gcx_resource":
        return "SmResource", f"new SmResource({value})"
    if field.members_of is not None:
        enum = pascal(field.members_of)
        return f"Set<{enum}>", f"setOf({enum}.values(), {value})"
    if field.elements is not None:
        if field.base == "uint8_t":
            return "UUID", f"uuid({value})"
        if field.base == "uint64_t":
            return "List<Integer>", f"atomsOf({value})"
        parts = ", ".join(f"(int) {value}{axis.upper()}" for axis in swig.AXES)
        return "Dim", f"new Dim({parts})"
    if field.kind == "float":
        return "double", value
    if api.is_boolean(field):
        return "boolean", f"{value} != 0"
    if field.name.endswith("_ms"):
        if "0: never" in field.brief:
            return "Optional<Instant>", f"instantOrNever({value})"
        return "Instant", f"Instant.ofEpochMilli({value})"
    if field.name.endswith("_ns"):
        return "Duration", f"Duration.ofNanos({value})"
    if field.name == "sm_count" and any(other.name == "waits" for other in struct.fields):
        return "OptionalInt", f"wanted({value})"
    if (struct.name, field.name) in OPTIONAL:
        return "OptionalLong", f"{value} == 0 ? OptionalLong.empty() : OptionalLong.of({value})"
    if field.base == "uint64_t" or (struct.name, field.name) in LONG:
        return "long", value
    return "int", f"(int) {value}"


# The types that class Structs names.
MADE_HERE = {"java.time.Instant", "java.time.Duration", "java.util.OptionalLong"}
IMPORTS = {
    "UUID": "java.util.UUID",
    "List<Integer>": "java.util.List",
    "Set": "java.util.Set",
    "Instant": "java.time.Instant",
    "Optional<Instant>": "java.util.Optional",
    "OptionalInt": "java.util.OptionalInt",
    "OptionalLong": "java.util.OptionalLong",
    "Duration": "java.time.Duration",
}


def _imports(components: list[Component]) -> set[str]:
    types = [re.sub("^Set<.*", "Set", made.type) for made in components]
    imports = {IMPORTS[type_] for type_ in types if type_ in IMPORTS}
    return imports | {"java.time.Instant"} if "java.util.Optional" in imports else imports


def _record(api: Api, struct: Struct) -> str:
    components = _components(api, struct)
    doc = [_documented(api, struct.name, struct.brief), ""]
    doc += [f"@param {made.name} {made.doc}" for made in components]
    inner = ",\n".join(f"    {made.type} {made.name}" for made in components)
    members = MEMBERS.get(struct.name, [])
    end = [") {", *members, "}"] if members else [") {}"]
    head = f"public record {pascal(struct.name)}("
    return _file(_imports(components), [*_comment(doc), head, inner + end[0], *end[1:]])


# ---- Structs.java and JNI ----


def _argument(name: str) -> str:
    """An argument of Structs.java's methods, which is no keyword."""
    return f"{camel(name)}_" if name in ("private", "native", "default") else camel(name)


def _passed(field: Field) -> list[tuple[str, str, str]]:
    """JNI's letter, Java's type and the name of what is passed of a field."""
    name = _argument(field.name)
    if field.elements is not None and field.base == "uint32_t":
        return [("J", "long", f"{name}{axis.upper()}") for axis in swig.AXES]
    if field.kind in ("text", "string") or field.elements or field.base == "gcx_resource":
        return [("[B", "byte[]", name)]
    return [("D", "double", name)] if field.kind == "float" else [("J", "long", name)]


STRUCT = """
  static $type $method(
      $parameters) {
    return new $type(
        $values);
  }
"""


def _structs(api: Api) -> str:
    lines = [
        *_comment(["Makes records of structs. Whole numbers come as long, text as UTF-8."]),
        "abstract class Structs extends Conversions {",
    ]
    imports: set[str] = set()
    for struct in api.records:
        passed = [item for field in struct.own_fields for item in _passed(field)]
        components = _components(api, struct)
        imports |= _imports(components) & MADE_HERE
        lines += render(
            STRUCT,
            type=pascal(struct.name),
            method=camel(struct.name),
            parameters=",\n      ".join(f"{kind} {name}" for _, kind, name in passed),
            values=",\n        ".join(made.value for made in components),
        )
        lines.append("")
    lines[-1] = "}"
    return _file(imports, lines)


def _jni(api: Api) -> str:
    rows = []
    for struct in api.records:
        letters = "".join(letter for field in struct.own_fields for letter, _, _ in _passed(field))
        signature = f"({letters})Lgcx/{pascal(struct.name)};"
        rows.append(f'    X({struct.name}, "{camel(struct.name)}", "{signature}")')
    fills: list[str] = []
    for struct in swig.input_structs(api):
        fills += ["", f"static void fill_{struct.name}({struct.name}* to, const jlong* from) {{"]
        for index, field in enumerate(struct.own_fields):
            cast = f"({field.base})" + ("(intptr_t)" if field.kind == "handle" else "")
            fills.append(f"    to->{field.name} = {cast}from[{index}];")
        fills.append("}")
    inputs = [f"    X({item.name}, {len(item.own_fields)})" for item in swig.input_structs(api)]
    classes = [f'#define CLASS_OF_{name} "gcx/{pascal(name)}"' for name in sorted(swig.listed(api))]
    return render_file(
        "upcalls.h.in",
        structs=" \\\n".join(rows),
        classes=classes,
        fills=fills,
        inputs=" \\\n".join(inputs),
    )


# ---- SWIG ----

JNI = {"int": "jint", "long": "jlong", "float": "jfloat", "boolean": "jboolean", "void": "void"}


def _jni_type(java: str) -> str:
    if java in JNI:
        return JNI[java]
    if java.endswith("[]"):
        return f"{JNI[java[:-2]]}Array" if java[:-2] in JNI else "jobjectArray"
    return "jobject"


def _passed_type(api: Api, item: swig.Input) -> str:
    """The type of an argument in JNI."""
    if item.kind in ("resource", "string", "data") or item.base == "gcx_resource":
        return "byte[]"
    if item.kind == "array":
        return "long[]" if item.base in api.struct or item.base != "uint32_t" else "int[]"
    if item.kind in ("handle", "native") or item.base == "uint64_t":
        return "long"
    return "int"


def _given_type(call: swig.Call) -> str:
    """The type of a result in JNI."""
    output = call.output
    if output.kind in ("record", "list"):
        return pascal(output.base) + ("[]" if output.kind == "list" else "")
    if output.kind == "report":
        return "Object[]"
    if output.kind == "split":
        return "byte[]" if output.base == "gcx_resource" else "int[]"
    return {
        "none": "void",
        "truth": "boolean",
        "scalar": "float" if output.base == "float" else "int",
        "pair": "int[]",
        "numbers": "int[]",
        "resource": "byte[]",
        "text": "byte[]",
        "string": "byte[]",
    }.get(output.kind, "long")


def _jni_name(type_: str) -> str:
    return "jbyteArray" if type_ == "byte[]" else _jni_type(type_)


def is_class(handle: str) -> bool:
    """Whether the handle is a class of Java; a gcx_cancel is several."""
    return handle != "gcx_cancel" and (SOURCES / f"{pascal(handle)}.java").exists()


def _types(api: Api) -> str:
    lines = [f"/* {NOTICE} */", ""]
    for name in (handle.name for handle in api.handles):
        class_of = f"HANDLE_OF({name}, {pascal(name)})"
        lines.append(class_of if is_class(name) else f"AS(jlong, long, {name})")
    lines += [f"AS(jlong, long, struct {native.name}*)" for native in api.natives]
    arrays = {}
    for call in swig.calls(api):
        for item in call.inputs:
            if item.kind in ("array", "data"):
                type_ = _passed_type(api, item)
                arrays[f"({', '.join(item.types)})"] = f"{_jni_name(type_)}, {type_}"
    lines += [f"AS({types}, {parameters})" for parameters, types in sorted(arrays.items())]
    for call in swig.calls(api):
        type_ = _given_type(call)
        declared = call.name if call.wrapper is None else f"call_{call.name}"
        if call.function.result.base == "gcx_result" and type_ != "void":
            lines.append(f"AS({_jni_name(type_)}, {type_}, gcx_result {declared})")
    return "\n".join(lines) + "\n"


# ---- Enums, results and exceptions ----


def _enums(api: Api) -> list[Enum]:
    """The enums of the package. Result has another form."""
    used: set[str | None] = {
        name
        for struct in api.records
        for field in struct.fields
        for name in (field.base, field.members_of)
    }
    used |= {item.base for call in swig.calls(api) for item in call.inputs}
    used |= {parameter.base for callback in api.callbacks for parameter in callback.parameters}
    used -= {"gcx_result", "gcx_stream_sync"}
    return [enum for enum in api.enums if enum.name in used]


def _values(enum: Enum) -> list[tuple[str, Value]]:
    values = [value for value in enum.values if not value.name.endswith("_COUNT")]
    return [(value.name.removeprefix(enum.prefix), value) for value in values]


def _constants(rows: list[tuple[str, str]]) -> list[str]:
    """An enum's constants, each with its comment."""
    lines = [line for text, row in rows for line in (*_comment([text], "  "), f"  {row},")]
    return [*lines[:-1], lines[-1].removesuffix(",") + ";"]


def _enum(api: Api, enum: Enum) -> str:
    rows = []
    for here, value in _values(enum):
        text = _documented(api, value.name, value.brief)
        rows.append((text, f"{here}(Raw.{value.name})"))
    doc = _documented(api, enum.name, enum.brief)
    name = pascal(enum.name)
    return render_file("Enum.java.in", doc=_comment([doc]), name=name, values=_constants(rows))


def _options(api: Api, name: str) -> str:
    prefix, of = OPTIONS[name]
    rows = []
    for flag in api.constants:
        if flag.name.startswith(prefix) and flag.value != 0:
            here = flag.name.removeprefix(prefix)
            text = _sentence(_documented(api, flag.name, flag.brief).removeprefix("Whether "))
            rows.append((text, f"{OPTION_NAMES.get(here, here)}(Raw.{flag.name})"))
    doc = _comment([f"Options of {of}."])
    return render_file("Options.java.in", doc=doc, name=name, values=_constants(rows))


def _result(api: Api) -> str:
    sentences = dict(
        re.findall(r'GCX_ROW\((\w+),\s*"((?:[^"\\]|\\.)*)"', RESULTS.read_text("utf-8"))
    )
    rows = []
    for value in api.enum["gcx_result"].values:
        name = plain(value.name).removeprefix("ERROR_")
        text = _sentence(_text(api, sentences.get(value.name) or _said(name)))
        rows.append((text, f"{name}({value.value})"))
    return render_file("Result.java.in", values=_constants(rows))


EXCEPTION = """

$doc
  public static final class $name extends GcxException {
    private static final long serialVersionUID = 1L;

    $name(int code, String name, String detail) {
      super(code, name, detail);
    }

    $name(String detail) {
      super(Result.$result, detail);
    }
  }
"""


def _exceptions() -> str:
    results = {kind.name: [*kind.results] for kind in KINDS}
    results["NotInitialized"] += results.pop("Deinitialized")
    cases: list[str] = []
    declared: list[str] = []
    for kind in KINDS:
        if kind.name in results:
            end = f" -> new {kind.name}(code, name, detail);"
            cases += listed("      case ", results[kind.name], end, hugged=True)
            doc, result = _comment([kind.doc], "  "), results[kind.name][0]
            declared += ["", *render(EXCEPTION, doc=doc, name=kind.name, result=result)]
    return render_file("GcxException.java.in", cases=cases, classes=declared)


# ---- Raw.java ----


def _raw(api: Api) -> str:
    constants: list[str] = []
    values = [value for enum in api.enums for value in enum.values]
    for constant in (*values, *api.constants):
        number = constant.value - 2**32 if constant.value >= 2**31 else constant.value
        text = _sentence(_text(api, constant.brief) or f"{{@code {constant.name}}}")
        constants += _comment([text], "  ")
        constants += [f"  public static final int {constant.name} = {number};", ""]
    functions = [line for call in swig.calls(api) for line in ("", *_function(api, call))]
    return render_file("Raw.java.in", constants=constants, functions=functions)


def _function(api: Api, call: swig.Call) -> list[str]:
    names = {item.name: _argument(item.name) for item in call.inputs}
    types = {item.name: _passed_type(api, item) for item in call.inputs}
    strings = {item.name for item in call.inputs if item.kind == "string"}
    parameters = [f"{'String' if name in strings else types[name]} {names[name]}" for name in names]
    arguments = [
        f"Upcalls.bytes({names[name]})" if name in strings else names[name] for name in names
    ]
    given = _given_type(call)
    text = call.output.kind in ("text", "string")
    declared = f"  public static {'String' if text else given} {call.name}("
    begin = "    return " if given != "void" else "    "
    opened = f"{begin}{'Upcalls.text(' if text else ''}Natives.{call.name}("
    doc = _paragraphs(api, call.function.doc)
    tags = [f"@param {names[item.name]} {_parameter(api, item)}" for item in call.inputs]
    if given != "void":
        tags.append(f"@return {_returned(call)}")
    if call.function.result.base == "gcx_result":
        tags.append("@throws GcxException the result is no success")
    return [
        *_comment([*doc, *[""][: len(tags)], *tags], "  "),
        *listed(declared, parameters, ") {", hugged=True),
        *listed(opened, arguments, "));" if text else ");", hugged=True),
        "  }",
    ]


def _paragraphs(api: Api, doc: str) -> list[str]:
    """A function's comment, its errors as a list."""
    text, colon, errors = doc.partition("Errors:")
    first, *others = (" ".join(part.split()) for part in text.split("\n\n"))
    lines = [_text(api, first)]
    for paragraph in filter(None, others):
        lines += ["", f"<p>{_text(api, paragraph)}"]
    if not colon:
        return lines
    begin, *items = re.split(r"\n\s+(?=GCX_)", errors)
    if first:
        lines.append("")
    lines.append(f"{'<p>' if first else ''}Errors: {_text(api, ' '.join(begin.split()))}".strip())
    if items:
        lines += ["<ul>", *(f"  <li>{_text(api, ' '.join(item.split()))}" for item in items)]
        lines.append("</ul>")
    return [line for index, line in enumerate(lines) if index or line]


def _parameter(api: Api, item: swig.Input) -> str:
    briefs = {
        field.brief
        for struct in api.structs
        if struct.name.endswith("_params")
        for field in struct.own_fields
        if field.name == item.name and field.brief
    }
    return _text(api, briefs.pop()) if len(briefs) == 1 else _said(item.name)


def _returned(call: swig.Call) -> str:
    output = call.output
    if output.kind == "created":
        return "a handle, the caller's to destroy"
    if output.kind == "truth":
        return "whether all has finished"
    if output.kind == "report":
        return f"a {{@link {pascal(output.base)}}}, and an array of {{@link {pascal(output.item)}}}"
    if output.kind in ("split", "pair"):
        return " and ".join(_said(name) for name in output.names if name != "request_count")
    return _said(output.names[0]) if output.names else "the answer"
