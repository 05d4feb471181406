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

    // Where a kernel notes its SMs: one of several places.
    static constexpr uint32_t kPlaces = 8;
    static constexpr uint32_t kMaxSms = 1024;

    enum class From { library, module };
    // A kernel that notes the SMs it runs on in a place, and takes so long.
    void probe(CUstream stream, From from, uint32_t place, uint32_t nanoseconds = 1000,
               bool cooperative = false, unsigned blocks = 1024) const;
    void spin(CUstream stream, uint64_t nanoseconds) const;
    void clear(CUstream stream, uint32_t place) const; // a memset
    void copy(CUstream stream, uint32_t from, uint32_t to) const;

    // The SMs noted in a place since the last time, and nothing any more.
    SmIds take_sms(uint32_t place) const;
    std::size_t count_sms(uint32_t place) const { return take_sms(place).size(); }

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

// What is submitted in between becomes a graph.
template <class Submit>
CUgraph capture(CUstream stream, Submit&& submit) {
    CUgraph graph = nullptr;
    CHECK_EQ(NATIVE(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    submit();
    CHECK_EQ(NATIVE(cuStreamEndCapture)(stream, &graph), CUDA_SUCCESS);
    return graph;
}

std::vector<gcx_graph_node> nodes_of(gcx_graph graph);
gcx_graph_info info_of(gcx_graph graph);

} // namespace support
