// Leases as they are published.
#pragma once

#include "core/lease.hpp"
#include "core/ledger.hpp"
#include "ipc/published_leases.hpp"

namespace gcx {

// But for its streams, which the publisher counts.
published::Row row_of(const Lease& lease, const Reservationing& holding);
// Of one that waits.
published::Row row_of(const Device& device, const Family& family, const LeaseTerms& terms,
                      const Wish& wish);

} // namespace gcx
