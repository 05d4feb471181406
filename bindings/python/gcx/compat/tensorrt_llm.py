"""The functions with which TensorRT-LLM runs a layer's router beside its first product, on gcx.

    -from .green_context import create_sm_only_gc_streams
    +from gcx.compat.tensorrt_llm import create_sm_only_gc_streams

The arguments, results and exceptions of its green_context module, with these differences:

- counts that the device can give exactly aren't rounded: a router of 28 SMs has 28 on an H100;
- a cleanup function can be called twice, or not at all, and a stream that somebody still has works
  on after it; asking for the same counts again makes no new green contexts;
- no library is loaded and no struct laid out by the driver's version, and the streams work on
  drivers from CUDA 12.4 on; workqueues need one of CUDA 13.1, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gcx
from gcx._checks import whole
from gcx._errors import in_python
from gcx.compat._rounding import driver_counts

__all__ = [
    "create_sm_only_gc_streams",
    "create_wq_isolated_gc_streams",
    "get_current_stream_gc_sm_count",
]

_INT32 = 0x7FFFFFFF
_Streams = tuple[Any, Any, Callable[[], None]]


def create_sm_only_gc_streams(fc1_sms: int, router_sms: int, device_id: int) -> _Streams:
    """Two torch streams on disjoint parts of a device, for graphs too.

    Args:
        fc1_sms: Not used, as in TensorRT-LLM: the first has what the router leaves.
        router_sms: SMs of the router, rounded up to what the device can give.
        device_id: The device's number.

    Returns:
        The first product's stream, the router's, and a function to call when both are no longer
        needed. They are given back once that was called, or let go of, and their torch objects
        are gone.

    Raises:
        RuntimeError: The router leaves no SMs, or the driver refused something; the message begins
            with the driver's function and its number for the error.
    """
    return _streams(router_sms, device_id, isolated=False)


def create_wq_isolated_gc_streams(fc1_sms: int, router_sms: int, device_id: int) -> _Streams:
    """create_sm_only_gc_streams with workqueues that none of the other balanced contexts has, where
    possible.

    Raises:
        RuntimeError: As there; or the driver is older than CUDA 13.1.
    """
    return _streams(router_sms, device_id, isolated=True)


def get_current_stream_gc_sm_count() -> int:
    """How many SMs PyTorch's current stream has if it is of a green context, of gcx or of others;
    -1 if it isn't, and where the driver can't say. One of others over all SMs counts as none."""
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
        # The driver gives the least that it can for 0.
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
    # For those who have nothing but their numbers, and for graphs that were captured in them.
    kept = [fc1, router]
    return fc1, router, kept.clear


def _stream(name: str, resources: list[gcx.SMResource | gcx.WorkqueueResource]) -> Any:
    with _refused_as(f"cuGreenCtxCreate({name})"):
        context = gcx.Context(resources)
    with context, _refused_as(f"cuGreenCtxStreamCreate({name})"):
        return context.stream().torch()


@contextmanager
def _refused_as(function: str) -> Iterator[None]:
    """Errors are those of TensorRT-LLM's call of this function of the driver."""
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
