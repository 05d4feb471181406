"""The all-to-all by copy engines: peer copies between processes, which need no SMs.

Each rank maps the others' arenas once, by CUDA's handles for other processes, into the context of
its own GPU. An exchange is a copy into each peer's arena and behind it a copy of a number, which
tells that peer that the rows are there; the peer's stream waits for the number, not its host.

No rank asks whether its peers have read what it sent last: a buffer is written again a layer later,
behind an exchange in which each has heard from all, and each sends only behind what it has read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from twobatch.ranks import Ranks, attempt

_HANDLE_BYTES = 64  # CU_IPC_HANDLE_SIZE
_LAZY_PEER_ACCESS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
_AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ, cyclic
_MOST = 1 << 18  # Numbers, so exchanges of a buffer in a run.


class _Handle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_ubyte * _HANDLE_BYTES),)


class Driver:
    """Functions of libcuda that PyTorch lacks."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")

    def call(self, name: str, *arguments: Any) -> None:
        """
        Raises:
            RuntimeError: The driver refused, with its word for why.
        """
        result = getattr(self._library, name)(*arguments)
        if result != 0:
            word = ctypes.c_char_p()
            self._library.cuGetErrorName(result, ctypes.byref(word))
            known = (word.value or b"an unknown error").decode()
            raise RuntimeError(f"{name}: {known} ({result})")


class CopyEngines:
    """The copy engines of one rank: all ranks map each other's arenas.

    Args:
        arena: A tensor of bytes in which the others write.
        flags: Where its flags begin in there: one for each buffer and rank.
        buffers: Number of buffers that exchanges fill.
    """

    def __init__(self, ranks: Ranks, torch: Any, arena: Any, flags: int, buffers: int) -> None:
        self._ranks, self._torch, self._arena, self._flags = ranks, torch, arena, flags
        self._driver = Driver()
        self._numbers = torch.arange(_MOST, dtype=torch.int32, device=arena.device)
        self._last = [0] * buffers
        self._peers: dict[int, int] = {}  # The mapped addresses of other arenas.
        self._mapped: list[int] = []
        # A stream for each peer, so that several engines work concurrently.
        self._streams = {peer: torch.cuda.Stream() for peer in self._others()}
        torch.cuda.synchronize()

    def _others(self) -> Iterable[int]:
        """Returns the other ranks, each rank starting with a different one."""
        rank, world = self._ranks.rank, self._ranks.world
        return [(rank + step) % world for step in range(1, world)]

    def connect(self) -> str:
        """Maps the others' arenas. All ranks must call it; returns the error of any, or ""."""
        mine, problem = attempt(self._export)
        answers = self._ranks.gather((mine, problem))
        if not any(reason for _, reason in answers):
            _, problem = attempt(lambda: self._open([handle for handle, _ in answers]))
            answers = self._ranks.gather((None, problem))
        return next((reason for _, reason in answers if reason), "")

    def _export(self) -> tuple[bytes, int]:
        """Returns a handle of the allocation that contains the arena, and the offset in it."""
        base, size, handle = ctypes.c_uint64(), ctypes.c_size_t(), _Handle()
        where = ctypes.c_uint64(self._arena.data_ptr())
        self._driver.call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), where)
        self._driver.call("cuIpcGetMemHandle", ctypes.byref(handle), base)
        return bytes(handle.bytes), where.value - base.value

    def _open(self, handles: list[tuple[bytes, int]]) -> None:
        for peer in self._others():
            handle, offset = handles[peer]
            base = ctypes.c_uint64()
            self._driver.call(
                "cuIpcOpenMemHandle_v2",
                ctypes.byref(base),
                _Handle.from_buffer_copy(handle),
                ctypes.c_uint(_LAZY_PEER_ACCESS),
            )
            self._mapped.append(base.value)
            self._peers[peer] = base.value + offset

    def exchange(self, source: Any, buffer: int, target: Any, stream: Any) -> None:
        """Copies part p of the source to rank p, into this rank's part of the same buffer, in the
        stream's order. The target is that buffer here, within the arena."""
        rank, world = self._ranks.rank, self._ranks.world
        number = self._last[buffer] = self._last[buffer] + 1
        if number >= _MOST:
            raise RuntimeError(f"more than {_MOST} exchanges of a buffer in one run")
        size = source.numel() * source.element_size() // world
        place = target.data_ptr() - self._arena.data_ptr() + rank * size
        sent = stream.record_event()
        for peer, engine in self._streams.items():
            engine.wait_event(sent)
            self._copy(self._peers[peer] + place, source.data_ptr() + peer * size, size, engine)
            flag = self._peers[peer] + self._flag(buffer, rank)
            self._copy(flag, self._numbers.data_ptr() + 4 * number, 4, engine)
        mine = self._arena.data_ptr() + place
        self._copy(mine, source.data_ptr() + rank * size, size, stream)
        for peer, engine in self._streams.items():
            stream.wait_event(engine.record_event())  # The source can be overwritten after it.
            self._driver.call(
                "cuStreamWaitValue32_v2",
                ctypes.c_void_p(stream.cuda_stream),
                ctypes.c_uint64(self._arena.data_ptr() + self._flag(buffer, peer)),
                ctypes.c_uint32(number),
                ctypes.c_uint(_AT_LEAST),
            )

    def _flag(self, buffer: int, rank: int) -> int:
        return self._flags + 4 * (buffer * self._ranks.world + rank)

    def _copy(self, target: int, source: int, size: int, stream: Any) -> None:
        self._driver.call(
            "cuMemcpyDtoDAsync_v2",
            ctypes.c_uint64(target),
            ctypes.c_uint64(source),
            ctypes.c_size_t(size),
            ctypes.c_void_p(stream.cuda_stream),
        )

    def close(self) -> None:
        """Unmaps the others' arenas. Free no arena before all ranks have done so."""
        for base in self._mapped:
            self._driver.call("cuIpcCloseMemHandle", ctypes.c_uint64(base))
        self._mapped.clear()
