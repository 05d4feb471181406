#include "driver/connections.hpp"

#include "base/log.hpp"
#include "driver/driver.hpp"

#include <dlfcn.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

namespace gcx {
namespace {

constexpr const char* kVariable = "CUDA_DEVICE_MAX_CONNECTIONS";
// Documented by CUDA, as is GCX_MAX_CONNECTIONS; docs/measurements/log.md confirms both.
constexpr uint32_t kDefault = 8;

// The final answer in one word, since a lock could be taken when the process forks. 0: unknown.
constinit std::atomic<uint32_t> final_answer{0};
constexpr uint32_t kIsKnown = 1U << 8;
constexpr uint32_t kFromEnvironment = 1U << 9;
constexpr uint32_t kCertain = 1U << 10;

constinit std::atomic<bool> warned{false};

std::optional<std::string> value_now() {
    const char* const value = std::getenv(kVariable);
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

// Returns the value that the process was started with.
std::optional<std::string> first_value() {
    std::ifstream file("/proc/self/environ", std::ios::binary);
    const std::string start = std::string(kVariable) + "=";
    for (std::string entry; std::getline(file, entry, '\0');) {
        if (entry.starts_with(start))
            return entry.substr(start.size());
    }
    return std::nullopt;
}

uint32_t count_of(const std::optional<std::string>& value) {
    if (!value)
        return kDefault;
    uint32_t count = 0;
    const char* const end = value->data() + value->size();
    const auto [rest, error] = std::from_chars(value->data(), end, count);
    return error == std::errc() && rest == end && count <= GCX_MAX_CONNECTIONS ? count : 0;
}

Connections read(bool started) {
    const auto value = value_now();
    return {count_of(value), value.has_value(), started, !started || value == first_value()};
}

std::optional<Connections> known() {
    const uint32_t word = final_answer.load();
    if (word == 0)
        return std::nullopt;
    return Connections{word & 0xffU, (word & kFromEnvironment) != 0, true, (word & kCertain) != 0};
}

// Returns whether cuInit was called. Until then all other functions return NOT_INITIALIZED.
bool has_started(void* library) {
    using CurrentFn = CUresult(CUDAAPI*)(CUcontext*);
    const auto get_current = reinterpret_cast<CurrentFn>(dlsym(library, "cuCtxGetCurrent"));
    CUcontext current = nullptr;
    return get_current != nullptr && get_current(&current) != CUDA_ERROR_NOT_INITIALIZED;
}

bool has_started_by_name(const std::string& library) {
    void* const loaded = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (loaded == nullptr)
        return false;
    const bool started = has_started(loaded);
    dlclose(loaded);
    return started;
}

std::string number_text(const Connections& now) {
    return now.count == 0 ? "an unknown number of connections"
                          : format("%u connection%s", now.count, now.count == 1 ? "" : "s");
}

} // namespace

Connections connections_of(void* library) {
    return known().value_or(read(has_started(library)));
}

void keep_connections(Connections found) {
    uint32_t nothing = 0;
    final_answer.compare_exchange_strong(
        nothing, found.count | kIsKnown | (found.from_environment ? kFromEnvironment : 0) |
                     (found.certain ? kCertain : 0));
}

Connections connections(const std::string& choice) {
    if (const auto found = known())
        return *found;
    const bool started =
        has_started_by_name(kDefaultLibrary) || has_started_by_name(library_of(choice));
    const Connections found = read(started);
    if (started)
        keep_connections(found);
    return found;
}

void request_connections(const std::string& choice, uint32_t count) {
    const Connections now = connections(choice);
    if (now.count >= count && now.certain)
        return;
    if (now.started)
        fail(GCX_ERROR_TOO_LATE,
             format("CUDA has started in this process%s with %s, so it is too late for %u; request "
                    "them before the first cuInit, or start the process with %s=%u",
                    now.certain ? "" : ", before the process set the variable again,",
                    now.certain ? number_text(now).c_str() : "what it had then", count, kVariable,
                    count));
    if (setenv(kVariable, std::to_string(count).c_str(), 1) != 0)
        fail(GCX_ERROR_OUT_OF_MEMORY, format("no memory to set %s", kVariable));
}

void warn_of_few_connections() {
    const auto found = known();
    if (!found || found->count != 1 || warned.exchange(true))
        return;
    log::write(GCX_LOG_WARNING, format("%s is 1: as soon as one stream of the process waits, all "
                                       "partitions wait, whatever SMs they have; set it to %u, or "
                                       "call gcx_queue_request_connections, before CUDA starts",
                                       kVariable, GCX_MAX_CONNECTIONS));
}

} // namespace gcx
