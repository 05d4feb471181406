"""The input of SWIG for Python and Java, and the calls as both languages see them.

A Call is a function of gcx.h as SWIG wraps it: arrays are one argument, a struct of parameters is
its fields one after another, and what the function writes is what the call returns. The macros in
the generated text are defined in bindings/swig/gcx_common.i and by each language.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bindings.generator.api import Api, Field, Function, Parameter, Struct
from bindings.generator.text import NOTICE, plain, render_file

# The first capacity of a list; no device has more SMs.
ROOM = {"struct": 16, "integer": 1024}
AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Input:
    """An argument of a call."""

    name: str
    kind: str  # integer, enum, handle, native, resource, array, string, data
    base: str  # the C type; of an array that of its elements
    types: tuple[str, ...]  # its parameters in C: type and name
    nullable: bool = False


@dataclass(frozen=True)
class Output:
    """What a call returns."""

    # none, truth, scalar, pair, record, list, report, numbers, resource, split, created, borrowed,
    # native, string or text
    kind: str
    base: str = ""  # the C type, as of Input; of a report that of its record
    names: tuple[str, ...] = ()  # of the parameters that it is read from
    item: str = ""  # of a report: the C type of its list's elements


@dataclass(frozen=True)
class Call:
    function: Function
    inputs: tuple[Input, ...]
    output: Output
    declaration: str  # for SWIG
    wrapper: str | None  # in C, for what SWIG can't call as it is

    @property
    def name(self) -> str:
        return self.function.name


def has_callback(api: Api, function: Function) -> bool:
    """Whether it takes a callback. Each language wraps such a function by itself."""
    parameters = function.parameters
    structs = [api.struct[parameter.base] for parameter in parameters if parameter.kind == "struct"]
    fields = [field for struct in structs for field in struct.fields]
    return any(entry.kind == "callback" for entry in (*parameters, *fields))


def calls(api: Api) -> list[Call]:
    """The functions that both languages wrap, in the header's order."""
    wrapped = [function for function in api.functions if not has_callback(api, function)]
    return [_call(api, variant, omitted) for one in wrapped for variant, omitted in _variants(one)]


def _variants(function: Function) -> list[tuple[Function, tuple[str, ...]]]:
    """The calls of a function, each with the outputs for which it passes NULL.

    gcx_sm_split returns resources, and gcx_sm_split_counts, the dry run, counts.
    """
    if function.name != "gcx_sm_split":
        return [(function, ())]
    resources, counts = ("groups", "remainder"), ("sm_counts", "remainder_sm_count")
    counting = replace(function, name=f"{function.name}_counts")
    return [(function, counts), (counting, resources)]


def listed(api: Api) -> set[str]:
    """The structs that functions list."""
    outputs = [call.output for call in calls(api)]
    lists = {output.base for output in outputs if output.kind == "list"}
    return lists | {output.item for output in outputs if output.kind == "report"}


def input_structs(api: Api) -> list[Struct]:
    """The structs of which functions take arrays."""
    taken = {item.base for call in calls(api) for item in call.inputs if item.kind == "array"}
    return [
        struct for struct in api.structs if struct.name in taken and struct.name != "gcx_resource"
    ]


class Shape:
    """Collects the inputs and outputs of a function, one parameter after another."""

    def __init__(self, api: Api, function: Function) -> None:
        self.api = api
        self.function = function
        self.inputs: list[Input] = []
        self.outputs: list[Output] = []
        self.declared: list[str] = []
        self.passed: list[str] = []  # to the C function, by the wrapper
        self.before: list[str] = []  # in the wrapper
        self.listed: int | None = None

    def problem(self, what: str) -> ValueError:
        return ValueError(f"{self.function.name}: swig.py has no rule for {what}")

    def add(self, kind: str, parameter: Parameter | Field, *types: str) -> None:
        declared = types or (f"{parameter.type} {parameter.name}",)
        self.inputs.append(
            Input(parameter.name, kind, parameter.base, declared, parameter.nullable)
        )
        self.declared += declared

    def give(self, kind: str, base: str, *names: str) -> None:
        self.outputs.append(Output(kind, base, names))


def _call(api: Api, function: Function, omitted: tuple[str, ...]) -> Call:
    shape = Shape(api, function)
    parameters = {parameter.name: parameter for parameter in function.parameters}
    lengths = {
        length
        for parameter in function.parameters
        for length in (parameter.elements, parameter.written)
        if length is not None
    }
    for parameter in parameters.values():
        if parameter.name in omitted:
            shape.passed.append("NULL")
        elif parameter.name in lengths:
            _length(shape, parameter)
        elif parameter.direction == "in":
            _input(shape, parameter)
        else:
            _output(shape, parameter)
    wrapped = bool(shape.before or omitted) or shape.listed is not None
    prefix = f"static {function.result.type} call_" if wrapped else f"{function.result.type} "
    declared = f"{prefix}{function.name}({', '.join(shape.declared) or 'void'})"
    wrapper = f"{declared} {{\n{_body(shape)}}}\n" if wrapped else None
    return Call(function, tuple(shape.inputs), _given(shape), f"{declared};", wrapper)


def _length(shape: Shape, parameter: Parameter) -> None:
    """Adds the length of an array. It is part of the array's typemap, or of a list's wrapper."""
    if shape.listed is not None:
        shape.passed.append("&needed" if parameter.pointer else "room")
    else:
        shape.passed.append(parameter.name)
        if not any(f" {parameter.name}" in text for text in shape.declared):
            shape.declared.append(f"{parameter.type} {parameter.name}")


def _input(shape: Shape, parameter: Parameter) -> None:
    struct = shape.api.struct.get(parameter.base)
    if parameter.elements is not None:
        length = f"uint32_t {parameter.elements}"
        shape.add("array", parameter, f"{parameter.type} {parameter.name}", length)
    elif struct is not None and struct.struct_size:
        shape.before.append(f"    {struct.name} {parameter.name} = {struct.init};")
        _flatten(shape, struct, parameter.name)
        shape.passed.append(f"&{parameter.name}")
        return
    elif parameter.base == "gcx_resource":
        shape.add("resource", parameter)
    elif parameter.kind in ("integer", "enum", "handle", "native", "string"):
        shape.add(parameter.kind, parameter)
    else:
        raise shape.problem(f"the parameter {parameter.name}")
    shape.passed.append(parameter.name)


def _flatten(shape: Shape, struct: Struct, target: str) -> None:
    """A struct of parameters, as a parameter for each of its fields."""
    fields = list(struct.own_fields)
    for index, field in enumerate(fields):
        place = f"{target}.{field.name}"
        if field.kind == "user_data" and index + 1 < len(fields):
            size = fields[index + 1]
            shape.add("data", field, f"{field.type} {field.name}", f"{size.type} {size.name}")
        elif index > 0 and fields[index - 1].kind == "user_data":
            pass  # its size, which was added with it
        elif field.elements is not None:
            for number, axis in enumerate(_axes(shape, field)):
                name = f"{field.name}_{axis}"
                shape.inputs.append(Input(name, field.kind, field.base, (f"{field.base} {name}",)))
                shape.declared.append(f"{field.base} {name}")
                shape.before.append(f"    {place}[{number}] = {name};")
            continue
        elif field.kind in ("integer", "enum", "handle", "string"):
            shape.add(field.kind, field)
        else:
            raise shape.problem(f"the field {struct.name}.{field.name}")
        shape.before.append(f"    {place} = {field.name};")


def _axes(shape: Shape, field: Field) -> tuple[str, ...]:
    if field.elements != len(AXES):
        raise shape.problem(f"the array {field.name}")
    return AXES


def _output(shape: Shape, parameter: Parameter) -> None:
    name, base = parameter.name, parameter.base
    declared = f"{parameter.type} {name}"
    if parameter.written is not None:
        shape.listed = ROOM[parameter.kind]
        shape.give("numbers" if parameter.kind == "integer" else "list", base, name)
        shape.declared += [f"{base}** list", "uint32_t* list_count"]
        shape.passed.append("*list")
        return
    if parameter.kind == "string" and parameter.elements is not None:
        shape.give("text", "char", name, parameter.elements)
    elif parameter.elements is not None:
        shape.give("array", base, name, parameter.elements)
    elif base == "gcx_resource":
        shape.give("resource", base, name)
    elif parameter.kind == "struct":
        shape.give("record", base, name)
    elif parameter.kind == "handle":
        created = parameter.ownership == "given"
        shape.give("created" if created else "borrowed", base, name)
        declared = declared if created else f"{parameter.type} borrowed"
    elif parameter.kind in ("integer", "float"):
        shape.give("scalar", base, name)
    else:
        raise shape.problem(f"the parameter {name}")
    shape.declared.append(declared)
    shape.passed.append(name)


def _given(shape: Shape) -> Output:
    result = shape.function.result
    if result.base != "gcx_result":
        return Output(result.kind if result.kind != "integer" else "scalar", result.base)
    if shape.function.answers:
        return Output("truth")
    outputs = shape.outputs
    kinds = [output.kind for output in outputs]
    if not outputs:
        return Output("none")
    if len(outputs) == 1 and kinds != ["array"]:
        return outputs[0]
    bases = {output.base for output in outputs}
    names = tuple(name for output in outputs for name in output.names)
    if kinds == ["scalar", "scalar"] and bases == {"int32_t"}:
        return Output("pair", "int32_t", names)
    if kinds in (["array", "resource"], ["array", "scalar"]) and len(bases) == 1:
        return Output("split", bases.pop(), names)
    if kinds == ["array", "record"]:
        return Output("report", outputs[1].base, names, outputs[0].base)
    raise shape.problem(f"outputs that are {kinds}")


def _body(shape: Shape) -> str:
    called = f"{shape.function.name.removesuffix('_counts')}({', '.join(shape.passed)})"
    if shape.listed is None:
        return "\n".join([*shape.before, f"    return {called};", ""])
    return "\n".join([*shape.before, f"    LIST_ALL({shape.listed}, {called});", ""])


def fields_macro(struct: Struct) -> str:
    """C that adds a struct's fields to one of the language's."""
    lines = [line for field in struct.own_fields for line in _field(struct, field)]
    body = " \\\n".join(f"    {line};" for line in lines)
    return f"#define FIELDS_{struct.name}(from) \\\n{body}\n"


def _field(struct: Struct, field: Field) -> list[str]:
    value = f"(from)->{field.name}"
    if field.kind in ("text", "string"):
        return [f"TEXT({value})"]
    if field.base == "gcx_resource":
        return [f"SMS(&{value})"]
    if field.elements is not None and field.base == "uint32_t" and field.elements == len(AXES):
        return [f"UNSIGNED({value}[{index}])" for index in range(field.elements)]
    if field.elements is not None:
        return [f"BYTES({value}, sizeof({value}))"]
    if field.kind == "float":
        return [f"REAL({value})"]
    if field.kind == "enum" or field.base == "int32_t":
        return [f"SIGNED({value})"]
    if field.kind == "integer":
        return [f"UNSIGNED({value})"]
    raise ValueError(f"{struct.name}.{field.name}: swig.py has no rule for it")


def files(api: Api) -> dict[str, str]:
    """bindings/swig/generated: the typemaps' uses, the declarations, and the structs' fields."""
    structs = "\n".join(fields_macro(struct) for struct in api.records).rstrip("\n")
    return {
        "bindings/swig/generated/fields.h": render_file("fields.h.in", structs=structs),
        "bindings/swig/generated/functions.i": _functions(api),
    }


def _functions(api: Api) -> str:
    called = calls(api)
    lines = [f"/* {NOTICE} */", ""]
    lines += [f"typedef int32_t {enum.name};" for enum in api.enums if enum.name != "gcx_result"]
    lines.append("")
    # Each use once, sorted.
    uses = {f"HANDLE_IN({handle.name}) CREATED({handle.name})" for handle in api.handles}
    uses |= {f"NATIVE(struct {native.name}*)" for native in api.natives}
    for call in called:
        for item in call.inputs:
            if item.kind == "array":
                uses.add(f"ARRAY({item.base}, {item.name}, {item.types[1].split()[1]})")
            elif item.kind == "data":
                uses.add(f"DATA(({', '.join(item.types)}))")
        uses |= _output_uses(call)
    lines += sorted(uses)
    for call in called:
        if call.wrapper is None:
            lines += ["", call.declaration]
        else:
            rename = f"%rename({call.name}) call_{call.name};"
            lines += ["", rename, "%inline %{", call.wrapper + "%}"]
    return "\n".join(lines) + "\n"


def _output_uses(call: Call) -> set[str]:
    output = call.output
    if output.kind in ("record", "list", "numbers"):
        return {f"{output.kind.upper()}({output.base})"}
    if output.kind == "truth":
        return {f"TRUTH_OF({call.name})"}
    if output.kind == "scalar" and output.names:
        return {f"SCALAR({output.base}, {output.names[0]})"}
    if output.kind == "pair":
        return {f"PAIR_OF({output.base}, {output.names[0]}, {output.names[1]})"}
    if output.kind == "text":
        return {f"TEXT_OUT({output.names[0]}, {output.names[1]}, {room_of_text(call)})"}
    if output.kind == "split":
        array, _, rest = output.names
        return {f"SPLIT_OUT({output.base}, {array}, {rest}, {_place_of_length(call)})"}
    if output.kind == "report":
        array, _, record = output.names
        types = f"{output.item}, {array}, {output.base}, {record}"
        return {f"REPORT({types}, {_place_of_length(call)})"}
    return set()


def _place_of_length(call: Call) -> str:
    """SWIG's name for the argument that is the length of an array which is written."""
    declared = call.declaration.partition("(")[2].rstrip(");").split(", ")
    length = call.output.names[1]
    return f"arg{next(i for i, text in enumerate(declared, 1) if text.split()[-1] == length)}"


def room_of_text(call: Call) -> str:
    """gcx_reservation_get_token: GCX_MAX_RESERVATION_TOKEN."""
    return f"GCX_MAX_{plain(call.name).replace('get_', '').upper()}"
