// Tests splits on a real GPU: the probe sees what was promised.

#include "fixture.hpp"
#include "tests.hpp"

#include <cstdio>

using namespace fixture;

namespace {

// Makes all groups at once, probes each, and checks counts and disjointness.
std::vector<SmIds> check_seen(const std::vector<gcx_resource>& groups) {
    std::vector<std::unique_ptr<Partition>> partitions;
    for (const gcx_resource& group : groups)
        partitions.push_back(std::make_unique<Partition>(group));
    std::vector<SmIds> seen;
    for (std::size_t i = 0; i < groups.size(); i++) {
        seen.push_back(partitions[i]->probe());
        CHECK_EQ(seen.back().size(), sm_count(groups[i]));
        CHECK(seen.back() == mapped_sms(groups[i]));
    }
    CHECK(disjoint(seen));
    return seen;
}

void check_split(const std::vector<uint32_t>& requested, const std::vector<uint32_t>& expected,
                 uint32_t remainder, uint32_t flags = GCX_SPLIT_DEFAULT) {
    const Split result = split(whole_device(), requested, flags);
    for (std::size_t i = 0; i < expected.size(); i++)
        CHECK_EQ(sm_count(result.groups[i]), expected[i]);
    CHECK_EQ(sm_count(result.remainder), remainder);
    std::vector<gcx_resource> all = result.groups;
    if (remainder != 0)
        all.push_back(result.remainder);
    const std::vector<SmIds> seen = check_seen(all);
    for (std::size_t i = 0; i < seen.size(); i++)
        std::printf("  %3zu SMs: %s\n", seen[i].size(), ranges(seen[i]).c_str());
}

void map_families() {
    for (const auto family :
         {GCX_SM_FAMILY_COSCHEDULED, GCX_SM_FAMILY_FINE, GCX_SM_FAMILY_MAX_CLUSTER})
        CHECK_OK(gcx_device_map_sms(0, family));
    gcx_device_info info = GCX_DEVICE_INFO_INIT;
    CHECK_OK(gcx_device_get_info(0, &info));
    std::printf("  %s: %u SMs, minimum %u, alignment %u\n", info.name, info.sm_count,
                info.min_partition_size, info.coscheduled_alignment);
    CHECK_EQ(mapped_sms(whole_device()).size(), info.sm_count);
    const gcx_resource device = whole_device();
    for (uint32_t i = 0; i < atom_count(device); i++)
        std::printf("  coscheduled atom %2u: %s\n", i,
                    ranges(mapped_sms(atom_of(device, i))).c_str());
}

// Checks each set that runs from one atom to the last: it is what a direct split leaves, and the
// probe sees just these atoms.
void suffixes_are_their_atoms(uint32_t flags) {
    gcx_resource rest = split(whole_device(), {GCX_REST}, flags).groups[0];
    while (atom_count(rest) > 1) {
        const gcx_resource first = atom_of(rest, 0);
        CHECK_OK(gcx_resource_subtract(&rest, &first, &rest));
        const Partition partition(rest);
        CHECK(partition.probe() == mapped_sms(rest));
    }
}

void resplits() {
    const Split halves = split(whole_device(), {64, GCX_REST});
    const Split first = split(halves.groups[0], {24, 8});
    const Split second = split(halves.groups[1], {20, 16});
    CHECK_EQ(sm_count(first.remainder), 32U);
    CHECK_EQ(sm_count(second.groups[0]), 20U); // the remainder atom makes it exact
    check_seen({first.groups[0], first.groups[1], first.remainder, second.groups[0],
                second.groups[1], second.remainder});
}

void scattered_unions() {
    const gcx_resource device = whole_device();
    gcx_resource some = atom_of(device, 1);
    for (const uint32_t index : {4U, 9U, 15U}) { // 15 is the remainder atom
        const gcx_resource atom = atom_of(device, index);
        CHECK_OK(gcx_resource_union(&some, &atom, &some));
    }
    gcx_resource others{};
    CHECK_OK(gcx_resource_subtract(&device, &some, &others));
    CHECK_EQ(sm_count(some), 36U);
    check_seen({some, others});
}

void across_families() {
    const Split coarse = split(whole_device(), {24});
    const Split fine = split(whole_device(), {10, 122}, GCX_SPLIT_IGNORE_SM_COSCHEDULING);
    uint32_t total = 0;
    for (const gcx_resource& group : fine.groups) {
        uint32_t overlap = 0;
        CHECK_OK(gcx_resource_get_overlap(&coarse.groups[0], &group, &overlap));
        total += overlap;
    }
    CHECK_EQ(total, 24U);
}

// Returns the SMs of a green context that the driver makes of these resources.
SmIds seen_by_driver(const std::vector<CUdevResource>& natives) {
    std::vector<CUdevResource> copy = natives;
    CUdevResourceDesc descriptor = nullptr;
    CUgreenCtx green = nullptr;
    CUcontext context = nullptr;
    CUstream native = nullptr;
    CHECK_EQ(raw::cuDevResourceGenerateDesc(&descriptor, copy.data(),
                                            static_cast<unsigned>(copy.size())),
             CUDA_SUCCESS);
    CHECK_EQ(raw::cuGreenCtxCreate(&green, descriptor, 0, CU_GREEN_CTX_DEFAULT_STREAM),
             CUDA_SUCCESS);
    CHECK_EQ(raw::cuCtxFromGreenCtx(&context, green), CUDA_SUCCESS);
    CHECK_EQ(raw::cuCtxPushCurrent(context), CUDA_SUCCESS);
    CHECK_EQ(raw::cuStreamCreate(&native, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(raw::cuCtxPopCurrent(&context), CUDA_SUCCESS);
    gcx_stream stream = nullptr;
    CHECK_OK(gcx_stream_from_native(native, &stream));
    const SmIds seen = probed(stream);
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_EQ(raw::cuStreamDestroy(native), CUDA_SUCCESS);
    CHECK_EQ(raw::cuGreenCtxDestroy(green), CUDA_SUCCESS);
    return seen;
}

std::vector<CUdevResource> to_native(const gcx_resource& resource) {
    std::vector<CUdevResource> natives(GCX_MAX_SMS);
    uint32_t count = 0;
    CHECK_OK(gcx_resource_get_native(&resource, natives.data(), GCX_MAX_SMS, &count));
    natives.resize(count);
    return natives;
}

// Checks that what the driver split becomes a resource of the same SMs, and back.
void check_native(const CUdevResource& native) {
    gcx_resource resource{};
    CHECK_OK(gcx_resource_from_native(0, &native, &resource));
    const gcx_resource_info info = info_of(resource);
    const SmIds seen = seen_by_driver({native});
    const std::vector<CUdevResource> back = to_native(resource);
    std::printf("  %3u SMs: family %d, %u atoms, %zu resources\n", info.sm_count, info.family,
                info.atom_count, back.size());
    CHECK_EQ(info.sm_count, native.sm.smCount);
    CHECK(Partition(resource).probe() == seen);
    CHECK(seen_by_driver(back) == seen);
}

void native_resources(unsigned flags, unsigned sms) {
    CUdevResource device{};
    CHECK_EQ(raw::cuDeviceGetDevResource(0, &device, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
    unsigned groups = 1;
    CUdevResource parts[2] = {};
    CHECK_EQ(raw::cuDevSmResourceSplitByCount(parts, &groups, &device, &parts[1], flags, sms),
             CUDA_SUCCESS);
    for (const CUdevResource& part : parts)
        check_native(part);
}

void native_resource_of_a_context() {
    const Split parts = split(whole_device(), {40});
    const Partition partition(parts.groups[0]);
    CUdevResource native{};
    CHECK_EQ(raw::cuGreenCtxGetDevResource(gcx_context_native_green(partition.context), &native,
                                           CU_DEV_RESOURCE_TYPE_SM),
             CUDA_SUCCESS);
    gcx_resource resource{};
    CHECK_OK(gcx_resource_from_native(0, &native, &resource));
    CHECK_EQ(std::memcmp(&resource, &parts.groups[0], sizeof resource), 0);
}

} // namespace

void test_splits() {
    section("atoms mapped");
    map_families();
    section("108 + 24");
    check_split({108, 24}, {108, 24}, 0);
    section("8 + 16 + 24 leaves 84");
    check_split({8, 16, 24}, {8, 16, 24}, 84);
    section("7, 10, 17 round up");
    check_split({7, 10, 17}, {8, 12, 24}, 88);
    section("fine: 10 + 122, 2 + 6 + 14");
    check_split({10, 122}, {10, 122}, 0, GCX_SPLIT_IGNORE_SM_COSCHEDULING);
    check_split({2, 6, 14}, {2, 6, 14}, 110, GCX_SPLIT_IGNORE_SM_COSCHEDULING);
    section("max-cluster: 16 + 32 in atoms of 24");
    check_split({16, 32}, {24, 36}, 72, GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE);
    section("the whole device, and three equal shares of it");
    check_split({132}, {132}, 0);
    check_split({GCX_REST, GCX_REST, GCX_REST}, {48, 40, 44}, 0);
    section("16 partitions at once");
    check_split({8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, GCX_REST},
                {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 12}, 0);
    section("sets up to the last atom, coscheduled and max-cluster");
    suffixes_are_their_atoms(GCX_SPLIT_DEFAULT);
    suffixes_are_their_atoms(GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE);
    section("splits of splits");
    resplits();
    section("scattered unions, the remainder atom among them");
    scattered_unions();
    section("overlap across families");
    across_families();
    section("resources from and to CUdevResource");
    for (const unsigned sms : {8U, 16U, 24U, 64U, 104U, 120U})
        native_resources(0, sms);
    for (const unsigned sms : {2U, 10U, 66U})
        native_resources(GCX_SPLIT_IGNORE_SM_COSCHEDULING, sms);
    for (const unsigned sms : {8U, 24U})
        native_resources(GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE, sms);
    native_resource_of_a_context();
}
