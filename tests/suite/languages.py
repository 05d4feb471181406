"""The part that compares the languages with the C API, as docs/gcx-api.json describes it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.abi.record import compile_problems
from tests.suite.builds import MAIN, build_main
from tests.suite.runner import ROOT, Suite

API = ROOT / "docs" / "gcx-api.json"
BINDINGS = ROOT / "bindings"
Json = dict[str, Any]


@dataclass(frozen=True)
class Language:
    """What a language reaches of gcx.h. A binding adds its row to LANGUAGES."""

    folder: str | None  # of bindings/, if it has one
    reached: Callable[[], set[str]]  # the names of gcx.h that it has
    # Names that it does without, each with the reason; a name that ends in * stands for all that
    # begin so.
    without: Mapping[str, str] = field(default_factory=dict)
    # The functions that its idiomatic layer calls, where that is not all that it has.
    idiomatic: Callable[[], set[str]] | None = None


def words(*files: str) -> set[str]:
    """The names of gcx.h in the code of files, comments aside. A pattern must find one."""
    found = set()
    for pattern in files:
        paths = sorted(ROOT.glob(pattern))
        if not paths:
            raise FileNotFoundError(f"{pattern}: there is no such file")
        for path in paths:
            text = path.read_text(encoding="utf-8")
            code = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
            found |= set(re.findall(r"\b(?:gcx|GCX)_\w+", code))
    return found


def called(pattern: str, files: str) -> set[str]:
    """The functions of gcx.h that files call, by a pattern whose group is the name."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob(files))]
    return {name for text in texts for name in re.findall(pattern, text)}


LANGUAGES = {
    "C++": Language(
        None,
        lambda: words("include/gcx.hpp", "include/gcx/**/*.hpp"),
        {
            "GCX_ERROR_*": "gcx.hpp includes gcx.h, whose names gcx::error::result() has",
            "GCX_VERSION_*": "macros of gcx.h, which gcx.hpp includes",
            "GCX_VERSION": "as above; gcx::version() is the library's",
            "GCX_STREAM_BLOCKING": "green contexts have no such streams, and gcx refuses it",
        },
    ),
    "Python": Language(
        "python",
        # What is declared for type checkers, of gcx.raw.
        lambda: words("bindings/python/gcx/_gcx.pyi", "bindings/python/gcx/generated/*.pyi"),
        {"gcx_log_set_callback": "the SWIG layer calls it, for the logger gcx"},
        lambda: (
            called(r"\b_gcx\.(gcx_\w+)", "bindings/python/gcx/*.py")
            | called(r"return (gcx_\w+)\(", "bindings/python/generated/inputs.h")
        ),
    ),
    "Java": Language(
        "java",
        lambda: words("bindings/java/generated/java/gcx/Raw.java"),
        {
            "gcx_cache_prepare": "gcx.Cache.prepare",
            "gcx_log_set_callback": "gcx.Gcx.setLog",
        },
        lambda: called(
            r"\b(?:Functions|Natives)(?:\.|::)(gcx_\w+)", "bindings/java/src/main/java/gcx/*.java"
        ),
    ),
    # bindgen makes all of it; the rust part compares with the header, and builds gcx on it.
    "Rust": Language("rust", lambda: words("bindings/rust/gcx-sys/src/generated/bindings.rs")),
}
# Folders of bindings/ that are no language, and languages of which tests/generator asks that they
# declare everything.
SHARED = {"swig", "generator", "go", "node", "lua", "ctypes"}


def names_of(api: Json) -> list[str]:
    names = [entry["name"] for entry in api["functions"] + api["constants"]]
    return names + [value["name"] for enum in api["enums"] for value in enum["values"]]


def missing(language: Language, names: list[str]) -> list[str]:
    """What is wrong with a language's row."""
    reached = language.reached()
    wrong = []
    for name in names:
        if name not in reached and not any(covers(key, name) for key in language.without):
            wrong.append(f"{name} isn't reached, and no reason is listed")
    for key in language.without:
        covered = [name for name in names if covers(key, name)]
        if not covered:
            wrong.append(f"{key} is listed as not reached, but gcx.h has no such name")
        elif all(name in reached for name in covered):
            wrong.append(f"{key} is listed as not reached, but it is")
    return wrong


def covers(key: str, name: str) -> bool:
    return name.startswith(key[:-1]) if key.endswith("*") else name == key


def compare_layout(suite: Suite, api: Json) -> None:
    for compiler in ("g++", "aarch64-linux-gnu-g++"):
        problems = compile_problems(api, ROOT / "include", [compiler])
        for problem in problems:
            suite.say(f"{compiler}: {problem}")
        suite.count(f"the API's description is what {compiler} sees", not problems)


def header_is_described(suite: Suite) -> None:
    suite.run(
        "the API's description is that of gcx.h",
        [sys.executable, ROOT / "tools" / "describe_api.py", "--check"],
    )


def overhead(suite: Suite) -> None:
    """C++ costs nothing over C. docs/cpp.md has the figures; here others use the machine too."""
    program = MAIN / "tests" / "cpp" / "cpp-overhead"
    simulation = str(MAIN / "src" / "sim" / "libgcx-sim.so")
    if build_main(suite):
        suite.run("C++ over C", [program, "1.25"], {"GCX_SIM_LIBRARY": simulation})


def part_languages(suite: Suite) -> None:
    """The API's description, the generator, whether languages have all, what C++ costs over C."""
    header_is_described(suite)
    written: list[str | Path] = [sys.executable, "-m", "bindings.generator", "--check"]
    suite.run("the generated files follow from the API's description", written)
    suite.pytest("generator", ROOT / "tests" / "generator", {})
    api = json.loads(API.read_text(encoding="utf-8"))
    compare_layout(suite, api)
    names = names_of(api)
    suite.count("the description has functions and constants", len(names) > 200)
    for name, language in LANGUAGES.items():
        wrong = missing(language, names)
        for line in wrong:
            suite.say(f"{name}: {line}")
        suite.count(f"{name} has every function and constant", not wrong)
        if language.idiomatic is not None:
            functions = [entry["name"] for entry in api["functions"]]
            reached = language.idiomatic() | language.without.keys()
            only_raw = [function for function in functions if function not in reached]
            suite.say(f"{name}: without an idiomatic method: {', '.join(only_raw) or 'none'}")
    folders = {path.name for path in BINDINGS.iterdir() if path.is_dir()} - SHARED
    for folder in sorted(folders - {language.folder for language in LANGUAGES.values()}):
        suite.say(f"bindings/{folder} has no row in LANGUAGES of tests/suite/languages.py")
        suite.count(f"{folder} has a row", False)
    overhead(suite)
