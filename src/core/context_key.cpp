#include "core/context_key.hpp"

#include "core/device.hpp"

namespace gcx {
namespace {

void add_sms(ContextKey& key, const ContextKey& part, std::size_t index) {
    if (key.family != nullptr && key.family != part.family)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("resource %zu is of another family than those before: which SMs they share is "
                    "not the driver's to say",
                    index));
    const uint32_t shared = part.family->sm_count(key.set & part.set);
    if (shared != 0)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("resource %zu has %u SMs that those before have already; take them out with "
                    "gcx_resource_subtract",
                    index, shared));
    key.family = part.family;
    key.set = key.set | part.set;
}

void add(ContextKey& key, const ContextKey& part, std::size_t index) {
    if (part.workqueue && key.workqueue)
        fail(GCX_ERROR_INVALID_RESOURCE_TYPE,
             format("resource %zu is a second workqueue; a context has one at most", index));
    if (key.device != nullptr && key.device != part.device)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("resource %zu is of %s, those before of %s", index,
                    part.device->label().c_str(), key.device->label().c_str()));
    key.device = part.device;
    if (part.workqueue)
        key.workqueue = part.workqueue;
    else
        add_sms(key, part, index);
}

} // namespace

ContextKey key_of(std::span<const ContextKey> parts) {
    ContextKey key;
    for (std::size_t i = 0; i < parts.size(); i++)
        add(key, parts[i], i);
    if (key.family == nullptr)
        fail(GCX_ERROR_INVALID_RESOURCE_TYPE, "there is no SM resource among the resources");
    if (key.set.empty())
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, "the resources hold no SMs");
    return key;
}

} // namespace gcx
