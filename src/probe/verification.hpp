// What probes of several streams show: does each run on the SMs that it was promised, and on nobody
// else's?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gcx {

struct ProbedStream {
    uint32_t promised = 0;
    std::vector<uint32_t> seen; // ascending
    bool of_shared_lease = false;
};

struct Verification {
    std::vector<uint32_t> overlap; // SMs that were seen in more than one stream, ascending
    std::vector<uint8_t> fine;     // of each stream: it is in none of the problems
    std::vector<std::string> problems;
};

// Compares what was seen with what was promised. Streams are called A, B, ... in the problems.
// virtual_numbers: under MPS numbers are each context's own, so that they tell counts alone.
// shared_by_all: SMs that dynamic parallelism makes all partitions share, ascending; may_be_so: the
// device is one where it does that.
Verification verify(const std::vector<ProbedStream>& streams, bool virtual_numbers,
                    const std::vector<uint32_t>& shared_by_all, bool may_be_so);

} // namespace gcx
