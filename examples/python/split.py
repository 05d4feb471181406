"""The smallest split: two partitions, and the proof that their kernels keep to their SMs.

python examples/python/split.py [--sms 24]; without a GPU: GCX_DRIVER=sim:h200@13.0 before it.
"""

from __future__ import annotations

import argparse

import common
import gcx


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sms", type=int, default=24, help="SMs of the first partition (24)")
    arguments = parser.parse_args()
    common.start(computes=False)

    # None is what the other leaves. Counts are rounded up to what the device can give: on an H200
    # 10 gives 12, so what was asked for is not what to size a kernel by.
    first, rest = gcx.split([arguments.sms, None])
    with first, rest:
        print(f"asked for {arguments.sms}: got {first.sm_count} SMs, and {rest.sm_count} are left")
        print(f"a cudaStream_t for any library: {first.stream.native:#x}")

        # A probe kernel notes on which SMs it ran, in each stream.
        proof = gcx.verify([first, rest])
        print(proof)
        common.check(proof.ok, "the partitions are not what they promise")


if __name__ == "__main__":
    common.run(main)
