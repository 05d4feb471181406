// Tests leases: the SMs they get and release, streams that follow them, and waits.
#include "tests.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<gcx::lease>);
static_assert(!std::is_copy_assignable_v<gcx::cancel>);
static_assert(std::is_nothrow_move_constructible_v<gcx::lease>);
static_assert(std::is_nothrow_move_assignable_v<gcx::cancel>);
static_assert(sizeof(gcx::lease) == sizeof(gcx_lease));
static_assert(!std::is_constructible_v<gcx::lease, gcx::device, bool>);
static_assert(!std::is_convertible_v<gcx::lease, gcx::resource>);

gcx::lease_params waiting(std::chrono::milliseconds timeout, const gcx::cancel* cancel = nullptr) {
    gcx::lease_params params;
    params.timeout = timeout;
    params.cancel = cancel;
    return params;
}

void wait_for_live_leases(std::size_t count) {
    while (gcx::live_leases().size() != count)
        std::this_thread::yield();
}

void lease_describes_itself() {
    const gcx::lease one(0, 24, {"one"});
    const gcx::lease two(0, 22, {"two"});
    const gcx::lease there(1, gcx::rest);
    CHECK(one.sm_count() == 24 && two.sm_count() == 24 && there.sm_count() == 132);
    CHECK(one.name() == "one" && one.device() == 0 && there.device() == 1 && there.name().empty());
    CHECK(one.id() != two.id());
    CHECK_EQ(one.get_resource().overlap(two.get_resource()), 0u);
    const gcx::stream of_one(one);
    const gcx::stream of_two(two, -2);
    CHECK(of_two.priority() == -2 && of_two.sm_count() == 24 && of_two.device() == 0);
    CHECK(of_two.get_resource() == two.get_resource());
    CHECK(one.info().stream_count == 1 && one.info().family == gcx::family::coscheduled);
    CHECK_EQ(of_two.sm_ids().size(), 24u);

    CHECK_THROWS(GCX_ERROR_ALREADY_ACQUIRED, gcx::lease(0, 100));
    CHECK(std::string(gcx::last_error_message()).find("\"two\" has 24") != std::string::npos);
    const std::vector<gcx_live_lease> live = gcx::live_leases();
    CHECK(live.size() == 3 && std::string(live[1].name) == "two" && live[2].device == 1);
    CHECK(gcx::resource(live[0].resource) == one.get_resource());
    CHECK_EQ(gcx::live_leases(1).size(), 1u);
    const auto clear =
        gcx::device(0).sms().split({24, gcx::rest}, gcx::split_flags::exclude_leased);
    CHECK_EQ(clear.groups[0].overlap(one.get_resource() | two.get_resource()), 0u);
    CHECK_EQ(clear.groups[1].sm_count(), 132u - 3 * 24);
}

void parked_lease_keeps_its_streams() {
    const gcx::lease from(0, 24);
    const gcx::lease to(0, 32);
    const gcx::stream stream(from);
    const gcx::stream other(to);
    gcx::resize({{from, gcx::parked}, {to, 56}});
    CHECK(from.sm_count() == 0 && to.sm_count() == 56 && other.sm_ids().size() == 56);
    CHECK_THROWS(GCX_ERROR_LEASE_PARKED, stream.native());
    stream.synchronize();
    to.resize(gcx::parked, gcx::resize_flags::deferred);
    from.resize(gcx::rest);
    CHECK_EQ(stream.sm_ids().size(), 132u);
}

void lease_wait_ends_by_timeout_or_cancel() {
    const gcx::lease all(0, gcx::rest);
    CHECK_THROWS(GCX_ERROR_TIMEOUT, gcx::lease(0, 8, waiting(3ms)));
    CHECK(std::string(gcx::last_error_message()).find("after 3 ms") != std::string::npos);
    const gcx::cancel cancel;
    std::thread waiter([&] {
        CHECK_THROWS(GCX_ERROR_CANCELLED, gcx::lease(0, 8, waiting(gcx::forever, &cancel)));
    });
    wait_for_live_leases(2);
    cancel.signal();
    waiter.join();
#ifdef __cpp_lib_jthread
    std::jthread stopped([](const std::stop_token& stop) {
        CHECK_THROWS(GCX_ERROR_CANCELLED, gcx::lease(0, 8, stop, waiting(gcx::forever)));
        CHECK_THROWS(GCX_ERROR_CANCELLED, gcx::lease(0, 8, stop, {.timeout = 1h}));
    });
    wait_for_live_leases(2);
    stopped.request_stop();
    stopped.join();
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE,
                 gcx::lease(0, 8, std::stop_token(), waiting(1ms, &cancel)));
    CHECK_EQ(gcx::lease(1, 8, std::stop_token()).sm_count(), 8u);
#endif
}

void moved_lease_has_one_owner() {
    gcx::lease lease(0, 24);
    const gcx_lease handle = lease.handle();
    gcx::lease moved = std::move(lease);
    CHECK(moved.handle() == handle && !lease); // NOLINT(bugprone-use-after-move)
    gcx::lease other(0, 32);
    other = std::move(moved);
    CHECK_EQ(gcx::live_leases().size(), 1u);
    gcx_lease const detached = other.detach();
    CHECK(!other && detached == handle && gcx::live_leases().size() == 1);
    gcx::lease adopted = gcx::lease::adopt(detached);
    CHECK_EQ(adopted.sm_count(), 24u);
    adopted.close();
    CHECK(!adopted && gcx::live_leases().empty());

    gcx::cancel cancel;
    gcx::cancel taken = std::move(cancel);
    const gcx::cancel again = gcx::cancel::adopt(taken.release());
    again.signal();
    CHECK(!taken && !cancel && again); // NOLINT(bugprone-use-after-move)
}

// Leases end in any order, and leave nothing.
void leases_released_in_any_order_leave_nothing() {
    gcx::set_cache_limit(0);
    const auto before = support::sim::counts();
    {
        std::optional<gcx::lease> lease(std::in_place, 0, 24);
        const gcx::stream stream(*lease);
        stream.native();
        lease->resize(64);
        stream.native();
        lease.reset();
        CHECK_THROWS(GCX_ERROR_CONTEXT_IS_DESTROYED, stream.native());
        std::vector<std::unique_ptr<gcx::lease>> leases;
        std::vector<gcx::stream> streams;
        for (int i = 0; i < 16; i++) {
            leases.push_back(std::make_unique<gcx::lease>(0, 8));
            streams.emplace_back(*leases.back());
        }
        // More leases exist than the list has room for at first.
        const gcx::lease there(1, 8);
        CHECK_EQ(gcx::live_leases().size(), 17u);
        std::swap(leases[3], leases[12]);
        streams.erase(streams.begin() + 5);
        leases.erase(leases.begin() + 7, leases.begin() + 11);
        CHECK_EQ(gcx::live_leases(0).size(), 12u);
    }
    CHECK(gcx::live_leases().empty() && gcx::live_contexts().empty());
    CHECK_EQ(support::left_behind(before, support::sim::counts()), "");
    gcx::set_cache_limit(64);
}

// Calls every member function of an empty owner, and closes it again.
void empty_lease_is_an_invalid_handle() {
    const gcx::lease none;
    gcx::lease lease(0, 24);
    const gcx_result invalid = GCX_ERROR_INVALID_HANDLE;
    CHECK_THROWS(invalid, none.info());
    CHECK_THROWS(invalid, none.get_resource());
    CHECK_THROWS(invalid, none.resize(8));
    CHECK_THROWS(invalid, none.prepare(8));
    CHECK_THROWS(invalid, none.synchronize());
    CHECK_THROWS(invalid, none.query());
    CHECK_THROWS(invalid, none.resize(gcx::parked));
    CHECK_THROWS(invalid, gcx::resize({{lease, 8}, {none, 8}}));
    CHECK_THROWS(invalid, gcx::stream(none));
    CHECK_EQ(lease.sm_count(), 24u);

    gcx::cancel cancel;
    for (int i = 0; i < 2; i++) {
        lease.close();
        cancel.close();
        CHECK(!lease && !cancel);
    }
    CHECK_THROWS(invalid, lease.info());
    CHECK_THROWS(invalid, cancel.signal());
    // An empty lease in a list is an error.
    CHECK_THROWS(invalid, gcx::lease(0, 8, waiting(0ms, &cancel)));

    // C releases the handle of the C++ object.
    gcx::lease other(0, 24);
    CHECK_OK(gcx_lease_release(other.handle()));
    CHECK_THROWS(invalid, other.close());
    CHECK_THROWS(invalid, other.resize(8));
    (void)other.detach();
}

// The leases are released at the end of the process, after the driver's end.
void lease_released_after_the_driver_succeeds() {
    static gcx::lease lease(0, 24);
    static gcx::stream stream(lease);
    static const gcx::cancel cancel;
    stream.native();
    lease.resize(32);
    // The lease is never released.
    CHECK(gcx::lease(0, 8).detach() != nullptr);
}

} // namespace

void test_leases() {
    on_each_driver([] {
        lease_describes_itself();
        parked_lease_keeps_its_streams();
        lease_wait_ends_by_timeout_or_cancel();
        moved_lease_has_one_owner();
        leases_released_in_any_order_leave_nothing();
        empty_lease_is_an_invalid_handle();
        lease_released_after_the_driver_succeeds();
    });
}
