"""Runs PyTorch unchanged. Prints which SMs each kind of stream ran on, times and results, as JSON.

torch_work.py RESULTS, a file for the results' numbers.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable

import torch
import triton
import triton.language as tl

SMS = 1024
BLOCKS = 4096


# Triton looks annotations up.
@triton.jit  # type: ignore[misc]
def note_sm(seen, scratch, n: tl.constexpr):  # type: ignore[no-untyped-def]
    sm = tl.inline_asm_elementwise(
        "mov.u32 $0, %smid;", "=r", [], dtype=tl.int32, is_pure=False, pack=1
    )
    tl.store(seen + sm, 1)
    offsets = tl.program_id(0) * n + tl.arange(0, n)
    value = tl.load(scratch + offsets)
    for _ in range(200):  # long enough that blocks fill all SMs
        value = value * 1.0001 + 0.5
    tl.store(scratch + offsets, value)


class Seen:
    def __init__(self) -> None:
        self.seen = torch.zeros(SMS, dtype=torch.int32, device="cuda")
        self.scratch = torch.ones(BLOCKS * 1024, device="cuda")
        torch.cuda.synchronize()

    def launch(self) -> None:
        note_sm[(BLOCKS,)](self.seen, self.scratch, n=1024)

    def sms(self) -> list[int]:
        torch.cuda.synchronize()
        return [int(sm) for sm in torch.nonzero(self.seen).flatten().tolist()]


def seen_in(stream: torch.cuda.Stream | None) -> list[int]:
    work = Seen()
    if stream is None:
        work.launch()
    else:
        with torch.cuda.stream(stream):
            work.launch()
    return work.sms()


def seen_in_graph() -> list[int]:
    work = Seen()
    work.launch()
    torch.cuda.synchronize()
    work.seen.zero_()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work.launch()
    graph.replay()
    return work.sms()


def in_a_thread(work: Callable[[], list[int]]) -> list[int]:
    answers: list[list[int]] = []
    thread = threading.Thread(target=lambda: answers.append(work()))
    thread.start()
    thread.join()
    return answers[0]


def milliseconds(work: Callable[[], object], rounds: int = 20) -> float:
    """Returns the median of single rounds, after some to warm up."""
    for _ in range(5):
        work()
    torch.cuda.synchronize()
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e3)
    return sorted(times)[rounds // 2]


def results() -> dict[str, torch.Tensor]:
    # Random numbers of a device depend on the reported SM count, so they are drawn on the host.
    torch.manual_seed(7)
    layer = torch.nn.Sequential(
        torch.nn.Linear(512, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 512)
    ).cuda()
    x = torch.randn(256, 512).cuda()
    found = {"linear": layer(x), "sum of integers": torch.arange(10**6, device="cuda").sum()}
    layer(x).square().mean().backward()
    gradient = layer[0].weight.grad
    assert gradient is not None
    found["gradient"] = gradient
    found["compiled"] = torch.compile(layer)(x)
    found["cuDNN"] = torch.nn.functional.conv2d(
        torch.randn(8, 16, 64, 64).cuda(), torch.randn(32, 16, 3, 3).cuda()
    )
    query = torch.randn(2, 8, 512, 64, dtype=torch.bfloat16).cuda()
    found["attention"] = torch.nn.functional.scaled_dot_product_attention(query, query, query)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        layer(x)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            captured = layer(x)
    graph.replay()
    found["captured"] = captured
    torch.cuda.synchronize()
    return {name: value.detach().float().cpu() for name, value in found.items()}


def main() -> None:
    least, greatest = 0, -5
    seen = {
        "default stream": seen_in(None),
        "stream": seen_in(torch.cuda.Stream()),
        "stream with priority": seen_in(torch.cuda.Stream(priority=greatest)),
        "stream with the least priority": seen_in(torch.cuda.Stream(priority=least)),
        "captured graph": seen_in_graph(),
        "another thread": in_a_thread(lambda: seen_in(None)),
        "another thread's stream": in_a_thread(lambda: seen_in(torch.cuda.Stream())),
    }
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    torch.save(results(), sys.argv[1])
    print(
        json.dumps(
            {
                "seen": seen,
                "properties": torch.cuda.get_device_properties(0).multi_processor_count,
                "product_ms": milliseconds(lambda: a @ a),
            }
        )
    )


if __name__ == "__main__":
    main()
