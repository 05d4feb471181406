// The handles of holds, which need no driver.
#pragma once

#include "core/handle_table.hpp"
#include "core/hold.hpp"

namespace gcx {

// A caller's part in a hold. Leases in it have theirs.
struct HoldPart {
    std::shared_ptr<const holds::Hold> hold;

    void check_alive() const {}
    void close() { hold.reset(); }
};

// A forked child has a table of its own: its parent's holds are none of its.
HandleTable<HoldPart>& hold_parts();

} // namespace gcx
