/* Work for the tests of the Java package: kernels that record the SMs they run on, and graphs of
 * them, on the driver that gcx has opened. An error of CUDA aborts the program.
 */
#include <dlfcn.h>
#include <jni.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The simulated driver recognizes the kernel by its name. */
static const char ptx[] =
    ".version 6.3\n.target sm_70\n.address_size 64\n"
    ".visible .entry gcx_probe(.param .u64 counts, .param .u32 max_sms, .param .u32 spin_ns)\n"
    "{\n"
    "    .reg .pred %p<4>;\n    .reg .b32 %r<4>;\n    .reg .b64 %rd<8>;\n"
    "    ld.param.u64 %rd1, [counts];\n"
    "    ld.param.u32 %r1, [max_sms];\n"
    "    ld.param.u32 %rd2, [spin_ns];\n"
    "    mov.u32 %r2, %tid.x;\n"
    "    setp.ne.u32 %p1, %r2, 0;\n"
    "    @%p1 bra RECORDED;\n"
    "    mov.u32 %r3, %smid;\n"
    "    setp.ge.u32 %p2, %r3, %r1;\n"
    "    @%p2 bra RECORDED;\n"
    "    mul.wide.u32 %rd3, %r3, 4;\n"
    "    add.u64 %rd4, %rd1, %rd3;\n"
    "    red.global.add.u32 [%rd4], 1;\n"
    "RECORDED:\n"
    "    mov.u64 %rd5, %globaltimer;\n"
    "MORE:\n"
    "    mov.u64 %rd6, %globaltimer;\n"
    "    sub.s64 %rd7, %rd6, %rd5;\n"
    "    setp.lt.u64 %p3, %rd7, %rd2;\n"
    "    @%p3 bra MORE;\n"
    "    ret;\n"
    "}\n";

enum { MAX_SMS = 1024, SLOTS = 4, THREADS = 1024 };

typedef void* handle;
typedef unsigned int u32;

static void* library;
static handle primary, module, probe, plain;
static uint64_t counts;

typedef void (*function)(void);

static function find(const char* name) {
    function found;
    *(void**)&found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "work: %s\n", dlerror());
        abort();
    }
    return found;
}

static void check(const char* name, int result) {
    if (result != 0) {
        fprintf(stderr, "work: %s returned %d\n", name, result);
        abort();
    }
}

#define CALL(name, types, ...) check(#name, ((int(*) types)find(#name))(__VA_ARGS__))

static void enter(void) {
    CALL(cuCtxPushCurrent_v2, (handle), primary);
}

static void leave(void) {
    handle popped;
    CALL(cuCtxPopCurrent_v2, (handle*), &popped);
}

JNIEXPORT void JNICALL Java_gcx_Work_open(JNIEnv* env, jclass caller, jbyteArray name) {
    char path[4096] = "";
    const jsize length = (*env)->GetArrayLength(env, name);
    (void)caller;
    (*env)->GetByteArrayRegion(env, name, 0, length, (jbyte*)path);
    library = dlopen(path, RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "work: %s\n", dlerror());
        abort();
    }
    CALL(cuDevicePrimaryCtxRetain, (handle*, int), &primary, 0);
    enter();
    CALL(cuModuleLoadData, (handle*, const void*), &module, ptx);
    CALL(cuModuleGetFunction, (handle*, handle, const char*), &probe, module, "gcx_probe");
    CALL(cuMemAlloc_v2, (uint64_t*, size_t), &counts, (size_t)SLOTS * MAX_SMS * 4);
    CALL(cuStreamCreate, (handle*, u32), &plain, 1);
    leave();
}

/* Returns the SM count of device 0 that libcuda reports to a library that opens it by its name, or
 * -1 if libcuda is missing or not initialized. */
JNIEXPORT jint JNICALL Java_gcx_ProcessTest_reportedSmCount(JNIEnv* env, jclass caller) {
    int count = 0;
    (void)env;
    (void)caller;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL)
        return -1;
    return ((int (*)(int*, int, int))find("cuDeviceGetAttribute"))(&count, 16, 0) == 0 ? count : -1;
}

JNIEXPORT jlong JNICALL Java_gcx_Work_kernel(JNIEnv* env, jclass caller) {
    (void)env;
    (void)caller;
    return (jlong)(intptr_t)probe;
}
JNIEXPORT jlong JNICALL Java_gcx_Work_plain(JNIEnv* env, jclass caller) {
    (void)env;
    (void)caller;
    return (jlong)(intptr_t)plain;
}
JNIEXPORT jlong JNICALL Java_gcx_Work_counts(JNIEnv* env, jclass caller, jint slot) {
    (void)env;
    (void)caller;
    return (jlong)(counts + (uint64_t)slot * MAX_SMS * 4);
}

static void launch(handle stream, int slot, int blocks) {
    uint64_t to = counts + (uint64_t)slot * MAX_SMS * 4;
    u32 max_sms = MAX_SMS;
    u32 nanoseconds = 300000; /* long enough for the blocks to spread over all SMs */
    void* arguments[] = {&to, &max_sms, &nanoseconds};
    CALL(cuLaunchKernel, (handle, u32, u32, u32, u32, u32, u32, u32, handle, void**, void**), probe,
         (u32)blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL);
}

/* Captures a CUgraph: the kernel in the stream at each index records in the slot of that number.
 * The streams after the first fork from it. */
JNIEXPORT jlong JNICALL Java_gcx_Work_capture(JNIEnv* env, jclass caller, jlongArray array,
                                              jint blocks) {
    jlong streams[SLOTS];
    const jsize count = (*env)->GetArrayLength(env, array);
    handle graph, event;
    jsize i;
    (void)caller;
    (*env)->GetLongArrayRegion(env, array, 0, count, streams);
    enter();
    CALL(cuEventCreate, (handle*, u32), &event, 2);
    CALL(cuStreamBeginCapture_v2, (jlong, int), streams[0], 2);
    for (i = 1; i < count; i++) {
        CALL(cuEventRecord, (handle, jlong), event, streams[0]);
        CALL(cuStreamWaitEvent, (jlong, handle, u32), streams[i], event, 0);
    }
    for (i = 0; i < count; i++)
        launch((handle)(intptr_t)streams[i], i, blocks);
    for (i = 1; i < count; i++) {
        CALL(cuEventRecord, (handle, jlong), event, streams[i]);
        CALL(cuStreamWaitEvent, (jlong, handle, u32), streams[0], event, 0);
    }
    CALL(cuStreamEndCapture, (jlong, handle*), streams[0], &graph);
    CALL(cuEventDestroy_v2, (handle), event);
    leave();
    return (jlong)(intptr_t)graph;
}

JNIEXPORT void JNICALL Java_gcx_Work_destroy(JNIEnv* env, jclass caller, jlong graph) {
    (void)env;
    (void)caller;
    CALL(cuGraphDestroy, (handle), (handle)(intptr_t)graph);
}

/* Returns how often each SM was recorded in the slot since the last call. */
JNIEXPORT jintArray JNICALL Java_gcx_Work_recorded(JNIEnv* env, jclass caller, jint slot) {
    jint numbers[MAX_SMS];
    const uint64_t from = counts + (uint64_t)slot * sizeof(numbers);
    const jintArray array = (*env)->NewIntArray(env, MAX_SMS);
    (void)caller;
    if (array == NULL)
        return NULL;
    enter();
    CALL(cuMemcpyDtoH_v2, (void*, uint64_t, size_t), numbers, from, sizeof(numbers));
    CALL(cuMemsetD32_v2, (uint64_t, u32, size_t), from, 0, MAX_SMS);
    leave();
    (*env)->SetIntArrayRegion(env, array, 0, MAX_SMS, numbers);
    return array;
}
