// Shared by the tests of leases: functions that create a lease or describe it, and check that this
// succeeds.
#pragma once

#include "support.hpp"

#include <atomic>
#include <thread>

namespace support {

struct Terms {
    const char* name = nullptr;
    uint32_t timeout_ms = 0;
    gcx_cancel cancel = nullptr;
    uint32_t min_sm_count = 0;
    uint32_t flags = 0;
    uint32_t exclusive = 0;
    gcx_reservation reservation = nullptr;
    gcx_sm_family family = GCX_SM_FAMILY_NONE;
};
gcx_result try_acquire(uint32_t sm_count, const Terms& terms, gcx_lease* lease);
// Returns whether SMs could be acquired, and releases them.
gcx_result try_acquire(uint32_t sm_count, const Terms& terms = {});
gcx_lease acquire(uint32_t sm_count, const Terms& terms);
gcx_lease acquire(uint32_t sm_count, const char* name = nullptr, uint32_t flags = 0,
                  int32_t device = 0);
gcx_stream stream_of(gcx_lease lease);
gcx_resource resource_of(gcx_lease lease);
gcx_lease_info info_of(gcx_lease lease);
uint32_t sms_of(gcx_lease lease);
gcx_result resize(const std::vector<gcx_lease_size>& sizes, uint32_t flags = GCX_RESIZE_DEFAULT);
gcx_result prepare(const std::vector<gcx_lease_size>& sizes);
// Parks the first lease and gives its SMs to the second.
gcx_result hand_over(gcx_lease from, gcx_lease to, uint32_t flags = GCX_RESIZE_DEFAULT);
void release_all(const std::vector<gcx_stream>& streams, const std::vector<gcx_lease>& leases);

// Returns the number of requests on device 0 that wait.
uint32_t waiting_requests();

// Acquires a lease in a thread. The constructor returns when the request waits, or has ended.
class WaitingAcquire {
  public:
    explicit WaitingAcquire(uint32_t sm_count, Terms terms = {});
    ~WaitingAcquire() { result(); }
    WaitingAcquire(const WaitingAcquire&) = delete;
    WaitingAcquire& operator=(const WaitingAcquire&) = delete;

    gcx_result result(); // of the call, after its end
    gcx_lease get();     // the lease, after the call has succeeded

  private:
    gcx_result result_ = GCX_SUCCESS;
    gcx_lease lease_ = nullptr;
    std::atomic<bool> ended_{false};
    std::thread thread_;
};

// Returns the live leases of a device, or of all with -1.
std::vector<gcx_live_lease> live_leases(int32_t device = -1);
// Checks that no two leases of an H100 share SMs and that all other SMs are free. Returns the
// number of leases.
std::size_t check_live_leases();

} // namespace support
