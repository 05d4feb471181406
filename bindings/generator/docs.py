"""The documentation of structs, fields, enums and values in languages with types of their own."""

from __future__ import annotations

import re

from bindings.generator.text import texts

DOCS = texts("docs.txt")["docs"]
# Comments of the header that are in terms of C, or that continue the line above.
IN_C = re.compile(r".*\b(gcx_|GCX_|cu[A-Z]|bit n)|as (in|above|the process)|the same|of |[01]: ")
LINK = re.compile(r"\[`(\w+)::(\w+)`\](?:\([^)]*\))?")


def sentence(key: str, brief: str) -> str:
    """The documentation of a name, in Markdown: that of DOCS, or the header's as a sentence."""
    name = key.rpartition(".")[2]
    brief = brief.removeprefix("milliseconds since 1970 ")
    text = DOCS.get(key) or ("" if IN_C.match(brief) else brief) or DOCS.get(name, brief)
    text = re.sub("^1: ", "true: ", text) or name.replace("_", " ")
    text = re.sub(r"(?<![`\w])(\w+_\w*|cu[A-Z]\w+|CU\w*[a-z]\w*)(?![`\w])", r"`\1`", text)
    return text[0].upper() + text[1:].removesuffix(".") + "."
