// What the functions of leases and those of reservations have in common.
#pragma once

#include "api/library.hpp"

#include <memory>
#include <string>

namespace gcx {

// Returns the family of leases and reservations that the caller chose.
gcx_sm_family leasable_family(gcx_sm_family family);
// Returns the name of a lease or a reservation; an empty string for NULL.
std::string lease_name(const char* name);

struct ReservationSms {
    std::shared_ptr<const reservations::Reservation> reservation;
    SmResource resource; // its SMs as atoms of this process
};
ReservationSms sms_of_reservation(Library& lib, gcx_reservation reservation);

} // namespace gcx
