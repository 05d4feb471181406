#include "sim/partition/resource.hpp"
#include "sim/entry/entry.hpp"
#include "sim/partition/partition.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace gcx::sim {
namespace {

// The hidden bytes. The checksum includes the union's visible fields. As in the real driver, a mask of
// the SMs begins at byte 24, and some SMs have their bits at byte 88 instead: on an H200 four of its
// TPCs, here the device's last SMs. What is queried of a device or context has no bit
// (docs/measurements/log.md).
struct Hidden {
    uint32_t epoch;
    uint32_t checksum;
    uint8_t device;
    uint8_t structured;
    uint8_t origin;
    uint8_t family;
    uint32_t split;
    uint16_t reported;
    uint16_t reserved;
    uint8_t sms[kMaxSms / 8];
    uint8_t context[8];
    uint8_t padding[56 - kMaxSms / 8];
    uint8_t last_sms;
    uint8_t more_padding[7];
};
static_assert(sizeof(Hidden) == 92);
constexpr std::size_t kHiddenOffset = 4;
static_assert(kHiddenOffset + offsetof(Hidden, sms) == 24);
static_assert(kHiddenOffset + offsetof(Hidden, last_sms) == 88);
constexpr std::size_t kLastSms = 8;
constexpr std::size_t kChecksumOffset = kHiddenOffset + offsetof(Hidden, checksum);

void write_sms(const SmSet& sms, std::size_t sm_count, Hidden& hidden) {
    for (std::size_t sm = 0; sm < sm_count; sm++) {
        if (!sms[sm])
            continue;
        const bool last = sm + kLastSms >= sm_count;
        uint8_t& byte = last ? hidden.last_sms : hidden.sms[sm / 8];
        byte = static_cast<uint8_t>(byte | (1U << (last ? sm_count - 1 - sm : sm % 8)));
    }
}

SmSet read_sms(const Hidden& hidden, std::size_t sm_count) {
    SmSet sms;
    for (std::size_t sm = 0; sm < sm_count; sm++) {
        const bool last = sm + kLastSms >= sm_count;
        const uint8_t byte = last ? hidden.last_sms : hidden.sms[sm / 8];
        if ((byte >> (last ? sm_count - 1 - sm : sm % 8)) & 1U)
            sms.set(sm);
    }
    return sms;
}

SmSet sms_of(const Machine& machine, const SmResource& resource, const Hidden& hidden) {
    const Profile& profile = machine.devices[resource.device]->profile;
    if (resource.origin == ResourceOrigin::Device)
        return profile.all();
    if (resource.origin != ResourceOrigin::Context)
        return read_sms(hidden, profile.sm_count);
    const auto found = machine.contexts.find(resource.context);
    check_configuration(found != machine.contexts.end());
    return found->second->sms;
}

uint32_t checksum(const CUdevResource& resource) {
    // FNV-1a over all bytes except the checksum and the pointer at the end.
    const auto* bytes = reinterpret_cast<const unsigned char*>(&resource);
    uint64_t hash = 0xcbf29ce484222325;
    for (std::size_t i = 0; i < cu::kResourceBytes - sizeof(void*); i++) {
        if (i >= kChecksumOffset && i < kChecksumOffset + sizeof(uint32_t))
            continue;
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    }
    const auto folded = static_cast<uint32_t>(hash ^ (hash >> 32));
    return folded == 0 ? 1 : folded;
}

// Fine splits take the first TPC of each GPC one by one, and the driver then treats it separately
// from the GPC's other SMs. Recorded for 64 SMs of a direct split with four TPCs of four GPCs: the
// largest cluster has 6 blocks, not 8, and 80 clusters of 4 fit, not 112.
Fragments gpc_fragments(const Profile& profile, const SmSet& sms, bool first_separate) {
    Fragments fragments;
    for (const SmList& gpc : profile.gpcs) {
        SmSet rest = to_set(gpc) & sms;
        if (first_separate && gpc.size() > 2) {
            const SmSet first = to_set({gpc[0], gpc[1]}) & rest;
            if (first.any())
                fragments.push_back(first);
            rest &= ~first;
        }
        if (rest.any())
            fragments.push_back(rest);
    }
    return fragments;
}

void write_workqueue(const Machine& machine, const Device& device, const Context* context,
                     CUdevResource& out, CUdevResourceType type) {
    require(machine.has(kHasWorkqueues), CUDA_ERROR_INVALID_RESOURCE_TYPE);
    Workqueue queue;
    if (context != nullptr)
        queue = context->workqueue;
    if (queue.concurrency_limit == 0)
        queue.concurrency_limit = machine.connections;
    write_invalid_resource(out);
    out.type = type;
    if (type == cu::kResourceWorkqueueConfig)
        return cu::set_fields(
            out, cu::WorkqueueFields{device.ordinal, queue.concurrency_limit, queue.scope});
    // The header mentions only contexts, but cuda.core also queries devices.
    const Handle id = queue.id != 0 ? queue.id : device.workqueue;
    cu::set_fields(out, id);
}

} // namespace

void check_configuration(bool holds) {
    require(holds, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

Fragments resource_fragments(const Machine& machine, const SmResource& resource) {
    if (resource.origin == ResourceOrigin::Context)
        if (const auto found = machine.contexts.find(resource.context);
            found != machine.contexts.end())
            return found->second->fragments;
    const Profile& profile = machine.devices[resource.device]->profile;
    return gpc_fragments(profile, resource.sms, resource.family == kFine);
}

void write_invalid_resource(CUdevResource& out) {
    std::memset(&out, 0, sizeof out);
}

void write_resource(const Machine& machine, const SmResource& resource, CUdevResource& out) {
    write_invalid_resource(out);
    if (resource.sms.none())
        return;
    out.type = cu::kResourceSm;
    cu::SmFields fields{};
    fields.sm_count = resource.reported;
    if (machine.has(kHasSmResourceFields)) {
        fields.min_partition_size = resource.min_partition_size;
        fields.coscheduled_alignment = resource.alignment;
        fields.flags = resource.flags;
    }
    if (machine.has(kHasLocalityDomains))
        fields.locality_domain_id = resource.locality_domain;
    cu::set_fields(out, fields);

    Hidden hidden{};
    hidden.device = static_cast<uint8_t>(resource.device);
    hidden.origin = static_cast<uint8_t>(resource.origin);
    hidden.family = static_cast<uint8_t>(resource.family);
    hidden.split = static_cast<uint32_t>(resource.split);
    std::memcpy(hidden.context, &resource.context, sizeof hidden.context);
    hidden.epoch = static_cast<uint32_t>(machine.epoch);
    hidden.reported = static_cast<uint16_t>(resource.reported);
    hidden.structured = resource.structured ? 1 : 0;
    if (resource.origin == ResourceOrigin::Group || resource.origin == ResourceOrigin::Remainder)
        write_sms(resource.sms, machine.devices[resource.device]->profile.sm_count, hidden);
    char* const place = reinterpret_cast<char*>(&out) + kHiddenOffset;
    std::memcpy(place, &hidden, sizeof hidden);
    hidden.checksum = checksum(out);
    std::memcpy(place, &hidden, sizeof hidden);
}

SmResource read_resource(const Machine& machine, const CUdevResource& in) {
    require(in.type == cu::kResourceSm, CUDA_ERROR_INVALID_RESOURCE_TYPE);
    Hidden hidden;
    std::memcpy(&hidden, reinterpret_cast<const char*>(&in) + kHiddenOffset, sizeof hidden);
    require(hidden.checksum == checksum(in) &&
                hidden.epoch == static_cast<uint32_t>(machine.epoch) &&
                hidden.device < machine.devices.size(),
            CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    const auto fields = cu::get_fields<cu::SmFields>(in);
    SmResource resource;
    resource.device = hidden.device;
    resource.origin = static_cast<ResourceOrigin>(hidden.origin);
    resource.family = static_cast<FamilyKind>(hidden.family);
    resource.split = hidden.split;
    std::memcpy(&resource.context, hidden.context, sizeof hidden.context);
    resource.structured = hidden.structured != 0;
    resource.reported = hidden.reported;
    resource.sms = sms_of(machine, resource, hidden);
    resource.min_partition_size = fields.min_partition_size;
    resource.alignment = fields.coscheduled_alignment;
    resource.flags = fields.flags;
    resource.locality_domain = fields.locality_domain_id;
    return resource;
}

SmResource device_resource(const Device& device) {
    SmResource resource;
    resource.device = static_cast<unsigned>(device.ordinal);
    resource.sms = device.profile.all();
    resource.reported = device.profile.sm_count;
    resource.min_partition_size = device.profile.min_partition_size;
    resource.alignment = device.profile.coscheduled_alignment;
    return resource;
}

SmResource context_resource(const Context& context) {
    SmResource resource;
    resource.origin = ResourceOrigin::Context;
    resource.device = static_cast<unsigned>(context.device->ordinal);
    resource.context = context.handle;
    resource.sms = context.sms;
    resource.reported = context.reported_sms;
    resource.min_partition_size = context.min_partition_size;
    resource.alignment = context.alignment;
    resource.flags = context.flags;
    resource.locality_domain = context.locality_domain;
    return resource;
}

void query_resource(const Machine& machine, const Device& device, const Context* context,
                    CUdevResource* out, CUdevResourceType type) {
    require(out != nullptr);
    if (type == cu::kResourceSm)
        return write_resource(
            machine, context == nullptr ? device_resource(device) : context_resource(*context),
            *out);
    require(type == cu::kResourceWorkqueueConfig || type == cu::kResourceWorkqueue,
            CUDA_ERROR_INVALID_RESOURCE_TYPE);
    write_workqueue(machine, device, context, *out, type);
}

} // namespace gcx::sim
