"""gcx.engines.sglang against stand-ins of SGLang's classes, on the simulated driver's clock."""

from __future__ import annotations

import ctypes
import importlib
import itertools
import logging
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gcx
import pytest
import sglang_fakes as fakes  # type: ignore[import-not-found]
from fakes import FakeTorch, events_waited_for  # type: ignore[import-not-found]
from gcx.engines import sglang
from gcx.engines.policy import Policy
from sglang_fakes import Request
from work import Work  # type: ignore[import-not-found]

Script = list[tuple[float, Any]]
PROMISE = 9.0


@pytest.fixture
def pdmux(monkeypatch: pytest.MonkeyPatch, torch: FakeTorch) -> Any:
    monkeypatch.setattr(sglang, "_graphs", None)
    monkeypatch.setattr(sglang, "now_ms", fakes.now_ms)
    monkeypatch.setenv("GCX_PROMISE_MS", str(PROMISE))
    monkeypatch.setenv("SGLANG_PLUGINS", "other, gcx")
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8")
    monkeypatch.delenv("GCX_SGLANG_ANY_VERSION", raising=False)
    return fakes.install(monkeypatch, torch)


class Server:
    """A started scheduler."""

    def __init__(self, torch: FakeTorch, work: Work, script: Script) -> None:
        self.scheduler = fakes.Scheduler(torch, work, script)
        sglang.init_pdmux(self.scheduler)
        self.scheduler.log.clear()
        for size in (16, 8, 4):
            sglang.capture_one(fakes.Backend.capture_one, self.scheduler.backend, size)
        self.work = work

    def serve(self) -> list[tuple[Any, ...]]:
        """Serves the script; returns the calls in their order."""
        self.work.note()
        sglang.event_loop(self.scheduler)
        return list(self.scheduler.log)

    def close(self) -> None:
        self.scheduler.spend(1_000_000_000)  # Work in flight keeps its context.
        for moved in self.scheduler.backend._graphs.values():
            getattr(moved, "graph", moved)._captured.captured.destroy()


Start = Callable[..., Server]


@pytest.fixture
def server(pdmux: Any, torch: FakeTorch, work: Work, folder: Path) -> Any:
    started: list[Server] = []

    def start(*script: tuple[float, Any]) -> Server:
        started.append(Server(torch, work, list(script)))
        return started[-1]

    yield start
    for one in started:
        one.close()
    started.clear()  # pytest still has the function.
    assert gcx.leases() == []


def kernels(server: Server) -> tuple[list[Any], list[Any]]:
    """Returns the kernels of decode and of prefill since serving began."""
    runs = [run for run in server.work.runs() if run.begin_ns / 1e6 >= server.scheduler.began]
    steps = [run for run in runs if run.end_ns - run.begin_ns == 1_000_000]
    return steps, [run for run in runs if run not in steps]


def gaps(request: Request) -> list[float]:
    return [later - one for one, later in zip(request.tokens, request.tokens[1:])]


def test_register_needs_its_name_and_a_tried_version(
    pdmux: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sglang.register()
    scheduler = "sglang.srt.managers.scheduler.Scheduler."
    hooks = fakes.HookRegistry.hooks
    assert hooks[f"{scheduler}init_pdmux"] == (sglang.init_pdmux, fakes.HookType.REPLACE)
    assert hooks[f"{scheduler}event_loop_pdmux"] == (sglang.event_loop, fakes.HookType.REPLACE)
    assert len(hooks) == 4
    hooks.clear()
    monkeypatch.setenv("SGLANG_PLUGINS", "none")
    sglang.register()
    monkeypatch.delenv("SGLANG_PLUGINS")  # SGLang loads all plugins then.
    sglang.register()
    assert not hooks
    monkeypatch.setenv("SGLANG_PLUGINS", "gcx")
    monkeypatch.setattr(sys.modules["sglang.version"], "__version__", "0.6.0")
    with pytest.raises(SystemExit, match=r"SGLang 0\.6\.0 was not tried, only 0\.5\.16; install"):
        sglang.register()
    monkeypatch.setenv("GCX_SGLANG_ANY_VERSION", "1")
    sglang.register()
    assert len(hooks) == 4


def test_register_requests_connections_before_cuda_starts(pdmux: Any, script: Any) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import gcx, pytest, sglang_fakes
from fakes import FakeTorch
from gcx.engines import sglang
sglang_fakes.install(pytest.MonkeyPatch(), FakeTorch())
sglang.register()
gcx.Device(0)
print(gcx.queue_info().connections)
"""
    assert script(code) == "32\n"


@pytest.mark.parametrize(
    ("argument", "value", "words"),
    [
        ("pp_size", 2, "pp_size is 2; use --pp-size 1"),
        ("tp_size", 4, "tp_size is 4; use --tp-size 1: its ranks"),
        ("enable_lora", True, "enable_lora is True; serve LoRA adapters without --enable-pdmux"),
        ("speculative_algorithm", "EAGLE", "speculative_algorithm is 'EAGLE'; leave out"),
        ("enable_dp_attention", True, "enable_dp_attention is True; leave out"),
        ("disaggregation_mode", "prefill", "disaggregation_mode is 'prefill'; leave out"),
        ("decode_backend", "disabled", "backend of decode's CUDA graphs is 'disabled'; use 'full'"),
        ("prefill_backend", "full", "backend of prefill's CUDA graphs is 'full'; use 'disabled'"),
    ],
)
def test_arguments_that_cannot_be_served_are_refused(
    pdmux: Any, argument: str, value: object, words: str
) -> None:
    arguments = fakes.ServerArgs(**{argument: value})
    with pytest.raises(ValueError, match="can't serve this: ") as raised:
        sglang.check_server_args(arguments)
    assert words in str(raised.value)
    assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == "8"


def test_arguments_that_can_be_served_get_connections(
    pdmux: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sglang.check_server_args(fakes.ServerArgs(enable_pdmux=False, pp_size=2))
    assert "no effect without --enable-pdmux" in caplog.text
    assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == "8"
    sglang.check_server_args(fakes.ServerArgs())
    assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == "32"
    for wrong in ("soon", "0", "-3", "nan"):
        monkeypatch.setenv("GCX_PROMISE_MS", wrong)
        with pytest.raises(ValueError, match=f"GCX_PROMISE_MS is '{wrong}'; set the milliseconds"):
            sglang.check_server_args(fakes.ServerArgs())


def test_graphs_are_captured_once_in_plain_streams(
    pdmux: Any, torch: FakeTorch, work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    backend = fakes.Backend(work)
    sglang.capture_one(fakes.Backend.capture_one, backend, 4)  # Without --enable-pdmux.
    assert isinstance(backend._graphs[4], fakes.CUDAGraph)
    backend._graphs.pop(4).captured.destroy()
    scheduler = fakes.Scheduler(torch, work, [])
    with caplog.at_level(logging.INFO, "gcx.engines.sglang"):
        sglang.init_pdmux(scheduler)
    assert "connections (" in caplog.text
    ((prefill, decode),) = pdmux.STREAM_GROUPS
    assert prefill.cuda_stream != decode.cuda_stream
    assert (pdmux.SM_COUNTS, pdmux.CURRENT_STREAM_IDX) == ([(132, 132)], 0)
    arguments = scheduler.server_args
    assert (arguments.disable_overlap_schedule, arguments.sm_group_num) == (False, 1)
    assert scheduler.enable_overlap
    sglang.capture_one(fakes.Backend.capture_one, backend, 4)
    assert isinstance(backend._graphs[4], sglang.MovedGraph)
    captured: Any = backend._graphs[4].graph._captured

    def failing(*_: object) -> None:
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        sglang.capture_one(failing, backend, 8)
    assert torch.cuda.CUDAGraph is fakes.CUDAGraph
    captured.captured.destroy()


def test_decode_goes_on_next_to_prefill(server: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long decode, and later a prompt whose steps have 24 and 48 SMs in turns: SMs are disjoint,
    no host thread waits, the promise is kept, and each side has all SMs while it is alone."""
    decide, splits = Policy.decide, itertools.cycle((24, 48))

    def in_turns(policy: Policy) -> Any:
        choice = decide(policy)
        return (True, next(splits)) if choice and choice[0] and choice[1] < 132 else choice

    monkeypatch.setattr(Policy, "decide", in_turns)
    long, prompt = Request("long", 512, 60), Request("prompt", 4096, 5)
    running = server((0, long), (30, prompt))
    resize = gcx.resize

    def noted(sizes: Any) -> None:
        running.scheduler.log.append(("resize", running.scheduler.is_running_batch))
        resize(sizes)

    monkeypatch.setattr(gcx, "resize", noted)
    calls = running.scheduler.sim.gcx_sim_calls
    calls.restype = ctypes.c_uint64
    waits = ("cuEventSynchronize", "cuStreamSynchronize", "cuCtxSynchronize")
    before: list[int] = []
    receive = running.scheduler.recv_requests

    def first() -> Any:
        if not before:
            before.extend(calls(name.encode()) for name in waits)
        return receive()

    running.scheduler.request_receiver.recv_requests = first
    log = running.serve()
    assert [calls(name.encode()) for name in waits] == before
    assert (len(long.tokens), len(prompt.tokens)) == (60, 5)
    steps, pieces = kernels(running)
    for step in steps:
        for piece in pieces:
            if step.begin_ns < piece.end_ns and piece.begin_ns < step.end_ns:
                assert not {*step.sms} & {*piece.sms}
                assert len(step.sms) + len(piece.sms) <= 132
    assert {len(run.sms) for run in steps} > {132}
    assert len(pieces[0].sms) == 132  # The first prompt, next to nothing.
    assert len(steps[-1].sms) == 132
    assert max(gaps(long)) <= PROMISE
    # Layers of a prompt in order and each once, with decode steps among them.
    layers = [entry[2:] for entry in log if entry[:2] == ("prefill", ["prompt"])]
    assert [first for first, _ in layers] == [
        sum(n for _, n in layers[:i]) for i in range(len(layers))
    ]
    assert sum(count for _, count in layers) == fakes.LAYERS
    at = [number for number, entry in enumerate(log) if entry[:2] == ("prefill", ["prompt"])]
    assert ("decode", ["long"]) in log[at[0] : at[-1]]
    assert ("resize", False) in log[at[0] : at[-1]]  # In mid-prefill.
    assert ("resize", True) not in log
    assert running.scheduler.running_batch.is_empty()


def test_quiet_decode_is_launched_ahead(server: Start) -> None:
    """The host processes the result of a step while the next one runs."""
    one = Request("one", 512, 40)
    running = server((0, one))
    log = [entry[0] for entry in running.serve() if entry[0] in ("decode", "processed")]
    assert log[:3] == ["processed", "decode", "decode"]
    assert log[3:41] == ["decode", "processed"] * 19
    steps, _ = kernels(running)
    pauses = [later.begin_ns - step.end_ns for step, later in zip(steps, steps[1:])]
    assert max(pauses[2:-1]) < running.scheduler.LAUNCH_NS / 4
    assert {len(step.sms) for step in steps} == {132}


def test_prompt_in_mid_prefill_joins_after_the_batch(server: Start) -> None:
    long, first, second = Request("long", 512, 90), Request("first"), Request("second")
    running = server((0, long), (20, first), (28, second))
    log = running.serve()
    order = [entry[1] for entry in log if entry[0] == "prefill"]
    changes = [names for names, last in zip(order, [None, *order]) if names != last]
    assert changes == [["long"], ["first"], ["second"]]
    joined = log.index(("processed", ["first"]))
    arrived = [n for n, entry in enumerate(log) if entry[0] == "TokenizedGenerateReqInput"]
    assert log.index(("prefill", ["first"], 0, 1)) < arrived[-1] < joined
    assert first.tokens[0] < second.tokens[0]
    assert max(gaps(long)) <= PROMISE
    assert ("decode", ["long", "first"]) in log[joined:]


@pytest.mark.parametrize(("promise", "layers"), [("9", 1), ("40", 4)])
def test_pieces_take_a_part_of_the_promised_time(
    server: Start, monkeypatch: pytest.MonkeyPatch, promise: str, layers: int
) -> None:
    monkeypatch.setenv("GCX_PROMISE_MS", promise)
    running = server((0, Request("first", 4096, 60)), (40, Request("second", 4096, 3)))
    log = running.serve()
    counts = [[e[3] for e in log if e[:2] == ("prefill", [name])] for name in ("first", "second")]
    assert counts[0] == [1] * fakes.LAYERS  # Nothing is known yet.
    assert counts[1] == [layers] * (fakes.LAYERS // layers)


def test_abort_in_mid_prefill_ends_the_request(server: Start) -> None:
    long, prompt = Request("long", 512, 40), Request("prompt", 4096, 100)
    running = server((0, long), (20, prompt), (26, fakes.AbortReq("prompt")))
    log = running.serve()
    assert any(entry[0] == "AbortReq" and entry[2] is False for entry in log)
    assert len(prompt.tokens) == 1
    assert not any(entry[0] == "decode" and "prompt" in entry[1] for entry in log)
    assert len(long.tokens) == 40


def test_grammar_is_sampled_behind_the_result_before(server: Start) -> None:
    one = Request("one", 512, 12, grammar=True)
    log = [entry[0] for entry in server((0, one)).serve()]
    log = [name for name in log if name in ("decode", "sample", "processed")]
    assert log[:3] == ["processed", "decode", "sample"]
    body = log[3:-2]
    for number, name in enumerate(body):
        if name == "sample":
            assert body[number - 1] == "processed"
    assert log.count("sample") == log.count("decode") >= 11
    assert len(one.tokens) == 12


def test_grammar_is_sampled_while_prefill_has_all_sms(
    server: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece on all SMs is launched between a step and its sample."""
    one, prompt = Request("one", 512, 30, grammar=True), Request("prompt", 4096, 3, grammar=True)
    running = server((0, one), (12, prompt))
    parked: list[bool] = []

    def late(loop: sglang.Loop) -> None:
        if loop.policy.prefilling and loop.scheduler.result_queue and loop.policy.waiting:
            loop.piece(0)
            parked.append(True)
        process(loop)

    process = sglang.Loop.process
    monkeypatch.setattr(sglang.Loop, "process", late)
    running.serve()
    assert parked
    assert (len(one.tokens), len(prompt.tokens)) == (30, 3)


def test_pause_waits_until_nothing_is_in_flight(server: Start) -> None:
    long, prompt = Request("long", 512, 40), Request("prompt", 4096, 5)
    running = server(
        (0, long), (20, prompt), (24, fakes.GetInternalStateReq()),
        (26, fakes.PauseGenerationReqInput()),
    )  # fmt: skip
    log = running.serve()
    assert ("PauseGenerationReqInput", 0, True) in log
    (state,) = (entry for entry in log if entry[0] == "GetInternalStateReq")
    assert state[2] is False  # In mid-prefill.
    assert (len(long.tokens), len(prompt.tokens)) == (40, 5)


@pytest.mark.parametrize("at_the_end", [True, False])
def test_prefill_waits_for_steps_whose_memory_it_may_get(server: Start, at_the_end: bool) -> None:
    """A prompt arrives when a request has ended that is still in the steps in flight, or when none
    has."""
    short, other = Request("short", 512, 10), Request("other", 512, 30)
    running = server((0, short), (0, other))
    scheduler = running.scheduler
    process = scheduler.process_batch_result

    def then_a_prompt(batch: Any, result: Any) -> None:
        process(batch, result)
        if len(short.tokens) == (10 if at_the_end else 5) and len(scheduler.everyone) == 2:
            scheduler.script.append((0, Request("prompt")))
            events_waited_for.clear()

    scheduler.process_batch_result = then_a_prompt
    running.serve()
    of_steps = [one for _, one in events_waited_for if one.stream is not scheduler.schedule_stream]
    assert len(of_steps) == at_the_end
    assert len(events_waited_for) > 10  # Each step waits for the scheduler's stream.


def test_retracted_request_is_memory_in_use(server: Start) -> None:
    scheduler: Any = server().scheduler
    alive, retracted = Request("alive"), Request("retracted", is_retracted=True)
    scheduler.running_batch = fakes.Batch([alive])
    sides: Any = types.SimpleNamespace(sm_count=132)
    policy = Policy({24: 2.0, 132: 1.0}, PROMISE)
    loop = sglang.Loop(scheduler, sides, policy)
    scheduler.result_queue.append((fakes.Batch([alive]), fakes.Result()))
    assert not loop.may_have_memory_in_use()
    scheduler.result_queue.append((fakes.Batch([alive, retracted]), fakes.Result()))
    assert loop.may_have_memory_in_use()
    scheduler.result_queue.pop()
    scheduler.is_hybrid_swa = True
    assert loop.may_have_memory_in_use()
    scheduler.result_queue.clear()
    assert not loop.may_have_memory_in_use()
    # The request is not admitted before the result of that step was dropped.
    scheduler.result_queue.append((fakes.Batch([alive, retracted]), fakes.Result()))
    scheduler.waiting_queue = [retracted]
    loop.admit()
    assert scheduler.split_prefill_batch is None
    scheduler.result_queue.clear()
    loop.admit()
    assert scheduler.last_batch.reqs == [retracted]


@pytest.mark.parametrize("method", ["run_batch", "process_batch_result", "get_new_batch_prefill"])
@pytest.mark.parametrize("at", [0, 25])
def test_exception_of_sglang_leaves_no_lease(
    server: Start, monkeypatch: pytest.MonkeyPatch, method: str, at: float
) -> None:
    running = server((0, Request("long", 512, 60)), (20, Request("prompt")), (at, "fail"))
    handle = running.scheduler.process_input_requests

    def process(requests: list[Any]) -> None:
        if "fail" in requests:
            assert {lease.name for lease in gcx.leases()} == {"decode", "prefill"}
            running.scheduler.fail = method
        handle(requests)

    running.scheduler.process_input_requests = process
    monkeypatch.setattr(sglang, "WHILE_BUSY", sglang.WHILE_BUSY | {"str"})
    with pytest.raises(RuntimeError, match=f"an exception in {method}"):
        running.serve()
    assert gcx.leases() == []
    with gcx.acquire(None) as lease:
        assert lease.sm_count == 132


def test_leases_are_published_while_it_serves(server: Start) -> None:
    running = server((0, Request("one", 512, 5)))
    running.serve()
    found = {lease.name: lease.sm_count for lease in running.scheduler.leases}
    assert found.keys() == {"decode", "prefill"}
    assert [process.name for process in gcx.published_processes()] == ["sglang"]


def test_idle_scheduler_is_told_and_wakes_up(server: Start) -> None:
    first, second = Request("first", 512, 5), Request("second", 512, 5)
    running = server((5, first), (60, second))
    running.serve()
    assert running.scheduler.idle > 100
    assert (len(first.tokens), len(second.tokens)) == (5, 5)
    assert running.scheduler.cur_batch_for_debug is None


@pytest.mark.parametrize("arm", ["promise", "pair-48", "streams"])
def test_arms_of_the_benchmark_serve_and_are_traced(
    server: Start, monkeypatch: pytest.MonkeyPatch, arm: str
) -> None:
    for name in ("prepared", "init_pdmux", "Sides", "MovedGraph"):
        monkeypatch.setattr(sglang, name, getattr(sglang, name))
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[3] / "tests" / "gpu" / "python")
    arms: Any = importlib.import_module("sglang_arms")
    for name in arms.METHODS:
        monkeypatch.setattr(sglang.Loop, name, getattr(sglang.Loop, name))
    arms.change(arm)
    noted = arms.trace()
    long, prompt = Request("long", 512, 40), Request("prompt", 4096, 5)
    running = server((0, long), (20, prompt))
    running.serve()
    assert (len(long.tokens), len(prompt.tokens)) == (40, 5)
    splits = {entry[2] for entry in noted if entry[0] == "launch"}
    assert splits == {"pair-48": {0, 48, 132}, "streams": {0, 132}}.get(arm, splits)
    assert ("policy" in {entry[0] for entry in noted}) == (arm == "promise")
    steps, pieces = kernels(running)
    for step, piece in ((step, piece) for step in steps for piece in pieces):
        if step.begin_ns < piece.end_ns and piece.begin_ns < step.end_ns and arm != "streams":
            assert not {*step.sms} & {*piece.sms}


def test_report_has_the_tokens(
    server: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sglang, "REPORT_MS", 10)
    with caplog.at_level(logging.DEBUG, "gcx.engines.sglang"):
        server((0, Request("long", 512, 60)), (20, Request("prompt"))).serve()
    assert "promises 9.0 ms a token; decode on 16/24/32/40/48/64/80/132 SMs: 1.0" in caplog.text
    assert "tokens in a row, p99 " in caplog.text
    assert "16 SMs for decode" in caplog.text
    assert "prefills 1 requests in" in caplog.text


def test_what_cannot_be_served_ends_at_the_start(
    server: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = server()
    monkeypatch.setenv("GCX_PROMISE_MS", "0.5")
    with pytest.raises(ValueError, match=r"0\.5 ms a token can't be promised: a decode step alone"):
        running.serve()
    assert gcx.leases() == []
    del running.scheduler.tp_worker.model_runner.model.forward_split_prefill
    with pytest.raises(ValueError, match="has no forward_split_prefill; serve it without"):
        running.serve()
    running.scheduler.tp_worker.model_runner.model.forward_split_prefill = None
    monkeypatch.setattr(sglang, "_graphs", {})
    with pytest.raises(ValueError, match="no CUDA graph of decode was captured"):
        running.serve()
