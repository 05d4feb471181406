"""A plugin of SGLang that multiplexes decode and prefill on two leases.

    GCX_PROMISE_MS=20 SGLANG_PLUGINS=gcx python -m sglang.launch_server --enable-pdmux \\
        --disable-overlap-schedule --chunked-prefill-size -1 ...

SGLang loads it by its entry point in the main process and in each scheduler's process. It replaces
the event loop of --enable-pdmux: gcx.engines.policy decides at each decode step, and at each piece
of a prefill batch, how many SMs either side has. The device orders them by events, so the host
waits for neither. See docs/guides/sglang.md.
"""

from __future__ import annotations

import importlib
import logging
import os
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import gcx
from gcx.engines import Sides
from gcx.engines.policy import Launch, Policy

__all__ = ["register"]

log = logging.getLogger("gcx.engines.sglang")

TRIED = ("0.5.16",)
CONNECTIONS = 32
# Of the SMs, for decode next to prefill.
DECODE_SHARES = (0.12, 0.18, 0.24, 0.3, 0.36, 0.48, 0.6)
# A first guess, which the policy corrects: how much longer a step takes next to prefill.
DECODE_SLOWER = 1.6
PIECE = 1 / 4  # Of the promised time, for a piece of prefill, which is at least a layer.
LEAD_MS = 3.0  # Before the end of a decode step the next is launched, which takes SGLang 1.7 ms.
REPORT_MS = 30_000

# Requests that need no drain. Others may change weights, caches or batches that are in use.
WHILE_BUSY = frozenset(
    {
        *("TokenizedGenerateReqInput", "BatchTokenizedGenerateReqInput", "AbortReq"),
        *("OpenSessionReqInput", "CloseSessionReqInput", "GetInternalStateReq", "ProfileReq"),
        *("ConfigureLoggingReq", "FreezeGCReq", "ContinueGenerationReqInput"),
    }
)

# Arguments of SGLang, the values that can be served, and what to do instead.
REFUSED: tuple[tuple[str, tuple[object, ...], str], ...] = (
    ("pp_size", (1,), "use --pp-size 1"),
    ("tp_size", (1,), "use --tp-size 1: its ranks would decide by different times"),
    ("dcp_size", (1,), "use --dcp-size 1"),
    ("attn_cp_size", (1,), "use --attn-cp-size 1"),
    ("enable_dp_attention", (False,), "leave out --enable-dp-attention; --dp-size is possible"),
    ("enable_lora", (False, None), "serve LoRA adapters without --enable-pdmux"),
    ("lora_paths", (None, []), "serve LoRA adapters without --enable-pdmux"),
    ("speculative_algorithm", (None,), "leave out --speculative-algorithm"),
    ("disaggregation_mode", ("null",), "leave out --disaggregation-mode"),
    ("dllm_algorithm", (None,), "serve diffusion models without --enable-pdmux"),
    ("is_embedding", (False,), "serve embedding models without --enable-pdmux"),
    ("enable_mixed_chunk", (False,), "leave out --enable-mixed-chunk"),
    ("enable_two_batch_overlap", (False,), "leave out --enable-two-batch-overlap"),
    ("enable_hisparse", (False,), "leave out --enable-hisparse"),
    ("enable_hierarchical_cache", (False,), "leave out --enable-hierarchical-cache"),
    ("enable_lmcache", (False,), "leave out --enable-lmcache"),
    ("enable_flexkv", (False,), "leave out --enable-flexkv"),
    ("enable_unified_memory", (False,), "leave out --enable-unified-memory"),
    ("enable_memory_saver", (False,), "leave out --enable-memory-saver"),
    ("elastic_ep_backend", (None,), "leave out --elastic-ep-backend"),
    ("device", ("cuda",), "use an NVIDIA GPU"),
)

_graphs: dict[Any, MovedGraph] | None = None  # By SGLang's key; None: not multiplexing.


def register() -> None:
    """Registers the plugin; SGLang calls it.

    Does nothing unless the environment variable SGLANG_PLUGINS names gcx, since SGLang loads all
    installed plugins without it.

    Raises:
        SystemExit: SGLang has a version that was not tried, and GCX_SGLANG_ANY_VERSION isn't 1.
    """
    names = [name.strip() for name in os.environ.get("SGLANG_PLUGINS", "").split(",")]
    if "gcx" not in names:
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    from sglang.version import __version__

    if __version__ not in TRIED and os.environ.get("GCX_SGLANG_ANY_VERSION") != "1":
        # SGLang logs exceptions of plugins and goes on without them.
        raise SystemExit(
            f"gcx.engines.sglang: SGLang {__version__} was not tried, only {', '.join(TRIED)}; "
            "install that, remove gcx from SGLANG_PLUGINS, or set GCX_SGLANG_ANY_VERSION=1"
        )
    # Before CUDA starts: waiting streams must not block all launches of the process.
    try:
        gcx.request_connections(CONNECTIONS)
    except gcx.TooLateError as error:
        log.debug("%s", error)  # In the main process, which launches nothing. See init_pdmux.
    srt, scheduler = "sglang.srt.", "sglang.srt.managers.scheduler.Scheduler."
    graphs = f"{srt}model_executor.runner_backend.full_cuda_graph_backend.FullCudaGraphBackend."
    for target, hook, kind in (
        (f"{srt}server_args.ServerArgs.check_server_args", check_server_args, HookType.BEFORE),
        (f"{scheduler}init_pdmux", init_pdmux, HookType.REPLACE),
        (f"{scheduler}event_loop_pdmux", event_loop, HookType.REPLACE),
        (f"{graphs}capture_one", capture_one, HookType.AROUND),
    ):
        HookRegistry.register(target, hook, kind)


def check_server_args(server_args: Any) -> None:
    """Raises a ValueError if the plugin can't serve these arguments. Runs before SGLang's own
    checks, in the main process."""
    if not server_args.enable_pdmux:
        log.warning("SGLANG_PLUGINS=gcx has no effect without --enable-pdmux")
        return
    problems = [
        f"{name} is {getattr(server_args, name)!r}; {advice}"
        for name, served, advice in REFUSED
        if hasattr(server_args, name) and getattr(server_args, name) not in served
    ]
    config = server_args.cuda_graph_config
    if config is not None and config.decode.backend != "full":
        problems.append(
            f"the backend of decode's CUDA graphs is {config.decode.backend!r}; use 'full'"
        )
    if config is not None and config.prefill.backend == "full":
        problems.append("the backend of prefill's CUDA graphs is 'full'; use 'disabled'")
    if problems:
        raise ValueError("gcx.engines.sglang can't serve this: " + ". ".join(problems))
    promise_ms()
    # SGLang has just set it to 8, and schedulers inherit it.
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = str(CONNECTIONS)


def promise_ms() -> float | None:
    """Returns the promised time per token from GCX_PROMISE_MS; None if it is not set."""
    text = os.environ.get("GCX_PROMISE_MS", "")
    try:
        promise = float(text) if text else None
    except ValueError:
        promise = -1.0
    if promise is not None and not 0 < promise < 60_000:
        raise ValueError(
            f"gcx.engines.sglang: GCX_PROMISE_MS is {text!r}; set the milliseconds from one token "
            "to the next, such as 20"
        )
    return promise


def init_pdmux(scheduler: Any) -> None:
    """Replaces Scheduler.init_pdmux: one pair of plain streams, in which graphs are captured once,
    and the scheduler's structures of the overlap schedule, which --enable-pdmux turns off."""
    global _graphs
    import torch

    pdmux: Any = importlib.import_module("sglang.srt.multiplex.pdmux_context")
    gpu = scheduler.ps.gpu_id
    pdmux.STREAM_GROUPS = [(torch.cuda.Stream(gpu), torch.cuda.Stream(gpu))]
    pdmux.SM_COUNTS = [(gcx.Device(gpu).sm_count,) * 2]
    pdmux.CURRENT_STREAM_IDX, pdmux.CURRENT_STREAM_GROUP = 0, pdmux.STREAM_GROUPS[0]
    scheduler.server_args.override("gcx", disable_overlap_schedule=False, sm_group_num=1)
    scheduler.enable_overlap = True
    scheduler.split_prefill_batch = None
    _graphs = {}
    found = gcx.queue_info()
    level = logging.INFO if (found.connections or 0) >= CONNECTIONS else logging.WARNING
    log.log(level, "%s connections (%s); wanted %d", found.connections, found.source, CONNECTIONS)


class MovedGraph:
    """Stands for a torch.cuda.CUDAGraph of SGLang: it runs on the SMs of the current stream."""

    def __init__(self, captured: Any) -> None:
        self.graph = gcx.Graph(captured)

    def replay(self) -> None:
        import torch

        self.graph.launch(torch.cuda.current_stream())


def capture_one(
    capture: Callable[..., None], backend: Any, key: Any, *more: Any, **by: Any
) -> None:
    """Surrounds FullCudaGraphBackend.capture_one: keeps the captured graph, so that it can move."""
    if _graphs is None:
        capture(backend, key, *more, **by)
        return
    import torch

    plain = torch.cuda.CUDAGraph
    torch.cuda.CUDAGraph = lambda: plain(keep_graph=True)
    try:
        capture(backend, key, *more, **by)
    finally:
        torch.cuda.CUDAGraph = plain
    backend._graphs[key] = _graphs[key] = MovedGraph(backend._graphs[key])


def event_loop(scheduler: Any) -> None:
    """Replaces Scheduler.event_loop_pdmux."""
    import torch

    if not hasattr(scheduler.tp_worker.model_runner.model, "forward_split_prefill"):
        raise ValueError(
            "gcx.engines.sglang: SGLang can't prefill this model in pieces, since it has no "
            "forward_split_prefill; serve it without --enable-pdmux"
        )
    if not _graphs:
        raise ValueError(
            "gcx.engines.sglang: no CUDA graph of decode was captured through the plugin; look in "
            "the log for hooks that failed"
        )
    device = gcx.Device(scheduler.ps.gpu_id)
    sides = Sides(device.sm_count, device.ordinal)
    try:  # An exception of SGLang ends the leases too.
        with torch.inference_mode():
            Loop(scheduler, sides, prepared(sides, list(_graphs.values()))).run()
    finally:
        sides.close()


def prepared(sides: Sides, graphs: list[MovedGraph]) -> Policy:
    """Creates the contexts and executables of all splits, measures decode on each, and returns the
    policy."""
    total, began = sides.sm_count, now_ms()
    splits = sorted({max(8, 8 * round(total * share / 8)) for share in DECODE_SHARES})
    decode = {}
    for split in (*splits, 0, total):
        sides.arrange(split)
        if split == 0:
            continue
        for moved in graphs:
            moved.graph.prepare(sides.decode)
        decode[split] = _step_ms(sides.decode, graphs[len(graphs) // 2].graph)
    promise = promise_ms()
    if promise is None:
        promise = 5 * decode[total]
        log.info("GCX_PROMISE_MS is not set: promises five times a decode step alone")
    expected = {split: DECODE_SLOWER * took for split, took in decode.items() if split < total}
    policy = Policy({**expected, total: decode[total]}, promise, lead=LEAD_MS)
    try:
        gcx.publish("sglang")
    except gcx.Error as error:
        log.warning("the leases are not published, so `gcx top` does not show them: %s", error)
    log.info(
        "promises %.1f ms a token; decode on %s SMs: %s ms; %d graphs ready in %.1f s",
        promise, "/".join(map(str, decode)), "/".join(f"{ms:.2f}" for ms in decode.values()),
        len(graphs), (now_ms() - began) / 1e3,
    )  # fmt: skip
    return policy


def _step_ms(lease: gcx.Lease, graph: gcx.Graph) -> float:
    """Returns the time of a decode step in milliseconds."""
    times = []
    for count in (1, 8, 8, 8):
        begin = now_ms()
        for _ in range(count):
            graph.launch(lease.stream)
        lease.stream.synchronize()
        times.append((now_ms() - begin) / count)
    return min(times[1:])


def now_ms() -> float:
    return time.perf_counter() * 1e3


class Loop:
    """The event loop. It polls: only drain() waits for the GPU.

    Order on the device, next to that of either stream and of the leases: a decode step begins
    behind the scheduler's own stream, which prepares batches. A prefill batch begins behind it too,
    and behind steps in flight whose memory it may have got.
    """

    def __init__(self, scheduler: Any, sides: Sides, policy: Policy) -> None:
        self.scheduler, self.sides, self.policy = scheduler, sides, policy
        # Steps in flight, and steps that have ended and whose results were not processed.
        scheduler.result_queue = deque()
        self.ended = 0  # How many of them have ended.
        self.newest: Any = None  # The batch of the last one.
        self.step_end: Any = None  # An event at its end.
        self.step_split = sides.sm_count  # Its split.
        self.pieces: deque[Any] = deque()  # Events at the ends of the pieces in flight.
        self.layers: list[int] = []  # Of each piece of the prefill batch.
        self.tokens = 0  # Of the prefill batch.
        self.token_ms = 0.0  # The time of a token in a layer.
        self.last_piece = 0.0
        self.result: Any = None  # Of its last piece.
        self.decoding = False  # Whether the running batch has requests that have not ended.
        self.changed = True  # Whether a prefill batch could be possible that was not before.
        self.in_a_row = False  # Whether the next token follows another one.
        self.gaps: list[float] = []  # Milliseconds from token to token, for the report.
        self.first_tokens = 0
        self.reported = now_ms()

    def run(self) -> None:
        scheduler = self.scheduler
        while not scheduler.gracefully_exit:
            requests = scheduler.request_receiver.recv_requests()
            if any(type(request).__name__ not in WHILE_BUSY for request in requests):
                self.drain()
            scheduler.process_input_requests(requests)
            self.changed |= bool(requests)
            if scheduler._engine_paused:
                continue
            self.notice()
            self.admit()
            self.launch()
            self.process()
            if not self.decoding and not self.busy():
                scheduler.cur_batch_for_debug = None
                scheduler.on_idle()

    def busy(self) -> bool:
        scheduler = self.scheduler
        return bool(scheduler.result_queue) or scheduler.split_prefill_batch is not None

    def notice(self) -> None:
        """Tells the policy what has ended."""
        now, queue, prefilled = now_ms(), self.scheduler.result_queue, 0
        while self.pieces and self.pieces[0].query():
            self.pieces.popleft()
            self.measure(self.policy.prefilling[0], now)
            prefilled += self.policy.piece_ended(now)
        # Without a sampled token nothing was recorded yet.
        while (
            self.ended < len(queue)
            and queue[self.ended][1].delay_sample_func is None
            and queue[self.ended][1].copy_done.query()
        ):
            self.ended += 1
            if self.in_a_row:
                self.gaps.append(now - self.policy.last_token)
            self.in_a_row = self.decoding
            self.policy.step_ended(now)
        if prefilled:
            self.first_tokens += len(self.scheduler.split_prefill_batch.reqs)
            self.join()
        if now > self.reported + REPORT_MS:
            self.report(now)

    def measure(self, piece: Launch, now: float) -> None:
        """Learns what a piece takes, unless it may have waited for SMs."""
        if piece.piece > 0:
            took = now - max(piece.at, self.last_piece)
            token_ms = took / (self.tokens * self.layers[piece.piece])
            self.token_ms += (0.1 if self.token_ms else 1.0) * (token_ms - self.token_ms)
        self.last_piece = now

    def join(self) -> None:
        """Processes the result of the prefill batch and adds it to the running batch."""
        scheduler = self.scheduler
        batch, result, self.result = scheduler.split_prefill_batch, self.result, None
        scheduler.process_batch_result(batch, result)
        batch.split_forward_batch = None  # Its activations.
        scheduler.split_prefill_batch = scheduler.last_batch = None
        batch.filter_batch()
        if batch.is_empty():
            scheduler.running_batch.batch_is_full = False
        elif scheduler.running_batch.is_empty():
            scheduler.running_batch = batch
        else:
            scheduler.running_batch.merge_batch(batch)
        self.look()

    def look(self) -> None:
        """Looks which requests of the running batch have not ended."""
        running = self.scheduler.running_batch
        self.changed = True
        self.decoding = any(not request.finished() for request in running.reqs)
        if not self.decoding:
            running.filter_batch()
            running.batch_is_full = False

    def admit(self) -> None:
        """Makes a prefill batch of the waiting requests, unless there is one: the requests of a
        batch of SGLang prefill together, so later ones join between batches."""
        scheduler = self.scheduler
        if scheduler.split_prefill_batch is not None:
            return
        idle = not self.decoding and not self.busy()
        if not (self.changed or idle or scheduler.grammar_manager.has_waiting_grammars()):
            return
        in_flight = [request for step, _ in scheduler.result_queue for request in step.reqs]
        if any(request.is_retracted for request in in_flight):
            return  # If it is admitted now, the result of that step counts for it.
        self.changed = False
        scheduler._abort_on_waiting_timeout()
        plan = scheduler.get_new_batch_prefill(scheduler.running_batch)
        batch, scheduler.running_batch = plan.batch_to_run, plan.running_batch
        if batch is None or batch.is_empty():
            return
        modes: Any = importlib.import_module("sglang.srt.model_executor.forward_batch_info")
        batch.forward_mode = modes.ForwardMode.SPLIT_PREFILL
        # As the last batch it counts as work, and its requests can be aborted.
        scheduler.split_prefill_batch = scheduler.last_batch = batch
        count = scheduler.model_config.num_hidden_layers
        self.tokens = max(1, batch.extend_num_tokens or 0)
        layer_ms = self.tokens * self.token_ms
        each = int(PIECE * self.policy.promise / layer_ms) if layer_ms else 1
        each = min(max(each, 1), count)
        self.layers = [min(each, count - first) for first in range(0, count, each)]
        self.policy.prompt_arrived(len(self.layers))
        log.debug("prefills %d requests in %d pieces", len(batch.reqs), len(self.layers))

    def launch(self) -> None:
        while (choice := self.policy.choose(now_ms(), self.decoding)) is not None:
            is_step, split = choice
            if is_step and not self.step(split):
                return
            if not is_step:
                self.piece(split)

    def arrange(self, split: int) -> None:
        if split != self.sides.split:
            log.debug("%d SMs for decode; %d waiting", split, len(self.scheduler.waiting_queue))
            self.sides.arrange(split)

    def step(self, split: int) -> bool:
        """Launches a decode step; returns whether something was launched or has changed."""
        scheduler = self.scheduler
        queue = scheduler.result_queue
        if queue and queue[-1][1].delay_sample_func is not None:
            return False  # Its grammar needs the tokens before, see process.
        scheduler._abort_on_running_timeout(scheduler.running_batch)
        batch = scheduler.running_batch = scheduler.update_running_batch(scheduler.running_batch)
        if batch.is_empty():
            self.decoding = False
            return True
        self.policy.launched(True, split)
        self.step_split = split
        self.arrange(split)
        self.use_decode_stream()
        scheduler.cur_batch_for_debug = self.newest = batch
        result = scheduler.run_batch(batch)
        self.step_end = scheduler.forward_stream.record_event()
        scheduler._apply_war_barrier()
        queue.append((batch.copy(), result))
        return True

    def use_decode_stream(self) -> None:
        """The scheduler runs decode in its forward stream, which changes with the lease."""
        scheduler = self.scheduler
        scheduler.forward_stream = self.sides.decode.stream.torch()
        scheduler.forward_stream_ctx = scheduler.device_module.stream(scheduler.forward_stream)

    def piece(self, split: int) -> None:
        """Launches the next layers of the prefill batch."""
        scheduler = self.scheduler
        batch = scheduler.cur_batch_for_debug = scheduler.split_prefill_batch
        launch = self.policy.launched(False, split)
        self.arrange(split)
        stream = self.sides.prefill.stream.torch()
        if launch.piece == 0:
            stream.wait_stream(scheduler.schedule_stream)
            if self.may_have_memory_in_use():
                stream.wait_event(self.step_end)
        batch.split_forward_count = self.layers[launch.piece]
        with scheduler.device_module.stream(stream):
            scheduler.enable_overlap = False  # run_batch then takes the way of split prefill.
            try:
                result = scheduler.run_batch(batch)
            finally:
                scheduler.enable_overlap = True
            batch.split_index += batch.split_forward_count
            if launch.last:
                batch.split_prefill_finished = True
                result.copy_done = scheduler.device_module.Event()
                result.copy_to_cpu(
                    return_logprob=batch.return_logprob,
                    return_hidden_states=batch.return_hidden_states,
                )
                self.result = result
        self.pieces.append(stream.record_event())

    def may_have_memory_in_use(self) -> bool:
        """Returns whether the prefill batch may have got memory that a step in flight uses: that of
        a request which has ended or was retracted, or what slid out of an attention window."""
        if self.scheduler.is_hybrid_swa and self.scheduler.result_queue:
            return True
        running = {id(request) for request in self.scheduler.running_batch.reqs}
        return any(
            request.finished() or id(request) not in running
            for step, _ in self.scheduler.result_queue
            for request in step.reqs
        )

    def process(self) -> None:
        """Processes the results of ended steps, while the next one runs."""
        scheduler = self.scheduler
        queue = scheduler.result_queue
        if self.ended:
            while self.ended:
                batch, result = queue.popleft()
                self.ended -= 1
                scheduler.process_batch_result(batch, result)
            self.look()
        if queue and queue[0][1].delay_sample_func is not None:
            if self.sides.split == 0:  # A piece was launched since.
                self.arrange(self.step_split)
            self.use_decode_stream()
            scheduler.launch_batch_sample_if_needed(queue[0][1], self.newest)
            self.step_end = scheduler.forward_stream.record_event()

    def drain(self) -> None:
        """Waits for all work in flight and processes its results."""
        queue = self.scheduler.result_queue
        while self.busy():
            self.policy.now = now_ms()
            while self.policy.waiting:
                self.piece(self.sides.split if self.sides.split < self.sides.sm_count else 0)
            self.process()
            if queue:
                queue[0][1].copy_done.synchronize()
            if self.pieces:
                self.pieces[-1].synchronize()
            self.notice()
            self.process()

    def report(self, now: float) -> None:
        """Logs what was served since the last report."""
        gaps = sorted(self.gaps)
        if gaps or self.first_tokens:
            slow = gaps[len(gaps) * 99 // 100] if gaps else 0.0
            log.info(
                "%d tokens in a row, p99 %.1f ms (%.1f promised); %d first tokens; %d changes of "
                "the leases so far",
                len(gaps), slow, self.policy.promise, self.first_tokens, self.sides.changes,
            )  # fmt: skip
        self.gaps, self.first_tokens, self.reported = [], 0, now
