// Part of gcx.hpp: cancellation, timeouts and names, which blocking calls share.
#pragma once

#include "error.hpp"
#include "owner.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_jthread
#include <stop_token>
#endif

namespace gcx {

// Cancels the waits that it was passed to when a thread signals it.
class cancel : public detail::owner<gcx_cancel, gcx_cancel_destroy> {
  public:
    cancel() { check(gcx_cancel_create(receive())); }
    // Takes ownership of a handle of gcx.h.
    static cancel adopt(gcx_cancel owned) noexcept { return cancel(owned); }

    // gcx_cancel_signal: permanent.
    void signal() const { check(gcx_cancel_signal(handle())); }

  private:
    explicit cancel(gcx_cancel owned) noexcept { *receive() = owned; }
};

// A std::string for a name or a folder that throws GCX_ERROR_INVALID_VALUE for a null pointer, as
// std::getenv returns for a variable that is not set. std::string would throw std::logic_error.
class nonnull_string : public std::string {
  public:
    nonnull_string() = default;
    template <class Text, class = std::enable_if_t<std::is_convertible_v<Text, std::string>>>
    nonnull_string(Text&& value) : std::string(checked(std::forward<Text>(value))) {}

  private:
    template <class Text>
    static Text&& checked(Text&& value) {
        if constexpr (std::is_convertible_v<Text, const char*>) {
            const char* const text = value;
            if (text == nullptr)
                throw error(GCX_ERROR_INVALID_VALUE,
                            "gcx::nonnull_string: the name or folder is nullptr; if it comes from "
                            "std::getenv, set that variable, or leave the name or folder out");
        }
        return std::forward<Text>(value);
    }
};

// A timeout: GCX_FOREVER.
inline constexpr std::chrono::milliseconds forever = std::chrono::milliseconds::max();

namespace detail {

// Refuses a text that C would cut at a byte 0.
inline const char* text(const char* what, const std::string& value) {
    if (value.find('\0') != std::string::npos)
        throw error(GCX_ERROR_INVALID_VALUE, std::string(what) + " has a byte 0 in it");
    return value.c_str();
}

// Refuses an empty object, which C would take for no cancellation.
inline gcx_cancel cancel_of(const char* where, const cancel* given) {
    if (given != nullptr && !*given)
        throw error(GCX_ERROR_INVALID_HANDLE,
                    std::string(where) + ": cancel was closed or moved from");
    return given != nullptr ? given->handle() : nullptr;
}

inline uint32_t timeout_ms(const char* where, std::chrono::milliseconds timeout) {
    if (timeout.count() < 0)
        throw error(GCX_ERROR_INVALID_VALUE, std::string(where) + ": waiting for " +
                                                 std::to_string(timeout.count()) +
                                                 " ms; 0 doesn't wait, gcx::forever has no end");
    return timeout.count() < static_cast<int64_t>(GCX_FOREVER)
               ? static_cast<uint32_t>(timeout.count())
               : GCX_FOREVER;
}

#ifdef __cpp_lib_jthread
template <class Stop>
using if_stop = std::enable_if_t<std::is_same_v<Stop, std::stop_token>>;

// Runs a blocking call with a cancel that the stop token signals.
template <class Wait>
void until_stopped(const char* where, const std::stop_token& stop, const cancel* given,
                   const Wait& wait) {
    if (given != nullptr)
        throw error(GCX_ERROR_INVALID_VALUE,
                    std::string(where) + ": a stop_token and a cancel; a call has one of them");
    const cancel requested;
    const std::stop_callback callback(stop, [&] { gcx_cancel_signal(requested.handle()); });
    wait(requested);
}
#endif

} // namespace detail

} // namespace gcx
