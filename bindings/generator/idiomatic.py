"""The page that lists for each language the functions that only its raw layer has."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bindings.generator import methods
from bindings.generator.api import ROOT, Api
from bindings.generator.text import NOTICE

PAGE = "docs/generated/raw-only.md"


@dataclass(frozen=True)
class Layer:
    """The idiomatic layer of a language: handwritten files that call the raw one, and methods that
    are generated."""

    raw: str  # the raw layer's name
    files: str  # a pattern below the root
    call: str  # matches a call; its group is the function's name without gcx_
    also: frozenset[str] = frozenset()  # functions of generated methods, and those called in C


METHODS = frozenset(methods.DOCS)
LAYERS = {
    "C++": Layer("`gcx::raw`", "include/gcx/*.hpp", r"\b(?:raw::|gcx_)(\w+)"),
    "Go": Layer("`gcx.Raw`", "bindings/go/*.go", r"\bRaw\.(\w+)", METHODS),
    "Java": Layer(
        "`gcx.Raw`",
        "bindings/java/src/main/java/gcx/*.java",
        r"\b(?:Functions|Natives)(?:\.|::)gcx_(\w+)",
        METHODS | {"gcx_result_name"},
    ),
    "Python": Layer(
        "`gcx.raw`",
        "bindings/python/gcx/*.py",
        r"\b_gcx\.gcx_(\w+)",
        frozenset({"gcx_log_set_callback"}),
    ),
    "Rust": Layer("`gcx_sys`", "bindings/rust/gcx/src/*.rs", r"\bsys::gcx_(\w+)", METHODS),
}


def reached(layer: Layer) -> set[str]:
    """Returns what the idiomatic layer calls, in one spelling for all languages."""
    names = {spelled(name) for name in layer.also}
    paths = sorted(ROOT.glob(layer.files))
    if not paths:
        raise FileNotFoundError(f"{layer.files}: there is no such file")
    for path in paths:
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text("utf-8"), flags=re.DOTALL)
        names |= {spelled(name) for name in re.findall(layer.call, code)}
    return names


def spelled(name: str) -> str:
    """gcx_lease_get_info and LeaseGetInfo: leasegetinfo."""
    return name.removeprefix("gcx_").replace("_", "").lower()


def files(api: Api) -> dict[str, str]:
    lines = [
        f"<!-- {NOTICE} -->",
        "# Functions that only the raw layer has",
        "",
        "Each raw layer has every function of gcx.h. These have no idiomatic method:",
        "",
        "| language | raw layer | functions without an idiomatic method |",
        "| --- | --- | --- |",
    ]
    for language, layer in LAYERS.items():
        # Owners of handles destroy them.
        called = reached(layer) | {spelled(handle.destroy) for handle in api.handles}
        lacking = [f"`{f.name}`" for f in api.functions if spelled(f.name) not in called]
        lines.append(f"| {language} | {layer.raw} | {', '.join(lacking) or 'none'} |")
    lines += ["", "Node.js, Lua and ctypes have only the raw layer.", ""]
    return {PAGE: "\n".join(lines)}
