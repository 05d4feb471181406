#include "cli/record.hpp"

#include "cli/driver.hpp"
#include "cli/partition.hpp"

#include <array>

namespace gcx::cli {
namespace {

// Device attributes that a profile holds, with their numbers in CUdevice_attribute.
struct Attribute {
    const char* field;
    int number;
};
constexpr std::array kAttributes = {
    Attribute{"clock_khz", 13},
    Attribute{"memory_clock_khz", 36},
    Attribute{"memory_bus_bits", 37},
    Attribute{"l2_bytes", 38},
    Attribute{"threads_per_sm", 39},
    Attribute{"blocks_per_sm", 106},
    Attribute{"registers_per_sm", 82},
    Attribute{"shared_memory_per_sm", 81},
    Attribute{"shared_memory_per_block_optin", 97},
    Attribute{"integrated", 18},
    Attribute{"pci_bus", 33},
    Attribute{"pageable_memory_access", 88},
};

std::string device_lines(const gcx_driver_info& driver, int32_t ordinal) {
    const gcx_device_info info = gcx::device(ordinal).info();
    const std::string name = plain_name(info);
    const std::string version = version_text(driver.version);
    const std::string capability =
        format("%d.%d", info.compute_capability_major, info.compute_capability_minor);
    std::string text = "name " + name + "\n";
    text += format("description %s%s: %u SMs, compute capability %s; recorded on CUDA %s\n",
                   driver.simulated != 0 ? "SIMULATED " : "", name.c_str(), info.sm_count,
                   capability.c_str(), version.c_str());
    text += "driver " + version + "\ncompute_capability " + capability + "\n";
    text += format("sm_count %u\nmin_partition_size %u\ncoscheduled_alignment %u\n", info.sm_count,
                   info.min_partition_size, info.coscheduled_alignment);

    const DriverCall<int*, int> get_device(driver, "cuDeviceGet");
    const DriverCall<std::size_t*, int> get_memory(driver, "cuDeviceTotalMem_v2");
    const DriverCall<int*, int, int> get_attribute(driver, "cuDeviceGetAttribute");
    int device = 0;
    std::size_t bytes = 0;
    get_device(&device, ordinal);
    get_memory(&bytes, device);
    text += format("memory_bytes %zu\n", bytes);
    for (const Attribute& attribute : kAttributes) {
        int value = 0;
        get_attribute(&value, attribute.number, device);
        text += format("%s %d\n", attribute.field, value);
    }
    return text;
}

std::string sm_line(const char* field, const resource& atom) {
    std::string line = field;
    for (const uint32_t sm : atom.sm_ids())
        (line += ' ') += std::to_string(sm);
    return line + "\n";
}

} // namespace

std::string record_profile(const gcx_driver_info& driver, int32_t device) {
    std::string text = "gcx-profile 1\n# Written by gcx info --record. The lists of SMs are those "
                       "that a kernel saw on each atom.\n";
    text += device_lines(driver, device);
    const gcx_device_info info = gcx::device(device).info();
    for (const FamilyName& name : family_names) {
        const Family family = find_family(device, name);
        // A device smaller than a group is one atom, which is not from a split.
        const bool whole =
            name.family == gcx::family::coscheduled && info.sm_count < info.min_partition_size;
        if (!family.unavailable.empty() || whole)
            continue;
        gcx::device(device).map_sms(name.family);
        text += "\nfamily " + std::string(name.name) + "\n";
        for (std::size_t i = 0; i < family.atoms.size(); i++)
            text += sm_line(i < family.equal_atoms() ? "group" : "remainder", family.atoms[i]);
    }
    return text;
}

std::string replay_driver(const std::string& path) {
    std::string driver = path.find('/') == std::string::npos ? "sim:./" + path : "sim:" + path;
    const std::size_t at = path.rfind('@');
    if (at != std::string::npos && path.find_first_not_of("0123456789.", at + 1) == path.npos)
        driver += '@';
    return driver;
}

} // namespace gcx::cli
