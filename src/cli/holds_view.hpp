// What gcx ps shows, and gcx top beside the leases: the holds of a folder, as text and as JSON.
#pragma once

#include "cli/json.hpp"

#include <gcx.h>

#include <string>
#include <vector>

namespace gcx::cli {

// folder: null for the usual one.
std::vector<gcx_live_hold> read_holds(const char* folder);
// The path of the usual one.
std::string holds_folder();
// Whether the reservation that this one is a part of is in the list.
bool has_parent(const std::vector<gcx_live_hold>& holds, const gcx_live_hold& hold);

// Whether the atoms of a hold may be other SMs than atoms of this family, so that nothing can be
// said of what it leaves: one of another family, or of a process that has a percentage under MPS.
bool differs(const gcx_live_hold& hold, gcx_sm_family family);

Json holds_json(const std::vector<gcx_live_hold>& holds);
// Empty if there are none.
std::string holds_text(const std::vector<gcx_live_hold>& holds);

} // namespace gcx::cli
