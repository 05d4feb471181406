// Sets of atoms, as bit sets: a partition is a set of atoms of one family.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace gcx {

class AtomSet {
  public:
    static constexpr std::size_t kCapacity = 512;
    static constexpr std::size_t kWords = kCapacity / 64;

    static AtomSet first(std::size_t count) {
        AtomSet set;
        for (std::size_t w = 0; w < count / 64; w++)
            set.words_[w] = ~uint64_t{0};
        if (count % 64 != 0)
            set.words_[count / 64] = (uint64_t{1} << (count % 64)) - 1;
        return set;
    }

    void add(std::size_t atom) { words_[atom / 64] |= uint64_t{1} << (atom % 64); }
    bool contains(std::size_t atom) const {
        return atom < kCapacity && ((words_[atom / 64] >> (atom % 64)) & 1) != 0;
    }
    std::size_t count() const {
        std::size_t total = 0;
        for (const uint64_t word : words_) {
            if (word != 0) // most are 0, and not every processor has popcount
                total += static_cast<std::size_t>(std::popcount(word));
        }
        return total;
    }
    bool empty() const {
        uint64_t any = 0;
        for (const uint64_t word : words_)
            any |= word;
        return any == 0;
    }

    AtomSet operator|(const AtomSet& other) const {
        return combine(other, [](uint64_t a, uint64_t b) { return a | b; });
    }
    AtomSet operator&(const AtomSet& other) const {
        return combine(other, [](uint64_t a, uint64_t b) { return a & b; });
    }
    AtomSet operator-(const AtomSet& other) const {
        return combine(other, [](uint64_t a, uint64_t b) { return a & ~b; });
    }
    auto operator<=>(const AtomSet&) const = default;

    // Calls visit(atom) for each atom, in ascending order.
    template <class Visit>
    void for_each(Visit visit) const {
        for (std::size_t w = 0; w < kWords; w++) {
            for (uint64_t rest = words_[w]; rest != 0; rest &= rest - 1)
                visit(w * 64 + static_cast<std::size_t>(std::countr_zero(rest)));
        }
    }

    const std::array<uint64_t, kWords>& words() const { return words_; }
    static AtomSet of_words(const uint64_t* words) {
        AtomSet set;
        for (std::size_t w = 0; w < kWords; w++)
            set.words_[w] = words[w];
        return set;
    }

  private:
    template <class Op>
    AtomSet combine(const AtomSet& other, Op op) const {
        AtomSet set;
        for (std::size_t w = 0; w < kWords; w++)
            set.words_[w] = op(words_[w], other.words_[w]);
        return set;
    }

    std::array<uint64_t, kWords> words_{};
};

// The sizes of a family's atoms. The unit atoms have the same size. A remainder atom may follow.
struct AtomShape {
    uint32_t unit_count = 0; // unit atoms have the indices 0 to unit_count - 1
    uint32_t unit_size = 0;
    uint32_t remainder_size = 0; // size of the atom at index unit_count; 0: none

    uint32_t atom_count() const { return unit_count + (remainder_size != 0 ? 1 : 0); }
    bool is_remainder(std::size_t atom) const { return remainder_size != 0 && atom == unit_count; }
    uint32_t sm_count(const AtomSet& set) const {
        const bool has_remainder = remainder_size != 0 && set.contains(unit_count);
        const auto units = static_cast<uint32_t>(set.count()) - (has_remainder ? 1 : 0);
        return units * unit_size + (has_remainder ? remainder_size : 0);
    }
    AtomSet all() const { return AtomSet::first(atom_count()); }
};

constexpr uint32_t kRest = UINT32_MAX; // as a count of SMs: GCX_REST

} // namespace gcx
