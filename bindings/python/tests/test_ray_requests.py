"""gcx.ray with a fake Ray; test_ray.py uses the real one."""

from __future__ import annotations

import json
import pickle
import sys
import threading
import types
from fractions import Fraction
from pathlib import Path
from typing import Any

import gcx
import gcx.ray
import pytest


class Context:
    """Ray's runtime context of a worker."""

    def __init__(self, **given: Any) -> None:
        self.worker = types.SimpleNamespace(mode=given.get("mode", 1))
        self.given = given

    def get_assigned_resources(self) -> dict[str, float]:
        return {"CPU": 1.0, **self.given.get("resources", {"gcx_sms": 24.0})}

    def get_accelerator_ids(self) -> dict[str, list[str]]:
        return {"GPU": self.given.get("gpus", []), "TPU": []}

    def get_actor_id(self) -> Any:
        return self.given.get("actor", "0123456789abcdef")

    def get_actor_name(self) -> str:
        return str(self.given.get("name", ""))

    def get_task_name(self) -> Any:
        return self.given.get("task", "Decode.__init__")

    def get_node_id(self) -> str:
        return "fedcba9876543210"


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Makes this process a worker of Ray with that context."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("GCX_RESERVATION_DIR", str(tmp_path))
    monkeypatch.setattr(gcx.ray, "_of_actor", None)

    def become(**given: Any) -> None:
        ray = types.SimpleNamespace(
            WORKER_MODE=1,
            is_initialized=lambda: True,
            get_runtime_context=lambda: Context(**given),
        )
        monkeypatch.setitem(sys.modules, "ray", ray)

    return become


@pytest.fixture
def _mps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports MPS as on, which avoids a warning."""
    monkeypatch.setattr(gcx.Reservation, "mps", property(lambda reservation: True))


def test_gcx_imports_no_ray(script: Any) -> None:
    script("""
import sys, gcx, gcx.ray
assert "ray" not in sys.modules
sys.modules["ray"] = None
try:
    gcx.ray.reserve()
except ImportError as error:
    assert "pip install ray" in str(error), error
else:
    raise SystemExit("no ImportError")
""")


def test_node_resources_count_all_sms(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gcx.ray.node_resources() == {"gcx_sms": 132}
    command = "import runpy, sys; sys.argv[1:] = []; runpy.run_module('gcx.ray', {}, '__main__')"
    version = ".".join(map(str, gcx.driver_info().version))
    for driver, sms in (("h100,a100", 240), ("orin", 16)):
        said = script(f"""
try:
    {command}
except SystemExit as ended:
    assert ended.code == 0
""", driver=f"sim:{driver}@{version}")  # fmt: skip
        assert json.loads(said) == {"gcx_sms": sms}


def test_options_request_sms_and_a_share() -> None:
    assert gcx.ray.options(24) == {"resources": {"gcx_sms": 24}}
    asked = gcx.ray.options(24, device_sm_count=132)
    assert asked == {"resources": {"gcx_sms": 24}, "num_gpus": 0.1818}
    assert gcx.ray.options(132, device_sm_count=132)["num_gpus"] == 1
    for wrong in (0, -1, 133):
        with pytest.raises(gcx.InvalidValueError):
            gcx.ray.options(wrong, device_sm_count=132)
    with pytest.raises(TypeError):
        gcx.ray.options(24.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        gcx.ray.options(True)


@pytest.mark.parametrize("total", [16, 108, 128, 132, 142, 148, 152])
def test_shares_fit_exactly_when_counts_fit(total: int) -> None:
    """Shares of counts that fit a GPU sum to at most 1, those of two more SMs to more than 1."""
    share = {
        count: Fraction(str(gcx.ray.options(count, device_sm_count=total)["num_gpus"]))
        for count in range(1, total + 1)
    }
    for count in range(2, total - 1, 2):
        assert share[count] + share[total - count] <= 1
        assert share[count] + share[total - count + 2] > 1
    assert share[2] * (total // 2) <= 1 < share[2] * (total // 2 + 1)


@pytest.mark.usefixtures("_mps")
def test_second_call_does_not_wait_behind_another_thread(worker: Any) -> None:
    worker(name="decode")
    others = gcx.reserve(132)
    errors: list[gcx.Error] = []

    def wait() -> None:
        try:
            gcx.ray.reserve(timeout=60, cancel=cancel)
        except gcx.CancelledError as error:
            errors.append(error)

    with gcx.Cancel() as cancel:
        thread = threading.Thread(target=wait)
        thread.start()
        while not any(reservation.waiting for reservation in gcx.reservations()):
            assert thread.is_alive()
        with pytest.raises(gcx.AlreadyAcquiredError, match="another thread of this actor"):
            gcx.ray.reserve(timeout=0)
        cancel.signal()
        thread.join()
    assert len(errors) == 1
    others.close()
    gcx.ray.reserve(timeout=0).close()


@pytest.mark.usefixtures("_mps")
def test_actor_has_one_reservation_and_tasks_many(worker: Any) -> None:
    worker(name="decode")
    reservation = gcx.ray.reserve()
    assert (reservation.name, reservation.sm_count) == ("decode", 24)
    with pytest.raises(gcx.AlreadyAcquiredError, match=r"has its reservation already.*decode"):
        gcx.ray.reserve()
    reservation.close()
    again = gcx.ray.reserve(name="another")
    assert again.name == "another"
    del reservation
    assert len(gcx.reservations()) == 1
    again.close()
    worker(actor=None, task="step")
    with gcx.ray.reserve() as first, gcx.ray.reserve() as second:
        assert (first.name, second.name) == ("step", "step")
    assert gcx.reservations() == []


@pytest.mark.usefixtures("_mps")
@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"name": "x" * 62 + "é"}, "x" * 62),
        ({"name": "a\0b\nc"}, "ab\nc"),
        ({"name": "\ud800"}, "?"),
        ({}, "Decode 01234567"),
        ({"task": None}, "actor 01234567"),
        ({"task": "chosen"}, "chosen 01234567"),
        ({"actor": None, "task": None}, "task"),
    ],
)
def test_name_is_that_of_the_actor_or_task(worker: Any, given: dict[str, Any], name: str) -> None:
    worker(**given)
    with gcx.ray.reserve() as reservation:
        assert reservation.name == name


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"resources": {}}, "this actor requested no gcx_sms from Ray; request them by"),
        ({"resources": {}, "actor": None}, "this task requested no gcx_sms from Ray"),
        (
            {"resources": {"gcx_sms": 0.5}},
            "requested 0.5 gcx_sms from Ray, and an SM can't be divided",
        ),
        ({"resources": {"gcx_sms": 133.0}}, "has 132"),
        (
            {"gpus": ["0", "1"]},
            "Ray assigned 2 GPUs to this actor, and a reservation has SMs of one",
        ),
        ({"gpus": ["5"]}, "Ray assigned GPU 5 to this actor, but CUDA_VISIBLE_DEVICES is None"),
        ({"mode": 0}, "this process is a driver"),
    ],
)
def test_unfit_requests_are_refused(
    worker: Any, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], said: str
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    worker(**given)
    with pytest.raises(RuntimeError, match=said):
        gcx.ray.reserve(timeout=0)
    assert gcx.reservations() == []


def test_forked_child_is_refused(script: Any) -> None:
    said = script("""
import os, gcx.ray
if os.fork() == 0:
    try:
        gcx.ray.reserve()
    except gcx.NotInitializedError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
""")
    assert "unknown to Ray" in said


def test_process_outside_ray_is_refused(worker: Any) -> None:
    worker()
    sys.modules["ray"].is_initialized = lambda: False  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="this process is neither"):
        gcx.ray.reserve()


@pytest.mark.parametrize(
    ("gpus", "visible", "ordinal"),
    [
        ([], None, 0),
        (["0"], None, 0),
        (["1"], None, 1),
        (["1"], "1", 0),
        (["5"], "4, 5,6", 1),
        (["GPU-ab"], "GPU-cd,GPU-ab", 1),
    ],
)
def test_device_is_that_assigned_by_ray(
    monkeypatch: pytest.MonkeyPatch, gpus: list[str], visible: str | None, ordinal: int
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(gcx, "devices", lambda: [gcx.Device(0)] * (2 if gpus else 1))
    assert gcx.ray._device(Context(gpus=gpus)) == ordinal


def test_device_hidden_or_ambiguous_is_refused(
    worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker()
    monkeypatch.setattr(gcx, "devices", lambda: [gcx.Device(0)] * 2)
    with pytest.raises(RuntimeError, match="requested no GPU from Ray and sees 2"):
        gcx.ray.reserve()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(RuntimeError, match="hides all of them"):
        gcx.ray.reserve()


def test_rounding_and_missing_mps_are_warned_of(worker: Any) -> None:
    worker(resources={"gcx_sms": 10.0}, name="odd")
    with pytest.warns(RuntimeWarning) as warned, gcx.ray.reserve() as reservation:
        assert reservation.sm_count == 12  # the last atom of an H100
    rounded, without_mps = (str(warning.message) for warning in warned)
    assert "odd: Ray counts 10 gcx_sms, but the device gives 12" in rounded
    assert "isn't shared by MPS" in without_mps


@pytest.mark.usefixtures("_mps")
def test_sms_in_use_are_explained(worker: Any) -> None:
    worker(name="late")
    with gcx.reserve(120, name="early"), pytest.raises(gcx.TimeoutError) as caught:
        gcx.ray.reserve(timeout=0.01)
    said = str(caught.value)
    assert '"early" of process' in said
    assert "Ray counts 24 gcx_sms of node fedcba9876543210 as free" in said
    assert isinstance(caught.value.__cause__, gcx.TimeoutError)
    copy = pickle.loads(pickle.dumps(caught.value))  # As Ray returns it to the caller.
    assert (type(copy), str(copy)) == (gcx.TimeoutError, said)
