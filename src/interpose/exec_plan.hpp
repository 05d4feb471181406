// The plan: what `gcx exec` tells every process that it starts. It travels in one environment
// variable, GCX_EXEC_PLAN, as words separated by spaces:
//
//     gcx-exec-1 driver=/usr/lib/x86_64-linux-gnu/libcuda.so.1 shim=/usr/lib/gcx/libgcx-shim.so
//     report=auto contexts=partition
//     device=b0a1...16 bytes in hex family=coscheduled sms=24 atoms=0-2 of=16
//
// "device" and the words after it appear once for each partitioned device. Programs use all SMs of
// the devices that the plan does not name. In a value, %XX is the byte XX.
#pragma once

#include <gcx.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gcx::interpose {

// The environment variable that contains the plan.
inline constexpr char kPlanVariable[] = "GCX_EXEC_PLAN";
// The first word of a plan: its format and the version of that format.
inline constexpr std::string_view kPlanFormat = "gcx-exec-1";
// Prefix of the name that the real driver is loaded by: /./.PATH. The loader identifies a loaded
// object by the name it was loaded with. Under its plain path, a program that opens libcuda by that
// path would get the driver without the shim.
inline constexpr char kRealPrefix[] = "/./.";

// Reports text that is not a plan. The message says what is wrong with it.
struct PlanError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Which SM count programs see as the device's.
enum class ReportedCount {
    kAuto,      // the partition's, except for cuBLAS versions that compute wrong results with it
    kPartition, // the partition's
    kDevice,    // the whole device's
};

// The partition of one device. Every process creates its green context from these atoms. They are
// the same SMs in each process, since the driver always splits a device the same way.
struct DevicePart {
    std::array<uint8_t, 16> uuid{}; // as from cuDeviceGetUuid_v2, which knows MIG instances
    gcx_sm_family family = GCX_SM_FAMILY_COSCHEDULED; // or fine, or max-cluster
    uint32_t sm_count = 0;                            // of the atoms below
    // Indexes in the family of the whole device, ascending, at least one.
    std::vector<uint32_t> atoms;
    // Number of atoms in that family. Another number means another device or driver.
    uint32_t family_atoms = 0;
    // The reservation of these SMs, or empty if there is none.
    std::string token;
};

struct Plan {
    std::string driver; // absolute path of the real libcuda
    std::string shim;   // absolute path of libgcx-shim.so
    ReportedCount reported_count = ReportedCount::kAuto;
    // Whether contexts of cuCtxCreate use all SMs of the device, and not those of the partition.
    bool own_contexts = false;
    std::vector<DevicePart> devices;

    // Returns the part of a device, or null if the plan does not name it.
    const DevicePart* find(const uint8_t (&uuid)[16]) const;
};

std::string write_plan(const Plan& plan);

// Throws PlanError. A plan that is returned has all of the fields above, in range and in order.
Plan read_plan(std::string_view text);

// Returns "auto", "partition" or "device".
std::string_view reported_count_word(ReportedCount count);

// Returns false if the text is none of these words.
bool read_reported_count(std::string_view text, ReportedCount& count);

// Returns "coscheduled" and so on, or nothing for a family that a plan can't contain.
std::string_view family_word(gcx_sm_family family);

// The functions below read the plan's text word by word. They need no C++ runtime, since the audit
// library has none.

// One word, like "driver=/usr/lib/libcuda.so.1". The value is still encoded.
struct Word {
    std::string_view key;
    std::string_view value;
};

// Removes the next word from the text. Returns false at the end. A word without "=" is a key.
inline bool next_word(std::string_view& text, Word& word) {
    while (!text.empty() && text.front() == ' ')
        text.remove_prefix(1);
    if (text.empty())
        return false;
    std::string_view whole = text;
    if (const std::size_t end = text.find(' '); end != std::string_view::npos)
        whole.remove_suffix(whole.size() - end);
    text.remove_prefix(whole.size());
    word = {whole, {}};
    if (const std::size_t equals = whole.find('='); equals != std::string_view::npos) {
        word.key.remove_suffix(whole.size() - equals);
        word.value = whole;
        word.value.remove_prefix(equals + 1);
    }
    return true;
}

inline int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Removes the next character from an encoded value and decodes it. Returns false at the end, and at
// an invalid %XX, which then remains in the value.
inline bool next_character(std::string_view& value, char& character) {
    if (value.empty())
        return false;
    if (value.front() != '%') {
        character = value.front();
        value.remove_prefix(1);
        return true;
    }
    const int high = value.size() < 3 ? -1 : hex_digit(value[1]);
    const int low = value.size() < 3 ? -1 : hex_digit(value[2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0))
        return false;
    character = static_cast<char>(high * 16 + low);
    value.remove_prefix(3);
    return true;
}

} // namespace gcx::interpose
