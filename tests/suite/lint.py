"""clang-tidy over C++ sources, several in one pass, and only what changed since it was last clean.

What takes the time is the standard library's headers, which each pass reads and checks again. So
sources that can stand in one file are checked as one, without including anything twice. If such a
pass has anything to say, each of its sources is checked alone, and that is what counts.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

# The compile commands are GCC's, some of whose warnings Clang does not know.
GCC_ONLY = "-Wno-unknown-warning-option"
AT_ONCE = 10
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)


@dataclass
class Source:
    path: Path
    flags: tuple[str, ...]
    key: str  # of everything that the verdict depends on


@dataclass
class Linter:
    root: Path
    build: Path  # has compile_commands.json
    cache: Path  # one file for each clean source, named by its key
    contents: dict[Path, str] = field(default_factory=dict)

    def check(self, files: Iterable[Path]) -> Iterator[tuple[Path, str]]:
        """Each file, and what clang-tidy says of it; nothing if it is clean."""
        self.cache.mkdir(parents=True, exist_ok=True)
        sources = self.sources(files)
        unclean = [source for source in sources if not (self.cache / source.key).exists()]
        for source in sources:
            if source not in unclean:
                yield source.path, ""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for results in pool.map(self.check_together, self.batches(unclean)):
                yield from results

    def sources(self, files: Iterable[Path]) -> list[Source]:
        commands = json.loads((self.build / "compile_commands.json").read_text())
        flags = {
            (self.build / command["file"]).resolve(): flags_of(command["command"])
            for command in reversed(commands)
        }
        tool = run(["clang-tidy", "--version"], self.root).stdout
        setup = tool + (self.root / ".clang-tidy").read_text() + Path(__file__).read_text()
        # Without this clone's place, so that another's verdicts hold here.
        said = {file: repr(flags[file]).replace(str(self.root), "") for file in flags}
        return [Source(file, flags[file], self.key(file, setup + said[file])) for file in files]

    def key(self, file: Path, setup: str) -> str:
        digest = hashlib.sha256(setup.encode())
        for path in sorted(self.included(file, set())):
            digest.update(f"{path.relative_to(self.root)}\n{self.text(path)}".encode())
        return digest.hexdigest()

    def text(self, path: Path) -> str:
        if path not in self.contents:
            self.contents[path] = path.read_text()
        return self.contents[path]

    def included(self, file: Path, seen: set[Path]) -> set[Path]:
        """The file and what it includes of the project, however far down."""
        seen.add(file)
        for name in INCLUDE.findall(self.text(file)):
            for folder in (self.root / "src", self.root / "include", file.parent):
                path = folder / name
                if path.is_file() and path not in seen:
                    self.included(path, seen)
        return seen

    def batches(self, sources: list[Source]) -> list[list[Source]]:
        by_flags: dict[tuple[str, ...], list[Source]] = {}
        for source in sources:
            by_flags.setdefault(source.flags, []).append(source)
        return [
            group[begin : begin + AT_ONCE]
            for group in by_flags.values()
            for begin in range(0, len(group), AT_ONCE)
        ]

    def check_together(self, sources: list[Source]) -> list[tuple[Path, str]]:
        if len(sources) == 1:
            return [self.check_alone(sources[0])]
        one = self.build / "lint" / f"{sources[0].key}.cpp"
        one.parent.mkdir(exist_ok=True)
        one.write_text(self.joined(sources))
        parses = ["clang-tidy", "--quiet", "--checks=-*,misc-definitions-in-headers"]
        if self.tidy(one, sources[0].flags, parses) != "":
            # Two of them have names in common.
            middle = len(sources) // 2
            return self.check_together(sources[:middle]) + self.check_together(sources[middle:])
        if self.tidy(one, sources[0].flags) == "":
            for source in sources:
                (self.cache / source.key).touch()
            return [(source.path, "") for source in sources]
        return [self.check_alone(source) for source in sources]

    def joined(self, sources: list[Source]) -> str:
        included: set[str] = set()
        lines = []
        for source in sources:
            mine = set()
            for line in self.text(source.path).splitlines():
                match = INCLUDE.match(line)
                if match is None or match.group(1) not in included:
                    lines.append(line)
                if match is not None:
                    mine.add(match.group(1))
            included |= mine
        return "\n".join(lines) + "\n"

    def check_alone(self, source: Source) -> tuple[Path, str]:
        said = self.tidy(source.path, source.flags)
        if said == "":
            (self.cache / source.key).touch()
        return source.path, said

    def tidy(
        self, file: Path, flags: tuple[str, ...], tidy: Iterable[str] = ("clang-tidy", "--quiet")
    ) -> str:
        done = run([*tidy, str(file), "--", *flags, GCC_ONLY], self.build)
        return done.stdout if done.returncode != 0 else ""


def flags_of(command: str) -> tuple[str, ...]:
    """Those of a compile command that are not about its output."""
    words = shlex.split(command)
    while words and not words[0].startswith("-"):
        del words[0]
    flags = []
    skip = False
    for word in words:
        if skip or word in ("-MD", "-c") or word.endswith(".cpp"):
            skip = False
        elif word in ("-MQ", "-MF", "-o"):
            skip = True
        # A target's own folder, where nothing is included from.
        elif not re.fullmatch(r"-I\S+\.p", word):
            flags.append(word)
    return tuple(flags)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
