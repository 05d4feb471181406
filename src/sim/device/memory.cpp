// Allocation. Device memory is host memory under addresses of its own, which no program has mapped.
#include "sim/device/device.hpp"
#include "sim/edge/entry.hpp"
#include "sim/graph/capture.hpp"
#include "sim/work/work.hpp"

#include <sys/mman.h>

#include <algorithm>

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

bool is_on_device(MemoryKind kind) {
    return kind == MemoryKind::Device || kind == MemoryKind::Module || kind == MemoryKind::Managed;
}

Allocation& allocate_current(Machine& machine, std::size_t bytes, MemoryKind kind) {
    Context& context = current_context(machine);
    require(bytes != 0);
    return allocate(machine, *context.device, context, bytes, kind);
}

void allocate_host(Machine& machine, void** out, std::size_t bytes, unsigned flags) {
    require(out != nullptr && flags <= 7);
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
    const bool own_addresses = kind == MemoryKind::Device || kind == MemoryKind::Module;
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
            (kind == MemoryKind::Host) == host);
    drop_allocation(machine, found);
}

Allocations::iterator drop_allocation(Machine& machine, Allocations::iterator allocation) {
    const Allocation& gone = allocation->second;
    if (is_on_device(gone.kind))
        return_memory(*gone.device, gone.bytes);
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
        *out = allocate_current(machine, row * height, MemoryKind::Device).address;
        *pitch = row;
    });
}

GCX_SIM_API(cuMemAllocManaged, CUdeviceptr* out, std::size_t bytes, unsigned flags) {
    GCX_SIM_BODY({
        require(out != nullptr && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
        *out = allocate_current(machine, bytes, MemoryKind::Managed).address;
    });
}

GCX_SIM_API(cuMemFree_v2, CUdeviceptr address) {
    GCX_SIM_BODY({
        refuse_during_capture(machine);
        if (address == 0)
            return CUDA_SUCCESS;
        const Allocation* const allocation = find_allocation(machine, address);
        if (allocation != nullptr && allocation->device != nullptr)
            wait_until(machine, allocation->device->busy_until); // cuMemFree synchronizes
        free_memory(machine, address, false);
    });
}

GCX_SIM_API(cuMemAllocHost_v2, void** out, std::size_t bytes) {
    GCX_SIM_BODY(allocate_host(machine, out, bytes, 0));
}

GCX_SIM_API(cuMemHostAlloc, void** out, std::size_t bytes, unsigned flags) {
    GCX_SIM_BODY(allocate_host(machine, out, bytes, flags));
}

GCX_SIM_API(cuMemFreeHost, void* pointer) {
    GCX_SIM_BODY(free_memory(machine, to_handle(pointer), true));
}

GCX_SIM_API(cuMemHostRegister_v2, void* pointer, std::size_t bytes, unsigned) {
    GCX_SIM_BODY(register_host(machine, pointer, bytes));
}

GCX_SIM_API(cuMemHostUnregister, void* pointer) {
    GCX_SIM_BODY({
        const auto found = machine.allocations.find(to_handle(pointer));
        require(found != machine.allocations.end() && found->second.kind == MemoryKind::Registered,
                CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        drop_allocation(machine, found);
    });
}

} // namespace gcx::sim
