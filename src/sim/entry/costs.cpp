// The cost of each call on the simulated clock.
#include "sim/entry/entry.hpp"

#include <algorithm>
#include <iterator>

namespace gcx::sim {
namespace {

struct Cost {
    std::string_view function;
    uint64_t ns;
};

// Medians of the recorded logs of an H100 and an H200 with driver 580.159.04. The waiting of
// cuGreenCtxCreate and the duration of kernels are added where those are simulated.
constexpr Cost kCosts[] = {
    {"cuCtxCreate", 112'229'000},           // assumed: equal to the primary context's
    {"cuDevResourceGenerateDesc", 6'698},   // probe: gendesc
    {"cuDevSmResourceSplit", 1'876},        // assumed: equal to the split by count
    {"cuDevSmResourceSplitByCount", 1'876}, // probe: split(1,24); each group adds, see split.cpp
    {"cuDeviceGetDevResource", 539},        // probe
    {"cuEventRecord", 130},                 // sets-and-graphs: record and wait 0.26 us
    {"cuGraphKernelNodeSetParams", 130},    // sets-and-graphs: 0.13 us a node
    {"cuGreenCtxCreate", 1'450'000},        // probe: medians 1454.2, 1449.3, 1395.7 us
    {"cuGreenCtxDestroy", 15'000},          // probe: 13.8 to 15.5 us
    {"cuGreenCtxRecordEvent", 145},         // sets-and-graphs: record and wait 0.29 us
    {"cuGreenCtxStreamCreate", 4'600},      // probe: 3.7 to 5.7 us
    {"cuGreenCtxWaitEvent", 145},
    {"cuLaunchCooperativeKernel", 3'610},
    {"cuLaunchKernel", 3'610}, // probe: launch, plain stream
    {"cuLaunchKernelEx", 3'610},
    {"cuStreamCreate", 4'600},
    {"cuStreamCreateWithPriority", 4'600},
    {"cuStreamDestroy", 7'000},     // probe: 5.9 to 8.0 us
    {"cuStreamSynchronize", 5'900}, // probe: round trip 9.55 us less the launch
    {"cuStreamWaitEvent", 130},
};

// Any other call has a cost too, so that a program that polls ends.
constexpr uint64_t kAnyCall = 100;

} // namespace

uint64_t call_cost(std::string_view base) {
    const auto* const found = std::ranges::find(kCosts, base, &Cost::function);
    return found == std::end(kCosts) ? kAnyCall : found->ns;
}

} // namespace gcx::sim
