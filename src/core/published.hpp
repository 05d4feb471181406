// What a process publishes of its leases: how it lies in a file, and how it is read. The writer is
// publisher.hpp. Readers believe nothing of a file before they have looked at it.
#pragma once

#include "core/atom_set.hpp"

#include <gcx.h>

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace gcx::published {

constexpr uint64_t kMagic = 0x3173657361656c67; // "gleases1"
// Whoever changes the structs below counts it up. Readers leave other versions alone.
constexpr uint32_t kVersion = 1;
constexpr uint32_t kMostDevices = 64;
constexpr uint32_t kMostRows = 512;
constexpr char kPrefix[] = "leases-";

struct DeviceRow {
    uint32_t sm_count;
    uint32_t reserved;
    uint8_t uuid[16];
    char name[128];
};

struct Head {
    uint64_t magic; // written last: before, the file is being made
    uint32_t version;
    uint32_t sequence; // odd while a change is being written
    uint64_t process;  // a random number
    uint64_t since_ms; // since 1970
    int32_t pid;
    int32_t driver_version;
    uint32_t simulated;
    uint32_t device_count;
    uint32_t row_count;
    uint32_t unlisted_count; // leases that there is no room for
    char name[GCX_MAX_PROCESS_NAME];
    DeviceRow devices[kMostDevices];
};

struct Row {
    uint64_t id;
    uint64_t changes;
    int32_t device;
    uint32_t family;
    uint32_t flags;
    uint32_t waits;
    uint32_t sm_count; // of one that waits: those asked for
    uint32_t exclusive_sm_count;
    uint32_t stream_count;
    // The sizes of the family's atoms.
    uint32_t unit_count;
    uint32_t unit_size;
    uint32_t odd_size;
    uint64_t own[AtomSet::kWords];
    uint64_t shared[AtomSet::kWords];
    char name[GCX_MAX_LEASE_NAME];
};

struct File {
    Head head;
    Row rows[kMostRows];
};
static_assert(std::is_trivially_copyable_v<File> && sizeof(Head) == 9848 && sizeof(Row) == 248);

struct Process {
    Head head;
    std::vector<Row> rows; // those that hold SMs by id, then those that wait
};

// Returns the folder below which users publish: the one that GCX_RESERVATION_DIR names, or an empty
// string for the user's own. Throws if others can enter it.
std::string shared_folder();

// The processes of this user that publish, each as it was at one moment. What is no such file is
// left out, with a warning in the log.
std::vector<Process> read_all();

// What is wrong with what a file says; nothing: it can be believed. For read_all and its fuzzer.
std::string problem_of(const Process& process);

} // namespace gcx::published
