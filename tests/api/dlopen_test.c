/* Uses gcx by dlopen and dlsym, in C99. The library can be unloaded, leaves nothing behind in the
 * driver, and can be loaded again. */
#include <gcx.h>
#include <gcx_sim.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static int passed;
static int failed;

static void check(int ok, int line, const char* what) {
    if (ok) {
        passed++;
        return;
    }
    failed++;
    fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, line, what);
}
#define CHECK(expression) check((expression) != 0, __LINE__, #expression)

/* ISO C has no conversion of an object pointer to a function pointer, POSIX does. */
static void find(void* library, const char* name, void* function) {
    void* const symbol = dlsym(library, name);
    check(symbol != NULL, __LINE__, name);
    if (symbol == NULL)
        exit(1);
    memcpy(function, &symbol, sizeof symbol);
}

/* The functions of the library that the test calls. */
#define FUNCTIONS(X)                                                                               \
    X(version)                                                                                     \
    X(driver_open)                                                                                 \
    X(last_error_message)                                                                          \
    X(device_get_resource)                                                                         \
    X(sm_split)                                                                                    \
    X(context_create)                                                                              \
    X(context_destroy)                                                                             \
    X(stream_create)                                                                               \
    X(stream_destroy)                                                                              \
    X(stream_probe_sms)                                                                            \
    X(stream_record)                                                                               \
    X(event_create)                                                                                \
    X(event_destroy)                                                                               \
    X(cache_get_stats)

struct gcx {
    void* library;
#define DECLARE(name) __typeof__(&gcx_##name) name;
    FUNCTIONS(DECLARE)
#undef DECLARE
};

static struct gcx load(const char* path) {
    struct gcx gcx = {.library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (gcx.library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#define FIND(name) find(gcx.library, "gcx_" #name, &gcx.name);
    FUNCTIONS(FIND)
#undef FIND
    return gcx;
}

static void split_and_run(const struct gcx* gcx) {
    const gcx_sm_request want[2] = {{.sm_count = 108}, {.sm_count = 24}};
    gcx_resource device;
    gcx_resource part[2];
    gcx_resource rest;
    gcx_event event = NULL;
    gcx_cache_stats stats = GCX_CACHE_STATS_INIT;
    static uint32_t ids[2][GCX_MAX_SMS];
    uint32_t counts[2] = {0, 0};
    unsigned char seen[GCX_MAX_SMS] = {0};
    int shared = 0;
    int i;
    uint32_t k;

    CHECK(gcx->device_get_resource(0, GCX_RESOURCE_SM, &device) == GCX_SUCCESS);
    CHECK(gcx->sm_split(&device, want, 2, GCX_SPLIT_EXACT, part, &rest, NULL, NULL) == GCX_SUCCESS);
    CHECK(gcx->event_create(0, 0, &event) == GCX_SUCCESS);
    for (i = 0; i < 2; i++) {
        gcx_context context = NULL;
        gcx_stream stream = NULL;
        CHECK(gcx->context_create(&part[i], 1, NULL, &context) == GCX_SUCCESS);
        CHECK(gcx->stream_create(context, NULL, &stream) == GCX_SUCCESS);
        CHECK(gcx->stream_probe_sms(stream, ids[i], GCX_MAX_SMS, &counts[i]) == GCX_SUCCESS);
        CHECK(counts[i] == want[i].sm_count);
        CHECK(gcx->stream_record(stream, event) == GCX_SUCCESS);
        CHECK(gcx->stream_destroy(stream) == GCX_SUCCESS);
        CHECK(gcx->context_destroy(context) == GCX_SUCCESS);
        CHECK(gcx->context_destroy(context) == GCX_ERROR_INVALID_HANDLE);
        CHECK(strstr(gcx->last_error_message(), "gcx_context_destroy") != NULL);
        for (k = 0; k < counts[i]; k++)
            shared += seen[ids[i][k]]++;
    }
    CHECK(shared == 0);
    CHECK(gcx->event_destroy(event) == GCX_SUCCESS);
    CHECK(gcx->cache_get_stats(&stats) == GCX_SUCCESS);
    CHECK(stats.cached == 2 && stats.in_use == 0);
}

/* With a handle alive, other code may be using the library's objects still: they stay. In a child,
 * which leaves without the leak check. */
static void unload_with(int kind, const char* path) {
    const pid_t child = fork();
    int status = -1;
    CHECK(child >= 0);
    if (child == 0) {
        void* const driver = dlopen(getenv("GCX_SIM_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
        const struct gcx gcx = load(path);
        void (*get_counts)(gcx_sim_counts*);
        gcx_resource device;
        gcx_context context = NULL;
        gcx_stream stream = NULL;
        gcx_event event = NULL;
        gcx_sim_counts before;
        gcx_sim_counts after;
        find(driver, "gcx_sim_get_counts", &get_counts);
        CHECK(gcx.driver_open("sim:h100@13.0") == GCX_SUCCESS);
        CHECK(gcx.device_get_resource(0, GCX_RESOURCE_SM, &device) == GCX_SUCCESS);
        if (kind < 2)
            CHECK(gcx.context_create(&device, 1, NULL, &context) == GCX_SUCCESS);
        if (kind == 1) {
            CHECK(gcx.stream_create(context, NULL, &stream) == GCX_SUCCESS);
            CHECK(gcx.context_destroy(context) == GCX_SUCCESS);
        }
        if (kind == 2)
            CHECK(gcx.event_create(0, 0, &event) == GCX_SUCCESS);
        get_counts(&before);
        CHECK(before.primary_retains == 1);
        CHECK(dlclose(gcx.library) == 0);
        get_counts(&after);
        CHECK(after.primary_retains == 1 && after.green_contexts == before.green_contexts);
        CHECK(after.streams == before.streams && after.events == before.events);
        _exit(failed == 0 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char** argv) {
    const char* const path = argc > 1 ? argv[1] : "libgcx.so.1";
    void (*get_counts)(gcx_sim_counts*);
    gcx_sim_counts counts;
    int round;
    /* Keeps the driver loaded, to count what is left after gcx has closed it. */
    void* driver = NULL;
    for (round = 0; round < 3; round++)
        unload_with(round, path);
    driver = dlopen(getenv("GCX_SIM_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    CHECK(driver != NULL);
    if (driver == NULL)
        return 1;
    find(driver, "gcx_sim_get_counts", &get_counts);
    for (round = 0; round < 3; round++) {
        const struct gcx gcx = load(path);
        CHECK(gcx.version() == GCX_VERSION);
        CHECK(gcx.driver_open("sim:h100@13.0") == GCX_SUCCESS);
        split_and_run(&gcx);
        get_counts(&counts);
        CHECK(counts.green_contexts == 2 && counts.primary_retains == 1 && counts.modules == 1);
        CHECK(dlclose(gcx.library) == 0);
        CHECK(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL); /* it is gone */
        get_counts(&counts);
        CHECK(counts.green_contexts == 0 && counts.primary_retains == 0);
        CHECK(counts.streams == 0 && counts.events == 0);
        CHECK(counts.modules == 0 && counts.allocations == 0);
    }
    CHECK(dlclose(driver) == 0);
    printf("dlopen: %d passed, %d failed\n", passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
}
