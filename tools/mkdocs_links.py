"""For mkdocs: links that leave docs/ point to the repository, where the site has no page."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = "https://example.org/gcx/blob/main/"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    folder = posixpath.dirname("docs/" + page.file.src_uri)

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match.group(1)))
        if target.startswith("docs/") and target.endswith((".md", ".svg")):
            return match.group(0)
        if not (ROOT / target).exists():
            raise FileNotFoundError(f"{page.file.src_uri}: the link {match.group(1)} has no target")
        return f"]({REPOSITORY}{target}{match.group(2) or ''})"

    return re.sub(r"\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)", link, markdown)
