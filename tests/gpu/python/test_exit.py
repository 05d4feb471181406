"""The exit of a process with PyTorch's memory in partitions.

When PyTorch frees pinned memory it records an event in each stream that used it, and crashes if the
driver no longer knows the stream. At exit the stream's owner may have ended before.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

_USE = """
part = gcx.split([24])[0]
host = torch.empty(1 << 20).pin_memory()
with torch.cuda.stream(part.stream.torch()):
    x = torch.ones(1 << 20, device="cuda")
    y = x.to("cuda").mul(2)
    x.record_stream(torch.cuda.current_stream())
    host.copy_(y, non_blocking=True)
"""


def ends_quietly(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stdout + done.stderr


@pytest.mark.parametrize("imports", ["import gcx, torch", "import torch, gcx"])
@pytest.mark.parametrize(
    "ending",
    [
        "",
        "part.close()",
        "part.stream.synchronize(); part.close(); del x, y; torch.cuda.empty_cache()",
        "torch.kept = host, x; del part, host, x",
        "kept = part.stream.torch(); del part",
    ],
)
def test_exit_with_memory_of_a_partition_is_clean(torch: Any, imports: str, ending: str) -> None:
    ends_quietly(f"{imports}\n{_USE}\n{ending}\n")


def test_exit_with_compat_objects_is_clean(torch: Any) -> None:
    ends_quietly(
        """
import torch
from gcx.compat.flashinfer import split_device_green_ctx
from gcx.compat.torch import GreenContext
context = GreenContext.create(24)
streams = [context.Stream(), *split_device_green_ctx(torch.device("cuda:0"), 1, 24)[0]]
hosts = []
for stream in streams:
    with torch.cuda.stream(stream):
        hosts.append(torch.ones(1 << 20, device="cuda").to("cpu", non_blocking=True).pin_memory())
context.set_context()
x = torch.ones(1 << 20).pin_memory().to("cuda", non_blocking=True)
"""
    )
