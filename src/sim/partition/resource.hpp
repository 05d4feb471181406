// SM resources. As in the real driver, the content of a CUdevResource is stored with a checksum in
// the bytes between the tag and the union; the union only reports it.
#pragma once

#include "sim/machine.hpp"

namespace gcx::sim {

enum class ResourceOrigin : uint32_t { Device, Context, Group, Remainder };

struct SmResource {
    ResourceOrigin origin = ResourceOrigin::Device;
    FamilyKind family = kCoscheduled; // of the split that created it
    unsigned device = 0;
    uint64_t split = 0;      // number of the split call that created it; 0: none
    Handle context = 0;      // if origin is Context
    bool structured = false; // created by cuDevSmResourceSplit
    SmSet sms;
    unsigned reported = 0;
    unsigned min_partition_size = 0;
    unsigned alignment = 0;
    unsigned flags = 0;
    unsigned locality_domain = 0;
};

// Fails with CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION: well formed, but not possible.
void check_configuration(bool holds);

// Returns the sets of SMs of the resource that can each hold one cluster.
Fragments resource_fragments(const Machine& machine, const SmResource& resource);

void write_resource(const Machine& machine, const SmResource& resource, CUdevResource& out);
void write_invalid_resource(CUdevResource& out);

// Fails with
//   CUDA_ERROR_INVALID_RESOURCE_TYPE           if the resource has another type
//   CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION  if it was edited or belongs to an earlier machine
SmResource read_resource(const Machine& machine, const CUdevResource& in);

SmResource device_resource(const Device& device);
SmResource context_resource(const Context& context);

} // namespace gcx::sim
