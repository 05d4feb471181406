// What the tests of holds share: short ways to take one, and what must hold of whatever is listed.
#pragma once

#include "publish.hpp"

#include <string>
#include <vector>

namespace holds {

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
gcx_result take(uint32_t sm_count, const Wanted& wanted, gcx_hold* hold);
// One that is there to be had.
gcx_hold taken(uint32_t sm_count, const Wanted& wanted = {});
void give_back(gcx_hold hold);

gcx_hold_info info_of(gcx_hold hold);
std::string token_of(gcx_hold hold);

// All that are listed. Counts a check: that no two have an SM in common unless one is a part of the
// other, that parts are within their parents, and that each has what it says.
std::vector<gcx_live_hold> listed(const char* folder = nullptr);
// Without what is counted by a parent.
uint32_t held_sms(const std::vector<gcx_live_hold>& found);

} // namespace holds
