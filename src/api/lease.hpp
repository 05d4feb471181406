// Requests for leases, from gcx_lease_params.
#pragma once

#include "api/library.hpp"

#include <string>

namespace gcx {

// Returns the family of leases and reservations that the caller chose.
gcx_sm_family leasable_family(gcx_sm_family family);
// Returns the name of a lease or a reservation; an empty string for NULL.
std::string lease_name(const char* name);
// Returns everything of a request except for its cancel.
LeaseRequest lease_request(uint32_t sm_count, const gcx_lease_params& params);
// Acquires a lease and returns a handle for the caller. cancel: may be NULL.
gcx_lease acquire_lease(Library& lib, Device& device, LeaseRequest request, gcx_cancel cancel);

} // namespace gcx
