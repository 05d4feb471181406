"""Which exception stands for which results, in the languages that have a class for each kind."""

from __future__ import annotations

from dataclasses import dataclass

from bindings.generator.api import Api
from bindings.generator.text import texts


@dataclass(frozen=True)
class Kind:
    """A kind of errors: Python's class without the word Error, Java's in GcxException."""

    name: str
    results: list[str]  # without GCX_ERROR_, its own first
    doc: str

    def codes(self, api: Api) -> list[int]:
        values = {value.name: value.value for value in api.enum["gcx_result"].values}
        return [values[f"GCX_ERROR_{result}"] for result in self.results]


def _kinds(section: str) -> tuple[Kind, ...]:
    rows = {name: row.split(" | ") for name, row in texts("errors.txt")[section].items()}
    return tuple(Kind(name, listed.split(), doc) for name, (listed, doc) in rows.items())


KINDS = _kinds("kinds")
ONLY_RUST = _kinds("rust")
