// What can be asked about a pointer.
#include "sim/device/device.hpp"
#include "sim/edge/entry.hpp"

#include <cstring>

namespace gcx::sim {
namespace {

template <class Value>
bool write(void* out, Value value) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): where it is a pointer, that is copied
    std::memcpy(out, &value, sizeof value);
    return true;
}

// False: nothing is known of the memory, or there is no such attribute of it.
bool write_attribute(Machine& machine, void* out, CUpointer_attribute attribute,
                     CUdeviceptr address) {
    const Allocation* const found = find_allocation(machine, address);
    if (found == nullptr)
        return false;
    const bool host = found->kind == MemoryKind::Host || found->kind == MemoryKind::Registered;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return write(out,
                     to_pointer<CUcontext>(found->context == nullptr ? 0 : found->context->handle));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return write(out, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        return write(out, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        return (host || found->kind == MemoryKind::Managed) && write(out, address);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return write(out, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        return write(out, found->id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        return write(out, static_cast<int>(found->kind == MemoryKind::Managed));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return write(out, found->device->ordinal);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return write(out, found->address);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return write(out, found->bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
        return write(out, 1);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        return write(out, found->pool);
    default:
        return false;
    }
}

} // namespace

GCX_SIM_API(cuPointerGetAttribute, void* out, CUpointer_attribute attribute, CUdeviceptr address) {
    GCX_SIM_BODY(require(out != nullptr && write_attribute(machine, out, attribute, address)));
}

GCX_SIM_API(cuMemHostGetDevicePointer_v2, CUdeviceptr* out, void* pointer, unsigned flags) {
    GCX_SIM_BODY({
        const Allocation& found = known(find_allocation(machine, to_handle(pointer)));
        require(flags == 0 &&
                (found.kind == MemoryKind::Host || found.kind == MemoryKind::Registered));
        give(out, to_handle(pointer));
    });
}

GCX_SIM_API(cuMemGetAddressRange_v2, CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
    GCX_SIM_BODY({
        const Allocation& found = known(find_allocation(machine, address), CUDA_ERROR_NOT_FOUND);
        if (base != nullptr)
            *base = found.address;
        if (bytes != nullptr)
            *bytes = found.bytes;
    });
}

} // namespace gcx::sim
