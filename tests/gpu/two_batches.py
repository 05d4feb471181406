"""Measures docs/guides/communication.md: two batches of a mixture-of-experts layer in turns over 2,
4 or 8 GPUs of one host. While one batch computes, the tokens of the other travel to their experts
and back. Needs PyTorch 2.7 or newer with NCCL.

    torchrun --nproc-per-node 4 tests/gpu/two_batches.py

Variants, each with all its work on the device in one run:
    compute, exchange: one half of the work only, a bound for the others
    sequence: everything in one stream
    plain: a stream for computation and one for communication
    priority: the same, communication with the highest priority
    split-N: partitions, N SMs for communication and the others for computation
Suffixes: -target sets the compute partition's SM count in libraries, -ctasN limits NCCL to N
blocks. Two need no SMs: -copies moves data by copy engines, -zero lets NCCL do so
(NCCL_CTA_POLICY_ZERO with symmetric memory, NCCL 2.28 or newer).
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import math
import os
import re
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "python"))

import common
import gcx

HIDDEN = 7168
ONE_KIND = ("compute", "exchange")
VARIANTS = (
    *("compute", "exchange", "sequence", "plain", "priority", "plain-ctas8", "plain-copies"),
    *("plain-zero", "split-8", "split-8-target", "split-4-target", "split-16-target"),
)
# Earlier ratios at T = 2048 with plain products on 4 H200s: to plain streams, and to one stream.
REQUIRED = {"plain": 0.92, "sequence": 0.83}


class Variant(NamedTuple):
    name: str
    kind: str
    sms: int  # For communication, in a split.
    target: bool
    ctas: int  # NCCL's limit of blocks; 0: its default.
    copies: bool
    zero: bool

    @property
    def fine(self) -> bool:
        """Coscheduled partitions have multiples of 8 SMs; others need the fine family."""
        return self.sms % 8 != 0


def variant_of(name: str) -> Variant:
    """For argparse."""
    found = re.fullmatch(
        r"(compute|exchange|sequence|plain|priority|split(?:-([1-9]\d*)(-target)?))"
        r"(?:-ctas(\d+)|(-copies)|(-zero))?",
        name,
    )
    unbound = found and (found[5] or found[6])
    if found is None or (unbound and found[1] not in ("exchange", "sequence", "plain")):
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(VARIANTS)}, or alike")
    kind = found[1].partition("-")[0]
    return Variant(name, kind, int(found[2] or 0), bool(found[3]), int(found[4] or 0),
                   bool(found[5]), bool(found[6]))  # fmt: skip


class Buffers(NamedTuple):
    """What computation and communication exchange, by batch: rows of HIDDEN, sorted by the rank
    that they go to or came from."""

    send: Any
    back: Any
    received: Any  # Other ranks write into these two.
    home: Any


def random_rows(generator: Any, *shape: int) -> Any:
    import torch

    device = generator.device
    return torch.randn(*shape, generator=generator, device=device, dtype=torch.bfloat16)


def weights(generator: Any, *shape: int) -> Any:
    """Returns random weights that keep the norm of their input."""
    return random_rows(generator, *shape).mul_(1 / math.sqrt(shape[-2]))


class Products:
    """Plain products: 7168 x 7168 before the tokens travel, 7168 x 4096 and 4096 x 7168 after."""

    INNER = 4096

    def __init__(self, torch: Any, tokens: int, layers: int, world: int, generator: Any) -> None:
        self.torch = torch
        self.rows = tokens  # That a batch sends.
        self.first = [weights(generator, HIDDEN, HIDDEN) for _ in range(layers)]
        self.up = [weights(generator, HIDDEN, self.INNER) for _ in range(layers)]
        self.down = [weights(generator, self.INNER, HIDDEN) for _ in range(layers)]
        self.start = [random_rows(generator, tokens, HIDDEN) for _ in range(2)]
        self.inner = self.start[0].new_empty(tokens, self.INNER)

    def attention(self, layer: int, batch: int, buffers: Buffers) -> None:
        tokens = self.start[batch] if layer == 0 else buffers.home[batch]
        self.torch.mm(tokens, self.first[layer], out=buffers.send[batch])

    def experts(self, layer: int, batch: int, buffers: Buffers) -> None:
        self.torch.mm(buffers.received[batch], self.up[layer], out=self.inner)
        self.torch.mm(self.inner, self.down[layer], out=buffers.back[batch])

    def result(self, batch: int, buffers: Buffers) -> Any:
        return buffers.home[batch]


class Experts:
    """DeepSeek-V3's layer, scaled: its attention (latent projections, 128 heads of 128, without the
    rotary part), its shared expert, and experts of 7168 x 2048, 8 for each token. It has 32 experts
    on each GPU. The router is a perfect one: a token goes to half of the GPUs (1 of 2), and each
    expert has the same number of tokens."""

    HEADS, HEAD, PER_GPU = 128, 128, 32
    Q_RANK, KV_RANK, INNER, TOP = 1536, 512, 2048, 8
    SEQUENCE = 2048

    def __init__(self, torch: Any, tokens: int, layers: int, world: int, generator: Any) -> None:
        self.torch, self.tokens, self.copies = torch, tokens, max(1, world // 2)
        self.rows = tokens * self.copies  # That a batch sends: a token once to each of its GPUs.
        heads, experts = self.HEADS * self.HEAD, self.PER_GPU
        shapes = {
            "q_down": (HIDDEN, self.Q_RANK),
            "q_up": (self.Q_RANK, heads),
            "kv_down": (HIDDEN, self.KV_RANK),
            "kv_up": (self.KV_RANK, 2 * heads),
            "out": (heads, HIDDEN),
            "shared_in": (HIDDEN, 2 * self.INNER),
            "shared_out": (self.INNER, HIDDEN),
            "experts_in": (experts, HIDDEN, 2 * self.INNER),
            "experts_out": (experts, self.INNER, HIDDEN),
        }
        self.weights = [
            {name: weights(generator, *shape) for name, shape in shapes.items()}
            for _ in range(layers)
        ]
        self.start = [random_rows(generator, tokens, HIDDEN) for _ in range(2)]
        self.state = [torch.empty_like(rows) for rows in self.start]
        self.wide = self.start[0].new_empty(tokens * self.TOP, HIDDEN)
        self._route(world, generator)

    def _route(self, world: int, generator: Any) -> None:
        """Decides which rows go where, the same each time."""
        torch, device = self.torch, generator.device
        tokens = torch.arange(self.tokens)
        goes = torch.stack([(tokens + copy) % world for copy in range(self.copies)], dim=1)
        order = torch.argsort(goes.flatten(), stable=True)  # By token, then by copy.
        self.to_send = (order // self.copies).to(device)
        self.from_sent = torch.argsort(order).to(device)
        self.each = self.TOP // self.copies  # Experts of a row on this GPU.
        random = torch.Generator().manual_seed(generator.initial_seed())
        chosen = torch.randperm(self.rows * self.each, generator=random) % self.PER_GPU
        by_expert = torch.argsort(chosen, stable=True)
        self.expand = (by_expert // self.each).to(device)
        self.collapse = torch.argsort(by_expert).to(device)
        counts = torch.bincount(chosen, minlength=self.PER_GPU)
        self.ends = torch.cumsum(counts, 0).to(device=device, dtype=torch.int32)

    def attention(self, layer: int, batch: int, buffers: Buffers) -> None:
        torch, weights, state = self.torch, self.weights[layer], self.state[batch]
        functional = torch.nn.functional
        tokens = self.start[batch] if layer == 0 else self.result(batch, buffers)
        normal = functional.rms_norm(tokens, (HIDDEN,))
        torch.add(tokens, self._attention(normal, weights), out=state)
        normal = functional.rms_norm(state, (HIDDEN,))
        gate, up = (normal @ weights["shared_in"]).chunk(2, dim=1)
        state.add_(functional.silu(gate).mul_(up) @ weights["shared_out"])
        torch.index_select(normal, 0, self.to_send, out=buffers.send[batch])

    def _attention(self, tokens: Any, weights: dict[str, Any]) -> Any:
        length = math.gcd(self.tokens, self.SEQUENCE)
        shape = (self.tokens // length, length, self.HEADS, self.HEAD)
        query = (tokens @ weights["q_down"]) @ weights["q_up"]
        both = (tokens @ weights["kv_down"]) @ weights["kv_up"]
        key, value = both.view(*shape[:3], 2 * self.HEAD).split(self.HEAD, dim=3)
        heads = (each.transpose(1, 2) for each in (query.view(shape), key, value))
        found = self.torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return found.transpose(1, 2).reshape(self.tokens, -1) @ weights["out"]

    def experts(self, layer: int, batch: int, buffers: Buffers) -> None:
        torch, weights = self.torch, self.weights[layer]
        functional = torch.nn.functional
        product = getattr(functional, "grouped_mm", None) or torch._grouped_mm
        torch.index_select(buffers.received[batch], 0, self.expand, out=self.wide)
        gate, up = product(self.wide, weights["experts_in"], offs=self.ends).chunk(2, dim=1)
        inner = functional.silu(gate).mul_(up)
        found = product(inner, weights["experts_out"], offs=self.ends)
        torch.index_select(found, 0, self.collapse, out=self.wide)
        torch.sum(self.wide.view(self.rows, self.each, HIDDEN), 1, out=buffers.back[batch])

    def result(self, batch: int, buffers: Buffers) -> Any:
        """Returns the tokens merged with their experts' results."""
        copies = buffers.home[batch].index_select(0, self.from_sent)
        summed = copies.view(self.tokens, self.copies, HIDDEN).sum(1)
        return summed.mul_(1 / self.TOP).add_(self.state[batch])


class IpcHandle(ctypes.Structure):
    """CUipcMemHandle, which the driver takes by value."""

    _fields_ = (("bytes", ctypes.c_ubyte * 64),)


class CopyEngines:
    """The all-to-all by copy engines: peer copies between processes, which need no SMs.

    Each rank maps the others' arenas once. An exchange is a copy into each peer's arena, followed
    by a copy of a number that says that the rows are there; the peer's stream waits for it.

    A rank need not ask whether its peers have read what it sent last: a buffer is written again a
    layer later, behind an exchange in which each has heard from all, and each sends only behind
    what it has read.
    """

    NUMBERS = 1 << 18  # Exchanges of a buffer in a run.

    def __init__(self, ranks: Ranks, arena: Any, flags: int, buffers: int) -> None:
        torch, self.ranks, self.arena, self.flags = ranks.torch, ranks, arena, flags
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.numbers = torch.arange(self.NUMBERS, dtype=torch.int32, device=arena.device)
        self.last = [0] * buffers
        self.mapped: dict[int, int] = {}
        self.peers: dict[int, int] = {}  # The mapped addresses of the other arenas.
        # A stream for each peer, so that several engines work concurrently. Each rank starts with
        # another one.
        others = [(ranks.rank + step) % ranks.world for step in range(1, ranks.world)]
        self.streams = {peer: torch.cuda.Stream() for peer in others}
        torch.cuda.synchronize()
        handles = ranks.gather(self._export())
        for peer in others:
            handle, offset = handles[peer]
            base = ctypes.c_uint64()
            lazy_access = ctypes.c_uint(1)  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
            memory = IpcHandle.from_buffer_copy(handle)
            self._call("cuIpcOpenMemHandle_v2", ctypes.byref(base), memory, lazy_access)
            self.mapped[peer] = base.value
            self.peers[peer] = base.value + offset

    def _call(self, name: str, *arguments: Any) -> None:
        result = getattr(self.driver, name)(*arguments)
        if result != 0:
            word = ctypes.c_char_p()
            self.driver.cuGetErrorName(result, ctypes.byref(word))
            raise RuntimeError(f"{name}: {(word.value or b'an unknown error').decode()}")

    def _export(self) -> tuple[bytes, int]:
        """Returns the handle of the arena's allocation, and the arena's offset within it."""
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        where = ctypes.c_uint64(self.arena.data_ptr())
        self._call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), where)
        handle = IpcHandle()
        self._call("cuIpcGetMemHandle", ctypes.byref(handle), base)
        return bytes(handle.bytes), where.value - base.value

    def exchange(self, source: Any, buffer: int, target: Any, stream: Any) -> None:
        """Copies part p of the source to rank p, into this rank's part of the same buffer, in the
        stream's order. The target is that buffer here, within the arena."""
        rank, world = self.ranks.rank, self.ranks.world
        number = self.last[buffer] = self.last[buffer] + 1
        if number >= self.NUMBERS:
            raise RuntimeError(f"more than {self.NUMBERS} exchanges of a buffer in one run")
        size = source.numel() * source.element_size() // world
        place = target.data_ptr() - self.arena.data_ptr() + rank * size
        sent = stream.record_event()
        for peer, engine in self.streams.items():
            engine.wait_event(sent)
            self._copy(self.peers[peer] + place, source.data_ptr() + peer * size, size, engine)
            flag = self.peers[peer] + self._flag(buffer, rank)
            self._copy(flag, self.numbers.data_ptr() + 4 * number, 4, engine)
        self._copy(self.arena.data_ptr() + place, source.data_ptr() + rank * size, size, stream)
        for peer, engine in self.streams.items():
            stream.wait_event(engine.record_event())  # The source can be overwritten after it.
            flag = self.arena.data_ptr() + self._flag(buffer, peer)
            at_least = ctypes.c_uint(0)  # CU_STREAM_WAIT_VALUE_GEQ
            self._call("cuStreamWaitValue32_v2", ctypes.c_void_p(stream.cuda_stream),
                       ctypes.c_uint64(flag), ctypes.c_uint32(number), at_least)  # fmt: skip

    def _flag(self, buffer: int, rank: int) -> int:
        return self.flags + 4 * (buffer * self.ranks.world + rank)

    def _copy(self, target: int, source: int, size: int, stream: Any) -> None:
        self._call("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(target), ctypes.c_uint64(source),
                   ctypes.c_size_t(size), ctypes.c_void_p(stream.cuda_stream))  # fmt: skip

    def close(self) -> None:
        """Unmaps the others' arenas. Free no arena before all ranks have done so."""
        for base in self.mapped.values():
            self._call("cuIpcCloseMemHandle", ctypes.c_uint64(base))


class Ranks:
    """The processes of a run, one for each GPU, and this one's streams and communicators."""

    def __init__(self, torch: Any) -> None:
        import torch.distributed as dist

        self.torch, self.dist = torch, dist
        self.rank, self.world, self.device = (
            int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")
        )
        if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 7):
            # Before, its collectives ran in private streams, so on no partition.
            raise RuntimeError(f"needs PyTorch 2.7 or newer, not {torch.__version__}")
        torch.cuda.set_device(self.device)
        # gloo carries host data, so that it waits for no GPU; all ranks are on this host.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", timeout=timedelta(minutes=10))
        self.sm_count = gcx.Device(self.device).sm_count
        self.splits: dict[int, gcx.Partitions] = {}
        self.groups: dict[tuple[str, int, bool], Any] = {}
        self.meeting, self.compute, self.exchange = (torch.cuda.Stream() for _ in range(3))
        self.urgent = torch.cuda.Stream(priority=-5)

    def gather(self, mine: Any) -> list[Any]:
        found: list[Any] = [None] * self.world
        self.dist.all_gather_object(found, mine)
        return found

    def parts(self, variant: Variant) -> gcx.Partitions:
        """Returns the partitions of communication and computation."""
        if variant.sms not in self.splits:
            self.splits[variant.sms] = gcx.split(
                [variant.sms, None],
                device=self.device,
                family="fine" if variant.fine else "coscheduled",
                exact=True,
            )
        return self.splits[variant.sms]

    def group(self, variant: Variant | None = None) -> Any:
        """Returns the communicator of a stream; one must not be used twice at once. All ranks must
        ask for the same ones in the same order."""
        key = ("meeting", 0, False)
        if variant:
            key = (f"{variant.kind}-{variant.sms}", variant.ctas, variant.zero)
        if key not in self.groups:
            nccl: Any = self.dist.ProcessGroupNCCL
            options = nccl.Options()
            if key[1]:
                options.config.min_ctas, options.config.max_ctas = 1, key[1]
            if key[2]:
                options.config.cta_policy = nccl.NCCL_CTA_POLICY_ZERO
            if variant and variant.fine:
                # NCCL launches clusters of 4 on these GPUs, which fine partitions can't run.
                options.config.cga_cluster_size = 1
            self.groups[key] = self.dist.new_group(backend="nccl", pg_options=options)
        return self.groups[key]

    @contextmanager
    def streams(self, variant: Variant) -> Iterator[tuple[Any, Any]]:
        """Yields the streams of computation, which is PyTorch's current one, and communication."""
        torch = self.torch
        if variant.kind != "split":
            urgent, alone = variant.kind == "priority", variant.kind == "sequence"
            other = self.urgent if urgent else self.compute if alone else self.exchange
            with torch.cuda.stream(self.compute):
                yield self.compute, other
            return
        few, many = self.parts(variant)
        with ExitStack() as entered:
            compute = entered.enter_context(gcx.current(many, cublas=variant.target))
            if variant.target:  # PyTorch's grouped products count SMs by this.
                before = torch._C._get_sm_carveout_experimental()
                entered.callback(torch._C._set_sm_carveout_experimental, before)
                torch._C._set_sm_carveout_experimental(self.sm_count - many.sm_count)
            yield compute, few.stream.torch()


class Layers:
    """Two batches of T tokens a GPU through layers of a kind."""

    def __init__(self, ranks: Ranks, kind: str, tokens: int, layers: int) -> None:
        torch, self.ranks, self.layers = ranks.torch, ranks, layers
        generator = torch.Generator(f"cuda:{ranks.device}").manual_seed(ranks.rank)
        shape = Products if kind == "products" else Experts
        self.layer: Any = shape(torch, tokens, layers, ranks.world, generator)
        # The buffers that others write into are in one arena, followed by the flags.
        rows = self.layer.rows
        self.flags = 4 * rows * HIDDEN * 2
        size = self.flags + 4 * 4 * ranks.world
        self.arena = torch.zeros(size, dtype=torch.uint8, device="cuda")
        shared = self.arena[: self.flags].view(torch.bfloat16).view(2, 2, rows, HIDDEN)
        private = torch.zeros(2, 2, rows, HIDDEN, dtype=torch.bfloat16, device="cuda")
        self.buffers = Buffers(*private, *shared)
        self.symmetric: dict[str, Buffers] = {}  # By the name of the group that they are known to.
        self.engines: CopyEngines | None = None
        self.together = torch.zeros(1, device="cuda")
        torch.cuda.synchronize()
        self.once(variant_of("sequence"))
        self.expected = [self.layer.result(batch, self.buffers).clone() for batch in range(2)]

    def buffers_of(self, variant: Variant) -> Buffers:
        """Returns what the variant exchanges. NCCL uses copy engines only for symmetric memory."""
        if not variant.zero:
            return self.buffers
        torch, group = self.ranks.torch, self.ranks.group(variant)
        if group.group_name not in self.symmetric:
            from torch.distributed import _symmetric_memory as memory

            self.ranks.dist.all_reduce(self.together, group=group)  # Makes the communicator.
            torch.cuda.synchronize()
            memory.set_backend("NCCL")
            shape = (4, 2, self.layer.rows, HIDDEN)
            buffers = memory.empty(shape, dtype=torch.bfloat16, device=self.arena.device)
            memory.rendezvous(buffers, group=group.group_name)
            self.symmetric[group.group_name] = Buffers(*buffers.zero_())
        return self.symmetric[group.group_name]

    def problem(self, variant: Variant) -> str:
        """Returns why this rank can't run a variant, before other ranks wait for it, or ""."""
        torch = self.ranks.torch
        if variant.zero and not (
            hasattr(self.ranks.dist.ProcessGroupNCCL, "NCCL_CTA_POLICY_ZERO")
            and torch.cuda.nccl.version() >= (2, 28)
        ):
            return "this PyTorch or its NCCL has no such CTA policy"
        try:
            if variant.kind != "exchange":
                with self.ranks.streams(variant) as (compute, _):
                    for batch in range(2):
                        self.layer.attention(0, batch, self.buffers)
                        self.layer.experts(0, batch, self.buffers)
                    compute.synchronize()
            for other in set(range(self.ranks.world)) - {self.ranks.device}:
                if variant.copies and not torch.cuda.can_device_access_peer(
                    self.ranks.device, other
                ):
                    return f"this GPU can't write into the memory of GPU {other}"
        except Exception as error:  # Of any library, such as clusters that don't fit.
            return f"{error or type(error).__name__}".splitlines()[0]
        return ""

    def warm_up(self, variant: Variant) -> None:
        """Runs a variant until nothing is compiled any more, and compares its results with those of
        one stream."""
        if variant.copies and self.engines is None:
            self.engines = CopyEngines(self.ranks, self.arena, self.flags, 4)
        self.buffers_of(variant)
        for _ in range(3):
            self.once(variant)
        for batch, expected in enumerate(self.expected):
            if variant.kind not in ("compute", "exchange"):
                found = self.layer.result(batch, self.buffers_of(variant)).float()
                off = float((found - expected).norm() / expected.float().norm())
                # By root mean squares: bf16, and products in another order.
                if not off < 0.05:
                    raise ArithmeticError(f"{variant.name}: batch {batch} is off by {off:.3f}")
        if variant.zero:
            kernels = self.kernels(variant)
            if not kernels:  # Also those of the all-reduce that starts a run.
                raise RuntimeError("PyTorch's profiler recorded no kernel of NCCL")
            if self.ranks.rank == 0:
                exchanges = [name for name in kernels if "AllReduce" not in name]
                print(
                    f"{variant.name}: kernels for the exchanges: {exchanges or 'none'}", flush=True
                )

    def kernels(self, variant: Variant) -> list[str]:
        """Returns NCCL's kernels in a run."""
        profiler = self.ranks.torch.profiler
        with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as profile:
            self.once(variant)
        return sorted({event.name for event in profile.events() if "nccl" in event.name})

    def once(self, variant: Variant) -> float:
        """Returns this rank's milliseconds."""
        torch, ranks = self.ranks.torch, self.ranks
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(ranks.meeting):
            torch.cuda._sleep(6_000_000)  # Cycles; longer than submitting takes.
            # All ranks start together, on the device.
            ranks.dist.all_reduce(self.together, group=ranks.group())
            start.record(ranks.meeting)
        with ranks.streams(variant) as streams:
            for stream in streams:
                stream.wait_event(start)
            self.submit(variant, *streams)
        for stream in streams:
            ranks.meeting.wait_stream(stream)
        end.record(ranks.meeting)
        end.synchronize()
        return float(start.elapsed_time(end))

    def submit(self, variant: Variant, compute: Any, exchange: Any) -> None:
        """Submits all steps. A step waits for the previous one of its batch, on the device, and
        otherwise only for its turn in its stream."""
        done: dict[int, Any] = {}  # The event of each batch's last step.
        buffers = self.buffers_of(variant)
        halves = (("attention", "dispatch"), ("experts", "combine"))
        for layer in range(self.layers):
            for half in halves:
                for batch in range(2):
                    for part, stream, kind in zip(half, (compute, exchange), ONE_KIND):
                        if variant.kind in ONE_KIND and variant.kind != kind:
                            continue
                        if batch in done:
                            stream.wait_event(done[batch])
                        if kind == "compute":
                            getattr(self.layer, part)(layer, batch, buffers)
                        else:
                            self._exchange(variant, part, batch, buffers, stream)
                        if compute is not exchange and variant.kind not in ONE_KIND:
                            done[batch] = stream.record_event()

    def _exchange(
        self, variant: Variant, part: str, batch: int, buffers: Buffers, stream: Any
    ) -> None:
        home = part == "combine"
        source = (buffers.back if home else buffers.send)[batch]
        target = (buffers.home if home else buffers.received)[batch]
        if variant.copies:
            assert self.engines is not None
            self.engines.exchange(source, 2 * home + batch, target, stream)
            return
        with self.ranks.torch.cuda.stream(stream):
            # Synchronous, so that NCCL's kernels run in this stream, on its SMs.
            self.ranks.dist.all_to_all_single(target, source, group=self.ranks.group(variant))

    def close(self) -> None:
        """Releases the arena after all ranks have unmapped it."""
        self.ranks.torch.cuda.synchronize()
        if self.engines is not None:
            self.engines.close()
        self.ranks.gather(None)


def measure(ranks: Ranks, kind: str, tokens: int, arguments: argparse.Namespace) -> Any:
    """Returns the times of the variants that every rank can run, and the reasons of the others."""
    layers, variants = Layers(ranks, kind, tokens, arguments.layers), arguments.variants
    times: dict[str, list[float]] = {}
    refused: dict[str, str] = {}
    for variant in variants:
        reasons = [reason for reason in ranks.gather(layers.problem(variant)) if reason]
        if reasons:
            refused[variant.name] = reasons[0]
        else:
            layers.warm_up(variant)
            times[variant.name] = []
    gc.collect()
    gc.disable()  # A collection would delay launches.
    for _ in range(arguments.repeats):
        # In turns, so that slow changes, as of the clocks, affect all equally.
        for variant in variants:
            if variant.name in times:  # The slowest rank's time.
                times[variant.name].append(max(ranks.gather(layers.once(variant))))
    gc.enable()
    layers.close()
    return times, refused


def show(title: str, times: dict[str, list[float]], refused: dict[str, str]) -> None:
    medians = {name: statistics.median(took) for name, took in times.items()}
    print(f"{title}; in ms:")
    rows = []
    for name, took in times.items():
        cells = [f"{value:.2f}" for value in (medians[name], min(took), max(took))]
        for other in ("plain", "sequence", "compute"):
            of = medians.get(other)
            cells.append(f"{medians[name] / of:.2f}" if of else "-")
        rows.append((name, *cells))
    common.table(("", "median", "least", "most", "/ plain", "/ sequence", "/ compute"), rows)
    for name, why in refused.items():
        print(f"  {name}: {why}", flush=True)


def check_split(times: dict[str, list[float]]) -> None:
    """Checks that the best split is as much faster as it was."""
    medians = {name: statistics.median(took) for name, took in times.items()}
    splits = [took for name, took in medians.items() if name.startswith("split-")]
    for other, bound in REQUIRED.items():
        if splits and other in medians:
            share = round(min(splits) / medians[other], 2)
            common.check(share <= bound, f"the best split takes {share} of {other}, not {bound}")


def tokens_of(text: str) -> int:
    """For argparse."""
    count = common.positive(text)
    if count % 256:
        raise argparse.ArgumentTypeError(f"must be a multiple of 256, not {count}")
    return count


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--tokens", nargs="+", type=tokens_of, default=[2048, 8192], metavar="T",
        help="of a batch, a GPU (2048 8192)")  # fmt: skip
    add("--layer", nargs="+", choices=("products", "experts"), default=["products", "experts"],
        help="products: plain ones; experts: DeepSeek-V3's proportions (both)")  # fmt: skip
    add("--variants", nargs="+", type=variant_of, default=list(map(variant_of, VARIANTS)),
        metavar="NAME", help=f"({' '.join(VARIANTS)})")  # fmt: skip
    add("--repeats", type=common.positive, default=10, help="of each variant (10)")
    add("--layers", type=common.positive, default=6, help="that a batch passes (6)")
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    world = os.environ.get("WORLD_SIZE", "1")
    if world not in ("2", "4", "8") or world != os.environ.get("LOCAL_WORLD_SIZE"):
        common.end(f"needs 2, 4 or 8 GPUs of one host and a process for each: torchrun "
                   f"--nproc-per-node 4 {sys.argv[0]}")  # fmt: skip
    # Before CUDA starts: both streams wait for each other all the time.
    gcx.request_connections()
    torch = common.library("torch")
    rank = int(os.environ["RANK"])
    try:
        if rank == 0:
            common.start()
        ranks = Ranks(torch)
        for kind in arguments.layer:
            for tokens in arguments.tokens:
                times, refused = measure(ranks, kind, tokens, arguments)
                torch.cuda.empty_cache()
                if rank == 0:
                    title = f"{kind}, 2 batches of {tokens} tokens a GPU, {world} GPUs"
                    show(title, times, refused)
                    if (world, kind, tokens) == ("4", "products", 2048):
                        check_split(times)
    except Exception as error:  # From any library. This rank must not wait for the others.
        print(f"rank {rank}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        sys.stdout.flush()
        os._exit(1)
    torch.cuda.synchronize()
    ranks.gather(None)
    ranks.dist.destroy_process_group()


if __name__ == "__main__":
    common.run(main)
