// What `gcx exec` tells each process that runs in its partitions. It travels in one environment
// variable, GCX_EXEC_PLAN, as words:
//
//     gcx-exec-1 driver=/usr/lib/x86_64-linux-gnu/libcuda.so.1 shim=/usr/lib/gcx/libgcx-shim.so
//     report=auto contexts=refuse
//     device=b0a1...16 bytes in hex family=coscheduled sms=24 atoms=0-2 of=16
//
// with device= and what follows it once for each device that is divided. Devices that aren't named
// are left as they are. In a value, %XX is the byte XX, as for spaces.
#pragma once

#include "interpose/words.hpp"

#include <gcx.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gcx::exec {

// The text is no plan. The message says what is wrong with it.
struct PlanError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What programs are told when they ask how many SMs there are: the partition's count, all but a
// cuBLAS that computes wrongly with it; the partition's; the device's.
enum class Told { kAuto, kPartition, kDevice };

// The SMs of one device that the programs have. Every process makes its green context of these
// atoms, which are the same SMs in each: the driver splits a device the same way every time.
struct DevicePart {
    std::array<uint8_t, 16> uuid{}; // as cuDeviceGetUuid_v2 tells it, a MIG instance's too
    gcx_sm_family family = GCX_SM_FAMILY_COSCHEDULED; // or fine, or max-cluster
    // Of the atoms below; what programs are told.
    uint32_t sm_count = 0;
    // By their index in the whole device's family: ascending, not empty.
    std::vector<uint32_t> atoms;
    // How many atoms that family has: another number means another device or driver.
    uint32_t family_atoms = 0;
    // Of the reservation that keeps these SMs for the programs; empty: there is none.
    std::string token;
};

struct Plan {
    std::string driver; // the libcuda that does the work: an absolute path
    std::string shim;   // the library with the functions that are changed: an absolute path
    Told told = Told::kAuto;
    // Whether programs may make contexts by cuCtxCreate, which have all SMs of the device.
    bool own_contexts = false;
    std::vector<DevicePart> devices;

    // Returns the part of a device, or null if the plan does not name it.
    const DevicePart* find(const uint8_t (&uuid)[16]) const;
};

std::string write_plan(const Plan& plan);

// Throws PlanError. What it accepts has all fields above, in range and in order.
Plan read_plan(std::string_view text);

// "auto", "partition", "device".
std::string_view told_word(Told told);

// Whether the text is such a word, and which.
bool read_told(std::string_view text, Told& told);

// "coscheduled"; empty for a family that a plan can't have.
std::string_view family_word(gcx_sm_family family);

} // namespace gcx::exec
