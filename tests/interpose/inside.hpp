// Programs inside a partition. Each case is a process that opens libcuda.so.1 and gets the stub
// library, with libgcx-shim and the simulated driver.
#pragma once

#include "../api/support.hpp"

#include "interpose/exec_plan.hpp"

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace inside {

using Sms = std::array<uint64_t, 6>; // as in gcx_sim_run

struct Setup {
    std::string spec = "h100@13.0";
    std::vector<uint32_t> sms = {24}; // per device, 0 for a device that the plan does not name
    uint32_t split_flags = 0;         // GCX_SPLIT_
    gcx::interpose::ReportedCount reported_count = gcx::interpose::ReportedCount::kAuto;
    bool own_contexts = false;
    bool plan_in_stub = false; // as with the audit library, otherwise in the environment
};

// The plan of gcx exec for a setup, and the SMs that it means.
struct Inside {
    gcx::interpose::Plan plan;
    std::vector<Sms> sms; // per device
};

// Runs a case with the plan in the environment and libcuda.so.1 loaded.
void run(const Setup& setup, const std::function<void(const Inside&)>& body);
// Runs a case with a wrong plan.
void run_damaged(const Setup& setup, const std::function<void(gcx::interpose::Plan&)>& damage,
                 const std::function<void(const Inside&)>& body);

// Driver versions to run cases on.
extern const std::vector<std::string> kDrivers;
// Runs a case in a partition of 24 SMs of an H100, on each of them.
void run_on_every_driver(const std::function<void(const Inside&)>& body);

// A function of libcuda.so.1 as a program finds it. CU(cuMemAlloc) is cuda.h's newest variant.
void* symbol(const char* name);
template <class Function>
Function function(const char* name) {
    return reinterpret_cast<Function>(symbol(name));
}
#define CU(name) inside::function<decltype(&::name)>(SUPPORT_NAME(name))
#define CU_OK(name, ...) CHECK_EQ(CU(name)(__VA_ARGS__), CUDA_SUCCESS)

// Retains the primary context of a device.
CUcontext retain(CUdevice device = 0);
// Initializes the driver, and makes the primary context of device 0 current.
CUcontext use_primary();

// A module with an empty kernel, "work".
extern const char* const kPtx;
// Loads the module into the current context and returns its kernel.
CUfunction kernel();
CUresult launch(CUfunction function, CUstream stream);

// Checks that all kernels and fills that the body runs are on these SMs, and that there are at
// least so many.
void check_runs(const Sms& sms, std::size_t min, const std::function<void()>& body);

// A kernel that lasts 50 ms of the simulated clock, and its launch.
CUfunction spinner();
void spin(CUfunction function, CUstream stream);

// Runs the body in a fork, for 20 s at most, and returns its exit status, or 128 and the signal.
int status_of_child(const std::function<int()>& body);

// Returns what the body prints on standard error.
std::string lines_of(const std::function<void()>& body);

} // namespace inside
