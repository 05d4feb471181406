// The open library: what exists while a driver is open.
#pragma once

#include "api/enclosing_partition.hpp"
#include "core/context_cache.hpp"
#include "core/graph.hpp"
#include "core/handle_table.hpp"
#include "core/lease_manager.hpp"
#include "core/stream.hpp"
#include "probe/probe.hpp"

#include <memory>
#include <string>
#include <vector>

namespace gcx {

// The types of handles. No two types have a handle in common.
enum HandleKind : unsigned {
    kContextHandle = 1, // 1, so that no handle is NULL
    kStreamHandle,
    kEventHandle,
    kLeaseHandle,
    kCancelHandle,
    kGraphHandle,
    kReservationHandle
};

class Library {
  public:
    explicit Library(const std::string& choice);

    Device& device(int32_t ordinal);
    int32_t device_count() const { return static_cast<int32_t>(devices_.size()); }
    // Returns the SMs of a resource. Throws if it is no SM resource.
    SmResource sm_resource(const gcx_resource* resource);
    bool in_use();

    // The members follow the order of their dependencies.
    const Driver driver;

  private:
    std::vector<std::unique_ptr<Device>> devices_;

  public:
    EnclosingPartition enclosing{driver};
    ContextCache cache;
    LeaseManager leases{cache};
    Probe probe;
    HandleTable<Context> contexts{kContextHandle, "context"};
    HandleTable<Stream> streams{kStreamHandle, "stream"};
    HandleTable<Event> events{kEventHandle, "event"};
    HandleTable<LeaseHandle> lease_handles{kLeaseHandle, "lease"};
    HandleTable<Cancel> cancels{kCancelHandle, "cancel"};
    HandleTable<Graph> graphs{kGraphHandle, "graph"};
};

gcx_resource seal(const SmResource& resource);

// Returns the open library. Opens it with the default driver if necessary.
Library& library();
// Returns whether a library is open and usable, which it is not while the process exits or after a
// fork.
bool library_answers();
// Returns the library for a destroy function, or null if the process is exiting and the driver has
// ended. The driver has destroyed the object then, so the destroy function succeeds.
Library* library_to_destroy_in();
// Returns the driver that the environment names, or an empty string.
std::string default_choice();
// Throws in the child of a fork that must not use gcx.
void refuse_after_fork();
// Opens a driver. Throws if another one is open.
void open_library(const char* choice);
// Publishes the leases if GCX_PUBLISH requests it. Logs errors.
void publish_if_requested(Library& lib) noexcept;

// Pins the object of a handle. Throws if a reset of its device destroyed it; only the destroy
// functions accept such objects.
template <class T>
typename HandleTable<T>::Pin pin_alive(HandleTable<T>& table, const void* handle) {
    auto pin = table.pin(handle);
    pin->check_alive();
    return pin;
}

} // namespace gcx
