"""SMs for Ray: actors, tasks and Serve replicas that each reservation a part of a GPU.

    ray start --resources="$(python -m gcx.ray)" ...     # on each node with GPUs: {"gcx_sms": 132}

    @ray.remote(**gcx.ray.options(24))
    class Decode:
        def __init__(self):
            self.part = gcx.ray.reserve().acquire(None)

Ray's number says where and when an actor starts, and nothing of which SMs. What it has is a
gcx.Reservation, which its process takes when it starts and loses when it ends, however it ends; a
restarted actor takes its SMs anew. docs/ray.md has the whole. Ray is imported by reserve alone.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import threading
import warnings
from typing import Any, SupportsIndex

import gcx
from gcx._checks import DeviceLike, whole
from gcx._request import Family
from gcx._reservation import Path

__all__ = ["RESOURCE", "node_resources", "options", "reservation"]

#: The name of the custom resource: SMs of all GPUs of a node.
RESOURCE = "gcx_sms"

_PER_UNIT = 10_000  # Ray counts in ten-thousandths.
_NAME_BYTES = 63

_lock = threading.Lock()  # Guards the two, and is never held while something is waited for.
_of_actor: gcx.Reservation | None = None  # An actor's, so that it lasts as long as the process.
_taker: object = None  # The call that takes the actor's reservation now.
_forked = False


def _note_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_note_fork)


def node_resources() -> dict[str, int]:
    """What a node has: {"gcx_sms": 264} for two GPUs of 132 SMs. For ray.init(resources=...), and
    as JSON from `python -m gcx.ray` for `ray start --resources`.

    Those of CUDA_VISIBLE_DEVICES are counted. Say less to leave SMs to programs outside Ray.

    Raises:
        NoDeviceError, DriverNotFoundError, NotSupportedError: As opening the driver.
    """
    found = gcx.devices()
    if not found:
        raise gcx.NoDeviceError("there is no GPU here whose SMs a node could have")
    return {RESOURCE: sum(device.sm_count for device in found)}


def options(
    sm_count: SupportsIndex, *, device_sm_count: SupportsIndex | None = None
) -> dict[str, Any]:
    """What an actor or a task that wants SMs asks Ray for: @ray.remote(**options(24)), or
    ray_actor_options=options(24) of a Serve deployment.

    Args:
        sm_count: How many SMs: a count that the device can give exactly, in whole atoms. Others are
            rounded up by the reservation, and Ray's number isn't.
        device_sm_count: How many SMs a GPU has; of several kinds the least. The share of one GPU is
            asked for as well, as num_gpus, by which Ray chooses a GPU of the node and knows what is
            left of each. Needed where nodes have several GPUs.

    Raises:
        InvalidValueError, TypeError: A count of 0, or more than the device has.
    """
    wanted = whole(sm_count, "sm_count", 1)
    asked: dict[str, Any] = {"resources": {RESOURCE: wanted}}
    if device_sm_count is not None:
        total = whole(device_sm_count, "device_sm_count", 1)
        if wanted > total:
            raise gcx.InvalidValueError(
                f"sm_count must be at most device_sm_count, {total}, not {wanted}: a reservation has SMs "
                "of one GPU"
            )
        # Downwards, or the shares of what fits a GPU exactly could be more than 1.
        asked["num_gpus"] = math.floor(_PER_UNIT * wanted / total) / _PER_UNIT
    return asked


def reserve(
    *,
    name: str | None = None,
    device: DeviceLike | None = None,
    family: Family | None = None,
    timeout: float | None = 60,
    cancel: gcx.Cancel | None = None,
    folder: Path | None = None,
) -> gcx.Reservation:
    """Takes the SMs that Ray counted for this actor or task, as many as it asked for in gcx_sms.

    To be called in the actor's process, at best in __init__: the actor isn't ready before it has
    them. An actor has one reservation, until it is closed or the process ends, whether or not anybody
    keeps the object. A task closes its own, by `with`: Ray goes on with the process.

    In an actor that Ray starts inside gcx exec, the reservation is a part of the SMs that gcx exec has, so
    that no SM is reserved twice.

    Args:
        name: For messages and `gcx ps`. None: the actor's name, or its class and id.
        device: As gcx.reserve, in this process's numbers. None: the GPU that Ray gave it, or the only
            one that there is.
        family: As gcx.reserve; all on a GPU do best with the same.
        timeout: Seconds to wait where the SMs that Ray counts as free are held, by an actor that is
            about to end or by somebody outside Ray; 0: don't; None: for ever.
        cancel: As gcx.reserve.
        folder: As gcx.reserve. All processes of a node have to name the same.

    Raises:
        ImportError: Ray isn't installed.
        NotInitializedError: This is a forked child, which has no part in the reservation.
        RuntimeError: This is no actor and no task; it asked for no gcx_sms; it has or sees several
            GPUs and device is None.
        AlreadyAcquiredError: Others have the SMs after the time-out; the message says who. Or the
            actor has its reservation already, or another of its threads waits for it.
        InvalidValueError: It asked for a part of an SM.
        As gcx.reserve.
    """
    global _of_actor, _taker
    context = _context()
    wanted = _wanted(context)
    if device is None:
        device = _device(context)
    text = _name(context) if name is None else name
    if context.get_actor_id() is None:
        return _take(context, wanted, text, device, family, timeout, cancel, folder)
    this = object()
    try:
        with _lock:
            if _of_actor is not None and not _of_actor.closed:
                raise gcx.AlreadyAcquiredError(
                    f"this actor has its reservation already, {_of_actor!r}; close it first. Processes "
                    "that the actor starts share it by gcx.join_reservation(token)"
                )
            if _taker is not None:
                raise gcx.AlreadyAcquiredError(
                    "another thread of this actor waits for the actor's reservation; call gcx.ray.reserve "
                    "in one thread alone"
                )
            _taker = this
        _of_actor = _take(context, wanted, text, device, family, timeout, cancel, folder)
        return _of_actor
    finally:
        if _taker is this:
            _taker = None


def _take(
    context: Any,
    wanted: int,
    name: str,
    device: DeviceLike,
    family: Family | None,
    timeout: float | None,
    cancel: gcx.Cancel | None,
    folder: Path | None,
) -> gcx.Reservation:
    try:
        held = gcx.reserve(
            wanted,
            name=name,
            device=device,
            family=family,
            timeout=timeout,
            cancel=cancel,
            folder=folder,
        )
    except gcx.AlreadyAcquiredError as error:
        if os.environ.get("GCX_EXEC_PLAN"):
            why = (
                f"This process runs inside gcx exec, and gcx.ray.reserve reserves {wanted} of the SMs "
                "that gcx exec has, as many as Ray counts for this process. Other programs inside "
                "the same gcx exec have reserved some of them, as `gcx ps` shows; wait longer by "
                "timeout="
            )
        else:
            why = (
                f"Ray counts {wanted} {RESOURCE} of node {context.get_node_id()} as free for this "
                "process, and the reservations say otherwise: somebody whom Ray doesn't count has them, "
                "an actor that is ending still does, or SMs of several GPUs were counted together. "
                "`gcx ps` lists the reservations; wait longer by timeout=, give the node less in ray "
                "start --resources, or ask for a share of one GPU by device_sm_count="
            )
        raise gcx.AlreadyAcquiredError(f"{error.message} {why}") from error
    except gcx.ResourceConfigurationError as error:
        if not os.environ.get("GCX_EXEC_PLAN"):
            raise
        raise gcx.ResourceConfigurationError(
            f"{error.message}. This process runs inside gcx exec, of whose SMs gcx.ray.reserve "
            f"reserves as many as Ray counts, {wanted}; give gcx exec --sms and {RESOURCE} the "
            "same number"
        ) from error
    if held.sm_count != wanted:
        warnings.warn(
            f"{name}: Ray counts {wanted} {RESOURCE}, and the device gives {held.sm_count}: an "
            f"actor for which Ray counts the rest may wait in vain. Ask for {held.sm_count}",
            RuntimeWarning,
            stacklevel=3,
        )
    if held.mps is False:
        warnings.warn(
            f"{name}: the GPU isn't shared by way of MPS: processes take turns on all of it, and "
            "reservations isolate nothing. Start nvidia-cuda-mps-control -d before Ray",
            RuntimeWarning,
            stacklevel=3,
        )
    return held


def _context() -> Any:
    """Ray's of this process, which is to be a worker."""
    if _forked:  # Ray must not be asked: its locks may be those of threads that aren't here.
        raise gcx.NotInitializedError(
            "this process is the child of a fork, of whom Ray knows nothing, and CUDA can't be "
            "used where a parent did; start one by subprocess, or by multiprocessing's method "
            '"spawn", which shares the reservation of the actor or task by gcx.join_reservation(token)'
        )
    try:
        import ray
    except ImportError as error:
        raise ImportError("gcx.ray.reserve needs Ray: pip install ray") from error
    if not ray.is_initialized():
        raise RuntimeError(
            "gcx.ray.reserve is for Ray's actors and tasks, and this process is neither; gcx.reserve "
            "takes SMs in any process"
        )
    context = ray.get_runtime_context()
    # The context of Ray's client has no worker: it is a driver too.
    if getattr(getattr(context, "worker", None), "mode", None) != ray.WORKER_MODE:
        raise RuntimeError(
            "gcx.ray.reserve is for Ray's actors and tasks, and this process is a driver, for which "
            "Ray counts nothing; call it in an actor's __init__, or gcx.reserve here"
        )
    return context


def _wanted(context: Any) -> int:
    """How many SMs Ray counts for this process."""
    count = float(context.get_assigned_resources().get(RESOURCE, 0))
    if count == 0:
        raise RuntimeError(
            f"this {_kind(context)} asked Ray for no {RESOURCE}; ask by "
            f'@ray.remote(resources={{"{RESOURCE}": 24}}), or **gcx.ray.options(24)'
        )
    if not count.is_integer():
        raise gcx.InvalidValueError(
            f"this {_kind(context)} asked Ray for {count:g} {RESOURCE}, and an SM is never "
            "divided; ask for a whole number"
        )
    return int(count)


def _device(context: Any) -> int:
    """The GPU that Ray gave this process, in the process's numbers; or the only one."""
    given = [str(number) for number in context.get_accelerator_ids().get("GPU", ())]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if len(given) > 1:
        raise RuntimeError(
            f"Ray gave this {_kind(context)} {len(given)} GPUs, and a reservation has SMs of one; name it "
            "by device=, or ask for a share of one by gcx.ray.options(24, device_sm_count=132)"
        )
    if given:
        # Ray's numbers are those of the node. It leaves the process that GPU alone, or all of them
        # with RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES.
        numbers = [str(number) for number in range(len(gcx.devices()))]
        if visible is not None:
            numbers = [number.strip() for number in visible.split(",")]
        if given[0] not in numbers:
            raise RuntimeError(
                f"Ray gave this {_kind(context)} GPU {given[0]}, and CUDA_VISIBLE_DEVICES is "
                f"{visible!r}, which hasn't it; name the device by device="
            )
        return numbers.index(given[0])
    if visible == "":
        raise RuntimeError(
            f"this {_kind(context)} asked Ray for no GPU, and Ray hides them all from it; ask for "
            "a share of one by gcx.ray.options(24, device_sm_count=132), or set "
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO=0 before ray start"
        )
    count = len(gcx.devices())
    if count > 1:
        raise RuntimeError(
            f"this {_kind(context)} asked Ray for no GPU and sees {count}; ask for a share of one "
            "by gcx.ray.options(24, device_sm_count=132), so that Ray chooses it, or name it by "
            "device="
        )
    return 0


def _kind(context: Any) -> str:
    return "task" if context.get_actor_id() is None else "actor"


def _name(context: Any) -> str:
    """The actor's name, or its class and id; a task's function. Cut to what a reservation's name can be,
    between characters."""
    label = str(context.get_task_name() or _kind(context))
    actor = context.get_actor_id()
    if actor is not None:
        label = context.get_actor_name() or f"{label.rpartition('.')[0] or label} {actor[:8]}"
    label = label.replace("\0", "")
    return label.encode(errors="replace")[:_NAME_BYTES].decode(errors="ignore")


def _main() -> int:
    argparse.ArgumentParser(
        prog="python -m gcx.ray",
        description="Prints what this node has for ray start --resources, as JSON.",
    ).parse_args()
    try:
        print(json.dumps(node_resources()))
    except gcx.Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(_main())
