"""The programs of the pages on moving to gcx, before and after, each in its own process."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gcx
import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"
VERIFY = """
import gcx
proof = gcx.verify([gcx.Stream.from_native(one) for one in [{streams}]])
assert all(group.sm_count == len(group.seen) for group in proof.groups), str(proof)
print("SMs seen:", [group.sm_count for group in proof.groups], "in both:", len(proof.overlap))
"""


def programs(page: str) -> dict[str, str]:
    """Returns the Python programs of a page by their headings. A diff gives the program before it
    with that change."""
    found: dict[str, str] = {}
    heading, last, block = "", "", None
    (path,) = DOCS.rglob(f"{page}.md")
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if block is None:
            if line.startswith("#"):
                heading = line.strip("# \n")
            elif line.startswith("```"):
                kind, block = line[3:].strip(), ""
        elif line != "```\n":
            block += line
        else:
            if kind == "diff":
                old, new = (
                    "".join(row[1:] for row in block.splitlines(keepends=True) if row[0] == sign)
                    for sign in "-+"
                )
                block = last.replace(old, new)
            found[heading], last, block = block, block, None
    return found


def run(page: str, heading: str, streams: str, before: str = "") -> list[str]:
    """Runs a program and verifies its streams at its end or before a line. Returns the SMs of each
    stream and how many are in two. Checks the output that the program's comments state."""
    if gcx.Device(0).sm_count != 132:
        pytest.skip("the pages' numbers are those of a GPU of 132 SMs")
    program = programs(page)[heading]
    verify = VERIFY.format(streams=streams)
    if before:
        assert program.count(before) == 1
    code = program.replace(before, verify + before) if before else program + verify
    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    (seen,) = [line for line in lines if line.startswith("SMs seen: ")]
    said = [line for line in lines if line != seen]
    assert said == re.findall(r"^ *print\(.*\)  +# (.+)$", program, re.MULTILINE), done.stdout
    print(f"{page}: {heading}: {seen}")
    return re.findall(r"\[.*\]|\d+$", seen)


@pytest.fixture
def green_context(torch: Any) -> Any:
    """PyTorch's own class."""
    module = pytest.importorskip(
        "torch.cuda.green_contexts", reason=f"PyTorch {torch.__version__} has no green contexts"
    )
    if not hasattr(module.GreenContext, "Stream"):
        pytest.skip(f"the GreenContext of PyTorch {torch.__version__} has no streams")
    if not getattr(module, "SUPPORTED", True):
        pytest.skip(f"PyTorch {torch.__version__} was built without green contexts")
    return module.GreenContext


@pytest.fixture
def core() -> Any:
    core = pytest.importorskip("cuda.core", reason="cuda.core isn't installed")
    if not hasattr(core, "SMResourceOptions"):
        pytest.skip(f"this cuda.core ({getattr(core, '__version__', '?')}) has no green contexts")
    return core


# FlashInfer


def test_flashinfer_before(torch: Any) -> None:
    if importlib.util.find_spec("flashinfer") is None:
        pytest.skip("FlashInfer isn't installed")
    green_ctx = importlib.import_module("flashinfer.green_ctx")
    if not hasattr(green_ctx, "split_device_green_ctx_by_sm_count"):
        pytest.skip("this FlashInfer can't split by counts")
    assert run("from-flashinfer", "Before", "compute, communicate") == ["[108, 24]", "0"]


@pytest.mark.parametrize(
    ("heading", "streams"),
    [
        ("After: only the import changes", "compute, communicate"),
        ("After: with gcx's own API", "compute.stream, communicate.stream"),
    ],
)
def test_flashinfer_after(torch: Any, heading: str, streams: str) -> None:
    assert run("from-flashinfer", heading, streams) == ["[108, 24]", "0"]


# cuda.core


# These programs close their streams at their end.
CLOSING = "for stream, context in zip("


def test_cuda_core_before(core: Any) -> None:
    assert run("from-cuda-core", "Before", "*streams", CLOSING) == ["[24, 108]", "0"]


def test_cuda_core_after() -> None:
    heading = "After: with gcx's own API"
    assert run("from-cuda-core", heading, "*streams", CLOSING) == ["[24, 108]", "0"]


def test_cuda_core_after_with_its_streams(core: Any) -> None:
    heading = "After: short, and with the rest of cuda.core"
    assert run("from-cuda-core", heading, "*streams") == ["[24, 108]", "0"]


# PyTorch


def test_pytorch_before(green_context: Any) -> None:
    assert run("from-pytorch", "Before", "stream") == ["[24]", "0"]


@pytest.mark.parametrize("heading", ["After: only the import changes", "After: with gcx's own API"])
def test_pytorch_after(torch: Any, heading: str) -> None:
    assert run("from-pytorch", heading, "stream") == ["[24]", "0"]


def test_pytorch_before_two_contexts_overlap(green_context: Any) -> None:
    assert run("from-pytorch", "Before: they overlap", "*streams") == ["[24, 64]", "24"]


@pytest.mark.parametrize(
    ("heading", "streams"),
    [
        ("After: the same class, and one split", "*streams"),
        ("After: two partitions with gcx's own API", "*[part.stream for part in parts]"),
    ],
)
def test_pytorch_after_two_contexts_are_disjoint(torch: Any, heading: str, streams: str) -> None:
    assert run("from-pytorch", heading, streams) == ["[24, 64]", "0"]


# SGLang and TensorRT-LLM


def test_sglang_before(torch: Any) -> None:
    """By its own rounding the first has 104 for 100, the second the rest."""
    if importlib.util.find_spec("sgl_kernel") is None:
        pytest.skip("sgl_kernel isn't installed")
    try:
        importlib.import_module("sgl_kernel.spatial_ops")
    except ImportError as error:
        pytest.skip(f"this sgl_kernel was built without green contexts: {error}")
    assert run("from-sglang", "Before", "prefill, decode") == ["[104, 28]", "0"]


@pytest.mark.parametrize(
    ("heading", "streams"),
    [
        ("After: only the import changes", "prefill, decode"),
        ("After: with gcx's own API", "prefill.stream, decode.stream"),
    ],
)
def test_sglang_after(torch: Any, heading: str, streams: str) -> None:
    assert run("from-sglang", heading, streams) == ["[100, 32]", "0"]


@pytest.mark.parametrize(
    ("heading", "streams", "before"),
    [
        ("After: only the import changes", "fc1, router", "cleanup()"),
        ("After: with gcx's own API", "fc1.stream, router.stream", ""),
    ],
)
def test_tensorrt_llm_after(torch: Any, heading: str, streams: str, before: str) -> None:
    assert run("from-tensorrt-llm", heading, streams, before) == ["[108, 24]", "0"]
