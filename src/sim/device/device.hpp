// Devices, their memory, and work that copies and fills it.
#pragma once

#include "sim/machine.hpp"

namespace gcx::sim {

// Fails with CUDA_ERROR_INVALID_DEVICE.
Device& device_of(Machine& machine, CUdevice ordinal);

// Return the largest set-aside of the L2 cache and the largest access policy window. An A100 with
// 40 MB reports these values according to its users; assumed for other GPUs.
std::size_t max_persisting_l2(const Device& device);
std::size_t max_access_window(const Device& device);

// Count memory that has no address. charge_memory fails with CUDA_ERROR_OUT_OF_MEMORY.
void charge_memory(Device& device, uint64_t bytes);
void return_memory(Device& device, uint64_t bytes);

// Returns the memory to the system that cuMemFreeAsync freed and no pool keeps. Waits do so.
void trim_pools(Machine& machine);

using Allocations = std::map<uint64_t, Allocation>;
Allocation& allocate(Machine& machine, Device& device, Context& context, std::size_t bytes,
                     MemoryKind kind);
uint64_t allocate_global(Machine& machine, Context& context, std::size_t bytes);
void free_memory(Machine& machine, uint64_t address, bool host);
Allocations::iterator drop_allocation(Machine& machine, Allocations::iterator allocation);

// Returns the allocation that contains the address, or null.
Allocation* find_allocation(Machine& machine, uint64_t address);
// Returns the location of the bytes in this process, or null if no allocation contains all of them.
std::byte* device_bytes(Machine& machine, uint64_t address, std::size_t bytes);

// Create the work of graph nodes.
Work memset_work(Machine& machine, const CUDA_MEMSET_NODE_PARAMS& parameters);
Work memcpy_work(Machine& machine, const CUDA_MEMCPY3D& parameters);

} // namespace gcx::sim
