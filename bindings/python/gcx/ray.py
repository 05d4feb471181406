"""SMs as a Ray resource: actors, tasks and Serve replicas that each reserve a part of a GPU.

    ray start --resources="$(python -m gcx.ray)" ...     # on each node with GPUs: {"gcx_sms": 132}

    @ray.remote(**gcx.ray.options(24))
    class Decode:
        def __init__(self):
            self.part = gcx.ray.reserve().acquire(None)

Ray decides where and when an actor starts; the gcx.Reservation that its process makes decides which
SMs it has. The reservation ends with the process, so a restarted actor reserves again. See
docs/guides/ray.md. Only reserve imports Ray.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import threading
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, SupportsIndex

import gcx
from gcx._checks import DeviceLike, whole
from gcx._request import Family
from gcx._reservation import Path

__all__ = ["RESOURCE", "node_resources", "options", "reserve"]

#: The name of the custom resource: the SMs of all GPUs of a node.
RESOURCE = "gcx_sms"

_PER_UNIT = 10_000  # Ray counts in ten-thousandths.
_NAME_BYTES = 63

_lock = threading.Lock()  # Guards the next two; never locked during a wait.
_of_actor: gcx.Reservation | None = None  # Kept here so that it lasts as long as the actor.
_pending: object = None  # The call that makes the actor's reservation now.
_forked = False


def _note_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_note_fork)


def node_resources() -> dict[str, int]:
    """Returns what a node has: {"gcx_sms": 264} for two GPUs of 132 SMs. Pass it to
    ray.init(resources=...); `python -m gcx.ray` prints it as JSON for `ray start --resources`.

    Counts the GPUs in CUDA_VISIBLE_DEVICES. Use a lower number to leave SMs to other programs.

    Raises:
        NoDeviceError, DriverNotFoundError, NotSupportedError: As opening the driver.
    """
    found = gcx.devices()
    if not found:
        raise gcx.NoDeviceError("this node has no GPU; start Ray on it without gcx_sms")
    return {RESOURCE: sum(device.sm_count for device in found)}


def options(
    sm_count: SupportsIndex, *, device_sm_count: SupportsIndex | None = None
) -> dict[str, Any]:
    """Returns the options by which an actor or task requests SMs: @ray.remote(**options(24)), or
    ray_actor_options=options(24) of a Serve deployment.

    Args:
        sm_count: How many SMs: a whole number of atoms, since the reservation rounds up and Ray's
            count does not.
        device_sm_count: How many SMs a GPU has; if the GPUs differ, the smallest. Adds the share of
            one GPU as num_gpus, by which Ray chooses a GPU and counts what is left of each. Needed
            if nodes have several GPUs.

    Raises:
        InvalidValueError, TypeError: A count of 0, or more than the device has.
    """
    requested = whole(sm_count, "sm_count", 1)
    answer: dict[str, Any] = {"resources": {RESOURCE: requested}}
    if device_sm_count is not None:
        total = whole(device_sm_count, "device_sm_count", 1)
        if requested > total:
            raise gcx.InvalidValueError(
                f"sm_count must be at most device_sm_count, {total}, not {requested}: a "
                "reservation has SMs of one GPU"
            )
        # Rounds down, so that shares of counts that fill a GPU exactly never sum to more than 1.
        answer["num_gpus"] = math.floor(_PER_UNIT * requested / total) / _PER_UNIT
    return answer


def reserve(
    *,
    name: str | None = None,
    device: DeviceLike | None = None,
    family: Family | None = None,
    timeout: float | None = 60,
    cancel: gcx.Cancel | None = None,
    folder: Path | None = None,
) -> gcx.Reservation:
    """Reserves as many SMs as this actor or task requested from Ray in gcx_sms.

    Call it in the actor's process, preferably in __init__, so that the actor is ready only once it
    has its SMs. An actor has one reservation, until it is closed or the process ends, even if no
    reference to it remains. A task closes its reservation by `with`, since Ray reuses the process.

    Inside gcx exec the reservation is a part of the one that gcx exec has.

    Args:
        name: Name in messages and `gcx ps`. None: the actor's name, or its class and id.
        device: As in gcx.reserve, in this process's numbering. None: the GPU that Ray assigned, or
            the only one.
        family: As in gcx.reserve; use the same for all programs on a GPU.
        timeout: Seconds to wait if other processes still have the SMs; 0: don't wait; None: no
            limit.
        cancel: As in gcx.reserve.
        folder: As in gcx.reserve. All processes of a node must use the same.

    Raises:
        ImportError: Ray isn't installed.
        NotInitializedError: This is a forked child of an actor or task.
        RuntimeError: This is no actor and no task; it requested no gcx_sms; it has or sees several
            GPUs and device is None.
        AlreadyAcquiredError: Other processes have the SMs, and timeout is 0; the message names
            them. Or this actor has its reservation already, or is waiting for it.
        TimeoutError: Other processes still have the SMs after the timeout.
        InvalidValueError: It requested a fraction of an SM.
        As gcx.reserve.
    """
    global _of_actor, _pending
    context = _context()
    requested = _requested(context)
    if device is None:
        device = _device(context)
    text = _name(context) if name is None else name
    make = partial(
        gcx.reserve,
        requested,
        name=text,
        device=device,
        family=family,
        timeout=timeout,
        cancel=cancel,
        folder=folder,
    )
    if context.get_actor_id() is None:
        return _reserve(make, context, requested, text)
    this = object()
    try:
        with _lock:
            if _of_actor is not None and not _of_actor.closed:
                raise gcx.AlreadyAcquiredError(
                    f"this actor has its reservation already, {_of_actor!r}; close it first. A "
                    "process that the actor starts shares it by gcx.join_reservation(token)"
                )
            if _pending is not None:
                raise gcx.AlreadyAcquiredError(
                    "another thread of this actor is waiting for the actor's reservation; call "
                    "gcx.ray.reserve in one thread only"
                )
            _pending = this
        _of_actor = _reserve(make, context, requested, text)
        return _of_actor
    finally:
        if _pending is this:
            _pending = None


def _reserve(
    make: Callable[[], gcx.Reservation], context: Any, requested: int, name: str
) -> gcx.Reservation:
    """Returns what make returns, and explains its errors in terms of Ray."""
    inside_exec = bool(os.environ.get("GCX_EXEC_PLAN"))
    try:
        reservation = make()
    except (gcx.AlreadyAcquiredError, gcx.TimeoutError) as error:
        why = (
            f"This process runs inside gcx exec, and gcx.ray.reserve reserves {requested} of the "
            "SMs that gcx exec has, as many as Ray counts for this process. Other programs inside "
            "the same gcx exec have reserved some of them, as `gcx ps` shows; wait longer by "
            "timeout="
            if inside_exec
            else f"Ray counts {requested} {RESOURCE} of node {context.get_node_id()} as free for "
            "this process, but other processes have reserved them: a program outside Ray, an actor "
            "that is ending, or SMs of several GPUs were counted together. `gcx ps` lists the "
            "reservations; wait longer by timeout=, give the node less in ray start --resources, "
            "or request a share of one GPU by device_sm_count="
        )
        raise type(error)(f"{error.message} {why}") from error
    except gcx.ResourceConfigurationError as error:
        if not inside_exec:
            raise
        raise gcx.ResourceConfigurationError(
            f"{error.message}. This process runs inside gcx exec, of whose SMs gcx.ray.reserve "
            f"reserves as many as Ray counts, {requested}; give gcx exec --sms and {RESOURCE} the "
            "same number"
        ) from error
    if reservation.sm_count != requested:
        _warn(
            f"{name}: Ray counts {requested} {RESOURCE}, but the device gives "
            f"{reservation.sm_count}, so an actor for which Ray counts the rest may time out; "
            f"request {reservation.sm_count}"
        )
    if reservation.mps is False:
        _warn(
            f"{name}: the GPU isn't shared by MPS, so processes take turns on all of it and "
            "reservations isolate nothing; start nvidia-cuda-mps-control -d before Ray"
        )
    return reservation


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=4)


def _context() -> Any:
    """Returns Ray's context of this process, which must be a worker."""
    if _forked:  # Ray's locks may belong to threads that this process doesn't have.
        raise gcx.NotInitializedError(
            "this process is a forked child, unknown to Ray, and CUDA can't be used after a fork; "
            'start it by subprocess, or by multiprocessing\'s method "spawn", and share the '
            "reservation of the actor or task by gcx.join_reservation(token)"
        )
    try:
        import ray
    except ImportError as error:
        raise ImportError("gcx.ray.reserve needs Ray: pip install ray") from error
    if not ray.is_initialized():
        raise RuntimeError(
            "gcx.ray.reserve works in Ray's actors and tasks, and this process is neither; "
            "gcx.reserve works in any process"
        )
    context = ray.get_runtime_context()
    # The context of Ray's client has no worker: it is a driver too.
    if getattr(getattr(context, "worker", None), "mode", None) != ray.WORKER_MODE:
        raise RuntimeError(
            "gcx.ray.reserve works in Ray's actors and tasks, and this process is a driver, for "
            "which Ray counts nothing; call it in an actor's __init__, or gcx.reserve here"
        )
    return context


def _requested(context: Any) -> int:
    """Returns how many SMs Ray counts for this process."""
    count = float(context.get_assigned_resources().get(RESOURCE, 0))
    if count == 0:
        raise RuntimeError(
            f"this {_kind(context)} requested no {RESOURCE} from Ray; request them by "
            f'@ray.remote(resources={{"{RESOURCE}": 24}}), or **gcx.ray.options(24)'
        )
    if not count.is_integer():
        raise gcx.InvalidValueError(
            f"this {_kind(context)} requested {count:g} {RESOURCE} from Ray, and an SM can't be "
            "divided; request a whole number"
        )
    return int(count)


def _device(context: Any) -> int:
    """Returns the GPU that Ray assigned, in this process's numbering; or the only one."""
    assigned = [str(number) for number in context.get_accelerator_ids().get("GPU", ())]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    share = "request a share of one by gcx.ray.options(24, device_sm_count=132)"
    if len(assigned) > 1:
        raise RuntimeError(
            f"Ray assigned {len(assigned)} GPUs to this {_kind(context)}, and a reservation has "
            f"SMs of one; name it by device=, or {share}"
        )
    if assigned:
        # Ray numbers the GPUs of the node. It makes only the assigned one visible, or all of them
        # with RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES.
        numbers = [str(number) for number in range(len(gcx.devices()))]
        if visible is not None:
            numbers = [number.strip() for number in visible.split(",")]
        if assigned[0] not in numbers:
            raise RuntimeError(
                f"Ray assigned GPU {assigned[0]} to this {_kind(context)}, but "
                f"CUDA_VISIBLE_DEVICES is {visible!r}; name the device by device="
            )
        return numbers.index(assigned[0])
    if visible == "":
        raise RuntimeError(
            f"this {_kind(context)} requested no GPU from Ray, which therefore hides all of them; "
            f"{share}, or set RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO=0 before ray start"
        )
    count = len(gcx.devices())
    if count > 1:
        raise RuntimeError(
            f"this {_kind(context)} requested no GPU from Ray and sees {count}; {share}, so that "
            "Ray chooses it, or name it by device="
        )
    return 0


def _kind(context: Any) -> str:
    return "task" if context.get_actor_id() is None else "actor"


def _name(context: Any) -> str:
    """Returns the actor's name, its class and id, or the task's function, cut between characters
    to the length that a reservation's name may have."""
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
