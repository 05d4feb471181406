// Tests how many blocks of a kernel fit a stream's SMs at once.

#include "graph_kernels.hpp"
#include "leases.hpp"

using namespace support;

namespace {

gcx_kernel_fit_params params_of(uint32_t threads, uint32_t shared = 0, uint32_t cluster = 0) {
    gcx_kernel_fit_params params = GCX_KERNEL_FIT_PARAMS_INIT;
    params.block_threads = threads;
    params.dynamic_shared_bytes = shared;
    params.cluster_blocks = cluster;
    return params;
}

gcx_kernel_fit fit(gcx_stream stream, CUfunction function, const gcx_kernel_fit_params& params) {
    gcx_kernel_fit fit = GCX_KERNEL_FIT_INIT;
    CHECK_OK(gcx_stream_get_kernel_fit(stream, function, &params, &fit));
    return fit;
}

CUresult launch_cooperative(gcx_stream stream, CUfunction function, uint32_t blocks,
                            const gcx_kernel_fit_params& params) {
    uint64_t numbers[3] = {};
    void* arguments[] = {&numbers[0], &numbers[1], &numbers[2]};
    return NATIVE(cuLaunchCooperativeKernel)(function, blocks, 1, 1, params.block_threads, 1, 1,
                                             params.dynamic_shared_bytes, gcx_stream_native(stream),
                                             arguments);
}

void max_blocks_is_the_largest_launch() {
    const GraphKernels kernels;
    const Split parts = split(whole_device(), {24, GCX_REST});
    const Partition small(parts.groups[0]);
    const Partition large(parts.groups[1]);
    for (const auto& params : {params_of(1024), params_of(256), params_of(32),
                               params_of(256, 40'000), params_of(96, 0)}) {
        for (CUfunction function : {kernels.module_probe, kernels.library_probe}) {
            const gcx_kernel_fit found = fit(small.stream, function, params);
            CHECK_EQ(found.sm_count, 24U);
            CHECK_EQ(found.max_blocks, 24 * found.blocks_per_sm);
            CHECK_EQ(found.max_clusters, 0U);
            int blocks = 0;
            {
                const Current current(kernels.primary);
                CHECK_NATIVE(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function,
                             static_cast<int>(params.block_threads), params.dynamic_shared_bytes);
            }
            CHECK_EQ(found.blocks_per_sm, static_cast<uint32_t>(blocks));
            CHECK_EQ(fit(large.stream, function, params).max_blocks, 108 * found.blocks_per_sm);
            CHECK_EQ(launch_cooperative(small.stream, function, found.max_blocks, params),
                     CUDA_SUCCESS);
            CHECK_EQ(launch_cooperative(small.stream, function, found.max_blocks + 1, params),
                     CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
        }
    }
    CUcontext current = nullptr;
    CHECK_NATIVE(cuCtxGetCurrent, &current);
    CHECK(current == nullptr);
}

// A kernel that needs more than an SM has fits nowhere; that is an answer, not an error.
void impossible_launch_has_no_fit() {
    const GraphKernels kernels;
    const Partition part(split(whole_device(), {24}).groups[0]);
    const gcx_kernel_fit found = fit(part.stream, kernels.module_probe, params_of(256, 100'000, 4));
    CHECK_EQ(found.blocks_per_sm, 0U);
    CHECK_EQ(found.max_blocks, 0U);
    CHECK_EQ(found.max_clusters, 0U);
    CHECK_EQ(found.max_cluster_blocks, 0U);
}

void cluster_fit_matches_an_h200() {
    const GraphKernels kernels;
    const Partition coarse(split(whole_device(), {24}).groups[0]);
    const Partition fine(split(whole_device(), {24}, GCX_SPLIT_IGNORE_SM_COSCHEDULING).groups[0]);
    CHECK_EQ(fit(fine.stream, kernels.library_probe, params_of(1024, 0, 2)).max_cluster_blocks, 2U);
    // The numbers are those of an H200: see "facts of the driver" in docs/measurements/log.md.
    for (const auto& [cluster, clusters] : {std::pair{1U, 48U}, {2U, 24U}, {4U, 12U}, {8U, 6U}}) {
        const auto found = fit(coarse.stream, kernels.library_probe, params_of(1024, 0, cluster));
        CHECK_EQ(found.max_clusters, clusters);
        CHECK_EQ(found.max_blocks, clusters * cluster);
        CHECK_EQ(found.max_cluster_blocks, 8U);
    }
    // No cluster fits: too large for the partition, for the kernel's attribute, for any GPU.
    for (const uint32_t cluster : {4U, 8U, 16U, 0xffffffffU}) {
        const auto found = fit(fine.stream, kernels.module_probe, params_of(1024, 0, cluster));
        CHECK_EQ(found.max_clusters, 0U);
        CHECK_EQ(found.max_blocks, 0U);
        CHECK_EQ(found.max_cluster_blocks, 2U);
        CHECK_EQ(found.blocks_per_sm, 2U);
    }
}

void device_without_clusters_reports_one() {
    const GraphKernels kernels;
    const Partition part(split(whole_device(), {24}).groups[0]);
    const auto without = fit(part.stream, kernels.module_probe, params_of(1024));
    const auto ones = fit(part.stream, kernels.module_probe, params_of(1024, 0, 1));
    CHECK_EQ(without.max_cluster_blocks, 1U);
    CHECK_EQ(ones.max_clusters, without.max_blocks);
    CHECK_EQ(ones.max_blocks, without.max_blocks);
    CHECK_EQ(fit(part.stream, kernels.module_probe, params_of(1024, 0, 2)).max_blocks, 0U);
}

// Tests streams of leases, of other libraries, and streams that capture.
void fit_is_known_for_any_stream() {
    const GraphKernels kernels;
    const gcx_lease lease = acquire(32);
    gcx_stream stream = stream_of(lease);
    CHECK_EQ(fit(stream, kernels.library_probe, params_of(1024)).max_blocks, 64U);
    CHECK_OK(resize({{lease, 64, 0}}));
    CHECK_EQ(fit(stream, kernels.library_probe, params_of(1024)).max_blocks, 128U);
    // The capture stays in its context, and continues.
    CUstream native = gcx_stream_native(stream);
    begin_capture(native);
    CHECK_OK(resize({{lease, 16, 0}}));
    CHECK_EQ(fit(stream, kernels.library_probe, params_of(1024, 0, 8)).sm_count, 64U);
    end_capture(native);
    CHECK_EQ(fit(stream, kernels.library_probe, params_of(1024)).max_blocks, 32U);
    release_all({stream}, {lease});
    stream = handle_for(kernels.plain);
    CHECK_EQ(fit(stream, kernels.module_probe, params_of(1024)).max_blocks, 264U);
    CHECK_OK(gcx_stream_destroy(stream));
}

void invalid_launches_are_refused() {
    const GraphKernels kernels;
    const Partition part(split(whole_device(), {24}).groups[0]);
    auto params = params_of(256);
    gcx_kernel_fit found;
    std::memset(&found, 0x55, sizeof found);
    found.struct_size = sizeof found;
    const gcx_kernel_fit before = found;
    const auto refused = [&](gcx_stream stream, CUfunction function,
                             const gcx_kernel_fit_params* requested, gcx_result expected) {
        CHECK_REFUSED(gcx_stream_get_kernel_fit(stream, function, requested, &found), expected);
        CHECK_EQ(std::memcmp(&found, &before, sizeof found), 0);
    };
    refused(part.stream, nullptr, &params, GCX_ERROR_INVALID_VALUE);
    refused(part.stream, kernels.module_probe, nullptr, GCX_ERROR_INVALID_VALUE);
    refused(nullptr, kernels.module_probe, &params, GCX_ERROR_INVALID_HANDLE);
    refused(forged<gcx_stream>(99), kernels.module_probe, &params, GCX_ERROR_INVALID_HANDLE);
    refused(part.stream, forged<CUfunction>(0x123), &params, GCX_ERROR_INVALID_HANDLE);
    for (const uint32_t threads : {0U, 1025U, 0x80000000U}) {
        params.block_threads = threads;
        refused(part.stream, kernels.module_probe, &params, GCX_ERROR_INVALID_VALUE);
        CHECK(message_has(std::to_string(threads)));
    }
    params = params_of(256);
    params.struct_size = 4;
    refused(part.stream, kernels.module_probe, &params, GCX_ERROR_INVALID_VALUE);
    params = params_of(256);
    CHECK_REFUSED(gcx_stream_get_kernel_fit(part.stream, kernels.module_probe, &params, nullptr),
                  GCX_ERROR_INVALID_VALUE);
    gcx_kernel_fit none{};
    CHECK_REFUSED(gcx_stream_get_kernel_fit(part.stream, kernels.module_probe, &params, &none),
                  GCX_ERROR_INVALID_VALUE);
}

void fit_after_reset_is_computed_again() {
    const Partition part(split(whole_device(), {24}).groups[0]);
    CHECK_NATIVE(cuDevicePrimaryCtxReset, 0);
    const auto params = params_of(256);
    gcx_kernel_fit found = GCX_KERNEL_FIT_INIT;
    CHECK_REFUSED(
        gcx_stream_get_kernel_fit(part.stream, forged<CUfunction>(0x123), &params, &found),
        GCX_ERROR_CONTEXT_IS_DESTROYED);
}

} // namespace

int main() {
    for (const char* driver : drivers()) {
        const std::string h100 = std::string("h100@") + driver;
        for (const auto test : {max_blocks_is_the_largest_launch, impossible_launch_has_no_fit,
                                cluster_fit_matches_an_h200, fit_is_known_for_any_stream})
            on_machine(h100, test);
        on_machine(std::string("a100@") + driver, device_without_clusters_reports_one);
    }
    on_machine("h100@13.0", invalid_launches_are_refused);
    on_machine(
        "h100@12.4",
        fit_after_reset_is_computed_again); // later drivers refuse to reset under green contexts
    return support::summary("fit");
}
