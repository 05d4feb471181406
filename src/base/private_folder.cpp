#include "base/private_folder.hpp"

#include "base/error.hpp"
#include "base/file_text.hpp"
#include "base/user_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <system_error>

namespace gcx {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDigits = 16;
constexpr std::size_t kMostNames = 16384; // of a folder that somebody has filled
constexpr int kMostNewNames = 16;

[[noreturn]] void fail_at(const char* what, const std::string& path, int error) {
    fail(GCX_ERROR_OPERATING_SYSTEM, format("%s %s: %s%s", what, path.c_str(), std::strerror(error),
                                            folder_advice(error).c_str()));
}

std::string path_of_user(const std::string& shared) {
    return shared.empty() ? usual_folder() : format("%s/user-%u", shared.c_str(), geteuid());
}

bool is_removed_reservation(std::string_view path, const std::string& folder) {
    return path.starts_with(folder + "/") && path.ends_with(" (deleted)") &&
           path.find("reservation-", folder.size()) != std::string_view::npos;
}

// process: its folder in /proc. Other users' can't be read, and keep nothing of this user.
bool keeps_removed_reservation(const fs::path& process, const std::string& folder) {
    const std::string maps = file_text(process / "maps");
    for (std::size_t at = maps.find(folder); at != std::string::npos;
         at = maps.find(folder, at + 1)) {
        const std::string_view line = std::string_view(maps).substr(at);
        if (is_removed_reservation(line.substr(0, line.find('\n')), folder))
            return true;
    }
    std::error_code error;
    for (fs::directory_iterator file(process / "fd", error), end; !error && file != end;
         file.increment(error)) {
        std::error_code gone;
        if (is_removed_reservation(fs::read_symlink(file->path(), gone).string(), folder))
            return true;
    }
    return false;
}

// systemd's logind removes the files of a user in /dev/shm when the last session of that user ends
// (RemoveIPC=yes). A new folder would then hide reservations that processes outside of sessions
// still have.
void refuse_if_removed(const std::string& path) {
    if (struct stat info{}; lstat(path.c_str(), &info) == 0)
        return;
    std::error_code error;
    for (fs::directory_iterator process("/proc", error), end; !error && process != end;
         process.increment(error)) {
        const std::string number = process->path().filename();
        if (number.find_first_not_of("0123456789") == std::string::npos &&
            keeps_removed_reservation(process->path(), path))
            fail(GCX_ERROR_OPERATING_SYSTEM,
                 format("the folder %s was removed while process %s had a reservation in it, as "
                        "RemoveIPC=yes in systemd's logind.conf does at the end of a session; end "
                        "that process, and set RemoveIPC=no, or %s to another folder",
                        path.c_str(), number.c_str(), kFolderVariable));
    }
}

void make_folder(const std::string& path) {
    if (mkdir(path.c_str(), S_IRWXU) == 0 || errno == EEXIST)
        return;
    const int error = errno;
    const std::string parent = path.substr(0, path.rfind('/'));
    if (error == ENOENT)
        fail(GCX_ERROR_OPERATING_SYSTEM,
             format("can't create the folder %s: %s does not exist; create it, or set %s to a "
                    "folder of your own with mode 700",
                    path.c_str(), parent.c_str(), kFolderVariable));
    fail_at("can't create the folder", path, error);
}

[[noreturn]] void fail_to_open(const std::string& path, int error) {
    struct stat info{};
    if (lstat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode))
        fail(GCX_ERROR_NOT_PERMITTED,
             format("%s is %s; remove it, or set %s to a folder of your own with mode "
                    "700",
                    path.c_str(),
                    S_ISLNK(info.st_mode) ? "a symbolic link and not a folder" : "not a folder",
                    kFolderVariable));
    fail_at("can't open the folder", path, error);
}

void check_private(int folder, const std::string& path) {
    struct stat info{};
    if (fstat(folder, &info) != 0)
        fail_at("can't read the owner of the folder", path, errno);
    if (info.st_uid != geteuid())
        fail(GCX_ERROR_NOT_PERMITTED,
             format("the folder %s belongs to user %u, and this process runs as user %u; remove "
                    "it, or set %s to a folder of your own with mode 700",
                    path.c_str(), info.st_uid, geteuid(), kFolderVariable));
    if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        fail(GCX_ERROR_NOT_PERMITTED,
             format("the folder %s has mode %o, so other users can enter it; run chmod 700 on it, "
                    "or set %s to another folder with mode 700",
                    path.c_str(), info.st_mode & 07777, kFolderVariable));
}

// Of this open file, not of the process: closing another descriptor of it drops nothing.
int lock(int file, short type) {
    struct flock lock{};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return fcntl(file, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

bool is_taken(int error) {
    return error == EAGAIN || error == EACCES;
}

// Too many files open, or no memory: no fault of the file.
bool is_shortage(int error) {
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

bool is_name(std::string_view name, std::string_view prefix) {
    return name.size() == prefix.size() + kDigits && name.starts_with(prefix) &&
           name.substr(prefix.size()).find_first_not_of("0123456789abcdef") ==
               std::string_view::npos;
}

std::string random_name(std::string_view prefix) {
    std::random_device random;
    return format("%.*s%08x%08x", static_cast<int>(prefix.size()), prefix.data(), random(),
                  random());
}

} // namespace

Descriptor::~Descriptor() {
    if (number_ >= 0)
        close(number_);
}

std::string folder_advice(int error) {
    const bool full = error == ENOSPC || error == EDQUOT;
    const bool refused = error == EROFS || error == EACCES || error == EPERM;
    return full || refused ? format("; %s, or set %s to another folder of your own with mode 700",
                                    full ? "free some space there" : "give this user access to it",
                                    kFolderVariable)
                           : "";
}

std::optional<PrivateFolder> PrivateFolder::open_at(std::string path) {
    Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder && errno == ENOENT)
        return std::nullopt;
    if (!folder)
        fail_to_open(path, errno);
    check_private(folder.get(), path);
    return PrivateFolder(std::move(folder), std::move(path));
}

PrivateFolder PrivateFolder::make(const std::string& shared) {
    const std::string path = path_of_user(shared);
    if (shared.empty())
        refuse_if_removed(path);
    make_folder(path);
    auto folder = open_at(path);
    if (!folder)
        fail(GCX_ERROR_OPERATING_SYSTEM,
             format("the folder %s was removed while it was opened; try again", path.c_str()));
    return std::move(*folder);
}

std::optional<PrivateFolder> PrivateFolder::find(const std::string& shared) {
    return open_at(path_of_user(shared));
}

std::vector<std::string> PrivateFolder::names(std::string_view prefix) const {
    const int again = openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (again < 0)
        fail_at("can't list the folder", path_, errno);
    DIR* const opened = fdopendir(again);
    if (opened == nullptr) {
        const int error = errno;
        close(again);
        fail_at("can't list the folder", path_, error);
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(opened, closedir);
    std::vector<std::string> found;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): on a stream of its own
    while (const dirent* const entry = readdir(entries.get())) {
        if (is_name(entry->d_name, prefix) && found.size() < kMostNames)
            found.emplace_back(entry->d_name);
    }
    std::sort(found.begin(), found.end());
    return found;
}

OwnFile PrivateFolder::create(std::string_view prefix, std::size_t bytes) const {
    for (int tries = 0; tries < kMostNewNames; tries++) {
        OwnFile own{Descriptor(), random_name(prefix)};
        // Not to be written by its owner either, who would end the process by cutting it short.
        own.file = Descriptor(openat(folder_.get(), own.name.c_str(),
                                     O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR));
        if (!own.file) {
            const int error = errno;
            if (error == EEXIST)
                continue;
            fail_at("can't make a file in", path_, error);
        }
        const int locked = lock(own.file.get(), F_WRLCK);
        struct stat info{};
        // Who came by before it was locked takes it for a dead one's, and removes it.
        if (is_taken(locked) || (fstat(own.file.get(), &info) == 0 && info.st_nlink == 0))
            continue;
        if (locked != 0) {
            remove(own.name.c_str());
            fail_at("can't lock a file in", path_, locked);
        }
        fill(own, bytes);
        return own;
    }
    fail(GCX_ERROR_OPERATING_SYSTEM,
         format("can't make a file in %s: each of %d was removed at once by others", path_.c_str(),
                kMostNewNames));
}

void PrivateFolder::fill(const OwnFile& own, std::size_t bytes) const {
    rlimit most{};
    int error = 0;
    // Beyond the limit the kernel would end the process.
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < bytes)
        error = EFBIG;
    else
        error = posix_fallocate(own.file.get(), 0, static_cast<off_t>(bytes));
    if (error == 0)
        return;
    remove(own.name.c_str());
    fail_at(format("can't make a file of %zu bytes in", bytes).c_str(), path_, error);
}

FoundFile PrivateFolder::open(const std::string& name, std::size_t most_bytes) const {
    // Not blocking: a FIFO is opened at once, and then refused.
    Descriptor file(
        openat(folder_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file) {
        if (is_shortage(errno))
            fail_at("can't open", path_ + "/" + name, errno);
        return {Descriptor(), errno == ENOENT  ? ""
                              : errno == ELOOP ? "it is a link"
                                               : std::strerror(errno)};
    }
    struct stat info{};
    if (fstat(file.get(), &info) != 0)
        return {Descriptor(), std::strerror(errno)};
    if (!S_ISREG(info.st_mode))
        return {Descriptor(), "it is no plain file"};
    if (info.st_uid != geteuid())
        return {Descriptor(), format("it belongs to user %u", info.st_uid)};
    const int locked = lock(file.get(), F_RDLCK);
    if (locked == 0) {
        // Its maker is dead, or has not locked it yet and makes another one then.
        struct stat there{};
        if (fstatat(folder_.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
            there.st_ino == info.st_ino && there.st_dev == info.st_dev)
            remove(name.c_str());
        return {};
    }
    if (!is_taken(locked))
        return {Descriptor(), format("it can't be locked: %s", std::strerror(locked))};
    if (info.st_size < 0 || static_cast<uint64_t>(info.st_size) > most_bytes)
        return {Descriptor(), format("it has %lld bytes, and can't have more than %zu",
                                     static_cast<long long>(info.st_size), most_bytes)};
    return {std::move(file), ""};
}

void PrivateFolder::remove(const char* name) const noexcept {
    unlinkat(folder_.get(), name, 0);
}

} // namespace gcx
