"""Rust: the enums, the kinds of errors and the information structs of the crate gcx.

bindgen makes gcx-sys, the raw layer. What the functions of C fill in becomes a struct of Rust's own
types here, with a conversion from gcx-sys's struct.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bindings.generator.api import ROOT, Api, Enum, Field, Struct
from bindings.generator.docs import sentence
from bindings.generator.errors import KINDS, ONLY_RUST
from bindings.generator.text import NOTICE, commented, pascal, render, wrapped

BINDINGS = "bindings/rust/gcx-sys/src/generated/bindings.rs"
FOLDER = "bindings/rust/gcx/src/generated"

# Enums that the crate has otherwise.
NO_ENUMS = {"gcx_result", "gcx_resource_type", "gcx_stream_sync"}
ENUM_NAMES = {"gcx_sm_family": "Family", "gcx_graph_node_kind": "NodeKind"}
# Values that the enums lack; the count of capabilities becomes the length of ALL.
NO_VALUES = {"GCX_SM_FAMILY_NONE", "GCX_LOG_NONE", "GCX_CAPABILITY_COUNT"}
# What stands for a value of a newer library, if it isn't the first.
UNKNOWN = {
    "gcx_sm_family": "External",
    "gcx_queue_source": "Environment",
    "gcx_log_level": "Debug",
    "gcx_graph_node_kind": "Other",
}
# Structs that handwritten types wrap.
NO_INFOS = {"gcx_device_info", "gcx_resource_info", "gcx_graph_node"}
# The values that stand for None.
OPTIONAL = {
    "gcx_stream_info.context_id": "0",
    "gcx_queue_info.connections": "0",
    "gcx_live_reservation.until_ms": "0",
    "gcx_live_reservation.parent": "0",
    "gcx_live_lease.sm_count": "sys::GCX_REST",
    "gcx_live_reservation.sm_count": "sys::GCX_REST",
    "gcx_published_lease.sm_count": "sys::GCX_REST",
    "gcx_reservation_info.mps_thread_percentage": "0.0",
    "gcx_live_reservation.mps_thread_percentage": "0.0",
}
# Text that other processes wrote: any bytes.
FOREIGN = ("gcx_published_", "gcx_reservation_", "gcx_live_reservation")
RENAMED = {"waits": "waiting", "resource": "sms"}

# Kinds of errors that Rust names otherwise, and those with fewer results.
KIND_NAMES = {
    "LaunchTooLarge": "CooperativeTooLarge",
    "ResourceConfiguration": "InvalidResourceConfiguration",
}
RESULTS = {"DriverNotFound": ["SHARED_OBJECT_INIT_FAILED"], "NoDevice": ["NO_DEVICE"]}


@dataclass(frozen=True)
class Member:
    """A field of a struct in Rust, and how it is read from C's struct `raw`."""

    name: str
    type: str
    read: str
    doc: str


def files(api: Api) -> dict[str, str]:
    written = {"enums": _enums(api), "error_kind": _error_kind(api), "infos": _infos(api)}
    mods = [f"mod {name};" for name in (*written, "methods")]
    mods += ["", *(f"pub use {name}::*;" for name in written)]
    return {
        # bindgen's: its own test compares it with the header.
        BINDINGS: (ROOT / BINDINGS).read_text(encoding="utf-8"),
        **{
            f"{FOLDER}/{name}.rs": "\n".join([f"// {NOTICE}", "", *lines]) + "\n"
            for name, lines in {"mod": mods, **written}.items()
        },
    }


def _doc(text: str, indent: str = "") -> list[str]:
    return wrapped(text, f"{indent}/// ")


def _derives(*more: str) -> str:
    return f"#[derive({', '.join(sorted({'Clone', 'Debug', 'PartialEq', *more}))})]"


def _enum_name(name: str) -> str:
    return ENUM_NAMES.get(name, pascal(name))


def _enums(api: Api) -> list[str]:
    enums = [enum for enum in api.enums if enum.name not in NO_ENUMS]
    return ["use crate::sys;"] + [line for enum in enums for line in ("", *_enum(enum))]


ALL = """

impl $name {
    /// All of them.
    pub const ALL: [$name; $count] = [
        $all
    ];
}
"""
ENUM = """
$doc
$derives
#[non_exhaustive]
pub enum $name {
    $variants
}
$all

impl From<sys::$c> for $name {
    fn from(value: sys::$c) -> Self {
        match value {
            $from_c
        }
    }
}

impl From<$name> for sys::$c {
    fn from(value: $name) -> Self {
        match value {
            $to_c
        }
    }
}
"""


def _enum(enum: Enum) -> list[str]:
    name = _enum_name(enum.name)
    rows = [
        (pascal(value.name.removeprefix(enum.prefix)), value)
        for value in enum.values
        if value.name not in NO_VALUES
    ]
    unknown = UNKNOWN.get(enum.name, rows[0][0])
    said = [(sentence(value.name, value.brief), f"{variant},") for variant, value in rows]
    variants = commented(said, "/// ", 96)
    from_c = [f"sys::{value.name} => Self::{row}," for row, value in rows if row != unknown]
    to_c = [f"{name}::{variant} => sys::{value.name}," for variant, value in rows]
    if unknown == "Other":
        variants += ["/// Any other value, with its number.", "Other(u32),"]
        from_c.append("other => Self::Other(other.0),")
        to_c.append(f"{name}::Other(number) => Self(number),")
    else:
        from_c.append(f"_ => Self::{unknown},")
    every: list[str] = []
    if any(value.name == f"{enum.prefix}COUNT" for value in enum.values):
        all_of = [f"Self::{variant}," for variant, _ in rows]
        every = ["", *render(ALL, name=name, count=str(len(rows)), all=all_of)]
    return render(
        ENUM,
        doc=_doc(sentence(enum.name, enum.brief)),
        derives=_derives("Copy", "Eq", "Hash", "Ord", "PartialOrd"),
        name=name,
        c=enum.name,
        variants=variants,
        all=every,
        from_c=from_c,
        to_c=to_c,
    )


ERROR_KIND = """
use crate::sys;

/// What a program may want to distinguish of an [`Error`](crate::Error)'s result.
$derives
#[non_exhaustive]
pub enum ErrorKind {
    $kinds
    /// Any other result.
    Other,
}

impl From<sys::gcx_result> for ErrorKind {
    fn from(result: sys::gcx_result) -> Self {
        match result {
            $arms
            _ => Self::Other,
        }
    }
}
"""


def _error_kind(api: Api) -> list[str]:
    kinds: list[str] = []
    arms: list[str] = []
    for kind in (*KINDS, *ONLY_RUST):
        if kind.name == "Deinitialized":
            continue  # one of the other results
        name = KIND_NAMES.get(kind.name, kind.name)
        kinds += [*wrapped(kind.doc, "/// ", 96), f"{name},"]
        results = RESULTS.get(kind.name, kind.results)
        first, *others = (f"sys::GCX_ERROR_{result}" for result in results)
        alternatives = [first, *(f"| {other}" for other in others)]
        arms += [*alternatives[:-1], f"{alternatives[-1]} => Self::{name},"]
    return render(ERROR_KIND, derives=_derives("Copy", "Eq", "Hash"), kinds=kinds, arms=arms)


def infos(api: Api) -> list[Struct]:
    """The structs that functions fill in, except those that handwritten types wrap, and those with
    pointers, which no conversion can trust."""
    return [
        struct
        for struct in api.records
        if struct.name not in NO_INFOS
        and struct.own_fields[0].name != "opaque"
        and not any(field.pointer or field.kind == "string" for field in struct.fields)
    ]


def _infos(api: Api) -> list[str]:
    lines = [line for struct in infos(api) for line in ("", *_info(api, struct))]
    text = "\n".join(lines)
    words = set(re.findall(r"\w+", text))

    def used(path: str, names: Iterable[str]) -> str:
        return f"use {path}::{{{', '.join(names)}}};"

    helpers = ("bytes", "members", "numbers", "some", "string", "time", "version")
    enums = sorted(_enum_name(enum.name) for enum in api.enums if enum.name not in NO_ENUMS)
    return [
        *(["use std::ffi::OsString;"] if "OsString" in words else []),
        used("std::time", (name for name in ("Duration", "SystemTime") if name in words)),
        "",
        used("crate::convert", (name for name in helpers if f"{name}(" in text)),
        "use crate::error::{Error, Result};",
        "use crate::resource::SmResource;",
        "use crate::sys;",
        "",
        used("super", (name for name in enums if name in words)),
        *lines,
    ]


INFO = """
$doc
$derives
#[non_exhaustive]
$allowed
pub struct $name {
    $members
}

"""
FROM = """
impl From<&sys::$c> for $name {
    fn from(raw: &sys::$c) -> Self {
        Self {
            $reads
        }
    }
}
"""
# C reads a resource, and may refuse it.
TRY_FROM = """
impl TryFrom<&sys::$c> for $name {
    type Error = Error;

    fn try_from(raw: &sys::$c) -> Result<Self> {
        Ok(Self {
            $reads
        })
    }
}
"""


def _info(api: Api, struct: Struct) -> list[str]:
    members = list(_members(api, struct))
    types = " ".join(member.type for member in members)
    derives = [] if "f32" in types else ["Eq", "Hash"]
    if not re.search(r"Vec|String", types):
        derives += ["Copy"]
    declared = [(member.doc, f"pub {member.name}: {member.type},") for member in members]
    many_bools = sum(member.type == "bool" for member in members) > 3
    return render(
        INFO + (TRY_FROM if "SmResource" in types else FROM).lstrip(),
        doc=_doc(sentence(struct.name, struct.brief)),
        derives=_derives(*derives),
        allowed=["#[allow(clippy::struct_excessive_bools)]"] if many_bools else [],
        name=pascal(struct.name),
        c=struct.name,
        members=commented(declared, "/// ", 96),
        reads=[f"{member.name}: {member.read}," for member in members],
    )


def _members(api: Api, struct: Struct) -> Iterable[Member]:
    for field in struct.own_fields:
        key = f"{struct.name}.{field.name}"
        if field.name == "flags":
            yield from _flags(api, field)
            continue
        name = re.sub(r"_(ms|ns)$", "", RENAMED.get(field.name, field.name))
        kind, read = _converted(api, struct, field)
        if key in OPTIONAL:
            value = read if kind in ("f32", "u32", "u64") else f"raw.{field.name}"
            then = "" if value == read else f".map({read.partition('(')[0]})"
            kind, read = f"Option<{kind}>", f"some({value}, {OPTIONAL[key]}){then}"
        yield Member(name, kind, read, sentence(key, field.brief))


def _flags(api: Api, field: Field) -> Iterable[Member]:
    """Each flag as a bool."""
    flags = api.flags(field)
    if not flags:
        raise KeyError(f"flags: the comment {field.brief!r} names no constants")
    for flag in flags:
        name = re.sub("^GCX_[A-Z]+_", "", flag.name).lower()
        read = f"raw.flags & sys::{flag.name} != 0"
        yield Member(name, "bool", read, sentence(flag.name, flag.brief))


def _converted(api: Api, struct: Struct, field: Field) -> tuple[str, str]:
    """The type and expression of a field in Rust."""
    raw = f"raw.{field.name}"
    if field.kind == "enum":
        return _enum_name(field.base), f"{raw}.into()"
    if field.kind == "struct":
        if field.base != "gcx_resource":
            raise KeyError(f"{struct.name}.{field.name}: no rule for a {field.base}")
        return "SmResource", f"SmResource::from_raw({raw})?"
    if field.kind == "text":
        foreign = struct.name.startswith(FOREIGN)
        return ("OsString", f"bytes(&{raw})") if foreign else ("String", f"string(&{raw})")
    if field.elements is not None and field.base == "uint64_t":  # bit sets
        return "Vec<u32>", f"numbers(&{raw})"
    if field.members_of is not None:
        enum = _enum_name(field.members_of)
        return f"Vec<{enum}>", f"members({enum}::ALL, &{raw})"
    if field.elements is not None:
        return f"[{_number(field.base)}; {field.elements}]", raw
    if api.is_boolean(field):
        return "bool", f"{raw} != 0"
    if field.name.endswith("version"):
        return "(u32, u32)", f"version({raw})"
    if field.name.endswith("_ms"):
        return "SystemTime", f"time({raw})"
    if field.name.endswith("_ns"):
        return "Duration", f"Duration::from_nanos({raw})"
    if field.name in ("device", "pid"):
        return "u32", f"{raw}.unsigned_abs()"
    return _number(field.base), raw


def _number(base: str) -> str:
    if base in ("float", "double"):
        return {"float": "f32", "double": "f64"}[base]
    return re.sub(r"^(u?)int(\d+)_t$", lambda found: (found[1] or "i") + found[2], base)
