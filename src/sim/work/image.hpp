// Images of device code: their kernels, and whether these launch kernels.
#pragma once

#include "sim/machine.hpp"

#include <string_view>

namespace gcx::sim {

// Reads PTX text, a cubin or a fatbin, whose length is unknown. Fails with CUDA_ERROR_INVALID_IMAGE
// or CUDA_ERROR_INVALID_PTX.
void read_image(const void* image, Module& module);

} // namespace gcx::sim
