#include "core/stream.hpp"

#include "base/log.hpp"
#include "driver/nvtx.hpp"

#include <algorithm>

namespace gcx {
namespace {

// Returns how many clusters of this size run at once; 0 if none fits.
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

Stream::Stream(ContextCache& cache, GreenContext& context, int priority)
    : cache_(cache), driver_(context.driver()),
      green_(cache.share(context, ContextCache::Use::stream)),
      device_(context.key.device->ordinal()), owned_(true),
      priority_(context.key.device->clamp_priority(priority)) {
    native_ = context.acquire_stream(priority_);
    if (nvtx::listens())
        nvtx::name_stream(native_, format("gcx: %u SMs, context %llu", context.sm_count(),
                                          static_cast<unsigned long long>(context.id)));
}

Stream::Stream(ContextCache& cache, const Driver& driver, CUstream native)
    : cache_(cache), driver_(driver), native_(native), owned_(false) {
    GCX_CALL(driver, cuStreamGetCtx, native, &external_);
    green_ = cache.find(external_, ContextCache::Use::stream);
    if (green_) {
        device_ = green_->key.device->ordinal();
    } else {
        const ScopedCurrent current(driver, external_);
        GCX_CALL(driver, cuCtxGetDevice, &device_);
    }
}

Stream::Stream(ContextCache& cache, EventPool& events, std::shared_ptr<Lease> lease, int priority)
    : cache_(cache), driver_(lease->device.driver()), device_(lease->device.ordinal()),
      owned_(true) {
    follower_ = std::make_unique<LeaseStream>(cache, events, std::move(lease), priority);
}

void Stream::close() {
    if (follower_ != nullptr)
        follower_->close();
    else if (owned_ && native_ != nullptr && cache_.is_alive(*green_))
        green_->streams.release(native_, priority_);
    native_ = nullptr;
    green_ = ContextCache::Ref();
}

Stream::Target Stream::target(Purpose purpose) {
    if (follower_ == nullptr)
        return {native_, green_ ? green_->native : external_, green_ ? &*green_ : nullptr, {}};
    LeaseStream::Target target = follower_->target(purpose);
    GreenContext& green = *target.context;
    return {target.native, green.native, &green, std::move(target.context)};
}

SubmitLock* Stream::submit_lock() const {
    return follower_ == nullptr ? nullptr : &follower_->lease().submit_lock();
}

void Stream::check_alive() const {
    if (follower_ != nullptr)
        follower_->lease().check_alive();
    if (green_)
        green_.check_alive();
}

uint32_t Stream::sm_count(const Target& target) const {
    if (target.green != nullptr)
        return target.green->sm_count();
    CUdevResource resource{};
    GCX_CALL(driver_, cuCtxGetDevResource, target.context, &resource, cu::kResourceSm);
    return cu::get_fields<cu::SmFields>(resource).sm_count;
}

void Stream::get_info(gcx_stream_info& info) {
    const Target target = this->target(Purpose::ask);
    int priority = 0;
    GCX_CALL(driver_, cuStreamGetPriority, target.native, &priority);
    info.sm_count = sm_count(target);
    info.priority = priority;
    info.device = device_;
    info.context_id = target.green != nullptr ? target.green->id : 0;
}

TemporaryStream::~TemporaryStream() {
    // A destructor's caller cannot repeat a failed call, so a temporary failure gets a second try.
    for (const bool last : {false, true}) {
        try {
            stream_.close();
            return;
        } catch (const Error& error) {
            if (last)
                log::write(GCX_LOG_ERROR, "a stream could not be destroyed: " + error.message);
        }
    }
}

void get_kernel_fit(const Device& device, Stream& stream, CUfunction function,
                    const gcx_kernel_fit_params& params, gcx_kernel_fit& fit) {
    const Driver& driver = device.driver();
    const Stream::Target target = stream.target(Stream::Purpose::ask);
    fit.sm_count = stream.sm_count(target);
    const RelaxedCapture relaxed(driver);
    const ScopedCurrent current(driver, target.context);
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
        config.hStream = target.native;
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
