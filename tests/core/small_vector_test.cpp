// SmallVector, with its elements in place and on the heap: each is created, moved and destroyed
// once.

#include "base/small_vector.hpp"

#include "check.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace {

int alive = 0;

// Counts the live objects.
struct Counted {
    explicit Counted(int its_value) : value(std::make_unique<int>(its_value)) { alive++; }
    Counted(Counted&& other) noexcept : value(std::move(other.value)) { alive++; }
    Counted& operator=(Counted&&) noexcept = default;
    ~Counted() { alive--; }

    std::unique_ptr<int> value;
};

struct Pinned {
    explicit Pinned(int its_value) : value(its_value) {}
    Pinned(Pinned&&) noexcept = default;
    Pinned& operator=(Pinned&&) = delete;
    int value;
};

using Some = gcx::SmallVector<Counted, 2>;
constexpr std::array kCounts = {0, 1, 2, 3, 4, 5, 9};

Some numbers(int count) {
    Some some;
    for (int i = 0; i < count; i++)
        CHECK_EQ(*some.emplace_back(i).value, i);
    return some;
}

bool are_numbers(const Some& some, int count) {
    if (some.size() != static_cast<std::size_t>(count) || some.empty() != (count == 0))
        return false;
    for (int i = 0; i < count; i++) {
        const auto at = static_cast<std::size_t>(i);
        if (*some[at].value != i || &some[at] != some.data() + at)
            return false;
    }
    return some.end() - some.begin() == count &&
           (count == 0 || (*some.front().value == 0 && *some.back().value == count - 1));
}

void elements_are_added_and_cleared() {
    for (const int count : kCounts) {
        {
            Some some = numbers(count);
            CHECK(are_numbers(some, count));
            CHECK_EQ(alive, count);
            some.clear();
            CHECK(are_numbers(some, 0));
            CHECK_EQ(alive, 0);
            some.push_back(Counted(0));
            CHECK(are_numbers(some, 1));
        }
        CHECK_EQ(alive, 0);
    }
}

void vectors_are_moved() {
    for (const int from : kCounts) {
        for (const int to : kCounts) {
            Some source = numbers(from);
            Some target = numbers(to);
            target = std::move(source);
            CHECK(are_numbers(target, from));
            CHECK_EQ(alive, from);
            source = numbers(to); // a moved-from vector can be reused
            CHECK(are_numbers(source, to));
            Some& same = target;
            target = std::move(same);
            CHECK(are_numbers(target, from));
            const Some other(std::move(target));
            CHECK(are_numbers(other, from));
            CHECK_EQ(alive, from + to);
        }
        CHECK_EQ(alive, 0);
    }
}

void remove_if_keeps_the_others() {
    for (const int count : kCounts) {
        Some some = numbers(count);
        some.remove_if([](const Counted& one) { return *one.value % 2 != 0; });
        CHECK_EQ(static_cast<int>(some.size()), (count + 1) / 2);
        CHECK_EQ(alive, (count + 1) / 2);
        for (std::size_t i = 0; i < some.size(); i++)
            CHECK_EQ(*some[i].value, static_cast<int>(2 * i));
    }
}

void elements_are_contiguous() {
    const gcx::SmallVector<int, 4> zeros(7);
    CHECK_EQ(zeros.size(), 7U);
    const std::span<const int> span(zeros);
    CHECK_EQ(span.size(), 7U);
    for (const int zero : span)
        CHECK_EQ(zero, 0);
    gcx::SmallVector<Pinned, 1> pinned;
    for (int i = 0; i < 3; i++)
        pinned.emplace_back(Pinned(i));
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pinned[static_cast<std::size_t>(i)].value, i);
}

} // namespace

int main() {
    elements_are_added_and_cleared();
    vectors_are_moved();
    remove_if_keeps_the_others();
    elements_are_contiguous();
    return check::summary("small_vector");
}
