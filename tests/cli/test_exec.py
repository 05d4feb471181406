"""gcx exec: programs without gcx on a part of the simulated GPU."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from .command import SM_COUNTS, Done, fail, gcx, program

ENVIRONMENT = "import os, json; print(json.dumps(dict(os.environ)))"
TWO = "sim:h100,a100@13.0"


@pytest.fixture(autouse=True)
def own_reservations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private folder for the reservations of this test."""
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("GCX_RESERVATION_DIR", str(folder))
    return folder


@pytest.fixture(scope="module")
def unaware(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program of exec_program.c, built."""
    path = tmp_path_factory.mktemp("exec") / "unaware"
    source = Path(__file__).with_name("exec_program.c")
    done = subprocess.run(
        ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-o", str(path), str(source),
         "-ldl", "-pthread"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return str(path)


def sim_folder() -> str:
    """The folder with the simulated libcuda.so.1."""
    return os.environ["GCX_SIM_LIBDIR"]


def inside(*words: str, sms: str = "24", driver: str = "sim:h100@13.0") -> Done:
    return gcx("exec", "--sms", sms, "--", *words, driver=driver)


def output(done: Done) -> str:
    """Returns what the program printed; it succeeded, and gcx exec printed its one line."""
    assert done.returncode == 0, done
    assert done.stderr.startswith("gcx exec: SIMULATED: "), done
    assert done.stderr.count("\n") == 1, done
    return done.stdout.strip()


def test_exec_announces_sms_and_reservation(unaware: str, own_reservations: Path) -> None:
    done = inside(unaware)
    assert done.stdout == "24\n"
    assert done.stderr == (
        f"gcx exec: SIMULATED: {unaware} has 24 of the 132 SMs of device 0 "
        f"(NVIDIA H100 80GB HBM3); reserved in {own_reservations}; without MPS, processes take "
        "turns on all SMs\n"
    )
    done = gcx("exec", "--sms", "24", "--", unaware, env={"GCX_SIM_MPS": "1"})
    assert done.stderr.endswith(
        f"(NVIDIA H100 80GB HBM3); no other reservation in {own_reservations} has them\n"
    )
    nested = [program(), "exec", "--sms", "8", "--", unaware]
    done = gcx("exec", "--sms", "24", "--", *nested, env={"GCX_SIM_MPS": "1"})
    assert done.stderr.endswith(
        f"; no other part of that reservation has them, in {own_reservations}\n"
    )
    done = gcx("exec", "--sms", "24", "--shared", "--", unaware)
    assert done.stderr.endswith(
        "(NVIDIA H100 80GB HBM3); without MPS, processes take turns on all SMs\n"
    )
    done = gcx("exec", "--sms", "24", "--shared", "--", unaware, env={"GCX_SIM_MPS": "1"})
    assert done.stderr.endswith("(NVIDIA H100 80GB HBM3)\n")


def test_exec_default_folder_is_the_same_in_all_sessions(tmp_path: Path) -> None:
    """A command of a login, one of a service with PrivateTmp, and one of sudo."""
    if subprocess.run(["unshare", "-r", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mount namespace of its own: unshare -r -m fails")
    script = """
set -e
mount -t tmpfs -o mode=1777 none /dev/shm
export GCX_SIM_MPS=1 GCX_DRIVER=sim:h100@13.0
unset GCX_RESERVATION_DIR XDG_RUNTIME_DIR
coproc XDG_RUNTIME_DIR=$RUNTIME "$GCX" exec --sms 100 --name login -- sh -c 'echo has; read -r _'
read -r _ <&"${COPROC[0]}"
tried=0
unshare -m sh -c 'mount -t tmpfs none /tmp && exec "$GCX" exec --sms 100 -- true' || tried=$?
HOME=/ XDG_RUNTIME_DIR=/ "$GCX" ps
echo "$tried"
"""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    done = subprocess.run(
        ["unshare", "-r", "-m", "bash", "-c", script],
        env={**os.environ, "GCX": program(), "RUNTIME": str(private)},
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
        ("100%", "coscheduled", 132),
        ("rest", "coscheduled", 132),
        ("21", "fine", 22),
        ("24", "max-cluster", 24),
    ],
)
def test_exec_share_gives_whole_atoms(unaware: str, sms: str, family: str, given: int) -> None:
    done = gcx("exec", "--sms", sms, "--family", family, "--", unaware)
    assert output(done) == str(given)
    assert f" has {given} of the 132 SMs" in done.stderr
    asked = sms.isdigit() and int(sms) != given
    assert (f", {sms} requested" in done.stderr) == asked


def test_exec_devices_get_their_shares(unaware: str) -> None:
    def counts(*options: str) -> str:
        return output(gcx("exec", *options, "--", unaware, driver=TWO))

    assert counts("--sms", "24") == "24 24"
    assert counts("--sms", "50%") == "64 52"
    assert counts("--sms", "24", "--device", "0") == "24 108"
    assert counts("--sms", "24", "--device", "1") == "132 24"
    assert counts("--sms", "24", "--device", "1,0") == "24 24"
    assert counts("--layout", "0=24,1=50%") == "24 52"
    assert counts("--layout", "1=rest,0=8") == "8 108"
    listed = json.loads(gcx("info", "--json", driver=TWO).stdout)
    uuids = [device["uuid"] for device in listed["devices"]]
    assert counts("--layout", f"{uuids[1]}=16") == "132 16"
    assert counts("--layout", f"{uuids[0][:14]}=16") == "16 108"


def test_exec_report_option_sets_the_visible_count(unaware: str) -> None:
    assert output(gcx("exec", "--sms", "24", "--report", "device", "--", unaware)) == "132"
    assert output(gcx("exec", "--sms", "24", "--report", "partition", "--", unaware)) == "24"
    assert output(gcx("exec", "--sms", "24", "--report", "auto", "--", unaware)) == "24"


def test_exec_libcuda_by_any_path_is_partitioned(unaware: str, tmp_path: Path) -> None:
    assert output(inside(unaware, "path", "libcuda.so")) == "24"
    real = str(Path(sim_folder(), "libcuda.so.1").resolve())
    assert output(inside(unaware, "path", real)) == "24"
    assert output(inside(unaware, "path", f"{sim_folder()}/libcuda.so.1")) == "24"
    (tmp_path / "mine.so").symlink_to(real)
    assert output(inside(unaware, "path", str(tmp_path / "mine.so"))) == "24"
    assert output(inside(unaware, "moved", sim_folder())) == "24"
    assert output(inside("env", f"LD_LIBRARY_PATH={sim_folder()}", unaware)) == "24"


def test_exec_children_and_threads_are_inside(unaware: str) -> None:
    assert output(inside(unaware, "thread")) == "24"
    assert output(inside(unaware, "fork")) == "24"
    assert output(inside(unaware, "after")) == "24\n24"
    assert output(inside("sh", "-c", f"{unaware}; sh -c '{unaware} fork'")) == "24\n24"


def test_exec_program_that_overwrites_its_environment_is_inside(unaware: str) -> None:
    assert output(inside(unaware, "overwritten")) == "24"


def test_exec_daemon_is_inside(unaware: str) -> None:
    # Its output is read to the end, so it has ended too.
    assert output(inside(unaware, "daemon")) == "24"


def test_exec_script_is_inside(unaware: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\nexec {unaware}\n")
    script.chmod(0o755)
    assert output(inside(str(script))) == "24"


def test_exec_python_and_its_child_are_inside(unaware: str) -> None:
    source = (
        "import ctypes, subprocess\n"
        "cuda = ctypes.CDLL('libcuda.so.1')\n"
        "value = ctypes.c_int()\n"
        "assert cuda.cuInit(0) == 0\n"
        "assert cuda.cuDeviceGetAttribute(ctypes.byref(value), 16, 0) == 0\n"
        f"print(value.value, subprocess.check_output(['{unaware}'], text=True).strip())\n"
    )
    assert output(inside(sys.executable, "-c", source)) == "24 24"


def test_exec_status_and_signals_are_the_commands(unaware: str) -> None:
    assert inside(unaware, "status", "42").returncode == 42
    assert inside(unaware, "signal").returncode == 5
    killed = inside(unaware, "killed")
    assert killed.returncode == -signal.SIGKILL
    assert killed.stdout == "24\n"


def test_exec_process_becomes_the_command() -> None:
    """The same process, so that signals and job control are the command's."""
    with subprocess.Popen(
        [program(), "exec", "--sms", "24", "--", "sleep", "100"],
        env={**os.environ, "GCX_DRIVER": "sim:h100@13.0"},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert "sleep has 24" in process.stderr.readline()
        name = Path(f"/proc/{process.pid}/comm")
        limit = time.monotonic() + 30
        while name.read_text().strip() != "sleep" and time.monotonic() < limit:
            time.sleep(0.01)
        assert name.read_text().strip() == "sleep"
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
    assert env["LD_LIBRARY_PATH"] == "/some/where"
    assert env["OWN"] == "a b"
    assert env["GLIBC_TUNABLES"] == ("glibc.malloc.arena_max=3:glibc.rtld.optional_static_tls=8192")
    assert env["GCX_SIM"] == "h100@13.0"
    words = env["GCX_EXEC_PLAN"].split()
    assert words[0] == "gcx-exec-1"
    plan = dict(word.split("=", 1) for word in words[1:])
    assert Path(plan["driver"]).samefile(Path(sim_folder(), "libcuda.so.1"))
    assert (plan["report"], plan["contexts"]) == ("auto", "device")
    assert (plan["family"], plan["sms"], plan["atoms"], plan["of"]) == (
        "coscheduled", "24", "0-2", "16",
    )  # fmt: skip


def test_exec_under_sim_run_uses_the_simulated_driver(unaware: str) -> None:
    """The libcuda that gcx exec finds is the simulated one."""
    words = ["sim", "run", "--gpu", "h200", "--", program(), "exec", "--sms", "16", "--", unaware]
    done = gcx(*words, driver=None)
    assert (done.returncode, done.stdout) == (0, "16\n"), done
    assert "16 of the 132 SMs of device 0 (NVIDIA H200)" in done.stderr


def test_exec_nested_divides_the_partition(unaware: str) -> None:
    """A gcx exec in a gcx exec divides the partition of the first."""

    def nested(*inner: str) -> Done:
        return inside(program(), "exec", *inner, "--", unaware, sms="32")

    done = nested("--sms", "16")
    assert (done.returncode, done.stdout) == (0, "16\n"), done
    assert "has 16 of the 32 SMs of device 0" in done.stderr
    assert nested("--sms", "rest").stdout == "32\n"
    assert nested("--sms", "50%").stdout == "16\n"
    for words, message in (
        (["--sms", "40"], "32"),
        (["--sms", "8", "--family", "fine"], "leave out --family fine"),
        (["--sms", "8", "--driver", "sim:h100"], "leave it out"),
    ):
        done = nested(*words)
        assert (done.returncode, done.stdout) == (125, ""), done
        assert message in done.stderr.splitlines()[1]


def atoms_of(done: Done) -> set[int]:
    """Returns the atoms of the plan in a printed environment."""
    words = json.loads(done.stdout)["GCX_EXEC_PLAN"].split()
    found: set[int] = set()
    for part in dict(word.split("=", 1) for word in words[1:])["atoms"].split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def printed(*options: str) -> Done:
    return gcx("exec", *options, "--", sys.executable, "-c", ENVIRONMENT)


@contextmanager
def holder(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Runs a gcx exec that has its SMs until the block ends."""
    with subprocess.Popen(
        [program(), "exec", *words],
        env={**os.environ, "GCX_DRIVER": "sim:h100@13.0"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert "has " in process.stderr.readline()
        yield process
        process.kill()


def test_exec_concurrent_commands_share_no_sm() -> None:
    """Until the first command has ended, however it ends."""
    with holder("--sms", "100", "--", "sleep", "100") as first:
        rest = atoms_of(printed("--sms", "rest"))
        assert len(rest) in {3, 4}
        done = gcx("exec", "--sms", "100", "--", "true")
        assert (done.returncode, done.stdout) == (125, "")
        assert "sleep" in done.stderr
        shared = atoms_of(printed("--sms", "100", "--shared"))
        assert shared & rest or len(shared) == 12
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        assert printed("--sms", "100").returncode == 0


PERCENTAGES = [
    (50, 50), (25, 25, 25, 25), (20, 80), (80, 20), (75, 25), (30, 70), (70, 30), (33, 33, 34),
    (10, 20, 30, 40), (40, 30, 20, 10), (99,), (15, 85), (20, 20, 20, 20, 20), (45, 10, 45),
]  # fmt: skip


@pytest.mark.parametrize("gpu", SM_COUNTS)
@pytest.mark.parametrize("family", ["coscheduled", "fine"])
def test_exec_percentages_that_add_up_to_100_fit(gpu: str, family: str, tmp_path: Path) -> None:
    """Each command requests its share while those before it run."""
    for driver in ("13.0", "13.5"):
        for shares in PERCENTAGES:
            # One shell: each command starts the next, outside its own partition.
            given: list[str] = []
            env = {"GCX_RESERVATION_DIR": str(tmp_path)}
            with ExitStack() as stack:
                for share in shares:
                    process = stack.enter_context(
                        subprocess.Popen(
                            [program(), "exec", "--sms", f"{share}%", "--family", family,
                             "--", "cat"],
                            env={**os.environ, **env, "GCX_DRIVER": f"sim:{gpu}@{driver}"},
                            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                        )
                    )  # fmt: skip
                    stack.callback(process.kill)
                    assert process.stderr is not None
                    line = process.stderr.readline()
                    if "less than the smallest part" in line:
                        continue
                    assert " has " in line, (gpu, driver, shares, given, line)
                    given.append(line)


def test_exec_waiting_names_the_holder() -> None:
    with holder("--sms", "100", "--name", "first", "--", "cat"):
        waiting = subprocess.Popen(
            [program(), "exec", "--sms", "100", "--wait", "60", "--", "true"],
            env={**os.environ, "GCX_DRIVER": "sim:h100@13.0"}, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert waiting.stderr is not None
        line = waiting.stderr.readline()
        assert "SIMULATED: waiting for SMs of device 0: it has 132 SMs, of which 32 are" in line
        assert '"first" of process' in line
        assert line.count("wait") == 1, "it does not list itself"
        waiting.send_signal(signal.SIGTERM)
        assert waiting.wait() == -signal.SIGTERM
        waiting.stderr.close()


def test_exec_waiting_counts_the_requests_ahead() -> None:
    def waiting(stack: ExitStack) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [program(), "exec", "--sms", "100", "--wait", "60", "--", "true"],
            env={**os.environ, "GCX_DRIVER": "sim:h100@13.0"}, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process

    with holder("--sms", "100", "--", "cat"), ExitStack() as stack:
        assert ahead_of(waiting(stack)) == ""
        until_waiting(1)
        assert ahead_of(waiting(stack)) == "; 1 waits ahead"
        until_waiting(2)
        done = gcx("exec", "--sms", "100", "--", "true")
        assert "has 100; 2 wait ahead; request fewer" in done.stderr


def ahead_of(process: subprocess.Popen[str]) -> str:
    """Returns what the first line says of the requests that wait."""
    assert process.stderr is not None
    return process.stderr.readline().rstrip("\n").partition(" has 100")[2]


def until_waiting(count: int) -> None:
    limit = time.monotonic() + 30
    while sum(reservation["waits"] for reservation in listed_reservations()) != count:
        assert time.monotonic() < limit


def listed_reservations() -> list[dict[str, Any]]:
    document = json.loads(gcx("ps", "--json").stdout)
    reservations = document["reservations"]
    assert isinstance(reservations, list)
    return reservations


def test_exec_refusal_counts_no_sms_of_another_family() -> None:
    with holder("--sms", "24", "--", "cat"):
        done = gcx("exec", "--sms", "8", "--family", "fine", "--", "true")
        assert done.returncode == 125
        assert "of which 0 are free" in done.stderr
        assert "in the coscheduled family, which leaves none in the fine family" in done.stderr
        done = gcx("exec", "--sms", "120", "--", "true")
        assert "of which 108 are free" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_exec_waiting_as_first_process_ends_at_signals(number: signal.Signals) -> None:
    """As a container's first process, for which signals have no default action."""
    if (
        gcx("ps").returncode != 0
        or subprocess.run(
            ["unshare", "--pid", "--fork", "true"], check=False, capture_output=True
        ).returncode
    ):
        pytest.skip("this machine allows no PID namespaces")
    with holder("--sms", "132", "--", "cat"):
        around = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--mount-proc",
             program(), "exec", "--sms", "24", "--wait", "60", "--", "true"],
            env={**os.environ, "GCX_DRIVER": "sim:h100@13.0"}, stderr=subprocess.PIPE, text=True,
            # The test runner may ignore the signal.
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
        )  # fmt: skip
        assert around.stderr is not None
        assert "waiting for SMs" in around.stderr.readline()
        children = Path(f"/proc/{around.pid}/task/{around.pid}/children").read_text().split()
        os.kill(int(children[0]), number)
        assert around.wait(timeout=30) == 128 + number
        around.stderr.close()


def test_exec_nested_keeps_devices_that_it_does_not_name(unaware: str) -> None:
    inner = [program(), "exec", "--device", "1", "--sms", "8", "--", unaware]
    done = gcx("exec", "--layout", "0=24,1=48", "--", *inner, driver="sim:2xh100@13.0")
    assert (done.returncode, done.stdout) == (0, "24 8\n"), done


def test_exec_nested_inherits_report_option(unaware: str) -> None:
    inner = [program(), "exec", "--sms", "24", "--", unaware]
    assert gcx("exec", "--sms", "48", "--report", "device", "--", *inner).stdout == "132\n"


def test_exec_sim_run_inside_has_the_whole_device(unaware: str) -> None:
    done = inside(program(), "sim", "run", "--gpu", "a100", "--", unaware)
    assert (done.returncode, done.stdout) == (0, "108\n"), done


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
    assert json.loads(gcx(*verify[1:], "--json").stdout)["inside_exec"] is None


def test_verify_outside_its_partition_fails() -> None:
    left = ["env", "-u", "LD_AUDIT", program(), "verify", "--sms", "8"]
    done = inside(*left)
    assert done.returncode == 1
    assert "GCX_EXEC_PLAN gives this process 24 SMs of device 0, and it has 132" in done.stderr
    assert "FAILED: 1 problem" in done.stdout


def test_verify_inside_exec_under_mps_compares_no_numbers() -> None:
    words = ["exec", "--sms", "24", "--quiet", "--", program(), "verify", "--sms", "8"]
    done = gcx(*words, env={"GCX_SIM_MPS": "1"})
    assert (done.returncode, done.stderr) == (0, ""), done
    assert "inside gcx exec: this process has 24 SMs of the device\n" in done.stdout


def test_verify_of_an_undivided_device_is_as_outside() -> None:
    words = ["--sms", "24", "--device", "1", "--quiet", "--", program(), "verify", "--sms", "8"]
    assert "inside gcx exec" not in gcx("exec", *words, driver=TWO).stdout


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
    with holder("--sms", "12", "--", "cat"):
        message = fail("exec", "--exact", "--sms", "20", "--", "true", status=125)
        assert "what others leave of device 0 can't give exactly 20 SMs now" in message
        assert "the nearest sizes that can be given are 16 and 24" in message
        assert len(listed_reservations()) == 1


def test_exec_exact_nested_counts_in_the_partition() -> None:
    inner = [program(), "exec", "--sms", "20", "--quiet"]
    done = gcx("exec", "--sms", "48", "--exact", "--quiet", "--", *inner, "--exact", "--", "true")
    assert done.returncode == 125
    assert "this partition of device 0 can't give exactly 20 SMs" in done.stderr
    assert "are 16 and 24" in done.stderr
    done = gcx("exec", "--sms", "48", "--exact", "--quiet", "--", *inner, "--", "true")
    assert (done.returncode, done.stderr) == (0, "")


def test_exec_quiet_prints_only_errors(unaware: str, tmp_path: Path) -> None:
    done = gcx("exec", "--quiet", "--sms", "24", "--", unaware)
    assert (done.returncode, done.stdout, done.stderr) == (0, "24\n", "")
    with holder("--sms", "100", "--", "cat"):
        done = gcx("exec", "--quiet", "--sms", "100", "--wait", "1", "--", "true")
        assert done.returncode == 125
        assert "timed out after 1 s" in done.stderr
        assert done.stderr.count("\n") == 1
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }\n")
    static = tmp_path / "static"
    subprocess.run(["gcc", "-static", "-o", str(static), str(source)], check=True)
    assert "statically linked" in gcx("exec", "--sms", "24", "--", str(static)).stderr
    assert gcx("exec", "--quiet", "--sms", "24", "--", str(static)).stderr == ""


def test_exec_quiet_is_not_inherited(unaware: str) -> None:
    inner = [program(), "exec", "--sms", "8", "--", unaware]
    done = gcx("exec", "--quiet", "--sms", "24", "--", *inner)
    assert done.stderr.count("\n") == 1
    assert "has 8 of the 24 SMs" in done.stderr


def test_ps_names_the_command_and_a_live_process() -> None:
    with holder(
        "--sms", "24", "--name", "job", "--", "sh", "-c", "sleep 100 & echo $!; cat"
    ) as first:
        assert first.stdout is not None
        background = int(first.stdout.readline())
        reservation = listed_reservations()[0]
        assert (reservation["process_name"], reservation["pid"]) == ("sh", first.pid)
        assert first.stdin is not None
        first.stdin.close()
        first.wait()
        limit = time.monotonic() + 30
        while Path(f"/proc/{background}/comm").read_text() != "sleep\n":
            assert time.monotonic() < limit
        reservation = listed_reservations()[0]
        assert (reservation["process_name"], reservation["pid"]) == ("sleep", background)
        os.kill(background, signal.SIGKILL)


def test_ps_without_a_visible_process_names_the_command(tmp_path: Path) -> None:
    """As in another container, where the process is not visible."""
    if subprocess.run(
        ["unshare", "--pid", "--fork", "true"], check=False, capture_output=True
    ).returncode:
        pytest.skip("this machine allows no PID namespaces")
    del tmp_path
    with holder("--sms", "24", "--", "cat"):
        done = subprocess.run(
            ["unshare", "--pid", "--fork", "--mount-proc", program(), "ps"],
            env={**os.environ, "GCX_DRIVER": "sim:h100@13.0"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        row = done.stdout.splitlines()[2].split()
        assert row[:2] == ["cat", "24"], done
        assert row[-4:-2] == ["cat", "-"], done


def test_exec_missing_command_reserves_nothing() -> None:
    done = inside("no-such-program")
    assert done.returncode == 127
    assert " has " not in done.stderr


def test_exec_file_size_limit_does_not_end_the_program(unaware: str) -> None:
    done = inside("sh", "-c", f"ulimit -S -f 0; {unaware}")
    assert (done.returncode, done.stdout) == (0, "24\n"), done


def test_exec_program_linked_with_libcuda_is_inside(tmp_path: Path) -> None:
    source = tmp_path / "linked.c"
    source.write_text(
        "#include <stdio.h>\n"
        "int cuInit(unsigned); int cuDeviceGetAttribute(int *, int, int);\n"
        "int main(void) { int n = 0; cuInit(0); cuDeviceGetAttribute(&n, 16, 0);\n"
        '    printf("%d\\n", n); return 0; }\n'
    )
    linked = str(tmp_path / "linked")
    subprocess.run(["gcc", "-o", linked, str(source), f"{sim_folder()}/libcuda.so.1"], check=True)
    assert gcx("sim", "run", "--", linked, driver=None).stdout == "132\n"
    assert inside("env", f"LD_LIBRARY_PATH={sim_folder()}", linked).stdout == "24\n"


def test_exec_wait_gets_sms_that_are_released() -> None:
    with holder("--sms", "100", "--", "cat") as first:
        assert gcx("exec", "--sms", "100", "--wait", "0", "--", "true").returncode == 125
        second = subprocess.Popen(
            [program(), "exec", "--sms", "100", "--wait", "60", "--", "echo", "at last"],
            env={**os.environ, "GCX_DRIVER": "sim:h100@13.0"}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert first.stdin is not None
        first.stdin.close()
        assert second.communicate()[0] == "at last\n"


def test_exec_wait_limits_all_devices_together() -> None:
    """--wait is for all of them together."""
    both = {**os.environ, "GCX_DRIVER": "sim:2xh100@13.0"}
    with ExitStack() as stack:
        for device, words in enumerate((["sleep", "4"], ["sleep", "100"])):
            process = stack.enter_context(
                subprocess.Popen(
                    [program(), "exec", "--layout", f"{device}=100", "--", *words],
                    env=both, stderr=subprocess.PIPE, text=True,
                )
            )  # fmt: skip
            stack.callback(process.kill)
            assert process.stderr is not None
            assert "has 100" in process.stderr.readline()
        start = time.monotonic()
        done = gcx("exec", "--sms", "100", "--wait", "5", "--", "true", driver="sim:2xh100@13.0")
        assert done.returncode == 125
        assert 4 < time.monotonic() - start < 8


def test_exec_reservation_lasts_until_its_last_process_ends() -> None:
    """The shell ends; its background process keeps the SMs."""
    with holder("--sms", "100", "--", "sh", "-c", "sleep 100 & echo $!") as first:
        assert first.stdout is not None
        background = int(first.stdout.readline())
        first.wait()
        assert gcx("exec", "--sms", "100", "--", "true").returncode == 125
        os.kill(background, signal.SIGKILL)
        limit = time.monotonic() + 30
        while gcx("exec", "--sms", "100", "--", "true").returncode != 0:
            assert time.monotonic() < limit


def test_exec_nested_is_part_of_the_outer_reservation() -> None:
    """The inner reservation is a part of the outer one."""
    inner = [program(), "exec", "--sms", "8", "--", sys.executable, "-c", ENVIRONMENT]
    done = gcx("exec", "--sms", "16", "--", *inner)
    assert done.returncode == 0, done
    assert atoms_of(done) < {0, 1}
    assert " token=" in json.loads(done.stdout)["GCX_EXEC_PLAN"]


WRONG = {
    "": "no command to run",
    "--sms 24": "no command to run",
    "-- true": "--sms is missing",
    "--sms 0 -- true": "0 SMs",
    "--sms x -- true": '"x"',
    "--sms 24, -- true": '"24,"',
    "--sms 101% -- true": "100% at most",
    "--sms 0% -- true": "0 SMs",
    "--sms % -- true": '"%"',
    "--sms 99999 -- true": "1024",
    "--sms 24 --device 0,,1 -- true": "2 is empty",
    "--sms 24 --device 0,0 -- true": "given twice",
    "--sms 24 --device zero -- true": "give an ordinal",
    "--sms 24 --layout 0=24 -- true": "leave out --sms",
    "--layout 0=24 --device 0 -- true": "leave out --device",
    "--layout 24 -- true": "DEVICE=SMS",
    "--layout =24 -- true": "DEVICE=SMS",
    "--layout 0=24,0=8 -- true": "given twice",
    "--layout 0= -- true": '""',
    "--sms 24 --family big -- true": "no such family",
    "--sms 24 --report both -- true": "auto, partition or device",
    "--sms 24 --contexts green -- true": "refuse or device",
    "--sms 24 --bogus -- true": "unknown option --bogus",
    "--sms 24 --device 1 -- true": "no device 1",
    "--sms 24 --device GPU-ffff0000 -- true": "none of this driver's devices",
    "--sms 140 -- true": "132",
    "--sms 5% -- true": "give 7% or more, or --sms 8",
    "--sms 8 --shared --name x -- true": "leave one",
    "--sms 8 --shared --wait 3 -- true": "leave one",
    "--sms 8 --wait soon -- true": '"soon"',
}


@pytest.mark.parametrize("line", WRONG)
def test_exec_wrong_line_exits_with_125(line: str) -> None:
    """125 is the failure of gcx itself, as for env(1)."""
    assert WRONG[line] in fail("exec", *line.split(), status=125)


def test_exec_with_a_corrupt_outer_plan_is_refused() -> None:
    done = gcx("exec", "--sms", "8", "--", "true", env={"GCX_EXEC_PLAN": "gcx-exec-9 sms=3"})
    assert done.returncode == 125
    assert "belongs to a gcx exec around this one" in done.stderr


def test_exec_failing_driver_call_runs_nothing() -> None:
    """Nothing runs then, and the status is 125."""
    failures = 0
    for nth in range(1, 60):
        done = gcx("exec", "--sms", "24", "--", "echo", "ran", env={"GCX_SIM_FAIL": f"*:{nth}:999"})
        if done.returncode == 0:
            assert done.stdout == "ran\n"
            continue
        failures += 1
        assert (done.returncode, done.stdout) == (125, ""), (nth, done)
        assert "SIMULATED" in done.stderr
    assert failures > 3


def test_exec_closed_descriptors_stay_closed() -> None:
    """The command finds them closed: gcx exec leaves nothing open in their place."""
    probe = "import os; print([os.path.exists(f'/proc/self/fd/{n}') for n in (0, 2)])"
    done = subprocess.run(
        ["sh", "-c", '"$@" <&- 2>&-', "sh", program(), "exec", "--sms", "24", "--",
         sys.executable, "-c", probe],
        env={**os.environ, "GCX_DRIVER": "sim:h100@13.0"},
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "[False, False]\n")


def test_exec_without_a_driver_exits_with_125() -> None:
    fail("exec", "--sms", "24", "--", "true", status=125, driver="/nowhere/libcuda.so.1")
    assert "sim:nonsense" not in fail(
        "exec", "--sms", "8", "--", "true", status=125, driver="sim:nonsense@13.0"
    )


def test_exec_command_that_can_not_run_has_shell_status(tmp_path: Path) -> None:
    assert "can't run no-such-program" in gcx("exec", "--sms", "24", "--", "no-such-program").stderr
    assert gcx("exec", "--sms", "24", "--", "no-such-program").returncode == 127
    assert gcx("exec", "--sms", "24", "--", str(tmp_path)).returncode == 126
    file = tmp_path / "file"
    file.write_text("text")
    assert gcx("exec", "--sms", "24", "--", str(file)).returncode == 126


def test_exec_program_out_of_reach_is_reported(unaware: str, tmp_path: Path) -> None:
    source = tmp_path / "static.c"
    source.write_text(
        "#include <unistd.h>\n"
        "int main(int c, char **v) { return c > 1 ? execv(v[1], v + 1) : 0; }\n"
    )
    static = tmp_path / "static"
    built = subprocess.run(["gcc", "-static", "-o", str(static), str(source)], check=False)
    if built.returncode != 0:
        pytest.skip("this machine has no static libc")
    # It isn't in the partition; the program that it starts is.
    done = inside(str(static), unaware)
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
            words = [program(), "exec", "--sms", "24", "--", str(setuid)]
            done = subprocess.run(
                [without, "--no-new-privs", *words], capture_output=True, text=True, check=False,
                env={**os.environ, "GCX_DRIVER": "sim:h100@13.0"},
            )  # fmt: skip
            assert output(done) == "24"


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
    file, output = tmp_path / "server", tmp_path / "output"
    words = list(BEGINNINGS[beginning])
    place = words.index("PROGRAM")
    words[place : place + 1] = [unaware, "server", str(file)]
    if words[0] == "start-stop-daemon":
        starter = shutil.which(words[0], path="/usr/sbin:/sbin:/usr/bin:/bin")
        if starter is None:
            pytest.skip("this machine has no start-stop-daemon")
        words = [starter, "--start", "--background", "--output", str(output), "--exec", unaware,
                 "--", *words[2:]]  # fmt: skip
    with output.open("w") as out:
        launcher = subprocess.Popen(
            [program(), "exec", "--sms", "24", "--name", "server", "--", *words],
            env={**os.environ, "GCX_DRIVER": "sim:h100@13.0"},
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    try:
        assert launcher.stderr is not None
        assert "has 24" in launcher.stderr.readline()
        with Requesters(2, "--sms", "112") as requesters:
            assert launcher.wait(timeout=60) == 0
            time.sleep(2)
            file.with_suffix(".use").touch()
            limit = time.monotonic() + 60
            while not output.read_text().endswith("\n") and time.monotonic() < limit:
                time.sleep(0.01)
        said = output.read_text()
        assert said == "24\n"
        assert requesters.granted == []
        assert requesters.refused > 5
    finally:
        for end in (".use", ".end"):
            file.with_suffix(end).touch()
        launcher.wait()
        assert launcher.stderr is not None
        launcher.stderr.close()
    # Its SMs are released when it ends.
    limit = time.monotonic() + 60
    while printed("--sms", "132").returncode != 0:
        assert time.monotonic() < limit


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


def plan_atoms(text: str) -> set[int]:
    """Returns the atoms in the output of env."""
    lines = [line for line in text.splitlines() if line.startswith("GCX_EXEC_PLAN=")]
    found: set[int] = set()
    for part in dict(word.split("=", 1) for word in lines[0].split()[1:])["atoms"].split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def test_exec_nested_commands_have_disjoint_sms(tmp_path: Path) -> None:
    done = subprocess.run(
        [program(), "exec", "--sms", "48", "--name", "outer", "--", "sh", "-c", NESTED],
        env={**os.environ, "GCX_DRIVER": "sim:h100@13.0", "GCX": program()},
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done
    assert plan_atoms((tmp_path / "b").read_text()) == {3, 4, 5}
    assert plan_atoms((tmp_path / "c").read_text()) == {0, 1, 2, 3}
    assert (tmp_path / "c").read_text().startswith("ended\n")
    assert "32 SMs of this partition of device 0 requested, which has 48 SMs" in done.stderr
    assert "waiting for SMs of this partition of device 0: it has 48 SMs" in done.stderr
    reservations = {
        reservation["name"]: reservation
        for reservation in json.loads((tmp_path / "ps").read_text())["reservations"]
    }
    assert reservations["a"]["parent"] == reservations["outer"]["id"]
    assert reservations["outer"]["parent"] is None


def test_ps_shows_parts_below_their_reservation() -> None:
    nested = [program(), "exec", "--sms", "8", "--name", "part", "--", program(), "ps"]
    done = gcx("exec", "--sms", "24", "--name", "whole", "--", *nested)
    lines = done.stdout.splitlines()
    assert lines[0].endswith(": 24 reserved, 108 free")
    assert [line[:10] for line in lines[2:4]] == ["  whole   ", "    part  "], done


def test_exec_nested_in_shared_sms_reserves_nothing() -> None:
    inner = [program(), "exec", "--sms", "8", "--", program(), "ps", "--json"]
    assert (
        json.loads(gcx("exec", "--sms", "24", "--shared", "--", *inner).stdout)["reservations"]
        == []
    )


def test_exec_ended_command_releases_its_sms() -> None:
    for _ in range(3):
        assert atoms_of(printed("--sms", "24")) == {0, 1, 2}
