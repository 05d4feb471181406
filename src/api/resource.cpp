// Resources: splitting and combining them, and what they contain.

#include "api/library.hpp"
#include "api/result.hpp"
#include "core/split.hpp"

#include <algorithm>
#include <span>

using namespace gcx;

namespace {

gcx_resource context_workqueue_config(Library& lib, const GreenContext& green) {
    lib.driver.require(GCX_CAPABILITY_WORKQUEUES, "workqueue resources");
    CUdevResource native{};
    GCX_CALL(lib.driver, cuGreenCtxGetDevResource, green.green, &native,
             cu::kResourceWorkqueueConfig);
    return seal_workqueue_config(*green.key.device, native);
}

gcx_resource context_workqueue(Library& lib, GreenContext& green) {
    lib.driver.require(GCX_CAPABILITY_WORKQUEUES, "workqueue resources");
    ResourceWords words;
    words.type = GCX_RESOURCE_WORKQUEUE;
    words.device = green.key.device->ordinal();
    words.workqueue.queue = lib.cache.queue_of(green);
    return seal(words);
}

void describe(const ExternalSms& sms, gcx_resource_info& info) {
    info.family = GCX_SM_FAMILY_EXTERNAL;
    info.sm_count = sms.sm_count;
    info.min_partition_size = sms.min_partition_size;
    // If the driver reports no alignment, only all SMs together can be coscheduled.
    info.coscheduled_alignment =
        sms.coscheduled_alignment != 0 ? sms.coscheduled_alignment : sms.sm_count;
    info.flags = sms.flags;
}

// Applies a set operation to two resources of one family.
template <class Operation>
void combine(const gcx_resource* a, const gcx_resource* b, gcx_resource* result,
             Operation operation) {
    not_null(result, "result");
    Library& lib = library();
    const SmResource left = lib.sm_resource(a);
    const SmResource right = lib.sm_resource(b);
    if (left.device != right.device)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("the resources are of two devices, %d and %d", left.device->ordinal(),
                    right.device->ordinal()));
    if (left.family != right.family)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             left.family->kind() == right.family->kind()
                 ? "the resources are of two structured splits, whose groups are different SMs"
                 : format("the resources are of two families, %s and %s, whose atoms are different "
                          "SMs",
                          family_name(left.family->kind()), family_name(right.family->kind())));
    *result = seal({left.device, left.family, operation(left.set, right.set)});
}

// Asks a temporary stream. Its context stays cached for the next user of these SMs.
uint32_t max_cluster_size(Library& lib, const SmResource& sms) {
    const ContextCache::Ref context = lib.cache.get({sms.device, sms.family, sms.set, std::nullopt},
                                                    ContextCache::Sharing::shared);
    TemporaryStream stream(lib.cache, *context);
    return lib.probe.max_cluster_size(*sms.device, context->native, stream.native());
}

std::vector<uint32_t> sm_ids_of(const SmResource& resource) {
    if (resource.set.empty())
        return {};
    const gcx_sm_family kind = resource.family->kind();
    if (kind == GCX_SM_FAMILY_STRUCTURED)
        fail(GCX_ERROR_NOT_SUPPORTED,
             "the SMs of a structured split's groups are not known in advance; create a context of "
             "the group and call gcx_stream_probe_sms");
    const SmMap* map = resource.family->sm_map();
    if (map == nullptr)
        fail(GCX_ERROR_SMS_NOT_MAPPED,
             format("it isn't known yet which SMs the atoms hold; call gcx_device_map_sms(%d, %d), "
                    "the %s family",
                    resource.device->ordinal(), kind, family_name(kind)));
    std::vector<uint32_t> ids;
    resource.set.for_each(
        [&](std::size_t atom) { ids.insert(ids.end(), (*map)[atom].begin(), (*map)[atom].end()); });
    std::sort(ids.begin(), ids.end());
    return ids;
}

std::vector<CUdevResource> native_resources(Library& lib, const gcx_resource* resource) {
    const ResourceWords words = unseal(resource);
    if (words.type == GCX_RESOURCE_WORKQUEUE_CONFIG)
        return {lib.device(words.device).native_config(words.workqueue)};
    const SmResource sms = lib.sm_resource(words);
    return sms.family->native_resources(sms.set);
}

// Prefers the coscheduled family, and a large cluster size to a small one.
SmResource find_sms(Device& device, const CUdevResource& native) {
    std::vector<gcx_sm_family> kinds{GCX_SM_FAMILY_COSCHEDULED};
    if (device.has_max_cluster_family())
        kinds.push_back(GCX_SM_FAMILY_MAX_CLUSTER);
    kinds.push_back(GCX_SM_FAMILY_FINE);
    bool reads_sms = false;
    for (const gcx_sm_family kind : kinds) {
        const std::shared_ptr<Family> family = device.family(kind);
        if (const auto set = family->find(native))
            return {&device, family, *set};
        reads_sms = reads_sms || family->reads_sms();
    }
    const uint32_t sm_count = cu::get_fields<cu::SmFields>(native).sm_count;
    if (!reads_sms)
        fail(GCX_ERROR_NOT_SUPPORTED,
             format("this driver does not store SMs in CUdevResource as known to gcx, so it is not "
                    "known which ones the %u SMs are; split with gcx_sm_split instead",
                    sm_count));
    fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
         format("the %u SMs of the CUdevResource are no set of atoms of %s; pass one that the "
                "driver returned for this device in this process",
                sm_count, device.label().c_str()));
}

gcx_resource resource_from_native(Device& device, const CUdevResource& native) {
    if (native.type == cu::kResourceSm)
        return seal(find_sms(device, native));
    if (native.type != cu::kResourceWorkqueueConfig)
        fail(GCX_ERROR_INVALID_RESOURCE_TYPE,
             format("the CUdevResource has the type %u; a gcx_resource can be made of SMs (1) and "
                    "of a workqueue configuration (1000)",
                    static_cast<unsigned>(native.type)));
    const auto fields = cu::get_fields<cu::WorkqueueFields>(native);
    if (fields.device != device.native())
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("the workqueue configuration is of CUdevice %d, and %s is %d", fields.device,
                    device.label().c_str(), device.native()));
    return seal_workqueue_config(device, native);
}

uint32_t sms_of(const SmResource& resource) {
    return resource.family->sm_count(resource.set);
}

} // namespace

namespace gcx {

gcx_resource seal_workqueue_config(const Device& device, const CUdevResource& native) {
    const auto fields = cu::get_fields<cu::WorkqueueFields>(native);
    ResourceWords words;
    words.type = GCX_RESOURCE_WORKQUEUE_CONFIG;
    words.device = device.ordinal();
    words.workqueue.scope = static_cast<gcx_workqueue_scope>(fields.scope);
    words.workqueue.concurrency_limit = fields.concurrency_limit;
    return seal(words);
}

gcx_resource resource_of(Library& lib, GreenContext& green, gcx_resource_type type) {
    switch (type) {
    case GCX_RESOURCE_SM:
        return seal({green.key.device, green.key.family, green.key.set});
    case GCX_RESOURCE_WORKQUEUE_CONFIG:
        return context_workqueue_config(lib, green);
    case GCX_RESOURCE_WORKQUEUE:
        return context_workqueue(lib, green);
    }
    refuse_type(type);
}

gcx_resource resource_of_external(Library& lib, const Stream& stream, const Stream::Target& target,
                                  gcx_resource_type type) {
    if (type == GCX_RESOURCE_WORKQUEUE_CONFIG || type == GCX_RESOURCE_WORKQUEUE)
        fail(GCX_ERROR_NOT_FOUND, "gcx did not create the stream's context, and the driver does "
                                  "not report the workqueue of a stream");
    if (type != GCX_RESOURCE_SM)
        refuse_type(type);
    Device& device = lib.device(stream.device());
    const uint32_t count = stream.sm_count(target);
    if (count == device.sm_count()) {
        const auto family = device.family(GCX_SM_FAMILY_COSCHEDULED);
        return seal({&device, family, family->all()});
    }
    lib.driver.require(GCX_CAPABILITY_STREAM_RESOURCE,
                       format("the resource of a stream whose green context gcx did not make, here "
                              "of %u SMs (gcx_stream_get_info tells their number on any driver)",
                              count)
                           .c_str());
    CUdevResource native{};
    GCX_CALL(lib.driver, cuStreamGetDevResource, target.native, &native, cu::kResourceSm);
    const auto fields = cu::get_fields<cu::SmFields>(native);
    ResourceWords words;
    words.device = device.ordinal();
    words.family = GCX_SM_FAMILY_EXTERNAL;
    words.external = {fields.sm_count, fields.min_partition_size, fields.coscheduled_alignment,
                      fields.flags};
    return seal(words);
}

void refuse_type(gcx_resource_type type) {
    fail(GCX_ERROR_INVALID_RESOURCE_TYPE,
         format("there is no resource type %d; there are GCX_RESOURCE_SM (1), "
                "GCX_RESOURCE_WORKQUEUE_CONFIG (1000) and GCX_RESOURCE_WORKQUEUE (10000)",
                type));
}

void give_sm_ids(const std::vector<uint32_t>& ids, uint32_t* sm_ids, uint32_t capacity,
                 uint32_t* count) {
    check_list(sm_ids, "sm_ids", capacity, count);
    give_list(ids, "SMs", sm_ids, capacity, count);
}

} // namespace gcx

gcx_result gcx_resource_get_info(const gcx_resource* resource, gcx_resource_info* info) {
    GCX_BODY({
        StructOutput out(info, "info");
        refuse_after_fork();
        const ResourceWords words = unseal(resource);
        gcx_resource_info& filled = *out;
        filled.type = words.type;
        filled.device = words.device;
        if (words.family == GCX_SM_FAMILY_EXTERNAL) {
            describe(words.external, filled);
        } else if (words.type == GCX_RESOURCE_SM) {
            const SmResource sm = library().sm_resource(resource);
            sm.family->describe(sm.set, filled);
        } else {
            filled.workqueue_scope = words.workqueue.scope;
            filled.workqueue_concurrency_limit = words.workqueue.concurrency_limit;
        }
        out.write();
    });
}

gcx_result gcx_resource_get_native(const gcx_resource* resource, struct CUdevResource_st* natives,
                                   uint32_t capacity, uint32_t* count) {
    GCX_BODY({
        check_list(natives, "natives", capacity, count);
        give_list(native_resources(library(), resource), "CUdevResource", natives, capacity, count);
    });
}

gcx_result gcx_resource_from_native(int32_t device, const struct CUdevResource_st* native,
                                    gcx_resource* resource) {
    GCX_BODY({
        not_null(native, "native");
        not_null(resource, "resource");
        *resource = resource_from_native(library().device(device), *native);
    });
}

gcx_result gcx_workqueue_configure(const gcx_resource* config, gcx_workqueue_scope scope,
                                   uint32_t concurrency_limit, gcx_resource* configured) {
    GCX_BODY({
        not_null(configured, "configured");
        refuse_after_fork();
        ResourceWords words = unseal(config);
        if (words.type != GCX_RESOURCE_WORKQUEUE_CONFIG)
            fail(GCX_ERROR_INVALID_RESOURCE_TYPE, "the resource is not a workqueue configuration");
        if (scope != GCX_WORKQUEUE_SCOPE_DEVICE_CTX &&
            scope != GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED)
            fail(GCX_ERROR_INVALID_VALUE,
                 format("scope %d is none of gcx_workqueue_scope, 0 or 1", scope));
        words.workqueue.scope = scope;
        if (concurrency_limit != 0)
            words.workqueue.concurrency_limit = concurrency_limit;
        *configured = seal(words);
    });
}

gcx_result gcx_sm_split(const gcx_resource* input, const gcx_sm_request* requests,
                        uint32_t request_count, uint32_t flags, gcx_resource* groups,
                        gcx_resource* remainder, uint32_t* sm_counts,
                        uint32_t* remainder_sm_count) {
    GCX_BODY({
        // split() explains an empty list, whose arrays may be NULL.
        if (request_count != 0)
            not_null(requests, "requests");
        const bool dry_run = groups == nullptr;
        if (dry_run && request_count != 0 && remainder != nullptr)
            fail(GCX_ERROR_INVALID_VALUE, "groups is NULL but remainder is not: a split without "
                                          "groups only counts; pass NULL for both");
        Library& lib = library();
        const SplitResult result = split(lib.leases, lib.sm_resource(input),
                                         std::span(requests, request_count), flags, dry_run);
        if (sm_counts != nullptr)
            std::transform(result.groups.begin(), result.groups.end(), sm_counts, sms_of);
        if (remainder_sm_count != nullptr)
            *remainder_sm_count = sms_of(result.remainder);
        if (remainder != nullptr)
            *remainder = seal(result.remainder);
        if (!dry_run) {
            std::transform(result.groups.begin(), result.groups.end(), groups,
                           [](const SmResource& group) { return seal(group); });
        }
    });
}

gcx_result gcx_resource_union(const gcx_resource* a, const gcx_resource* b, gcx_resource* result) {
    GCX_BODY({ combine(a, b, result, [](const AtomSet& x, const AtomSet& y) { return x | y; }); });
}

gcx_result gcx_resource_subtract(const gcx_resource* a, const gcx_resource* b,
                                 gcx_resource* result) {
    GCX_BODY({ combine(a, b, result, [](const AtomSet& x, const AtomSet& y) { return x - y; }); });
}

gcx_result gcx_resource_get_overlap(const gcx_resource* a, const gcx_resource* b,
                                    uint32_t* sm_count) {
    GCX_BODY({
        not_null(sm_count, "sm_count");
        Library& lib = library();
        const SmResource left = lib.sm_resource(a);
        const SmResource right = lib.sm_resource(b);
        if (left.device != right.device || left.set.empty() || right.set.empty()) {
            *sm_count = 0;
        } else if (left.family == right.family) {
            *sm_count = left.family->sm_count(left.set & right.set);
        } else if (left.set == left.family->all()) {
            *sm_count = right.family->sm_count(right.set);
        } else if (right.set == right.family->all()) {
            *sm_count = left.family->sm_count(left.set);
        } else {
            const std::vector<uint32_t> x = sm_ids_of(left);
            const std::vector<uint32_t> y = sm_ids_of(right);
            std::vector<uint32_t> both;
            std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
            *sm_count = static_cast<uint32_t>(both.size());
        }
    });
}

gcx_result gcx_resource_get_sm_ids(const gcx_resource* resource, uint32_t* sm_ids,
                                   uint32_t capacity, uint32_t* count) {
    GCX_BODY({ give_sm_ids(sm_ids_of(library().sm_resource(resource)), sm_ids, capacity, count); });
}

gcx_result gcx_resource_find_max_cluster_size(const gcx_resource* resource, uint32_t* blocks) {
    GCX_BODY({
        not_null(blocks, "blocks");
        Library& lib = library();
        const SmResource sms = lib.sm_resource(resource);
        if (sms.set.empty())
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 "the resource has no SMs, so no kernel can run on it");
        *blocks = sms.device->has_clusters() ? max_cluster_size(lib, sms) : 1;
    });
}

gcx_result gcx_resource_get_atom(const gcx_resource* resource, uint32_t index, gcx_resource* atom) {
    GCX_BODY({
        not_null(atom, "atom");
        const SmResource whole = library().sm_resource(resource);
        if (index >= whole.set.count())
            fail(GCX_ERROR_INVALID_VALUE,
                 format("there is no atom %u; the resource has %zu", index, whole.set.count()));
        SmResource part = {whole.device, whole.family, {}};
        uint32_t position = 0;
        whole.set.for_each([&](std::size_t one) {
            if (position++ == index)
                part.set.add(one);
        });
        *atom = seal(part);
    });
}
