/* A tool that NVTX loads by NVTX_INJECTION64_PATH. It notes the calls in a text, which nvtx_test.cpp
 * reads by gcx_test_nvtx_notes(). */
#include <nvtx3/nvToolsExtCuda.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static char notes[1 << 16];
static size_t length;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char domain;

static void note(const char* pattern, ...) __attribute__((format(printf, 1, 2)));
static void note(const char* pattern, ...) {
    va_list values;
    pthread_mutex_lock(&mutex);
    va_start(values, pattern);
    length += (size_t)vsnprintf(notes + length, sizeof(notes) - length, pattern, values);
    va_end(values);
    if (length >= sizeof(notes))
        length = sizeof(notes) - 1;
    pthread_mutex_unlock(&mutex);
}

static nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
    note("domain %s\n", name);
    return (nvtxDomainHandle_t)&domain;
}

static int NVTX_API push(nvtxDomainHandle_t in, const nvtxEventAttributes_t* attributes) {
    note("%s%s\n", (void*)in == &domain ? "begin " : "unknown domain ", attributes->message.ascii);
    return 0;
}

static int NVTX_API pop(nvtxDomainHandle_t in) {
    note("%s\n", (void*)in == &domain ? "end" : "unknown domain");
    return 0;
}

static void NVTX_API name_stream(CUstream stream, const char* name) {
    note("stream %p %s\n", (void*)stream, name);
}

/* Copies the notes, and forgets them. */
EXPORT void gcx_test_nvtx_notes(char* to, size_t size) {
    pthread_mutex_lock(&mutex);
    snprintf(to, size, "%s", notes);
    length = 0;
    notes[0] = 0;
    pthread_mutex_unlock(&mutex);
}

EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables) {
    const NvtxExportTableCallbacks* callbacks =
        (const NvtxExportTableCallbacks*)tables(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable core = NULL;
    NvtxFunctionTable cuda = NULL;
    unsigned size = 0;
    if (callbacks == NULL ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core, &size) ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CUDA, &cuda, &size))
        return 0;
    *core[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create_domain;
    *core[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *core[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    *cuda[NVTX_CBID_CUDA_NameCuStreamA] = (NvtxFunctionPointer)name_stream;
    return 1;
}
