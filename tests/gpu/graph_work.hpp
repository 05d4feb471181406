// A graph of every kind of node that is moved, whose kernels note the SMs they ran on and whose
// numbers come out wrong if one ran too early, twice or not at all.
#pragma once

#include "fixture.hpp"

#include <array>
#include <atomic>
#include <functional>

namespace graph_work {

using fixture::SmIds;

inline constexpr uint32_t kMaxSms = 1024;
inline constexpr uint32_t kNumbers = 1 << 16;

// Makes the primary context current while it lives.
class InPrimary {
  public:
    InPrimary();
    ~InPrimary();
    InPrimary(const InPrimary&) = delete;
    InPrimary& operator=(const InPrimary&) = delete;
};

// As in the kernel's PTX: each number becomes itself times factor plus more.
struct ScaleArguments {
    CUdeviceptr numbers;
    CUdeviceptr seen;
    uint32_t count;
    uint32_t factor;
    uint32_t more;
};

// The same kernels twice: named by CUkernel, as cudart, cuBLAS and cuLibrary have them, and by
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

// fill(seen, ns): blocks of 1024 threads that each last so long and note their SM.
CUresult launch_fill(CUfunction fill, CUstream stream, unsigned blocks, CUdeviceptr seen,
                     uint64_t nanoseconds);
CUresult launch_scale(CUfunction scale, CUstream stream, unsigned blocks,
                      const ScaleArguments& arguments);
// together(counter, seen): a cooperative launch whose blocks of so many threads wait for all.
CUresult launch_together(CUfunction together, CUstream stream, unsigned blocks, unsigned threads,
                         CUdeviceptr counter, CUdeviceptr seen);

CUgraphExec instantiate(CUgraph graph);

// The graph, captured once on streams of the primary context, and its buffers.
class Template {
  public:
    enum Noting : std::size_t { First, Left, Right, Joined, Child, Cluster, Together, Fill, Count };

    explicit Template(const Kernels& kernels);
    ~Template();
    Template(const Template&) = delete;
    Template& operator=(const Template&) = delete;

    // Captures it on such streams, the second for a branch. With 3 as the joining kernel's addend
    // unless told otherwise.
    CUgraph capture(CUstream origin, CUstream branch, uint32_t joined_more = 3);
    // The arguments of a scaling kernel: first, left, right, joined, child.
    ScaleArguments arguments(Noting node) const;

    void forget(); // what was noted and counted
    SmIds seen(Noting node) const;
    std::vector<SmIds> all_seen() const;
    uint32_t left() const { return number(left_numbers_); }   // 338
    uint32_t copied() const { return number(copy_); }         // 48
    uint32_t right() const { return number(right_numbers_); } // 17
    uint32_t cluster_size() const { return number(cluster_size_, 1); }
    int host_calls() const { return host_calls_.load(); }
    // All that a run of the graph leaves, if it ran once on these SMs.
    void check_run(const SmIds& sms, uint32_t left = 338, uint32_t copied = 48) const;

    CUgraph graph = nullptr;
    CUstream plain = nullptr;
    CUstream beside = nullptr;

    // Grids by which a node of the graph is known.
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
// The number of the kernel's node that has this name and grid, and what is told of it.
uint32_t number_of(gcx_graph graph, const std::string& name, uint32_t grid);
gcx_graph_node node_of(gcx_graph graph, const std::string& name, uint32_t grid);

} // namespace graph_work
