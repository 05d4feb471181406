// gcx_resource, read and written: the value that travels outside, and what it stands for inside.
#pragma once

#include "core/atom_set.hpp"

#include <gcx.h>

#include <memory>
#include <string>

namespace gcx {

class Family;
class Device;

struct SmResource {
    Device* device = nullptr;
    std::shared_ptr<Family> family;
    AtomSet set;
};

// The SMs of a green context that gcx did not make: their number is known, their atoms are not.
struct ExternalSms {
    uint32_t sm_count = 0;
    uint32_t min_partition_size = 0;
    uint32_t coscheduled_alignment = 0;
    uint32_t flags = 0;
};

// A workqueue: the configuration, or the pre-existing one of a context.
struct Workqueue {
    gcx_workqueue_scope scope = GCX_WORKQUEUE_SCOPE_DEVICE_CTX;
    uint32_t concurrency_limit = 0;
    uint64_t queue = 0; // as the cache of contexts numbers those that there are; 0: a configuration
    auto operator<=>(const Workqueue&) const = default;
};

// What a gcx_resource says, before it was looked up in the library that runs.
struct ResourceWords {
    gcx_resource_type type = GCX_RESOURCE_SM;
    int32_t device = 0;
    gcx_sm_family family = GCX_SM_FAMILY_NONE;
    AtomSet set;
    // Of the structured family: the split's requests, as pack_requests gives them, or if there is
    // no room for those, empty and the number under which the device remembers them.
    std::string requests;
    uint64_t remembered = 0;
    ExternalSms external; // of the foreign family, instead of a set
    Workqueue workqueue;
};

// How many bytes of requests a resource has room for beside a set.
std::size_t room_for_requests(const AtomSet& set);

gcx_resource seal(const ResourceWords& words);

// Throws for what seal() of this process did not make.
ResourceWords unseal(const gcx_resource* resource);

} // namespace gcx
