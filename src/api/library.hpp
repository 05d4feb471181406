// Everything that lives while a driver is open.
#pragma once

#include "api/around.hpp"
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

// What a handle names: no two types have a handle in common.
enum HandleKind : unsigned {
    kContextHandle = 1, // so that no handle is NULL
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
    // What a gcx_resource stands for. Throws if it isn't an SM resource.
    SmResource sm_resource(const gcx_resource* resource);
    bool in_use();

    // In the order in which they depend on each other.
    const Driver driver;

  private:
    std::vector<std::unique_ptr<Device>> devices_;

  public:
    Around around{driver};
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

// The open library; opens it with the default driver the first time.
Library& library();
// Whether a library is open and may be used: false while the process exits, and after a fork.
bool library_answers();
// The library for a destroy function; null while the process exits and the driver has ended. What
// a handle named went with it then, so that destroying it has succeeded.
Library* library_to_destroy_in();
// What opens if nothing else is said: the environment's choice.
std::string default_choice();
// Throws in the child of a fork that must not use gcx.
void refuse_after_fork();
// Opens a driver. Throws if another one is open already.
void open_library(const char* choice);

} // namespace gcx
