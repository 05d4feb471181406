"""Runs two batches on GPUs, a process for each, with PyTorch, NCCL and gcx."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

import gcx
import torch
import torch.distributed as dist

from twobatch.arms import ALONE, Arm
from twobatch.exchange import CopyEngines
from twobatch.lanes import Splits
from twobatch.layers import HIDDEN, Buffers, Experts, Products
from twobatch.ranks import Place, agree, attempt, in_a_line
from twobatch.schedule import Span, Step, submit

_Events = list[tuple[Step, Any, Any]]  # With events before and after each step.

# Longer than submitting takes, so that no lane waits for the host: cycles of a waiting kernel.
_AHEAD = 6_000_000
_BUFFERS = ("received", "home")
_RESULTS_DIFFER = 0.05  # By root mean squares: bf16, and products in another order.


class Gpus:
    """The ranks of a run, and this one's GPU: streams and communicators, which outlast a Gpu."""

    def __init__(self, place: Place, layers: int, experts: int) -> None:
        self.rank, self.world, self.device = place
        self.layers, self.per_gpu = layers, experts
        # gloo carries host data, so that it waits for no GPU; all ranks are on this host.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", timeout=timedelta(minutes=10))
        _, problem = attempt(self._start)
        agree(self, problem)
        self.splits = Splits(self.device)
        self._groups: dict[tuple[str, int], Any] = {}
        self.meeting = torch.cuda.Stream()
        self._streams = {
            "plain": (torch.cuda.Stream(), torch.cuda.Stream()),
            "priority": (torch.cuda.Stream(), torch.cuda.Stream(priority=-5)),
        }

    def _start(self) -> None:
        count = torch.cuda.device_count()
        if self.device >= count:
            raise ValueError(f"there are {count} GPUs for {self.world} processes")
        if tuple(map(int, torch.__version__.split("+")[0].split(".")[:2])) < (2, 7):
            # Before, its collectives ran in streams of their own, so on no partition.
            raise ValueError(f"needs PyTorch 2.7 or newer, not {torch.__version__}")
        torch.cuda.set_device(self.device)
        torch.zeros(1, device="cuda")
        properties = torch.cuda.get_device_properties(self.device)
        self.told = int(properties.multi_processor_count)
        found = gcx.Device(self.device)
        self.name, self.sm_count = found.name, found.sm_count
        nccl: Any = torch.cuda.nccl
        self.software = {
            "torch": str(torch.__version__),
            "nccl": ".".join(map(str, nccl.version())),
            "driver": ".".join(map(str, gcx.driver_info().version)),
            "SMs told": str(self.told),
        }

    def gather(self, mine: Any) -> list[Any]:
        found: list[Any] = [None] * self.world
        dist.all_gather_object(found, mine)
        return found

    def machine(self, layer: str, tokens: int) -> Gpu:
        """Needs no other rank."""
        return Gpu(self, layer, tokens)

    def lanes(self, arm: Arm) -> tuple[Any, Any]:
        """Returns PyTorch's streams for compute and communication."""
        if arm.is_split:
            exchange, compute = self.splits.parts(arm)
            return compute.stream.torch(), exchange.stream.torch()
        compute, exchange = self._streams["priority" if arm.kind == "priority" else "plain"]
        return compute, compute if arm.kind == "sequence" else exchange

    def group(self, where: str, ctas: int = 0, *, fine: bool = False) -> Any:
        """Returns the communicator of a lane. Lanes share none, since one must not be used twice at
        once. All ranks must ask for the same ones in the same order."""
        key = where, ctas
        if key not in self._groups:
            nccl: Any = dist.ProcessGroupNCCL
            options = nccl.Options()
            if ctas:
                options.config.min_ctas = 1
                options.config.max_ctas = ctas
            if fine:
                # NCCL launches clusters of 4 on these GPUs, which fine partitions can't run.
                options.config.cga_cluster_size = 1
            self._groups[key] = dist.new_group(backend="nccl", pg_options=options)
        return self._groups[key]

    def close(self) -> None:
        torch.cuda.synchronize()
        self.gather(None)
        dist.destroy_process_group()
        self.splits.close()


class Gpu:
    """A measure.Machine: two batches of so many tokens through layers of a kind."""

    def __init__(self, gpus: Gpus, kind: str, tokens: int) -> None:
        self._gpus = gpus
        self.sm_count = gpus.sm_count
        shape: Any = Products if kind == "products" else Experts
        self._rows = shape.rows(tokens, gpus.world)
        self._need_memory(shape, tokens)
        generator = torch.Generator(f"cuda:{gpus.device}").manual_seed(gpus.rank)
        self._layer: Any
        if kind == "products":
            self._layer = Products(tokens, gpus.layers, generator)
        else:
            self._layer = Experts(
                tokens, gpus.layers, gpus.per_gpu, gpus.rank, gpus.world, generator
            )
        self._make_buffers()
        self._engines: CopyEngines | None = None
        self._expected: list[Any] = []
        self._together = torch.zeros(1, device="cuda")
        torch.cuda.synchronize()

    def _need_memory(self, shape: Any, tokens: int) -> None:
        gpus = self._gpus
        # Streams that compute: plain, with priority, and of each split.
        streams = 8
        buffers = 2 * 4 * self._rows * HIDDEN * 2
        wanted = shape.bytes(tokens, gpus.layers, gpus.per_gpu, gpus.world, streams)
        need = wanted + 2 * buffers + (4 << 30)  # Copies for comparison; libraries.
        torch.cuda.empty_cache()
        free = torch.cuda.mem_get_info()[0]
        if free < need:
            raise MemoryError(
                f"{tokens} tokens need {need / 2**30:.0f} GiB of device memory, "
                f"{free / 2**30:.0f} are free; fewer --experts, --layers or --tokens need less"
            )

    def _make_buffers(self) -> None:
        """Puts the buffers that others write to into one arena, followed by the flags."""
        size = self._rows * HIDDEN
        flags = 4 * len(_BUFFERS) * 2 * self._gpus.world
        self._flags = 4 * size * 2
        self._arena = torch.zeros(self._flags + flags, dtype=torch.uint8, device="cuda")
        places = self._arena[: self._flags].view(torch.bfloat16).view(4, self._rows, HIDDEN)
        own = torch.zeros(4, self._rows, HIDDEN, dtype=torch.bfloat16, device="cuda")
        self._buffers = Buffers(
            send=[own[0], own[1]],
            received=[places[0], places[1]],
            back=[own[2], own[3]],
            home=[places[2], places[3]],
        )

    def prepare(self, arm: Arm) -> str:
        try:
            if arm.told:
                self._need_to_be_told(arm)
            if arm.copies:
                self._need_peers()
            if arm.kind != "exchange":
                # Finds kernels that can't run on these SMs before other ranks wait.
                with self._entered(arm) as (compute, _):
                    for batch in range(2):
                        self._layer.attention(0, batch, self._buffers)
                        self._layer.experts(0, batch, self._buffers)
                    compute.synchronize()
        except Exception as error:  # Reported, and the arm is skipped.
            return in_a_line(error)
        return ""

    def _need_to_be_told(self, arm: Arm) -> None:
        told, compute = self._gpus.told, self._gpus.splits.parts(arm)[1].sm_count
        if told != compute:
            raise ValueError(f"this process's libraries were told {told} SMs, not {compute}")

    def _need_peers(self) -> None:
        mine = self._gpus.device
        for other in range(self._gpus.world):
            if other != mine and not torch.cuda.can_device_access_peer(mine, other):
                raise ValueError(f"GPU {mine} can't write into the memory of GPU {other}")

    def warm_up(self, arm: Arm) -> str:
        if arm.copies and self._engines is None:
            engines = CopyEngines(self._gpus, torch, self._arena, self._flags, 2 * len(_BUFFERS))
            problem = engines.connect()
            if problem:
                engines.close()
                return problem
            self._engines = engines
        if not self._expected:
            self.once(Arm("sequence"))
            self._expected = [self._layer.result(b, self._buffers).clone() for b in range(2)]
        for _ in range(3):
            self.once(arm)
        if arm.kind not in ALONE:
            self._check(arm)
        return ""

    def _check(self, arm: Arm) -> None:
        """Checks the results against those of one stream."""
        for batch, expected in enumerate(self._expected):
            found = self._layer.result(batch, self._buffers).float()
            off = float((found - expected).norm() / expected.float().norm())
            if not off < _RESULTS_DIFFER:
                raise ArithmeticError(
                    f"{arm.name}: the result of batch {batch} is off by {off:.3f}"
                )

    @contextmanager
    def _entered(self, arm: Arm) -> Iterator[tuple[Any, Any]]:
        """Yields the lanes. That of compute is PyTorch's current stream, with its SM count set in
        libraries if the arm says so."""
        compute, exchange = self._gpus.lanes(arm)
        with ExitStack() as entered:
            if arm.is_split:
                part = self._gpus.splits.parts(arm)[1]
                entered.enter_context(gcx.current(part, cublas=arm.target))
                if arm.target:
                    entered.enter_context(_carved_out(self.sm_count - part.sm_count))
            else:
                entered.enter_context(torch.cuda.stream(compute))
            yield compute, exchange

    def once(self, arm: Arm) -> float:
        return self._run(arm, None)

    def trace(self, arm: Arm) -> list[Span]:
        events: _Events = []
        self._run(arm, events)
        return [
            Span(step, self._start.elapsed_time(start), self._start.elapsed_time(end))
            for step, start, end in events
        ]

    def _run(self, arm: Arm, events: _Events | None) -> float:
        meeting = self._gpus.meeting
        self._start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(meeting):
            torch.cuda._sleep(_AHEAD)
            # All ranks start together, on the device.
            dist.all_reduce(self._together, group=self._gpus.group("meeting"))
            self._start.record(meeting)
        with self._entered(arm) as (compute, exchange):
            for lane in (compute, exchange):
                lane.wait_event(self._start)
            self._submit(arm, compute, exchange, events)
        for lane in (compute, exchange):
            meeting.wait_stream(lane)
        end.record(meeting)
        end.synchronize()
        return float(self._start.elapsed_time(end))

    def _submit(self, arm: Arm, compute: Any, exchange: Any, events: _Events | None) -> None:
        def do(step: Step, lane: Any) -> None:
            if events is None:
                self._do(arm, step, lane)
                return
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            began.record(lane)
            self._do(arm, step, lane)
            ended.record(lane)
            events.append((step, began, ended))

        only = arm.kind if arm.kind in ALONE else ""
        submit(self._gpus.layers, compute, exchange, do, only=only)

    def _do(self, arm: Arm, step: Step, lane: Any) -> None:
        if step.part == "attention":
            self._layer.attention(step.layer, step.batch, self._buffers)
        elif step.part == "experts":
            self._layer.experts(step.layer, step.batch, self._buffers)
        else:
            self._exchange(arm, step, lane)

    def _exchange(self, arm: Arm, step: Step, lane: Any) -> None:
        buffers, batch = self._buffers, step.batch
        if step.part == "dispatch":
            number, source, target = batch, buffers.send[batch], buffers.received[batch]
        else:
            number, source, target = 2 + batch, buffers.back[batch], buffers.home[batch]
        if arm.copies:
            assert self._engines is not None
            self._engines.exchange(source, number, target, lane)
            return
        where = arm.kind + (f"-{arm.sms}" if arm.is_split else "")
        group = self._gpus.group(where, arm.ctas, fine=arm.fine)
        with torch.cuda.stream(lane):
            # Synchronous, so that NCCL's kernels run in this stream, on its SMs.
            dist.all_to_all_single(target, source, group=group)

    def close(self) -> None:
        """Releases the arena after all ranks have unmapped it."""
        torch.cuda.synchronize()
        if self._engines is not None:
            self._engines.close()
            self._engines = None
        self._gpus.gather(None)


@contextmanager
def _carved_out(count: int) -> Iterator[None]:
    """Reserves that many SMs from PyTorch's grouped products."""
    private: Any = torch._C
    before = private._get_sm_carveout_experimental()
    private._set_sm_carveout_experimental(count)
    try:
        yield
    finally:
        private._set_sm_carveout_experimental(before)
