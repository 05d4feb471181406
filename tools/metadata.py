"""Checks that packages and files say of the project what tools/project.json says.

tools/metadata.py              # fails if one says otherwise, or has another version
tools/metadata.py --release    # also fails while there is no real address: only example.org
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTANTS = ROOT / "tools" / "project.json"
CRATE = (
    '\nversion = "{version}"\n',
    '\nhomepage = "{url}"\n',
    '\nrepository = "{url}"\n',
    '\ndocumentation = "{url}"\n',
)
# What each of them has to contain.
PACKAGES = {
    "pyproject.toml": (
        'name = "{name}"',
        'authors = [{{ name = "{developers}", email = "{contact}" }}]',
        'Homepage = "{url}"',
        'Documentation = "{url}"',
        'Repository = "{url}"',
        'sim = ["{name}-sim=={python_version}"]',
    ),
    "bindings/python/sim/METADATA": (
        "\nName: {name}-sim\nVersion: {python_version}\n",
        "\nAuthor-email: {developers} <{contact}>\n",
        "\nProject-URL: Homepage, {url}\n",
        "\nProject-URL: Documentation, {url}\n",
        "\nProject-URL: Repository, {url}\n",
        "[{name}]({url})",
    ),
    "bindings/java/pom.xml": (
        "  <groupId>{maven_group}</groupId>\n  <artifactId>{name}</artifactId>\n"
        "  <version>{version}</version>\n",
        "\n  <url>{url}</url>\n",
        "<name>{developers}</name>\n      <email>{contact}</email>\n",
        "<connection>scm:git:{url}</connection>\n"
        "    <developerConnection>scm:git:{url}</developerConnection>\n"
        "    <url>{url}</url>\n",
    ),
    "bindings/rust/gcx/Cargo.toml": CRATE,
    "bindings/rust/gcx-sys/Cargo.toml": CRATE,
    "CITATION.cff": (
        "\n  - name: {developers}\n    email: {contact}\n",
        "\nversion: {version}\n",
        "\nurl: {url}\nrepository-code: {url}\n",
    ),
    "SECURITY.md": ("Write to {contact},",),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the metadata of all packages.")
    parser.add_argument("--release", action="store_true", help="refuse the domain example.org")
    release = parser.parse_args().release
    constants = json.loads(CONSTANTS.read_text())
    version = re.search(r"^  version: '(.+)'", (ROOT / "meson.build").read_text(), re.M)
    if version is None:
        sys.exit("meson.build no longer says the version")
    versions = {
        "version": version.group(1),
        "python_version": version.group(1).replace("-dev", ".dev0"),
    }
    problems = []
    for name, wanted in PACKAGES.items():
        text = (ROOT / name).read_text()
        for pattern in wanted:
            line = pattern.format(**versions, **constants)
            if line not in text:
                problems.append(f"{name} does not have: {line.strip()}")
    if release:
        words = ("example.org", "org.example")
        problems += [
            f"{CONSTANTS.name}: {key} is {value}, which is no address; set it before a release"
            for key, value in constants.items()
            if any(word in value for word in words)
        ]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
