"""Builds the package with meson-python, and names the wheel after what it runs on.

meson-python tags a wheel of the stable ABI with the interpreter that built it. The extension is
compiled against the limited API of Python 3.9, so that the wheel runs on that and newer.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from pathlib import Path

import mesonpy
from mesonpy import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]

LOWEST_PYTHON = "cp39"


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, str | list[str]] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds the wheel into the folder and returns its name."""
    built = Path(wheel_directory) / mesonpy.build_wheel(
        wheel_directory, config_settings, metadata_directory
    )
    name = re.sub(r"-cp\d+-abi3-", f"-{LOWEST_PYTHON}-abi3-", built.name)
    if name != built.name:
        retag(built, built.with_name(name))
        built.unlink()
    return name


def retag(source: Path, target: Path) -> None:
    """Copies a wheel, with the lowest Python in its tag."""
    replaced: dict[str, bytes] = {}
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename.endswith(".dist-info/WHEEL"):
                data = re.sub(rb"(?m)^Tag: cp\d+-", b"Tag: %s-" % LOWEST_PYTHON.encode(), data)
                replaced[entry.filename] = data
            elif entry.filename.endswith(".dist-info/RECORD"):
                data = record(data.decode(), replaced).encode()
            new.writestr(entry, data)


def record(lines: str, replaced: dict[str, bytes]) -> str:
    """The wheel's list of files, with the digests of those that were replaced."""
    out = []
    for line in lines.splitlines():
        name = line.split(",")[0]
        if name in replaced:
            digest = base64.urlsafe_b64encode(hashlib.sha256(replaced[name]).digest())
            line = f"{name},sha256={digest.rstrip(b'=').decode()},{len(replaced[name])}"
        out.append(line)
    return "\n".join(out) + "\n"
