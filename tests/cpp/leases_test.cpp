// Leases: what they get and give, streams that follow them, and waits.
#include "tests.hpp"

#include "../api/work.hpp"

#include <algorithm>
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

gcx::lease_params to_share(uint32_t alone = 0) {
    gcx::lease_params params;
    params.flags = gcx::lease_flags::shared;
    params.exclusive_sm_count = alone;
    return params;
}

gcx::lease_params waiting(std::chrono::milliseconds timeout, const gcx::cancel* cancel = nullptr) {
    gcx::lease_params params;
    params.timeout = timeout;
    params.cancel = cancel;
    return params;
}

void until_leases_are(std::size_t count) {
    while (gcx::live_leases().size() != count)
        std::this_thread::yield();
}

void nobody_else_has_them() {
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
    const std::vector<uint32_t> first = of_one.sm_ids();
    const std::vector<uint32_t> second = of_two.sm_ids();
    std::vector<uint32_t> both;
    std::set_intersection(first.begin(), first.end(), second.begin(), second.end(),
                          std::back_inserter(both));
    CHECK(first.size() == 24 && second.size() == 24 && both.empty());

    CHECK_THROWS(GCX_ERROR_ALREADY_ACQUIRED, gcx::lease(0, 100));
    CHECK(std::string(gcx::last_error_message()).find("\"two\" has 24") != std::string::npos);
    const std::vector<gcx_live_lease> live = gcx::live_leases();
    CHECK(live.size() == 3 && std::string(live[1].name) == "two" && live[2].device == 1);
    CHECK(gcx::resource(live[0].resource) == one.get_resource());
    CHECK_EQ(gcx::live_leases(1).size(), 1u);
    const auto clear = gcx::device(0).sms().split({24, gcx::rest}, gcx::split_flags::unleased);
    CHECK_EQ(clear.groups[0].overlap(one.get_resource() | two.get_resource()), 0u);
    CHECK_EQ(clear.groups[1].sm_count(), 132u - 3 * 24);
}

void what_will_do() {
    const gcx::lease most(0, 100u);
    gcx::lease_params params;
    params.min_sm_count = 20;
    CHECK_EQ(gcx::lease(0, 64, params).sm_count(), 132 - most.sm_count());
    params.min_sm_count = 40;
    CHECK_THROWS(GCX_ERROR_ALREADY_ACQUIRED, gcx::lease(0, 64, params));
    params = {};
    params.family = gcx::family::fine;
    CHECK_THROWS(GCX_ERROR_NOT_READY, gcx::lease(0, 2, params));
    // The other device has none yet.
    CHECK(gcx::lease(1, 2, params).info().family == gcx::family::fine);
}

void shared_ones() {
    const gcx::lease one(0, 64, to_share());
    const gcx::lease two(0, 88L, to_share(24));
    CHECK(two.info().exclusive_sm_count == 24 && two.info().flags == GCX_LEASE_SHARED);
    CHECK_EQ(one.get_resource().overlap(two.get_resource()), 64u);
    two.resize(40);
    CHECK_EQ(one.get_resource().overlap(two.get_resource()), 16u);
    CHECK_THROWS(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, two.resize(16));
}

// The handle follows in the order of its work, and natives stay where they were.
void streams_follow() {
    const support::Work work;
    const gcx::lease lease(0, 24);
    const gcx::stream stream(lease);
    CUstream const before = stream.native();
    const std::vector<uint32_t> small = stream.sm_ids();
    work.spin(before, 5'000'000);
    lease.resize(64);
    CHECK(lease.sm_count() == 64 && lease.info().changes == 1);
    CUstream const after = stream.native();
    CHECK(after != before && stream.native() == after && stream.sm_count() == 64);
    CHECK(!stream.query() && !lease.query());
    CHECK(work.free_at(after) >= 5.0F);
    lease.synchronize();
    CHECK(stream.query() && lease.query());
    const std::vector<uint32_t> large = stream.sm_ids();
    CHECK(large.size() == 64 &&
          std::includes(large.begin(), large.end(), small.begin(), small.end()));
    // The former one lives, on the SMs of before.
    CHECK(gcx::stream::from_native(before).sm_ids() == small);
    lease.resize(24);
    CHECK(stream.sm_ids() == small);
}

// One grows by what another gives, in contexts that were made ahead.
void several_at_once() {
    const support::Work work;
    const gcx::lease decode(0, 32, {"decode"});
    const gcx::lease prefill(0, gcx::rest, {"prefill"});
    const gcx::stream fast(decode);
    const gcx::stream heavy(prefill);
    gcx::prepare({{decode, 64}, {prefill, gcx::rest}});
    CHECK_EQ(decode.sm_count(), 32u);
    const uint64_t misses = gcx::cache_stats().misses;
    work.spin(heavy.native(), 9'000'000);
    gcx::resize({{decode, 64}, {prefill, gcx::rest}});
    CHECK_EQ(gcx::cache_stats().misses, misses);
    CHECK(decode.sm_count() == 64 && prefill.sm_count() == 68);
    CHECK_EQ(decode.get_resource().overlap(prefill.get_resource()), 0u);
    CHECK(work.free_at(fast.native()) >= 9.0F);
    heavy.synchronize();

    // At once: what came from a neighbour that is busy joins when it is free.
    const std::vector<gcx::lease_size> back = {{decode, 32}, {prefill, gcx::rest}};
    gcx::resize(back);
    work.spin(heavy.native(), 9'000'000);
    CUstream const small = fast.native();
    gcx::resize({{decode, 64}, {prefill, gcx::rest}}, gcx::resize_flags::at_once);
    CHECK(fast.native() == small && fast.query() && fast.sm_ids().size() == 32);
    heavy.synchronize();
    CHECK_EQ(fast.sm_ids().size(), 64u);

    CHECK_THROWS(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 gcx::resize({{decode, 72}, {prefill, 100}}));
    CHECK(decode.sm_count() == 64 && prefill.sm_count() == 68);
    decode.resize(8);
    decode.prepare(16);
    CHECK_THROWS(GCX_ERROR_ALREADY_ACQUIRED, decode.prepare(80));
    CHECK_EQ(decode.sm_count(), 8u);
}

void hand_over() {
    gcx::lease from(0, 24);
    const gcx::lease to(0, 32);
    const gcx::stream stream(from);
    const gcx::stream other(to);
    from.hand_over(to);
    CHECK(!from && to.sm_count() == 56 && other.sm_ids().size() == 56);
    CHECK_THROWS(GCX_ERROR_CONTEXT_IS_DESTROYED, stream.synchronize());
    CHECK_EQ(gcx::live_leases().size(), 1u);
    gcx::lease third(0, 8);
    third.hand_over(to, gcx::resize_flags::at_once);
    CHECK_EQ(to.sm_count(), 64u);
}

void waits() {
    std::optional<gcx::lease> held(std::in_place, 0, 100);
    gcx::lease large;
    std::thread waiter([&] {
        gcx::lease_params params = waiting(gcx::forever);
        params.name = "large";
        large = gcx::lease(0, 64, params);
    });
    until_leases_are(2);
    CHECK(gcx::live_leases()[1].waits == 1 && gcx::live_leases()[1].sm_count == 64);
    // 28 are free, for who came first.
    CHECK_THROWS(GCX_ERROR_ALREADY_ACQUIRED, gcx::lease(0, 8));
    CHECK_THROWS(GCX_ERROR_ALREADY_ACQUIRED, gcx::lease(0, 8, waiting(3ms)));
    CHECK(std::string(gcx::last_error_message()).find("after 3 ms") != std::string::npos);
    held->resize(68);
    waiter.join();
    CHECK_EQ(large.sm_count(), 64u);
    held.reset();
    CHECK_EQ(gcx::lease(0, gcx::rest).sm_count(), 68u);
}

void waits_are_given_up() {
    const gcx::lease held(0, gcx::rest);
    const gcx::cancel cancel;
    const auto wait = [&] {
        CHECK_THROWS(GCX_ERROR_NOT_PERMITTED, gcx::lease(0, 8, waiting(gcx::forever, &cancel)));
    };
    std::thread first(wait);
    std::thread second(wait);
    until_leases_are(3);
    cancel.signal();
    first.join();
    second.join();
    wait(); // for good
    CHECK_EQ(gcx::live_leases().size(), 1u);
#ifdef __cpp_lib_jthread
    std::jthread stopped([](const std::stop_token& stop) {
        CHECK_THROWS(GCX_ERROR_NOT_PERMITTED, gcx::lease(0, 8, stop, waiting(gcx::forever)));
        CHECK_THROWS(GCX_ERROR_NOT_PERMITTED, gcx::lease(0, 8, stop, {.timeout = 1h}));
    });
    until_leases_are(2);
    stopped.request_stop();
    stopped.join();
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE,
                 gcx::lease(0, 8, std::stop_token(), waiting(1ms, &cancel)));
    CHECK_EQ(gcx::lease(1, 8, std::stop_token()).sm_count(), 8u);
#endif
}

void leases_move() {
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

// Ended in any order, they leave nothing.
void leases_end_in_any_order() {
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
        // More than the list has room for at first.
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

} // namespace

void test_leases() {
    on_each_driver([] {
        nobody_else_has_them();
        what_will_do();
        shared_ones();
        streams_follow();
        several_at_once();
        hand_over();
        waits();
        waits_are_given_up();
        leases_move();
        leases_end_in_any_order();
    });
}
