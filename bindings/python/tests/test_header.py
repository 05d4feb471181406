"""The generated layer, and the names that messages have for it."""

from __future__ import annotations

import re

import gcx
import pytest
from gcx import _error, raw


def test_the_raw_layer_has_and_documents_every_function() -> None:
    functions = [name for name in raw.__all__ if name.startswith("gcx_")]
    assert len(functions) > 100
    for name in functions:
        if name != "gcx_cache_prepare":
            assert getattr(raw, name).__doc__.strip().startswith(f"{name}(")


def test_the_raw_layer_makes_a_context() -> None:
    everything = raw.gcx_device_get_resource(0, raw.GCX_RESOURCE_SM)
    (part,), _ = raw.gcx_sm_split(everything, [16], raw.GCX_SPLIT_DEFAULT)
    context = raw.gcx_context_create([part], 0, raw.Handle())
    assert raw.gcx_context_get_info(context.value)[1] == 16
    context.destroy()
    assert context.value == 0
    with pytest.raises(gcx.InvalidHandleError):
        raw.gcx_context_get_info(context.value)


def test_names_in_messages_are_those_of_the_package() -> None:
    for name, here in _error._PYTHON_NAMES.items():
        assert hasattr(raw, name) or name == "gcx_log_set_callback", name
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
