// The rows of gcx-gpu-isolation: what another thread does next to a partition's small kernel.
#pragma once

#include "raw.hpp"

#include <gcx.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace isolation {

// Where the other thread works: partition A, or, without partitions, the primary context.
struct Neighbour {
    bool partitions = false;
    CUcontext context = nullptr; // current in its thread
    gcx_context gcx = nullptr;   // the same, of A; null without partitions
    unsigned sms = 0;
    std::vector<CUstream> streams;
    CUdeviceptr from = 0; // kBytes each
    CUdeviceptr to = 0;
    char* pageable = nullptr; // kHostBytes each
    char* pinned = nullptr;
    const char* program = nullptr; // this one, to be started as another process

    static constexpr std::size_t kBytes = std::size_t{256} << 20; // more than the L2 cache holds
    static constexpr std::size_t kHostBytes = std::size_t{32} << 20;
    CUstream stream() const { return streams.front(); }
};

// Done again and again. False: there is nothing more to do.
using Body = std::function<bool()>;

// What is known of a row, by docs/measurements/log.md or since gcx says so.
enum class Known { no, holds, costs, breaks };

struct Row {
    const char* name;
    Known known;
    unsigned connections; // CUDA_DEVICE_MAX_CONNECTIONS; 0: not set
    bool reads; // the small kernel reads 4 MiB that the L2 cache could hold, else it spins
    std::function<Body(Neighbour&)> prepare; // what must be there before the first time
};

const std::vector<Row>& rows();

// Ends the process with the call's name if it failed.
void need(CUresult result, const char* call);
void need(gcx_result result, const char* call);

} // namespace isolation
