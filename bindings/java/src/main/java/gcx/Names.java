package gcx;

import static java.util.Map.entry;

import java.util.Map;
import java.util.regex.Pattern;

/** Replaces the names of C in messages by those of this package. */
final class Names {
  static final Map<String, String> HERE =
      Map.ofEntries(
          entry("gcx_cache_get_stats", "Cache.stats"),
          entry("gcx_cache_prepare", "Cache.prepare"),
          entry("gcx_cache_set_limit", "Cache.setLimit"),
          entry("gcx_cache_trim", "Cache.trim"),
          entry("gcx_cancel_create", "Device.acquire"),
          entry("gcx_cancel_destroy", "Device.acquire"),
          entry("gcx_cancel_signal", "Cancel.signal"),
          entry("gcx_context_create", "Context.create"),
          entry("gcx_context_destroy", "Context.close"),
          entry("gcx_context_get_current", "Context.current"),
          entry("gcx_context_get_info", "Context.info"),
          entry("gcx_context_get_resource", "Context.sms"),
          entry("gcx_context_list", "Context.live"),
          entry("gcx_context_native", "Context.nativeHandle"),
          entry("gcx_context_native_green", "Context.nativeGreenHandle"),
          entry("gcx_context_pop", "Pushed.close"),
          entry("gcx_context_push", "Context.push"),
          entry("gcx_context_record", "Context.record"),
          entry("gcx_context_synchronize", "Context.synchronize"),
          entry("gcx_context_wait", "Context.waitFor"),
          entry("gcx_device_get_count", "Device.count"),
          entry("gcx_device_get_info", "Device.info"),
          entry("gcx_device_get_resource", "Device.sms"),
          entry("gcx_device_find_shared_sms", "Device.sharedSms"),
          entry("gcx_device_get_stream_priority_range", "Device.streamPriorityRange"),
          entry("gcx_device_map_sms", "Device.mapSms"),
          entry("gcx_driver_get_info", "Gcx.driver"),
          entry("gcx_driver_open", "Gcx.openDriver"),
          entry("gcx_event_create", "Event.create"),
          entry("gcx_event_destroy", "Event.close"),
          entry("gcx_event_from_native", "Event.fromNative"),
          entry("gcx_event_get_elapsed", "Event.millisecondsSince"),
          entry("gcx_event_native", "Event.nativeHandle"),
          entry("gcx_event_query", "Event.isDone"),
          entry("gcx_event_synchronize", "Event.synchronize"),
          entry("gcx_graph_create", "Graph.create"),
          entry("gcx_graph_destroy", "Graph.close"),
          entry("gcx_graph_get_info", "Graph.info"),
          entry("gcx_graph_get_nodes", "Graph.nodes"),
          entry("gcx_graph_launch", "Graph.launch"),
          entry("gcx_graph_prepare", "Graph.prepare"),
          entry("gcx_graph_set_kernel", "Graph.setKernel"),
          entry("gcx_graph_set_part", "Graph.setPart"),
          entry("gcx_graph_update", "Graph.update"),
          entry("gcx_reservation_acquire_lease", "Reservation.acquire"),
          entry("gcx_reservation_acquire", "Device.reserve"),
          entry("gcx_reservation_release", "Reservation.close"),
          entry("gcx_reservation_get_info", "Reservation.info"),
          entry("gcx_reservation_get_resource", "Reservation.sms"),
          entry("gcx_reservation_get_token", "Reservation.token"),
          entry("gcx_reservation_join", "Reservation.join"),
          entry("gcx_reservation_list", "Reservation.live"),
          entry("gcx_last_error_message", "GcxException.detail"),
          entry("gcx_lease_acquire", "Device.acquire"),
          entry("gcx_lease_get_info", "Lease.info"),
          entry("gcx_lease_get_resource", "Lease.sms"),
          entry("gcx_lease_hand_over", "Lease.handOver"),
          entry("gcx_lease_list", "Lease.live"),
          entry("gcx_lease_prepare", "Lease.prepare"),
          entry("gcx_lease_query", "Lease.isDone"),
          entry("gcx_lease_release", "Lease.close"),
          entry("gcx_lease_resize", "Lease.resize"),
          entry("gcx_lease_stream_create", "Lease.createStream"),
          entry("gcx_lease_synchronize", "Lease.synchronize"),
          entry("gcx_log_set_callback", "Gcx.setLog"),
          entry("gcx_publish_start", "Published.start"),
          entry("gcx_publish_stop", "Published.stop"),
          entry("gcx_published_lease_list", "Published.leases"),
          entry("gcx_published_process_list", "Published.processes"),
          entry("gcx_queue_get_info", "Gcx.queues"),
          entry("gcx_queue_request_connections", "Gcx.requestConnections"),
          entry("gcx_driver_report_partition_counts", "Gcx.reportPartitionCounts"),
          entry("gcx_resource_get_atom", "SmResource.atoms"),
          entry("gcx_resource_get_info", "Resource.info"),
          entry("gcx_resource_find_max_cluster_size", "SmResource.maxClusterSize"),
          entry("gcx_resource_get_overlap", "SmResource.overlap"),
          entry("gcx_resource_get_sm_ids", "SmResource.smIds"),
          entry("gcx_resource_subtract", "SmResource.subtract"),
          entry("gcx_resource_union", "SmResource.union"),
          entry("gcx_result_name", "GcxException.resultName"),
          entry("gcx_result_string", "Gcx.describe"),
          entry("gcx_simulator_path", "Gcx.simulatorPath"),
          entry("gcx_sm_split", "SmResource.split"),
          entry("gcx_stream_create", "Context.createStream"),
          entry("gcx_stream_destroy", "Stream.close"),
          entry("gcx_stream_from_native", "Stream.fromNative"),
          entry("gcx_stream_get_info", "Stream.info"),
          entry("gcx_stream_get_kernel_fit", "Stream.kernelFit"),
          entry("gcx_stream_get_max_cluster_size", "Stream.maxClusterSize"),
          entry("gcx_stream_get_resource", "Stream.sms"),
          entry("gcx_stream_native", "Stream.nativeHandle"),
          entry("gcx_stream_probe_sms", "Stream.probeSms"),
          entry("gcx_stream_query", "Stream.isDone"),
          entry("gcx_stream_record", "Stream.record"),
          entry("gcx_stream_synchronize", "Stream.synchronize"),
          entry("gcx_stream_wait", "Stream.waitFor"),
          entry("gcx_verify", "Stream.verify"),
          entry("gcx_version", "Gcx.version"),
          entry("gcx_workqueue_configure", "WorkqueueResource.configured"),
          entry("GCX_CONTEXT_PRIVATE", "Context.createPrivate"),
          entry("GCX_EVENT_BLOCKING_SYNC", "EventOption.BLOCKING"),
          entry("GCX_EVENT_TIMING", "EventOption.TIMING"),
          entry("GCX_LEASE_REQUIRE_WORKQUEUES", "LeaseRequest.withOwnQueues"),
          entry("GCX_LEASE_SHARED", "LeaseRequest.withSharing"),
          entry("GCX_PREPARE_FOR_LEASES", "PrepareOption.FOR_LEASES"),
          entry("GCX_RESIZE_DEFERRED", "ResizeOption.DEFERRED"),
          entry("GCX_SM_FAMILY_COSCHEDULED", "SmFamily.COSCHEDULED"),
          entry("GCX_SM_FAMILY_FINE", "SmFamily.FINE"),
          entry("GCX_SM_FAMILY_MAX_CLUSTER", "SmFamily.MAX_CLUSTER"),
          entry("GCX_SPLIT_EXACT", "SplitOption.EXACT"),
          entry("GCX_SPLIT_EXCLUDE_SHARED", "SplitOption.EXCLUDE_SHARED"),
          entry("GCX_SPLIT_IGNORE_SM_COSCHEDULING", "SplitOption.FINE"),
          entry("GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE", "SplitOption.MAX_CLUSTER"),
          entry("GCX_SPLIT_EXCLUDE_LEASED", "SplitOption.EXCLUDE_LEASED"));

  private static final Pattern C_NAME = Pattern.compile("\\b(?:gcx|GCX)_\\w+");

  /** A call that messages recommend, with the arguments of C. */
  private static final Pattern MAP_SMS = Pattern.compile("gcx_device_map_sms\\((\\d+), ([1-3])\\)");

  /** Fields of C's parameters, and what has their values here. */
  private static final Map<String, String> FIELDS =
      Map.of(
          "params->min_sm_count", "LeaseRequest.minSmCount",
          "params->exclusive_sm_count", "LeaseRequest.exclusiveSmCount",
          "params->family", "LeaseRequest.family",
          "params->name", "LeaseRequest.name",
          "params->block_threads", "blockThreads",
          "params->argument_bytes", "arguments.remaining()",
          "params->grid", "grid",
          "params->block", "block",
          "min_sm_count", "LeaseRequest.withMinimum");

  private static final Pattern FIELD = Pattern.compile("params->\\w+|\\bmin_sm_count\\b");

  private Names() {}

  static String inJava(String text) {
    String mapped =
        MAP_SMS
            .matcher(text)
            .replaceAll(
                call -> {
                  SmFamily family = SmFamily.of(Integer.parseInt(call.group(2)));
                  return "new Device(" + call.group(1) + ").mapSms(SmFamily." + family + ")";
                });
    String request =
        text.startsWith("gcx_reservation_acquire") ? "ReservationParams" : "LeaseRequest";
    String named =
        FIELD
            .matcher(mapped)
            .replaceAll(
                field ->
                    FIELDS
                        .getOrDefault(field.group(), field.group())
                        .replace("LeaseRequest", request));
    return C_NAME
        .matcher(named)
        .replaceAll(found -> HERE.getOrDefault(found.group(), found.group()));
  }
}
