// The requests of a structured split as a few bytes: what its resources carry, so that the split
// can be made again from any of them and nothing needs to be kept for them.
#pragma once

#include "driver/cuda_api.h"

#include <span>
#include <string>
#include <vector>

namespace gcx {

// Equal requests give equal bytes: equal ones in a row are counted, and a field that is 0 takes
// none. A group of usual size takes 4 or 5 bytes.
std::string pack_requests(std::span<const cu::SmGroupParams> requests);

// Of what pack_requests gave.
std::vector<cu::SmGroupParams> unpack_requests(const std::string& packed);

} // namespace gcx
