"""Two partitions, verified to run only on their SMs.

python examples/python/split.py [--sms 24]; without a GPU, set GCX_DRIVER=sim:h200@13.0.
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

    # None takes what the other leaves. Counts are rounded up: on an H200 10 gives 12, so size
    # kernels by sm_count and not by the requested count.
    first, rest = gcx.split([arguments.sms, None])
    with first, rest:
        print(f"requested {arguments.sms}: got {first.sm_count} SMs, {rest.sm_count} are left")
        print(f"a cudaStream_t for any library: {first.stream.native:#x}")

        # Runs a probe kernel in each stream, which notes its SMs.
        proof = gcx.verify([first, rest])
        print(proof)
        common.check(proof.ok, "a partition ran on other SMs")


if __name__ == "__main__":
    common.run(main)
