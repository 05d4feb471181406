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


@dataclasses.dataclass
class Times:
    """Of a decode step and of a prompt in milliseconds, by decode's SMs; with 0 prefill has all."""

    shares: tuple[float, ...]  # Of the pieces in a prompt's time.
    decode_alone: dict[int, float]
    decode: dict[int, float]  # Next to prefill.
    prefill_alone: dict[int, float]
    prefill: dict[int, float]  # Next to decode.

    @property
    def steps(self) -> dict[int, float]:
        return {**self.decode, 132: self.decode_alone[132]}


# One NVIDIA H200, driver 580.159.04, PyTorch 2.11: docs/measurements/log.md. A prompt has 32 layers
# of five pieces, whose shares are estimates by their products.
LAYER = (0.31, 0.1725, 0.1725, 0.1725, 0.1725)
H200 = Times(
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

    def __init__(self, times: Times, noise: float = 0.015) -> None:
        self.times, self.noise, self.chance = times, noise, random.Random(1)
        self.pieces = len(times.shares)
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
        size = 1.0 if is_decode else self.times.shares[launch.piece]
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
        times = self.times
        if one.is_decode:
            alone = times.decode_alone[one.split]
            return float(times.decode.get(one.split, alone) if both else alone)
        alone = times.prefill_alone[one.split]
        return float(times.prefill.get(one.split, alone) if both else alone)


def served(
    schedule: Any, rate: float, seconds: float = 2, noise: float = 0.015, times: Times = H200
) -> Any:
    """Returns what serving.serve does, and the splits that were used."""
    machine = Simulated(times, noise)
    serving.serve(machine, schedule, [0.0], at_least=300)
    record = serving.serve(machine, schedule, serving.common.poisson(rate, seconds))
    return record, machine.splits


def p99(times: list[float]) -> float:
    return float(serving.common.percentile(times, 0.99))


def new_policy(promise: float, times: Times = H200, lead: float = 0.0) -> policy.Policy:
    return policy.Policy(times.steps, promise, len(times.shares), lead)


def test_measured_times_of_the_simulation_are_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    found = serving.measure(Simulated(H200, noise=0), 132, [24, 64])
    assert found == pytest.approx({24: 16.4, 64: 9.5, 132: 6.77}, rel=0.02)
    assert "decode on 24 SMs: 16.4" in capsys.readouterr().out


@pytest.mark.parametrize("rate", [2, 5.5])
@pytest.mark.parametrize(("promise", "split"), [(18.5, 24), (15, 32), (12, 48)])
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_policy_keeps_its_promise_on_the_fewest_sms(
    promise: float, split: int, rate: float, noise: float
) -> None:
    record, splits = served(new_policy(promise), rate, 2, noise)
    assert p99(record.tokens) <= promise
    assert len(record.first) == round(rate * 2)
    assert splits == {split, 132}


@pytest.mark.parametrize("slower", [0.8, 1.25])
def test_policy_learns_other_times_than_expected(slower: float) -> None:
    """Of the steps next to prompts alone, and of all steps."""
    beside = {sms: slower * took for sms, took in H200.decode.items()}
    alone = {sms: slower * took for sms, took in H200.decode_alone.items()}
    for times in (
        dataclasses.replace(H200, decode=beside),
        dataclasses.replace(H200, decode=beside, decode_alone=alone),
    ):
        schedule = new_policy(15)
        record, _ = served(schedule, 4, 4, times=times)
        assert p99(record.tokens) <= 15
        used = schedule.split
        assert schedule.expected(used) == pytest.approx(beside[used], rel=0.05)
        assert used in {0.8: (24, 32), 1.25: (48, 64)}[slower]  # By the margin.


def test_policy_uses_a_longer_promise_and_idle_time() -> None:
    medians = [
        statistics.median(served(new_policy(promise), 4, 3)[0].first) for promise in (11, 15, 18.5)
    ]
    assert medians == sorted(medians, reverse=True)
    record, _ = served(new_policy(14), 0.5, 2, noise=0)
    assert statistics.median(record.tokens) == pytest.approx(6.77, abs=0.05)


def test_policy_refuses_what_it_cannot_promise() -> None:
    with pytest.raises(ValueError, match=r"^6\.5 ms a token can't be promised: .* takes 6\.77 ms"):
        new_policy(6.5)
    with pytest.raises(ValueError, match=r"^9 ms .* next to prefill .* about 9\.50 ms on 64 SMs"):
        new_policy(9)
    with pytest.raises(ValueError, match=r"^8 SMs can't be divided between decode and prefill$"):
        policy.Policy({8: 5.0}, 20)


def test_policy_launches_steps_ahead() -> None:
    schedule = new_policy(18.5, lead=3)
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
    assert (launch.piece, launch.split) == (0, 24)  # Behind the second step.
    assert schedule.expected(132) == pytest.approx(6.77, abs=0.01)
    schedule.step_ended(13.6)
    assert schedule.expected(132) == pytest.approx(6.77, abs=0.01)
    record, splits = served(new_policy(18.5, lead=3), 5.5, 2)
    assert p99(record.tokens) <= 18.5
    assert splits == {24, 132}


def test_policy_expects_all_splits_to_change_with_the_sequences() -> None:
    schedule = new_policy(18.5)
    before = {split: schedule.expected(split) for split in schedule.ratios}
    for number in range(300):
        schedule.next(10.0 * number)
        schedule.step_ended(10.0 * number + 8.124)
    for split in (24, 64, 132):
        assert schedule.expected(split) == pytest.approx(1.2 * before[split], rel=0.01)
    schedule.next(4000)
    schedule.step_ended(5000)  # The host slept.
    assert schedule.expected(24) == pytest.approx(1.2 * 1.1 * before[24], rel=0.01)


def test_policy_leaves_more_room_for_steps_that_vary_more() -> None:
    schedule = new_policy(18.5)
    schedule.prompt_arrived(1000)
    now, splits = 0.0, []
    for number in range(60):
        while (launch := schedule.next(now)) is not None and launch.piece >= 0:
            pass
        assert launch is not None
        splits.append(launch.split)
        expected = H200.decode[launch.split]
        now += expected * (1.15 if number % 2 else 0.85) if number >= 30 else expected
        while schedule.prefilling:
            schedule.piece_ended(now)
        schedule.next(now)
        schedule.step_ended(now)
    assert set(splits[:30]) == {24}
    assert set(splits[-5:]) == {32}


def test_policy_does_not_learn_from_a_step_that_waits_for_pieces() -> None:
    schedule = new_policy(18.5)
    schedule.prompt_arrived()
    assert schedule.next(0) == policy.Launch(0, 24, -1)
    piece = schedule.next(0)
    assert piece is not None
    assert piece.split == 24
    schedule.step_ended(16)
    schedule.ratios[24] = 20 / schedule.alone
    assert schedule.next(16) == policy.Launch(16, 32, -1, waits=True)
    before = schedule.expected(32)
    schedule.step_ended(46)
    assert schedule.expected(32) == before
    schedule.piece_ended(46)
    assert [schedule.next(46) for _ in range(2)] == [
        policy.Launch(46, 32, -1), policy.Launch(46, 32, 1)
    ]  # fmt: skip
    schedule.step_ended(60)
    assert schedule.expected(32) > before


def test_policy_gives_prefill_all_sms_without_decode() -> None:
    schedule = new_policy(18.5)
    assert schedule.choose(0, has_decode=False) is None
    schedule.prompt_arrived(2)
    for _ in range(policy.AHEAD):
        assert schedule.choose(0, has_decode=False) == (False, 0)
        schedule.launched(False, 0)
    assert schedule.choose(0, has_decode=False) is None
    assert [schedule.piece_ended(at) for at in (26, 79)] == [0, 1]
    assert schedule.unanswered == 0


# One H100, SGLang 0.5.16 with 16 layers and 32 decodes, 2026-11-25: docs/measurements/log.md.
SGLANG = Times(
    shares=(1 / 16,) * 16,
    decode_alone={16: 22.0, 24: 14.0, 32: 11.0, 40: 9.6, 48: 8.6, 64: 7.8, 80: 7.2, 132: 6.3},
    decode={16: 25.0, 24: 17.0, 32: 14.5, 40: 12.4, 48: 11.0, 64: 9.4, 80: 8.6},
    prefill_alone={0: 58.0, 16: 66.0, 24: 71.0, 32: 76.0, 40: 82.0, 48: 92.0, 64: 110.0, 80: 145.0},
    prefill={16: 68.0, 24: 72.0, 32: 76.0, 40: 84.0, 48: 97.0, 64: 112.0, 80: 150.0},
)


class SlowHost(Simulated):
    """A host that needs 1 ms to launch a piece and 1.7 ms to launch a step, and that polls."""

    def launch(self, launch: Any) -> None:
        self.LAUNCH = 1.0 if launch.piece >= 0 else 1.7
        super().launch(launch)

    def wait(self, until: float) -> None:
        super().wait(min(until, self.clock + 0.2))

    def _whole(self, one: Work, both: bool) -> float:
        growth = 0.72 + 0.4 * min(self.clock / 16_000, 1.0)  # Of the sequences, in 16 s.
        return super()._whole(one, both) * (growth if one.is_decode else 1.0)


@pytest.mark.parametrize(("promise", "first"), [(13, 110), (16, 92), (20, 85)])
def test_policy_learns_what_an_engine_did_not_measure(promise: float, first: float) -> None:
    """It begins with guesses from the times of decode alone, with short sequences."""
    alone = {16: 7.0, 24: 5.21, 32: 4.29, 40: 4.0, 48: 3.77, 64: 3.52, 80: 3.45}
    steps = {split: sglang.DECODE_SLOWER * took for split, took in alone.items()}
    schedule = policy.Policy({**steps, 132: 3.36}, promise, 16, lead=sglang.LEAD_MS)
    record = serving.serve(SlowHost(SGLANG, 0.02), schedule, serving.common.poisson(3, 14))
    assert p99(record.tokens) <= promise
    assert statistics.median(record.first) < first


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
