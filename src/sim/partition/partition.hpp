// Green contexts, and the resources of devices and contexts.
#pragma once

#include "sim/machine.hpp"

namespace gcx::sim {

// Refuses handles that are unknown or destroyed.
Context& green_of(Machine& machine, CUgreenCtx handle);
Context& green_or_current(Machine& machine, CUgreenCtx handle); // NULL means the current context
Handle green_handle_of(Machine& machine, Context& context);
void end_green(Machine& machine, Context& context);

// Writes a resource of the context, or of the device if context is null.
void query_resource(const Machine& machine, const Device& device, const Context* context,
                    CUdevResource* out, CUdevResourceType type);

} // namespace gcx::sim
