#include "interpose/partition.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string>

namespace gcx::shim {

void say(const char* format, ...) {
    // One write, so that lines of several processes don't mix.
    char line[1024] = "gcx exec: ";
    constexpr std::size_t kStart = std::char_traits<char>::length("gcx exec: ");
    constexpr std::size_t kRoom = sizeof line - kStart - 1; // a newline takes the place of the end
    va_list arguments;
    va_start(arguments, format);
    const int wanted = std::vsnprintf(line + kStart, kRoom, format, arguments);
    va_end(arguments);
    const std::size_t said = std::min(static_cast<std::size_t>(std::max(wanted, 0)), kRoom - 1);
    line[kStart + said] = '\n';
    line[kStart + said + 1] = '\0';
    std::fputs(line, stderr);
}

} // namespace gcx::shim
