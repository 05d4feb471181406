// How much of a kernel fits a stream's SMs at once.
#pragma once

#include "core/objects.hpp"

namespace gcx {

// Fills in all but the struct_size.
void get_kernel_fit(const Device& device, Stream& stream, CUfunction function,
                    const gcx_kernel_fit_params& params, gcx_kernel_fit& fit);

} // namespace gcx
