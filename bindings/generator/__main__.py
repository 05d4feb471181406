"""Writes every generated file of the bindings, or with --check compares them."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable
from pathlib import Path

from bindings.generator import (
    cpp,
    ctypes,
    go,
    idiomatic,
    java,
    lua,
    methods,
    names,
    node,
    python,
    rust,
    swig,
)
from bindings.generator.api import DESCRIPTION, ROOT, Api, load

# For each language a function that maps the description to its files: path below the root -> text.
LANGUAGES: dict[str, Callable[[Api], dict[str, str]]] = {
    "all": idiomatic.files,
    "names": names.files,
    "C++": cpp.files,
    "ctypes": ctypes.files,
    "Go": go.files,
    "Java": java.files,
    "Lua": lua.files,
    "methods": methods.files,
    "Node.js": node.files,
    "Python": python.files,
    "Rust": rust.files,
    "SWIG": swig.files,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bindings.generator", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a file differs"
    )
    arguments = parser.parse_args()
    api = load()
    files = {ROOT / path: text for write in LANGUAGES.values() for path, text in write(api).items()}
    differ = [path for path, text in files.items() if read(path) != text]
    # Files that no module writes any more are stale.
    stale = [path for path in generated() if path not in files]
    if arguments.check:
        for path in differ:
            show(path, files[path])
        for path in stale:
            print(f"{path.relative_to(ROOT)}: no module of the generator writes it; remove it")
        return 1 if differ or stale else 0
    for path in differ:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], encoding="utf-8")
    for path in stale:
        path.unlink()
    print(f"{len(files)} files, {len(differ)} written, {len(stale)} removed")
    return 0


def read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def generated() -> list[Path]:
    """Lists the files in folders named `generated`, without the description."""
    folders = (ROOT / "bindings", ROOT / "docs", ROOT / "include")
    found = [path for folder in folders for path in folder.glob("**/generated/**/*")]
    skipped = {"node_modules", "target", "vendor"}
    return [
        path
        for path in found
        if path.is_file() and path != DESCRIPTION and not skipped & set(path.parts)
    ]


def show(path: Path, text: str) -> None:
    name = str(path.relative_to(ROOT))
    before = (read(path) or "").splitlines(keepends=True)
    sys.stdout.writelines(
        difflib.unified_diff(before, text.splitlines(keepends=True), name, f"{name} (generated)")
    )


if __name__ == "__main__":
    sys.exit(main())
