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

// Values of variables and names of files can have control characters, which must not reach a
// terminal.
const char* without_controls(std::string& text) {
    unsigned char before = 0;
    for (char& c : text) {
        const auto byte = static_cast<unsigned char>(c);
        // In UTF-8, 0xc2 begins U+0080 to U+009F.
        if (byte < 0x20 || byte == 0x7f || (before == 0xc2 && byte >= 0x80 && byte < 0xa0))
            c = '?';
        before = byte;
    }
    return text.c_str();
}

gcx_log_level level_of_environment() {
    const char* text = std::getenv("GCX_LOG");
    if (text == nullptr || *text == '\0')
        return GCX_LOG_NONE;
    for (int level = GCX_LOG_NONE; level <= GCX_LOG_DEBUG; level++) {
        if (std::strcmp(text, kLevelNames[level]) == 0)
            return static_cast<gcx_log_level>(level);
    }
    std::string shown = text;
    std::fprintf(stderr, "gcx: GCX_LOG=%s is none of error, warning, info, debug; using warning\n",
                 without_controls(shown));
    return GCX_LOG_WARNING;
}

// A callback that is running. It lives on its thread's stack and is in the sink's list.
struct Call {
    uint64_t generation;
    std::thread::id thread;
    Call* next;
};

struct Sink {
    std::mutex mutex;           // not held while a callback runs
    std::atomic<int> level{-1}; // -1: the environment has not been read yet
    gcx_log_callback callback = nullptr;
    void* user_data = nullptr;
    uint64_t generation = 0; // incremented by set_callback()
    Call* running = nullptr;
    // Signals calls that returned. std::condition_variable has a destructor.
    pthread_cond_t returned = PTHREAD_COND_INITIALIZER;
};

struct Message {
    gcx_log_level level;
    std::string text;
};

// The messages that this thread has queued; null: none. A raw pointer, since a thread_local with a
// destructor would keep the library from being unloaded while the thread lives; deliver() frees it.
constinit thread_local std::vector<Message>* queued = nullptr;

// Whether this thread runs a callback. A callback must not call gcx. If it does, messages of that
// call are dropped, since delivering them would never end.
constinit thread_local bool in_callback = false;

// Never destroyed, since other threads may log while the process exits, and not allocated, so that
// it disappears when the library is unloaded.
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

// One call of the sink's callback, during its lifetime. set_callback() waits for it.
class CallbackCall {
  public:
    explicit CallbackCall(Sink& sink) : sink_(sink) {
        const std::lock_guard lock(sink.mutex);
        callback_ = sink.callback;
        user_data_ = sink.user_data;
        call_ = {sink.generation, std::this_thread::get_id(), sink.running};
        sink.running = &call_;
    }
    ~CallbackCall() {
        const std::lock_guard lock(sink_.mutex);
        Call** link = &sink_.running;
        while (*link != nullptr && *link != &call_) // forget_other_threads() empties the list
            link = &(*link)->next;
        // The analyzer does not see that the call is in the list at most once.
        if (*link != nullptr) // NOLINT(clang-analyzer-core.StackAddressEscape)
            *link = call_.next;
        pthread_cond_broadcast(&sink_.returned);
    }
    CallbackCall(const CallbackCall&) = delete;
    CallbackCall& operator=(const CallbackCall&) = delete;

    void deliver(Message& message) const {
        if (!enabled(message.level)) // the level may have changed since the message was queued
            return;
        if (callback_ != nullptr) {
            in_callback = true;
            callback_(message.level, message.text.c_str(), user_data_);
            in_callback = false;
        } else {
            std::fprintf(stderr, "gcx %s: %s\n", kLevelNames[message.level],
                         without_controls(message.text));
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

bool enabled(gcx_log_level level) {
    return level <= current_level();
}

void write(gcx_log_level level, const std::string& message) noexcept {
    if (!enabled(level) || in_callback)
        return;
    try {
        if (queued == nullptr)
            queued = std::make_unique<std::vector<Message>>().release();
        queued->push_back({level, message});
    } catch (const std::bad_alloc&) {
        return; // only this message is lost
    }
}

bool pending() noexcept {
    return queued != nullptr;
}

void deliver() noexcept {
    if (queued == nullptr)
        return;
    const std::unique_ptr<std::vector<Message>> messages(std::exchange(queued, nullptr));
    for (Message& message : *messages)
        CallbackCall(sink()).deliver(message);
    // NOLINTNEXTLINE(clang-analyzer-core.StackAddressEscape)
}

void set_callback(gcx_log_level level, gcx_log_callback callback, void* user_data) {
    Sink& s = sink();
    const std::lock_guard lock(s.mutex);
    if (any_running(s, [](const Call& call) { return call.thread == std::this_thread::get_id(); }))
        fail(GCX_ERROR_IN_CALLBACK,
             "called from a log callback, for which it would have to wait; call it from elsewhere");
    s.callback = callback;
    s.user_data = user_data;
    s.level.store(callback != nullptr ? level : level_of_environment(), std::memory_order_relaxed);
    const uint64_t mine = ++s.generation;
    while (any_running(s, [&](const Call& call) { return call.generation < mine; }))
        pthread_cond_wait(&s.returned, s.mutex.native_handle());
}

void forget_other_threads() noexcept {
    Sink& s = sink();
    new (&s.mutex) std::mutex; // another thread may have held it
    s.running = nullptr;
}

} // namespace gcx::log
