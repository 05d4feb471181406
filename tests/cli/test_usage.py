"""Wrong command lines are explained with status 2; every command has help."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import signal
from pathlib import Path

import pytest

from .command import H100, fail, fail_json, gcx, pairs, succeed, succeed_json

COMMANDS = ["info", "plan", "split", "verify", "bench", "bench repartition", "exec", "ps", "top",
            "sim list", "sim run"]  # fmt: skip
SPLITTING = ["plan", "split", "verify"]

# What is said of a wrong command line, and the lines.
WRONG_COUNTS = {
    "2 is empty": ["108,,24", "108,"],
    "1 is empty": [",108"],
    '"COUNT" is not a percentage': ["-3%", "1e9%", "5.%", "%", "8%%"],
    "100% at most": ["101%"],
    '"COUNT"': ["-3", "1e9", "12x", " 8", "+8", "0x10", "8.0", "8;8", "4294967297", "Rest"],
    "99999": ["99999"],
    "0 SMs": ["0", "0%", "0.00%"],
}
WRONG_LINES = {
    "gcx help": [""],
    '"frobnicate"': ["frobnicate", "bench frobnicate", "help frobnicate"],
    "sim list": ["sim", "sim frobnicate"],
    "no command": ["sim run", "sim run --"],
    "--sms is missing": SPLITTING,
    "--sms needs a value": ["plan --sms", "plan --sms --exact"],
    "--sms is given twice": ["plan --sms 8 --sms 16"],
    "unknown option --bogus": ["plan --sms 8 --bogus", "--bogus"],
    "unknown option -x": ["plan --sms 8 -x"],
    '"16"': ["plan --sms 8 16"],
    "--json takes no value": ["plan --sms 8 --json=yes"],
    "--exact takes no value": ["plan --sms 8 --exact=1"],
    "--version takes no value": ["--version=1"],
    "give an ordinal or at least 4 digits of a UUID": [
        *(f"plan --sms 8 --device {device}" for device in ("x", "-1", "GPU-12", "1.0")),
        *(f"{command} --device 1b2" for command in ("info", "bench", "bench repartition")),
    ],
    "--device needs a value": ["plan --sms 8 --device"],
    "coscheduled, fine and max-cluster": ["plan --sms 8 --family structured"],
    "unknown option --svg": ["plan --sms 8 --svg a.svg"],
    '"extra"': ["info extra", "ps extra", "top extra", "sim list extra"],
    "unknown option --sms": ["info --sms 8"],
    "--record needs a value": ["info --record"],
    "--record is empty": ["info --record="],
    "--driver is empty": ["info --driver=", "sim run --driver= -- true"],
    "--svg needs a value": ["verify --sms 8 --svg"],
    "--svg is empty": ["verify --sms 8 --svg="],
    '"0"': ["bench --rounds 0", "top --interval 0"],
    '"many"': ["bench --rounds many"],
    '"1e3"': ["bench --rounds 1e3"],
    "--folder needs a value": ["ps --folder"],
    "--interval needs a value": ["top --interval"],
    "--once is given twice": ["top --once --once"],
    '"h999"': ["sim run --gpu h999 -- true"],
    "--gpu is empty": ["sim run --gpu= -- true"],
    '"9.9"': ["sim run --driver 9.9 -- true"],
    "one command at a time": ["help plan split"],
    "no command before --": ["-- plan"],
}


@pytest.mark.parametrize("command", SPLITTING)
@pytest.mark.parametrize(("said", "counts"), pairs(WRONG_COUNTS))
def test_wrong_count_is_explained(command: str, counts: str, said: str) -> None:
    message = fail(command, "--sms", counts, status=2)
    assert said.replace("COUNT", counts) in message
    assert "--sms 108,24" in message, "gives an example"
    assert message.count("\n") == 1


@pytest.mark.parametrize(("said", "line"), pairs(WRONG_LINES))
def test_wrong_line_is_explained(line: str, said: str) -> None:
    message = fail(*line.split(), status=2)
    assert said in message
    assert message.count("\n") == 1


@pytest.mark.parametrize("nonsense", ["a\nb", "\x1b[2J", "--sms=\x1b[31m", "\x7f", "--a\tb"])
def test_control_characters_in_words_are_escaped(nonsense: str) -> None:
    """Words are repeated without their effect on a terminal or a log."""
    message = fail("plan", nonsense, status=2)
    assert message.endswith("\n")
    assert message[:-1].isprintable()
    assert f"\\x{ord(min(nonsense)):02x}" in message or "\\x7f" in message


def test_empty_log_level_is_as_none() -> None:
    succeed("info", env={"GCX_LOG": ""})


VOCABULARY = [
    *COMMANDS, "sim", "help", "--sms", "--sms=8", "--sms=", "8,16", "rest", "108,24", "1,2,3",
    "133",
    "--device", "0", "7", "-1", "--family", "fine", "max-cluster", "--exact", "--json", "--help",
    "-h", "--version", "--", "--driver", H100, "sim:orin@12.4", "sim:none", "sim:", "--svg",
    "/dev/null", "/dev/full", "--record", "--record=", "--rounds", "2", "--gpu", "h100", "true",
    "é", "\udcff", "", "a\nb", "\x1b[31m", "=", "--=", "--json=1", "-", "--driver=/nonexistent",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_any_words_give_a_status_and_one_line(seed: int) -> None:
    """The status is 0, 1 or 2; any but 0 has one line of explanation; JSON is valid."""
    dice = random.Random(seed)
    for _ in range(40):
        words = dice.choices(VOCABULARY, k=dice.randint(1, 7))
        if "sim run" in words or "exec" in words:  # they become what follows
            continue
        words = [part for word in words for part in (word.split() if word in COMMANDS else [word])]
        done = gcx(*words)
        assert done.returncode in {0, 1, 2}, (words, done)
        assert done.stderr.count("\n") == (0 if done.returncode == 0 else 1), (words, done)
        options = words[: words.index("--")] if "--" in words else words
        if "--json" in options:
            document = json.loads(done.stdout)
            assert ("error" in document) is (done.returncode != 0), (words, done)
        elif done.returncode != 0:
            assert done.stdout == "", (words, done)


@pytest.mark.parametrize(
    "line",
    ["plan --sms 4,rest", "split --sms 4,rest", "verify --sms 4,rest", "bench --rounds 3",
     "bench repartition --rounds 2"],
)  # fmt: skip
def test_device_option_selects_the_device(line: str) -> None:
    for device, total in enumerate([132, 16, 108]):
        words = [*line.split(), "--device", str(device)]
        document = succeed_json(*words, driver="sim:h100,orin,a100@13.0")
        assert document["device"] == device
        if "groups" in document:
            given = sum(group["sm_count"] for group in document["groups"])
            assert given + document["remainder"] == total
    uuid = succeed_json("info", driver="sim:h100,orin,a100@13.0")["devices"][2]["uuid"]
    for name in (uuid, uuid.upper().removeprefix("GPU-"), uuid[:16]):
        words = [*line.split(), "--device", name]
        assert succeed_json(*words, driver="sim:h100,orin,a100@13.0")["device"] == 2
    for name in ("1", "GPU-ffff0000"):
        fail(*line.split(), "--device", name)
    document, _ = fail_json(*line.split(), "--device", "1")
    error = document["error"]
    assert (error["result"], error["code"]) == ("GCX_ERROR_INVALID_DEVICE", 101)


def test_wrong_line_opens_no_driver() -> None:
    """A mistake is reported even without a driver."""
    assert "count 2 is empty" in fail("plan", "--sms", "8,,8", status=2, driver="/nonexistent.so")


@pytest.mark.parametrize("line", ["plan --sms 8,,8", "frobnicate", "plan", "info --bogus"])
def test_wrong_line_with_json_is_json(line: str) -> None:
    document, _ = fail_json(*line.split(), status=2)
    assert document["error"]["result"] == "GCX_ERROR_INVALID_VALUE"
    assert document["error"]["code"] == 1


def test_unknown_word_lists_the_known_ones() -> None:
    message = fail("frobnicate", status=2)
    assert all(command in message for command in COMMANDS)
    message = fail("verify", "--bogus", status=2)
    assert all(option in message for option in ["--sms", "--svg", "--device", "--json"])


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_of_a_command_needs_no_driver(command: str) -> None:
    """help COMMAND, --help and -h print the same text and need no driver."""
    words = command.split()
    text = succeed("help", *words, driver=None)
    assert f"gcx {command}" in text
    for line in ([*words, "--help"], [*words, "-h"], ["--help", *words]):
        assert succeed(*line, driver="/nonexistent.so") == text


@pytest.mark.parametrize("command", ["", *COMMANDS, "help"])
def test_help_fits_80_columns(command: str) -> None:
    for line in (["help", *command.split()], [*command.split(), "--help"]):
        text = succeed(*line, driver=None)
        for row in text.splitlines():
            assert len(row) <= 80, row
            assert row == row.rstrip()
        # Two columns: the name stands by itself, or there are two spaces behind it or, of an
        # option with a short value, one.
        for row in text.splitlines():
            if row.startswith("  --"):
                assert re.fullmatch(r"  --[a-z]+( [A-Z=,.]+)?( +[^ -].*)?", row), row
        if not line[1:] and command == "":
            rows = text.partition("commands:\n")[2].partition("\n\n")[0].splitlines()
            names = [re.match(r"  ([a-z ]+?)  +\S", row) for row in rows if row[2] != " "]
            assert [name[1] for name in names if name] == [*COMMANDS, "help"]


def test_help_shows_every_text_of_the_tables() -> None:
    """Every help text appears, with its words separated by spaces."""
    source = (Path(__file__).resolve().parents[2] / "src/cli/args.cpp").read_text()
    source = source[source.index("kGlobalOptions = {") : source.index("std::string option_lines")]
    literals = re.findall(r'(?:"(?:[^"\\]|\\.)*"\s*)+', source)
    texts = ["".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literal)) for literal in literals]
    shown = " ".join(
        " ".join(succeed("help", *command.split(), driver=None).split())
        for command in ["", *COMMANDS, "help"]
    )
    sentences = [
        text for text in texts if text.count(" ") > 2 and "%" not in text.replace("50%", "")
    ]
    assert len(sentences) > 30
    for text in sentences:
        assert text in shown, text


def test_help_with_json_is_json() -> None:
    for line in ("--json help plan", "help --json plan", "help plan --json"):
        assert json.loads(succeed(*line.split()))["help"] == succeed("help", "plan")
    document, _ = fail_json("help", "frobnicate", status=2)
    assert "frobnicate" in document["error"]["message"]


def test_version_is_the_same_everywhere() -> None:
    """meson.build has the version; the other places repeat it."""
    root = Path(__file__).resolve().parents[2]

    def found(pattern: str, file: str) -> str:
        match = re.search(pattern, (root / file).read_text(), re.MULTILINE)
        assert match, f"{file} has no {pattern}"
        return match[1]

    version = found(r"^  version: '(.+)'", "meson.build")
    header = [found(rf"^#define GCX_VERSION_{part} (\d+)$", "include/gcx/common.h")
              for part in ("MAJOR", "MINOR", "PATCH")]  # fmt: skip
    assert ".".join(header) == version.removesuffix("-dev")
    assert found(r"^  <version>(.+)</version>", "bindings/java/pom.xml") == version
    for crate in ("bindings/rust/gcx", "bindings/rust/gcx-sys", "examples/rust"):
        assert found(r'^version = "(.+)"', f"{crate}/Cargo.toml") == version
    assert found(r'^gcx-sys = \{ version = "=(.+?)"', "bindings/rust/gcx/Cargo.toml") == version
    assert succeed("--version", driver="/nonexistent.so") == f"gcx {version}\n"


def test_options_work_before_and_after_the_command() -> None:
    expected = succeed("plan", "--sms", "108,24", "--json")
    assert succeed("--json", "plan", "--sms=108,24") == expected
    for line in (
        ["--driver", H100, "--json", "plan", "--sms", "108,24"],
        [f"--driver={H100}", "plan", "--json", "--sms", "108,24"],
        ["plan", "--sms", "108,24", "--json", "--driver", H100],
    ):
        assert succeed(*line, driver="/nonexistent.so") == expected


FULL_LINES = ["info", "plan --sms 8", "plan --sms 8 --json", "split --sms 8", "verify --sms 8",
              "verify --sms 8 --json", "ps", "top --once", "bench --rounds 2", "sim list", "help",
              "--version"]  # fmt: skip


@pytest.mark.parametrize("line", FULL_LINES)
def test_full_disk_is_an_error(line: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = gcx(*line.split(), stdout=full)
    assert done.returncode == 1
    assert "standard output" in done.stderr
    assert os.strerror(errno.ENOSPC) in done.stderr


@pytest.mark.parametrize("line", FULL_LINES)
def test_closed_pipe_ends_as_any_program(line: str) -> None:
    """Ends by the signal; with an error where the signal is ignored."""
    reading, writing = os.pipe()
    os.close(reading)
    for ignored in (False, True):
        done = gcx(*line.split(), stdout=writing, restore_signals=not ignored)
        assert done.returncode == (1 if ignored else -signal.SIGPIPE)
        assert (os.strerror(errno.EPIPE) in done.stderr) is ignored
    os.close(writing)


@pytest.mark.parametrize("bytes_", ["\x1b[2J", "\u009b2J", "\x7f", "a\nb"])
def test_log_has_no_control_characters(bytes_: str) -> None:
    """GCX_LOG itself, and a message with a path."""
    for level in (bytes_, "debug"):
        done = gcx("plan", "--sms", "8", driver=f"/{bytes_}é", env={"GCX_LOG": level})
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stderr)
        assert all(line.startswith("gcx") for line in done.stderr.splitlines()), done.stderr
        assert done.stderr.count("\n") == 2
    assert "é: cannot open" in done.stderr.splitlines()[0]


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-"])
@pytest.mark.parametrize(
    ("line", "status"), [("plan --sms 8", 0), ("plan --sms 133", 1), ("plan --sms x", 2)]
)
def test_unwritable_standard_error_keeps_the_status(
    redirection: str, line: str, status: int
) -> None:
    done = gcx(*line.split(), under=["sh", "-c", f'"$@" {redirection}', "sh"])
    assert done.returncode == status
    assert (done.stdout != "") is (status == 0)


def test_closed_output_is_an_error() -> None:
    done = gcx("plan", "--sms", "8", under=["sh", "-c", '"$@" >&-', "sh"])
    assert done.returncode == 1
    assert "standard output" in done.stderr
