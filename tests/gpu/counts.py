#!/usr/bin/env python3
"""Measures the SM counts that libraries see in a partition, and their effect.

Runs the model of serving_figures.py, decode steps and prompts of 2048 tokens, in one process
for each variant: under `gcx exec` with the partition's count, with that for all but cuBLAS, and
with the device's; and in programs that use gcx, with gcx.report_partition_counts() and without,
where cuBLAS sees the device's count.
Needs PyTorch, gcx installed with its command, and exclusive use of the GPU.
Ends with "N passed, N failed".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

TOKENS = 2048
ROUNDS = 20
# Required speedups with the count for all libraries: SMs, work, factor.
WORTH = [(108, "prefill", 1.1), (32, "decode", 1.1)]


def milliseconds(work: Any, rounds: int) -> float:
    """Returns the median of this many rounds, after three to warm up."""
    import torch

    times = []
    for number in range(rounds + 3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        if number >= 3:
            times.append(begin.elapsed_time(end))
    return float(sorted(times)[len(times) // 2])


def measure() -> dict[str, Any]:
    """Runs the model in this process; returns times, reported counts and results."""
    import torch
    from llama import Decode, Model, Prefill, Shape

    torch.set_grad_enabled(False)
    shape = Shape(prompt=TOKENS)
    model = Model(shape, "cuda", torch.bfloat16)
    decode, prefill = Decode(model), Prefill(model)
    prompt = prefill.chunk(0, TOKENS)
    stream = torch.cuda.current_stream()
    for _ in range(3):
        decode.step()
        prompt()
    stream.synchronize()
    step = torch.cuda.CUDAGraph()
    with torch.cuda.graph(step):
        decode.step()
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    found: dict[str, Any] = {
        "decode": milliseconds(step.replay, ROUNDS),
        "prefill": milliseconds(prompt, ROUNDS),
        "product": milliseconds(lambda: a @ b, ROUNDS),
        "answer": [decode.tokens.tolist()[:8], prefill.first_token.tolist()],
        "torch": torch.cuda.get_device_properties(0).multi_processor_count,
    }
    try:
        from triton.runtime import driver

        properties = driver.active.utils.get_device_properties(torch.cuda.current_device())
        found["triton"] = properties["multiprocessor_count"]
    except ImportError:
        found["triton"] = None
    return found


def inside_gcx(sms: int, reported: bool) -> dict[str, Any]:
    """Measures in a process that uses gcx, with its partition current during the setup."""
    import gcx

    if reported:
        gcx.report_partition_counts()
    import torch

    with (
        gcx.split([sms]) as (part,),
        part.context.make_current(),
        torch.cuda.stream(part.stream.torch()),
    ):
        return measure()


def run(name: str, before: list[str], *arguments: str) -> dict[str, Any]:
    """Runs one variant in a new process."""
    command = [*before, sys.executable, __file__, "--variant", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        print(f"{name}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return {}
    found: dict[str, Any] = json.loads(lines[-1])
    row = "  ".join(f"{what} {found[what]:7.2f}" for what in ("decode", "prefill", "product"))
    print(
        f"{name:42} {row} ms  reported: torch {found['torch']}, triton {found['triton']}",
        flush=True,
    )
    return found


class Checks:
    def __init__(self) -> None:
        self.passed = self.failed = 0

    def check(self, ok: bool, what: str) -> None:
        self.passed += ok
        self.failed += not ok
        if not ok:
            print(f"FAILED: {what}")


def compare(
    checks: Checks,
    sms: int,
    way: str,
    partition: dict[str, Any],
    device: dict[str, Any],
    cublas: bool,
) -> None:
    """Compares both reports. The speedup is required where cuBLAS sees the count too."""
    checks.check(bool(partition) and bool(device), f"{sms} SMs, {way}: a variant didn't run")
    if not partition or not device:
        return
    checks.check(partition["torch"] == sms, f"{sms} SMs, {way}: torch sees {partition['torch']}")
    checks.check(
        partition["triton"] in (None, sms), f"{sms} SMs, {way}: triton sees {partition['triton']}"
    )
    for count, work, required in WORTH:
        if count == sms:
            gain = device[work] / partition[work]
            print(f"{sms} SMs, {way}: {work} {gain:.2f} times as fast with the count")
            checks.check(
                gain >= required or not cublas,
                f"{sms} SMs, {way}: {work} gains {gain:.2f}, not {required}",
            )


def main() -> int:
    checks = Checks()
    whole = run("plain", [])
    checks.check(bool(whole), "the plain program didn't run")
    for sms, _, _ in WORTH:
        variants = {}
        for report in ("auto", "partition", "device"):
            before = ["gcx", "exec", "--sms", str(sms), "--report", report, "--"]
            variants[report] = run(f"gcx exec --sms {sms} --report {report}", before)
        compare(checks, sms, "gcx exec", variants["partition"], variants["device"], cublas=True)
        compare(checks, sms, "all but cuBLAS", variants["auto"], variants["device"], cublas=False)
        in_process = {
            on: run(f"in a process of gcx, {sms}, reported: {on}", [], str(sms), on) for on in "yn"
        }
        compare(checks, sms, "in a process of gcx", in_process["y"], in_process["n"], cublas=False)
        for name, found in [*variants.items(), *in_process.items()]:
            if found and whole:
                # Other kernels round differently, so tokens of random weights may differ.
                same = found["answer"] == whole["answer"]
                print(f"{sms} SMs, {name}: the plain program's tokens: {'yes' if same else 'no'}")
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--variant"]:
        os.environ.pop("GCX_DRIVER", None)
        rest = sys.argv[2:]
        print(json.dumps(inside_gcx(int(rest[0]), rest[1] == "y") if rest else measure()))
    else:
        sys.exit(main())
