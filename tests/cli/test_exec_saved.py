"""Programs that start with the environment of an earlier gcx exec, as from a restarted container, a
terminal multiplexer or cron: they run in its reservation while that lives, and not afterwards."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .command import Env, environment, fail, gcx, program, started, succeed_json, until

# Prints what the programs of gcx exec get, and goes on as one process.
SHOW = "env | grep -E '^(LD_AUDIT|GCX_EXEC_PLAN|GCX_SIM)='; echo; exec sleep 60"
# Of the storm; GCX_SAVED_STORM=600 for a release.
SECONDS = float(os.environ.get("GCX_SAVED_STORM", "2"))


@dataclass
class Saved:
    """The environment of one gcx exec."""

    env: dict[str, str]

    @property
    def id(self) -> str:
        found = re.search(r"token=\S+-([0-9a-f]{16})$", self.env["GCX_EXEC_PLAN"])
        assert found is not None, self.env
        return found[1]


@dataclass
class Place:
    """A folder of reservations, and its users: words that run a program as one of them."""

    folder: Path
    unaware: str
    users: list[list[str]] = field(default_factory=lambda: [[]])
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @contextlib.contextmanager
    def command(self, user: list[str], *words: str) -> Iterator[Saved | None]:
        """Runs gcx exec until the block ends; nothing if it gets no SMs."""
        line = ["exec", "--quiet", *words, "--", "sh", "-c", SHOW]
        with started(*line, under=user) as process:
            assert process.stdout is not None
            lines = itertools.takewhile(str.strip, iter(process.stdout.readline, ""))
            env = dict(each.rstrip().split("=", 1) for each in lines)
            yield Saved(env) if env else None

    def use(self, saved: Saved, user: list[str], check: Callable[[], None]) -> str:
        """Starts a program that uses CUDA, and calls check() while it does. Returns its errors."""
        file = self.folder.parent / f"program-{next(self.numbers)}"
        file.with_suffix(".use").touch()
        with subprocess.Popen(
            [*user, self.unaware, "server", str(file), "plain"],
            env=environment(saved.env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            try:
                if process.stdout.readline():
                    check()
            finally:
                file.with_suffix(".end").touch()
            errors = process.communicate(timeout=60)[1]
        assert (process.returncode == 0) == (errors == ""), (process.returncode, errors)
        return errors


def reservations() -> list[dict[str, object]]:
    """Returns those that live. No two of them have an atom in common."""
    listed = succeed_json("ps")["reservations"]
    atoms = [atom for each in listed for atom in each["atoms"]]
    assert len(atoms) == len(set(atoms)), listed
    assert isinstance(listed, list)
    return listed


def left(place: Place) -> list[Path]:
    """Returns the files of dead reservations that are left when this user, or root, reserves."""
    assert gcx("exec", "--sms", "132", "--", "true").returncode == 0
    assert reservations() == []
    return list(place.folder.iterdir())


def refused() -> None:
    raise AssertionError("the program got a context")


KINDS = {"private": 0o700, "link": 0o700, "group": 0o2770, "sticky": 0o3770}


@pytest.fixture(params=KINDS)
def place(
    request: pytest.FixtureRequest, tmp_path: Path, unaware: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    kind = request.param
    if kind in ("private", "link"):
        folder = tmp_path / "folder"
        folder.mkdir(mode=KINDS[kind])
        named = tmp_path / "link" if kind == "link" else folder
        if kind == "link":
            named.symlink_to(folder)
        monkeypatch.setenv("GCX_RESERVATION_DIR", str(named))
        yield Place(folder, unaware)
        return
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can run programs as two users of a group, with setpriv")
    # Other users can't enter root's folders, in which the build may be.
    base = Path(tempfile.mkdtemp())
    try:
        base.chmod(0o755)
        built = Path(program()).parents[1]
        shutil.copytree(built, base / "src", symlinks=True,
                        ignore=shutil.ignore_patterns("*.p", "*.a"))  # fmt: skip
        monkeypatch.setenv("GCX_CLI", str(base / "src" / "cli" / "gcx"))
        copy = shutil.copy(unaware, base / "unaware")
        folder = base / "folder"
        folder.mkdir()
        os.chown(folder, 0, 4711)
        folder.chmod(KINDS[kind])
        monkeypatch.setenv("GCX_RESERVATION_DIR", str(folder))
        as_user = ["setpriv", "--regid", "4711", "--clear-groups", "--reuid"]
        yield Place(folder, str(copy), [[*as_user, user] for user in ("4712", "4713")])
    finally:
        shutil.rmtree(base)


def test_saved_environment_joins_a_live_reservation_only(place: Place) -> None:
    """After its end the program is refused, whether others have its SMs, or nobody has."""
    with place.command(place.users[0], "--sms", "24") as saved:
        assert saved is not None
        live = saved.id
        errors = place.use(saved, place.users[0], lambda: None)
        assert errors == ""
    assert reservations() == []
    with place.command(place.users[-1], "--sms", "132") as successor:
        assert successor is not None
        errors = place.use(saved, place.users[0], refused)
        assert f"{live} has ended, and other processes may have its SMs; reserve SMs" in errors
        assert [each["id"] for each in reservations()] == [successor.id]
    assert reservations() == []
    assert "unset GCX_EXEC_PLAN and LD_AUDIT" in place.use(saved, place.users[0], refused)
    # The reservation of the environment is the one that this command would divide.
    env: Env = {"LD_AUDIT": saved.env["LD_AUDIT"], "GCX_EXEC_PLAN": saved.env["GCX_EXEC_PLAN"]}
    assert "has ended" in fail("exec", "--sms", "8", "--", "true", status=125, env=env)
    assert left(place) == []


def test_saved_environment_of_an_unsafe_folder_is_refused(place: Place) -> None:
    with place.command(place.users[0], "--sms", "24") as saved:
        assert saved is not None
        place.folder.chmod(0o1777)
        assert "so all users can enter it" in place.use(saved, place.users[0], refused)
        assert "so all users" in gcx("exec", "--sms", "8", "--", "true").stderr


def test_saved_environments_in_a_storm_have_one_life(place: Place) -> None:
    """Commands end at any moment, and programs with the environments of the latest ones start."""
    recent: list[Saved] = []
    begin = time.monotonic()
    inside, outside, failures = [0], [0], list[BaseException]()

    def ended() -> bool:
        """A busy machine may need longer to see each case."""
        time_spent = time.monotonic() - begin
        seen = min(inside[0], outside[0], len(recent)) > 3
        return bool(failures) or time_spent > (SECONDS if seen else 20 * SECONDS)

    def repeat(body: Callable[[random.Random], None]) -> threading.Thread:
        def run() -> None:
            chance = random.Random()
            try:
                while not ended():
                    body(chance)
            except BaseException as failure:  # reported in the test's own thread
                failures.append(failure)

        return threading.Thread(target=run)

    def command(chance: random.Random) -> None:
        sms = chance.choice(["8", "24", "64", "rest"])
        with place.command(chance.choice(place.users), "--sms", sms) as saved:
            if saved is not None:
                recent.append(saved)
                time.sleep(chance.random() / 20)

    def restart(chance: random.Random) -> None:
        time.sleep(chance.random() / 4)  # so that reservations end
        if not recent:
            return
        saved = chance.choice(recent[-4:])

        def check() -> None:
            inside[0] += 1
            assert saved.id in [each["id"] for each in reservations()]

        errors = place.use(saved, chance.choice(place.users), check)
        outside[0] += errors != ""
        assert errors == "" or "has ended" in errors, errors

    def look(chance: random.Random) -> None:
        reservations()
        time.sleep(chance.random() / 4)

    threads = [repeat(body) for body in [command, command, restart, restart, restart, look]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    assert min(inside[0], outside[0], len(recent)) > 3, (inside, outside, len(recent))
    until(lambda: reservations() == [])
    assert left(place) == []
