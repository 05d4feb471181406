// The exception of the library, and the formatting of its message. src/api turns it into a
// gcx_result.
#pragma once

#include <gcx.h>

#include <cstdarg>
#include <cstdio>
#include <string>
#include <utility>

namespace gcx {

struct Error {
    gcx_result result;
    std::string message;
};

// Formats like printf.
[[gnu::format(printf, 1, 2)]] inline std::string format(const char* pattern, ...) {
    va_list arguments;
    va_start(arguments, pattern);
    va_list copy;
    va_copy(copy, arguments);
    const int length = std::vsnprintf(nullptr, 0, pattern, arguments);
    va_end(arguments);
    std::string text(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
    std::vsnprintf(text.data(), text.size() + 1, pattern, copy);
    va_end(copy);
    return text;
}

[[noreturn]] inline void fail(gcx_result result, std::string message) {
    throw Error{result, std::move(message)};
}

} // namespace gcx
