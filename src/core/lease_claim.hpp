// Ensures that only one copy of gcx in a process acquires leases. A second copy would have its own
// allocator and assign the same SMs.
#pragma once

namespace gcx {

// Claims the leases of this process for this copy of the library, until the library is closed.
// Throws if another copy has claimed them.
void claim_leases();

// Releases the claim, so that another copy can have it.
void drop_claim_to_leases() noexcept;

} // namespace gcx
