// Tests which SMs leases get, which requests wait, what a change results in, and the order of work
// after it.

#include "leases.hpp"
#include "work.hpp"

#include <algorithm>

using namespace support;

namespace {

bool disjoint(const SmIds& a, const SmIds& b) {
    SmIds both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return both.empty();
}

// Two callers acquire independently.
void lease_exclusive_is_disjoint() {
    const gcx_sim_counts before = sim::counts();
    const gcx_lease one = acquire(24, "one");
    const gcx_lease two = acquire(24, "two");
    CHECK_EQ(sms_of(one), 24U);
    CHECK_EQ(overlap(resource_of(one), resource_of(two)), 0U);
    const gcx_stream first = stream_of(one);
    const gcx_stream second = stream_of(two);
    CHECK_EQ(probe(first).size(), 24U);
    CHECK(disjoint(probe(first), probe(second)));
    CHECK_REFUSED(try_acquire(100), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK(message_has("84 are free") && message_has("\"one\" has 24") &&
          message_has("\"two\" has 24"));
    CHECK_REFUSED(try_acquire(140), GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    const auto live = live_leases();
    CHECK_EQ(live.size(), 2U);
    CHECK_EQ(std::string(live[0].name), "one");
    CHECK_EQ(live[1].sm_count, 24U);
    CHECK_EQ(live[0].stream_count, 1U);
    // A split can leave out the leases' SMs.
    const Split clear = try_split(whole_device(), {24}, GCX_SPLIT_EXCLUDE_LEASED);
    CHECK_EQ(overlap(clear.groups[0], resource_of(one)), 0U);
    CHECK_EQ(overlap(clear.groups[0], resource_of(two)), 0U);
    CHECK_EQ(sms(clear.remainder), 132U - 72U);
    CHECK_EQ(overlap(split(whole_device(), {24}).groups[0], resource_of(one)), 24U);
    release_all({first, second}, {one, two});
    CHECK(live_leases().empty());
    CHECK_OK(gcx_cache_set_limit(0));
    CHECK_EQ(left_behind(before, sim::counts()), std::string());
    CHECK_OK(gcx_cache_set_limit(64));
}

void min_sm_count_accepts_fewer_sms() {
    const gcx_lease most = acquire(100);
    const gcx_lease fewer = acquire(64, {.min_sm_count = 20});
    CHECK_EQ(sms_of(fewer), 32U);
    release_all({}, {most, fewer});
}

// Handles follow in the order of their work; native streams stay where they were.
void streams_follow_a_resize() {
    const Work work;
    const gcx_lease lease = acquire(24, "lease");
    const gcx_stream stream = stream_of(lease);
    CUstream before = gcx_stream_native(stream);
    const SmIds small = probe(stream);
    CHECK_OK(prepare({{lease, 64, 0}})); // creating a context waits for running work
    work.spin(before, 5'000'000);
    CHECK_OK(resize({{lease, 64, 0}}));
    CHECK_EQ(info_of(lease).changes, 1U);
    CUstream after = gcx_stream_native(stream);
    CHECK(after != before);
    CHECK_EQ(NATIVE(cuStreamQuery)(before), CUDA_ERROR_NOT_READY);
    // Later work waits for earlier work.
    CHECK_EQ(gcx_stream_query(stream), GCX_ERROR_NOT_READY);
    CHECK_EQ(gcx_lease_query(lease), GCX_ERROR_NOT_READY);
    CHECK(work.free_at(after) >= 5.0F);
    CHECK_OK(gcx_lease_synchronize(lease));
    CHECK_OK(gcx_stream_query(stream));
    const SmIds large = probe(stream);
    CHECK_EQ(large.size(), 64U);
    CHECK(std::includes(large.begin(), large.end(), small.begin(), small.end()));
    // The former native stream is alive, on its SMs.
    CHECK_NATIVE(cuStreamQuery, before);
    gcx_stream former = handle_for(before);
    CHECK(probe(former) == small);
    CHECK_OK(gcx_stream_destroy(former));
    // The lease shrinks back: the context and the stream were cached.
    const uint64_t misses = cache_stats().misses;
    CHECK_OK(resize({{lease, 24, 0}}));
    CHECK(probe(stream) == small);
    CHECK_EQ(cache_stats().misses, misses);
    CHECK_EQ(info_of(stream).sm_count, 24U);
    release_all({stream}, {lease});
}

// One lease grows by what another releases, and its work waits for the other's.
void work_waits_for_the_former_owner() {
    const Work work;
    const gcx_lease decode = acquire(32, "decode");
    const gcx_lease prefill = acquire(GCX_REST, "prefill");
    const gcx_stream fast = stream_of(decode);
    const gcx_stream heavy = stream_of(prefill);
    CHECK_OK(prepare({{decode, 64, 0}, {prefill, GCX_REST, 0}}));
    const uint64_t misses = cache_stats().misses;
    work.spin(gcx_stream_native(heavy), 9'000'000);
    work.spin(gcx_stream_native(fast), 1'000'000);
    const auto waits = [] {
        return sim::calls("cuStreamSynchronize") + sim::calls("cuCtxSynchronize") +
               sim::calls("cuEventSynchronize");
    };
    const uint64_t waited = waits();
    CHECK_OK(resize({{decode, 64, 0}, {prefill, GCX_REST, 0}}));
    CUstream next = gcx_stream_native(fast);
    CHECK_EQ(waits(), waited); // the host didn't
    CHECK_EQ(cache_stats().misses, misses);
    CHECK_EQ(sms_of(decode), 64U);
    CHECK_EQ(sms_of(prefill), 68U);
    CHECK_EQ(overlap(resource_of(decode), resource_of(prefill)), 0U);
    // On the device, decode's next kernel waits for prefill's last one on the new SMs.
    CHECK(work.free_at(next) >= 9.0F);
    CHECK_OK(gcx_lease_synchronize(decode));
    // In the other direction nothing has to be waited for.
    CHECK_OK(resize({{decode, 32, 0}, {prefill, GCX_REST, 0}}));
    CHECK_EQ(gcx_stream_query(fast), GCX_SUCCESS);
    CHECK_EQ(gcx_stream_query(heavy), GCX_SUCCESS);
    CHECK(disjoint(probe(fast), probe(heavy)));
    // A change that does not fit changes nothing.
    CHECK_REFUSED(resize({{decode, 40, 0}, {prefill, 100, 0}}),
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK(message_has("40 for \"decode\", 100 for \"prefill\""));
    CHECK_REFUSED(resize({{decode, 40, 0}}), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK(message_has("40 for \"decode\"") && message_has("\"prefill\" has 100"));
    CHECK_EQ(sms_of(decode), 32U);
    CHECK_EQ(sms_of(prefill), 100U);
    release_all({fast, heavy}, {decode, prefill});
}

uint32_t sms_at(gcx_stream stream) {
    return info_of(stream).sm_count;
}

// Decode is to grow by SMs of prefill that still have work in flight.
struct Growing {
    const Work work;
    const gcx_lease decode = acquire(32, "decode");
    const gcx_lease prefill = acquire(GCX_REST, "prefill");
    const gcx_stream fast = stream_of(decode);
    const gcx_stream heavy = stream_of(prefill);

    Growing() {
        // Creates the contexts first, since creating one waits for all running work.
        for (const uint32_t count : {48U, 64U, 32U}) {
            CHECK_OK(resize({{decode, count, 0}, {prefill, GCX_REST, 0}}));
            CHECK(gcx_stream_native(fast) != nullptr && gcx_stream_native(heavy) != nullptr);
        }
        work.spin(gcx_stream_native(heavy), 90'000'000);
    }
    static constexpr float kEnd = 90; // prefill's work ends no earlier
    void finish() { release_all({fast, heavy}, {decode, prefill}); }
};

void deferred_growth_gives_new_streams_the_old_sms() {
    Growing it;
    CHECK_OK(resize({{it.decode, 64, 0}, {it.prefill, GCX_REST, 0}}, GCX_RESIZE_DEFERRED));
    CHECK_EQ(sms_of(it.decode), 64U);
    const gcx_stream later = stream_of(it.decode);
    for (gcx_stream stream : {it.fast, later}) {
        CHECK_EQ(sms_at(stream), 32U);
        CHECK_EQ(gcx_stream_query(stream), GCX_SUCCESS);
    }
    CHECK_EQ(gcx_lease_query(it.decode), GCX_SUCCESS);
    // The lease that released SMs moved at once.
    CHECK_EQ(sms_at(it.heavy), 68U);
    CHECK_OK(gcx_stream_synchronize(it.heavy));
    for (gcx_stream stream : {it.fast, later})
        CHECK_EQ(sms_at(stream), 64U);
    CHECK_EQ(probe(it.fast).size(), 64U);
    CHECK_OK(gcx_stream_destroy(later));
    it.finish();
}

// SMs that are free already are not used before the others are, although a context of just those is
// cached.
void deferred_growth_waits_for_all_new_sms() {
    Growing it;
    CHECK_OK(gcx_stream_synchronize(it.heavy));
    CHECK_OK(resize({{it.prefill, 84, 0}})); // 16 are free
    CHECK_OK(resize({{it.decode, 48, 0}}));
    CHECK_EQ(sms_at(it.fast), 48U);
    CHECK_OK(resize({{it.decode, 32, 0}}));
    CHECK_EQ(sms_at(it.fast), 32U);
    CHECK_EQ(sms_at(it.heavy), 84U);
    it.work.spin(gcx_stream_native(it.heavy), 90'000'000);
    CHECK_OK(resize({{it.decode, 64, 0}, {it.prefill, 68, 0}}, GCX_RESIZE_DEFERRED));
    CHECK_EQ(sms_at(it.fast), 32U);
    CHECK_OK(gcx_stream_synchronize(it.heavy));
    CHECK_EQ(sms_at(it.fast), 64U);
    it.finish();
}

// A second growth before the end of the first defers both.
void deferred_growth_twice_stays_on_the_first_sms() {
    Growing it;
    for (const uint32_t count : {48U, 64U}) {
        CHECK_OK(resize({{it.decode, count, 0}, {it.prefill, GCX_REST, 0}}, GCX_RESIZE_DEFERRED));
        CHECK_EQ(sms_at(it.fast), 32U);
        it.work.spin(gcx_stream_native(it.fast), 1'000);
    }
    CHECK_OK(gcx_stream_synchronize(it.heavy));
    CHECK_EQ(sms_at(it.fast), 64U);
    it.finish();
}

// A change without the flag ends the deferral: the streams move, and wait on the device.
void deferred_growth_ended_by_a_change_waits_on_the_device() {
    for (const uint32_t count : {48U, 64U}) {
        Growing it;
        CHECK_OK(resize({{it.decode, 64, 0}, {it.prefill, GCX_REST, 0}}, GCX_RESIZE_DEFERRED));
        it.work.spin(gcx_stream_native(it.fast), 1'000);
        if (count == 64) // the same size, together with another lease's change
            CHECK_OK(resize({{it.prefill, 24, 0}}));
        CHECK_OK(resize({{it.decode, count == 64 ? 72U : count, 0}}));
        CHECK_EQ(sms_at(it.fast), sms_of(it.decode));
        CHECK(it.work.free_at(gcx_stream_native(it.fast)) >= Growing::kEnd);
        it.finish();
    }
}

// Shrinking back to the SMs that the streams never left needs no wait.
void deferred_growth_taken_back_waits_for_nothing() {
    Growing it;
    CHECK_OK(resize({{it.decode, 64, 0}, {it.prefill, GCX_REST, 0}}, GCX_RESIZE_DEFERRED));
    CUstream before = gcx_stream_native(it.fast);
    CHECK_OK(resize({{it.decode, 32, 0}}));
    CHECK_EQ(gcx_stream_native(it.fast), before);
    CHECK_EQ(gcx_stream_query(it.fast), GCX_SUCCESS);
    it.finish();
}

// The next owner of a deferred lease's SMs waits for the work of both.
void released_while_deferred_is_waited_for() {
    for (const uint64_t spin : {1'000ULL, 200'000'000ULL}) {
        Growing it;
        CHECK_OK(resize({{it.decode, 64, 0}, {it.prefill, GCX_REST, 0}}, GCX_RESIZE_DEFERRED));
        it.work.spin(gcx_stream_native(it.fast), spin);
        CHECK_EQ(gcx_lease_query(it.decode), GCX_ERROR_NOT_READY);
        CHECK_OK(gcx_lease_release(it.decode));
        const gcx_lease next = acquire(64, "next");
        const gcx_stream stream = stream_of(next);
        const float free = it.work.free_at(gcx_stream_native(stream));
        CHECK(free >= std::max(Growing::kEnd, static_cast<float>(spin) / 1e6F));
        release_all({it.fast, it.heavy, stream}, {it.prefill, next});
    }
}

// All leases are busy and change with the flag: each gets its new SMs, although each waits for
// others.
void busy_leases_reach_their_sms(const std::vector<std::vector<uint32_t>>& layouts) {
    const Work work;
    std::vector<gcx_lease> leases;
    std::vector<gcx_stream> streams;
    for (const uint32_t count : layouts.front()) {
        leases.push_back(acquire(count));
        streams.push_back(stream_of(leases.back()));
    }
    const auto sizes_of = [&](const std::vector<uint32_t>& counts) {
        std::vector<gcx_lease_size> sizes;
        for (std::size_t i = 0; i < counts.size(); i++)
            sizes.push_back({leases[i], counts[i], 0});
        return sizes;
    };
    const auto all_busy = [&] {
        for (gcx_stream stream : streams)
            work.spin(gcx_stream_native(stream), 1'000'000);
    };
    for (int round = 0; round < 30; round++) {
        const auto& counts = layouts[static_cast<std::size_t>(round + 1) % layouts.size()];
        all_busy();
        all_busy();
        std::vector<gcx_resource> before;
        for (gcx_lease lease : leases)
            before.push_back(resource_of(lease));
        CHECK_OK(resize(sizes_of(counts), GCX_RESIZE_DEFERRED));
        for (std::size_t i = 0; i < counts.size(); i++) {
            if (overlap(before[i], resource_of(leases[i])) != sms(before[i]))
                CHECK_EQ(sms_at(streams[i]), counts[i]); // one that lost SMs
        }
        const auto arrived = [&] {
            for (std::size_t i = 0; i < counts.size(); i++) {
                if (sms_at(streams[i]) != counts[i])
                    return false;
            }
            return true;
        };
        int steps = 0;
        for (; steps < 50 && !arrived(); steps++) {
            all_busy();
            sim::advance(1'000'000);
        }
        CHECK(steps < 50);
        for (gcx_lease lease : leases)
            CHECK_OK(gcx_lease_synchronize(lease));
    }
    release_all(streams, leases);
}

void deferred_swaps_and_cycles_make_progress() {
    busy_leases_reach_their_sms({{32, 100}, {100, 32}});
    busy_leases_reach_their_sms({{64, 68}, {24, 108}, {108, 24}});
    busy_leases_reach_their_sms({{24, 40, 68}, {68, 24, 40}, {40, 68, 24}});
    busy_leases_reach_their_sms({{24, 40, 68}, {8, 40, 84}});
}

// A query covers only the lease's streams, not other contexts over the same SMs or former owners.
void query_covers_only_streams_of_the_lease() {
    const Work work;
    const auto waits = [] { return sim::calls("cuEventSynchronize"); };
    const gcx_lease lease = acquire(64, "lease");
    const gcx_resource sms = resource_of(lease);
    {
        const Partition other(sms);
        work.spin(gcx_stream_native(other.stream), 5'000'000);
        CHECK_EQ(gcx_lease_query(lease), GCX_SUCCESS);
        const uint64_t waited = waits();
        CHECK_OK(gcx_lease_synchronize(lease));
        CHECK_EQ(waits(), waited);
        CHECK_EQ(gcx_stream_query(other.stream), GCX_ERROR_NOT_READY);
        CHECK_OK(gcx_stream_synchronize(other.stream));
    }
    const gcx_stream stream = stream_of(lease);
    work.spin(gcx_stream_native(stream), 5'000'000);
    CHECK_EQ(gcx_lease_query(lease), GCX_ERROR_NOT_READY);
    // A destroyed stream's work counts as well.
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_EQ(gcx_lease_query(lease), GCX_ERROR_NOT_READY);
    CHECK_OK(gcx_lease_release(lease));
    const gcx_lease next = acquire(64, "next");
    const gcx_stream unused = stream_of(next);
    CHECK_EQ(overlap(resource_of(next), sms), 64U);
    CHECK_EQ(gcx_lease_query(next), GCX_SUCCESS);
    const uint64_t waited = waits();
    CHECK_OK(gcx_lease_synchronize(next));
    CHECK_EQ(waits(), waited);
    // The query itself does not make it wait.
    info_of(unused);
    CHECK_EQ(gcx_stream_query(unused), GCX_SUCCESS);
    CHECK_EQ(gcx_lease_query(next), GCX_SUCCESS);
    // Its own work runs behind that.
    const float free = work.free_at(gcx_stream_native(unused));
    CHECK(free >= 10.0F);
    release_all({unused}, {next});
}

// More streams than a context caches.
void synchronize_waits_for_destroyed_streams() {
    const Work work;
    const gcx_lease lease = acquire(64);
    for (int i = 0; i < 40; i++) {
        const gcx_stream stream = stream_of(lease);
        work.spin(gcx_stream_native(stream), 5'000'000);
        CHECK_OK(gcx_stream_destroy(stream));
    }
    CHECK_EQ(gcx_lease_query(lease), GCX_ERROR_NOT_READY);
    CHECK_OK(gcx_lease_synchronize(lease));
    CHECK_EQ(gcx_lease_query(lease), GCX_SUCCESS);
    CHECK_OK(gcx_lease_release(lease));
}

// A context that the streams left stays in use until their work there is done.
void contexts_stay_in_use_until_their_work_is_done() {
    const Work work;
    const gcx_lease lease = acquire(24);
    const gcx_stream stream = stream_of(lease);
    const gcx_stream closed = stream_of(lease);
    for (const uint32_t count : {64U, 24U}) {
        CHECK_OK(resize({{lease, count, 0}}));
        CHECK(gcx_stream_native(stream) != nullptr);
    }
    for (gcx_stream one : {stream, closed})
        work.spin(gcx_stream_native(one), 50'000'000);
    CHECK_OK(gcx_stream_destroy(closed));
    CHECK_OK(resize({{lease, 64, 0}}));
    CHECK(gcx_stream_native(stream) != nullptr);
    CHECK_OK(gcx_cache_set_limit(0));
    CHECK_EQ(cache_stats().in_use, 2U);
    sim::advance(60'000'000);
    CHECK_OK(gcx_cache_set_limit(0));
    CHECK_EQ(cache_stats().in_use, 1U);
    CHECK_OK(gcx_cache_set_limit(64));
    release_all({stream}, {lease});
}

// Released SMs are free at once, with their last work still running.
void released_sms_are_waited_for() {
    const Work work;
    gcx_lease one = acquire(GCX_REST);
    gcx_stream stream = stream_of(one);
    work.spin(gcx_stream_native(stream), 7'000'000);
    CHECK_OK(gcx_lease_release(one));
    CHECK_REFUSED(gcx_stream_query(stream), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(gcx_stream_native(stream) == nullptr);
    const gcx_lease two = acquire(GCX_REST);
    const gcx_stream next = stream_of(two);
    CHECK(work.free_at(gcx_stream_native(next)) >= 7.0F);
    release_all({stream, next}, {two});
    // An unused stream waits for nothing.
    one = acquire(24);
    stream = stream_of(one);
    work.spin(gcx_stream_native(stream), 7'000'000);
    CHECK_OK(gcx_lease_release(one));
    const gcx_lease three = acquire(24);
    const uint64_t waits = sim::calls("cuStreamWaitEvent");
    const gcx_stream unused = stream_of(three);
    CHECK_EQ(sim::calls("cuStreamWaitEvent"), waits);
    release_all({stream, unused}, {three});
}

// Its work finishes, and the next owner's work waits for it; its streams can be queried and
// destroyed, and refuse work.
void parked_lease_gives_all_sms() {
    const Work work;
    const gcx_lease from = acquire(24, "from");
    const gcx_lease to = acquire(GCX_REST, "to"); // so that it can get the SMs of "from" only
    const gcx_stream giver = stream_of(from);
    const gcx_stream taker = stream_of(to);
    const gcx_lease_size sizes[] = {{from, 0, GCX_SIZE_PARKED}, {to, GCX_REST, 0}};
    CHECK_OK(gcx_lease_prepare(sizes, 2)); // creating a context waits for running work
    work.spin(gcx_stream_native(giver), 30'000'000);
    CHECK_OK(gcx_lease_resize(sizes, 2, GCX_RESIZE_DEFAULT));
    CHECK_EQ(sms_of(from), 0U);
    CHECK_EQ(info_of(from).exclusive_sm_count, 0U);
    CHECK_EQ(sms(resource_of(from)), 0U);
    CHECK_EQ(sms_of(to), 132U);
    CHECK_EQ(check_live_leases(), 2U);
    CHECK_EQ(live_leases()[0].sm_count, 0U);

    CHECK(gcx_stream_native(giver) == nullptr);
    CHECK(message_has("\"from\" is parked"));
    gcx_stream none = nullptr;
    CHECK_REFUSED(gcx_lease_stream_create(from, nullptr, &none), GCX_ERROR_LEASE_PARKED);
    gcx_event event = make_event();
    CHECK_REFUSED(gcx_stream_record(giver, event), GCX_ERROR_LEASE_PARKED);
    CHECK_REFUSED(gcx_stream_wait(giver, event), GCX_ERROR_LEASE_PARKED);
    CHECK_OK(gcx_event_destroy(event));
    uint32_t ids[GCX_MAX_SMS] = {};
    uint32_t count = 0;
    CHECK_REFUSED(gcx_stream_probe_sms(giver, ids, GCX_MAX_SMS, &count), GCX_ERROR_LEASE_PARKED);

    CHECK_EQ(gcx_stream_query(giver), GCX_ERROR_NOT_READY);
    CHECK_EQ(gcx_lease_query(from), GCX_ERROR_NOT_READY);
    CHECK(work.free_at(gcx_stream_native(taker)) >= 30.0F);
    CHECK_OK(gcx_stream_synchronize(giver));
    CHECK_OK(gcx_lease_synchronize(from));
    CHECK_OK(gcx_stream_query(giver));
    CHECK_EQ(probe(taker).size(), 132U);
    CHECK_EQ(info_of(from).changes, 1U);
    // Parking a parked lease changes nothing.
    CHECK_OK(resize({{from, 0, GCX_SIZE_PARKED}}));
    CHECK_EQ(info_of(from).changes, 1U);
    CHECK_OK(gcx_stream_destroy(giver));
    CHECK_EQ(info_of(from).stream_count, 0U);
    release_all({taker}, {from, to});
}

// Later work runs on the new SMs, behind the stream's earlier work.
void parked_lease_comes_back() {
    for (const uint32_t flags : {GCX_RESIZE_DEFAULT, GCX_RESIZE_DEFERRED}) {
        const Work work;
        const gcx_lease parked = acquire(24);
        const gcx_lease other = acquire(GCX_REST);
        const gcx_stream stream = stream_of(parked);
        const gcx_stream of_other = stream_of(other);
        const gcx_resource had = resource_of(parked);
        CHECK_OK(resize({{parked, 0, GCX_SIZE_PARKED}, {other, GCX_REST, 0}}));
        CHECK_EQ(sms_of(other), 132U);
        work.spin(gcx_stream_native(of_other), 3'000'000);
        CHECK_OK(resize({{parked, 24, 0}, {other, GCX_REST, 0}}, flags));
        CHECK_EQ(sms_of(parked), 24U);
        CHECK_EQ(sms_of(other), 108U);
        CHECK_EQ(overlap(resource_of(parked), resource_of(other)), 0U);
        CHECK_EQ(sms(had), 24U);
        CHECK(work.free_at(gcx_stream_native(stream)) >= 3.0F);
        CHECK_EQ(probe(stream).size(), 24U);
        // A prepared layout returns, also by way of parking.
        const std::vector<gcx_lease_size> layout = {{parked, 64, 0}, {other, GCX_REST, 0}};
        const std::vector<gcx_lease_size> all = {{parked, 0, GCX_SIZE_PARKED},
                                                 {other, GCX_REST, 0}};
        CHECK_OK(prepare(layout));
        CHECK_OK(prepare(all));
        const uint64_t made = sim::calls("cuGreenCtxCreate");
        CHECK_OK(resize(layout));
        const gcx_resource wide = resource_of(parked);
        CHECK_OK(resize(all));
        CHECK_OK(resize(layout));
        const gcx_resource again = resource_of(parked);
        CHECK_EQ(std::memcmp(&wide, &again, sizeof wide), 0);
        CHECK_EQ(sim::calls("cuGreenCtxCreate"), made);
        release_all({stream, of_other}, {parked, other});
    }
}

// SMs move within one resize while a request waits, and parking alone serves that request. A
// parked lease can be released, and a stream that captures is not disturbed.
void parked_lease_waits_for_no_one() {
    const gcx_lease decode = acquire(100, "decode");
    const gcx_lease prefill = acquire(GCX_REST, "prefill");
    WaitingAcquire waiter(16);
    CHECK_OK(resize({{decode, 0, GCX_SIZE_PARKED}, {prefill, GCX_REST, 0}}));
    CHECK_EQ(sms_of(prefill), 132U);
    CHECK_OK(resize({{prefill, 0, GCX_SIZE_PARKED}, {decode, GCX_REST, 0}}));
    CHECK_EQ(sms_of(decode), 132U);
    CHECK_EQ(live_leases().size(), 3U);
    const gcx_stream stream = stream_of(decode);
    CUstream native = gcx_stream_native(stream);
    begin_capture(native);
    CHECK_OK(resize({{decode, 0, GCX_SIZE_PARKED}}));
    const gcx_lease waited = waiter.get();
    CHECK_EQ(sms_of(waited), 16U);
    CHECK_EQ(gcx_stream_native(stream), native);
    end_capture(native);
    CHECK(gcx_stream_native(stream) == nullptr);
    // The SMs that the others leave; with none left the parked lease stays as it is.
    CHECK_OK(resize({{prefill, GCX_REST, 0}}));
    CHECK_REFUSED(resize({{decode, 8, 0}}), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK_EQ(sms_of(decode), 0U);
    CHECK_OK(gcx_lease_release(decode));
    CHECK_REFUSED(gcx_stream_query(stream), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_OK(gcx_stream_destroy(stream));
    release_all({}, {prefill, waited});
}

// A capture continues in its context.
void captures_survive_resizes() {
    const gcx_lease lease = acquire(24);
    const gcx_stream stream = stream_of(lease);
    CUstream native = gcx_stream_native(stream);
    begin_capture(native);
    CHECK_OK(resize({{lease, 64, 0}}));
    CHECK_EQ(gcx_stream_native(stream), native);
    CHECK_OK(gcx_lease_query(lease));
    end_capture(native);
    CHECK(gcx_stream_native(stream) != native);
    CHECK_EQ(probe(stream).size(), 64U);
    release_all({stream}, {lease});
}

void waiting_requests_are_served_in_order() {
    const gcx_lease busy = acquire(100, "held");
    WaitingAcquire first(64, {.name = "large"});
    CHECK_EQ(live_leases()[1].waits, 1U);
    CHECK_EQ(live_leases()[1].sm_count, 64U);
    CHECK_EQ(std::string(live_leases()[1].name), "large");
    // 28 are free, but the large request is first.
    CHECK_REFUSED(try_acquire(8), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK(message_has("1 waits, the first for 64 SMs"));
    CHECK_REFUSED(try_acquire(8, {.timeout_ms = 1}), GCX_ERROR_TIMEOUT);
    CHECK(message_has("timed out after 1 ms waiting for 8 SMs"));
    CHECK_REFUSED(resize({{busy, 112, 0}}), GCX_ERROR_ALREADY_ACQUIRED);
    WaitingAcquire second(8, {.name = "small"});
    CHECK_OK(resize({{busy, 68, 0}}));
    const gcx_lease large = first.get();
    CHECK_EQ(sms_of(large), 64U);
    CHECK_EQ(waiting_requests(), 1U);
    CHECK_OK(resize({{busy, 48, 0}}));
    release_all({}, {busy, large, second.get()});
}

void waits_are_cancelled() {
    const gcx_lease all = acquire(GCX_REST);
    CHECK_REFUSED(try_acquire(GCX_REST), GCX_ERROR_ALREADY_ACQUIRED);
    gcx_cancel cancel = make_cancel();
    const auto refused = [&] {
        CHECK_REFUSED(try_acquire(8, {.timeout_ms = GCX_FOREVER, .cancel = cancel}),
                      GCX_ERROR_CANCELLED);
        CHECK(message_has("was cancelled by gcx_cancel_signal"));
    };
    WaitingAcquire first(8, {.cancel = cancel});
    WaitingAcquire second(8, {.cancel = cancel});
    CHECK_OK(gcx_cancel_signal(cancel));
    CHECK_EQ(first.result(), GCX_ERROR_CANCELLED);
    CHECK_EQ(second.result(), GCX_ERROR_CANCELLED);
    refused(); // a signal is permanent
    CHECK_OK(gcx_lease_release(all));
    refused(); // also if SMs are free
    CHECK_OK(gcx_cancel_destroy(cancel));
    CHECK_REFUSED(gcx_cancel_signal(cancel), GCX_ERROR_INVALID_HANDLE);
    CHECK(live_leases().empty());
}

void leases_of_two_families_need_maps() {
    const gcx_lease lease = acquire(24, "lease");
    CHECK_REFUSED(try_acquire(10, {.family = GCX_SM_FAMILY_FINE}), GCX_ERROR_SMS_NOT_MAPPED);
    CHECK(message_has("gcx_device_map_sms"));
    CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
    CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_FINE));
    const gcx_lease fine = acquire(10, {.family = GCX_SM_FAMILY_FINE});
    CHECK_EQ(sms_of(fine), 10U);
    CHECK_EQ(overlap(resource_of(lease), resource_of(fine)), 0U);
    const gcx_lease rest = acquire(GCX_REST);
    CHECK_EQ(overlap(resource_of(rest), resource_of(fine)), 0U);
    CHECK_EQ(overlap(resource_of(rest), resource_of(lease)), 0U);
    CHECK_REFUSED(resize({{lease, 16, 0}, {fine, 8, 0}}), GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    release_all({}, {lease, fine, rest});
}

// Work that a lease of another family left is waited for if it may run on the same SMs.
void work_of_another_family() {
    constexpr float kLong = 50;
    const auto fine_lease = [] { return acquire(24, {.family = GCX_SM_FAMILY_FINE}); };
    // Returns when a lease of this count can begin. Creates the context first, since creating one
    // waits for all running work.
    const auto free_at = [&](uint32_t sm_count, bool after_another) {
        float free = 0;
        for (const bool at_work : {false, true}) {
            const gcx_lease before = after_another ? acquire(sm_count) : nullptr;
            const gcx_lease fine = fine_lease();
            const gcx_stream left = stream_of(fine);
            const Work work;
            if (at_work)
                work.spin(gcx_stream_native(left), 50'000'000);
            CHECK_OK(gcx_lease_release(fine));
            if (after_another)
                CHECK_OK(gcx_lease_release(before)); // the next lease gets its SMs
            const gcx_lease next = acquire(sm_count);
            const gcx_stream stream = stream_of(next);
            free = work.free_at(gcx_stream_native(stream));
            release_all({left, stream}, {next});
        }
        return free;
    };
    CHECK(free_at(24, false) >= kLong);
    CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
    CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_FINE));
    CHECK(free_at(GCX_REST, false) >= kLong);
    CHECK(free_at(24, true) < kLong);
}

void device_reset_ends_leases() {
    const gcx_lease lease = acquire(24);
    const gcx_stream stream = stream_of(lease);
    const CUresult reset = NATIVE(cuDevicePrimaryCtxReset)(0);
    if (reset ==
        CUDA_ERROR_NOT_PERMITTED) { // as newer drivers answer while green contexts are alive
        release_all({stream}, {lease});
        return;
    }
    CHECK_EQ(reset, CUDA_SUCCESS);
    CHECK_REFUSED(gcx_stream_query(stream), GCX_ERROR_CONTEXT_IS_DESTROYED);
    gcx_lease_info dead = GCX_LEASE_INFO_INIT;
    CHECK_REFUSED(gcx_lease_get_info(lease, &dead), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_REFUSED(resize({{lease, 32, 0}}), GCX_ERROR_CONTEXT_IS_DESTROYED);
    release_all({stream}, {lease});
    const gcx_lease fresh = acquire(24);
    const gcx_stream works = stream_of(fresh);
    CHECK_EQ(probe(works).size(), 24U);
    release_all({works}, {fresh});
}

// Where all atoms have one alignment, the remainder atom goes with any others, on every driver.
void remainder_atom_of_one_alignment_fits_any_other() {
    const gcx_lease first = acquire(4);
    const gcx_lease remainder = acquire(2);
    CHECK_EQ(sms_of(remainder), 2U);
    CHECK_OK(hand_over(remainder, first));
    CHECK_OK(gcx_lease_release(remainder));
    CHECK_EQ(sms_of(first), 6U);
    const gcx_stream stream = stream_of(first);
    CHECK_EQ(probe(stream).size(), 6U);
    // No SM is lost between leases: the rest is all the others.
    const gcx_lease rest = acquire(GCX_REST);
    CHECK_EQ(sms_of(rest), 142U - 6U);
    release_all({stream}, {first, rest});
}

void invalid_arguments_are_refused() {
    gcx_lease lease = nullptr;
    gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
    const auto refused = [&](gcx_result expected) {
        CHECK_REFUSED(gcx_lease_acquire(0, 24, &params, &lease), expected);
        params = GCX_LEASE_PARAMS_INIT;
    };
    CHECK_REFUSED(gcx_lease_acquire(1, 24, nullptr, &lease), GCX_ERROR_INVALID_DEVICE);
    CHECK_REFUSED(gcx_lease_acquire(0, 24, nullptr, nullptr), GCX_ERROR_INVALID_VALUE);
    params.struct_size = 8;
    refused(GCX_ERROR_INVALID_VALUE);
    params.flags = GCX_LEASE_REQUIRE_WORKQUEUES << 1;
    refused(GCX_ERROR_INVALID_VALUE);
    params.family = GCX_SM_FAMILY_STRUCTURED;
    refused(GCX_ERROR_INVALID_VALUE);
    params.min_sm_count = 25;
    refused(GCX_ERROR_INVALID_VALUE);
    params.exclusive_sm_count = 8;
    refused(GCX_ERROR_INVALID_VALUE);
    params.flags = GCX_LEASE_SHARED;
    params.exclusive_sm_count = 25;
    refused(GCX_ERROR_INVALID_VALUE);
    params.flags = GCX_LEASE_SHARED;
    params.exclusive_sm_count = GCX_REST;
    CHECK_REFUSED(gcx_lease_acquire(0, GCX_REST, &params, &lease), GCX_ERROR_INVALID_VALUE);
    params = GCX_LEASE_PARAMS_INIT;
    params.name = "a name of sixty-four bytes is one too many, for its end is a byte";
    refused(GCX_ERROR_INVALID_VALUE);
    params.cancel = forged<gcx_cancel>(1234);
    refused(GCX_ERROR_INVALID_HANDLE);
    lease = acquire(24, "lease");
    CHECK_REFUSED(gcx_lease_resize(nullptr, 1, 0), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(resize({}), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(resize({{lease, 24, 2}}), GCX_ERROR_INVALID_VALUE);
    CHECK(message_has("sizes[0].flags is 0x2"));
    CHECK_REFUSED(resize({{lease, 24, GCX_SIZE_PARKED}}), GCX_ERROR_INVALID_VALUE);
    CHECK(message_has("set it to 0"));
    CHECK_REFUSED(resize({{lease, 0, 0}}), GCX_ERROR_INVALID_VALUE);
    CHECK(message_has("GCX_SIZE_PARKED"));
    CHECK_REFUSED(resize({{lease, 24, 0}}, 2), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(resize({{lease, 24, 0}, {lease, 32, 0}}), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(resize({{nullptr, 24, 0}}), GCX_ERROR_INVALID_HANDLE);
    CHECK_REFUSED(resize({{lease, 140, 0}}), GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK(message_has("140 for \"lease\"") && message_has("is 144; device 0 has 132"));
    uint32_t count = 0;
    CHECK_REFUSED(gcx_lease_list(-1, nullptr, 0, &count), GCX_ERROR_INSUFFICIENT_CAPACITY);
    CHECK_EQ(count, 1U);
    CHECK_REFUSED(gcx_lease_list(7, nullptr, 0, &count), GCX_ERROR_INVALID_DEVICE);
    release_all({}, {lease});
    CHECK_REFUSED(gcx_lease_release(lease), GCX_ERROR_INVALID_HANDLE);
}

} // namespace

int main() {
    for (const char* driver : drivers({"12.4", "13.0", "13.1", "13.5"})) {
        on_machine(std::string("h100@") + driver, [] {
            lease_exclusive_is_disjoint();
            min_sm_count_accepts_fewer_sms();
            streams_follow_a_resize();
            work_waits_for_the_former_owner();
            released_sms_are_waited_for();
            parked_lease_gives_all_sms();
            parked_lease_comes_back();
            parked_lease_waits_for_no_one();
            captures_survive_resizes();
            waiting_requests_are_served_in_order();
            waits_are_cancelled();
            leases_of_two_families_need_maps();
            invalid_arguments_are_refused();
            device_reset_ends_leases();
        });
        on_machine(std::string("h100@") + driver, [] {
            deferred_growth_gives_new_streams_the_old_sms();
            deferred_growth_waits_for_all_new_sms();
            deferred_growth_twice_stays_on_the_first_sms();
            deferred_growth_ended_by_a_change_waits_on_the_device();
            deferred_growth_taken_back_waits_for_nothing();
            released_while_deferred_is_waited_for();
            deferred_swaps_and_cycles_make_progress();
            query_covers_only_streams_of_the_lease();
            synchronize_waits_for_destroyed_streams();
            contexts_stay_in_use_until_their_work_is_done();
        });
        on_machine(std::string("h100@") + driver, work_of_another_family);
        on_machine(std::string("l40s@") + driver, remainder_atom_of_one_alignment_fits_any_other);
    }
    return summary("leases");
}
