// Leases: SMs that no other lease of the process has.

#include "api/library.hpp"
#include "api/result.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

using namespace gcx;

namespace {

bool check_resize_flags(uint32_t flags) {
    if ((flags & ~GCX_RESIZE_DEFERRED) != 0)
        fail(GCX_ERROR_INVALID_VALUE,
             format("flags is %#x; there is only GCX_RESIZE_DEFERRED (1)", flags));
    return flags != 0;
}

void check_counts(uint32_t sm_count, const gcx_lease_params& params) {
    if (sm_count == 0)
        fail(GCX_ERROR_INVALID_VALUE, "sm_count is 0; GCX_REST requests all SMs that are free");
    const bool shared = (params.flags & GCX_LEASE_SHARED) != 0;
    if (params.exclusive_sm_count != 0 && !shared)
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->exclusive_sm_count is %u, of a lease that shares nothing; set "
                    "GCX_LEASE_SHARED, or leave it 0",
                    params.exclusive_sm_count));
    // No later size would be as large.
    if (params.exclusive_sm_count == GCX_REST)
        fail(GCX_ERROR_INVALID_VALUE,
             "params->exclusive_sm_count is GCX_REST; set a number of SMs, or acquire a lease "
             "that shares nothing, without GCX_LEASE_SHARED");
    if (sm_count == GCX_REST)
        return;
    if (params.min_sm_count > sm_count)
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->min_sm_count is %u, more than the %u requested", params.min_sm_count,
                    sm_count));
    if (params.exclusive_sm_count > sm_count)
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->exclusive_sm_count is %u, more than the %u requested",
                    params.exclusive_sm_count, sm_count));
}

LeaseRequest lease_request(uint32_t sm_count, const gcx_lease_params& params) {
    if ((params.flags & ~(GCX_LEASE_SHARED | GCX_LEASE_REQUIRE_WORKQUEUES)) != 0)
        fail(GCX_ERROR_INVALID_VALUE, format("params->flags is %#x; there are GCX_LEASE_SHARED (1) "
                                             "and GCX_LEASE_REQUIRE_WORKQUEUES (2)",
                                             params.flags));
    check_counts(sm_count, params);
    LeaseRequest request;
    request.sm_count = sm_count;
    request.min_sm_count = params.min_sm_count;
    request.family = leasable_family(params.family);
    request.terms = {lease_name(params.name),
                     (params.flags & GCX_LEASE_SHARED) != 0,
                     params.exclusive_sm_count,
                     (params.flags & GCX_LEASE_REQUIRE_WORKQUEUES) != 0,
                     nullptr,
                     {}};
    request.timeout_ms = params.timeout_ms;
    return request;
}

void check_reservation(const SmResource& reserved, int32_t device, gcx_sm_family family) {
    const gcx_sm_family kind = reserved.family->kind();
    if (device != -1 && device != reserved.device->ordinal())
        fail(GCX_ERROR_INVALID_DEVICE,
             format("device is %d; the reservation is of device %d, -1 takes that one", device,
                    reserved.device->ordinal()));
    if (family != GCX_SM_FAMILY_NONE && family != kind)
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->family is %d; the reservation is of the %s family (%d)", family,
                    family_name(kind), kind));
}

// The leases to resize, pinned.
struct Sizes {
    SmallVector<HandleTable<LeaseHandle>::Pin, 4> pins;
    SmallVector<LeaseManager::Size, 4> sizes;

    Sizes(Library& lib, const gcx_lease_size* requested, uint32_t count) {
        if (count == 0)
            fail(GCX_ERROR_INVALID_VALUE, "count is 0; there is no lease to change");
        not_null(requested, "sizes");
        for (uint32_t i = 0; i < count; i++) {
            const bool parked = requested[i].flags == GCX_SIZE_PARKED;
            if (requested[i].flags != 0 && !parked)
                fail(GCX_ERROR_INVALID_VALUE,
                     format("sizes[%u].flags is %#x; there is only GCX_SIZE_PARKED (1)", i,
                            requested[i].flags));
            if (parked && requested[i].sm_count != 0)
                fail(GCX_ERROR_INVALID_VALUE,
                     format("sizes[%u].sm_count is %u, of a lease to park; set it to 0", i,
                            requested[i].sm_count));
            if (!parked && requested[i].sm_count == 0)
                fail(GCX_ERROR_INVALID_VALUE,
                     format("sizes[%u].sm_count is 0; GCX_REST requests all SMs that the others "
                            "leave, the flag GCX_SIZE_PARKED takes all SMs of the lease",
                            i));
            pins.emplace_back(pin_alive(lib.lease_handles, requested[i].lease));
            sizes.push_back({pins.back()->lease.get(), requested[i].sm_count});
        }
    }
};

uint32_t flags_of(const LeaseTerms& terms) {
    return (terms.shared ? GCX_LEASE_SHARED : 0U) |
           (terms.require_workqueues ? GCX_LEASE_REQUIRE_WORKQUEUES : 0U);
}

gcx_live_lease describe(const LeaseManager::Live& live) {
    gcx_live_lease described{};
    described.id = live.id;
    described.device = live.device->ordinal();
    described.family = live.family->kind();
    described.flags = flags_of(live.terms);
    described.sm_count =
        live.waiting ? live.requested : live.family->sm_count(live.state.allocation.all());
    described.exclusive_sm_count = live.family->sm_count(live.state.allocation.exclusive);
    described.stream_count = live.state.streams;
    described.waits = live.waiting ? 1 : 0;
    std::memcpy(described.name, live.terms.name.c_str(), live.terms.name.size() + 1);
    described.resource = seal({live.device, live.family, live.state.allocation.all()});
    return described;
}

} // namespace

gcx_sm_family gcx::leasable_family(gcx_sm_family family) {
    switch (family) {
    case GCX_SM_FAMILY_NONE:
        return GCX_SM_FAMILY_COSCHEDULED;
    case GCX_SM_FAMILY_COSCHEDULED:
    case GCX_SM_FAMILY_FINE:
    case GCX_SM_FAMILY_MAX_CLUSTER:
        return family;
    default:
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->family is %d; leases are of the coscheduled (1), fine (2) or "
                    "max-cluster (3) family",
                    family));
    }
}

std::string gcx::lease_name(const char* name) {
    if (name == nullptr)
        return "";
    if (strnlen(name, GCX_MAX_LEASE_NAME) == GCX_MAX_LEASE_NAME)
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->name has more than %u bytes", GCX_MAX_LEASE_NAME - 1));
    return name;
}

gcx_result gcx_lease_acquire(int32_t device, uint32_t sm_count, const gcx_lease_params* params,
                             gcx_lease* lease) {
    GCX_BODY({
        not_null(lease, "lease");
        auto requested = params_or_defaults(params, GCX_LEASE_PARAMS_INIT);
        Library& lib = library();
        if (device == -1 && requested.reservation == nullptr)
            fail(GCX_ERROR_INVALID_DEVICE,
                 "device is -1, the device of params->reservation, which is NULL");
        std::optional<ReservationSms> reserved;
        if (requested.reservation != nullptr) {
            reserved = sms_of_reservation(lib, requested.reservation);
            check_reservation(reserved->resource, device, requested.family);
            requested.family = reserved->resource.family->kind();
        }
        LeaseRequest request = lease_request(sm_count, requested);
        if (reserved) {
            request.reservation = reserved->reservation;
            request.terms.reservation =
                std::make_shared<const reservations::Record>(reserved->reservation->record());
            request.terms.reservation_atoms = reserved->resource.set;
        }
        Device& its_device = reserved ? *reserved->resource.device : lib.device(device);
        std::optional<HandleTable<Cancel>::Pin> cancel;
        if (requested.cancel != nullptr) {
            cancel.emplace(lib.cancels.pin(requested.cancel));
            request.cancel = &**cancel;
        }
        claim_leases();
        // First, since a lease without a handle could not be released.
        auto room = lib.lease_handles.make_room();
        auto handle = std::make_unique<LeaseHandle>(lib.leases, nullptr);
        handle->lease = lib.leases.acquire(its_device, request);
        *lease = handle_of<gcx_lease>(lib.lease_handles.add(std::move(room), std::move(handle)));
    });
}

gcx_result gcx_lease_release(gcx_lease lease) {
    GCX_BODY({
        Library* const lib = library_to_destroy_in();
        if (lib == nullptr)
            return;
        auto pin = lib->lease_handles.pin(lease);
        // Before closing the handle: while another thread uses it, as in gcx_lease_synchronize, its
        // object stays open, and its SMs must be free now.
        if (!lib->leases.release(*pin->lease))
            fail(GCX_ERROR_INVALID_HANDLE,
                 format("%s was released by another thread", pin->lease->label().c_str()));
        lib->lease_handles.close(std::move(pin));
    });
}

gcx_result gcx_lease_resize(const gcx_lease_size* sizes, uint32_t count, uint32_t flags) {
    GCX_BODY({
        const bool deferred = check_resize_flags(flags);
        Library& lib = library();
        const Sizes requested(lib, sizes, count);
        lib.leases.resize(requested.sizes, deferred);
    });
}

gcx_result gcx_lease_prepare(const gcx_lease_size* sizes, uint32_t count) {
    GCX_BODY({
        Library& lib = library();
        const Sizes requested(lib, sizes, count);
        lib.leases.prepare(requested.sizes);
    });
}

gcx_result gcx_lease_get_layout(const gcx_lease_size* sizes, uint32_t count,
                                gcx_resource* resources, gcx_resource* remainder) {
    GCX_BODY({
        Library& lib = library();
        const Sizes requested(lib, sizes, count);
        not_null(resources, "resources");
        not_null(remainder, "remainder");
        const auto planned = lib.leases.layout(requested.sizes);
        Lease& first = *requested.sizes[0].lease;
        for (uint32_t i = 0; i < count; i++)
            resources[i] = seal({&first.device, first.family, planned.sets[i]});
        *remainder = seal({&first.device, first.family, planned.remainder});
    });
}

gcx_result gcx_lease_get_info(gcx_lease lease, gcx_lease_info* info) {
    GCX_BODY({
        StructOutput out(info, "info");
        const auto pin = pin_alive(library().lease_handles, lease);
        const Lease& its = *pin->lease;
        const Lease::State state = its.state();
        out->device = its.device.ordinal();
        out->family = its.family->kind();
        out->flags = flags_of(its.terms);
        out->sm_count = its.family->sm_count(state.allocation.all());
        out->exclusive_sm_count = its.family->sm_count(state.allocation.exclusive);
        out->stream_count = state.streams;
        out->id = its.id;
        out->changes = state.changes - 1;
        std::memset(out->name, 0, sizeof out->name);
        std::memcpy(out->name, its.terms.name.c_str(), its.terms.name.size());
        out.write();
    });
}

gcx_result gcx_lease_get_resource(gcx_lease lease, gcx_resource* resource) {
    GCX_BODY({
        not_null(resource, "resource");
        const auto pin = pin_alive(library().lease_handles, lease);
        Lease& its = *pin->lease;
        *resource = seal({&its.device, its.family, its.state().allocation.all()});
    });
}

gcx_result gcx_lease_list(int32_t device, gcx_live_lease* leases, uint32_t capacity,
                          uint32_t* count) {
    GCX_BODY({
        check_list(leases, "leases", capacity, count);
        Library& lib = library();
        const auto live = lib.leases.live(device == -1 ? nullptr : &lib.device(device));
        give_list(live, "leases", leases, capacity, count,
                  [](const LeaseManager::Live& one) { return describe(one); });
    });
}

gcx_result gcx_lease_stream_create(gcx_lease lease, const gcx_stream_params* params,
                                   gcx_stream* stream) {
    GCX_BODY({
        not_null(stream, "stream");
        const gcx_stream_params requested = stream_params(params);
        Library& lib = library();
        const auto pin = pin_alive(lib.lease_handles, lease);
        auto object = std::make_unique<Stream>(lib.cache, lib.leases.events(pin->lease->device),
                                               pin->lease, requested.priority);
        *stream = handle_of<gcx_stream>(lib.streams.add(std::move(object)));
    });
}

gcx_result gcx_lease_synchronize(gcx_lease lease) {
    GCX_BODY({
        Library& lib = library();
        const auto pin = pin_alive(lib.lease_handles, lease);
        pin->lease->synchronize(lib.leases.events(pin->lease->device));
    });
}

gcx_result gcx_lease_query(gcx_lease lease) {
    GCX_BODY({
        const auto pin = pin_alive(library().lease_handles, lease);
        return pin->lease->finished() ? GCX_SUCCESS : GCX_ERROR_NOT_READY;
    });
}

gcx_result gcx_cancel_create(gcx_cancel* cancel) {
    GCX_BODY({
        not_null(cancel, "cancel");
        *cancel = handle_of<gcx_cancel>(library().cancels.add(std::make_unique<Cancel>()));
    });
}

gcx_result gcx_cancel_signal(gcx_cancel cancel) {
    GCX_BODY({
        Library& lib = library();
        const auto pin = lib.cancels.pin(cancel);
        lib.leases.signal(*pin);
    });
}

gcx_result gcx_cancel_destroy(gcx_cancel cancel) {
    GCX_BODY({
        if (Library* const lib = library_to_destroy_in(); lib != nullptr)
            lib->cancels.close(lib->cancels.pin(cancel));
    });
}
