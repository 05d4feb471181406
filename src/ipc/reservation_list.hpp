// The reservations in a directory: reading their files, and naming the processes that own them.
#pragma once

#include "ipc/lock_dir.hpp"
#include "ipc/reservation_record.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gcx::reservations {

struct StoredReservation {
    std::string name; // of its file
    uint32_t user;    // of its file
    Record record;
};

// What to do with a file that has an owner and no valid record.
enum class OnInvalid : uint8_t { fail, skip };

// Reads the reservations whose file names have this prefix, sorted by name. Takes 100 ms if one
// without an owner is inheritable. With clean_up, which needs the directory's lock, removes those
// without an owner.
std::vector<StoredReservation> read_reservations(const LockDir& dir, std::string_view prefix,
                                                 OnInvalid on_invalid, bool clean_up);
// Reads the record of an open file. Throws if that fails.
Record read_record(const CloseOnForkFile& file);
// Does the same and returns what is wrong; an empty string if the record is valid.
std::string read_checked(const CloseOnForkFile& file, const std::string& name, Record& record);

// Throws: a file that has an owner has no valid record, so its SMs are unknown.
[[noreturn]] void refuse_file(const LockDir& dir, const std::string& name, const std::string& why);

// Looks at a file, and looks again for up to 100 ms while it has no owner but may get one.
LockDir::Found look_patiently(const LockDir& dir, const std::string& name);

// Returns the path of the directory for reservations: dir, or the environment's if that is NULL. An
// empty string stands for the user's own.
std::string reservation_dir(const char* dir);

// Returns all reservations of a directory, by device; on each device those that have SMs come
// before those that wait. dir is as for reservation_dir().
std::vector<StoredReservation> list(const char* dir);

struct Process {
    int32_t pid = 0; // 0: none of the owners is visible to this process
    std::string name;
};

// Returns the process to name for a reservation: the one that acquired it while it still owns it,
// otherwise another owner. Reads /proc; if that is not possible, returns what the record says.
Process owner_of(const Record& record);

// Returns "process 12 (python)", or "a process that isn't visible here (python)".
std::string describe(const Process& process);

} // namespace gcx::reservations
