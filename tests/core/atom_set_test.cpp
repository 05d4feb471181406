// AtomSet against a std::set with the same elements.

#include "base/atom_set.hpp"

#include "check.hpp"

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <vector>

namespace {

using gcx::AtomSet;
using Model = std::set<std::size_t>;

AtomSet to_atoms(const Model& model) {
    AtomSet set;
    for (const std::size_t atom : model)
        set.add(atom);
    return set;
}

Model to_model(const AtomSet& set) {
    Model model;
    set.for_each([&](std::size_t atom) { model.insert(atom); });
    return model;
}

void empty_set_holds_nothing() {
    const AtomSet set;
    CHECK(set.empty());
    CHECK_EQ(set.count(), 0U);
    CHECK(to_model(set).empty());
    CHECK(!set.contains(0));
    CHECK(!set.contains(AtomSet::kCapacity - 1));
}

void first_holds_a_prefix() {
    for (std::size_t count = 0; count <= AtomSet::kCapacity; count++) {
        const AtomSet set = AtomSet::first(count);
        CHECK_EQ(set.count(), count);
        CHECK_EQ(set.empty(), count == 0);
        CHECK(count == 0 || set.contains(count - 1));
        CHECK(!set.contains(count));
    }
}

void contains_is_false_beyond_capacity() {
    const AtomSet all = AtomSet::first(AtomSet::kCapacity);
    CHECK(!all.contains(AtomSet::kCapacity));
    CHECK(!all.contains(AtomSet::kCapacity * 1000));
}

void each_atom_has_its_own_bit() {
    for (std::size_t atom = 0; atom < AtomSet::kCapacity; atom++) {
        AtomSet set;
        set.add(atom);
        set.add(atom);
        CHECK_EQ(set.count(), 1U);
        CHECK(to_model(set) == Model{atom});
    }
}

void operations_agree_with_std_set() {
    std::mt19937 random(1);
    for (int round = 0; round < 300; round++) {
        Model a;
        Model b;
        const auto fill = [&](Model& model) {
            const std::size_t size = random() % 200;
            const std::size_t range = 1 + random() % AtomSet::kCapacity;
            for (std::size_t i = 0; i < size; i++)
                model.insert(random() % range);
        };
        fill(a);
        fill(b);
        Model either;
        Model both;
        Model only_a;
        std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::inserter(either, either.end()));
        std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                              std::inserter(both, both.end()));
        std::set_difference(a.begin(), a.end(), b.begin(), b.end(),
                            std::inserter(only_a, only_a.end()));
        const AtomSet x = to_atoms(a);
        const AtomSet y = to_atoms(b);
        CHECK(to_model(x) == a);
        CHECK_EQ(x.count(), a.size());
        CHECK(to_model(x | y) == either);
        CHECK(to_model(x & y) == both);
        CHECK(to_model(x - y) == only_a);
        CHECK_EQ(x == y, a == b);
        CHECK((x | y) == (y | x));
        CHECK(((x - y) | (x & y)) == x);
        CHECK(AtomSet::of_words(x.words().data()) == x);
    }
}

void order_is_total() {
    std::vector<AtomSet> sets;
    for (std::size_t i = 0; i < 40; i++) {
        AtomSet set;
        set.add(i * 13 % AtomSet::kCapacity);
        sets.push_back(set);
        sets.push_back(AtomSet::first(i * 7));
    }
    for (const AtomSet& a : sets) {
        for (const AtomSet& b : sets)
            CHECK_EQ((a < b) + (b < a) + (a == b), 1);
    }
}

void for_each_ascends() {
    const Model model = {0, 1, 63, 64, 65, 127, 128, 300, 511};
    std::vector<std::size_t> visited;
    to_atoms(model).for_each([&](std::size_t atom) { visited.push_back(atom); });
    CHECK(visited == std::vector<std::size_t>(model.begin(), model.end()));
}

} // namespace

int main() {
    empty_set_holds_nothing();
    first_holds_a_prefix();
    contains_is_false_beyond_capacity();
    each_atom_has_its_own_bit();
    operations_agree_with_std_set();
    order_is_total();
    for_each_ascends();
    return check::summary("atom_set");
}
