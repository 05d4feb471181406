// Checks the probes of several streams: each stream runs on as many SMs as it was promised, and on
// none of another stream.
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
    std::vector<uint8_t> fine;     // for each stream: 1 if no problem concerns it
    std::vector<std::string> problems;
};

// Compares what was seen with what was promised. The problems call the streams A, B, ...
//   virtual_numbers  under MPS each context numbers its SMs, so only counts are compared
//   shared_by_all    SMs that all partitions share because of dynamic parallelism, ascending
//   may_share        the device is one on which dynamic parallelism does that
Verification verify(const std::vector<ProbedStream>& streams, bool virtual_numbers,
                    const std::vector<uint32_t>& shared_by_all, bool may_share);

} // namespace gcx
