// cuDevResourceGenerateDesc, and the resources of the device.
#include "sim/edge/entry.hpp"
#include "sim/partition/resource.hpp"

namespace gcx::sim {
namespace {

// What the driver checks from 13.1 on, by the header's text.
bool may_go_together(const SmResource& one, const SmResource& other) {
    return one.split != 0 && one.split == other.split && one.alignment == other.alignment &&
           one.locality_domain == other.locality_domain;
}

CUresult add_sms(Machine& machine, const SmResource& resource, const SmResource* first,
                 Descriptor& descriptor) {
    Device& device = *machine.devices[resource.device];
    if (descriptor.device != nullptr && descriptor.device != &device)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    if (machine.has(kChecksDescriptors) && first != nullptr &&
        (!may_go_together(*first, resource) || (descriptor.sms & resource.sms).any()))
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    descriptor.device = &device;
    descriptor.sms |= resource.sms;
    descriptor.reported_sms += resource.reported;
    for (const SmSet& fragment : resource_fragments(machine, resource))
        descriptor.fragments.push_back(fragment);
    // Recorded: the context's resource has the device's minimum and alignment, whatever it is made
    // of. From 13.1 on the header has them be the resource's own.
    const bool own = machine.has(kHasStructuredSplit);
    descriptor.min_partition_size =
        own ? resource.min_partition_size : device.profile.min_partition_size;
    descriptor.alignment = own ? resource.alignment : device.profile.coscheduled_alignment;
    descriptor.flags = resource.flags;
    descriptor.locality_domain = resource.locality_domain;
    return CUDA_SUCCESS;
}

CUresult add_workqueue(Machine& machine, const CUdevResource& resource, Descriptor& descriptor) {
    if (!machine.has(kHasWorkqueues))
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (descriptor.has_workqueue)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    descriptor.has_workqueue = true;
    if (resource.type == cu::kResourceWorkqueue) {
        descriptor.workqueue.id = cu::get_fields<Handle>(resource);
        return descriptor.workqueue.id == 0 ? CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
                                            : CUDA_SUCCESS;
    }
    const auto fields = cu::get_fields<cu::WorkqueueFields>(resource);
    Device* const device = machine.device(fields.device);
    if (device == nullptr || (descriptor.device != nullptr && descriptor.device != device))
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    if (fields.concurrency_limit == 0 || fields.scope > cu::kWorkqueueScopeBalanced)
        return CUDA_ERROR_INVALID_VALUE;
    descriptor.device = device;
    descriptor.workqueue.concurrency_limit = fields.concurrency_limit;
    descriptor.workqueue.scope = fields.scope;
    return CUDA_SUCCESS;
}

CUresult read_all(Machine& machine, const CUdevResource* resources, unsigned count,
                  Descriptor& descriptor) {
    SmResource first;
    bool has_sms = false;
    for (unsigned i = 0; i < count; i++) {
        const CUdevResourceType type = resources[i].type;
        if (type == cu::kResourceWorkqueueConfig || type == cu::kResourceWorkqueue) {
            if (const CUresult code = add_workqueue(machine, resources[i], descriptor);
                code != CUDA_SUCCESS)
                return code;
            continue;
        }
        SmResource resource;
        if (const CUresult code = read_resource(machine, resources[i], resource);
            code != CUDA_SUCCESS)
            return code;
        if (const CUresult code =
                add_sms(machine, resource, has_sms ? &first : nullptr, descriptor);
            code != CUDA_SUCCESS)
            return code;
        if (!has_sms)
            first = resource;
        has_sms = true;
    }
    return CUDA_SUCCESS;
}

} // namespace
GCX_SIM_API(cuDevResourceGenerateDesc, CUdevResourceDesc* out, CUdevResource* resources,
            unsigned count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr || resources == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        if (count == 0)
            crash("cuDevResourceGenerateDesc with nbResources 0");
        auto descriptor = std::make_unique<Descriptor>();
        if (const CUresult code = read_all(machine, resources, count, *descriptor);
            code != CUDA_SUCCESS)
            return code;
        const Handle handle = new_handle();
        machine.descriptors[handle] = std::move(descriptor);
        *out = to_pointer<CUdevResourceDesc>(handle);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuDeviceGetDevResource, CUdevice ordinal, CUdevResource* resource,
            CUdevResourceType type) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Device* const device = machine.device(ordinal);
        if (device == nullptr)
            return CUDA_ERROR_INVALID_DEVICE;
        return query_resource(machine, *device, nullptr, resource, type);
    });
}

} // namespace gcx::sim
