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
    std::vector<uint32_t> seen; // SMs that its kernels ran on, ascending
};

// The SMs that the stream's kernels run on.
std::vector<uint32_t> probe(const Stream& stream);

// What gcx_verify found, and what the command compares itself.
struct Proof {
    std::size_t problem_count = 0; // may be more than there are lines
    std::vector<std::string> problems;
    uint32_t overlap_count = 0;
    std::vector<uint32_t> shared_by_all; // ascending
    bool virtual_sm_numbers = false;

    void add(std::string problem) {
        problems.push_back(std::move(problem));
        problem_count++;
    }
};

// Verifies all partitions and fills in what was seen of each. Compares as well the counts of the
// requests, of the split and of the streams, and their sum with the device.
Proof verify(const Layout& layout, const Split& made, std::vector<Partition>& partitions);

} // namespace gcx::cli
