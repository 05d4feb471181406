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
    {CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0},
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

CUresult get_attribute(const Machine& machine, const Device& device, int attribute, int& out) {
    const Profile& profile = device.profile;
    for (const FixedAttribute& row : kFixedAttributes) {
        if (row.attribute == attribute) {
            out = row.value;
            return CUDA_SUCCESS;
        }
    }
    for (const ProfileAttribute& row : kProfileAttributes) {
        if (row.attribute == attribute) {
            out = static_cast<int>(profile.number(row.field));
            return CUDA_SUCCESS;
        }
    }
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        // Recorded: of the whole device, whatever green context is current.
        out = static_cast<int>(profile.sm_count);
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        out = profile.major;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        out = profile.minor;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
        out = profile.major >= 9 ? 1 : 0;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        out = pci_bus(device);
        return CUDA_SUCCESS;
    case cu::kAttributeLocalityDomainCount:
    case cu::kAttributeLocalityDomainSmCount:
        if (!machine.has(kHasLocalityDomains))
            return CUDA_ERROR_INVALID_VALUE;
        out = attribute == cu::kAttributeLocalityDomainCount
                  ? static_cast<int>(profile.locality_domains.size())
                  : static_cast<int>(profile.locality_domain_sm_count);
        return CUDA_SUCCESS;
    default:
        // Textures, surfaces, fabric and the like: there are none.
        out = 0;
        return attribute > 0 && attribute < 200 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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

template <class Body>
CUresult with_device(Machine& machine, CUdevice ordinal, const void* out, const Body& body) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    Device* const device = machine.device(ordinal);
    if (device == nullptr)
        return CUDA_ERROR_INVALID_DEVICE;
    return body(*device);
}

} // namespace

Device& device_of(Machine& machine, CUdevice ordinal) {
    return known(machine.device(ordinal), CUDA_ERROR_INVALID_DEVICE);
}

GCX_SIM_API(cuInit, unsigned flags) {
    return call_anytime(__func__, [&](Machine& machine) -> CUresult {
        if (flags != 0)
            return CUDA_ERROR_INVALID_VALUE;
        if (machine.initialised)
            return CUDA_SUCCESS;
        if (!hide_devices(machine))
            return CUDA_ERROR_NO_DEVICE;
        machine.initialised = true;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuDriverGetVersion, int* out) {
    return call_anytime(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        *out = machine.driver->version;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuDeviceGetCount, int* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        *out = static_cast<int>(machine.devices.size());
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuDeviceGet, CUdevice* out, int ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_device(machine, ordinal, out, [&](const Device&) {
            *out = ordinal;
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuDeviceGetName, char* out, int size, CUdevice ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_device(machine, ordinal, out, [&](const Device& device) {
            if (size <= 0)
                return CUDA_ERROR_INVALID_VALUE;
            std::snprintf(out, static_cast<std::size_t>(size), "SIMULATED %s",
                          device.profile.name.c_str());
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuDeviceGetUuid, CUuuid* out, CUdevice ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_device(machine, ordinal, out, [&](const Device& device) {
            *out = device_uuid(device);
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuDeviceGetUuid_v2, CUuuid* out, CUdevice ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_device(machine, ordinal, out, [&](const Device& device) {
            *out = device_uuid(device);
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuDeviceTotalMem_v2, std::size_t* out, CUdevice ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_device(machine, ordinal, out, [&](const Device& device) {
            *out = device.profile.memory_bytes;
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuDeviceGetAttribute, int* out, CUdevice_attribute attribute, CUdevice ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_device(machine, ordinal, out, [&](const Device& device) {
            return get_attribute(machine, device, attribute, *out);
        });
    });
}

GCX_SIM_API(cuDeviceComputeCapability, int* major, int* minor, CUdevice ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_device(machine, ordinal, major, [&](const Device& device) {
            if (minor == nullptr)
                return CUDA_ERROR_INVALID_VALUE;
            *major = device.profile.major;
            *minor = device.profile.minor;
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuDeviceGetPCIBusId, char* out, int size, CUdevice ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_device(machine, ordinal, out, [&](const Device& device) {
            if (size < 13)
                return CUDA_ERROR_INVALID_VALUE;
            std::snprintf(out, static_cast<std::size_t>(size), "0000:%02X:00.0", pci_bus(device));
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuDeviceGetByPCIBusId, CUdevice* out, const char* text) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr || text == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        const char* const colon = std::strchr(text, ':');
        const bool has_domain = colon != nullptr && std::strchr(colon + 1, ':') != nullptr;
        unsigned bus = 0;
        if (std::sscanf(has_domain ? colon + 1 : text, "%x:", &bus) != 1) // NOLINT(cert-err34-c)
            return CUDA_ERROR_INVALID_VALUE;
        for (const auto& device : machine.devices) {
            if (pci_bus(*device) == static_cast<int>(bus)) {
                *out = device->ordinal;
                return CUDA_SUCCESS;
            }
        }
        return CUDA_ERROR_INVALID_DEVICE;
    });
}

GCX_SIM_API(cuDeviceCanAccessPeer, int* out, CUdevice ordinal, CUdevice peer) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_device(machine, ordinal, out, [&](const Device&) {
            if (machine.device(peer) == nullptr)
                return CUDA_ERROR_INVALID_DEVICE;
            *out = peer != ordinal ? 1 : 0;
            return CUDA_SUCCESS;
        });
    });
}

GCX_SIM_API(cuDeviceGetP2PAttribute, int* out, CUdevice_P2PAttribute attribute, CUdevice ordinal,
            CUdevice peer) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return with_device(machine, ordinal, out, [&](const Device&) {
            if (machine.device(peer) == nullptr || peer == ordinal)
                return CUDA_ERROR_INVALID_DEVICE;
            *out = attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : 1;
            return CUDA_SUCCESS;
        });
    });
}

} // namespace gcx::sim
