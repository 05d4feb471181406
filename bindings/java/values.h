/* Conversions between the values of JNI and gcx.h, exceptions, messages, and the macros that
 * gcx_common.i requires of a language. Included once, by the generated code.
 */
#ifndef GCX_JAVA_VALUES_H
#define GCX_JAVA_VALUES_H

#include "log.h"
#include "messages.h"
#include "upcalls.h"

#include <jni.h>
#include <stdint.h>

/* The methods of gcx.Upcalls: one for each struct of gcx.h, which creates its record. Every number
 * is a J, except float, which is a D. */
#define UPCALLS(X)                                                                                 \
    STRUCT_UPCALLS(X)                                                                              \
    X(progress, "progress", "(Lgcx/Preparing;II)V")                                                \
    X(error, "error", "(I[B[B)Lgcx/GcxException;")                                                 \
    X(message, "message", "(Ljava/util/function/ObjIntConsumer;I[B)V")

#define UPCALL_NUMBER(name, method, signature) UPCALL_##name,
#define UPCALL_ENTRY(name, method, signature) {method, signature},
enum { UPCALLS(UPCALL_NUMBER) UPCALL_COUNT };
static const struct {
    const char* method;
    const char* signature;
} upcalls[] = {UPCALLS(UPCALL_ENTRY)};

/* Valid as long as the class that loaded this library. */
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

/* Called after the class loader was collected, when no thread is in this library. */
JNIEXPORT void JNICALL JNI_OnUnload(JavaVM* vm, void* reserved) {
    JNIEnv* jenv = NULL;
    (void)reserved;
    if ((*vm)->GetEnv(vm, (void**)&jenv, JNI_VERSION_10) == JNI_OK)
        gcx_java_log_forget(jenv, methods);
}

/* Returns NULL with a pending OutOfMemoryError, as the other functions for arrays do. */
static jbyteArray bytes_of(JNIEnv* jenv, const void* data, size_t size) {
    jbyteArray array =
        (*jenv)->ExceptionCheck(jenv) ? NULL : (*jenv)->NewByteArray(jenv, (jsize)size);
    if (array != NULL)
        (*jenv)->SetByteArrayRegion(jenv, array, 0, (jsize)size, (const jbyte*)data);
    return array;
}

/* Returns NULL without an exception if there is no text. */
static jbyteArray text_of(JNIEnv* jenv, const char* text) {
    return text != NULL ? bytes_of(jenv, text, strlen(text)) : NULL;
}

/* Appends *last unless last is NULL. */
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
    groups[count] = *remainder; /* the caller has reserved room for it */
    return bytes_of(jenv, groups, ((size_t)count + 1) * sizeof(*groups));
}

/* Called after a call, without a pending exception. A receiver may call gcx. */
static void deliver_messages(JNIEnv* jenv, jclass owner) {
    message* next = gcx_java_log_take();
    const jobject receiver = next != NULL ? gcx_java_log_receiver(jenv) : NULL;
    while (next != NULL) {
        message* const current = next;
        jbyteArray text = receiver != NULL ? text_of(jenv, current->text) : NULL;
        if (text != NULL) {
            (*jenv)->CallStaticVoidMethod(jenv, owner, methods[UPCALL_message], receiver,
                                          (jint)current->level, text);
            (*jenv)->DeleteLocalRef(jenv, text);
        }
        /* gcx.Upcalls catches a receiver's exceptions; only the JVM's errors remain. */
        if ((*jenv)->ExceptionCheck(jenv))
            (*jenv)->ExceptionClear(jenv);
        next = current->next;
        free(current);
    }
    if (receiver != NULL)
        (*jenv)->DeleteLocalRef(jenv, receiver);
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

/* Allocates count + 1 zeroed items, so that the result for 0 is not NULL. */
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

static gcx_resource* array_of_gcx_resource(JNIEnv* jenv, jbyteArray array, uint32_t* count) {
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

/* array_of_TYPE(jenv, array, count) reads structs, whose fields the array concatenates, or handles. */
#define ARRAY_OF(TYPE, FIELDS)                                                                     \
    static TYPE* array_of_##TYPE(JNIEnv* jenv, jlongArray array, uint32_t* count) {                \
        const size_t whole = length_of(jenv, array) / FIELDS;                                      \
        TYPE* structs = room_for(jenv, whole, sizeof(*structs));                                   \
        size_t i;                                                                                  \
        if (structs == NULL)                                                                       \
            return NULL;                                                                           \
        for (i = 0; i < whole; i++) {                                                              \
            jlong fields[FIELDS];                                                                  \
            (*jenv)->GetLongArrayRegion(jenv, array, (jsize)(FIELDS * i), FIELDS, fields);         \
            fill_##TYPE(&structs[i], fields);                                                      \
        }                                                                                          \
        *count = (uint32_t)whole;                                                                  \
        return structs;                                                                            \
    }
INPUT_STRUCTS(ARRAY_OF)

static void fill_gcx_stream(gcx_stream* to, const jlong* from) {
    *to = (gcx_stream)(intptr_t)*from;
}
ARRAY_OF(gcx_stream, 1)

static uint32_t* array_of_uint32_t(JNIEnv* jenv, jintArray array, uint32_t* count) {
    const size_t whole = length_of(jenv, array);
    uint32_t* numbers = room_for(jenv, whole, sizeof(*numbers));
    if (numbers == NULL)
        return NULL;
    if (whole > 0)
        (*jenv)->GetIntArrayRegion(jenv, array, 0, (jsize)whole, (jint*)numbers);
    *count = (uint32_t)whole;
    return numbers;
}

/* Makes a copy that the caller frees; null becomes NULL. */
static int to_bytes(JNIEnv* jenv, jbyteArray array, void** data, uint64_t* size) {
    const size_t length = length_of(jenv, array);
    if (array == NULL)
        return 1;
    *data = room_for(jenv, length, 1);
    if (*data == NULL)
        return 0;
    (*jenv)->GetByteArrayRegion(jenv, array, 0, (jsize)length, (jbyte*)*data);
    *size = length;
    return 1;
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

/* What gcx_common.i requires of a language. No struct of gcx.h has more fields than this. */
#define MAX_FIELDS 24
#define RAISE(result) throw_result(jenv, jcls, result)
#define DELIVER() (deliver_messages(jenv, jcls), 1)
#define MEMORY_EXHAUSTED() throw_exhausted(jenv)
#define TO_uint32_t(input, to) (*(to) = (uint32_t)(input), 1)
#define TO_uint64_t(input, to) (*(to) = (uint64_t)(input), 1)
#define TO_int32_t(input, to) (*(to) = (input), 1)
#define TO_HANDLE(input, to) (*(to) = (void*)(intptr_t)(input), 1)
#define TO_RESOURCE(input, to) to_resource(jenv, input, to)
#define TO_ARRAY(type, input, count) array_of_##type(jenv, input, count)
#define TO_DATA(input, data, size) to_bytes(jenv, input, (void**)(data), size)
#define FROM_uint32_t(number) (jint)(number)
#define FROM_int32_t(number) (jint)(number)
#define FROM_float(number) (jfloat)(number)
#define HANDLE(pointer) (jlong)(intptr_t)(pointer)
#define TRUTH(holds) (holds) ? JNI_TRUE : JNI_FALSE
#define RESOURCE(resource) bytes_of(jenv, resource, sizeof(gcx_resource))
#define TEXT_VALUE(text) text_of(jenv, text)
#define NUMBERS_VALUE(numbers, count) ints_of(jenv, numbers, count, NULL)
#define PAIR(a, b) ints_of(jenv, (const uint32_t*)&(a), 1, (const uint32_t*)&(b))
#define SPLIT_gcx_resource(groups, count, remainder) split_of(jenv, groups, count, remainder)
#define SPLIT_uint32_t(counts, count, remainder) ints_of(jenv, counts, count, remainder)
#define STRUCT_BEGIN()                                                                             \
    jvalue fields[MAX_FIELDS];                                                                     \
    const int framed = frame_begin(jenv);                                                          \
    int field = 0
#define SIGNED(number) fields[field++].j = (jlong)(number)
#define UNSIGNED(number) fields[field++].j = (jlong)(number)
#define REAL(number) fields[field++].d = (jdouble)(number)
#define TEXT(text) fields[field++].l = text_of(jenv, text)
#define BYTES(data, size) fields[field++].l = bytes_of(jenv, data, size)
#define SMS(resource) fields[field++].l = RESOURCE(resource)
#define STRUCT_END(type) struct_of(jenv, jcls, UPCALL_##type, fields, framed)
#define LIST_BEGIN(type, count) jobjectArray listed = list_of(jenv, CLASS_OF_##type, count)
#define LIST_ADD(index, item) list_add(jenv, listed, index, item)
#define LIST_END() listed
#define REPORT_VALUE(record, list) report_of(jenv, record, list)

/* A frame for each struct: the local references to its fields would add up in a list. */
static int frame_begin(JNIEnv* jenv) {
    return !(*jenv)->ExceptionCheck(jenv) && (*jenv)->PushLocalFrame(jenv, MAX_FIELDS + 1) == 0;
}

static jobject struct_of(JNIEnv* jenv, jclass owner, int upcall, const jvalue* fields, int framed) {
    jobject record = NULL;
    if (!(*jenv)->ExceptionCheck(jenv)) /* all fields were created */
        record = (*jenv)->CallStaticObjectMethodA(jenv, owner, methods[upcall], fields);
    return framed ? (*jenv)->PopLocalFrame(jenv, record) : NULL;
}

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

/* Returns an Object[] of the two, or NULL with the exception of creating the record. */
static jobjectArray report_of(JNIEnv* jenv, jobject record, jobjectArray list) {
    jobjectArray report =
        (*jenv)->ExceptionCheck(jenv) ? NULL : list_of(jenv, "java/lang/Object", 2);
    list_add(jenv, report, 0, record);
    list_add(jenv, report, 1, list);
    return report;
}

/* A call that reports its progress to a gcx.Preparing. */
typedef struct progress {
    JNIEnv* jenv;
    jclass owner;
    jobject preparing;
    gcx_cancel cancel;
    jthrowable thrown; /* by the progress; rethrown when the call has returned */
} progress;

/* Called during the call, in its thread. */
static void report_progress(uint32_t done, uint32_t count, void* user_data) {
    progress* const reported = user_data;
    JNIEnv* const jenv = reported->jenv;
    if (reported->thrown != NULL)
        return;
    (*jenv)->CallStaticVoidMethod(jenv, reported->owner, methods[UPCALL_progress],
                                  reported->preparing, (jint)done, (jint)count);
    reported->thrown = (*jenv)->ExceptionOccurred(jenv);
    if (reported->thrown != NULL) {
        (*jenv)->ExceptionClear(jenv);
        gcx_cancel_signal(reported->cancel);
    }
}

#endif
