// The kernels of the driver checks and of random programs.
#pragma once

namespace conformance {

// PTX for every GPU, with a variable gcx_variable whose first value is 7. The simulated driver knows the kernels by their names and runs no code.
extern const char kKernels[];

} // namespace conformance
