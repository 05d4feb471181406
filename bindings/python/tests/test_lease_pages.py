"""What docs/python.md says of leases: its programs run, and its promise is the header's."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import gcx
import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python.md"
HEADER = Path(gcx.__file__).parent / "include" / "gcx.h"
SECTION = PAGE.read_text(encoding="utf-8").partition("## Leases")[2].partition("\n## ")[0]
FENCES = re.findall(r"^```python\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)

_LEASES = """
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

_ASYNCIO = """
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


def test_the_leases(script: Any) -> None:
    """A wait that was given up takes no lease."""
    changes, waits = FENCES
    body = textwrap.indent(f"loop = asyncio.get_running_loop()\n{waits}return lease\n", "    ")
    code = f"{_LEASES}{changes}async def acquire():\n{body}{_ASYNCIO}"
    assert script(code) == "64 68\n32 100\nTrue\n1\n"


def promise(text: str) -> str:
    """What it says that a stream's handle means across a change, without marks and line ends."""
    plain = re.sub(r"[\s*`]+", " ", text).replace(" ,", ",").replace("gcx_stream_native", "native")
    begin, end = "stands for the lease: native, ", " while another thread changes the lease."
    return begin + plain.partition(begin)[2].partition(end)[0] + end


@pytest.mark.parametrize("text", [SECTION, gcx.Lease.create_stream.__doc__ or ""])
def test_what_a_stream_stands_for_is_said_as_in_the_header(text: str) -> None:
    promised = promise(HEADER.read_text(encoding="utf-8"))
    assert len(promised) > 300
    assert promise(text) == promised
