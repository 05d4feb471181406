// The free list of leases: what is promised of every plan, for random leases on many shapes.

#include "core/sm_allocator.hpp"

#include "base/error.hpp"

#include "check.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

namespace {

using namespace gcx;

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

// What CUDA's header allows from 13.1 on: the odd atom with none but the last ones.
Ledger::Legal run_up_to_the_last(const AtomShape& shape) {
    return [shape](const AtomSet& set) {
        return shape.odd_size == 0 || !set.contains(shape.unit_count) ||
               set == shape.all() - AtomSet::first(shape.atom_count() - set.count());
    };
}

// One operation at a time, with what it must come to checked.
class Model {
  public:
    // keeps: no set is illegal, so that who grows keeps what it has and who shrinks has nothing
    // new.
    Model(const AtomShape& shape, Ledger::Legal legal, bool keeps, unsigned seed)
        : shape_(shape), legal_(legal), keeps_(keeps), ledger_(shape, legal), random_(seed) {}

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

    Wish some_wish(uint64_t who) {
        const uint32_t all = shape_.sm_count(shape_.all());
        Wish wish{who, below(4) == 0 ? kRest : 1 + below(all), 0, below(3) == 0, 0};
        if (below(3) == 0)
            wish.least = 1 + below(std::min(wish.count, all));
        if (wish.shared && below(2) == 0)
            wish.own = 1 + below(std::min(wish.count, all));
        return wish;
    }

    static uint32_t least_of(const Wish& wish) {
        const uint32_t requested = wish.count == kRest ? 1 : wish.count;
        return wish.least != 0 ? wish.least : requested;
    }

    void acquire() {
        const Wish wish = some_wish(next_++);
        const AtomSet free = ledger_.free();
        const auto planned = ledger_.plan({&wish, 1}, shape_.all());
        if (const auto expected = can_be_had(wish, free))
            CHECK_EQ(planned.has_value(), *expected);
        if (!planned)
            return;
        const Reservationing& has = planned->front();
        check_granted(wish, {}, has);
        CHECK((has.own - free).empty());
        ledger_.set(wish.who, has);
        wishes_.push_back(wish);
    }

    // Whether a new lease can be granted at all; nothing where that is more than this counts out.
    std::optional<bool> can_be_had(const Wish& wish, const AtomSet& free) const {
        const uint32_t least = least_of(wish);
        if (!wish.shared)
            return most_sms(free) >= least;
        AtomSet open = shape_.all();
        for (const auto& [who, holding] : ledger_.holdings())
            open = open - holding.own;
        if (shape_.odd_size != 0 && open.contains(shape_.unit_count) &&
            !legal_(set_of({0, shape_.unit_count})))
            return std::nullopt;
        const bool floor = wish.own == 0 || (!free.empty() && shape_.sm_count(free) >= wish.own);
        return floor && shape_.sm_count(open) >= least;
    }

    // Of the largest legal set within.
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
        if (wishes_.empty())
            return;
        const std::size_t which = below(static_cast<uint32_t>(wishes_.size()));
        ledger_.set(wishes_[which].who, {});
        wishes_.erase(wishes_.begin() + static_cast<std::ptrdiff_t>(which));
    }

    void resize() {
        if (wishes_.empty())
            return;
        std::shuffle(wishes_.begin(), wishes_.end(), random_);
        const std::size_t count =
            1 + below(static_cast<uint32_t>(std::min<std::size_t>(wishes_.size(), 3)));
        std::vector<Wish> change(wishes_.begin(),
                                 wishes_.begin() + static_cast<std::ptrdiff_t>(count));
        for (Wish& wish : change) {
            wish.count = below(4) == 0 ? kRest : 1 + below(shape_.sm_count(shape_.all()));
            wish.count = std::max(wish.count, wish.own); // as the callers of plan check
            wish.least = 0;
        }
        const auto planned = ledger_.plan(change, shape_.all());
        if (!planned)
            return;
        std::vector<Reservationing> before;
        for (std::size_t i = 0; i < count; i++) {
            before.push_back(ledger_.of(change[i].who));
            check_granted(change[i], before[i], (*planned)[i]);
        }
        for (std::size_t i = 0; i < count; i++)
            ledger_.set(change[i].who, (*planned)[i]);
        for (std::size_t i = 0; i < count; i++)
            wishes_[i] = change[i];
    }

    void check_granted(const Wish& wish, const Reservationing& before, const Reservationing& has) {
        const uint32_t sms = shape_.sm_count(has.all());
        CHECK(legal_(has.all()));
        CHECK((has.own & has.shared).empty());
        CHECK(sms != 0);
        CHECK(sms >= least_of(wish));
        if (!wish.shared) {
            CHECK(has.shared.empty());
            check_in_place(before.own, has.own);
        } else {
            CHECK(shape_.sm_count(has.own) >= wish.own);
            // What it has exclusively stays, unless the lease is to have less.
            if (!before.own.empty() && wish.count >= shape_.sm_count(before.own))
                CHECK(has.own == before.own);
            else
                check_in_place(before.own, has.own);
        }
    }

    // Who grows keeps what it has, who shrinks has nothing new; the odd atom apart, which goes
    // where counts are met best.
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

    // No atom is two leases' unless both share it, and what none has is free.
    void check_free_list() const {
        AtomSet own;
        AtomSet shared;
        std::size_t owned = 0;
        for (const auto& [who, holding] : ledger_.holdings()) {
            own = own | holding.own;
            owned += holding.own.count();
            shared = shared | holding.shared;
        }
        CHECK_EQ(own.count(), owned);
        CHECK((own & shared).empty());
        CHECK(ledger_.free() == shape_.all() - own - shared);
        CHECK_EQ(ledger_.holdings().size(), wishes_.size());
    }

    AtomShape shape_;
    Ledger::Legal legal_;
    bool keeps_;
    Ledger ledger_;
    std::mt19937 random_;
    std::vector<Wish> wishes_;
    uint64_t next_ = 1;
};

void random_leases() {
    unsigned seed = 20261121;
    for (const AtomShape& shape : kShapes) {
        for (const bool keeps : {true, false}) {
            Model model(shape, keeps ? Ledger::Legal(any) : run_up_to_the_last(shape),
                        keeps || shape.odd_size == 0, seed++);
            for (int i = 0; i < (check::slow ? 300 : 3000); i++)
                model.step();
        }
    }
}

Reservationing plan_one(Ledger& ledger, const Wish& wish) {
    const auto planned = ledger.plan({&wish, 1}, ledger.shape().all());
    CHECK(planned.has_value());
    if (!planned)
        return {};
    ledger.set(wish.who, planned->front());
    return planned->front();
}

// An H100's atoms: decode and prefill as an engine has them.
void the_two_of_an_engine() {
    Ledger ledger({15, 8, 12}, any);
    CHECK(plan_one(ledger, {1, 32, 0, false, 0}).own == range(0, 4));
    CHECK(plan_one(ledger, {2, kRest, 0, false, 0}).own == range(4, 16));
    CHECK(ledger.free().empty());
    for (const uint32_t size : {64U, 24U, 96U, 8U, 32U}) {
        const Wish change[] = {{1, size, 0, false, 0}, {2, kRest, 0, false, 0}};
        const auto next = ledger.plan(change, ledger.shape().all());
        CHECK(next.has_value());
        // Nested, and the rest as one piece, whatever came before.
        CHECK((*next)[0].own == range(0, size / 8));
        CHECK((*next)[1].own == range(size / 8, 16));
        ledger.set(1, (*next)[0]);
        ledger.set(2, (*next)[1]);
    }
    // Alone, one shrinks at its end and grows there again.
    const Wish less = {1, 16, 0, false, 0};
    CHECK(plan_one(ledger, less).own == range(0, 2));
    const Wish rest_less = {2, 60, 0, false, 0};
    CHECK(plan_one(ledger, rest_less).own == range(9, 16));
    CHECK(ledger.free() == range(2, 9));
    CHECK(plan_one(ledger, {1, 40, 0, false, 0}).own == range(0, 5));
    CHECK(plan_one(ledger, {2, 76, 0, false, 0}).own == range(7, 16));
}

void what_is_not_there_is_not_given() {
    Ledger ledger({15, 8, 12}, any);
    plan_one(ledger, {1, 64, 0, false, 0});
    const AtomSet all = ledger.shape().all();
    const Wish too_many = {2, 80, 0, false, 0};
    CHECK(!ledger.plan({&too_many, 1}, all));
    const Wish enough = {2, 80, 60, false, 0};
    CHECK(ledger.plan({&enough, 1}, all)->front().own == range(8, 16));
    const Wish not_enough = {2, 80, 70, false, 0};
    CHECK(!ledger.plan({&not_enough, 1}, all));
    const Wish held_back = {2, 8, 0, false, 0};
    CHECK(!ledger.plan({&held_back, 1}, range(0, 8)));
    plan_one(ledger, {2, kRest, 0, false, 0});
    const Wish nothing_left = {3, kRest, 0, false, 0};
    CHECK(!ledger.plan({&nothing_left, 1}, all));
    const Wish nothing_to_share = {3, kRest, 0, true, 0};
    CHECK(!ledger.plan({&nothing_to_share, 1}, all));
}

void shared_ones_keep_room_for_others() {
    Ledger ledger({15, 8, 12}, any);
    const Reservationing first = plan_one(ledger, {1, 24, 0, true, 0});
    CHECK(first.own.empty());
    CHECK_EQ(first.shared.count(), 3U);
    // The second has the same, and a floor of its own if it asks for one.
    CHECK(plan_one(ledger, {2, 24, 0, true, 0}) == first);
    const Reservationing third = plan_one(ledger, {3, 40, 0, true, 16});
    CHECK_EQ(third.own.count(), 2U);
    CHECK((third.own & first.shared).empty());
    CHECK(third.shared == first.shared);
    // Rounded as a split rounds: the odd atom is nearer to 10.
    const Wish ten = {5, 10, 0, true, 0};
    CHECK(ledger.plan({&ten, 1}, ledger.shape().all())->front().shared == set_of({15}));
    // Nobody alone has what is shared.
    const Reservationing single = plan_one(ledger, {4, kRest, 0, false, 0});
    CHECK((single.own & (first.all() | third.all())).empty());
    CHECK_EQ(single.own.count() + first.shared.count() + third.own.count(), 16U);
    // What the last of them shared is free again.
    for (const uint64_t who : {1U, 2U, 3U})
        ledger.set(who, {});
    CHECK(ledger.free() == (first.shared | third.own));
}

// With CUDA's rule of 13.1, the odd atom is not given where it can't be used.
void the_odd_atom_needs_the_last_ones() {
    const AtomShape shape = {15, 8, 12};
    Ledger ledger(shape, run_up_to_the_last(shape));
    plan_one(ledger, {1, 16, 0, false, 0});
    plan_one(ledger, {2, 16, 0, false, 0});
    ledger.set(1, {});
    // Free are the first two and the last twelve: all of them with the odd one can't go together.
    const Reservationing rest = plan_one(ledger, {3, kRest, 0, false, 0});
    CHECK(rest.own == (range(0, 2) | range(4, 15)));
    CHECK(plan_one(ledger, {4, kRest, 0, false, 0}).own == set_of({15}));
}

} // namespace

int main() {
    the_two_of_an_engine();
    what_is_not_there_is_not_given();
    shared_ones_keep_room_for_others();
    the_odd_atom_needs_the_last_ones();
    random_leases();
    return check::summary("ledger");
}
