// Operations on leases and queues. Also checks that two leases share an SM only if both are shared,
// and that a resize yields at least the requested sizes.

#include "api.hpp"

#include <cstring>
#include <memory>
#include <string>

namespace fuzz {
namespace {

constexpr std::size_t kMaxLive = 64;

bool overlap(const gcx_live_lease& a, const gcx_live_lease& b) {
    uint32_t sms = 0;
    return gcx_resource_get_overlap(&a.resource, &b.resource, &sms) == GCX_SUCCESS && sms != 0;
}

void check_live(const gcx_live_lease* live, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        must(live[i].waits == 1 || sm_count_of(live[i].resource) == live[i].sm_count,
             "a lease's SMs");
        for (uint32_t j = 0; j < i; j++) {
            const bool shared = (live[i].flags & live[j].flags & GCX_LEASE_SHARED) != 0;
            must(shared || !overlap(live[i], live[j]), "two leases have an SM in common");
        }
    }
}

gcx_lease_params params_of(Bytes& bytes, Shared& shared, std::string& name) {
    gcx_lease_params params = sized<gcx_lease_params>(bytes).value;
    params.flags = bytes.next() % 5;
    params.family = static_cast<gcx_sm_family>(bytes.next() % 7);
    params.min_sm_count = bytes.flag() ? bytes.next() : 0;
    params.exclusive_sm_count = bytes.flag() ? bytes.next() : 0;
    params.timeout_ms = bytes.next() % 3; // long waits would time the fuzzer out
    params.cancel = bytes.flag() ? shared.cancels.pick(bytes) : nullptr;
    name.assign(bytes.next() % 70, 'x');
    params.name = bytes.flag() ? name.c_str() : nullptr;
    return params;
}

} // namespace

void acquire_lease(Bytes& bytes, Shared& shared) {
    std::string name;
    const gcx_lease_params params = params_of(bytes, shared, name);
    const int32_t which = device(bytes);
    const uint32_t count = bytes.count();
    Out<gcx_lease> lease;
    if (CALL_OUT(lease, gcx_lease_acquire(which, count, bytes.flag() ? &params : nullptr,
                                          &lease.value)) == GCX_SUCCESS)
        shared.leases.put(bytes, lease.value);
}

void resize_leases(Bytes& bytes, Shared& shared) {
    std::vector<gcx_lease_size> sizes;
    for (unsigned left = 1U + (bytes.next() & 3); left > 0; left--) {
        gcx_lease lease = shared.leases.pick(bytes);
        const uint32_t count = bytes.count();
        const uint8_t kind = bytes.next();
        sizes.push_back({lease, kind >= 0xf0 ? 0U : count, kind >= 0xe8 ? GCX_SIZE_PARKED : 0U});
    }
    const auto count = static_cast<uint32_t>(sizes.size());
    if (bytes.flag())
        CALL(gcx_lease_prepare(sizes.data(), count));
    std::vector<gcx_resource> planned(count + 1);
    const gcx_result told =
        CALL(gcx_lease_get_layout(sizes.data(), count, planned.data(), &planned.back()));
    if (CALL(gcx_lease_resize(sizes.data(), count, bytes.next() % 3)) != GCX_SUCCESS ||
        !shared.single_thread)
        return;
    must(told == GCX_SUCCESS, "a layout of sizes that leases can have");
    for (uint32_t i = 0; i < count; i++) {
        gcx_resource has{};
        if (gcx_lease_get_resource(sizes[i].lease, &has) == GCX_SUCCESS)
            must(std::memcmp(&has, &planned[i], sizeof has) == 0, "SMs as the layout had them");
    }
    for (const gcx_lease_size& size : sizes) {
        gcx_lease_info info = GCX_LEASE_INFO_INIT;
        if (gcx_lease_get_info(size.lease, &info) == GCX_SUCCESS)
            must((size.sm_count == GCX_REST || info.sm_count >= size.sm_count) &&
                     (info.sm_count == 0) == (size.flags == GCX_SIZE_PARKED),
                 "a lease's new size");
    }
}

void park_lease(Bytes& bytes, Shared& shared) {
    gcx_lease from = shared.leases.pick(bytes);
    gcx_lease to = shared.leases.pick(bytes);
    const gcx_lease_size sizes[] = {{from, 0, GCX_SIZE_PARKED}, {to, GCX_REST, 0}};
    gcx_lease_info info = GCX_LEASE_INFO_INIT;
    if (CALL(gcx_lease_resize(sizes, 2, bytes.next() % 3)) == GCX_SUCCESS && shared.single_thread &&
        gcx_lease_get_info(from, &info) == GCX_SUCCESS)
        must(info.sm_count == 0, "a parked lease has SMs");
}

void lease_stream(Bytes& bytes, Shared& shared) {
    gcx_lease lease = shared.leases.pick(bytes);
    auto params = sized<gcx_stream_params>(bytes);
    params.value.sync = static_cast<gcx_stream_sync>(bytes.next() % 17 == 0);
    params.value.priority = static_cast<int8_t>(bytes.next());
    Out<gcx_stream> stream;
    if (CALL_OUT(stream, gcx_lease_stream_create(lease, bytes.flag() ? &params.value : nullptr,
                                                 &stream.value)) == GCX_SUCCESS)
        shared.streams.put(bytes, stream.value);
}

void lease_facts(Bytes& bytes, Shared& shared) {
    gcx_lease lease = shared.leases.pick(bytes);
    auto info = sized<gcx_lease_info>(bytes);
    CALL_OUT(info, gcx_lease_get_info(lease, &info.value));
    Out<gcx_resource> resource;
    if (CALL_OUT(resource, gcx_lease_get_resource(lease, &resource.value)) == GCX_SUCCESS)
        shared.put(bytes, resource.value);
    CALL(gcx_lease_query(lease));
    if (bytes.flag())
        CALL(gcx_lease_synchronize(lease));
}

void live_leases(Bytes& bytes, Shared& shared) {
    const int32_t which = bytes.flag() ? -1 : device(bytes);
    const uint32_t capacity = bytes.next() & (kMaxLive - 1);
    const std::unique_ptr<gcx_live_lease[]> live(new gcx_live_lease[capacity]);
    uint32_t count = 0;
    if (CALL(gcx_lease_list(which, live.get(), capacity, &count)) == GCX_SUCCESS) {
        must(count <= capacity, "more leases than there is room for");
        check_live(live.get(), count);
    }
    const gcx_resource input = shared.resource(bytes);
    const gcx_sm_request request = {bytes.count(), 0, 0, 0, 0, {}};
    Out<gcx_resource> group;
    CALL_OUT(group, gcx_sm_split(&input, &request, 1, GCX_SPLIT_EXCLUDE_LEASED, &group.value,
                                 nullptr, nullptr, nullptr));
}

void cancel(Bytes& bytes, Shared& shared) {
    Out<gcx_cancel> made;
    if (bytes.flag() && CALL_OUT(made, gcx_cancel_create(&made.value)) == GCX_SUCCESS)
        shared.cancels.put(bytes, made.value);
    gcx_cancel picked = shared.cancels.pick(bytes);
    CALL(gcx_cancel_signal(picked));
    if (bytes.flag())
        shared.cancels.destroy(shared.cancels.pick(bytes));
}

void publish(Bytes& bytes, Shared& shared) {
    const std::string name(bytes.next() % 70, 'x');
    if (bytes.flag())
        CALL(gcx_publish_start(bytes.flag() ? name.c_str() : nullptr));
    const uint32_t capacity = bytes.next() & (kMaxLive - 1);
    const std::unique_ptr<gcx_published_lease[]> leases(new gcx_published_lease[capacity]);
    const std::unique_ptr<gcx_published_process[]> processes(new gcx_published_process[capacity]);
    uint32_t count = 0;
    if (CALL(gcx_published_process_list(processes.get(), capacity, &count)) == GCX_SUCCESS)
        must(count <= 1, "a process that does not exist");
    if (CALL(gcx_published_lease_list(leases.get(), capacity, &count)) == GCX_SUCCESS) {
        must(count <= capacity, "more published leases than there is room for");
        uint32_t live = 0;
        if (shared.single_thread &&
            gcx_lease_list(-1, nullptr, 0, &live) != GCX_ERROR_NOT_INITIALIZED)
            must(count == 0 || count == live, "published leases differ from live ones");
    }
    if (bytes.flag())
        CALL(gcx_publish_stop());
}

// No library that reports counts is installed, so that the request fails and changes nothing.
void partition_counts(Bytes& bytes, Shared&) {
    if (bytes.flag())
        must(CALL(gcx_driver_report_partition_counts()) != GCX_SUCCESS, "counts without a library");
}

void queues(Bytes& bytes, Shared& shared) {
    auto info = sized<gcx_queue_info>(bytes);
    if (CALL_OUT(info, gcx_queue_get_info(&info.value)) == GCX_SUCCESS)
        must(info.value.connections <= GCX_MAX_CONNECTIONS, "connections");
    // Sets the environment, which other threads read.
    const uint32_t requested = bytes.number();
    if (shared.single_thread && CALL(gcx_queue_request_connections(requested)) == GCX_SUCCESS) {
        gcx_queue_info now = GCX_QUEUE_INFO_INIT;
        must(gcx_queue_get_info(&now) == GCX_SUCCESS && now.connections >= requested,
             "fewer connections than were granted");
    }
}

} // namespace fuzz
