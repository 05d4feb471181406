"""What the generator writes for Rust and C++."""

from __future__ import annotations

import dataclasses

import pytest

from bindings.generator import cpp, docs, rust
from bindings.generator.api import Api, Enum, Value, load

API = load()


def infos(api: Api) -> str:
    return rust.files(api)[f"{rust.FOLDER}/infos.rs"]


def with_field(**changes: object) -> Api:
    """The API whose gcx_lease_info has one more field."""
    field = dataclasses.replace(
        API.struct["gcx_lease_info"].fields[-2],
        **{"name": "new", **changes},  # type: ignore[arg-type]
    )
    structs = tuple(
        dataclasses.replace(struct, fields=(*struct.fields, field))
        if struct.name == "gcx_lease_info"
        else struct
        for struct in API.structs
    )
    return dataclasses.replace(API, structs=structs)


def test_rust_fields() -> None:
    text = infos(with_field(type="uint64_t", base="uint64_t", brief="what is new"))
    assert "    /// What is new.\n    pub new: u64,\n" in text
    assert "            new: raw.new,\n" in text
    assert "new: bool," in infos(with_field(brief="1: it is new"))
    assert "pub new: (u32, u32)," not in text
    version = infos(with_field(name="new_version", brief="of what is new: 13000 is 13.0"))
    assert "new_version: version(raw.new_version)," in version


def test_rust_refuses_what_it_has_no_rule_for() -> None:
    with pytest.raises(KeyError, match="no rule"):
        infos(with_field(kind="struct", base="gcx_sm_request", brief="new"))
    with pytest.raises(KeyError, match="names no constants"):
        infos(with_field(name="flags", brief="anything"))


def test_rust_leaves_structs_with_pointers_out() -> None:
    """A safe conversion must not read where they point."""
    names = {struct.name for struct in rust.infos(API)}
    assert "gcx_lease_info" in names
    assert not names & {"gcx_kernel_params", "gcx_resource", "gcx_lease_params"}


def test_rust_enums() -> None:
    values = (Value("GCX_NEW_ONE", 0, "the first"), Value("GCX_NEW_OTHER_ONE", 1, "the other"))
    api = dataclasses.replace(API, enums=(*API.enums, Enum("gcx_new", "", "New.", "", values)))
    text = rust.files(api)[f"{rust.FOLDER}/enums.rs"]
    assert (
        "pub enum New {\n    /// The first.\n    One,\n    /// The other.\n    OtherOne,\n}" in text
    )
    assert "sys::GCX_NEW_OTHER_ONE => Self::OtherOne,\n            _ => Self::One," in text


def test_cpp_functions() -> None:
    raw = cpp.files(API)["include/gcx/generated/raw.hpp"]
    for expected in (
        "inline gcx_lease_info lease_get_info(gcx_lease lease) {",
        "gcx_lease_info info = GCX_LEASE_INFO_INIT;",
        "inline bool stream_query(gcx_stream stream) {",
        "inline std::vector<gcx_live_lease> lease_list(int32_t device) {",
        "return detail::listed<uint32_t>(list, GCX_MAX_SMS);",
        "inline void lease_release(gcx_lease lease) {",
    ):
        assert expected in raw
    assert max(len(line) for line in raw.splitlines()) <= 100


def test_cpp_constants() -> None:
    text = cpp.files(API)["include/gcx/generated/constants.hpp"]
    assert "inline constexpr gcx_sm_family fine = GCX_SM_FAMILY_FINE;" in text
    assert "    private_ = GCX_CONTEXT_PRIVATE," in text
    assert "GCX_VERSION" not in text


def test_names_of_structs_are_those_of_the_description() -> None:
    """An entry in a table whose name is gone says nothing."""
    fields = {f"{s.name}.{f.name}" for s in API.structs for f in s.fields}
    names = {f.name for s in API.structs for f in s.fields}
    named: set[str] = {struct.name for struct in API.structs} | names | fields
    named |= {value.name for enum in API.enums for value in enum.values}
    named |= {enum.name for enum in API.enums} | {constant.name for constant in API.constants}
    tables = (docs.DOCS, rust.OPTIONAL, rust.UNKNOWN, rust.NO_ENUMS, rust.NO_INFOS)
    for table in (*tables, rust.RENAMED, rust.ENUM_NAMES, cpp.NAMES, cpp.NAMESPACES):
        assert set(table) <= named
