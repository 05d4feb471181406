// A folder in which processes agree on something, of one user or of a group: its files are changed
// by who has locked it, and are alive while a process has them locked. Whatever lies there is
// looked at with suspicion.
#pragma once

#include "base/unforked_file.hpp"

#include <sys/types.h>

#include <chrono>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gcx {

class SharedFolder {
  public:
    using Clock = std::chrono::steady_clock;

    // path: an absolute one, of a folder that is there; empty: usual_folder(), which is created if
    // it is missing. Throws if it is somebody else's, or more may enter it than should.
    static SharedFolder open(const std::string& path);
    // The same, but that the user's own may be missing.
    static std::optional<SharedFolder> find(const std::string& path);

    const std::string& path() const { return path_; }

    // Waits until nobody else has it locked, and at most until then. While this object lives, no
    // other process and no other object has it locked. False: it can't be had.
    [[nodiscard]] bool lock(Clock::time_point until, const std::function<bool()>& given_up);
    // Locks, or throws an error that says why not: at the time until, or as soon as another process
    // has had the folder locked for 5 s and has changed nothing. False: it was given up.
    [[nodiscard]] bool lock_or_fail(Clock::time_point until, const std::function<bool()>& given_up);
    ~SharedFolder();
    SharedFolder(SharedFolder&&) = default;
    SharedFolder& operator=(SharedFolder&&) = delete;

    // Those that begin so.
    std::vector<std::string> names(std::string_view prefix) const;

    struct Found {
        UnforkedFile file;   // for reading; none: see refused
        bool alive = false;  // some process has it locked
        uint32_t user = 0;   // whose it is
        std::string refused; // why it can't be looked at; empty: it is gone, or no plain file
    };
    // Throws only if this process lacks what it takes to look.
    Found look_at(const std::string& name) const;
    // A new file, locked, of these bytes. Nobody sees it under its name before it is whole; until
    // then kUnfinished is added to that, and who has the folder locked may remove what is called
    // so. These want the lock.
    static constexpr std::string_view kUnfinished = ".new";
    UnforkedFile create(const std::string& name, std::string_view bytes) const;
    void remove(const std::string& name) const noexcept;
    // Removes a file that no process keeps alive. Returns false if one does: a process may begin to
    // without the folder's lock, and is kept from it here while the file is removed.
    [[nodiscard]] bool remove_dead(const std::string& name) const;

    // Of an open file: writes all of it anew.
    void write(const UnforkedFile& file, std::string_view bytes) const;

  private:
    SharedFolder(UnforkedFile folder, std::string path, bool of_group)
        : folder_(std::move(folder)), path_(std::move(path)), of_group_(of_group) {}
    static SharedFolder open_at(const std::string& path, int flags);
    static SharedFolder open_named(const std::string& path);
    bool was_replaced() const;
    timespec last_change() const;
    void fill(const UnforkedFile& file, std::size_t bytes) const;

    UnforkedFile folder_;
    std::string path_;
    bool of_group_;
    bool locked_ = false;
};

// Keeps a file alive, beside others who do. Throws if that can't be.
void keep_alive(const UnforkedFile& file, const std::string& path);
// Keeps it alive no longer. Unless it was bequeathed that holds for a child too that was forked
// just now and has not closed it yet.
void give_up(UnforkedFile file) noexcept;
// Does the same, and leaves the file open: another thread may be using it.
void stop_keeping_alive(const UnforkedFile& file) noexcept;
// Whether some process keeps it alive that isn't of this open file. Throws if that can't be told.
bool is_kept_alive(const UnforkedFile& file, const std::string& path);

} // namespace gcx
