"""Python: the stubs and docstrings of the C layer, its constants, and the exceptions."""

from __future__ import annotations

import keyword
import re

from bindings.generator import swig
from bindings.generator.api import Api, Constant, Field, Struct, Value
from bindings.generator.docs import LINK, sentence
from bindings.generator.errors import KINDS
from bindings.generator.text import NOTICE, pascal, plain, render, render_file, wrapped

# The structs that the package returns as named tuples; classes by hand have the others.
RECORDS = (
    *("gcx_cache_stats", "gcx_cache_trimmed", "gcx_graph_info", "gcx_kernel_fit"),
    *("gcx_live_context", "gcx_live_lease", "gcx_live_reservation", "gcx_published_lease"),
    *("gcx_published_process", "gcx_queue_info"),
)
# The structs whose fields are properties of a class.
PROPERTIES = (
    *("gcx_context_info", "gcx_device_info", "gcx_lease_info", "gcx_reservation_info"),
    "gcx_stream_info",
)
RENAMED = {"waits": "waiting"}
# Numbers of which 0 is None.
OPTIONAL = ("connections", "parent")
# Fields and flags that the package lacks, or has in another form.
NO_FIELDS = ("compute_capability_major", "compute_capability_minor", "flags")
NO_FLAGS = ("GCX_LEASE_REQUIRE_WORKQUEUES", "GCX_RESERVATION_INHERIT")
# What exceptions inherit from, if not from Error alone.
BASES = {
    "InvalidValue": "Error, ValueError",
    "OutOfMemory": "Error, MemoryError",
    "InvalidDevice": "Error, ValueError",
    "LaunchTooLarge": "LaunchError",
    "Timeout": "Error, builtins.TimeoutError",
    "InsufficientCapacity": "Error, ValueError",
    "CacheLimitExceeded": "Error, ValueError",
}
# Parameters in the file system's encoding, not UTF-8. gcx.i has their typemap.
PATHS = ("driver", "folder", "token")


def files(api: Api) -> dict[str, str]:
    package = "bindings/python/gcx/generated"
    return {
        "bindings/python/generated/inputs.h": _inputs(api),
        "bindings/python/generated/module.i": _module(api),
        f"{package}/__init__.py": f"# {NOTICE}\n",
        f"{package}/errors.py": _errors(api),
        f"{package}/functions.pyi": _stub(api),
        f"{package}/records.py": _records(api),
    }


def constants(api: Api) -> list[Value | Constant]:
    return [value for enum in api.enums for value in enum.values] + list(api.constants)


def _errors(api: Api) -> str:
    classes: list[str] = []
    for kind in KINDS:
        classes += ["", "", f"class {kind.name}Error({BASES.get(kind.name, 'Error')}):"]
        classes += [*_docstring(kind.doc), "", f"    code = {kind.codes(api)[0]}"]
        classes.append(f'    name = "GCX_ERROR_{kind.results[0]}"')
    by_result = [(code, kind) for kind in KINDS for code in kind.codes(api)]
    return render_file(
        "errors.py.in",
        classes=classes,
        names=[f'    "{name}Error",' for name in sorted(kind.name for kind in KINDS)],
        codes=[f"    {code}: {kind.name}Error," for code, kind in by_result],
    )


METHODS = """
    def to_json(self) -> dict[str, Any]:
        \"\"\"Returns the fields as values for json.dumps.\"\"\"
        return json_of(self)
"""
# Of those with a resource, which is the last field.
PICKLING = """
    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)
"""
FIELDS = """
class $fields:
    \"\"\"The properties of a gcx.$name that C tells.\"\"\"

    __slots__ = ()

    def _info(self) -> Any:
        raise NotImplementedError
"""


def _records(api: Api) -> str:
    lines: list[str] = []
    for name in RECORDS:
        members = _members(api, api.struct[name])
        lines += ["", "", f"class {pascal(name)}(NamedTuple):"]
        lines += [*_docstring(_said(sentence(name, api.struct[name].brief))), ""]
        for member, type_, _, doc in members:
            lines += [*wrapped(doc, "    #: "), f"    {member}: {type_}"]
        lines += METHODS.splitlines()
        if any(field.base == "gcx_resource" for field in api.struct[name].fields):
            lines += PICKLING.splitlines()
        lines += ["", "", f"def {plain(name)}_of(raw: Any) -> {pascal(name)}:"]
        lines += [f"    return {pascal(name)}("]
        lines += [*(f"        {read}," for _, _, read, _ in members), "    )"]
    for name in PROPERTIES:
        lines += ["", "", *render(FIELDS, fields=f"{_owner(name)}Fields", name=_owner(name))]
        for member, type_, read, doc in _members(api, api.struct[name]):
            lines += ["", "    @property", f"    def {member}(self) -> {type_}:"]
            lines += [f"    {line}" for line in _docstring(doc, 90)]
            lines += ["        raw = self._info()", f"        value: {type_} = {read}"]
            lines.append("        return value")
    sources = api.enum["gcx_queue_source"]
    words = [(one.name, one.name.removeprefix(sources.prefix).lower()) for one in sources.values]
    rows = [f'_gcx.{name}: "{word}",' for name, word in words]
    names = [f'"{pascal(name)}",' for name in RECORDS]
    return render_file("records.py.in", sources=rows, records=lines, names=names)


def _owner(struct: str) -> str:
    """gcx_reservation_info: Reservation."""
    return pascal(struct).removesuffix("Info")


def _members(api: Api, struct: Struct) -> list[tuple[str, str, str, str]]:
    """Name, type, expression and documentation of what the package has of a struct's fields."""
    members = []
    for index, field in enumerate(struct.own_fields):
        raw = f"raw[{index}]"
        for flag in api.flags(field):
            if flag.name not in NO_FLAGS:
                name = re.sub("^GCX_[A-Z]+_", "", flag.name).lower()
                doc = _said(sentence(flag.name, flag.brief))
                members.append((name, "bool", f"bool({raw} & _gcx.{flag.name})", doc))
        if field.name in NO_FIELDS:
            continue
        type_, read = _member(api, struct, field, raw)
        none = "None" if type_.endswith("None") else "0"
        text = sentence(f"{struct.name}.{field.name}", field.brief).replace("`None`", none)
        doc = _said(text)
        for suffix, unit in (("_ms", "milliseconds since 1970"), ("_ns", "nanoseconds")):
            if field.name.endswith(suffix):
                doc = doc.removesuffix(".") + f", in {unit}."
        if read.startswith("uuid_text"):
            doc = doc.removesuffix(".") + ", as nvidia-smi prints it: GPU-xxxxxxxx-xxxx-..."
        if type_ == "bool | None":
            doc += " None: the driver doesn't tell."
        members.append((RENAMED.get(field.name, field.name), type_, read, doc))
    return members


def _said(text: str) -> str:
    """The documentation of a name without Markdown."""
    text = LINK.sub(lambda found: f"{found[1].removesuffix('Info')}.{found[2]}", text)
    return text.replace("`", "")


def _member(api: Api, struct: Struct, field: Field, raw: str) -> tuple[str, str]:
    named = {
        "gcx_sm_family": ("str", f"FAMILY_NAMES[{raw}]"),
        "gcx_mps_state": ("bool | None", f"mps_of({raw})"),
        "gcx_queue_source": ("str", f"QUEUE_SOURCES[{raw}]"),
        "gcx_resource": ("SMResource", f"sm_resource({raw})"),
    }
    if field.base in named:
        return named[field.base]
    if field.kind == "text":
        return "str", raw
    if field.elements is not None:
        bits = field.base == "uint64_t"
        return ("tuple[int, ...]", f"atoms_in({raw})") if bits else ("str", f"uuid_text({raw})")
    if field.kind == "float":
        return "float", raw
    if api.is_boolean(field):
        return "bool", f"bool({raw})"
    if field.name.endswith("version"):
        return "tuple[int, int]", f"version_of({raw})"
    if field.name == "sm_count" and any(other.name == "waits" for other in struct.fields):
        return "int | None", f"count_or_rest({raw})"
    return ("int | None", f"{raw} or None") if field.name in OPTIONAL else ("int", raw)


def _inputs(api: Api) -> str:
    lines: list[str] = []
    for struct in swig.input_structs(api):
        lines += [*_conversion(struct), f"ARRAY_OF({struct.name}, to_{struct.name})", ""]
    for handle in api.handles:
        lines += [f"static gcx_result {handle.name}_released(void* handle) {{"]
        lines += [f"    return {handle.destroy}(({handle.name})handle);", "}", ""]
    return render_file("inputs.h.in", inputs=lines)


def _conversion(struct: Struct) -> list[str]:
    """A function in C that fills the struct in from a sequence of its fields."""
    fields = struct.own_fields
    lines = [f"static int to_{struct.name}(PyObject* fields, {struct.name}* to) {{"]
    checks = []
    for index, field in enumerate(fields):
        if field.kind == "handle":
            lines.append(f"    void* {field.name} = NULL;")
            checks.append(f"handle_field(fields, {index}, &{field.name})")
        elif field.base == "uint32_t" and field.elements is None:
            checks.append(f"u32_field(fields, {index}, &to->{field.name})")
        else:
            raise ValueError(f"{struct.name}.{field.name}: python.py has no rule for it")
    lines.append("    memset(to, 0, sizeof(*to));")
    lines += [f"    if (!{check})\n        return 0;" for check in checks]
    lines += [
        f"    to->{field.name} = ({field.base}){field.name};"
        for field in fields
        if field.kind == "handle"
    ]
    return [*lines, "    return 1;", "}"]


def _module(api: Api) -> str:
    lines = [f"/* {NOTICE} */", ""]
    for constant in constants(api):
        kind = "int" if constant.value < 2**31 else "unsigned int"
        lines.append(f"%constant {kind} {constant.name} = {constant.name};")
    for call in swig.calls(api):
        declared = call.name if call.wrapper is None else f"call_{call.name}"
        text = [f"{call.name}({', '.join(_names(call))})", "", *_doc(api, call)]
        lines += ["", f'%feature("docstring") {declared} %{{', *text, "%}"]
    return "\n".join(lines) + "\n"


def _names(call: swig.Call) -> list[str]:
    names = [_plain(item.name) for item in call.inputs]
    return [*names, "owner"] if call.output.kind == "created" else names


def _plain(name: str) -> str:
    """A parameter's name, which is no keyword."""
    return f"{name}_" if keyword.iskeyword(name) else name


def _doc(api: Api, call: swig.Call) -> list[str]:
    lines = call.function.doc.splitlines()
    given = _given(api, call)
    return [*lines, "", *wrapped(f"Returns {given}.", "", 99)] if given else lines


def _given(api: Api, call: swig.Call) -> str:
    """What a function returns, in words; empty if it returns nothing."""
    output = call.output
    if output.kind in ("record", "list"):
        names = ", ".join(_field_names(api.struct[output.base]))
        return f"({names})" if output.kind == "record" else f"a list of ({names})"
    if output.kind == "report":
        both = [", ".join(_field_names(api.struct[name])) for name in (output.base, output.item)]
        return f"(({both[0]}), a list of ({both[1]}))"
    if output.kind == "created":
        return f"the owner, which has the {output.base} now"
    if output.kind == "truth":
        return "True if all has finished, False if not yet"
    if output.kind in ("pair", "split"):
        named = [name for name in output.names if not name.endswith("_count") or name[0] == "r"]
        return f"({', '.join(name for name in named if name != 'request_count')})"
    return ", ".join(output.names[:1])


def _field_names(struct: Struct) -> list[str]:
    names: list[str] = []
    for field in struct.own_fields:
        if field.base == "uint32_t" and field.elements is not None:
            names += [f"{field.name}_{axis}" for axis in swig.AXES]
        else:
            names.append(field.name)
    return names


def _stub(api: Api) -> str:
    lines: list[str] = []
    for struct in swig.input_structs(api):
        fields = ", ".join("int" for _ in struct.own_fields)
        lines.append(f"{_alias(struct.name)}: TypeAlias = int | tuple[{fields}]")
    for struct in api.records:
        types = [kind for field in struct.own_fields for kind in _types(field)]
        lines += _bracketed(f"{_alias(struct.name)}: TypeAlias = tuple[", types, "]")
    lines += ["", *(f"{constant.name}: int" for constant in constants(api))]
    for call in swig.calls(api):
        arguments = [f"{_plain(item.name)}: {_input_type(api, item)}" for item in call.inputs]
        if call.output.kind == "created":
            arguments.append("owner: _Owner")
        given = _output_type(call)
        lines += ["", *_signature(call.name, arguments, given), *_docstring(call.function.brief)]
    return render_file("functions.pyi.in", declarations=lines)


def _docstring(text: str, width: int = 94) -> list[str]:  # with room for the quotes
    lines = wrapped(text, "    ", width)
    begin = lines[0].strip()
    lines[0] = f'    """ {begin}' if begin.startswith('"') else f'    """{begin}'
    return [f'{lines[0]}"""'] if len(lines) == 1 else [*lines, '    """']


def _signature(name: str, arguments: list[str], given: str) -> list[str]:
    arguments = [*arguments, "/"] if arguments else []
    return _bracketed(f"def {name}(", arguments, f") -> {given}:")


def _bracketed(begin: str, items: list[str], end: str) -> list[str]:
    """As ruff formats it."""
    inner = ", ".join(items)
    if len(begin + inner + end) <= 100:
        return [begin + inner + end]
    if len(inner) <= 96:
        return [begin, f"    {inner}", end]
    return [begin, *(f"    {item}," for item in items), end]


def _alias(name: str) -> str:
    return f"_{pascal(name)}"


def _input_type(api: Api, item: swig.Input) -> str:
    if item.kind == "string":
        optional = item.nullable or item.name == "folder" or item.name == "name"
        return ("_Path" if item.name in PATHS else "str") + (" | None" if optional else "")
    if item.kind == "data":
        return "bytes | None"
    if item.kind == "resource":
        return "bytes"
    if item.kind == "array":
        if item.base == "gcx_resource":
            return "Sequence[bytes]"
        return f"Sequence[{_alias(item.base) if item.base in api.struct else 'int'}]"
    return "int"


def _types(field: Field) -> list[str]:
    if field.kind in ("text", "string"):
        return ["str"]
    if field.base == "uint32_t" and field.elements is not None:
        return ["int"] * field.elements
    if field.base == "gcx_resource" or field.elements is not None:
        return ["bytes"]
    return ["float" if field.kind == "float" else "int"]


def _output_type(call: swig.Call) -> str:
    output = call.output
    if output.kind in ("record", "list"):
        record = _alias(output.base)
        return record if output.kind == "record" else f"list[{record}]"
    if output.kind == "report":
        return f"tuple[{_alias(output.base)}, list[{_alias(output.item)}]]"
    if output.kind == "split":
        one = "bytes" if output.base == "gcx_resource" else "int"
        return f"tuple[tuple[{one}, ...], {one}]"
    return {
        "none": "None",
        "truth": "bool",
        "scalar": "float" if output.base == "float" else "int",
        "pair": "tuple[int, int]",
        "numbers": "tuple[int, ...]",
        "resource": "bytes",
        "created": "_Owner",
        "borrowed": "int",
        "native": "int",
        "string": "str | None" if call.function.result.nullable else "str",
        "text": "str",
    }[output.kind]
