"""The man pages and the completion of shells are those of the command's tables, and work."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from .command import environment, program, succeed

GENERATED = Path(__file__).resolve().parents[2] / "src" / "cli" / "generated"
HEADINGS = "usage options of every command commands exit status example"  # of help
PAGES = sorted(GENERATED.glob("*.1"))

# The words before the cursor, and the words that complete the last one.
COMPLETIONS = {
    "gcx ": "bench exec help info plan ps sim split top verify",
    "gcx pl": "plan",
    "gcx --js": "--json",
    "gcx --json in": "info",
    "gcx sim ": "list run",
    "gcx bench ": "repartition",
    "gcx bench --": "--device --driver --help --json --rounds",
    "gcx bench repartition --r": "--rounds",
    "gcx help sim ": "list run",
    "gcx plan --fa": "--family",
    "gcx plan --family ": "coscheduled fine max-cluster",
    "gcx plan --family=f": "--family=fine",
    "gcx plan --sms 8 --family m": "max-cluster",
    "gcx --driver sim:h2": "sim:h200",
    "gcx plan --driver=sim:rt": "--driver=sim:rtx4090",
    "gcx sim run --gpu h": "h100 h200",
    "gcx sim run --driver 13.": "13.0 13.1 13.4 13.5",
    "gcx verify --svg ./pic": "./picture.svg",
    "gcx ps --folder ./f": "./folder/",
    "gcx exec --sms 24 -- /usr/bin/printe": "/usr/bin/printenv",
    "gcx exec --sms 24 -- cat --family ./pic": "./picture.svg",
}


def needed(tool: str) -> str:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    return tool


def test_generated_files_are_those_of_the_tables(tmp_path: Path) -> None:
    """If not, run tools/regenerate.sh. Neither a date nor a path of this machine is in them."""
    folder = tmp_path / "written"
    folder.mkdir()
    subprocess.run([Path(program()).with_name("gcx-manual"), folder], check=True)
    written = {file.name: file.read_text() for file in folder.iterdir()}
    assert written == {file.name: file.read_text() for file in GENERATED.iterdir()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_man_page_has_no_warnings(page: Path) -> None:
    tools = 0
    for command in (["groff", "-man", "-ww", "-Tutf8"], ["mandoc", "-Tlint"]):
        if shutil.which(command[0]) is None:
            continue
        tools += 1
        done = subprocess.run([*command, page], capture_output=True, text=True, check=False)
        said = done.stderr if command[0] == "groff" else done.stdout + done.stderr
        # A page that is the same in each build has no date.
        assert [line for line in said.splitlines() if "missing date" not in line] == []
    if not tools:
        pytest.skip("neither groff nor mandoc is installed")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_man_page_shows_what_help_says(page: Path) -> None:
    needed("groff")
    shown = subprocess.run(
        ["groff", "-man", "-Tascii", "-P-c", "-P-b", "-P-u", "-rLL=5000n", page],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    command = page.stem.removeprefix("gcx").removeprefix("-").replace("-", " ")
    text = succeed("help", *command.split(), driver=None)
    words = {word.strip(".,:") for word in text.split()}
    words -= {*HEADINGS.split()}
    assert words - {word.strip(".,:") for word in shown} == set()


def in_terminal(command: list[str], setup: str, key: bytes, folder: Path) -> dict[str, str]:
    """Types each line and a key that inserts all completions, and returns the arguments that gcx
    then has. setup makes gcx a function of the shell that prints them with DONE."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(command[0], command, {**environment({}), "TERM": "dumb", "INPUTRC": "/dev/null"})

    def read(until: str) -> str:
        text = ""
        limit = time.monotonic() + 60
        while until not in text:
            assert time.monotonic() < limit, text
            if select.select([terminal], [], [], 1)[0]:
                text += os.read(terminal, 65536).decode().replace("\r", "")
        return text

    try:
        os.write(terminal, f"{setup}\necho RE''ADY\n".encode())
        read("READY\n")
        typed: dict[str, str] = {}
        for line in COMPLETIONS:
            os.write(terminal, line.encode() + key + b"\n")
            typed[line] = read(" DONE\n").partition(" DONE\n")[0].splitlines()[-1]
        return typed
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "place"
    (place / "folder").mkdir(parents=True)
    for name in ("picture.svg", "file"):
        (place / name).touch()
    return place


def check_typed(typed: dict[str, str]) -> None:
    for line, completions in COMPLETIONS.items():
        before = line.split()[1:]
        words = [*(before if line.endswith(" ") else before[:-1]), *completions.split()]
        assert typed[line].replace("/ ", " ").rstrip("/") == " ".join(words).rstrip("/"), line


ECHO = "gcx() { echo \"$*\" DO''NE; }"


@pytest.mark.parametrize("library", ["", "/usr/share/bash-completion/bash_completion"])
def test_completion_in_bash(library: str, folder: Path) -> None:
    """With the functions of bash-completion or without."""
    if library and not Path(library).exists():
        pytest.skip("bash-completion is not installed")
    setup = f". {library or '/dev/null'}; . {GENERATED / 'gcx.bash'}; {ECHO}"
    setup = f"bind 'set enable-bracketed-paste off'; {setup}"
    check_typed(in_terminal(["bash", "--norc", "--noprofile", "-i"], setup, b"\x1b*", folder))


def test_completion_in_zsh(folder: Path) -> None:
    setup = f"""autoload -Uz compinit; fpath=({GENERATED} $fpath); compinit -u -D; {ECHO}
zle -C all complete-word _generic; bindkey '^O' all
zstyle ':completion:all:*' completer _all_matches _complete
zstyle ':completion:all:*' insert true"""
    check_typed(in_terminal([needed("zsh"), "-f", "-i"], setup, b"\x0f", folder))


@pytest.mark.parametrize("line", COMPLETIONS)
def test_completion_in_fish(line: str, folder: Path) -> None:
    script = f"source {GENERATED / 'gcx.fish'}; complete -C '{line}'"
    done = subprocess.run(
        [needed("fish"), "--no-config", "-c", script],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = [row.partition("\t")[0] for row in done.stdout.splitlines()]
    assert done.stderr == ""
    assert found == COMPLETIONS[line].split()


@pytest.mark.parametrize("option", ["family", "report", "contexts"])
def test_completed_values_are_accepted(option: str) -> None:
    text = (GENERATED / "gcx.bash").read_text()
    choices = re.search(rf"--{option}\) choices='(.+?)'", text)
    assert choices is not None
    for value in choices[1].split():
        succeed("exec", "--sms", "24", "--quiet", "--shared", f"--{option}", value, "--", "true")
