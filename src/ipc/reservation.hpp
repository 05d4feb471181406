// A reservation of SMs is a file with a record, owned by the processes that have the reservation.
// core/reservation_request.hpp decides which SMs one gets.
#pragma once

#include "base/atom_set.hpp"
#include "ipc/lock_dir.hpp"

#include <gcx.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gcx::reservations {

constexpr uint64_t kMagic = 0x3176736572786367; // "gcxresv1"
// Increment with each change of the struct below.
constexpr uint32_t kVersion = 2;

struct Record {
    uint64_t magic;
    uint64_t checksum; // of all fields below
    uint32_t version;
    uint32_t waits;  // 1: waits for its SMs and has none
    uint64_t id;     // a random number, the one in the file's name
    uint64_t ticket; // the place in the queue: larger than those of all earlier requests
    uint64_t since_ms;
    uint64_t until_ms; // the end of a wait; 0: none
    int32_t pid;
    int32_t driver_version;
    uint32_t simulated;
    uint32_t requested; // SMs, or GCX_REST
    uint32_t family;
    uint32_t device_sm_count;
    // The sizes of the family's atoms.
    uint32_t unit_count;
    uint32_t unit_size;
    uint32_t remainder_size;
    uint32_t mps; // gcx_mps_state
    float mps_thread_percentage;
    uint32_t inherit; // 1: processes that its owners start own it too
    uint64_t atoms[AtomSet::kWords];
    uint8_t uuid[16];
    char name[GCX_MAX_LEASE_NAME];
    char process_name[GCX_MAX_PROCESS_NAME];
    char device_name[128];
    uint64_t parent; // the id of the reservation that it divides; 0: it divides the device

    AtomShape shape() const { return {unit_count, unit_size, remainder_size}; }
    AtomSet set() const { return AtomSet::of_words(atoms); }
    uint32_t sm_count() const { return shape().sm_count(set()); }
    std::string_view bytes() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
};
static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) == 448);

// Sets the magic number, the version and the checksum. Call it after setting all other fields.
void seal(Record& record);

// Returns what is wrong with the record in the file of this name; an empty string if it is valid.
std::string problem_of(const Record& record, std::string_view name);

// Returns "reservation-", the device's UUID, "-" and the id; before it "simulated-" for a simulated
// device.
std::string file_name(const Record& record);
// Returns the prefix of the names of a device's files.
std::string prefix_of(const uint8_t (&uuid)[16], bool simulated);
// Returns whether file_name() can return this name.
bool is_file_name(std::string_view name);

constexpr char kPrefix[] = "reservation-";
constexpr char kSimulatedPrefix[] = "simulated-reservation-";

struct StoredReservation {
    std::string name; // of its file
    uint32_t user;    // of its file
    Record record;
};

// What to do with a file that has an owner and no valid record.
enum class OnInvalid : uint8_t { fail, skip };

// Returns those of these files that can be inherited, but have no owner and get none: no visible
// process was started with them by `gcx exec`, and they stay without an owner for 100 ms. Don't lock
// the directory: the call takes 100 ms if it finds one, and some 20 ms if a process was started.
std::vector<std::string> find_dead(const LockDir& dir, std::vector<std::string> names);

// Reads the reservations whose file names have this prefix, sorted by name. dead: from find_dead().
// A file that is not among them may just have lost its owner, and counts as owned if it can be
// inherited. With clean_up, which needs the directory's lock, removes those without an owner, or
// marks them as dead.
std::vector<StoredReservation> read_reservations(const LockDir& dir, std::string_view prefix,
                                                 OnInvalid on_invalid, bool clean_up,
                                                 const std::vector<std::string>& dead);
// Reads the record of an open file. Throws if that fails.
Record read_record(const CloseOnForkFile& file);
// Does the same and returns what is wrong; an empty string if the record is valid.
std::string read_checked(const CloseOnForkFile& file, const std::string& name, Record& record);

// Throws: a file that has an owner has no valid record, so its SMs are unknown.
[[noreturn]] void refuse_file(const LockDir& dir, const std::string& name, const std::string& why);

// Returns the path of the directory for reservations: dir, or the environment's if that is NULL. An
// empty string stands for the user's own.
std::string reservation_dir(const char* dir);

// Returns all reservations of a directory, by device; on each device those that have SMs come
// before those that wait. Removes those of find_dead(). dir is as for reservation_dir().
std::vector<StoredReservation> list(const char* dir);

struct Process {
    int32_t pid = 0; // 0: none of the owners is visible to this process
    std::string name;
};

// Returns the process to name for a reservation: the one that acquired it while it still owns it,
// otherwise another owner. Reads /proc; where that is not possible, returns what the record says.
Process owner_of(const StoredReservation& stored);

// Returns a name of another process for a message, with its control characters as "\x1b".
std::string printable(std::string_view name);
// Returns "process 12 (python)", or "a process that isn't visible here (python)".
std::string describe(const Process& process);

// This process's ownership of a reservation. It ends when the object is destroyed, or when the
// process ends.
class Reservation {
  public:
    // file: owned by this process, in this directory. parent: the reservation that this one
    // divides, which stays owned as long as this one; null: none.
    Reservation(std::string dir, CloseOnForkFile file, const Record& record, uint32_t flags,
                bool joined, std::shared_ptr<Reservation> parent = nullptr)
        : dir_(std::move(dir)), name_(file_name(record)), file_(std::move(file)), record_(record),
          flags_(flags), joined_(joined), parent_(std::move(parent)) {}
    ~Reservation();
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    const Record& record() const { return record_; }
    uint32_t flags() const { return flags_; }
    bool joined() const { return joined_; }
    // Returns the path of the file, by which others join.
    std::string token() const { return dir_ + "/" + name_; }
    // Returns whether the file was removed, so that other processes don't see the reservation.
    bool lost() const;

  private:
    const std::string dir_;
    const std::string name_;
    CloseOnForkFile file_;
    const Record record_;
    const uint32_t flags_;
    const bool joined_;
    const std::shared_ptr<Reservation> parent_;
};

// Becomes an owner of another process's reservation.
std::shared_ptr<Reservation> join(const std::string& token);
// Does the same in the token's directory, which the caller has locked. dead: from find_dead().
std::shared_ptr<Reservation> join_in(const LockDir& dir, const std::string& token,
                                     const std::vector<std::string>& dead);
// Returns the directory of a token. Throws if the text is no token.
std::string dir_of_token(const std::string& token);

// Ends the ownership of a file, and removes the file if it has no other owner. patient: waits if it
// may get another one.
void release_file(const std::string& dir, const std::string& name, CloseOnForkFile file,
                  bool patient) noexcept;

} // namespace gcx::reservations
