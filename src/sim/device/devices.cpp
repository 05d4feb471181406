// cuInit, CUDA_VISIBLE_DEVICES, and the attributes of devices.
#include "sim/device/device.hpp"
#include "sim/entry/entry.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace gcx::sim {

// CUDA_VISIBLE_DEVICES follows the CUDA Programming Guide, "CUDA Environment Variables". For a
// device that is listed twice, and for text behind the digits of a number, the guide says nothing:
// this follows PyTorch's implementation (torch/cuda/__init__.py).

namespace {

constexpr std::string_view kUuidPrefix = "GPU-";

// The same GPU at the same index of the same machine has the same UUID in each run.
CUuuid device_uuid(const Device& device) {
    // FNV-1a. As on real GPUs, the first bytes differ, so that a few digits identify a device.
    uint32_t hash = 0x811c9dc5 ^ device.index;
    for (const char c : device.profile.name)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193;
    CUuuid uuid{};
    std::memcpy(uuid.bytes, &hash, sizeof hash);
    std::memcpy(uuid.bytes + sizeof hash, "SIMULATED", 9);
    uuid.bytes[15] = static_cast<char>(device.index);
    return uuid;
}

std::string uuid_text(const Device& device) {
    std::string text(kUuidPrefix);
    const CUuuid uuid = device_uuid(device);
    for (std::size_t i = 0; i < sizeof uuid.bytes; i++) {
        char digits[4];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
        text += i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        text += digits;
    }
    return text;
}

// Accepts "GPU-" and enough digits to identify one device.
std::optional<unsigned> by_uuid(const Machine& machine, std::string_view name) {
    std::optional<unsigned> found;
    for (const auto& device : machine.devices) {
        if (!uuid_text(*device).starts_with(name))
            continue;
        if (found)
            return std::nullopt;
        found = device->index;
    }
    return found;
}

std::optional<unsigned> by_number(const Machine& machine, std::string_view text) {
    unsigned index = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), index);
    return code == std::errc() && index < machine.devices.size() ? std::optional(index)
                                                                 : std::nullopt;
}

// No simulated GPU has MIG instances, so that MIG- names no device.
std::optional<unsigned> find_device(const Machine& machine, std::string_view name) {
    name.remove_prefix(std::min(name.find_first_not_of(" \t"), name.size()));
    name = name.substr(0, name.find_last_not_of(" \t") + 1);
    return name.starts_with(kUuidPrefix) ? by_uuid(machine, name) : by_number(machine, name);
}

// Returns the indices of the devices that text, the value of the variable, makes visible, in its
// order. If text is null, all devices are visible.
std::vector<unsigned> visible_indices(const Machine& machine, const char* text) {
    std::vector<unsigned> visible;
    if (text == nullptr) {
        for (const auto& device : machine.devices)
            visible.push_back(device->index);
        return visible;
    }
    std::string_view rest(text);
    while (true) {
        const auto comma = std::min(rest.find(','), rest.size());
        const std::optional<unsigned> device = find_device(machine, rest.substr(0, comma));
        // An entry that names no device hides all entries behind it.
        if (!device)
            return visible;
        if (std::ranges::find(visible, *device) != visible.end())
            return {};
        visible.push_back(*device);
        if (comma == rest.size())
            return visible;
        rest.remove_prefix(comma + 1);
    }
}

// Attributes with one value for all simulated compute capabilities (CUDA C++ Programming Guide,
// tables of features and of technical specifications).
struct FixedAttribute {
    int attribute;
    int value;
};
constexpr FixedAttribute kFixedAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 0},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 1},
    {CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 1},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
};

// Attributes whose values the profile has.
struct ProfileAttribute {
    int attribute;
    const char* field;
};
constexpr ProfileAttribute kProfileAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, "clock_khz"},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, "memory_clock_khz"},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, "memory_bus_bits"},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, "l2_bytes"},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, "threads_per_sm"},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, "blocks_per_sm"},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, "registers_per_sm"},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, "shared_memory_per_sm"},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, "shared_memory_per_block_optin"},
    {CU_DEVICE_ATTRIBUTE_INTEGRATED, "integrated"},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, "pageable_memory_access"},
};

int pci_bus(const Device& device) {
    const long long given = device.profile.number("pci_bus");
    return given >= 0 ? static_cast<int>(given) : static_cast<int>(0x18 + 3 * device.index);
}

int get_attribute(const Machine& machine, const Device& device, int attribute) {
    const Profile& profile = device.profile;
    for (const FixedAttribute& row : kFixedAttributes)
        if (row.attribute == attribute)
            return row.value;
    for (const ProfileAttribute& row : kProfileAttributes)
        if (row.attribute == attribute)
            return static_cast<int>(profile.number(row.field));
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        // Recorded: the count of the whole device, even if a green context is current.
        return static_cast<int>(profile.sm_count);
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return profile.major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return profile.minor;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
        return profile.has_clusters() ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_MPS_ENABLED:
        return machine.mps ? 1 : 0; // by the header's text
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        return pci_bus(device);
    case CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE:
        return static_cast<int>(max_access_window(device));
    case CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE:
        return static_cast<int>(max_persisting_l2(device));
    case cu::kAttributeLocalityDomainCount:
        require(machine.has(kHasLocalityDomains));
        return static_cast<int>(profile.locality_domains.size());
    case cu::kAttributeLocalityDomainSmCount:
        require(machine.has(kHasLocalityDomains));
        return static_cast<int>(profile.locality_domain_sm_count);
    default:
        // Textures, surfaces, fabric and the like do not exist.
        require(attribute > 0 && attribute < 200);
        return 0;
    }
}

// Hides the devices that CUDA_VISIBLE_DEVICES does not name and renumbers the others. Returns false
// and changes nothing if it names none.
bool hide_devices(Machine& machine) {
    const auto indices = visible_indices(machine, std::getenv("CUDA_VISIBLE_DEVICES"));
    if (indices.empty())
        return false;
    std::vector<std::unique_ptr<Device>> visible;
    for (const unsigned index : indices) {
        visible.push_back(std::move(machine.devices[index]));
        visible.back()->ordinal = static_cast<int>(visible.size() - 1);
    }
    machine.devices = std::move(visible);
    return true;
}

// Reads the bus of "0000:18:00.0" or "18:00.0".
unsigned read_pci_bus(const char* text) {
    const char* const colon = std::strchr(text, ':');
    const bool has_domain = colon != nullptr && std::strchr(colon + 1, ':') != nullptr;
    unsigned bus = 0;
    require(std::sscanf(has_domain ? colon + 1 : text, "%x:", &bus) == 1); // NOLINT(cert-err34-c)
    return bus;
}

// CUDA's documentation names the default 8 and the range 1 to 32. Assumed: other values mean the
// default, and cuInit reads the variable rather than the first context.
unsigned connections_of_environment() {
    const char* const text = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    const unsigned long value = text == nullptr ? 0 : std::strtoul(text, nullptr, 10);
    return value >= 1 && value <= 32 ? static_cast<unsigned>(value) : 8;
}

} // namespace

std::size_t max_access_window(const Device& device) {
    return device.profile.major >= 8 ? 134213632 : 0;
}

std::size_t max_persisting_l2(const Device& device) {
    const auto cache = static_cast<std::size_t>(device.profile.number("l2_bytes"));
    return device.profile.major >= 8 ? cache / 4 * 3 : 0;
}

Device& device_of(Machine& machine, CUdevice ordinal) {
    return known(machine.device(ordinal), CUDA_ERROR_INVALID_DEVICE);
}

GCX_SIM_API(cuInit, unsigned flags) {
    GCX_SIM_BODY_ANYTIME({
        require(flags == 0);
        if (!machine.initialised) {
            require(hide_devices(machine), CUDA_ERROR_NO_DEVICE);
            machine.connections = connections_of_environment();
        }
        machine.initialised = true;
    });
}

GCX_SIM_API(cuDriverGetVersion, int* out) {
    GCX_SIM_BODY_ANYTIME(give(out, machine.driver->version));
}

GCX_SIM_API(cuDeviceGetCount, int* out) {
    GCX_SIM_BODY(give(out, static_cast<int>(machine.devices.size())));
}

GCX_SIM_API(cuDeviceGet, CUdevice* out, int ordinal) {
    GCX_SIM_BODY(give(out, device_of(machine, ordinal).ordinal));
}

GCX_SIM_API(cuDeviceGetName, char* out, int size, CUdevice ordinal) {
    GCX_SIM_BODY({
        require(out != nullptr);
        const Device& device = device_of(machine, ordinal);
        require(size > 0);
        std::snprintf(out, static_cast<std::size_t>(size), "SIMULATED %s",
                      device.profile.name.c_str());
    });
}

GCX_SIM_API(cuDeviceGetUuid, CUuuid* out, CUdevice ordinal) {
    GCX_SIM_BODY(give(out, device_uuid(device_of(machine, ordinal))));
}

GCX_SIM_API(cuDeviceGetUuid_v2, CUuuid* out, CUdevice ordinal) {
    GCX_SIM_BODY(give(out, device_uuid(device_of(machine, ordinal))));
}

GCX_SIM_API(cuDeviceTotalMem_v2, std::size_t* out, CUdevice ordinal) {
    GCX_SIM_BODY(give(out, device_of(machine, ordinal).profile.memory_bytes));
}

GCX_SIM_API(cuDeviceGetAttribute, int* out, CUdevice_attribute attribute, CUdevice ordinal) {
    GCX_SIM_BODY(give(out, get_attribute(machine, device_of(machine, ordinal), attribute)));
}

GCX_SIM_API(cuDeviceComputeCapability, int* major, int* minor, CUdevice ordinal) {
    GCX_SIM_BODY({
        require(major != nullptr && minor != nullptr);
        const Profile& profile = device_of(machine, ordinal).profile;
        give(major, profile.major);
        give(minor, profile.minor);
    });
}

GCX_SIM_API(cuDeviceGetPCIBusId, char* out, int size, CUdevice ordinal) {
    GCX_SIM_BODY({
        require(out != nullptr);
        const Device& device = device_of(machine, ordinal);
        require(size >= 13);
        std::snprintf(out, static_cast<std::size_t>(size), "0000:%02X:00.0", pci_bus(device));
    });
}

GCX_SIM_API(cuDeviceGetByPCIBusId, CUdevice* out, const char* text) {
    GCX_SIM_BODY({
        require(out != nullptr && text != nullptr);
        const unsigned bus = read_pci_bus(text);
        const auto found = std::ranges::find_if(machine.devices, [&](const auto& device) {
            return pci_bus(*device) == static_cast<int>(bus);
        });
        require(found != machine.devices.end(), CUDA_ERROR_INVALID_DEVICE);
        give(out, (*found)->ordinal);
    });
}

GCX_SIM_API(cuDeviceCanAccessPeer, int* out, CUdevice ordinal, CUdevice peer) {
    GCX_SIM_BODY(give(out, &device_of(machine, ordinal) != &device_of(machine, peer) ? 1 : 0));
}

} // namespace gcx::sim
