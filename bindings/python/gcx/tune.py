"""Measures whether a split of the SMs pays for some works, and which one.

gcx.tune(...) calls the function tune of this module. python -m gcx.tune MODULE:FUNCTION
MODULE:FUNCTION is its command line.
"""

from __future__ import annotations

import argparse
import html
import importlib
import inspect
import io
import itertools
import json
import math
import os
import random
import statistics
import sys
import time
import types
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, Union

from gcx._checks import DeviceLike, ordinal_of
from gcx._current import current
from gcx._device import Device
from gcx._driver import driver_info
from gcx._errors import Error, NotSupportedError
from gcx._event import Event
from gcx._graph import Graph
from gcx._lease import Lease, acquire
from gcx._partition import Partition, split
from gcx._queue import queue_info
from gcx._stream import Stream

#: What tune measures: a callable that launches into the current stream, or into the gcx.Stream that
#: is its one required argument; a gcx.Graph; a torch.cuda.CUDAGraph(keep_graph=True).
Work = Union[Callable[[], object], Callable[[Stream], object], Graph, Any]
Objective = Literal["time", "latency"]

_SIMPLEST = ("plain", "sequence", "priority", "split")
_GAIN = 0.98  # another arm is advised if it takes less than this share of a simpler one's time
_KNEE = 1.05  # more SMs bring nothing where the time is within this of the time on all
_SAMPLES = 3  # of each arm before one can be dropped
_FINAL = 9  # of the arms that are left at the end
_DEPTH = 2  # queued rounds of a work that runs without pause
_LAUNCH_BOUND = 0.9  # part of a work's time above which the host's launches determine it
_ROUNDS = 2  # of a sample of the round's time, after one that isn't counted
_SECONDS = 30.0


@dataclass(frozen=True)
class Arm:
    """A way to run the works together."""

    kind: str  #: "sequence", "plain", "priority" or "split".
    counts: tuple[int, ...] = ()  #: SMs of each work in a split.
    urgent: str = ""  #: The work whose stream has the highest priority.
    reported: bool = False  #: Whether cuBLAS plans for the SMs of the partition.

    def __str__(self) -> str:
        if self.kind == "split":
            text = "split " + "/".join(map(str, self.counts))
            return text + ", count reported" if self.reported else text
        names = {"sequence": "in sequence", "plain": "plain streams"}
        return names.get(self.kind, f"priority for {self.urgent}")


@dataclass
class Sample:
    """One measurement of an arm."""

    round_ms: float = 0.0  #: One round of all works, from the end of the round before.
    latency_ms: dict[str, list[float]] = field(default_factory=dict)
    #: Rounds per second of the works without a deadline, relative to that alone on all SMs.
    speed: dict[str, float] = field(default_factory=dict)


class Machine(Protocol):
    """Runs works: a GPU, or a model of one in tests."""

    names: tuple[str, ...]
    sm_count: int
    sizes: tuple[int, ...]  # that a part can have, ascending; the last part gets the rest
    can_report: bool
    simulated: bool

    def alone(self, name: str, sm_count: int) -> float:
        """Returns the milliseconds of one round of a work on some SMs, with nothing else."""

    def sample(self, arm: Arm, goal: Goal, window_ms: float) -> Sample:
        """Measures an arm. Raises if a work does not run in it."""


@dataclass(frozen=True)
class Goal:
    """What is to be improved."""

    objective: str  # "time", "latency" or "promise"
    critical: dict[str, float]  # works with a deadline in ms, or 0 for the least latency
    keep: dict[str, float]  # the least speed of the others

    def score(self, samples: Sequence[Sample]) -> tuple[float, float]:
        """Returns by how much the conditions are missed, and what is to be small."""
        if self.objective == "time":
            return 0.0, statistics.median(sample.round_ms for sample in samples)
        p99 = self.p99(samples)
        speeds = self.speeds(samples)
        if self.objective == "promise":
            missed = sum(max(0.0, p99[name] / ms - 1) for name, ms in self.critical.items())
            if not speeds:
                return missed, max(p99.values())
            return missed, 1 / max(statistics.fmean(speeds.values()), 1e-9)
        missed = sum(max(0.0, share - speeds[name]) for name, share in self.keep.items())
        return missed, max(p99.values())

    def p99(self, samples: Sequence[Sample]) -> dict[str, float]:
        return {
            name: _p99([ms for sample in samples for ms in sample.latency_ms[name]])
            for name in self.critical
        }

    def speeds(self, samples: Sequence[Sample]) -> dict[str, float]:
        names = samples[0].speed
        return {name: statistics.median(one.speed[name] for one in samples) for name in names}


@dataclass
class Measured:
    """An arm with its samples."""

    arm: Arm
    samples: list[Sample] = field(default_factory=list)
    refused: str = ""  #: Why a work does not run in it.
    dropped: bool = False  #: Whether measuring ended early, because it cannot win.


class Search:
    """Measures arms until the best is known, from coarse sizes to fine ones."""

    def __init__(
        self, machine: Machine, goal: Goal, seconds: float, say: Callable[[str], None]
    ) -> None:
        self.machine, self.goal, self.say = machine, goal, say
        self.window_ms = seconds * 1e3 * 0.5 / 60  # there are about 60 samples
        # The simulated driver gives the same result each time, however long that takes.
        self.deadline = math.inf if machine.simulated else time.monotonic() + seconds
        self.alone: dict[str, dict[int, float]] = {name: {} for name in machine.names}
        self.found: dict[Arm, Measured] = {}
        self.interrupted = False

    def run(self) -> None:
        try:
            self._run()
        except KeyboardInterrupt:
            if not any(one.samples for one in self.found.values()):
                raise
            self.interrupted = True

    def _run(self) -> None:
        machine = self.machine
        all_sms = machine.sm_count
        quarters = [all_sms * part // 4 for part in (1, 2, 3)]
        sizes = [_nearest(machine.sizes, quarter) for quarter in quarters if machine.sizes]
        for number in range(_SAMPLES):
            for name, sms in itertools.product(machine.names, [all_sms, *sizes]):
                if number == 0 or not self.late:
                    self.measure_alone(name, sms)
        without = [Arm("sequence"), Arm("plain")]
        without += [Arm("priority", urgent=name) for name in machine.names]
        # Coarse, so that there are few splits, but each leaves the last work some SMs.
        count, others = len(machine.sizes), len(machine.names) - 1
        step = max(1, min(count // 8 * others, count // (others + 2)))
        self.compete([*without, *self.splits(step)])
        while (before := self.best_split()) is not None:
            self.compete(self.near(before, step))
            if self.best_split() is before and step == 1:
                break
            step = max(1, step // 2)
        best = self.best_split()
        if best is not None and machine.can_report:
            self.compete([Arm("split", best.arm.counts, reported=True)])
        while len((leading := sorted(self.measured(), key=self.rank)[:3])[0].samples) < _FINAL:
            leading[0].dropped = False  # It lost to an arm of which more is known now.
            self.compete([one.arm for one in leading] + without, _FINAL)
            if self.late:
                break
        best = self.best_split()
        for name, sms in zip(machine.names, best.arm.counts if best else ()):
            if not self.late:
                self.measure_alone(name, sms)

    def measure_alone(self, name: str, sms: int) -> None:
        self.say(f"{name} alone on {sms} SMs")
        try:
            ms = self.machine.alone(name, sms)
        except Exception:
            if sms == self.machine.sm_count:
                raise
            return  # A split with so few SMs is refused with the reason.
        self.alone[name][sms] = min(ms, self.alone[name].get(sms, math.inf))

    @property
    def late(self) -> bool:
        return time.monotonic() > self.deadline

    def compete(self, arms: Sequence[Arm], samples: int = _SAMPLES) -> None:
        """Measures the arms in turns until each has as many samples or cannot win."""
        for _ in range(samples):
            for arm in arms:
                one = self.found.setdefault(arm, Measured(arm))
                if one.refused or one.dropped or len(one.samples) >= samples:
                    continue
                if self.late and one.samples:
                    continue
                if self.late and any(other.samples for other in self.found.values()):
                    del self.found[arm]
                    continue
                self.say(str(arm))
                try:
                    one.samples.append(self.machine.sample(arm, self.goal, self.window_ms))
                except Exception as error:
                    if arm.kind != "split":
                        raise
                    one.refused = str(error).partition("\n")[0]
                self.drop(one)

    def drop(self, one: Measured) -> None:
        """Drops an arm all of whose samples are worse than the worst of the leading arm."""
        leader = min(self.measured(), key=self.rank, default=None)
        if leader is None or leader is one or len(one.samples) < _SAMPLES:
            return
        least = min(self.goal.score([sample]) for sample in one.samples)
        if len(leader.samples) >= _SAMPLES:
            one.dropped = least > max(self.goal.score([sample]) for sample in leader.samples)

    def measured(self) -> list[Measured]:
        return [one for one in self.found.values() if one.samples and not one.refused]

    def rank(self, one: Measured) -> tuple[float, float]:
        return self.goal.score(one.samples)

    def best_split(self) -> Measured | None:
        splits = [one for one in self.measured() if one.arm.kind == "split"]
        return min(splits, key=self.rank, default=None)

    def splits(self, step: int) -> list[Arm]:
        """Returns splits whose sizes are step apart."""
        sizes, parts = self.machine.sizes, len(self.machine.names) - 1
        chosen = sizes[step - 1 :: step]
        found = [self.arm(counts) for counts in itertools.product(chosen, repeat=parts)]
        return [arm for arm in found if arm is not None]

    def arm(self, counts: Sequence[int]) -> Arm | None:
        rest = self.machine.sm_count - sum(counts)
        valid = all(count in self.machine.sizes for count in counts)
        return Arm("split", (*counts, rest)) if valid and rest >= self.machine.sizes[0] else None

    def near(self, best: Measured, step: int) -> list[Arm]:
        """Returns the splits next to the best one, which move SMs between two works."""
        sizes = self.machine.sizes
        at = [sizes.index(count) for count in best.arm.counts[:-1]]
        moves: list[list[int]] = []
        for index in range(len(at)):
            for by in (-step, step):
                moves.append([*at[:index], at[index] + by, *at[index + 1 :]])
        for one, other in itertools.permutations(range(len(at)), 2):
            moved = list(at)
            moved[one], moved[other] = moved[one] + step, moved[other] - step
            moves.append(moved)
        found = [
            self.arm([sizes[index] for index in move])
            for move in moves
            if all(0 <= index < len(sizes) for index in move)
        ]
        return [arm for arm in found if arm is not None and arm not in self.found]


class Tuning:
    """The result of tune. str() is the verdict and the table; notebooks show both.

    Attributes:
        verdict: What to do, in one sentence, with the reasons in figures.
        best: The arm to use, a Choice.
        arms: Each arm with its samples, the best first.
        alone: For each work the milliseconds of one round alone, by SM count.
        facts: The GPU, driver and gcx version, the objective, and whether it is SIMULATED.
        interrupted: Whether Ctrl-C ended it before all was measured.
    """

    def __init__(
        self,
        facts: dict[str, Any],
        goal: Goal,
        alone: dict[str, dict[int, float]],
        arms: list[Measured],
        interrupted: bool,
    ) -> None:
        self.facts, self._goal, self.alone, self.interrupted = facts, goal, alone, interrupted
        valid = [one for one in arms if one.samples and not one.refused]
        valid.sort(key=lambda one: goal.score(one.samples))
        self.arms = valid + [one for one in arms if one.refused]
        splits = [one for one in valid if one.arm.kind == "split"]
        without = [one for one in valid if one.arm.kind != "split"]
        self._split, self._without = splits[0] if splits else None, without[0]
        self.best = Choice(self, self._choose(valid))
        self.verdict = _verdict(self)

    def _choose(self, valid: list[Measured]) -> Measured:
        """Returns the simplest of the arms that are as good as the best."""
        missed, least = self._goal.score(valid[0].samples)
        good = [one for one in valid if self._goal.score(one.samples) <= (missed, least / _GAIN)]
        return min(good, key=lambda one: (_SIMPLEST.index(one.arm.kind), one.arm.reported))

    @property
    def simulated(self) -> bool:
        """Whether it was measured on the simulated driver, which proves nothing."""
        return bool(self.facts["simulated"])

    def _rows(self) -> list[tuple[str, ...]]:
        head: tuple[str, ...]
        if self._goal.objective == "time":
            head = ("", "round ms", "least", "samples")
        else:
            speeds = [f"{name} speed" for name in self._others]
            head = ("", *(f"{name} p99 ms" for name in self._goal.critical), *speeds, "samples")
        rows = [head]
        for one in self.arms:
            if one.refused:
                rows.append((str(one.arm), f"refused: {one.refused}"))
                continue
            if self._goal.objective == "time":
                times = [sample.round_ms for sample in one.samples]
                figures = [f"{statistics.median(times):.3f}", f"{min(times):.3f}"]
            else:
                figures = [f"{ms:.3f}" for ms in self._goal.p99(one.samples).values()]
                figures += [f"{share:.2f}" for share in self._goal.speeds(one.samples).values()]
            rows.append((str(one.arm), *figures, f"{len(one.samples)}"))
        return rows

    @property
    def _others(self) -> list[str]:
        return [name for name in self.alone if name not in self._goal.critical]

    @property
    def table(self) -> str:
        """The arms as a text table, the best first."""
        rows = self._rows()
        widths = [max(len(row[i]) for row in rows if len(row) == len(rows[0]))
                  for i in range(len(rows[0]))]  # fmt: skip
        widths[0] = max(len(row[0]) for row in rows)
        lines = []
        for row in rows:
            cells = [row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    def __str__(self) -> str:
        mark = "SIMULATED: no GPU is involved\n" if self.simulated else ""
        return f"{mark}{self.verdict}\n\n{self.table}"

    def __repr__(self) -> str:
        mark = "SIMULATED " if self.simulated else ""
        return f"<gcx.Tuning: {mark}{self.best.arm}>"

    def _repr_html_(self) -> str:
        mark = "<p>SIMULATED: no GPU is involved</p>" if self.simulated else ""
        head, *rows = self._rows()
        cells = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        verdict = html.escape(self.verdict)
        return f"{mark}<p>{verdict}</p><table><tr>{cells}</tr>{body}</table>"

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Writes the arms as an SVG that follows the viewer's light or dark preference.

        Raises:
            ImportError: matplotlib isn't installed.
        """
        import matplotlib

        matplotlib.use("svg")
        from matplotlib import pyplot

        shown = [one for one in self.arms if not one.refused][:12][::-1]
        values = [self._goal.score(one.samples)[1] for one in shown]
        label = "round of all, ms" if self._goal.objective == "time" else "p99, ms"
        if self._goal.objective == "promise" and self._others:
            values, label = [1 / value for value in values], "speed of the others"
        figure, axes = pyplot.subplots(figsize=(5, 0.35 * len(shown) + 1.2), layout="constrained")
        chosen = [one.arm == self.best.arm for one in shown]
        axes.barh(list(map(str, (one.arm for one in shown))), values,
                  color=["#2a78b8" if best else "#9aa4ae" for best in chosen])  # fmt: skip
        title = f"{'SIMULATED ' if self.simulated else ''}{self.facts['device']}"
        axes.set(xlabel=label, title=title)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        pyplot.close(figure)
        Path(path).write_text(text.getvalue().replace("<defs>", _DARK + "<defs>", 1), "utf-8")

    def to_json(self) -> str:
        """Returns it as JSON, for load."""
        value = {
            "facts": self.facts,
            "goal": asdict(self._goal),
            "alone": {name: list(times.items()) for name, times in self.alone.items()},
            "arms": [asdict(one) for one in self.arms],
            "interrupted": self.interrupted,
            "verdict": self.verdict,
        }
        return json.dumps(value)

    @classmethod
    def load(cls, text: str, *, device: DeviceLike = 0) -> Tuning:
        """Returns the tuning that to_json gave.

        Raises:
            ValueError: It is of another GPU, driver or version of gcx, or not a tuning.
        """
        now = _facts(ordinal_of(device))
        try:
            value = json.loads(text)
            facts = dict(value["facts"])
            others = [key for key, here in now.items() if facts.get(key) != here]
            if not others:
                alone = {name: dict(times) for name, times in value["alone"].items()}
                arms = [_measured_of(one) for one in value["arms"]]
                return cls(facts, Goal(**value["goal"]), alone, arms, bool(value["interrupted"]))
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"this is no tuning of gcx: {error}") from None
        key = others[0]
        raise ValueError(
            f"the tuning is for another {key}: {facts.get(key)}, but this is {now[key]}; call "
            "gcx.tune again"
        )


class Choice:
    """The arm to use."""

    def __init__(self, tuning: Tuning, measured: Measured) -> None:
        self._tuning, self.arm, self.samples = tuning, measured.arm, measured.samples

    def __repr__(self) -> str:
        return f"<gcx.Choice: {self.arm}>"

    @property
    def counts(self) -> dict[str, int]:
        """The SMs of each work; empty unless it is a split."""
        return dict(zip(self._tuning.alone, self.arm.counts))

    def apply(self, *, device: DeviceLike = 0) -> dict[str, Lease]:
        """Acquires a lease with the SMs of each work, to be closed by the caller.

        Raises:
            ValueError: The best is not a split.
            AlreadyAcquiredError: Other leases have the SMs; nothing was acquired.
        """
        if self.arm.kind != "split":
            raise ValueError(f"there is nothing to lease, because the best is: {self.arm}")
        leases: dict[str, Lease] = {}
        with ExitStack() as undo:
            for name, count in self.counts.items():
                leases[name] = undo.enter_context(acquire(count, device=device, name=name))
            undo.pop_all()
        return leases


def tune(
    works: Mapping[str, Work],
    *,
    objective: Objective = "time",
    critical: str | None = None,
    keep: float | Mapping[str, float] = 0.8,
    promise_ms: Mapping[str, float] | None = None,
    check: Callable[[], object] | None = None,
    moved_bytes: Mapping[str, float] | None = None,
    device: DeviceLike = 0,
    seconds: float = _SECONDS,
) -> Tuning:
    """Measures whether a split of the SMs pays for two to four works, and which.

    >>> tuning = gcx.tune({"decode": step, "prefill": prompt}, promise_ms={"decode": 17.5})
    >>> print(tuning.verdict)
    >>> leases = tuning.best.apply()

    In turns within one run it measures each work alone, all in sequence, on plain streams, with
    priority for each, and on splits from coarse sizes to fine ones; the best split also with its SM
    count reported to cuBLAS, if works are callables that use PyTorch. Plain streams are streams of
    a context over all SMs. An arm whose every sample is worse than the leading arm's worst is not
    measured further. Ctrl-C returns what is known. No other program may use the GPU.

    Times are from CUDA events. Rounds follow each other without a pause, so that what the host
    needs to launch a work counts only where it is longer than the work; a p99 includes it. If a
    work launches many kernels, capture it as a graph.

    Args:
        works: Two to four works by name, in the order of a split's counts. Each is called many
            times, from this thread.
        objective: "time": the least time for one round of all works. "latency": the least p99 of
            one work, launched at random moments while the others run without pause.
        critical: The work of "latency"; by default the first.
        keep: With "latency", the least speed of the others, relative to that alone on all SMs.
        promise_ms: Instead of an objective: the p99 in milliseconds that works are to keep, each
            launched again as soon as it ends; then the highest speed of the others.
        check: Called after the first round of each arm. Returns a value that must be equal in all
            arms, such as a checksum of the results; an arm where it differs is refused.
        moved_bytes: Bytes that one round of a work moves between memory and SMs. The verdict names
            bandwidth only with them.
        device: An ordinal, a gcx.Device or a torch.device.
        seconds: After this time only what was begun is finished. Works of up to 10 ms need at most
            the default of 30.

    Raises:
        ValueError: There are fewer than two or more than four works, or an argument names none.
        TypeError: A work is none of the kinds.
        What a work raises on the whole device.
    """
    goal = _goal(works, objective, critical, keep, promise_ms)
    unknown = set(moved_bytes or {}) - set(works)
    if unknown:
        raise ValueError(f"moved_bytes names {', '.join(sorted(unknown))}, which is not a work")
    if not seconds > 0:
        raise ValueError(f"seconds must be positive, not {seconds}")
    with _Gpu(works, ordinal_of(device), check) as machine:
        line = _Line()
        search = Search(machine, goal, seconds, lambda text: line.show(f"gcx.tune: {text}"))
        try:
            search.run()
        finally:
            line.show("")
        facts = {**_facts(machine.device), "moved_bytes": dict(moved_bytes or {})}
        facts["connections"] = queue_info().connections
        facts["launch_ms"] = machine.launch_ms
        arms = [*search.found.values()]
        return Tuning(facts, goal, search.alone, arms, search.interrupted)


def _goal(
    works: Mapping[str, Work],
    objective: str,
    critical: str | None,
    keep: float | Mapping[str, float],
    promise_ms: Mapping[str, float] | None,
) -> Goal:
    if not 2 <= len(works) <= 4:
        raise ValueError(f"tune compares 2 to 4 works, not {len(works)}")
    if objective not in ("time", "latency"):
        raise ValueError(f'objective is "time" or "latency", not {objective!r}')
    named = [*(promise_ms or {}), *([critical] if critical is not None else [])]
    named += keep if isinstance(keep, Mapping) else []
    for name in named:
        if name not in works:
            raise ValueError(f"{name!r} is not a work; there are {', '.join(works)}")
    if promise_ms is not None:
        if critical is not None or objective != "time":
            raise ValueError("promise_ms replaces objective and critical; give one of them")
        if not promise_ms or any(not ms > 0 for ms in promise_ms.values()):
            raise ValueError("promise_ms needs a work with a time above 0 ms")
        return Goal("promise", dict(promise_ms), {})
    if objective == "time":
        if critical is not None:
            raise ValueError('critical is for objective="latency"')
        return Goal("time", {}, {})
    first = critical if critical is not None else next(iter(works))
    others = [name for name in works if name != first]
    shares = keep if isinstance(keep, Mapping) else dict.fromkeys(others, keep)
    return Goal("latency", {first: 0.0}, {name: shares.get(name, 0.0) for name in others})


def _facts(device: int) -> dict[str, Any]:
    driver, gpu = driver_info(), Device(device)
    from gcx import __version__

    return {
        "device": gpu.name,
        "SM count": gpu.sm_count,
        "driver": ".".join(map(str, driver.version)),
        "version of gcx": __version__,
        "simulated": driver.simulated,
    }


class _Line:
    """A line of progress on a terminal."""

    def __init__(self) -> None:
        self.shown = sys.stderr is not None and sys.stderr.isatty()

    def show(self, text: str) -> None:
        if self.shown:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


class _Flow:
    """A work that is launched again and again in one stream."""

    def __init__(self, launch: Callable[[], None], stream: Stream, depth: int) -> None:
        self.launch, self.stream, self.depth = launch, stream, depth
        self.queue: deque[tuple[Event, Event]] = deque()
        self.ended: list[tuple[Event, Event]] = []

    def start(self) -> None:
        begin, end = Event(self.stream.device, timing=True), Event(self.stream.device, timing=True)
        self.stream.record(begin)
        self.launch()
        self.stream.record(end)
        self.queue.append((begin, end))

    def poll(self) -> None:
        while self.queue and self.queue[0][1].query():
            self.ended.append(self.queue.popleft())

    def times(self) -> list[float]:
        return [begin.elapsed_time(end) for begin, end in self.ended]

    def rate(self) -> float:
        """Returns rounds per millisecond."""
        first, last = self.ended[0][1], self.ended[-1][1]
        return (len(self.ended) - 1) / max(first.elapsed_time(last), 1e-6)


class _Gpu(AbstractContextManager["_Gpu"]):
    """Runs works on a device."""

    def __init__(
        self, works: Mapping[str, Work], device: int, check: Callable[[], object] | None
    ) -> None:
        self.works = {name: _launcher(name, work) for name, work in works.items()}
        self.names, self.device = tuple(works), device
        self.simulated = driver_info().simulated
        self.check = check
        self.expected: list[object] = []  # what check gave first
        whole = Device(device).resources.sm
        self.sm_count = whole.sm_count
        unit = whole.split([1]).groups[0].sm_count
        self.sizes = tuple(range(unit, self.sm_count - unit + 1, unit))
        self.can_report = any(callable(work) for work in works.values()) and _has_cublas_target()
        self.stack = ExitStack()
        self.streams: dict[Arm, list[Stream]] = {}
        self.single: dict[int, Stream] = {}
        self.rates: dict[str, float] = {}
        self.launch_ms: dict[str, float] = {}
        self.clock: Stream | None = None
        self.chance = random.Random(1)

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def alone(self, name: str, sm_count: int) -> float:
        if sm_count not in self.single:
            (part,) = self.stack.enter_context(split([sm_count], device=self.device))
            self.single[sm_count] = part.stream
            stream = part.stream
        stream = self.single[sm_count]
        flow = _Flow(lambda: self.works[name](stream, False), stream, 1 + _ROUNDS)
        for launches in (1, flow.depth):  # The first warms up.
            flow.ended.clear()
            begin = time.perf_counter()
            for _ in range(launches):
                flow.start()
            self.launch_ms[name] = (time.perf_counter() - begin) * 1e3 / launches
            stream.synchronize()
            flow.poll()
        return 1 / flow.rate()

    def sample(self, arm: Arm, goal: Goal, window_ms: float) -> Sample:
        if arm not in self.streams:
            self.streams[arm] = self._streams(arm)
            self._round(arm)
            self._check()
        if goal.objective == "time":
            return Sample(self._round(arm))
        if arm.kind == "sequence":
            return self._in_sequence(arm, goal, window_ms)
        return self._steady(self._flows(arm, goal), goal, window_ms)

    def _streams(self, arm: Arm) -> list[Stream]:
        if arm.kind == "split":
            parts = split([*arm.counts[:-1], None], device=self.device)
            return [part.stream for part in self.stack.enter_context(parts)]
        whole = Partition(Device(self.device).resources.sm)
        context = self.stack.enter_context(whole).context
        if arm.kind == "sequence":
            return [whole.stream] * len(self.names)
        highest = Device(self.device).stream_priority_range[1]
        return [
            self.stack.enter_context(context.stream(highest if name == arm.urgent else 0))
            for name in self.names
        ]

    def _flows(self, arm: Arm, goal: Goal) -> dict[str, _Flow]:
        flows = {}
        for name, stream in zip(self.names, self.streams[arm]):

            def launch(name: str = name, stream: Stream = stream) -> None:
                self.works[name](stream, arm.reported)

            flows[name] = _Flow(launch, stream, 1 if name in goal.critical else _DEPTH)
        return flows

    def _round(self, arm: Arm) -> float:
        streams = self.streams[arm]
        rounds: list[list[Event]] = []
        for _ in range(1 + _ROUNDS):
            for stream in streams if rounds else ():
                for end in rounds[-1]:
                    stream.wait(end)
            rounds.append([])
            for name, stream in zip(self.names, streams):
                self.works[name](stream, arm.reported)
                rounds[-1].append(stream.record(Event(self.device, timing=True)))
        for end in rounds[-1]:
            end.synchronize()
        total = max(min(old.elapsed_time(new) for old in rounds[0]) for new in rounds[-1])
        return total / _ROUNDS

    def _check(self) -> None:
        if self.check is None:
            return
        value = self.check()
        if not self.expected:
            self.expected.append(value)
        elif value != self.expected[0]:
            raise ValueError(f"the results differ: check gave {value!r}, not {self.expected[0]!r}")

    def _alone_rate(self, name: str, window_ms: float) -> float:
        """Returns the rounds per millisecond of a work that runs without pause on all SMs."""
        if name not in self.rates:
            stream = self.single[self.sm_count]
            flow = _Flow(lambda: self.works[name](stream, False), stream, _DEPTH)
            goal = Goal("promise", {}, {})
            self._steady({name: flow}, goal, window_ms, relative=False)
            self.rates[name] = flow.rate()
        return self.rates[name]

    def _steady(
        self, flows: dict[str, _Flow], goal: Goal, window_ms: float, *, relative: bool = True
    ) -> Sample:
        others = [name for name in flows if name not in goal.critical]
        alone = {name: self._alone_rate(name, window_ms) for name in others if relative}
        start = self._mark()
        due = dict.fromkeys(goal.critical, 0.0)
        longest = max((1 / rate for rate in alone.values()), default=0.0)
        elapsed = 0.0
        while elapsed < window_ms or any(len(flow.ended) < 3 for flow in flows.values()):
            for name, flow in flows.items():
                flow.poll()
                if not flow.queue and due.get(name, 0.0) > elapsed:
                    continue
                while len(flow.queue) < flow.depth:
                    if goal.objective == "latency" and name in due:
                        due[name] = elapsed + self.chance.uniform(0, longest)
                    flow.start()
            elapsed = start.elapsed_time(self._mark())
        for flow in flows.values():
            flow.stream.synchronize()
            flow.poll()
        latencies = {name: flows[name].times() for name in goal.critical}
        speeds = {name: flows[name].rate() / alone[name] for name in alone}
        return Sample(0.0, latencies, speeds)

    def _mark(self) -> Event:
        """Returns an event with the device's time now, from a stream that has no work."""
        if self.clock is None:
            whole = self.stack.enter_context(Partition(Device(self.device).resources.sm))
            self.clock = whole.stream
        event = self.clock.record(Event(self.device, timing=True))
        event.synchronize()
        return event

    def _in_sequence(self, arm: Arm, goal: Goal, window_ms: float) -> Sample:
        others = [name for name in self.names if name not in goal.critical]
        alone = {name: self._alone_rate(name, window_ms) for name in others}
        latencies: dict[str, list[float]] = {name: [] for name in goal.critical}
        rounds, elapsed = 0, 0.0
        while elapsed < window_ms or rounds < 3:
            ms = self._round(arm)
            elapsed, rounds = elapsed + ms, rounds + 1
            for times in latencies.values():
                times.append(ms)
        return Sample(0.0, latencies, {name: rounds / elapsed / alone[name] for name in others})


def _launcher(name: str, work: Work) -> Callable[[Stream, bool], None]:
    """Returns a function that launches the work in a stream, with cuBLAS's count or without."""
    if hasattr(work, "raw_cuda_graph"):
        work = Graph(work)
    if isinstance(work, Graph):
        graph = work
        return lambda stream, _: graph.launch(stream)
    if not callable(work):
        raise TypeError(
            f"the work {name!r} is a {type(work).__name__}; give a callable, a gcx.Graph or a "
            "torch.cuda.CUDAGraph(keep_graph=True)"
        )
    call: Callable[..., object] = work
    takes_stream = _takes_stream(call)

    def launch(stream: Stream, reported: bool) -> None:
        with ExitStack() as entered:
            torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
            if torch is not None and torch.cuda.is_available():
                if reported:
                    entered.enter_context(current(stream, cublas=True))
                else:
                    entered.enter_context(torch.cuda.stream(stream.torch()))
            if cupy is not None:
                entered.enter_context(stream.cupy())
            if takes_stream:
                call(stream)
            else:
                call()

    return launch


def _takes_stream(call: Callable[..., object]) -> bool:
    """Returns whether it has one required argument, or a single one whose default is None. Another
    default is a value of the caller's, as in `lambda model=model: model(x)`."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    defaults = [one.default for one in parameters if one.kind in kinds]
    required = [default for default in defaults if default is inspect.Parameter.empty]
    return len(required) == 1 or (len(defaults) == 1 and defaults[0] is None)


def _has_cublas_target() -> bool:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return False
    from gcx._current import _cublas

    try:
        _cublas(torch)
    except NotSupportedError:
        return False
    return True


def _verdict(tuning: Tuning) -> str:
    goal, best = tuning._goal, tuning.best
    if best.arm.kind == "split":
        return _advice(tuning) + _notes(tuning)
    if goal.objective == "time":
        other = f"; use {best.arm}" if best.arm.kind == "priority" else ""
        return f"Don't split: {_reason(tuning)}{other}" + _notes(tuning)
    figures = f"{best.arm}: {_figures(tuning, best.samples)}"
    if goal.objective == "promise" and goal.score(best.samples)[0] > 0:
        return f"No arm keeps the promise; nearest is {figures}" + _notes(tuning)
    return f"Don't split: {_reason(tuning)}; {figures}" + _notes(tuning)


def _advice(tuning: Tuning) -> str:
    goal, best = tuning._goal, tuning.best
    counts = "/".join(map(str, best.arm.counts))
    before = tuning._without
    if goal.objective == "time":
        old, new = goal.score(before.samples)[1], goal.score(best.samples)[1]
        text = (f"Split {counts}: one round takes {new:.3g} instead of {old:.3g} ms "
                f"({before.arm}), {new / old:.2f} times")  # fmt: skip
    elif goal.score(best.samples)[0] > 0 and goal.objective == "promise":
        text = f"No arm keeps the promise; nearest is {best.arm}: {_figures(tuning, best.samples)}"
    else:
        text = (f"Split {counts}: {_figures(tuning, best.samples)}; "
                f"{before.arm}: {_figures(tuning, before.samples)}")  # fmt: skip
    if best.arm.reported:
        plain = [one for one in tuning.arms
                 if one.arm == Arm("split", best.arm.counts) and one.samples]  # fmt: skip
        if plain:
            gain = goal.score(plain[0].samples)[1] / goal.score(best.samples)[1]
            text += f"; report the count to cuBLAS ({gain:.2f} times)"
    return text


def _figures(tuning: Tuning, samples: Sequence[Sample]) -> str:
    goal = tuning._goal
    parts = [f"{name}'s p99 is {ms:.3g} ms" for name, ms in goal.p99(samples).items()]
    parts += [f"{name} keeps {share:.2f}" for name, share in goal.speeds(samples).items()]
    return ", ".join(parts)


def _knee(times: dict[int, float]) -> int:
    """Returns the fewest measured SMs that are as fast as all."""
    most = max(times)
    return min(sms for sms, ms in times.items() if ms <= times[most] * _KNEE)


def _reason(tuning: Tuning) -> str:
    """Says from what was measured why a split does not pay."""
    split, goal = tuning._split, tuning._goal
    if split is None:
        refused = [one for one in tuning.arms if one.refused]
        return f"every split was refused: {refused[0].refused}" if refused else "none was measured"
    sm_count = tuning.facts["SM count"]
    knees = {name: _knee(times) for name, times in tuning.alone.items()}
    early = [f"{name} does not get faster above {knee} SMs" for name, knee in knees.items()
             if knee < sm_count]  # fmt: skip
    if goal.objective != "time":
        counts = "/".join(map(str, split.arm.counts))
        return f"the best split, {counts}, is no better: {_figures(tuning, split.samples)}"
    value = {one.arm.kind: goal.score(one.samples)[1] for one in reversed(tuning.arms)
             if one.samples and not one.refused}  # fmt: skip
    apart = value["sequence"]
    best = min(value.values())
    if best > apart * _GAIN:
        if len(early) == len(knees):
            cause = "they compete for something other than SMs" + _bandwidth(tuning, best)
            return f"{' and '.join(early)}, yet together they take as long as in sequence; {cause}"
        if early:
            return f"{' and '.join(early)}, but together they take as long as in sequence"
        return (f"each gets faster up to all {sm_count} SMs, and together they take as long as in "
                "sequence")  # fmt: skip
    arm = tuning.best.arm
    counts = "/".join(map(str, split.arm.counts))
    return (f"one round takes {value[arm.kind] / apart:.2f} times that in sequence ({arm}), and "
            f"{value['split'] / apart:.2f} times with the best split, {counts}")  # fmt: skip


def _bandwidth(tuning: Tuning, round_ms: float) -> str:
    moved = tuning.facts["moved_bytes"]
    if set(moved) != set(tuning.alone):
        return ""
    return f": {sum(moved.values()) / round_ms / 1e9:.2f} TB/s of memory bandwidth"


def _notes(tuning: Tuning) -> str:
    """Returns what else was measured: waves of the last tiles, refused splits, few queues."""
    notes = []
    for name, count in tuning.best.counts.items():
        times = tuning.alone[name]
        most = max(times)
        if count in times and times[count] > 1.15 * times[most] * most / count:
            notes.append(
                f"{name} alone takes {times[count] / times[most]:.2f} times as long on {count} as "
                f"on {most} SMs: more than its share, as when the last tiles need another wave"
            )
    refused = [one for one in tuning.arms if one.refused]
    if refused and tuning._split is not None:
        notes.append(f"{refused[0].arm} was refused: {refused[0].refused}")
    for name, ms in tuning.facts.get("launch_ms", {}).items():
        if not tuning.simulated and ms > _LAUNCH_BOUND * min(tuning.alone[name].values()):
            notes.append(f"the host takes {ms:.2g} ms to launch {name}, so that the figures are "
                         "the host's rather than the GPU's; capture it as a graph")  # fmt: skip
    connections = tuning.facts.get("connections")
    if connections is not None and connections < 8:
        notes.append(f"the process has {connections} hardware queues, for which streams wait")
    if tuning.interrupted:
        notes.append("interrupted before all was measured")
    return "".join(f". Note: {note}" for note in notes)


def _measured_of(value: dict[str, Any]) -> Measured:
    arm = Arm(**{**value["arm"], "counts": tuple(value["arm"]["counts"])})
    samples = [Sample(**sample) for sample in value["samples"]]
    return Measured(arm, samples, value["refused"], value["dropped"])


def _nearest(sizes: Sequence[int], wanted: int) -> int:
    return min(sizes, key=lambda size: abs(size - wanted))


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[max(0, math.ceil(0.99 * len(values)) - 1)]


_DARK = """\
<style>
@media (prefers-color-scheme: dark) {
  [style*="fill: #ffffff"] { fill: #16181c !important; }
  [style*="stroke: #000000"] { stroke: #9aa4ae !important; }
  text:not([style*="fill: #"]) { fill: #d5dbe1; }
}
</style>
"""


class _Callable(types.ModuleType):
    def __call__(self, *arguments: Any, **named: Any) -> Tuning:
        return tune(*arguments, **named)


# gcx.tune is this module, which is loaded at its first use, and the function.
sys.modules[__name__].__class__ = _Callable
for _public in (Tuning, Choice, tune, _Callable):
    _public.__module__ = "gcx"


def _work(text: str) -> tuple[str, Callable[[], object]]:
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise argparse.ArgumentTypeError(f"{text!r} is not MODULE:FUNCTION")
    try:
        work = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None
    if not callable(work):
        raise argparse.ArgumentTypeError(f"{text} is not a function")
    return name, work


def _promise(text: str) -> tuple[str, float]:
    name, _, ms = text.partition("=")
    try:
        return name, float(ms)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not FUNCTION=MILLISECONDS") from None


def main(words: Sequence[str] | None = None) -> int:
    sys.path.insert(0, "")  # MODULE is found in the current folder, as python -m does
    parser = argparse.ArgumentParser(
        prog="python -m gcx.tune",
        description="Measures whether a split of the SMs pays for two to four functions, and which."
        " Each launches work into PyTorch's or CuPy's current stream, or into the gcx.Stream that"
        " it takes.",
    )
    add = parser.add_argument
    add("works", nargs="+", type=_work, metavar="MODULE:FUNCTION", help="what to measure")
    add(
        "--objective",
        choices=("time", "latency"),
        default="time",
        help="least time of one round (time), or least p99 of the first function (latency)",
    )
    add(
        "--keep",
        type=float,
        default=0.8,
        metavar="SHARE",
        help="latency: the speed that the others keep, relative to that alone (0.8)",
    )
    add(
        "--promise",
        type=_promise,
        action="append",
        metavar="FUNCTION=MS",
        help="the p99 that a function keeps, instead of an objective",
    )
    add("--seconds", type=float, default=30.0, help="the time to measure (30)")
    add("--json", type=Path, metavar="FILE", help="write the tuning, for gcx.Tuning.load")
    add("--plot", type=Path, metavar="FILE", help="write the arms as an SVG; needs matplotlib")
    arguments = parser.parse_args(words)
    works = dict(arguments.works)
    if len(works) < len(arguments.works):
        parser.error("two functions have the same name, which names the work")
    options: dict[str, Any] = {"objective": arguments.objective, "keep": arguments.keep}
    if arguments.promise:
        options = {"promise_ms": dict(arguments.promise)}
    try:
        tuning = tune(works, seconds=arguments.seconds, **options)
    except (Error, ValueError) as error:
        parser.exit(1, f"python -m gcx.tune: {error}\n")
    print(tuning)
    if arguments.json is not None:
        arguments.json.write_text(tuning.to_json(), "utf-8")
    if arguments.plot is not None:
        tuning.plot(arguments.plot)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
