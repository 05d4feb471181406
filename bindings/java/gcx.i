/* The private layer of the Java package: every function and constant of gcx.h, in Java's values.
 *
 *   resources   byte[], as long as the struct; many of them one after another
 *   requests    int[], the first five fields of each
 *   handles     long, also native ones; in parameters Context, Stream, Event, Lease, Hold and
 *               Graph, which live until the call has returned
 *   structs     records, made by gcx.Upcalls from their fields in the header's order
 *   text        UTF-8 in byte[], since JNI's own strings are in another form of it
 *   results     an exception, made by gcx.Upcalls
 *   messages    diagnostics, given to gcx.Upcalls when the call that caused them returns; see log.h
 *
 * Functions.java has the functions as the package calls them, Natives.java JNI's, and
 * FunctionsConstants.java the constants.
 */
%module(jniclassname="Natives") Functions

%pragma(java) jniclassclassmodifiers="final class"
%pragma(java) jniclassbase="Upcalls"
%pragma(java) jniclasscode=%{
  static {
    NativeLibrary.load();
  }
%}
%pragma(java) moduleclassmodifiers="final class"
%pragma(java) constantsmodifiers="interface"

/* Constants are ints. Those that C writes with a u, Java can't read: the library is asked. */
%include "enumsimple.swg"
%javaconst(1);
%define ASKED_FOR(NAME) %javaconst(0) NAME; %enddef
ASKED_FOR(GCX_SM_REQUEST_BACKFILL)
ASKED_FOR(GCX_SM_REQUEST_LOCALITY_DOMAIN_ID)
ASKED_FOR(GCX_SM_REQUEST_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS)
ASKED_FOR(GCX_LOCALITY_DOMAIN_ID_ANY)
ASKED_FOR(GCX_SPLIT_DEFAULT)
ASKED_FOR(GCX_SPLIT_IGNORE_SM_COSCHEDULING)
ASKED_FOR(GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE)
ASKED_FOR(GCX_SPLIT_EXACT)
ASKED_FOR(GCX_SPLIT_UNLEASED)
ASKED_FOR(GCX_SPLIT_EXCLUDE_SHARED)
ASKED_FOR(GCX_CONTEXT_PRIVATE)
ASKED_FOR(GCX_EVENT_TIMING)
ASKED_FOR(GCX_EVENT_BLOCKING_SYNC)
ASKED_FOR(GCX_REST)
ASKED_FOR(GCX_FOREVER)
ASKED_FOR(GCX_MAX_LEASE_NAME)
ASKED_FOR(GCX_LEASE_SHARED)
ASKED_FOR(GCX_HOLD_INHERIT)
ASKED_FOR(GCX_MAX_HOLD_TOKEN)
ASKED_FOR(GCX_LEASE_OWN_QUEUES)
ASKED_FOR(GCX_RESIZE_DEFAULT)
ASKED_FOR(GCX_RESIZE_AT_ONCE)
ASKED_FOR(GCX_PREPARE_FOR_LEASES)
ASKED_FOR(GCX_MAX_PROCESS_NAME)
ASKED_FOR(GCX_MAX_CONNECTIONS)
ASKED_FOR(GCX_MAX_GRAPH_PARTS)
ASKED_FOR(GCX_MAX_KERNEL_NAME)
ASKED_FOR(GCX_NO_NODE)
ASKED_FOR(GCX_GRAPH_NODE_PRIORITIES)
ASKED_FOR(GCX_MAX_SMS)

%{
#include "values.h"
%}

%define FAIL { $cleanup return $null; } %enddef
%define GIVES(VALUE) $result = VALUE; %enddef
%define GIVES_NOTHING %enddef

/* ------------------------------------------------------------------------------------------
 * Types: in C, in JNI's class, in the package's
 * ---------------------------------------------------------------------------------------- */

%define AS(JNI, JAVA, TYPES...)
%typemap(jni) TYPES #JNI
%typemap(jtype) TYPES #JAVA
%typemap(jstype) TYPES #JAVA
%typemap(javain) TYPES "$javainput"
%typemap(javaout) TYPES { return $jnicall; }
%enddef

AS(jint, int, uint32_t)
AS(jint, int, unsigned int)
%typemap(out) unsigned int { $result = (jint)$1; }
AS(jint, int, int32_t)
AS(jlong, long, uint64_t)
AS(jint, int, gcx_resource_type)
AS(jint, int, gcx_sm_family)
AS(jint, int, gcx_capability)
AS(jint, int, gcx_workqueue_scope)
AS(jint, int, gcx_log_level)
AS(jint, int, gcx_result result)
AS(jint, int, const gcx_context_params* params)
AS(jint, int, const gcx_stream_params* params)
AS(jlong, long, struct CUctx_st*)
AS(jlong, long, struct CUgreenCtx_st*)
AS(jlong, long, struct CUstream_st*)
AS(jlong, long, struct CUevent_st*)
AS(jlong, long, struct CUfunc_st*)
AS(jlong, long, struct CUgraph_st*)

AS(jbyteArray, byte[], const gcx_resource*)
%typemap(jstype) const gcx_resource* "Resource"
%typemap(javain) const gcx_resource* "$javainput.bytes"
AS(jbyteArray, byte[], (const gcx_resource* resources, uint32_t resource_count))
%typemap(jstype) (const gcx_resource* resources, uint32_t resource_count) "java.util.List<? extends Resource>"
%typemap(javain) (const gcx_resource* resources, uint32_t resource_count) "Resource.joined($javainput)"
AS(jbyteArray, byte[], (const gcx_resource* resources, uint32_t count))
%typemap(jstype) (const gcx_resource* resources, uint32_t count) "java.util.List<? extends Resource>"
%typemap(javain) (const gcx_resource* resources, uint32_t count) "Resource.joined($javainput)"
AS(jintArray, int[], (const gcx_sm_request* requests, uint32_t request_count))
%typemap(jstype) (const gcx_sm_request* requests, uint32_t request_count) "java.util.List<SmRequest>"
%typemap(javain) (const gcx_sm_request* requests, uint32_t request_count) "SmRequest.joined($javainput)"

AS(jlongArray, long[], (const gcx_lease_size* sizes, uint32_t count))
%typemap(jstype) (const gcx_lease_size* sizes, uint32_t count) "java.util.List<LeaseSize>"
%typemap(javain, post="      java.lang.ref.Reference.reachabilityFence($javainput);") (const gcx_lease_size* sizes, uint32_t count) "LeaseSize.joined($javainput)"

AS(jlongArray, long[], (const gcx_stream* streams, uint32_t count))
%typemap(jstype) (const gcx_stream* streams, uint32_t count) "java.util.List<Stream>"
%typemap(javain, post="      java.lang.ref.Reference.reachabilityFence($javainput);") (const gcx_stream* streams, uint32_t count) "Stream.joined($javainput)"
AS(jintArray, int[], (const uint32_t* nodes, uint32_t count))
AS(jbyteArray, byte[], (const void* arguments, uint64_t argument_bytes))
%typemap(freearg) (const void* arguments, uint64_t argument_bytes) { free((void*)$1); }

/* The collector leaves the object alone until the call has returned. */
%define HANDLE_OF(TYPE, CLASS)
AS(jlong, long, TYPE)
%typemap(jstype) TYPE "CLASS"
%typemap(javain, post="      java.lang.ref.Reference.reachabilityFence($javainput);") TYPE "$javainput.handle()"
%enddef
HANDLE_OF(gcx_context, Context)
HANDLE_OF(gcx_stream, Stream)
HANDLE_OF(gcx_event, Event)
HANDLE_OF(gcx_lease, Lease)
HANDLE_OF(gcx_hold, Hold)
HANDLE_OF(gcx_graph, Graph)
HANDLE_OF(gcx_cancel, Wait.Token)
%typemap(javain, post="      java.lang.ref.Reference.reachabilityFence($javainput);") gcx_cancel "Wait.Token.handleOf($javainput)"

AS(jbyteArray, byte[], const char*)
%typemap(jstype) const char* "String"
%typemap(javain) const char* "Upcalls.bytes($javainput)"
%typemap(javaout) const char* { return Upcalls.text($jnicall); }
%typemap(in) const char* driver, const char* lease_name, const char* name, const char* folder,
             const char* token {
    $1 = NULL;
    if ($input != NULL && ($1 = to_text(jenv, $input)) == NULL)
        FAIL
}
%typemap(freearg) const char* driver, const char* lease_name, const char* name,
                  const char* folder, const char* token { free($1); }
%typemap(out) const char* {
    DELIVER();
    $result = text_of(jenv, $1);
}

/* ------------------------------------------------------------------------------------------
 * What the functions give: most have a result, which is an exception or nothing
 * ---------------------------------------------------------------------------------------- */

%include "gcx_result.h" /* its constants are ints still */
AS(void, void, gcx_result)
%typemap(javaout) gcx_result { $jnicall; }

%define GIVES_A(JNI, JAVA, FUNCTION) AS(JNI, JAVA, gcx_result FUNCTION) %enddef
%define GIVES_BYTES(FUNCTION) GIVES_A(jbyteArray, byte[], FUNCTION) %enddef
%define GIVES_INTS(FUNCTION) GIVES_A(jintArray, int[], FUNCTION) %enddef

GIVES_A(jint, int, gcx_device_get_count)
GIVES_A(jint, int, gcx_reports_partition_counts)
GIVES_A(jint, int, gcx_resource_get_live_overlap)
GIVES_A(jint, int, gcx_resource_get_overlap)
GIVES_A(jint, int, gcx_resource_get_max_cluster_size)
GIVES_A(jint, int, gcx_stream_get_max_cluster_size)
GIVES_A(jfloat, float, gcx_event_get_elapsed)
GIVES_A(jboolean, boolean, gcx_stream_query)
GIVES_A(jboolean, boolean, gcx_event_query)
GIVES_A(jboolean, boolean, gcx_lease_query)
GIVES_A(jlong, long, gcx_context_create)
GIVES_A(jlong, long, gcx_context_from_native)
GIVES_A(jlong, long, gcx_context_get_current)
GIVES_A(jlong, long, gcx_context_pop)
GIVES_A(jlong, long, gcx_stream_create)
GIVES_A(jlong, long, gcx_stream_from_native)
GIVES_A(jlong, long, gcx_event_create)
GIVES_A(jlong, long, gcx_event_from_native)
GIVES_A(jlong, long, acquire_lease)
GIVES_A(jlong, long, gcx_lease_stream_create)
GIVES_A(jlong, long, create_hold)
GIVES_A(jlong, long, gcx_hold_join)
GIVES_A(jlong, long, acquire_lease_of_hold)
GIVES_A(jlong, long, gcx_cancel_create)
GIVES_A(jlong, long, create_graph)
GIVES_A(jobject, DriverInfo, gcx_driver_get_info)
GIVES_A(jobject, CapabilityInfo, gcx_capability_get_info)
GIVES_A(jobject, DeviceInfo, gcx_device_get_info)
GIVES_A(jobject, ResourceInfo, gcx_resource_get_info)
GIVES_A(jobject, ContextInfo, gcx_context_get_info)
GIVES_A(jobject, StreamInfo, gcx_stream_get_info)
GIVES_A(jobject, CacheStats, gcx_cache_get_stats)
GIVES_A(jobject, CacheTrimmed, gcx_cache_trim)
GIVES_A(jobject, LeaseInfo, gcx_lease_get_info)
GIVES_A(jobject, HoldInfo, gcx_hold_get_info)
GIVES_A(jobject, MpsInfo, gcx_mps_get_info)
GIVES_A(jobject, KernelFit, get_kernel_fit)
GIVES_A(jobject, QueueInfo, gcx_queue_get_info)
GIVES_A(jobject, GraphInfo, gcx_graph_get_info)
GIVES_A(jobjectArray, LiveContext[], list_contexts)
GIVES_A(jobjectArray, LiveLease[], list_leases)
GIVES_A(jobjectArray, PublishedProcess[], list_published_processes)
GIVES_A(jobjectArray, PublishedLease[], list_published_leases)
GIVES_A(jobjectArray, LiveHold[], list_holds)
GIVES_A(jobjectArray, GraphNode[], list_graph_nodes)
GIVES_BYTES(gcx_device_get_resource)
GIVES_BYTES(gcx_workqueue_configure)
GIVES_BYTES(gcx_sm_split)
GIVES_BYTES(gcx_resource_union)
GIVES_BYTES(gcx_resource_subtract)
GIVES_BYTES(gcx_resource_intersect)
GIVES_BYTES(gcx_resource_get_atom)
GIVES_BYTES(gcx_context_get_resource)
GIVES_BYTES(gcx_stream_get_resource)
GIVES_BYTES(gcx_lease_get_resource)
GIVES_BYTES(gcx_hold_get_resource)
GIVES_BYTES(gcx_hold_get_token)
GIVES_INTS(gcx_device_get_stream_priority_range)
GIVES_INTS(gcx_sm_plan)
GIVES_INTS(gcx_stream_probe_sms)
GIVES_INTS(gcx_device_get_shared_sms)
GIVES_INTS(gcx_resource_get_sm_ids)

/* Diagnostics go to the receiver or, if it is null, where they go by default. */
AS(jobject, java.util.function.ObjIntConsumer<byte[]>, jobject receiver)
%typemap(in) jobject receiver { $1 = $input; }
%typemap(in, numinputs=0) JNIEnv* log_environment { $1 = jenv; }
%ignore gcx_log_callback;
%rename("$ignore", fullname=1) gcx_log_set_callback;

/* Progress is told while the library is inside a call: see tell_progress of values.h. */
AS(jobject, Preparing, jobject preparing)
%typemap(in) jobject preparing { $1 = $input; }
%typemap(in, numinputs=0) (JNIEnv* jni, jclass upcalls) {
    $1 = jenv;
    $2 = jcls;
}
%typemap(out) gcx_result prepare_cache {
    if ((*jenv)->ExceptionCheck(jenv)) /* what the progress has thrown */
        FAIL
    if ($1 != GCX_SUCCESS) {
        RAISE($1);
        FAIL
    }
    DELIVER();
    GIVES_NOTHING
}
%ignore gcx_progress_callback;
%rename("$ignore", fullname=1) gcx_cache_prepare;

%define CREATED(TYPE)
%typemap(in, numinputs=0) TYPE* (TYPE handle = NULL) { $1 = &handle; }
%typemap(argout) TYPE* { GIVES(HANDLE(*$1)) }
%enddef

%include "gcx_common.i"

%rename(gcx_log_set_callback) log_set_callback;
%inline %{
static gcx_result log_set_callback(gcx_log_level level, jobject receiver,
                                   JNIEnv* log_environment) {
    return gcx_java_log_set(log_environment, level, receiver, methods);
}
%}

%rename(gcx_cache_prepare) prepare_cache;
%inline %{
static gcx_result prepare_cache(const gcx_resource* resources, uint32_t count, uint32_t flags,
                                gcx_cancel cancel, jobject preparing, JNIEnv* jni, jclass upcalls) {
    progress told = {jni, upcalls, preparing, cancel, NULL};
    gcx_prepare_params params = GCX_PREPARE_PARAMS_INIT;
    gcx_result result;
    params.flags = flags;
    params.cancel = cancel;
    params.progress = preparing != NULL ? tell_progress : NULL;
    params.user_data = &told;
    result = gcx_cache_prepare(resources, count, &params);
    if (told.thrown != NULL) {
        deliver_messages(jni, upcalls);
        (*jni)->Throw(jni, told.thrown);
    }
    return result;
}
%}
