// plan_split() against the rules that gcx.h documents at gcx_sm_split, written a second time here:
// as an exhaustive search over who gets the remainder atom and how many unit atoms each group gets.

#include "core/split.hpp"

#include "base/error.hpp"

#include "check.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace gcx;
using Counts = std::vector<uint32_t>;

constexpr unsigned kSeed = 20261121;
constexpr int kNoHolder = -1; // no counted group has the remainder atom

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
const AtomShape kMaxAtoms = {511, 2, 4};

// Compares two plans; smaller is better.
struct Cost {
    uint64_t beyond = 0; // SMs beyond the counts
    uint32_t rounded = 0;
    auto operator<=>(const Cost&) const = default;
};

class Search {
  public:
    Search(const AtomShape& shape, const AtomSet& input, const Counts& counts)
        : shape_(shape), counts_(counts),
          has_remainder_(shape.remainder_size != 0 && input.contains(shape.unit_count)),
          units_(input.count() - (has_remainder_ ? 1 : 0)),
          rests_(static_cast<std::size_t>(std::count(counts.begin(), counts.end(), kRest))) {}

    // Returns which group gets the remainder atom, or nothing if the counts do not fit.
    std::optional<int> holder() const {
        std::optional<int> found;
        std::optional<Cost> least;
        for (int holder = kNoHolder; holder < static_cast<int>(counts_.size()); holder++) {
            const std::optional<Cost> its = cost(holder);
            if (its && (!least || *its < *least)) {
                least = its;
                found = holder;
            }
        }
        return found;
    }

    // Returns the lowest cost if this group has the remainder atom.
    std::optional<Cost> cost(int holder) const {
        if (holder != kNoHolder &&
            (!has_remainder_ || counts_[static_cast<std::size_t>(holder)] == kRest))
            return std::nullopt;
        // By number of unit atoms used so far.
        std::vector<std::optional<Cost>> best(units_ + 1);
        best[0] = Cost{};
        for (std::size_t i = 0; i < counts_.size(); i++) {
            if (counts_[i] == kRest)
                continue;
            const bool remainder = static_cast<int>(i) == holder;
            std::vector<std::optional<Cost>> next(units_ + 1);
            for (std::size_t units = 0; units <= units_; units++) {
                const uint64_t given =
                    units * shape_.unit_size + (remainder ? shape_.remainder_size : 0);
                if (given < counts_[i])
                    continue;
                const bool exact = given == counts_[i];
                for (std::size_t used = 0; used + units <= units_; used++) {
                    if (!best[used])
                        continue;
                    const Cost cost{best[used]->beyond + given - counts_[i],
                                    best[used]->rounded + (exact ? 0 : 1)};
                    std::optional<Cost>& slot = next[used + units];
                    if (!slot || cost < *slot)
                        slot = cost;
                }
            }
            best = std::move(next);
        }
        std::optional<Cost> least;
        for (std::size_t used = 0; used <= units_; used++) {
            const std::size_t left =
                units_ - used + (has_remainder_ && holder == kNoHolder ? 1 : 0);
            if (best[used] && left >= rests_ && (!least || *best[used] < *least))
                least = best[used];
        }
        return least;
    }

    // Returns the smallest possible difference between the shares of the rest.
    uint32_t smallest_spread(uint32_t units, bool remainder) const {
        uint32_t smallest = UINT32_MAX;
        const auto others = static_cast<uint32_t>(rests_) - (remainder ? 1 : 0);
        for (uint32_t with_remainder = 0; with_remainder <= (remainder ? units : 0);
             with_remainder++) {
            const uint32_t shared = units - with_remainder;
            if (shared < others || (others == 0 && shared != 0))
                continue;
            uint32_t least =
                remainder ? with_remainder * shape_.unit_size + shape_.remainder_size : UINT32_MAX;
            uint32_t most = remainder ? least : 0;
            if (others != 0) {
                least = std::min(least, shared / others * shape_.unit_size);
                most = std::max(most, (shared + others - 1) / others * shape_.unit_size);
            }
            smallest = std::min(smallest, most - least);
        }
        return smallest;
    }

  private:
    const AtomShape& shape_;
    const Counts& counts_;
    bool has_remainder_;
    std::size_t units_;
    std::size_t rests_;
};

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

void check_sets(const AtomSet& input, const Counts& counts, const SplitPlan& plan) {
    AtomSet used;
    std::size_t atoms = 0;
    for (const AtomSet& group : plan.groups) {
        CHECK(!group.empty());
        used = used | group;
        atoms += group.count();
    }
    CHECK_EQ(used.count(), atoms); // disjoint
    CHECK((used - input).empty());
    CHECK(plan.remainder == input - used);
    if (std::count(counts.begin(), counts.end(), kRest) != 0)
        CHECK(plan.remainder.empty());
}

struct Found {
    int holder = kNoHolder;
    Cost cost;
    Counts rests; // SMs of those who asked for the rest
    uint32_t rest_units = 0;
    bool rest_has_remainder = false;
};

Found read(const AtomShape& shape, const Counts& counts, const SplitPlan& plan) {
    Found found;
    for (std::size_t i = 0; i < counts.size(); i++) {
        const uint32_t given = shape.sm_count(plan.groups[i]);
        const bool remainder =
            shape.remainder_size != 0 && plan.groups[i].contains(shape.unit_count);
        if (counts[i] == kRest) {
            found.rests.push_back(given);
            found.rest_has_remainder = found.rest_has_remainder || remainder;
            found.rest_units += static_cast<uint32_t>(plan.groups[i].count()) - (remainder ? 1 : 0);
            continue;
        }
        CHECK(given >= counts[i]);
        found.cost.beyond += given - counts[i];
        found.cost.rounded += given == counts[i] ? 0 : 1;
        if (remainder)
            found.holder = static_cast<int>(i);
    }
    return found;
}

void describe(const AtomShape& shape, const AtomSet& input, const Counts& counts) {
    std::fprintf(stderr, "    atoms %u x %u + %u, %zu of them, asked:", shape.unit_count,
                 shape.unit_size, shape.remainder_size, input.count());
    for (const uint32_t count : counts)
        std::fprintf(stderr, " %u", count);
    std::fprintf(stderr, "\n");
}

// Checks that the counts which a message recommends fit: "...; 8 + 16 can".
void check_advice(const AtomShape& shape, const AtomSet& input, const Counts& counts,
                  const std::string& message) {
    const std::size_t end = message.rfind(" can");
    if (end == std::string::npos || message.find("exactly") == std::string::npos)
        return;
    const char* text = message.c_str() + message.rfind("; ") + 2;
    Counts advised = counts;
    for (uint32_t& count : advised) {
        if (count == kRest)
            continue;
        char* after = nullptr;
        count = static_cast<uint32_t>(std::strtoul(text, &after, 10));
        text = after + std::string(" + ").size();
    }
    CHECK(plan_of(shape, input, advised, true).plan.has_value());
}

void check_request(const AtomShape& shape, const AtomSet& input, const Counts& counts) {
    const int failed_before = check::failed;
    const Search search(shape, input, counts);
    const std::optional<int> expected = search.holder();
    const Outcome outcome = plan_of(shape, input, counts, false);
    CHECK_EQ(outcome.plan.has_value(), expected.has_value());
    if (outcome.plan && expected) {
        check_sets(input, counts, *outcome.plan);
        const Found found = read(shape, counts, *outcome.plan);
        CHECK_EQ(found.holder, *expected);
        CHECK(found.cost == search.cost(*expected));
        if (!found.rests.empty()) {
            const auto [least, most] = std::minmax_element(found.rests.begin(), found.rests.end());
            CHECK_EQ(*most - *least,
                     search.smallest_spread(found.rest_units, found.rest_has_remainder));
            // Of equals the first have more. The last may have the remainder atom.
            for (std::size_t i = 2; i < found.rests.size(); i++)
                CHECK(found.rests[i - 2] >= found.rests[i - 1]);
        }
    }
    const Outcome exact = plan_of(shape, input, counts, true);
    const bool can_be_exact = expected && search.cost(*expected)->rounded == 0;
    CHECK_EQ(exact.plan.has_value(), can_be_exact);
    if (exact.plan && outcome.plan)
        CHECK(exact.plan->groups == outcome.plan->groups);
    if (!exact.plan)
        check_advice(shape, input, counts, exact.message);
    if (check::failed != failed_before)
        describe(shape, input, counts);
}

class Requests {
  public:
    explicit Requests(unsigned seed) : random_(seed) {}

    uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

    AtomSet input(const AtomShape& shape) {
        if (below(3) == 0)
            return shape.all();
        AtomSet set;
        const uint32_t share = 1 + below(4);
        for (uint32_t atom = 0; atom < shape.atom_count(); atom++) {
            if (below(5) <= share)
                set.add(atom);
        }
        return set;
    }

    // Sums near the input's size are the difficult ones.
    Counts counts(const AtomShape& shape, const AtomSet& input) {
        Counts counts(1 + below(5));
        uint32_t left = shape.sm_count(input) + below(shape.unit_size + 1);
        for (std::size_t i = 0; i < counts.size(); i++) {
            uint32_t count = 1 + below(std::max(left, 1U));
            if (i + 1 == counts.size() && below(2) == 0)
                count = std::max(left, 1U);
            if (below(3) == 0)
                count = std::max(count / shape.unit_size, 1U) * shape.unit_size;
            const bool rest = below(6) == 0;
            counts[i] = rest ? kRest : count;
            left -= rest ? 0 : std::min(left, count);
        }
        std::shuffle(counts.begin(), counts.end(), random_);
        return counts;
    }

  private:
    std::mt19937 random_;
};

void random_requests_match_the_search() {
    std::printf("seed %u\n", kSeed);
    Requests requests(kSeed);
    uint64_t asked = 0;
    for (const AtomShape& shape : kShapes) {
        // The search takes time quadratic in the number of atoms. Fewer are enough for sanitizers.
        const uint32_t all = shape.unit_count > 40 ? 1500 : shape.unit_count > 20 ? 8000 : 20000;
        const uint32_t rounds = check::slow ? all / 20 : all;
        for (uint32_t round = 0; round < rounds; round++) {
            const AtomSet input = requests.input(shape);
            const uint32_t total = shape.sm_count(input);
            check_request(shape, input, requests.counts(shape, input));
            if (round % 100 == 0) {
                for (const uint32_t count : {total, total + 1, kRest})
                    check_request(shape, input, {count == 0 ? 1 : count});
            }
            asked++;
        }
    }
    std::printf("%llu random requests\n", static_cast<unsigned long long>(asked));
}

// The order of the requests decides who gets the remainder atom, but neither fit nor cost.
void order_of_requests_does_not_change_cost() {
    Requests requests(kSeed + 1);
    std::mt19937 random(kSeed + 2);
    for (const AtomShape& shape : kShapes) {
        for (int round = 0; round < (check::slow ? 100 : 2000); round++) {
            const AtomSet input = requests.input(shape);
            Counts counts = requests.counts(shape, input);
            const Outcome one = plan_of(shape, input, counts, false);
            std::optional<Cost> cost;
            if (one.plan)
                cost = read(shape, counts, *one.plan).cost;
            std::shuffle(counts.begin(), counts.end(), random);
            const Outcome other = plan_of(shape, input, counts, false);
            CHECK_EQ(other.plan.has_value(), one.plan.has_value());
            if (other.plan)
                CHECK(read(shape, counts, *other.plan).cost == cost);
        }
    }
}

void rest_is_shared_with_the_smallest_spread() {
    for (const AtomShape& shape : kShapes) {
        const uint32_t step = (check::slow ? 5 : 1) * shape.unit_size;
        for (uint32_t count = 0; count <= shape.sm_count(shape.all()); count += step) {
            for (std::size_t rests = 1; rests <= shape.atom_count() + 1; rests++) {
                Counts counts(rests, kRest);
                if (count != 0)
                    counts.insert(counts.begin(), count);
                check_request(shape, shape.all(), counts);
            }
        }
    }
}

void single_count_is_rounded_to_atoms() {
    for (const AtomShape& shape : kShapes) {
        const uint32_t total = shape.sm_count(shape.all());
        for (uint32_t count = 1; count <= total + 1; count++) {
            for (const Counts& counts : {Counts{count}, {count, kRest}, {kRest, count}})
                check_request(shape, shape.all(), counts);
            const Outcome outcome = plan_of(shape, shape.all(), {count}, false);
            CHECK_EQ(outcome.plan.has_value(), count <= total);
            if (!outcome.plan) {
                CHECK(outcome.message.find(std::to_string(count)) != std::string::npos);
                CHECK(outcome.message.find(std::to_string(total)) != std::string::npos);
            }
        }
        for (const uint32_t huge : {kRest - 1, kRest - 8, 1U << 31}) {
            for (const Counts& counts : {Counts{huge}, {huge, huge}, {8, huge, kRest}})
                check_request(shape, shape.all(), counts);
        }
    }
}

void every_pair_of_an_h100() {
    for (uint32_t a = 1; a <= 133; a++) {
        for (uint32_t b = 1; b <= 133; b += 1 + b % 3)
            check_request(kH100, kH100.all(), {a, b});
    }
}

// As many atoms as an input can have. The search takes time quadratic in their number.
void most_atoms_match_the_search() {
    const AtomSet all = kMaxAtoms.all();
    const uint32_t total = kMaxAtoms.sm_count(all);
    for (uint32_t count = 1; count <= total + 1; count += check::slow ? 255 : 51)
        check_request(kMaxAtoms, all, {count, count / 2 + 1});
    for (const std::size_t rests : {1U, 2U, 3U, 40U, 512U, 513U})
        check_request(kMaxAtoms, all, Counts(rests, kRest));
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

} // namespace

int main() {
    single_count_is_rounded_to_atoms();
    every_pair_of_an_h100();
    most_atoms_match_the_search();
    examples_of_the_header_hold();
    larger_first_group_contains_the_smaller();
    group_with_the_remainder_atom_is_last();
    random_requests_match_the_search();
    order_of_requests_does_not_change_cost();
    rest_is_shared_with_the_smallest_spread();
    too_many_requests_are_refused_quickly();
    return check::summary("planner");
}
