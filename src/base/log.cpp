#include "base/log.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <type_traits>

namespace gcx::log {
namespace {

constexpr const char* kLevelNames[] = {"none", "error", "warning", "info", "debug"};

gcx_log_level level_of_environment() {
    const char* text = std::getenv("GCX_LOG");
    if (text == nullptr)
        return GCX_LOG_NONE;
    for (int level = GCX_LOG_NONE; level <= GCX_LOG_DEBUG; level++) {
        if (std::strcmp(text, kLevelNames[level]) == 0)
            return static_cast<gcx_log_level>(level);
    }
    std::fprintf(
        stderr, "gcx: GCX_LOG=%s is none of error, warning, info, debug; taken as warning\n", text);
    return GCX_LOG_WARNING;
}

struct Sink {
    // Shared while a callback runs, so that replacing it waits until it has returned.
    std::shared_mutex mutex;
    std::atomic<int> level{-1}; // -1: the environment has not been read yet
    gcx_log_callback callback = nullptr;
    void* user_data = nullptr;
};

// Never destroyed: other threads may log while the process exits. Nor allocated: it goes when the
// library is unloaded.
static_assert(std::is_trivially_destructible_v<Sink>);
constinit Sink the_sink;

Sink& sink() {
    return the_sink;
}

int current_level() {
    Sink& s = sink();
    int level = s.level.load(std::memory_order_relaxed);
    if (level < 0) {
        const std::unique_lock lock(s.mutex);
        if (s.level.load(std::memory_order_relaxed) < 0)
            s.level.store(level_of_environment(), std::memory_order_relaxed);
        level = s.level.load(std::memory_order_relaxed);
    }
    return level;
}

} // namespace

bool wanted(gcx_log_level level) {
    return level <= current_level();
}

void write(gcx_log_level level, const std::string& message) {
    if (!wanted(level))
        return;
    Sink& s = sink();
    const std::shared_lock lock(s.mutex);
    if (s.callback != nullptr)
        s.callback(level, message.c_str(), s.user_data);
    else
        std::fprintf(stderr, "gcx %s: %s\n", kLevelNames[level], message.c_str());
}

void set_callback(gcx_log_level level, gcx_log_callback callback, void* user_data) {
    Sink& s = sink();
    const std::unique_lock lock(s.mutex);
    s.callback = callback;
    s.user_data = user_data;
    s.level.store(callback != nullptr ? level : level_of_environment(), std::memory_order_relaxed);
}

} // namespace gcx::log
