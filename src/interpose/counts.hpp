// How many SMs a program is told that a device has.
#pragma once

#include "driver/cuda_api.h"
#include "interpose/caller_identification.hpp"

namespace gcx::shim {

// The count for the calling thread; 0: what the driver says. Each library that is made of this
// folder has its own.
CUresult find_told_count(CUdevice device, Asker asker, int* count);

// Of the context that the thread has current, if that is one of this device; else 0.
int current_count(CUdevice device);

} // namespace gcx::shim
