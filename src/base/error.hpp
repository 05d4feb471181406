// The exception of the library. src/api turns it into a gcx_result and a message.
#pragma once

#include <gcx.h>

#include <cstdarg>
#include <string>
#include <utility>

namespace gcx {

struct Error {
    gcx_result result;
    std::string message;
};

// Formats like printf.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

[[noreturn]] inline void fail(gcx_result result, std::string message) {
    throw Error{result, std::move(message)};
}

} // namespace gcx
