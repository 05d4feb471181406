// Tests which SMs the leases of a change get: the sets of prepared layouts come back, so random
// changes among them create no context.

#include "leases.hpp"
#include "support.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

using namespace support;

namespace {

constexpr unsigned kSeed = 20261121;

using Counts = std::vector<uint32_t>;
using Leases = std::vector<gcx_lease>;

std::vector<gcx_lease_size> sizes_of(const Leases& leases, const Counts& counts) {
    std::vector<gcx_lease_size> sizes;
    for (std::size_t i = 0; i < leases.size(); i++)
        sizes.push_back({leases[i], counts[i], 0});
    return sizes;
}

void prepare(const Leases& leases, const Counts& counts) {
    const auto sizes = sizes_of(leases, counts);
    CHECK_OK(gcx_lease_prepare(sizes.data(), static_cast<uint32_t>(sizes.size())));
}

void resize(const Leases& leases, const Counts& counts) {
    const auto sizes = sizes_of(leases, counts);
    CHECK_OK(gcx_lease_resize(sizes.data(), static_cast<uint32_t>(sizes.size()), 0));
}

void release(Leases& leases) {
    for (gcx_lease lease : leases)
        CHECK_OK(gcx_lease_release(lease));
    leases.clear();
    CHECK_OK(gcx_cache_trim(0, nullptr)); // releases what was prepared for them from the limit
}

// Returns the leases' counts, and checks that no two leases have an SM in common.
Counts have(const Leases& leases) {
    Counts counts;
    for (std::size_t i = 0; i < leases.size(); i++) {
        counts.push_back(sms(resource_of(leases[i])));
        for (std::size_t j = 0; j < i; j++)
            CHECK_EQ(overlap(resource_of(leases[i]), resource_of(leases[j])), 0U);
    }
    return counts;
}

// Changes at random between prepared layouts: no context is created, each layout keeps its counts,
// and the order of sizes does not matter.
void walk(const Leases& leases, const std::vector<Counts>& layouts, std::mt19937& random,
          uint32_t steps) {
    const uint64_t misses = cache_stats().misses;
    std::map<std::size_t, Counts> seen;
    std::vector<std::size_t> order(leases.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const bool shuffled = std::none_of(layouts.begin(), layouts.end(), [](const Counts& counts) {
        return std::count(counts.begin(), counts.end(), GCX_REST) > 1;
    });
    for (uint32_t step = 0; step < steps; step++) {
        const std::size_t which = random() % layouts.size();
        // If several leases share the rest, the first gets more, so there the order matters.
        if (shuffled)
            std::shuffle(order.begin(), order.end(), random);
        Leases some;
        Counts counts;
        for (const std::size_t i : order) {
            some.push_back(leases[i]);
            counts.push_back(layouts[which][i]);
        }
        resize(some, counts);
        if (step % 16 == 0) {
            const Counts has = have(leases);
            CHECK(seen.emplace(which, has).first->second == has);
        }
    }
    CHECK_EQ(cache_stats().misses, misses);
}

struct Case {
    const char* name;
    Counts first; // of the leases as they are acquired
    std::vector<Counts> layouts;
};

const Case kCases[] = {
    {"two leases", {32, GCX_REST}, {{8, GCX_REST}, {24, GCX_REST}, {64, GCX_REST}, {96, 36}}},
    {"three leases",
     {8, 24, GCX_REST},
     {{8, 24, GCX_REST}, {16, 24, GCX_REST}, {8, 64, GCX_REST}, {16, 64, GCX_REST}}},
    {"three leases, the second between two that change places",
     {24, 40, GCX_REST},
     {{24, 40, 68}, {8, 40, 84}, {40, 24, 68}, {8, 8, 116}, {56, 40, 36}, {12, 40, 80}}},
    {"three leases with SMs to spare",
     {8, 16, 24},
     {{8, 16, 24}, {32, 16, 8}, {16, 40, 40}, {64, 8, 8}, {8, 64, 52}, {12, 8, 8}}},
    {"four leases",
     {8, 16, 24, GCX_REST},
     {{8, 16, 24, GCX_REST},
      {24, 16, 8, GCX_REST},
      {16, 48, 16, GCX_REST},
      {8, 8, 8, GCX_REST},
      {40, 24, 40, GCX_REST},
      {32, 32, 32, 36}}},
    {"four leases that share the rest",
     {8, 16, GCX_REST, GCX_REST},
     {{8, 16, GCX_REST, GCX_REST},
      {32, 16, GCX_REST, GCX_REST},
      {GCX_REST, 8, 8, GCX_REST},
      {16, GCX_REST, 24, 24}}},
};

Leases leases_of(const Case& the_case) {
    Leases leases;
    for (const uint32_t count : the_case.first) {
        // Only the last lease can have the rest; the others start with a few SMs.
        const bool last = leases.size() + 1 == the_case.first.size();
        leases.push_back(acquire(count == GCX_REST && !last ? 8 : count));
    }
    return leases;
}

void changes_among_prepared_layouts_make_no_context() {
    for (const Case& the_case : kCases) {
        const int failed_before = check::failed;
        std::mt19937 random(kSeed);
        const auto starts = static_cast<uint32_t>(the_case.layouts.size());
        const uint32_t steps = check::slow ? 300 : 10'000 / starts + 1;
        for (uint32_t start = 0; start < starts; start++) {
            Leases leases = leases_of(the_case);
            resize(leases, the_case.layouts[start]);
            for (const Counts& layout : the_case.layouts)
                prepare(leases, layout);
            walk(leases, the_case.layouts, random, steps);
            release(leases);
        }
        if (check::failed != failed_before)
            std::fprintf(stderr, "    %s\n", the_case.name);
    }
}

void layouts_prepared_between_changes_make_no_context() {
    for (const Case& the_case : kCases) {
        std::mt19937 random(kSeed);
        Leases leases = leases_of(the_case);
        for (const Counts& layout : the_case.layouts) {
            prepare(leases, layout);
            resize(leases, layout);
        }
        walk(leases, the_case.layouts, random, check::slow ? 300 : 3'000);
        // Preparing again keeps the sets.
        const uint64_t misses = cache_stats().misses;
        for (const Counts& layout : the_case.layouts)
            prepare(leases, layout);
        CHECK_EQ(cache_stats().misses, misses);
        release(leases);
    }
}

void released_lease_drops_its_layouts() {
    std::mt19937 random(kSeed);
    const Case& the_case = kCases[1];
    Leases leases = leases_of(the_case);
    for (const Counts& layout : the_case.layouts)
        prepare(leases, layout);
    for (std::size_t gone = 0; gone < leases.size(); gone++) {
        walk(leases, the_case.layouts, random, 200);
        const uint32_t had = sms(resource_of(leases[gone]));
        CHECK_OK(gcx_lease_release(leases[gone]));
        leases[gone] = acquire(had);
        for (const Counts& layout : the_case.layouts)
            prepare(leases, layout);
        walk(leases, the_case.layouts, random, check::slow ? 200 : 3'000);
    }
    // Without it the others' layouts stay, also while its successor has other SMs.
    Leases two = {leases[0], leases[1]};
    const std::vector<Counts> layouts = {{8, 24}, {16, 16}, {24, 8}};
    resize(leases, {16, 24, 84});
    for (const Counts& layout : layouts)
        prepare(two, layout);
    CHECK_OK(gcx_lease_release(leases[2]));
    leases[2] = acquire(60);
    walk(two, layouts, random, 500);
    release(leases);
}

// Prepares many layouts, as a policy does that tries all of them.
void hundred_layouts_make_no_context() {
    std::mt19937 random(kSeed);
    Leases leases = {acquire(8), acquire(8), acquire(GCX_REST)};
    std::vector<Counts> layouts;
    for (uint32_t a = 8; a <= 112; a += 8) {
        for (uint32_t b = 8; a + b <= 120; b += 8)
            layouts.push_back({a, b, GCX_REST});
    }
    CHECK_EQ(layouts.size(), 105U);
    CHECK_OK(gcx_cache_set_limit(400));
    for (const Counts& layout : layouts)
        prepare(leases, layout);
    walk(leases, layouts, random, check::slow ? 300 : 10'000);
    release(leases);
    CHECK_OK(gcx_cache_set_limit(64));
}

void prepared_layout_does_not_take_others_sms() {
    Leases two = {acquire(8), acquire(8)};
    prepare(two, {24, 24});
    const gcx_lease other = acquire(GCX_REST); // all that the layout would have
    CHECK_EQ(sms(resource_of(other)), 116U);
    const auto larger = sizes_of(two, {24, 24});
    CHECK_REFUSED(gcx_lease_resize(larger.data(), 2, 0), GCX_ERROR_ALREADY_ACQUIRED);
    resize({other}, {72});
    resize(two, {24, 24});
    Leases all = two;
    all.push_back(other);
    CHECK(have(all) == Counts({24, 24, 72}));
    release(all);
}

// Without prepared layouts, a lease that grows keeps its SMs, and one that shrinks gets no new
// ones.
void unprepared_change_keeps_sms() {
    std::mt19937 random(kSeed);
    Leases leases = {acquire(24), acquire(24), acquire(24)};
    for (int step = 0; step < (check::slow ? 50 : 500); step++) {
        std::vector<gcx_resource> before;
        Counts counts;
        for (gcx_lease lease : leases) {
            before.push_back(resource_of(lease));
            counts.push_back(8 * (1 + static_cast<uint32_t>(random() % 5)));
        }
        resize(leases, counts);
        for (std::size_t i = 0; i < leases.size(); i++) {
            const gcx_resource after = resource_of(leases[i]);
            CHECK_EQ(overlap(before[i], after), std::min(sms(before[i]), sms(after)));
        }
    }
    release(leases);
}

} // namespace

int main() {
    for (const char* driver : drivers({"12.4", "13.0", "13.5"})) {
        on_machine(std::string("h100@") + driver, [] {
            unprepared_change_keeps_sms();
            prepared_layout_does_not_take_others_sms();
            changes_among_prepared_layouts_make_no_context();
            layouts_prepared_between_changes_make_no_context();
            released_lease_drops_its_layouts();
            hundred_layouts_make_no_context();
        });
    }
    return check::summary("lease placement");
}
