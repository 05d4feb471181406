"""What SGLang's and TensorRT-LLM's modules do with the functions that gcx.compat has of theirs: the
calls, their order and what is made of the results, told from their sources. PyTorch may be the real
one or a stand-in."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

#: Of SGLang's pdmux_context: prefill's and decode's streams.
Pair = tuple[Any, Any]


@contextmanager
def sgl_kernel(spatial: Any) -> Iterator[None]:
    """SGLang's kernel package, whose module spatial is another."""
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
    """SGLang's own module, unchanged, from wherever Python finds the package: the file alone,
    without all that the package imports. None: SGLang isn't there."""
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
    """Prefill's and decode's SMs as SGLang chooses them on compute capability 9.0."""
    first = [count for count in range(8, sms, 8) if count * 2 >= sms and sms - count >= 16]
    step = max(1, len(first) // groups)
    return [(count, sms - count) for count in reversed(first[::step][:groups])]


class Multiplexer:
    """SGLang's multiplexing of prefill and decode: a list of pairs of streams, made once, with
    plain pairs at its ends; to change to another pair both streams are waited for.

    Args:
        torch: PyTorch.
        gpu: The device's number.
        divisions: SMs of prefill and decode of each pair; none: SGLang's own.
        floors: SMs that prefill and decode have alone beside the shared ones, in place of divisions
            of them, as later versions do.
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
        """The other overlap of later versions: prefill in a partition, decode in a plain stream;
        the partition's other stream is let go of."""
        from sgl_kernel import spatial

        rest = spatial.get_sm_available(gpu) - prefill_sm
        prefill, _unused = spatial.create_greenctx_stream_by_value(prefill_sm, rest, gpu)
        return prefill, self.torch.cuda.Stream(gpu, priority=-1)

    def choose(self, number: int) -> None:
        for stream in self.pairs[self.chosen]:
            stream.synchronize()
        self.chosen = number

    def step(self, prefill_work: Callable[[], object], decode_work: Callable[[], object]) -> Any:
        """One turn of the loop: decode, beside a part of prefill. The event is prefill's end."""
        prefill, decode = self.pairs[self.chosen]
        with self.torch.cuda.stream(decode):
            decode_work()
        with self.torch.cuda.stream(prefill):
            prefill_work()
            finished = prefill.record_event()
        with self.torch.cuda.stream(decode):
            decode.synchronize()
        return finished


class RouterBesideFc1:
    """TensorRT-LLM's layer that runs its router's product beside the experts' first: streams for
    each split that its tuner may choose, made with the layer."""

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
            except Exception as error:  # The layer goes on with the other splits.
                self.refused[fc1_sms] = str(error)
                continue
            self.pool[fc1_sms] = fc1, router
            self.cleanups.append(cleanup)

    def __del__(self) -> None:
        for cleanup in self.cleanups:
            with suppress(Exception):
                cleanup()

    def run(self, fc1_sms: int, fc1_work: Callable[[], Any], router_work: Callable[[], Any]) -> Any:
        """Both products of one split; what they gave."""
        fc1, router = self.pool[fc1_sms]
        with self.torch.cuda.stream(router):
            second = router_work()
        with self.torch.cuda.stream(fc1):
            return fc1_work(), second
