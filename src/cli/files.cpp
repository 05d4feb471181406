#include "cli/files.hpp"

#include "cli/checked.hpp"
#include "cli/text.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace gcx::cli {

void write_file(const std::string& path, const std::string& content) {
    const auto refuse = [&](const char* what) {
        throw Failure(GCX_ERROR_OPERATING_SYSTEM,
                      format("can't %s %s: %s", what, path.c_str(), std::strerror(errno)));
    };
    std::FILE* const file = std::fopen(path.c_str(), "we");
    if (file == nullptr)
        refuse("write");
    const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
    const int reason = errno;
    // A full disk may show only here.
    const bool closed = std::fclose(file) == 0;
    if (!written)
        errno = reason;
    if (!written || !closed)
        refuse("write all of");
}

} // namespace gcx::cli
