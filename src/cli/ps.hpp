// The reservations of a folder, as gcx ps, gcx top and the messages of gcx exec show them.
#pragma once

#include "cli/output.hpp"

#include <gcx.hpp>

#include <optional>
#include <string>
#include <vector>

namespace gcx::cli {

using Reservations = std::vector<gcx_live_reservation>;

// Whether the list has the reservation that this one is a part of.
bool has_parent(const Reservations& reservations, const gcx_live_reservation& reservation);

// Whether the reservation's atoms may be other SMs than atoms of the family, so that the SMs that
// it leaves are unknown: it is of another family, or of a process with a percentage under MPS.
bool has_other_atoms(const gcx_live_reservation& reservation, gcx_sm_family family);

// Returns the SMs of the reservation's device that no reservation has, or nothing if that is
// unknown: reservations may have the same SMs as others, or more than are listed.
std::optional<uint32_t> unreserved_sms(const Reservations& reservations,
                                       const gcx_live_reservation& device);

Json reservations_json(const Reservations& reservations);
// Returns a table for each device; an empty text if there are no reservations.
std::string reservations_text(const Reservations& reservations);

} // namespace gcx::cli
