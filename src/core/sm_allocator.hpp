// Who has which atoms of a family: the free list of leases. Arithmetic on sets, no driver, no lock.
#pragma once

#include "base/few.hpp"
#include "core/atom_set.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace gcx {

// What a lease has.
struct Reservationing {
    AtomSet own;    // nobody else's
    AtomSet shared; // others that are shared may have these too

    AtomSet all() const { return own | shared; }
    bool operator==(const Reservationing&) const = default;
};

// Of those who change together, who are mostly one or two.
using Reservationings = Few<Reservationing, 4>;

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

    // Returns what each would have if all wishes were granted out of what they have and what is
    // free; nothing if they can't be. usable are the atoms that may be given, whatever is free. The
    // rule is in gcx.h, at leases. If a remembered layout gives the same leases as many SMs, and
    // its atoms can be had, the answer is that layout.
    std::optional<Reservationings> plan(std::span<const Wish> wishes, const AtomSet& usable) const;
    // Remembers a plan as the layout of its leases, until one of them is taken out. The oldest
    // layouts are forgotten beyond kMaxLayouts.
    void remember(std::span<const Wish> wishes, const Reservationings& layout);
    static constexpr std::size_t kMaxLayouts = 1024;

    // A holding without atoms takes its holder out.
    void set(uint64_t who, const Reservationing& holding);

    const AtomShape& shape() const { return shape_; }
    Reservationing of(uint64_t who) const;
    // In the order of their ids.
    const std::vector<std::pair<uint64_t, Reservationing>>& holdings() const { return holdings_; }
    AtomSet held() const;
    AtomSet free() const { return shape_.all() - held(); }

  private:
    class Change;
    // Whether leases that grow or shrink may get other atoms in the place of those that they have.
    enum class Moving : uint8_t { avoided, allowed };
    std::optional<Reservationings> plan_within(std::span<const Wish> wishes,
                                               const AtomSet& usable) const;
    AtomSet last_run(std::span<const Wish> wishes, const AtomSet& usable) const;
    bool legal(const Reservationings& holdings) const;

    // A layout is named by its leases and the numbers of SMs that they have in it, in the order of
    // their ids: what a wish for the rest comes to depends on what is free.
    struct Part {
        uint64_t who;
        uint32_t own; // SMs
        uint32_t shared;
        auto operator<=>(const Part&) const = default;
    };
    using LayoutName = std::vector<Part>;
    struct Layout {
        uint64_t age; // counts up
        std::vector<Reservationing> holdings;
    };
    LayoutName name_of(std::span<const Wish> wishes, const Reservationings& holdings) const;
    std::optional<Reservationings> remembered(std::span<const Wish> wishes,
                                              const Reservationings& planned,
                                              const AtomSet& usable) const;

    AtomShape shape_;
    Legal legal_;
    std::vector<std::pair<uint64_t, Reservationing>> holdings_;
    std::map<LayoutName, Layout> layouts_;
    std::set<uint64_t> in_layouts_; // the leases of layouts, so that others are taken out quickly
    uint64_t next_age_ = 0;
};

} // namespace gcx
