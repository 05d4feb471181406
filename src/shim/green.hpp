// Green contexts of the program's own: they nest, since they are made of the partition's SMs.
#pragma once

namespace gcx::shim {

// Whether the program has any, on whatever device.
bool program_has_green_contexts();

} // namespace gcx::shim
