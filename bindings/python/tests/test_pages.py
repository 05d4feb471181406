"""The pages for those who move over: their programs, and the names in their tables.

With a stand-in for PyTorch. cuda.core is used where it is installed; it runs on the simulated
libcuda that the package brings."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gcx
import pytest
from gcx.compat import flashinfer, sglang, tensorrt_llm
from work import Work  # type: ignore[import-not-found]

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = ("from-cuda-core", "from-flashinfer", "from-pytorch", "from-sglang", "from-tensorrt-llm")
LIBCUDA = Path(gcx.__file__).parent / "lib" / "gcx" / "libcuda"


def text_of(page: str) -> str:
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def programs(page: str) -> dict[str, str]:
    """The Python programs of a page by their headings. A diff stands for the program before it,
    changed by it."""
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
    """What a program says that it prints, in the comments behind its prints."""
    return re.findall(r"^ *print\(.*\)  +# (.+)$", program, re.MULTILINE)


def rows(page: str) -> list[list[str]]:
    """The cells of the tables of a page."""
    lines = [line for line in text_of(page).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def fences(path: Path) -> list[str]:
    """The Python blocks of any page."""
    return re.findall(r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S)


ALL = [(page, heading) for page in PAGES for heading in programs(page)]


def test_the_lines_of_the_readme(script: Any) -> None:
    (block,) = fences(DOCS.parent / "README.md")
    printed = script(block)
    assert "<gcx.Stream on 24 SMs of device 0" in printed
    assert "ok: each partition ran on as many SMs as promised" in printed


def test_the_long_way(script: Any) -> None:
    """What docs/python.md calls so; the blocks after it go on with its names."""
    blocks = fences(DOCS / "python.md")
    start = next(i for i, block in enumerate(blocks) if block.startswith("device = "))
    deferred, long_way, workqueues, order = blocks[1], *blocks[start : start + 3]
    older = gcx.driver_info().version < (13, 1)
    parts = "decode, prefill = gcx.split([24, None])\n"
    code = f"import gcx\n{deferred}{long_way}{'' if older else workqueues}{parts}{order}"
    assert script(code) == "Plan(groups=(12, 120), remainder=0)\n"


def test_graphs_and_what_is_made_ahead(capsys: pytest.CaptureFixture[str]) -> None:
    """The blocks of docs/python.md on them, but for PyTorch's own lines."""
    graphs, ahead = fences(DOCS / "python.md")[4:6]
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


def test_what_the_pages_hold() -> None:
    assert {page: len(programs(page)) for page in PAGES} == {
        "from-cuda-core": 3,
        "from-flashinfer": 3,
        "from-pytorch": 6,
        "from-sglang": 3,
        "from-tensorrt-llm": 3,
    }


@pytest.mark.parametrize(("page", "heading"), ALL)
def test_a_program_is_python(page: str, heading: str) -> None:
    compile(programs(page)[heading], f"{page}: {heading}", "exec")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for name, anchor in re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", text_of(page)):
        target = DOCS / name if name else DOCS / f"{page}.md"
        headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in headings}
        assert not anchor or anchor in anchors, f"{name}#{anchor}"


# Names


def resolve(path: str) -> Any:
    """What a dotted name of gcx or gcx.compat stands for."""
    found: Any = gcx
    for number, part in enumerate(path.split(".")[1:], 2):
        if not hasattr(found, part) and inspect.ismodule(found):
            importlib.import_module(".".join(path.split(".")[:number]))
        found = getattr(found, part)
    return found


def names(page: str) -> set[tuple[str, str]]:
    """The names of gcx in a page's text, with the arguments behind them."""
    text = re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`(gcx(?:\.\w+)+)(?:\(([^`()]*)\))?`", text))


@pytest.mark.parametrize("page", PAGES)
def test_each_name_of_gcx_exists(page: str) -> None:
    found = names(page)
    assert len(found) > 10
    for path, arguments in found:
        what = resolve(path)
        if arguments:
            known = inspect.signature(what).parameters
            for argument in arguments.split(", "):
                assert argument.rstrip("=") in known, f"{path}({arguments})"


def test_gcx_split_takes_what_the_pages_give_it() -> None:
    assert inspect.signature(gcx.split).parameters.keys() >= {"counts", "device", "workqueue"}
    with pytest.raises(AttributeError):
        resolve("gcx.Stream.no_such_name")


@pytest.mark.parametrize("module", [flashinfer, sglang, tensorrt_llm])
def test_arguments_of_the_others(module: types.ModuleType) -> None:
    page = f"from-{module.__name__.rpartition('.')[2].replace('_', '-')}"
    listed = dict(re.findall(r"^\| `(\w+)\(([\w, ]*)\)`", text_of(page), re.MULTILINE))
    for name in module.__all__:
        assert ", ".join(inspect.signature(getattr(module, name)).parameters) == listed[name]


# Programs with PyTorch


class FakeStream:
    """A torch stream."""

    __slots__ = ("__dict__",)

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        self.cuda_stream = stream_ptr

    def wait_stream(self, stream: FakeStream) -> None:
        assert isinstance(stream, FakeStream)

    def wait_event(self, event: FakeEvent) -> None:
        assert event.stream is not None


class FakeEvent:
    """A torch event."""

    stream: FakeStream | None = None

    def record(self, stream: FakeStream) -> None:
        self.stream = stream


class FakeTorch(types.ModuleType):
    """PyTorch, as far as the programs use it. It notes on how many SMs each operation ran."""

    bfloat16 = "bfloat16"

    def __init__(self) -> None:
        super().__init__("torch")
        self.current = FakeStream(0)
        self.ran_on: list[int] = []
        self.cuda = types.SimpleNamespace(
            ExternalStream=FakeStream,
            Event=FakeEvent,
            current_device=lambda: 0,
            current_stream=lambda device=None: self.current,
            set_stream=lambda stream: setattr(self, "current", stream),
            stream=self._stream,
            synchronize=lambda: None,
        )

    @contextmanager
    def _stream(self, stream: Any) -> Iterator[None]:
        before = self.current
        assert isinstance(stream, FakeStream)
        self.current = stream
        yield
        self.current = before

    def note(self) -> FakeTensor:
        with gcx.Stream.from_native(self.current.cuda_stream) as stream:
            self.ran_on.append(stream.sm_count)
        return FakeTensor(self)

    def device(self, name: str) -> Any:
        return types.SimpleNamespace(type="cuda", index=int(name.partition(":")[2]))

    def randn(self, *sizes: int, device: Any, dtype: Any = None) -> FakeTensor:
        return FakeTensor(self)

    def empty_like(self, other: FakeTensor) -> FakeTensor:
        return FakeTensor(self)

    def mm(self, left: FakeTensor, right: FakeTensor, *, out: FakeTensor) -> None:
        self.note()


class FakeTensor:
    def __init__(self, torch: FakeTorch) -> None:
        self._torch = torch

    def __matmul__(self, other: FakeTensor) -> FakeTensor:
        return self._torch.note()

    def copy_(self, other: FakeTensor) -> FakeTensor:
        return self._torch.note()


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    torch = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch


@pytest.mark.parametrize(
    ("page", "heading", "ran_on"),
    [
        ("from-flashinfer", "After: only the import changes", [108, 24, 108, 24]),
        ("from-flashinfer", "After: in gcx's words", [108, 24, 108, 24]),
        ("from-pytorch", "After: only the import changes", [24, 24]),
        ("from-pytorch", "After: in gcx's words", [24, 24]),
        ("from-pytorch", "After: the same class, and one split", [24, 64]),
        ("from-pytorch", "After: two partitions in gcx's words", [24, 64]),
        ("from-sglang", "After: only the import changes", [32, 100]),
        ("from-sglang", "After: in gcx's words", [32, 100]),
        ("from-tensorrt-llm", "After: only the import changes", [24, 108]),
        ("from-tensorrt-llm", "After: in gcx's words", [24, 108]),
        ("from-cuda-core", "After: in gcx's words", []),
    ],
)
def test_a_program(
    page: str,
    heading: str,
    ran_on: list[int],
    torch: FakeTorch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    program = programs(page)[heading]
    exec(compile(program, f"{page}: {heading}", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == printed(program)
    assert torch.ran_on == ran_on


def test_two_batches_by_both_counts(torch: FakeTorch) -> None:
    """What the page says of [108, 24] with the changed import alone."""
    streams, resources = flashinfer.split_device_green_ctx_by_sm_count(
        torch.device("cuda:0"), [108, 24]
    )
    assert [resource.sm.smCount for resource in resources] == [108, 24]
    assert len(streams) == 2


# Programs with cuda.core


def run_with_cuda_core(program: str) -> subprocess.CompletedProcess[str]:
    """Runs a program whose libcuda is the simulation, the same for cuda.core and gcx."""
    pytest.importorskip("cuda.core", reason="cuda-core isn't installed")
    major, minor = gcx.driver_info().version
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(LIBCUDA),
        "GCX_SIM": f"h100@{major}.{minor}",
    }
    environment.pop("GCX_DRIVER", None)
    return subprocess.run(
        [sys.executable, "-B", "-c", program],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("heading", ["Before", "After: short, and with the rest of cuda.core"])
def test_a_program_with_cuda_core(heading: str, version: tuple[int, int]) -> None:
    program = programs("from-cuda-core")[heading]
    done = run_with_cuda_core(program)
    if heading == "Before" and version < (12, 5):
        assert "cuGreenCtxStreamCreate" in done.stderr
        return
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == printed(program)


def test_each_name_of_cuda_core_exists() -> None:
    core = pytest.importorskip("cuda.core", reason="cuda-core isn't installed")
    found = {
        name for row in rows("from-cuda-core") for name in re.findall(r"`([A-Z][\w.]+)", row[0])
    }
    assert len(found) > 40
    for name in found:
        what = core
        for part in name.split("."):
            what = getattr(what, part)


def test_what_differs_from_cuda_core(version: tuple[int, int]) -> None:
    """What the page says of cuda.core before CUDA 13.1, and of gcx on all."""
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
