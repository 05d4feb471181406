/* Measures calls in C and provides empty JNI calls, for CallCost.java. */
#include <gcx.h>
#include <jni.h>

#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* An empty call. */
JNIEXPORT jint JNICALL Java_CallCost_empty(JNIEnv* env, jclass caller) {
    (void)env;
    (void)caller;
    return 1;
}

/* An empty call with the parameters of one for a handle. */
JNIEXPORT jlong JNICALL Java_CallCost_handle(JNIEnv* env, jclass caller, jlong value, jint flags) {
    (void)env;
    (void)caller;
    return value + flags;
}

/* An empty call with the parameters of one for a resource. */
JNIEXPORT jbyteArray JNICALL Java_CallCost_bytes(JNIEnv* env, jclass caller, jbyteArray array) {
    jbyte copy[sizeof(gcx_resource)];
    jbyteArray given;
    (void)caller;
    (*env)->GetByteArrayRegion(env, array, 0, (jsize)sizeof(copy), copy);
    given = (*env)->NewByteArray(env, (jsize)sizeof(copy));
    if (given != NULL)
        (*env)->SetByteArrayRegion(env, given, 0, (jsize)sizeof(copy), copy);
    return given;
}

/* Returns the nanoseconds of a gcx_version. */
JNIEXPORT jdouble JNICALL Java_CallCost_versionInC(JNIEnv* env, jclass caller, jint rounds) {
    const double begin = now();
    volatile uint32_t sum = 0;
    jint i;
    (void)env;
    (void)caller;
    for (i = 0; i < rounds; i++)
        sum += gcx_version();
    return (now() - begin) / rounds;
}

/* Returns the nanoseconds to create and destroy a cached context and a stream, with its handle. */
JNIEXPORT jdouble JNICALL Java_CallCost_roundInC(JNIEnv* env, jclass caller, jint rounds) {
    const gcx_sm_request want = {.sm_count = 24};
    gcx_resource device, part;
    double begin;
    jint i;
    (void)env;
    (void)caller;
    if (gcx_device_get_resource(0, GCX_RESOURCE_SM, &device) != GCX_SUCCESS ||
        gcx_sm_split(&device, &want, 1, GCX_SPLIT_DEFAULT, &part, NULL, NULL, NULL) != GCX_SUCCESS)
        return -1;
    begin = now();
    for (i = 0; i < rounds; i++) {
        gcx_context context;
        gcx_stream stream;
        if (gcx_context_create(&part, 1, NULL, &context) != GCX_SUCCESS ||
            gcx_stream_create(context, NULL, &stream) != GCX_SUCCESS ||
            gcx_stream_native(stream) == NULL || gcx_stream_destroy(stream) != GCX_SUCCESS ||
            gcx_context_destroy(context) != GCX_SUCCESS)
            return -1;
    }
    return (now() - begin) / rounds;
}
