// The driver: opening it, its capabilities, the hardware queues that it uses, and the SM counts
// that other libraries see.

#include "driver/driver.hpp"
#include "api/library.hpp"
#include "api/result.hpp"
#include "interpose/count_reporting.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <iterator>

using namespace gcx;

gcx_result gcx_driver_open(const char* driver) {
    GCX_BODY({ open_library(driver); });
}

gcx_result gcx_driver_get_info(gcx_driver_info* info) {
    GCX_BODY({
        StructOutput out(info, "info");
        const Driver& driver = library().driver;
        out->version = driver.version();
        out->header_version = CUDA_VERSION;
        out->simulated = driver.simulated() ? 1 : 0;
        std::snprintf(out->library, sizeof out->library, "%s", driver.library().c_str());
        for (int i = 0; i < GCX_CAPABILITY_COUNT; i++)
            out->capabilities[i] = driver.has(static_cast<gcx_capability>(i)) ? 1 : 0;
        out.write();
    });
}

const char* gcx_simulator_path(void) {
    static thread_local char path[PATH_MAX]; // the longest possible path
    const gcx_result result = run_api_function(
        __func__, [&] { std::snprintf(path, sizeof path, "%s", find_simulator().c_str()); });
    return result == GCX_SUCCESS ? path : nullptr;
}

gcx_result gcx_driver_report_partition_counts(void) {
    GCX_BODY({ interpose::report_partition_counts(default_choice()); });
}

gcx_result gcx_queue_get_info(gcx_queue_info* info) {
    GCX_BODY({
        StructOutput out(info, "info");
        refuse_after_fork();
        const Connections found = connections(default_choice());
        out->connections = found.count;
        out->source =
            found.from_environment ? GCX_QUEUE_SOURCE_ENVIRONMENT : GCX_QUEUE_SOURCE_DEFAULT;
        out->started = found.started ? 1 : 0;
        out->certain = found.certain ? 1 : 0;
        out->too_few = found.count == 1 ? 1 : 0;
        out.write();
    });
}

gcx_result gcx_queue_request_connections(uint32_t connections) {
    GCX_BODY({
        if (connections == 0 || connections > GCX_MAX_CONNECTIONS)
            fail(GCX_ERROR_INVALID_VALUE,
                 format("connections is %u; CUDA takes 1 to %u", connections, GCX_MAX_CONNECTIONS));
        refuse_after_fork();
        request_connections(default_choice(), connections);
    });
}
