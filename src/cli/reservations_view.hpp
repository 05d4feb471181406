// What gcx ps shows, and gcx top beside the leases: the reservations of a folder, as text and as
// JSON.
#pragma once

#include "cli/json.hpp"

#include <gcx.h>

#include <string>
#include <vector>

namespace gcx::cli {

// folder: null for the usual one.
std::vector<gcx_live_reservation> read_reservations(const char* folder);
// The path of the usual one.
std::string reservations_folder();
// Whether the reservation that this one is a part of is in the list.
bool has_parent(const std::vector<gcx_live_reservation>& reservations,
                const gcx_live_reservation& reservation);

// Whether the atoms of a reservation may be other SMs than atoms of this family, so that nothing
// can be said of what it leaves: one of another family, or of a process that has a percentage under
// MPS.
bool differs(const gcx_live_reservation& reservation, gcx_sm_family family);

Json reservations_json(const std::vector<gcx_live_reservation>& reservations);
// Empty if there are none.
std::string reservations_text(const std::vector<gcx_live_reservation>& reservations);

} // namespace gcx::cli
