// Modules with dynamic parallelism make all partitions share SMs. The values were measured on an
// H200 with driver 580.159.04 (CUDA 13.0), see docs/measurements/log.md.
#include "support.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace sim_test;

namespace {

using Sms = std::vector<unsigned>;
const Sms kShared = {124, 125};

constexpr const char* kLaunchingPtx =
    ".version 8.0\n.target sm_90\n"
    ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, .param .b64 b);\n"
    ".visible .entry parent() { ret; }\n";

CUmodule load(const char* ptx = kLaunchingPtx) {
    CUmodule module = nullptr;
    CHECK_OK(cuModuleLoadData(&module, ptx));
    return module;
}

Partition partition(unsigned count, unsigned flags = 0) {
    return Partition({split(query(), 1, flags, count).groups[0]});
}

Sms with_shared(Sms sms) {
    sms.insert(sms.end(), kShared.begin(), kShared.end());
    std::sort(sms.begin(), sms.end());
    return sms;
}

void partitions_before_and_after_module_share_sms() {
    simulate("h200@13.0");
    Primary primary;
    const Partition before = partition(24);
    const Partition fine = partition(10, 1);
    const Sms own = primary.sms(before.stream);
    const Sms fine_own = primary.sms(fine.stream);
    CHECK_EQ(own.size(), std::size_t{24});
    CHECK_EQ(fine_own.size(), std::size_t{10});
    const CUmodule module = load();
    CHECK(primary.sms(before.stream) == with_shared(own));
    CHECK(primary.sms(fine.stream) == with_shared(fine_own));
    CHECK_EQ(primary.sms(partition(32).stream).size(), std::size_t{34});
    CHECK_EQ(primary.sms(nullptr).size(), std::size_t{132});
    // The remainder atom holds them.
    const Split all = split(query(), 15, 0, 8);
    CHECK_EQ(primary.sms(Partition({all.remainder}).stream).size(), std::size_t{12});
    CHECK_OK(cuModuleUnload(module));
    CHECK(primary.sms(before.stream) == with_shared(own));
}

void module_without_device_launches_shares_nothing() {
    simulate("h200@13.0");
    Primary primary;
    load(".version 8.0\n.target sm_90\n// cudaLaunchDeviceV2\n.visible .entry plain() { ret; }\n");
    CHECK_EQ(primary.sms(partition(24).stream).size(), std::size_t{24});
}

void library_shares_sms() {
    simulate("h200@13.0");
    CUlibrary library = nullptr;
    CHECK_OK(cuLibraryLoadData(&library, kLaunchingPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    Primary primary;
    CHECK_EQ(primary.sms(partition(24).stream).size(), std::size_t{26});
}

void module_shares_sms_only_on_its_device() {
    simulate("2xh200@13.0");
    const Primary other(1);
    load();
    Primary primary(0);
    CHECK_EQ(primary.sms(partition(24).stream).size(), std::size_t{24});
}

void other_capabilities_share_nothing() {
    for (const char* machine : {"a100@13.0", "b200@13.0", "l40s@13.0"}) {
        simulate(machine);
        Primary primary;
        load();
        CHECK_EQ(primary.sms(partition(24).stream).size(), std::size_t{24});
    }
}

void new_machine_shares_nothing() {
    simulate("h200@13.0");
    {
        Primary primary;
        load();
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
    partitions_before_and_after_module_share_sms();
    module_without_device_launches_shares_nothing();
    library_shares_sms();
    module_shares_sms_only_on_its_device();
    other_capabilities_share_nothing();
    new_machine_shares_nothing();
    variable_shares_sms_from_start();
    recorded_kernels_include_shared_sms();
    return check::summary("dynamic parallelism");
}
