// What an image of device code tells: the names of its kernels, their parameters, and
// whether they launch kernels themselves.
#pragma once

#include "sim/machine.hpp"

#include <string_view>

namespace gcx::sim {

// The code is PTX text, a cubin or a fatbin, of which no length is told. CUDA_ERROR_INVALID_IMAGE
// or CUDA_ERROR_INVALID_PTX if it is none of these.
void read_image(const void* image, Module& module);

} // namespace gcx::sim
