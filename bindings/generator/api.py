"""docs/generated/gcx-api.json as objects: what every language's module of the generator reads.

docs/reference/gcx-api.md says what the keys mean; attributes have the same names.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

ROOT = Path(__file__).resolve().parents[2]
DESCRIPTION = ROOT / "docs" / "generated" / "gcx-api.json"

Json = dict[str, Any]
Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class Type:
    """The common part of parameters, fields and results."""

    type: str  # as C writes it
    kind: str
    base: str
    pointer: bool = False
    nullable: bool = False
    ownership: str | None = None
    lifetime: str | None = None

    @property
    def is_const(self) -> bool:
        return self.type.startswith("const ")


@dataclass(frozen=True, kw_only=True)
class Parameter(Type):
    name: str
    direction: str  # "in", "out", "inout"
    elements: str | None = None  # the parameter that has the array's length
    written: str | None = None  # the parameter that receives how many were written
    destroy: str | None = None


@dataclass(frozen=True, kw_only=True)
class Field(Type):
    name: str
    brief: str
    offset: int
    size: int
    elements: int | None = None  # of an array

    @property
    def members_of(self) -> str | None:
        """The enum of which the array has a 1 at the number of each value that is a member."""
        found = re.match(r"by (gcx_\w+); 1: ", self.brief)
        return found[1] if found else None


@dataclass(frozen=True)
class Function:
    name: str
    group: str
    brief: str
    doc: str
    parameters: tuple[Parameter, ...]
    result: Type
    answers: tuple[str, ...] = ()  # results other than GCX_SUCCESS that are no failure


@dataclass(frozen=True)
class Struct:
    name: str
    group: str
    brief: str
    doc: str
    size: int
    align: int
    struct_size: bool  # whether it begins with that field
    fields: tuple[Field, ...]
    init: str | None = None

    @property
    def own_fields(self) -> tuple[Field, ...]:
        """The fields without struct_size and reserved ones."""
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

    @property
    def prefix(self) -> str:
        """What the names of all values begin with: GCX_LOG_."""
        common = os.path.commonprefix([value.name for value in self.values])
        return common[: common.rindex("_") + 1]


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
    def booleans(self) -> set[str]:
        """The names of fields that are 1 or 0, as some comment says."""
        fields = [field for struct in self.structs for field in struct.own_fields]
        return {field.name for field in fields if re.match("[01]: ", field.brief)}

    def is_boolean(self, field: Field) -> bool:
        """Whether it is 1 or 0. A count may have the same name, but is longer."""
        is_said = re.match("[01]: ", field.brief) is not None
        return is_said or (field.size == 4 and field.name in self.booleans)

    @cached_property
    def records(self) -> tuple[Struct, ...]:
        """The structs that functions fill in, one or a list, except resources."""
        filled = {
            parameter.base
            for function in self.functions
            for parameter in function.parameters
            if parameter.kind == "struct" and parameter.direction != "in"
        }
        structs = (struct for struct in self.structs if struct.name != "gcx_resource")
        return tuple(struct for struct in structs if struct.name in filled)

    def flags(self, field: Field) -> list[Constant]:
        """The flags in a field. Its comment names one of them, or what their names begin with."""
        prefix = re.match(r"GCX_[A-Z]+_", field.brief) if field.name == "flags" else None
        return [one for one in self.constants if prefix and one.name.startswith(prefix[0])]

    @cached_property
    def function(self) -> dict[str, Function]:
        return {function.name: function for function in self.functions}


def load(path: Path = DESCRIPTION) -> Api:
    """The description. A key that it lacks is a TypeError, unless the attribute has a default."""
    described = json.loads(path.read_text(encoding="utf-8"))
    return _made(Api, {**described, **described["library"]})


def _made(cls: type[Made], entry: Json) -> Made:
    """An object of the class, with the entry's values of its attributes."""
    hints = get_type_hints(cls)
    return cls(**{name: _value(hint, entry[name]) for name, hint in hints.items() if name in entry})


def _value(hint: Any, value: Any) -> Any:
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], item) for item in value)
    return _made(hint, value) if is_dataclass(hint) and isinstance(hint, type) else value
