"""gcx verify: the SMs seen, the map, the picture, and a driver that breaks its promises."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from .command import (
    FAMILIES,
    MACHINES,
    SM_COUNTS,
    Json,
    compiled,
    fail,
    gcx,
    program,
    succeed,
    succeed_json,
)

SVG = "{http://www.w3.org/2000/svg}"
ESCAPE = "\x1b"


def check_verified(verified: Json, total: int) -> None:
    """Checks the document of a successful verification."""
    assert verified["ok"] is True
    assert verified["overlap"] == 0
    assert type(verified["overlap"]) is int
    assert verified["problems"] == []
    seen: list[int] = []
    for group in verified["groups"]:
        assert set(group) == {"requested", "sm_count", "seen"}
        assert len(group["seen"]) == group["sm_count"]
        assert group["requested"] == "rest" or group["requested"] <= group["sm_count"]
        assert group["seen"] == sorted(group["seen"])
        seen += group["seen"]
    assert len(set(seen)) == len(seen)
    assert all(0 <= sm < total for sm in seen)
    assert len(seen) + verified["remainder"] == total


@pytest.mark.parametrize("machine", MACHINES)
def test_verify_on_every_machine_sees_what_was_planned(machine: str) -> None:
    """In each family that the machine has."""
    gpu = machine.removeprefix("sim:").split("@")[0]
    for family in FAMILIES:
        line = ["--sms", "3,6,rest", "--family", family]
        plan = gcx("plan", *line, "--json", driver=machine)
        if plan.returncode != 0:
            fail("verify", *line, driver=machine)
            continue
        verified = succeed_json("verify", *line, driver=machine)
        check_verified(verified, SM_COUNTS[gpu])
        planned = [group["sm_count"] for group in json.loads(plan.stdout)["groups"]]
        assert [group["sm_count"] for group in verified["groups"]] == planned


def test_verify_of_66_partitions_succeeds() -> None:
    verified = succeed_json("verify", "--sms", ",".join(["2"] * 66), "--family", "fine")
    check_verified(verified, 132)
    assert len(verified["groups"]) == 66


def on_a_terminal(*words: str, **env: str) -> str:
    """The command's output when standard output is a terminal, which holds all of it."""
    try:
        ours, its = pty.openpty()
    except OSError as error:
        pytest.skip(f"needs a terminal, but pty.openpty() fails: {error}; is /dev/pts mounted?")
    assert gcx(*words, stdout=its, env=env).returncode == 0
    os.close(its)
    output = b""
    with contextlib.suppress(OSError):  # EIO: all was read. It can arrive in several parts.
        while part := os.read(ours, 65536):
            output += part
    os.close(ours)
    return output.decode()


def test_verify_colours_only_on_a_terminal() -> None:
    line = ["verify", "--sms", "108,24"]
    coloured = on_a_terminal(*line, TERM="xterm-256color")
    assert ESCAPE in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured).replace("\r\n", "\n")
    assert plain == succeed(*line), "the colours are all that differs"
    assert ESCAPE not in on_a_terminal(*line, TERM="xterm-256color", NO_COLOR="1")
    assert ESCAPE not in on_a_terminal(*line, TERM="dumb")
    assert ESCAPE not in on_a_terminal(*line, "--json", TERM="xterm-256color")
    assert ESCAPE not in succeed(*line, env={"TERM": "xterm-256color"})


@pytest.mark.parametrize("gpu", SM_COUNTS)
def test_verify_svg_draws_every_sm(gpu: str, tmp_path: Path) -> None:
    path = tmp_path / "map.svg"
    line = ["verify", "--sms", "4,8", "--svg", str(path)]
    verified = succeed_json(*line, driver=f"sim:{gpu}@13.0")
    assert verified["svg"] == str(path)
    root = ElementTree.parse(path).getroot()
    assert root.tag == f"{SVG}svg"
    text = " ".join(root.itertext())
    assert "SIMULATED" in text
    name = succeed_json("info", driver=f"sim:{gpu}@13.0")["devices"][0]["name"]
    assert name in text
    cells = [each for each in root.iter() if each.get("data-sm") is not None]
    assert [int(each.get("data-sm", "")) for each in cells] == list(range(SM_COUNTS[gpu]))
    for letter, group in zip("AB", verified["groups"]):
        of_group = [each for each in cells if each.get("data-partition") == letter]
        assert [int(each.get("data-sm", "")) for each in of_group] == group["seen"]
    raw = path.read_text()
    assert "prefers-color-scheme: dark" in raw
    outside = re.findall(r"(?:href|src|url)\s*[=(]", raw)
    assert outside == [], "the picture needs no other file"


@pytest.fixture(scope="module")
def bad_driver(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Builds bad_driver.c and returns its environment variables."""
    library = tmp_path_factory.mktemp("driver") / "libbad_driver.so"
    source = Path(__file__).with_name("bad_driver.c")
    driver = compiled(library, source, "-D_GNU_SOURCE", "-shared", "-fPIC", "-ldl")
    simulation = succeed_json("sim", "list")["library"]
    env = {"GCX_DRIVER": driver, "BAD_DRIVER_LIBRARY": simulation, "GCX_SIM": "h100@13.0"}
    line = ["verify", "--sms", "8,8"]
    check_verified(succeed_json(*line, driver=None, env={**env, "BAD_DRIVER_FAULT": "no"}), 132)
    return env


def test_verify_of_missing_sms_counts_only_those_seen(
    bad_driver: dict[str, str], tmp_path: Path
) -> None:
    """The map counts what was seen, and the picture says that it is not what was promised. A driver
    that wraps the simulation keeps the mark in device names."""
    path = tmp_path / "map.svg"
    line = ["verify", "--sms", "16,8", "--svg", str(path)]
    done = gcx(*line, driver=None, env={**bad_driver, "BAD_DRIVER_FAULT": "fewer"})
    assert done.returncode == 1
    assert ".  110 SMs, seen in no partition" in done.stdout
    for text in (done.stdout, path.read_text()):
        assert "SIMULATED" in text
    assert "2 partitions of 132 SMs: NOT as promised" in path.read_text()
    done = gcx(*line, driver=None, env={**bad_driver, "BAD_DRIVER_FAULT": "none"})
    assert done.returncode == 1
    assert "A  16 SMs, 0 seen: none" in done.stdout


@pytest.mark.parametrize("command", ["verify", "split"])
def test_verify_and_split_of_missing_sms_fail(command: str, bad_driver: dict[str, str]) -> None:
    line = [command, "--sms", "16,8", "--json"]
    done = gcx(*line, driver=None, env={**bad_driver, "BAD_DRIVER_FAULT": "fewer"})
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert [len(group["seen"]) for group in document["groups"]] == [15, 7]
    for letter, promised, seen in (("A", 16, 15), ("B", 8, 7)):
        assert re.search(rf"partition {letter}\b.*\b{promised}\b.*\b{seen}\b", done.stderr)
    if command == "verify":
        assert document["ok"] is False
        assert len(document["problems"]) == 2


def test_verify_of_partitions_that_share_an_sm_fails(
    bad_driver: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "map.svg"
    env = {**bad_driver, "BAD_DRIVER_FAULT": "shared"}
    line = ["verify", "--sms", "16,8", "--svg", str(path)]
    document = json.loads(gcx(*line, "--json", driver=None, env=env).stdout)
    assert (document["ok"], document["overlap"]) == (False, 1)
    assert "1 SM, seen in more than one partition" in path.read_text()
    done = gcx(*line, driver=None, env=env)
    assert done.returncode == 1
    assert "share 1 SM: 0" in done.stderr
    assert "FAILED" in done.stdout
    assert "\nok" not in done.stdout
    assert re.search(r"SM +0 +!", done.stdout)


SHARED = {"GCX_SIM_DYNAMIC_PARALLELISM": "1"}
REASON = (
    "SMs 124-125 are shared by all partitions of this process: a module with dynamic parallelism "
    "is loaded"
)


@pytest.mark.parametrize("counts", ["24", "24,16", "108,24", "8,8,8,8"])
@pytest.mark.parametrize("machine", ["sim:h100@12.4", "sim:h200@13.0"])
def test_verify_with_shared_sms_names_the_reason(machine: str, counts: str) -> None:
    done = gcx("verify", "--sms", counts, "--json", driver=machine, env=SHARED)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert document["ok"] is False
    assert document["problems"] == [REASON]
    assert document["shared_by_all"] == [124, 125]
    extra = [len(group["seen"]) - group["sm_count"] for group in document["groups"]]
    # 108 SMs hold the remainder atom, and so the shared SMs.
    assert extra == [0 if group["sm_count"] == 108 else 2 for group in document["groups"]]
    for command in ("verify", "split"):
        done = gcx(command, "--sms", counts, driver=machine, env=SHARED)
        assert done.returncode == 1
        assert REASON in done.stderr
        if command == "verify":
            assert "FAILED: 1 problem" in done.stdout
            assert "\nok" not in done.stdout


@pytest.mark.parametrize(
    ("machine", "counts"),
    [
        ("sim:h200@13.0", "132"),  # no SM outside the partition exists
        ("sim:a100@13.0", "24,24"),  # of other compute capabilities
        ("sim:b200@13.0", "24,24"),
    ],
)
def test_verify_without_shared_sms_succeeds(machine: str, counts: str) -> None:
    document = succeed_json("verify", "--sms", counts, driver=machine, env=SHARED)
    assert (document["ok"], document["shared_by_all"]) == (True, [])


def test_verify_with_shared_sms_under_mps_explains_without_numbers() -> None:
    done = gcx("verify", "--sms", "24,24", "--json", env={**SHARED, "GCX_SIM_MPS": "1"})
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert document["shared_by_all"] == []
    assert len(document["problems"]) == 2
    for problem in document["problems"]:
        assert "were seen on 26" in problem
        assert "a loaded module with dynamic parallelism adds as many" in problem


def test_verify_names_sm_numbers_beyond_the_count() -> None:
    """Under MPS they are virtual and begin with 0."""
    line = "\n%smid goes up to 131 in A, 53 in B: kernels must not index an array of a partition's "
    assert line in succeed("verify", "--sms", "108,24")
    assert "%smid" not in succeed("verify", "--sms", "132")
    assert "%smid" not in succeed("verify", "--sms", "108,24", env={"GCX_SIM_MPS": "1"})
    words = ["exec", "--sms", "32", "--quiet", "--", program(), "verify", "--sms", "8"]
    assert "\n%smid goes up to 55 in this process, 49 in A: " in gcx(*words).stdout
