#!/usr/bin/env python3
"""Changes gcx's code by one token at a time, and tells which changes no test notices.

    tools/mutate.py --count 300 --seed 1 --state build/mutants

Each change is made in a scratch copy of the sources, built without optimization, and tested by the
tests of the core and the API, the quickest first, until one fails. A removed lock is tested under
the thread sanitizer instead. What compiles and passes all of them survived: a test is missing, or
the change means nothing. Results are appended to STATE/results.jsonl, one change a line, as soon as
they are known: run again with the same arguments, what is there is not tried again. In the end, and
by --report alone, STATE/survivors.txt and STATE/survivors.json are written.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import ClassVar

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src/core", "src/ipc", "src/api", "src/probe", "src/driver")
SUITES = {"core", "api", "vectors"}
# A test that takes this many times as long as it did, and as many seconds more, hangs.
SLOWER, SECONDS_MORE = 4, 10
SANITIZED_TESTS = (
    "cache", "contexts", "graph_threads", "handle_table", "lease_storm", "lease_threads",
    "lifetime", "natives", "opening", "threads",
)  # fmt: skip
OPTIONS = ["-Doptimization=0", "-Ddebug=false", "-Dexamples=false"]

SWAPS = {
    "relation": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    "arithmetic": {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "+=": "-=", "-=": "+="},
    "logic": {"&&": "||", "||": "&&", "&": "|", "|": "&", "&=": "|=", "|=": "&="},
}


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    kind: str
    begin: int  # in the file
    end: int
    text: str  # what stands there instead
    shown: str  # "the line -> the line changed"
    before: int  # equal changes of equal lines before it in the file

    @property
    def key(self) -> str:
        """The same for the same change of the same line, wherever that moved to."""
        text = f"{self.file}|{self.kind}|{self.shown}" + f"|{self.before}" * (self.before > 0)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def masked(source: str) -> str:
    """The source with comments and the insides of strings blanked out, of the same length."""
    # What the preprocessor reads, and assertions of the compiler's, change nothing at run time.
    pattern = "|".join(
        [
            r"//[^\n]*",
            r"/\*.*?\*/",
            r'"(?:\\.|[^"\\\n])*"',
            r"'(?:\\.|[^'\\\n])*'",
            r"\bstatic_assert\([^;]*;",
            r"^[ \t]*#(?:\\\n|[^\n])*",
        ]
    )

    def blank(match: re.Match[str]) -> str:
        text = match.group(0)
        keep = text[0] in "\"'"
        inside = re.sub(r"[^\n]", " ", text[1:-1] if keep else text)
        return text[0] + inside + text[-1] if keep else inside

    return re.sub(pattern, blank, source, flags=re.DOTALL | re.MULTILINE)


def changes(source: str) -> Iterator[tuple[str, int, int, str]]:
    """Every change of a source: kind, begin, end, text."""
    code = masked(source)
    for kind, swaps in SWAPS.items():
        for match in re.finditer(r" (<=|>=|==|!=|&&|\|\||\+=|-=|&=|\|=|[<>+\-*/%&|]) (?!\n)", code):
            if match.group(1) in swaps:
                yield kind, match.start(1), match.end(1), swaps[match.group(1)]
        # Operators at a line's end.
        for match in re.finditer(r" (<=|>=|==|!=|&&|\|\||[+\-&|])$", code, re.MULTILINE):
            if match.group(1) in swaps:
                yield kind, match.start(1), match.end(1), swaps[match.group(1)]
    for match in re.finditer(r"(?:\+\+|--)", code):
        yield "arithmetic", *match.span(), "--" if match.group(0) == "++" else "++"
    for match in re.finditer(r"!(?=[\w(:])", code):
        yield "negation", *match.span(), ""
    for match in re.finditer(r"(?<![\w.])(\d+)(?:U|UL)?(?![\w.'])", code):
        number = int(match.group(1))
        yield "constant", *match.span(1), str(number + 1)
        if number > 0:
            yield "constant", *match.span(1), str(number - 1)
    for match in re.finditer(r"\b(true|false)\b", code):
        yield "constant", *match.span(), "false" if match.group(0) == "true" else "true"
    for match in re.finditer(r"\bif \(([^;{}\n]+)\)(?= \{$|$)", code, re.MULTILINE):
        yield "negation", *match.span(1), f"!({source[match.start(1) : match.end(1)]})"
    for match in re.finditer(r"\.size\(\)(?= [^=]|[,;)])", code):
        yield "off by one", *match.span(), ".size() - 1"
    yield from removals(code)
    yield from swapped_messages(source, code)


def removals(code: str) -> Iterator[tuple[str, int, int, str]]:
    for match in re.finditer(
        r"^[ ]+const std::(?:lock_guard|unique_lock|scoped_lock|shared_lock)\b[^;]*;$",
        code,
        re.MULTILINE,
    ):
        yield "lock", *match.span(), ""
    # A call, an assignment or a jump by itself; not a declaration, which would not compile.
    begins = r"^[ ]+(?!return\b|using\b|const\b|static_assert\b|case\b|default\b|throw\b)"
    call = r"[\w:>.\-\[\]*+]+(?:(?:\(| [|&+\-]?= )[^;{}]*)?;$"
    for match in re.finditer(begins + call, code, re.MULTILINE):
        yield "removal", *match.span(), "    ;"


def swapped_messages(source: str, code: str) -> Iterator[tuple[str, int, int, str]]:
    texts = list(re.finditer(r'"[ ]{8,}"', code))
    formats = re.compile(r"%[#0-9.]*[a-z]+")
    for at, match in enumerate(texts):
        text = source[match.start() : match.end()]
        for other in texts[at + 1 :] + texts[:at]:
            instead = source[other.start() : other.end()]
            # The same arguments must do, or the compiler would tell.
            if instead != text and formats.findall(instead) == formats.findall(text):
                yield "message", *match.span(), instead
                break
    results = sorted(set(re.findall(r"\bfail\(\s*(GCX_ERROR_\w+)", code)))
    for match in re.finditer(r"\bfail\(\s*(GCX_ERROR_\w+)", code):
        others = [name for name in results if name != match.group(1)] or ["GCX_ERROR_TIMEOUT"]
        yield "result", *match.span(1), others[match.start() % len(others)]


def all_mutants() -> list[Mutant]:
    found: list[Mutant] = []
    seen: Counter[tuple[str, str, str]] = Counter()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).glob("*.[ch]pp")):
            source = path.read_text()
            for kind, begin, end, text in dict.fromkeys(changes(source)):
                first = source.rfind("\n", 0, begin) + 1
                last = source.find("\n", end)
                line = source[first:last]
                changed = source[first:begin] + text + source[end:last]
                shown = f"{line.strip()}  ->  {changed.strip()}"
                name = str(path.relative_to(ROOT))
                number = source.count("\n", 0, begin) + 1
                before = seen[name, kind, shown]
                seen[name, kind, shown] += 1
                found.append(Mutant(name, number, kind, begin, end, text, shown, before))
    return found


def chosen(count: int, seed: int, only: str) -> list[Mutant]:
    """A sample with all kinds in it, rare ones too: one of each kind in turn."""
    kinds: dict[str, list[Mutant]] = {}
    for mutant in all_mutants():
        if only not in mutant.file:
            continue
        kinds.setdefault(mutant.kind, []).append(mutant)
    draw = random.Random(seed)
    for kind in kinds.values():
        draw.shuffle(kind)
    sample: list[Mutant] = []
    while len(sample) < count and any(kinds.values()):
        for kind in list(kinds.values()):
            if kind and len(sample) < count:
                sample.append(kind.pop())
    return sample


def execute(
    command: list[str], folder: Path, seconds: float, env: dict[str, str] | None = None
) -> int:
    """The exit status; 124 if it took too long. All that it started ends with it."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return 124
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)


@dataclass
class Test:
    name: str
    command: list[str]
    env: dict[str, str]
    folder: Path
    seconds: float  # that it takes when nothing is changed


class Build:
    """A build folder in a copy, and its tests, the quickest first."""

    # Of each kind of build: what its tests take, those that pass. The first copy measures it.
    measuring = threading.Lock()
    seconds: ClassVar[dict[str, dict[str, float]]] = {}

    def __init__(
        self, tree: Path, name: str, options: list[str], only: tuple[str, ...] = ()
    ) -> None:
        self.folder = tree / "build" / name
        self.only = only
        self.options = options
        self.tests: list[Test] = []

    def prepare(self, tree: Path) -> None:
        if not (self.folder / "build.ninja").exists():
            subprocess.run(
                ["meson", "setup", str(self.folder), *self.options], cwd=tree, check=True,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
        listed = json.loads(
            subprocess.run(
                ["meson", "introspect", "--tests", str(self.folder)],
                check=True, capture_output=True, text=True,
            ).stdout
        )  # fmt: skip
        wanted = [
            test
            for test in listed
            if {suite.split(":")[-1] for suite in test["suite"]} & SUITES
            and (not self.only or test["name"] in self.only)
        ]
        # Programs by their whole path, and the files of vectors, which a custom target writes.
        files = {
            os.path.relpath(self.folder / word, self.folder)
            for test in wanted
            for word in test["cmd"]
            if (word.startswith(str(self.folder)) and Path(word).suffix in ("", ".so"))
            or word.endswith(".tsv")
        }
        inside = {file for file in files if not file.startswith("..")}
        self.targets = sorted(inside | {"src/sim/libgcx-sim.so"})
        if not self.build(3600):
            raise RuntimeError(f"{self.folder}: the sources without a change do not build")
        tests = [
            Test(test["name"], test["cmd"], test["env"], Path(test["workdir"] or self.folder), 0.0)
            for test in wanted
        ]
        with self.measuring:
            name = self.folder.name
            if name not in self.seconds:
                self.seconds[name] = self.measure(tests)
            for test in tests:
                if test.name in self.seconds[name]:
                    test.seconds = self.seconds[name][test.name]
                    self.tests.append(test)
        self.tests.sort(key=lambda test: test.seconds)
        if not self.tests:
            raise RuntimeError(f"{self.folder}: no test passes")

    def measure(self, tests: list[Test]) -> dict[str, float]:
        found = {}
        for test in tests:
            begin = time.monotonic()
            if execute(test.command, test.folder, 600, test.env) == 0:
                found[test.name] = time.monotonic() - begin
            else:
                print(f"{self.folder.name}: {test.name} fails without a change and is left out")
        return found

    def build(self, seconds: float) -> bool:
        return execute(["ninja", "-C", str(self.folder), *self.targets], self.folder, seconds) == 0

    def judge(self) -> tuple[str, str]:
        if not self.build(600):
            return "does not compile", ""
        for test in self.tests:
            limit = test.seconds * SLOWER + SECONDS_MORE
            status = execute(test.command, test.folder, limit, test.env)
            if status == 124:
                return "noticed", f"{test.name} hangs"
            if status != 0:
                return "noticed", test.name
        return "survived", ""


class Worker(threading.Thread):
    """Makes changes in a copy of its own. Locks want a build of their own: one worker has it."""

    def __init__(self, number: int, state: Path, todo: list[Queue[Mutant]], done: Done) -> None:
        super().__init__()
        self.tree = state / f"tree{number}"
        self.todo = todo
        self.done = done
        self.plain = Build(self.tree, "plain", OPTIONS)
        thread = [*OPTIONS, "-Db_sanitize=thread", "-Db_lundef=false"]
        self.sanitized = Build(self.tree, "thread", thread, SANITIZED_TESTS)

    def run(self) -> None:
        self.copy()
        for queue in self.todo:
            with contextlib.suppress(Empty):
                while True:
                    self.work_on(queue.get_nowait())

    def work_on(self, mutant: Mutant) -> None:
        build = self.sanitized if mutant.kind == "lock" else self.plain
        if not build.tests:
            build.prepare(self.tree)
        begin = time.monotonic()
        path = self.tree / mutant.file
        source = path.read_text()
        path.write_text(source[: mutant.begin] + mutant.text + source[mutant.end :])
        try:
            verdict, by = build.judge()
        finally:
            path.write_text(source)
        self.done.add(mutant, verdict, by, time.monotonic() - begin)

    def copy(self) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        )  # fmt: skip
        for name in listed.stdout.splitlines():
            here, there = ROOT / name, self.tree / name
            if not here.is_file():
                continue
            if there.exists() and there.read_bytes() == here.read_bytes():
                continue
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(here, there)


class Done:
    """What is known, on disk as soon as it is."""

    def __init__(self, state: Path, total: int) -> None:
        self.path = state / "results.jsonl"
        self.total = total
        self.lock = threading.Lock()
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.results = {result["key"]: result for result in map(json.loads, lines)}

    def add(self, mutant: Mutant, verdict: str, by: str, seconds: float) -> None:
        result = {
            "key": mutant.key,
            **asdict(mutant),
            "verdict": verdict,
            "by": by,
            "seconds": round(seconds, 1),
        }
        with self.lock:
            self.results[mutant.key] = result
            with self.path.open("a") as file:
                file.write(json.dumps(result) + "\n")
            print(
                f"{len(self.results)}/{self.total} {seconds:5.1f} s  {verdict:9} "
                f"{mutant.file}:{mutant.line} {mutant.kind}: {mutant.shown}"
                + (f"  [{by}]" if by else ""),
                flush=True,
            )


def report(state: Path, results: list[dict[str, object]]) -> None:
    verdicts = Counter(str(result["verdict"]) for result in results)
    survivors = [result for result in results if result["verdict"] == "survived"]
    (state / "survivors.json").write_text(json.dumps(survivors, indent=1) + "\n")
    lines = [f"{r['file']}:{r['line']}: {r['kind']}: {r['shown']}" for r in survivors]
    tried = verdicts["noticed"] + verdicts["survived"]
    lines.append(
        f"{tried} changes, {verdicts['noticed']} noticed, {verdicts['survived']} survived"
        + (f" ({100 * verdicts['noticed'] / tried:.1f} % noticed)" if tried else "")
        + f"; {verdicts['does not compile']} more did not compile"
    )
    (state / "survivors.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=300, help="how many changes")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--state", type=Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="copies at once")
    parser.add_argument("--only", default="", help="only files whose path has this in it")
    parser.add_argument("--list", action="store_true", help="show the changes alone")
    parser.add_argument("--report", action="store_true", help="show what is known alone")
    arguments = parser.parse_args()

    sample = chosen(arguments.count, arguments.seed, arguments.only)
    if arguments.list:
        for mutant in sample:
            print(f"{mutant.file}:{mutant.line}: {mutant.kind}: {mutant.shown}")
        return 0
    state: Path = arguments.state.resolve()
    state.mkdir(parents=True, exist_ok=True)
    done = Done(state, len(sample))
    if not arguments.report:
        locks: Queue[Mutant] = Queue()
        others: Queue[Mutant] = Queue()
        # By file, so that a changed one and the next are one rebuild.
        for mutant in sorted(sample, key=lambda mutant: (mutant.file, mutant.begin)):
            if mutant.key not in done.results:
                (locks if mutant.kind == "lock" else others).put(mutant)
        workers = [
            Worker(number, state, [locks, others] if number == 0 else [others], done)
            for number in range(arguments.jobs)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    report(state, list(done.results.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
