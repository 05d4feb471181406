// Tests the hardware's queues: their number, requesting more before CUDA starts, and the warning.

#include "../own_program.hpp"
#include "leases.hpp"
#include "work.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using namespace support;

namespace {

constexpr const char* kVariable = "CUDA_DEVICE_MAX_CONNECTIONS";
const char* own_path = nullptr;

gcx_queue_info info() {
    gcx_queue_info found = GCX_QUEUE_INFO_INIT;
    CHECK_OK(gcx_queue_get_info(&found));
    return found;
}

void check_info(uint32_t connections, gcx_queue_source source, bool started, bool certain) {
    const gcx_queue_info found = info();
    CHECK_EQ(found.connections, connections);
    CHECK_EQ(found.source, source);
    CHECK_EQ(found.started, started ? 1 : 0);
    CHECK_EQ(found.certain, certain ? 1 : 0);
    CHECK_EQ(found.too_few, connections == 1 ? 1 : 0);
}

std::string variable() {
    const char* const value = std::getenv(kVariable);
    return value != nullptr ? value : "not set";
}

// Opens the simulated driver by its path, as other code in the process does.
void start_natively() {
    setenv("GCX_DRIVER", gcx_simulator_path(), 1);
    setenv("GCX_SIM", "h100@13.0", 1);
    CHECK_NATIVE(cuInit, 0);
}

void environment_is_read_before_cuda_starts() {
    in_child("not set", [] {
        unsetenv(kVariable);
        check_info(8, GCX_QUEUE_SOURCE_DEFAULT, false, true);
        setenv(kVariable, "4", 1); // the query changed nothing
        check_info(4, GCX_QUEUE_SOURCE_ENVIRONMENT, false, true);
        CHECK_OK(gcx_driver_open("sim:h100@13.0"));
        setenv(kVariable, "16", 1);
        check_info(4, GCX_QUEUE_SOURCE_ENVIRONMENT, true, true);
    });
    const struct {
        const char* value;
        uint32_t connections;
    } values[] = {{"1", 1}, {"32", 32}, {"0", 0},  {"33", 0},         {"-1", 0},
                  {"", 0},  {"8x", 0},  {" 8", 0}, {"4294967297", 0}, {"many", 0}};
    for (const auto& [value, connections] : values) {
        in_child(std::string("set to ") + value, [&] {
            setenv(kVariable, value, 1);
            check_info(connections, GCX_QUEUE_SOURCE_ENVIRONMENT, false, true);
            CHECK_OK(gcx_driver_open("sim:h100@13.0"));
            check_info(connections, GCX_QUEUE_SOURCE_ENVIRONMENT, true, true);
        });
    }
}

void failed_opening_leaves_connections_open() {
    in_child("no driver", [] {
        unsetenv(kVariable);
        CHECK(gcx_driver_open("sim:none@13.0") != GCX_SUCCESS);
        CHECK(gcx_driver_open("libno-such-cuda.so.1") != GCX_SUCCESS);
        check_info(8, GCX_QUEUE_SOURCE_DEFAULT, false, true);
        CHECK_OK(gcx_queue_request_connections(32));
        CHECK_OK(gcx_driver_open("sim:h100@13.0"));
        check_info(32, GCX_QUEUE_SOURCE_ENVIRONMENT, true, true);
    });
}

void request_before_cuda_starts_succeeds() {
    in_child("in time", [] {
        unsetenv(kVariable);
        CHECK_OK(gcx_queue_request_connections(16));
        CHECK_EQ(variable(), "16");
        CHECK_OK(gcx_queue_request_connections(8)); // it has more already
        CHECK_EQ(variable(), "16");
        CHECK_OK(gcx_queue_request_connections(32));
        CHECK_EQ(variable(), "32");
        CHECK_OK(gcx_driver_open("sim:h100@13.0"));
        check_info(32, GCX_QUEUE_SOURCE_ENVIRONMENT, true, true);
        CHECK_OK(gcx_queue_request_connections(32)); // it has them
    });
    in_child("in place of what CUDA doesn't know", [] {
        setenv(kVariable, "33", 1);
        CHECK_OK(gcx_queue_request_connections(2));
        CHECK_EQ(variable(), "2");
    });
    in_child("loaded is not started", [] {
        unsetenv(kVariable);
        setenv("GCX_DRIVER", gcx_simulator_path(), 1);
        CHECK(sim_symbol("cuInit") != nullptr);
        check_info(8, GCX_QUEUE_SOURCE_DEFAULT, false, true);
        CHECK_OK(gcx_queue_request_connections(32));
        CHECK_EQ(variable(), "32");
    });
}

void request_after_cuda_started_is_refused() {
    in_child("gcx had started it", [] {
        unsetenv(kVariable);
        CHECK_OK(gcx_driver_open("sim:h100@13.0"));
        CHECK_REFUSED(gcx_queue_request_connections(32), GCX_ERROR_TOO_LATE);
        CHECK(message_has("8 connections") && message_has("32") && message_has(kVariable));
        CHECK_EQ(variable(), "not set");
        CHECK_OK(gcx_queue_request_connections(8));
    });
    in_child("others had started it", [] {
        unsetenv(kVariable);
        start_natively();
        CHECK_REFUSED(gcx_queue_request_connections(32), GCX_ERROR_TOO_LATE);
        CHECK_EQ(variable(), "not set");
        check_info(8, GCX_QUEUE_SOURCE_DEFAULT, true, true);
    });
    in_child("others had started it, and the variable is another one since", [] {
        unsetenv(kVariable);
        start_natively();
        setenv(kVariable, "32", 1);
        check_info(32, GCX_QUEUE_SOURCE_ENVIRONMENT, true, false);
        CHECK_REFUSED(gcx_queue_request_connections(32), GCX_ERROR_TOO_LATE);
        CHECK(message_has("the process set the variable"));
        CHECK_OK(gcx_driver_open(nullptr));
        check_info(32, GCX_QUEUE_SOURCE_ENVIRONMENT, true, false);
    });
}

// The environment at the start of the process decides what CUDA reads.
int started_with() {
    start_natively();
    check_info(32, GCX_QUEUE_SOURCE_ENVIRONMENT, true, true);
    CHECK_OK(gcx_queue_request_connections(32));
    return check::summary("queues, started with 32");
}

void initial_environment_is_certain() {
    in_child("started with 32", [] {
        check_child_of_fork([&] {
            setenv(kVariable, "32", 1);
            become_own_program(own_path, {"started-with"});
            return false;
        });
    });
}

void invalid_arguments_are_refused() {
    in_child("wrong arguments", [] {
        unsetenv(kVariable);
        CHECK_REFUSED(gcx_queue_get_info(nullptr), GCX_ERROR_INVALID_VALUE);
        for (const uint32_t count : {0U, GCX_MAX_CONNECTIONS + 1, UINT32_MAX}) {
            CHECK_REFUSED(gcx_queue_request_connections(count), GCX_ERROR_INVALID_VALUE);
            CHECK(message_has("1 to 32"));
        }
        CHECK_EQ(variable(), "not set");
        CHECK_EQ(sim::calls(), 0U);
    });
}

void forked_children_report_their_queues() {
    in_child("forked before CUDA started", [] {
        unsetenv(kVariable);
        CHECK_OK(gcx_queue_request_connections(16));
        check_child_of_fork([&] {
            gcx_queue_info found = GCX_QUEUE_INFO_INIT;
            return gcx_queue_get_info(&found) == GCX_SUCCESS && found.connections == 16 &&
                   found.started == 0 && gcx_queue_request_connections(32) == GCX_SUCCESS;
        });
    });
    in_child("forked after", [] {
        CHECK_OK(gcx_driver_open("sim:h100@13.0"));
        check_child_of_fork([&] {
            gcx_queue_info found = GCX_QUEUE_INFO_INIT;
            return gcx_queue_get_info(&found) == GCX_ERROR_NOT_INITIALIZED &&
                   gcx_queue_request_connections(32) == GCX_ERROR_NOT_INITIALIZED;
        });
    });
}

int warnings = 0;

void count_warning(gcx_log_level level, const char* message, void* /*user_data*/) {
    CHECK_EQ(level, GCX_LOG_WARNING);
    CHECK(std::strstr(message, kVariable) != nullptr);
    warnings++;
}

void single_connection_warns_once() {
    const std::vector<std::pair<const char*, int>> values = {
        {"1", 1}, {"2", 0}, {"8", 0}, {"none", 0}};
    for (const auto& [value, expected] : values) {
        in_child(std::string("warned of ") + value, [&] {
            setenv(kVariable, value, 1);
            CHECK_OK(gcx_log_set_callback(GCX_LOG_WARNING, count_warning, nullptr));
            CHECK_OK(gcx_driver_open("sim:h100@13.0"));
            const gcx_resource whole = whole_device();
            CHECK_EQ(warnings, 0); // nothing is partitioned yet
            gcx_lease lease = acquire(24);
            CHECK_EQ(warnings, expected);
            gcx_context context = make_context(whole);
            CHECK_OK(gcx_context_destroy(context));
            CHECK_OK(gcx_lease_release(lease));
            CHECK_EQ(warnings, expected);
            CHECK_OK(gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr));
        });
    }
}

uint32_t scope_of(gcx_stream stream) {
    gcx_resource queue;
    CHECK_OK(gcx_stream_get_resource(stream, GCX_RESOURCE_WORKQUEUE_CONFIG, &queue));
    return static_cast<uint32_t>(info_of(queue).workqueue_scope);
}

void lease_requires_workqueues() {
    gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
    params.flags = GCX_LEASE_REQUIRE_WORKQUEUES;
    for (const std::string driver : drivers({"12.4", "12.5", "13.0"})) {
        on_machine("h100@" + driver, [&] {
            const gcx_sim_counts before = sim::counts();
            gcx_lease lease = nullptr;
            CHECK_REFUSED(gcx_lease_acquire(0, 24, &params, &lease), GCX_ERROR_NOT_SUPPORTED);
            CHECK(message_has("13.1") && message_has(driver) && lease == nullptr);
            CHECK_EQ(left_behind(before, sim::counts()), "");
            CHECK_OK(gcx_lease_release(acquire(24)));
        });
    }
    for (const std::string driver : {"13.1", "13.5"}) {
        on_machine("h100@" + driver, [&] {
            const gcx_lease lease = acquire(24, nullptr, GCX_LEASE_REQUIRE_WORKQUEUES);
            CHECK_EQ(info_of(lease).flags, GCX_LEASE_REQUIRE_WORKQUEUES);
            CHECK_EQ(live_leases(0)[0].flags, GCX_LEASE_REQUIRE_WORKQUEUES);
            const gcx_stream stream = stream_of(lease);
            for (const uint32_t size : {24U, 48U, 8U}) {
                CHECK_OK(resize({{lease, size, 0}}));
                CHECK(gcx_stream_native(stream) != nullptr);
                CHECK_EQ(scope_of(stream), uint32_t{GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED});
            }
            release_all({stream}, {lease});
        });
    }
    on_machine("h100@13.5", [] {
        gcx_lease_params wrong = GCX_LEASE_PARAMS_INIT;
        gcx_lease lease = nullptr;
        for (const uint32_t flags : {4U, 7U, UINT32_MAX}) {
            wrong.flags = flags;
            CHECK_REFUSED(gcx_lease_acquire(0, 24, &wrong, &lease), GCX_ERROR_INVALID_VALUE);
        }
    });
}

uint64_t now_ns() {
    return sim::counts().clock_ns;
}

// Changes two leases in every step; their streams wait for each other, and the host is well ahead
// of the device. Returns the longest time of a small kernel on a third lease, in microseconds.
double slowest_next_to_resizes(uint32_t connections) {
    constexpr uint32_t kSteps = 1000;
    constexpr uint32_t kAhead = 16;
    setenv(kVariable, std::to_string(connections).c_str(), 1);
    CHECK_OK(gcx_driver_open("sim:h100@13.0"));
    const gcx_lease leases[] = {acquire(24), acquire(32), acquire(64)};
    const gcx_stream streams[] = {stream_of(leases[0]), stream_of(leases[1]), stream_of(leases[2])};
    gcx_event event = make_event();
    const gcx_lease_size layouts[2][2] = {{{leases[1], 64, 0}, {leases[2], 32, 0}},
                                          {{leases[1], 32, 0}, {leases[2], 64, 0}}};
    for (const auto& layout : layouts)
        CHECK_OK(gcx_lease_prepare(layout, 2));
    const Work work;
    double slowest = 0;
    for (uint32_t step = 0; step < kSteps; step++) {
        CHECK_OK(gcx_lease_resize(layouts[step % 2], 2, GCX_RESIZE_DEFAULT));
        for (int i = 1; i < 3; i++) {
            work.spin(gcx_stream_native(streams[i]), 200'000);
            CHECK_OK(gcx_stream_record(streams[i], event));
            CHECK_OK(gcx_stream_wait(streams[3 - i], event));
        }
        const uint64_t before = now_ns();
        work.spin(gcx_stream_native(streams[0]), 10'000);
        CHECK_OK(gcx_stream_synchronize(streams[0]));
        slowest = std::max(slowest, static_cast<double>(now_ns() - before) / 1000);
        if (step % kAhead == kAhead - 1)
            CHECK_OK(gcx_lease_synchronize(leases[1 + step / kAhead % 2]));
    }
    CHECK_OK(gcx_event_destroy(event));
    for (int i = 0; i < 3; i++)
        release_all({streams[i]}, {leases[i]});
    return slowest;
}

// A stream uses at most one queue for each set of SMs between which it moves: two streams and two
// sets each here. With one connection more, no other stream waits.
void resizes_hold_few_queues() {
    in_child("5 connections", [] { CHECK(slowest_next_to_resizes(5) < 50); });
    in_child("4 connections", [] { CHECK(slowest_next_to_resizes(4) > 100); });
}

} // namespace

int main(int argc, char** argv) {
    own_path = argv[0];
    if (argc > 1)
        return started_with();
    environment_is_read_before_cuda_starts();
    failed_opening_leaves_connections_open();
    request_before_cuda_starts_succeeds();
    request_after_cuda_started_is_refused();
    initial_environment_is_certain();
    invalid_arguments_are_refused();
    forked_children_report_their_queues();
    single_connection_warns_once();
    lease_requires_workqueues();
    resizes_hold_few_queues();
    return summary("queues");
}
