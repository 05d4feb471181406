// A set of atoms of one family: what a partition is.
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
            if (word != 0) // most are 0, and not every processor counts in one step
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

} // namespace gcx
