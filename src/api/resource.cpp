// Resources and splits.

#include "api/guard.hpp"

#include "api/common.hpp"
#include "core/split.hpp"
#include "driver/mps.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>

using namespace gcx;

namespace {

gcx_resource default_workqueue(const Device& device) {
    device.driver().require(GCX_CAPABILITY_WORKQUEUES, "workqueue resources");
    CUdevResource native{};
    GCX_CALL(device.driver(), cuDeviceGetDevResource, device.native(), &native,
             cu::kResourceWorkqueueConfig);
    return seal_workqueue_config(device, native);
}

void describe(const ExternalSms& sms, gcx_resource_info& info) {
    info.family = GCX_SM_FAMILY_FOREIGN;
    info.sm_count = sms.sm_count;
    info.min_partition_size = sms.min_partition_size;
    // A part of which the driver tells no step is all or nothing.
    info.coscheduled_alignment =
        sms.coscheduled_alignment != 0 ? sms.coscheduled_alignment : sms.sm_count;
    info.flags = sms.flags;
}

// A set operation on two resources of one family.
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

// Asked of a stream, which is given up again: its context is kept for who wants these SMs next.
uint32_t max_cluster_size(Library& lib, const SmResource& sms) {
    const ContextCache::Ref context = lib.cache.get({sms.device, sms.family, sms.set, std::nullopt},
                                                    ContextCache::Sharing::shared);
    TemporaryStream stream(lib.cache, *context);
    return lib.probe.max_cluster_size(*sms.device, context->native, stream.native());
}

void refuse_virtual_numbers(const Library& lib, const Device& device, const char* why) {
    if (mps_of(lib.driver, device.native()).state == GCX_MPS_ON)
        fail(GCX_ERROR_NOT_SUPPORTED,
             format("%s is shared by way of MPS, under which SM numbers are virtual: %s",
                    device.label().c_str(), why));
}

std::vector<uint32_t> sm_ids_of(const SmResource& resource) {
    if (resource.set.empty())
        return {};
    const gcx_sm_family kind = resource.family->kind();
    if (kind == GCX_SM_FAMILY_STRUCTURED)
        fail(GCX_ERROR_NOT_SUPPORTED,
             "which SMs the groups of a structured split hold can't be known ahead; make a context "
             "of the group and ask gcx_stream_probe_sms");
    const SmMap* map = resource.family->sm_map();
    if (map == nullptr)
        fail(GCX_ERROR_NOT_READY,
             format("it isn't known yet which SMs the atoms hold; call gcx_device_map_sms(%d, %d), "
                    "the %s family",
                    resource.device->ordinal(), kind, family_name(kind)));
    std::vector<uint32_t> ids;
    resource.set.for_each(
        [&](std::size_t atom) { ids.insert(ids.end(), (*map)[atom].begin(), (*map)[atom].end()); });
    std::sort(ids.begin(), ids.end());
    return ids;
}

uint32_t live_overlap(Library& lib, const SmResource& wanted) {
    std::map<std::shared_ptr<Family>, AtomSet> held;
    for (const ContextCache::Live& live : lib.cache.live(wanted.device))
        held[live.sms.family] = held[live.sms.family] | live.sms.set;
    const AtomSet own = wanted.set & held[wanted.family];
    held.erase(wanted.family);
    const bool all_held = std::any_of(held.begin(), held.end(), [](const auto& entry) {
        return entry.second == entry.first->all();
    });
    if (all_held || own == wanted.set)
        return wanted.family->sm_count(wanted.set);
    if (held.empty())
        return wanted.family->sm_count(own);
    std::set<uint32_t> ids;
    const auto add = [&](const SmResource& sms) {
        const std::vector<uint32_t> more = sm_ids_of(sms);
        ids.insert(more.begin(), more.end());
    };
    add({wanted.device, wanted.family, own});
    for (const auto& [family, set] : held)
        add({wanted.device, family, set});
    const std::vector<uint32_t> of_wanted = sm_ids_of(wanted);
    return static_cast<uint32_t>(std::count_if(of_wanted.begin(), of_wanted.end(),
                                               [&](uint32_t id) { return ids.contains(id); }));
}

SplitResult split_checked(const gcx_resource* input, const gcx_sm_request* requests,
                          uint32_t request_count, uint32_t flags) {
    if (request_count != 0)
        not_null(requests, "requests");
    Library& lib = library();
    return split(lib.leases, lib.sm_resource(input), std::span(requests, request_count), flags);
}

} // namespace

gcx_result gcx_device_get_resource(int32_t device, gcx_resource_type type, gcx_resource* resource) {
    GCX_BODY({
        not_null(resource, "resource");
        Device& its_device = library().device(device);
        switch (type) {
        case GCX_RESOURCE_SM: {
            const auto family = its_device.family(GCX_SM_FAMILY_COSCHEDULED);
            *resource = seal({&its_device, family, family->all()});
            return;
        }
        case GCX_RESOURCE_WORKQUEUE_CONFIG:
            *resource = default_workqueue(its_device);
            return;
        case GCX_RESOURCE_WORKQUEUE:
            fail(GCX_ERROR_INVALID_RESOURCE_TYPE,
                 "only a context has a GCX_RESOURCE_WORKQUEUE; a device has "
                 "GCX_RESOURCE_WORKQUEUE_CONFIG");
        }
        refuse_type(type);
    });
}

gcx_result gcx_resource_get_info(const gcx_resource* resource, gcx_resource_info* info) {
    GCX_BODY({
        check_size(info, "info");
        const ResourceWords words = unseal(resource);
        gcx_resource_info filled = GCX_RESOURCE_INFO_INIT;
        filled.type = words.type;
        filled.device = words.device;
        if (words.family == GCX_SM_FAMILY_FOREIGN) {
            describe(words.external, filled);
        } else if (words.type == GCX_RESOURCE_SM) {
            const SmResource sm = library().sm_resource(resource);
            sm.family->describe(sm.set, filled);
        } else {
            filled.workqueue_scope = words.workqueue.scope;
            filled.workqueue_concurrency_limit = words.workqueue.concurrency_limit;
        }
        *info = filled;
    });
}

gcx_result gcx_workqueue_configure(const gcx_resource* config, gcx_workqueue_scope scope,
                                   uint32_t concurrency_limit, gcx_resource* configured) {
    GCX_BODY({
        not_null(configured, "configured");
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
                        gcx_resource* remainder) {
    GCX_BODY({
        if (request_count != 0) // the message of an empty list is about the list
            not_null(groups, "groups");
        const SplitResult result = split_checked(input, requests, request_count, flags);
        std::vector<gcx_resource> sealed;
        sealed.reserve(result.groups.size());
        for (const SmResource& group : result.groups)
            sealed.push_back(seal(group));
        if (remainder != nullptr)
            *remainder = seal(result.remainder);
        std::copy(sealed.begin(), sealed.end(), groups);
    });
}

gcx_result gcx_sm_plan(const gcx_resource* input, const gcx_sm_request* requests,
                       uint32_t request_count, uint32_t flags, uint32_t* sm_counts,
                       uint32_t* remainder_sm_count) {
    GCX_BODY({
        const SplitResult result = split_checked(input, requests, request_count, flags);
        if (sm_counts != nullptr) {
            for (std::size_t i = 0; i < result.groups.size(); i++)
                sm_counts[i] = result.groups[i].family->sm_count(result.groups[i].set);
        }
        if (remainder_sm_count != nullptr)
            *remainder_sm_count = result.remainder.family->sm_count(result.remainder.set);
    });
}

gcx_result gcx_resource_union(const gcx_resource* a, const gcx_resource* b, gcx_resource* result) {
    GCX_BODY({ combine(a, b, result, [](const AtomSet& x, const AtomSet& y) { return x | y; }); });
}

gcx_result gcx_resource_subtract(const gcx_resource* a, const gcx_resource* b,
                                 gcx_resource* result) {
    GCX_BODY({ combine(a, b, result, [](const AtomSet& x, const AtomSet& y) { return x - y; }); });
}

gcx_result gcx_resource_intersect(const gcx_resource* a, const gcx_resource* b,
                                  gcx_resource* result) {
    GCX_BODY({ combine(a, b, result, [](const AtomSet& x, const AtomSet& y) { return x & y; }); });
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

gcx_result gcx_resource_get_live_overlap(const gcx_resource* resource, uint32_t* sm_count) {
    GCX_BODY({
        not_null(sm_count, "sm_count");
        Library& lib = library();
        *sm_count = live_overlap(lib, lib.sm_resource(resource));
    });
}

gcx_result gcx_resource_get_sm_ids(const gcx_resource* resource, uint32_t* sm_ids,
                                   uint32_t capacity, uint32_t* count) {
    GCX_BODY({ give_sm_ids(sm_ids_of(library().sm_resource(resource)), sm_ids, capacity, count); });
}

gcx_result gcx_resource_get_max_cluster_size(const gcx_resource* resource, uint32_t* blocks) {
    GCX_BODY({
        not_null(blocks, "blocks");
        Library& lib = library();
        const SmResource sms = lib.sm_resource(resource);
        if (sms.set.empty())
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 "the resource holds no SMs, so that no kernel runs on it");
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

gcx_result gcx_device_map_sms(int32_t device, gcx_sm_family family) {
    GCX_BODY({
        Library& lib = library();
        Device& its_device = lib.device(device);
        if (family != GCX_SM_FAMILY_COSCHEDULED && family != GCX_SM_FAMILY_FINE &&
            family != GCX_SM_FAMILY_MAX_CLUSTER)
            fail(GCX_ERROR_INVALID_VALUE,
                 format(
                     "family %d can't be mapped; coscheduled (1), fine (2) and max-cluster (3) can",
                     family));
        const auto its_family = its_device.family(family);
        if (its_family->sm_map() != nullptr) // asks the driver nothing
            return;
        refuse_virtual_numbers(lib, its_device, "they don't tell which SMs an atom holds");
        lib.probe.map_family(lib.cache, its_device, its_family);
    });
}

gcx_result gcx_device_get_shared_sms(int32_t device, uint32_t* sm_ids, uint32_t capacity,
                                     uint32_t* count) {
    GCX_BODY({
        not_null(count, "count");
        Library& lib = library();
        Device& its_device = lib.device(device);
        if (its_device.may_share_sms())
            refuse_virtual_numbers(lib, its_device,
                                   "they don't tell which SMs partitions have in common");
        give_sm_ids(lib.probe.shared_sms(lib.cache, its_device), sm_ids, capacity, count);
    });
}
