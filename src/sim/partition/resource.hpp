// A CUdevResource of SMs. As in the real driver, what the resource really is lies in the bytes
// between the tag and the union, under a checksum, and the union only tells of it.
#pragma once

#include "sim/machine.hpp"

namespace gcx::sim {

enum class ResourceOrigin : uint32_t { Device, Context, Group, Remainder };

struct SmResource {
    ResourceOrigin origin = ResourceOrigin::Device;
    FamilyKind family = kCoscheduled; // of the split that gave it
    unsigned device = 0;
    uint64_t split = 0;      // which split call gave it; 0: none
    Handle context = 0;      // of origin Context
    bool structured = false; // came from cuDevSmResourceSplit
    SmSet sms;
    unsigned reported = 0;
    unsigned min_partition_size = 0;
    unsigned alignment = 0;
    unsigned flags = 0;
    unsigned locality_domain = 0;
};

// Refuses what is well formed but cannot be had: CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION.
void check_configuration(bool holds);

// The SMs of the resource that can hold one cluster together.
Fragments resource_fragments(const Machine& machine, const SmResource& resource);

void write_resource(const Machine& machine, const SmResource& resource, CUdevResource& out);
void write_invalid_resource(CUdevResource& out);

// CUDA_ERROR_INVALID_RESOURCE_TYPE for what is none of SMs,
// CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION for one that was edited, forged or made by an earlier
// machine.
SmResource read_resource(const Machine& machine, const CUdevResource& in);

SmResource device_resource(const Device& device);
SmResource context_resource(const Context& context);

} // namespace gcx::sim
