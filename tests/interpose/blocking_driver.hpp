// A library in front of the simulated driver whose calls can block, as those of a driver do while a
// stream is full or while the host waits for the device.
#pragma once

#include <cuda.h>

namespace blocking_driver {

// The types of the exported functions.
// Blocks launches into this stream and records of an event in it.
using FillFunction = void(CUstream stream);
// Blocks all synchronous copies from the device, and cuStreamSynchronize.
using BlockWaitsFunction = void();
// Waits until so many calls are blocked. Returns false after 5 s.
using AwaitFunction = bool(int calls);
// Lets all blocked calls continue. From then on none blocks.
using OpenFunction = void();

inline constexpr char kFill[] = "blocking_driver_fill";
inline constexpr char kBlockWaits[] = "blocking_driver_block_waits";
inline constexpr char kAwait[] = "blocking_driver_await";
inline constexpr char kOpen[] = "blocking_driver_open";

} // namespace blocking_driver
