// Failures inside the library: thrown, and turned into a gcx_result at the API's edge.
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

// printf into a std::string.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

[[noreturn]] inline void fail(gcx_result result, std::string message) {
    throw Error{result, std::move(message)};
}

} // namespace gcx
