"""A process that publishes leases: publisher.py LIBRARY PROCESS [NAME:SMS[:EXCLUSIVE]]...

Each lease has one stream. A lease with EXCLUSIVE is shared except for that many SMs. The prefix
wait: waits for the lease in a thread; the prefix reservation: acquires a reservation instead of a
lease. Prints "ready", then runs each line of its input, and ends with it: resize INDEX SMS; settle
NAME, which waits until a waiting lease has its SMs; release INDEX, which also empties the cache of
contexts; or stop.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time

library = ctypes.CDLL(sys.argv[1])


class Params(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("family", ctypes.c_int),
        ("min_sm_count", ctypes.c_uint32),
        ("exclusive_sm_count", ctypes.c_uint32),
        ("timeout_ms", ctypes.c_uint32),
        ("cancel", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("reservation", ctypes.c_void_p),
    )


class ReservationParams(ctypes.Structure):
    _fields_ = (
        *Params._fields_[:4],
        ("timeout_ms", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        *Params._fields_[6:8],
        ("folder", ctypes.c_char_p),
    )


class Size(ctypes.Structure):
    _fields_ = (
        ("lease", ctypes.c_void_p),
        ("sm_count", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
    )


def checked(result: int) -> None:
    if result != 0:
        library.gcx_last_error_message.restype = ctypes.c_char_p
        sys.exit(f"{result}: {library.gcx_last_error_message()!r}")


def sm_count(text: str) -> int:
    """Returns a count of SMs, GCX_REST for "rest"."""
    return 0xFFFFFFFF if text == "rest" else int(text)


def acquire(words: str, waits: bool = False) -> ctypes.c_void_p:
    name, count, *exclusive = words.split(":")
    params = Params(ctypes.sizeof(Params), len(exclusive), name=os.fsencode(name))
    params.exclusive_sm_count = int(exclusive[0]) if exclusive else 0
    params.timeout_ms = 0xFFFFFFFF if waits else 0
    lease = ctypes.c_void_p()
    checked(
        library.gcx_lease_acquire(0, sm_count(count), ctypes.byref(params), ctypes.byref(lease))
    )
    stream = ctypes.c_void_p()
    checked(library.gcx_lease_stream_create(lease, None, ctypes.byref(stream)))
    streams[lease.value] = stream
    acquired.add(name)
    return lease


def reservation(words: str, waits: bool = False) -> None:
    name, count = words.removeprefix("reservation:").split(":")
    params = ReservationParams(ctypes.sizeof(ReservationParams), name=os.fsencode(name))
    params.timeout_ms = 0xFFFFFFFF if waits else 0
    handle = ctypes.c_void_p()
    checked(
        library.gcx_reservation_acquire(
            0, sm_count(count), ctypes.byref(params), ctypes.byref(handle)
        )
    )


leases = []
acquired: set[str] = set()
streams: dict[int | None, ctypes.c_void_p] = {}
checked(library.gcx_publish_start(os.fsencode(sys.argv[2])))
for words in sys.argv[3:]:
    if words.startswith("wait:"):
        waiting = (words.removeprefix("wait:"), True)
        acquire_one = reservation if waiting[0].startswith("reservation:") else acquire
        threading.Thread(target=acquire_one, args=waiting, daemon=True).start()
        time.sleep(0.2)
    elif words.startswith("reservation:"):
        reservation(words)
    else:
        leases.append(acquire(words))
print("ready", flush=True)
for line in sys.stdin:
    command, *numbers = line.split()
    if command == "settle":
        while numbers[0] not in acquired:
            time.sleep(0.001)
    elif command == "release":
        lease = leases[int(numbers[0])]
        checked(library.gcx_stream_destroy(streams[lease.value]))
        checked(library.gcx_lease_release(lease))
        checked(library.gcx_cache_trim(0, None))
    elif command == "resize":
        index, count = map(int, numbers)
        size = Size(leases[index], count, 0)
        checked(library.gcx_lease_resize(ctypes.byref(size), 1, 0))
    else:
        checked(library.gcx_publish_stop())
    print("done", flush=True)
os._exit(0)
