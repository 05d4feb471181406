#include "base/shared_folder.hpp"

#include "base/error.hpp"
#include "base/private_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>

namespace gcx {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostEntries = 16384; // of a folder that somebody has filled
// A change takes less than a millisecond; so after this its process was stopped.
constexpr auto kPatience = 5s;
constexpr auto kGlance = 100ms; // from one look at what was changed to the next
constexpr auto kFirstPause = 50us;
constexpr auto kLongestPause = 8ms;
constexpr mode_t kOthers = S_IRWXO;
// No program that tidies folders up removes a file with the sticky bit, says systemd of its own.
constexpr mode_t kModeOfUser = S_IRUSR | S_IWUSR | S_ISVTX;
constexpr mode_t kModeOfGroup = kModeOfUser | S_IRGRP;

[[noreturn]] void refuse_at(const char* what, const std::string& path, int error) {
    fail(GCX_ERROR_OPERATING_SYSTEM, format("%s %s: %s%s", what, path.c_str(), std::strerror(error),
                                            folder_advice(error).c_str()));
}

// Whether a folder that was named is a group's. Throws if it is nobody's who should have it.
bool is_of_group(const struct stat& info, const std::string& path) {
    const mode_t mode = info.st_mode & 07777;
    if ((mode & kOthers) != 0)
        fail(GCX_ERROR_NOT_PERMITTED,
             format("the folder %s has mode %o, so that anybody may enter it; name a folder of "
                    "your own of mode 700, or one of a group of mode 2770",
                    path.c_str(), mode));
    if ((mode & S_IRWXG) == 0) {
        if (info.st_uid == geteuid())
            return false;
        fail(GCX_ERROR_NOT_PERMITTED,
             format("the folder %s belongs to user %u alone, and this process runs as user %u; a "
                    "group's folder has mode 2770",
                    path.c_str(), info.st_uid, geteuid()));
    }
    if ((mode & S_IRWXG) != S_IRWXG || (mode & S_ISGID) == 0)
        fail(GCX_ERROR_NOT_PERMITTED,
             format("the folder %s has mode %o, which gives its group something, but a group's "
                    "folder has mode 2770 or 3770, so that files in it are the group's",
                    path.c_str(), mode));
    return true; // and who can open it is in the group, or may everything
}

struct flock whole_file(short type) {
    struct flock lock{};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return lock;
}

} // namespace

void keep_alive(const UnforkedFile& file, const std::string& path) {
    struct flock lock = whole_file(F_RDLCK);
    if (fcntl(file.get(), F_OFD_SETLK, &lock) != 0)
        refuse_at("can't lock", path, errno);
    file.outlive_descriptor();
}

void give_up(UnforkedFile file) noexcept {
    stop_keeping_alive(file);
}

void stop_keeping_alive(const UnforkedFile& file) noexcept {
    struct flock lock = whole_file(F_UNLCK);
    if (file && !file.bequeathed())
        fcntl(file.get(), F_OFD_SETLK, &lock);
}

bool is_kept_alive(const UnforkedFile& file, const std::string& path) {
    struct flock lock = whole_file(F_WRLCK);
    if (fcntl(file.get(), F_OFD_GETLK, &lock) != 0)
        refuse_at("can't tell whether anybody has a lock on", path, errno);
    return lock.l_type != F_UNLCK;
}

SharedFolder SharedFolder::open_at(const std::string& path, int flags) {
    UnforkedFile folder(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | flags);
    if (!folder)
        refuse_at("can't open the folder", path, errno);
    struct stat info{};
    if (fstat(folder.get(), &info) != 0)
        refuse_at("can't look at the folder", path, errno);
    const bool of_group = is_of_group(info, path);
    return {std::move(folder), path, of_group};
}

SharedFolder SharedFolder::open_named(const std::string& path) {
    if (path.front() != '/')
        fail(GCX_ERROR_INVALID_VALUE,
             format("the folder %s is no absolute path: it begins with no /", path.c_str()));
    return open_at(path, 0);
}

SharedFolder SharedFolder::open(const std::string& path) {
    return path.empty() ? open_at(PrivateFolder::make("").path(), O_NOFOLLOW) : open_named(path);
}

std::optional<SharedFolder> SharedFolder::find(const std::string& path) {
    if (!path.empty())
        return open_named(path);
    const auto own = PrivateFolder::find("");
    return own ? std::optional(open_at(own->path(), O_NOFOLLOW)) : std::nullopt;
}

SharedFolder::~SharedFolder() {
    // By its own call: a child that was forked meanwhile may have the descriptor still.
    if (locked_ && folder_)
        flock(folder_.get(), LOCK_UN);
}

// Somebody removed it, or made another one in its place.
bool SharedFolder::was_replaced() const {
    struct stat own{};
    struct stat there{};
    return fstat(folder_.get(), &own) != 0 || stat(path_.c_str(), &there) != 0 ||
           own.st_ino != there.st_ino || own.st_dev != there.st_dev;
}

bool SharedFolder::lock(Clock::time_point until, const std::function<bool()>& given_up) {
    for (std::chrono::microseconds pause = kFirstPause;;
         pause = std::min(pause * 2, {kLongestPause})) {
        if (flock(folder_.get(), LOCK_EX | LOCK_NB) == 0)
            break;
        if (errno != EWOULDBLOCK && errno != EINTR)
            refuse_at("can't lock the folder", path_, errno);
        if (Clock::now() >= until || given_up())
            return false;
        std::this_thread::sleep_for(pause);
    }
    locked_ = true;
    if (was_replaced())
        fail(GCX_ERROR_OPERATING_SYSTEM,
             format("the folder %s was removed or replaced just now; try again", path_.c_str()));
    return true;
}

// When something was last made or removed there.
timespec SharedFolder::last_change() const {
    struct stat info{};
    return fstat(folder_.get(), &info) == 0 ? info.st_mtim : timespec{};
}

bool SharedFolder::lock_or_fail(Clock::time_point until, const std::function<bool()>& given_up) {
    const Clock::time_point begin = Clock::now();
    const timespec first = last_change();
    const auto differ = [](const timespec& a, const timespec& b) {
        return a.tv_sec != b.tv_sec || a.tv_nsec != b.tv_nsec;
    };
    timespec seen = first;
    auto since = begin;
    while (!lock(std::min(Clock::now() + kGlance, until), given_up)) {
        if (given_up())
            return false;
        const timespec now = last_change();
        // Many processes that change the folder all the time may keep it locked by turns, and that
        // is no fault.
        if (differ(now, seen))
            since = Clock::now();
        seen = now;
        if (Clock::now() < until && Clock::now() - since < kPatience)
            continue;
        const auto waited =
            std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
        fail(differ(now, first) ? GCX_ERROR_ALREADY_ACQUIRED : GCX_ERROR_OPERATING_SYSTEM,
             format("other processes have had the folder %s locked for %lld ms%s: many use it at "
                    "once, or one was stopped in the middle of a change, or isn't gcx; try again, "
                    "and if that doesn't help, lsof tells which processes have the folder open",
                    path_.c_str(), static_cast<long long>(waited),
                    differ(now, first) ? "" : ", and nothing in it has changed"));
    }
    return true;
}

std::vector<std::string> SharedFolder::names(std::string_view prefix) const {
    const int again = openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* const opened = again < 0 ? nullptr : fdopendir(again);
    if (opened == nullptr) {
        const int error = errno;
        if (again >= 0)
            close(again);
        refuse_at("can't list the folder", path_, error);
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(opened, closedir);
    std::vector<std::string> found;
    errno = 0;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): on a stream of its own
    while (const dirent* const entry = readdir(entries.get())) {
        if (std::string_view(entry->d_name).starts_with(prefix))
            found.emplace_back(entry->d_name);
        if (found.size() > kMostEntries)
            fail(GCX_ERROR_OPERATING_SYSTEM, format("the folder %s has more than %zu files of "
                                                    "reservations, which are more than gcx "
                                                    "reads; remove those that are none",
                                                    path_.c_str(), kMostEntries));
        errno = 0;
    }
    if (errno != 0)
        refuse_at("can't list the folder", path_, errno);
    std::sort(found.begin(), found.end());
    return found;
}

SharedFolder::Found SharedFolder::look_at(const std::string& name) const {
    Found found;
    // Not blocking: a FIFO is opened at once, and then left.
    found.file = UnforkedFile(folder_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!found.file) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) // no fault of the file
            refuse_at("can't open", path_ + "/" + name, errno);
        // A link, a socket, a device that isn't there: no file of gcx.
        if (errno != ENOENT && errno != ELOOP && errno != ENXIO && errno != ENODEV)
            found.refused = format("it can't be opened: %s", std::strerror(errno));
        return found;
    }
    struct stat info{};
    if (fstat(found.file.get(), &info) != 0) {
        found.refused = std::strerror(errno);
        found.file = {};
        return found;
    }
    found.user = info.st_uid;
    if (!S_ISREG(info.st_mode)) {
        found.file = {};
        return found;
    }
    found.alive = is_kept_alive(found.file, path_ + "/" + name);
    if (found.alive && !of_group_ && info.st_uid != geteuid()) {
        found.refused =
            format("it belongs to user %u, in a folder of user %u", info.st_uid, geteuid());
        found.file = {};
    }
    return found;
}

UnforkedFile SharedFolder::create(const std::string& name, std::string_view bytes) const {
    // Not under its name: who is killed in here leaves a file that its group can't read.
    const std::string unfinished = name + std::string(kUnfinished);
    UnforkedFile file(folder_.get(), unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
                      kModeOfUser);
    if (!file)
        refuse_at("can't make a file in", path_, errno);
    try {
        keep_alive(file, path_ + "/" + name);
        fill(file, bytes.size());
        write(file, bytes);
        if (renameat(folder_.get(), unfinished.c_str(), folder_.get(), name.c_str()) != 0)
            refuse_at("can't rename a file in", path_, errno);
    } catch (...) {
        remove(unfinished);
        throw;
    }
    return file;
}

// The mode, whatever the umask is, and room on the disk.
void SharedFolder::fill(const UnforkedFile& file, std::size_t bytes) const {
    if (fchmod(file.get(), of_group_ ? kModeOfGroup : kModeOfUser) != 0)
        refuse_at("can't set the mode of a file in", path_, errno);
    rlimit most{};
    // Beyond the limit the kernel would end the process.
    const int error = getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < bytes
                          ? EFBIG
                          : posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
    if (error != 0)
        refuse_at(format("can't make a file of %zu bytes in", bytes).c_str(), path_, error);
}

void SharedFolder::write(const UnforkedFile& file, std::string_view bytes) const {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t wrote =
            pwrite(file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
        if (wrote < 0 && errno != EINTR)
            refuse_at("can't write a file in", path_, errno);
        if (wrote == 0)
            refuse_at("can't write a file in", path_, ENOSPC);
        done += static_cast<std::size_t>(std::max<ssize_t>(wrote, 0));
    }
}

void SharedFolder::remove(const std::string& name) const noexcept {
    unlinkat(folder_.get(), name.c_str(), 0);
}

bool SharedFolder::remove_dead(const std::string& name) const {
    // A member of a group may not write the files of others, and removes them without the lock.
    const UnforkedFile file(folder_.get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    struct flock lock = whole_file(F_WRLCK);
    if (file && fcntl(file.get(), F_OFD_SETLK, &lock) != 0 && (errno == EAGAIN || errno == EACCES))
        return false;
    remove(name);
    return true;
}

} // namespace gcx
