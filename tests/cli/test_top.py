"""gcx top: published leases as text, as JSON, and live in a terminal."""

from __future__ import annotations

import fcntl
import json
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

from .command import Done, environment, fail, gcx, program
from .publishing import LEASES, publishers

NO_DRIVER = "/nonexistent.so"  # top needs none


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir(mode=0o700)
    return path


def top(folder: Path, *words: str) -> Done:
    return gcx("top", *words, driver=NO_DRIVER, env={"GCX_RESERVATION_DIR": str(folder)})


def shown(folder: Path) -> str:
    done = top(folder, "--once")
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def document_of(folder: Path) -> dict[str, Any]:
    done = top(folder, "--json")
    assert (done.returncode, done.stderr) == (0, ""), done
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


def test_top_without_leases_says_so(folder: Path) -> None:
    text = shown(folder)
    assert "no process publishes" in text
    assert "GCX_PUBLISH=1" in text
    assert document_of(folder) == {
        "simulated": False,
        "processes": [],
        "leases": [],
        "reservations": [],
        "warnings": [],
    }
    assert top(folder).stdout == text  # no terminal: as --once
    assert list(folder.iterdir()) == []


def test_top_text_shows_leases_and_map(folder: Path) -> None:
    with publishers(folder, *LEASES) as (engine, notebook):
        text = shown(folder)
        assert text.count("device 0: NVIDIA H100 80GB HBM3, 132 SMs, SIMULATED\n") == 1
        assert "\x1b" not in text
        rows = [line.split() for line in text.splitlines()]
        pid = str(engine.process.pid)
        other = str(notebook.process.pid)
        found = [row for row in rows if row[-1] in (pid, other)]
        assert found == [
            ["A", "decode", "32", "exclusive", "1", "0", "engine", pid],
            ["B", "prefill", "76", "exclusive", "1", "0", "engine", pid],
            ["-", "batch", "waits", "for", "48", "0", "0", "engine", pid],
            ["C", "probe", "24", "shared,", "8", "exclusive", "1", "0", "notebook", other],
        ]
        # Both processes have the first atoms: leases are exclusive within a process.
        cells = "".join(re.findall(r"(?:coscheduled| {13}) ((?:[A-Z.+]+ ?)+)\n", text))
        assert cells.count("+") == 24
        assert cells.count("A") == 8
        assert cells.count("B") == 76
        assert len(cells.replace(" ", "")) == 132
        engine.do("resize 0 24")
        engine.do("resize 0 16")
        assert re.search(r"decode +16 +exclusive +1 +2 +engine", shown(folder))
        engine.do("stop")
        text = shown(folder)
        assert "engine" not in text
        assert "probe" in text
        notebook.end()
        assert "no process publishes" in shown(folder)


def test_top_json_has_processes_and_leases(folder: Path) -> None:
    with publishers(folder, *LEASES) as (engine, notebook):
        document = document_of(folder)
        assert document["simulated"] is True
        assert document["warnings"] == []
        processes = {process["name"]: process for process in document["processes"]}
        assert set(processes) == {"engine", "notebook"}
        assert processes["engine"]["pid"] == engine.process.pid
        assert processes["engine"]["lease_count"] == 3
        assert processes["engine"]["unlisted_count"] == 0
        assert processes["engine"]["simulated"] is True
        assert processes["engine"]["driver_version"] == "13.0"
        assert abs(processes["engine"]["since_ms"] - 1000 * time.time()) < 600_000
        leases = {lease["name"]: lease for lease in document["leases"]}
        decode = leases["decode"]
        assert decode["process"] == processes["engine"]["process"]
        assert decode["exclusive_atoms"] == [0, 1, 2, 3]
        assert decode["shared_atoms"] == []
        assert (decode["sm_count"], decode["exclusive_sm_count"]) == (32, 32)
        assert (decode["family"], decode["atom_count"]) == ("coscheduled", 16)
        assert (decode["device"], decode["device_sm_count"]) == (0, 132)
        assert (decode["shared"], decode["waits"]) == (False, False)
        assert leases["batch"]["waits"] is True
        assert leases["batch"]["sm_count"] == 48
        assert leases["probe"]["pid"] == notebook.process.pid
        assert leases["probe"]["shared"] is True
        assert leases["probe"]["exclusive_sm_count"] == 8
        assert len(leases["probe"]["shared_atoms"]) == 2


def test_top_wait_for_rest_is_listed_as_rest(folder: Path) -> None:
    with publishers(folder, ("p", "all:rest", "wait:late:rest")):
        assert re.search(r"- +late +waits for the rest +0 +0 +p ", shown(folder))
        assert [lease["sm_count"] for lease in document_of(folder)["leases"]] == [132, "rest"]


def test_top_process_without_leases_is_listed(folder: Path) -> None:
    with publishers(folder, ("idle",)) as (idle,):
        assert shown(folder) == f"idle (pid {idle.process.pid}, SIMULATED) has no lease\n"


def test_top_names_are_escaped(folder: Path) -> None:
    for name in ("\x1b[2J", "a\nb", "\u009b2J", "\x7f", "\udcff"):
        with publishers(folder, (f"p{name}", f"l{name}:32")):
            text = shown(folder)
            assert all(line.isprintable() for line in text.splitlines()), (name, text)
            assert len(text.splitlines()) == len(shown(folder).splitlines())
            assert "\\x" in text
            assert len(document_of(folder)["leases"]) == 1


def test_top_link_in_the_folder_is_a_warning(folder: Path) -> None:
    inner = folder / f"user-{os.geteuid()}"
    inner.mkdir(mode=0o700)
    (inner / "leases-0000000000000000").symlink_to("/etc/passwd")
    text = shown(folder)
    assert "no process publishes" in text
    assert "warning: the file" in text
    assert "it is a link" in text
    assert "root:" not in text
    (warning,) = document_of(folder)["warnings"]
    assert "it is a link" in warning


def test_top_folder_open_to_others_is_refused(folder: Path) -> None:
    inner = folder / f"user-{os.geteuid()}"
    inner.mkdir()
    inner.chmod(0o777)
    done = top(folder, "--once")
    assert (done.returncode, done.stdout) == (1, "")
    assert "chmod 700" in done.stderr
    document = json.loads(top(folder, "--json").stdout)
    assert document["error"]["result"] == "GCX_ERROR_NOT_PERMITTED"


@pytest.mark.parametrize("value", ["0", "x", "-1", "3601", "1.5"])
def test_top_wrong_interval_is_refused(value: str) -> None:
    assert f'"{value}"' in fail("top", "--interval", value, status=2)


class Terminal:
    """gcx top in a private terminal."""

    def __init__(self, folder: Path, *words: str, env: dict[str, str] | None = None) -> None:
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
            env=environment({"GCX_RESERVATION_DIR": str(folder), "TERM": "xterm", **(env or {})}),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            preexec_fn=lead,
        )

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds: float) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        self.seen += os.read(self.master, 65536).decode()
        return True

    def wait_for(self, text: str, seconds: float = 60) -> str:
        """Returns the output up to the text."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, (text, self.seen)
            self.read(0.2)
        at = self.seen.index(text) + len(text)
        before, self.seen = self.seen[:at], self.seen[at:]
        return before

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def ended(self) -> int:
        """Returns the exit status; the terminal has its former settings again."""
        end = time.monotonic() + 60
        while self.process.poll() is None:
            assert time.monotonic() < end
            self.read(0.1)
        while self.read(0):
            pass
        assert self.seen.endswith("\x1b[?7h\x1b[?25h\x1b[?1049l"), self.seen[-200:]
        assert termios.tcgetattr(self.slave) == self.before
        os.close(self.master)
        os.close(self.slave)
        return self.process.returncode


def test_top_live_updates_until_q(folder: Path) -> None:
    with publishers(folder, LEASES[0]) as (engine,):
        terminal = Terminal(folder)
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
def test_top_live_restores_the_terminal(
    folder: Path, how: str | signal.Signals, status: int
) -> None:
    terminal = Terminal(folder, "--interval", "3600")
    terminal.wait_for("no process publishes")
    if isinstance(how, str):
        terminal.type(how)
    else:
        terminal.process.send_signal(how)
    assert terminal.ended() == status


def test_top_live_follows_the_window_size(folder: Path) -> None:
    with publishers(folder, LEASES[0]):
        terminal = Terminal(folder, "--interval", "3600", env={"NO_COLOR": "1"})
        wide = terminal.wait_for("waits for 48")
        assert "\x1b[30;" not in wide
        terminal.resize(50, 6)
        terminal.process.send_signal(signal.SIGWINCH)
        narrow = terminal.wait_for("\x1b[J", 30) + terminal.wait_for("\x1b[J", 30)
        frame = narrow[narrow.rindex("\x1b[H") :]
        assert frame.count("\r\n") == 5
        assert max(len(line) for line in re.findall(r" ((?:[AB.]+ ?)+)\x1b", frame)) <= 50
        terminal.type("q")
        assert terminal.ended() == 0


def test_top_live_stops_and_continues(folder: Path) -> None:
    """Ctrl-Z restores the terminal, and fg continues."""
    terminal = Terminal(folder, "--interval", "3600")
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


def test_top_live_ends_with_its_terminal(folder: Path) -> None:
    terminal = Terminal(folder)
    terminal.wait_for("no process publishes")
    os.close(terminal.master)
    os.close(terminal.slave)
    assert terminal.process.wait(60) != 0


def test_top_on_a_dumb_terminal_prints_once(folder: Path) -> None:
    terminal = Terminal(folder, env={"TERM": "dumb"})
    text = terminal.wait_for("publishing by itself")
    assert "\x1b" not in text
    assert terminal.process.wait(60) == 0
