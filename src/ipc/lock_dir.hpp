// Files that processes of one host share: a directory of small files, whose locks say which process
// owns which file.
//
// 1. A file is alive while a process has it locked; such a process is an owner of the file. The
//    kernel releases the lock however the process ends, so a dead owner's file can be recognized.
// 2. A file appears under its name when it is complete and owned, by rename().
// 3. Processes that change what others rely on lock the whole directory first.
// 4. A child of a fork owns nothing of its parent: it closes the files.
// 5. A file that was found dead stays dead: it is removed, or marked where the directory's sticky bit
//    prevents that. Processes become owners with the directory locked. The audit library of
//    `gcx exec`, which can't wait for that lock, first locks all but the first byte, and refuses
//    the file if it is removed by then, or marked and without an owner. An owner has the first byte
//    locked.
//
// Other users may write to the directory of a group, so nothing in it is trusted unchecked.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gcx {

// An open file that neither the children of a fork nor programs started by exec inherit. A lock on
// it therefore belongs to this process only, and is released when this process ends.
class CloseOnForkFile {
  public:
    CloseOnForkFile() = default;
    // Opens a file as openat() does. On failure the object is empty, and errno says why.
    CloseOnForkFile(int dir, const char* path, int flags, mode_t mode = 0);

    // Returns the descriptor, or -1 if the object is empty, if this process is the child of a fork,
    // or if the program closed the descriptor: its number may then belong to another file.
    int get() const;
    explicit operator bool() const { return get() >= 0; }
    // Keeps the locks on the file even if the program closes the descriptor, as daemons do that
    // close all of them. Has no effect on a file that can't be mapped.
    void outlive_descriptor() const;
    // Lets children and the programs that they start inherit the file from now on.
    void make_inheritable();
    bool inheritable() const;
    // Returns whether the path leads to another file by now, or to none.
    bool is_gone_from(const char* path) const;

  private:
    struct Node;
    struct Close {
        void operator()(Node* node) const;
    };
    friend struct OpenFiles;

    std::unique_ptr<Node, Close> node_;
};

// Returns how many forks lie between this process and the first one that opened such a file.
unsigned fork_count();

// The variable that names the directory for reservations and published leases. If it is not set,
// they are stored in the private directory of the effective user, which has mode 700.
inline constexpr char kFolderVariable[] = "GCX_RESERVATION_DIR";

// Returns the directory that the environment names, or an empty string.
inline std::string chosen_folder() {
    // secure_getenv: the caller of a setuid program must not choose where that program writes.
    const char* const chosen = secure_getenv(kFolderVariable);
    return chosen == nullptr ? "" : chosen;
}

// Returns the directory that is used if the environment names none. It must be the same for all
// processes of a user: /run/user/UID exists only during login sessions, services with PrivateTmp
// have a private /tmp, and sudo keeps or changes HOME and XDG_RUNTIME_DIR.
inline std::string usual_folder() {
    return "/dev/shm/gcx-" + std::to_string(geteuid());
}

// Returns the time by the clock of all processes, as files tell it.
inline uint64_t milliseconds_since_1970() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

// A directory of files that processes share.
class LockDir {
  public:
    using Clock = std::chrono::steady_clock;

    // Opens an existing directory by its absolute path. If the path is empty, opens the user's own
    // directory, and creates it if necessary. Throws if the directory belongs to another user, or if
    // more users can enter it than should.
    static LockDir open(const std::string& path);
    // Does the same, but creates nothing. Returns nothing if the user's own does not exist.
    static std::optional<LockDir> find(const std::string& path);
    // The same for the directory that only this user can enter, below a shared directory.
    static LockDir open_private(const std::string& shared);
    static std::optional<LockDir> find_private(const std::string& shared);

    const std::string& path() const { return path_; }

    // Locks the directory against other processes and other objects. Returns false if that is not
    // possible before the deadline, or if cancelled() returns true.
    [[nodiscard]] bool lock(Clock::time_point deadline,
                            const std::function<bool()>& cancelled = nullptr);
    // Locks, or throws an error that says why not: at the deadline, or as soon as another process
    // has had the directory locked for 5 s without a change. Returns false if it was cancelled.
    [[nodiscard]] bool lock_or_fail(Clock::time_point deadline,
                                    const std::function<bool()>& cancelled = nullptr);
    void unlock() noexcept;
    ~LockDir() { unlock(); }
    LockDir(LockDir&&) = default;
    LockDir& operator=(LockDir&&) = delete;

    // Returns the names of the entries with this prefix, sorted.
    std::vector<std::string> names(std::string_view prefix) const;

    struct Found {
        CloseOnForkFile file; // for reading; empty if it does not exist or can't be used
        bool alive = false;   // a process other than this object's owns it
        bool is_plain = true; // false: a link, a FIFO, a device and the like
        uint32_t user = 0;    // the file's user
        std::string problem;  // why it can't be used; empty if it does not exist
    };
    // Opens a file of another process. Throws only if this process lacks descriptors or memory.
    Found look_at(const std::string& name) const;

    // Creates a file with these bytes and owns it. Until it is complete, kUnfinished is appended to
    // its name. A process that has the directory locked may remove such a file, so lock the
    // directory first.
    static constexpr std::string_view kUnfinished = ".new";
    CloseOnForkFile create(const std::string& name, std::string_view bytes) const;
    // Does the same with zeros, and lets other processes, even of this user, only read the file:
    // shortening a mapped file would end the process that maps it.
    CloseOnForkFile create_read_only(const std::string& name, std::size_t size) const;
    // Takes no lock and no memory, so that it can be called while the process ends.
    void remove(const std::string& name) const noexcept;
    // Removes a file without an owner, or marks it as dead if only other users may remove it; lock
    // the directory first. Returns false if the file has an owner, or can be neither removed nor
    // marked. Throws if that is not known, because descriptors, memory or locks ran out.
    [[nodiscard]] bool remove_dead(const std::string& name) const;
    // The mark is an empty file, with this at the end of its name. It has no meaning while the file
    // has an owner.
    static constexpr std::string_view kDead = ".dead";
    bool exists(const std::string& name) const;

    // Overwrites an open file.
    void write(const CloseOnForkFile& file, std::string_view bytes) const;

  private:
    LockDir(CloseOnForkFile dir, std::string path, bool of_group)
        : dir_(std::move(dir)), path_(std::move(path)), of_group_(of_group) {}
    static LockDir open_at(const std::string& path, int flags);
    static LockDir open_named(const std::string& path);
    static LockDir open_checked(const std::string& private_dir);
    bool was_replaced() const;
    timespec last_change() const;
    CloseOnForkFile create(const std::string& name, std::string_view bytes, std::size_t size,
                           mode_t mode) const;
    void allocate(const CloseOnForkFile& file, std::size_t size, mode_t mode) const;
    bool mark_dead(const std::string& name) const;

    CloseOnForkFile dir_;
    std::string path_;
    bool of_group_;
    bool locked_ = false;
};

// Makes this process an owner of the file, next to others. Throws if that fails.
void own(const CloseOnForkFile& file, const std::string& path);
// Ends the ownership and leaves the file open: another thread may be using it. Unless the file is
// inheritable, this also ends the ownership of a child that was just forked and has not closed it.
void disown(const CloseOnForkFile& file) noexcept;
// Returns whether a process owns the file through another descriptor. Throws if that is not known.
bool has_owner(const CloseOnForkFile& file, const std::string& path);

// Whether /proc shows that a process owns a file.
enum class Owns : uint8_t { yes, no, unknown };
// matches: tests the path of a file as /proc shows it.
Owns owns_file(int32_t pid, const std::function<bool(std::string_view path)>& matches);
// Returns the process ids that /proc lists, in ascending order. If /proc can't be listed, there are
// none and errno is set.
std::vector<int32_t> visible_processes();
// Returns the content of a file of /proc; an empty string if the process has ended.
std::string read_proc(int32_t pid, const std::string& name);

} // namespace gcx
