// Tests the SMs that all partitions of a process share once a module with dynamic parallelism is
// loaded. The simulation behaves as measured on an H200.

#include "leases.hpp"
#include "publish.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <unistd.h>

namespace {

using namespace support;
using publish::note_warning;
using publish::warned;
using publish::warnings;

constexpr const char* kH200 = "h200@13.0";
const SmIds kShared = {124, 125};

// nvcc -rdc=true compiles a kernel that launches another like this.
constexpr const char* kLaunchingPtx = R"(
.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 func_retval0) cudaLaunchDeviceV2(.param .b64 a, .param .b64 b);
.visible .entry parent()
{ ret; }
)";

void load_module(const char* ptx = kLaunchingPtx, CUdevice device = 0) {
    CUcontext primary = nullptr;
    CUmodule module = nullptr;
    CHECK_NATIVE(cuDevicePrimaryCtxRetain, &primary, device);
    CHECK_NATIVE(cuCtxPushCurrent, primary);
    CHECK_NATIVE(cuModuleLoadData, &module, ptx);
    CHECK_NATIVE(cuCtxPopCurrent, nullptr);
}

SmIds shared_sms(int32_t device = 0) {
    SmIds ids(GCX_MAX_SMS);
    uint32_t count = 0;
    CHECK_OK(gcx_device_find_shared_sms(device, ids.data(), GCX_MAX_SMS, &count));
    ids.resize(count);
    return ids;
}

SmIds ids_of(const gcx_resource& resource) {
    SmIds ids(GCX_MAX_SMS);
    uint32_t count = 0;
    CHECK_OK(gcx_resource_get_sm_ids(&resource, ids.data(), GCX_MAX_SMS, &count));
    ids.resize(count);
    return ids;
}

SmIds with_shared(SmIds ids) {
    ids.insert(ids.end(), kShared.begin(), kShared.end());
    std::sort(ids.begin(), ids.end());
    return ids;
}

// The numbers are those of the measurement's table.
void partitions_after_the_module_see_shared_sms() {
    const gcx_resource whole = whole_device();
    const Partition a(split(whole, {24}).groups[0]);
    const Partition b(split(whole, {10}, GCX_SPLIT_IGNORE_SM_COSCHEDULING).groups[0]);
    const SmIds a_before = a.probe();
    const SmIds b_before = b.probe();
    CHECK_EQ(a_before.size(), 24U);
    CHECK_EQ(b_before.size(), 10U);
    load_module();
    CHECK(a.probe() == with_shared(a_before));
    CHECK(b.probe() == with_shared(b_before));
    CHECK_EQ(Partition(split(whole, {32}).groups[0]).probe().size(), 34U);
    // The remainder atom contains the shared SMs.
    CHECK_EQ(Partition(split(whole, {108, 24}).groups[0]).probe().size(), 108U);
}

void disjoint_probes_find_shared_sms() {
    const Split parts = split(whole_device(), {24, 16});
    const Partition a(parts.groups[0]);
    const Partition b(parts.groups[1]);
    load_module();
    a.probe();
    b.probe();
    const uint64_t contexts = sim::calls("cuGreenCtxCreate");
    CHECK(shared_sms() == kShared);
    CHECK_EQ(sim::calls("cuGreenCtxCreate"), contexts);
}

// A partition and a part of it have more in common than the shared SMs.
void nested_probes_find_no_shared_sms() {
    const Split outer = split(whole_device(), {24});
    const Partition a(outer.groups[0]);
    const Partition b(split(outer.groups[0], {8}).groups[0]);
    load_module();
    a.probe();
    b.probe();
    const uint64_t contexts = sim::calls("cuGreenCtxCreate");
    CHECK(shared_sms() == kShared);
    CHECK(sim::calls("cuGreenCtxCreate") > contexts);
}

void shared_sms_are_found_once_the_module_is_loaded() {
    CHECK_REFUSED(gcx_device_find_shared_sms(0, nullptr, 0, nullptr), GCX_ERROR_INVALID_VALUE);
    CHECK_EQ(sim::calls("cuGreenCtxCreate"), 0U);
    CHECK(shared_sms().empty());
    CHECK_EQ(sim::calls("cuGreenCtxCreate"), 2U);
    CHECK(shared_sms().empty()); // in the same contexts
    CHECK_EQ(sim::calls("cuGreenCtxCreate"), 2U);
    load_module();
    CHECK(shared_sms() == kShared);
    const uint64_t calls = sim::calls();
    CHECK(shared_sms() == kShared);
    CHECK(sim::calls() - calls <= 1); // whether MPS is on
    CHECK_EQ(sim::calls("cuGreenCtxCreate"), 2U);

    uint32_t count = 0;
    uint32_t one = 0;
    CHECK_REFUSED(gcx_device_find_shared_sms(0, &one, 1, &count), GCX_ERROR_INSUFFICIENT_CAPACITY);
    CHECK_EQ(count, 2U);
    CHECK_REFUSED(gcx_device_find_shared_sms(0, &one, 1, nullptr), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_device_find_shared_sms(1, &one, 1, &count), GCX_ERROR_INVALID_DEVICE);
}

void shared_sms_are_those_of_one_device() {
    on_machine("2xh200@13.0", [] {
        load_module(kLaunchingPtx, 1);
        CHECK(shared_sms(0).empty());
        CHECK(shared_sms(1) == kShared);
    });
}

// A library is loaded wherever it is used.
void shared_sms_of_a_library_are_found() {
    CUlibrary library = nullptr;
    CHECK_NATIVE(cuLibraryLoadData, &library, kLaunchingPtx, nullptr, nullptr, 0, nullptr, nullptr,
                 0);
    CHECK(shared_sms() == kShared);
}

void other_capabilities_have_no_shared_sms() {
    for (const char* machine : {"a100@13.0", "b200@13.0", "rtx4090@13.0"}) {
        on_machine(machine, [] {
            load_module();
            CHECK(shared_sms().empty());
            CHECK_EQ(sim::calls("cuGreenCtxCreate"), 0U);
            const Split parts =
                split(whole_device(), {16, GCX_REST}, GCX_SPLIT_EXCLUDE_SHARED); // all of it
            CHECK_EQ(Partition(parts.groups[0]).probe().size(), 16U);
            CHECK_EQ(sms(parts.groups[0]) + sms(parts.groups[1]), sms(whole_device()));
        });
    }
}

void shared_sms_under_mps_are_refused() {
    setenv("GCX_SIM_MPS", "1", 1);
    on_machine(kH200, [] {
        const Split parts = split(whole_device(), {24, 24});
        const Partition a(parts.groups[0]);
        const Partition b(parts.groups[1]);
        load_module();
        CHECK_EQ(a.probe().size(), 26U);
        CHECK_EQ(b.probe().size(), 26U); // the same virtual numbers
        uint32_t count = 0;
        const uint64_t contexts = sim::calls("cuGreenCtxCreate");
        CHECK_REFUSED(gcx_device_find_shared_sms(0, nullptr, 0, &count), GCX_ERROR_NOT_SUPPORTED);
        CHECK_REFUSED(gcx_device_map_sms(0, GCX_SM_FAMILY_FINE), GCX_ERROR_NOT_SUPPORTED);
        CHECK(message_has("shared through MPS"));
        CHECK_EQ(sim::calls("cuGreenCtxCreate"), contexts);
        CHECK_REFUSED(try_split(whole_device(), {8}, GCX_SPLIT_EXCLUDE_SHARED).result,
                      GCX_ERROR_SHARED_SMS_UNKNOWN);
    });
    unsetenv("GCX_SIM_MPS");
}

// Returns a fingerprint of which SMs the atoms of all families contain.
uint64_t fingerprint_of_maps() {
    uint64_t print = 1;
    for (const auto& [family, flags] :
         {std::pair(GCX_SM_FAMILY_COSCHEDULED, GCX_SPLIT_DEFAULT),
          std::pair(GCX_SM_FAMILY_FINE, GCX_SPLIT_IGNORE_SM_COSCHEDULING),
          std::pair(GCX_SM_FAMILY_MAX_CLUSTER, GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE)}) {
        CHECK_OK(gcx_device_map_sms(0, family));
        const gcx_resource whole = split(whole_device(), {GCX_REST}, flags).groups[0];
        for (uint32_t i = 0; i < info_of(whole).atom_count; i++) {
            gcx_resource atom = atom_of(whole, i);
            for (const uint32_t sm : ids_of(atom))
                print = print * 1'000'003 + sm * 1021 + i;
        }
    }
    return print;
}

// Returns a profile with the H200's numbers of SMs, and these two shared ones.
std::string profile_of(uint32_t first, uint32_t second) {
    return "gcx-profile 1\nname Invented\ncompute_capability 9.0\nsm_count 132\n"
           "memory_bytes 8589934592\nmax_cluster_size 16\ngpc_sizes 16 16 16 16 16 18 16 18\n"
           "dynamic_parallelism_sms " +
           std::to_string(first) + " " + std::to_string(second) + "\n";
}

uint64_t maps_on(const std::string& machine, bool loaded) {
    return answer_of_child([&] {
        CHECK_OK(gcx_driver_open(("sim:" + machine).c_str()));
        if (loaded)
            load_module();
        return fingerprint_of_maps();
    });
}

// In the map's code, each atom's number sees the shared SMs in other sets.
void maps_ignore_shared_sms() {
    for (uint32_t sm = 0; sm < 132; sm += check::slow ? 44 : 4) {
        const Profile profile(profile_of(sm, sm + 1));
        CHECK_EQ(maps_on(profile.path() + "@13.0", true), maps_on(profile.path() + "@13.0", false));
    }
    for (const char* machine : {"h100@13.0", "h200@12.4"})
        CHECK_EQ(maps_on(machine, true), maps_on(machine, false));
}

// No information says which of the two atoms contains which SM.
void map_of_shared_sms_in_two_atoms_is_refused() {
    const Profile profile(profile_of(0, 2));
    on_machine(profile.path() + "@13.0", [] {
        load_module();
        CHECK_REFUSED(gcx_device_map_sms(0, GCX_SM_FAMILY_FINE), GCX_ERROR_TIMEOUT);
    });
}

void split_that_excludes_shared_sms_leaves_out_their_atom() {
    on_machine(kH200, [] {
        const gcx_resource whole = whole_device();
        constexpr uint32_t kFlag = GCX_SPLIT_EXCLUDE_SHARED;
        constexpr uint32_t kFine = GCX_SPLIT_IGNORE_SM_COSCHEDULING;
        CHECK_REFUSED(try_split(whole, {8}, kFlag).result, GCX_ERROR_SHARED_SMS_UNKNOWN);
        CHECK(message_has("call gcx_device_find_shared_sms(0)"));
        load_module();
        CHECK(shared_sms() == kShared);
        CHECK_REFUSED(try_split(whole, {8}, kFlag).result, GCX_ERROR_SMS_NOT_MAPPED);
        CHECK(message_has("call gcx_device_map_sms(0, 1)"));
        CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
        CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_FINE));

        // 15 atoms of 8 remain, without the one of 12; 65 of 2.
        const Split all = split(whole, {24, GCX_REST}, kFlag);
        CHECK(sizes(all) == SmIds({24, 96, 0}));
        CHECK(sizes(split(whole, {10, GCX_REST}, kFlag | kFine)) == SmIds({10, 120, 0}));
        for (const gcx_resource& group : all.groups) {
            const SmIds ids = ids_of(group);
            CHECK(std::find(ids.begin(), ids.end(), 124U) == ids.end());
            CHECK(Partition(group).probe() ==
                  with_shared(ids)); // its kernels run there all the same
        }
        CHECK_REFUSED(try_split(whole, {121}, kFlag).result,
                      GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        CHECK(sizes(split(whole, {121})) == SmIds({124, 8}));

        // Leases are left out too, and a part of the device is split like the whole.
        gcx_lease lease = acquire(24);
        CHECK(sizes(split(whole, {GCX_REST}, kFlag | GCX_SPLIT_EXCLUDE_LEASED)) == SmIds({96, 0}));
        CHECK_OK(gcx_lease_release(lease));
        const gcx_resource part = split(whole, {24, GCX_REST}).groups[1];
        CHECK(sizes(split(part, {GCX_REST}, kFlag)) == SmIds({96, 0}));
        uint32_t planned = 0;
        uint32_t left = 0;
        const gcx_sm_request request = requests_for({100})[0];
        CHECK_OK(gcx_sm_split(&whole, &request, 1, kFlag, nullptr, nullptr, &planned, &left));
        CHECK_EQ(planned, 104U);
        CHECK_EQ(left, 16U);
    });
    on_machine("h200@13.5", [] {
        const gcx_resource whole = whole_device();
        gcx_sm_request request = requests_for({24})[0];
        request.coscheduled_sm_count = 8;
        gcx_resource group{};
        CHECK_REFUSED(gcx_sm_split(&whole, &request, 1, GCX_SPLIT_EXCLUDE_SHARED, &group, nullptr,
                                   nullptr, nullptr),
                      GCX_ERROR_INVALID_VALUE);
    });
}

void probe_that_sees_shared_sms_warns() {
    CHECK_OK(gcx_log_set_callback(GCX_LOG_WARNING, note_warning, nullptr));
    const Split parts = split(whole_device(), {24, 16});
    const Partition a(parts.groups[0]);
    const Partition b(parts.groups[1]);
    a.probe();
    CHECK(warnings.empty());
    load_module();
    a.probe();
    CHECK(warned("24 SMs of device 0 were seen on 26"));
    b.probe();
    CHECK(warned("SMs 124 and 125 are shared by all partitions of this process on device 0"));
    const std::size_t before = warnings.size();
    a.probe();
    CHECK_EQ(warnings.size(), before); // logged once
    CHECK_OK(gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr));
}

} // namespace

int main() {
    for (const auto test :
         {partitions_after_the_module_see_shared_sms, disjoint_probes_find_shared_sms,
          nested_probes_find_no_shared_sms, shared_sms_are_found_once_the_module_is_loaded,
          shared_sms_of_a_library_are_found, probe_that_sees_shared_sms_warns})
        on_machine(kH200, test);
    shared_sms_are_those_of_one_device();
    other_capabilities_have_no_shared_sms();
    shared_sms_under_mps_are_refused();
    maps_ignore_shared_sms();
    map_of_shared_sms_in_two_atoms_is_refused();
    split_that_excludes_shared_sms_leaves_out_their_atom();
    return support::summary("shared_sms");
}
