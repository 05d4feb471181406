#include "ipc/lock_dir.hpp"

#include "base/error.hpp"
#include "ipc/user_runtime_dir.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <memory>
#include <thread>

namespace gcx {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostEntries = 16384; // guards against a directory that was filled on purpose
// A change takes less than a millisecond, so a process that needs longer was stopped.
constexpr auto kLongestChange = 5s;
constexpr auto kChangeCheckInterval = 100ms;
constexpr auto kFirstPause = 50us;
constexpr auto kLongestPause = 8ms;
constexpr mode_t kOthers = S_IRWXO;
// systemd-tmpfiles and the like do not remove files with the sticky bit.
constexpr mode_t kModeOfUser = S_IRUSR | S_IWUSR | S_ISVTX;
constexpr mode_t kModeOfGroup = kModeOfUser | S_IRGRP;
constexpr mode_t kModeReadOnly = S_IRUSR | S_ISVTX;

// Returns whether a directory is shared by a group. Throws unless it belongs to this user or to a
// group only.
bool is_of_group(const struct stat& info, const std::string& path) {
    const mode_t mode = info.st_mode & 07777;
    if ((mode & kOthers) != 0)
        fail(GCX_ERROR_UNSAFE_FOLDER,
             format("the folder %s has mode %o, so all users can enter it; name a private folder "
                    "of mode 700, or one of a group of mode 2770",
                    path.c_str(), mode));
    if ((mode & S_IRWXG) == 0) {
        if (info.st_uid == geteuid())
            return false;
        fail(GCX_ERROR_UNSAFE_FOLDER,
             format("the folder %s is private to user %u, and this process runs as user %u; a "
                    "group's folder has mode 2770",
                    path.c_str(), info.st_uid, geteuid()));
    }
    if ((mode & S_IRWXG) != S_IRWXG || (mode & S_ISGID) == 0)
        fail(GCX_ERROR_UNSAFE_FOLDER,
             format("the folder %s has mode %o, which gives its group some permissions; a group's "
                    "folder has mode 2770 or 3770, so that its files belong to the group",
                    path.c_str(), mode));
    return true; // and only members of the group, or root, can open it
}

// Locks of fcntl(F_OFD_*) belong to the open file and not to the process: closing another
// descriptor of the same file releases nothing.
struct flock whole_file(short type) {
    struct flock lock{};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return lock;
}

std::string proc_path(int32_t pid, const std::string& name) {
    return "/proc/" + std::to_string(pid) + "/" + name;
}

// Returns the entries that are numbers: processes in /proc, descriptors in /proc/PID/fd. If the
// directory can't be opened, the list is empty and errno is set.
std::vector<int32_t> numbers_in(const std::string& dir) {
    errno = 0;
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(dir.c_str()), closedir);
    std::vector<int32_t> numbers;
    if (entries == nullptr)
        return numbers;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread uses this stream
    while (const dirent* const entry = readdir(entries.get())) {
        const std::string_view name = entry->d_name;
        int32_t number = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
        if (error == std::errc() && end == name.data() + name.size())
            numbers.push_back(number);
    }
    return numbers;
}

} // namespace

void own(const CloseOnForkFile& file, const std::string& path) {
    struct flock lock = whole_file(F_RDLCK);
    if (fcntl(file.get(), F_OFD_SETLK, &lock) != 0)
        fail_in_dir("can't lock", path, errno);
    file.outlive_descriptor();
}

void disown(const CloseOnForkFile& file) noexcept {
    struct flock lock = whole_file(F_UNLCK);
    if (file && !file.inheritable())
        fcntl(file.get(), F_OFD_SETLK, &lock);
}

bool has_owner(const CloseOnForkFile& file, const std::string& path) {
    struct flock lock = whole_file(F_WRLCK);
    if (fcntl(file.get(), F_OFD_GETLK, &lock) != 0)
        fail_in_dir("can't tell whether a process has a lock on", path, errno);
    return lock.l_type != F_UNLCK;
}

LockDir LockDir::open_at(const std::string& path, int flags) {
    CloseOnForkFile dir(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | flags);
    if (!dir)
        fail_in_dir("can't open the folder", path, errno);
    struct stat info{};
    if (fstat(dir.get(), &info) != 0)
        fail_in_dir("can't look at the folder", path, errno);
    const bool of_group = is_of_group(info, path);
    return {std::move(dir), path, of_group};
}

LockDir LockDir::open_named(const std::string& path) {
    if (path.front() != '/')
        fail(GCX_ERROR_INVALID_VALUE,
             format("the folder %s is not an absolute path; begin it with /", path.c_str()));
    return open_at(path, 0);
}

LockDir LockDir::open(const std::string& path) {
    return path.empty() ? open_private("") : open_named(path);
}

std::optional<LockDir> LockDir::find(const std::string& path) {
    return path.empty() ? find_private("") : std::optional(open_named(path));
}

LockDir LockDir::open_checked(const std::string& private_dir) {
    LockDir dir = open_at(private_dir, O_NOFOLLOW);
    if (dir.of_group_)
        fail(GCX_ERROR_UNSAFE_FOLDER,
             format("the folder %s was replaced while it was opened; try again",
                    private_dir.c_str()));
    return dir;
}

LockDir LockDir::open_private(const std::string& shared) {
    return open_checked(create_user_runtime_dir(shared));
}

std::optional<LockDir> LockDir::find_private(const std::string& shared) {
    const auto path = find_user_runtime_dir(shared);
    return path ? std::optional(open_checked(*path)) : std::nullopt;
}

void LockDir::unlock() noexcept {
    // Closing is not enough: a child that was just forked may still have the descriptor.
    if (locked_ && dir_)
        flock(dir_.get(), LOCK_UN);
    locked_ = false;
}

bool LockDir::was_replaced() const {
    struct stat opened{};
    struct stat now{};
    return fstat(dir_.get(), &opened) != 0 || stat(path_.c_str(), &now) != 0 ||
           opened.st_ino != now.st_ino || opened.st_dev != now.st_dev;
}

bool LockDir::lock(Clock::time_point deadline, const std::function<bool()>& cancelled) {
    for (std::chrono::microseconds pause = kFirstPause;;
         pause = std::min(pause * 2, {kLongestPause})) {
        if (flock(dir_.get(), LOCK_EX | LOCK_NB) == 0)
            break;
        if (errno != EWOULDBLOCK && errno != EINTR)
            fail_in_dir("can't lock the folder", path_, errno);
        if (Clock::now() >= deadline || (cancelled && cancelled()))
            return false;
        std::this_thread::sleep_for(pause);
    }
    locked_ = true;
    if (was_replaced())
        fail(GCX_ERROR_OPERATING_SYSTEM,
             format("the folder %s was just removed or replaced; try again", path_.c_str()));
    return true;
}

// Returns when an entry was last created or removed.
timespec LockDir::last_change() const {
    struct stat info{};
    return fstat(dir_.get(), &info) == 0 ? info.st_mtim : timespec{};
}

bool LockDir::lock_or_fail(Clock::time_point deadline, const std::function<bool()>& cancelled) {
    const Clock::time_point begin = Clock::now();
    const timespec first = last_change();
    const auto differ = [](const timespec& a, const timespec& b) {
        return a.tv_sec != b.tv_sec || a.tv_nsec != b.tv_nsec;
    };
    timespec seen = first;
    auto since = begin;
    while (!lock(std::min(Clock::now() + kChangeCheckInterval, deadline), cancelled)) {
        if (cancelled && cancelled())
            return false;
        const timespec now = last_change();
        // Many processes that change the directory may keep it locked by turns without a fault.
        if (differ(now, seen))
            since = Clock::now();
        seen = now;
        if (Clock::now() < deadline && Clock::now() - since < kLongestChange)
            continue;
        const auto waited =
            std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
        fail(GCX_ERROR_TIMEOUT,
             format("other processes have had the folder %s locked for %lld ms%s: many use it at "
                    "once, or one was stopped in the middle of a change, or isn't gcx; try again, "
                    "and if that doesn't help, lsof tells which processes have the folder open",
                    path_.c_str(), static_cast<long long>(waited),
                    differ(now, first) ? "" : ", and nothing in it has changed"));
    }
    return true;
}

std::vector<std::string> LockDir::names(std::string_view prefix) const {
    const int copy = openat(dir_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* const opened = copy < 0 ? nullptr : fdopendir(copy);
    if (opened == nullptr) {
        const int error = errno;
        if (copy >= 0)
            close(copy);
        fail_in_dir("can't list the folder", path_, error);
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(opened, closedir);
    std::vector<std::string> found;
    errno = 0;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread uses this stream
    while (const dirent* const entry = readdir(entries.get())) {
        if (std::string_view(entry->d_name).starts_with(prefix))
            found.emplace_back(entry->d_name);
        if (found.size() > kMostEntries)
            fail(GCX_ERROR_OPERATING_SYSTEM,
                 format("the folder %s has more than %zu files named %.*s*, which are more than "
                        "gcx reads; remove those that gcx did not create",
                        path_.c_str(), kMostEntries, static_cast<int>(prefix.size()),
                        prefix.data()));
        errno = 0;
    }
    if (errno != 0)
        fail_in_dir("can't list the folder", path_, errno);
    std::sort(found.begin(), found.end());
    return found;
}

LockDir::Found LockDir::look_at(const std::string& name) const {
    Found found;
    // O_NONBLOCK: opening a FIFO must not wait for a writer.
    found.file = CloseOnForkFile(dir_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!found.file) {
        const int error = errno;
        if (error == EMFILE || error == ENFILE || error == ENOMEM) // not the file's fault
            fail_in_dir("can't open", path_ + "/" + name, error);
        found.is_plain = error != ELOOP && error != ENXIO && error != ENODEV;
        if (error == ELOOP)
            found.problem = "it is a link";
        else if (error != ENOENT)
            found.problem = format("it can't be opened: %s", std::strerror(error));
        return found;
    }
    struct stat info{};
    if (fstat(found.file.get(), &info) != 0) {
        found.problem = std::strerror(errno);
        found.file = {};
        return found;
    }
    found.user = info.st_uid;
    if (!S_ISREG(info.st_mode)) {
        found.is_plain = false;
        found.problem = "it is no plain file";
        found.file = {};
        return found;
    }
    found.alive = has_owner(found.file, path_ + "/" + name);
    if (found.alive && !of_group_ && info.st_uid != geteuid()) {
        found.problem =
            format("it belongs to user %u, in a folder of user %u", info.st_uid, geteuid());
        found.file = {};
    }
    return found;
}

CloseOnForkFile LockDir::create(const std::string& name, std::string_view bytes) const {
    return create(name, bytes, bytes.size(), of_group_ ? kModeOfGroup : kModeOfUser);
}

CloseOnForkFile LockDir::create_read_only(const std::string& name, std::size_t size) const {
    return create(name, "", size, kModeReadOnly);
}

CloseOnForkFile LockDir::create(const std::string& name, std::string_view bytes, std::size_t size,
                                mode_t mode) const {
    // If this process is killed here, no file is left under the final name that others can't read.
    const std::string unfinished = name + std::string(kUnfinished);
    CloseOnForkFile file(dir_.get(), unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
                         kModeOfUser);
    if (!file)
        fail_in_dir("can't make a file in", path_, errno);
    try {
        own(file, path_ + "/" + name);
        allocate(file, size, mode);
        write(file, bytes);
        if (renameat(dir_.get(), unfinished.c_str(), dir_.get(), name.c_str()) != 0)
            fail_in_dir("can't rename a file in", path_, errno);
    } catch (...) {
        remove(unfinished);
        throw;
    }
    return file;
}

// Sets the mode regardless of the umask, and reserves the space on the disk.
void LockDir::allocate(const CloseOnForkFile& file, std::size_t size, mode_t mode) const {
    if (fchmod(file.get(), mode) != 0)
        fail_in_dir("can't set the mode of a file in", path_, errno);
    rlimit most{};
    // Beyond the limit the kernel would end the process.
    const int error = getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < size
                          ? EFBIG
                          : posix_fallocate(file.get(), 0, static_cast<off_t>(size));
    if (error != 0)
        fail_in_dir(format("can't make a file of %zu bytes in", size), path_, error);
}

void LockDir::write(const CloseOnForkFile& file, std::string_view bytes) const {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t wrote =
            pwrite(file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
        if (wrote < 0 && errno != EINTR)
            fail_in_dir("can't write a file in", path_, errno);
        if (wrote == 0)
            fail_in_dir("can't write a file in", path_, ENOSPC);
        done += static_cast<std::size_t>(std::max<ssize_t>(wrote, 0));
    }
}

void LockDir::remove(const std::string& name) const noexcept {
    unlinkat(dir_.get(), name.c_str(), 0);
}

bool LockDir::remove_dead(const std::string& name) const {
    // A file that this process may not write is removed without the lock: those of other members
    // of the group, and those that are read-only.
    const CloseOnForkFile file(dir_.get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    struct flock lock = whole_file(F_WRLCK);
    if (file && fcntl(file.get(), F_OFD_SETLK, &lock) != 0 && (errno == EAGAIN || errno == EACCES))
        return false;
    remove(name);
    return true;
}

std::string read_proc(int32_t pid, const std::string& name) {
    const int file = ::open(proc_path(pid, name).c_str(), O_RDONLY | O_CLOEXEC);
    std::string text;
    std::array<char, 4096> bytes{};
    ssize_t got = 0;
    while (file >= 0 && (got = ::read(file, bytes.data(), bytes.size())) > 0)
        text.append(bytes.data(), static_cast<std::size_t>(got));
    if (file >= 0)
        close(file);
    return text;
}

std::vector<int32_t> visible_processes() {
    std::vector<int32_t> pids = numbers_in("/proc");
    std::sort(pids.begin(), pids.end());
    return pids;
}

// An owner has a locked descriptor of the file, or a mapping that keeps the lock without one. A
// descriptor without a lock belongs to a process that only looks at the file.
Owns owns_file(int32_t pid, const std::function<bool(std::string_view path)>& matches) {
    const std::vector<int32_t> descriptors = numbers_in(proc_path(pid, "fd"));
    if (descriptors.empty() && errno != 0)
        return errno == ENOENT || errno == ESRCH ? Owns::no : Owns::unknown;
    for (const int32_t number : descriptors) {
        std::array<char, PATH_MAX> target{};
        const std::string name = std::to_string(number);
        const ssize_t size =
            readlink(proc_path(pid, "fd/" + name).c_str(), target.data(), target.size());
        if (size > 0 && matches({target.data(), static_cast<std::size_t>(size)}) &&
            read_proc(pid, "fdinfo/" + name).find("\nlock:") != std::string::npos)
            return Owns::yes;
    }
    const std::string maps = read_proc(pid, "maps");
    for (std::size_t line = 0; line < maps.size();) {
        const std::size_t end = std::min(maps.find('\n', line), maps.size());
        const std::size_t path = maps.find('/', line);
        if (path < end && matches(std::string_view(maps).substr(path, end - path)))
            return Owns::yes;
        line = end + 1;
    }
    return Owns::no;
}

} // namespace gcx
