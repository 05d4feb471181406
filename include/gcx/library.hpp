// Part of gcx.hpp: the driver, live contexts and leases, queues, counts, the version, diagnostics.
#pragma once

#include "error.hpp"
#include "generated/raw.hpp"

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gcx {

// gcx_version: of the library that runs; GCX_VERSION is that of the headers.
inline uint32_t version() noexcept {
    return gcx_version();
}

// gcx_driver_open: "sim:h100@13.0", a path, or nullptr. Optional.
inline void open_driver(const char* driver = nullptr) {
    check(gcx_driver_open(driver));
}

// gcx_driver_get_info
inline gcx_driver_info driver_info() {
    return raw::driver_get_info();
}

// gcx_capability_get_info
inline gcx_capability_info capability_info(gcx_capability of) {
    return raw::capability_get_info(of);
}

// gcx_simulator_path: where the simulated driver is, if it is installed.
inline std::optional<std::string> simulator_path() {
    const char* const path = gcx_simulator_path();
    return path != nullptr ? std::optional<std::string>(path) : std::nullopt;
}

// gcx_context_list: the green contexts in use, of one device or of all (-1).
inline std::vector<gcx_live_context> live_contexts(int32_t device = -1) {
    return raw::context_list(device);
}

// gcx_lease_list: who has SMs, and then who waits for some, of one device or of all (-1).
inline std::vector<gcx_live_lease> live_leases(int32_t device = -1) {
    return raw::lease_list(device);
}

// gcx_queue_get_info: how many queues the partitions of the process share, and whether too few.
inline gcx_queue_info queue_info() {
    return raw::queue_get_info();
}

// gcx_queue_request_connections: at the beginning of main, before CUDA and other threads start.
inline void request_connections(uint32_t connections = max_connections) {
    check(gcx_queue_request_connections(connections));
}

// gcx_driver_report_partition_counts: before anything loads libcuda. From then on libraries that
// ask in a thread where a partition is current are told its SMs; a cuBLAS before 13.10 the
// device's.
inline void report_partition_counts() {
    check(gcx_driver_report_partition_counts());
}
// gcx_driver_reports_partition_counts: whether that was done in this process.
inline bool reports_partition_counts() {
    return raw::driver_reports_partition_counts() != 0;
}

using log_function = std::function<void(gcx_log_level, std::string_view)>;

namespace detail {

// What gcx calls. Never freed itself, since gcx may have something to say while the process exits.
struct log {
    std::mutex changing;
    std::unique_ptr<log_function> function;

    static log& instance() {
        static log* const only = new log;
        return *only;
    }
    static bool& inside() noexcept {
        static thread_local bool inside = false;
        return inside;
    }
    static void call(gcx_log_level level, const char* message, void* function) noexcept {
        inside() = true;
        try {
            (*static_cast<const log_function*>(function))(level, message);
        } catch (...) {
            std::fprintf(stderr, "gcx: the log function threw an exception at: %s\n", message);
        }
        inside() = false;
    }
};

} // namespace detail

// gcx_log_set_callback: sends diagnostics up to a level to a function, whose rules are those of
// gcx_log_callback: any thread calls it, and it must not call gcx. An exception that it throws goes
// no further; the message is then printed to standard error. When set_log returns, the function
// before has returned, won't be called again and is destroyed.
inline void set_log(gcx_log_level level, log_function function) {
    if (detail::log::inside())
        throw error(GCX_ERROR_NOT_PERMITTED, "gcx::set_log: called from a log function, for whose "
                                             "end it would have to wait");
    auto next = function ? std::make_unique<log_function>(std::move(function)) : nullptr;
    detail::log& log = detail::log::instance();
    // Declared before the lock: what the function before held ends without it.
    std::unique_ptr<log_function> before;
    const std::lock_guard<std::mutex> changing(log.changing);
    check(gcx_log_set_callback(level, next != nullptr ? detail::log::call : nullptr, next.get()));
    before = std::exchange(log.function, std::move(next));
}

// The default again: nothing is printed, unless the environment's GCX_LOG asks for it.
inline void reset_log() {
    set_log(log_level::none, nullptr);
}

} // namespace gcx
