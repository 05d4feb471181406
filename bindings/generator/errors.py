"""Which exception stands for which results, in the languages that have a class for each kind."""

from __future__ import annotations

from dataclasses import dataclass

from bindings.generator.api import Api
from bindings.generator.text import texts

DOCS = texts("errors.txt")["kinds"]


@dataclass(frozen=True)
class Kind:
    """An exception class: Python's name without the word Error, and Java's in GcxException."""

    name: str
    listed: str  # the results without GCX_ERROR_, its own first
    bases: tuple[str, ...] = ("Error",)  # in Python
    java: str | None = None  # its name in Java, if it has another's class there

    @property
    def doc(self) -> str:
        return DOCS[self.name]

    @property
    def results(self) -> list[str]:
        return self.listed.split()

    def codes(self, api: Api) -> list[int]:
        values = {value.name: value.value for value in api.enum["gcx_result"].values}
        return [values[f"GCX_ERROR_{result}"] for result in self.results]


KINDS = (
    Kind("InvalidValue", "INVALID_VALUE", bases=("Error", "ValueError")),
    Kind("OutOfMemory", "OUT_OF_MEMORY", bases=("Error", "MemoryError")),
    Kind("NotInitialized", "NOT_INITIALIZED"),
    Kind("Deinitialized", "DEINITIALIZED", java="NotInitialized"),
    Kind("NoDevice", "NO_DEVICE DEVICE_UNAVAILABLE"),
    Kind("InvalidDevice", "INVALID_DEVICE", bases=("Error", "ValueError")),
    Kind("InvalidContext", "INVALID_CONTEXT"),
    Kind("AlreadyAcquired", "ALREADY_ACQUIRED"),
    Kind("ContextInUse", "CONTEXT_ALREADY_IN_USE"),
    Kind(
        "DriverNotFound",
        "SHARED_OBJECT_INIT_FAILED STUB_LIBRARY FILE_NOT_FOUND SHARED_OBJECT_SYMBOL_NOT_FOUND",
    ),
    Kind("InvalidHandle", "INVALID_HANDLE"),
    Kind("NotFound", "NOT_FOUND"),
    Kind("NotReady", "NOT_READY"),
    Kind("ContextDestroyed", "CONTEXT_IS_DESTROYED"),
    Kind(
        "Launch",
        "LAUNCH_FAILED ILLEGAL_ADDRESS LAUNCH_OUT_OF_RESOURCES LAUNCH_TIMEOUT ASSERT "
        "HARDWARE_STACK_ERROR ILLEGAL_INSTRUCTION MISALIGNED_ADDRESS "
        "INVALID_ADDRESS_SPACE INVALID_PC",
    ),
    Kind("LaunchTooLarge", "COOPERATIVE_LAUNCH_TOO_LARGE", bases=("LaunchError",)),
    Kind("NotPermitted", "NOT_PERMITTED"),
    Kind("NotSupported", "NOT_SUPPORTED"),
    Kind(
        "Capture",
        "STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED STREAM_CAPTURE_MERGE "
        "STREAM_CAPTURE_UNMATCHED STREAM_CAPTURE_UNJOINED STREAM_CAPTURE_ISOLATION "
        "STREAM_CAPTURE_IMPLICIT CAPTURED_EVENT STREAM_CAPTURE_WRONG_THREAD",
    ),
    Kind("GraphUpdate", "GRAPH_EXEC_UPDATE_FAILURE"),
    Kind("InvalidResourceType", "INVALID_RESOURCE_TYPE"),
    Kind("ResourceConfiguration", "INVALID_RESOURCE_CONFIGURATION"),
    Kind("Timeout", "TIMEOUT", bases=("Error", "builtins.TimeoutError")),
    Kind("Cancelled", "CANCELLED"),
    Kind("TooLate", "TOO_LATE"),
    Kind("DriverAlreadyOpen", "DRIVER_ALREADY_OPEN"),
    Kind("UnsafeFolder", "UNSAFE_FOLDER"),
    Kind("InCallback", "IN_CALLBACK"),
    Kind("DuplicateLibrary", "DUPLICATE_LIBRARY"),
    Kind("SmsNotMapped", "SMS_NOT_MAPPED"),
    Kind("SharedSmsUnknown", "SHARED_SMS_UNKNOWN"),
    Kind("CorruptFile", "CORRUPT_FILE"),
    Kind("InsufficientCapacity", "INSUFFICIENT_CAPACITY", bases=("Error", "ValueError")),
    Kind("CacheLimitExceeded", "CACHE_LIMIT_EXCEEDED", bases=("Error", "ValueError")),
    Kind("LeaseParked", "LEASE_PARKED"),
)
