"""Two partitions of 108 and 24 SMs, verified to be disjoint: docs/reference/languages.md.

python examples/python/scenario.py; without a GPU, set GCX_DRIVER=sim:h100@13.0.
"""

from __future__ import annotations

import common
import gcx


# [scenario]
def scenario() -> None:
    with gcx.split([108, 24]) as parts:
        # part.stream.torch(), or .native, is the stream for other libraries.
        seen = [part.stream.sm_ids() for part in parts]  # a kernel notes where it runs
        for i, sms in enumerate(seen):
            print(f"partition {i} runs on {len(sms)} SMs: {' '.join(map(str, sms))}")
        if both := set(seen[0]) & set(seen[1]):
            raise RuntimeError(f"SMs {sorted(both)} are in both partitions")
        print("no SM is in both")

        try:
            gcx.split([140])
        except gcx.ResourceConfigurationError as error:
            print(f"140 SMs: {error}")
        else:
            raise RuntimeError("140 SMs were given")


# [/scenario]


def main() -> None:
    device = gcx.Device(0)
    print(f"{device.name}, {device.sm_count} SMs")
    scenario()
    print(f"given back: {gcx.cache_stats().in_use} contexts in use")


if __name__ == "__main__":
    common.run(main)
