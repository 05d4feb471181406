// The driver that the command line or the environment chooses, the families of its devices, and the
// partitions that --sms, --device, --family and --exact request.
#pragma once

#include "cli/args.hpp"
#include "cli/output.hpp"

#include <gcx.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gcx::cli {

// Opens the driver that --driver or the environment names, or the named one.
gcx_driver_info open_driver(const Arguments& arguments);
gcx_driver_info open_driver_named(const std::string& name);

// Returns the hex digits of a UUID with or without "GPU-" or "MIG-"; empty if the text is none.
std::string uuid_digits(std::string text);

// Returns the ordinal of the device that an ordinal or the beginning of a UUID names. Throws
// UsageError if the name is neither, and Failure if none of count devices has it.
int32_t device_named(const std::string& name, int32_t count);

// Returns the device that --device names, 0 if it was not given. The driver is open.
int32_t device_option(const Arguments& arguments);

// Returns dlopen's handle of the open driver, for functions that gcx does not have.
void* driver_library(const gcx_driver_info& driver);

// Returns the address of a function of the open driver. Throws Failure if the driver lacks it.
void* driver_symbol(const gcx_driver_info& driver, const char* name);

// Throws Failure with the call's name if the result is not CUDA_SUCCESS.
void check_driver(int result, std::string_view call);

// A function of the open driver, which throws Failure if it fails. Prototypes stand where they are
// used: the command is built without cuda.h.
template <class... Parameters>
class DriverCall {
  public:
    DriverCall(const gcx_driver_info& driver, const char* name)
        : name_(name), call_(reinterpret_cast<Call>(driver_symbol(driver, name))) {}

    void operator()(Parameters... arguments) const { check_driver(call_(arguments...), name_); }

  private:
    using Call = int (*)(Parameters...);
    const char* name_;
    Call call_;
};

// Whether the open driver, or the one to be opened, is the simulated one, as far as is known.
bool is_simulated();

// The members with which every report begins: simulated and driver.
Json report_start(const gcx_driver_info& driver);

// The same in the text: a line that says SIMULATED, or nothing.
std::string banner(const gcx_driver_info& driver);

// What times on the simulated driver mean.
extern const char* const simulated_times;

// Returns the microseconds of the host's clock.
double host_us();

// Returns the device's name, without the mark "SIMULATED" if the banner says it already.
std::string plain_name(const gcx_device_info& device);

struct FamilyName {
    const char* name;
    gcx_sm_family family;
    gcx::split_flags flags;
    std::string_view promise;
    std::string_view promise_without_clusters; // below compute capability 9.0
};
extern const std::array<FamilyName, 3> family_names;

// "coscheduled"
std::string family_text(gcx_sm_family family);

// Returns the family that --family names, coscheduled if it was not given. Throws UsageError.
const FamilyName& read_family(const Arguments& arguments);

// A device's SMs as the atoms of a family.
struct Family {
    resource all;
    std::vector<resource> atoms;
    std::vector<uint32_t> sm_counts; // of each atom
    std::string unavailable;         // why the device has no such family; empty if it has

    // The number of atoms that are as large as the first: all, or all but the remainder atom.
    std::size_t equal_atoms() const;
};

// Finds a device's atoms. Clusters need compute capability 9.0, and a small slice of a GPU has too
// few SMs for large clusters; `unavailable` is set then.
Family find_family(int32_t device, const FamilyName& name);

// SMs as --sms names them.
struct SmShare {
    std::string text;         // "24", "12.5%" or "rest"
    uint32_t sm_count = rest; // of a count
    uint64_t percentage = 0;  // in billionths of a percent; 0: a count, or the rest

    bool is_percentage() const { return percentage != 0; }
    // Returns the count as a number, anything else as text.
    Json json() const;
};

// Reads a share. Throws UsageError with the option as it was given, and help.
SmShare read_share(const std::string& text, const std::string& option, std::string_view help);

// The SM counts that a share allows.
struct SmSizes {
    uint32_t preferred = rest;  // requested first
    uint32_t least = rest;      // requested if that can't be given; the atoms may make more of it
    uint32_t most = UINT32_MAX; // more is not acceptable
};

// Returns the sizes for a share of a resource, which label names in messages: "device 0". Exact
// sizes are those that a split gives without rounding. Throws Failure if there is none.
SmSizes find_sizes(const SmShare& share, const resource& all, const std::string& label);
SmSizes find_exact_sizes(const SmShare& share, const resource& all, const FamilyName& family,
                         const std::string& label);

// "the nearest sizes that can be given are 8 and 12", of these SMs.
std::string nearest_sizes(const resource& all, uint32_t sm_count);

struct Layout {
    gcx_driver_info driver{};
    int32_t device = 0;
    const FamilyName* family = nullptr;
    bool exact = false;
    std::vector<SmShare> shares;
    std::vector<request> requests; // of the shares

    gcx::split_flags flags() const;
    // "device 0: NVIDIA H100 80GB HBM3, 132 SMs, coscheduled", with the SMs that can be divided.
    // Inside gcx exec these may be fewer than the device reports.
    std::string line() const;
    // Returns the members simulated, driver, device and family of a report.
    Json json() const;
};

// Reads the options and opens the driver. Throws UsageError.
Layout open_layout(const Arguments& arguments);

struct Partition {
    uint32_t requested = 0; // SMs, or GCX_REST; of a percentage its size
    uint32_t sm_count = 0;
    gcx::context context;
    gcx::stream stream;
    std::vector<uint32_t> seen; // SMs that its kernels ran on, ascending
};

struct Partitions {
    std::vector<resource> groups;
    std::vector<Partition> list;
    uint32_t remainder = 0; // SMs
    uint32_t available = 0; // SMs that were divided
};

// Splits the device. Creates no contexts.
Partitions split_device(const Layout& layout);

// What gcx_verify found, with the command's own comparisons.
struct Verification {
    std::size_t problem_count = 0; // at least the number of lines
    std::vector<std::string> problems;
    uint32_t overlap_count = 0;
    std::vector<uint32_t> shared_by_all; // ascending
    bool virtual_sm_numbers = false;

    void add(std::string problem) {
        problems.push_back(std::move(problem));
        problem_count++;
    }
};

// Runs kernels in all partitions and sets what was seen of each. Also compares the SM counts of the
// requests, the split and the streams, and their sum with the device's.
Verification verify_partitions(const Layout& layout, Partitions& partitions);

} // namespace gcx::cli
