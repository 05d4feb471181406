// plan_split() against an exhaustive search over who gets the remainder atom and how many unit
// atoms each group gets. The rules of gcx.h at gcx_sm_split are written a second time here.

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
    {15, 8, 12},                          // H100 and H200: coscheduled
    {66, 2, 0},                           // fine
    {5, 24, 12},                          // max-cluster
    {16, 8, 20},                          // B200
    {74, 2, 0},  {6, 24, 4}, {16, 8, 24}, // GB200: a remainder atom of whole units
    {76, 2, 0},  {6, 24, 8}, {27, 4, 0},  // A100
    {54, 2, 0},  {32, 4, 0},              // RTX 4090
    {64, 2, 0},  {35, 4, 2},              // L40S
    {71, 2, 0},  {4, 4, 0},               // Orin
    {8, 2, 0},   {1, 8, 0},  {1, 8, 12},  {2, 2, 1}, {3, 4, 30}, {9, 1, 5},
};

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
        for (uint32_t beside = 0; beside <= (remainder ? units : 0); beside++) {
            const uint32_t shared = units - beside;
            if (shared < others || (others == 0 && shared != 0))
                continue;
            uint32_t least =
                remainder ? beside * shape_.unit_size + shape_.remainder_size : UINT32_MAX;
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
            check_request(shape, input, requests.counts(shape, input));
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

void too_many_requests_are_refused_quickly() {
    const AtomShape shape = kShapes[0];
    for (const uint32_t count : {kRest, 1U, 8U, kRest - 1}) {
        const Counts counts(100'000, count);
        const std::clock_t start = std::clock();
        const Outcome outcome = plan_of(shape, shape.all(), counts, false);
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
    random_requests_match_the_search();
    order_of_requests_does_not_change_cost();
    rest_is_shared_with_the_smallest_spread();
    too_many_requests_are_refused_quickly();
    return check::summary("planner search");
}
