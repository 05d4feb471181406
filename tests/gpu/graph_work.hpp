// Captures a graph of every kind of node that can be moved. Its kernels note the SMs they ran on,
// and its numbers are wrong if one ran too early, twice or not at all.
#pragma once

#include "fixture.hpp"

#include <array>
#include <atomic>
#include <functional>

namespace graph_work {

using fixture::SmIds;

inline constexpr uint32_t kMaxSms = 1024;
inline constexpr uint32_t kNumbers = 1 << 16;

// The kernel's PTX has the same: each number becomes itself times factor plus more.
struct ScaleArguments {
    CUdeviceptr numbers;
    CUdeviceptr seen;
    uint32_t count;
    uint32_t factor;
    uint32_t more;
};

// Has the same kernels twice: as CUkernel, as cudart, cuBLAS and cuLibrary have them, and of a
// module, as Triton has them.
struct Kernels {
    Kernels();
    ~Kernels();
    Kernels(const Kernels&) = delete;
    Kernels& operator=(const Kernels&) = delete;

    CUlibrary library = nullptr;
    CUmodule module = nullptr;
    CUfunction scale = nullptr; // of the library
    CUfunction fill = nullptr;
    CUfunction together = nullptr;
    CUfunction clusters = nullptr;
    CUfunction module_scale = nullptr;
    CUfunction module_fill = nullptr;
};

// Launches fill(seen, ns): blocks of 1024 threads that each last so long and note their SM.
CUresult launch_fill(CUfunction fill, CUstream stream, unsigned blocks, CUdeviceptr seen,
                     uint64_t nanoseconds);
CUresult launch_scale(CUfunction scale, CUstream stream, unsigned blocks,
                      const ScaleArguments& arguments);
// Launches together(counter, seen): a cooperative grid of blocks of this size that wait for each
// other.
CUresult launch_together(CUfunction together, CUstream stream, unsigned blocks, unsigned threads,
                         CUdeviceptr counter, CUdeviceptr seen);

CUgraphExec instantiate(CUgraph graph);

// Has the graph, captured once on streams of the primary context, and its buffers.
class Template {
  public:
    enum Noting : std::size_t { First, Left, Right, Joined, Child, Cluster, Together, Fill, Count };

    explicit Template(const Kernels& kernels);
    ~Template();
    Template(const Template&) = delete;
    Template& operator=(const Template&) = delete;

    // Captures the graph on these streams, the second for a branch. The joining kernel adds 3 by
    // default.
    CUgraph capture(CUstream origin, CUstream branch, uint32_t joined_more = 3);
    // Has the arguments of a scaling kernel: first, left, right, joined, child.
    ScaleArguments arguments(Noting node) const;

    void forget(); // clears notes and counts
    SmIds seen(Noting node) const;
    std::vector<SmIds> all_seen() const;
    uint32_t left() const { return number(left_numbers_); }   // 338
    uint32_t copied() const { return number(copy_); }         // 48
    uint32_t right() const { return number(right_numbers_); } // 17
    uint32_t cluster_size() const { return number(cluster_size_, 1); }
    int host_calls() const { return host_calls_.load(); }
    // Checks the results of one run of the graph on these SMs.
    void check_run(const SmIds& sms, uint32_t left = 338, uint32_t copied = 48) const;

    CUgraph graph = nullptr;
    CUstream plain = nullptr;
    CUstream second = nullptr;

    // Grids identify the nodes of the graph.
    static constexpr std::array<uint32_t, 5> kScaleGrids = {3, 5, 7, 9, 11};

  private:
    uint32_t number(CUdeviceptr numbers, uint32_t count = kNumbers) const;
    CUdeviceptr seen_at(Noting node) const { return seen_ + uint64_t{node} * kMaxSms * 4; }

    const Kernels& kernels_;
    CUevent fork_ = nullptr;
    CUevent join_ = nullptr;
    CUdeviceptr left_numbers_ = 0;
    CUdeviceptr right_numbers_ = 0;
    CUdeviceptr copy_ = 0;
    CUdeviceptr seen_ = 0;
    CUdeviceptr counter_ = 0;
    CUdeviceptr cluster_size_ = 0;
    std::atomic<int> host_calls_{0};
};

std::vector<gcx_graph_node> nodes_of(gcx_graph graph);
// Returns the number and description of the kernel node that has this name and grid.
uint32_t number_of(gcx_graph graph, const std::string& name, uint32_t grid);
gcx_graph_node node_of(gcx_graph graph, const std::string& name, uint32_t grid);

} // namespace graph_work
