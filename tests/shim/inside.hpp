// Programs inside a partition: each case is a process that opens libcuda.so.1 and gets the facade,
// the library that is tested and the simulated driver behind it.
#pragma once

#include "../api/support.hpp"

#include "interpose/exec_plan.hpp"

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace inside {

using Sms = std::array<uint64_t, 6>; // as in gcx_sim_run

struct Wish {
    std::string spec = "h100@13.0";
    std::vector<uint32_t> sms = {24}; // of each device in turn; 0: not named in the plan
    uint32_t split_flags = 0;         // GCX_SPLIT_
    gcx::interpose::ReportedCount reported_count = gcx::interpose::ReportedCount::kAuto;
    bool own_contexts = false;
    bool plan_in_facade = false; // as the auditor puts it there; else it is read when CUDA starts
};

// What gcx exec would say for the wish, and which SMs these are.
struct Inside {
    gcx::interpose::Plan plan;
    std::vector<Sms> sms; // of each device
};

// A case: with the plan in the environment, and libcuda.so.1 opened.
void run(const Wish& wish, const std::function<void(const Inside&)>& body);
// The same with something wrong in the plan.
void run_damaged(const Wish& wish, const std::function<void(gcx::interpose::Plan&)>& damage,
                 const std::function<void(const Inside&)>& body);

// On several drivers.
extern const std::vector<std::string> kDrivers;

// A function as a program finds it in libcuda.so.1; CU(cuMemAlloc) has cuda.h's newest variant.
void* symbol(const char* name);
template <class Function>
Function function(const char* name) {
    return reinterpret_cast<Function>(symbol(name));
}
#define CU(name) inside::function<decltype(&::name)>(SUPPORT_NAME(name))
#define CU_OK(name, ...) CHECK_EQ(CU(name)(__VA_ARGS__), CUDA_SUCCESS)

// A kernel to launch, in the current context's module.
CUfunction kernel();
CUresult launch(CUfunction function, CUstream stream);

// Notes what runs from now on, and what ran since: every kernel and fill on these SMs, and that
// there were so many.
void note_runs();
void check_runs(const Sms& sms, std::size_t least = 1);

// The standard error of what is done meanwhile.
std::string lines_of(const std::function<void()>& body);

} // namespace inside
