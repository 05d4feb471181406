"""gcx exec: programs without gcx on a part of the simulated GPU."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from .command import (
    SM_COUNTS,
    Done,
    Env,
    Json,
    compiled,
    fail,
    gcx,
    pairs,
    program,
    said,
    started,
    succeed_json,
    until,
)
from .publishing import publishers

CHECKOUT = str(Path(__file__).parents[2])
ENVIRONMENT = "import os, json; print(json.dumps(dict(os.environ)))"
TWO = "sim:h100,a100@13.0"
MPS = {"GCX_SIM_MPS": "1"}
TAKE_100 = ("exec", "--sms", "100", "--", "true")
WAIT_FOR_100 = ("exec", "--sms", "100", "--wait", "60", "--", "true")
NAMESPACE = ("unshare", "--pid", "--fork")


def sim_folder() -> str:
    """The folder with the simulated libcuda.so.1."""
    return os.environ["GCX_SIM_LIBDIR"]


def inside(*words: str, sms: str = "24") -> Done:
    return gcx("exec", "--sms", sms, "--", *words)


def output(done: Done) -> str:
    """Returns what the program printed; it succeeded, and gcx exec printed its one line."""
    assert done.returncode == 0, done
    assert done.stderr.startswith("gcx exec: SIMULATED: "), done
    assert done.stderr.count("\n") == 1, done
    return done.stdout.strip()


def atoms_in(text: str) -> set[int]:
    """Returns the atoms of the plan in a printed environment."""
    found: set[int] = set()
    plan = re.search(r"gcx-exec-1 .*?\batoms=([\d,-]+)", text)
    assert plan is not None, text
    for part in plan[1].split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def atoms_of(*options: str) -> set[int]:
    return atoms_in(gcx("exec", *options, "--", "env").stdout)


def listed_reservations() -> list[Json]:
    reservations = succeed_json("ps")["reservations"]
    assert isinstance(reservations, list)
    return reservations


def skip_without(*words: str) -> None:
    if subprocess.run([*words, "true"], check=False, capture_output=True).returncode:
        pytest.skip(f"this machine does not allow {' '.join(words)}")


@pytest.mark.parametrize(
    ("inner", "options", "env", "ending"),
    [
        ([], [], {}, "; reserved in FOLDER; without MPS, processes take turns on all SMs"),
        ([], [], MPS, "; no other reservation in FOLDER has them"),
        (["exec", "--sms", "8", "--"], [], MPS,
         "; no other part of that reservation has them, in FOLDER"),
        ([], ["--shared"], {}, "; without MPS, processes take turns on all SMs"),
        ([], ["--shared"], MPS, ""),
    ],
)  # fmt: skip
def test_exec_announces_sms_and_reservation(
    unaware: str, folder: Path, inner: list[str], options: list[str], env: Env, ending: str
) -> None:
    words = [program(), *inner, unaware] if inner else [unaware]
    done = gcx("exec", "--sms", "24", *options, "--", *words, env=env)
    sms = "8 of the 24" if inner else "24 of the 132"
    assert done.stderr.splitlines()[-1] == (
        f"gcx exec: SIMULATED: {unaware} has {sms} SMs of device 0 (NVIDIA H100 80GB HBM3)"
        + ending.replace("FOLDER", str(folder))
    )


def test_exec_default_folder_is_the_same_in_all_sessions(tmp_path: Path) -> None:
    """A command of a login, one of a service with PrivateTmp, and one of sudo."""
    skip_without("unshare", "-r", "-m")
    script = """
set -e
mount -t tmpfs -o mode=1777 none /dev/shm
export GCX_SIM_MPS=1 GCX_DRIVER=sim:h100@13.0
unset GCX_RESERVATION_DIR XDG_RUNTIME_DIR
coproc XDG_RUNTIME_DIR=$RUNTIME "$GCX" exec --sms 100 --name login -- sh -c 'echo has; read -r _'
read -r _ <&"${COPROC[0]}"
tried=0
unshare -m sh -c 'exec 3<"$ROOT"; mount -t tmpfs none /tmp  # also if the checkout is below /tmp
    mkdir -p "$ROOT" && mount -c --bind /proc/self/fd/3 "$ROOT" || exit 1
    exec "$GCX" exec --sms 100 -- true' || tried=$?
HOME=/ XDG_RUNTIME_DIR=/ "$GCX" ps
echo "$tried"
"""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    done = subprocess.run(
        ["unshare", "-r", "-m", "bash", "-c", script],
        env={**os.environ, "GCX": program(), "ROOT": CHECKOUT, "RUNTIME": str(private)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done
    assert "no other reservation in /dev/shm/gcx-0 has them\n" in done.stderr
    assert '"login"' in done.stderr
    assert "Reservations in /dev/shm/gcx-0; " in done.stdout
    assert "login" in done.stdout
    assert done.stdout.endswith("\n125\n")
    assert not list(private.iterdir())


@pytest.mark.parametrize(
    ("sms", "family", "given"),
    [
        ("24", "coscheduled", 24),
        ("20", "coscheduled", 20),  # with the remainder atom
        ("21", "coscheduled", 24),
        ("50%", "coscheduled", 64),
        ("7%", "coscheduled", 8),
        ("12.5%", "coscheduled", 16),
        ("33.333333333%", "coscheduled", 40),
        ("80%", "coscheduled", 100),  # above 50 % with the remainder atom
        ("97%", "coscheduled", 124),
        ("100%", "coscheduled", 132),
        ("rest", "coscheduled", 132),
        ("50%", "fine", 66),
        ("50%", "max-cluster", 48),
        ("21", "fine", 22),
        ("24", "max-cluster", 24),
    ],
)
def test_exec_share_gives_whole_atoms(unaware: str, sms: str, family: str, given: int) -> None:
    done = gcx("exec", "--sms", sms, "--family", family, "--", unaware)
    assert output(done) == str(given)
    assert f" has {given} of the 132 SMs" in done.stderr
    asked = sms not in {"rest", str(given)}
    assert (f", {sms} requested" in done.stderr) == asked


def test_exec_devices_get_their_shares(unaware: str) -> None:
    uuids = [device["uuid"] for device in succeed_json("info", driver=TWO)["devices"]]
    for options, counts in {
        "--sms 24": "24 24",
        "--sms 50%": "64 52",
        "--sms 24 --device 0": "24 108",
        "--sms 24 --device 1": "132 24",
        "--sms 24 --device 1,0": "24 24",
        "--layout 0=24,1=50%": "24 52",
        "--layout 1=rest,0=8": "8 108",
        f"--layout {uuids[1]}=16": "132 16",
        f"--layout {uuids[0][:14]}=16": "16 108",
    }.items():
        assert output(gcx("exec", *options.split(), "--", unaware, driver=TWO)) == counts


PYTHON = """
import ctypes, subprocess
cuda = ctypes.CDLL('libcuda.so.1')
value = ctypes.c_int()
assert cuda.cuInit(0) == 0
assert cuda.cuDeviceGetAttribute(ctypes.byref(value), 16, 0) == 0
print(value.value, subprocess.check_output(['UNAWARE'], text=True).strip())
"""


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        # libcuda by any path
        (["UNAWARE", "path", "libcuda.so"], "24"),
        (["UNAWARE", "path", "REAL"], "24"),
        (["UNAWARE", "path", "LIBDIR/libcuda.so.1"], "24"),
        (["UNAWARE", "path", "TMP/mine.so"], "24"),
        (["UNAWARE", "moved", "LIBDIR"], "24"),
        (["env", "LD_LIBRARY_PATH=LIBDIR", "UNAWARE"], "24"),
        # threads, children, daemons, whose output is read to the end
        (["UNAWARE", "thread"], "24"),
        (["UNAWARE", "fork"], "24"),
        (["UNAWARE", "after"], "24\n24"),
        (["sh", "-c", "UNAWARE; sh -c 'UNAWARE fork'"], "24\n24"),
        (["UNAWARE", "daemon"], "24"),
        # other programs
        (["UNAWARE", "overwritten"], "24"),
        (["TMP/script"], "24"),
        ([sys.executable, "-c", PYTHON], "24 24"),
        (["sh", "-c", "ulimit -S -f 0; UNAWARE"], "24"),
    ],
)
def test_exec_program_is_inside(
    unaware: str, tmp_path: Path, words: list[str], printed: str
) -> None:
    real = str(Path(sim_folder(), "libcuda.so.1").resolve())
    (tmp_path / "mine.so").symlink_to(real)
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\nexec {unaware}\n")
    script.chmod(0o755)
    paths = {"UNAWARE": unaware, "REAL": real, "LIBDIR": sim_folder(), "TMP": str(tmp_path)}
    for name, path in paths.items():
        words = [word.replace(name, path) for word in words]
    assert output(inside(*words)) == printed


def test_exec_program_linked_with_libcuda_is_inside(tmp_path: Path) -> None:
    source = """
#include <stdio.h>
int cuInit(unsigned);
int cuDeviceGetAttribute(int *, int, int);
int main(void) { int n = 0; cuInit(0); cuDeviceGetAttribute(&n, 16, 0); printf("%d\\n", n); }
"""
    linked = compiled(tmp_path / "linked", source, f"{sim_folder()}/libcuda.so.1")
    assert gcx("sim", "run", "--", linked, driver=None).stdout == "132\n"
    assert inside("env", f"LD_LIBRARY_PATH={sim_folder()}", linked).stdout == "24\n"


def test_exec_report_option_sets_the_visible_count(unaware: str) -> None:
    for report, count in (("device", "132"), ("partition", "24"), ("auto", "24")):
        assert output(gcx("exec", "--sms", "24", "--report", report, "--", unaware)) == count
    inner = [program(), "exec", "--sms", "24", "--", unaware]
    assert gcx("exec", "--sms", "48", "--report", "device", "--", *inner).stdout == "132\n"


def test_exec_status_and_signals_are_the_commands(unaware: str) -> None:
    assert inside(unaware, "status", "42").returncode == 42
    assert inside(unaware, "signal").returncode == 5
    killed = inside(unaware, "killed")
    assert killed.returncode == -signal.SIGKILL
    assert killed.stdout == "24\n"


def test_exec_process_becomes_the_command() -> None:
    """The same process, so that signals and job control are the command's."""
    with started("exec", "--sms", "24", "--", "sleep", "100") as process:
        assert "sleep has 24" in said(process)
        until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n")
        process.terminate()
        assert process.wait() == -signal.SIGTERM


def test_exec_program_without_cuda_has_one_more_descriptor() -> None:
    """It has no descriptor more than outside, but the reservation's, which has a high number."""
    listing = "import os; print([int(n) for n in os.listdir('/proc/self/fd')])"
    plain = subprocess.run(
        [sys.executable, "-c", listing], stdin=subprocess.DEVNULL, capture_output=True, check=True
    )
    done = inside(sys.executable, "-c", listing)
    assert done.returncode == 0
    found, before = (sorted(json.loads(text)) for text in (done.stdout, plain.stdout))
    assert [n for n in found if n < 700] == before
    assert len(found) == len(before) + 1


def test_exec_environment_keeps_other_values() -> None:
    before = {"LD_AUDIT": "/somewhere/else.so", "LD_LIBRARY_PATH": "/some/where", "OWN": "a b",
              "GLIBC_TUNABLES": "glibc.malloc.arena_max=3"}  # fmt: skip
    done = gcx(
        "exec", "--sms", "24", "--contexts", "device", "--", sys.executable, "-c", ENVIRONMENT,
        env=before,
    )  # fmt: skip
    env = json.loads(done.stdout)
    others, auditor = env["LD_AUDIT"].split(":")
    assert others == "/somewhere/else.so"
    assert auditor.endswith("/libgcx-audit.so")
    assert Path(auditor).is_file()
    assert (env["LD_LIBRARY_PATH"], env["OWN"]) == ("/some/where", "a b")
    assert env["GLIBC_TUNABLES"] == "glibc.malloc.arena_max=3:glibc.rtld.optional_static_tls=8192"
    assert env["GCX_SIM"] == "h100@13.0"
    words = env["GCX_EXEC_PLAN"].split()
    assert words[0] == "gcx-exec-1"
    plan = dict(word.split("=", 1) for word in words[1:])
    assert Path(plan["driver"]).samefile(Path(sim_folder(), "libcuda.so.1"))
    names = ("report", "contexts", "family", "sms", "atoms", "of")
    assert [plan[name] for name in names] == ["auto", "device", "coscheduled", "24", "0-2", "16"]


def test_exec_under_sim_run_uses_the_simulated_driver(unaware: str) -> None:
    """The libcuda that gcx exec finds is the simulated one."""
    words = ["sim", "run", "--gpu", "h200", "--", program(), "exec", "--sms", "16", "--", unaware]
    done = gcx(*words, driver=None)
    assert (done.returncode, done.stdout) == (0, "16\n"), done
    assert "16 of the 132 SMs of device 0 (NVIDIA H200)" in done.stderr


def test_exec_nested_divides_the_partition(unaware: str) -> None:
    """A gcx exec in a gcx exec divides the partition of the first."""

    def nested(options: str) -> Done:
        return inside(program(), "exec", *options.split(), "--", unaware, sms="32")

    done = nested("--sms 16")
    assert (done.returncode, done.stdout) == (0, "16\n"), done
    assert "has 16 of the 32 SMs of device 0" in done.stderr
    assert nested("--sms rest").stdout == "32\n"
    assert nested("--sms 50%").stdout == "16\n"
    for options, message in {
        "--sms 40": "32",
        "--sms 8 --family fine": "leave out --family fine",
        "--sms 8 --driver sim:h100": "leave it out",
    }.items():
        done = nested(options)
        assert (done.returncode, done.stdout) == (125, ""), done
        assert message in done.stderr.splitlines()[1]
    inner = [program(), "exec", "--device", "1", "--sms", "8", "--", unaware]
    done = gcx("exec", "--layout", "0=24,1=48", "--", *inner, driver="sim:2xh100@13.0")
    assert (done.returncode, done.stdout) == (0, "24 8\n"), "keeps a device that it does not name"


def test_exec_sim_run_inside_has_the_whole_device(unaware: str) -> None:
    done = inside(program(), "sim", "run", "--gpu", "a100", "--", unaware)
    assert (done.returncode, done.stdout) == (0, "108\n"), done


def test_exec_concurrent_commands_share_no_sm() -> None:
    """Until the first command has ended, however it ends."""
    with started("exec", "--sms", "100", "--", "sleep", "100") as first:
        said(first)
        rest = atoms_of("--sms", "rest")
        assert len(rest) in {3, 4}
        assert "sleep" in fail(*TAKE_100, status=125)
        shared = atoms_of("--sms", "100", "--shared")
        assert shared & rest or len(shared) == 12
        first.kill()
        first.wait()
        assert gcx(*TAKE_100).returncode == 0
    for _ in range(3):
        assert atoms_of("--sms", "24") == {0, 1, 2}, "an ended command has released its SMs"


PERCENTAGES = [
    (50, 50), (25, 25, 25, 25), (20, 80), (80, 20), (75, 25), (30, 70), (70, 30), (33, 33, 34),
    (10, 20, 30, 40), (40, 30, 20, 10), (99,), (15, 85), (20, 20, 20, 20, 20), (45, 10, 45),
]  # fmt: skip
GIVEN = re.compile(r" has (\d+) of the (\d+) SMs of .*, ([\d.]+)% requested")


@pytest.mark.parametrize("gpu", SM_COUNTS)
@pytest.mark.parametrize("family", ["coscheduled", "fine"])
def test_exec_percentages_that_add_up_to_100_fit(gpu: str, family: str) -> None:
    """Each command requests its share while those before it run, and gets no more."""
    for driver in ("13.0", "13.5"):
        for shares in PERCENTAGES:
            with ExitStack() as stack:
                for share in shares:
                    words = ["exec", "--sms", f"{share}%", "--family", family, "--", "cat"]
                    line = said(stack.enter_context(started(*words, driver=f"sim:{gpu}@{driver}")))
                    if "less than the smallest part" not in line:
                        given = GIVEN.search(line)
                        assert given is not None, (gpu, driver, shares, line)
                        assert 100 * int(given[1]) <= share * int(given[2]), line


def test_exec_percentage_next_to_others_is_never_more() -> None:
    """What is left of an H100 decides only whether the remainder atom of 12 SMs is in it."""

    def next_to(*others: str) -> Done:
        with ExitStack() as stack:
            for sms in others[:-1]:
                process = started("exec", "--sms", sms, "--", "cat")
                assert " has " in said(stack.enter_context(process))
            return gcx("exec", "--sms", others[-1], "--", "true")

    for requests, given in {
        ("24", "80%"): 100,
        ("50%", "50%"): 60,
        ("64", "50%"): 60,
        ("12", "50%"): 64,
        ("12", "60%"): 72,
        ("120", "10%"): 12,
    }.items():
        assert f" has {given} of the 132 SMs" in next_to(*requests).stderr, requests
    done = next_to("120", "8%")
    assert done.returncode == 125
    assert "8% (8 SMs) of device 0 requested, which has 132 SMs, of which 12 are" in done.stderr
    assert "the nearest size that can be given is 12; request another size, wait" in done.stderr
    assert "8% (8 SMs) of device 0 requested" in next_to("rest", "8%").stderr


@pytest.mark.parametrize(
    ("holds", "options", "given"),
    [("120", "--sms 8%", 8), ("120", "--sms 50%", 60), ("12", "--sms 20 --exact", 20)],
)
def test_exec_waits_for_an_acceptable_size(holds: str, options: str, given: int) -> None:
    with started("exec", "--sms", holds, "--", "cat") as holder:
        said(holder)
        with started("exec", *options.split(), "--wait", "60", "--", "true") as waiting:
            assert "waiting for SMs of device 0" in said(waiting)
            assert holder.stdin is not None
            holder.stdin.close()
            assert f" has {given} of the 132 SMs" in said(waiting)
    assert listed_reservations() == []


def test_exec_locked_folder_is_reported(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)  # As if a process was stopped in the middle of a change.
    try:
        for wait in ((), ("--wait", "1", "--quiet")):
            done = gcx("exec", "--sms", "8", *wait, "--", "true")
            assert done.returncode == 125, done
            assert f"the folder {folder} locked for" in done.stderr
    finally:
        os.close(descriptor)


def waiting(count: int) -> bool:
    """Whether as many requests wait."""
    return [each["waits"] for each in listed_reservations()].count(True) == count


def test_exec_waiting_names_the_holder_and_the_requests_ahead() -> None:
    with started("exec", "--sms", "100", "--name", "first", "--", "cat") as holder:
        said(holder)
        with started(*WAIT_FOR_100) as second, ExitStack() as stack:
            line = said(second)
            assert "SIMULATED: waiting for SMs of device 0: it has 132 SMs, of which 32 are" in line
            assert '"first" of process' in line
            assert line.count("wait") == 1, "it does not list itself"
            until(lambda: waiting(1))
            third = stack.enter_context(started(*WAIT_FOR_100))
            assert said(third).endswith(" has 100; 1 waits ahead\n")
            until(lambda: waiting(2))
            message = fail(*TAKE_100, status=125)
            assert "has 100; 2 wait ahead; request fewer" in message
            second.terminate()
            assert second.wait() == -signal.SIGTERM


def test_exec_refusal_counts_no_sms_of_another_family() -> None:
    with started("exec", "--sms", "24", "--", "cat") as holder:
        said(holder)
        message = fail("exec", "--sms", "8", "--family", "fine", "--", "true", status=125)
        assert "of which 0 are free" in message
        assert "in the coscheduled family, which leaves none in the fine family" in message
        message = fail("exec", "--sms", "120", "--", "true", status=125)
        assert "of which 108 are free" in message


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_exec_waiting_as_first_process_ends_at_signals(number: signal.Signals) -> None:
    """As a container's first process, for which signals have no default action."""
    skip_without(*NAMESPACE, "--mount-proc")
    with started("exec", "--sms", "132", "--", "cat") as holder:
        said(holder)
        with started(
            *WAIT_FOR_100, under=[*NAMESPACE, "--mount-proc"],
            # The test runner may ignore the signal.
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
        ) as around:  # fmt: skip
            assert "waiting for SMs" in said(around)
            children = Path(f"/proc/{around.pid}/task/{around.pid}/children").read_text().split()
            os.kill(int(children[0]), number)
            assert around.wait(timeout=30) == 128 + number


@pytest.mark.parametrize("report", ["auto", "device"])
def test_verify_inside_exec_shows_the_partition(report: str) -> None:
    """With each count that programs may see."""
    verify = [program(), "verify", "--sms", "8,16"]
    outer = ["exec", "--sms", "30", "--report", report, "--quiet", "--"]
    text = gcx(*outer, *verify).stdout
    assert "32 SMs, coscheduled\n" in text
    assert "inside gcx exec: this process has 32 SMs of the device: 0-7 16-23 32-39 48-55\n" in text
    assert " SM   16  A A B B B B . . - - - - - - - -\n" in text
    assert " .  8 SMs, seen in no partition\n" in text
    assert " -  outside of the partition of gcx exec\n" in text
    assert "no SM is in two, and all are of the\npartition of gcx exec\n" in text
    document = json.loads(gcx(*outer, *verify, "--json").stdout)
    assert document["ok"] is True
    assert document["inside_exec"]["sm_count"] == document["inside_exec"]["planned"] == 32
    assert len(document["inside_exec"]["seen"]) == 32
    assert succeed_json(*verify[1:])["inside_exec"] is None


def test_verify_outside_its_partition_fails() -> None:
    done = inside("env", "-u", "LD_AUDIT", program(), "verify", "--sms", "8")
    assert done.returncode == 1
    assert "GCX_EXEC_PLAN gives this process 24 SMs of device 0, and it has 132" in done.stderr
    assert "FAILED: 1 problem" in done.stdout


def test_verify_inside_exec_under_mps_compares_no_numbers() -> None:
    words = ["exec", "--sms", "24", "--quiet", "--", program(), "verify", "--sms", "8"]
    done = gcx(*words, env=MPS)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert "inside gcx exec: this process has 24 SMs of the device\n" in done.stdout
    undivided = [*words[:3], "--device", "1", *words[3:]]
    assert "inside gcx exec" not in gcx(*undivided, driver=TWO).stdout


EXACT = {
    "--sms 10": "device 0 can't give exactly 10 SMs in the coscheduled family; the nearest sizes "
    "that can be given are 8 and 12",
    "--layout 0=131": "131 SMs in the coscheduled family; the nearest sizes that can be given are "
    "124 and 132",
    "--sms 50%": "50% of 132 SMs (66) in the coscheduled family; the nearest sizes that can be "
    "given are 64 and 68",
    "--sms 5%": "(6.6) in the coscheduled family; the nearest size that can be given is 8",
    "--sms 1 --shared": "1 SM in the coscheduled family; the nearest size that can be given is 8",
    "--sms 21 --family fine": "are 20 and 22",
    "--sms 30 --family max-cluster": "are 24 and 36",
}


@pytest.mark.parametrize("line", EXACT)
def test_exec_exact_count_that_would_be_rounded_is_refused(line: str) -> None:
    message = fail("exec", "--exact", *line.split(), "--", "true", status=125)
    assert EXACT[line] in message
    assert listed_reservations() == []


@pytest.mark.parametrize("sms", ["8", "12", "24", "124", "132", "rest", "100%"])
def test_exec_exact_count_that_fits_is_given(sms: str) -> None:
    given = {"rest": "132", "100%": "132"}.get(sms, sms)
    done = gcx("exec", "--exact", "--sms", sms, "--", "true")
    assert f"true has {given} of the 132 SMs" in done.stderr


def test_exec_exact_count_that_others_prevent_is_refused() -> None:
    """The device has one atom of 12 SMs."""
    with started("exec", "--sms", "12", "--", "cat") as holder:
        said(holder)
        message = fail("exec", "--exact", "--sms", "20", "--", "true", status=125)
        assert "20 SMs of device 0 requested, which has 132 SMs, of which 120 are free" in message
        assert "the nearest sizes that can be given are 16 and 24" in message
        assert len(listed_reservations()) == 1


def test_exec_exact_nested_counts_in_the_partition() -> None:
    outer = ["exec", "--sms", "48", "--exact", "--quiet", "--"]
    inner = [program(), "exec", "--sms", "20", "--quiet"]
    done = gcx(*outer, *inner, "--exact", "--", "true")
    assert done.returncode == 125
    assert "this partition of device 0 can't give exactly 20 SMs" in done.stderr
    assert "are 16 and 24" in done.stderr
    done = gcx(*outer, *inner, "--", "true")
    assert (done.returncode, done.stderr) == (0, "")


def test_exec_quiet_prints_only_errors(unaware: str, tmp_path: Path) -> None:
    done = gcx("exec", "--quiet", "--sms", "24", "--", unaware)
    assert (done.returncode, done.stdout, done.stderr) == (0, "24\n", "")
    inner = [program(), "exec", "--sms", "8", "--", unaware]
    done = gcx("exec", "--quiet", "--sms", "24", "--", *inner)
    assert "has 8 of the 24 SMs" in done.stderr, "is not inherited"
    assert done.stderr.count("\n") == 1
    with started("exec", "--sms", "100", "--", "cat") as holder:
        said(holder)
        for seconds in ("0.5", "1", "1.0"):
            words = ["exec", "--quiet", *WAIT_FOR_100[1:4], seconds, "--", "true"]
            start = time.monotonic()
            message = fail(*words, status=125)
            assert float(seconds) < time.monotonic() - start < float(seconds) + 30
            assert f"timed out after {float(seconds):g} s" in message
        assert message.count("\n") == 1
    static = compiled(tmp_path / "static", "int main(void) { return 0; }\n", "-static")
    done = gcx("exec", "--quiet", "--sms", "24", "--", static)
    assert done.stderr.endswith("only programs that it starts are\n"), "is outside of the partition"
    assert done.stderr.count("\n") == 1


def test_ps_names_the_command_and_a_live_process() -> None:
    def listed() -> tuple[str, int]:
        (reservation,) = listed_reservations()
        return reservation["process_name"], reservation["pid"]

    script = "sleep 100 & echo $!; cat"
    with started("exec", "--sms", "24", "--name", "job", "--", "sh", "-c", script) as first:
        assert first.stdout is not None
        assert first.stdin is not None
        background = int(first.stdout.readline())
        assert listed() == ("sh", first.pid)
        first.stdin.close()
        first.wait()
        until(lambda: Path(f"/proc/{background}/comm").read_text() == "sleep\n")
        assert listed() == ("sleep", background)
        os.kill(background, signal.SIGKILL)


def test_ps_without_a_visible_process_names_the_command() -> None:
    """As in another container, where the process is not visible."""
    skip_without(*NAMESPACE, "--mount-proc")
    with started("exec", "--sms", "24", "--", "cat") as holder:
        said(holder)
        done = gcx("ps", under=[*NAMESPACE, "--mount-proc"])
        row = done.stdout.splitlines()[2].split()
        assert row[:2] == ["cat", "24"], done
        assert row[-4:-2] == ["cat", "-"], done


def test_ps_shows_parts_below_their_reservation() -> None:
    nested = [program(), "exec", "--sms", "8", "--name", "part", "--", program(), "ps"]
    done = gcx("exec", "--sms", "24", "--name", "whole", "--", *nested)
    lines = done.stdout.splitlines()
    assert lines[0].endswith(": 24 reserved, 108 free")
    assert [line[:10] for line in lines[2:4]] == ["  whole   ", "    part  "], done


def test_exec_wait_gets_sms_that_are_released() -> None:
    with started("exec", "--sms", "100", "--", "cat") as first:
        said(first)
        fail(*TAKE_100[:3], "--wait", "0", "--", "true", status=125)
        with started(*WAIT_FOR_100[:-1], "echo", "at last") as second:
            assert first.stdin is not None
            first.stdin.close()
            assert second.communicate()[0] == "at last\n"


def test_exec_wait_reports_a_folder_that_becomes_unsafe(folder: Path) -> None:
    """Also if another process has it locked, so that the list of reservations fails first."""
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with started(*WAIT_FOR_100) as waiting:
            opened = Path(f"/proc/{waiting.pid}/fd")
            until(lambda: any(each.readlink() == folder for each in opened.iterdir()))
            folder.chmod(0o777)
            line = said(waiting)
            assert "waiting for SMs of device 0: the folder" in line
            assert "has mode 777" in line
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            assert waiting.wait(60) in {0, 125}
    finally:
        os.close(descriptor)


def test_exec_wait_without_threads_waits(tmp_path: Path) -> None:
    """As in a container with as many processes as it may have."""
    source = "#include <errno.h>\nint pthread_create(void) { return EAGAIN; }\n"
    options = ("-shared", "-fPIC", "-fno-builtin")
    preloaded = {"LD_PRELOAD": compiled(tmp_path / "no_threads.so", source, *options)}
    with started("exec", "--sms", "100", "--", "cat") as holder:
        said(holder)
        done = gcx("exec", "--sms", "100", "--wait", "1", "--", "true", env=preloaded)
        assert done.returncode == 125
        assert "timed out after 1 s" in done.stderr


def test_exec_wait_limits_all_devices_together() -> None:
    two = "sim:2xh100@13.0"
    with ExitStack() as stack:
        for device, seconds in enumerate(["4", "100"]):
            words = ["exec", "--layout", f"{device}=100", "--", "sleep", seconds]
            assert "has 100" in said(stack.enter_context(started(*words, driver=two)))
        start = time.monotonic()
        fail("exec", "--sms", "100", "--wait", "5", "--", "true", status=125, driver=two)
        assert 4 < time.monotonic() - start < 8


def test_exec_reservation_lasts_until_its_last_process_ends() -> None:
    """The shell ends; its background process keeps the SMs."""
    with started("exec", "--sms", "100", "--", "sh", "-c", "sleep 100 & echo $!") as first:
        assert first.stdout is not None
        background = int(first.stdout.readline())
        first.wait()
        fail(*TAKE_100, status=125)
        os.kill(background, signal.SIGKILL)
        until(lambda: gcx(*TAKE_100).returncode == 0)


@contextmanager
def named(name: str, *words: str, under: Sequence[str] = (), **options: str) -> Iterator[int]:
    """Reserves until the block ends, and returns the process."""
    line = ["exec", *words, "--name", name, "--", "sh", "-c", "echo; exec sleep 100"]
    with started(*line, under=under, **options) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "\n", process.communicate()
        yield process.pid


def tokens_in(text: str) -> list[str]:
    return re.findall(r" token=(\S+)", text)


def test_exec_join_shares_the_reservation(unaware: str, folder: Path) -> None:
    """It lasts until the process that joined has ended, and can be joined by that one's name."""
    with ExitStack() as second:
        with named("decode", "--sms", "24") as first, named("other", "--sms", "32"):
            done = gcx("exec", "--join", "decode", "--", "env")
            assert done.stderr == (
                "gcx exec: SIMULATED: env has 24 of the 132 SMs of device 0 (NVIDIA H100 80GB HBM3)"
                f", shared with process {first} (sleep); reserved in {folder}; without MPS, "
                "processes take turns on all SMs\n"
            )
            assert atoms_in(done.stdout) == {0, 1, 2}
            assert output(gcx("exec", "--join", "decode", "--", unaware)) == "24"
            assert len(listed_reservations()) == 2
            line = ["--join", "decode", "--quiet", "--", "sh", "-c", "echo; exec sleep 100"]
            joined = second.enter_context(started("exec", *line))
            assert joined.stdout is not None
            assert joined.stdout.readline() == "\n"
        assert [(each["name"], each["pid"]) for each in listed_reservations()] == [
            ("decode", joined.pid)
        ]
        assert "112 SMs of device 0 requested" in fail(
            "exec", "--sms", "112", "--", "true", status=125
        )
        third = gcx("exec", "--join", "decode", "--", "true")
        assert f"shared with process {joined.pid} (sleep)" in third.stderr
    until(lambda: listed_reservations() == [])
    assert inside("true", sms="132").returncode == 0


def test_exec_join_includes_all_devices(unaware: str) -> None:
    with named("decode", "--layout", "0=24,1=16", driver=TWO):
        done = gcx("exec", "--join", "decode", "--", "env", driver=TWO)
        assert "24 of the 132 SMs of device 0" in done.stderr
        assert "16 of the 108 SMs of device 1" in done.stderr
        assert len(set(tokens_in(done.stdout))) == 2
        assert output(gcx("exec", "--join", "decode", "--", unaware, driver=TWO)) == "24 16"
        # On each device of another command is one of that name.
        with named("decode", "--layout", "1=8", driver=TWO):
            message = fail("exec", "--join", "decode", "--", "true", status=125, driver=TWO)
            assert "3 reservations" in message
            assert "not known to be of one command" in message


def test_exec_join_without_such_a_reservation_lists_others(folder: Path) -> None:
    line = ["exec", "--join", "decode", "--", "true"]
    assert "it has none there, so reserve SMs with --sms" in fail(*line, status=125)
    with named("train", "--sms", "8") as train, named("all", "--sms", "rest"):
        message = fail(*line, status=125)
        assert f'of that name in {folder}; it has "all" of process ' in message
        assert f'"train" of process {train} (sleep)\n' in message
        request = ["exec", "--sms", "8", "--name", "decode", "--wait", "60", "--", "true"]
        with started(*request) as waiter:
            until(lambda: waiting(1))
            message = fail(*line, status=125)
            assert f"--join decode: process {waiter.pid} (gcx) waits for SMs of device 0" in message
            # Of another process than the one that has them.
            request[4] = "train"
            with started(*request):
                until(lambda: waiting(2))
                assert gcx("exec", "--join", "train", "--", "true").returncode == 0


def test_exec_join_finds_reservations_of_programs(unaware: str) -> None:
    """Also one that is not for other programs: the program that joined keeps it."""
    with publishers(("server", "reservation:library:24")) as (owner,):
        assert output(gcx("exec", "--join", "library", "--", unaware)) == "24"
        line = ["exec", "--join", "library", "--", "sh", "-c", "echo; read _; exec " + unaware]
        with started(*line) as joined:
            assert joined.stdout is not None
            assert joined.stdout.readline() == "\n"
            owner.end()
            assert [each["pid"] for each in listed_reservations()] == [joined.pid]
            assert joined.communicate("\n", timeout=60)[0] == "24\n"
    assert listed_reservations() == []


def test_exec_join_inside_a_partition_is_of_its_parts(unaware: str) -> None:
    script = """
$GCX exec --sms 8 --name part -- sh -c 'echo > part; exec sleep 100' &
while [ ! -e part ]; do sleep 0.01; done
$GCX exec --join part -- $UNAWARE
$GCX exec --join outside -- true
$GCX exec --join both -- true
kill $!
"""
    with named("outside", "--sms", "24"):
        env = {"GCX": program(), "UNAWARE": unaware}
        line = ["exec", "--sms", "16", "--name", "both", "--", "sh", "-c", script]
        done = gcx(*line, env=env, cwd=Path(os.environ["GCX_RESERVATION_DIR"]).parent)
    assert done.stdout == "8\n"
    lines = done.stderr.splitlines()
    assert "8 of the 16 SMs of device 0 (NVIDIA H100 80GB HBM3), shared with process" in lines[2]
    for message, name in zip(lines[3:5], ("outside", "both"), strict=True):
        assert f"--join {name}: this user has no reservation of that name in " in message
        assert 'inside the partition in which gcx exec runs; it has "part" of process' in message


def test_exec_join_of_what_is_partly_outside_is_refused() -> None:
    with named("decode", "--layout", "0=24,1=16", driver=TWO):
        inner = [program(), "exec", "--join", "decode", "--", "true"]
        done = gcx("exec", "--layout", "0=8", "--", *inner, driver=TWO)
        assert "also has SMs of device 0, outside the partition" in done.stderr
        assert done.returncode == 125


# What is said of a wrong command line, and the lines.
WRONG = {
    "no command to run": ["", "--sms 24"],
    "--sms is missing": ["-- true"],
    "0 SMs": ["--sms 0 -- true", "--sms 0% -- true", "--sms 0.0% -- true", "--layout 0=0% -- true"],
    '"x"': ["--sms x -- true"],
    '"12.5" is not a count of SMs': ["--sms 12.5 -- true"],
    **{
        f'"{text}%" is not a percentage like 12.5%, with at most 9 digits after the point': [
            f"--sms {text}% -- true"
        ]
        for text in ("1e3", "-5", "nan", "12.5.1", "+5", "5.", ".5", "1.0000000001", "50%", "0x5")
    },
    '"24,"': ["--sms 24, -- true"],
    "100% at most": ["--sms 101% -- true", "--layout 0=100.1% -- true"],
    '"%"': ["--sms % -- true"],
    "1024": ["--sms 99999 -- true"],
    "2 is empty": ["--sms 24 --device 0,,1 -- true"],
    "given twice": ["--sms 24 --device 0,0 -- true", "--layout 0=24,0=8 -- true"],
    "give an ordinal": ["--sms 24 --device zero -- true"],
    "leave out --sms": ["--sms 24 --layout 0=24 -- true"],
    "leave out --device": ["--layout 0=24 --device 0 -- true"],
    "DEVICE=SMS": ["--layout 24 -- true", "--layout =24 -- true"],
    '""': ["--layout 0= -- true"],
    "no such family": ["--sms 24 --family big -- true"],
    "auto, partition or device": ["--sms 24 --report both -- true"],
    "partition or device": ["--sms 24 --contexts green -- true"],
    "unknown option --bogus": ["--sms 24 --bogus -- true"],
    "no device 1": ["--sms 24 --device 1 -- true"],
    "none of this driver's devices": ["--sms 24 --device GPU-ffff0000 -- true"],
    "132": ["--sms 140 -- true"],
    "give 7% or more, or --sms 8": ["--sms 5% -- true"],
    "from 0 to 4000000 with at most 3 digits after the point, e.g. --wait 60": [
        f"--sms 8 --wait {seconds} -- true"
        for seconds in ("-1", "1.", ".5", "0.0001", "4000001", "4000000.001", "1e3", "inf")
    ],
    "leave one": ["--sms 8 --shared --name x -- true", "--sms 8 --shared --wait 3 -- true"],
    '"soon"': ["--sms 8 --wait soon -- true"],
    "as they are; leave out --sms": ["--join x --sms 8 -- true"],
    "as they are; leave out --layout": ["--join x --layout 0=8 -- true"],
    "as they are; leave out --device": ["--join x --device 0 -- true"],
    "as they are; leave out --family": ["--join x --family fine -- true"],
    "as they are; leave out --exact": ["--join x --exact -- true"],
    "as they are; leave out --wait": ["--join x --wait 3 -- true"],
    "as they are; leave out --name": ["--join x --name y -- true"],
    "as they are; leave out --shared": ["--join x --shared -- true"],
    "--join has no name": ["--join= -- true"],
    "/nowhere/libcuda.so.1": ["--driver /nowhere/libcuda.so.1 --sms 24 -- true"],
}


@pytest.mark.parametrize(("reason", "line"), pairs(WRONG))
def test_exec_wrong_line_exits_with_125(reason: str, line: str) -> None:
    """125 is the failure of gcx itself, as for env(1)."""
    assert reason in fail("exec", *line.split(), status=125)


def test_exec_with_a_corrupt_outer_plan_is_refused() -> None:
    message = fail(*TAKE_100, status=125, env={"GCX_EXEC_PLAN": "gcx-exec-9 sms=3"})
    assert "belongs to a gcx exec around this one" in message
    message = fail(*TAKE_100, status=125, driver="sim:nonsense@13.0")
    assert "sim:nonsense" not in message


# A program that removes the folder of its reservation before it starts CUDA.
LOSES_FOLDER = """
import ctypes, os, shutil
shutil.rmtree(os.environ["GCX_RESERVATION_DIR"])
cuda = ctypes.CDLL("libcuda.so.1")
print(cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0))
"""


def test_exec_message_of_a_program_names_no_c_function(folder: Path) -> None:
    words = ["exec", "--quiet", "--sms", "24", "--", sys.executable, "-c", LOSES_FOLDER]
    done = gcx(*words, env={"GCX_RESERVATION_DIR": str(folder)})
    assert done.stdout == "0 304\n"
    assert done.stderr.startswith("gcx exec: device 0: no partition of 24 SMs: can't open"), done


def test_exec_message_of_a_program_has_no_control_characters(tmp_path: Path) -> None:
    folder = tmp_path / "\x1b[31m"
    folder.mkdir(mode=0o700)
    words = ["exec", "--sms", "24", "--", sys.executable, "-c", LOSES_FOLDER]
    done = gcx(*words, env={"GCX_RESERVATION_DIR": str(folder)})
    assert done.stdout == "0 304\n"
    assert "\x1b" not in done.stderr
    assert f"{tmp_path}/?[31m: No such file or directory" in done.stderr


def test_exec_closed_descriptors_stay_closed() -> None:
    """The command finds them closed: gcx exec leaves nothing open in their place."""
    probe = "import os; print([os.path.exists(f'/proc/self/fd/{n}') for n in (0, 2)])"
    done = gcx(
        "exec", "--sms", "24", "--", sys.executable, "-c", probe,
        under=["sh", "-c", '"$@" <&- 2>&-', "sh"],
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "[False, False]\n")


def test_exec_command_that_can_not_run_has_shell_status(tmp_path: Path) -> None:
    done = inside("no-such-program")
    assert done.returncode == 127
    assert "can't run no-such-program" in done.stderr
    assert " has " not in done.stderr, "reserves nothing"
    for name, (mode, content) in {
        "text": (0o644, b"text"),
        "format": (0o755, b"\x7fELF\0"),
        "interpreter": (0o755, b"#!/nonexistent/interpreter\n"),
    }.items():
        file = tmp_path / name
        file.write_bytes(content)
        file.chmod(mode)
        for word in (str(file), name):
            done = gcx("exec", "--sms", "24", "--", word, env={"PATH": f"/nonexistent:{tmp_path}"})
            assert done.returncode == 126, done
            assert f"can't run {word}: " in done.stderr
    assert "interpreter or loader that it names does not exist" in done.stderr
    for line in (("exec", "--sms", "24"), ("sim", "run")):
        done = gcx(*line, "--", "")
        assert done.returncode == 127
        assert done.stderr.endswith("can't run the command: its name is empty; give one after --\n")
    assert inside(str(tmp_path)).returncode == 126
    os.mkfifo(tmp_path / "pipe", 0o755)
    script = tmp_path / "script"
    script.write_text(f"#!{tmp_path}/pipe\n")
    script.chmod(0o755)
    assert inside(str(script)).returncode == 126
    script.write_text('echo "$1"')
    assert inside(str(script), "run by a shell").stdout == "run by a shell\n"


def test_exec_program_out_of_reach_is_reported(unaware: str, tmp_path: Path) -> None:
    source = (
        "#include <unistd.h>\n"
        "int main(int c, char **v) { return c > 1 ? execv(v[1], v + 1) : 0; }\n"
    )
    static = compiled(tmp_path / "static", source, "-static")
    # It isn't in the partition; the program that it starts is.
    done = inside(static, unaware)
    assert (done.returncode, done.stdout) == (0, "24\n")
    assert f"{static} is statically linked" in done.stderr
    assert "only programs that it starts are" in done.stderr
    # A loader that runs a program puts it into the partition.
    loader = subprocess.run(
        ["sh", "-c", f"ldd {unaware} | grep -o '/[^ ]*/ld-linux[^ ]*'"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    assert output(inside(loader, unaware)) == "24"
    # The loader of a setuid program ignores the environment.
    if os.geteuid() == 0:
        setuid = tmp_path / "setuid"
        setuid.write_bytes(Path(unaware).read_bytes())
        os.chown(setuid, 12345, 12345)
        setuid.chmod(0o4755)
        done = inside(str(setuid))
        if not os.statvfs(setuid).f_flag & os.ST_NOSUID:
            assert (done.returncode, done.stdout) == (125, "")
            assert "sudo gcx exec" in done.stderr
        # With no_new_privs the program gains no privileges.
        without = shutil.which("setpriv")
        if without is not None:
            words = ["exec", "--sms", "24", "--", str(setuid)]
            assert output(gcx(*words, under=[without, "--no-new-privs"])) == "24"


class Requesters:
    """Threads that request more SMs than are free, again and again."""

    def __init__(self, count: int, *words: str) -> None:
        self.granted: list[str] = []
        self.refused = 0
        self.ended = threading.Event()
        self.words = words
        self.threads = [threading.Thread(target=self.ask) for _ in range(count)]

    def ask(self) -> None:
        while not self.ended.is_set():
            done = gcx("exec", *self.words, "--", "true")
            if done.returncode == 125 and "requested" in done.stderr:
                self.refused += 1
            else:
                self.granted.append(done.stderr)

    def __enter__(self) -> Requesters:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join()


LAUNCHER = "import subprocess, sys; subprocess.Popen(sys.argv[1:], close_fds=True)"
BEGINNINGS = {
    "started by a launcher that ends": [sys.executable, "-c", LAUNCHER, "PROGRAM", "plain"],
    "daemon that closes everything": ["PROGRAM", "daemon"],
    "becomes other programs": ["PROGRAM", "becomes"],
    "start-stop-daemon": ["start-stop-daemon", "PROGRAM", "plain"],
}


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_exec_reservation_survives_any_way_to_start(
    unaware: str, tmp_path: Path, beginning: str
) -> None:
    """No other command gets its SMs before it starts CUDA, and it can then use them."""
    file, printed = tmp_path / "server", tmp_path / "output"
    words = list(BEGINNINGS[beginning])
    place = words.index("PROGRAM")
    words[place : place + 1] = [unaware, "server", str(file)]
    if words[0] == "start-stop-daemon":
        starter = shutil.which(words[0], path="/usr/sbin:/sbin:/usr/bin:/bin")
        if starter is None:
            pytest.skip("this machine has no start-stop-daemon")
        words = [starter, "--start", "--background", "--output", str(printed), "--exec", unaware,
                 "--", *words[2:]]  # fmt: skip
    line = ["exec", "--sms", "24", "--name", "server", "--", *words]
    with printed.open("w") as out, started(*line, stdout=out) as launcher:
        try:
            assert "has 24" in said(launcher)
            with Requesters(2, "--sms", "112") as requesters:
                assert launcher.wait(timeout=60) == 0
                time.sleep(2)
                file.with_suffix(".use").touch()
                until(lambda: printed.read_text().endswith("\n"))
            assert printed.read_text() == "24\n"
            assert requesters.granted == []
            assert requesters.refused > 5
        finally:
            for end in (".use", ".end"):
                file.with_suffix(end).touch()
            launcher.wait()
    # Its SMs are released when it ends.
    until(lambda: inside("true", sms="132").returncode == 0)


# An audit library that keeps the loader of every program waiting while a file exists.
SLOW_START = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
unsigned la_version(unsigned version) {
    char waiting[4096];
    const char* const gate = getenv("GATE");
    snprintf(waiting, sizeof waiting, "%s.waiting", gate);
    if (access(gate, F_OK) == 0)
        fclose(fopen(waiting, "w"));
    while (access(gate, F_OK) == 0)
        usleep(1000);
    return version;
}
"""
# Becomes a program to which it leaves no descriptor, after it has created the file.
CLOSES_AND_BECOMES = """
import os, sys
open(sys.argv[1], "w").close()
os.closerange(3, 4096)
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_exec_reservation_survives_a_slow_start(unaware: str, tmp_path: Path) -> None:
    """However long a program's loader takes, as on a busy machine, until it has a lock again."""
    file, gate = tmp_path / "server", tmp_path / "gate"
    waiting = gate.with_suffix(".waiting")
    slow = compiled(tmp_path / "slow.so", SLOW_START, "-shared", "-fPIC", "-D_GNU_SOURCE")
    words = [sys.executable, "-c", CLOSES_AND_BECOMES, str(gate), unaware, "server", str(file)]
    under = ["env", f"LD_AUDIT={slow}", f"GATE={gate}"]
    try:
        with started("exec", "--sms", "24", "--", *words, "plain", under=under) as server:
            assert "has 24" in said(server)
            until(waiting.exists)
            for _ in range(2):
                message = fail("exec", "--sms", "112", "--", "true", status=125)
                assert f"of process {server.pid} (" in message, message
                assert [each["pid"] for each in listed_reservations()] == [server.pid]
            file.with_suffix(".use").touch()
            gate.unlink()
            assert server.stdout is not None
            assert server.stdout.readline() == "24\n"
    finally:
        gate.unlink(missing_ok=True)
        file.with_suffix(".end").touch()
    until(lambda: inside("true", sms="132").returncode == 0)


NESTED = r"""
trap "touch end" EXIT
$GCX exec --sms 24 --name a -- \
    sh -c 'touch a; while [ ! -e end ]; do sleep 0.01; done; touch ended' &
while [ ! -e a ]; do sleep 0.01; done
$GCX exec --sms 32 -- true && exit 1
$GCX exec --sms rest --name b -- env > b
$GCX ps --json > ps
(sleep 0.3; touch end) &
$GCX exec --sms 32 --name c --wait 60 -- sh -c 'ls ended; env' > c
"""


def test_exec_nested_commands_have_disjoint_sms(tmp_path: Path) -> None:
    words = ["exec", "--sms", "48", "--name", "outer", "--", "sh", "-c", NESTED]
    done = gcx(*words, env={"GCX": program()}, cwd=tmp_path)
    assert done.returncode == 0, done
    assert atoms_in((tmp_path / "b").read_text()) == {3, 4, 5}
    assert atoms_in((tmp_path / "c").read_text()) == {0, 1, 2, 3}
    assert (tmp_path / "c").read_text().startswith("ended\n")
    assert "32 SMs of this partition of device 0 requested, which has 48 SMs" in done.stderr
    assert "waiting for SMs of this partition of device 0: it has 48 SMs" in done.stderr
    listed = json.loads((tmp_path / "ps").read_text())["reservations"]
    reservations = {reservation["name"]: reservation for reservation in listed}
    assert reservations["a"]["parent"] == reservations["outer"]["id"]
    assert reservations["outer"]["parent"] is None


def test_exec_nested_with_another_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    """Its reservation would not be a part of the outer one."""
    other, link = tmp_path / "other", tmp_path / "link"
    other.mkdir(mode=0o700)
    link.symlink_to(folder)

    def nested(variable: str, *options: str) -> Done:
        words = ["env", variable, program(), "exec", "--sms", "8", *options, "--", "true"]
        return gcx("exec", "--quiet", "--sms", "24", "--", *words)

    done = nested(f"GCX_RESERVATION_DIR={other}")
    assert done.returncode == 125
    assert (
        f"gcx exec: SIMULATED: GCX_RESERVATION_DIR is {other}; gcx exec reserved the SMs of this "
        f"process in {folder}, and stores reservations in them there; leave it out"
    ) in done.stderr
    for same in (f"GCX_RESERVATION_DIR={link}", f"GCX_RESERVATION_DIR={folder}/", "OTHER=1"):
        assert nested(same).returncode == 0
    assert nested("-uGCX_RESERVATION_DIR").returncode == 0
    assert nested(f"GCX_RESERVATION_DIR={other}", "--shared").returncode == 0


def test_exec_nested_in_shared_sms_reserves_nothing() -> None:
    inner = [program(), "exec", "--sms", "8", "--", program(), "ps", "--json"]
    document = json.loads(gcx("exec", "--sms", "24", "--shared", "--", *inner).stdout)
    assert document["reservations"] == []
