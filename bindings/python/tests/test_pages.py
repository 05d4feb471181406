"""The programs and names in the documentation of the package and of moving to it.

They run with a fake PyTorch. cuda.core is used if it is installed, on the simulated libcuda of
gcx-sim."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import gcx
import gcx_sim
import pytest
from fakes import (  # type: ignore[import-not-found]
    FakeTorch,
    counts_of,
)
from gcx.compat import flashinfer, sglang, tensorrt_llm
from work import Work, run_program  # type: ignore[import-not-found]

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = ("from-cuda-core", "from-flashinfer", "from-pytorch", "from-sglang", "from-tensorrt-llm")


def text_of(page: str) -> str:
    (path,) = DOCS.rglob(f"{page}.md")
    return path.read_text(encoding="utf-8")


def programs(page: str) -> dict[str, str]:
    """Returns the Python programs of a page by their headings. A diff gives the program before it
    with that change."""
    found: dict[str, str] = {}
    heading, last, block = "", "", None
    for line in text_of(page).splitlines(keepends=True):
        if block is None:
            if line.startswith("#"):
                heading = line.strip("# \n")
            elif line.startswith("```"):
                kind, block = line[3:].strip(), ""
        elif line != "```\n":
            block += line
        else:
            if kind == "python":
                last = block
            elif kind == "diff":
                old, new = (
                    "".join(row[1:] for row in block.splitlines(keepends=True) if row[0] == sign)
                    for sign in "-+"
                )
                assert last.count(old) == 1, f"{page}: {heading}: there is no {old!r} to change"
                last = last.replace(old, new)
            assert heading not in found, f"{page}: {heading} has two programs"
            found[heading], block = last, None
    return found


def printed(program: str) -> list[str]:
    """Returns the output that the comments behind a program's prints state."""
    return re.findall(r"^ *print\(.*\)  +# (.+)$", program, re.MULTILINE)


def fences(text: str) -> list[str]:
    """Returns the Python blocks of a page or section."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)


def test_readme_program_runs(script: Any) -> None:
    (block,) = fences((DOCS.parent / "README.md").read_text(encoding="utf-8"))
    printed = script(block)
    assert "<gcx.Stream on 24 SMs of device 0" in printed
    assert "ok: each partition ran on as many SMs as promised" in printed


def test_tutorial_programs_run(script: Any) -> None:
    split, lease, resize = fences(text_of("tutorial"))
    assert script(split).startswith("24 108\n")
    lines = script(lease + resize).splitlines()
    assert lines[0] == "32 100"
    assert lines[1].startswith("gcx.acquire: requested 8 SMs: device 0 has 132, of which 0")
    assert lines[2] == "64 68"
    assert lines[-1].startswith("ok: ")


def block_with(text: str) -> str:
    """Returns the block of docs/reference/python.md that contains a text."""
    (found,) = [one for one in fences(text_of("python")) if text in one]
    return found


def test_python_page_steps_of_cuda_run(script: Any) -> None:
    older = gcx.driver_info().version < (13, 1)
    blocks = [
        block_with("gcx.split([24, 32])"),
        block_with("device = gcx.Device"),
        "" if older else block_with("workqueue.configured"),
        "decode, prefill = gcx.split([24, None])\n",
        block_with("decode.stream.record()"),
    ]
    assert script("import gcx\n" + "".join(blocks)) == "Plan(groups=(12, 120), remainder=0)\n"


def test_python_page_graphs_and_prewarm_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The blocks of docs/reference/python.md, without PyTorch's own lines."""
    graphs, ahead = block_with("graph = gcx.Graph"), block_with("gcx.prewarm")
    work = Work()
    captured = work.capture()
    with gcx.acquire(32) as decode, gcx.acquire(None) as prefill:
        names = {"gcx": gcx, "captured": captured, "decode": decode, "prefill": prefill}
        names |= {"queue": lambda: (8, 48), "policy": int}
        exec(graphs[graphs.index("graph = ") :], names)
        assert decode.sm_count == 48
        assert names["graph"].info.launches == 2
        decode.synchronize()
    layouts = gcx.Device(0).resources.sm.split([24, 32, None]).groups
    exec(ahead, {"gcx": gcx, "layouts": layouts})
    assert capsys.readouterr().out.splitlines()[-1] == "3 of 3"
    names.clear()
    captured.destroy()
    work.close()


def test_programs_of_the_pages_compile() -> None:
    found = {page: programs(page) for page in PAGES}
    assert [len(found[page]) for page in PAGES] == [3, 3, 6, 3, 3]
    for page in PAGES:
        for heading, program in found[page].items():
            compile(program, f"{page}: {heading}", "exec")


LEASES = """
import asyncio, contextlib, sys, textwrap, types
import gcx

class Stream:
    def __init__(self, pointer, device): self.cuda_stream = pointer

torch = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(ExternalStream=Stream, stream=contextlib.nullcontext)
sys.modules["torch"] = torch
queue, policy = lambda: (0, 8), lambda prompts: 64 - 4 * prompts
step = lambda: print(decode.sm_count, prefill.sm_count)
"""

ASYNCIO = """
async def main():
    task = asyncio.create_task(acquire())
    while not any(lease.waiting for lease in gcx.leases()):
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.wait([task])
    print(task.cancelled())
    prefill.close()
    assert (await acquire()).sm_count == 64

asyncio.run(main())
print(len(gcx.leases()))
"""


def test_python_page_leases_run(script: Any) -> None:
    """A cancelled wait of asyncio acquires no lease."""
    changes, waits = fences(text_of("python").partition("## Leases")[2].partition("\n## ")[0])
    body = textwrap.indent(f"{waits}return lease\n", "    ")
    code = f"{LEASES}{changes}async def acquire():\n{body}{ASYNCIO}"
    assert script(code) == "64 68\n32 100\nTrue\n1\n"


# Names


def resolve(path: str) -> Any:
    """Returns what a dotted name of gcx or gcx.compat refers to."""
    found: Any = gcx
    for number, part in enumerate(path.split(".")[1:], 2):
        if not hasattr(found, part) and inspect.ismodule(found):
            importlib.import_module(".".join(path.split(".")[:number]))
        found = getattr(found, part)
    return found


def names(page: str) -> set[tuple[str, str]]:
    """Returns the names of gcx in a page's text, with the arguments behind them."""
    text = re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`(gcx(?:\.\w+)+)(?:\(([^`()]*)\))?`", text))


@pytest.mark.parametrize("page", PAGES)
def test_names_of_gcx_exist(page: str) -> None:
    found = names(page)
    assert len(found) > 10
    for path, arguments in found:
        what = resolve(path)
        if arguments:
            known = inspect.signature(what).parameters
            for argument in arguments.split(", "):
                assert argument.rstrip("=") in known, f"{path}({arguments})"


@pytest.mark.parametrize("module", [flashinfer, sglang, tensorrt_llm])
def test_arguments_are_those_of_the_page(module: types.ModuleType) -> None:
    page = f"from-{module.__name__.rpartition('.')[2].replace('_', '-')}"
    listed = dict(re.findall(r"^\| `(\w+)\(([\w, ]*)\)`", text_of(page), re.MULTILINE))
    for name in module.__all__:
        assert ", ".join(inspect.signature(getattr(module, name)).parameters) == listed[name]


# Programs with PyTorch


class FakeTorchThatComputes(FakeTorch):  # type: ignore[misc]
    """It notes on how many SMs each operation ran."""

    bfloat16 = "bfloat16"

    def __init__(self) -> None:
        super().__init__()
        self.ran_on: list[int] = []

    def note(self) -> FakeTensor:
        self.ran_on += counts_of(self.current_stream())
        return FakeTensor(self)

    def randn(self, *sizes: int, device: Any, dtype: Any = None) -> FakeTensor:
        return FakeTensor(self)

    def empty_like(self, other: FakeTensor) -> FakeTensor:
        return FakeTensor(self)

    def mm(self, left: FakeTensor, right: FakeTensor, *, out: FakeTensor) -> None:
        self.note()


class FakeTensor:
    def __init__(self, torch: FakeTorchThatComputes) -> None:
        self._torch = torch

    def __matmul__(self, other: FakeTensor) -> FakeTensor:
        return self._torch.note()

    def copy_(self, other: FakeTensor) -> FakeTensor:
        return self._torch.note()


@pytest.fixture
def torch_class() -> type[FakeTorchThatComputes]:
    return FakeTorchThatComputes


@pytest.mark.parametrize(
    ("page", "heading", "ran_on"),
    [
        ("from-flashinfer", "After: only the import changes", [108, 24, 108, 24]),
        ("from-flashinfer", "After: with gcx's own API", [108, 24, 108, 24]),
        ("from-pytorch", "After: only the import changes", [24, 24]),
        ("from-pytorch", "After: with gcx's own API", [24, 24]),
        ("from-pytorch", "After: the same class, and one split", [24, 64]),
        ("from-pytorch", "After: two partitions with gcx's own API", [24, 64]),
        ("from-sglang", "After: only the import changes", [32, 100]),
        ("from-sglang", "After: with gcx's own API", [32, 100]),
        ("from-tensorrt-llm", "After: only the import changes", [24, 108]),
        ("from-tensorrt-llm", "After: with gcx's own API", [24, 108]),
        ("from-cuda-core", "After: with gcx's own API", []),
    ],
)
def test_program_prints_what_it_says(
    page: str,
    heading: str,
    ran_on: list[int],
    torch: FakeTorchThatComputes,
    capsys: pytest.CaptureFixture[str],
) -> None:
    program = programs(page)[heading]
    exec(compile(program, f"{page}: {heading}", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == printed(program)
    assert torch.ran_on == ran_on


# Programs with cuda.core


def run_with_cuda_core(program: str) -> Any:
    """Runs a program with the simulated libcuda, for cuda.core and gcx."""
    pytest.importorskip("cuda.core", reason="cuda-core isn't installed")
    major, minor = gcx.driver_info().version
    env = {name: value for name, value in os.environ.items() if name != "GCX_DRIVER"}
    env |= {"LD_LIBRARY_PATH": gcx_sim.LIBCUDA_FOLDER, "GCX_SIM": f"h100@{major}.{minor}"}
    return run_program(sys.executable, "-B", "-c", program, env=env)


@pytest.mark.parametrize("heading", ["Before", "After: short, and with the rest of cuda.core"])
def test_program_with_cuda_core_prints_what_it_says(heading: str, version: tuple[int, int]) -> None:
    program = programs("from-cuda-core")[heading]
    done = run_with_cuda_core(program)
    if heading == "Before" and version < (12, 5):
        assert "cuGreenCtxStreamCreate" in done.stderr
        return
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == printed(program)


def test_names_of_cuda_core_exist() -> None:
    core = pytest.importorskip("cuda.core", reason="cuda-core isn't installed")
    cells = re.findall(r"^\|([^|]+)", text_of("from-cuda-core"), re.MULTILINE)  # The first ones.
    found = {name for cell in cells for name in re.findall(r"`([A-Z][\w.]+)", cell)}
    assert len(found) > 40
    for name in found:
        what = core
        for part in name.split("."):
            what = getattr(what, part)


def test_differences_from_cuda_core_are_true(version: tuple[int, int]) -> None:
    """The page's claims on cuda.core before CUDA 13.1, and on gcx with any driver."""
    counts = "[[24, 64], 10, None]"
    done = run_with_cuda_core(f"""
from cuda.core import Device, SMResourceOptions

sms = Device(0).resources.sm
for options in [*[{{"count": count}} for count in {counts}], {{"count": 24, "backfill": True}}]:
    try:
        groups, rest = sms.split(SMResourceOptions(**options))
        print([group.sm_count for group in groups], rest.sm_count)
    except Exception as error:
        print(type(error).__name__)
try:
    rest.split(SMResourceOptions(count=8))
except Exception as error:
    print(str(error).partition(":")[0])
""")
    bindings: Any = importlib.import_module("cuda.bindings")
    if min(version, tuple(map(int, bindings.__version__.split(".")[:2]))) < (13, 1):
        assert done.stdout.splitlines() == [
            "RuntimeError",
            "[16] 116",
            "[8] 124",
            "[24] 108",
            "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION",
        ]
    else:
        assert done.stdout.splitlines() == ["[24, 64] 44", "CUDAError", "[120] 12", "[24] 108"]
    sms = gcx.Device(0).resources.sm
    assert sms.plan([24, 64]) == ((24, 64), 44)
    assert sms.plan(10) == ((12,), 120)
    assert sms.plan(None) == ((132,), 0)
    assert sms.split(24).remainder.plan(8) == ((8,), 100)
    if version < (13, 1):
        with pytest.raises(gcx.NotSupportedError, match=r"13\.1"):
            sms.plan(gcx.SplitOptions(count=24, backfill=True))
