// Part of gcx.hpp: gcx::error, which every failed call throws.
#pragma once

#include "../gcx.h"
#include "generated/constants.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace gcx {

// gcx_result_name and gcx_result_string: a result's name, and what it means in general.
inline const char* result_name(gcx_result result) noexcept {
    return gcx_result_name(result);
}
inline const char* result_string(gcx_result result) noexcept {
    return gcx_result_string(result);
}

// gcx_last_error_message: of the last function that failed in this thread, also of a C function.
inline const char* last_error_message() noexcept {
    return gcx_last_error_message();
}

// One type in the whole process, also where a program hides its symbols.
class GCX_API error : public std::runtime_error {
  public:
    error(gcx_result result, const std::string& message)
        : std::runtime_error(message + " [" + gcx_result_name(result) + ", " +
                             std::to_string(static_cast<int>(result)) + "]"),
          result_(result) {}

    // A CUresult's number, to be compared with gcx.h's names.
    gcx_result result() const noexcept { return result_; }
    // "GCX_ERROR_INVALID_VALUE"
    const char* name() const noexcept { return gcx_result_name(result_); }

  private:
    gcx_result result_;
};

namespace detail {
// Apart, so that the callers stay as small as C's.
[[noreturn, gnu::cold, gnu::noinline]] inline void fail(gcx_result result) {
    throw error(result, gcx_last_error_message());
}
} // namespace detail

// Throws if a call of gcx.h failed, in this thread and just now.
inline void check(gcx_result result) {
    if (result != GCX_SUCCESS)
        detail::fail(result);
}

namespace detail {

// Whether a query says that all has finished.
inline bool finished(gcx_result result) {
    if (result != GCX_ERROR_NOT_READY)
        check(result);
    return result == GCX_SUCCESS;
}

// All that a function of gcx.h lists: list(array, capacity, count).
template <class Element, class List>
std::vector<Element> listed(const List& list, uint32_t room = 16) {
    std::vector<Element> elements(room);
    for (;;) {
        uint32_t count = 0;
        const gcx_result result = list(elements.data(), room, &count);
        // Others may make some meanwhile.
        if (result != GCX_ERROR_INVALID_VALUE || count <= room)
            check(result);
        elements.resize(count);
        if (count <= room)
            return elements;
        room = count;
    }
}

} // namespace detail

} // namespace gcx
