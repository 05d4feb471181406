// The cache of contexts: its limit, preparing and trimming it, statistics.

#include "api/library.hpp"
#include "api/result.hpp"

#include <cstddef>
#include <cstring>
#include <optional>
#include <vector>

using namespace gcx;

namespace {

std::vector<ContextKey> keys_of(Library& lib, const gcx_resource* resources, uint32_t count,
                                bool for_leases) {
    if (count == 0)
        fail(GCX_ERROR_INVALID_VALUE, "count is 0; there is nothing to prepare");
    not_null(resources, "resources");
    std::vector<ContextKey> keys;
    for (uint32_t i = 0; i < count; i++) {
        const SmResource sms = lib.sm_resource(&resources[i]);
        if (for_leases && sms.family->kind() == GCX_SM_FAMILY_STRUCTURED)
            fail(GCX_ERROR_INVALID_RESOURCE_TYPE,
                 format("resources[%u] is of a structured split, which has no leases; leave "
                        "GCX_PREPARE_FOR_LEASES out",
                        i));
        keys.push_back(
            {sms.device, sms.family, sms.set,
             for_leases ? LeaseManager::workqueue(*sms.device) : std::optional<Workqueue>()});
        check_has_sms(keys.back());
    }
    return keys;
}

} // namespace

gcx_result gcx_cache_set_limit(uint32_t max_contexts) {
    GCX_BODY({
        Library& lib = library();
        lib.leases.drop_finished_work();
        lib.cache.set_limit(max_contexts);
    });
}

gcx_result gcx_cache_prepare(const gcx_resource* resources, uint32_t count,
                             const gcx_prepare_params* params) {
    GCX_BODY({
        const auto options = params_or_defaults(params, GCX_PREPARE_PARAMS_INIT);
        if ((options.flags & ~GCX_PREPARE_FOR_LEASES) != 0)
            fail(GCX_ERROR_INVALID_VALUE,
                 format("params->flags is %#x; there is only GCX_PREPARE_FOR_LEASES (1)",
                        options.flags));
        Library& lib = library();
        const auto keys = keys_of(lib, resources, count, options.flags != 0);
        std::optional<HandleTable<Cancel>::Pin> cancel;
        if (options.cancel != nullptr)
            cancel.emplace(lib.cancels.pin(options.cancel));
        uint32_t done = 0;
        lib.cache.prepare(
            keys,
            [&] {
                if (cancel && (*cancel)->signalled())
                    fail(
                        GCX_ERROR_CANCELLED,
                        format("cancelled by gcx_cancel_signal after %u of %u contexts, which stay "
                               "cached",
                               done, count));
            },
            [&] {
                done++;
                if (options.progress != nullptr)
                    options.progress(done, count, options.user_data);
            });
    });
}

gcx_result gcx_cache_trim(uint32_t max_contexts, gcx_cache_trimmed* trimmed) {
    GCX_BODY({
        std::optional<StructOutput<gcx_cache_trimmed>> out;
        if (trimmed != nullptr)
            out.emplace(trimmed, "trimmed");
        Library& lib = library();
        lib.leases.drop_finished_work();
        const ContextCache::Trimmed done = lib.cache.trim(max_contexts);
        if (!out)
            return;
        gcx_cache_trimmed& filled = **out;
        filled.contexts = done.contexts;
        filled.streams = done.streams;
        filled.contexts_left = done.contexts_left;
        filled.streams_left = done.streams_left;
        filled.bytes = done.bytes;
        out->write();
    });
}

gcx_result gcx_cache_get_stats(gcx_cache_stats* stats) {
    GCX_BODY({
        StructOutput out(stats, "stats");
        Library& lib = library();
        lib.leases.drop_finished_work();
        *out = lib.cache.stats();
        out.write();
    });
}
