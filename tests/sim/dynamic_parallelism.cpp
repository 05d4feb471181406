// Modules with dynamic parallelism make all partitions share SMs, until the next machine. Which SMs
// they share is tested by tests/api/shared_sms_test.cpp.
#include "support.hpp"

#include <cstdlib>
#include <cstring>

using namespace sim_test;

namespace {

constexpr const char* kLaunchingPtx =
    ".version 8.0\n.target sm_90\n"
    ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, .param .b64 b);\n"
    ".visible .entry parent() { ret; }\n";

CUmodule load(const char* ptx = kLaunchingPtx) {
    CUmodule module = nullptr;
    CHECK_OK(cuModuleLoadData(&module, ptx));
    return module;
}

Partition partition(unsigned count) {
    return Partition({split(query(), 1, 0, count).groups[0]});
}

void module_without_device_launches_shares_nothing() {
    simulate("h200@13.0");
    Primary primary;
    load(".version 8.0\n.target sm_90\n// cudaLaunchDeviceV2\n.visible .entry plain() { ret; }\n");
    CHECK_EQ(primary.sms(partition(24).stream).size(), std::size_t{24});
}

void new_machine_shares_nothing() {
    simulate("h200@13.0");
    {
        Primary primary;
        const CUmodule module = load();
        CHECK_EQ(primary.sms(partition(24).stream).size(), std::size_t{26});
        CHECK_OK(cuModuleUnload(module));
        CHECK_EQ(primary.sms(partition(24).stream).size(), std::size_t{26});
    }
    simulate("h200@13.0");
    Primary primary;
    CHECK_EQ(primary.sms(partition(24).stream).size(), std::size_t{24});
}

void variable_shares_sms_from_start() {
    for (const char* value : {"1", "0", ""}) {
        CHECK_EQ(setenv("GCX_SIM_DYNAMIC_PARALLELISM", value, 1), 0);
        simulate("h100@12.4");
        Primary primary;
        CHECK_EQ(primary.sms(partition(24).stream).size(), std::size_t{*value == '1' ? 26U : 24U});
    }
    CHECK_EQ(setenv("GCX_SIM_DYNAMIC_PARALLELISM", "yes", 1), 0);
    CHECK_EQ(gcx_sim_configure("h100@13.0"), int{CUDA_ERROR_INVALID_VALUE});
    CHECK(std::strstr(gcx_sim_last_error(), "GCX_SIM_DYNAMIC_PARALLELISM=yes") != nullptr);
    CHECK_EQ(unsetenv("GCX_SIM_DYNAMIC_PARALLELISM"), 0);
}

// Recorded runs of kernels include the shared SMs, those of copies do not.
void recorded_kernels_include_shared_sms() {
    simulate("h200@13.0");
    Primary primary;
    load();
    const Partition part = partition(24);
    gcx_sim_note_runs(2);
    CHECK_OK(cuMemsetD32Async(primary.counts, 0, 1, part.stream));
    CHECK_OK(primary.spin(part.stream, 1000));
    CHECK_OK(cuStreamSynchronize(part.stream));
    gcx_sim_run runs[2] = {};
    CHECK_EQ(gcx_sim_get_runs(runs, 2), std::size_t{2});
    CHECK_EQ(runs[0].sm_count, 24U);
    CHECK_EQ(runs[1].sm_count, 26U);
    CHECK_EQ(runs[1].sms[124 / 64] >> (124 % 64) & 3, uint64_t{3});
    gcx_sim_note_runs(0);
}

} // namespace

int main() {
    module_without_device_launches_shares_nothing();
    new_machine_shares_nothing();
    variable_shares_sms_from_start();
    recorded_kernels_include_shared_sms();
    return check::summary("dynamic parallelism");
}
