// Tests SmAllocator on the atoms of an H100. The vectors, tests/api/lease_placement_test.cpp and the
// storm of leases test what it promises of random leases.

#include "core/sm_allocator.hpp"

#include "check.hpp"

#include <random>
#include <span>
#include <vector>

namespace {

using namespace gcx;
using Allocation = SmAllocator::Allocation;
using Request = SmAllocator::Request;

AtomSet set_of(std::initializer_list<std::size_t> atoms) {
    AtomSet set;
    for (const std::size_t atom : atoms)
        set.add(atom);
    return set;
}

AtomSet range(std::size_t begin, std::size_t end) {
    return AtomSet::first(end) - AtomSet::first(begin);
}

bool any(const AtomSet& /*set*/) {
    return true;
}

// cuda.h from 13.1 on allows the remainder atom only together with the last unit atoms.
SmAllocator::IsLegal run_up_to_the_last(const AtomShape& shape) {
    return [shape](const AtomSet& set) {
        return shape.remainder_size == 0 || !set.contains(shape.unit_count) ||
               set == shape.all() - AtomSet::first(shape.atom_count() - set.count());
    };
}

Allocation plan_one(SmAllocator& allocator, const Request& request) {
    const auto planned = allocator.plan({&request, 1}, allocator.shape().all());
    CHECK(planned.has_value());
    if (!planned)
        return {};
    allocator.assign(request.owner, planned->front());
    return planned->front();
}

// The atoms of an H100, shared by decode and prefill.
void resize_of_two_leases_keeps_them_contiguous() {
    SmAllocator allocator({15, 8, 12}, any);
    CHECK(plan_one(allocator, {1, 32, 0, false, 0}).exclusive == range(0, 4));
    CHECK(plan_one(allocator, {2, kRest, 0, false, 0}).exclusive == range(4, 16));
    CHECK(allocator.free().empty());
    for (const uint32_t size : {64U, 24U, 96U, 8U, 32U}) {
        const Request change[] = {{1, size, 0, false, 0}, {2, kRest, 0, false, 0}};
        const auto next = allocator.plan(change, allocator.shape().all());
        CHECK(next.has_value());
        // The sets are nested and contiguous, whatever the sizes were before.
        CHECK((*next)[0].exclusive == range(0, size / 8));
        CHECK((*next)[1].exclusive == range(size / 8, 16));
        allocator.assign(1, (*next)[0]);
        allocator.assign(2, (*next)[1]);
    }
    // Resized alone, a lease shrinks at its end and grows there again.
    const Request less = {1, 16, 0, false, 0};
    CHECK(plan_one(allocator, less).exclusive == range(0, 2));
    const Request rest_less = {2, 60, 0, false, 0};
    CHECK(plan_one(allocator, rest_less).exclusive == range(9, 16));
    CHECK(allocator.free() == range(2, 9));
    CHECK(plan_one(allocator, {1, 40, 0, false, 0}).exclusive == range(0, 5));
    CHECK(plan_one(allocator, {2, 76, 0, false, 0}).exclusive == range(7, 16));
}

void plan_without_enough_atoms_fails() {
    SmAllocator allocator({15, 8, 12}, any);
    plan_one(allocator, {1, 64, 0, false, 0});
    const AtomSet all = allocator.shape().all();
    const Request too_many = {2, 80, 0, false, 0};
    CHECK(!allocator.plan({&too_many, 1}, all));
    const Request enough = {2, 80, 60, false, 0};
    CHECK(allocator.plan({&enough, 1}, all)->front().exclusive == range(8, 16));
    const Request not_enough = {2, 80, 70, false, 0};
    CHECK(!allocator.plan({&not_enough, 1}, all));
    const Request not_usable = {2, 8, 0, false, 0};
    CHECK(!allocator.plan({&not_usable, 1}, range(0, 8)));
    plan_one(allocator, {2, kRest, 0, false, 0});
    const Request nothing_left = {3, kRest, 0, false, 0};
    CHECK(!allocator.plan({&nothing_left, 1}, all));
    const Request nothing_to_share = {3, kRest, 0, true, 0};
    CHECK(!allocator.plan({&nothing_to_share, 1}, all));
}

void shared_leases_overlap() {
    SmAllocator allocator({15, 8, 12}, any);
    const Allocation first = plan_one(allocator, {1, 24, 0, true, 0});
    CHECK(first.exclusive.empty());
    CHECK_EQ(first.shared.count(), 3U);
    // The second gets the same atoms; the third also gets its exclusive SMs.
    CHECK(plan_one(allocator, {2, 24, 0, true, 0}) == first);
    const Allocation third = plan_one(allocator, {3, 40, 0, true, 16});
    CHECK_EQ(third.exclusive.count(), 2U);
    CHECK((third.exclusive & first.shared).empty());
    CHECK(third.shared == first.shared);
    // Counts are rounded like those of a split: the remainder atom is nearer to 10.
    const Request ten = {5, 10, 0, true, 0};
    CHECK(allocator.plan({&ten, 1}, allocator.shape().all())->front().shared == set_of({15}));
    // An exclusive lease gets no shared atoms.
    const Allocation single = plan_one(allocator, {4, kRest, 0, false, 0});
    CHECK((single.exclusive & (first.all() | third.all())).empty());
    CHECK_EQ(single.exclusive.count() + first.shared.count() + third.exclusive.count(), 16U);
    // Shared atoms are free once the last sharer is removed.
    for (const uint64_t owner : {1U, 2U, 3U})
        allocator.assign(owner, {});
    CHECK(allocator.free() == (first.shared | third.exclusive));
}

// By the rule of CUDA 13.1, no lease gets the remainder atom with other atoms than the last ones.
void remainder_atom_goes_with_the_last_ones() {
    const AtomShape shape = {15, 8, 12};
    SmAllocator allocator(shape, run_up_to_the_last(shape));
    plan_one(allocator, {1, 16, 0, false, 0});
    plan_one(allocator, {2, 16, 0, false, 0});
    allocator.assign(1, {});
    // The first two and the last twelve are free, and cannot go together with the remainder atom.
    const Allocation rest = plan_one(allocator, {3, kRest, 0, false, 0});
    CHECK(rest.exclusive == (range(0, 2) | range(4, 15)));
    CHECK(plan_one(allocator, {4, kRest, 0, false, 0}).exclusive == set_of({15}));
}

// Like an exclusive lease, and like a split.
void shared_lease_with_remainder_atom_has_the_last_ones() {
    SmAllocator allocator({15, 8, 12}, any);
    CHECK(plan_one(allocator, {1, 36, 0, true, 0}).shared == range(12, 16));
    CHECK(plan_one(allocator, {1, 28, 0, true, 0}).shared == range(13, 16));
    CHECK(plan_one(allocator, {1, 44, 0, true, 0}).shared == range(11, 16));
    CHECK(plan_one(allocator, {1, 20, 0, true, 0}).shared == range(14, 16));
    // Here the remainder atom is exclusive.
    allocator.forget(1);
    CHECK(plan_one(allocator, {2, 36, 0, true, 10}).exclusive == set_of({15}));
    CHECK(allocator.of(2).shared == range(12, 15));
    CHECK(plan_one(allocator, {2, 28, 0, true, 10}).shared == range(13, 15));
}

std::vector<AtomSet> all_sets(const AtomShape& shape) {
    std::vector<AtomSet> sets;
    for (uint64_t bits = 0; bits < uint64_t{1} << shape.atom_count(); bits++) {
        const uint64_t words[AtomSet::kWords] = {bits};
        sets.push_back(AtomSet::of_words(words));
    }
    return sets;
}

// Returns whether the driver allows sets for these requests, from the first on, that have the
// planned SM counts. Tries all sets. exclusive and shared are the atoms of other leases.
bool is_possible(const AtomShape& shape, std::span<const Request> requests,
                 const Allocation* planned, const AtomSet& exclusive, const AtomSet& shared) {
    if (requests.empty())
        return true;
    const auto is_legal = run_up_to_the_last(shape);
    for (const AtomSet& own : all_sets(shape)) {
        if (shape.sm_count(own) != shape.sm_count(planned->exclusive) ||
            !(own & (exclusive | shared)).empty())
            continue;
        for (const AtomSet& more : all_sets(shape)) {
            if (shape.sm_count(more) == shape.sm_count(planned->shared) &&
                (more & (exclusive | own)).empty() && is_legal(own | more) &&
                is_possible(shape, requests.subspan(1), planned + 1, exclusive | own,
                            shared | more))
                return true;
        }
    }
    return false;
}

// Resizes random leases by the rule of CUDA 13.1. A plan is refused only if no sets with the SM
// counts that other drivers give are legal. The exclusive leases have even ids.
void plan_is_refused_only_if_no_sets_are_legal() {
    const AtomShape shape = {5, 8, 12};
    std::mt19937 random(20261126);
    const auto below = [&](uint32_t end) { return static_cast<uint32_t>(random() % end); };
    std::size_t refused = 0;
    for (int round = 0; round < 1'000; round++) {
        SmAllocator allocator(shape, run_up_to_the_last(shape));
        SmAllocator lenient(shape, any);
        for (int step = 0; step < 10; step++) {
            std::vector<Request> requests;
            Allocation others;
            for (const uint64_t owner : {1U, 2U, 3U, 4U}) {
                const bool shared = owner % 2 != 0;
                const Allocation now = allocator.of(owner);
                if (below(2) != 0) {
                    const uint32_t kind = below(8);
                    requests.push_back({owner,
                                        kind == 0   ? 0
                                        : kind == 1 ? kRest
                                                    : 1 + below(45),
                                        0, shared, 0});
                } else {
                    others.exclusive = others.exclusive | now.exclusive;
                    others.shared = others.shared | now.shared;
                }
            }
            const auto planned = allocator.plan(requests, shape.all());
            const auto wanted = lenient.plan(requests, shape.all());
            for (std::size_t i = 0; planned && i < requests.size(); i++) {
                allocator.assign(requests[i].owner, (*planned)[i]);
                lenient.assign(requests[i].owner, (*planned)[i]);
            }
            if (planned || !wanted)
                continue;
            refused++;
            CHECK(
                !is_possible(shape, requests, &*wanted->begin(), others.exclusive, others.shared));
        }
    }
    CHECK(refused > 10);
}

// The same for a new shared lease, next to an exclusive one with any atoms.
void acquisition_is_refused_only_if_no_sets_are_legal() {
    const AtomShape shape = {5, 8, 12};
    for (const AtomSet& taken : all_sets(shape)) {
        SmAllocator allocator(shape, run_up_to_the_last(shape));
        SmAllocator lenient(shape, any);
        for (SmAllocator* each : {&allocator, &lenient})
            each->assign(1, {taken, {}});
        for (const uint32_t exclusive : {8U, 12U, 20U}) {
            for (uint32_t count = exclusive; count <= shape.sm_count(shape.all()); count += 4) {
                const Request request = {2, count, 0, true, exclusive};
                const auto wanted = lenient.plan({&request, 1}, shape.all());
                if (wanted && !allocator.plan({&request, 1}, shape.all()))
                    CHECK(!is_possible(shape, {&request, 1}, &wanted->front(), taken, {}));
            }
        }
    }
    // One that gets the remainder atom.
    const AtomShape h100 = {15, 8, 12};
    SmAllocator allocator(h100, run_up_to_the_last(h100));
    const Allocation most = plan_one(allocator, {1, 124, 0, true, 8});
    CHECK(most.exclusive == set_of({1}));
    CHECK(most.shared == range(2, 16));
}

} // namespace

int main() {
    resize_of_two_leases_keeps_them_contiguous();
    plan_without_enough_atoms_fails();
    shared_leases_overlap();
    remainder_atom_goes_with_the_last_ones();
    shared_lease_with_remainder_atom_has_the_last_ones();
    plan_is_refused_only_if_no_sets_are_legal();
    acquisition_is_refused_only_if_no_sets_are_legal();
    return check::summary("sm_allocator");
}
