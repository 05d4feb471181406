"""Methods of handles and resources in Rust, Java and Go that follow one rule.

A function whose only input is a handle or a resource, or that and an event or another resource, is
a method of the first one's type. What it writes or returns says what the method returns.
texts/methods.txt lists these functions with their documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bindings.generator.api import Api, Function
from bindings.generator.docs import LINK
from bindings.generator.errors import KINDS
from bindings.generator.go import exported, local
from bindings.generator.java import inline_tags, is_class
from bindings.generator.names import IN_JAVA
from bindings.generator.text import NOTICE, pascal, plain, render, texts, wrapped

RUST = "bindings/rust/gcx/src/generated/methods.rs"
JAVA = "bindings/java/generated/java/gcx"
# A package of Go is one folder.
GO = "bindings/go/methods.go"
DOCS = texts("methods.txt")["methods"]
ERROR = re.compile(r"\[`(\w+)`\]\(crate::ErrorKind\)")
RESOURCE = "gcx_resource"
IN_RUST = {
    "get_resource": "sms",
    "probe_sms": "sm_ids",
    "record": "record_into",
    "subtract": "difference",
}
# In Rust they take more than an event.
NOT_IN_RUST = {"wait"}
RESULTS = {kind.name: kind.results[0] for kind in KINDS}
# The resources of a context or stream by their types: a method of Java, its class, what it returns.
RESOURCES = {
    "SM": ("sms", "SmResource", "its SMs"),
    "WORKQUEUE_CONFIG": (
        "workqueueConfiguration",
        "WorkqueueResource",
        "the workqueue configuration, from CUDA 13.1 on",
    ),
    "WORKQUEUE": (
        "workqueue",
        "WorkqueueResource",
        "the workqueue, which another context can share, from CUDA 13.1 on",
    ),
}


@dataclass(frozen=True)
class Method:
    """A function, and how its method is made."""

    function: Function
    handle: str  # the C type
    kind: str  # ended, done, query, native, info, list, numbers, resource, typed, number
    base: str = ""  # the C type of what it writes
    taken: str = ""  # gcx_event or gcx_resource, of a further input

    @property
    def name(self) -> str:
        """The function's name without the handle's: get_info."""
        return self.function.name.removeprefix(f"{self.handle}_")

    @property
    def plain_name(self) -> str:
        return re.sub("^(get|find)_", "", self.name)

    @property
    def doc(self) -> str:
        return DOCS[self.function.name]


def methods(api: Api) -> dict[str, list[Method]]:
    """The methods of each handle, in the header's order."""
    known = {function.name for function in api.functions}
    if unknown := set(DOCS) - known:
        raise KeyError(f"texts/methods.txt: gcx.h has no {unknown}")
    found: dict[str, list[Method]] = {RESOURCE: []}
    found |= {handle.name: [] for handle in api.handles}
    for function in api.functions:
        if function.name in DOCS:
            method = _method(api, function)
            found[method.handle].append(method)
    return {handle: of for handle, of in found.items() if of}


def _method(api: Api, function: Function) -> Method:
    first, *outputs = function.parameters
    taken = ""
    if outputs and outputs[0].direction == "in" and outputs[0].base in ("gcx_event", RESOURCE):
        taken = outputs.pop(0).base
    shape = tuple(f"{one.direction} {one.kind}" for one in outputs)
    kinds = {
        ("out struct",): "resource" if outputs and outputs[0].base == RESOURCE else "info",
        ("inout struct",): "info",
        ("in enum", "out struct"): "typed",
        ("out integer",): "number",
        ("out struct", "in integer", "out integer"): "list",
        ("out integer", "in integer", "out integer"): "numbers",
    }
    if function.result.kind == "native":
        kind = "native"
    elif not shape:
        destroys = {one.destroy for one in api.handles}
        kind = "ended" if function.name in destroys else "query" if function.answers else "done"
    elif shape in kinds:
        kind = kinds[shape]
    else:
        raise KeyError(f"{function.name}: methods.py has no rule for {shape}")
    base = outputs[-1 if kind in ("typed", "number") else 0].base if outputs else ""
    return Method(function, first.base, kind, base, taken)


def _witness(of: Sequence[Method]) -> Method:
    """What tells why a native handle is NULL."""
    return next(method for method in of if method.kind in ("info", "query"))


def files(api: Api) -> dict[str, str]:
    found = methods(api)
    java = {name: of for name, of in found.items() if name == RESOURCE or is_class(name)}
    return {
        RUST: _rust(api, found),
        GO: _go(found),
        **{f"{JAVA}/{_class(name)}Methods.java": _java(api, of) for name, of in java.items()},
    }


def _class(c: str) -> str:
    """The name of a type in Rust and Java."""
    return "SmResource" if c == RESOURCE else pascal(c)


def _taken(method: Method) -> str:
    """The name of its argument."""
    return "other" if method.taken == RESOURCE else plain(method.taken)


def _has_sm_count(api: Api, method: Method) -> bool:
    return method.kind == "info" and any(
        field.name == "sm_count" for field in api.struct[method.base].fields
    )


# ---- Rust ----

CALLS = {
    "done": ("()", "check(unsafe { sys::$call(self.as_raw()$more) })"),
    "query": ("bool", "finished(unsafe { sys::$call(self.as_raw()$more) })"),
    "info": ("$base", "filled(sys::$INIT, |to| unsafe { sys::$call(self.as_raw()$more, to) })"),
    "native": (
        "*mut sys::$base",
        "native(unsafe { sys::$call(self.as_raw()$more) }, || self.$witness())",
    ),
    "resource": (
        "SmResource",
        "SmResource::written(|to| unsafe { sys::$call(self.as_raw()$more, to) })",
    ),
    "number": ("u32", "written(0, |to| unsafe { sys::$call(self.as_raw()$more, to) })"),
    "numbers": (
        "Vec<u32>",
        "sm_ids(|ids, room, count| unsafe { sys::$call(self.as_raw()$more, ids, room, count) })",
    ),
    "list": (
        "Vec<$base>",
        "listed(|list, room, count| unsafe { sys::$call(self.as_raw()$more, list, room, count) })"
        ".map(|found| found.iter().map($base::from).collect())",
    ),
}
RUST_RESOURCE = """
written(sys::gcx_resource::default(), |to| unsafe {
    sys::$call(self.as_raw(), sys::GCX_RESOURCE_$of, to)
})
.and_then($type::from_raw)
"""
RUST_METHOD = """
    $doc
    pub fn $name(&self$taken) -> Result<$type> {
        // SAFETY: what is passed is alive; C writes what it is given room for.
        $code
    }
"""
RUST_COUNT = """
    /// Returns how many SMs it has.
    pub fn sm_count(&self) -> Result<u32> {
        Ok(self.info()?.sm_count)
    }
"""


def _in_rust(method: Method) -> str:
    return IN_RUST.get(method.name, method.plain_name)


def _rust(api: Api, found: dict[str, list[Method]]) -> str:
    lines: list[str] = []
    types: set[str] = set()
    for handle, of in found.items():
        blocks = [
            _rust_method(api, method, of)
            for method in of
            if method.kind in CALLS and method.name not in NOT_IN_RUST
        ]
        blocks += [block for method in of for block in _rust_resources(method)]
        blocks += [render(RUST_COUNT) for method in of if _has_sm_count(api, method)]
        types |= {pascal(method.base) for method in of if method.kind in ("info", "list")}
        lines += ["", f"impl {_class(handle)} {{", *_separated(blocks), "}"]
    helpers = "check, filled, finished, listed, native, sm_ids, written"
    used = ", ".join(sorted({*map(_class, found), *types, "Result", "WorkqueueResource"}))
    head = [f"// {NOTICE}", "", f"use crate::call::{{{helpers}}};", "use crate::sys;"]
    return "\n".join([*head, f"use crate::{{{used}}};", *lines]) + "\n"


def _rust_resources(method: Method) -> list[list[str]]:
    """The methods for each type of resource."""
    return [
        render(
            RUST_METHOD,
            doc=wrapped(f"Returns {what}. {method.doc.partition('. ')[2]}", "/// ", 96),
            name="sms" if of == "SM" else of.lower(),
            taken="",
            type=type_,
            code=render(RUST_RESOURCE, call=method.function.name, of=of, type=type_),
        )
        for of, (_, type_, what) in RESOURCES.items()
        if method.kind == "typed"
    ]


def _rust_method(api: Api, method: Method, of: Sequence[Method]) -> list[str]:
    base = method.base if method.kind != "native" else method.function.result.base
    parts = {
        "call": method.function.name,
        "base": base if method.kind == "native" else pascal(base),
        "INIT": (api.struct[base].init or "") if base in api.struct else "",
        "witness": _in_rust(_witness(of)) if method.kind == "native" else "",
        "more": f", {_taken(method)}.as_raw()" if method.taken else "",
    }
    type_, code = (render(text, **parts)[0] for text in CALLS[method.kind])
    doc = wrapped(method.doc, "/// ", 96)
    taken = f", {_taken(method)}: &{_class(method.taken)}" if method.taken else ""
    return render(RUST_METHOD, doc=doc, name=_in_rust(method), taken=taken, type=type_, code=code)


def _separated(blocks: Iterable[list[str]]) -> list[str]:
    """Blocks with an empty line between them."""
    lines = [line for block in blocks for line in ("", *block)]
    return lines[1:]


# ---- Java ----

JAVA_TYPES = {"query": "boolean", "native": "long", "number": "int", "numbers": "int[]"}
JAVA_METHOD = """
  $doc
  public $type $name($taken) {
    $code
  }
"""
JAVA_CLASS = """
// $notice
package gcx;
$imports

/** The methods of {@link $name} that follow from the functions of gcx.h. */
abstract sealed class ${name}Methods extends $base permits $name {
  ${name}Methods($types) {
    super($arguments);
  }

  private $name self() {
    return ($name) this;
  }

$methods
}
"""


def _java(api: Api, of: Sequence[Method]) -> str:
    handle = of[0].handle
    name = _class(handle)
    blocks = [block for method in of for block in _java_methods(method, of)]
    if any(_has_sm_count(api, method) for method in of):
        doc = ["/** {@return how many SMs it has} */"]
        blocks.append(_java_method(doc, "int", "smCount", "return info().smCount();"))
    imports = ["", "import java.util.List;"] if any(one.kind == "list" for one in of) else [""]
    base, types, arguments = "Owned", "long handle, LongConsumer destroy", "handle, destroy"
    if handle == RESOURCE:
        base, types, arguments, imports = "Resource", "byte[] bytes", "bytes", []
    else:
        imports.append("import java.util.function.LongConsumer;")
    lines = render(
        JAVA_CLASS.replace("${name}", name),
        notice=NOTICE,
        name=name,
        base=base,
        types=types,
        arguments=arguments,
        imports=imports,
        methods=_separated(blocks),
    )
    return "\n".join(lines) + "\n"


def _java_method(
    doc: Sequence[str], type_: str, name: str, code: str | Sequence[str], taken: str = ""
) -> list[str]:
    return render(JAVA_METHOD, doc=doc, type=type_, name=name, code=code, taken=taken)


def _java_methods(method: Method, of: Sequence[Method]) -> list[list[str]]:
    call = f"Functions.{method.function.name}"
    if method.kind == "ended":
        return []
    if method.kind == "typed":
        return [
            _java_method(
                _javadoc(f"Returns {what}. {method.doc.partition('. ')[2]}"),
                type_,
                name,
                [
                    f"return new {type_}(",
                    f"    {call}(self(), ResourceType.{of_type}.number));",
                ],
            )
            for of_type, (name, type_, what) in RESOURCES.items()
        ]
    base = pascal(method.base)
    type_ = JAVA_TYPES.get(method.kind, base)
    passed = f"self(), {_taken(method)}" if method.taken else "self()"
    method_name = IN_JAVA[method.function.name].partition(".")[2]
    code = f"return {call}({passed});"
    if method.kind == "done":
        type_, code = "void", f"{call}({passed});"
    elif method.kind == "native":
        functions = (method.function.name, _witness(of).function.name)
        code = f"return nativeOf(self(), {', '.join(f'Functions::{name}' for name in functions)});"
    elif method.kind == "resource":
        type_, code = "SmResource", f"return new SmResource({call}({passed}));"
    elif method.kind == "list":
        type_, code = f"List<{base}>", f"return List.of({call}({passed}));"
    taken, tags = "", []
    if method.taken:
        taken = f"{_class(method.taken)} {_taken(method)}"
        what = "the other" if method.taken == RESOURCE else "the event"
        tags = ["", f"@param {_taken(method)} {what}"]
    return [_java_method(_javadoc(method.doc, tags), type_, method_name, code, taken)]


def _javadoc(doc: str, tags: Sequence[str] = ()) -> list[str]:
    text = ERROR.sub(r"{@link GcxException.\1}", doc).replace("Fails with", "Throws")
    text = inline_tags(text).replace("fail with", "throw")
    first, _, rest = text.partition(". ")
    if first.startswith("Returns "):
        first = f"{{@return {first.removeprefix('Returns ').removesuffix('.')}}}"
        text = f"{first} {rest}".strip()
    if len(text) <= 88 and not tags:
        return [f"/** {text} */"]
    return ["/**", *wrapped(text, " * ", 98), *(f" * {tag}".rstrip() for tag in tags), " */"]


# ---- Go ----

GO_BODIES = {
    "ended": ("error", "return check(func() Result { return Raw.$call($handle$more) })"),
    "done": ("error", "return check(func() Result { return Raw.$call($handle$more) })"),
    "query": ("(bool, error)", "return finished(func() Result { return Raw.$call($handle$more) })"),
    "native": (
        "(uintptr, error)",
        "ask := func() uintptr { return Raw.$call($handle$more) }"
        "\n\treturn native(ask, func() Result { $witness })",
    ),
    "info": (
        "(raw.$base, error)",
        "return filled(func(to *raw.$base) Result { return Raw.$call($handle$more, to) })",
    ),
    "resource": (
        "(Resource, error)",
        "return resourceOf(func(to *raw.Resource) Result { return Raw.$call($handle$more, to) })",
    ),
    "typed": (
        "(Resource, error)",
        "return resourceOf(func(to *raw.Resource) Result { return Raw.$call($handle, of, to) })",
    ),
    "number": (
        "(uint32, error)",
        "return got(func(to *uint32) Result { return Raw.$call($handle$more, to) })",
    ),
    "numbers": (
        "([]uint32, error)",
        "return ids(func(room *uint32, capacity uint32, count *uint32) Result {"
        "\n\t\treturn Raw.$call($handle$more, room, capacity, count)\n\t})",
    ),
    "list": (
        "([]raw.$base, error)",
        "return listed(func(room *raw.$base, capacity uint32, count *uint32) Result {"
        "\n\t\treturn Raw.$call($handle$more, room, capacity, count)\n\t})",
    ),
}


def _go(found: dict[str, list[Method]]) -> str:
    imported = 'import "example.org/gcx/bindings/go/generated/raw"'
    head = [f"// {NOTICE}", "", "package gcx", "", imported]
    blocks = [_go_method(method, of) for of in found.values() for method in of]
    return "\n".join([*head, "", *_separated(blocks)]) + "\n"


def _in_go(c: str, name: str) -> str:
    """A variable as a value of package raw."""
    return f"{name}.raw()" if c == RESOURCE else f"raw.{exported(c)}({name})"


def _go_error(found: re.Match[str]) -> str:
    return f"raw.{exported('ERROR_' + RESULTS[found[1]])}"


def _go_method(method: Method, of: Sequence[Method]) -> list[str]:
    type_ = exported(method.handle)
    receiver = local(plain(method.handle))
    handle = _in_go(method.handle, receiver)
    name = "Close" if method.kind == "ended" else exported(method.plain_name)
    parts = {"call": exported(method.function.name), "base": exported(method.base)}
    parts["handle"] = handle
    parts["more"] = f", {_in_go(method.taken, _taken(method))}" if method.taken else ""
    if method.kind == "native":
        other = _witness(of)
        more = f", sized(&raw.{exported(other.base)}{{}})" if other.kind == "info" else ""
        parts["witness"] = f"return Raw.{exported(other.function.name)}({handle}{more})"
    result, body = ("\n".join(render(text, **parts)) for text in GO_BODIES[method.kind])
    taken = "of raw.ResourceType" if method.kind == "typed" else ""
    if method.taken:
        taken = f"{_taken(method)} {exported(method.taken)}"
    doc = LINK.sub(lambda found: exported(found[2]), ERROR.sub(_go_error, method.doc))
    doc = doc.replace("`", "")
    return [
        *wrapped(f"{name} {doc[0].lower()}{doc[1:]}", "// "),
        f"func ({receiver} {type_}) {name}({taken}) {result} {{",
        f"\t{body}",
        "}",
    ]
