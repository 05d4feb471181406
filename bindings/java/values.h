/* What the generated code of the Java package stands on: JNI's values of gcx.h's and back,
 * exceptions, diagnostics, and the macros that gcx_common.i asks of a language. Included once.
 */
#ifndef GCX_JAVA_VALUES_H
#define GCX_JAVA_VALUES_H

#include "messages.h"

#include <jni.h>
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
    X(gcx_lease_info, "leaseInfo", "(JJJJJJJJ[B)Lgcx/LeaseInfo;")                                  \
    X(gcx_live_lease, "liveLease", "(JJJJJJJJ[B[B)Lgcx/LiveLease;")                                \
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

/* Of each lease its handle and its count. */
static gcx_lease_size* to_sizes(JNIEnv* jenv, jlongArray array, uint32_t* count) {
    const size_t whole = length_of(jenv, array) / 2;
    gcx_lease_size* sizes = room_for(jenv, whole, sizeof(*sizes));
    size_t i;
    if (sizes == NULL)
        return NULL;
    for (i = 0; i < whole; i++) {
        jlong pair[2];
        (*jenv)->GetLongArrayRegion(jenv, array, (jsize)(2 * i), 2, pair);
        sizes[i].lease = (gcx_lease)(intptr_t)pair[0];
        sizes[i].sm_count = (uint32_t)pair[1];
    }
    *count = (uint32_t)whole;
    return sizes;
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
#define TO_SIZES(input, count) to_sizes(jenv, input, count)
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
#define LIST_BEGIN(type, count) jobjectArray listed = list_of(jenv, CLASS_OF_##type, count)
#define LIST_ADD(index, item) list_add(jenv, listed, index, item)
#define LIST_END() listed

static jobject struct_of(JNIEnv* jenv, jclass owner, int upcall, const jvalue* fields, int count) {
    (void)count;
    if ((*jenv)->ExceptionCheck(jenv)) /* there was no memory for a field */
        return NULL;
    return (*jenv)->CallStaticObjectMethodA(jenv, owner, methods[upcall], fields);
}

#define CLASS_OF_gcx_live_context "gcx/LiveContext"
#define CLASS_OF_gcx_live_lease "gcx/LiveLease"

static jobjectArray list_of(JNIEnv* jenv, const char* class_name, uint32_t count) {
    const jclass type = (*jenv)->FindClass(jenv, class_name);
    return type != NULL ? (*jenv)->NewObjectArray(jenv, (jsize)count, type, NULL) : NULL;
}

static void list_add(JNIEnv* jenv, jobjectArray list, uint32_t index, jobject item) {
    if (list != NULL && !(*jenv)->ExceptionCheck(jenv))
        (*jenv)->SetObjectArrayElement(jenv, list, (jsize)index, item);
    if (item != NULL)
        (*jenv)->DeleteLocalRef(jenv, item);
}

#endif
