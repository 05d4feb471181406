// Shared by the tests of the simulated driver, which call it like any program calls libcuda.
#pragma once

#include "check.hpp"
#include "driver/cuda_api.h"
#include "gcx_sim.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sim_test {

namespace cu = gcx::cu;

// Functions that the oldest header does not declare.
struct LaterFunctions {
    cu::GreenCtxStreamCreateFn green_stream_create;
    cu::GreenCtxGetIdFn green_get_id;
    cu::DevSmResourceSplitFn split;
    cu::StreamGetDevResourceFn stream_get_dev_resource;
};
const LaterFunctions& later();

extern const char* const kPtx; // the kernels with an effect, gcx_spin and nothing_known(int)

struct NamedTest {
    const char* name;
    std::function<void()> body;
};
// Runs a test and prints its name and the machine if it fails.
void run(const NamedTest& test, const char* machine);

std::string name_of(CUresult result);
std::string join(const std::vector<unsigned>& sms);   // "0 1 16"
std::string ranges(const std::vector<unsigned>& sms); // "0-1 16-17"
uint64_t clock_ns();
gcx_sim_counts counts_now();
int driver_version();
CUstream new_stream(); // non-blocking
CUevent new_event();   // without timing
CUgraph new_graph();
// Replaces the machine and initialises its driver.
void simulate(const std::string& spec);

// Converts a host pointer for functions that accept any pointer.
CUdeviceptr to_device(const void* pointer);

CUdevResource query(CUdevice device = 0);
unsigned sm_count(const CUdevResource& resource);
cu::SmFields fields(const CUdevResource& resource);
int type_of(const CUdevResource& resource);

struct Split {
    CUresult result = CUDA_SUCCESS;
    unsigned count = 0; // nbGroups after the call
    std::vector<CUdevResource> groups;
    CUdevResource remainder{};
};
Split split(const CUdevResource& input, unsigned groups, unsigned flags, unsigned min_count);

CUdevResourceDesc describe(std::vector<CUdevResource> resources, CUresult* result = nullptr);
CUresult described(std::vector<CUdevResource> resources); // the result of describe()

// A green context with a stream. The destructor destroys what still exists.
struct Partition {
    Partition() = default;
    explicit Partition(std::vector<CUdevResource> resources);
    Partition(const Partition&) = delete;
    Partition& operator=(const Partition&) = delete;
    Partition(Partition&& other) noexcept;
    Partition& operator=(Partition&&) = delete;
    ~Partition();
    void destroy_stream();
    CUresult destroy_context();

    CUresult result = CUDA_SUCCESS;
    CUgreenCtx green = nullptr;
    CUcontext context = nullptr;
    CUstream stream = nullptr;
};

// Retains the primary context of a device, makes it current, and loads the kernels.
struct Primary {
    explicit Primary(CUdevice device = 0);
    Primary(const Primary&) = delete;
    Primary& operator=(const Primary&) = delete;
    ~Primary();
    // Returns the SMs that a kernel on the stream runs on.
    std::vector<unsigned> sms(CUstream stream);
    CUresult spin(CUstream stream, uint64_t nanoseconds);
    CUresult store(CUstream stream, CUdeviceptr to, uint32_t value, uint64_t after_ns = 0);
    CUresult load(CUstream stream, CUdeviceptr to, CUdeviceptr from);
    CUresult add(CUstream stream, CUdeviceptr to, uint32_t value); // to = 3 * to + value
    CUresult launch_cluster(CUstream stream, unsigned cluster);
    int max_cluster(CUstream stream, bool non_portable, unsigned threads);
    int active_clusters(CUstream stream, unsigned cluster, unsigned threads);

    CUdevice device = 0;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction probe = nullptr;
    CUfunction spinner = nullptr;
    CUfunction unknown = nullptr;
    CUfunction storer = nullptr;
    CUfunction loader = nullptr;
    CUfunction adder = nullptr;
    CUdeviceptr counts = 0;
    static constexpr unsigned kMaxSms = 256;
};

} // namespace sim_test
