// Tests plan_split() with the header's examples, on shapes that no GPU has, and with huge requests.
// The vectors compare it with an exhaustive search (tests/vectors/planner.py).

#include "core/split.hpp"

#include "base/error.hpp"

#include "check.hpp"

#include <ctime>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace gcx;
using Counts = std::vector<uint32_t>;

// The families of every simulated GPU, and shapes that none has.
const AtomShape kShapes[] = {
    {15, 8, 12},                           // H100 and H200: coscheduled
    {66, 2, 0},                            // fine
    {5, 24, 12},                           // max-cluster
    {16, 8, 20},                           // B200
    {74, 2, 0},  {6, 24, 4},  {16, 8, 24}, // GB200: a remainder atom of whole units
    {76, 2, 0},  {6, 24, 8},  {27, 4, 0},  // A100
    {54, 2, 0},  {32, 4, 0},               // RTX 4090
    {64, 2, 0},  {35, 4, 2},               // L40S
    {71, 2, 0},  {4, 4, 0},                // Orin
    {8, 2, 0},   {1, 8, 0},   {1, 8, 12},  {2, 2, 1}, {3, 4, 30},
    {9, 1, 5},   {14, 8, 16}, {18, 8, 4},  {5, 1, 0},
};
const AtomShape kH100 = kShapes[0];

struct Outcome {
    std::optional<SplitPlan> plan;
    std::string message;
};

Outcome plan_of(const AtomShape& shape, const AtomSet& input, const Counts& counts, bool exact) {
    try {
        return {plan_split(shape, input, counts, exact, "here"), ""};
    } catch (const Error& error) {
        CHECK_EQ(error.result, GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        CHECK(!error.message.empty());
        return {std::nullopt, error.message};
    }
}

void examples_of_the_header_hold() {
    const auto sizes = [&](const Counts& counts, bool exact = false) {
        const Outcome outcome = plan_of(kH100, kH100.all(), counts, exact);
        Counts given;
        if (outcome.plan) {
            for (const AtomSet& group : outcome.plan->groups)
                given.push_back(kH100.sm_count(group));
            given.push_back(kH100.sm_count(outcome.plan->remainder));
        }
        return given;
    };
    CHECK(sizes({108, 24}) == Counts({108, 24, 0}));
    CHECK(sizes({24, 108}) == Counts({24, 108, 0}));
    CHECK(sizes({8, 16, 24}) == Counts({8, 16, 24, 84}));
    CHECK(sizes({7, 10, 17}) == Counts({8, 12, 24, 88}));
    CHECK(sizes({12}) == Counts({12, 120}));
    CHECK(sizes({10}) == Counts({12, 120}));
    CHECK(sizes({17}) == Counts({20, 112}));
    CHECK(sizes({17, 10}) == Counts({20, 16, 96})); // 24 and 12 are as many: by the order
    CHECK(sizes({12}, true) == Counts({12, 120}));
    CHECK(sizes({132}) == Counts({132, 0}));
    CHECK(sizes({121}) ==
          Counts({124, 8})); // 128 would not fit, 14 units and the remainder atom do
    CHECK(sizes({57, 16, 48, kRest}) == Counts({60, 16, 48, 8, 0}));
    CHECK(sizes({16, 57, 48, kRest}) == Counts({16, 60, 48, 8, 0}));
    CHECK(sizes({113, kRest, kRest}) == Counts({116, 8, 8, 0}));
    CHECK(sizes({120, 5}) == Counts({120, 12, 0})); // 124 and 8 would meet neither exactly
    CHECK(sizes({5, 120}) == Counts({12, 120, 0}));
    CHECK(sizes({8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}) ==
          Counts({12, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 0}));
    CHECK(sizes({133}).empty());
    CHECK(sizes({10}, true).empty());
    CHECK(sizes({8, kRest}) == Counts({8, 124, 0}));
    CHECK(sizes({kRest, kRest, kRest}) == Counts({48, 40, 44, 0})); // of equals the first have more
}

// A larger first group contains the smaller one, unless it has the remainder atom.
void larger_first_group_contains_the_smaller() {
    for (const AtomShape& shape : kShapes) {
        const AtomSet all = shape.all();
        AtomSet before;
        for (uint32_t count = 1; count <= shape.unit_count * shape.unit_size; count++) {
            const Outcome outcome = plan_of(shape, all, {count}, false);
            if (!outcome.plan || outcome.plan->groups[0].contains(shape.unit_count))
                continue;
            CHECK((before - outcome.plan->groups[0]).empty());
            CHECK(outcome.plan->groups[0] == AtomSet::first(outcome.plan->groups[0].count()));
            before = outcome.plan->groups[0];
        }
    }
}

// A group with the remainder atom runs up to the last atom, like the remainder of a direct split.
void group_with_the_remainder_atom_is_last() {
    for (const AtomShape& shape : kShapes) {
        if (shape.remainder_size == 0)
            continue;
        const AtomSet all = shape.all();
        for (uint32_t units = 1; units <= shape.unit_count; units++) {
            const uint32_t count = units * shape.unit_size + shape.remainder_size;
            const Outcome outcome = plan_of(shape, all, {count}, true);
            CHECK(outcome.plan.has_value());
            if (!outcome.plan || !outcome.plan->groups[0].contains(shape.unit_count))
                continue;
            CHECK(outcome.plan->groups[0] == all - AtomSet::first(shape.unit_count - units));
        }
    }
}

void too_many_requests_are_refused_quickly() {
    for (const uint32_t count : {kRest, 1U, 8U, kRest - 1}) {
        const Counts counts(100'000, count);
        const std::clock_t start = std::clock();
        const Outcome outcome = plan_of(kH100, kH100.all(), counts, false);
        const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
        CHECK(!outcome.plan);
        CHECK(outcome.message.size() < 300);
        // CPU time is a millisecond or two. If it were quadratic in the requests, it would be a
        // minute.
        CHECK(seconds < 1);
    }
    // As many requests as an input can have atoms.
    const AtomShape most = {512, 2, 0};
    CHECK(plan_of(most, most.all(), Counts(512, 1), false).plan.has_value());
    CHECK(plan_of(most, most.all(), Counts(512, 3), false).message.size() < 300);
    CHECK(plan_of(most, most.all(), Counts(512, 3), true).message.size() < 300);
}

// The sizes after the last ';': "; 68 + 64 can be given".
Counts suggested_by(const std::string& message) {
    Counts sizes;
    const std::size_t begin = message.rfind("; ") + 2;
    if (!message.ends_with(" can be given"))
        return sizes;
    std::istringstream words(message.substr(begin));
    for (uint32_t size = 0; words >> size;) {
        sizes.push_back(size);
        char plus = 0;
        words >> plus;
    }
    return sizes;
}

void refused_counts_that_are_there_come_with_sizes_that_fit() {
    CHECK(suggested_by(plan_of(kH100, kH100.all(), {66, 66}, false).message) == Counts({68, 64}));
    CHECK(suggested_by(plan_of(kH100, kH100.all(), {66, 66}, true).message) == Counts({68, 64}));
    CHECK(suggested_by(plan_of(kH100, kH100.all(), {66, 67}, false).message).empty());
    uint32_t refused = 0;
    for (const AtomShape& shape : kShapes) {
        const uint32_t most = shape.sm_count(shape.all());
        for (uint32_t a = 1; a < most; a++) {
            for (const uint32_t b : {(most - a + 1) / 2, most - a}) {
                const Outcome outcome = plan_of(shape, shape.all(), {a, b}, false);
                if (outcome.plan || shape.atom_count() < 2)
                    continue;
                refused++;
                const Counts sizes = suggested_by(outcome.message);
                CHECK(sizes.size() == 2 && plan_of(shape, shape.all(), sizes, true).plan);
            }
        }
    }
    CHECK(refused > 100);
}

} // namespace

int main() {
    examples_of_the_header_hold();
    larger_first_group_contains_the_smaller();
    group_with_the_remainder_atom_is_last();
    too_many_requests_are_refused_quickly();
    refused_counts_that_are_there_come_with_sizes_that_fit();
    return check::summary("planner");
}
