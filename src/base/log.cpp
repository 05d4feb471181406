#include "base/log.hpp"

#include "base/error.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

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

// A callback that is running: on its thread's stack, and in the sink's list.
struct Call {
    uint64_t generation;
    std::thread::id thread;
    Call* next;
};

struct Sink {
    std::mutex mutex;           // never held while a callback runs
    std::atomic<int> level{-1}; // -1: the environment has not been read yet
    gcx_log_callback callback = nullptr;
    void* user_data = nullptr;
    uint64_t generation = 0; // counts the callbacks that there were
    Call* running = nullptr;
    // Tells of calls that returned. Not std's, which has a destructor.
    pthread_cond_t returned = PTHREAD_COND_INITIALIZER;
};

struct Message {
    gcx_log_level level;
    std::string text;
};

// What this thread has written and not given out yet; null: nothing. No destructor here, which
// would keep the library from being unloaded while the thread lives: whoever writes also delivers.
constinit thread_local std::vector<Message>* written = nullptr;

// Whether a callback runs in this thread. It must not call gcx; one that does anyway isn't called
// again for what its own calls have to say, which would have no end.
constinit thread_local bool in_callback = false;

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
        const std::lock_guard lock(s.mutex);
        if (s.level.load(std::memory_order_relaxed) < 0)
            s.level.store(level_of_environment(), std::memory_order_relaxed);
        level = s.level.load(std::memory_order_relaxed);
    }
    return level;
}

// Runs the sink's callback with a message. A callback that replaces the sink's finds this call in
// the list and waits until it has returned.
class Running {
  public:
    explicit Running(Sink& sink) : sink_(sink) {
        const std::lock_guard lock(sink.mutex);
        callback_ = sink.callback;
        user_data_ = sink.user_data;
        call_ = {sink.generation, std::this_thread::get_id(), sink.running};
        sink.running = &call_;
    }
    ~Running() {
        const std::lock_guard lock(sink_.mutex);
        Call** link = &sink_.running;
        while (*link != nullptr && *link != &call_) // a fork forgets the calls of before
            link = &(*link)->next;
        // The analyzer doesn't see that the call is in the list once, and not here if at the end.
        if (*link != nullptr) // NOLINT(clang-analyzer-core.StackAddressEscape)
            *link = call_.next;
        pthread_cond_broadcast(&sink_.returned);
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    void say(const Message& message) const {
        if (!wanted(message.level)) // the level may be another one since it was written
            return;
        if (callback_ != nullptr) {
            in_callback = true;
            callback_(message.level, message.text.c_str(), user_data_);
            in_callback = false;
        } else {
            std::fprintf(stderr, "gcx %s: %s\n", kLevelNames[message.level], message.text.c_str());
        }
    }

  private:
    Sink& sink_;
    gcx_log_callback callback_ = nullptr;
    void* user_data_ = nullptr;
    Call call_{};
};

template <class Predicate>
bool any_running(const Sink& sink, Predicate&& predicate) {
    for (const Call* call = sink.running; call != nullptr; call = call->next) {
        if (predicate(*call))
            return true;
    }
    return false;
}

} // namespace

bool wanted(gcx_log_level level) {
    return level <= current_level();
}

void write(gcx_log_level level, const std::string& message) noexcept {
    if (!wanted(level) || in_callback)
        return;
    try {
        if (written == nullptr)
            written = std::make_unique<std::vector<Message>>().release();
        written->push_back({level, message});
    } catch (const std::bad_alloc&) {
        return; // the message alone is lost
    }
}

bool pending() noexcept {
    return written != nullptr;
}

void deliver() noexcept {
    if (written == nullptr)
        return;
    const std::unique_ptr<std::vector<Message>> messages(std::exchange(written, nullptr));
    for (const Message& message : *messages)
        Running(sink()).say(message); // which takes itself out of the sink again
    // NOLINTNEXTLINE(clang-analyzer-core.StackAddressEscape)
}

void set_callback(gcx_log_level level, gcx_log_callback callback, void* user_data) {
    Sink& s = sink();
    const std::lock_guard lock(s.mutex);
    if (any_running(s, [](const Call& call) { return call.thread == std::this_thread::get_id(); }))
        fail(GCX_ERROR_NOT_PERMITTED,
             "called from a log callback, for whose end it would have to wait; call it from "
             "elsewhere");
    s.callback = callback;
    s.user_data = user_data;
    s.level.store(callback != nullptr ? level : level_of_environment(), std::memory_order_relaxed);
    const uint64_t mine = ++s.generation;
    while (any_running(s, [&](const Call& call) { return call.generation < mine; }))
        pthread_cond_wait(&s.returned, s.mutex.native_handle());
}

void forget_other_threads() noexcept {
    Sink& s = sink();
    new (&s.mutex) std::mutex; // one of them may have had it
    s.running = nullptr;
}

} // namespace gcx::log
