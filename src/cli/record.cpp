#include "cli/record.hpp"

#include "cli/checked.hpp"
#include "cli/chosen_driver.hpp"
#include "cli/families.hpp"
#include "cli/raw_driver.hpp"
#include "cli/text.hpp"

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
    const gcx_device_info info = device_info(ordinal);
    const std::string name = plain_name(info);
    const std::string version = version_text(driver.version);
    std::string text = "name " + name + "\n";
    text += format("description %s%s: %u SMs, compute capability %d.%d; recorded on CUDA %s\n",
                   driver.simulated != 0 ? "SIMULATED " : "", name.c_str(), info.sm_count,
                   info.compute_capability_major, info.compute_capability_minor, version.c_str());
    text += "driver " + version + "\n";
    text += format("compute_capability %d.%d\n", info.compute_capability_major,
                   info.compute_capability_minor);
    text += format("sm_count %u\nmin_partition_size %u\ncoscheduled_alignment %u\n", info.sm_count,
                   info.min_partition_size, info.coscheduled_alignment);

    const RawDriver raw(driver);
    const int device = raw.device(ordinal);
    std::size_t bytes = 0;
    check_raw(raw.DeviceTotalMem(&bytes, device), "cuDeviceTotalMem");
    text += format("memory_bytes %zu\n", bytes);
    for (const Attribute& attribute : kAttributes) {
        int value = 0;
        check_raw(raw.DeviceGetAttribute(&value, attribute.number, device), "cuDeviceGetAttribute");
        text += format("%s %d\n", attribute.field, value);
    }
    return text;
}

// Of a device with fewer SMs than a group there is one atom, which no split gave.
bool is_no_split(const gcx_device_info& info, const FamilyName& name) {
    return name.family == GCX_SM_FAMILY_COSCHEDULED && info.sm_count < info.min_partition_size;
}

std::string sm_line(const char* field, const gcx_resource& atom) {
    std::array<uint32_t, GCX_MAX_SMS> ids{};
    uint32_t count = 0;
    check(gcx_resource_get_sm_ids(&atom, ids.data(), GCX_MAX_SMS, &count));
    std::string line = field;
    for (uint32_t i = 0; i < count; i++)
        (line += ' ') += std::to_string(ids[i]);
    return line + "\n";
}

} // namespace

std::string record_profile(const gcx_driver_info& driver, int32_t device) {
    std::string text = "gcx-profile 1\n# Written by gcx info --record. The lists of SMs are those "
                       "that a kernel saw on each atom.\n";
    text += device_lines(driver, device);
    for (const FamilyName& name : family_names) {
        const auto family = find_family(device, name);
        if (!family || is_no_split(device_info(device), name))
            continue;
        check(gcx_device_map_sms(device, name.family));
        text += "\nfamily " + std::string(name.name) + "\n";
        for (std::size_t i = 0; i < family->atoms.size(); i++)
            text += sm_line(i < equal_atoms(*family) ? "group" : "remainder", family->atoms[i]);
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
