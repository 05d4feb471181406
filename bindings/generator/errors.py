"""Which exception stands for which results, in the languages that have a class for each kind."""

from __future__ import annotations

from dataclasses import dataclass

from bindings.generator.api import Api


@dataclass(frozen=True)
class Kind:
    """An exception class. Its name is Python's less the word Error, and Java's in GcxException."""

    name: str
    results: tuple[str, ...]  # less GCX_ERROR_, its own first
    doc: str
    bases: tuple[str, ...] = ("Error",)  # in Python
    java: str | None = None  # its name in Java, if it has another's class there
    by_result: bool = True  # False: the binding itself knows when it is meant

    def codes(self, api: Api) -> list[int]:
        values = {value.name: value.value for value in api.enum["gcx_result"].values}
        return [values[f"GCX_ERROR_{result}"] for result in self.results]


KINDS = (
    Kind(
        "InvalidValue",
        ("INVALID_VALUE",),
        "A value that can't be: a count of no SMs, an unknown family.",
        ("Error", "ValueError"),
    ),
    Kind(
        "OutOfMemory",
        ("OUT_OF_MEMORY",),
        "Memory is exhausted, of the host or of the device.",
        ("Error", "MemoryError"),
    ),
    Kind(
        "NotInitialized",
        ("NOT_INITIALIZED",),
        "CUDA can't be used: this process is the child of a fork() whose parent had used gcx.",
    ),
    Kind(
        "Deinitialized",
        ("DEINITIALIZED",),
        "The driver is shutting down, since the process ends.",
        java="NotInitialized",
    ),
    Kind("NoDevice", ("NO_DEVICE", "DEVICE_UNAVAILABLE"), "The driver has no device."),
    Kind("InvalidDevice", ("INVALID_DEVICE",), "There is no such device.", ("Error", "ValueError")),
    Kind(
        "InvalidContext",
        ("INVALID_CONTEXT",),
        "Another context is current than the call needs, or none.",
    ),
    Kind(
        "AlreadyAcquired",
        ("ALREADY_ACQUIRED",),
        "Other leases have the SMs, or wait for them; the message says whose.",
    ),
    Kind(
        "DriverAlreadyOpen",
        ("ALREADY_ACQUIRED",),
        "Another driver is open already; a process uses one.",
        ("AlreadyAcquiredError",),
        by_result=False,
    ),
    Kind(
        "ContextInUse",
        ("CONTEXT_ALREADY_IN_USE",),
        "The context is current, so that it can't be closed.",
    ),
    Kind(
        "DriverNotFound",
        (
            "SHARED_OBJECT_INIT_FAILED",
            "STUB_LIBRARY",
            "FILE_NOT_FOUND",
            "SHARED_OBJECT_SYMBOL_NOT_FOUND",
        ),
        "There is no driver library, or it can't be loaded.",
    ),
    Kind(
        "InvalidHandle",
        ("INVALID_HANDLE",),
        "The object is closed, or isn't what the call takes.",
    ),
    Kind(
        "NotFound",
        ("NOT_FOUND",),
        "What was asked for isn't known to gcx: a context or the SMs of a stream that others made.",
    ),
    Kind("NotReady", ("NOT_READY",), "It isn't known yet, or hasn't finished yet."),
    Kind(
        "ContextDestroyed",
        ("CONTEXT_IS_DESTROYED",),
        "The device was reset, which ended its contexts, streams, events and leases: create them "
        "again. Or the stream's lease was closed.",
    ),
    Kind(
        "Launch",
        (
            "LAUNCH_FAILED",
            "ILLEGAL_ADDRESS",
            "LAUNCH_OUT_OF_RESOURCES",
            "LAUNCH_TIMEOUT",
            "ASSERT",
            "HARDWARE_STACK_ERROR",
            "ILLEGAL_INSTRUCTION",
            "MISALIGNED_ADDRESS",
            "INVALID_ADDRESS_SPACE",
            "INVALID_PC",
        ),
        "A kernel failed, which the driver reports at a later call: an illegal address, a trap.",
    ),
    Kind(
        "LaunchTooLarge",
        ("COOPERATIVE_LAUNCH_TOO_LARGE",),
        "A cooperative grid is larger than the SMs hold at once; the message has the largest.",
        ("LaunchError",),
    ),
    Kind(
        "NotPermitted",
        ("NOT_PERMITTED",),
        "The driver does not permit this here and now; or the call was cancelled.",
    ),
    Kind(
        "NotSupported",
        ("NOT_SUPPORTED",),
        "The driver or the device lacks it; the message says which version has it.",
    ),
    Kind(
        "Capture",
        (
            "STREAM_CAPTURE_UNSUPPORTED",
            "STREAM_CAPTURE_INVALIDATED",
            "STREAM_CAPTURE_MERGE",
            "STREAM_CAPTURE_UNMATCHED",
            "STREAM_CAPTURE_UNJOINED",
            "STREAM_CAPTURE_ISOLATION",
            "STREAM_CAPTURE_IMPLICIT",
            "CAPTURED_EVENT",
            "STREAM_CAPTURE_WRONG_THREAD",
        ),
        "The call can't be made while a stream captures a graph, or broke the capture.",
    ),
    Kind(
        "GraphUpdate",
        ("GRAPH_EXEC_UPDATE_FAILURE",),
        "The graph to update from has other nodes, or another order of them; the message says "
        "where.",
    ),
    Kind(
        "InvalidResourceType",
        ("INVALID_RESOURCE_TYPE",),
        "A resource is of another type than the call takes.",
    ),
    Kind(
        "ResourceConfiguration",
        ("INVALID_RESOURCE_CONFIGURATION",),
        "The resources can't be split or combined like this: they don't fit, or overlap, or are of "
        "two devices or families.",
    ),
)
