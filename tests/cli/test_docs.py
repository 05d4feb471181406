"""The transcripts in docs/command.md are what the command really prints."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .command import H100, environment, program
from .publishing import HELD, SHOWN, publishers

ROOT = Path(__file__).resolve().parents[2]
MANUAL = ROOT / "docs" / "command.md"
WIDTH = 118
PROMPT = "    $ "
SEPARATOR = "=== end of the output ==="


def transcripts() -> list[list[tuple[str, str]]]:
    """Each block that begins with a prompt: its commands, and what each is said to print."""
    blocks: list[list[tuple[str, str]]] = []
    inside = False
    for line in MANUAL.read_text().splitlines():
        if line.startswith(PROMPT):
            if not inside:
                blocks.append([])
            inside = True
            blocks[-1].append((line[len(PROMPT) :], ""))
        elif inside and line.startswith("    "):
            command, output = blocks[-1][-1]
            blocks[-1][-1] = (command, output + line[4:] + "\n")
        else:
            inside = False
    return blocks


def comparable(text: str) -> str:
    """Without what differs from run to run and from build to build: times, columns, the path of
    the library, the headers."""
    text = re.sub(r"\S*/libgcx-sim\.so", "LIBRARY", text)
    text = re.sub(r"(held in|Holds of) /\S+;", r"\1 FOLDER;", text)
    text = re.sub(r'(headers of CUDA|"header_version":) "?[\d.]+', r"\1 HEADERS", text)
    text = re.sub(r"\d+\.\d+", "NUMBER", text)
    text = re.sub(r"(engine|notebook) +\d+", r"\1 PID", text)
    text = re.sub(r"\d+ s +python\S* +\d+ +\d+", "TIME PYTHON PID USER", text)
    return re.sub(r" +", " ", text)


@pytest.mark.parametrize("block", transcripts(), ids=lambda block: block[0][0])
def test_transcript(block: list[tuple[str, str]], tmp_path: Path) -> None:
    script = f'gcx() {{ "{program()}" "$@"; }}\n'
    for command, _ in block:
        script += f"{command}\nstatus=$?\necho '{SEPARATOR}'\n(exit $status)\n"
    path = f"{Path(program()).parent}:/usr/local/bin:/usr/bin:/bin"
    texts = "".join(output for _, output in block)
    shown = SHOWN if "engine" in texts else HELD if "decode" in texts else []
    with publishers(tmp_path, *shown):
        done = subprocess.run(
            ["bash", "-c", script],
            env=environment(
                {"GCX_DRIVER": H100, "PATH": path, "GCX_RESERVATION_DIR": str(tmp_path)}
            ),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    outputs = done.stdout.split(SEPARATOR + "\n")
    assert len(outputs) == len(block) + 1
    for (command, expected), output in zip(block, outputs):
        if expected:
            assert comparable(output) == comparable(expected), command


def test_there_are_transcripts() -> None:
    commands = [command for block in transcripts() for command, _ in block]
    for wanted in ["info", "plan", "split", "verify", "bench", "ps", "top", "sim list", "sim run"]:
        assert any(f"gcx {wanted}" in command for command in commands), wanted


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=lambda page: page.name
)
def test_pages_are_no_wider_than_a_screen(page: Path) -> None:
    """But for what can't be folded: tables, what a command prints, pictures."""
    wide = [
        f"{page.name}:{number}: {len(line)} columns"
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if len(line) > WIDTH and not line.startswith(("|", "    ", "!["))
    ]
    assert wide == []
