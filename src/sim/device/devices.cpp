// Initialisation, and what a device tells of itself.
#include "sim/device/device.hpp"
#include "sim/device/visible_devices.hpp"
#include "sim/edge/entry.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gcx::sim {
namespace {

// Attributes that no profile need give, with the values of the compute capabilities simulated here
// (CUDA C++ Programming Guide, tables of features and of technical specifications).
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

// Attributes that are numbers of the profile.
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
        // Recorded: of the whole device, whatever green context is current.
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
        // Textures, surfaces, fabric and the like: there are none.
        require(attribute > 0 && attribute < 200);
        return 0;
    }
}

// Leaves those devices that CUDA_VISIBLE_DEVICES names, numbered anew. Without any, the machine
// stays as it is.
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

// The bus of "0000:18:00.0" or "18:00.0".
unsigned read_pci_bus(const char* text) {
    const char* const colon = std::strchr(text, ':');
    const bool has_domain = colon != nullptr && std::strchr(colon + 1, ':') != nullptr;
    unsigned bus = 0;
    require(std::sscanf(has_domain ? colon + 1 : text, "%x:", &bus) == 1); // NOLINT(cert-err34-c)
    return bus;
}

// CUDA's documentation has 8, and 1 to 32. Assumed: that other values count as none, and that the
// variable is read here and not with the first context.
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
        const auto found =
            std::find_if(machine.devices.begin(), machine.devices.end(), [&](const auto& device) {
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
