"""What a part of the suite works with: it runs commands and counts what passed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build"
# The limits of tests are those of an idle machine, and are taken so many times: a busy machine, or
# an emulated one, is no failure.
PATIENCE = 5
LONGEST = 1800  # seconds of one command: whatever takes longer hangs
# What was compiled in another clone is the same here.
CCACHE = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}


class Suite:
    """Counts what passed and failed, and remembers the names of what failed and what takes long.
    Each part has one, which prints when the part is done, since parts run at the same time."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed: list[str] = []
        self.steps: list[tuple[str, float]] = []
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def count(self, name: str, holds: bool, output: str = "") -> bool:
        """Counts a test; shows its output only if it fails."""
        if holds:
            self.passed += 1
        else:
            self.failed.append(name)
            if output:
                self.say(output)
            self.say(f"FAILED: {name}")
        return holds

    def timed(
        self, name: str, command: list[str | Path], env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        begin = time.monotonic()
        done = execute(command, env)
        self.steps.append((name, time.monotonic() - begin))
        return done

    def run(self, name: str, command: list[str | Path], env: dict[str, str] | None = None) -> bool:
        """Runs a command that is one test."""
        done = self.timed(name, command, env)
        return self.count(name, done.returncode == 0, done.stdout)

    def meson_test(
        self,
        name: str,
        build: Path,
        env: dict[str, str] | None = None,
        suites: Sequence[str] = (),
        without: Sequence[str] = (),
    ) -> None:
        """Runs the tests of a build that was made, or those of some suites, and counts each."""
        chosen = [word for suite in suites for word in ("--suite", suite)]
        chosen += [word for suite in without for word in ("--no-suite", suite)]
        command: list[str | Path] = ["meson", "test", "-C", build, "--no-rebuild"]
        command += ["--setup", "everything"]
        command += ["--timeout-multiplier", str(PATIENCE), *chosen]
        log = build / "meson-logs" / "testlog-everything.json"
        log.unlink(missing_ok=True)
        done = self.timed(f"tests of {name}", command, env)
        lines = log.read_text().splitlines() if log.exists() else []
        failed_before = len(self.failed)
        for result in map(json.loads, lines):
            if result["result"] == "SKIP":
                self.say(f"skipped: {name}: {result['name']}: {result.get('stdout', '').strip()}")
                continue
            printed = (result.get("stdout", "") + result.get("stderr", "")).splitlines()
            output = "\n".join([*printed[-100:], result["result"]])
            passed = result["result"] in ("OK", "EXPECTEDFAIL")
            self.count(f"{name}: {result['name']}", passed, output)
        if not lines or (done.returncode != 0 and len(self.failed) == failed_before):
            self.count(f"{name}: has tests, and ran them all", False, done.stdout)

    def pytest(self, name: str, folder: Path, env: dict[str, str], *options: str) -> None:
        """Runs the pytest tests of a folder or a file and counts each."""
        report = BUILD / f"{name}.xml"
        report.unlink(missing_ok=True)
        done = self.timed(
            f"tests of {name}",
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder,
             f"--junitxml={report}", *options],
            env,
        )  # fmt: skip
        self.count_cases(name, [report] if report.exists() else [])
        if done.returncode != 0:
            self.say(done.stdout)

    def count_cases(self, name: str, reports: Sequence[Path]) -> None:
        """Counts each test of reports in the format of JUnit."""
        cases = [case for file in reports for case in ElementTree.parse(file).iter("testcase")]
        for case in cases:
            label = f"{name}: {case.get('classname')}.{case.get('name')}"
            skipped = case.find("skipped")
            if skipped is not None:
                # That of JUnit's assumptions is the exception and where it was thrown.
                reason = skipped.get("message") or (skipped.text or "").partition("\n")[0]
                self.say(f"skipped: {label}: {reason.rpartition('Assumption failed: ')[2]}")
                continue
            self.count(label, case.find("failure") is None and case.find("error") is None)
        self.count(f"{name}: has tests", bool(cases))

    def vectors(
        self,
        language: str,
        answerer: list[str | Path],
        left_out: Sequence[str],
        env: dict[str, str] | None = None,
    ) -> None:
        """Compares a language's answers with the vectors, and checks that changes are noticed."""
        needs: list[str | Path] = [word for need in left_out for word in ("--left-out", need)]
        ask = [sys.executable, "-m", "tests.vectors.ask", *needs, *answerer]
        files = sorted((ROOT / "tests" / "vectors" / "generated").glob("*.tsv"))
        self.count("there are vectors", bool(files))
        for file in files:
            self.run(f"{language} answers {file.name}", [*ask, file], env)
        notice = [sys.executable, "-m", "tests.vectors.notice", *needs, "--", *ask]
        self.run(f"changes of {language}'s answers are noticed", notice, env)


def own_environment() -> dict[str, str]:
    """This process's, less what chooses drivers and devices for gcx: the tests do that."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GCX_") and name != "CUDA_VISIBLE_DEVICES"
    }


def execute(
    command: list[str | Path], env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command that sees none of the user's reservations and published leases."""
    words = [str(part) for part in command]
    runtime = tempfile.mkdtemp(prefix="gcx-run-")
    own = {"GCX_RESERVATION_DIR": runtime, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(
            words,
            cwd=ROOT,
            env={**own_environment(), **CCACHE, **own, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired as expired:
        said = expired.stdout or b""
        text = said.decode(errors="replace") if isinstance(said, bytes) else said
        return subprocess.CompletedProcess(
            words, 1, f"{text}\nended after {LONGEST} s: {' '.join(words)}\n"
        )
    finally:
        shutil.rmtree(runtime, ignore_errors=True)


def tracked(*patterns: str) -> list[Path]:
    """The project's files of these patterns, those not yet committed among them."""
    repository: list[str | Path] = []
    if not (ROOT / ".git").exists():
        # Unpacked from a tarball: to an empty repository all files are new but those of .gitignore.
        empty = BUILD / "empty.git"
        execute(["git", "init", "--quiet", "--bare", empty])
        repository = [f"--git-dir={empty}", f"--work-tree={ROOT}"]
    listed = execute(["git", *repository, "ls-files", "-co", "--exclude-standard", "--", *patterns])
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]
