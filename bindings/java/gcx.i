/* The private layer of the Java package: every function and constant of gcx.h, in Java's values.
 *
 *   resources   byte[], as long as the struct; many of them one after another
 *   requests    int[], the first five fields of each
 *   handles     long, also native ones; in parameters Context, Stream and Event, which live until
 *               the call has returned
 *   structs     records, made by gcx.Upcalls from their fields in the header's order
 *   text        UTF-8 in byte[], since JNI's own strings are in another form of it
 *   results     an exception, made by gcx.Upcalls
 *   messages    diagnostics, given to gcx.Upcalls when the call that caused them returns
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
ASKED_FOR(GCX_CONTEXT_PRIVATE)
ASKED_FOR(GCX_EVENT_TIMING)
ASKED_FOR(GCX_EVENT_BLOCKING_SYNC)
ASKED_FOR(GCX_MAX_SMS)

%{
#include "messages.h"

#include <stdint.h>

/* What gcx.Upcalls has: for a struct of gcx.h what makes a record of it. A number is J, whatever it
 * is in C. */
#define UPCALLS(X)                                                                                 \
    X(gcx_driver_info, "driverInfo", "(JJJ[B)Lgcx/DriverInfo;")                                    \
    X(gcx_capability_info, "capabilityInfo", "(JJ[B)Lgcx/CapabilityInfo;")                         \
    X(gcx_device_info, "deviceInfo", "(JJJJJJ[B[B)Lgcx/DeviceInfo;")                               \
    X(gcx_resource_info, "resourceInfo", "(JJJJJJJJJJJ)Lgcx/ResourceInfo;")                        \
    X(gcx_context_info, "contextInfo", "(JJJJ)Lgcx/ContextInfo;")                                  \
    X(gcx_stream_info, "streamInfo", "(JJJJ)Lgcx/StreamInfo;")                                     \
    X(gcx_cache_stats, "cacheStats", "(JJJJJJJ)Lgcx/CacheStats;")                                  \
    X(gcx_live_context, "liveContext", "(JJJJJJ[B)Lgcx/LiveContext;")                              \
    X(error, "error", "(I[B[B)Lgcx/GcxException;")                                                 \
    X(message, "message", "(I[B)V")

#define UPCALL_NUMBER(name, method, signature) UPCALL_##name,
#define UPCALL_ENTRY(name, method, signature) {method, signature},
enum { UPCALLS(UPCALL_NUMBER) UPCALL_COUNT };
static const struct {
    const char* method;
    const char* signature;
} upcalls[] = {UPCALLS(UPCALL_ENTRY)};

/* Good as long as the class is, which this library belongs to. */
static jmethodID methods[UPCALL_COUNT];

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void* reserved) {
    JNIEnv* jenv = NULL;
    jclass owner;
    int i;
    (void)reserved;
    if ((*vm)->GetEnv(vm, (void**)&jenv, JNI_VERSION_10) != JNI_OK)
        return JNI_ERR;
    owner = (*jenv)->FindClass(jenv, "gcx/Upcalls");
    if (owner == NULL)
        return JNI_ERR;
    for (i = 0; i < UPCALL_COUNT; i++) {
        methods[i] =
            (*jenv)->GetStaticMethodID(jenv, owner, upcalls[i].method, upcalls[i].signature);
        if (methods[i] == NULL)
            return JNI_ERR;
    }
    return JNI_VERSION_10;
}

/* NULL with an OutOfMemoryError; so are the other arrays. */
static jbyteArray bytes_of(JNIEnv* jenv, const void* data, size_t size) {
    jbyteArray array = (*jenv)->NewByteArray(jenv, (jsize)size);
    if (array != NULL)
        (*jenv)->SetByteArrayRegion(jenv, array, 0, (jsize)size, (const jbyte*)data);
    return array;
}

/* NULL without an exception where there is no text. */
static jbyteArray text_of(JNIEnv* jenv, const char* text) {
    return text != NULL ? bytes_of(jenv, text, strlen(text)) : NULL;
}

/* Numbers, and one more where last isn't NULL. */
static jintArray ints_of(JNIEnv* jenv, const uint32_t* numbers, uint32_t count,
                         const uint32_t* last) {
    jintArray array = (*jenv)->NewIntArray(jenv, (jsize)(count + (last != NULL)));
    if (array == NULL)
        return NULL;
    (*jenv)->SetIntArrayRegion(jenv, array, 0, (jsize)count, (const jint*)numbers);
    if (last != NULL)
        (*jenv)->SetIntArrayRegion(jenv, array, (jsize)count, 1, (const jint*)last);
    return array;
}

static jbyteArray split_of(JNIEnv* jenv, gcx_resource* groups, uint32_t count,
                           const gcx_resource* remainder) {
    groups[count] = *remainder; /* there is room for it */
    return bytes_of(jenv, groups, ((size_t)count + 1) * sizeof(*groups));
}

/* After a call, without an exception. What is called may call gcx again. */
static void deliver_messages(JNIEnv* jenv, jclass owner) {
    message* next = take_messages();
    while (next != NULL) {
        message* const current = next;
        jbyteArray text = text_of(jenv, current->text);
        if (text != NULL) {
            (*jenv)->CallStaticVoidMethod(jenv, owner, methods[UPCALL_message],
                                          (jint)current->level, text);
            (*jenv)->DeleteLocalRef(jenv, text);
        }
        /* It catches what a receiver throws; what is left is the JVM's: no stack, no memory. */
        if ((*jenv)->ExceptionCheck(jenv))
            (*jenv)->ExceptionClear(jenv);
        next = current->next;
        free(current);
    }
}

static void throw_result(JNIEnv* jenv, jclass owner, gcx_result result) {
    jbyteArray text = text_of(jenv, gcx_last_error_message());
    jbyteArray name = text != NULL ? text_of(jenv, gcx_result_name(result)) : NULL;
    jobject error;
    if (name == NULL)
        return;
    deliver_messages(jenv, owner);
    error = (*jenv)->CallStaticObjectMethod(jenv, owner, methods[UPCALL_error], (jint)result, name,
                                            text);
    if (!(*jenv)->ExceptionCheck(jenv))
        (*jenv)->Throw(jenv, (jthrowable)error);
}

static void throw_named(JNIEnv* jenv, const char* class_name, const char* text) {
    const jclass thrown = (*jenv)->FindClass(jenv, class_name);
    if (thrown != NULL)
        (*jenv)->ThrowNew(jenv, thrown, text);
}

static void throw_exhausted(JNIEnv* jenv) {
    throw_named(jenv, "java/lang/OutOfMemoryError", "gcx: the host's memory is exhausted");
}

/* Room for so many items, and for one where there are none. */
static void* room_for(JNIEnv* jenv, size_t count, size_t size) {
    void* room = calloc(count + 1, size);
    if (room == NULL)
        throw_exhausted(jenv);
    return room;
}

static size_t length_of(JNIEnv* jenv, jarray array) {
    return array != NULL ? (size_t)(*jenv)->GetArrayLength(jenv, array) : 0;
}

static int to_resource(JNIEnv* jenv, jbyteArray array, gcx_resource* resource) {
    if (array == NULL || (*jenv)->GetArrayLength(jenv, array) != (jsize)sizeof(*resource)) {
        throw_named(jenv, "java/lang/IllegalArgumentException", "a resource has 128 bytes");
        return 0;
    }
    (*jenv)->GetByteArrayRegion(jenv, array, 0, (jsize)sizeof(*resource), (jbyte*)resource);
    return 1;
}

static gcx_resource* to_resources(JNIEnv* jenv, jbyteArray array, uint32_t* count) {
    const size_t whole = length_of(jenv, array) / sizeof(gcx_resource);
    gcx_resource* resources = room_for(jenv, whole, sizeof(*resources));
    if (resources == NULL)
        return NULL;
    if (whole > 0)
        (*jenv)->GetByteArrayRegion(jenv, array, 0, (jsize)(whole * sizeof(*resources)),
                                    (jbyte*)resources);
    *count = (uint32_t)whole;
    return resources;
}

/* sm_count to locality_domain_id; the fields after those are 0. */
#define REQUEST_FIELDS 5

static gcx_sm_request* to_requests(JNIEnv* jenv, jintArray array, uint32_t* count) {
    const size_t whole = length_of(jenv, array) / REQUEST_FIELDS;
    gcx_sm_request* requests = room_for(jenv, whole, sizeof(*requests));
    size_t i;
    if (requests == NULL)
        return NULL;
    for (i = 0; i < whole; i++)
        (*jenv)->GetIntArrayRegion(jenv, array, (jsize)(i * REQUEST_FIELDS), REQUEST_FIELDS,
                                   (jint*)&requests[i].sm_count);
    *count = (uint32_t)whole;
    return requests;
}

static char* to_text(JNIEnv* jenv, jbyteArray array) {
    const jsize length = (*jenv)->GetArrayLength(jenv, array);
    char* text = malloc((size_t)length + 1);
    if (text == NULL) {
        throw_exhausted(jenv);
        return NULL;
    }
    (*jenv)->GetByteArrayRegion(jenv, array, 0, length, (jbyte*)text);
    text[length] = '\0';
    return text;
}

/* What gcx_common.i asks of a language. The structs of gcx.h have fewer fields than this. */
#define MOST_FIELDS 16
#define RAISE(result) throw_result(jenv, jcls, result)
#define DELIVER() deliver_messages(jenv, jcls)
#define MEMORY_EXHAUSTED() throw_exhausted(jenv)
#define TO_U32(input, to) (*(to) = (uint32_t)(input), 1)
#define TO_I32(input, to) (*(to) = (input), 1)
#define TO_HANDLE(input, to) (*(to) = (void*)(intptr_t)(input), 1)
#define TO_RESOURCE(input, to) to_resource(jenv, input, to)
#define TO_RESOURCES(input, count) to_resources(jenv, input, count)
#define TO_REQUESTS(input, count) to_requests(jenv, input, count)
#define U32(number) (jint)(number)
#define I32(number) (jint)(number)
#define F32(number) (jfloat)(number)
#define HANDLE(pointer) (jlong)(intptr_t)(pointer)
#define TRUTH(holds) (holds) ? JNI_TRUE : JNI_FALSE
#define RESOURCE(resource) bytes_of(jenv, resource, sizeof(gcx_resource))
#define NUMBERS(numbers, count) ints_of(jenv, numbers, count, NULL)
#define PAIR(a, b) ints_of(jenv, (const uint32_t*)&(a), 1, (const uint32_t*)&(b))
#define SPLIT(groups, count, remainder) split_of(jenv, groups, count, remainder)
#define PLAN(counts, count, remainder) ints_of(jenv, counts, count, &(remainder))
#define STRUCT_BEGIN()                                                                             \
    jvalue fields[MOST_FIELDS];                                                                    \
    int field = 0
#define SIGNED(number) fields[field++].j = (jlong)(number)
#define UNSIGNED(number) fields[field++].j = (jlong)(number)
#define TEXT(text) fields[field++].l = text_of(jenv, text)
#define BYTES(data, size) fields[field++].l = bytes_of(jenv, data, size)
#define SMS(resource) fields[field++].l = RESOURCE(resource)
#define STRUCT_END(type) struct_of(jenv, jcls, UPCALL_##type, fields, field)
#define LIST_BEGIN(count) jobjectArray listed = list_of(jenv, count)
#define LIST_ADD(index, item) list_add(jenv, listed, index, item)
#define LIST_END() listed

static jobject struct_of(JNIEnv* jenv, jclass owner, int upcall, const jvalue* fields, int count) {
    (void)count;
    if ((*jenv)->ExceptionCheck(jenv)) /* there was no memory for a field */
        return NULL;
    return (*jenv)->CallStaticObjectMethodA(jenv, owner, methods[upcall], fields);
}

static jobjectArray list_of(JNIEnv* jenv, uint32_t count) {
    const jclass type = (*jenv)->FindClass(jenv, "gcx/LiveContext");
    return type != NULL ? (*jenv)->NewObjectArray(jenv, (jsize)count, type, NULL) : NULL;
}

static void list_add(JNIEnv* jenv, jobjectArray list, uint32_t index, jobject item) {
    if (list != NULL && !(*jenv)->ExceptionCheck(jenv))
        (*jenv)->SetObjectArrayElement(jenv, list, (jsize)index, item);
    if (item != NULL)
        (*jenv)->DeleteLocalRef(jenv, item);
}
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

AS(jbyteArray, byte[], const gcx_resource*)
%typemap(jstype) const gcx_resource* "Resource"
%typemap(javain) const gcx_resource* "$javainput.bytes"
AS(jbyteArray, byte[], (const gcx_resource* resources, uint32_t resource_count))
%typemap(jstype) (const gcx_resource* resources, uint32_t resource_count) "java.util.List<? extends Resource>"
%typemap(javain) (const gcx_resource* resources, uint32_t resource_count) "Resource.joined($javainput)"
AS(jintArray, int[], (const gcx_sm_request* requests, uint32_t request_count))
%typemap(jstype) (const gcx_sm_request* requests, uint32_t request_count) "java.util.List<SmRequest>"
%typemap(javain) (const gcx_sm_request* requests, uint32_t request_count) "SmRequest.joined($javainput)"

/* The collector leaves the object alone until the call has returned. */
%define HANDLE_OF(TYPE, CLASS)
AS(jlong, long, TYPE)
%typemap(jstype) TYPE "CLASS"
%typemap(javain, post="      java.lang.ref.Reference.reachabilityFence($javainput);") TYPE "$javainput.handle()"
%enddef
HANDLE_OF(gcx_context, Context)
HANDLE_OF(gcx_stream, Stream)
HANDLE_OF(gcx_event, Event)

AS(jbyteArray, byte[], const char*)
%typemap(jstype) const char* "String"
%typemap(javain) const char* "Upcalls.bytes($javainput)"
%typemap(javaout) const char* { return Upcalls.text($jnicall); }
%typemap(in) const char* driver {
    $1 = NULL;
    if ($input != NULL && ($1 = to_text(jenv, $input)) == NULL)
        FAIL
}
%typemap(freearg) const char* driver { free($1); }
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
GIVES_A(jint, int, gcx_resource_get_live_overlap)
GIVES_A(jint, int, gcx_resource_get_overlap)
GIVES_A(jint, int, gcx_resource_get_max_cluster_size)
GIVES_A(jint, int, gcx_stream_get_max_cluster_size)
GIVES_A(jfloat, float, gcx_event_get_elapsed)
GIVES_A(jboolean, boolean, gcx_stream_query)
GIVES_A(jboolean, boolean, gcx_event_query)
GIVES_A(jlong, long, gcx_context_create)
GIVES_A(jlong, long, gcx_context_from_native)
GIVES_A(jlong, long, gcx_context_get_current)
GIVES_A(jlong, long, gcx_context_pop)
GIVES_A(jlong, long, gcx_stream_create)
GIVES_A(jlong, long, gcx_stream_from_native)
GIVES_A(jlong, long, gcx_event_create)
GIVES_A(jlong, long, gcx_event_from_native)
GIVES_A(jobject, DriverInfo, gcx_driver_get_info)
GIVES_A(jobject, CapabilityInfo, gcx_capability_get_info)
GIVES_A(jobject, DeviceInfo, gcx_device_get_info)
GIVES_A(jobject, ResourceInfo, gcx_resource_get_info)
GIVES_A(jobject, ContextInfo, gcx_context_get_info)
GIVES_A(jobject, StreamInfo, gcx_stream_get_info)
GIVES_A(jobject, CacheStats, gcx_cache_get_stats)
GIVES_A(jobjectArray, LiveContext[], list_contexts)
GIVES_BYTES(gcx_device_get_resource)
GIVES_BYTES(gcx_workqueue_configure)
GIVES_BYTES(gcx_sm_split)
GIVES_BYTES(gcx_resource_union)
GIVES_BYTES(gcx_resource_subtract)
GIVES_BYTES(gcx_resource_intersect)
GIVES_BYTES(gcx_resource_get_atom)
GIVES_BYTES(gcx_context_get_resource)
GIVES_BYTES(gcx_stream_get_resource)
GIVES_INTS(gcx_device_get_stream_priority_range)
GIVES_INTS(gcx_sm_plan)
GIVES_INTS(gcx_stream_probe_sms)
GIVES_INTS(gcx_resource_get_sm_ids)

/* Diagnostics go to gcx.Upcalls or, where they aren't wanted there, where they go by themselves. */
AS(jboolean, boolean, int wanted)
%ignore gcx_log_callback;
%rename("$ignore", fullname=1) gcx_log_set_callback;

%include "gcx_common.i"

%rename(gcx_log_set_callback) log_set_callback;
%inline %{
static gcx_result log_set_callback(gcx_log_level level, int wanted) {
    return gcx_log_set_callback(level, wanted ? note_message : NULL, NULL);
}
%}
