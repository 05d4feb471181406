"""gcx top: published leases as text, as JSON, and live in a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from .command import Env, environment, fail, fail_json, program, succeed, until
from .publishing import LEASES, listed, listed_json, publishers


def test_top_without_leases_says_so(folder: Path) -> None:
    text = listed("top")
    assert "no process publishes" in text
    assert "GCX_PUBLISH=1" in text
    assert listed_json("top") == {
        "simulated": False,
        "processes": [],
        "leases": [],
        "reservations": [],
        "warnings": [],
    }
    assert succeed("top") == text, "no terminal: as --once"
    assert list(folder.iterdir()) == []


def test_top_text_follows_the_leases() -> None:
    """A transcript in docs/reference/command.md shows the whole text."""
    with publishers(*LEASES) as (engine, notebook):
        text = listed("top")
        assert text.count("device 0: NVIDIA H100 80GB HBM3, 132 SMs, SIMULATED\n") == 1
        assert "\x1b" not in text
        # Both processes have the first atoms: leases are exclusive within a process.
        cells = "".join(re.findall(r"(?:coscheduled| {13}) ((?:[A-Z.+]+ ?)+)\n", text))
        assert [cells.count(cell) for cell in "+AB"] == [24, 8, 76]
        assert len(cells.replace(" ", "")) == 132
        engine.do("resize 0 24")
        engine.do("resize 0 16")
        assert re.search(r"decode +16 +exclusive +1 +2 +engine", listed("top"))
        engine.do("stop")
        text = listed("top")
        assert "engine" not in text
        assert "probe" in text
        notebook.end()
        assert "no process publishes" in listed("top")


def test_top_json_has_processes_and_leases() -> None:
    with publishers(*LEASES) as (engine, notebook):
        document = listed_json("top")
        assert document["simulated"] is True
        assert document["warnings"] == []
        processes = {process["name"]: process for process in document["processes"]}
        assert set(processes) == {"engine", "notebook"}
        publisher = processes["engine"]
        assert publisher["pid"] == engine.process.pid
        assert (publisher["lease_count"], publisher["unlisted_count"]) == (3, 0)
        assert (publisher["simulated"], publisher["driver_version"]) == (True, "13.0")
        assert abs(publisher["since_ms"] - 1000 * time.time()) < 600_000
        leases = {lease["name"]: lease for lease in document["leases"]}
        decode, batch, probe = leases["decode"], leases["batch"], leases["probe"]
        assert decode["process"] == publisher["process"]
        assert (decode["exclusive_atoms"], decode["shared_atoms"]) == ([0, 1, 2, 3], [])
        assert (decode["sm_count"], decode["exclusive_sm_count"]) == (32, 32)
        assert (decode["family"], decode["atom_count"]) == ("coscheduled", 16)
        assert (decode["device"], decode["device_sm_count"]) == (0, 132)
        assert (decode["shared"], decode["waits"]) == (False, False)
        assert (batch["waits"], batch["sm_count"]) == (True, 48)
        assert (probe["pid"], probe["shared"]) == (notebook.process.pid, True)
        assert (probe["exclusive_sm_count"], len(probe["shared_atoms"])) == (8, 2)


def test_waits_for_rest_are_listed_as_rest() -> None:
    with publishers(
        ("p", "all:rest", "wait:late:rest"),
        ("q", "reservation:all:rest", "wait:reservation:late:rest"),
    ):
        assert re.search(r"- +late +waits for the rest +0 +0 +p ", listed("top"))
        rows = [line.split()[:4] for line in listed("ps").splitlines()[2:-2]]
        assert rows[0] == ["all", "132", "coscheduled", "0-15"]
        assert rows[1] == ["late", "rest", "coscheduled", "waits"]
        document = listed_json("top")
        for name in ("leases", "reservations"):
            assert [each["sm_count"] for each in document[name]] == [132, "rest"]


def test_top_process_without_leases_is_listed() -> None:
    with publishers(("idle",)) as (idle,):
        assert listed("top") == f"idle (pid {idle.process.pid}, SIMULATED) has no lease\n"


@pytest.mark.parametrize("name", ["\x1b[2J", "a\nb", "\u009b2J", "\x7f", "\udcff"])
def test_top_and_ps_escape_names(name: str) -> None:
    with publishers((f"p{name}", f"l{name}:32", f"reservation:{name}:32")):
        for command, list_name in (("top", "leases"), ("ps", "reservations")):
            text = listed(command)
            assert all(line.isprintable() for line in text.splitlines()), text
            assert "\\x" in text
            assert len(listed_json(command)[list_name]) == 1
            text = succeed(command, "--json")
            assert all(line.isprintable() for line in text.splitlines()), text


def test_top_link_in_the_folder_is_a_warning(folder: Path) -> None:
    inner = folder / f"user-{os.geteuid()}"
    inner.mkdir(mode=0o700)
    (inner / "leases-0000000000000000").symlink_to("/etc/passwd")
    text = listed("top")
    assert "no process publishes" in text
    assert "warning: the file" in text
    assert "it is a link" in text
    assert "root:" not in text
    (warning,) = listed_json("top")["warnings"]
    assert "it is a link" in warning


def test_top_folder_open_to_others_is_refused(folder: Path) -> None:
    inner = folder / f"user-{os.geteuid()}"
    inner.mkdir()
    inner.chmod(0o777)
    document, message = fail_json("top")
    assert "chmod 700" in message
    assert document["error"]["result"] == "GCX_ERROR_UNSAFE_FOLDER"


@pytest.mark.parametrize("value", ["0", "x", "-1", "3601", "1.5"])
def test_top_wrong_interval_is_refused(value: str) -> None:
    assert f'"{value}"' in fail("top", "--interval", value, status=2)


class Terminal:
    """gcx top in a private terminal."""

    def __init__(self, *words: str, env: Env | None = None, **options: Any) -> None:
        self.master, slave = pty.openpty()
        self.resize(100, 30)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.seen = ""

        def lead() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [program(), "top", *words],
            env=environment({"TERM": "xterm", **(env or {})}),
            **{"stdin": slave, "stdout": slave, "stderr": slave, "preexec_fn": lead, **options},
        )  # fmt: skip

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds: float) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        self.seen += os.read(self.master, 65536).decode()
        return True

    def wait_for(self, text: str) -> str:
        """Returns the output up to the text."""

        def found() -> bool:
            self.read(0.1)
            return text in self.seen

        until(found)
        at = self.seen.index(text) + len(text)
        before, self.seen = self.seen[:at], self.seen[at:]
        return before

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def ended(self) -> int:
        """Returns the exit status; the terminal has its former settings again."""
        until(lambda: not self.read(0.1) and self.process.poll() is not None)
        assert self.seen.endswith("\x1b[?7h\x1b[?25h\x1b[?1049l"), self.seen[-200:]
        assert termios.tcgetattr(self.slave) == self.before
        os.close(self.master)
        os.close(self.slave)
        return self.process.returncode


def test_top_live_updates_until_q() -> None:
    with publishers(LEASES[0]) as (engine,):
        terminal = Terminal()
        first = terminal.wait_for("waits for 48")
        assert first.startswith("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H")
        assert re.search(r"\x1b\[30;\d+mA{8}\x1b\[0m", first)
        assert "SIMULATED" in first
        engine.do("resize 0 24")
        terminal.wait_for(" 24  exclusive                1        1  engine")
        engine.end()
        terminal.wait_for("no process publishes")
        terminal.type("q")
        assert terminal.ended() == 0


@pytest.mark.parametrize(
    ("how", "status"),
    [("q", 0), ("\x03", 0), (signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM)],
)
def test_top_live_restores_the_terminal(how: str | signal.Signals, status: int) -> None:
    terminal = Terminal("--interval", "3600")
    terminal.wait_for("no process publishes")
    if isinstance(how, str):
        terminal.type(how)
    else:
        terminal.process.send_signal(how)
    assert terminal.ended() == status


def test_top_live_follows_the_window_size() -> None:
    with publishers(LEASES[0]):
        terminal = Terminal("--interval", "3600", env={"NO_COLOR": "1"})
        wide = terminal.wait_for("waits for 48")
        assert "\x1b[30;" not in wide
        terminal.resize(50, 6)
        terminal.process.send_signal(signal.SIGWINCH)
        narrow = terminal.wait_for("\x1b[J") + terminal.wait_for("\x1b[J")
        frame = narrow[narrow.rindex("\x1b[H") :]
        assert frame.count("\r\n") == 5
        assert max(len(line) for line in re.findall(r" ((?:[AB.]+ ?)+)\x1b", frame)) <= 50
        terminal.type("q")
        assert terminal.ended() == 0


def test_top_live_stops_and_continues() -> None:
    """Ctrl-Z restores the terminal, and fg continues."""
    terminal = Terminal("--interval", "3600")
    terminal.wait_for("no process publishes")
    terminal.process.send_signal(signal.SIGTSTP)
    terminal.wait_for("\x1b[?1049l")
    # A SIGCONT that arrives before the process has stopped is lost.
    stopped = os.waitid(os.P_PID, terminal.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert stopped is not None
    assert stopped.si_code == os.CLD_STOPPED
    terminal.process.send_signal(signal.SIGCONT)
    terminal.wait_for("\x1b[?1049h")
    terminal.wait_for("no process publishes")
    terminal.type("q")
    assert terminal.ended() == 0


def test_top_live_ends_with_its_terminal() -> None:
    terminal = Terminal()
    terminal.wait_for("no process publishes")
    os.close(terminal.master)
    os.close(terminal.slave)
    assert terminal.process.wait(60) != 0


def test_top_live_ends_if_its_terminal_hangs_up_without_a_signal() -> None:
    """Only the processes that a terminal controls get SIGHUP."""
    terminal = Terminal("--interval", "3600", preexec_fn=None)
    terminal.wait_for("no process publishes")
    os.close(terminal.master)
    os.close(terminal.slave)
    assert terminal.process.wait(60) == 1


@pytest.mark.parametrize("closed", ["stdin", "stdout"])
def test_top_live_ends_if_one_terminal_of_two_hangs_up(closed: str) -> None:
    other = pty.openpty()
    terminal = Terminal("--interval", "3600", preexec_fn=None, stdin=other[1])
    terminal.wait_for("no process publishes")
    for descriptor in other if closed == "stdin" else (terminal.master, terminal.slave):
        os.close(descriptor)
    assert terminal.process.wait(60) == 1


def test_top_live_ends_at_signals_while_its_terminal_takes_no_output() -> None:
    """As after Ctrl-S, or behind a connection that stalls."""
    terminal = Terminal()
    terminal.wait_for("no process publishes")
    termios.tcflow(terminal.slave, termios.TCOOFF)
    terminal.process.terminate()
    assert terminal.process.wait(60) == -signal.SIGTERM


def test_top_on_a_dumb_terminal_prints_once() -> None:
    terminal = Terminal(env={"TERM": "dumb"})
    text = terminal.wait_for("publishing by itself")
    assert "\x1b" not in text
    assert terminal.process.wait(60) == 0
