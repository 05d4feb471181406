"""Splits device 0 into 108 and 24 SMs and shows on which ones each part's kernels run.

By ctypes alone: libgcx.so is opened by dlopen, nothing is installed or compiled. It is here to be
copied into other languages and small tools; programs in Python use the package gcx, which is
complete.

    python by_ctypes.py [LIBRARY]
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_int32, c_uint8, c_uint32, c_uint64
from ctypes import c_void_p as Handle

RESOURCE_SM = 1
MAX_SMS = 1024
# As a count: all SMs that are free, or what the other groups leave. A count of 0 is refused.
REST = 0xFFFFFFFF


class Resource(ctypes.Structure):
    """gcx_resource, a value."""

    _fields_ = (("opaque", c_uint64 * 16),)


class Request(ctypes.Structure):
    """gcx_sm_request; what isn't set is 0."""

    _fields_ = (
        ("sm_count", c_uint32),
        ("coscheduled_sm_count", c_uint32),
        ("preferred_coscheduled_sm_count", c_uint32),
        ("flags", c_uint32),
        ("locality_domain_id", c_uint32),
        ("reserved", c_uint32 * 11),
    )


class DeviceInfo(ctypes.Structure):
    """gcx_device_info."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("compute_capability_major", c_int32),
        ("compute_capability_minor", c_int32),
        ("sm_count", c_uint32),
        ("min_partition_size", c_uint32),
        ("coscheduled_alignment", c_uint32),
        ("locality_domain_count", c_uint32),
        ("name", c_char * 128),
        ("uuid", c_uint8 * 16),
    )


class CacheStats(ctypes.Structure):
    """gcx_cache_stats."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("limit", c_uint32),
        ("in_use", c_uint32),
        ("kept", c_uint32),
        ("hits", c_uint64),
        ("misses", c_uint64),
        ("evicted", c_uint64),
        ("lost", c_uint64),
        ("prepared", c_uint64),
        ("making_ns", c_uint64),
        ("longest_making_ns", c_uint64),
        ("kept_streams", c_uint32),
        ("reserved", c_uint32),
    )


class LeaseParams(ctypes.Structure):
    """gcx_lease_params."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("flags", c_uint32),
        ("family", c_int),
        ("min_sm_count", c_uint32),
        ("exclusive_sm_count", c_uint32),
        ("timeout_ms", c_uint32),
        ("cancel", Handle),
        ("name", c_char_p),
    )


class LeaseSize(ctypes.Structure):
    """gcx_lease_size."""

    _fields_ = (("lease", Handle), ("sm_count", c_uint32), ("reserved", c_uint32))


class LeaseInfo(ctypes.Structure):
    """gcx_lease_info."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("device", c_int32),
        ("family", c_int),
        ("flags", c_uint32),
        ("sm_count", c_uint32),
        ("exclusive_sm_count", c_uint32),
        ("stream_count", c_uint32),
        ("reserved", c_uint32),
        ("id", c_uint64),
        ("changes", c_uint64),
        ("name", c_char * 64),
    )


class GcxError(Exception):
    """What gcx answered, in words; result is its number."""

    def __init__(self, library: Library, result: int) -> None:
        name = library.c.gcx_result_name(result).decode()
        super().__init__(f"{name}: {library.c.gcx_last_error_message().decode()}")
        self.result = result


# Parameters of what is called here, without which ctypes would take pointers for C ints.
PARAMETERS: dict[str, tuple[type, ...]] = {
    "gcx_device_get_info": (c_int32, POINTER(DeviceInfo)),
    "gcx_device_get_resource": (c_int32, c_int, POINTER(Resource)),
    "gcx_sm_split": (
        *(POINTER(Resource), POINTER(Request), c_uint32, c_uint32),
        *(POINTER(Resource), POINTER(Resource)),
    ),
    "gcx_context_create": (POINTER(Resource), c_uint32, Handle, POINTER(Handle)),
    "gcx_context_destroy": (Handle,),
    "gcx_stream_create": (Handle, Handle, POINTER(Handle)),
    "gcx_stream_destroy": (Handle,),
    "gcx_stream_probe_sms": (Handle, POINTER(c_uint32), c_uint32, POINTER(c_uint32)),
    "gcx_cache_get_stats": (POINTER(CacheStats),),
    "gcx_lease_acquire": (c_int32, c_uint32, POINTER(LeaseParams), POINTER(Handle)),
    "gcx_lease_release": (Handle,),
    "gcx_lease_resize": (POINTER(LeaseSize), c_uint32, c_uint32),
    "gcx_lease_get_info": (Handle, POINTER(LeaseInfo)),
    "gcx_lease_stream_create": (Handle, Handle, POINTER(Handle)),
}


def count_of(sms: int) -> int:
    """A count of SMs, which ctypes would cut down to 32 bits in silence."""
    if not 0 <= sms <= 0xFFFFFFFF:
        raise ValueError(f"{sms} is no number of SMs")
    return sms


class Library:
    """libgcx, by the names of gcx.h; a call that fails raises GcxError."""

    def __init__(self, path: str = "libgcx.so.1") -> None:
        self.c = ctypes.CDLL(path)
        self.c.gcx_result_name.argtypes = (c_int,)
        self.c.gcx_result_name.restype = c_char_p
        self.c.gcx_last_error_message.argtypes = ()
        self.c.gcx_last_error_message.restype = c_char_p
        for name, parameters in PARAMETERS.items():
            function = getattr(self.c, name)
            function.argtypes = parameters
            function.restype = c_int

    def __call__(self, name: str, *arguments: object) -> None:
        result = getattr(self.c, name)(*arguments)
        if result != 0:
            raise GcxError(self, result)

    def device(self, ordinal: int) -> Resource:
        """All SMs of a device."""
        resource = Resource()
        self("gcx_device_get_resource", ordinal, RESOURCE_SM, byref(resource))
        return resource

    def split(self, resource: Resource, counts: Sequence[int]) -> list[Resource]:
        """A disjoint group for each count; REST takes what the others leave."""
        requests = (Request * len(counts))(*(Request(sm_count=count_of(n)) for n in counts))
        groups = (Resource * len(counts))()
        self("gcx_sm_split", byref(resource), requests, len(counts), 0, groups, None)
        return list(groups)

    def resize(self, changes: Sequence[tuple[Lease, int]]) -> None:
        """Gives leases other sizes, all in one operation or none."""
        sizes = [LeaseSize(lease.handle, count_of(sms)) for lease, sms in changes]
        self("gcx_lease_resize", (LeaseSize * len(sizes))(*sizes), len(sizes), 0)


def probed(library: Library, stream: Handle) -> list[int]:
    """The SMs that a kernel in the stream runs on, as it notes them."""
    ids, count = (c_uint32 * MAX_SMS)(), c_uint32()
    library("gcx_stream_probe_sms", stream, ids, MAX_SMS, byref(count))
    return ids[: count.value]


class Part:
    """A context and a stream of it, given back by close() or at the end of a with."""

    def __init__(self, library: Library, resource: Resource) -> None:
        self.library = library
        self.context, self.stream = Handle(), Handle()
        library("gcx_context_create", byref(resource), 1, None, byref(self.context))
        try:
            library("gcx_stream_create", self.context, None, byref(self.stream))
        except GcxError:
            library("gcx_context_destroy", self.context)
            raise

    def probe(self) -> list[int]:
        return probed(self.library, self.stream)

    def close(self) -> None:
        """Gives both back. Once: a second time raises what gcx says of the stale handle."""
        self.library("gcx_stream_destroy", self.stream)
        self.library("gcx_context_destroy", self.context)

    def __enter__(self) -> Part:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Lease:
    """SMs that no other lease of the process has, and a stream that follows them when they change;
    given back by close() or at the end of a with."""

    def __init__(
        self, library: Library, device: int, sms: int, name: str = "", timeout_ms: int = 0
    ) -> None:
        """Acquires SMs, or REST: all that are free. ctypes lets other threads run meanwhile."""
        self.library = library
        self.handle, self.stream = Handle(), Handle()
        params = LeaseParams(ctypes.sizeof(LeaseParams), timeout_ms=timeout_ms, name=name.encode())
        library("gcx_lease_acquire", device, count_of(sms), byref(params), byref(self.handle))
        try:
            library("gcx_lease_stream_create", self.handle, None, byref(self.stream))
        except GcxError:
            library("gcx_lease_release", self.handle)
            raise

    def sm_count(self) -> int:
        info = LeaseInfo(ctypes.sizeof(LeaseInfo))
        self.library("gcx_lease_get_info", self.handle, byref(info))
        return int(info.sm_count)

    def probe(self) -> list[int]:
        return probed(self.library, self.stream)

    def close(self) -> None:
        """Gives both back; work that was submitted finishes."""
        self.library("gcx_stream_destroy", self.stream)
        self.library("gcx_lease_release", self.handle)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def scenario(gcx: Library) -> None:
    """108 and 24 SMs, proved to be disjoint; an error; all given back."""
    device = gcx.device(0)
    first, second = gcx.split(device, [108, 24])
    with Part(gcx, first) as a, Part(gcx, second) as b:
        seen = [part.probe() for part in (a, b)]
        for i, sms in enumerate(seen):
            print(f"partition {i} runs on {len(sms)} SMs: {' '.join(map(str, sms))}")
        both = set(seen[0]) & set(seen[1])
        if both:
            raise RuntimeError(f"SMs {sorted(both)} are in both partitions")
        print("no SM is in both")

        try:
            gcx.split(device, [140])
        except GcxError as error:
            print(f"140 SMs: {error}")
        else:
            raise RuntimeError("140 SMs were given")


def main() -> None:
    gcx = Library(*sys.argv[1:2])
    info = DeviceInfo(struct_size=ctypes.sizeof(DeviceInfo))
    gcx("gcx_device_get_info", 0, byref(info))
    print(f"{info.name.decode()}, {info.sm_count} SMs")
    scenario(gcx)
    stats = CacheStats(struct_size=ctypes.sizeof(CacheStats))
    gcx("gcx_cache_get_stats", byref(stats))
    print(f"given back: {stats.in_use} contexts in use")


if __name__ == "__main__":
    try:
        main()
    except (GcxError, OSError, AttributeError, RuntimeError) as error:
        sys.exit(str(error))
