"""gcx.tune: its search, objectives and verdicts on models of a GPU, and all of it on the simulated
driver, whose kernels do not share SMs."""

from __future__ import annotations

import ctypes
import itertools
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gcx
import pytest
from fakes import FakeCublas  # type: ignore[import-not-found]
from gcx.tune import Arm, Goal, Measured, Sample, Search, Tuning, main
from work import Work, run_program  # type: ignore[import-not-found]

FACTS = {"device": "a model", "SM count": 132, "simulated": False, "moved_bytes": {}}
TIME = Goal("time", {}, {})


@dataclass
class Load:
    """A work whose time is serial_ms plus its SM milliseconds on at most this many SMs."""

    sm_ms: float
    serial_ms: float = 0.0
    most: int = 1000
    memory: float = 0.0  # the least milliseconds, by memory bandwidth

    def ms(self, sms: int) -> float:
        return max(self.serial_ms + self.sm_ms / min(sms, self.most), self.memory)


class Model:
    """Splits share memory bandwidth; plain streams run one work after the other, if it is long."""

    can_report = False
    simulated = True

    def __init__(self, loads: dict[str, Load], sm_count: int = 132, refused: str = "") -> None:
        self.loads, self.names, self.sm_count = loads, tuple(loads), sm_count
        self.sizes = tuple(range(8, sm_count - 7, 8))
        self.refused = refused
        self.calls: list[Arm] = []

    def alone(self, name: str, sm_count: int) -> float:
        return self.loads[name].ms(sm_count)

    def together(self, arm: Arm) -> dict[str, float]:
        """The milliseconds of a round of each work while the others run."""
        if arm.kind != "split":
            return dict.fromkeys(
                self.names, sum(self.alone(name, self.sm_count) for name in self.names)
            )
        alone = {name: self.alone(name, sms) for name, sms in zip(self.names, arm.counts)}
        memory = sum(self.loads[name].memory for name in self.names)
        return {name: max(ms, memory) for name, ms in alone.items()}

    def sample(self, arm: Arm, goal: Goal, window_ms: float) -> Sample:
        self.calls.append(arm)
        if arm.kind == "split" and self.refused:
            raise RuntimeError(self.refused)
        times = self.together(arm)
        if goal.objective == "time":
            return Sample(max(times.values()))
        others = [name for name in self.names if name not in goal.critical]
        speeds = {name: self.alone(name, self.sm_count) / times[name] for name in others}
        return Sample(0.0, {name: [times[name]] * 3 for name in goal.critical}, speeds)


def tuned(model: Model, goal: Goal = TIME, **facts: Any) -> Tuning:
    search = Search(model, goal, 30.0, lambda _: None)
    search.run()
    all_facts = {**FACTS, "SM count": model.sm_count, **facts}
    return Tuning(all_facts, goal, search.alone, [*search.found.values()], search.interrupted)


def split_arms(tuning: gcx.Tuning) -> list[Measured]:
    return [one for one in tuning.arms if one.arm.kind == "split"]


def exhaustive(model: Model, goal: Goal) -> tuple[float, float]:
    """The best score of all splits."""
    scores = []
    for counts in itertools.product(model.sizes, repeat=len(model.names) - 1):
        rest = model.sm_count - sum(counts)
        if rest >= 8:
            scores.append(goal.score([model.sample(Arm("split", (*counts, rest)), goal, 1.0)]))
    return min(scores)


GOALS = [
    TIME,
    Goal("latency", {"a": 0.0}, {"b": 0.6}),
    Goal("promise", {"a": 9.0}, {}),
]


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.objective)
@pytest.mark.parametrize("sm_count", [66, 132, 300])
def test_search_finds_the_best_of_two(goal: Goal, sm_count: int) -> None:
    chance = random.Random(f"{sm_count}")
    for _ in range(50):
        loads = {
            name: Load(chance.uniform(50, 900), chance.uniform(0, 3), chance.randrange(16, 400))
            for name in "ab"
        }
        model = Model(loads, sm_count)
        found = goal.score(split_arms(tuned(model, goal))[0].samples)
        missed, value = exhaustive(Model(loads, sm_count), goal)
        assert found[0] <= missed + 0.03
        assert found[0] > 0 or found[1] <= value * 1.03


@pytest.mark.parametrize("sm_count", [36, 132, 148, 216])
@pytest.mark.parametrize("count", [3, 4])
def test_search_finds_a_good_split_of_several(count: int, sm_count: int) -> None:
    chance = random.Random(count)
    for _ in range(10):
        loads = {name: Load(chance.uniform(50, 900)) for name in "abcd"[:count]}
        best = split_arms(tuned(Model(loads, sm_count)))[0]
        assert sum(best.arm.counts) == sm_count
        assert TIME.score(best.samples)[1] <= exhaustive(Model(loads, sm_count), TIME)[1] * 1.1


def test_device_that_cannot_be_split_is_tuned_without_splits() -> None:
    tuning = tuned(Model({"a": Load(100.0), "b": Load(100.0)}, 8))
    assert tuning.verdict == "Don't split: none was measured"
    assert not split_arms(tuning)


def test_arms_that_cannot_win_end_early() -> None:
    model = Model({"a": Load(200.0), "b": Load(800.0)})
    tuning = tuned(model)
    samples = {one.arm: len(one.samples) for one in tuning.arms}
    assert samples[tuning.best.arm] == 9
    assert samples[Arm("split", (120, 12))] == 3
    turns = model.calls[:19]
    assert len(set(turns)) == 19  # in turns, not one arm after the other


def test_verdict_splits_what_does_not_scale() -> None:
    tuning = tuned(Model({"a": Load(100.0, 4.0, 24), "b": Load(500.0)}))
    assert tuning.best.arm.kind == "split"
    counts = "/".join(map(str, tuning.best.counts.values()))
    assert tuning.verdict.startswith(f"Split {counts}: one round takes ")
    assert " ms (in sequence), 0." in tuning.verdict


def test_verdict_names_competition_for_something_else() -> None:
    loads = {"decode": Load(300.0, 0.0, 132, 6.0), "prefill": Load(400.0, 0.0, 132, 7.0)}
    verdict = tuned(Model(loads)).verdict
    assert verdict == (
        "Don't split: decode does not get faster above 64 SMs and prefill does not get faster "
        "above 64 SMs, yet together they take as long as in sequence; they compete for something "
        "other than SMs"
    )
    with_bytes = tuned(Model(loads), moved_bytes={"decode": 20e9, "prefill": 24e9}).verdict
    assert with_bytes == verdict + ": 3.38 TB/s of memory bandwidth"


def test_verdict_names_works_that_scale() -> None:
    assert tuned(Model({"a": Load(500.0), "b": Load(500.0)})).verdict == (
        "Don't split: each gets faster up to all 132 SMs, and together they take as long as in "
        "sequence"
    )


def test_verdict_of_latency_and_of_a_promise() -> None:
    loads = {"small": Load(24.0, 0.5, 24), "heavy": Load(1000.0)}
    tuning = tuned(Model(loads), Goal("latency", {"small": 0.0}, {"heavy": 0.8}))
    assert tuning.best.arm == Arm("split", (24, 108))
    assert tuning.verdict == (
        "Split 24/108: small's p99 is 1.5 ms, heavy keeps 0.82; in sequence: small's p99 is "
        "9.08 ms, heavy keeps 0.83"
    )
    tuning = tuned(Model(loads), Goal("promise", {"small": 2.0}, {}))
    assert tuning.best.arm == Arm("split", (16, 116))
    tuning = tuned(Model(loads), Goal("promise", {"small": 1.0}, {}))
    assert tuning.verdict.startswith("No arm keeps the promise; nearest is split 24/108: small's")
    tuning = tuned(Model(loads), Goal("promise", {"small": 10.0}, {}))
    assert tuning.verdict.startswith("Split 8/124")


def test_simplest_of_equally_good_arms_is_chosen() -> None:
    shares = {"sequence": 1.0, "plain": 0.81, "priority": 0.8, "split": 0.795}

    class Noisy(Model):
        def sample(self, arm: Arm, goal: Goal, window_ms: float) -> Sample:
            return Sample(10 * shares[arm.kind])

    loads = {"a": Load(500.0), "b": Load(500.0)}
    tuning = tuned(Noisy(loads))
    assert tuning.best.arm == Arm("plain")
    assert tuning.verdict == (
        "Don't split: one round takes 0.81 times that in sequence (plain streams), and 0.80 times "
        "with the best split, 8/124"
    )
    shares["split"] = 0.7
    assert tuned(Noisy(loads)).best.arm.kind == "split"


def test_leading_arm_gets_all_samples_also_if_it_was_dropped() -> None:
    class Drifting(Model):
        """A split of 64 SMs is best at first, and then the one of 72."""

        def sample(self, arm: Arm, goal: Goal, window_ms: float) -> Sample:
            count = self.calls.count(arm)
            self.calls.append(arm)
            if arm.counts[:1] == (64,):
                return Sample(1.0 if count < 3 else 1.6)
            return Sample(1.5 if arm.counts[:1] == (72,) else 2.0)

    tuning = tuned(Drifting({"a": Load(500.0), "b": Load(500.0)}))
    assert tuning.best.arm == Arm("split", (72, 60))
    assert len(tuning.best.samples) == 9


def test_launches_that_take_the_host_too_long_are_noted() -> None:
    model = Model({"a": Load(132.0), "b": Load(264.0)})
    tuning = tuned(model, launch_ms={"a": 0.5, "b": 1.9})
    assert tuning.verdict.endswith(
        "Note: the host takes 1.9 ms to launch b, so that the figures are the host's rather than "
        "the GPU's; capture it as a graph"
    )


def test_refused_splits_are_reported() -> None:
    tuning = tuned(Model({"a": Load(1.0), "b": Load(1.0)}, refused="clusters of 16\nmore"))
    assert tuning.verdict == "Don't split: every split was refused: clusters of 16"
    assert "split 8/124     refused: clusters of 16" in tuning.table
    assert "clusters of 16" in tuning._repr_html_()


def test_interruption_returns_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Model):
        def sample(self, arm: Arm, goal: Goal, window_ms: float) -> Sample:
            if len(self.calls) == 30:
                raise KeyboardInterrupt
            return super().sample(arm, goal, window_ms)

    tuning = tuned(Interrupted({"a": Load(100.0, 4.0, 24), "b": Load(500.0)}))
    assert tuning.interrupted
    assert tuning.verdict.endswith("Note: interrupted before all was measured")
    monkeypatch.setattr(Interrupted, "alone", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        tuned(Interrupted({"a": Load(1.0), "b": Load(1.0)}))


def test_waves_of_the_last_tiles_are_noted() -> None:
    class Tiles(Model):
        def alone(self, name: str, sm_count: int) -> float:
            return -(-132 // sm_count) * 4.0 if name == "b" else 6.0

    tuning = tuned(Tiles({"a": Load(0.0), "b": Load(0.0)}))
    assert "b alone takes 2.00 times as long on " in tuning.verdict


# On the simulated driver


@pytest.fixture(autouse=True)
def _no_context_is_cached() -> Iterator[None]:
    gcx.trim_cache(0)
    yield
    gcx.trim_cache(0)


@pytest.fixture
def two(work: Work) -> dict[str, Any]:
    return {"decode": work.waves(48), "prefill": work.waves(2112)}


@pytest.mark.parametrize(
    "options",
    [{}, {"objective": "latency"}, {"objective": "latency", "critical": "prefill", "keep": 0.1},
     {"promise_ms": {"decode": 2}}, {"promise_ms": {"decode": 2, "prefill": 9}}],
    ids=str,
)  # fmt: skip
def test_simulated_tuning_is_marked_and_deterministic(work: Work, options: dict[str, Any]) -> None:
    works = {"decode": work.waves(48, 20), "prefill": work.waves(2112, 20)}
    first, second = (gcx.tune(works, seconds=0.01, **options) for _ in range(2))
    assert str(first) == str(second)
    assert str(first).startswith("SIMULATED: no GPU is involved\n")
    assert first._repr_html_().startswith("<p>SIMULATED")
    assert first.simulated
    assert "SIMULATED" in repr(first)
    assert gcx.leases() == []
    assert gcx.live_contexts() == []


def test_alone_times_scale_with_sms(two: dict[str, Any]) -> None:
    tuning = gcx.tune(two, seconds=0.1)
    assert tuning.alone["decode"][132] == pytest.approx(0.5, rel=0.05)
    assert tuning.alone["prefill"][132] == pytest.approx(4.0, rel=0.05)
    assert tuning.alone["prefill"][64] == pytest.approx(8.5, rel=0.05)


def test_works_of_each_kind_run(work: Work, two: dict[str, Any]) -> None:
    graph = gcx.Graph(work.capture().handle)
    called = []

    def without_a_stream() -> None:
        called.append(1)

    works = {"graph": graph, "captured": work.capture(), "callable": without_a_stream}
    tuning = gcx.tune(works, seconds=0.1)
    assert called
    assert set(tuning.alone) == {"graph", "captured", "callable"}
    assert tuning.alone["graph"][132] == pytest.approx(1.0, rel=0.05)
    assert len(gcx.tune({**two, "c": graph, "d": without_a_stream}, seconds=0.05).arms) > 10
    with pytest.raises(TypeError, match="the work 'b' is a int; give a callable"):
        gcx.tune({"a": graph, "b": 3})


def test_callable_has_the_stream_only_as_a_missing_argument() -> None:
    got: list[Any] = []

    def optional(stream: gcx.Stream | None = None) -> None:
        got.append(stream)

    def scaled(stream: gcx.Stream, scale: int = 2) -> None:
        got.append(stream)

    def types(one: Any, other: Any) -> set[type]:
        got.clear()
        gcx.tune({"one": one, "other": other}, seconds=0.01)
        return set(map(type, got))

    assert types(got.append, optional) == {gcx.Stream}
    assert types(scaled, partial(scaled, scale=3)) == {gcx.Stream}
    assert types(lambda own=3: got.append(own), lambda *, own=3: got.append(own)) == {int}
    assert types(lambda *more: got.extend(more), lambda **named: got.extend(named)) == set()


def test_count_is_reported_to_cublas_in_one_arm(
    work: Work, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = FakeCublas()
    monkeypatch.setattr("gcx._current._cublas", lambda _: library)
    streams = set()

    def product() -> None:
        """Is faster if it plans for its SMs."""
        native = torch.cuda.current_stream().cuda_stream
        streams.add(native)
        with gcx.Stream.from_native(native) as stream:
            work.waves(2112, 10 if stream.sm_count in library.targets.values() else 40)(stream)

    tuning = gcx.tune({"a": product, "b": lambda: product()}, seconds=0.1)
    reported = [one for one in tuning.arms if one.arm.reported]
    counts = reported[0].arm.counts
    without = [one for one in split_arms(tuning) if one.arm.counts == counts][1]
    assert str(reported[0].arm) == f"split {counts[0]}/{counts[1]}, count reported"
    assert reported[0].samples[0].round_ms < 0.4 * without.samples[0].round_ms
    assert tuning.verdict.startswith(f"Split {counts[0]}/{counts[1]}: one round takes ")
    assert "; report the count to cuBLAS (" in tuning.verdict
    assert set(library.targets.values()) == {0}
    assert len(streams) > 10


def test_best_split_becomes_leases(two: dict[str, Any]) -> None:
    tuning = gcx.tune(two, seconds=0.1)
    with pytest.raises(ValueError, match="there is nothing to lease, because the best is: "):
        tuning.best.apply()
    split = gcx.Choice(tuning, split_arms(tuning)[0])
    assert split.counts == {"decode": 8, "prefill": 124}
    leases = split.apply()
    assert {name: lease.sm_count for name, lease in leases.items()} == split.counts
    with pytest.raises(gcx.AlreadyAcquiredError):
        split.apply()
    leases["decode"].close()
    with pytest.raises(gcx.AlreadyAcquiredError):
        split.apply()  # which releases the first, as the second is refused
    assert len(gcx.leases()) == 1
    leases["prefill"].close()


def test_tuning_is_saved_and_refused_elsewhere(work: Work) -> None:
    works = {"decode": work.waves(48, 20), "prefill": work.waves(2112, 20)}
    tuning = gcx.tune(works, seconds=0.01, promise_ms={"decode": 2})
    text = tuning.to_json()
    again = gcx.Tuning.load(text)
    assert (str(again), again.to_json()) == (str(tuning), text)
    for key, value in (("device", "NVIDIA B200"), ("driver", "99.0"), ("version of gcx", "9.9.9")):
        changed = text.replace(f'"{key}": "{tuning.facts[key]}"', f'"{key}": "{value}"')
        assert changed != text
        with pytest.raises(ValueError, match=f"the tuning is for another {key}: {value}, but "):
            gcx.Tuning.load(changed)
    fields = json.loads(text)
    for damaged in (
        *("", "{}", "[]", "3", '{"facts": 1}', text.replace('"arms"', '"legs"')),
        json.dumps({**fields, "arms": []}),
        json.dumps({name: fields[name] for name in fields if name != "interrupted"}),
    ):
        with pytest.raises(ValueError, match="this is no tuning of gcx"):
            gcx.Tuning.load(damaged)


def test_different_results_are_refused(two: dict[str, Any]) -> None:
    checks = []

    def check() -> int:
        checks.append(1)
        return 0 if len(checks) < 8 else 1

    tuning = gcx.tune(two, seconds=0.1, check=check)
    refused = [one for one in tuning.arms if one.refused]
    assert {one.refused for one in refused} == {"the results differ: check gave 1, not 0"}
    assert len(checks) == len(tuning.arms)
    count = itertools.count(1)
    with pytest.raises(ValueError, match="the results differ: check gave 2, not 1"):
        gcx.tune(two, seconds=0.1, check=lambda: next(count))


def test_failing_work_raises_its_error(two: dict[str, Any]) -> None:
    def fails(stream: gcx.Stream) -> None:
        raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        gcx.tune({**two, "c": fails})

    def fails_on_few(stream: gcx.Stream) -> None:
        if stream.sm_count < 32:
            raise RuntimeError("needs clusters of 16")
        two["prefill"](stream)

    tuning = gcx.tune({"decode": two["decode"], "prefill": fails_on_few}, seconds=0.1)
    refused = {one.arm.counts[1]: one.refused for one in tuning.arms if one.refused}
    assert refused == dict.fromkeys((12, 20, 28), "needs clusters of 16")
    assert ". Note: split 104/28 was refused: needs clusters of 16" in tuning.verdict


def test_work_that_leaves_its_capture_open_is_named(two: dict[str, Any], work: Work) -> None:
    def captures(stream: gcx.Stream) -> None:
        work.call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream.native), 2)

    with pytest.raises(gcx.Error):
        gcx.tune({"decode": two["decode"], "other": captures}, seconds=0.1)
    assert all(one.sm_count for one in gcx.live_contexts())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objective": "speed"}, 'objective is "time" or "latency"'),
        ({"critical": "decode"}, 'critical is for objective="latency"'),
        ({"objective": "latency", "critical": "x"}, "'x' is not a work; there are decode, prefill"),
        ({"objective": "latency", "keep": {"y": 1}}, "'y' is not a work"),
        ({"promise_ms": {}}, "promise_ms needs a work with a time above 0 ms"),
        ({"promise_ms": {"decode": 0}}, "promise_ms needs a work"),
        ({"promise_ms": {"z": 1}}, "'z' is not a work"),
        ({"promise_ms": {"decode": 1}, "objective": "latency"}, "promise_ms replaces objective"),
        ({"moved_bytes": {"w": 1}}, "moved_bytes names w, which is not a work"),
        ({"seconds": 0}, "seconds must be positive, not 0"),
        ({"seconds": float("nan")}, "seconds must be positive"),
    ],
)
def test_wrong_arguments_are_refused(
    two: dict[str, Any], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        gcx.tune(two, **options)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_wrong_number_of_works_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"tune compares 2 to 4 works, not {count}"):
        gcx.tune({str(number): print for number in range(count)})


def test_command_tunes_two_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pair.py").write_text("def one(): pass\ndef two(): pass\nthree = 3\n")
    monkeypatch.chdir(tmp_path)
    words = ["pair:one", "pair:two", "--seconds", "0.1"]
    assert main([*words, "--json", "tuning.json"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("SIMULATED: no GPU is involved\n")
    assert str(gcx.Tuning.load((tmp_path / "tuning.json").read_text())) + "\n" == printed
    assert main([*words, "--promise", "one=5"]) == 0
    for wrong, text in (
        (["pair"], "'pair' is not MODULE:FUNCTION"),
        (["pair:four"], "has no attribute 'four'"),
        (["nothing_there:f"], "No module named 'nothing_there'"),
        (["pair:three"], "pair:three is not a function"),
        (["pair:one", "pair:one"], "the same name"),
        (["pair:one"], "tune compares 2 to 4 works, not 1"),
        ([*words, "--promise", "one"], "'one' is not FUNCTION=MILLISECONDS"),
    ):
        with pytest.raises(SystemExit):
            main(wrong)
        assert text in capsys.readouterr().err
    done = run_program(sys.executable, "-W", "error", "-m", "gcx.tune", *words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == printed


def test_plot_is_an_svg(two: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib isn't installed")
    gcx.tune(two, seconds=0.1).plot(tmp_path / "tuning.svg")
    text = (tmp_path / "tuning.svg").read_text()
    assert "prefers-color-scheme: dark" in text
    assert "SIMULATED" in text
