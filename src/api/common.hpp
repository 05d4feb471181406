// What several API functions share.
#pragma once

#include "api/library.hpp"

#include <vector>

namespace gcx {

// The object of a handle, pinned, which must not have died with a reset of its device. Only the
// destroy functions take dead ones.
template <class T>
typename HandleTable<T>::Pin pin_alive(HandleTable<T>& table, const void* handle) {
    auto pin = table.pin(handle);
    pin->check_alive();
    return pin;
}

// What a new stream is to be; null: the defaults.
gcx_stream_params stream_params(const gcx_stream_params* params);

// The resource of one type of a live green context, as gcx_context_get_resource documents.
gcx_resource resource_of(Library& lib, GreenContext& green, gcx_resource_type type);

// The same of a stream whose context gcx did not make, as gcx_stream_get_resource documents.
gcx_resource resource_of_external(Library& lib, const Stream& stream, const Stream::Target& target,
                                  gcx_resource_type type);

gcx_resource seal_workqueue_config(const Device& device, const CUdevResource& native);

[[noreturn]] void refuse_type(gcx_resource_type type);

// What asks whether work has finished answers: yes, or not yet, which needs no message.
gcx_result ready_or_fail(const Driver& driver, CUresult result, const char* function);

// The family of leases and holds that are asked for so.
gcx_sm_family leasable_family(gcx_sm_family wanted);
// A name of a lease or a reservation; null: none.
std::string lease_name(const char* name);
// What a lease is asked for with, but for the cancel.
LeaseRequest lease_request(uint32_t sm_count, const gcx_lease_params& params);
// The handle is the caller's.
gcx_lease acquire_lease(Library& lib, Device& device, LeaseRequest request, gcx_cancel giving_up);

// Writes SM ids to a caller's array; *count is what there are, also if they don't fit.
void give_sm_ids(const std::vector<uint32_t>& ids, uint32_t* sm_ids, uint32_t capacity,
                 uint32_t* count);

} // namespace gcx
