// The private directory of the effective user. It has mode 700, and stores the reservations and the
// published leases of that user unless GCX_RESERVATION_DIR names another directory.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace gcx {

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

// Both return the path of the user's directory: user-UID in a directory that users share, or
// usual_folder() if shared is empty. They throw if it is a symbolic link, belongs to another user,
// or can be entered by others.
std::string create_user_runtime_dir(const std::string& shared); // if it does not exist
std::optional<std::string> find_user_runtime_dir(const std::string& shared);

// Throws for a failed call of the operating system, with what the user can do if the directory is
// full or can't be written.
[[noreturn]] void fail_in_dir(const std::string& what, const std::string& path, int error);

} // namespace gcx
