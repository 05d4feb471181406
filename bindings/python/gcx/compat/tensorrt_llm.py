"""The functions of TensorRT-LLM's green_context, which run a layer's router concurrently with its
first product, on gcx.

    -from .green_context import create_sm_only_gc_streams
    +from gcx.compat.tensorrt_llm import create_sm_only_gc_streams

Arguments, results and exceptions are the same, with these differences:

- Counts that the device can give exactly aren't rounded: a router of 28 SMs has 28 on an H100.
- A cleanup function can be called twice or never, and streams that are still referenced work after
  it. Repeated counts make no new green contexts.
- It works on drivers from CUDA 12.4 on; workqueues need CUDA 13.1, as in the original.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gcx
from gcx._checks import whole
from gcx._errors import in_python
from gcx.compat._common import driver_counts

__all__ = [
    "create_sm_only_gc_streams",
    "create_wq_isolated_gc_streams",
    "get_current_stream_gc_sm_count",
]

_INT32 = 0x7FFFFFFF
_Streams = tuple[Any, Any, Callable[[], None]]


def create_sm_only_gc_streams(fc1_sms: int, router_sms: int, device_id: int) -> _Streams:
    """Returns two torch streams on disjoint parts of a device, also for graphs.

    Args:
        fc1_sms: Unused, as in TensorRT-LLM: the first has what the router leaves.
        router_sms: SMs of the router, rounded up to what the device can give.
        device_id: The device's ordinal.

    Returns:
        The first product's stream, the router's, and a cleanup function. The streams are released
        once it was called or collected, and their torch objects are gone.

    Raises:
        RuntimeError: The router leaves no SMs, or the driver refused something; the message begins
            with the driver's function and its number for the error.
    """
    return _streams(router_sms, device_id, isolated=False)


def create_wq_isolated_gc_streams(fc1_sms: int, router_sms: int, device_id: int) -> _Streams:
    """create_sm_only_gc_streams with balanced workqueues, shared as little as possible.

    Raises:
        RuntimeError: As there; or the driver is older than CUDA 13.1.
    """
    return _streams(router_sms, device_id, isolated=True)


def get_current_stream_gc_sm_count() -> int:
    """Returns how many SMs PyTorch's current stream has if it belongs to a green context, by any
    library; -1 if it doesn't or the driver can't tell. Another library's green context over all SMs
    counts as none."""
    import torch

    try:
        with gcx.Stream.from_native(torch.cuda.current_stream()) as stream:
            count = stream.sm_count
            if stream.context_id != 0 or count < gcx.Device(stream.device).sm_count:
                return count
    except gcx.DriverNotFoundError as error:
        raise RuntimeError(_no_library(error)) from error
    except gcx.Error:
        pass
    return -1


def _streams(router_sms: object, device_id: object, *, isolated: bool) -> _Streams:
    router_count = whole(router_sms, "router_sms", -_INT32 - 1, _INT32)
    number = whole(device_id, "device_id", -_INT32 - 1, _INT32)
    with _refused_as("cuDeviceGetDevResource(SM)"):
        resources = gcx.Device(number).resources
        sms = resources.sm
    with _refused_as("cuDevSmResourceSplitByCount(router)"):
        if not 0 <= router_count <= sms.sm_count:
            raise gcx.ResourceConfigurationError(
                f"router_sms is {router_count}; device {number} has {sms.sm_count} SMs"
            )
        # The driver gives its minimum for 0.
        split = sms.split(driver_counts(sms, [max(router_count, 1)]))
    with _refused_as("cuDevResourceGenerateDesc(fc1)"):
        if not split.remainder:
            raise gcx.InvalidResourceTypeError(
                f"the router's {router_count} SMs leave none of {sms.sm_count}"
            )
    queues: list[gcx.WorkqueueResource] = []
    if isolated:
        with _refused_as("cuDeviceGetDevResource(WQ_CONFIG)"):
            queues.append(resources.workqueue.configured("green_ctx_balanced"))
    fc1 = _stream("fc1", [split.remainder, *queues])
    router = _stream("router", [split.groups[0], *queues])
    # Keeps them for code that has only their numbers, and for graphs captured in them.
    kept = [fc1, router]
    return fc1, router, kept.clear


def _stream(name: str, resources: list[gcx.SMResource | gcx.WorkqueueResource]) -> Any:
    with _refused_as(f"cuGreenCtxCreate({name})"):
        context = gcx.Context(resources)
    with context, _refused_as(f"cuGreenCtxStreamCreate({name})"):
        return context.stream().torch()


@contextmanager
def _refused_as(function: str) -> Iterator[None]:
    """Raises errors as TensorRT-LLM does for this driver function."""
    try:
        yield
    except gcx.DriverNotFoundError as error:
        raise RuntimeError(_no_library(error)) from error
    except gcx.Error as error:
        raise RuntimeError(
            f"{function} failed with CUDA error code {error.code}: {in_python(error.message)}"
        ) from error


def _no_library(error: gcx.Error) -> str:
    return f"Cannot load libcuda (CUDA Driver API) shared library: {in_python(error.message)}"
