#include "ipc/lock_dir.hpp"

#include "base/error.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

namespace gcx {

struct CloseOnForkFile::Node {
    std::atomic<int> number{-1};
    dev_t device = 0;
    ino_t inode = 0;
    void* page = MAP_FAILED; // maps the file, which keeps it open without the descriptor
    Node* next = nullptr;    // in the list of OpenFiles
    Node* previous = nullptr;
    bool inheritable = false;

    bool is(const struct stat& info) const { return info.st_dev == device && info.st_ino == inode; }
    // Returns the descriptor if it still belongs to the file, otherwise -1.
    int checked_number() const {
        struct stat info{};
        const int now = number.load();
        return now >= 0 && fstat(now, &info) == 0 && is(info) ? now : -1;
    }
};

// The files that a child of a fork has to close. The mutex keeps a fork from happening between
// opening a file and listing it here: the child would keep the file open, and the parent's locks
// with it.
struct OpenFiles {
    std::mutex mutex;
    CloseOnForkFile::Node* first = nullptr;
    bool watching = false;
    std::atomic<unsigned> forks{0};

    void add(CloseOnForkFile::Node& node) {
        node.next = first;
        if (first != nullptr)
            first->previous = &node;
        first = &node;
    }
    void remove(CloseOnForkFile::Node& node) {
        if (node.next != nullptr)
            node.next->previous = node.previous;
        if (node.previous != nullptr)
            node.previous->next = node.next;
        else if (first == &node)
            first = node.next;
        node.next = node.previous = nullptr;
    }

    static void before_fork();
    static void in_parent();
    static void in_child();
};

namespace {

constinit OpenFiles files;

constexpr std::size_t kByte = 1; // the kernel maps the whole page

// A program that was started without standard streams uses the lowest numbers for its own.
int move_past_standard_streams(int number) {
    if (number > STDERR_FILENO)
        return number;
    const int moved = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    close(number);
    errno = error;
    return moved;
}

} // namespace

void OpenFiles::before_fork() {
    files.mutex.lock();
}

void OpenFiles::in_parent() {
    files.mutex.unlock();
}

void OpenFiles::in_child() {
    for (CloseOnForkFile::Node* node = files.first; node != nullptr; node = node->next) {
        node->page = MAP_FAILED; // MADV_DONTFORK: the child does not have it
        if (const int number = node->checked_number(); number >= 0 && !node->inheritable)
            close(number);
        node->number.store(-1);
    }
    files.first = nullptr;
    files.forks++;
    files.mutex.unlock();
}

CloseOnForkFile::CloseOnForkFile(int dir, const char* path, int flags, mode_t mode) {
    auto node = std::make_unique<Node>();
    const std::lock_guard lock(files.mutex);
    if (!files.watching &&
        pthread_atfork(OpenFiles::before_fork, OpenFiles::in_parent, OpenFiles::in_child) != 0)
        fail(GCX_ERROR_OUT_OF_MEMORY, "no memory to watch for forks");
    files.watching = true;
    int number = openat(dir, path, flags | O_CLOEXEC, mode);
    if (number >= 0)
        number = move_past_standard_streams(number);
    if (number < 0)
        return;
    struct stat info{};
    if (fstat(number, &info) != 0) {
        const int error = errno;
        close(number);
        errno = error;
        return;
    }
    node->device = info.st_dev;
    node->inode = info.st_ino;
    node->number = number;
    files.add(*node);
    node_.reset(node.release());
}

unsigned fork_count() {
    return files.forks.load();
}

int CloseOnForkFile::get() const {
    return node_ == nullptr ? -1 : node_->checked_number();
}

void CloseOnForkFile::outlive_descriptor() const {
    const std::lock_guard lock(files.mutex); // no fork between mmap and madvise
    const int number = get();
    if (number < 0 || node_->page != MAP_FAILED)
        return;
    void* const page = mmap(nullptr, kByte, PROT_NONE, MAP_PRIVATE, number, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, kByte, MADV_DONTFORK) == 0)
        node_->page = page;
    else
        munmap(page, kByte);
}

bool CloseOnForkFile::is_gone_from(const char* path) const {
    struct stat info{};
    if (stat(path, &info) != 0)
        return errno == ENOENT || errno == ENOTDIR;
    return node_ != nullptr && !node_->is(info);
}

void CloseOnForkFile::make_inheritable() {
    const std::lock_guard lock(files.mutex);
    const int number = get();
    if (number < 0)
        return;
    node_->inheritable = true;
    // Shells and other programs put their own files at low numbers, so use a high one.
    constexpr int kLowest = 700;
    const int moved = fcntl(number, F_DUPFD, kLowest);
    if (moved < 0) {
        fcntl(number, F_SETFD, 0);
        return;
    }
    node_->number.store(moved);
    close(number);
}

bool CloseOnForkFile::inheritable() const {
    return node_ != nullptr && node_->inheritable;
}

void CloseOnForkFile::Close::operator()(Node* node) const {
    const int error = errno;
    {
        const std::lock_guard lock(files.mutex);
        files.remove(*node);
        if (const int number = node->checked_number(); number >= 0)
            close(number);
        if (node->page != MAP_FAILED)
            munmap(node->page, kByte);
    }
    delete node;
    errno = error;
}

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxEntries = 16384; // guards against a directory that was filled on purpose
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

// Throws for a failed call of the operating system, with what the user can do if the directory is
// full or can't be written.
[[noreturn]] void fail_in_dir(const std::string& what, const std::string& path, int error) {
    const bool full = error == ENOSPC || error == EDQUOT;
    const bool refused = error == EROFS || error == EACCES || error == EPERM;
    std::string message = format("%s %s: %s", what.c_str(), path.c_str(), std::strerror(error));
    if (full || refused)
        message +=
            format("; %s, or set %s to another folder of your own with mode 700",
                   full ? "free some space there" : "give this user access to it", kFolderVariable);
    fail(GCX_ERROR_OPERATING_SYSTEM, std::move(message));
}

// Returns whether a call failed because descriptors or memory ran out, whatever the file is.
bool is_shortage(int error) {
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

std::string path_of_user(const std::string& shared) {
    return shared.empty() ? usual_folder() : format("%s/user-%u", shared.c_str(), geteuid());
}

// systemd's logind removes a user's files in /dev/shm when the user's last session ends
// (RemoveIPC=yes). A new directory would hide the reservations that processes outside of sessions
// still own.
void refuse_if_removed(const std::string& path) {
    if (struct stat info{}; lstat(path.c_str(), &info) == 0)
        return;
    const auto is_removed_reservation = [&](std::string_view file) {
        return file.starts_with(path + "/") && file.ends_with(" (deleted)") &&
               file.find("reservation-", path.size()) != std::string_view::npos;
    };
    const std::vector<int32_t> pids = visible_processes();
    if (pids.empty() && is_shortage(errno))
        fail_in_dir("can't list", "/proc", errno);
    for (const int32_t pid : pids) {
        if (owns_file(pid, is_removed_reservation) == Owns::yes)
            fail(GCX_ERROR_OPERATING_SYSTEM,
                 format("the folder %s was removed while process %d had a reservation in it, as "
                        "RemoveIPC=yes in systemd's logind.conf does at the end of a session; end "
                        "that process, and set RemoveIPC=no, or %s to another folder",
                        path.c_str(), pid, kFolderVariable));
    }
}

void make_dir(const std::string& path) {
    if (mkdir(path.c_str(), S_IRWXU) == 0) {
        // The umask may have removed permissions. Don't follow a link that replaced the folder:
        // fchmodat() can't before glibc 2.32, and fchmod() needs a folder that can be read.
        const CloseOnForkFile dir(AT_FDCWD, path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
        chmod(("/proc/self/fd/" + std::to_string(dir.get())).c_str(), S_IRWXU);
        return;
    }
    if (errno == EEXIST)
        return;
    const int error = errno;
    const std::string parent = path.substr(0, path.rfind('/'));
    if (error == ENOENT)
        fail(GCX_ERROR_OPERATING_SYSTEM,
             format("can't create the folder %s: %s does not exist; create it, or set %s to a "
                    "folder of your own with mode 700",
                    path.c_str(), parent.c_str(), kFolderVariable));
    fail_in_dir("can't create the folder", path, error);
}

// Returns false if the directory does not exist.
bool check_private(const std::string& path) {
    struct stat info{};
    if (lstat(path.c_str(), &info) != 0) {
        if (errno == ENOENT)
            return false;
        fail_in_dir("can't open the folder", path, errno);
    }
    if (!S_ISDIR(info.st_mode))
        fail(GCX_ERROR_UNSAFE_FOLDER,
             format("%s is %s; remove it, or set %s to a folder of your own with mode 700",
                    path.c_str(),
                    S_ISLNK(info.st_mode) ? "a symbolic link and not a folder" : "not a folder",
                    kFolderVariable));
    if (info.st_uid != geteuid())
        fail(GCX_ERROR_UNSAFE_FOLDER,
             format("the folder %s belongs to user %u, and this process runs as user %u; remove "
                    "it, or set %s to a folder of your own with mode 700",
                    path.c_str(), info.st_uid, geteuid(), kFolderVariable));
    if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        fail(GCX_ERROR_UNSAFE_FOLDER,
             format("the folder %s has mode %o, so other users can enter it; run chmod 700 on it, "
                    "or set %s to another folder with mode 700",
                    path.c_str(), info.st_mode & 07777, kFolderVariable));
    return true;
}

// Both return the path of the user's directory: user-UID in a directory that users share, or
// usual_folder() if shared is empty. They throw if it is a symbolic link, belongs to another user,
// or can be entered by others. The first one creates it if it does not exist.
std::string create_user_dir(const std::string& shared) {
    std::string path = path_of_user(shared);
    if (shared.empty())
        refuse_if_removed(path);
    make_dir(path);
    if (!check_private(path))
        fail(GCX_ERROR_OPERATING_SYSTEM,
             format("the folder %s was removed while it was opened; try again", path.c_str()));
    return path;
}

std::optional<std::string> find_user_dir(const std::string& shared) {
    std::string path = path_of_user(shared);
    return check_private(path) ? std::optional(std::move(path)) : std::nullopt;
}

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
        if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc())
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
    return open_checked(create_user_dir(shared));
}

std::optional<LockDir> LockDir::find_private(const std::string& shared) {
    const auto path = find_user_dir(shared);
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
        if (found.size() > kMaxEntries)
            fail(GCX_ERROR_OPERATING_SYSTEM,
                 format("the folder %s has more than %zu files named %.*s*, which are more than "
                        "gcx reads; remove those that gcx did not create",
                        path_.c_str(), kMaxEntries, static_cast<int>(prefix.size()),
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
        if (is_shortage(error))
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
    int error = getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < size ? EFBIG : EINTR;
    while (error == EINTR) // not called yet, or interrupted by a signal
        error = posix_fallocate(file.get(), 0, static_cast<off_t>(size));
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
    if (!file && is_shortage(errno))
        fail_in_dir("can't open", path_ + "/" + name, errno);
    struct flock lock = whole_file(F_WRLCK);
    if (file && fcntl(file.get(), F_OFD_SETLK, &lock) != 0) {
        if (errno == EAGAIN || errno == EACCES)
            return false;
        fail_in_dir("can't lock", path_ + "/" + name, errno);
    }
    return unlinkat(dir_.get(), name.c_str(), 0) == 0 || errno == ENOENT || mark_dead(name);
}

bool LockDir::exists(const std::string& name) const {
    return faccessat(dir_.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool LockDir::mark_dead(const std::string& name) const {
    const std::string mark = name + std::string(kDead);
    const Found found = look_at(name); // opens the file before descriptors may run out
    const CloseOnForkFile created(dir_.get(), mark.c_str(), O_RDONLY | O_CREAT | O_EXCL,
                                  kModeReadOnly);
    if (!created && errno != EEXIST)
        return false;
    // A process that has a byte locked may have looked before the mark was there. With an earlier
    // mark the file is dead already, and the process is about to see that.
    const bool alive = found.file && has_owner(found.file, path_ + "/" + name);
    if (alive && created)
        remove(mark);
    return !alive;
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
