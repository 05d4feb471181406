"""What the generator writes for SWIG, Python and Java follows the description."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bindings.generator import java, python, swig
from bindings.generator.api import Api, Field, Function, Parameter, Struct, Type, load

RESULT = Type(type="gcx_result", kind="enum", base="gcx_result")


def parameter(name: str, type_: str, kind: str, base: str, direction: str) -> Parameter:
    return Parameter(
        type=type_,
        kind=kind,
        base=base,
        pointer=type_.endswith("*"),
        name=name,
        direction=direction,
    )


def field(name: str, type_: str, kind: str, base: str, brief: str, size: int = 4) -> Field:
    return Field(type=type_, kind=kind, base=base, name=name, brief=brief, offset=0, size=size)


@pytest.fixture
def api() -> Api:
    """The header's, with a struct gcx_weather and a function that fills it in."""
    described = load()
    struct = Struct(
        name="gcx_weather",
        group="Weather",
        brief="The weather.",
        doc="The weather.",
        size=24,
        align=8,
        struct_size=True,
        init="GCX_WEATHER_INIT",
        fields=(
            field("struct_size", "uint32_t", "integer", "uint32_t", ""),
            field("rains", "int32_t", "integer", "int32_t", "1: it rains"),
            field("drops", "uint64_t", "integer", "uint64_t", "how many fell", 8),
        ),
    )
    function = Function(
        name="gcx_weather_get",
        group="Weather",
        brief="Tells the weather.",
        doc="Tells the weather.",
        parameters=(
            parameter("device", "int32_t", "integer", "int32_t", "in"),
            parameter("weather", "gcx_weather*", "struct", "gcx_weather", "inout"),
        ),
        result=RESULT,
        answers=(),
    )
    return replace(
        described,
        structs=(*described.structs, struct),
        functions=(*described.functions, function),
    )


def test_a_new_function_and_struct_reach_swig(api: Api) -> None:
    files = swig.files(api)
    assert "UNSIGNED((from)->drops)" in files["bindings/swig/generated/fields.h"]
    functions = files["bindings/swig/generated/functions.i"]
    assert "gcx_result gcx_weather_get(int32_t device, gcx_weather* weather);" in functions
    assert "RECORD(gcx_weather)\n" in functions


def test_a_new_function_and_struct_reach_python(api: Api) -> None:
    files = python.files(api)
    stub = files["bindings/python/gcx/generated/functions.pyi"]
    assert "def gcx_weather_get(device: int, /) -> _Weather:" in stub
    assert "_Weather: TypeAlias = tuple[int, int]" in stub
    module = files["bindings/python/generated/module.i"]
    assert "Returns (rains, drops)." in module


def test_a_new_function_and_struct_reach_java(api: Api) -> None:
    files = java.files(api)
    record = files["bindings/java/generated/java/gcx/Weather.java"]
    assert "@param drops how many fell" in record
    assert "    boolean rains,\n    long drops" in record
    raw = files["bindings/java/generated/java/gcx/Raw.java"]
    assert "public static Weather gcx_weather_get(int device) {" in raw
    upcalls = files["bindings/java/generated/upcalls.h"]
    assert 'X(gcx_weather, "weather", "(JJ)Lgcx/Weather;")' in upcalls
    types = files["bindings/java/generated/types.i"]
    assert "AS(jobject, Weather, gcx_result gcx_weather_get)" in types


def test_parameters_are_flattened_in_the_header_s_order() -> None:
    called = {call.name: call for call in swig.calls(load())}
    names = [item.name for item in called["gcx_graph_set_kernel"].inputs]
    assert names[:6] == ["graph", "node", "shared_bytes", "grid_x", "grid_y", "grid_z"]
    assert names[-1] == "arguments"


def test_what_has_no_rule_is_an_error(api: Api) -> None:
    odd = replace(
        api.functions[-1],
        parameters=(parameter("odd", "void*", "user_data", "void", "in"),),
    )
    with pytest.raises(ValueError, match=r"gcx_weather_get: .* has no rule for the parameter odd"):
        swig.calls(replace(api, functions=(*api.functions, odd)))
