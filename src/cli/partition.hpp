// The partitions that split and verify make, and what ran on them.
#pragma once

#include "cli/checked.hpp"
#include "cli/layout.hpp"

#include <cstdint>
#include <map>
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

// The SMs that dynamic parallelism makes all partitions of the process share, as far as that shows:
// empty unless a partition's kernels were seen on more SMs than it has.
std::vector<uint32_t> shared_by_all(const Layout& layout, const Split& made,
                                    const std::vector<Partition>& partitions);

// What isn't as the split promised: counts, of the request, the context, the stream and the SMs
// seen; SMs seen in two partitions, where their numbers aren't virtual; the sum. SMs that all share
// are one problem, and no others. Empty: all holds.
std::vector<std::string> find_problems(const Layout& layout, const Split& made,
                                       const std::vector<Partition>& partitions,
                                       const std::vector<uint32_t>& shared);

// The SMs that several partitions were seen on, ascending, with those partitions' names.
std::map<uint32_t, std::string> shared_sms(const std::vector<Partition>& partitions);

} // namespace gcx::cli
