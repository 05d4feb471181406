"""Rust: the enums, the kinds of errors and the information structs of the crate gcx.

bindgen makes gcx-sys, the raw layer. What the functions of C fill in becomes a struct of Rust's own
types here, with a conversion from gcx-sys's struct.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from bindings.generator.api import ROOT, Api, Enum, Field, Struct
from bindings.generator.text import NOTICE, pascal, wrapped

BINDINGS = "bindings/rust/gcx-sys/src/generated/bindings.rs"
FOLDER = "bindings/rust/gcx/src/generated"

# Enums that the crate has other means for.
NO_ENUMS = {"gcx_result", "gcx_resource_type", "gcx_stream_sync"}
ENUM_NAMES = {"gcx_sm_family": "Family", "gcx_graph_node_kind": "NodeKind"}
# Values that are none in Rust; a capability's count becomes the length of ALL.
NO_VALUES = {"GCX_SM_FAMILY_NONE", "GCX_LOG_NONE", "GCX_CAPABILITY_COUNT"}
# What stands for a value that a newer library may have, if it isn't the first.
UNKNOWN = {
    "gcx_sm_family": "Foreign",
    "gcx_queue_source": "Environment",
    "gcx_log_level": "Debug",
    "gcx_graph_node_kind": "Other",
}
# Structs that classes written by hand wrap.
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
    "gcx_mps_info.thread_percentage": "0.0",
    "gcx_reservation_info.mps_thread_percentage": "0.0",
    "gcx_live_reservation.mps_thread_percentage": "0.0",
}
# Numbers that say yes or no, whatever their comment.
BOOLS = {"simulated", "certain", "waits"}
# Text that other processes wrote: any bytes.
FOREIGN = ("gcx_published_", "gcx_reservation_", "gcx_live_reservation")
RENAMED = {"waits": "waiting", "resource": "sms"}

IN_C = re.compile(r".*\b(gcx_|GCX_|cu[A-Z])|as (in|above)|the same|of |[01]: ")
ALL_FREE = "How many SMs it has, or requested if it waits; `None` of that is all that are free."

# The documentation of what the header names without a comment, or with one in terms of C: by the
# names of struct and field, or of the field alone.
DOCS = {
    "gcx_context_info": "Information about a context.",
    "gcx_stream_info": "Information about a stream.",
    "gcx_kernel_fit": "How much of a kernel fits a stream's SMs at once.",
    "gcx_cache_stats": "Counters of green contexts since the driver was opened.",
    "gcx_cache_trimmed": "What a trim destroyed, and what it left.",
    "gcx_lease_info": "Information about a lease.",
    "gcx_live_lease": "A lease of this process, or a request that waits for one.",
    "gcx_reservation_info": "Information about a reservation.",
    "gcx_mps_info": "Information about MPS on a device.",
    "gcx_queue_info": "Information about the hardware's queues.",
    "gcx_graph_info": "Information about a graph.",
    "gcx_driver_info": "Information about the open driver.",
    "gcx_context_info.id": "Equal for two contexts exactly if they share a green context.",
    "gcx_context_info.stream_count": "Live streams of the green context, by whichever context.",
    "gcx_live_context.id": "[`ContextInfo::id`].",
    "gcx_live_context.handle_count": "Contexts that stand for it.",
    "gcx_stream_info.context_id": "[`ContextInfo::id`]; `None` if gcx did not make the context.",
    "gcx_stream_info.priority": "Lower is more urgent.",
    "gcx_kernel_fit.max_clusters": "Clusters that run at once; 0 without clusters.",
    "gcx_cache_stats.limit": "How many green contexts without a context or stream a device keeps.",
    "gcx_cache_stats.in_use": "Green contexts with a context or stream.",
    "gcx_cache_stats.kept": "Green contexts without.",
    "gcx_cache_stats.evicted": "Green contexts destroyed by the limit and by a trim.",
    "gcx_cache_stats.lost": "Green contexts that a reset of the device destroyed.",
    "gcx_cache_stats.prepared": "Of those made, the ones made ahead of time.",
    "gcx_cache_stats.making_ns": "The time that the driver took to make them, in all.",
    "gcx_cache_stats.longest_making_ns": "The time of the one that took longest.",
    "gcx_cache_stats.kept_streams": "Released streams that all contexts keep.",
    "gcx_cache_trimmed.contexts": "Green contexts that were destroyed.",
    "gcx_cache_trimmed.streams": "Released streams that were destroyed.",
    "gcx_cache_trimmed.contexts_left": "Contexts beyond the limit that a graph capture keeps.",
    "gcx_cache_trimmed.streams_left": "Released streams that still work or capture a graph.",
    "gcx_lease_info.changes": "How often its SMs have changed.",
    "gcx_live_lease.id": "[`LeaseInfo::id`].",
    "gcx_published_process.simulated": "Whether the simulated driver is used, without a GPU.",
    "gcx_published_process.unlisted_count": "Leases beyond the 512 that are listed.",
    "gcx_published_lease.process": "[`PublishedProcess::process`].",
    "gcx_published_lease.id": "[`LeaseInfo::id`] in that process.",
    "gcx_published_lease.device": "The device's ordinal in that process.",
    "gcx_published_lease.exclusive_atoms": "The numbers of its exclusive atoms, ascending.",
    "gcx_published_lease.shared_atoms": "The numbers of the atoms that it may share, ascending.",
    "gcx_live_reservation.until_ms": "When a waiting request times out; `None` if it never does.",
    "gcx_live_reservation.parent": "The id of the reservation that it is a part of, which may have "
    "ended.",
    "gcx_queue_info.connections": "The connections that CUDA has, or would have if it started now; "
    "`None` if the variable holds anything else than 1 to 32.",
    "gcx_queue_info.source": "Where that number comes from.",
    "gcx_queue_info.started": "Whether CUDA has started in the process, so that the number stays.",
    "gcx_queue_info.certain": "False if CUDA started before gcx looked and the process changed the "
    "variable.",
    "gcx_queue_info.too_few": "Whether there is one connection: all partitions wait as soon as one "
    "stream does.",
    "gcx_mps_info.thread_percentage": "`CUDA_MPS_ACTIVE_THREAD_PERCENTAGE`, the process's limit: "
    "more than 0, at most 100. `None` if it isn't set or holds something else.",
    "gcx_graph_info.max_executables": "The most executables that are kept.",
    "gcx_graph_info.executables": "Executables that are kept now.",
    "gcx_graph_info.launches": "Launches since it was created.",
    "gcx_graph_info.evicted": "Executables destroyed because of `max_executables`.",
    "gcx_driver_info.version": "Major and minor: (13, 0) is CUDA 13.0.",
    "gcx_driver_info.header_version": "The version of the cuda.h that gcx was built with.",
    "gcx_driver_info.simulated": "Whether it is the simulated driver, without a GPU.",
    "gcx_driver_info.library": "The file that was opened.",
    "atom_count": "Atoms of the family on the device.",
    "atoms": "The numbers of its atoms, ascending.",
    "device": "The ordinal of its device.",
    "device_count": "Its devices.",
    "device_name": "The device's name.",
    "device_sm_count": "SMs of the device.",
    "device_uuid": "The 16 bytes of the device's UUID.",
    "driver_version": "Major and minor: (13, 0) is CUDA 13.0.",
    "exclusive_sm_count": "Of these, its exclusive ones.",
    "family": "How its SMs are taken.",
    "joined": "Whether it was joined.",
    "lease_count": "Its leases.",
    "lost": "Whether its file was removed, so that others may be given its SMs.",
    "mps": "MPS, as the process saw it that took the reservation.",
    "mps_thread_percentage": "[`MpsInfo::thread_percentage`] of that process.",
    "name": "Its name; empty if it was given none.",
    "part_count": "How many parts it has.",
    "pid": "The id of the process, as it sees itself; other containers may not.",
    "process_name": "The process's name.",
    "resource": "Its SMs.",
    "simulated": "Whether it is on the simulated driver.",
    "sm_count": "How many SMs it has.",
    "stream_count": "Its live streams.",
    "waits": "Whether it has nothing yet, and waits.",
    "GCX_CONTEXT_PRIVATE": "Whether it is shared with no others.",
    "GCX_GRAPH_NODE_PRIORITIES": "Whether kernels run with the priorities of their capture.",
    "GCX_RESERVATION_INHERIT": "Whether child processes inherit it.",
    "GCX_LEASE_REQUIRE_WORKQUEUES": "Whether it requires queues of its own.",
    "GCX_LEASE_SHARED": "Whether others that are shared may have its SMs too.",
    "gcx_sm_family": "How the SMs of a split are taken, with different promises of the driver.",
    "GCX_SM_FAMILY_COSCHEDULED": "The default: groups that run thread block clusters of up to 8.",
    "GCX_SM_FAMILY_FINE": "Any even count; clusters of up to 2.",
    "GCX_SM_FAMILY_MAX_CLUSTER": "Groups for large clusters, on compute capability 9.0 and newer.",
    "GCX_SM_FAMILY_STRUCTURED": "The groups of one split with more in its requests than counts, on "
    "drivers of CUDA 13.1 and newer. They can't be split further.",
    "GCX_SM_FAMILY_FOREIGN": "Counts alone, of a stream whose context gcx did not make.",
    "gcx_workqueue_scope": "How contexts share the device's workqueues.",
    "gcx_log_level": "The severity of a message.",
    "gcx_capability": "A feature that depends on the driver's version.",
    "GCX_CAPABILITY_CONTEXT_ID": "13.0: ids of green contexts.",
    "GCX_CAPABILITY_STRUCTURED_SPLIT": "13.1: more in a request than a count.",
    "GCX_CAPABILITY_LOCALITY_DOMAINS": "13.4: locality domains.",
    "GCX_MPS_OFF": "Processes take turns on the whole device.",
    "GCX_MPS_ON": "Partitions of two processes run concurrently.",
    "GCX_GRAPH_NODE_KERNEL": "Runs a kernel.",
    "GCX_GRAPH_NODE_MEMCPY": "Copies memory.",
    "GCX_GRAPH_NODE_MEMSET": "Sets memory.",
    "GCX_GRAPH_NODE_HOST": "Calls a function on the host.",
    "GCX_GRAPH_NODE_GRAPH": "Contains a child graph.",
    "GCX_GRAPH_NODE_EMPTY": "Does nothing; orders others.",
    "GCX_GRAPH_NODE_WAIT_EVENT": "Waits for an event.",
    "GCX_GRAPH_NODE_EVENT_RECORD": "Records an event.",
    "GCX_GRAPH_NODE_SEMAPHORE_SIGNAL": "Signals an external semaphore.",
    "GCX_GRAPH_NODE_SEMAPHORE_WAIT": "Waits for an external semaphore.",
}

# Kinds of errors: what each means, and its results if they aren't those of its name.
KINDS: dict[str, tuple[str, str]] = {
    "InvalidValue": ("A value that makes no sense: a count of 0, no requests, unknown flags.", ""),
    "OutOfMemory": ("Memory of the host or of the device is exhausted.", ""),
    "NotInitialized": ("CUDA can't be used in this process: it is the child of a fork.", ""),
    "NoDevice": ("The driver has no device, or not that of a reservation.", ""),
    "InvalidDevice": ("There is no device of this number.", ""),
    "InvalidContext": ("The context to be popped isn't the current one.", ""),
    "AlreadyAcquired": (
        "Others hold the SMs of a lease or reservation, or wait for them; or another driver is "
        "open.",
        "",
    ),
    "ContextInUse": ("The context is current.", "CONTEXT_ALREADY_IN_USE"),
    "FileNotFound": ("The simulated driver or libgcx-counts.so is missing.", ""),
    "DriverNotFound": (
        "There is no driver library, or gcx's own can't be loaded.",
        "SHARED_OBJECT_INIT_FAILED",
    ),
    "InvalidHandle": ("It isn't one of gcx's, or is of another device.", ""),
    "NotFound": ("There is no such thing, or a reservation has ended.", ""),
    "NotReady": ("It isn't known or not finished yet.", ""),
    "Launch": (
        "A kernel failed, or could not be launched.",
        "ILLEGAL_ADDRESS LAUNCH_OUT_OF_RESOURCES LAUNCH_TIMEOUT ASSERT HARDWARE_STACK_ERROR "
        "ILLEGAL_INSTRUCTION MISALIGNED_ADDRESS INVALID_ADDRESS_SPACE INVALID_PC LAUNCH_FAILED",
    ),
    "ContextDestroyed": (
        "The device was reset, and what was on it is gone; or a stream's lease is gone.",
        "CONTEXT_IS_DESTROYED",
    ),
    "NotPermitted": (
        "It can't be called here, or now; or it was cancelled; or the folder of published leases "
        "or reservations belongs to another user.",
        "",
    ),
    "NotSupported": ("The driver is too old; the message names the version that has it.", ""),
    "Capture": (
        "Something takes part in a graph capture.",
        "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED STREAM_CAPTURE_MERGE "
        "STREAM_CAPTURE_UNMATCHED STREAM_CAPTURE_UNJOINED STREAM_CAPTURE_ISOLATION "
        "STREAM_CAPTURE_IMPLICIT CAPTURED_EVENT STREAM_CAPTURE_WRONG_THREAD",
    ),
    "InvalidResourceType": ("It isn't a resource of the kind that is needed.", ""),
    "InvalidResourceConfiguration": (
        "Groups don't fit, or resources overlap, or are of two devices or families.",
        "",
    ),
    "CooperativeTooLarge": (
        "A cooperative launch has more blocks than the SMs hold at once.",
        "COOPERATIVE_LAUNCH_TOO_LARGE",
    ),
    "GraphUpdate": (
        "The nodes of a graph, or their order, differ from those that it has.",
        "GRAPH_EXEC_UPDATE_FAILURE",
    ),
    "OperatingSystem": ("A file can't be made or read; the message has the system's reason.", ""),
}


def generate(api: Api) -> dict[str, str]:
    files = {"enums": _enums(api), "error_kind": _error_kind(api), "infos": _infos(api)}
    mods = "".join(f"mod {name};\n" for name in files)
    uses = "".join(f"pub use {name}::*;\n" for name in files)
    written = {f"{FOLDER}/{name}.rs": _head() + text for name, text in files.items()}
    return {
        # bindgen's: its own test compares it with the header.
        BINDINGS: (ROOT / BINDINGS).read_text(encoding="utf-8"),
        f"{FOLDER}/mod.rs": _head() + mods + "\n" + uses,
        **written,
    }


def _head() -> str:
    return f"// {NOTICE}\n\n"


def _doc(text: str, indent: str = "") -> list[str]:
    return wrapped(text, f"{indent}/// ")


def _sentence(key: str, brief: str) -> str:
    """The documentation of a name: that of DOCS, else the header's as a sentence."""
    name = key.rpartition(".")[2]
    text = DOCS.get(key) or ("" if IN_C.match(brief) else brief) or DOCS.get(name, brief)
    text = re.sub("^1: ", "true: ", text) or name.replace("_", " ")
    text = re.sub(r"(?<![`\w])(\w+_\w*|cu[A-Z]\w+|CU\w*[a-z]\w*)(?![`\w])", r"`\1`", text)
    return text[0].upper() + text[1:].removesuffix(".") + "."


def _derives(*more: str) -> str:
    return f"#[derive({', '.join(sorted({'Clone', 'Debug', 'PartialEq', *more}))})]"


def _prefix(enum: Enum) -> str:
    common = os.path.commonprefix([value.name for value in enum.values])
    return common[: common.rindex("_") + 1]


def _enum_name(name: str) -> str:
    return ENUM_NAMES.get(name, pascal(name))


def _enums(api: Api) -> str:
    lines = ["use crate::sys;"]
    for enum in api.enums:
        if enum.name not in NO_ENUMS:
            lines += ["", *_enum(enum)]
    return "\n".join(lines) + "\n"


def _enum(enum: Enum) -> list[str]:
    name, prefix = _enum_name(enum.name), _prefix(enum)
    rows = [
        (pascal(value.name.removeprefix(prefix)), value)
        for value in enum.values
        if value.name not in NO_VALUES
    ]
    unknown = UNKNOWN.get(enum.name, rows[0][0])
    lines = _doc(_sentence(enum.name, enum.brief))
    lines += [_derives("Copy", "Eq", "Hash", "Ord", "PartialOrd"), "#[non_exhaustive]"]
    lines += [f"pub enum {name} {{"]
    for variant, value in rows:
        lines += [*_doc(_sentence(value.name, value.brief), "    "), f"    {variant},"]
    if unknown == "Other":
        lines += ["    /// Any other value, with its number.", "    Other(u32),"]
    lines += ["}"]
    if any(value.name == f"{prefix}COUNT" for value in enum.values):
        lines += ["", f"impl {name} {{", "    /// All of them."]
        lines += [f"    pub const ALL: [{name}; {len(rows)}] = ["]
        lines += [f"        Self::{variant}," for variant, _ in rows] + ["    ];", "}"]
    lines += ["", f"impl From<sys::{enum.name}> for {name} {{"]
    lines += [f"    fn from(value: sys::{enum.name}) -> Self {{", "        match value {"]
    lines += [
        f"            sys::{value.name} => Self::{variant},"
        for variant, value in rows
        if variant != unknown
    ]
    other = "other => Self::Other(other.0)" if unknown == "Other" else f"_ => Self::{unknown}"
    lines += [f"            {other},", "        }", "    }", "}"]
    lines += ["", f"impl From<{name}> for sys::{enum.name} {{"]
    lines += [f"    fn from(value: {name}) -> Self {{", "        match value {"]
    lines += [f"            {name}::{variant} => sys::{value.name}," for variant, value in rows]
    if unknown == "Other":
        lines += [f"            {name}::Other(number) => Self(number),"]
    return [*lines, "        }", "    }", "}"]


def _error_kind(api: Api) -> str:
    known = {value.name for value in api.enum["gcx_result"].values}
    lines = ["use crate::sys;", ""]
    lines += ["/// What a program may want to distinguish of an [`Error`](crate::Error)'s result."]
    lines += [_derives("Copy", "Eq", "Hash"), "#[non_exhaustive]", "pub enum ErrorKind {"]
    arms: list[str] = []
    for kind, (doc, listed) in KINDS.items():
        lines += [*_doc(doc, "    "), f"    {kind},"]
        own = re.sub(r"(?<!^)(?=[A-Z])", "_", kind).upper()
        results = [f"GCX_ERROR_{result}" for result in listed.split() or [own]]
        if missing := set(results) - known:
            raise KeyError(f"{kind}: no results {missing}")
        alternatives = "\n            | ".join(f"sys::{result}" for result in results)
        arms += [f"            {alternatives} => Self::{kind},"]
    lines += ["    /// Any other result.", "    Other,", "}", ""]
    lines += ["impl From<sys::gcx_result> for ErrorKind {"]
    lines += ["    fn from(result: sys::gcx_result) -> Self {", "        match result {", *arms]
    lines += ["            _ => Self::Other,", "        }", "    }", "}"]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Member:
    """A field of a struct in Rust, and how it is read of C's struct `raw`."""

    name: str
    type: str
    read: str
    doc: str


def infos(api: Api) -> list[Struct]:
    """The structs that functions fill in, but for those with pointers, which no conversion can
    trust, and those that are wrapped."""
    filled = {
        parameter.base
        for function in api.functions
        for parameter in function.parameters
        if parameter.kind == "struct" and parameter.direction in ("out", "inout")
    }
    return [
        struct
        for struct in api.structs
        if struct.name in filled - NO_INFOS
        and struct.own_fields[0].name != "opaque"
        and not any(field.pointer or field.kind == "string" for field in struct.fields)
    ]


def _infos(api: Api) -> str:
    structs = [(struct, list(_members(api, struct))) for struct in infos(api)]
    text = "\n".join("\n".join(_info(struct, members)) for struct, members in structs)
    words = set(re.findall(r"\w+", text))
    uses = ["use std::ffi::OsString;"] if "OsString" in words else []
    times = [name for name in ("Duration", "SystemTime") if name in words]
    uses += ["use std::time::{" + ", ".join(times) + "};", ""]
    helpers = [name for name in ("bytes", "numbers", "some", "string", "time", "version")
               if f"{name}(" in text]  # fmt: skip
    uses += ["use crate::convert::{" + ", ".join(helpers) + "};"]
    uses += ["use crate::error::{Error, Result};", "use crate::resource::SmResource;"]
    enums = sorted(_enum_name(enum.name) for enum in api.enums if enum.name not in NO_ENUMS)
    uses += ["use crate::sys;"]
    uses += ["", "use super::{" + ", ".join(name for name in enums if name in words) + "};"]
    return "\n".join(uses) + "\n\n" + text


def _info(struct: Struct, members: list[Member]) -> list[str]:
    name = pascal(struct.name)
    types = " ".join(member.type for member in members)
    derives = [] if "f32" in types else ["Eq", "Hash"]
    if not re.search(r"Vec|String", types):
        derives += ["Copy"]
    lines = _doc(_sentence(struct.name, struct.brief))
    lines += [_derives(*derives), "#[non_exhaustive]"]
    if sum(member.type == "bool" for member in members) > 3:
        lines += ["#[allow(clippy::struct_excessive_bools)]"]
    lines += [f"pub struct {name} {{"]
    for member in members:
        lines += [*_doc(member.doc, "    "), f"    pub {member.name}: {member.type},"]
    lines += ["}", ""]
    fields = [f"            {member.name}: {member.read}," for member in members]
    if "SmResource" in types:  # which C reads, and may refuse
        lines += [f"impl TryFrom<&sys::{struct.name}> for {name} {{", "    type Error = Error;", ""]
        lines += [f"    fn try_from(raw: &sys::{struct.name}) -> Result<Self> {{"]
        lines += ["        Ok(Self {"]
        return [*lines, *fields, "        })", "    }", "}", ""]
    lines += [f"impl From<&sys::{struct.name}> for {name} {{"]
    lines += [f"    fn from(raw: &sys::{struct.name}) -> Self {{", "        Self {"]
    return [*lines, *fields, "        }", "    }", "}", ""]


def _members(api: Api, struct: Struct) -> Iterable[Member]:
    for field in struct.own_fields:
        key = f"{struct.name}.{field.name}"
        if field.name == "flags":
            yield from _flags(api, field)
            continue
        name = re.sub(r"_(ms|ns)$", "", RENAMED.get(field.name, field.name))
        kind, read = _converted(struct, field)
        if key in OPTIONAL:
            value = read if kind in ("f32", "u32", "u64") else f"raw.{field.name}"
            then = "" if value == read else f".map({read.partition('(')[0]})"
            kind, read = f"Option<{kind}>", f"some({value}, {OPTIONAL[key]}){then}"
        brief = field.brief.removeprefix("milliseconds since 1970 ")
        of_rest = OPTIONAL.get(key) == "sys::GCX_REST"
        yield Member(name, kind, read, ALL_FREE if of_rest else _sentence(key, brief))


def _flags(api: Api, field: Field) -> Iterable[Member]:
    """Each flag as a bool. The comment names the prefix of the constants."""
    found = re.match(r"GCX_[A-Z]+_", field.brief)
    if found is None:
        raise KeyError(f"flags: the comment {field.brief!r} names no constants")
    for constant in api.constants:
        if constant.name.startswith(found[0]):
            name = constant.name.removeprefix(found[0]).lower()
            read = f"raw.flags & sys::{constant.name} != 0"
            yield Member(name, "bool", read, _sentence(constant.name, constant.brief))


def _converted(struct: Struct, field: Field) -> tuple[str, str]:
    """Type and expression of a field in Rust."""
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
    if field.elements is not None:
        return f"[{_number(field.base)}; {field.elements}]", raw
    if field.name in BOOLS or field.brief.startswith("1: "):
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
