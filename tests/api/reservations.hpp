// Shared by the tests of reservations: short calls, and the checks of lists.
#pragma once

#include "publish.hpp"

#include <string>
#include <vector>

namespace reservations {

struct Wanted {
    const char* name = nullptr;
    uint32_t timeout_ms = 0;
    gcx_sm_family family = GCX_SM_FAMILY_NONE;
    uint32_t min_sm_count = 0;
    uint32_t flags = 0;
    gcx_cancel cancel = nullptr;
    const char* folder = nullptr;
    int32_t device = 0;
};
gcx_result try_reserve(uint32_t sm_count, const Wanted& wanted, gcx_reservation* reservation);
// Returns whether SMs could be reserved, and releases them.
gcx_result try_reserve(uint32_t sm_count, const Wanted& wanted = {});
// Does the same as the first and checks that it succeeds.
gcx_reservation reserve(uint32_t sm_count, const Wanted& wanted = {});
void release(gcx_reservation reservation);
// Acquires and releases a reservation of each device in another process, or in this one if it has a
// driver: that removes the files of processes that have ended. Lists remove no others than those
// that they waited for.
void remove_dead_files(const char* folder = nullptr, const char* spec = "h100@13.0");

// Runs the body on a machine with a private folder, in which no file stays.
void leaves_no_file(void (*body)(const publish::Folder& folder), const char* spec = "h100@13.0");

// A folder of group 4711, which several users reserve in. Only root can make one.
class GroupFolder : public publish::Folder {
  public:
    GroupFolder();
    // Opens the driver as a member of the group.
    static void become(uid_t user);
};

gcx_reservation_info info_of(gcx_reservation reservation);
std::string token_of(gcx_reservation reservation);

// Returns the whole list. Checks that no two have an SM in common unless one is a part of the
// other, that parts are within their parents, and that the SM counts agree with the atoms.
std::vector<gcx_live_reservation> listed(const char* folder = nullptr);
// Waits until as many are listed, including those that wait.
void until_listed(std::size_t count);
// Returns the number of reserved SMs. Parts count as their parent.
uint32_t held_sms(const std::vector<gcx_live_reservation>& found);

} // namespace reservations
