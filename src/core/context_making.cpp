// How the driver makes a green context.
#include "base/log.hpp"
#include "core/context_cache.hpp"
#include "driver/connections.hpp"

namespace gcx {

void ContextCache::make(GreenContext& context) {
    warn_of_few_connections();
    const Driver& driver = context.driver();
    context.primary_ = context.key.device->hold_primary();
    std::vector<CUdevResource> resources = context.key.family->realise(context.key.set);
    Ref holder; // of the queue that the context is to have
    if (const auto& wanted = context.key.workqueue; wanted && wanted->queue != 0) {
        holder = holder_of(wanted->queue);
        CUdevResource queue{};
        GCX_CALL(driver, cuGreenCtxGetDevResource, holder->green, &queue, cu::kResourceWorkqueue);
        resources.push_back(queue);
        context.queue_ = wanted->queue;
    } else if (wanted) {
        resources.push_back(native_config(*context.key.device, *wanted));
    }
    CUdevResourceDesc descriptor = nullptr;
    const CUresult described = driver.cuDevResourceGenerateDesc(
        &descriptor, resources.data(), static_cast<unsigned>(resources.size()));
    // From 13.1 on the header wants one smCoscheduledAlignment in a descriptor, which a remainder
    // does not share with groups.
    if (described == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION &&
        driver.has(GCX_CAPABILITY_STRUCTURED_SPLIT))
        fail(GCX_ERROR_NOT_SUPPORTED,
             format("a driver of CUDA %s makes no context of these %u SMs: the odd atom and atoms "
                    "that don't run up to the last can't go together there, nor groups of a "
                    "structured split that were asked for differently. gcx_sm_split gives the odd "
                    "atom only together with the last ones",
                    version_text(driver.version()).c_str(), context.sm_count()));
    driver.check(described, "cuDevResourceGenerateDesc");
    GCX_CALL(driver, cuGreenCtxCreate, &context.green, descriptor, context.key.device->native(),
             cu::kGreenCtxDefaultStream);
    try {
        GCX_CALL(driver, cuCtxFromGreenCtx, &context.native, context.green);
        GCX_CALL(driver, cuCtxGetId, context.native, &context.native_id_);
    } catch (...) {
        driver.cuGreenCtxDestroy(context.green);
        throw;
    }
    if (log::wanted(GCX_LOG_INFO))
        log::write(GCX_LOG_INFO, format("made a context of %u SMs on %s", context.sm_count(),
                                        context.key.device->label().c_str()));
}

ContextCache::Ref ContextCache::holder_of(uint64_t queue) {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, context] : entries_) {
        if (context->made_ && context->queue_ == queue && alive(*context)) {
            count(*context, Use::current, 1);
            return Ref(*this, *context, Use::current);
        }
    }
    fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
         "the contexts that had the workqueue are gone, and it with them; keep one of them alive, "
         "or make a context over a GCX_RESOURCE_WORKQUEUE_CONFIG");
}

CUdevResource ContextCache::native_config(const Device& device, const Workqueue& wanted) {
    CUdevResource native{};
    GCX_CALL(driver_, cuDeviceGetDevResource, device.native(), &native,
             cu::kResourceWorkqueueConfig);
    // The header: a workqueue's configuration is changed in place.
    auto fields = cu::get_fields<cu::WorkqueueFields>(native);
    fields.scope = static_cast<uint32_t>(wanted.scope);
    fields.concurrency_limit = wanted.concurrency_limit;
    cu::set_fields(native, fields);
    return native;
}

} // namespace gcx
