"""The base of all exceptions, and the Python names in messages."""

from __future__ import annotations

import re
from collections.abc import Callable

from gcx import _gcx

# Messages name functions and flags of C; printed, they name what Python has instead.
_PYTHON_NAMES = {
    "gcx_cache_get_stats": "gcx.cache_stats",
    "gcx_cache_prepare": "gcx.prewarm",
    "gcx_cache_set_limit": "gcx.set_cache_limit",
    "gcx_cache_trim": "gcx.trim_cache",
    "gcx_cancel_create": "gcx.Cancel",
    "gcx_cancel_destroy": "Cancel.close",
    "gcx_cancel_signal": "Cancel.signal",
    "gcx_context_create": "gcx.Context",
    "gcx_context_destroy": "Context.close",
    "gcx_context_get_current": "gcx.current_context",
    "gcx_context_get_info": "gcx.Context",
    "gcx_context_get_resource": "Context.resources",
    "gcx_context_list": "gcx.live_contexts",
    "gcx_context_native": "Context.native",
    "gcx_context_native_green": "Context.native_green",
    "gcx_context_pop": "Context.pop",
    "gcx_context_push": "Context.push",
    "gcx_context_record": "Context.record",
    "gcx_context_synchronize": "Context.synchronize",
    "gcx_context_wait": "Context.wait",
    "gcx_device_get_count": "gcx.devices",
    "gcx_device_get_info": "gcx.Device",
    "gcx_device_get_resource": "Device.resources",
    "gcx_device_find_shared_sms": "Device.shared_sms",
    "gcx_device_get_stream_priority_range": "Device.stream_priority_range",
    "gcx_device_map_sms": "Device.map_sms",
    "gcx_driver_get_info": "gcx.driver_info",
    "gcx_driver_open": "gcx.open_driver",
    "gcx_event_create": "gcx.Event",
    "gcx_event_destroy": "Event.close",
    "gcx_event_from_native": "Event.from_native",
    "gcx_event_get_elapsed": "Event.elapsed_time",
    "gcx_event_native": "Event.native",
    "gcx_event_query": "Event.query",
    "gcx_event_synchronize": "Event.synchronize",
    "gcx_graph_create": "gcx.Graph",
    "gcx_graph_destroy": "Graph.close",
    "gcx_graph_get_info": "Graph.info",
    "gcx_graph_get_nodes": "Graph.nodes",
    "gcx_graph_launch": "Graph.launch",
    "gcx_graph_prepare": "Graph.prepare",
    "gcx_graph_set_kernel": "Graph.set_kernel",
    "gcx_graph_set_part": "Graph.set_part",
    "gcx_graph_update": "Graph.update",
    "gcx_reservation_acquire_lease": "Reservation.acquire",
    "gcx_reservation_acquire": "gcx.reserve",
    "gcx_reservation_release": "Reservation.close",
    "gcx_reservation_get_info": "gcx.Reservation",
    "gcx_reservation_get_resource": "Reservation.resource",
    "gcx_reservation_get_token": "Reservation.token",
    "gcx_reservation_join": "gcx.join_reservation",
    "gcx_reservation_list": "gcx.reservations",
    "gcx_last_error_message": "Error.message",
    "gcx_lease_acquire": "gcx.acquire",
    "gcx_lease_get_info": "gcx.Lease",
    "gcx_lease_get_resource": "Lease.resource",
    "gcx_lease_hand_over": "Lease.hand_over",
    "gcx_lease_list": "gcx.leases",
    "gcx_lease_prepare": "gcx.prepare",
    "gcx_lease_query": "Lease.query",
    "gcx_lease_release": "Lease.close",
    "gcx_lease_resize": "gcx.resize",
    "gcx_lease_stream_create": "Lease.create_stream",
    "gcx_lease_synchronize": "Lease.synchronize",
    "gcx_log_set_callback": "the logger gcx",
    "gcx_publish_start": "gcx.publish",
    "gcx_publish_stop": "gcx.stop_publishing",
    "gcx_published_lease_list": "gcx.published_leases",
    "gcx_published_process_list": "gcx.published_processes",
    "gcx_queue_get_info": "gcx.queue_info",
    "gcx_queue_request_connections": "gcx.request_connections",
    "gcx_driver_report_partition_counts": "gcx.report_partition_counts",
    "gcx_resource_get_atom": "SMResource.atoms",
    "gcx_resource_get_info": "a resource",
    "gcx_resource_find_max_cluster_size": "SMResource.max_cluster_size",
    "gcx_resource_get_overlap": "SMResource.overlap",
    "gcx_resource_get_sm_ids": "SMResource.sm_ids",
    "gcx_resource_subtract": "the operator -",
    "gcx_resource_union": "the operator |",
    "gcx_result_name": "Error.name",
    "gcx_result_string": "gcx.Error",
    "gcx_simulator_path": "gcx.open_driver",
    "gcx_sm_split": "SMResource.split",
    "gcx_stream_create": "Context.stream",
    "gcx_stream_destroy": "Stream.close",
    "gcx_stream_from_native": "Stream.from_native",
    "gcx_stream_get_info": "gcx.Stream",
    "gcx_stream_get_kernel_fit": "Stream.kernel_fit",
    "gcx_stream_get_max_cluster_size": "Stream.max_cluster_size",
    "gcx_stream_get_resource": "Stream.resources",
    "gcx_stream_native": "Stream.native",
    "gcx_stream_probe_sms": "Stream.sm_ids",
    "gcx_stream_query": "Stream.query",
    "gcx_stream_record": "Stream.record",
    "gcx_stream_synchronize": "Stream.synchronize",
    "gcx_stream_wait": "Stream.wait",
    "gcx_verify": "gcx.verify",
    "gcx_version": "gcx.__version__",
    "gcx_workqueue_configure": "WorkqueueResource.configured",
    "GCX_CONTEXT_PRIVATE": "private=True",
    "GCX_EVENT_BLOCKING_SYNC": "blocking=True",
    "GCX_EVENT_TIMING": "timing=True",
    "GCX_GRAPH_NODE_PRIORITIES": "node_priorities=True",
    "GCX_RESERVATION_INHERIT": "inherit=True",
    "GCX_LEASE_REQUIRE_WORKQUEUES": "require_workqueues=True",
    "GCX_LEASE_SHARED": "shared=True",
    "GCX_PREPARE_FOR_LEASES": "for_leases=True",
    "GCX_RESIZE_DEFERRED": "deferred=True",
    "GCX_SM_FAMILY_COSCHEDULED": '"coscheduled"',
    "GCX_SM_FAMILY_FINE": '"fine"',
    "GCX_SM_FAMILY_MAX_CLUSTER": '"max-cluster"',
    "GCX_SPLIT_EXACT": "exact=True",
    "GCX_SPLIT_EXCLUDE_SHARED": "exclude_shared=True",
    "GCX_SPLIT_IGNORE_SM_COSCHEDULING": 'family="fine"',
    "GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE": 'family="max-cluster"',
    "GCX_SPLIT_EXCLUDE_LEASED": "exclude_leased=True",
}
# Calls that messages suggest, with their C arguments.
_MAP_SMS = re.compile(r"gcx_device_map_sms\((\d+), \d+\), the ([\w-]+) family")
_SHARED_SMS = re.compile(r"gcx_device_find_shared_sms\((\d+)\)")
_SPAWN = 'start processes by multiprocessing\'s method "spawn"'


def in_python(text: str) -> str:
    """Returns a message of the C library with Python's names."""
    text = _MAP_SMS.sub(r'gcx.Device(\1).map_sms("\2")', text)
    text = _SHARED_SMS.sub(r"gcx.Device(\1).shared_sms()", text)
    text = re.sub(r"\b(gcx|GCX)_\w+", lambda found: _PYTHON_NAMES.get(found[0], found[0]), text)
    return text.replace("start it with exec", _SPAWN).replace("params->", "")


class Error(RuntimeError):
    """The base of all exceptions of gcx. A RuntimeError, as those of PyTorch and CuPy are.

    Attributes:
        code: The result's number: a CUresult's, as 915, or gcx's own from 10000 on.
        name: Its name: "GCX_ERROR_INVALID_RESOURCE_CONFIGURATION".
        message: What is wrong and what to do, with C's names; str() has Python's.
    """

    code: int = 999
    name: str = "GCX_ERROR_UNKNOWN"

    def __init__(self, message: str = "", code: int | None = None, name: str | None = None) -> None:
        super().__init__(message, code, name)
        self.message = message
        if code is not None:
            self.code = code
            self.name = name if name is not None else _gcx.gcx_result_name(code)

    def __str__(self) -> str:
        if not self.message:
            return f"{self.name} ({self.code}): {_gcx.gcx_result_string(self.code)}"
        return f"{in_python(self.message)} [{self.name}, {self.code}]"


def described(kind: str, describe: Callable[[], str]) -> str:
    """Returns a repr that never fails, even after a fork or a reset of the device."""
    try:
        return f"<gcx.{kind}{describe()}>"
    except Error as error:
        return f"<gcx.{kind}: {error.name}>"
