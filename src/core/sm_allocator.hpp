// The SM allocator: decides which atoms of a family each lease gets. Pure arithmetic on atom sets:
// it calls no driver and has no lock.
#pragma once

#include "base/atom_set.hpp"
#include "base/small_vector.hpp"

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

class SmAllocator {
  public:
    // The atoms of one lease.
    struct Allocation {
        AtomSet exclusive; // no other lease has these
        AtomSet shared;    // other shared leases may have these too

        AtomSet all() const { return exclusive | shared; }
        bool operator==(const Allocation&) const = default;
    };
    // One operation rarely involves more than two leases.
    using Allocations = SmallVector<Allocation, 4>;

    // What one lease is to have, in SMs.
    struct Request {
        uint64_t owner = 0;        // the lease's id; unused so far for a new lease
        uint32_t sm_count = 0;     // kRest: what the others leave; 0: none, the lease is parked
        uint32_t min_sm_count = 0; // 0: sm_count, or one atom for kRest
        bool shared = false;
        uint32_t exclusive_sm_count = 0; // of a shared lease: SMs that it does not share
    };

    // Returns whether the driver can make a context of a set.
    using IsLegal = std::function<bool(const AtomSet&)>;
    SmAllocator(const AtomShape& shape, IsLegal is_legal)
        : shape_(shape), is_legal_(std::move(is_legal)) {}

    // Plans one operation on all requests together, from free atoms and from those that the owners
    // have. Returns the new allocation of each request, or nothing if they do not fit. usable are
    // the atoms that may be given out. Prefers a remembered layout with the same SM counts if its
    // atoms are available. The rules are in gcx.h, at leases.
    std::optional<Allocations> plan(std::span<const Request> requests, const AtomSet& usable) const;
    // Remembers a plan as the layout of its owners until forget(). Forgets the oldest layouts
    // beyond kMaxLayouts.
    void remember(std::span<const Request> requests, const Allocations& layout);
    static constexpr std::size_t kMaxLayouts = 1024;

    // Makes room for more owners, so that assign() does not fail.
    void make_room(std::size_t owners);
    // Replaces the allocation of an owner.
    void assign(uint64_t owner, const Allocation& allocation);
    // Removes an owner, with its allocation and layouts.
    void forget(uint64_t owner);

    // Withholds atoms from plan() while it lives.
    class Placeholder {
      public:
        // owner is an id that no lease has.
        Placeholder(SmAllocator& allocator, uint64_t owner, const Allocation& allocation)
            : allocator_(&allocator), owner_(owner) {
            allocator_->assign(owner_, allocation);
        }
        ~Placeholder() { release(); }
        void release() {
            if (SmAllocator* const allocator = std::exchange(allocator_, nullptr))
                allocator->assign(owner_, {});
        }
        Placeholder(const Placeholder&) = delete;
        Placeholder& operator=(const Placeholder&) = delete;

      private:
        SmAllocator* allocator_; // null: released
        uint64_t owner_;
    };

    const AtomShape& shape() const { return shape_; }
    Allocation of(uint64_t owner) const;
    // All allocations that are not empty, ordered by owner.
    const std::vector<std::pair<uint64_t, Allocation>>& allocations() const { return allocations_; }
    AtomSet allocated() const;
    AtomSet free() const { return shape_.all() - allocated(); }

  private:
    class Planner;
    // Whether a lease that grows or shrinks may exchange atoms that it has for others.
    enum class Moving : uint8_t { avoided, allowed };
    // exclusive are the atoms that leases may get exclusively.
    std::optional<Allocations> plan_within(std::span<const Request> requests, const AtomSet& usable,
                                           const AtomSet& exclusive) const;
    AtomSet last_run(std::span<const Request> requests, const AtomSet& usable) const;
    bool are_legal(const Allocations& allocations) const;

    // A layout is found by its owners and their SM counts, ordered by owner. The counts are those
    // of the plan, because what kRest means depends on what is free.
    struct LayoutPart {
        uint64_t owner;
        uint32_t exclusive; // SMs
        uint32_t shared;    // SMs
        auto operator<=>(const LayoutPart&) const = default;
    };
    using LayoutKey = std::vector<LayoutPart>;
    struct Layout {
        uint64_t age;                               // ascending
        std::map<uint64_t, Allocation> allocations; // by owner
    };
    // Returns the atoms of all leases but those of the requests.
    Allocation of_others(std::span<const Request> requests) const;
    LayoutKey key_of(std::span<const Request> requests, const Allocations& allocations) const;
    std::optional<Allocations> find_layout(std::span<const Request> requests,
                                           const Allocations& planned, const AtomSet& usable) const;

    AtomShape shape_;
    IsLegal is_legal_;
    std::vector<std::pair<uint64_t, Allocation>> allocations_;
    std::map<LayoutKey, Layout> layouts_;
    std::set<uint64_t> layout_owners_; // lets forget() skip the search for most owners
    uint64_t next_age_ = 0;
};

} // namespace gcx
