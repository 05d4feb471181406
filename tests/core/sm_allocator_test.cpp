// SmAllocator: what it promises of every plan, checked for random leases on many shapes.

#include "core/sm_allocator.hpp"

#include "base/error.hpp"

#include "check.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

namespace {

using namespace gcx;
using Allocation = SmAllocator::Allocation;
using Request = SmAllocator::Request;

const AtomShape kShapes[] = {
    {15, 8, 12}, {66, 2, 0}, {5, 24, 12}, {16, 8, 20}, {27, 4, 0},
    {1, 8, 0},   {2, 2, 1},  {3, 4, 30},  {9, 1, 5},   {4, 4, 0},
};

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

// Runs one random operation at a time and checks its result.
class Model {
  public:
    // keeps: every set is legal, so a lease that grows must keep its atoms and one that shrinks
    // must get no new ones.
    Model(const AtomShape& shape, SmAllocator::IsLegal legal, bool keeps, unsigned seed)
        : shape_(shape), legal_(legal), keeps_(keeps), allocator_(shape, legal), random_(seed) {}

    void step() {
        const uint32_t kind = below(10);
        if (kind < 4)
            acquire();
        else if (kind < 6)
            release();
        else
            resize();
        check_free_list();
    }

  private:
    uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

    Request random_request(uint64_t owner) {
        const uint32_t all = shape_.sm_count(shape_.all());
        Request request{owner, below(4) == 0 ? kRest : 1 + below(all), 0, below(3) == 0, 0};
        if (below(3) == 0)
            request.min_sm_count = 1 + below(std::min(request.sm_count, all));
        if (request.shared && below(2) == 0)
            request.exclusive_sm_count = 1 + below(std::min(request.sm_count, all));
        return request;
    }

    static uint32_t min_of(const Request& request) {
        const uint32_t requested = request.sm_count == kRest ? 1 : request.sm_count;
        return request.min_sm_count != 0 ? request.min_sm_count : requested;
    }

    void acquire() {
        const Request request = random_request(next_++);
        const AtomSet free = allocator_.free();
        const auto planned = allocator_.plan({&request, 1}, shape_.all());
        if (const auto expected = is_grantable(request, free))
            CHECK_EQ(planned.has_value(), *expected);
        if (!planned)
            return;
        const Allocation& has = planned->front();
        check_granted(request, {}, has);
        CHECK((has.exclusive - free).empty());
        allocator_.assign(request.owner, has);
        requests_.push_back(request);
    }

    // Returns whether a new lease can be granted. Returns nothing where this simple count cannot
    // tell.
    std::optional<bool> is_grantable(const Request& request, const AtomSet& free) const {
        const uint32_t least = min_of(request);
        if (!request.shared)
            return most_sms(free) >= least;
        AtomSet open = shape_.all();
        for (const auto& [owner, allocation] : allocator_.allocations())
            open = open - allocation.exclusive;
        if (shape_.remainder_size != 0 && open.contains(shape_.unit_count) &&
            !legal_(set_of({0, shape_.unit_count})))
            return std::nullopt;
        const bool has_exclusive =
            request.exclusive_sm_count == 0 ||
            (!free.empty() && shape_.sm_count(free) >= request.exclusive_sm_count);
        return has_exclusive && shape_.sm_count(open) >= least;
    }

    // Returns the SMs of the largest legal subset.
    uint32_t most_sms(const AtomSet& within) const {
        if (legal_(within))
            return shape_.sm_count(within);
        std::size_t begin = shape_.atom_count();
        while (within.contains(begin - 1))
            begin--;
        return std::max(shape_.sm_count(within & AtomSet::first(shape_.unit_count)),
                        shape_.sm_count(shape_.all() - AtomSet::first(begin)));
    }

    void release() {
        if (requests_.empty())
            return;
        const std::size_t which = below(static_cast<uint32_t>(requests_.size()));
        allocator_.assign(requests_[which].owner, {});
        requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(which));
    }

    void resize() {
        if (requests_.empty())
            return;
        std::shuffle(requests_.begin(), requests_.end(), random_);
        const std::size_t count =
            1 + below(static_cast<uint32_t>(std::min<std::size_t>(requests_.size(), 3)));
        std::vector<Request> change(requests_.begin(),
                                    requests_.begin() + static_cast<std::ptrdiff_t>(count));
        for (Request& request : change) {
            request.sm_count = below(4) == 0 ? kRest : 1 + below(shape_.sm_count(shape_.all()));
            request.sm_count = std::max(request.sm_count,
                                        request.exclusive_sm_count); // plan()'s callers check this
            request.min_sm_count = 0;
        }
        const auto planned = allocator_.plan(change, shape_.all());
        if (!planned)
            return;
        std::vector<Allocation> before;
        for (std::size_t i = 0; i < count; i++) {
            before.push_back(allocator_.of(change[i].owner));
            check_granted(change[i], before[i], (*planned)[i]);
        }
        for (std::size_t i = 0; i < count; i++)
            allocator_.assign(change[i].owner, (*planned)[i]);
        for (std::size_t i = 0; i < count; i++)
            requests_[i] = change[i];
    }

    void check_granted(const Request& request, const Allocation& before, const Allocation& has) {
        const uint32_t sms = shape_.sm_count(has.all());
        CHECK(legal_(has.all()));
        CHECK((has.exclusive & has.shared).empty());
        CHECK(sms != 0);
        CHECK(sms >= min_of(request));
        if (!request.shared) {
            CHECK(has.shared.empty());
            check_in_place(before.exclusive, has.exclusive);
        } else {
            CHECK(shape_.sm_count(has.exclusive) >= request.exclusive_sm_count);
            // Exclusive atoms stay unless the lease is to have fewer SMs than those.
            if (!before.exclusive.empty() && request.sm_count >= shape_.sm_count(before.exclusive))
                CHECK(has.exclusive == before.exclusive);
            else
                check_in_place(before.exclusive, has.exclusive);
        }
    }

    // A lease that grows keeps its unit atoms, one that shrinks gets no new ones. The remainder
    // atom goes where it meets the counts best.
    void check_in_place(const AtomSet& before, const AtomSet& after) const {
        if (!keeps_)
            return;
        const AtomSet units = AtomSet::first(shape_.unit_count);
        const AtomSet was = before & units;
        const AtomSet is = after & units;
        if (is.count() >= was.count())
            CHECK((was - is).empty());
        else
            CHECK((is - was).empty());
    }

    // No atom belongs to two leases unless both share it. All other atoms are free.
    void check_free_list() const {
        AtomSet own;
        AtomSet shared;
        std::size_t owned = 0;
        for (const auto& [owner, allocation] : allocator_.allocations()) {
            own = own | allocation.exclusive;
            owned += allocation.exclusive.count();
            shared = shared | allocation.shared;
        }
        CHECK_EQ(own.count(), owned);
        CHECK((own & shared).empty());
        CHECK(allocator_.free() == shape_.all() - own - shared);
        CHECK_EQ(allocator_.allocations().size(), requests_.size());
    }

    AtomShape shape_;
    SmAllocator::IsLegal legal_;
    bool keeps_;
    SmAllocator allocator_;
    std::mt19937 random_;
    std::vector<Request> requests_;
    uint64_t next_ = 1;
};

void random_leases_keep_promises() {
    unsigned seed = 20261121;
    for (const AtomShape& shape : kShapes) {
        for (const bool keeps : {true, false}) {
            Model model(shape, keeps ? SmAllocator::IsLegal(any) : run_up_to_the_last(shape),
                        keeps || shape.remainder_size == 0, seed++);
            for (int i = 0; i < (check::slow ? 300 : 3000); i++)
                model.step();
        }
    }
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

} // namespace

int main() {
    resize_of_two_leases_keeps_them_contiguous();
    plan_without_enough_atoms_fails();
    shared_leases_overlap();
    remainder_atom_goes_with_the_last_ones();
    random_leases_keep_promises();
    return check::summary("sm_allocator");
}
