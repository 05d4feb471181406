// Allocation. Device memory is host memory under addresses of its own, which no program has mapped.
#include "sim/edge/entry.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace gcx::sim {
namespace {

constexpr uint64_t kFirstAddress = 0x7'0000'0000;
constexpr std::size_t kAlignment = 512;

uint64_t take_addresses(std::size_t bytes) {
    static uint64_t next = kFirstAddress; // never reused: a stale pointer is known as such
    const uint64_t address = next;
    next += (bytes + kAlignment) / kAlignment * kAlignment;
    return address;
}

Allocation* allocate(Machine& machine, Device& device, Context* context, std::size_t bytes,
                     MemoryKind kind) {
    const bool on_device =
        kind == MemoryKind::Device || kind == MemoryKind::Module || kind == MemoryKind::Managed;
    if (on_device && !charge_memory(device, bytes))
        return nullptr;
    const std::size_t mapped = (bytes + 4095) / 4096 * 4096;
    void* const data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
        if (on_device)
            device.memory_used -= bytes;
        return nullptr;
    }
    Allocation allocation;
    allocation.bytes = bytes;
    allocation.data = static_cast<std::byte*>(data);
    allocation.mapped = mapped;
    allocation.kind = kind;
    allocation.device = &device;
    allocation.context = context;
    allocation.id = machine.next_allocation++;
    const bool own_addresses = kind == MemoryKind::Device || kind == MemoryKind::Module;
    allocation.address =
        own_addresses ? take_addresses(bytes) : to_handle(static_cast<void*>(data));
    return &(machine.allocations[allocation.address] = allocation);
}

Context& owner(Context& context) {
    return context.kind == Context::Kind::Green ? *context.primary : context;
}

CUresult allocate_current(Machine& machine, std::size_t bytes, MemoryKind kind,
                          Allocation*& allocation) {
    Context* context = nullptr;
    if (const CUresult code = current_context(machine, context); code != CUDA_SUCCESS)
        return code;
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    allocation = allocate(machine, *context->device, &owner(*context), bytes, kind);
    return allocation == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult free_memory(Machine& machine, uint64_t address, bool host) {
    const auto found = machine.allocations.find(address);
    if (found == machine.allocations.end() || found->second.kind == MemoryKind::Registered ||
        found->second.kind == MemoryKind::Module ||
        (found->second.kind == MemoryKind::Host) != host)
        return CUDA_ERROR_INVALID_VALUE;
    drop_allocation(machine, found);
    return CUDA_SUCCESS;
}

CUresult allocate_host(Machine& machine, void** out, std::size_t bytes, unsigned flags) {
    if (out == nullptr || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    Allocation* allocation = nullptr;
    const CUresult code = allocate_current(machine, bytes, MemoryKind::Host, allocation);
    if (code == CUDA_SUCCESS) {
        allocation->flags = flags;
        *out = allocation->data;
    }
    return code;
}

Pool& default_pool(Machine& machine, Device& device) {
    if (device.default_pool == 0) {
        auto pool = std::make_unique<Pool>();
        pool->handle = new_handle();
        pool->device = &device;
        device.default_pool = device.current_pool = pool->handle;
        machine.pools[pool->handle] = std::move(pool);
    }
    return *machine.pools[device.default_pool];
}

CUresult allocate_async(Machine& machine, CUdeviceptr* out, std::size_t bytes, CUstream handle,
                        CUmemoryPool pool_handle) {
    Stream* stream = nullptr;
    if (const CUresult code = check_stream(machine, handle, stream); code != CUDA_SUCCESS)
        return code;
    if (out == nullptr || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    Device& device = *stream->context->device;
    default_pool(machine, device);
    Pool* const pool = pool_handle == nullptr ? machine.pools[device.current_pool].get()
                                              : find(machine.pools, pool_handle);
    if (pool == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    Allocation* const allocation =
        allocate(machine, *pool->device, &owner(*stream->context), bytes, MemoryKind::Device);
    if (allocation == nullptr)
        return CUDA_ERROR_OUT_OF_MEMORY;
    allocation->pool = pool->handle;
    pool->used += bytes;
    pool->used_high = std::max(pool->used_high, pool->used);
    *out = allocation->address;
    return CUDA_SUCCESS;
}

} // namespace

bool charge_memory(Device& device, uint64_t bytes) {
    if (bytes > device.profile.memory_bytes - device.memory_used)
        return false;
    device.memory_used += bytes;
    return true;
}

std::map<uint64_t, Allocation>::iterator
drop_allocation(Machine& machine, std::map<uint64_t, Allocation>::iterator allocation) {
    const Allocation& gone = allocation->second;
    if (gone.kind == MemoryKind::Device || gone.kind == MemoryKind::Module ||
        gone.kind == MemoryKind::Managed)
        gone.device->memory_used -= std::min<uint64_t>(gone.device->memory_used, gone.bytes);
    if (const auto pool = machine.pools.find(gone.pool); pool != machine.pools.end())
        pool->second->used -= std::min<uint64_t>(pool->second->used, gone.bytes);
    if (gone.mapped != 0)
        munmap(gone.data, gone.mapped);
    return machine.allocations.erase(allocation);
}

Allocation* find_allocation(Machine& machine, uint64_t address) {
    auto next = machine.allocations.upper_bound(address);
    if (next == machine.allocations.begin())
        return nullptr;
    Allocation& allocation = std::prev(next)->second;
    return address - allocation.address < allocation.bytes ? &allocation : nullptr;
}

std::byte* device_bytes(Machine& machine, uint64_t address, std::size_t bytes) {
    Allocation* const allocation = find_allocation(machine, address);
    if (allocation == nullptr || bytes > allocation->bytes - (address - allocation->address))
        return nullptr;
    return allocation->data + (address - allocation->address);
}

uint64_t allocate_global(Machine& machine, Context& context, std::size_t bytes) {
    Allocation* const allocation = allocate(machine, *context.device, &owner(context),
                                            std::max<std::size_t>(bytes, 1), MemoryKind::Module);
    return allocation == nullptr ? 0 : allocation->address;
}

Machine::~Machine() {
    for (const auto& [address, allocation] : allocations)
        if (allocation.mapped != 0)
            munmap(allocation.data, allocation.mapped);
}

GCX_SIM_API(cuMemGetInfo_v2, std::size_t* free_bytes, std::size_t* total_bytes) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (free_bytes == nullptr || total_bytes == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Context* context = nullptr;
        if (const CUresult code = current_context(machine, context); code != CUDA_SUCCESS)
            return code;
        const Device& device = *context->device;
        *total_bytes = device.profile.memory_bytes;
        *free_bytes = device.profile.memory_bytes - device.memory_used;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuMemAlloc_v2, CUdeviceptr* out, std::size_t bytes) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        if (const CUresult code = refuse_during_capture(machine); code != CUDA_SUCCESS)
            return code;
        Allocation* allocation = nullptr;
        const CUresult code = allocate_current(machine, bytes, MemoryKind::Device, allocation);
        if (code == CUDA_SUCCESS)
            *out = allocation->address;
        return code;
    });
}

GCX_SIM_API(cuMemAllocPitch_v2, CUdeviceptr* out, std::size_t* pitch, std::size_t width,
            std::size_t height, unsigned element) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr || pitch == nullptr || (element != 4 && element != 8 && element != 16))
            return CUDA_ERROR_INVALID_VALUE;
        const std::size_t row = (width + kAlignment - 1) / kAlignment * kAlignment;
        Allocation* allocation = nullptr;
        const CUresult code =
            allocate_current(machine, row * height, MemoryKind::Device, allocation);
        if (code == CUDA_SUCCESS) {
            *out = allocation->address;
            *pitch = row;
        }
        return code;
    });
}

GCX_SIM_API(cuMemAllocManaged, CUdeviceptr* out, std::size_t bytes, unsigned flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
            return CUDA_ERROR_INVALID_VALUE;
        Allocation* allocation = nullptr;
        const CUresult code = allocate_current(machine, bytes, MemoryKind::Managed, allocation);
        if (code == CUDA_SUCCESS)
            *out = allocation->address;
        return code;
    });
}

GCX_SIM_API(cuMemFree_v2, CUdeviceptr address) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (const CUresult code = refuse_during_capture(machine); code != CUDA_SUCCESS)
            return code;
        if (address == 0)
            return CUDA_SUCCESS;
        const Allocation* const allocation = find_allocation(machine, address);
        if (allocation != nullptr && allocation->device != nullptr)
            wait_until(machine, allocation->device->busy_until); // cuMemFree synchronizes
        return free_memory(machine, address, false);
    });
}

GCX_SIM_API(cuMemAllocHost_v2, void** out, std::size_t bytes) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return allocate_host(machine, out, bytes, 0);
    });
}

GCX_SIM_API(cuMemHostAlloc, void** out, std::size_t bytes, unsigned flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return allocate_host(machine, out, bytes, flags);
    });
}

GCX_SIM_API(cuMemFreeHost, void* pointer) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return free_memory(machine, to_handle(pointer), true);
    });
}

GCX_SIM_API(cuMemHostRegister_v2, void* pointer, std::size_t bytes, unsigned flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Context* context = nullptr;
        if (const CUresult code = current_context(machine, context); code != CUDA_SUCCESS)
            return code;
        if (pointer == nullptr || bytes == 0)
            return CUDA_ERROR_INVALID_VALUE;
        if (find_allocation(machine, to_handle(pointer)) != nullptr)
            return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        Allocation allocation;
        allocation.address = to_handle(pointer);
        allocation.bytes = bytes;
        allocation.data = static_cast<std::byte*>(pointer);
        allocation.kind = MemoryKind::Registered;
        allocation.device = context->device;
        allocation.context = &owner(*context);
        allocation.flags = flags;
        allocation.id = machine.next_allocation++;
        machine.allocations[allocation.address] = allocation;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuMemHostUnregister, void* pointer) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const auto found = machine.allocations.find(to_handle(pointer));
        if (found == machine.allocations.end() || found->second.kind != MemoryKind::Registered)
            return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
        drop_allocation(machine, found);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuMemHostGetDevicePointer_v2, CUdeviceptr* out, void* pointer, unsigned flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Allocation* const allocation = find_allocation(machine, to_handle(pointer));
        if (out == nullptr || flags != 0 || allocation == nullptr ||
            (allocation->kind != MemoryKind::Host && allocation->kind != MemoryKind::Registered))
            return CUDA_ERROR_INVALID_VALUE;
        *out = to_handle(pointer);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuMemHostGetFlags, unsigned* out, void* pointer) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Allocation* const allocation = find_allocation(machine, to_handle(pointer));
        if (out == nullptr || allocation == nullptr || allocation->kind != MemoryKind::Host)
            return CUDA_ERROR_INVALID_VALUE;
        *out = allocation->flags;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuMemGetAddressRange_v2, CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Allocation* const allocation = find_allocation(machine, address);
        if (allocation == nullptr)
            return CUDA_ERROR_NOT_FOUND;
        if (base != nullptr)
            *base = allocation->address;
        if (bytes != nullptr)
            *bytes = allocation->bytes;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuMemAllocAsync, CUdeviceptr* out, std::size_t bytes, CUstream stream) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return allocate_async(machine, out, bytes, stream, nullptr);
    });
}

GCX_SIM_API(cuMemAllocFromPoolAsync, CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool,
            CUstream stream) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (pool == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        return allocate_async(machine, out, bytes, stream, pool);
    });
}

GCX_SIM_API(cuMemFreeAsync, CUdeviceptr address, CUstream handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Stream* stream = nullptr;
        if (const CUresult code = check_stream(machine, handle, stream); code != CUDA_SUCCESS)
            return code;
        return free_memory(machine, address, false);
    });
}

GCX_SIM_API(cuDeviceGetDefaultMemPool, CUmemoryPool* out, CUdevice ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Device* const device = machine.device(ordinal);
        if (device == nullptr)
            return CUDA_ERROR_INVALID_DEVICE;
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        *out = to_pointer<CUmemoryPool>(default_pool(machine, *device).handle);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuDeviceGetMemPool, CUmemoryPool* out, CUdevice ordinal) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Device* const device = machine.device(ordinal);
        if (device == nullptr)
            return CUDA_ERROR_INVALID_DEVICE;
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        default_pool(machine, *device);
        *out = to_pointer<CUmemoryPool>(device->current_pool);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuDeviceSetMemPool, CUdevice ordinal, CUmemoryPool handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Device* const device = machine.device(ordinal);
        const Pool* const pool = find(machine.pools, handle);
        if (device == nullptr)
            return CUDA_ERROR_INVALID_DEVICE;
        if (pool == nullptr || pool->device != device)
            return CUDA_ERROR_INVALID_VALUE;
        default_pool(machine, *device);
        device->current_pool = pool->handle;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuMemPoolCreate, CUmemoryPool* out, const CUmemPoolProps* properties) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr || properties == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Device* const device = machine.device(properties->location.id);
        if (device == nullptr || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        auto pool = std::make_unique<Pool>();
        pool->handle = new_handle();
        pool->device = device;
        *out = to_pointer<CUmemoryPool>(pool->handle);
        machine.pools[pool->handle] = std::move(pool);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuMemPoolDestroy, CUmemoryPool handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Pool* const pool = find(machine.pools, handle);
        if (pool == nullptr || pool->device->default_pool == pool->handle)
            return CUDA_ERROR_INVALID_VALUE;
        if (pool->device->current_pool == pool->handle)
            pool->device->current_pool = pool->device->default_pool;
        machine.pools.erase(to_handle(handle));
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuMemPoolTrimTo, CUmemoryPool handle, std::size_t) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return find(machine.pools, handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
}

GCX_SIM_API(cuMemPoolGetAttribute, CUmemoryPool handle, CUmemPool_attribute attribute, void* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Pool* const pool = find(machine.pools, handle);
        if (pool == nullptr || out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: {
            const auto found = pool->attributes.find(attribute);
            const int value = found == pool->attributes.end() ? 1 : static_cast<int>(found->second);
            std::memcpy(out, &value, sizeof value);
            return CUDA_SUCCESS;
        }
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: {
            const auto found = pool->attributes.find(attribute);
            const uint64_t value = found == pool->attributes.end() ? 0 : found->second;
            std::memcpy(out, &value, sizeof value);
            return CUDA_SUCCESS;
        }
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
            std::memcpy(out, &pool->used, sizeof pool->used);
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            std::memcpy(out, &pool->used_high, sizeof pool->used_high);
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
        }
    });
}

GCX_SIM_API(cuMemPoolSetAttribute, CUmemoryPool handle, CUmemPool_attribute attribute,
            void* value) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Pool* const pool = find(machine.pools, handle);
        if (pool == nullptr || value == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
            std::memcpy(&pool->attributes[attribute], value, sizeof(uint64_t));
        } else {
            int number = 0;
            std::memcpy(&number, value, sizeof number);
            pool->attributes[attribute] = static_cast<uint64_t>(number);
        }
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuMemPoolSetAccess, CUmemoryPool handle, const CUmemAccessDesc*, std::size_t) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return find(machine.pools, handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
}

} // namespace gcx::sim
