// The open library: what exists while a driver is open. Below it are the functions that several
// files of src/api use.
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
    SmResource sm_resource(const ResourceWords& words);
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
// Returns the library, or null if the process is exiting. The driver may have ended before that.
Library* library_unless_closed();
// Returns the library for a destroy function, or null if the process is exiting and the driver has
// ended. The driver has destroyed the object then, so the destroy function succeeds.
Library* library_to_destroy_in();
// Returns the driver that the environment names, or an empty string.
std::string default_choice();
// Throws in the child of a fork that must not use gcx.
void refuse_after_fork();
// Opens a driver. Throws if another one is open.
void open_library(const char* choice);
// Claims the leases of this process for this copy of gcx, until the library is closed: another copy
// would have its own allocator and assign the same SMs. Throws if another copy has claimed them.
void claim_leases();
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

// Of resource.cpp.

// Returns the resource of a live green context, as gcx_context_get_resource documents.
gcx_resource resource_of(Library& lib, GreenContext& green, gcx_resource_type type);
// Returns the resource of a stream whose context gcx did not create, as gcx_stream_get_resource
// documents.
gcx_resource resource_of_external(Library& lib, const Stream& stream, const Stream::Target& target,
                                  gcx_resource_type type);
gcx_resource seal_workqueue_config(const Device& device, const CUdevResource& native);
[[noreturn]] void refuse_type(gcx_resource_type type);
// Writes SM ids to a caller's array. *count is their number even if they don't fit.
void give_sm_ids(const std::vector<uint32_t>& ids, uint32_t* sm_ids, uint32_t capacity,
                 uint32_t* count);

// Of lease.cpp and reservation.cpp.

// Returns the family of leases and reservations that the caller chose.
gcx_sm_family leasable_family(gcx_sm_family family);
// Returns the name of a lease or a reservation; an empty string for NULL.
std::string lease_name(const char* name);

struct ReservationSms {
    std::shared_ptr<const reservations::Reservation> reservation;
    SmResource resource; // its SMs as atoms of this process
};
ReservationSms sms_of_reservation(Library& lib, gcx_reservation reservation);

// Of stream.cpp: refusing calls that would break a graph capture, with the capture intact, and
// queries.

gcx_stream_params stream_params(const gcx_stream_params* params);
// Refuses to query or wait for a stream's work while it captures.
void refuse_capturing(const Driver& driver, CUstream stream);
// Refuses what concerns all streams of a context. Checks only streams that gcx created.
void refuse_capturing(const Context& context);
// Refuses to query or wait for an event of a capture. Checks only events that gcx recorded.
void refuse_captured(Library& lib, const Event& event);
// Returns the stream's handle if the stream is capturing, otherwise 0.
uint64_t capture_of(const Driver& driver, uint64_t stream, CUstream native);
// Returns the result of a query: success or NOT_READY, which needs no message. Throws for others.
gcx_result ready_or_fail(const Driver& driver, CUresult result, const char* function);

} // namespace gcx
