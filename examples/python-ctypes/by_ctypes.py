"""Splits device 0 into 108 and 24 SMs and shows on which ones each part's kernels run.

By ctypes: libgcx.so is opened by dlopen, nothing is installed or compiled. Programs in Python use
the package gcx; this shows what a small tool does where that can't be installed.

    python by_ctypes.py [LIBRARY]
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import ExitStack
from ctypes import byref
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bindings/ctypes/generated"))
import gcx_ctypes as gcx


def split(c: ctypes.CDLL, resource: gcx.gcx_resource, *counts: int) -> list[gcx.gcx_resource]:
    """The disjoint groups of a resource, one for each count."""
    requests = (gcx.gcx_sm_request * len(counts))(*map(gcx.gcx_sm_request, counts))
    groups = (gcx.gcx_resource * len(counts))()
    c.gcx_sm_split(
        byref(resource), requests, len(counts), gcx.GCX_SPLIT_DEFAULT, groups, None, None, None
    )
    return list(groups)


def scenario(c: ctypes.CDLL) -> None:
    """108 and 24 SMs, proved to be disjoint; an error; all given back."""
    device = gcx.gcx_resource()
    c.gcx_device_get_resource(0, gcx.GCX_RESOURCE_SM, byref(device))
    seen = []
    with ExitStack() as made:
        for i, group in enumerate(split(c, device, 108, 24)):
            context, stream = gcx.gcx_context(), gcx.gcx_stream()
            c.gcx_context_create(byref(group), 1, None, byref(context))
            made.callback(c.gcx_context_destroy, context)
            c.gcx_stream_create(context, None, byref(stream))  # gcx_stream_native: its cudaStream_t
            made.callback(c.gcx_stream_destroy, stream)

            ids, count = (ctypes.c_uint32 * gcx.GCX_MAX_SMS)(), ctypes.c_uint32()
            # A kernel notes where it runs.
            c.gcx_stream_probe_sms(stream, ids, len(ids), byref(count))
            seen.append(ids[: count.value])
            print(f"partition {i} runs on {count.value} SMs: {' '.join(map(str, seen[i]))}")
        if both := set(seen[0]) & set(seen[1]):
            raise RuntimeError(f"SMs {sorted(both)} are in both partitions")
        print("no SM is in both")

        try:
            split(c, device, 140)
        except gcx.GcxError as error:
            print(f"140 SMs: {error}")
        else:
            raise RuntimeError("140 SMs were given")


def main() -> None:
    c = gcx.open(*sys.argv[1:2])
    info, stats = gcx.sized(gcx.gcx_device_info), gcx.sized(gcx.gcx_cache_stats)
    c.gcx_device_get_info(0, byref(info))
    print(f"{info.name.decode()}, {info.sm_count} SMs")
    scenario(c)
    c.gcx_cache_get_stats(byref(stats))
    print(f"given back: {stats.in_use} contexts in use")


if __name__ == "__main__":
    try:
        main()
    except (gcx.GcxError, OSError, AttributeError, RuntimeError) as error:
        sys.exit(str(error))
