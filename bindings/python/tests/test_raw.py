"""The generated layer, the Python names in messages, and several interpreters in a process."""

from __future__ import annotations

import pickle
import re
import sys
from typing import Any

import gcx
import pytest
from gcx import _error, raw
from gcx.generated.names import NAMES


def test_raw_layer_documents_every_function() -> None:
    functions = [name for name in raw.__all__ if name.startswith("gcx_")]
    assert len(functions) > 80
    for name in functions:
        if name != "gcx_cache_prepare":
            assert getattr(raw, name).__doc__.strip().startswith(f"{name}(")


def test_raw_layer_creates_and_destroys_a_context() -> None:
    everything = raw.gcx_device_get_resource(0, raw.GCX_RESOURCE_SM)
    (part,), _ = raw.gcx_sm_split(everything, [16], raw.GCX_SPLIT_DEFAULT)
    context = raw.gcx_context_create([part], 0, raw.Handle())
    assert raw.gcx_context_get_info(context.value)[1] == 16
    context.destroy()
    assert context.value == 0
    with pytest.raises(gcx.InvalidHandleError):
        raw.gcx_context_get_info(context.value)


def test_error_has_code_name_and_message(sms: gcx.SMResource) -> None:
    with pytest.raises(gcx.ResourceConfigurationError, match=r"140.*132") as caught:
        sms.split([140])
    error = caught.value
    assert (error.code, error.name) == (915, "GCX_ERROR_INVALID_RESOURCE_CONFIGURATION")
    assert "140" in error.message
    assert "SMResource.split" in str(error)
    assert pickle.loads(pickle.dumps(error)).message == error.message


def test_names_in_messages_exist() -> None:
    for name, here in NAMES.items():
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


def test_public_names_are_in_gcx() -> None:
    for name in gcx.__all__:
        what = getattr(gcx, name)
        if isinstance(what, type) or callable(what):
            assert getattr(what, "__module__", "typing") in ("gcx", "typing"), name
    assert repr(gcx.SMResource) == "<class 'gcx.SMResource'>"


INTERPRETERS = """
import {module} as interpreters
import gcx

def refused():
    try:
        gcx.split([1000])
    except gcx.ResourceConfigurationError as error:
        assert type(error).__module__ == "gcx" and "1000" in str(error)
        return True

OTHER = '''
import gcx, logging
logging.getLogger("gcx").setLevel(10)
for call in (lambda: gcx.split([2000]), lambda: gcx.acquire(200)):
    try:
        call()
    except gcx.ResourceConfigurationError as error:
        assert "200" in str(error)
    else:
        raise SystemExit("no error")
with gcx.split([8]):
    pass
with gcx.acquire(100) as lease:
    try:
        gcx.acquire(64, timeout=0.01)
    except TimeoutError:
        pass
    else:
        raise SystemExit("no error")
'''
assert refused()
for _ in range(3):
    other = interpreters.create({arguments})
    answer = interpreters.{run}(other, OTHER)
    assert answer is None, answer
    assert refused()
    interpreters.destroy(other)
    assert refused()
print("fine")
"""
MODULE = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
RUN = "exec" if sys.version_info >= (3, 13) else "run_string"


def test_interpreters_have_their_own_exceptions(script: Any) -> None:
    arguments = "isolated=False" if sys.version_info >= (3, 12) else ""
    if sys.version_info >= (3, 13):
        arguments = "'legacy'"
    code = INTERPRETERS.format(module=MODULE, run=RUN, arguments=arguments)
    assert script(code) == "fine\n"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="all interpreters share a GIL before 3.12")
def test_interpreter_with_its_own_gil_is_refused(script: Any) -> None:
    code = f"""
import {MODULE} as interpreters
other = interpreters.create()
try:
    print(interpreters.{RUN}(other, "import gcx"))
except Exception as error:
    print(error)
interpreters.destroy(other)
"""
    assert "subinterpreters" in script(code)
