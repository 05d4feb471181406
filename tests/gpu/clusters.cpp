// Tests that a partition's thread block clusters follow from how it was split, and that gcx reports
// the largest. It queries with its own kernel, of one small block; raw:: queries with one that has
// blocks as large as an SM.

#include "fixture.hpp"
#include "tests.hpp"

#include <cstdio>

using namespace fixture;

namespace {

struct Clusters {
    int largest;
    int active[5]; // of 1, 2, 4, 8, 16
    CUresult launch_of_8;
};

Clusters clusters_of(const char* label, const gcx_resource& resource) {
    const Partition partition(resource);
    Clusters result{raw::max_cluster_size(partition.native()), {}, CUDA_SUCCESS};
    uint32_t reported = 0;
    CHECK_OK(gcx_resource_find_max_cluster_size(&resource, &reported));
    CHECK_EQ(static_cast<int>(reported), result.largest);
    unsigned size = 1;
    for (int& active : result.active) {
        active = raw::active_clusters(partition.native(), size);
        size *= 2;
    }
    result.launch_of_8 = raw::launch_cluster(partition.native(), 8);
    std::printf("  %-34s %3u SMs: largest %2d, active %3d %3d %3d %3d %3d, clusters of 8: %s\n",
                label, sm_count(resource), result.largest, result.active[0], result.active[1],
                result.active[2], result.active[3], result.active[4],
                raw::name_of(result.launch_of_8));
    return result;
}

} // namespace

void test_clusters() {
    section("clusters, by family");
    const Split parts = split(whole_device(), {108, 24});
    // 108 is what a direct split of 24 leaves, which allows more than its atoms together.
    CHECK_EQ(clusters_of("108 of 108 + 24", parts.groups[0]).largest, 16);
    const Clusters of_24 = clusters_of("24 of 108 + 24", parts.groups[1]);
    CHECK_EQ(of_24.largest, 8);
    CHECK_EQ(of_24.launch_of_8, CUDA_SUCCESS);
    CHECK_EQ(clusters_of("the whole device", whole_device()).largest, 16);

    const gcx_resource device = whole_device();
    const gcx_resource remainder = atom_of(device, atom_count(device) - 1);
    CHECK_EQ(clusters_of("the remainder atom alone", remainder).launch_of_8,
             CUDA_ERROR_INVALID_CLUSTER_SIZE);

    const Split fine = split(whole_device(), {24, 108}, GCX_SPLIT_IGNORE_SM_COSCHEDULING);
    CHECK_EQ(clusters_of("fine, 24", fine.groups[0]).launch_of_8, CUDA_ERROR_INVALID_CLUSTER_SIZE);
    clusters_of("fine, 108", fine.groups[1]);

    const Split wide = split(whole_device(), {24, 24, 48}, GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE);
    CHECK_EQ(clusters_of("max-cluster, 24", wide.groups[0]).largest, 16);
    clusters_of("max-cluster, the next 24", wide.groups[1]);
    CHECK_EQ(clusters_of("max-cluster, 48", wide.groups[2]).largest, 16);
    clusters_of("max-cluster, the rest", wide.remainder);
}
