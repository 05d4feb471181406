// Device and host memory: allocations, pools, and queries about pointers. Device memory is host
// memory at addresses that the program has not mapped.
#include "sim/device/device.hpp"
#include "sim/entry/entry.hpp"
#include "sim/graph/capture.hpp"
#include "sim/work/work.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace gcx::sim {

namespace {

constexpr uint64_t kFirstAddress = 0x7'0000'0000;
constexpr std::size_t kAlignment = 512;

uint64_t take_addresses(std::size_t bytes) {
    static uint64_t next = kFirstAddress; // never reused, so that stale pointers are recognized
    const uint64_t address = next;
    next += (bytes + kAlignment) / kAlignment * kAlignment;
    return address;
}

bool is_on_device(MemoryKind kind) {
    return kind != MemoryKind::Host && kind != MemoryKind::Registered;
}

// The size of an array's element in bytes; 0 if the format is not simulated.
std::size_t element_bytes(const CUDA_ARRAY_DESCRIPTOR& shape) {
    switch (shape.Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return shape.NumChannels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2 * std::size_t{shape.NumChannels};
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4 * std::size_t{shape.NumChannels};
    default:
        return 0;
    }
}

Allocation& allocate_current(Machine& machine, std::size_t bytes, MemoryKind kind) {
    Context& context = current_context(machine);
    require(bytes != 0);
    return allocate(machine, *context.device, context, bytes, kind);
}

void allocate_host(Machine& machine, void** out, std::size_t bytes, unsigned flags) {
    require(out != nullptr && flags <= 7);
    refuse_during_capture(machine); // recorded
    *out = allocate_current(machine, bytes, MemoryKind::Host).data;
}

void register_host(Machine& machine, void* pointer, std::size_t bytes) {
    Context& context = current_context(machine);
    require(pointer != nullptr && bytes != 0);
    require(find_allocation(machine, to_handle(pointer)) == nullptr,
            CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    Allocation allocation;
    allocation.address = to_handle(pointer);
    allocation.bytes = bytes;
    allocation.data = static_cast<std::byte*>(pointer);
    allocation.kind = MemoryKind::Registered;
    allocation.device = context.device;
    allocation.context = &context.owner();
    allocation.id = machine.next_allocation++;
    machine.allocations[allocation.address] = allocation;
}

// Recorded: cuMemFree, cuMemFreeHost and cuMemHostUnregister wait for all work of the memory's
// context, a primary one's with that of its green contexts, but not for contexts of cuCtxCreate.
void wait_for_users(Machine& machine, uint64_t address) {
    const Allocation* const allocation = find_allocation(machine, address);
    if (allocation != nullptr && allocation->context != nullptr)
        wait_until(machine, allocation->context->busy);
}

} // namespace

void charge_memory(Device& device, uint64_t bytes) {
    require(bytes <= device.profile.memory_bytes - device.memory_used, CUDA_ERROR_OUT_OF_MEMORY);
    device.memory_used += bytes;
}

void return_memory(Device& device, uint64_t bytes) {
    device.memory_used -= std::min(device.memory_used, bytes);
}

Allocation& allocate(Machine& machine, Device& device, Context& context, std::size_t bytes,
                     MemoryKind kind) {
    if (is_on_device(kind) && bytes > device.profile.memory_bytes - device.memory_used)
        trim_pools(machine);
    if (is_on_device(kind))
        charge_memory(device, bytes);
    const std::size_t mapped = (bytes + 4095) / 4096 * 4096;
    void* const data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
        if (is_on_device(kind))
            return_memory(device, bytes);
        refuse(CUDA_ERROR_OUT_OF_MEMORY);
    }
    Allocation allocation;
    allocation.bytes = bytes;
    allocation.data = static_cast<std::byte*>(data);
    allocation.mapped = mapped;
    allocation.kind = kind;
    allocation.device = &device;
    allocation.context = &context.owner();
    allocation.id = machine.next_allocation++;
    const bool own_addresses = is_on_device(kind) && kind != MemoryKind::Managed;
    allocation.address = own_addresses ? take_addresses(bytes) : to_handle(data);
    return machine.allocations[allocation.address] = allocation;
}

uint64_t allocate_global(Machine& machine, Context& context, std::size_t bytes) {
    return allocate(machine, *context.device, context, std::max<std::size_t>(bytes, 1),
                    MemoryKind::Module)
        .address;
}

void free_memory(Machine& machine, uint64_t address, bool host) {
    const auto found = machine.allocations.find(address);
    require(found != machine.allocations.end());
    const MemoryKind kind = found->second.kind;
    require(kind != MemoryKind::Registered && kind != MemoryKind::Module &&
            kind != MemoryKind::Array && (kind == MemoryKind::Host) == host &&
            !found->second.freed);
    drop_allocation(machine, found);
}

Allocations::iterator drop_allocation(Machine& machine, Allocations::iterator allocation) {
    const Allocation& gone = allocation->second;
    if (is_on_device(gone.kind))
        return_memory(*gone.device, gone.bytes);
    if (const auto pool = machine.pools.find(gone.pool); pool != machine.pools.end() && !gone.freed)
        pool->second->used -= std::min<uint64_t>(pool->second->used, gone.bytes);
    if (gone.freed)
        std::erase(machine.freed, gone.address);
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

GCX_SIM_API(cuMemGetInfo_v2, std::size_t* free_bytes, std::size_t* total_bytes) {
    GCX_SIM_BODY({
        require(free_bytes != nullptr && total_bytes != nullptr);
        const Device& device = *current_context(machine).device;
        *total_bytes = device.profile.memory_bytes;
        *free_bytes = device.profile.memory_bytes - device.memory_used;
    });
}

GCX_SIM_API(cuMemAlloc_v2, CUdeviceptr* out, std::size_t bytes) {
    GCX_SIM_BODY({
        require(out != nullptr);
        refuse_during_capture(machine);
        *out = allocate_current(machine, bytes, MemoryKind::Device).address;
    });
}

GCX_SIM_API(cuMemAllocPitch_v2, CUdeviceptr* out, std::size_t* pitch, std::size_t width,
            std::size_t height, unsigned element) {
    GCX_SIM_BODY({
        require(out != nullptr && pitch != nullptr &&
                (element == 4 || element == 8 || element == 16));
        const std::size_t row = (width + kAlignment - 1) / kAlignment * kAlignment;
        refuse_during_capture(machine); // assumed: like cuMemAlloc
        *out = allocate_current(machine, row * height, MemoryKind::Device).address;
        *pitch = row;
    });
}

GCX_SIM_API(cuMemAllocManaged, CUdeviceptr* out, std::size_t bytes, unsigned flags) {
    GCX_SIM_BODY({
        require(out != nullptr && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
        refuse_during_capture(machine); // assumed: like cuMemAlloc
        *out = allocate_current(machine, bytes, MemoryKind::Managed).address;
    });
}

GCX_SIM_API(cuMemFree_v2, CUdeviceptr address) {
    GCX_SIM_BODY({
        refuse_during_capture(machine);
        if (address == 0)
            return CUDA_SUCCESS;
        refuse_dead_context(machine); // recorded
        wait_for_users(machine, address);
        free_memory(machine, address, false);
    });
}

// Arrays are rows of bytes, and their handles addresses.
GCX_SIM_API(cuArrayCreate_v2, CUarray* out, const CUDA_ARRAY_DESCRIPTOR* shape) {
    GCX_SIM_BODY({
        require(out != nullptr && shape != nullptr && element_bytes(*shape) != 0);
        refuse_during_capture(machine); // assumed: like cuMemAlloc
        const std::size_t rows = std::max<std::size_t>(shape->Height, 1);
        const std::size_t bytes = element_bytes(*shape) * shape->Width * rows;
        give(out, allocate_current(machine, bytes, MemoryKind::Array).address);
    });
}

GCX_SIM_API(cuArrayDestroy, CUarray array) {
    GCX_SIM_BODY({
        refuse_during_capture(machine);            // assumed: like cuMemFree
        wait_for_users(machine, to_handle(array)); // recorded
        const auto found = machine.allocations.find(to_handle(array));
        require(found != machine.allocations.end() && found->second.kind == MemoryKind::Array,
                CUDA_ERROR_INVALID_HANDLE);
        drop_allocation(machine, found);
    });
}

GCX_SIM_API(cuMemAllocHost_v2, void** out, std::size_t bytes) {
    GCX_SIM_BODY(allocate_host(machine, out, bytes, 0));
}

GCX_SIM_API(cuMemHostAlloc, void** out, std::size_t bytes, unsigned flags) {
    GCX_SIM_BODY(allocate_host(machine, out, bytes, flags));
}

GCX_SIM_API(cuMemFreeHost, void* pointer) {
    GCX_SIM_BODY({
        refuse_during_capture(machine); // assumed: like cuMemFree
        wait_for_users(machine, to_handle(pointer));
        free_memory(machine, to_handle(pointer), true);
    });
}

GCX_SIM_API(cuMemHostRegister_v2, void* pointer, std::size_t bytes, unsigned) {
    GCX_SIM_BODY(register_host(machine, pointer, bytes));
}

GCX_SIM_API(cuMemHostUnregister, void* pointer) {
    GCX_SIM_BODY({
        wait_for_users(machine, to_handle(pointer));
        const auto found = machine.allocations.find(to_handle(pointer));
        require(found != machine.allocations.end() && found->second.kind == MemoryKind::Registered,
                CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        drop_allocation(machine, found);
    });
}

// Pools and stream-ordered allocation.

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
    give(out, default_pool(machine, device_of(machine, ordinal)).handle);
}

// In a capture, an allocation becomes a node, and the graph owns the memory.
void capture_allocation(Machine& machine, Stream& stream, const Pool& pool, std::size_t bytes,
                        CUdeviceptr* out) {
    CUDA_MEM_ALLOC_NODE_PARAMS p{};
    p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p.poolProps.location.id = pool.device->ordinal;
    p.bytesize = bytes;
    p.dptr = allocate(machine, *pool.device, *stream.context, bytes, MemoryKind::Device).address;
    Work work(Work::Kind::MemoryAlloc);
    work.owned_address = p.dptr;
    work.parameters = to_bytes(p);
    *out = p.dptr;
    submit(machine, stream, std::move(work));
}

// Returns freed memory of the pool that the stream can use again, or null: what was freed in the
// same stream, and what is free by now. As in the driver, the next wait returns the rest.
Allocation* find_reusable(Machine& machine, const Pool& pool, const Stream& stream,
                          std::size_t bytes) {
    for (const uint64_t address : machine.freed) {
        Allocation& freed = machine.allocations.at(address);
        if (freed.pool == pool.handle && freed.bytes == bytes &&
            (freed.freed_in == stream.id || has_passed(machine, freed.free_from)))
            return &freed;
    }
    return nullptr;
}

Allocation& reuse(Machine& machine, Allocation& freed) {
    std::erase(machine.freed, freed.address);
    freed.freed = false;
    freed.id = machine.next_allocation++;
    return freed;
}

// The header: the memory is free when the stream comes to it.
void free_async(Machine& machine, Stream& stream, CUdeviceptr address) {
    const auto found = machine.allocations.find(address);
    require(found != machine.allocations.end());
    Allocation& memory = found->second;
    require(memory.kind == MemoryKind::Device || memory.kind == MemoryKind::Managed);
    require(!memory.freed);
    memory.free_from = start_time(machine, stream);
    note_action(stream, memory.free_from);
    memory.freed = true;
    memory.freed_in = stream.id;
    machine.freed.push_back(address);
    if (const auto pool = machine.pools.find(memory.pool); pool != machine.pools.end())
        pool->second->used -= std::min<uint64_t>(pool->second->used, memory.bytes);
}

// Recorded: neither an action in NULL that separates others, nor one that waits for NULL.
void allocate_async(Machine& machine, CUdeviceptr* out, std::size_t bytes, CUstream handle,
                    CUmemoryPool pool_handle) {
    Stream& stream = stream_of(machine, handle);
    require(out != nullptr && bytes != 0);
    refuse_implicit_capture(machine, stream);
    Pool& pool = pool_handle == nullptr ? default_pool(machine, *stream.context->device)
                                        : pool_of(machine, pool_handle);
    if (stream.capture != nullptr)
        return capture_allocation(machine, stream, pool, bytes, out);
    refuse_during_capture(machine); // recorded in NULL
    Allocation* const freed = find_reusable(machine, pool, stream, bytes);
    Allocation& allocation = freed != nullptr ? reuse(machine, *freed)
                                              : allocate(machine, *pool.device, *stream.context,
                                                         bytes, MemoryKind::Device);
    allocation.pool = pool.handle;
    pool.used += bytes;
    pool.used_high = std::max(pool.used_high, pool.used);
    *out = allocation.address;
}

// Returns true, so that callers can return the result of a write.
template <class Value>
bool write(void* out, Value value) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): copies the pointer if Value is one
    std::memcpy(out, &value, sizeof value);
    return true;
}

uint64_t attribute_or(const Pool& pool, int attribute, uint64_t otherwise) {
    const auto found = pool.attributes.find(attribute);
    return found == pool.attributes.end() ? otherwise : found->second;
}

bool write_pool_attribute(const Pool& pool, CUmemPool_attribute attribute, void* out) {
    require(out != nullptr);
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        return write(out, static_cast<int>(attribute_or(pool, attribute, 1)));
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return write(out, attribute_or(pool, attribute, 0));
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return write(out, pool.used);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return write(out, pool.used_high);
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

// The header: a pool keeps no more than its threshold.
void trim_pools(Machine& machine) {
    std::map<Handle, uint64_t> kept;
    for (const uint64_t address : std::vector<uint64_t>(machine.freed)) {
        const auto memory = machine.allocations.find(address);
        if (!has_passed(machine, memory->second.free_from))
            continue;
        const auto pool = machine.pools.find(memory->second.pool);
        const uint64_t threshold =
            pool == machine.pools.end()
                ? 0
                : attribute_or(*pool->second, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0);
        uint64_t& bytes = kept[memory->second.pool];
        if (memory->second.bytes <= threshold - std::min(threshold, bytes))
            bytes += memory->second.bytes;
        else
            drop_allocation(machine, memory);
    }
}

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

namespace {

// Recorded: an action of the stream. It has no effect, since all memory is the process's. Assumed: a
// capture can't contain it.
void prefetch(Machine& machine, CUdeviceptr address, std::size_t bytes, CUstream handle) {
    Stream& stream = stream_of(machine, handle);
    const Allocation* const memory = find_allocation(machine, address);
    require(memory != nullptr && memory->kind == MemoryKind::Managed && bytes != 0 &&
            device_bytes(machine, address, bytes) != nullptr);
    refuse_implicit_capture(machine, stream);
    refuse_capturing(stream);
    note_action(stream, start_time(machine, stream));
}

} // namespace

GCX_SIM_STREAM_API(cuMemPrefetchAsync, _ptsz,
                   (CUdeviceptr address, std::size_t bytes, [[maybe_unused]] CUdevice to,
                    CUstream stream),
                   (address, bytes, to, stream)) {
    GCX_SIM_BODY(prefetch(machine, address, bytes, stream));
}

GCX_SIM_STREAM_API(cuMemPrefetchAsync_v2, _ptsz,
                   (CUdeviceptr address, std::size_t bytes, [[maybe_unused]] CUmemLocation to,
                    unsigned flags, CUstream stream),
                   (address, bytes, to, flags, stream)) {
    GCX_SIM_BODY({
        require(flags == 0);
        prefetch(machine, address, bytes, stream);
    });
}

GCX_SIM_STREAM_API(cuMemFreeAsync, _ptsz, (CUdeviceptr address, CUstream handle),
                   (address, handle)) {
    GCX_SIM_BODY({
        Stream& stream = stream_of(machine, handle);
        refuse_implicit_capture(machine, stream);
        if (stream.capture == nullptr) {
            free_async(machine, stream, address);
        } else {
            Work work(Work::Kind::MemoryFree);
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

GCX_SIM_API(cuMemPoolTrimTo, CUmemoryPool handle, [[maybe_unused]] std::size_t kept) {
    GCX_SIM_BODY({
        pool_of(machine, handle);
        trim_pools(machine); // recorded: it waits for no work
    });
}

GCX_SIM_API(cuMemPoolGetAttribute, CUmemoryPool handle, CUmemPool_attribute attribute, void* out) {
    GCX_SIM_BODY(write_pool_attribute(pool_of(machine, handle), attribute, out));
}

GCX_SIM_API(cuMemPoolSetAttribute, CUmemoryPool handle, CUmemPool_attribute attribute,
            void* value) {
    GCX_SIM_BODY(set_attribute(pool_of(machine, handle), attribute, value));
}

GCX_SIM_API(cuMemPoolSetAccess, CUmemoryPool handle, const CUmemAccessDesc*, std::size_t) {
    GCX_SIM_BODY(pool_of(machine, handle));
}

// Pointers.

namespace {

// Recorded: memory of a pool has no context.
Handle context_of_memory(const Allocation& memory) {
    return memory.context == nullptr || memory.pool != 0 ? Handle{0} : memory.context->handle;
}

// Returns false if the memory is unknown or has no such attribute.
bool write_attribute(Machine& machine, void* out, CUpointer_attribute attribute,
                     CUdeviceptr address) {
    const Allocation* const found = find_allocation(machine, address);
    if (found == nullptr)
        return false;
    const bool host = found->kind == MemoryKind::Host || found->kind == MemoryKind::Registered;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return write(out, to_pointer<CUcontext>(context_of_memory(*found)));
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

// Copies are synchronous to other memory anyway, and no device writes from outside.
GCX_SIM_API(cuPointerSetAttribute, const void* value, CUpointer_attribute attribute,
            CUdeviceptr address) {
    GCX_SIM_BODY(require(value != nullptr && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS &&
                         find_allocation(machine, address) != nullptr));
}

GCX_SIM_API(cuFlushGPUDirectRDMAWrites, CUflushGPUDirectRDMAWritesTarget,
            CUflushGPUDirectRDMAWritesScope) {
    GCX_SIM_BODY(current_context(machine));
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
