// Part of gcx.hpp: gcx::error, thrown by every call that fails.
#pragma once

#include "../gcx.h"
#include "generated/constants.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace gcx {

// gcx_result_name and gcx_result_string: the name and the general meaning of a result.
inline const char* result_name(gcx_result result) noexcept {
    return gcx_result_name(result);
}
inline const char* result_string(gcx_result result) noexcept {
    return gcx_result_string(result);
}

// gcx_last_error_message: the message of the last function that failed in this thread.
inline const char* last_error_message() noexcept {
    return gcx_last_error_message();
}

// Exported, so that it is one type in the whole process even if a program hides its symbols.
class GCX_API error : public std::runtime_error {
  public:
    error(gcx_result result, const std::string& message)
        : std::runtime_error(message + " [" + gcx_result_name(result) + ", " +
                             std::to_string(static_cast<int>(result)) + "]"),
          result_(result) {}

    // The result: a CUresult below 10000, from 10000 on gcx's own.
    gcx_result result() const noexcept { return result_; }
    // "GCX_ERROR_INVALID_VALUE"
    const char* name() const noexcept { return gcx_result_name(result_); }

  private:
    gcx_result result_;
};

namespace detail {
// Not inlined, so that callers stay small.
[[noreturn, gnu::cold, gnu::noinline]] inline void fail(gcx_result result) {
    throw error(result, gcx_last_error_message());
}
} // namespace detail

// Throws if the last call of gcx.h in this thread failed with this result.
inline void check(gcx_result result) {
    if (result != GCX_SUCCESS)
        detail::fail(result);
}

namespace detail {

// Converts the result of a query.
inline bool finished(gcx_result result) {
    if (result != GCX_ERROR_NOT_READY)
        check(result);
    return result == GCX_SUCCESS;
}

// Returns all that a list function returns: list(array, capacity, count).
template <class Element, class List>
std::vector<Element> listed(const List& list, uint32_t room = 16) {
    std::vector<Element> elements(room);
    for (;;) {
        uint32_t count = 0;
        const gcx_result result = list(elements.data(), room, &count);
        // The list can grow between two calls.
        if (result != GCX_ERROR_INSUFFICIENT_CAPACITY || count <= room)
            check(result);
        elements.resize(count);
        if (count <= room)
            return elements;
        room = count;
    }
}

} // namespace detail

} // namespace gcx
