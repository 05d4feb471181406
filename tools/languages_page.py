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
    Language(
        "Python",
        "python",
        "examples/python/scenario.py",
        "The package `gcx`. [python.md](python.md)",
    ),
)
START = """\
# The same in each language

Each program splits device 0 into partitions of 108 and 24 SMs, creates a context and a stream for
each, shows with a kernel which SMs they run on, and catches the error of an impossible count. The
tests run the programs. They print, on an H100 or on a simulated one
(`GCX_DRIVER=sim:h100@13.0`):

    partition 0 runs on 108 SMs: 6 7 8 9 10 11 12 13 14 15 22 23 24 ...
    partition 1 runs on 24 SMs: 0 1 2 3 4 5 16 17 18 19 20 21 32 33 34 35 36 37 48 49 50 51 52 53
    no SM is in both
    140 SMs: ...: requested 140 SMs, in whole atoms of 8 that is 144; device 0 has 132

The same programs: [C++](../../examples/scenario.cpp), [Java](../../examples/java/Scenario.java),
[Rust](../../bindings/rust/gcx/examples/scenario.rs), [Go](../../examples/go/main.go),
[Node.js](../../examples/node/scenario.mjs), [LuaJIT](../../examples/lua/scenario.lua). Each
language's own page begins with its shortest form: [C++](cpp.md), [Java](java.md), [Rust](rust.md),
[others](other-languages.md). `python tools/languages_page.py` writes this page.
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
    sections = [START]
    for language in there:
        source = language.source
        sections.append(
            f"## {language.name}\n\n{language.how}\nThe program: [{source}](../../{source})\n\n"
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
