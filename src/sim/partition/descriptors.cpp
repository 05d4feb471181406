// cuDevResourceGenerateDesc, and the resources of devices.
#include "sim/device/device.hpp"
#include "sim/entry/entry.hpp"
#include "sim/partition/partition.hpp"
#include "sim/partition/resource.hpp"

namespace gcx::sim {
namespace {

// Drivers check this from 13.1 on, by the header's text.
bool can_be_combined(const SmResource& one, const SmResource& other) {
    return one.split != 0 && one.split == other.split && one.alignment == other.alignment &&
           one.locality_domain == other.locality_domain;
}

void add_sms(const Machine& machine, const SmResource& resource, const SmResource& first,
             Descriptor& descriptor) {
    Device& device = *machine.devices[resource.device];
    check_configuration(descriptor.device == nullptr || descriptor.device == &device);
    if (machine.has(kChecksDescriptors) && &first != &resource)
        check_configuration(can_be_combined(first, resource) &&
                            (descriptor.sms & resource.sms).none());
    descriptor.device = &device;
    descriptor.sms |= resource.sms;
    descriptor.reported_sms += resource.reported;
    for (const SmSet& fragment : resource_fragments(machine, resource))
        descriptor.fragments.push_back(fragment);
    // Recorded: the context's resource has the device's minimum and alignment in any case.
    // From 13.1 on it has those of the resource, by the header's text.
    const bool own = machine.has(kHasStructuredSplit);
    descriptor.min_partition_size =
        own ? resource.min_partition_size : device.profile.min_partition_size;
    descriptor.alignment = own ? resource.alignment : device.profile.coscheduled_alignment;
    descriptor.flags = resource.flags;
    descriptor.locality_domain = resource.locality_domain;
}

void add_workqueue(Machine& machine, const CUdevResource& resource, Descriptor& descriptor) {
    require(machine.has(kHasWorkqueues), CUDA_ERROR_INVALID_RESOURCE_TYPE);
    check_configuration(!descriptor.has_workqueue);
    descriptor.has_workqueue = true;
    if (resource.type == cu::kResourceWorkqueue) {
        descriptor.workqueue.id = cu::get_fields<Handle>(resource);
        return check_configuration(descriptor.workqueue.id != 0);
    }
    const auto fields = cu::get_fields<cu::WorkqueueFields>(resource);
    Device* const device = machine.device(fields.device);
    check_configuration(device != nullptr &&
                        (descriptor.device == nullptr || descriptor.device == device));
    require(fields.concurrency_limit != 0 && fields.scope <= cu::kWorkqueueScopeBalanced);
    descriptor.device = device;
    descriptor.workqueue.concurrency_limit = fields.concurrency_limit;
    descriptor.workqueue.scope = fields.scope;
}

Descriptor describe(Machine& machine, const CUdevResource* resources, unsigned count) {
    Descriptor descriptor;
    std::vector<SmResource> read;
    read.reserve(count);
    for (unsigned i = 0; i < count; i++) {
        const CUdevResourceType type = resources[i].type;
        if (type == cu::kResourceWorkqueueConfig || type == cu::kResourceWorkqueue) {
            add_workqueue(machine, resources[i], descriptor);
            continue;
        }
        read.push_back(read_resource(machine, resources[i]));
        add_sms(machine, read.back(), read.front(), descriptor);
    }
    return descriptor;
}

} // namespace

GCX_SIM_API(cuDevResourceGenerateDesc, CUdevResourceDesc* out, CUdevResource* resources,
            unsigned count) {
    GCX_SIM_BODY({
        require(out != nullptr && resources != nullptr);
        if (count == 0)
            crash("cuDevResourceGenerateDesc with nbResources 0");
        Descriptor made = describe(machine, resources, count);
        Descriptor& stored = create(machine.descriptors);
        made.handle = stored.handle;
        stored = std::move(made);
        give(out, stored.handle);
    });
}

GCX_SIM_API(cuDeviceGetDevResource, CUdevice ordinal, CUdevResource* resource,
            CUdevResourceType type) {
    GCX_SIM_BODY(query_resource(machine, device_of(machine, ordinal), nullptr, resource, type));
}

} // namespace gcx::sim
