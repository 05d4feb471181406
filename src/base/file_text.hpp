// Reads small files of the system whole, such as those in /proc.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>

namespace gcx {

// Returns what can be read of the file; an empty string if it cannot be opened. A process in /proc
// may end while its files are read.
inline std::string file_text(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    std::string text;
    std::array<char, 4096> bytes{};
    ssize_t got = 0;
    while (file >= 0 && (got = read(file, bytes.data(), bytes.size())) > 0)
        text.append(bytes.data(), static_cast<std::size_t>(got));
    if (file >= 0)
        close(file);
    return text;
}

} // namespace gcx
