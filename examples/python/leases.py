"""Decode and prefill on leases that are resized at every step, by the length of a queue.

python examples/python/leases.py [--steps 12]; without a GPU, set GCX_DRIVER=sim:h200@13.0.
"""

from __future__ import annotations

import argparse
import statistics
import time

import common
import gcx

# Waiting prompts at each step.
QUEUE = (0, 0, 1, 4, 9, 12, 9, 6, 3, 1, 0, 0)


def decode_sms(device: gcx.Device, prompts: int) -> int:
    """The policy: decode has most of the GPU without prompts, and less with each one."""
    share = max(0.25, 0.75 - prompts / 16)
    step = device.sm_count // 8
    return max(step, round(share * device.sm_count / step) * step)


def show(step: int, prompts: int, decode: gcx.Lease, prefill: gcx.Lease, took: float) -> list[str]:
    """Checks by a kernel in each stream which SMs it runs on; returns a row of the table."""
    seen = [set(part.stream.sm_ids()) for part in (decode, prefill)]
    for part, sms in zip((decode, prefill), seen):
        common.check(
            len(sms) == part.sm_count,
            f"step {step}: {part.name} has {part.sm_count} SMs and ran on {len(sms)}",
        )
    common.check(not seen[0] & seen[1], f"step {step}: SMs {sorted(seen[0] & seen[1])} are in both")
    sizes = [str(len(sms)) for sms in seen]
    return [str(step), str(prompts), *sizes, f"{took * 1e6:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=common.positive, default=12, help="steps to take (12)")
    arguments = parser.parse_args()
    device = common.start(computes=False)

    # No other lease of the process gets these SMs while these leases live.
    with gcx.acquire(None, name="decode") as decode:
        decode.resize(decode_sms(device, 0))
        with gcx.acquire(None, name="prefill") as prefill:
            # Creates the contexts of each layout, so that a resize takes microseconds.
            for count in sorted({decode_sms(device, prompts) for prompts in QUEUE}):
                gcx.prepare({decode: count, prefill: None})

            rows, times = [], []
            for step in range(arguments.steps):
                prompts = QUEUE[step % len(QUEUE)]
                start = time.perf_counter()
                # One grows by what the other releases, in one operation. No host thread waits.
                gcx.resize({decode: decode_sms(device, prompts), prefill: None})
                times.append(time.perf_counter() - start)
                # Submit the step's work to decode.stream and prefill.stream here. Take streams of
                # other libraries again for each step: torch.cuda.stream(decode.stream.torch()).
                rows.append(show(step, prompts, decode, prefill, times[-1]))
            common.table(["step", "prompts", "decode SMs", "prefill SMs", "resize, us"], rows)
            median = f"{statistics.median(times) * 1e6:.0f} us"
            print(f"{decode.changes} changes of decode; resize took {median} in the median")

            # Decode gets the SMs of prefill, behind prefill's last work there. Prefill keeps its
            # streams, and a resize brings it back.
            gcx.resize({prefill: gcx.PARKED, decode: None})
            print(f"prefill is parked: decode has {decode.sm_count}, prefill {prefill.sm_count}")
            common.check(decode.sm_count == device.sm_count, "decode doesn't have all SMs")
    print(f"released: {len(gcx.leases())} leases remain")


if __name__ == "__main__":
    common.run(main)
