"""gcx.ray on a real Ray of two nodes on this machine. One node has a GPU, the other two; each has
its own folder for reservations."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gcx
import gcx.ray
import pytest

if gcx.driver_info().version != (13, 0):
    pytest.skip("Ray runs on one driver, 13.0: nothing differs here", allow_module_level=True)
ray = pytest.importorskip("ray", reason="tests/requirements-ray.txt has Ray")
from ray.cluster_utils import Cluster  # noqa: E402
from ray.util.placement_group import placement_group, remove_placement_group  # noqa: E402
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy  # noqa: E402
from ray_work import (  # type: ignore[import-not-found] # noqa: E402
    KnowsNothing,
    Reserving,
    reserve_in_a_task,
)
from work import run_program  # type: ignore[import-not-found] # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "python" / "ray_actors.py"
# Starts quickly: without idle workers and without their output.
HEAD = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
SYSTEM: dict[str, Any] = {"enable_worker_prestart": False, "prestart_worker_first_driver": False}
# Long timeouts, for busy machines.
SYSTEM |= {"worker_register_timeout_seconds": 600, "agent_register_timeout_ms": 600_000}
SYSTEM |= {"health_check_failure_threshold": 100}
QUICK = {"RAY_worker_niceness": "0"}
ONE_GPU = {"one_gpu": 0.001}  # A resource of that node alone.


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The reservation folders of the node with one GPU and of that with two."""
    made = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    for folder in made:
        folder.chmod(0o700)
    return made


@pytest.fixture(scope="module")
def cluster(folders: tuple[Path, Path]) -> Iterator[Any]:
    """Both nodes, with the resources that `python -m gcx.ray` prints for each."""
    one, two = folders
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    services = ray._private.services
    nodes, ask = Cluster(), services.get_node
    services.get_node = lambda *which: patiently(lambda: ask(*which))
    try:
        env = {**QUICK, "GCX_SIM_MPS": "1"}
        env |= {"GCX_DRIVER": "sim:h100@13.0", "GCX_RESERVATION_DIR": str(one)}
        # Workers import ray_work, and gcx from where this process has it.
        paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        env["PYTHONPATH"] = os.pathsep.join(paths)
        said = {**node_says(env), "one_gpu": 1}
        other = env | {"GCX_DRIVER": "sim:h100,h100@13.0", "GCX_RESERVATION_DIR": str(two)}
        also = node_says(other)
        try:
            nodes.add_node(
                num_cpus=4, resources=said, env_vars=dict(env), _system_config=SYSTEM, **HEAD
            )
            nodes.add_node(num_cpus=4, resources=also, num_gpus=2, env_vars=other)
            ray.init(address=nodes.address, logging_level="ERROR", log_to_driver=False)
        except Exception as error:  # Nothing of gcx has run in it so far.
            pytest.skip(f"Ray itself doesn't start on this machine: {error!r}")
        yield nodes
    finally:
        services.get_node = ask
        ray.shutdown()
        nodes.shutdown()


_started: list[Any] = []  # The actors of the running test.
_groups: list[Any] = []  # Its placement groups.


def start(actor: Any, *args: Any, **named: Any) -> Any:
    """Starts an actor that ends with the test."""
    _started.append(actor.remote(*args, **named))
    return _started[-1]


@pytest.fixture(autouse=True)
def _nothing_is_reserved(cluster: Any, folders: tuple[Path, Path]) -> Iterator[None]:
    """Checks after each test that both folders are empty and Ray has all SMs. Kills the actors of a
    failed test too."""
    yield
    while _started:
        ray.kill(_started.pop())
    while _groups:
        remove_placement_group(_groups.pop())
    for folder in folders:
        until_free(folder)
    until(lambda: ray.available_resources().get(gcx.ray.RESOURCE) == 396)


def patiently(ask: Callable[[], Any], seconds: float = 240) -> Any:
    """Repeats a question about a starting node; Ray itself times out after 30 seconds."""
    end = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except RuntimeError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def node_says(env: dict[str, str]) -> dict[str, int]:
    done = run_program(sys.executable, "-m", "gcx.ray", env={**os.environ, **env})
    said = json.loads(done.stdout)
    assert isinstance(said, dict)
    return said


def until(condition: Callable[[], object], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)


def tell(actor: Any) -> dict[str, Any]:
    """Returns what an actor has, once it lives; it may be restarting."""
    for _ in range(1000):
        try:
            said = ray.get(actor.tell.remote(), timeout=240)
        except ray.exceptions.ActorUnavailableError:
            time.sleep(0.05)
        else:
            assert isinstance(said, dict)
            return said
    raise AssertionError("the actor was not restarted")


def until_free(folder: Path) -> None:
    """Waits until there is no reservation."""
    until(lambda: gcx.reservations(folder) == [])


def is_pending(actor: Any) -> bool:
    ready, _ = ray.wait([actor.tell.remote()], timeout=0.3)
    return not ready


def test_actors_restarted_reserve_again(cluster: Any, folders: tuple[Path, Path]) -> None:
    bundles = [{gcx.ray.RESOURCE: sms, "CPU": 0.1, **ONE_GPU} for sms in (24, 108)]
    group = placement_group(bundles, strategy="STRICT_PACK")
    _groups.append(group)
    # By number: Ray would put 24 SMs into the bundle of 108 as well.
    to_bundle = [
        PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index)
        for index in range(2)
    ]
    odd = "decode, größer \N{ROCKET} " + "x" * 80
    decode = start(
        Reserving.options(
            **gcx.ray.options(24), name=odd, num_cpus=0.1, scheduling_strategy=to_bundle[0]
        )
    )
    prefill = start(
        Reserving.options(**gcx.ray.options(108), num_cpus=0.1, scheduling_strategy=to_bundle[1])
    )
    first, second = tell(decode), tell(prefill)
    assert (first["sm_count"], first["ran_on"]) == (24, 24)
    assert (second["sm_count"], second["ran_on"]) == (108, 108)
    assert sorted(first["atoms"] + second["atoms"]) == list(range(16))
    assert first["name"] == odd.encode()[:63].decode(errors="ignore")
    assert second["name"] == f"Reserving {prefill._actor_id.hex()[:8]}"

    os.kill(first["pid"], signal.SIGKILL)
    until(lambda: first["id"] not in {it.id for it in gcx.reservations(folders[0])})
    again = tell(decode)
    assert (again["sm_count"], again["ran_on"], again["name"]) == (24, 24, first["name"])
    assert again["pid"] != first["pid"]
    assert not set(again["atoms"]) & set(second["atoms"])

    ray.kill(prefill, no_restart=False)
    until(lambda: second["id"] not in {it.id for it in gcx.reservations(folders[0])})
    assert tell(prefill)["sm_count"] == 108
    assert {reservation.sm_count for reservation in gcx.reservations(folders[0])} == {24, 108}
    assert gcx.reservations(folders[1]) == []


def test_shares_are_of_one_gpu(cluster: Any, folders: tuple[Path, Path]) -> None:
    wanted = gcx.ray.options(88, device_sm_count=132)
    first, second = (start(Reserving.options(**wanted)) for _ in range(2))
    had, other = tell(first), tell(second)
    assert had["uuid"] != other["uuid"]
    # 88 SMs are left, and no GPU has them: Ray waits, and the actor never starts to reserve.
    third = start(Reserving.options(**wanted))
    assert is_pending(third)
    assert len(gcx.reservations(folders[1])) == 2
    ray.kill(first)
    assert tell(third)["uuid"] == had["uuid"]


def test_reservation_outside_ray_is_waited_for(
    cluster: Any, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"resources": {gcx.ray.RESOURCE: 24, **ONE_GPU}}
    one = folders[0]
    with gcx.reserve(120, name="outside", folder=one):
        refused = start(Reserving.options(**asked), timeout=0.1)
        with pytest.raises(ray.exceptions.ActorDiedError) as caught:
            ray.get(refused.tell.remote())
        said = str(caught.value)
        assert "TimeoutError" in said
        assert '"outside" of process' in said
        assert "Ray counts 24 gcx_sms of node" in said

        patient = start(Reserving.options(**asked), timeout=None)
        until(lambda: any(reservation.waiting for reservation in gcx.reservations(one)))
        cancelled = start(Reserving.options(**asked), timeout=None)
        until(lambda: sum(reservation.waiting for reservation in gcx.reservations(one)) == 2)
        ray.kill(cancelled)
        until(lambda: sum(reservation.waiting for reservation in gcx.reservations(one)) == 1)
        assert is_pending(patient)
    assert tell(patient)["sm_count"] == 24


def test_tasks_reserve_in_turn(cluster: Any, folders: tuple[Path, Path]) -> None:
    task = reserve_in_a_task.options(resources={gcx.ray.RESOURCE: 108, **ONE_GPU})
    said = ray.get([task.remote() for _ in range(3)])  # One after the other.
    assert [each["ran_on"] for each in said] == [108, 108, 108]
    assert gcx.reservations(folders[0]) == []
    assert all("reserve_in_a_task" in each["name"] for each in said)


def inside_gcx_exec(sm_count: int) -> Any:
    """Returns an actor for which Ray counts that many SMs, inside a gcx exec of 24."""
    python = f"{sys.executable} -m gcx exec --sms 24 --wait 60 --name served -- {sys.executable}"
    return start(
        KnowsNothing.options(
            resources={gcx.ray.RESOURCE: sm_count, **ONE_GPU},
            runtime_env={"py_executable": python},
        )
    )


def test_reservation_inside_gcx_exec_is_a_part_of_its_sms(
    cluster: Any, folders: tuple[Path, Path]
) -> None:
    actor = inside_gcx_exec(24)
    assert ray.get(actor.sm_count.remote()) == 24
    (outer,) = gcx.reservations(folders[0])
    assert (outer.name, outer.sm_count, outer.parent) == ("served", 24, None)

    part = ray.get(actor.reserve.remote())
    assert not isinstance(part, str), part
    assert (part["sm_count"], part["ran_on"]) == (24, 24)
    assert part["atoms"] == outer.atoms
    listed = {reservation.id: reservation for reservation in gcx.reservations(folders[0])}
    assert set(listed) == {outer.id, part["id"]}
    assert listed[part["id"]].parent == outer.id
    # For other processes they are the same 24.
    with gcx.reserve(None, folder=folders[0]) as others:
        assert others.sm_count == 108
        assert not set(others.atoms) & set(outer.atoms)

    assert ray.get(actor.reserve.remote()).startswith(
        "AlreadyAcquiredError: this actor has its reservation"
    )


def test_reservation_of_more_sms_than_gcx_exec_has_is_refused(
    cluster: Any, folders: tuple[Path, Path]
) -> None:
    said = ray.get(inside_gcx_exec(32).reserve.remote())
    assert isinstance(said, str), said
    assert said.startswith("ResourceConfigurationError: ")
    assert 'the reservation "served" of device 0 has 24 SMs' in said
    assert "give gcx exec --sms and gcx_sms the same number" in said
    (outer,) = gcx.reservations(folders[0])
    assert outer.sm_count == 24


def test_example_runs(cluster: Any) -> None:
    env = {**os.environ, "RAY_ADDRESS": cluster.address}
    done = run_program(sys.executable, EXAMPLE, "--device-sms", "132", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()  # Ray's own of the killed process among them.
    decode, prefill, again, end = [line for line in lines if "(raylet)" not in line]
    assert re.fullmatch(r"decode, process \d+: 24 SIMULATED SMs, atoms \(0, 1, 2\)", decode)
    assert re.fullmatch(r"prefill, process \d+: 108 SIMULATED SMs, atoms \([\d, ]+\)", prefill)
    assert re.fullmatch(r"decode, killed and restarted, process \d+: 24 SIM.*", again)
    assert end == "no SM is in both"
