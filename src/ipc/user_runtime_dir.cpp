#include "ipc/user_runtime_dir.hpp"

#include "base/error.hpp"
#include "ipc/lock_dir.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace gcx {
namespace {

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
    for (const int32_t pid : visible_processes()) {
        if (owns_file(pid, is_removed_reservation) == Owns::yes)
            fail(GCX_ERROR_OPERATING_SYSTEM,
                 format("the folder %s was removed while process %d had a reservation in it, as "
                        "RemoveIPC=yes in systemd's logind.conf does at the end of a session; end "
                        "that process, and set RemoveIPC=no, or %s to another folder",
                        path.c_str(), pid, kFolderVariable));
    }
}

void make_dir(const std::string& path) {
    if (mkdir(path.c_str(), S_IRWXU) == 0 || errno == EEXIST)
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

} // namespace

std::string create_user_runtime_dir(const std::string& shared) {
    std::string path = path_of_user(shared);
    if (shared.empty())
        refuse_if_removed(path);
    make_dir(path);
    if (!check_private(path))
        fail(GCX_ERROR_OPERATING_SYSTEM,
             format("the folder %s was removed while it was opened; try again", path.c_str()));
    return path;
}

std::optional<std::string> find_user_runtime_dir(const std::string& shared) {
    std::string path = path_of_user(shared);
    return check_private(path) ? std::optional(std::move(path)) : std::nullopt;
}

void fail_in_dir(const std::string& what, const std::string& path, int error) {
    const bool full = error == ENOSPC || error == EDQUOT;
    const bool refused = error == EROFS || error == EACCES || error == EPERM;
    std::string message = format("%s %s: %s", what.c_str(), path.c_str(), std::strerror(error));
    if (full || refused)
        message +=
            format("; %s, or set %s to another folder of your own with mode 700",
                   full ? "free some space there" : "give this user access to it", kFolderVariable);
    fail(GCX_ERROR_OPERATING_SYSTEM, std::move(message));
}

} // namespace gcx
