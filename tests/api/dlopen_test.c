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

static void split_and_run(void* gcx) {
    gcx_result (*get_resource)(int32_t, gcx_resource_type, gcx_resource*);
    gcx_result (*split)(const gcx_resource*, const gcx_sm_request*, uint32_t, uint32_t,
                        gcx_resource*, gcx_resource*, uint32_t*, uint32_t*);
    gcx_result (*context_create)(const gcx_resource*, uint32_t, const gcx_context_params*,
                                 gcx_context*);
    gcx_result (*context_destroy)(gcx_context);
    gcx_result (*stream_create)(gcx_context, const gcx_stream_params*, gcx_stream*);
    gcx_result (*stream_destroy)(gcx_stream);
    gcx_result (*probe)(gcx_stream, uint32_t*, uint32_t, uint32_t*);
    gcx_result (*event_create)(int32_t, uint32_t, gcx_event*);
    gcx_result (*event_destroy)(gcx_event);
    gcx_result (*record)(gcx_stream, gcx_event);
    gcx_result (*get_stats)(gcx_cache_stats*);
    const char* (*last_error)(void);
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

    find(gcx, "gcx_device_get_resource", &get_resource);
    find(gcx, "gcx_sm_split", &split);
    find(gcx, "gcx_context_create", &context_create);
    find(gcx, "gcx_context_destroy", &context_destroy);
    find(gcx, "gcx_stream_create", &stream_create);
    find(gcx, "gcx_stream_destroy", &stream_destroy);
    find(gcx, "gcx_stream_probe_sms", &probe);
    find(gcx, "gcx_event_create", &event_create);
    find(gcx, "gcx_event_destroy", &event_destroy);
    find(gcx, "gcx_stream_record", &record);
    find(gcx, "gcx_cache_get_stats", &get_stats);
    find(gcx, "gcx_last_error_message", &last_error);

    CHECK(get_resource(0, GCX_RESOURCE_SM, &device) == GCX_SUCCESS);
    CHECK(split(&device, want, 2, GCX_SPLIT_EXACT, part, &rest, NULL, NULL) == GCX_SUCCESS);
    CHECK(event_create(0, 0, &event) == GCX_SUCCESS);
    for (i = 0; i < 2; i++) {
        gcx_context context = NULL;
        gcx_stream stream = NULL;
        CHECK(context_create(&part[i], 1, NULL, &context) == GCX_SUCCESS);
        CHECK(stream_create(context, NULL, &stream) == GCX_SUCCESS);
        CHECK(probe(stream, ids[i], GCX_MAX_SMS, &counts[i]) == GCX_SUCCESS);
        CHECK(counts[i] == want[i].sm_count);
        CHECK(record(stream, event) == GCX_SUCCESS);
        CHECK(stream_destroy(stream) == GCX_SUCCESS);
        CHECK(context_destroy(context) == GCX_SUCCESS);
        CHECK(context_destroy(context) == GCX_ERROR_INVALID_HANDLE);
        CHECK(strstr(last_error(), "gcx_context_destroy") != NULL);
        for (k = 0; k < counts[i]; k++)
            shared += seen[ids[i][k]]++;
    }
    CHECK(shared == 0);
    CHECK(event_destroy(event) == GCX_SUCCESS);
    CHECK(get_stats(&stats) == GCX_SUCCESS);
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
        void* const gcx = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        gcx_result (*driver_open)(const char*);
        gcx_result (*get_resource)(int32_t, gcx_resource_type, gcx_resource*);
        gcx_result (*context_create)(const gcx_resource*, uint32_t, const gcx_context_params*,
                                     gcx_context*);
        gcx_result (*context_destroy)(gcx_context);
        gcx_result (*stream_create)(gcx_context, const gcx_stream_params*, gcx_stream*);
        gcx_result (*event_create)(int32_t, uint32_t, gcx_event*);
        void (*get_counts)(gcx_sim_counts*);
        gcx_resource device;
        gcx_context context = NULL;
        gcx_stream stream = NULL;
        gcx_event event = NULL;
        gcx_sim_counts before;
        gcx_sim_counts after;
        find(gcx, "gcx_driver_open", &driver_open);
        find(gcx, "gcx_device_get_resource", &get_resource);
        find(gcx, "gcx_context_create", &context_create);
        find(gcx, "gcx_context_destroy", &context_destroy);
        find(gcx, "gcx_stream_create", &stream_create);
        find(gcx, "gcx_event_create", &event_create);
        find(driver, "gcx_sim_get_counts", &get_counts);
        CHECK(driver_open("sim:h100@13.0") == GCX_SUCCESS);
        CHECK(get_resource(0, GCX_RESOURCE_SM, &device) == GCX_SUCCESS);
        if (kind < 2)
            CHECK(context_create(&device, 1, NULL, &context) == GCX_SUCCESS);
        if (kind == 1) {
            CHECK(stream_create(context, NULL, &stream) == GCX_SUCCESS);
            CHECK(context_destroy(context) == GCX_SUCCESS);
        }
        if (kind == 2)
            CHECK(event_create(0, 0, &event) == GCX_SUCCESS);
        get_counts(&before);
        CHECK(before.primary_retains == 1);
        CHECK(dlclose(gcx) == 0);
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
        void* const gcx = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        uint32_t (*version)(void);
        gcx_result (*driver_open)(const char*);
        CHECK(gcx != NULL);
        if (gcx == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        find(gcx, "gcx_version", &version);
        find(gcx, "gcx_driver_open", &driver_open);
        CHECK(version() == GCX_VERSION);
        CHECK(driver_open("sim:h100@13.0") == GCX_SUCCESS);
        split_and_run(gcx);
        get_counts(&counts);
        CHECK(counts.green_contexts == 2 && counts.primary_retains == 1 && counts.modules == 1);
        CHECK(dlclose(gcx) == 0);
        CHECK(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL); /* it is gone */
        get_counts(&counts);
        CHECK(counts.green_contexts == 0);
        CHECK(counts.primary_retains == 0);
        CHECK(counts.streams == 0 && counts.events == 0);
        CHECK(counts.modules == 0);
        CHECK(counts.allocations == 0);
    }
    CHECK(dlclose(driver) == 0);
    printf("dlopen: %d passed, %d failed\n", passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
}
