// gcx_resource values: how they are sealed and read.
#pragma once

#include "base/atom_set.hpp"

#include <gcx.h>

#include <array>
#include <memory>

namespace gcx {

class Family;
class Device;

// A set of atoms of a device's family: what most functions take.
struct SmResource {
    Device* device = nullptr;
    std::shared_ptr<Family> family;
    AtomSet set;
};

// The SMs of a green context that gcx did not make. Their number is known, their atoms are not.
struct ExternalSms {
    uint32_t sm_count = 0;
    uint32_t min_partition_size = 0;
    uint32_t coscheduled_alignment = 0;
    uint32_t flags = 0;
};

// A workqueue: a configuration, or the queue of a context.
struct Workqueue {
    gcx_workqueue_scope scope = GCX_WORKQUEUE_SCOPE_DEVICE_CTX;
    uint32_t concurrency_limit = 0;
    uint64_t queue = 0; // the context cache's number of the queue; 0: a configuration
    auto operator<=>(const Workqueue&) const = default;
};

// The content of a gcx_resource, before its device and family are looked up.
struct ResourceWords {
    gcx_resource_type type = GCX_RESOURCE_SM;
    int32_t device = 0;
    gcx_sm_family family = GCX_SM_FAMILY_NONE;
    AtomSet set;
    std::array<uint64_t, 2> split{}; // of a structured resource: the SplitId of its family
    ExternalSms external;            // of GCX_SM_FAMILY_EXTERNAL, instead of a set
    Workqueue workqueue;
};

gcx_resource seal(const ResourceWords& words);

// Throws if seal() of this process did not make the resource.
ResourceWords unseal(const gcx_resource* resource);

} // namespace gcx
