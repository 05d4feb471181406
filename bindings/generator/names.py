"""The names of C in messages, and what Python and Java have instead."""

from __future__ import annotations

from bindings.generator.api import Api
from bindings.generator.text import NOTICE, render, texts

PYTHON = "bindings/python/gcx/generated/names.py"
JAVA = "bindings/java/generated/java/gcx/CNames.java"
NAMES = {name: text.rsplit(" | ", 1) for name, text in texts("names.txt")["names"].items()}
IN_PYTHON = {name: here for name, (here, _) in NAMES.items() if here != "-"}
IN_JAVA = {name: here for name, (_, here) in NAMES.items() if here != "-"}

TITLE = "What Python has in place of the names of C in messages."
CLASS = """
// $notice
package gcx;

import static java.util.Map.entry;

import java.util.Map;

/** What this package has in place of the names of C in messages. */
final class CNames {
  static final Map<String, String> HERE =
      Map.ofEntries(
          $entries);

  private CNames() {}
}
"""


def files(api: Api) -> dict[str, str]:
    values = [value for enum in api.enums for value in enum.values]
    known = {function.name for function in api.functions}
    known |= {constant.name for constant in (*api.constants, *values)}
    if unknown := set(NAMES) - known:
        raise KeyError(f"texts/names.txt: gcx.h has no {unknown}")
    table = [f'    "{name}": {_quoted(here)},' for name, here in IN_PYTHON.items()]
    entries = ",\n          ".join(f'entry("{name}", "{here}")' for name, here in IN_JAVA.items())
    return {
        PYTHON: "\n".join([f"# {NOTICE}", f'"""{TITLE}"""', "", "NAMES = {", *table, "}", ""]),
        JAVA: "\n".join([*render(CLASS, notice=NOTICE, entries=entries), ""]),
    }


def _quoted(text: str) -> str:
    """The text as the formatter of Python quotes it."""
    return f"'{text}'" if '"' in text else f'"{text}"'
