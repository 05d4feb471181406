"""How SGLang and TensorRT-LLM use the functions that gcx.compat replaces: the calls and their
order, from their sources. PyTorch may be real or fake."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

#: The streams of prefill and decode in SGLang's pdmux_context.
Pair = tuple[Any, Any]


@contextmanager
def sgl_kernel(spatial: Any) -> Iterator[None]:
    """Replaces the module spatial of SGLang's kernel package."""
    names = {"sgl_kernel": types.ModuleType("sgl_kernel"), "sgl_kernel.spatial": spatial}
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(names)
    try:
        yield
    finally:
        for name, module in before.items():
            del sys.modules[name]
            if module is not None:
                sys.modules[name] = module


def module_of_sglang() -> Any | None:
    """Returns SGLang's own module, loaded without the rest of the package; None if SGLang isn't
    installed."""
    package = importlib.util.find_spec("sglang")
    if package is None or not package.submodule_search_locations:
        return None
    folder = Path(next(iter(package.submodule_search_locations)))
    file = folder / "srt" / "multiplex" / "pdmux_context.py"
    spec = importlib.util.spec_from_file_location("pdmux_context_of_sglang", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, {spec.name: module}):  # Where its classes look.
        spec.loader.exec_module(module)
    return module


def divisions_of(sms: int, groups: int) -> list[tuple[int, int]]:
    """Returns the SMs of prefill and decode as SGLang chooses them on compute capability 9.0."""
    first = [count for count in range(8, sms, 8) if count * 2 >= sms and sms - count >= 16]
    step = max(1, len(first) // groups)
    return [(count, sms - count) for count in reversed(first[::step][:groups])]


class Multiplexer:
    """SGLang's multiplexing of prefill and decode: a list of pairs of streams, with plain pairs at
    its ends. Changing to another pair waits for both streams.

    Args:
        torch: PyTorch.
        gpu: The device's ordinal.
        divisions: SMs of prefill and decode of each pair; none: SGLang's choice.
        floors: Exclusive SMs of prefill and decode, which share the others, as in later versions.
    """

    def __init__(
        self,
        torch: Any,
        gpu: int,
        divisions: Sequence[tuple[int, int]] = (),
        floors: tuple[int, int] | None = None,
    ) -> None:
        from sgl_kernel import spatial  # type: ignore[import-not-found]

        self.torch = torch
        total = spatial.get_sm_available(gpu)
        pairs = list(divisions) or divisions_of(total, 6)
        self.pairs: list[Pair] = [(torch.cuda.Stream(gpu), torch.cuda.Stream(gpu))]
        self.sm_counts = [(total, 0)]
        for prefill_sm, decode_sm in pairs:
            if floors is None:
                self.pairs.append(
                    spatial.create_greenctx_stream_by_value(prefill_sm, decode_sm, gpu)
                )
                self.sm_counts.append((prefill_sm, decode_sm))
                continue
            prefill_floor, decode_floor = floors
            if prefill_floor == decode_floor:
                overlapped = getattr(spatial, "create_overlapped_greenctx_stream_by_value", None)
                assert overlapped is not None
                prefill, decode, actual = overlapped(prefill_floor, gpu)
            else:
                name = "create_asymmetric_overlapped_greenctx_stream_by_value"
                asymmetric = getattr(spatial, name, None)
                assert asymmetric is not None
                prefill, decode, actual = asymmetric(prefill_floor, decode_floor, gpu)
            all_prefill, all_decode, prefill_only, decode_only, shared = actual
            assert (all_prefill, all_decode) == (prefill_only + shared, decode_only + shared)
            self.pairs.append((prefill, decode))
            self.sm_counts.append((all_prefill, all_decode))
        self.pairs.append((torch.cuda.Stream(gpu), torch.cuda.Stream(gpu)))
        self.sm_counts.append((0, total))
        self.chosen = 0

    def capped_prefill(self, gpu: int, prefill_sm: int) -> Pair:
        """The other overlap of later versions: prefill in a partition, decode in a plain stream."""
        from sgl_kernel import spatial

        rest = spatial.get_sm_available(gpu) - prefill_sm
        prefill, _unused = spatial.create_greenctx_stream_by_value(prefill_sm, rest, gpu)
        return prefill, self.torch.cuda.Stream(gpu, priority=-1)

    def choose(self, number: int) -> None:
        for stream in self.pairs[self.chosen]:
            stream.synchronize()
        self.chosen = number

    def step(self, prefill_work: Callable[[], object], decode_work: Callable[[], object]) -> Any:
        """Runs decode concurrently with a part of prefill; returns an event at prefill's end."""
        prefill, decode = self.pairs[self.chosen]
        with self.torch.cuda.stream(decode):
            decode_work()
        with self.torch.cuda.stream(prefill):
            prefill_work()
            finished = prefill.record_event()
        with self.torch.cuda.stream(decode):
            decode.synchronize()
        return finished


class RouterNextToFc1:
    """TensorRT-LLM's layer that runs its router's product concurrently with the experts' first one,
    with streams for each split that its tuner may choose."""

    def __init__(
        self, torch: Any, create: Callable[[int, int, int], Any], sms: int, first: int = 108
    ) -> None:
        self.torch = torch
        device = torch.cuda.current_device()
        self.pool: dict[int, Pair] = {}
        self.refused: dict[int, str] = {}
        self.cleanups: list[Callable[[], object]] = []
        for fc1_sms in range(first, sms, 8):
            try:
                fc1, router, cleanup = create(fc1_sms, max(1, sms - fc1_sms), device)
            except Exception as error:  # The layer uses the other splits.
                self.refused[fc1_sms] = str(error)
                continue
            self.pool[fc1_sms] = fc1, router
            self.cleanups.append(cleanup)

    def __del__(self) -> None:
        for cleanup in self.cleanups:
            with suppress(Exception):
                cleanup()

    def run(self, fc1_sms: int, fc1_work: Callable[[], Any], router_work: Callable[[], Any]) -> Any:
        """Runs both products of one split; returns their results."""
        fc1, router = self.pool[fc1_sms]
        with self.torch.cuda.stream(router):
            second = router_work()
        with self.torch.cuda.stream(fc1):
            return fc1_work(), second
