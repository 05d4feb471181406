"""What all records have: fields as values of JSON, and pickling."""

from __future__ import annotations

from typing import Any


def json_of(record: Any) -> dict[str, Any]:
    """Returns the fields of a named tuple as values for json.dumps."""
    return {name: _json_value(value) for name, value in record._asdict().items()}


def _json_value(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    return [_json_value(item) for item in value] if isinstance(value, tuple) else value


def reduced(record: Any) -> tuple[Any, ...]:
    """Returns for pickle what makes a record again whose last field is an SMResource."""
    *fields, resource = record
    return _made_again, (type(record), fields, type(resource), *resource._pickled())


def _made_again(kind: Any, fields: list[Any], resource: Any, value: bytes, info: Any) -> Any:
    return kind(*fields, resource._unpickled(value, info))
