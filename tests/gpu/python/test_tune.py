"""gcx.tune next to an exhaustive sweep of all coscheduled splits, for eight pairs of works.

Needs PyTorch and CuPy, exclusive use of the GPU, and three minutes:

    python tests/gpu/python/test_tune.py

For each pair the verdict has to agree with the sweep on whether to split, and gcx.tune's choice,
timed again in turns with the sweep's best, has to be within 1.03 of it, or their intervals overlap.
"""

from __future__ import annotations

import math
import re
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Union

import gcx
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

Call = Callable[[], object]
Work = Union[Call, gcx.Graph]
SWEEP_ROUNDS, AGAIN, LAUNCHES, MARGIN = 5, 20, 50, 1.03
_KERNELS = """
extern "C" __global__ void __launch_bounds__(256, 8) spin(float* out, int rounds) {
    float x = threadIdx.x;
    for (int i = 0; i < rounds; i++) x = x * 0.999f + 1.0f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
extern "C" __global__ void exchange(const float4* from, float4* to, long long count) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        to[i] = from[i];
}
"""


class Works:
    """Makes works that launch into the current stream."""

    def __init__(self) -> None:
        self.torch = pytest.importorskip("torch", reason="PyTorch isn't installed")
        self.cupy = pytest.importorskip("cupy", reason="CuPy isn't installed")
        self.torch.set_grad_enabled(False)
        self.kept: list[object] = []  # what the captured graphs read
        module = self.cupy.RawModule(code=_KERNELS)
        self.spin_kernel = module.get_function("spin")
        self.exchange_kernel = module.get_function("exchange")

    def tensor(self, *shape: int) -> Any:
        return self.torch.randn(*shape, device="cuda", dtype=self.torch.bfloat16)

    def product(self, size: int, count: int = 1) -> Call:
        a, b, out = self.tensor(size, size), self.tensor(size, size), self.tensor(size, size)

        def work() -> None:
            for _ in range(count):
                self.torch.mm(a, b, out=out)

        return work

    def elementwise(self, mib: int, count: int = 1) -> Call:
        x = self.tensor(mib << 19)
        out = self.torch.empty_like(x)

        def work() -> None:
            for _ in range(count):
                self.torch.mul(x, 1.5, out=out)

        return work

    def attention(self, batch: int, queries: int, keys: int, causal: bool) -> Call:
        attend = self.torch.nn.functional.scaled_dot_product_attention
        q = self.tensor(batch, 32, queries, 128)
        k, v = self.tensor(batch, 32, keys, 128), self.tensor(batch, 32, keys, 128)
        return lambda: attend(q, k, v, is_causal=causal)

    def spin(self, blocks: int, rounds: int) -> Call:
        out = self.cupy.empty(blocks * 256, dtype=self.cupy.float32)
        return lambda: self.spin_kernel((blocks,), (256,), (out, self.cupy.int32(rounds)))

    def captured(self, work: Call) -> gcx.Graph:
        """The work as a graph, whose launch by the host takes less time than a short kernel."""
        work()
        graph = self.torch.cuda.CUDAGraph(keep_graph=True)
        with self.torch.cuda.graph(graph):
            stream = self.torch.cuda.current_stream().cuda_stream
            with self.cupy.cuda.ExternalStream(stream):
                work()
        self.kept.append(work)
        return gcx.Graph(graph)

    def exchange(self, mib: int, blocks: int) -> Call:
        """The copy kernel of an all-to-all, within one GPU."""
        source, target = (self.cupy.zeros(mib << 18, dtype=self.cupy.float32) for _ in range(2))
        count = self.cupy.int64(mib << 16)
        return lambda: self.exchange_kernel((blocks,), (512,), (source, target, count))

    def model(self) -> tuple[Work, Work]:
        """A step of decode, as a graph, and a prompt of 2048 tokens by its attention and FFN."""
        from llama import Decode, Model, Prefill, Shape

        model = Model(Shape(layers=4, prompt=2048), "cuda", self.torch.bfloat16)
        decode, prefill = Decode(model), Prefill(model)
        decode.step()
        captured = self.torch.cuda.CUDAGraph(keep_graph=True)
        with self.torch.cuda.graph(captured):
            decode.step()
        self.kept.append(decode)
        return gcx.Graph(captured), prefill.chunk(0, 2048)


#: The works, the critical one if latency counts, what the other keeps, and whether a split was
#: expected to be wrong. The first is the critical one.
PAIRS: dict[str, tuple[Callable[[Works], dict[str, Work]], str | None, float, bool]] = {
    "two bandwidth-bound works": (
        lambda w: {"first": w.elementwise(512, 4), "second": w.elementwise(512, 4)},
        None, 1.0, True,
    ),
    "two large products": (
        lambda w: {"first": w.product(8192), "second": w.product(8192)},
        None, 1.0, True,
    ),
    "a product next to a long elementwise kernel": (
        lambda w: {"elementwise": w.elementwise(1024, 2), "product": w.product(8192)},
        None, 1.0, True,
    ),
    "attention of prefill next to decode's": (
        lambda w: {
            "decode": w.attention(64, 1, 4096, False), "prefill": w.attention(4, 4096, 4096, True),
        },
        None, 1.0, False,
    ),
    "an all-to-all's kernel next to products": (
        lambda w: {"exchange": w.exchange(256, 24), "products": w.product(4096, 4)},
        None, 1.0, False,
    ),
    "a small critical kernel next to a heavy one": (
        lambda w: {
            "critical": w.captured(w.spin(24, 5_000)), "heavy": w.spin(8 * 8 * 132, 50_000),
        },
        "critical", 0.7, False,
    ),
    "decode next to prefill": (
        lambda w: dict(zip(("decode", "prefill"), w.model())), "decode", 0.5, False,
    ),
    "two decodes": (
        lambda w: {"first": w.model()[0], "second": w.model()[0]},
        None, 1.0, True,
    ),
}  # fmt: skip


class Way:
    """A stream for each work, and what was measured there."""

    def __init__(self, name: str, streams: list[gcx.Stream]) -> None:
        self.name, self.streams = name, streams
        self.values: list[float] = []
        self.kept: list[float] = []
        self.split = name.startswith("split")

    def launch(self, work: Work, number: int) -> gcx.Event:
        stream = self.streams[number]
        if isinstance(work, gcx.Graph):
            work.launch(stream)
        else:
            with gcx.current(stream), stream.cupy():
                work()
        return stream.record(gcx.Event(timing=True))

    def round_ms(self, works: list[Work]) -> float:
        """Returns the time of a round of both, from the end of the round before."""
        ends: list[list[gcx.Event]] = []
        for _ in range(3):
            for stream in self.streams if ends else ():
                for event in ends[-1]:
                    stream.wait(event)
            ends.append([self.launch(work, number) for number, work in enumerate(works)])
        for event in ends[-1]:
            event.synchronize()
        return max(min(before.elapsed_time(after) for before in ends[0]) for after in ends[-1]) / (
            len(ends) - 1
        )

    def latency_ms(self, works: list[Work], clock: gcx.Stream, alone_ms: float) -> float:
        """Returns the p99 of the first work while the second always has rounds queued."""
        depth = 1 if self.streams[0] is self.streams[1] else 8
        queue: list[gcx.Event] = []
        done: list[gcx.Event] = []
        times: list[float] = []
        while len(times) < LAUNCHES or len(done) < 5:
            while queue and queue[0].query():
                done.append(queue.pop(0))
            while len(queue) < depth:
                queue.append(self.launch(works[1], 1))
            start = clock.record(gcx.Event(timing=True))
            end = self.launch(works[0], 0)
            end.synchronize()
            times.append(start.elapsed_time(end))
        for event in queue:
            event.synchronize()
        self.kept.append(alone_ms * (len(done) - 1) / done[0].elapsed_time(done[-1]))
        return sorted(times)[math.ceil(0.99 * len(times)) - 1]

    def feasible(self, keep: float) -> bool:
        return not self.kept or statistics.median(self.kept) >= keep

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def overlaps(self, other: Way) -> bool:
        """Returns whether the middle halves of both's values overlap."""
        (low, _, high), (other_low, _, other_high) = (
            statistics.quantiles(way.values, n=4) for way in (self, other)
        )
        return low <= other_high and other_low <= high


class Sweep:
    """All splits of the coscheduled family, and the ways without a split."""

    def __init__(self, named: dict[str, Work], critical: str | None, stack: ExitStack) -> None:
        self.works, self.critical, self.stack = list(named.values()), critical, stack
        first, second = named
        sms = gcx.Device(0).resources.sm
        highest = gcx.Device(0).stream_priority_range[1]
        context = stack.enter_context(gcx.Context(sms))
        normal = [context.stream(), context.stream()]
        self.clock, urgent = context.stream(highest), context.stream(highest)
        self.ways = [
            Way("in sequence", normal[:1] * 2),
            Way("plain streams", normal),
            Way(f"priority for {first}", [urgent, normal[1]]),
            Way(f"priority for {second}", [normal[0], urgent]),
        ]
        smallest = min(atom.sm_count for atom in sms.atoms)
        for count in range(smallest, smallest * len(sms.atoms), smallest):
            self.add_split([count, None])
        self.add_split([None, smallest])
        other = Way("alone", normal[:1])
        self.alone_ms = min(other.round_ms(self.works[1:]) for _ in range(5))

    def add_split(self, counts: list[int | None]) -> Way:
        parts = self.stack.enter_context(gcx.split(counts))
        name = f"split {parts[0].sm_count}/{parts[1].sm_count}"
        self.ways.append(Way(name, [part.stream for part in parts]))
        return self.ways[-1]

    def chosen(self, choice: object) -> Way:
        """Returns the way that gcx.tune chose, without cuBLAS's target."""
        name = repr(choice).partition(": ")[2].rstrip(">").partition(",")[0]
        found = [way for way in self.ways if way.name == name]
        return found[0] if found else self.add_split([*map(int, re.findall(r"\d+", name))])

    def measure(self, ways: list[Way], rounds: int) -> None:
        """Measures in turns, and forgets what was measured before."""
        for way in ways:
            way.values, way.kept = [], []
        for number in range(rounds + 1):
            for way in list(ways):
                try:
                    value = self.value(way)
                except RuntimeError as error:  # Too few SMs for a kernel's clusters, for one.
                    if number or not way.split:
                        raise
                    print(f"  sweep: {way.name} is refused: {str(error).partition(chr(10))[0]}")
                    ways.remove(way)
                    continue
                if number:
                    way.values.append(value)  # The first round warms up.

    def value(self, way: Way) -> float:
        if self.critical is None:
            return way.round_ms(self.works)
        return way.latency_ms(self.works, self.clock, self.alone_ms)


@pytest.mark.parametrize("name", PAIRS)
def test_verdict_agrees_with_an_exhaustive_sweep(name: str) -> None:
    make, critical, keep, not_to_split = PAIRS[name]
    maker = Works()
    works: Any = make(maker)
    objective: Any = "time" if critical is None else "latency"
    found = gcx.tune(works, objective=objective, critical=critical, keep=keep)
    print(f"\n{name}\n{found}")
    with ExitStack() as stack:
        sweep = Sweep(works, critical, stack)
        sweep.measure(sweep.ways, SWEEP_ROUNDS)
        ranked = sorted(sweep.ways, key=lambda way: (not way.feasible(keep), way.median))
        for way in ranked:
            print(f"  sweep: {way.name} {way.median:.4f} ms", "" if way.feasible(keep) else "slow")
        cheap = next(way for way in ranked if not way.split)
        split = next(way for way in ranked if way.split)
        pays = split.feasible(keep) and (
            not cheap.feasible(keep) or split.median * MARGIN < cheap.median
        )
        equal = split.overlaps(cheap) and split.feasible(keep) == cheap.feasible(keep)
        if pays == not_to_split:
            print(f"  expected otherwise: a split {'pays' if pays else 'does not pay'}")
        chosen = sweep.chosen(found.best)
        sweep.measure([*dict.fromkeys((chosen, ranked[0]))], AGAIN)
        ratio = chosen.median / ranked[0].median
        print(f"  {chosen.name} takes {ratio:.3f} of {ranked[0].name}")
        assert chosen.split == pays or equal
        assert ratio <= MARGIN or chosen.overlaps(ranked[0])


if __name__ == "__main__":
    raise SystemExit(pytest.main(["-q", "-rs", "-s", __file__]))
