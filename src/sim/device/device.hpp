// What the room of devices offers: devices, their memory, and work that copies and fills it.
#pragma once

#include "sim/machine.hpp"

namespace gcx::sim {

Device& device_of(Machine& machine, CUdevice ordinal); // CUDA_ERROR_INVALID_DEVICE: there is none

// Bytes of the L2 cache that can be set aside, and of a window. An A100 tells these of its 40 MB,
// as its users report; assumed for the others.
std::size_t max_persisting_l2(const Device& device);
std::size_t max_access_window(const Device& device);

// What is taken of a device's memory without an address.
void charge_memory(Device& device, uint64_t bytes); // CUDA_ERROR_OUT_OF_MEMORY: too much
void return_memory(Device& device, uint64_t bytes);

using Allocations = std::map<uint64_t, Allocation>;
Allocation& allocate(Machine& machine, Device& device, Context& context, std::size_t bytes,
                     MemoryKind kind);
uint64_t allocate_global(Machine& machine, Context& context, std::size_t bytes);
void free_memory(Machine& machine, uint64_t address, bool host);
Allocations::iterator drop_allocation(Machine& machine, Allocations::iterator allocation);

// What is known of the memory there; null: nothing.
Allocation* find_allocation(Machine& machine, uint64_t address);
// Where the simulation keeps these bytes; null: not all of them are of one allocation.
std::byte* device_bytes(Machine& machine, uint64_t address, std::size_t bytes);

// Work of graph nodes.
Work memset_work(Machine& machine, const CUDA_MEMSET_NODE_PARAMS& parameters);
Work memcpy_work(Machine& machine, const CUDA_MEMCPY3D& parameters);

} // namespace gcx::sim
