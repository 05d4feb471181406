// Part of gcx.hpp: the driver, live contexts and leases, queues, reported counts, version and log.
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

// gcx_version: the version of the running library; GCX_VERSION is that of the header.
inline uint32_t version() noexcept {
    return gcx_version();
}

// gcx_driver_open: "sim:h100@13.0", a path, or nullptr. Optional.
inline void open_driver(const char* driver = nullptr) {
    check(gcx_driver_open(driver));
}

// gcx_driver_get_info: info.capabilities[gcx::capability::workqueues] is 1 if it has workqueues.
inline gcx_driver_info driver_info() {
    return raw::driver_get_info();
}

// gcx_simulator_path: the path of the simulated driver, if it is installed.
inline std::optional<std::string> simulator_path() {
    const char* const path = gcx_simulator_path();
    return path != nullptr ? std::optional<std::string>(path) : std::nullopt;
}

// gcx_context_list: the green contexts in use, of one device or of all (-1).
inline std::vector<gcx_live_context> live_contexts(int32_t device = -1) {
    return raw::context_list(device);
}

// gcx_lease_list: leases and then waiting requests, of one device or of all (-1).
inline std::vector<gcx_live_lease> live_leases(int32_t device = -1) {
    return raw::lease_list(device);
}

// gcx_queue_get_info
inline gcx_queue_info queue_info() {
    return raw::queue_get_info();
}

// gcx_queue_request_connections: call it at the start of main, before CUDA and other threads.
inline void request_connections(uint32_t connections = max_connections) {
    check(gcx_queue_request_connections(connections));
}

// gcx_driver_report_partition_counts: call it before anything loads libcuda.
inline void report_partition_counts() {
    check(gcx_driver_report_partition_counts());
}

using log_function = std::function<void(gcx_log_level, std::string_view)>;

namespace detail {

// The state behind gcx's callback. Never freed, since gcx can log while the process exits.
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

// gcx_log_set_callback: sends log messages up to a level to a function, with the rules of
// gcx_log_callback: any thread calls it, and it must not call gcx. An exception that it throws is
// caught, and the message printed to standard error. When set_log returns, the previous function
// has returned, will not be called again and is destroyed.
inline void set_log(gcx_log_level level, log_function function) {
    if (detail::log::inside())
        throw error(GCX_ERROR_IN_CALLBACK, "gcx::set_log: called from a log function, which it "
                                           "would wait for; call it elsewhere");
    auto next = function ? std::make_unique<log_function>(std::move(function)) : nullptr;
    detail::log& log = detail::log::instance();
    // Declared before the lock, so that the previous function is destroyed without it.
    std::unique_ptr<log_function> before;
    const std::lock_guard<std::mutex> changing(log.changing);
    check(gcx_log_set_callback(level, next != nullptr ? detail::log::call : nullptr, next.get()));
    before = std::exchange(log.function, std::move(next));
}

// Restores the default: prints what GCX_LOG in the environment requests.
inline void reset_log() {
    set_log(log_level::none, nullptr);
}

} // namespace gcx
