// The record in a reservation's file: its format, its validation and its file name.
#pragma once

#include "core/atom_set.hpp"

#include <gcx.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

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

} // namespace gcx::reservations
