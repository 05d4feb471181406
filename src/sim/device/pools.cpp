// Memory pools, and allocation in the order of a stream.
#include "sim/device/device.hpp"
#include "sim/edge/entry.hpp"
#include "sim/work/work.hpp"

#include <algorithm>
#include <cstring>

namespace gcx::sim {
namespace {

Pool& pool_of(Machine& machine, CUmemoryPool handle) {
    return known(find(machine.pools, handle));
}

Pool& create_pool(Machine& machine, Device& device) {
    Pool& pool = create(machine.pools);
    pool.device = &device;
    return pool;
}

Pool& default_pool(Machine& machine, Device& device) {
    if (device.default_pool == 0)
        device.default_pool = create_pool(machine, device).handle;
    return *machine.pools[device.default_pool];
}

void give_default_pool(Machine& machine, CUmemoryPool* out, CUdevice ordinal) {
    Device& device = device_of(machine, ordinal);
    require(out != nullptr);
    give(out, default_pool(machine, device).handle);
}

// In a capture it is a node, whose memory is the graph's.
void capture_allocation(Machine& machine, Stream& stream, const Pool& pool, std::size_t bytes,
                        CUdeviceptr* out) {
    CUDA_MEM_ALLOC_NODE_PARAMS p{};
    p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p.poolProps.location.id = pool.device->ordinal;
    p.bytesize = bytes;
    p.dptr = allocate(machine, *pool.device, *stream.context, bytes, MemoryKind::Device).address;
    Work work;
    work.kind = Work::Kind::MemoryAlloc;
    work.owned_address = p.dptr;
    work.parameters = to_bytes(p);
    *out = p.dptr;
    submit(machine, stream, std::move(work));
}

void allocate_async(Machine& machine, CUdeviceptr* out, std::size_t bytes, CUstream handle,
                    CUmemoryPool pool_handle) {
    Stream& stream = stream_of(machine, handle);
    require(out != nullptr && bytes != 0);
    Pool& pool = pool_handle == nullptr ? default_pool(machine, *stream.context->device)
                                        : pool_of(machine, pool_handle);
    if (stream.capture != nullptr)
        return capture_allocation(machine, stream, pool, bytes, out);
    Allocation& allocation =
        allocate(machine, *pool.device, *stream.context, bytes, MemoryKind::Device);
    allocation.pool = pool.handle;
    pool.used += bytes;
    pool.used_high = std::max(pool.used_high, pool.used);
    *out = allocation.address;
}

uint64_t attribute_or(const Pool& pool, int attribute, uint64_t otherwise) {
    const auto found = pool.attributes.find(attribute);
    return found == pool.attributes.end() ? otherwise : found->second;
}

template <class Value>
void write_value(void* out, Value value) {
    std::memcpy(out, &value, sizeof value);
}

void get_attribute(const Pool& pool, CUmemPool_attribute attribute, void* out) {
    require(out != nullptr);
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        return write_value(out, static_cast<int>(attribute_or(pool, attribute, 1)));
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return write_value(out, attribute_or(pool, attribute, 0));
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return write_value(out, pool.used);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return write_value(out, pool.used_high);
    default:
        refuse(CUDA_ERROR_INVALID_VALUE);
    }
}

void set_attribute(Pool& pool, CUmemPool_attribute attribute, const void* value) {
    require(value != nullptr);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        std::memcpy(&pool.attributes[attribute], value, sizeof(uint64_t));
    } else {
        int number = 0;
        std::memcpy(&number, value, sizeof number);
        pool.attributes[attribute] = static_cast<uint64_t>(number);
    }
}

} // namespace

GCX_SIM_STREAM_API(cuMemAllocAsync, _ptsz, (CUdeviceptr * out, std::size_t bytes, CUstream stream),
                   (out, bytes, stream)) {
    GCX_SIM_BODY(allocate_async(machine, out, bytes, stream, nullptr));
}

GCX_SIM_STREAM_API(cuMemAllocFromPoolAsync, _ptsz,
                   (CUdeviceptr * out, std::size_t bytes, CUmemoryPool pool, CUstream stream),
                   (out, bytes, pool, stream)) {
    GCX_SIM_BODY({
        require(pool != nullptr);
        allocate_async(machine, out, bytes, stream, pool);
    });
}

GCX_SIM_STREAM_API(cuMemFreeAsync, _ptsz, (CUdeviceptr address, CUstream handle),
                   (address, handle)) {
    GCX_SIM_BODY({
        Stream& stream = stream_of(machine, handle);
        if (stream.capture == nullptr) {
            free_memory(machine, address, false);
        } else {
            Work work;
            work.kind = Work::Kind::MemoryFree;
            work.parameters = to_bytes(address);
            submit(machine, stream, std::move(work));
        }
    });
}

GCX_SIM_API(cuDeviceGetDefaultMemPool, CUmemoryPool* out, CUdevice ordinal) {
    GCX_SIM_BODY(give_default_pool(machine, out, ordinal));
}

// No simulated function changes a device's pool.
GCX_SIM_API(cuDeviceGetMemPool, CUmemoryPool* out, CUdevice ordinal) {
    GCX_SIM_BODY(give_default_pool(machine, out, ordinal));
}

GCX_SIM_API(cuMemPoolCreate, CUmemoryPool* out, const CUmemPoolProps* properties) {
    GCX_SIM_BODY({
        require(out != nullptr && properties != nullptr);
        Device& device = known(machine.device(properties->location.id));
        require(properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE);
        give(out, create_pool(machine, device).handle);
    });
}

GCX_SIM_API(cuMemPoolDestroy, CUmemoryPool handle) {
    GCX_SIM_BODY({
        const Pool& pool = pool_of(machine, handle);
        require(pool.device->default_pool != pool.handle);
        machine.pools.erase(pool.handle);
    });
}

GCX_SIM_API(cuMemPoolGetAttribute, CUmemoryPool handle, CUmemPool_attribute attribute, void* out) {
    GCX_SIM_BODY(get_attribute(pool_of(machine, handle), attribute, out));
}

GCX_SIM_API(cuMemPoolSetAttribute, CUmemoryPool handle, CUmemPool_attribute attribute,
            void* value) {
    GCX_SIM_BODY(set_attribute(pool_of(machine, handle), attribute, value));
}

GCX_SIM_API(cuMemPoolSetAccess, CUmemoryPool handle, const CUmemAccessDesc*, std::size_t) {
    GCX_SIM_BODY(pool_of(machine, handle));
}

} // namespace gcx::sim
