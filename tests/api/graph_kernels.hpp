// Kernels for graphs of the simulated driver, which note the SMs that they run on.
#pragma once

#include "support.hpp"

namespace support {

class GraphKernels {
  public:
    GraphKernels();
    ~GraphKernels();
    GraphKernels(const GraphKernels&) = delete;
    GraphKernels& operator=(const GraphKernels&) = delete;

    // A kernel notes its SMs in one of several places.
    static constexpr uint32_t kPlaces = 8;
    static constexpr uint32_t kMaxSms = 1024;

    enum class From { library, module };
    // Launches a kernel that notes its SMs in a place and lasts this long.
    void probe(CUstream stream, From from, uint32_t place, uint32_t nanoseconds = 1000,
               bool cooperative = false, unsigned blocks = 1024) const;
    void spin(CUstream stream, uint64_t nanoseconds) const;
    void clear(CUstream stream, uint32_t place) const; // a memset
    void copy(CUstream stream, uint32_t from, uint32_t to) const;

    // Returns the SMs noted in a place since the last call, and clears the place.
    SmIds take_sms(uint32_t place) const;
    std::size_t count_sms(uint32_t place) const { return take_sms(place).size(); }
    // Changes a kernel of a graph that notes its SMs, so that it notes them in another place.
    gcx_result redirect(gcx_graph graph, uint32_t node, uint32_t place,
                        uint32_t blocks = 1024) const;

    CUcontext primary = nullptr;
    CUstream plain = nullptr; // of the primary context
    CUfunction library_probe = nullptr;
    CUfunction module_probe = nullptr;

    CUdeviceptr at(uint32_t place) const { return counts_ + uint64_t{place} * kMaxSms * 4; }

  private:
    CUlibrary library_ = nullptr;
    CUmodule module_ = nullptr;
    CUfunction spinner_ = nullptr;
    CUdeviceptr counts_ = 0;
};

// Captures a kernel in each of two streams, which note their SMs in the places 0 and 1. The second
// stream forks from the first and joins it, as PyTorch does it.
CUgraph capture_fork(const GraphKernels& kernels, CUstream one, CUstream two,
                     GraphKernels::From from = GraphKernels::From::library);

// Makes a graph of a capture, which it destroys.
gcx_graph graph_of(CUgraph captured, const gcx_graph_params* params = nullptr);
std::vector<gcx_graph_node> nodes_of(gcx_graph graph);
gcx_graph_info info_of(gcx_graph graph);

} // namespace support
