#include "sim/profiles/recording.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gcx::sim {
namespace {

constexpr off_t kMostBytes = 1 << 20; // a recording of the largest device has some 10 KiB

class OpenFile {
  public:
    // Without O_NONBLOCK, opening a pipe would wait for somebody who writes to it.
    explicit OpenFile(const std::string& path)
        : descriptor_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    ~OpenFile() {
        if (descriptor_ >= 0)
            close(descriptor_);
    }
    int get() const { return descriptor_; }

  private:
    int descriptor_;
};

// Reads what is there, were it more than the file was said to hold.
bool read_all(int descriptor, std::string& text) {
    char buffer[65536];
    while (static_cast<off_t>(text.size()) <= kMostBytes) {
        const ssize_t count = read(descriptor, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count == 0;
        text.append(buffer, static_cast<std::size_t>(count));
    }
    return true;
}

} // namespace

bool read_recording(const std::string& path, std::string& text, std::string& error) {
    const auto refuse = [&](const std::string& why) {
        error = "cannot read the recording \"" + path + "\": " + why;
        return false;
    };
    const OpenFile file(path);
    struct stat about = {};
    if (file.get() < 0 || fstat(file.get(), &about) != 0)
        return refuse(std::strerror(errno));
    if (S_ISDIR(about.st_mode))
        return refuse("it is a folder; name the file that gcx info --record wrote");
    if (!S_ISREG(about.st_mode))
        return refuse("it is no regular file; name the file that gcx info --record wrote");
    if (!read_all(file.get(), text))
        return refuse(std::strerror(errno));
    if (static_cast<off_t>(text.size()) > kMostBytes)
        return refuse("it is larger than 1 MiB, which no recording is");
    return true;
}

} // namespace gcx::sim
