"""The hardware's queues, which the partitions of a process share."""

from __future__ import annotations

from typing import NamedTuple

from gcx import _gcx
from gcx._checks import whole

_SOURCES = {
    _gcx.GCX_QUEUE_SOURCE_DEFAULT: "default",
    _gcx.GCX_QUEUE_SOURCE_ENVIRONMENT: "environment",
}


class QueueInfo(NamedTuple):
    """How many queues CUDA has, the connections.

    Attributes:
        connections: That CUDA has or, if it hasn't started, would have; None: unknown, since
            CUDA_DEVICE_MAX_CONNECTIONS holds something else than 1 to 32.
        source: "environment": CUDA_DEVICE_MAX_CONNECTIONS says it; "default": it isn't set.
        started: CUDA has started in the process, and the number stays.
        certain: False: CUDA had started before gcx looked, and the process had set the variable
            anew; connections is what it holds now.
        too_few: There is one connection, with which all partitions wait as soon as one stream does.
    """

    connections: int | None
    source: str
    started: bool
    certain: bool
    too_few: bool


def queue_info() -> QueueInfo:
    """How many queues there are for streams that wait. While as many streams wait for something
    before them, every other launch of the process waits, whatever SMs it has. Opens no driver."""
    connections, source, *states = _gcx.gcx_queue_get_info()
    return QueueInfo(connections or None, _SOURCES[source], *map(bool, states))


def request_connections(connections: int = _gcx.GCX_MAX_CONNECTIONS) -> None:
    """Asks for so many queues, 1 to 32, before CUDA starts: sets CUDA_DEVICE_MAX_CONNECTIONS in the
    process's environment, unless it holds as many or more. At the beginning of a program, before
    other threads run; before PyTorch uses CUDA. Opens no driver.

    `os.environ` does not show it, but processes that are started inherit it unless they are given
    an environment of their own.

    Raises:
        NotPermittedError: CUDA has started with fewer: it is too late.
        InvalidValueError: connections is not 1 to 32.
    """
    _gcx.gcx_queue_request_connections(
        whole(connections, "connections", 1, _gcx.GCX_MAX_CONNECTIONS)
    )
