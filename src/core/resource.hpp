// gcx_resource, read and written: the value that travels outside, and what it stands for inside.
#pragma once

#include "core/atom_set.hpp"

#include <gcx.h>

#include <optional>

namespace gcx {

class Family;
class Device;

struct SmResource {
    Device* device = nullptr;
    Family* family = nullptr;
    AtomSet set;
};

// The SMs of a green context that gcx did not make: their number is known, their atoms are not.
struct ForeignSms {
    uint32_t sm_count = 0;
    uint32_t min_partition_size = 0;
    uint32_t coscheduled_alignment = 0;
    uint32_t flags = 0;
};

// A workqueue: the configuration, or the pre-existing one of a context.
struct Workqueue {
    gcx_workqueue_scope scope = GCX_WORKQUEUE_SCOPE_DEVICE_CTX;
    uint32_t concurrency_limit = 0;
    uint64_t source_context = 0; // 0: a configuration
    auto operator<=>(const Workqueue&) const = default;
};

// What a gcx_resource says, before it was looked up in the library that runs.
struct ResourceWords {
    gcx_resource_type type = GCX_RESOURCE_SM;
    int32_t device = 0;
    uint32_t family = 0; // as Device::family_number gives it
    AtomSet set;
    std::optional<ForeignSms> foreign; // instead of family and set
    Workqueue workqueue;
};

gcx_resource seal(const ResourceWords& words);

// Throws for what seal() of this process did not make.
ResourceWords unseal(const gcx_resource* resource);

} // namespace gcx
