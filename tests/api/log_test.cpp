// Tests the log's callback: when it runs, what it may wait for, and when it is no longer called.

#include "support.hpp"

#include <atomic>
#include <chrono>
#include <thread>

using namespace support;

namespace {

bool within_seconds(const std::function<bool()>& done) {
    for (int i = 0; i < 5000; i++) {
        if (done())
            return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
}

// A callback that blocks in the first message that has a text until it is released, as one does
// that waits for a lock of the application.
struct Gate {
    explicit Gate(const char* its_text) : text(its_text) {}
    const char* text;
    std::atomic<bool> inside{false};
    std::atomic<bool> open{false};
    std::atomic<bool> opened_in_time{true};
    std::atomic<int> calls{0};
};

void wait_at_gate(gcx_log_level, const char* message, void* user_data) {
    auto& gate = *static_cast<Gate*>(user_data);
    gate.calls++;
    if (std::strstr(message, gate.text) == nullptr || gate.inside.exchange(true))
        return;
    if (!within_seconds([&] { return gate.open.load(); }))
        gate.opened_in_time = false;
}

// Calls through every lock of gcx in another thread, while a callback waits.
void use_everything() {
    const Split made = split(whole_device(), {8, 16}, GCX_SPLIT_IGNORE_SM_COSCHEDULING);
    const Partition first(made.groups[0]);
    const Partition second(made.groups[1]);
    gcx_event event = nullptr;
    CHECK_OK(gcx_event_create(0, 0, &event));
    CHECK_OK(gcx_stream_record(first.stream, event));
    CHECK_OK(gcx_stream_wait(second.stream, event));
    CHECK_OK(gcx_context_synchronize(second.context));
    CHECK_EQ(first.probe().size(), 8U);
    CHECK_OK(gcx_event_destroy(event));
    CHECK(cache_stats().in_use >= 2);
}

// Runs act in a thread, blocks its callback in the message that has the text, and checks that other
// threads can use gcx.
void others_go_on_while_it_waits(const char* text, const std::function<void()>& act) {
    Gate gate(text);
    CHECK_OK(gcx_log_set_callback(GCX_LOG_DEBUG, wait_at_gate, &gate));
    std::thread thread(act);
    if (CHECK(within_seconds([&] { return gate.inside.load(); })))
        use_everything();
    gate.open = true;
    thread.join();
    CHECK(gate.opened_in_time.load());
    CHECK_OK(gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr));
}

// A callback must not call gcx. If it does, it gets an answer, and the messages end.
void callback_that_calls_gcx_ends() {
    in_child("a callback that calls gcx", [] {
        static int calls = 0;
        const auto callback = [](gcx_log_level, const char*, void*) {
            calls++;
            CHECK(gcx_driver_open("sim:no-such-gpu") != GCX_SUCCESS);
            CHECK_EQ(gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr), GCX_ERROR_IN_CALLBACK);
        };
        CHECK_OK(gcx_log_set_callback(GCX_LOG_DEBUG, callback, nullptr));
        CHECK(gcx_driver_open("sim:no-such-gpu-outside") != GCX_SUCCESS);
        CHECK_EQ(calls, 1);
        // The last message is the caller's, not that of one of the callback's calls.
        const std::string message = gcx_last_error_message();
        CHECK(message.find("no-such-gpu-outside") != std::string::npos);
        CHECK_OK(gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr));
    });
}

void callback_runs_without_locks() {
    in_child("opening", [] {
        others_go_on_while_it_waits("opened", [] { gcx_driver_open("sim:h100@13.0"); });
    });
    on_machine("h100@13.0", [] {
        const gcx_resource resource = split(whole_device(), {24}).groups[0];
        others_go_on_while_it_waits("made a context", [&] { const Partition made(resource); });
        others_go_on_while_it_waits("gcx_device_get_count",
                                    [] { CHECK(gcx_device_get_count(nullptr) != GCX_SUCCESS); });
        // These can't be released: a cached context now, and a primary one that gcx retained and
        // the application released.
        CHECK_OK(gcx_cache_set_limit(0));
        gcx_context context = nullptr;
        CHECK_OK(gcx_context_create(&resource, 1, nullptr, &context));
        others_go_on_while_it_waits("destroyed later", [&] {
            sim::fail("cuGreenCtxDestroy", 1, CUDA_ERROR_UNKNOWN);
            CHECK_OK(gcx_context_destroy(context));
        });
        CHECK_OK(gcx_cache_set_limit(0));
        gcx_event event = nullptr;
        CHECK_OK(gcx_event_create(0, 0, &event));
        others_go_on_while_it_waits("cuDevicePrimaryCtxRelease", [&] {
            CHECK_NATIVE(cuDevicePrimaryCtxRelease, 0);
            CHECK_OK(gcx_event_destroy(event));
        });
    });
    on_machine("h100@12.4", [] {
        const Partition lost(split(whole_device(), {24}).groups[0]);
        others_go_on_while_it_waits("died", [&] {
            CHECK_NATIVE(cuDevicePrimaryCtxReset, 0);
            CHECK_REFUSED(gcx_context_synchronize(lost.context), GCX_ERROR_CONTEXT_IS_DESTROYED);
        });
    });
}

void fail_once() {
    CHECK_EQ(gcx_device_get_count(nullptr), GCX_ERROR_INVALID_VALUE);
}

void replaced_callback_is_not_called() {
    Gate first("gcx_device_get_count");
    Gate second("nothing");
    CHECK_OK(gcx_log_set_callback(GCX_LOG_DEBUG, wait_at_gate, &first));
    std::thread caller(fail_once);
    CHECK(within_seconds([&] { return first.inside.load(); }));
    std::atomic<bool> replaced{false};
    std::thread setter([&] {
        CHECK_OK(gcx_log_set_callback(GCX_LOG_DEBUG, wait_at_gate, &second));
        replaced = true;
        CHECK(first.open.load());
    });
    // Threads that log at that time wait for neither callback, and use the new one.
    CHECK(within_seconds([&] {
        fail_once();
        return second.calls > 0;
    }));
    const int before = first.calls;
    fail_once();
    CHECK_EQ(first.calls.load(), before);
    CHECK(!replaced);
    first.open = true;
    setter.join();
    caller.join();
    CHECK(replaced && first.opened_in_time);
    CHECK_OK(gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr));
    fail_once();
    CHECK_EQ(first.calls.load(), before);
}

// Replacing itself would wait for itself.
void callback_replacing_itself_is_refused() {
    static std::atomic<int> answer{-1};
    const auto replace = [](gcx_log_level, const char*, void*) {
        int expected = -1;
        if (answer.compare_exchange_strong(expected, 0))
            answer = gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr);
    };
    CHECK_OK(gcx_log_set_callback(GCX_LOG_DEBUG, replace, nullptr));
    fail_once();
    CHECK_EQ(answer.load(), static_cast<int>(GCX_ERROR_IN_CALLBACK));
    CHECK_OK(gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr));
}

} // namespace

int main() {
    callback_runs_without_locks();
    callback_that_calls_gcx_ends();
    on_machine("h100@13.0", replaced_callback_is_not_called);
    on_machine("h100@13.0", callback_replacing_itself_is_refused);
    return support::summary("log");
}
