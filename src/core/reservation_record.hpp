// What a reservation's file says: how it lies there, and whether it can be believed.
#pragma once

#include "core/atom_set.hpp"

#include <gcx.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace gcx::reservations {

constexpr uint64_t kMagic = 0x31646c6f68786367; // "gcxreservation1"
// Whoever changes the struct below counts it up.
constexpr uint32_t kVersion = 2;

struct Record {
    uint64_t magic;
    uint64_t checksum; // of all that follows
    uint32_t version;
    uint32_t waits;  // 1: it has nothing yet
    uint64_t id;     // a random number, the one in the file's name
    uint64_t ticket; // on a device: larger than those of all that took or waited before
    uint64_t since_ms;
    uint64_t until_ms; // of one that waits; 0: forever
    int32_t pid;
    int32_t driver_version;
    uint32_t simulated;
    uint32_t wanted; // SMs that were requested, or GCX_REST
    uint32_t family;
    uint32_t device_sm_count;
    // The sizes of the family's atoms.
    uint32_t unit_count;
    uint32_t unit_size;
    uint32_t odd_size;
    uint32_t mps; // gcx_mps_state
    float mps_thread_percentage;
    uint32_t inherit; // 1: processes that its own ones start keep it too
    uint64_t atoms[AtomSet::kWords];
    uint8_t uuid[16];
    char name[GCX_MAX_LEASE_NAME];
    char process_name[GCX_MAX_PROCESS_NAME];
    char device_name[128];
    uint64_t parent; // the id of the reservation whose SMs it is a part of; 0: of the device

    AtomShape shape() const { return {unit_count, unit_size, odd_size}; }
    AtomSet set() const { return AtomSet::of_words(atoms); }
    uint32_t sm_count() const { return shape().sm_count(set()); }
    std::string_view bytes() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
};
static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) == 448);

// Sets what tells a record from other bytes. To be called last.
void seal(Record& record);

// What is wrong with the bytes of the file of a name; nothing: they can be believed.
std::string problem_of(const Record& record, std::string_view name);

// "reservation-", the device's UUID, "-", the id: for a simulated device it begins with
// "simulated-".
std::string file_name(const Record& record);
// What the names of a device's files begin with.
std::string prefix_of(const uint8_t (&uuid)[16], bool simulated);
// Whether a name is one that file_name gives.
bool is_file_name(std::string_view name);

constexpr char kPrefix[] = "reservation-";
constexpr char kSimulatedPrefix[] = "simulated-reservation-";

} // namespace gcx::reservations
