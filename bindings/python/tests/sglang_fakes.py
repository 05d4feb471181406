"""Stand-ins of the classes of SGLang that gcx.engines.sglang calls and replaces, on the simulated
driver. A decode step is a captured kernel of 1 ms, a layer of prefill a kernel of LAYER_MS."""

from __future__ import annotations

import ctypes
import enum
import sys
import types
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import gcx
import pytest
from work import Work, alive  # type: ignore[import-not-found]

LAYERS, LAYER_MS = 8, 2
VERSION = "0.5.16"


def now_ms() -> float:
    """The simulated clock."""
    return float(alive().clock_ns) / 1e6


class ForwardMode(enum.Enum):
    DECODE, SPLIT_PREFILL = range(2)


class HookType(enum.Enum):
    BEFORE, AROUND, REPLACE = range(3)


class HookRegistry:
    hooks: dict[str, tuple[Any, HookType]]

    @classmethod
    def register(cls, target: str, hook: Any, kind: HookType) -> None:
        cls.hooks[target] = hook, kind


@dataclass
class ServerArgs:
    """The defaults of SGLang's that matter, with --enable-pdmux."""

    enable_pdmux: bool = True
    disable_overlap_schedule: bool = True
    pp_size: int = 1
    tp_size: int = 1
    enable_lora: bool | None = None
    enable_dp_attention: bool = False
    speculative_algorithm: str | None = None
    disaggregation_mode: str = "null"
    decode_backend: str = "full"
    prefill_backend: str = "disabled"
    sm_group_num: int = 8

    @property
    def cuda_graph_config(self) -> Any:
        decode, prefill = (
            types.SimpleNamespace(backend=backend)
            for backend in (self.decode_backend, self.prefill_backend)
        )
        return types.SimpleNamespace(decode=decode, prefill=prefill)

    def override(self, source: str, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self, name, value)


@dataclass(eq=False)
class Request:
    name: str
    prompt: int = 4096
    wanted: int = 4
    grammar: bool = False
    tokens: list[float] = field(default_factory=list)  # When they were processed.
    to_finish: bool = False
    ended: bool = False
    is_retracted: bool = False

    def finished(self) -> bool:
        return self.ended


class TokenizedGenerateReqInput:
    def __init__(self, request: Request) -> None:
        self.request = request


@dataclass
class AbortReq:
    name: str


class PauseGenerationReqInput:
    pass


class GetInternalStateReq:
    pass


class Batch:
    def __init__(self, reqs: list[Request]) -> None:
        self.reqs = reqs
        self.forward_mode: ForwardMode | None = None
        self.batch_is_full = self.split_prefill_finished = False
        self.return_logprob = self.return_hidden_states = False
        self.split_index, self.split_forward_count = 0, 1
        self.split_forward_batch: object = None  # The activations.
        self.extend_num_tokens = sum(request.prompt for request in reqs)

    def is_empty(self) -> bool:
        return not self.reqs

    def filter_batch(self) -> None:
        self.reqs = [request for request in self.reqs if not request.finished()]

    def merge_batch(self, other: Batch) -> None:
        assert self.reqs
        self.reqs = self.reqs + other.reqs

    def copy(self) -> Batch:
        copied = Batch(self.reqs[:])
        copied.forward_mode = self.forward_mode
        return copied


class Result:
    def __init__(self) -> None:
        self.copy_done: Any = None
        self.delay_sample_func: Callable[[], object] | None = None

    def copy_to_cpu(self, *, return_logprob: bool, return_hidden_states: bool) -> None:
        self.copy_done.record(sys.modules["torch"].cuda.current_stream())


class CUDAGraph:
    """A torch.cuda.CUDAGraph."""

    captured: Any
    work: Work

    def __init__(self, keep_graph: bool = False) -> None:
        self.keep_graph = keep_graph

    def raw_cuda_graph(self) -> int:
        assert self.keep_graph
        return int(self.captured.handle)

    def replay(self) -> None:
        torch = sys.modules["torch"]
        self.work.spin(torch.cuda.current_stream().cuda_stream, 1)


class Backend:
    """A FullCudaGraphBackend."""

    def __init__(self, work: Work) -> None:
        self.work, self._graphs = work, {}  # type: ignore[var-annotated]

    def capture_one(self, key: int) -> None:
        graph = sys.modules["torch"].cuda.CUDAGraph()
        graph.captured, graph.work = self.work.capture(), self.work
        self._graphs[key] = graph


class Scheduler:
    """A scheduler that serves what its script lets arrive, and then ends.

    Args:
        script: Milliseconds from the start, and a request or what else the tokenizer sends.
    """

    CALL_NS = 30_000  # An iteration of the loop without work.
    LAUNCH_NS = 200_000  # Host time of run_batch.

    def __init__(self, torch: Any, work: Work, script: list[tuple[float, Any]]) -> None:
        self.torch, self.work, self.device_module = torch, work, torch.cuda
        self.server_args = ServerArgs()
        self.ps = types.SimpleNamespace(gpu_id=0)
        self.model_config = types.SimpleNamespace(num_hidden_layers=LAYERS)
        model = types.SimpleNamespace(forward_split_prefill=None)
        runner = types.SimpleNamespace(model=model)
        self.tp_worker = types.SimpleNamespace(model_runner=runner)
        self.request_receiver = types.SimpleNamespace(recv_requests=self.recv_requests)
        self.grammar_manager = types.SimpleNamespace(has_waiting_grammars=lambda: False)
        self.schedule_stream = torch.cuda.Stream(0)
        self.forward_stream: Any = None
        self.forward_stream_ctx: Any = None
        self.enable_overlap = self.gracefully_exit = self._engine_paused = False
        self.is_hybrid_swa = False
        self.waiting_queue: list[Request] = []
        self.running_batch = Batch([])
        self.last_batch: Batch | None = None
        self.split_prefill_batch: Batch | None = None
        self.cur_batch_for_debug: Batch | None = None
        self.result_queue: deque[tuple[Batch, Result]] = deque()
        self.backend = Backend(work)
        self.script = deque(sorted(script, key=lambda entry: entry[0]))
        self.everyone: list[Request] = []
        self.log: list[tuple[Any, ...]] = []
        self.fail: str | None = None  # The method that raises.
        self.is_running_batch = False
        self.idle = 0
        self.most = 8  # Requests of a prefill batch.
        self.began: float | None = None
        self.leases: list[Any] = []  # As published while it serves.
        self.sim = ctypes.CDLL(gcx.driver_info().library)

    def spend(self, nanoseconds: int) -> None:
        self.sim.gcx_sim_advance(ctypes.c_uint64(nanoseconds))

    def enter(self, name: str) -> None:
        if self.fail == name:
            raise RuntimeError(f"an exception in {name}")

    def recv_requests(self) -> list[Any]:
        self.spend(self.CALL_NS)
        if self.began is None:
            self.began = now_ms()
            self.leases = gcx.published_leases()
        found = []
        while self.script and self.script[0][0] <= now_ms() - self.began:
            what = self.script.popleft()[1]
            found.append(TokenizedGenerateReqInput(what) if isinstance(what, Request) else what)
        all_ended = not self.script and all(request.ended for request in self.everyone)
        if all_ended and self.everyone and not found and not self.result_queue:
            self.gracefully_exit = True
        assert now_ms() < self.began + 2000, "it does not end"
        return found

    def process_input_requests(self, requests: list[Any]) -> None:
        for one in requests:
            if isinstance(one, TokenizedGenerateReqInput):
                self.waiting_queue.append(one.request)
                self.everyone.append(one.request)
            elif isinstance(one, AbortReq):
                for batch in (self.running_batch, self.last_batch):
                    for request in batch.reqs if batch is not None else []:
                        request.to_finish |= request.name == one.name
            self.log.append((type(one).__name__, len(self.result_queue), self.last_batch is None))

    def get_new_batch_prefill(self, running_batch: Batch) -> Any:
        self.enter("get_new_batch_prefill")
        taken, self.waiting_queue = self.waiting_queue[: self.most], self.waiting_queue[self.most :]
        batch = Batch(taken) if taken else None
        return types.SimpleNamespace(batch_to_run=batch, running_batch=running_batch)

    def update_running_batch(self, batch: Batch) -> Batch:
        batch.filter_batch()
        batch.batch_is_full = False
        batch.forward_mode = ForwardMode.DECODE
        return batch

    def run_batch(self, batch: Batch) -> Result:
        self.is_running_batch = True
        try:
            return self.forward(batch)
        finally:
            self.is_running_batch = False

    def forward(self, batch: Batch) -> Result:
        self.enter("run_batch")
        assert self.enable_overlap == (batch.forward_mode is ForwardMode.DECODE)
        self.spend(self.LAUNCH_NS)
        names = [request.name for request in batch.reqs]
        result = Result()
        if batch.forward_mode is ForwardMode.SPLIT_PREFILL:
            self.log.append(("prefill", names, batch.split_index, batch.split_forward_count))
            stream = self.torch.cuda.current_stream()
            if batch.split_index == 0:  # It reads what the scheduler's stream has prepared.
                assert [event.stream for event in stream.waited][:1] == [self.schedule_stream]
                batch.split_forward_batch = object()
            self.work.spin(stream.cuda_stream, LAYER_MS * batch.split_forward_count)
            return result
        self.log.append(("decode", names))
        assert batch.split_forward_batch is None
        with self.forward_stream_ctx:
            self.forward_stream.wait_stream(self.schedule_stream)
            self.backend._graphs[8].replay()
            result.copy_done = self.torch.cuda.Event()
            if any(request.grammar for request in batch.reqs):
                result.delay_sample_func = lambda: None
            else:
                result.copy_done.record(self.forward_stream)
        return result

    def launch_batch_sample_if_needed(self, result: Result, batch: Batch) -> None:
        assert result.delay_sample_func is not None
        self.log.append(("sample",))
        result.delay_sample_func = None
        result.copy_done.record(self.forward_stream)

    def process_batch_result(self, batch: Batch, result: Result) -> None:
        self.enter("process_batch_result")
        assert result.copy_done.query(), "the host would wait here"
        self.log.append(("processed", [request.name for request in batch.reqs]))
        for request in batch.reqs:
            if not request.ended:
                request.tokens.append(now_ms())
                request.ended = request.to_finish or len(request.tokens) >= request.wanted

    def on_idle(self) -> None:
        assert self.last_batch is None
        assert not self.result_queue
        assert not self.running_batch.reqs
        self.idle += 1

    def _apply_war_barrier(self) -> None:
        self.log.append(("barrier",))

    def _abort_on_waiting_timeout(self) -> None: ...

    def _abort_on_running_timeout(self, running_batch: Batch) -> None: ...


def install(monkeypatch: pytest.MonkeyPatch, torch: Any) -> Any:
    """Makes SGLang's modules importable; returns its pdmux_context."""
    torch.inference_mode = nullcontext
    torch.cuda.CUDAGraph = CUDAGraph
    HookRegistry.hooks = {}
    contents: dict[str, dict[str, Any]] = {
        "": {},
        ".version": {"__version__": VERSION},
        ".srt": {},
        ".srt.plugins": {},
        ".srt.plugins.hook_registry": {"HookRegistry": HookRegistry, "HookType": HookType},
        ".srt.multiplex": {},
        ".srt.multiplex.pdmux_context": {},
        ".srt.model_executor": {},
        ".srt.model_executor.forward_batch_info": {"ForwardMode": ForwardMode},
    }
    for name, values in contents.items():
        module = types.ModuleType(f"sglang{name}")
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, f"sglang{name}", module)
    return sys.modules["sglang.srt.multiplex.pdmux_context"]
