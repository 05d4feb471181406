// The handles of reservations, which need no driver.
#pragma once

#include "core/handle_table.hpp"
#include "ipc/reservation.hpp"

namespace gcx {

// A caller's part in a reservation. Leases in it have theirs.
struct ReservationPart {
    std::shared_ptr<const reservations::Reservation> reservation;

    void check_alive() const {}
    void close() { reservation.reset(); }
};

// A forked child has a table of its own: its parent's holds are none of its.
HandleTable<ReservationPart>& reservation_parts();

} // namespace gcx
