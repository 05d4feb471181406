"""The transcripts in the pages are what the command really prints."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .command import H100, environment, program
from .publishing import LEASES, RESERVATIONS, publishers

ROOT = Path(__file__).resolve().parents[2]
MANUALS = (ROOT / "docs" / "reference" / "command.md", ROOT / "docs" / "tutorial.md")
WIDTH = 118
PROMPT = "    $ "
SEPARATOR = "=== end of the output ==="


def transcripts() -> list[list[tuple[str, str]]]:
    """Returns each block that begins with a prompt: its commands with their expected output."""
    blocks: list[list[tuple[str, str]]] = []
    inside = False
    for line in "\n\n".join(page.read_text() for page in MANUALS).splitlines():
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
    """Returns the text without what differs between runs and builds: times, column widths, the
    path of the library, the headers."""
    text = re.sub(r"\S*/libgcx-sim\.so", "LIBRARY", text)
    text = re.sub(r"(reserved in|Reservations in) /\S+;", r"\1 FOLDER;", text)
    text = re.sub(r'(headers of CUDA|"header_version":) "?[\d.]+', r"\1 HEADERS", text)
    text = re.sub(r"\d+\.\d+", "NUMBER", text)
    text = re.sub(r"(engine|notebook) +\d+", r"\1 PID", text)
    text = re.sub(r"process \d+ \(python\S*\);", "process PID (python);", text)
    text = re.sub(r"\d+ s +python\S* +\d+ +\d+", "TIME PYTHON PID USER", text)
    return re.sub(r" +", " ", text)


@pytest.mark.parametrize("block", transcripts(), ids=lambda block: block[0][0])
def test_docs_transcript_is_what_the_command_prints(
    block: list[tuple[str, str]], tmp_path: Path
) -> None:
    script = f'gcx() {{ "{program()}" "$@"; }}\n'
    for command, _ in block:
        script += f"{command}\nstatus=$?\necho '{SEPARATOR}'\n(exit $status)\n"
    path = f"{Path(program()).parent}:/usr/local/bin:/usr/bin:/bin"
    texts = "".join(output for _, output in block)
    shown = LEASES if "engine" in texts else RESERVATIONS if "decode" in texts else []
    with publishers(*shown):
        done = subprocess.run(
            ["bash", "-c", script],
            env=environment({"GCX_DRIVER": H100, "PATH": path}), cwd=tmp_path, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    outputs = done.stdout.split(SEPARATOR + "\n")
    assert len(outputs) == len(block) + 1
    for (command, expected), output in zip(block, outputs):
        if expected:
            assert comparable(output) == comparable(expected), command


def test_docs_have_a_transcript_of_each_command() -> None:
    commands = [command for block in transcripts() for command, _ in block]
    for name in ["info", "plan", "split", "verify", "bench", "ps", "top", "sim list", "sim run"]:
        assert any(f"gcx {name}" in command for command in commands), name


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    plain = [re.sub(r"\]\([^)]*\)", "]", heading) for heading in headings]
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_docs_links_have_targets(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    missing = []
    for link, anchor in re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", text):
        target = page.parent / link if link else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(f"{link}#{anchor}" if anchor else link)
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_docs_lines_fit_the_width(page: Path) -> None:
    """Except lines that can't be folded: tables, output, pictures."""
    wide = [
        f"{page.name}:{number}: {len(line)} columns"
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if len(line) > WIDTH and not line.startswith(("|", "    ", "!["))
    ]
    assert wide == []
