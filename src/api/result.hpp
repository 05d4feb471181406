// The boundary between C and C++: exceptions become results and messages, and the caller's
// arguments are checked.
#pragma once

#include "base/error.hpp"

#include <gcx.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace gcx {

// Stores the message for gcx_last_error_message and returns the result.
gcx_result record_error(const char* function, gcx_result result, const char* message) noexcept;

// Calls log::deliver() at the end of an API function. Preserves gcx_last_error_message even if a
// log callback calls gcx, which it must not.
void deliver_log() noexcept;

template <class Body>
gcx_result catch_errors(const char* function, Body&& body) noexcept {
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

// Runs the body of an API function, which returns nothing, or a gcx_result that needs no message.
// Delivers the log afterwards, when no lock of gcx is held.
template <class Body>
gcx_result run_api_function(const char* function, Body&& body) noexcept {
    const gcx_result result = catch_errors(function, std::forward<Body>(body));
    deliver_log();
    return result;
}

template <class T>
T* not_null(T* pointer, const char* what) {
    if (pointer == nullptr)
        fail(GCX_ERROR_INVALID_VALUE, format("%s is NULL", what));
    return pointer;
}

// The size of a struct in the first version that had it. A struct that grows after a release gets a
// specialization with its size in that release.
template <class T>
inline constexpr std::size_t first_size = sizeof(T);
template <>
inline constexpr std::size_t first_size<gcx_cache_stats> = offsetof(gcx_cache_stats, prepared);

// A larger struct_size is uninitialized memory, not a newer version of the struct.
constexpr std::size_t kMaxStructSize = 65536;

// Checks the struct_size of a caller's struct, which another version of the header can define.
template <class T>
std::size_t check_size(const T* value, const char* what) {
    not_null(value, what);
    const std::size_t size = value->struct_size;
    if (size < first_size<T> || size > kMaxStructSize)
        fail(GCX_ERROR_INVALID_VALUE,
             format("%s->struct_size is %zu; it is %zu in this version of gcx and at least %zu in "
                    "any; initialize the struct with its _INIT macro",
                    what, size, sizeof(T), first_size<T>));
    return size;
}

// Returns the part of the caller's struct that this version knows. What the caller has beyond it
// must be 0.
template <class T>
T read_struct(const T* from, const char* what) {
    const std::size_t size = check_size(from, what);
    T value{};
    std::memcpy(&value, from, std::min(size, sizeof(T)));
    const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
    for (std::size_t i = sizeof(T); i < size; i++)
        if (bytes[i] != 0)
            fail(
                GCX_ERROR_INVALID_VALUE,
                format("byte %zu of %s is %u, and this version of gcx knows %zu bytes; the program "
                       "was built for a newer gcx and uses a field of it",
                       i, what, bytes[i], sizeof(T)));
    return value;
}

// A struct that the caller receives: checked at first, and written at the end, if nothing failed.
template <class T>
class StructOutput {
  public:
    StructOutput(T* to, const char* what) : to_(to), size_(check_size(to, what)) {
        // Unlike an initializer, memset clears padding, too.
        std::memset(&value_, 0, sizeof value_);
    }
    T* operator->() { return &value_; }
    T& operator*() { return value_; }

    // Writes what fits the caller's struct and sets what the caller has beyond this version's to 0.
    void write() {
        value_.struct_size = static_cast<uint32_t>(size_);
        auto* const bytes = reinterpret_cast<unsigned char*>(to_);
        std::memcpy(bytes, &value_, std::min(size_, sizeof(T)));
        if (size_ > sizeof(T))
            std::memset(bytes + sizeof(T), 0, size_ - sizeof(T));
    }

  private:
    T* to_;
    std::size_t size_;
    T value_;
};

// Returns a copy of the caller's params, or the defaults if it is NULL.
template <class T>
T params_or_defaults(const T* params, std::type_identity_t<T> defaults) {
    return params == nullptr ? defaults : read_struct(params, "params");
}

// Checks the arguments of a function that lists something, before it is found.
template <class T>
void check_list(const T* to, const char* name, uint32_t capacity, const uint32_t* count) {
    not_null(count, "count");
    if (capacity != 0)
        not_null(to, name);
}

// Writes a list to the caller's array. *count is the number of elements even if they don't fit.
template <class T, class Found, class Describe>
void give_list(const std::vector<Found>& found, const char* what, T* to, uint32_t capacity,
               uint32_t* count, Describe&& describe) {
    *count = static_cast<uint32_t>(found.size());
    if (found.size() > capacity)
        fail(GCX_ERROR_INSUFFICIENT_CAPACITY,
             format("there are %zu %s, and room for %u; *count is what is needed", found.size(),
                    what, capacity));
    std::transform(found.begin(), found.end(), to, describe);
}
template <class T>
void give_list(const std::vector<T>& found, const char* what, T* to, uint32_t capacity,
               uint32_t* count) {
    give_list(found, what, to, capacity, count, [](const T& one) { return one; });
}

template <class Handle>
Handle handle_of(uint64_t bits) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): handles aren't addresses
    return reinterpret_cast<Handle>(bits);
}

} // namespace gcx

// The body of an API function: GCX_BODY({ ... }). Its messages begin with the function's name.
#define GCX_BODY(...) return gcx::run_api_function(__func__, [&]() __VA_ARGS__)
