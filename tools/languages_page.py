"""Makes docs/reference/languages.md: one scenario in each language, from programs that tests run.

python tools/languages_page.py [--check]

What the page shows lies between comment lines [scenario] and [/scenario] of a program. A language
is on the page as soon as its program is there.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "languages.md"


@dataclass(frozen=True)
class Language:
    name: str
    fence: str  # the word behind the ``` for its colours
    source: str
    how: str  # what one links or opens, in a line or two


LANGUAGES = (
    Language("C", "c", "examples/scenario.c", "Links libgcx. [c.md](c.md)"),
    Language("C++", "cpp", "examples/scenario.cpp", "Header-only, over C. [cpp.md](cpp.md)"),
    Language(
        "Python",
        "python",
        "examples/python/scenario.py",
        "The package `gcx`. [python.md](python.md)",
    ),
    Language(
        "Java",
        "java",
        "examples/java/Scenario.java",
        "One jar, for JDK 17 and newer. [java.md](java.md)",
    ),
    Language(
        "Rust",
        "rust",
        "bindings/rust/gcx/examples/scenario.rs",
        "The crate `gcx`. [rust.md](rust.md)",
    ),
    Language(
        "Go",
        "go",
        "examples/go/main.go",
        "The package [bindings/go](../../bindings/go), without cgo: it opens libgcx by dlopen, "
        "through purego.\n[other-languages.md](other-languages.md)",
    ),
    Language(
        "Node.js",
        "js",
        "examples/node/scenario.mjs",
        "By dlopen: [bindings/node](../../bindings/node) declares all of gcx.h for koffi.\n"
        "[other-languages.md](other-languages.md)",
    ),
)
START = """\
# The same in each language

Two partitions of device 0, of 108 and of 24 SMs; a context and a stream of each; a kernel in each
stream shows which SMs it runs on, and that none is in both; a count that the device doesn't have is
an error that says why; everything is given back. A partition's stream is what the rest of a program
launches its kernels in.

What stands here is the code of programs that the tests run, in
{names}. They print, on an H100 or on its simulation (`GCX_DRIVER=sim:h100@13.0`):

    partition 0 runs on 108 SMs: 6 7 8 9 10 11 12 13 14 15 22 23 24 ...
    partition 1 runs on 24 SMs: 0 1 2 3 4 5 16 17 18 19 20 21 32 33 34 35 36 37 48 49 50 51 52 53
    no SM is in both
    140 SMs: ...: asked for 140 SMs, in whole atoms of 8 that is 144; device 0 has 132

This page is written by `python tools/languages_page.py`. For others there is
[dlopen](other-languages.md).
"""


def scenario(source: Path) -> str:
    """The marked part of a program."""
    lines = source.read_text(encoding="utf-8").splitlines()
    marks = {}
    for mark in ("[scenario]", "[/scenario]"):
        found = [
            i
            for i, line in enumerate(lines)
            if re.fullmatch(rf"\s*\W*\s*{re.escape(mark)}\W*", line)
        ]
        if len(found) != 1:
            sys.exit(f"{source.relative_to(ROOT)}: has {len(found)} comment lines {mark}, not one")
        marks[mark] = found[0]
    part = lines[marks["[scenario]"] + 1 : marks["[/scenario]"]]
    if not any(line.strip() for line in part):
        sys.exit(f"{source.relative_to(ROOT)}: there is nothing between [scenario] and [/scenario]")
    return textwrap.dedent("\n".join(part)).strip("\n")


def page() -> str:
    there = [language for language in LANGUAGES if (ROOT / language.source).exists()]
    *most, last = [language.name for language in there]
    sections = [START.format(names=f"{', '.join(most)} and {last}")]
    for language in there:
        source = language.source
        sections.append(
            f"## {language.name}\n\n{language.how}\n\nThe program: [{source}](../../{source})\n\n"
            f"```{language.fence}\n{scenario(ROOT / source)}\n```\n"
        )
    return "\n".join(sections)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the page is another")
    arguments = parser.parse_args()
    text = page()
    if not arguments.check:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        sys.exit(f"{PAGE.name} is not what the programs are: run python tools/languages_page.py")


if __name__ == "__main__":
    main()
