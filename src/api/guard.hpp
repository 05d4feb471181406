// The edge between C and C++: errors become results, and the caller's structs are checked.
#pragma once

#include "api/library.hpp"
#include "base/log.hpp"

#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace gcx {

// Keeps the message for gcx_last_error_message and gives back the result.
gcx_result record_error(const char* function, gcx_result result, const char* message) noexcept;

// log::deliver() at the end of an API function. A callback that calls gcx, which it must not,
// changes nothing of what gcx_last_error_message says of the function.
void deliver_log() noexcept;

template <class Body>
gcx_result answer_of(const char* function, Body&& body) noexcept {
    try {
        if constexpr (std::is_void_v<decltype(body())>) {
            body();
            return GCX_SUCCESS;
        } else {
            return body();
        }
    } catch (const Error& error) {
        return record_error(function, error.result, error.message.c_str());
    } catch (const std::bad_alloc&) {
        return record_error(function, GCX_ERROR_OUT_OF_MEMORY, "the host's memory is exhausted");
    } catch (const std::exception& defect) {
        return record_error(function, GCX_ERROR_UNKNOWN, defect.what());
    } catch (...) {
        return record_error(function, GCX_ERROR_UNKNOWN, "an exception of unknown type");
    }
}

// Runs a function's body. The body returns nothing, or a gcx_result that needs no message. What was
// written to the log meanwhile is given out when all locks of gcx are free again.
template <class Body>
gcx_result guarded(const char* function, Body&& body) noexcept {
    const gcx_result result = answer_of(function, std::forward<Body>(body));
    deliver_log();
    return result;
}

template <class T>
T* not_null(T* pointer, const char* what) {
    if (pointer == nullptr)
        fail(GCX_ERROR_INVALID_VALUE, format("%s is NULL", what));
    return pointer;
}

// Checks the struct_size of a struct that grows, and gives it back: all of it, or, of one that has
// grown, what there was of it before.
template <class T>
std::size_t check_size(const T* value, const char* what, std::size_t before = sizeof(T)) {
    not_null(value, what);
    if (value->struct_size != sizeof(T) && value->struct_size != before)
        fail(GCX_ERROR_INVALID_VALUE,
             format("%s->struct_size is %u; this version of gcx knows %zu. Begin with the struct's "
                    "_INIT macro",
                    what, value->struct_size, sizeof(T)));
    return value->struct_size;
}

template <class Handle>
Handle handle_of(uint64_t bits) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): handles aren't addresses
    return reinterpret_cast<Handle>(bits);
}

} // namespace gcx

// The body of an API function: GCX_BODY({ ... }) with the function's own name in its messages.
#define GCX_BODY(...) return gcx::guarded(__func__, [&]() __VA_ARGS__)
