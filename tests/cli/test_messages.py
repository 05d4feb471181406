"""Messages of the command name its options, never C functions and fields."""

from __future__ import annotations

import re

import pytest

from .command import fail, gcx, program, said, started

# Environment variables, which users know.
VARIABLES = r"GCX_(DRIVER|RESERVATION_DIR|SIM_LIBRARY|EXEC_PLAN|PUBLISH)\b"
C_NAMES = re.compile(
    r"\bgcx_\w+|\bGCX_\w+|\bNULL\b|->|\b(min_|exclusive_)?sm_count\b|\btimeout_ms\b|\bgroup \d"
    r"|\bstruct\b|\*count\b"
)

LONG = "x" * 100
# Everything here fails, whatever the machine.
LINES = [
    *(f"{command} {options}" for command in ("plan", "split", "verify") for options in (
        "--sms 133", "--sms 10 --exact", "--sms 8,10 --exact", "--sms 8 --device 3",
        "--sms 132,8", "--sms rest,140", "--sms 132,rest", "--sms 1000,1000",
        "--sms 8 --family max-cluster --driver sim:a100@13.0",
        "--sms 8 --family max-cluster --driver sim:orin@12.4", "--sms 0", "--sms x",
        "--sms 0%", "--sms 101%", "--sms x%", "--sms 1%", "--sms 100%,8%",
        f"--sms 8%{15 * ',8%'}", "--sms 50% --exact",
        "--sms 8 --driver sim:h100@12.2", "--sms 8 --driver sim:none@13.0",
        "--sms 8 --driver sim:nogpu", "--sms 8 --driver sim:h100@99",
        "--sms 8 --driver sim:/nonexistent", "--sms 8 --driver /nonexistent.so",
        "--sms 8 --driver /dev/null", "--sms 8 --driver libc.so.6",
    )),
    "info --device 3", "info --device 3 --limits", "info --record /nonexistent/x",
    "info --driver sim:h100@12.2", "verify --sms 8 --svg /nonexistent/x",
    "bench --device 3 --rounds 2", "bench --rounds 0", "bench --driver sim:none@13.0",
    "bench repartition --device 3 --rounds 2", "bench repartition --driver sim:none@13.0",
    *(f"exec {options} -- true" for options in (
        "--sms 140", "--sms 1000", "--sms 1024", "--sms 140 --shared", "--sms 5%",
        "--sms 24 --device 1", "--sms 24 --family max-cluster --driver sim:a100@13.0",
        "--sms 24 --shared --family max-cluster --driver sim:a100@13.0", f"--sms 24 --name {LONG}",
        "--sms 10 --exact", "--sms 8 --driver sim:none@13.0", "--sms 8 --driver /nonexistent.so",
        "--sms 8 --wait soon", "--sms 0", "--layout 0=24,1=8",
    )),
    "ps --folder=", "ps --folder x", "ps --folder /nonexistent", "ps --folder /tmp",
    "ps --folder /etc/passwd", f"ps --folder /{50 * LONG}",
    "sim run -- /nonexistent", "sim run --gpu nosuch -- true", "sim run --gpu /nonexistent -- true",
    "sim run --driver 99 -- true", "top --interval 0", "help nosuch", "help plan split",
]  # fmt: skip
# A command that runs in a partition of 24 SMs.
INSIDE = [
    "exec --sms 30 -- true", "exec --sms 8 --family fine -- true", "exec --sms 30 --shared -- true",
    "exec --sms 10 --exact -- true", "exec --sms 8 --driver sim:a100@13.0 -- true",
    "plan --sms 30", "verify --sms 30", "split --sms 30",
]  # fmt: skip
# While another has 120 of the 132 SMs.
NEXT_TO = [
    "exec --sms 24 -- true", "exec --sms 24 --wait 1 -- true", "exec --sms 8% -- true",
    "exec --sms 20 --exact -- true",
    "exec --sms 8 --family fine -- true", "exec --sms 24 --driver sim:h100@12.8 -- true",
    "exec --layout 0=24 --wait 1 --quiet -- true",
]  # fmt: skip
FOLDERS = ["relative", "/nonexistent", "/tmp", "/etc/passwd", f"/{50 * LONG}"]


def check(message: str) -> None:
    assert message.startswith(("gcx", "SIMULATED")), message
    found = C_NAMES.findall(re.sub(VARIABLES, "", message))
    assert C_NAMES.search(re.sub(VARIABLES, "", message)) is None, (found, message)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:60])
def test_failure_message_has_no_c_names(line: str) -> None:
    done = gcx(*line.split())
    assert done.returncode != 0, done
    check(done.stderr)


@pytest.mark.parametrize("line", INSIDE)
def test_failure_message_inside_exec_has_no_c_names(line: str) -> None:
    done = gcx("exec", "--sms", "24", "--quiet", "--", program(), *line.split())
    assert done.returncode != 0, done
    check(done.stderr)


def test_refusal_message_has_no_c_names() -> None:
    with started("exec", "--sms", "120", "--name", "big", "--", "cat") as holder:
        said(holder)
        for line in NEXT_TO:
            check(fail(*line.split(), status=125))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder[:20])
def test_unusable_folder_message_has_no_c_names(folder: str) -> None:
    for line in ("exec --sms 24 -- true", "ps", "top --once"):
        done = gcx(*line.split(), env={"GCX_RESERVATION_DIR": folder})
        assert done.returncode != 0 or "warning: " in done.stdout, done
        check(done.stderr or "gcx top: " + done.stdout)


def test_quoted_name_in_message_is_unchanged() -> None:
    """Users may choose any name."""
    words = ["exec", "--sms", "24", "--name", "gcx_reservation_acquire", "--quiet", "--", program()]
    done = gcx(*words, "exec", "--sms", "30", "--", "true")
    assert 'the reservation "gcx_reservation_acquire" of device 0 has 24 SMs' in done.stderr, done


def test_mps_percentage_message_has_no_c_names() -> None:
    limited = {"GCX_SIM_MPS": "1", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50"}
    inner = [program(), "exec", "--sms", "8", "--", "true"]
    done = gcx("exec", "--sms", "8", "--quiet", "--", *inner, env=limited)
    assert done.returncode == 125, done
    check(done.stderr)
