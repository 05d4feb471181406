"""The all-to-all by copy engines of examples/python/two_batch_overlap.py: ranks are threads here,
and a stand-in for libcuda copies and waits at once."""

from __future__ import annotations

import ctypes
import time
import types
from typing import Any, ClassVar

import pytest
from two_batches import Group, module, once  # type: ignore[import-not-found]

pytestmark = once
exchange = module("exchange")

ROWS, OFFSET = 256, 4096  # Bytes of a part; where an arena begins in its allocation.


class Tensor:
    """Memory, as much of a tensor as is asked for."""

    device = "here"

    def __init__(self, size: int, offset: int = 0, memory: Any = None, width: int = 1) -> None:
        self.memory = memory or ctypes.create_string_buffer(size + offset)
        self._size, self._offset, self._width = size, offset, width

    def data_ptr(self) -> int:
        return ctypes.addressof(self.memory) + self._offset

    def numel(self) -> int:
        return self._size // self._width

    def element_size(self) -> int:
        return self._width

    def part(self, at: int, size: int) -> Tensor:
        return Tensor(size, self._offset + at, self.memory, 2)

    @property
    def bytes(self) -> bytes:
        return ctypes.string_at(self.data_ptr(), self._size)

    @bytes.setter
    def bytes(self, value: bytes) -> None:
        ctypes.memmove(self.data_ptr(), value, len(value))


def numbers(count: int, **_: Any) -> Tensor:
    values = (ctypes.c_int32 * 64)(*range(64))
    found = Tensor(4 * 64, width=4)
    found.bytes = bytes(values)
    assert count >= 64
    return found


class Stream:
    cuda_stream = 7

    def wait_event(self, event: str) -> None:
        assert event == "event"

    def record_event(self) -> str:
        return "event"


torch = types.SimpleNamespace(
    arange=numbers, int32=None, cuda=types.SimpleNamespace(Stream=Stream, synchronize=lambda: None)
)


class Driver:
    """Knows the allocations of all ranks. What a rank has opened lies where it lies."""

    allocations: ClassVar[list[Tensor]] = []

    def __init__(self) -> None:
        self.opened: list[int] = []
        self.closed: list[int] = []
        self.refuses = ""

    def call(self, name: str, *arguments: Any) -> None:
        if name == self.refuses:
            raise RuntimeError(f"{name}: CUDA_ERROR_INVALID_VALUE (1)")
        getattr(self, name.removesuffix("_v2"))(*arguments)

    def cuMemGetAddressRange(self, base: Any, size: Any, where: Any) -> None:
        (found,) = (
            tensor
            for tensor in self.allocations
            if 0 <= where.value - ctypes.addressof(tensor.memory) < len(tensor.memory)
        )
        base._obj.value, size._obj.value = ctypes.addressof(found.memory), len(found.memory)

    def cuIpcGetMemHandle(self, handle: Any, base: Any) -> None:
        handle._obj.bytes[:8] = base.value.to_bytes(8, "little")

    def cuIpcOpenMemHandle(self, base: Any, handle: Any, flags: Any) -> None:
        assert flags.value == 1
        base._obj.value = int.from_bytes(bytes(handle.bytes[:8]), "little")
        self.opened.append(base._obj.value)

    def cuIpcCloseMemHandle(self, base: Any) -> None:
        self.closed.append(base.value)

    def cuMemcpyDtoDAsync(self, target: Any, source: Any, size: Any, stream: Any) -> None:
        assert stream.value == 7
        ctypes.memmove(target.value, source.value, size.value)

    def cuStreamWaitValue32(self, stream: Any, address: Any, number: Any, flags: Any) -> None:
        assert (stream.value, flags.value) == (7, 0)
        until = time.monotonic() + 20
        while ctypes.c_int32.from_address(address.value).value < number.value:
            assert time.monotonic() < until, "the number never came"
            time.sleep(0)


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "Driver", Driver)
    monkeypatch.setattr(Driver, "allocations", [])


def engines_of(member: Any, buffers: int = 2) -> tuple[Any, Tensor, list[Tensor]]:
    """With an arena that holds so many buffers, and the flags behind."""
    size = ROWS * member.world
    arena = Tensor(buffers * size + 4 * buffers * member.world, OFFSET)
    Driver.allocations.append(arena)
    targets = [arena.part(number * size, size) for number in range(buffers)]
    engines = exchange.CopyEngines(member, torch, arena, buffers * size, buffers)
    return engines, arena, targets


def text(rank: int, to: int, turn: int) -> bytes:
    return f"turn {turn}: from {rank} to {to}".encode().ljust(ROWS, b".")


@pytest.mark.parametrize("world", [2, 4, 8])
def test_each_part_comes_to_its_rank(world: int) -> None:
    def work(member: Any) -> str:
        engines, _, targets = engines_of(member)
        assert engines.connect() == ""
        source = Tensor(ROWS * world, width=2)
        for turn in range(6):
            buffer = turn % 2
            source.bytes = b"".join(text(member.rank, to, turn) for to in range(world))
            engines.exchange(source, buffer, targets[buffer], Stream())
            expected = b"".join(text(other, member.rank, turn) for other in range(world))
            assert targets[buffer].bytes == expected, turn
        opened = [*engines._driver.opened]
        assert len(set(opened)) == world - 1
        engines.close()
        engines.close()
        assert engines._driver.closed == opened
        return "done"

    assert Group(world).run(work) == ["done"] * world


@pytest.mark.parametrize("name", ["cuIpcGetMemHandle", "cuIpcOpenMemHandle_v2"])
def test_what_one_rank_can_not_do_all_know(name: str) -> None:
    def work(member: Any) -> str:
        engines, _, _ = engines_of(member)
        if member.rank == 1:
            engines._driver.refuses = name
        reason: str = engines.connect()
        engines.close()
        assert engines._driver.closed == engines._driver.opened
        return reason

    assert Group(4).run(work) == [f"{name}: CUDA_ERROR_INVALID_VALUE (1)"] * 4


def test_a_run_has_so_many_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_MOST", 64)

    def work(member: Any) -> str:
        engines, _, targets = engines_of(member)
        assert engines.connect() == ""
        source = Tensor(ROWS * 2, width=2)
        for _ in range(63):
            engines.exchange(source, 0, targets[0], Stream())
        with pytest.raises(RuntimeError, match="more than 64 exchanges of a buffer"):
            engines.exchange(source, 0, targets[0], Stream())
        return "done"

    assert Group(2).run(work) == ["done"] * 2
