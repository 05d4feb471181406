// Tests requests that wait: cancelled and timed out ones get nothing and block no other request,
// each reservation has a separate queue, and refusals name their cause.

#include "leases.hpp"
#include "publish.hpp"
#include "reservations.hpp"
#include "support.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

using namespace support;
using publish::Folder;
using reservations::release;
using reservations::reserve;

namespace {

constexpr const char* kH100 = "h100@13.0";

// A request behind a cancelled one is served before the signal returns.
void request_behind_cancelled_one_is_granted() {
    const gcx_lease busy = acquire(100);
    for (int round = 0; round < (check::slow ? 20 : 200); round++) {
        gcx_cancel cancel = make_cancel();
        WaitingAcquire large(64, {.cancel = cancel});
        WaitingAcquire small(8);
        CHECK_OK(gcx_cancel_signal(cancel));
        CHECK_EQ(waiting_requests(), 0U);
        CHECK_OK(try_acquire(8)); // 24 or 20 are free next to the small one
        CHECK_EQ(large.result(), GCX_ERROR_CANCELLED);
        CHECK_OK(gcx_lease_release(small.get()));
        CHECK_OK(gcx_cancel_destroy(cancel));
    }
    CHECK_OK(gcx_lease_release(busy));
}

// Signals, releases and acquires at random moments: a request is granted only if that was before
// the signal returned, and a granted lease is returned by its call.
void cancel_racing_with_grant_is_either_before_or_after() {
    std::atomic<gcx_cancel> next{nullptr};
    std::atomic<uint32_t> done{0};
    std::atomic<bool> over{false};
    uint32_t granted = 0;
    uint32_t refused = 0;
    std::thread waiter([&] {
        for (uint32_t turn = 1; !over; turn++) {
            gcx_cancel cancel = nullptr;
            while ((cancel = next.exchange(nullptr)) == nullptr) {
                if (over)
                    return;
                std::this_thread::yield();
            }
            gcx_lease lease = nullptr;
            const gcx_result result =
                try_acquire(8, {.timeout_ms = GCX_FOREVER, .cancel = cancel}, &lease);
            if (result == GCX_SUCCESS) {
                granted++;
                CHECK_OK(gcx_lease_release(lease));
            } else {
                refused++;
                CHECK_EQ(result, GCX_ERROR_CANCELLED);
            }
            done = turn;
        }
    });
    std::mt19937 random(20261121);
    const uint32_t rounds = check::slow ? 500 : 20'000;
    for (uint32_t turn = 1; turn <= rounds; turn++) {
        gcx_cancel cancel = make_cancel();
        const gcx_lease all = acquire(GCX_REST);
        next = cancel;
        for (auto i = random() % 300; i != 0; i--)
            std::atomic_signal_fence(std::memory_order_seq_cst);
        if (random() % 8 == 0)
            std::this_thread::yield();
        const bool release_first = random() % 2 == 0;
        if (release_first)
            CHECK_OK(gcx_lease_release(all));
        CHECK_OK(gcx_cancel_signal(cancel));
        if (!release_first) {
            const uint32_t before = granted;
            CHECK_OK(gcx_lease_release(all));
            while (done != turn)
                std::this_thread::yield();
            CHECK_EQ(granted, before);
        }
        while (done != turn)
            std::this_thread::yield();
        CHECK_OK(gcx_cancel_destroy(cancel));
    }
    over = true;
    waiter.join();
    CHECK_EQ(granted + refused, rounds);
    CHECK(refused > rounds / 3);
}

// The wait goes on as if it had no cancel.
void request_with_destroyed_cancel_waits_on() {
    const gcx_lease all = acquire(GCX_REST);
    gcx_cancel cancel = make_cancel();
    WaitingAcquire waited(GCX_REST, {.cancel = cancel});
    CHECK_OK(gcx_cancel_destroy(cancel));
    CHECK_OK(gcx_lease_release(all));
    CHECK_OK(gcx_lease_release(waited.get()));
}

void request_behind_timed_out_one_is_granted() {
    const gcx_lease busy = acquire(64);
    WaitingAcquire large(132, {.timeout_ms = 50});
    CHECK_OK(try_acquire(8, {.timeout_ms = GCX_FOREVER}));
    CHECK_EQ(large.result(), GCX_ERROR_TIMEOUT);
    CHECK_OK(gcx_lease_release(busy));
}

// A call that was granted before its timeout succeeds, however late its thread wakes.
void request_past_its_timeout_is_not_granted() {
    using Clock = std::chrono::steady_clock;
    for (int round = 0; round < (check::slow ? 20 : 200); round++) {
        const gcx_lease first = acquire(GCX_REST);
        std::atomic<bool> over{false};
        gcx_result result = GCX_SUCCESS;
        std::thread other([&] {
            result = try_acquire(8, {.timeout_ms = 2});
            over = true;
        });
        while (!over && waiting_requests() == 0)
            std::this_thread::yield();
        const auto end = Clock::now() + std::chrono::milliseconds(2);
        while (Clock::now() < end) {
            // Sleeping would let the other thread run first.
        }
        CHECK_OK(gcx_lease_release(first));
        // All SMs are available now, whether the other thread has woken or not.
        const gcx_lease all = acquire(GCX_REST);
        CHECK_EQ(sms_of(all), 132U);
        other.join();
        CHECK_EQ(result, GCX_ERROR_TIMEOUT);
        CHECK_OK(gcx_lease_release(all));
    }
}

void request_inside_a_reservation_does_not_block_others() {
    const gcx_reservation reservation = reserve(24, {.name = "train"});
    const gcx_lease inside = acquire(24, {.name = "inside", .reservation = reservation});
    WaitingAcquire waited(8, {.reservation = reservation});
    // 108 are free outside.
    const gcx_lease outside = acquire(48, {.name = "outside"});
    CHECK_OK(resize({{outside, 108, 0}}));
    CHECK_OK(resize({{outside, 24, 0}}));
    // Inside the reservation, requests are served in order of arrival.
    CHECK_OK(resize({{inside, 16, 0}}));
    CHECK_EQ(sms_of(waited.get()), 8U);
    release_all({}, {waited.get(), inside, outside});
    release(reservation);
}

void request_outside_does_not_block_a_reservation() {
    const gcx_reservation reservation = reserve(24);
    const gcx_lease most = acquire(100, {.name = "most"});
    WaitingAcquire waited(64);
    const gcx_lease rest = acquire(GCX_REST, {.name = "rest", .reservation = reservation});
    CHECK(sms_of(rest) > 0);
    CHECK_OK(gcx_lease_release(rest));
    CHECK_REFUSED(try_acquire(8), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK_OK(gcx_lease_release(most));
    CHECK_OK(gcx_lease_release(waited.get()));
    release(reservation);
}

// A lease outside may use SMs of a reservation, except those that a request inside waits for.
void request_inside_a_reservation_is_not_starved_by_others() {
    const gcx_reservation reservation = reserve(24, {.name = "train"});
    const gcx_lease inside = acquire(16, {.name = "inside", .reservation = reservation});
    WaitingAcquire waited(24, {.reservation = reservation});
    const gcx_lease outside = acquire(GCX_REST, {.name = "outside"});
    CHECK_EQ(sms_of(outside), 108U);
    CHECK_REFUSED(try_acquire(8), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK(message_has("of which 0 are free and 8 awaited in reservations"));
    CHECK_REFUSED(resize({{outside, 116, 0}}), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK_OK(gcx_lease_release(inside));
    CHECK_EQ(sms_of(waited.get()), 24U);
    release_all({}, {waited.get(), outside});
    release(reservation);
}

void message_counts_what_the_request_could_have() {
    CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
    CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_FINE));
    const gcx_lease one = acquire(8, {.name = "one"});
    const gcx_lease fine = acquire(120, {.name = "fine", .family = GCX_SM_FAMILY_FINE});
    CHECK_REFUSED(try_acquire(24), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK(message_has("device 0 has 132, of which 0 are free; \"one\" has 8; \"fine\" has 120") ||
          message_has("device 0 has 132, of which 0 are free; \"fine\" has 120; \"one\" has 8"));
    release_all({}, {fine, one});

    const gcx_reservation reservation = reserve(24, {.name = "train"});
    const gcx_lease inside = acquire(24, {.name = "inside", .reservation = reservation});
    CHECK_REFUSED(try_acquire(8, {.reservation = reservation}), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK(message_has("the reservation \"train\" of device 0 has 24, of which 0 are free; "
                      "\"inside\" has 24; set a timeout"));
    CHECK_REFUSED(try_acquire(64, {.min_sm_count = 40, .reservation = reservation}),
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK(message_has("requested 64 SMs, at least 40 (min_sm_count): the reservation \"train\" of "
                      "device 0 has 24"));
    CHECK_OK(gcx_lease_release(inside));
    release(reservation);

    // A shared request can use SMs that others share, and none that they have exclusively.
    const gcx_lease exclusive = acquire(64, {.name = "exclusive"});
    const gcx_lease shared = acquire(GCX_REST, {.name = "shared", .flags = GCX_LEASE_SHARED});
    CHECK_REFUSED(try_acquire(72, {.flags = GCX_LEASE_SHARED}), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK(message_has("of which 68 are free"));
    CHECK_REFUSED(try_acquire(72), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK(message_has("of which 0 are free"));
    CHECK_REFUSED(try_acquire(72, {.min_sm_count = 16}), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK(message_has("requested 72 SMs, at least 16 (min_sm_count)") &&
          message_has("lower min_sm_count"));
    release_all({}, {exclusive, shared});
}

// A count beyond every device is an invalid count in every function.
void count_beyond_the_device_is_an_invalid_configuration() {
    const gcx_result expected = GCX_ERROR_INVALID_RESOURCE_CONFIGURATION;
    for (const uint32_t count : {133U, GCX_MAX_SMS, GCX_MAX_SMS + 1, GCX_REST - 1}) {
        gcx_reservation none = nullptr;
        CHECK_REFUSED(try_acquire(count), expected);
        CHECK_REFUSED(try_acquire(count, {.min_sm_count = 133}), expected);
        CHECK_REFUSED(try_acquire(GCX_REST, {.min_sm_count = count}), expected);
        CHECK_REFUSED(try_acquire(count, {.flags = GCX_LEASE_SHARED}), expected);
        CHECK_REFUSED(try_acquire(GCX_REST, {.flags = GCX_LEASE_SHARED, .exclusive = count}),
                      expected);
        CHECK_REFUSED(gcx_reservation_acquire(0, count, nullptr, &none), expected);
        const gcx_reservation reservation = reserve(24);
        CHECK_REFUSED(try_acquire(count, {.reservation = reservation}), expected);
        release(reservation);
        const gcx_lease lease = acquire(24);
        CHECK_REFUSED(resize({{lease, count, 0}}), expected);
        CHECK_OK(gcx_lease_release(lease));
        CHECK_EQ(try_split(whole_device(), {count}).result, expected);
    }
    const gcx_reservation all = reserve(GCX_REST);
    CHECK_EQ(reservations::info_of(all).sm_count, 132U);
    release(all);
}

// For sizes that never fit, the message has the same arithmetic as a split's.
void sizes_that_never_fit_are_an_invalid_configuration() {
    const gcx_result expected = GCX_ERROR_INVALID_RESOURCE_CONFIGURATION;
    const gcx_lease decode = acquire(32, {.name = "decode"});
    const gcx_lease prefill = acquire(GCX_REST, {.name = "prefill"});
    CHECK_REFUSED(resize({{decode, 66, 0}, {prefill, 66, 0}}), expected);
    CHECK(message_has("66 for \"decode\", 66 for \"prefill\"") &&
          message_has("66 + 66 SMs, in whole atoms of 8 that is 72 + 72 = 144; device 0 "
                      "has 132"));
    CHECK_REFUSED(resize({{decode, 132, 0}, {prefill, GCX_REST, 0}}), expected);
    CHECK(message_has("no SMs are left"));
    CHECK_REFUSED(prepare({{decode, 66, 0}, {prefill, 66, 0}}), expected);
    // Sizes that would fit if other leases released SMs are refused as already acquired.
    CHECK_REFUSED(resize({{decode, 64, 0}}), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK_OK(resize({{decode, 64, 0}, {prefill, 68, 0}}));
    release_all({}, {decode, prefill});

    const gcx_reservation reservation = reserve(24);
    const gcx_lease a = acquire(8, {.name = "a", .reservation = reservation});
    const gcx_lease b = acquire(8, {.name = "b", .reservation = reservation});
    CHECK_REFUSED(resize({{a, 12, 0}, {b, 12, 0}}), expected);
    CHECK(message_has("16 + 16 = 32; the reservation of device 0 has 24"));
    CHECK_REFUSED(try_acquire(32, {.reservation = reservation}), expected);
    CHECK(message_has("the reservation of device 0 has 24"));
    release_all({}, {a, b});
    release(reservation);
}

// SMs that were handed to a shared lease can be released again.
void shared_lease_with_handed_over_sms_shrinks() {
    for (const uint32_t floor : {0U, 8U}) {
        const Terms terms = {.name = "shared", .flags = GCX_LEASE_SHARED, .exclusive = floor};
        const gcx_lease shared = acquire(16, terms);
        const gcx_lease given = acquire(64);
        CHECK_OK(hand_over(given, shared));
        CHECK_EQ(sms_of(shared), 80U);
        CHECK_OK(gcx_lease_release(given));
        CHECK_OK(resize({{shared, 72 + floor, 0}}));
        CHECK_EQ(sms_of(shared), 72U + floor);
        CHECK_OK(resize({{shared, 16, 0}}));
        CHECK_EQ(sms_of(shared), 16U);
        CHECK(info_of(shared).exclusive_sm_count >= floor);
        const gcx_lease others = acquire(116);
        CHECK_EQ(sms_of(others), 116U);
        CHECK_OK(gcx_lease_release(others));
        if (floor != 0) {
            CHECK_REFUSED(resize({{shared, 7, 0}}), GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
            CHECK(message_has("exclusive_sm_count 8; request at least as many"));
        }
        CHECK_OK(resize({{shared, GCX_REST, 0}}));
        CHECK_EQ(sms_of(shared), 132U);
        CHECK_OK(resize({{shared, 24, 0}}));
        CHECK_EQ(sms_of(shared), 24U);
        CHECK_OK(gcx_lease_release(shared));
    }
}

} // namespace

int main() {
    const Folder folder;
    on_machine(kH100, [] {
        request_behind_cancelled_one_is_granted();
        cancel_racing_with_grant_is_either_before_or_after();
        request_with_destroyed_cancel_waits_on();
        request_behind_timed_out_one_is_granted();
        request_past_its_timeout_is_not_granted();
    });
    on_machine(kH100, [] {
        request_inside_a_reservation_does_not_block_others();
        request_outside_does_not_block_a_reservation();
        request_inside_a_reservation_is_not_starved_by_others();
        message_counts_what_the_request_could_have();
        count_beyond_the_device_is_an_invalid_configuration();
        sizes_that_never_fit_are_an_invalid_configuration();
        shared_lease_with_handed_over_sms_shrinks();
    });
    return check::summary("lease queues");
}
