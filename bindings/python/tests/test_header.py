"""Every function of gcx.h can be reached from Python, and is named by what reaches it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import gcx
import pytest
from gcx import _error, _gcx

PACKAGE = Path(gcx.__file__).parent
HEADER = (PACKAGE / "include" / "gcx.h").read_text(encoding="utf-8")
FUNCTIONS = set(re.findall(r"^GCX_API [^;]*?\b(gcx_\w+)\(", HEADER, re.MULTILINE))
DESCRIBED = json.loads(
    (Path(__file__).resolve().parents[3] / "docs" / "gcx-api.json").read_text(encoding="utf-8")
)
EXCEPTIONS = {
    **dict.fromkeys(
        (
            *("gcx_cancel_destroy", "gcx_context_destroy", "gcx_event_destroy"),
            *("gcx_graph_destroy", "gcx_hold_destroy", "gcx_lease_release", "gcx_stream_destroy"),
        ),
        "owner.h calls it, for what is closed or collected",
    ),
    "gcx_log_set_callback": "the SWIG layer calls it, for the logger gcx",
    "gcx_simulator_path": "gcx.open_driver finds the simulation, and the command runs others on it",
}


def used() -> set[str]:
    """The functions that the package calls."""
    sources = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.glob("*.py"))
    return set(re.findall(r"\b_gcx\.(gcx_\w+)", sources))


def test_each_function_is_reached() -> None:
    assert len(FUNCTIONS) > 50
    assert used() <= FUNCTIONS
    assert FUNCTIONS - used() == EXCEPTIONS.keys()
    assert all(hasattr(_gcx, name) for name in used())


def test_each_function_is_declared_for_type_checkers() -> None:
    stub = (PACKAGE / "_gcx.pyi").read_text(encoding="utf-8")
    declared = set(re.findall(r"^def (gcx_\w+)", stub, re.MULTILINE))
    assert declared >= used()
    assert declared <= FUNCTIONS
    for name in re.findall(r"^(GCX_\w+):", stub, re.MULTILINE):
        assert isinstance(getattr(_gcx, name), int)


def test_each_constant_has_the_header_s_value() -> None:
    constants = [value for enum in DESCRIBED["enums"] for value in enum["values"]]
    constants += DESCRIBED["constants"]
    assert len(constants) > 100
    for constant in constants:
        assert getattr(_gcx, constant["name"]) == constant["value"], constant["name"]


def test_rest_is_the_header_s_word() -> None:
    assert _gcx.GCX_REST == 0xFFFFFFFF


def test_each_function_has_a_name_for_messages() -> None:
    names = _error._PYTHON_NAMES
    assert {name for name in names if name.startswith("gcx_")} == FUNCTIONS
    for name, here in names.items():
        assert name.startswith("gcx_") or hasattr(_gcx, name), name
        for path in re.findall(r"\b[A-Z]\w+\.\w+|\bgcx\.\w+", here):
            found = gcx
            for part in path.removeprefix("gcx.").split("."):
                assert hasattr(found, part) or path in ("Error.message",), f"{name}: {path}"
                found = getattr(found, part, found)


def test_messages_are_translated_by_whole_names() -> None:
    text = "gcx_context_native_green: use gcx_context_native, or gcx_no_such with GCX_SPLIT_EXACT"
    assert _error.in_python(text) == (
        "Context.native_green: use Context.native, or gcx_no_such with exact=True"
    )


def test_a_bad_string_is_told_in_words() -> None:
    with pytest.raises(ValueError, match="null"):
        gcx.open_driver("sim:\0")
    with pytest.raises(TypeError, match="a driver is named by a string or None, not bytes"):
        gcx.open_driver(b"sim:h100")  # type: ignore[arg-type]
    with pytest.raises(gcx.DriverAlreadyOpenError):
        gcx.open_driver("\udcff")


def test_public_names_say_where_they_are_to_be_found() -> None:
    for name in gcx.__all__:
        what = getattr(gcx, name)
        if isinstance(what, type) or callable(what):
            assert getattr(what, "__module__", "typing") in ("gcx", "typing"), name
    assert repr(gcx.SMResource) == "<class 'gcx.SMResource'>"
