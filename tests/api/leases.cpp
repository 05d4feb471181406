#include "leases.hpp"

namespace support {

gcx_result try_acquire(uint32_t sm_count, const Terms& terms, gcx_lease* lease) {
    gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
    params.name = terms.name;
    params.timeout_ms = terms.timeout_ms;
    params.cancel = terms.cancel;
    params.min_sm_count = terms.min_sm_count;
    params.flags = terms.flags;
    params.exclusive_sm_count = terms.exclusive;
    params.family = terms.family;
    params.reservation = terms.reservation;
    return gcx_lease_acquire(0, sm_count, &params, lease);
}

gcx_result try_acquire(uint32_t sm_count, const Terms& terms) {
    gcx_lease lease = nullptr;
    const gcx_result result = try_acquire(sm_count, terms, &lease);
    CHECK_EQ(result == GCX_SUCCESS, lease != nullptr);
    if (lease != nullptr)
        CHECK_OK(gcx_lease_release(lease));
    return result;
}

gcx_lease acquire(uint32_t sm_count, const Terms& terms) {
    gcx_lease lease = nullptr;
    CHECK_OK(try_acquire(sm_count, terms, &lease));
    return lease;
}

gcx_lease acquire(uint32_t sm_count, const char* name, uint32_t flags, int32_t device) {
    gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
    params.name = name;
    params.flags = flags;
    gcx_lease lease = nullptr;
    CHECK_OK(gcx_lease_acquire(device, sm_count, &params, &lease));
    return lease;
}

gcx_stream stream_of(gcx_lease lease) {
    gcx_stream stream = nullptr;
    CHECK_OK(gcx_lease_stream_create(lease, nullptr, &stream));
    return stream;
}

gcx_resource resource_of(gcx_lease lease) {
    gcx_resource resource{};
    CHECK_OK(gcx_lease_get_resource(lease, &resource));
    return resource;
}

gcx_lease_info info_of(gcx_lease lease) {
    gcx_lease_info info = GCX_LEASE_INFO_INIT;
    CHECK_OK(gcx_lease_get_info(lease, &info));
    return info;
}

uint32_t sms_of(gcx_lease lease) {
    return info_of(lease).sm_count;
}

gcx_result resize(const std::vector<gcx_lease_size>& sizes, uint32_t flags) {
    return gcx_lease_resize(sizes.data(), static_cast<uint32_t>(sizes.size()), flags);
}

gcx_result prepare(const std::vector<gcx_lease_size>& sizes) {
    return gcx_lease_prepare(sizes.data(), static_cast<uint32_t>(sizes.size()));
}

gcx_result hand_over(gcx_lease from, gcx_lease to, uint32_t flags) {
    return resize({{from, 0, GCX_SIZE_PARKED}, {to, sms_of(from) + sms_of(to), 0}}, flags);
}

void release_all(const std::vector<gcx_stream>& streams, const std::vector<gcx_lease>& leases) {
    for (gcx_stream stream : streams)
        CHECK_OK(gcx_stream_destroy(stream));
    for (gcx_lease lease : leases)
        CHECK_OK(gcx_lease_release(lease));
}

uint32_t waiting_requests() {
    uint32_t waits = 0;
    for (const gcx_live_lease& lease : live_leases(0))
        waits += lease.waits;
    return waits;
}

WaitingAcquire::WaitingAcquire(uint32_t sm_count, Terms terms) {
    if (terms.timeout_ms == 0)
        terms.timeout_ms = GCX_FOREVER;
    const uint32_t before = waiting_requests();
    thread_ = std::thread([=, this] {
        result_ = try_acquire(sm_count, terms, &lease_);
        ended_ = true;
    });
    while (waiting_requests() == before && !ended_)
        std::this_thread::yield();
}

gcx_result WaitingAcquire::result() {
    if (thread_.joinable())
        thread_.join();
    return result_;
}

gcx_lease WaitingAcquire::get() {
    CHECK_OK(result());
    return lease_;
}

std::vector<gcx_live_lease> live_leases(int32_t device) {
    std::vector<gcx_live_lease> live(64);
    uint32_t count = 0;
    CHECK_OK(gcx_lease_list(device, live.data(), 64, &count));
    live.resize(count);
    return live;
}

std::size_t check_live_leases() {
    const std::vector<gcx_live_lease> live = live_leases(0);
    uint32_t in_use = 0;
    for (std::size_t i = 0; i < live.size(); i++) {
        CHECK_EQ(sms(live[i].resource), live[i].sm_count);
        in_use += live[i].sm_count;
        for (std::size_t j = 0; j < i; j++)
            CHECK_EQ(overlap(live[i].resource, live[j].resource), 0U);
    }
    const Split free = try_split(whole_device(), {GCX_REST}, GCX_SPLIT_EXCLUDE_LEASED);
    CHECK_EQ(free.result == GCX_SUCCESS ? sms(free.groups[0]) : 0, 132U - in_use);
    return live.size();
}

} // namespace support
