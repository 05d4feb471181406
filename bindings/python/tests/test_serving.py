"""examples/python/serving.py without a GPU: its policy on a simulated machine, its leases on the
simulated driver."""

from __future__ import annotations

import dataclasses
import importlib
import math
import random
import statistics
import sys
from collections import deque
from pathlib import Path
from typing import Any

import gcx
import pytest
from gcx.engines import policy, sglang

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"
sys.path.insert(0, str(EXAMPLES))
serving: Any = importlib.import_module("serving")
pytestmark = pytest.mark.skipif(
    gcx.driver_info().version != (13, 0), reason="it does not depend on the driver's version"
)

# One NVIDIA H200, driver 580.159.04, PyTorch 2.11: docs/measurements/log.md. A prompt has 32 layers
# of five pieces, whose shares are estimates by their products.
LAYER = (0.31, 0.1725, 0.1725, 0.1725, 0.1725)
H200 = policy.Costs(
    sm_count=132,
    shares=tuple(piece / 32 for piece in LAYER) * 32,
    decode_alone={24: 12.2, 32: 9.2, 48: 7.8, 64: 7.3, 132: 6.77},
    decode={24: 16.4, 32: 13.1, 48: 10.3, 64: 9.5},
    prefill_alone={0: 106.0, 24: 125.0, 32: 129.0, 48: 142.0, 64: 161.0},
    prefill={24: 147.0, 32: 158.6, 48: 184.2, 64: 229.9},
)


@dataclasses.dataclass
class Work:
    order: int
    split: int
    size: float  # Relative to a decode step or a prompt.
    is_decode: bool
    ready: float  # When its launch is complete.
    running: bool = False


class Simulated:
    """Like serving.Gpu, with the times of a table and a relative deviation."""

    SEEN = 0.015  # Milliseconds until the host sees an end.
    LAUNCH = 0.010  # Host time of a launch.
    START = 0.006  # From a launch to its start on an idle lane.
    NEXT = 0.0015  # Between consecutive queued work.

    def __init__(self, costs: Any, noise: float = 0.015) -> None:
        self.costs, self.noise, self.chance = costs, noise, random.Random(1)
        self.pieces = len(costs.shares)
        self.clock, self.order = 0.0, 0
        self.splits: set[int] = set()
        self.lanes: tuple[deque[Work], deque[Work]] = (deque(), deque())
        self.seen: list[tuple[float, bool]] = []

    def now(self) -> float:
        return self.clock

    def launch(self, launch: Any) -> None:
        self._run(self.clock + self.LAUNCH)
        self.order += 1
        self.splits.add(launch.split)
        is_decode = launch.piece < 0
        size = 1.0 if is_decode else self.costs.shares[launch.piece]
        size *= max(0.5, self.chance.gauss(1.0, self.noise))
        lane = self.lanes[is_decode]
        ready = self.clock + (self.NEXT if lane else self.START)
        lane.append(Work(self.order, launch.split, size, is_decode, ready))

    def ended(self) -> tuple[list[float], list[float]]:
        done = [one for one in self.seen if one[0] <= self.clock]
        self.seen = [one for one in self.seen if one[0] > self.clock]
        return [at for at, decode in done if decode], [at for at, decode in done if not decode]

    def wait(self, until: float) -> None:
        while True:
            first = min((at for at, _ in self.seen), default=math.inf)
            target = min(until, first)
            if target <= self.clock:
                return
            if not self._run(target, stop_at_end=True) and target == math.inf:
                raise RuntimeError("nothing runs, and nothing will come")

    def _run(self, until: float, stop_at_end: bool = False) -> bool:
        """Advances the clock; returns whether it stopped because something ended."""
        while self.clock < until:
            running = self._start()
            both = len(running) > 1
            nexts = [lane[0].ready for lane in self.lanes if lane and lane[0].ready > self.clock]
            ends = {id(one): self.clock + one.size * self._whole(one, both) for one in running}
            at = min([until, *nexts, *ends.values()])
            if at == math.inf:
                return False
            ended = False
            for one in running:
                if ends[id(one)] > at:
                    one.size -= (at - self.clock) / self._whole(one, both)
                    continue
                self.lanes[one.is_decode].popleft()
                for lane in self.lanes:
                    if lane and not lane[0].running:
                        lane[0].ready = max(lane[0].ready, at + self.NEXT)
                self.seen.append((at + self.SEEN, one.is_decode))
                ended = True
            self.clock = at
            if ended and stop_at_end:
                return True
        return False

    def _start(self) -> list[Work]:
        """Returns what runs now: the first of each lane that does not wait for SMs."""
        for lane, other in (self.lanes, self.lanes[::-1]):
            if lane and not lane[0].running and lane[0].ready <= self.clock:
                before = [one for one in other if one.order < lane[0].order]
                if not any(self._share_sms(lane[0], one) for one in before):
                    lane[0].running = True
        return [lane[0] for lane in self.lanes if lane and lane[0].running]

    def _share_sms(self, one: Work, other: Work) -> bool:
        decode, piece = (one, other) if one.is_decode else (other, one)
        return decode.split > piece.split

    def _whole(self, one: Work, both: bool) -> float:
        costs = self.costs
        if one.is_decode:
            alone = costs.decode_alone[one.split]
            return float(costs.decode.get(one.split, alone) if both else alone)
        alone = costs.prefill_alone[one.split]
        return float(costs.prefill.get(one.split, alone) if both else alone)


class WhilePrompts(policy.Schedule):
    """A fixed split while there are prompts; otherwise decode has all SMs."""

    def decide(self) -> Any:
        if self.step is None:
            return True, 24 if self.unanswered else 132
        return (False, 24) if self.waiting and len(self.prefilling) < policy.AHEAD else None


def served(
    schedule: Any, rate: float, seconds: float = 2, noise: float = 0.015, costs: Any = H200
) -> Any:
    """Returns what serving.serve does, and the splits that were used."""
    machine = Simulated(costs, noise)
    serving.serve(machine, schedule, [0.0], at_least=300)
    record = serving.serve(machine, schedule, serving.common.poisson(rate, seconds))
    return record, machine.splits


def p99(times: list[float]) -> float:
    return float(serving.common.percentile(times, 0.99))


def test_measured_costs_of_the_simulation_are_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    found = serving.measure(Simulated(H200, noise=0), 132, [24, 64], kinds=5)
    for name in ("decode_alone", "decode", "prefill_alone", "prefill"):
        for split, took in getattr(found, name).items():
            assert took == pytest.approx(getattr(H200, name)[split], rel=0.02), (name, split)
    assert found.shares == pytest.approx(H200.shares, rel=0.01)
    assert "decode on 24 SMs: 12." in capsys.readouterr().out


@pytest.mark.parametrize("rate", [2, 5.5])
@pytest.mark.parametrize("promise", [17.5, 10, 9])
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_policy_keeps_its_promise(promise: float, rate: float, noise: float) -> None:
    record, splits = served(policy.Policy(H200, promise), rate, 2, noise)
    assert p99(record.tokens) <= promise
    assert len(record.first) == round(rate * 2)
    if promise == 9:  # Below the splits' times decode and prefill take turns on all SMs.
        assert splits == {0, 132}


def test_policy_keeps_its_promise_if_steps_are_slower_than_measured() -> None:
    slower = dataclasses.replace(
        H200,
        decode={sms: 1.08 * took for sms, took in H200.decode.items()},
        decode_alone={sms: 1.08 * took for sms, took in H200.decode_alone.items()},
    )
    record, _ = served(policy.Policy(H200, 17.5), 4, 4, costs=slower)
    assert p99(record.tokens) <= 17.5


@pytest.mark.parametrize("other", [serving.Fixed(160, 24), WhilePrompts(H200.shares)])
def test_policy_answers_prompts_sooner_than_fixed_splits(other: Any) -> None:
    ours, others = (served(one, 6, 5)[0].first for one in (policy.Policy(H200, 17.5), other))
    assert statistics.median(ours) < 0.98 * statistics.median(others)


def test_policy_uses_a_longer_promise_and_idle_time() -> None:
    medians = [
        statistics.median(served(policy.Policy(H200, promise), 5.5, 3)[0].first)
        for promise in (11, 14, 17.5, 25)
    ]
    assert medians == sorted(medians, reverse=True)
    record, _ = served(policy.Policy(H200, 14), 0.5, 2, noise=0)
    assert statistics.median(record.tokens) == pytest.approx(6.77, abs=0.05)
    with pytest.raises(ValueError, match=r"6\.5 ms a token can't be promised: .* takes 6\.77 ms"):
        policy.Policy(H200, 6.5)
    # Prompts would wait forever.
    with pytest.raises(ValueError, match=r"7\.9 ms .* 0\.69 ms remain, .* a piece of a prompt"):
        policy.Policy(H200, 7.9)
    assert served(policy.Policy(H200, 8.3), 0.5, 2)[0].first


def test_policy_launches_steps_ahead_in_the_same_split() -> None:
    schedule = policy.Policy(H200, 17.5, lead=3)
    first = schedule.next(0)
    assert first == policy.Launch(0, 132, -1)
    assert schedule.next(3.7) is None
    second = schedule.next(3.8)
    assert second == policy.Launch(3.8, 132, -1)
    assert schedule.next(6.7) is None
    assert schedule.expected_end == pytest.approx(2 * 6.77)
    schedule.prompt_arrived()
    schedule.step_ended(6.8)
    assert schedule.step is second
    launch = schedule.next(6.8)
    assert launch is not None
    assert (launch.piece, launch.split) == (0, 0)  # Behind the second step.
    assert schedule.steps[132].mean == pytest.approx(6.77, abs=0.01)
    schedule.step_ended(13.6)
    assert schedule.steps[132].mean == pytest.approx(6.77, abs=0.01)
    record, splits = served(policy.Policy(H200, 17.5, lead=3), 5.5, 2)
    assert p99(record.tokens) <= 17.5
    assert 132 in splits


def test_policy_learns_how_slow_steps_are() -> None:
    """Longer sequences make all steps slower; a split that was slow once is tried again."""
    schedule = policy.Policy(H200, 17.5)
    before = {split: times.mean for split, times in schedule.steps.items()}
    for number in range(300):
        schedule.next(10.0 * number)
        schedule.step_ended(10.0 * number + 8.124)
    for split in (24, 64, 132):
        assert schedule.steps[split].mean == pytest.approx(1.2 * before[split], rel=0.05)
    slow = schedule.steps[24]
    slow.add(40.0)
    assert slow.slow(0.99) == 40.0
    slow.add(39.0)
    schedule.prompt_arrived()
    schedule.prompt_arrived()
    assert slow.slow(0.99) == 39.0


def test_policy_counts_late_tokens() -> None:
    schedule = policy.Policy(H200, 17.5)
    for number in range(4000):
        schedule.next(7.0 * number)
        schedule.step_ended(7.0 * number + 6.9)
    assert schedule.level < 0.9
    for number in range(20):
        schedule.next(28000 + 20.0 * number)
        schedule.step_ended(28000 + 20.0 * number + 19.0)
    assert schedule.level == schedule.MOST
    schedule.choose(40000, has_decode=False)
    schedule.level = 0.9
    schedule.next(50000)
    schedule.step_ended(50007)  # Nothing was decoded before.
    assert schedule.level == 0.9


@pytest.mark.parametrize("factor", [0.2, 0.6, 1.8, 6.0])
def test_policy_corrects_wrong_costs_of_prefill(factor: float) -> None:
    wrong = dataclasses.replace(
        H200,
        prefill_alone={sms: factor * took for sms, took in H200.prefill_alone.items()},
        prefill={sms: factor * took for sms, took in H200.prefill.items()},
    )
    schedule = policy.Policy(wrong, 17.5)
    served(schedule, 5.5, 3)
    for sms in (0, 24):
        found = schedule.costs.prefill_alone[sms]
        assert found == pytest.approx(H200.prefill_alone[sms], rel=0.25)


def test_policy_gives_prefill_all_sms_without_decode() -> None:
    schedule = policy.Policy(H200, 17.5)
    assert schedule.choose(0, has_decode=False) is None
    schedule.prompt_arrived([0.25, 0.5])
    for _ in range(policy.AHEAD):
        assert schedule.choose(0, has_decode=False) == (False, 0)
        schedule.launched(False, 0)
    assert schedule.choose(0, has_decode=False) is None
    assert [schedule.piece_ended(at) for at in (26, 79)] == [0, 1]
    assert schedule.unanswered == 0


def test_policy_runs_pieces_longer_than_the_promise_next_to_several_steps() -> None:
    long_pieces = dataclasses.replace(H200, shares=(0.25,) * 4)
    record, _ = served(policy.Policy(H200, 17.5), 4, 2)
    ours, _ = served(policy.Policy(long_pieces, 17.5), 4, 2, costs=long_pieces)
    assert p99(ours.tokens) <= 17.5
    assert statistics.median(ours.first) < 1.5 * statistics.median(record.first)


# One H100, SGLang 0.5.16 with 16 layers and 32 decodes, 2026-11-25: docs/measurements/log.md. The
# times of splits other than 48 and 132 are estimates.
SGLANG = policy.Costs(
    sm_count=132,
    shares=(1 / 16,) * 16,
    decode_alone={24: 14.0, 32: 11.0, 48: 8.6, 64: 7.8, 132: 6.3},
    decode={24: 19.0, 32: 15.0, 48: 10.5, 64: 9.6},
    prefill_alone={0: 62.0, 24: 75.0, 32: 80.0, 48: 89.0, 64: 105.0},
    prefill={24: 80.0, 32: 85.0, 48: 93.0, 64: 112.0},
)


class SlowHost(Simulated):
    """A host that needs 1.6 ms to launch a piece and 2.2 ms to launch a step, and that polls."""

    def launch(self, launch: Any) -> None:
        self.LAUNCH = 1.6 if launch.piece >= 0 else 2.2
        super().launch(launch)

    def wait(self, until: float) -> None:
        super().wait(min(until, self.clock + 0.2))

    def _whole(self, one: Work, both: bool) -> float:
        growth = 0.72 + 0.4 * min(self.clock / 16_000, 1.0)  # Of the sequences, in 16 s.
        return super()._whole(one, both) * (growth if one.is_decode else 1.0)


@pytest.mark.parametrize(("promise", "first"), [(13, 135), (16, 115), (20, 105)])
def test_policy_learns_what_an_engine_did_not_measure(promise: float, first: float) -> None:
    """It begins with guesses of all but decode alone, with short sequences."""
    decode = {24: 5.21, 32: 4.29, 48: 3.77, 64: 3.52, 132: 3.36}
    costs = sglang.first_costs(132, decode, promise)
    costs = dataclasses.replace(costs, shares=SGLANG.shares)
    machine = SlowHost(SGLANG, 0.02)
    schedule = policy.Policy(costs, promise, lead=sglang.LEAD_MS)
    record = serving.serve(machine, schedule, serving.common.poisson(3, 14))
    assert p99(record.tokens) <= promise + 0.5  # With the tokens from which it learns.
    assert statistics.median(record.first) < first


def test_policy_starves_no_prompt() -> None:
    """No piece fits the promise, which the costs at the start did not tell."""
    schedule = policy.Policy(H200, 8.3)
    schedule.prompt_arrived([1.0])
    now, steps = 0.0, 0
    while True:
        launch = schedule.next(now)
        assert launch is not None
        if launch.piece == 0:
            break
        steps += 1
        now += 6.77
        schedule.step_ended(now)
    assert steps == policy.STARVED


def test_leases_of_a_split_have_the_same_sms_each_time() -> None:
    both = serving.Sides(132)
    chance = random.Random(1)
    seen: dict[int, set[tuple[tuple[int, ...], ...]]] = {}
    try:
        for _ in range(100):
            split = chance.choice([0, 24, 32, 48, 64, 132])
            both.arrange(split)
            have = [
                lease.stream.sm_ids() if lease.sm_count else ()
                for lease in (both.decode, both.prefill)
            ]
            assert [len(sms) for sms in have] == [split, 132 - split]
            assert len({*have[0], *have[1]}) == 132
            seen.setdefault(split, set()).add(tuple(have))
        assert {len(sets) for sets in seen.values()} == {1}
        assert len(seen) == 6
    finally:
        both.close()
