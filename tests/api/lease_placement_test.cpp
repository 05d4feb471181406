// Tests which SMs the leases of a change get: the sets of prepared layouts come back, so random
// changes among them create no context, and gcx_lease_get_layout() tells them ahead.

#include "leases.hpp"
#include "support.hpp"

#include <algorithm>
#include <cstring>
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
    CHECK_OK(support::prepare(sizes_of(leases, counts)));
}

void resize(const Leases& leases, const Counts& counts) {
    CHECK_OK(support::resize(sizes_of(leases, counts)));
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
    CHECK_REFUSED(support::resize(sizes_of(two, {24, 24})), GCX_ERROR_ALREADY_ACQUIRED);
    resize({other}, {72});
    resize(two, {24, 24});
    Leases all = two;
    all.push_back(other);
    CHECK(have(all) == Counts({24, 24, 72}));
    release(all);
}

// Returns what gcx_lease_get_layout() answers: the leases' resources, then the remainder.
std::vector<gcx_resource> layout(const std::vector<gcx_lease_size>& sizes) {
    std::vector<gcx_resource> found(sizes.size() + 1);
    CHECK_OK(gcx_lease_get_layout(sizes.data(), static_cast<uint32_t>(sizes.size()), found.data(),
                                  &found.back()));
    return found;
}

bool equal(const gcx_resource& a, const gcx_resource& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

// The last message without the name of the function.
std::string reason() {
    const std::string message = gcx_last_error_message();
    return message.substr(message.find(':') + 1);
}

// Compares layouts of random sizes with what the same resize gives, also where it fails. The last
// of the leases is shared, and one that is in no request has SMs too.
void layout_is_what_a_resize_gives() {
    Random random(kSeed);
    const gcx_lease other = acquire(16);
    const Leases leases = {acquire(24), acquire(40), acquire(16, nullptr, GCX_LEASE_SHARED)};
    uint32_t granted = 0;
    uint32_t refused = 0;
    for (int step = 0; step < (check::slow ? 100 : 1'000); step++) {
        std::vector<gcx_lease_size> sizes;
        for (gcx_lease lease : leases) {
            const uint32_t kind = random.below(8);
            if (kind == 0)
                sizes.push_back({lease, 0, GCX_SIZE_PARKED});
            else if (kind < 7)
                sizes.push_back({lease, kind == 1 ? GCX_REST : 1 + random.below(60), 0});
        }
        if (sizes.empty())
            continue;
        const auto count = static_cast<uint32_t>(sizes.size());
        std::vector<gcx_resource> planned(count + 1);
        const uint64_t misses = cache_stats().misses;
        const gcx_result result =
            gcx_lease_get_layout(sizes.data(), count, planned.data(), &planned.back());
        const std::string message = reason();
        CHECK_EQ(cache_stats().misses, misses);
        CHECK_EQ(gcx_lease_resize(sizes.data(), count, 0), result);
        if (result != GCX_SUCCESS) {
            CHECK_EQ(message, reason());
            refused++;
            continue;
        }
        granted++;
        gcx_resource left = without(whole_device(), resource_of(other));
        for (gcx_lease lease : leases)
            left = without(left, resource_of(lease));
        for (uint32_t i = 0; i < count; i++)
            CHECK(equal(planned[i], resource_of(sizes[i].lease)));
        CHECK_EQ(sms(planned.back()), sms(left));
        CHECK_EQ(overlap(planned.back(), left), sms(left));
    }
    CHECK(granted > 30 && refused > 0);
    release_all({}, {leases[0], leases[1], leases[2], other});
}

// Random changes between the layout and the resize do not matter.
void prepared_layout_is_reported_from_any_other() {
    Leases leases = {acquire(24), acquire(40), acquire(GCX_REST)};
    const std::vector<Counts> layouts = {{24, 40, 68}, {8, 40, 84}, {40, 24, 68}, {56, 40, 36}};
    std::vector<std::vector<gcx_resource>> reported;
    for (const Counts& counts : layouts) {
        prepare(leases, counts);
        reported.push_back(layout(sizes_of(leases, counts)));
    }
    Random random(kSeed);
    for (int step = 0; step < 200; step++) {
        const std::size_t which = random.below(static_cast<uint32_t>(layouts.size()));
        const auto now = layout(sizes_of(leases, layouts[which]));
        CHECK(std::equal(now.begin(), now.end(), reported[which].begin(), equal));
        resize(leases, layouts[which]);
        for (std::size_t i = 0; i < leases.size(); i++)
            CHECK(equal(resource_of(leases[i]), reported[which][i]));
    }
    release(leases);
}

// A failure writes nothing, and the remainder is the reservation's or excludes other families.
void layout_counts_only_sms_in_reach() {
    gcx_resource found{};
    gcx_resource remainder{};
    const gcx_lease lease = acquire(24);
    gcx_lease_size size = {lease, 64, 0};
    CHECK_REFUSED(gcx_lease_get_layout(&size, 1, nullptr, &remainder), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_lease_get_layout(&size, 1, &found, nullptr), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_lease_get_layout(&size, 0, &found, &remainder), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_lease_get_layout(nullptr, 1, &found, &remainder), GCX_ERROR_INVALID_VALUE);
    const gcx_lease_size twice[] = {size, size};
    gcx_resource two[2] = {};
    CHECK_REFUSED(gcx_lease_get_layout(twice, 2, two, &remainder), GCX_ERROR_INVALID_VALUE);
    size.sm_count = 133;
    CHECK_REFUSED(gcx_lease_get_layout(&size, 1, &found, &remainder),
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK(equal(found, gcx_resource{}) && equal(remainder, gcx_resource{}));

    CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
    CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_FINE));
    const gcx_lease fine = acquire(4, {.family = GCX_SM_FAMILY_FINE});
    size.sm_count = 64;
    CHECK_OK(gcx_lease_get_layout(&size, 1, &found, &remainder));
    CHECK_EQ(sms(found), 64U);
    CHECK_EQ(overlap(remainder, resource_of(fine)), 0U);
    CHECK(sms(remainder) >= 132 - 64 - 2 * 8);
    release_all({}, {lease, fine});
}

} // namespace

int main() {
    for (const char* driver : drivers({"12.4", "13.0", "13.5"})) {
        on_machine(std::string("h100@") + driver, [] {
            prepared_layout_does_not_take_others_sms();
            changes_among_prepared_layouts_make_no_context();
            layouts_prepared_between_changes_make_no_context();
            released_lease_drops_its_layouts();
            hundred_layouts_make_no_context();
            layout_is_what_a_resize_gives();
            prepared_layout_is_reported_from_any_other();
            layout_counts_only_sms_in_reach();
        });
    }
    return check::summary("lease placement");
}
