// One copy of gcx in a process acquires leases: a second one, with an allocator of its own, would
// give out the same SMs.
#pragma once

namespace gcx {

// Claims the leases of this process for this copy of the library, unless it has them already.
// Throws if another copy has them. Whoever is first has them until it is closed.
void claim_leases();

// Leaves the leases to another copy.
void drop_claim_to_leases() noexcept;

} // namespace gcx
