// Requests for reservations: plans which SMs a process gets among those of other processes, and
// waits for them.
#pragma once

#include "base/atom_set.hpp"
#include "core/resource.hpp"
#include "ipc/reservation.hpp"

#include <gcx.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace gcx {
class Cancel;
class Device;
} // namespace gcx

namespace gcx::reservations {

struct ReservationRequest {
    uint32_t sm_count = 0;     // or kRest
    uint32_t min_sm_count = 0; // the smallest acceptable count; 0: sm_count
    gcx_sm_family family = GCX_SM_FAMILY_COSCHEDULED;
    uint32_t flags = 0;
    uint32_t timeout_ms = 0;
    std::string name;
    std::string dir; // from reservation_dir()
    // The token of the reservation to divide, which must be in dir; empty: divides the device.
    std::string parent;
    std::optional<AtomSet> usable; // atoms that may be reserved, if free; nothing: all
    std::function<bool(const AtomSet&)> can_realise; // whether a set may be reserved; null: any
    Cancel* cancel = nullptr;                        // null: nothing cancels the wait
};

// Reserves free SMs, and waits for them if the request has a timeout.
std::shared_ptr<Reservation> acquire(Device& device, const ReservationRequest& request);

// Returns the SMs of a reservation as atoms of this process. Throws if this process sees others.
SmResource resource_of(Device& device, const Record& record);

// The words that messages about requests have in common, for reservations and for leases.

// "24 SMs", or "the rest".
std::string count_text(uint32_t sm_count);

// Returns where SMs come from: "device 0", or "the reservation "job" of device 0". The reservation
// is null if the SMs are the device's.
std::string source_label(const Device& device, const Record* reservation);

// Why a request got no SMs.
struct Refusal {
    std::string requested;
    std::string usage; // who has the SMs
    bool cancelled;
    uint32_t timeout_ms; // 0: it was not to wait
    bool has_min;        // it has a min_sm_count
};
[[noreturn]] void refuse_request(const Refusal& refusal);

} // namespace gcx::reservations
