// plan_split() against the rules that gcx.h documents at gcx_sm_split, written a second time here:
// as a search over all groups that could get the remainder atom.

#include "core/split.hpp"

#include "base/error.hpp"

#include "check.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace gcx;
using Counts = std::vector<uint32_t>;

struct NamedShape {
    const char* name;
    AtomShape shape;
};

const NamedShape kShapes[] = {
    {"H100 coscheduled", {15, 8, 12}},
    {"A100 coscheduled", {27, 4, 0}},
    {"H100 fine", {66, 2, 0}},
    {"H200 max-cluster", {5, 24, 12}},
    {"remainder atom of whole units", {14, 8, 16}},
    {"remainder atom below a unit", {18, 8, 4}},
    {"one atom", {1, 8, 0}},
    {"one atom and a remainder", {1, 8, 12}},
    {"tiny", {2, 2, 1}},
    {"single SMs", {5, 1, 0}},
    {"large remainder atom", {3, 4, 30}},
    {"the most atoms", {511, 2, 4}},
};

uint32_t below(std::mt19937& random, uint32_t bound) {
    return static_cast<uint32_t>(random() % bound);
}

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

// Returns the unit atoms that a group needs, with or without the remainder atom.
uint64_t units_needed(const AtomShape& shape, uint64_t count, bool with_remainder) {
    const uint64_t rest =
        with_remainder ? count - std::min(count, uint64_t{shape.remainder_size}) : count;
    return (rest + shape.unit_size - 1) / shape.unit_size;
}

struct Model {
    const AtomShape& shape;
    uint32_t units;
    bool has_remainder;
    const Counts& counts;

    // Returns the unit atoms that all groups need if group holder has the remainder atom.
    uint64_t units_with(std::optional<std::size_t> holder) const {
        uint64_t total = 0;
        for (std::size_t i = 0; i < counts.size(); i++)
            total += counts[i] == kRest ? 0 : units_needed(shape, counts[i], holder == i);
        return total;
    }
    bool exact_with(std::optional<std::size_t> holder) const {
        for (std::size_t i = 0; i < counts.size(); i++) {
            if (counts[i] == kRest)
                continue;
            const bool remainder = holder == i;
            const uint64_t given = units_needed(shape, counts[i], remainder) * shape.unit_size +
                                   (remainder ? shape.remainder_size : 0);
            if (given != counts[i])
                return false;
        }
        return true;
    }
    // Returns whether the counts fit for any holder of the remainder atom and leave an atom for
    // each group of kRest.
    bool possible(bool exact) const {
        const auto rests = static_cast<uint64_t>(std::count(counts.begin(), counts.end(), kRest));
        const auto fits = [&](std::optional<std::size_t> holder) {
            const uint64_t used = units_with(holder);
            if (used > units || (exact && !exact_with(holder)))
                return false;
            const uint64_t left = units - used + (has_remainder && !holder ? 1 : 0);
            return left >= rests;
        };
        if (fits(std::nullopt))
            return true;
        for (std::size_t i = 0; has_remainder && i < counts.size(); i++) {
            if (counts[i] != kRest && fits(i))
                return true;
        }
        return false;
    }
};

// Checks what holds for every plan. Returns whether there is one.
bool check_plan(const AtomShape& shape, const AtomSet& input, const Counts& counts, bool exact) {
    const bool has_remainder = shape.remainder_size != 0 && input.contains(shape.unit_count);
    const auto units = static_cast<uint32_t>(input.count()) - (has_remainder ? 1U : 0U);
    const Model model{shape, units, has_remainder, counts};
    const Outcome outcome = plan_of(shape, input, counts, exact);
    if (!outcome.plan) {
        if (model.possible(exact))
            CHECK_EQ(outcome.message, "a plan, since one is possible");
        return false;
    }
    const SplitPlan& plan = *outcome.plan;
    CHECK(model.possible(exact));
    CHECK_EQ(plan.groups.size(), counts.size());
    AtomSet used;
    std::size_t atoms = 0;
    uint32_t sms = 0;
    for (std::size_t i = 0; i < counts.size(); i++) {
        const AtomSet& group = plan.groups[i];
        const uint32_t given = shape.sm_count(group);
        const bool remainder = has_remainder && group.contains(shape.unit_count);
        used = used | group;
        atoms += group.count();
        sms += given;
        CHECK(!group.empty());
        if (counts[i] == kRest)
            continue;
        CHECK(given >= counts[i]);
        if (exact)
            CHECK_EQ(given, counts[i]);
        // No group has more unit atoms than it needs.
        CHECK_EQ(group.count() - (remainder ? 1 : 0), units_needed(shape, counts[i], remainder));
    }
    CHECK_EQ(used.count(), atoms); // disjoint
    CHECK((used - input).empty());
    CHECK(plan.remainder == input - used);
    CHECK_EQ(sms + shape.sm_count(plan.remainder), shape.sm_count(input));
    if (std::count(counts.begin(), counts.end(), kRest) != 0)
        CHECK(plan.remainder.empty());
    return true;
}

// Returns what a single count gives according to gcx.h.
std::optional<uint64_t> expected_single(const AtomShape& shape, uint32_t count) {
    std::optional<uint64_t> least;
    for (const bool remainder : {false, true}) {
        const uint64_t units = units_needed(shape, count, remainder);
        const uint64_t given = units * shape.unit_size + (remainder ? shape.remainder_size : 0);
        if ((!remainder || shape.remainder_size != 0) && units <= shape.unit_count &&
            (!least || given < *least))
            least = given;
    }
    return least;
}

void single_count_is_rounded_to_atoms() {
    for (const auto& [name, shape] : kShapes) {
        const AtomSet all = shape.all();
        const uint32_t total = shape.sm_count(all);
        for (uint32_t count = 1; count <= total + 1; count++) {
            check_plan(shape, all, {count}, false);
            const Outcome outcome = plan_of(shape, all, {count}, false);
            const std::optional<uint64_t> expected = expected_single(shape, count);
            CHECK_EQ(outcome.plan.has_value(), expected.has_value());
            if (outcome.plan && expected)
                CHECK_EQ(shape.sm_count(outcome.plan->groups[0]), *expected);
            if (!outcome.plan) {
                CHECK(outcome.message.find(std::to_string(count)) != std::string::npos);
                CHECK(outcome.message.find(std::to_string(total)) != std::string::npos);
            }
            check_plan(shape, all, {count, kRest}, false);
            check_plan(shape, all, {kRest, count}, false);
        }
        CHECK(!check_plan(shape, all, {total + 1}, false));
        CHECK(check_plan(shape, all, {total}, false));
    }
}

void exact_split_is_exact_or_refused() {
    for (const auto& [name, shape] : kShapes) {
        const AtomSet all = shape.all();
        const uint32_t total = shape.sm_count(all);
        for (uint32_t count = 1; count <= total + 1; count++) {
            const bool of_units =
                count % shape.unit_size == 0 && count / shape.unit_size <= shape.unit_count;
            const bool with_remainder =
                shape.remainder_size != 0 && count >= shape.remainder_size &&
                (count - shape.remainder_size) % shape.unit_size == 0 &&
                (count - shape.remainder_size) / shape.unit_size <= shape.unit_count;
            CHECK_EQ(check_plan(shape, all, {count}, true), of_units || with_remainder);
        }
        // The whole input is always an exact count.
        CHECK(check_plan(shape, all, {total}, true));
    }
}

void pairs_and_triples_follow_the_rules() {
    std::mt19937 random(7);
    for (const auto& [name, shape] : kShapes) {
        const AtomSet all = shape.all();
        const uint32_t total = shape.sm_count(all);
        int made = 0;
        for (int round = 0; round < 1500; round++) {
            Counts counts(1 + random() % 4);
            uint32_t left = total + total / 8 + 1;
            for (uint32_t& count : counts) {
                const bool rest = below(random, 6) == 0;
                count = rest ? kRest : 1 + below(random, left);
                left = std::max(left - (rest ? 0 : std::min(left, count)), 1U);
            }
            made += check_plan(shape, all, counts, random() % 4 == 0) ? 1 : 0;
        }
        CHECK(made > 20);
    }
}

void every_pair_of_an_h100() {
    const AtomShape shape = kShapes[0].shape;
    for (uint32_t a = 1; a <= 133; a++) {
        for (uint32_t b = 1; b <= 133; b += 1 + b % 3)
            check_plan(shape, shape.all(), {a, b}, false);
    }
}

void examples_of_the_header_hold() {
    const AtomShape h100 = kShapes[0].shape;
    const auto sizes = [&](const Counts& counts, bool exact = false) {
        const Outcome outcome = plan_of(h100, h100.all(), counts, exact);
        Counts given;
        if (outcome.plan) {
            for (const AtomSet& group : outcome.plan->groups)
                given.push_back(h100.sm_count(group));
            given.push_back(h100.sm_count(outcome.plan->remainder));
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
    for (const auto& [name, shape] : kShapes) {
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
    for (const auto& [name, shape] : kShapes) {
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

void rest_is_shared_evenly() {
    for (const auto& [name, shape] : kShapes) {
        const AtomSet all = shape.all();
        const uint32_t atoms = shape.atom_count();
        for (uint32_t rests = 1; rests <= std::min(atoms + 1, 40U); rests++) {
            const Outcome outcome = plan_of(shape, all, Counts(rests, kRest), false);
            CHECK_EQ(outcome.plan.has_value(), rests <= atoms);
            if (!outcome.plan)
                continue;
            uint32_t least = UINT32_MAX;
            uint32_t most = 0;
            for (const AtomSet& group : outcome.plan->groups) {
                least = std::min(least, shape.sm_count(group));
                most = std::max(most, shape.sm_count(group));
            }
            CHECK(least > 0);
            // Of equals the first have more. The last may have the remainder atom.
            for (std::size_t i = 2; i < outcome.plan->groups.size(); i++)
                CHECK(shape.sm_count(outcome.plan->groups[i - 2]) >=
                      shape.sm_count(outcome.plan->groups[i - 1]));
            CHECK(most - least <= std::max(shape.unit_size, shape.remainder_size));
            CHECK(outcome.plan->remainder.empty());
        }
    }
}

// Groups, remainders and sets with gaps are split like whole devices.
void subsets_are_split_like_devices() {
    std::mt19937 random(8);
    for (const auto& [name, shape] : kShapes) {
        for (int round = 0; round < 200; round++) {
            AtomSet input;
            for (uint32_t atom = 0; atom < shape.atom_count(); atom++) {
                if (random() % 3 != 0)
                    input.add(atom);
            }
            const uint32_t total = shape.sm_count(input);
            Counts counts(1 + random() % 3);
            for (uint32_t& count : counts)
                count = total == 0 ? 1 : below(random, 6) == 0 ? kRest : 1 + below(random, total);
            check_plan(shape, input, counts, random() % 3 == 0);
            CHECK(!check_plan(shape, input, {total + 1}, false));
            CHECK_EQ(check_plan(shape, input, {kRest}, false), total != 0);
            if (total != 0)
                CHECK(check_plan(shape, input, {total}, true));
        }
    }
}

void huge_count_is_refused() {
    for (const auto& [name, shape] : kShapes) {
        for (const uint32_t huge : {kRest - 1, kRest - 8, 1U << 31}) {
            CHECK(!check_plan(shape, shape.all(), {huge}, false));
            CHECK(!check_plan(shape, shape.all(), {huge}, true));
            CHECK(!check_plan(shape, shape.all(), {huge, huge}, false));
            CHECK(!check_plan(shape, shape.all(), {8, huge, kRest}, false));
        }
    }
}

} // namespace

int main() {
    single_count_is_rounded_to_atoms();
    exact_split_is_exact_or_refused();
    pairs_and_triples_follow_the_rules();
    every_pair_of_an_h100();
    examples_of_the_header_hold();
    larger_first_group_contains_the_smaller();
    group_with_the_remainder_atom_is_last();
    rest_is_shared_evenly();
    subsets_are_split_like_devices();
    huge_count_is_refused();
    return check::summary("planner");
}
