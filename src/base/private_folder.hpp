// Files through which processes of one user tell each other something: a folder that is nobody
// else's, and files in it that go with the process that made them. Whatever lies there is looked at
// with suspicion.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gcx {

class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor();
    int get() const { return number_; }
    explicit operator bool() const { return number_ >= 0; }

  private:
    int number_ = -1;
};

// A file that this process made. While it has the descriptor open it holds a lock on it, which the
// kernel drops however the process ends: so whoever comes by knows what the dead left behind.
struct OwnFile {
    Descriptor file;
    std::string name;
};

// What was found under a name.
struct FoundFile {
    Descriptor file;     // for reading; none: see refused
    std::string refused; // why it isn't to be read; empty: it is gone
};

// What a user can do about an error of the operating system in such a folder; empty if the error
// isn't about the place.
std::string folder_advice(int error);

class PrivateFolder {
  public:
    // Opens the folder of the effective user: user-UID below a shared folder, or usual_folder() if
    // that path is empty. Throws if it is a link, belongs to another user, or others can enter it.
    static PrivateFolder make(const std::string& shared); // creates it if it is missing
    static std::optional<PrivateFolder> find(const std::string& shared);

    const std::string& path() const { return path_; }

    // The names that are the prefix and a random number.
    std::vector<std::string> names(std::string_view prefix) const;
    // A new file of so many bytes, all of them zero and on the disk. Leaves nothing if it fails.
    OwnFile create(std::string_view prefix, std::size_t bytes) const;
    // A file that a living process made. What a dead one left is removed.
    FoundFile open(const std::string& name, std::size_t most_bytes) const;
    // Usable while the process ends: takes no lock and no memory.
    void remove(const char* name) const noexcept;

  private:
    PrivateFolder(Descriptor folder, std::string path)
        : folder_(std::move(folder)), path_(std::move(path)) {}
    static std::optional<PrivateFolder> open_at(std::string path);
    void fill(const OwnFile& own, std::size_t bytes) const;

    Descriptor folder_;
    std::string path_;
};

} // namespace gcx
