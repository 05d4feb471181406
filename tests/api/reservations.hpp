// What the tests of reservations share: short ways to take one, and what must hold of whatever is
// listed.
#pragma once

#include "publish.hpp"

#include <string>
#include <vector>

namespace reservations {

struct Wanted {
    const char* name = nullptr;
    uint32_t timeout_ms = 0;
    gcx_sm_family family = GCX_SM_FAMILY_NONE;
    uint32_t least = 0;
    uint32_t flags = 0;
    gcx_cancel cancel = nullptr;
    const char* folder = nullptr;
    int32_t device = 0;
};
gcx_result take(uint32_t sm_count, const Wanted& wanted, gcx_reservation* reservation);
// One that is there to be had.
gcx_reservation taken(uint32_t sm_count, const Wanted& wanted = {});
void give_back(gcx_reservation reservation);

gcx_reservation_info info_of(gcx_reservation reservation);
std::string token_of(gcx_reservation reservation);

// All that are listed. Counts a check: that no two have an SM in common unless one is a part of the
// other, that parts are within their parents, and that each has what it says.
std::vector<gcx_live_reservation> listed(const char* folder = nullptr);
// Without what is counted by a parent.
uint32_t held_sms(const std::vector<gcx_live_reservation>& found);

} // namespace reservations
