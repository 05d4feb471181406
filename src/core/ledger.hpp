// Who has which atoms of a family: the free list of leases. Arithmetic on sets, no driver, no lock.
#pragma once

#include "base/few.hpp"
#include "core/planner.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace gcx {

// What a lease has.
struct Holding {
    AtomSet own;    // nobody else's
    AtomSet shared; // others that are shared may have these too

    AtomSet all() const { return own | shared; }
    bool operator==(const Holding&) const = default;
};

// Of those who change together, who are mostly one or two.
using Holdings = Few<Holding, 4>;

// What a lease is to have.
struct Wish {
    uint64_t who = 0;   // of one that has nothing yet: an id that no other has
    uint32_t count = 0; // SMs, or kRest
    uint32_t least = 0; // SMs that will do; 0: count, and of the rest one atom
    bool shared = false;
    uint32_t own = 0; // of a shared one: SMs that are its alone
};

class Ledger {
  public:
    // legal says of a set whether the driver makes a context of it.
    using Legal = std::function<bool(const AtomSet&)>;
    Ledger(const AtomShape& shape, Legal legal) : shape_(shape), legal_(std::move(legal)) {}

    // What each would have if all wishes were granted out of what they have and what is free;
    // nothing if they can't be. usable are the atoms that may be given, whatever is free. The rule
    // is in gcx.h, at leases.
    std::optional<Holdings> plan(std::span<const Wish> wishes, const AtomSet& usable) const;
    // A holding without atoms takes its holder out.
    void set(uint64_t who, const Holding& holding);

    const AtomShape& shape() const { return shape_; }
    Holding of(uint64_t who) const;
    // In the order of their ids.
    const std::vector<std::pair<uint64_t, Holding>>& holdings() const { return holdings_; }
    AtomSet held() const;
    AtomSet free() const { return shape_.all() - held(); }

  private:
    class Change;
    std::optional<Holdings> plan_within(std::span<const Wish> wishes, const AtomSet& usable) const;
    // A split's groups, until the next is asked for; null if it can't be.
    const std::vector<AtomSet>* groups_of(const AtomSet& input,
                                          std::span<const uint32_t> counts) const;
    AtomSet last_run(std::span<const Wish> wishes, const AtomSet& usable) const;

    AtomShape shape_;
    Legal legal_;
    std::vector<std::pair<uint64_t, Holding>> holdings_;
    // The last plans: leases go to and fro between a few layouts.
    struct Recent {
        AtomSet input;
        std::vector<uint32_t> counts;
        std::optional<std::vector<AtomSet>> groups; // nothing: it can't be

        const std::vector<AtomSet>* answer() const { return groups ? &*groups : nullptr; }
    };
    mutable std::array<Recent, 8> recent_;
    mutable std::size_t oldest_ = 0;
};

} // namespace gcx
