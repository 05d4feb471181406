// Tests what a change of leases costs while work waits: after thousands of changes it makes as many
// driver calls, and uses as many events and contexts, as after the first.

#include "leases.hpp"
#include "work.hpp"

#include <algorithm>
#include <random>

using namespace support;

namespace {

constexpr uint64_t kForever = 100'000'000'000'000; // on the simulated clock
constexpr uint64_t kMostCalls = 20;                // for each lease that changes
constexpr int kLast = 100;

int changes() {
    return check::slow ? 1'000 : 3'000;
}

// Tracks the most driver calls of a late step, and what was alive when these steps began.
class Cost {
  public:
    // leases is the number of leases that change their SMs in the step.
    template <class Step>
    void count(int step, uint64_t leases, const Step& act) {
        if (step == changes() - kLast)
            before_ = sim::counts();
        const uint64_t calls = sim::calls();
        act();
        if (step >= changes() - kLast)
            most_ = std::max(most_, (sim::calls() - calls + leases - 1) / leases);
    }
    void check(uint64_t most_events, uint64_t most_contexts,
               uint64_t most_calls = kMostCalls) const {
        const gcx_sim_counts now = sim::counts();
        CHECK(most_ != 0);
        if (!CHECK(most_ <= most_calls))
            std::fprintf(stderr, "    %lu driver calls per lease\n", most_);
        if (!CHECK(now.events <= most_events))
            std::fprintf(stderr, "    %lu events\n", now.events);
        if (!CHECK(now.green_contexts <= most_contexts))
            std::fprintf(stderr, "    %lu contexts\n", now.green_contexts);
        CHECK(now.streams <= before_.streams + 2);
    }

  private:
    uint64_t most_ = 0;
    gcx_sim_counts before_{};
};

// Has two leases that trade SMs; each step ends with their streams on the new SMs.
struct Pair {
    gcx_lease a = acquire(64);
    gcx_lease b = acquire(GCX_REST);
    gcx_stream in_a = stream_of(a);
    gcx_stream in_b = stream_of(b);

    Pair() {
        for (const int step : {0, 1})
            change(step);
    }
    ~Pair() { release_all({in_a, in_b}, {a, b}); }
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;

    void change(int step) const {
        CHECK_OK(resize({{a, step % 2 == 0 ? 32U : 64U, 0}, {b, GCX_REST, 0}}));
        CHECK(gcx_stream_native(in_a) != nullptr && gcx_stream_native(in_b) != nullptr);
    }
};

enum class Persistent : uint8_t { none, in_the_lease, on_traded_sms, outside_the_leases };

struct Trade {
    Persistent where; // a kernel that never ends
    uint64_t in_a;    // how long a step's kernels last, 0: none is launched
    uint64_t in_b;
    uint64_t (*advance)(int step); // of the simulated clock
    uint64_t most_events;
};

constexpr uint64_t kStep = 1'000'000;
const Trade kTrades[] = {
    {Persistent::in_the_lease, 0, 1'000, [](int) { return kStep; }, 16},
    // Each lease waits for the other, behind the kernel.
    {Persistent::on_traded_sms, 1'000, 1'000, [](int) { return uint64_t{0}; }, 24},
    {Persistent::outside_the_leases, 1'000, 1'000,
     [](int step) { return static_cast<uint64_t>(step % 3) * 1'000; }, 24},
    // The host is a thousand steps ahead.
    {Persistent::none, kStep, kStep, [](int step) { return step >= 1'000 ? kStep : 0; }, 24},
};

void trade(const Trade& its) {
    const Work work;
    const gcx_lease other = its.where == Persistent::outside_the_leases ? acquire(24) : nullptr;
    const gcx_stream outside = other != nullptr ? stream_of(other) : nullptr;
    {
        const Pair pair;
        const gcx_stream within = stream_of(pair.b);
        const gcx_stream streams[] = {nullptr, within, pair.in_a, outside};
        if (its.where != Persistent::none)
            work.spin(gcx_stream_native(streams[static_cast<int>(its.where)]), kForever);
        Cost cost;
        for (int step = 0; step < changes(); step++) {
            cost.count(step, 2, [&] { pair.change(step); });
            if (its.in_a != 0)
                work.spin(gcx_stream_native(pair.in_a), its.in_a);
            work.spin(gcx_stream_native(pair.in_b), its.in_b);
            sim::advance(its.advance(step));
        }
        if (its.where == Persistent::none)
            CHECK_EQ(gcx_lease_query(pair.a), GCX_ERROR_NOT_READY);
        cost.check(its.most_events, 8);
        CHECK_OK(gcx_stream_destroy(within));
    }
    if (other != nullptr)
        release_all({outside}, {other});
}

// A stream that is created, used and destroyed leaves unfinished work.
void streams_come_and_go() {
    const Work work;
    const Pair pair;
    work.spin(gcx_stream_native(pair.in_b), kForever);
    pair.change(0);
    Cost cost;
    for (int step = 0; step < changes(); step++) {
        const gcx_stream stream = stream_of(pair.a);
        work.spin(gcx_stream_native(stream), step % 2 == 0 ? kForever : 1'000);
        CHECK_OK(gcx_stream_destroy(stream));
        cost.count(step, 2, [&] { pair.change(step); });
    }
    // Up to 8 of the streams' work are waited for one by one, and the others are chained. A context
    // caches 32 streams, which are queried.
    cost.check(96, 8, kMostCalls + 2 * 8 + 2 * 32);
}

// Leases come and go behind a kernel that never ends, each with work.
void leases_come_and_go(bool resized) {
    const Work work;
    const gcx_lease first = acquire(64);
    const gcx_stream persistent = stream_of(first);
    work.spin(gcx_stream_native(persistent), kForever);
    release_all({persistent}, {first});
    Cost acquiring;
    Cost releasing;
    for (int step = 0; step < changes(); step++) {
        const uint32_t count = 16 + 8 * static_cast<uint32_t>(step % 7);
        gcx_lease lease = nullptr;
        gcx_stream stream = nullptr;
        acquiring.count(step, 1, [&] { lease = acquire(count); });
        stream = stream_of(lease);
        work.spin(gcx_stream_native(stream), 1'000);
        if (resized) {
            CHECK_OK(resize({{lease, 16 + 8 * static_cast<uint32_t>(step / 7 % 7), 0}}));
            work.spin(gcx_stream_native(stream), 1'000);
        }
        if (step % 2 == 0)
            CHECK_OK(gcx_stream_destroy(stream));
        releasing.count(step, 1, [&] { CHECK_OK(gcx_lease_release(lease)); });
        if (step % 2 != 0)
            CHECK_OK(gcx_stream_destroy(stream));
    }
    acquiring.check(40, 20);
    releasing.check(40, 20);
}

// The order is preserved through all of that: the last lease waits for the first.
void last_of_many_waits_for_the_first() {
    const Work work;
    constexpr uint64_t kLong = 50'000'000;
    for (const uint32_t count : {64U, 32U}) {
        gcx_lease lease = acquire(64);
        gcx_stream stream = stream_of(lease);
        work.spin(gcx_stream_native(stream), kLong);
        const float free = work.free_at(gcx_stream_native(stream));
        work.spin(gcx_stream_native(stream), kLong);
        for (int i = 0; i < 50; i++) {
            CHECK_OK(gcx_lease_release(lease));
            CHECK_OK(gcx_stream_destroy(stream));
            lease = acquire(i % 2 == 0 ? count : 64);
            stream = stream_of(lease);
            if (i % 3 == 0) // a lease without work doesn't hide earlier work
                work.spin(gcx_stream_native(stream), 1'000);
        }
        CHECK(work.free_at(gcx_stream_native(stream)) >= free + 50.0F);
        CHECK_OK(gcx_lease_release(lease));
        CHECK_OK(gcx_stream_destroy(stream));
    }
}

// A stream that a lease creates later waits for former owners too, although the lease's other
// stream has waited for them and has had work since.
void new_stream_of_a_lease_waits_for_former_owners() {
    const Work work;
    const gcx_lease before = acquire(64);
    const gcx_stream left = stream_of(before);
    // Creates the contexts first, since creating one waits for all running work.
    CHECK_OK(prepare({{before, 64, 0}}));
    const gcx_resource sms = resource_of(before);
    work.spin(gcx_stream_native(left), 50'000'000);
    CHECK_OK(gcx_lease_release(before));
    const gcx_lease lease = acquire(64);
    CHECK_EQ(overlap(sms, resource_of(lease)), 64U);
    const gcx_stream first = stream_of(lease);
    work.spin(gcx_stream_native(first), 1'000);
    // The lease loses the SMs and gets them back.
    for (const uint32_t count : {8U, 64U, 8U, 64U})
        CHECK_OK(resize({{lease, count, 0}}));
    const gcx_stream second = stream_of(lease);
    CHECK(work.free_at(gcx_stream_native(second)) >= 49.0F);
    release_all({left, first, second}, {lease});
}

// Uses random layouts of three leases while the host runs ahead: contexts are released as their
// work finishes.
void random_layouts_keep_few_contexts() {
    constexpr uint64_t kShort = 100'000;
    const Work work;
    std::mt19937 random(20261123); // NOLINT(bugprone-random-generator-seed): repeatable
    const std::vector<gcx_lease> leases = {acquire(24), acquire(24), acquire(24)};
    std::vector<gcx_stream> streams;
    for (gcx_lease lease : leases)
        streams.push_back(stream_of(lease));
    CHECK_OK(gcx_cache_set_limit(16));
    uint32_t most = 0;
    for (int step = 0; step < changes() / 4; step++) {
        std::vector<gcx_lease_size> sizes;
        for (gcx_lease lease : leases)
            sizes.push_back({lease, 8 + 8 * static_cast<uint32_t>(random() % 5), 0});
        CHECK_OK(resize(sizes));
        for (gcx_stream stream : streams)
            work.spin(gcx_stream_native(stream), kShort / 4);
        if (step >= 20)
            sim::advance(kShort);
        most = std::max(most, cache_stats().in_use);
    }
    if (!CHECK(most <= 96))
        std::fprintf(stderr, "    %u contexts in use\n", most);
    release_all(streams, leases);
    CHECK_OK(gcx_cache_set_limit(64));
}

} // namespace

int main() {
    for (void (*body)() :
         {streams_come_and_go, last_of_many_waits_for_the_first,
          new_stream_of_a_lease_waits_for_former_owners, random_layouts_keep_few_contexts})
        leaves_nothing("h100@13.0", body);
    for (const Trade& its : kTrades)
        leaves_nothing("h100@13.0", [&its] { trade(its); });
    for (const bool resized : {false, true})
        leaves_nothing("h100@13.0", [resized] { leases_come_and_go(resized); });
    return check::summary("lease cost");
}
