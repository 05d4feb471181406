// The driver: opening it, its capabilities, the hardware queues that it uses, and the SM counts
// that other libraries see.

#include "api/library.hpp"
#include "api/result.hpp"
#include "driver/companion_library.hpp"
#include "driver/connections.hpp"
#include "interpose/count_reporting.hpp"

#include <climits>
#include <cstdio>

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
        out.write();
    });
}

gcx_result gcx_capability_get_info(gcx_capability capability, gcx_capability_info* info) {
    GCX_BODY({
        StructOutput out(info, "info");
        if (capability < 0 || capability >= GCX_CAPABILITY_COUNT)
            fail(GCX_ERROR_INVALID_VALUE, format("there is no capability %d; they go from 0 to %d",
                                                 capability, GCX_CAPABILITY_COUNT - 1));
        const Driver& driver = library().driver;
        const CapabilityRow& row = capability_row(capability);
        out->available = driver.has(capability) ? 1 : 0;
        out->required_version = row.required_version;
        out->name = row.name;
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

gcx_result gcx_driver_reports_partition_counts(int32_t* reporting) {
    GCX_BODY(
        { *not_null(reporting, "reporting") = interpose::reports_partition_counts() ? 1 : 0; });
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
