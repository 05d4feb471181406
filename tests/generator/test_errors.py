"""The kinds of errors, which Python, Java and Rust share."""

from __future__ import annotations

import re

from bindings.generator import rust
from bindings.generator.api import load
from bindings.generator.errors import KINDS

OWN = 10000  # The first result that CUDA does not have.


def test_own_results_have_an_exception_each() -> None:
    api = load()
    own = [value.value for value in api.enum["gcx_result"].values if value.value >= OWN]
    codes = [code for kind in KINDS for code in kind.codes(api)]
    assert own
    assert [code for code in codes if code >= OWN] == own
    assert len(codes) == len(set(codes)), "two exceptions have one result"
    kinds = rust.files(api)[f"{rust.FOLDER}/error_kind.rs"]
    for kind in KINDS:
        if kind.codes(api)[0] >= OWN:
            (result,) = kind.results
            assert re.search(rf"::GCX_ERROR_{result} => Self::{kind.name},", kinds), kind
