// Part of gcx.hpp: gcx::view, a parameter that is an array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>

namespace gcx {

namespace detail {
// The element type of a container or an array.
template <class Range>
using element_of =
    std::remove_cv_t<std::remove_pointer_t<decltype(std::data(std::declval<const Range&>()))>>;
} // namespace detail

// A view of the caller's elements, as std::span, for C++17.
template <class T>
class view {
  public:
    constexpr view() noexcept = default;
    constexpr view(const T* data, std::size_t size) noexcept : data_(data), size_(size) {}
    constexpr view(const T& one) noexcept : data_(&one), size_(1) {}
    template <class Range, class = std::enable_if_t<std::is_same_v<detail::element_of<Range>, T>>>
    constexpr view(const Range& range) noexcept
        : data_(std::data(range)), size_(std::size(range)) {}
#if defined(__GNUC__) && !defined(__clang__)
// A parameter does not outlive its braced list.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
    constexpr view(std::initializer_list<T> list) noexcept
        : data_(list.begin()), size_(list.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

    constexpr const T* data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr const T* begin() const noexcept { return data_; }
    constexpr const T* end() const noexcept { return data_ + size_; }

  private:
    const T* data_ = nullptr;
    std::size_t size_ = 0;
};

namespace detail {
// Converts a size for C. One that is too large becomes UINT32_MAX, which C refuses.
constexpr std::uint32_t size_for_c(std::size_t size) noexcept {
    return size < UINT32_MAX ? static_cast<std::uint32_t>(size) : UINT32_MAX;
}
} // namespace detail

} // namespace gcx
