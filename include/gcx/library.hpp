// Part of gcx.hpp: the driver, live contexts and leases, queues, counts, the version, diagnostics.
#pragma once

#include "error.hpp"

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

namespace capability { // gcx_capability
inline constexpr gcx_capability green_contexts = GCX_CAPABILITY_GREEN_CONTEXTS;
inline constexpr gcx_capability stream_create = GCX_CAPABILITY_STREAM_CREATE;
inline constexpr gcx_capability context_id = GCX_CAPABILITY_CONTEXT_ID;
inline constexpr gcx_capability resource_details = GCX_CAPABILITY_RESOURCE_DETAILS;
inline constexpr gcx_capability structured_split = GCX_CAPABILITY_STRUCTURED_SPLIT;
inline constexpr gcx_capability workqueues = GCX_CAPABILITY_WORKQUEUES;
inline constexpr gcx_capability stream_resource = GCX_CAPABILITY_STREAM_RESOURCE;
inline constexpr gcx_capability locality_domains = GCX_CAPABILITY_LOCALITY_DOMAINS;
inline constexpr int count = GCX_CAPABILITY_COUNT;
} // namespace capability

// gcx_driver_open: "sim:h100@13.0", a path, or nullptr. Optional.
inline void open_driver(const char* driver = nullptr) {
    check(gcx_driver_open(driver));
}

// gcx_driver_get_info
inline gcx_driver_info driver_info() {
    gcx_driver_info info = GCX_DRIVER_INFO_INIT;
    check(gcx_driver_get_info(&info));
    return info;
}

// gcx_capability_get_info
inline gcx_capability_info capability_info(gcx_capability of) {
    gcx_capability_info info = GCX_CAPABILITY_INFO_INIT;
    check(gcx_capability_get_info(of, &info));
    return info;
}

// gcx_simulator_path: where the simulated driver is, if it is installed.
inline std::optional<std::string> simulator_path() {
    const char* const path = gcx_simulator_path();
    return path != nullptr ? std::optional<std::string>(path) : std::nullopt;
}

namespace detail {
// All that a function of gcx.h lists: list(array, capacity, count).
template <class Element, class List>
std::vector<Element> listed(const List& list) {
    std::vector<Element> elements(16);
    for (;;) {
        const auto room = static_cast<uint32_t>(elements.size());
        uint32_t count = 0;
        const gcx_result result = list(elements.data(), room, &count);
        // Others may make some meanwhile.
        if (result != GCX_ERROR_INVALID_VALUE || count <= room)
            check(result);
        elements.resize(count);
        if (count <= room)
            return elements;
    }
}
template <class Element>
std::vector<Element> listed_of(gcx_result (*list)(int32_t, Element*, uint32_t, uint32_t*),
                               int32_t device) {
    return listed<Element>([&](Element* elements, uint32_t capacity, uint32_t* count) {
        return list(device, elements, capacity, count);
    });
}
} // namespace detail

// gcx_context_list: the green contexts in use, of one device or of all (-1).
inline std::vector<gcx_live_context> live_contexts(int32_t device = -1) {
    return detail::listed_of(gcx_context_list, device);
}

// gcx_lease_list: who has SMs, and then who waits for some, of one device or of all (-1).
inline std::vector<gcx_live_lease> live_leases(int32_t device = -1) {
    return detail::listed_of(gcx_lease_list, device);
}

namespace queue_source { // gcx_queue_source
inline constexpr gcx_queue_source by_default = GCX_QUEUE_SOURCE_DEFAULT;
inline constexpr gcx_queue_source environment = GCX_QUEUE_SOURCE_ENVIRONMENT;
} // namespace queue_source

// The most connections that CUDA takes.
inline constexpr uint32_t max_connections = GCX_MAX_CONNECTIONS;

// gcx_queue_get_info: how many queues the partitions of the process share, and whether too few.
inline gcx_queue_info queue_info() {
    gcx_queue_info info = GCX_QUEUE_INFO_INIT;
    check(gcx_queue_get_info(&info));
    return info;
}

// gcx_queue_request_connections: at the beginning of main, before CUDA and other threads start.
inline void request_connections(uint32_t connections = max_connections) {
    check(gcx_queue_request_connections(connections));
}

// gcx_report_partition_counts: before anything loads libcuda. From then on libraries that ask in a
// thread where a partition is current are told its SMs; a cuBLAS before 13.10 the device's.
inline void report_partition_counts() {
    check(gcx_report_partition_counts());
}
// gcx_reports_partition_counts: whether that was done in this process.
inline bool reports_partition_counts() {
    int32_t reporting = 0;
    check(gcx_reports_partition_counts(&reporting));
    return reporting != 0;
}

namespace log_level { // gcx_log_level
inline constexpr gcx_log_level none = GCX_LOG_NONE;
inline constexpr gcx_log_level error = GCX_LOG_ERROR;
inline constexpr gcx_log_level warning = GCX_LOG_WARNING;
inline constexpr gcx_log_level info = GCX_LOG_INFO;
inline constexpr gcx_log_level debug = GCX_LOG_DEBUG;
} // namespace log_level

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
