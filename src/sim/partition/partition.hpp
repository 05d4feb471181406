// What the room of partitions offers: green contexts, and the resources of devices and contexts.
#pragma once

#include "sim/machine.hpp"

namespace gcx::sim {

// What is not known or destroyed is refused.
Context& green_of(Machine& machine, CUgreenCtx handle);
Context& green_or_current(Machine& machine, CUgreenCtx handle); // NULL: the current context
Handle green_handle_of(Machine& machine, Context& context);
void end_green(Machine& machine, Context& context);

// One resource of context, green context or device, of any type. Context null: the device itself.
void query_resource(const Machine& machine, const Device& device, const Context* context,
                    CUdevResource* out, CUdevResourceType type);

} // namespace gcx::sim
