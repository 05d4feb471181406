// How a reservation is taken: what is free of all that other processes hold, and the wait for it.
#pragma once

#include "core/cancel_list.hpp"
#include "core/device.hpp"
#include "core/reservation.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace gcx::reservations {

struct Request {
    uint32_t sm_count = 0; // or kRest
    uint32_t least = 0;    // SMs that will do; 0: sm_count
    gcx_sm_family family = GCX_SM_FAMILY_COSCHEDULED;
    uint32_t flags = 0;
    uint32_t timeout_ms = 0;
    std::string name;
    std::string folder; // as folder_of gives it
    // The token of the reservation whose SMs it is a part of, in that folder; empty: of the device.
    std::string parent;
    std::optional<AtomSet> usable; // atoms that it can have, whoever has them; nothing: all
    std::function<bool(const AtomSet&)> legal; // whether it can have these together; null: yes
    std::function<bool()> given_up;
    CancelList* cancel = nullptr; // null: nothing cancels the wait
};

std::shared_ptr<Reservation> take(Device& device, const Request& request);

// The SMs of a reservation among the atoms of this process. Throws if it sees other atoms.
SmResource resource_of(Device& device, const Record& record);

} // namespace gcx::reservations
