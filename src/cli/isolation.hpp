// What a kernel in one partition waits for while streams of the other wait.
#pragma once

#include "cli/neighbour.hpp"

#include <gcx.h>

#include <array>
#include <cstdint>
#include <vector>

namespace gcx::cli {

inline constexpr std::array<uint32_t, 7> kWaitingStreams = {1, 4, 7, 8, 16, 32, 64};
inline constexpr std::array kReservationers = {
    "8 streams, a small kernel runs in each",
    "8 streams, a kernel that fills A in each",
    "8 streams, one more kernel behind the running one",
    "8 streams wait for an event of a running kernel",
    "a graph of 15 branches of 4 kernels that fill A",
    "a graph of 15 branches of 4 small kernels, again",
    "a linear graph of 60 kernels",
    "8 streams, a linear graph of 8 kernels in each",
    "8 streams full of kernels; a copy of 1 MiB on B",
};

// Beside calls of another thread.
struct NeighbourTimes {
    double p50_us = 0;
    double p99_us = 0;
    double max_us = 0;
    uint32_t launches = 0; // that were timed
    uint32_t calls = 0;    // that the other thread made meanwhile
};

// Microseconds, medians, of a process with so many connections. Goes through a pipe as bytes.
struct IsolationTable {
    uint32_t connections = 0;
    uint32_t own_workqueues = 0; // 1: each partition has workqueues of its own
    uint32_t a_sms = 0;
    uint32_t b_sms = 0;
    double alone_us = 0;
    std::array<double, kWaitingStreams.size()> by_streams_us{};
    std::array<double, kReservationers.size()> by_holder_us{};
    std::array<NeighbourTimes, kNeighbours> by_neighbour{}; // if neighbours
    uint32_t neighbours = 0;                                // 1: measured
};

// In this process, with the connections that it started with: one table, beside neighbours if so;
// and one with workqueues of their own, where the driver has them.
std::vector<IsolationTable> measure_isolation(const gcx_driver_info& driver, int32_t device,
                                              uint32_t rounds, bool neighbours);

} // namespace gcx::cli
