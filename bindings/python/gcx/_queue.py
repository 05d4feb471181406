"""The hardware queues, which the partitions of a process share."""

from __future__ import annotations

from gcx import _gcx
from gcx._checks import whole
from gcx.generated.records import QueueInfo, queue_info_of


def queue_info() -> QueueInfo:
    """Returns how many queues there are. Each stream that waits occupies one; if all are occupied,
    every launch of the process waits, on whatever SMs. Opens no driver.
    docs/explanation/concepts.md says what occupies one."""
    return queue_info_of(_gcx.gcx_queue_get_info())


def request_connections(connections: int = _gcx.GCX_MAX_CONNECTIONS) -> None:
    """Requests 1 to 32 queues by setting CUDA_DEVICE_MAX_CONNECTIONS in the process's environment,
    unless it is as high already. Call it at the start of the program, before other threads run and
    before PyTorch uses CUDA. Opens no driver.

    `os.environ` does not show the change, but child processes inherit it.

    Raises:
        TooLateError: CUDA has started with fewer.
        InvalidValueError: connections is not 1 to 32.
    """
    _gcx.gcx_queue_request_connections(
        whole(connections, "connections", 1, _gcx.GCX_MAX_CONNECTIONS)
    )
