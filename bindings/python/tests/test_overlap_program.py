"""examples/python/two_batch_overlap.py as a user runs it, where there is no GPU."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from two_batches import (  # type: ignore[import-not-found]
    EXAMPLES,
    arm,
    module,
    once,
    program,
    schedule,
    told,
)

pytestmark = once
simulated = module("simulated")


def test_the_simulation_is_the_table() -> None:
    for column, tokens in enumerate(simulated.TOKENS):
        machine = simulated.Simulated(tokens, noise=0)
        for name, took in simulated.TABLE.items():
            assert machine.prepare(arm(name)) == ""
            assert machine.once(arm(name)) == took[column]
            assert schedule.length(machine.trace(arm(name))) == pytest.approx(took[column])
        assert machine.prepare(arm("split-4")) == "not in the table"


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Status, standard output and standard error of the program, which is run here."""

    def one(*given: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["two_batch_overlap.py", *given])
        status: Any = 0
        try:
            program.common.run(program.main)
        except SystemExit as end:
            status = end.code
        return status, *capsys.readouterr()

    return one


def test_the_program(tmp_path: Path, run: Run) -> None:
    file, picture = tmp_path / "results.json", tmp_path / "timeline.svg"
    few = ("--arms", "compute", "exchange", "sequence", "plain", "priority", "plain-copies")
    status, out, err = run(
        "--simulate", *few, "--sms", "4", "8", "--json", str(file), "--timeline", str(picture)
    )
    assert (status, err) == (0, "")
    assert out.startswith("SIMULATED: no GPU is involved; by what 4 x NVIDIA H200 took\n")
    assert "products, T = 8192: round 10 of 10\n" in out
    tables = out[out.index("products, 2 batches of 2048 tokens") :]
    assert tables.count("the sweep chose 8 SMs for communication and 124 for compute") == 2
    assert "overlap pays, on partitions: split-8-target takes 0.9" in tables
    assert "overlap pays, but don't partition: priority takes 0.97 of sequence" in tables
    assert "plain-copies: not in the table" in tables
    results = json.loads(file.read_text(encoding="utf-8"))
    assert results["simulated"] is True
    assert [len(cell["arms"]["plain"]) for cell in results["cells"]] == [10, 10]
    check_picture(picture, results)
    # What was written is read again.
    again = tmp_path / "again.svg"
    status, out, _ = run("--from", str(file), "--timeline", str(again))
    assert status == 0
    assert out.replace(again.name, picture.name) == tables
    assert again.read_bytes() == picture.read_bytes()


def check_picture(file: Path, results: Any) -> None:
    root = ElementTree.parse(file).getroot()
    space = "{http://www.w3.org/2000/svg}"
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    spans = sum(len(rows) for cell in results["cells"] for rows in cell["spans"].values())
    groups = root.findall(f"{space}g")
    # 24 steps of 2 batches in 6 layers make a bar each, in 5 arms of 2 cells.
    assert len(groups) == spans == 2 * 5 * 48
    for group in groups:
        (bar,) = group.findall(f"{space}rect")
        assert float(bar.attrib["x"]) >= 0
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) <= width
        assert float(bar.attrib["y"]) + float(bar.attrib["height"]) <= height
    words = "\n".join(text.text or "" for text in root.iter(f"{space}text"))
    assert "rank 0 of SIMULATED 4 x NVIDIA H200" in words
    assert "split-8-target: 124 SMs" in words
    assert "split-8-target: 8 SMs" in words


def test_started_without_torchrun(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    for name in told():
        monkeypatch.delenv(name, raising=False)
    status, out, err = run()
    assert status == 2
    assert out.startswith("SIMULATED")
    assert err.startswith("two_batch_overlap.py: needs a GPU: ")


@pytest.mark.parametrize("rank", ["0", "1"])
def test_of_several_ranks_one_says_what_is_wrong(rank: str) -> None:
    done = subprocess.run(
        [sys.executable, "-B", str(EXAMPLES / "two_batch_overlap.py")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **told(rank, "2", rank, "2")},
    )
    said = done.stdout + done.stderr
    assert done.returncode == 2
    assert ("needs a GPU: the simulated driver" in said) if rank == "0" else said == ""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--arms", "magic"), "'magic' is none of compute"),
        (("--arms", "split-8-copies"), "copy engines need no SMs"),
        (("--tokens", "1000"), "a multiple of 256, not 1000"),
        (("--repeats", "0"), "from 1 on, not '0'"),
        (("--simulate", "--tokens", "256"), "the table has T = 2048 and 8192, not 256"),
        (("--simulate", "--layer", "experts"), "the table has plain products alone"),
        (("--from", "/nowhere/results.json"), "--from: "),
    ],
)
def test_wrong_arguments(given: tuple[str, ...], words: str, run: Run) -> None:
    status, _, err = run(*given)
    assert status == 2
    assert words in err


@pytest.mark.parametrize("option", ["--json", "--timeline"])
def test_a_folder_that_is_not_there_is_told_at_the_start(option: str, run: Run) -> None:
    status, out, err = run("--simulate", option, "/nowhere/at/all")
    assert (status, out) == (2, "")
    assert f"argument {option}: '/nowhere/at/all': there is no folder" in err


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 1}', "not JSON", '"text"'])
def test_a_file_that_it_has_not_written(tmp_path: Path, text: str, run: Run) -> None:
    file = tmp_path / "results.json"
    file.write_text(text, encoding="utf-8")
    status, out, err = run("--from", str(file))
    assert (status, out) == (2, "")
    assert err.startswith("two_batch_overlap.py: --from: ")


CHANGES: list[tuple[str, Any]] = [
    ("arms", 3),
    ("arms", None),
    ("arms", []),
    ("arms", {"magic": [1.0]}),
    ("arms", {"plain": []}),
    ("arms", {"plain": [-1]}),
    ("arms", {"plain": ["soon"]}),
    ("arms", {"plain": [None]}),
    ("sweep", {"split-8": []}),
    ("chosen", "magic"),
    ("spans", {"plain": []}),
    ("spans", {"plain": [1]}),
    ("spans", {"plain": [[1, 2, 3]]}),
    ("spans", {"plain": [[0, 0, "magic", 0.0, 1.0]]}),
    ("further", 1),
]


@pytest.mark.parametrize(("key", "value"), CHANGES)
def test_a_file_that_somebody_changed(tmp_path: Path, key: str, value: Any, run: Run) -> None:
    file = tmp_path / "results.json"
    few = ("--tokens", "2048", "--arms", "sequence", "plain", "--repeats", "1")
    assert run("--simulate", *few, "--json", str(file))[0] == 0
    results = json.loads(file.read_text(encoding="utf-8"))
    results["cells"][0][key] = value
    file.write_text(json.dumps(results), encoding="utf-8")
    status, out, err = run("--from", str(file))
    assert (status, out) == (2, "")
    assert err.startswith("two_batch_overlap.py: --from: ")


def figures(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[Any, str]:
    """What tests/gpu/overlap_figures.py makes of it: its status and its words."""
    script = EXAMPLES.parent.parent / "tests" / "gpu" / "overlap_figures.py"
    monkeypatch.setattr(sys, "argv", [script.name, str(file)])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(script), run_name="__main__")
    return end.value.code, capsys.readouterr().out


def test_figures_for_the_page(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.json"
    few = ("--simulate", "--sms", "8", "--json", str(file), "--arms", "sequence", "plain")
    assert run(*few, "split-8-told-ctas8")[0] == 0
    status, out = figures(file, monkeypatch, capsys)
    assert (status, "does not hold" in out) == (0, False)
    assert "| | T = 2048 | T = 8192 |\n| --- | --- | --- |\n| sequence | 10." in out
    assert "chosen split-8-target" in out
    # Without the count told it is not what was seen with it.
    assert run(*few)[0] == 0
    status, out = figures(file, monkeypatch, capsys)
    assert status == 1
    assert "does not hold: T = 2048: split-8-target takes 0.9" in out


@pytest.mark.parametrize(("window", "status"), [(1.0, 0), (1.9, 1)])
def test_figures_of_the_cache(
    tmp_path: Path,
    window: float,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "l2.json"
    times = {"alone": [[0.9, 0.0]], "beside": [[2.0, 3000.0]], "window": [[window, 2900.0]]}
    file.write_text(
        json.dumps({"device": "a GPU", "patterns": {"walk": {"8": times}}}), encoding="utf-8"
    )
    found, out = figures(file, monkeypatch, capsys)
    assert found == status
    assert "| 8 MiB | 0.90 ms | 2.00 ms, neighbour 3000 GB/s |" in out
