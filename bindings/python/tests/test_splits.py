"""Resources and splits: rows 1 and 2, and the first of what none has."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import gcx
import pytest


def counts(split: gcx.Split) -> tuple[list[int], int]:
    return [group.sm_count for group in split.groups], split.remainder.sm_count


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ([108, 24], ([108, 24], 0)),
        ([24, None], ([24, 108], 0)),
        ([7], ([8], 124)),
        ([10], ([12], 120)),
        ([17], ([20], 112)),
        ([8, 16, 24], ([8, 16, 24], 84)),
        ([16, 16], ([16, 16], 100)),
        ([None], ([132], 0)),
        (24, ([24], 108)),
        ((24, 24), ([24, 24], 84)),
        (range(8, 25, 8), ([8, 16, 24], 84)),
    ],
)
def test_row_1_unequal_counts_on_every_driver(
    sms: gcx.SMResource, asked: Any, given: tuple[list[int], int]
) -> None:
    split = sms.split(asked)
    assert counts(split) == given
    assert split.groups[0].overlap(split.remainder) == 0


def test_row_2_scalars_count_for_every_group(sms: gcx.SMResource, version: tuple[int, int]) -> None:
    assert counts(sms.split(gcx.SplitOptions(16))) == ([16], 116)
    assert counts(sms.split(gcx.SplitOptions([16, None]))) == ([16, 116], 0)
    options = gcx.SplitOptions(count=16, coscheduled_sm_count=[8, 8], backfill=False)
    assert repr(options) == "gcx.SplitOptions(count=16, coscheduled_sm_count=(8, 8))"
    if version < (13, 1):
        with pytest.raises(gcx.NotSupportedError, match=r"13\.1"):
            sms.split(options)
    else:
        groups, _ = sms.split(options)
        assert [group.sm_count for group in groups] == [16, 16]
        assert {group.family for group in groups} == {"structured"}
        assert sms.plan(options).groups == (16, 16)


def test_row_2_locality_domains_need_13_4(script: Any) -> None:
    code = """
import gcx
sms = gcx.Device(0).resources.sm
options = gcx.SplitOptions(count=74, backfill=True, locality_domain=[0, 1])
try:
    groups, _ = sms.split(options)
    print([group.sm_count for group in groups], [group.locality_domain for group in groups])
except gcx.NotSupportedError as error:
    print("13.4" in str(error))
"""
    assert script(code, "sim:b200@13.5") == "[74, 74] [0, 1]\n"
    assert script(code, "sim:b200@13.1") == "True\n"


def test_row_2_a_locality_domain_that_is_not_there(script: Any) -> None:
    code = """
import gcx
try:
    gcx.split(gcx.SplitOptions(count=16, locality_domain=[0, 1]))
except ValueError as error:
    print(error)
"""
    assert "request 1: locality domain 1; device 0 has 1" in script(code, "sim:h100@13.5")


def test_what_does_not_fit_says_why(sms: gcx.SMResource) -> None:
    with pytest.raises(gcx.ResourceConfigurationError, match=r"140.*132") as caught:
        sms.split([140])
    error = caught.value
    assert (error.code, error.name) == (915, "GCX_ERROR_INVALID_RESOURCE_CONFIGURATION")
    assert "140" in error.message
    assert "SMResource.split" in str(error)
    assert pickle.loads(pickle.dumps(error)).message == error.message


def test_beyond_1_splits_of_splits_and_set_operations(sms: gcx.SMResource) -> None:
    small, rest = sms.split([24])
    more, _ = rest.split([32])
    large = small[0] | more[0]
    assert large.sm_count == 56
    assert large - more[0] == small[0]
    assert large & small[0] == small[0]
    assert small[0].overlap(large) == 24
    assert not small[0] & more[0]
    assert small[0]
    assert sms.split([24]).groups[0] == small[0]
    assert len({small[0], sms.split([24]).groups[0], large}) == 2
    assert small[0] != "24 SMs"
    with pytest.raises(TypeError):
        small[0] | 24  # type: ignore[operator]
    with pytest.raises(TypeError):
        small[0].overlap(24)  # type: ignore[arg-type]


def test_atoms_and_sm_ids(sms: gcx.SMResource) -> None:
    group = sms.split([24]).groups[0]
    atoms = group.atoms
    assert [atom.sm_count for atom in atoms] == [8, 8, 8]
    assert atoms[0] | atoms[1] | atoms[2] == group
    ids = group.sm_ids()
    assert len(set(ids)) == 24
    assert list(ids) == sorted(ids)
    with gcx.Context(group) as context, context.stream() as stream:
        assert stream.sm_ids() == ids


def test_overlap_across_families_is_known_once_mapped(script: Any) -> None:
    code = """
import gcx
device = gcx.Device(0)
a, b = (device.resources.sm.split([8], family=name).groups[0] for name in ("coscheduled", "fine"))
try:
    a.overlap(b)
except gcx.NotReadyError as error:
    assert 'gcx.Device(0).map_sms("' in str(error), error
else:
    raise SystemExit("no error")
device.map_sms("coscheduled")
device.map_sms("fine")
assert a.overlap(b) == len(set(a.sm_ids()) & set(b.sm_ids()))
"""
    script(code)


def test_values_are_values(sms: gcx.SMResource) -> None:
    group = sms.split([24]).groups[0]
    assert gcx.SMResource(bytes(group)) == group
    assert copy.deepcopy(group) == copy.copy(group) == group
    with pytest.raises(TypeError, match="only in this process"):
        pickle.dumps(group)
    for forged in (bytes(128), b"\1" * 128):
        with pytest.raises((gcx.InvalidResourceTypeError, gcx.ResourceConfigurationError)):
            gcx.SMResource(forged)
    with pytest.raises(ValueError, match="128 bytes"):
        gcx.SMResource(b"short")
    with pytest.raises(TypeError):
        gcx.SMResource("text")  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        group.sm_count = 8  # type: ignore[misc]
    with pytest.raises(gcx.InvalidResourceTypeError):
        gcx.WorkqueueResource(bytes(group))


def test_row_2_workqueues(sms: gcx.SMResource, version: tuple[int, int]) -> None:
    if version < (13, 1):
        with pytest.raises(gcx.NotSupportedError, match=r"13\.1"):
            _ = gcx.Device(0).resources.workqueue
        return
    default = gcx.Device(0).resources.workqueue
    mine = default.configured("green_ctx_balanced", 4)
    assert (mine.scope, mine.concurrency_limit, mine.device) == ("green_ctx_balanced", 4, 0)
    assert mine.configured(concurrency_limit=2).scope == "green_ctx_balanced"
    assert "green_ctx_balanced" in repr(mine)
    with gcx.Context([sms.split([24]).groups[0], mine]) as context:
        assert context.resources.workqueue.concurrency_limit == 4
        assert context.resources.sm.sm_count == 24
        with context.stream() as stream:
            assert stream.resources.workqueue.scope == "green_ctx_balanced"
    (part,) = gcx.split([24], workqueue=mine)
    with part:
        assert part.context.resources.workqueue == mine
    for bad in ("shared", ""):
        with pytest.raises(ValueError, match="device_ctx"):
            default.configured(bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        default.configured(1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 1"):
        default.configured(concurrency_limit=0)
    with pytest.raises(gcx.InvalidResourceTypeError):
        gcx.Context([mine])


class Index:
    """A whole number of another library, as numpy has them."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


BAD = [
    ("24", TypeError),
    (b"24", TypeError),
    (24.0, TypeError),
    (True, TypeError),
    ({24}, TypeError),
    ({24: 1}, TypeError),
    (["24"], TypeError),
    ([24.0], TypeError),
    ([True], TypeError),
    ([[24]], TypeError),
    ([object()], TypeError),
    ([], ValueError),
    ((), ValueError),
    (iter([]), ValueError),
    (0, ValueError),
    ([0], ValueError),
    (-8, ValueError),
    ([24, -8], ValueError),
    ([24, 0], ValueError),
    ([2**32 - 1], ValueError),
    ([2**32], ValueError),
    ([2**80], ValueError),
    (Index(-1), ValueError),
]


@pytest.mark.parametrize(("bad", "error"), BAD, ids=[repr(bad)[:24] for bad, _ in BAD])
def test_row_8_bad_counts(sms: gcx.SMResource, bad: Any, error: type[Exception]) -> None:
    for call in (sms.split, sms.plan, gcx.split, gcx.verify):
        with pytest.raises(error) as caught:
            call(bad)
        assert len(str(caught.value)) > 10
    if error is ValueError:
        assert isinstance(caught.value, gcx.Error)


def test_whole_numbers_of_other_libraries_are_taken(sms: gcx.SMResource) -> None:
    assert counts(sms.split([Index(24)])) == ([24], 108)
    assert counts(sms.split(iter([8, 16]))) == ([8, 16], 108)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"count": []}, ValueError),
        ({"count": [8, 8], "backfill": [True]}, ValueError),
        ({"count": "8"}, TypeError),
        ({"count": 8, "backfill": 1}, TypeError),
        ({"count": 8, "coscheduled_sm_count": -1}, ValueError),
        ({"count": 8, "coscheduled_sm_count": 8.0}, TypeError),
        ({"count": 8, "preferred_coscheduled_sm_count": 2**40}, ValueError),
        ({"count": 8, "locality_domain": "near"}, ValueError),
        ({"count": 8, "locality_domain": -1}, ValueError),
        ({"count": 8, "locality_domain": 1.5}, TypeError),
    ],
)
def test_row_8_bad_options(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        gcx.SplitOptions(**arguments)


def test_row_8_wrong_words_of_a_split(sms: gcx.SMResource) -> None:
    split: Any = sms.split
    with pytest.raises(ValueError, match="'fine'"):
        split([24], family="large")
    for wrong in ({"family": 1}, {"exact": 1}):
        with pytest.raises(TypeError):
            split([24], **wrong)


@pytest.mark.parametrize("bad", ["cuda:0", 0.0, True, None, object()])
def test_row_8_bad_devices(bad: Any) -> None:
    for call in (gcx.Device, lambda device: gcx.split([8], device=device), gcx.Event):
        with pytest.raises(TypeError, match="device"):
            call(bad)


def test_row_8_devices_that_are_not_there() -> None:
    with pytest.raises(gcx.InvalidDeviceError, match="7"):
        gcx.Device(7)
    for number in (-1, 2**40):
        with pytest.raises(gcx.InvalidDeviceError, match=f"no device {number}"):
            gcx.Device(number)


def test_options_are_a_value() -> None:
    counts = [8, 16]
    options = gcx.SplitOptions(counts, backfill=True)
    counts.append(24)
    assert options.count == (8, 16)
    assert options == gcx.SplitOptions((8, 16), backfill=[True, True])
    assert options != gcx.SplitOptions((8, 16))
    assert options != [8, 16]
    assert len({options, gcx.SplitOptions([8, 16], backfill=True), gcx.SplitOptions(8)}) == 2
    assert pickle.loads(pickle.dumps(options)) == copy.deepcopy(options) == options
    for name in ("count", "_requests", "nonsense"):
        with pytest.raises(AttributeError, match="can't be changed"):
            setattr(options, name, 8)
    with pytest.raises(AttributeError, match="can't be changed"):
        del options.count
    assert options == gcx.SplitOptions([8, 16], backfill=True)


class Array:
    """Numbers as NumPy and PyTorch have them: comparing gives an array, which is neither true nor
    false, and an array of one number is an index."""

    def __init__(self, *numbers: Any, scalar: bool = False) -> None:
        self.numbers = numbers
        self.scalar = scalar

    def __eq__(self, other: object) -> Any:
        return Array(*(number == other for number in self.numbers))

    def __bool__(self) -> bool:
        raise ValueError("The truth value of an array with more than one element is ambiguous")

    def __iter__(self) -> Any:
        if self.scalar:
            raise TypeError("iteration over a 0-d array")
        return iter(Array(number, scalar=True) for number in self.numbers)

    def __index__(self) -> int:
        if len(self.numbers) != 1 or type(self.numbers[0]) is not int:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return self.numbers[0]


def test_arrays_are_counts(sms: gcx.SMResource) -> None:
    for split in (sms.split, gcx.split):
        assert len(split(Array(8, 16))) == 2
    assert counts(sms.split(Array(8, 16))) == ([8, 16], 108)
    assert counts(sms.split(Array(24, scalar=True))) == ([24], 108)
    assert counts(sms.split(gcx.SplitOptions(Array(8, 16)))) == ([8, 16], 108)
    assert [group.sm_count for group in gcx.verify(Array(8, 16)).groups] == [8, 16]
    bad: list[Any] = [Array(8.0), Array(8.0, scalar=True), [Array(8, 16)], Array(True, "x")]
    for wanted in bad:
        with pytest.raises(TypeError, match="a group's count must be an int"):
            sms.split(wanted)
    with pytest.raises(ValueError, match="is empty"):
        sms.split(Array())


def test_arrays_of_numpy_are_counts(sms: gcx.SMResource) -> None:
    numpy = pytest.importorskip("numpy", reason="NumPy isn't installed")
    for wanted in (numpy.array([8, 16]), list(numpy.array([8, 16])), numpy.arange(8, 17, 8)):
        assert counts(sms.split(wanted)) == ([8, 16], 108)
    assert counts(sms.split(numpy.array(24))) == ([24], 108)
    assert counts(sms.split(numpy.int64(24))) == ([24], 108)
    for wrong in (numpy.array([8.0]), numpy.array([[8]]), numpy.array(["8"]), numpy.float64(8)):
        with pytest.raises(TypeError):
            sms.split(wrong)


def test_sets_compare_as_sets(sms: gcx.SMResource) -> None:
    (small, other), rest = sms.split([24, 16])
    empty = small - small
    assert empty <= small <= small <= sms
    assert not small < small
    assert empty < small < sms
    assert sms >= small
    assert sms > small
    assert not small <= other
    assert not small <= rest
    assert small.isdisjoint(other)
    assert not small.isdisjoint(sms)
    assert empty.isdisjoint(empty)
    wrong: Any = 24
    for compare in (operator.le, operator.lt, operator.gt, operator.ge):
        with pytest.raises(TypeError):
            compare(small, wrong)
    with pytest.raises(TypeError, match=r"gcx\.SMResource"):
        small.isdisjoint(24)  # type: ignore[arg-type]


def test_sm_ids_of_structured_groups_are_refused_in_words(
    sms: gcx.SMResource, version: tuple[int, int]
) -> None:
    if version < (13, 1):
        pytest.skip("needs structured splits")
    group = sms.split(gcx.SplitOptions(16, coscheduled_sm_count=8)).groups[0]
    with pytest.raises(gcx.Error) as caught:
        group.sm_ids()
    assert "family 4" not in str(caught.value)
    assert "map_sms" not in str(caught.value).partition(":")[2]
