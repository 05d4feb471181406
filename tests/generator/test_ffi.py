"""What the generator writes for Go, Node.js, Lua and ctypes."""

from __future__ import annotations

import dataclasses

import pytest

from bindings.generator import ctypes, go, lua, node
from bindings.generator.api import Api, Parameter, load

WRITERS = {"ctypes": ctypes.files, "Go": go.files, "Lua": lua.files, "Node.js": node.files}
API = load()


def texts(language: str, api: Api = API) -> str:
    return "\n".join(WRITERS[language](api).values())


@pytest.mark.parametrize("language", WRITERS)
def test_everything_is_declared(language: str) -> None:
    text = texts(language)
    names = [value.name for enum in API.enums for value in enum.values]
    names += [function.name for function in API.functions]
    names += [struct.name for struct in API.structs] + [constant.name for constant in API.constants]
    for name in names:
        # Go has the C names of functions and results only.
        assert name in text or (language == "Go" and f"\t{go.exported(name)} " in text), name


@pytest.mark.parametrize(
    ("language", "line"),
    [
        (
            "ctypes",
            '{"lease": gcx_lease, "sm_count": c_uint32, "type": POINTER(c_uint32)},',
        ),
        (
            "Go",
            "LeasePause func(lease Lease, smCount uint32, type_ *uint32) Result"
            ' `c:"gcx_lease_pause"`',
        ),
        ("Lua", "gcx_result gcx_lease_pause(gcx_lease lease, uint32_t sm_count, uint32_t* type);"),
        (
            "Node.js",
            'gcx_lease_pause: ["int32_t", '
            '{ lease: gcx_lease, sm_count: "uint32_t", type: out("uint32_t") }],',
        ),
    ],
)
def test_new_function_is_declared(language: str, line: str) -> None:
    """A function that is added to the description appears everywhere."""
    query = API.function["gcx_lease_query"]
    (lease,) = query.parameters
    flags = API.function["gcx_lease_resize"].parameters[2]
    parameters: tuple[Parameter, ...] = (
        dataclasses.replace(lease, name="lease"),
        dataclasses.replace(flags, name="sm_count"),
        # Go has a keyword of this name.
        dataclasses.replace(flags, name="type", type="uint32_t*", pointer=True, direction="out"),
    )
    pause = dataclasses.replace(
        query, name="gcx_lease_pause", brief="Stops.", doc="Stops.", parameters=parameters
    )
    assert line not in texts(language)
    more = texts(language, dataclasses.replace(API, functions=(*API.functions, pause)))
    assert line in more
    assert "Stops." in more


@pytest.mark.parametrize("language", WRITERS)
def test_new_field_and_value_are_declared(language: str) -> None:
    info = API.struct["gcx_lease_info"]
    field = dataclasses.replace(info.fields[1], name="paused", offset=info.size, size=4)
    grown = dataclasses.replace(info, size=info.size + 8, fields=(*info.fields, field))
    enum = API.enum["gcx_log_level"]
    value = dataclasses.replace(enum.values[0], name="GCX_LOG_TRACE", value=5)
    api = dataclasses.replace(
        API,
        structs=tuple(grown if of is info else of for of in API.structs),
        enums=tuple(
            dataclasses.replace(of, values=(*of.values, value)) if of is enum else of
            for of in API.enums
        ),
    )
    more = texts(language, api)
    for name, spelled in (("paused", "Paused"), ("GCX_LOG_TRACE", "LogTrace")):
        assert (spelled if language == "Go" else name) in more
