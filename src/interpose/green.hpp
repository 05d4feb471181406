// Green contexts of the program's own: they nest, since they are made of the partition's SMs.
#pragma once

#include "driver/cuda_api.h"

namespace gcx::shim {

// Whether the program has any, on any device, or on this one.
bool program_has_green_contexts();
bool program_has_green_contexts(CUdevice device);
// After a reset of the device, with which they went.
void forget_green_contexts(CUdevice device);

} // namespace gcx::shim
