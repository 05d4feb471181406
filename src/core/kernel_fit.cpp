#include "core/kernel_fit.hpp"

#include "core/capture.hpp"
#include "core/scoped_current.hpp"

#include <algorithm>

namespace gcx {
namespace {

// Of clusters as large as asked for; 0 where none of that size fits.
uint32_t active_clusters(const Driver& driver, CUfunction function, CUlaunchConfig config,
                         uint32_t cluster_blocks) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = cluster_blocks;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    config.gridDimX = cluster_blocks;
    config.attrs = &attribute;
    config.numAttrs = 1;
    int clusters = 0;
    const CUresult result = driver.cuOccupancyMaxActiveClusters(&clusters, function, &config);
    if (result == CUDA_ERROR_INVALID_CLUSTER_SIZE)
        return 0;
    driver.check(result, "cuOccupancyMaxActiveClusters");
    return static_cast<uint32_t>(std::max(clusters, 0));
}

} // namespace

void get_kernel_fit(const Device& device, Stream& stream, CUfunction function,
                    const gcx_kernel_fit_params& params, gcx_kernel_fit& fit) {
    const Driver& driver = device.driver();
    const Stream::Place place = stream.place(Stream::Purpose::ask);
    fit.sm_count = stream.sm_count(place);
    const RelaxedCapture relaxed(driver);
    const ScopedCurrent current(driver, place.context);
    int blocks = 0;
    GCX_CALL(driver, cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function,
             static_cast<int>(params.block_threads), params.dynamic_shared_bytes);
    fit.blocks_per_sm = static_cast<uint32_t>(std::max(blocks, 0));
    fit.max_blocks = fit.blocks_per_sm * fit.sm_count;
    fit.max_clusters = 0;
    fit.max_cluster_blocks = fit.blocks_per_sm == 0 ? 0 : 1;
    if (device.has_clusters() && fit.blocks_per_sm != 0) {
        CUlaunchConfig config{};
        config.gridDimX = config.gridDimY = config.gridDimZ = 1;
        config.blockDimX = params.block_threads;
        config.blockDimY = config.blockDimZ = 1;
        config.sharedMemBytes = params.dynamic_shared_bytes;
        config.hStream = place.native;
        int largest = 0;
        GCX_CALL(driver, cuOccupancyMaxPotentialClusterSize, &largest, function, &config);
        fit.max_cluster_blocks = static_cast<uint32_t>(std::max(largest, 1));
        if (params.cluster_blocks != 0 && params.cluster_blocks <= fit.max_cluster_blocks)
            fit.max_clusters = active_clusters(driver, function, config, params.cluster_blocks);
    } else if (params.cluster_blocks == 1) {
        fit.max_clusters = fit.max_blocks;
    }
    if (params.cluster_blocks != 0)
        fit.max_blocks = fit.max_clusters * params.cluster_blocks;
}

} // namespace gcx
