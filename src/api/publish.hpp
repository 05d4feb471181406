// Publishing leases for the user's other processes.
#pragma once

#include "api/library.hpp"

namespace gcx {

// Publishes if the environment's GCX_PUBLISH asks for it. What stands against it is logged.
void publish_as_asked(Library& lib) noexcept;

} // namespace gcx
