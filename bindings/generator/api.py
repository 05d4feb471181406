"""docs/gcx-api.json as objects: what every language's module of the generator reads.

docs/gcx-api.md says what the keys mean; attributes have the same names.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DESCRIPTION = ROOT / "docs" / "gcx-api.json"

Json = dict[str, Any]


@dataclass(frozen=True)
class Type:
    """What parameters, fields and results have in common."""

    type: str  # as C writes it
    kind: str
    base: str
    pointer: bool
    nullable: bool
    ownership: str | None
    lifetime: str | None

    @property
    def is_const(self) -> bool:
        return self.type.startswith("const ")


@dataclass(frozen=True)
class Parameter(Type):
    name: str
    direction: str  # "in", "out", "inout"
    elements: str | None  # the parameter that has the array's length
    written: str | None  # the parameter that receives how many were written
    destroy: str | None


@dataclass(frozen=True)
class Field(Type):
    name: str
    brief: str
    offset: int
    size: int
    elements: int | None  # of an array


@dataclass(frozen=True)
class Function:
    name: str
    group: str
    brief: str
    doc: str
    parameters: tuple[Parameter, ...]
    result: Type
    answers: tuple[str, ...]  # results that are no failure, beside GCX_SUCCESS


@dataclass(frozen=True)
class Struct:
    name: str
    group: str
    brief: str
    doc: str
    size: int
    align: int
    struct_size: bool  # it begins with that
    init: str | None
    fields: tuple[Field, ...]

    @property
    def own_fields(self) -> tuple[Field, ...]:
        """The fields that mean something to a caller: neither struct_size nor reserved ones."""
        return tuple(
            field for field in self.fields if field.name not in ("struct_size", "reserved")
        )


@dataclass(frozen=True)
class Value:
    name: str
    value: int
    brief: str


@dataclass(frozen=True)
class Enum:
    name: str
    group: str
    brief: str
    doc: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Constant(Value):
    group: str
    type: str


@dataclass(frozen=True)
class Handle:
    name: str
    group: str
    destroy: str


@dataclass(frozen=True)
class Callback:
    name: str
    brief: str
    doc: str
    parameters: tuple[Parameter, ...]
    result: Type


@dataclass(frozen=True)
class Native:
    name: str  # CUDA's opaque struct
    cuda: str  # CUDA's name of a pointer to it


@dataclass(frozen=True)
class Api:
    soname: str
    version: str
    groups: tuple[str, ...]
    functions: tuple[Function, ...]
    structs: tuple[Struct, ...]
    enums: tuple[Enum, ...]
    constants: tuple[Constant, ...]
    handles: tuple[Handle, ...]
    callbacks: tuple[Callback, ...]
    natives: tuple[Native, ...]

    @cached_property
    def struct(self) -> dict[str, Struct]:
        return {struct.name: struct for struct in self.structs}

    @cached_property
    def enum(self) -> dict[str, Enum]:
        return {enum.name: enum for enum in self.enums}

    @cached_property
    def function(self) -> dict[str, Function]:
        return {function.name: function for function in self.functions}


def load(path: Path = DESCRIPTION) -> Api:
    """The description. A key that it lacks where it must have one is a KeyError."""
    described = json.loads(path.read_text(encoding="utf-8"))
    library = described["library"]
    return Api(
        soname=library["soname"],
        version=library["version"],
        groups=tuple(described["groups"]),
        functions=tuple(_function(entry) for entry in described["functions"]),
        structs=tuple(_struct(entry) for entry in described["structs"]),
        enums=tuple(
            Enum(**_named(entry), values=tuple(_value(value) for value in entry["values"]))
            for entry in described["enums"]
        ),
        constants=tuple(
            Constant(
                name=entry["name"],
                value=entry["value"],
                brief=entry["brief"],
                group=entry["group"],
                type=entry["type"],
            )
            for entry in described["constants"]
        ),
        handles=tuple(Handle(**entry) for entry in described["handles"]),
        callbacks=tuple(
            Callback(
                name=entry["name"],
                brief=entry["brief"],
                doc=entry["doc"],
                parameters=_parameters(entry),
                result=Type(**_type(entry["result"])),
            )
            for entry in described["callbacks"]
        ),
        natives=tuple(Native(**entry) for entry in described["natives"]),
    )


def _named(entry: Json) -> Json:
    return {key: entry[key] for key in ("name", "group", "brief", "doc")}


def _type(entry: Json) -> Json:
    return {
        "type": entry["type"],
        "kind": entry["kind"],
        "base": entry["base"],
        "pointer": entry.get("pointer", False),
        "nullable": entry.get("nullable", False),
        "ownership": entry.get("ownership"),
        "lifetime": entry.get("lifetime"),
    }


def _parameters(entry: Json) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(
            **_type(parameter),
            name=parameter["name"],
            direction=parameter["direction"],
            elements=parameter.get("elements"),
            written=parameter.get("written"),
            destroy=parameter.get("destroy"),
        )
        for parameter in entry["parameters"]
    )


def _function(entry: Json) -> Function:
    return Function(
        **_named(entry),
        parameters=_parameters(entry),
        result=Type(**_type(entry["result"])),
        answers=tuple(entry.get("answers", ())),
    )


def _value(entry: Json) -> Value:
    return Value(name=entry["name"], value=entry["value"], brief=entry["brief"])


def _struct(entry: Json) -> Struct:
    fields = tuple(
        Field(
            **_type(field),
            name=field["name"],
            brief=field["brief"],
            offset=field["offset"],
            size=field["size"],
            elements=field.get("elements"),
        )
        for field in entry["fields"]
    )
    return Struct(
        **_named(entry),
        size=entry["size"],
        align=entry["align"],
        struct_size=entry["struct_size"],
        init=entry.get("init"),
        fields=fields,
    )
