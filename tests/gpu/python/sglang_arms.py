"""Arms of tests/gpu/sglang.sh beyond those of SGLang and gcx.engines.sglang, as a plugin of SGLang.

GCX_ARM in the environment is one of
    default, pdmux       SGLang's own
    promise              gcx.engines.sglang
    pair-N               its loop, with N SMs for decode while there is a prompt
    streams              its loop on two plain streams, the highest priority for decode
GCX_ARM_GATE is a file: the scheduler's process begins once it exists, so that several arms can
import at the same time and measure one after the other. GCX_ARM_TRACE is a file that gets a line
for each launch, each end, and each method of the loop that took more than half a millisecond.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gcx.engines.policy import Schedule

plugin: Any = importlib.import_module("gcx.engines.sglang")

METHODS = ("join", "admit", "process", "step", "piece", "arrange", "look", "notice")


def register() -> None:
    """SGLang calls it in each of its processes."""
    arm, gate = os.environ["GCX_ARM"], os.environ.get("GCX_ARM_GATE")
    is_main = multiprocessing.current_process().name == "MainProcess"
    while gate and not is_main and not Path(gate).exists():
        time.sleep(0.05)
    if arm in ("default", "pdmux"):
        return
    change(arm)
    if os.environ.get("GCX_ARM_TRACE") and not is_main:
        file = Path(os.environ["GCX_ARM_TRACE"])
        threading.Thread(target=write, args=(trace(), file), daemon=True).start()
    chosen = os.environ["SGLANG_PLUGINS"]
    os.environ["SGLANG_PLUGINS"] = "gcx"
    try:
        plugin.register()
    finally:
        os.environ["SGLANG_PLUGINS"] = chosen


def change(arm: str) -> None:
    """Replaces what the arm does differently."""
    prepared = plugin.prepared
    if arm.startswith("pair-"):
        split = int(arm.removeprefix("pair-"))

        def with_a_pair(sides: Any, graphs: Any) -> Any:
            policy = prepared(sides, graphs)
            return Fixed(split, policy.whole)

        plugin.prepared = with_a_pair
    elif arm == "streams":
        init_pdmux = plugin.init_pdmux

        def with_priority(scheduler: Any) -> None:
            init_pdmux(scheduler)
            import torch

            pdmux: Any = importlib.import_module("sglang.srt.multiplex.pdmux_context")
            gpu = scheduler.ps.gpu_id
            streams = [torch.cuda.Stream(gpu, priority=priority) for priority in (0, -5)]
            pdmux.STREAM_GROUPS = [tuple(streams)]
            pdmux.CURRENT_STREAM_GROUP = pdmux.STREAM_GROUPS[0]

        plugin.init_pdmux = with_priority
        plugin.Sides, plugin.MovedGraph = PlainSides, PlainGraph
        plugin.prepared = lambda sides, graphs: Fixed(sides.sm_count, sides.sm_count)
    elif arm != "promise":
        raise SystemExit(f"GCX_ARM is {arm!r}; set default, pdmux, promise, pair-48 or streams")


class Fixed(Schedule):
    """A constant split while there is a prompt, with a decode step ahead."""

    promise = 0.0

    def __init__(self, split: int, whole: int) -> None:
        super().__init__()
        self.split, self.whole = split, whole

    def decide(self) -> tuple[bool, int] | None:
        if len(self.decoding) < 2:
            return True, self.split if self.unanswered else self.whole
        return (False, self.split) if self.can_prefill else None


class PlainStream:
    """In the place of a lease and of its stream."""

    def __init__(self, stream: Any) -> None:
        self.stream = self
        self._stream = stream

    def torch(self) -> Any:
        return self._stream


class PlainSides:
    changes = 0

    def __init__(self, sm_count: int, device: int = 0) -> None:
        pdmux: Any = importlib.import_module("sglang.srt.multiplex.pdmux_context")
        self.prefill, self.decode = map(PlainStream, pdmux.STREAM_GROUPS[0])
        self.sm_count = self.split = sm_count

    def arrange(self, decode_sms: int) -> None: ...

    def close(self) -> None: ...


class PlainGraph:
    """In the place of a moved graph. Its nodes have the priority of the stream of the capture."""

    def __init__(self, captured: Any) -> None:
        self._captured = captured

    def replay(self) -> None:
        self._captured.replay()


def write(events: list[Any], file: Path) -> None:
    """Moves events to a file, as lines of JSON."""
    with file.open("a") as out:
        while True:
            time.sleep(1)
            count = len(events)
            out.writelines(json.dumps(event) + "\n" for event in events[:count])
            del events[:count]
            out.flush()


def trace() -> list[Any]:
    """Lets the loop note in this list what it does, with milliseconds."""
    events: list[Any] = []
    for name in METHODS:
        setattr(plugin.Loop, name, timed(getattr(plugin.Loop, name), name, events))
    made = plugin.prepared
    plugin.prepared = lambda *given: traced(made(*given), events)
    return events


def timed(call: Callable[..., Any], name: str, events: list[Any]) -> Callable[..., Any]:
    def wrapped(*given: Any) -> Any:
        began = plugin.now_ms()
        try:
            return call(*given)
        finally:
            took = plugin.now_ms() - began
            if took > 0.5:
                events.append(("host", name, round(began, 3), round(took, 3)))

    return wrapped


def traced(policy: Any, events: list[Any]) -> Any:
    launched, step_ended, piece_ended = policy.launched, policy.step_ended, policy.piece_ended

    def on_launch(is_step: bool, split: int) -> Any:
        launch = launched(is_step, split)
        events.append(("launch", round(plugin.now_ms(), 3), split, launch.piece))
        return launch

    def on_step(at: float) -> Any:
        split, last = policy.decoding[0].split, policy.last_token
        events.append(("step", round(at, 3), split, round(at - last, 3)))
        return step_ended(at)

    def on_piece(at: float) -> Any:
        launch = policy.prefilling[0]
        events.append(("piece", round(at, 3), launch.split, launch.piece))
        if launch.last and hasattr(policy, "ratios"):
            steps = {split: round(policy.expected(split), 2) for split in policy.ratios}
            events.append(("policy", steps, round(policy.deviation, 3)))
        return piece_ended(at)

    policy.launched, policy.step_ended, policy.piece_ended = on_launch, on_step, on_piece
    return policy
