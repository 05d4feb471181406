// Tests the driver, versions, errors, cached and live contexts, and the log.
#include "tests.hpp"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

void error_has_result_name_and_message() {
    const gcx::error error(GCX_ERROR_NOT_READY, "not yet");
    CHECK_EQ(error.result(), GCX_ERROR_NOT_READY);
    CHECK_EQ(std::string(error.what()), "not yet [GCX_ERROR_NOT_READY, 600]");
    const gcx::error copy = error; // as throw and catch by value do
    CHECK_EQ(std::string(copy.name()), "GCX_ERROR_NOT_READY");
    CHECK_EQ(std::string(gcx::result_name(GCX_SUCCESS)), "GCX_SUCCESS");
    CHECK(std::string(gcx::result_string(GCX_ERROR_NOT_READY)).size() > 10);
    gcx::check(GCX_SUCCESS);
    CHECK_THROWS(GCX_ERROR_INVALID_DEVICE, [] {
        gcx_resource resource;
        gcx::check(gcx_device_get_resource(9, GCX_RESOURCE_SM, &resource));
    }());
    CHECK(std::string(gcx::last_error_message()).find("device 9") != std::string::npos);
}

void versions_of_header_and_library_agree() {
    CHECK_EQ(gcx::version(), static_cast<uint32_t>(GCX_VERSION));
    CHECK(gcx::simulator_path().value().find("libgcx-sim.so") != std::string::npos);
}

void driver_info_describes_the_simulation() {
    const gcx_driver_info info = gcx::driver_info();
    CHECK(info.simulated == 1 && info.version >= 12040);
    gcx::open_driver();
    CHECK_THROWS(GCX_ERROR_DRIVER_ALREADY_OPEN, gcx::open_driver("sim:a100@13.0"));
    CHECK(info.capabilities[gcx::capability::green_contexts] == 1);
    CHECK(info.capabilities[gcx::capability::workqueues] == (info.version >= 13010 ? 1 : 0));
}

void live_contexts_lists_all_contexts() {
    std::vector<gcx::context> contexts;
    const gcx::resource sms = gcx::device(0).sms();
    // More contexts exist than the list has room for at first.
    for (int i = 0; i < 40; i++)
        contexts.emplace_back(sms, gcx::context_flags::private_);
    const std::vector<gcx_live_context> live = gcx::live_contexts();
    CHECK_EQ(live.size(), 40u);
    CHECK(live[39].id == contexts[39].id() && live[39].flags == GCX_CONTEXT_PRIVATE);
    CHECK(gcx::resource(live[0].resource) == sms);
    CHECK(gcx::live_contexts(1).empty());
    CHECK_THROWS(GCX_ERROR_INVALID_DEVICE, gcx::live_contexts(2));
    CHECK_EQ(gcx::cache_stats().in_use, 40u);
    contexts.clear();
    gcx::set_cache_limit(3);
    CHECK(gcx::cache_stats().cached == 3 && gcx::cache_stats().limit == 3);
}

void fail() {
    try {
        gcx::device(7).info();
    } catch (const gcx::error&) {
    }
}

void log_callback_receives_messages() {
    std::vector<std::string> seen;
    gcx::set_log(gcx::log_level::debug, [&](gcx_log_level level, std::string_view message) {
        if (level == gcx::log_level::debug)
            seen.emplace_back(message);
    });
    fail();
    CHECK(seen.size() == 1 && seen[0].find("device 7") != std::string::npos);

    // An exception of the callback is ignored, and the call answers as without it.
    int thrown = 0;
    gcx::set_log(gcx::log_level::debug, [&](gcx_log_level, std::string_view) {
        thrown++;
        throw std::runtime_error("from the log");
    });
    CHECK_THROWS(GCX_ERROR_INVALID_DEVICE, gcx::device(7).info());
    CHECK_EQ(thrown, 1);
    CHECK_EQ(seen.size(), 1u);

    // From within the callback it is refused, and does not deadlock.
    gcx_result inside = GCX_SUCCESS;
    gcx::set_log(gcx::log_level::debug, [&](gcx_log_level, std::string_view) {
        try {
            gcx::reset_log();
        } catch (const gcx::error& error) {
            inside = error.result();
        }
    });
    fail();
    CHECK_EQ(inside, GCX_ERROR_IN_CALLBACK);

    // A refused callback leaves the previous one in place.
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE,
                 gcx::set_log(static_cast<gcx_log_level>(99), [](auto, auto) {}));
    inside = GCX_SUCCESS;
    fail();
    CHECK_EQ(inside, GCX_ERROR_IN_CALLBACK);

    // The callback's state is destroyed with it.
    const auto state = std::make_shared<int>(1);
    gcx::set_log(gcx::log_level::debug, [state](gcx_log_level, std::string_view) {});
    CHECK_EQ(state.use_count(), 2);
    gcx::reset_log();
    CHECK_EQ(state.use_count(), 1);
    fail();
}

// The callback changes while other threads log.
void log_callback_changed_in_threads_is_safe() {
    std::atomic<bool> stop{false};
    std::atomic<int> said{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&] {
            while (!stop)
                fail();
        });
    for (int i = 0; i < 2; i++)
        threads.emplace_back([&] {
            for (int round = 0; round < 200; round++) {
                const auto word = std::make_shared<std::string>("alive");
                gcx::set_log(gcx::log_level::debug, [word, &said](gcx_log_level, auto) {
                    if (*word == "alive")
                        said++;
                });
            }
        });
    threads[3].join();
    threads[4].join();
    while (said == 0)
        std::this_thread::yield();
    stop = true;
    for (int i = 0; i < 3; i++)
        threads[static_cast<std::size_t>(i)].join();
    gcx::reset_log();
    CHECK(said > 0);
}

} // namespace

void test_library() {
    versions_of_header_and_library_agree();
    on_each_driver([] {
        error_has_result_name_and_message();
        driver_info_describes_the_simulation();
        live_contexts_lists_all_contexts();
        log_callback_receives_messages();
        log_callback_changed_in_threads_is_safe();
    });
    support::in_child("no driver", [] {
        CHECK_THROWS(GCX_ERROR_SHARED_OBJECT_INIT_FAILED, gcx::open_driver("/no/such/driver"));
        CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::open_driver("sim:/no/such.profile"));
    });
}
