// The folder in which the processes of one user find each other's reservations and published
// leases. The command names it as well, so it is found here alone.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace gcx {

inline constexpr char kFolderVariable[] = "GCX_RESERVATION_DIR";

// Returns the folder that the environment names, or an empty string.
inline std::string chosen_folder() {
    // secure_getenv: the caller of a setuid program must not choose where that program writes.
    const char* const chosen = secure_getenv(kFolderVariable);
    return chosen == nullptr ? "" : chosen;
}

// Returns the folder of a user who names none. It must be the same for all processes of the user:
// /run/user/UID exists during login sessions only, services with PrivateTmp have their own /tmp,
// and sudo keeps or changes HOME and XDG_RUNTIME_DIR.
inline std::string usual_folder() {
    return "/dev/shm/gcx-" + std::to_string(geteuid());
}

} // namespace gcx
