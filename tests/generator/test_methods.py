"""The methods that the generator writes for Rust, Java and Go."""

from __future__ import annotations

import dataclasses

import pytest

from bindings.generator import methods, names
from bindings.generator.api import Api, Function, Parameter, load

API = load()
LEASE = Parameter(name="lease", type="gcx_lease", kind="handle", base="gcx_lease", direction="in")


def with_function(*parameters: Parameter) -> Api:
    """The API with a function gcx_lease_measure of a lease."""
    result = API.function["gcx_lease_query"].result
    extra = Function("gcx_lease_measure", "leases", "", "", (LEASE, *parameters), result)
    return dataclasses.replace(API, functions=(*API.functions, extra))


def test_function_of_a_handle_is_a_method_of_each_language(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Returns a number. Fails with [`NoDevice`](crate::ErrorKind) without one."
    monkeypatch.setitem(methods.DOCS, "gcx_lease_measure", text)
    monkeypatch.setitem(names.IN_JAVA, "gcx_lease_measure", "Lease.measured")
    number = Parameter(
        name="number", type="uint32_t*", kind="integer", base="uint32_t", direction="out"
    )
    files = methods.files(with_function(number))
    assert "    pub fn measure(&self) -> Result<u32> {" in files[methods.RUST]
    java = files[f"{methods.JAVA}/LeaseMethods.java"]
    assert "  public int measured() {\n    return Functions.gcx_lease_measure(self());" in java
    assert "{@return a number} Throws {@link GcxException.NoDevice} without one." in java
    go = files[methods.GO]
    assert "// Measure returns a number. Fails with raw.ErrorNoDevice without one.\n" in go
    assert "func (lease Lease) Measure() (uint32, error) {" in go


def test_function_without_a_rule_or_documentation_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(methods.DOCS, "gcx_lease_measure", "Measures.")
    with pytest.raises(KeyError, match=r"gcx\.h has no"):
        methods.files(API)
    text = Parameter(name="text", type="char*", kind="string", base="char", direction="in")
    with pytest.raises(KeyError, match="has no rule"):
        methods.files(with_function(text))
