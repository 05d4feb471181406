// The partitions that split and verify make, and what ran on them.
#pragma once

#include "cli/checked.hpp"
#include "cli/layout.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gcx::cli {

struct Partition {
    Context context;
    Stream stream;
    std::vector<uint32_t> seen; // SMs that the probe saw, ascending
};

// The SMs that the stream's kernels run on.
std::vector<uint32_t> probe(const Stream& stream);

// What isn't as the split promised: counts, of the request, the context, the stream and the SMs
// seen; SMs seen in two partitions; the sum. Empty: all holds.
std::vector<std::string> find_problems(const Layout& layout, const Split& made,
                                       const std::vector<Partition>& partitions);

// How many SMs were seen in more than one partition.
uint32_t overlap_of(const std::vector<Partition>& partitions);

} // namespace gcx::cli
