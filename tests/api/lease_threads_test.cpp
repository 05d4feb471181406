// Changes leases, or locks a reservation folder, in one thread while another is in the middle of a
// call, on a driver that blocks the calls a test names.

#include "driver_wrapper.hpp"
#include "leases.hpp"
#include "publish.hpp"
#include "work.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

using namespace support;

namespace {

std::string driver_path;

template <class Function>
Function* control(const char* name) {
    void* const library = dlopen(driver_path.c_str(), RTLD_NOW);
    CHECK(library != nullptr);
    return reinterpret_cast<Function*>(dlsym(library, name));
}

// Keeps another thread inside a driver function until it is destroyed.
class BlockedCall {
  public:
    BlockedCall(const char* function, std::function<gcx_result()> call) {
        block(function);
        thread_ = std::thread([this, call = std::move(call)] { result_ = call(); });
        await();
    }
    gcx_result finish() {
        block(nullptr);
        thread_.join();
        return result_;
    }

    driver_wrapper::BlockFunction* const block =
        control<driver_wrapper::BlockFunction>("block_calls");
    driver_wrapper::BlockedFunction* const await =
        control<driver_wrapper::BlockedFunction>("await_blocked_call");
    driver_wrapper::BlockedFunction* const release =
        control<driver_wrapper::BlockedFunction>("release_blocked_call");

  private:
    gcx_result result_ = GCX_SUCCESS;
    std::thread thread_;
};

gcx_result resize(gcx_lease lease, uint32_t sm_count) {
    return support::resize({{lease, sm_count, 0}});
}

gcx_result probe(gcx_stream stream) {
    SmIds ids(GCX_MAX_SMS);
    uint32_t count = 0;
    return gcx_stream_probe_sms(stream, ids.data(), GCX_MAX_SMS, &count);
}

void release_during_synchronize_frees_sms() {
    const Work work;
    const gcx_lease lease = acquire(GCX_REST);
    const gcx_stream stream = stream_of(lease);
    work.spin(gcx_stream_native(stream), 1'000'000'000);
    BlockedCall call("cuEventSynchronize", [&] { return gcx_lease_synchronize(lease); });
    CHECK_OK(gcx_lease_release(lease));
    const gcx_lease next = acquire(24);
    CHECK_REFUSED(gcx_lease_release(lease), GCX_ERROR_INVALID_HANDLE);
    CHECK_OK(call.finish());
    release_all({stream}, {next});
}

// A probe waits for work, too: neither a change nor a release may wait for the probe.
void release_during_probe_frees_sms() {
    const gcx_lease lease = acquire(GCX_REST);
    const gcx_stream stream = stream_of(lease);
    BlockedCall call("cuEventSynchronize", [&] { return probe(stream); });
    CHECK_OK(resize(lease, 64));
    CHECK_OK(gcx_lease_release(lease));
    const gcx_lease next = acquire(132);
    const gcx_result result = call.finish();
    CHECK(result == GCX_SUCCESS || result == GCX_ERROR_CONTEXT_IS_DESTROYED);
    release_all({stream}, {next});
}

void probe_of_moved_stream_sees_new_sms() {
    const gcx_lease lease = acquire(24);
    const gcx_stream stream = stream_of(lease);
    SmIds ids(GCX_MAX_SMS);
    uint32_t count = 0;
    // The first kernel is launched, and the thread waits for its end on 24 SMs.
    BlockedCall call("cuEventSynchronize",
                     [&] { return gcx_stream_probe_sms(stream, ids.data(), GCX_MAX_SMS, &count); });
    CHECK_OK(resize(lease, 64));
    CHECK_OK(call.finish());
    CHECK(count == 24 || count == 64);
    CHECK_OK(gcx_stream_probe_sms(stream, ids.data(), GCX_MAX_SMS, &count));
    CHECK_EQ(count, 64U);
    release_all({stream}, {lease});
}

void probe_of_stream_that_moves_each_time_times_out() {
    constexpr int kProbes = 64; // after which gcx_stream_probe_sms gives up
    const gcx_lease lease = acquire(8);
    const gcx_stream stream = stream_of(lease);
    BlockedCall call("cuMemsetD32Async", [&] { return probe(stream); });
    for (int i = 0; i < kProbes; i++) {
        call.await();
        CHECK_OK(resize(lease, i % 2 == 0 ? 16 : 8));
        call.release();
    }
    CHECK_EQ(call.finish(), GCX_ERROR_TIMEOUT);
    CHECK_OK(probe(stream));
    release_all({stream}, {lease});
}

// A change by another thread takes effect after the call that is in progress.
void change_waits_for(const char* function, const std::function<gcx_result(gcx_stream)>& act) {
    const gcx_lease lease = acquire(64);
    const gcx_stream stream = stream_of(lease);
    CHECK(gcx_stream_native(stream) != nullptr);
    BlockedCall call(function, [&] { return act(stream); });
    std::atomic<bool> changed{false};
    std::thread other([&] {
        CHECK_OK(resize(lease, 32));
        changed = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK(!changed);
    CHECK_OK(call.finish());
    other.join();
    CHECK_EQ(sms_of(lease), 32U);
    release_all({stream}, {lease});
}

void change_waits_for_submissions() {
    gcx_event event = make_event();
    change_waits_for("cuStreamWaitEvent",
                     [&](gcx_stream stream) { return gcx_stream_wait(stream, event); });
    change_waits_for("cuEventRecord",
                     [&](gcx_stream stream) { return gcx_stream_record(stream, event); });
    change_waits_for("cuLaunchKernel", probe);
    CHECK_OK(gcx_event_destroy(event));
}

void wait_during_change_holds_later_work() {
    const Work work;
    const gcx_lease lease = acquire(64);
    const gcx_lease second = acquire(24);
    const gcx_stream stream = stream_of(lease);
    const gcx_stream other = stream_of(second);
    // Creates the contexts first, since creating one waits for all running work.
    for (const uint32_t count : {32U, 64U}) {
        CHECK_OK(resize(lease, count));
        CHECK(gcx_stream_native(stream) != nullptr);
    }
    gcx_event event = make_event();
    work.spin(gcx_stream_native(other), 5'000'000'000);
    CHECK_OK(gcx_stream_record(other, event));
    BlockedCall call("cuStreamWaitEvent", [&] { return gcx_stream_wait(stream, event); });
    std::thread change([&] {
        CHECK_OK(resize(lease, 32));
        CHECK(gcx_stream_native(stream) != nullptr);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // enough for a wrong change
    CHECK_OK(call.finish());
    change.join();
    CHECK(work.free_at(gcx_stream_native(stream)) >= 5'000.0F);
    CHECK_OK(gcx_event_destroy(event));
    release_all({stream, other}, {lease, second});
}

// The resize that parks a lease happens completely or not at all, whether the lease is released by
// another thread before it or after it.
void parking_during_release_is_all_or_nothing() {
    std::atomic<int> turn{0};
    std::atomic<int> done{0};
    gcx_lease from = nullptr;
    gcx_result released = GCX_SUCCESS;
    const int rounds = check::slow ? 300 : 3'000;
    std::thread other([&] {
        for (int i = 1; i <= rounds; i++) {
            while (turn != i)
                std::this_thread::yield();
            released = gcx_lease_release(from);
            done = i;
        }
    });
    for (int i = 1; i <= rounds; i++) {
        from = acquire(24);
        const gcx_lease to = acquire(32);
        turn = i;
        for (std::atomic<int> wait{i % 300}; wait > 0; wait--) {
        }
        const gcx_result parked = support::resize({{from, 0, GCX_SIZE_PARKED}, {to, 56, 0}});
        while (done != i)
            std::this_thread::yield();
        CHECK_OK(released);
        CHECK_EQ(sms_of(to), parked == GCX_SUCCESS ? 56U : 32U);
        CHECK(parked == GCX_SUCCESS || parked == GCX_ERROR_INVALID_HANDLE ||
              parked == GCX_ERROR_CONTEXT_IS_DESTROYED);
        CHECK_EQ(live_leases().size(), 1U);
        CHECK_OK(gcx_lease_release(to));
    }
    other.join();
}

// One of two threads that release the same lease succeeds.
void release_twice_succeeds_once() {
    for (int i = 0; i < (check::slow ? 200 : 2'000); i++) {
        const gcx_lease lease = acquire(24);
        std::atomic<bool> go{false};
        gcx_result first = GCX_SUCCESS;
        std::thread other([&] {
            while (!go)
                std::this_thread::yield();
            first = gcx_lease_release(lease);
        });
        go = true;
        const gcx_result second = gcx_lease_release(lease);
        other.join();
        CHECK((first == GCX_SUCCESS) != (second == GCX_SUCCESS));
        CHECK(first == GCX_SUCCESS || first == GCX_ERROR_INVALID_HANDLE);
        CHECK(second == GCX_SUCCESS || second == GCX_ERROR_INVALID_HANDLE);
    }
}

// If the driver refuses a release because it can't report when the work is done, the lease stays
// valid, and can be released later.
void refused_release_can_be_repeated() {
    const Work work;
    const gcx_lease lease = acquire(GCX_REST);
    const gcx_stream stream = stream_of(lease);
    work.spin(gcx_stream_native(stream), 1'000'000);
    BlockedCall call("cuEventSynchronize", [&] { return gcx_lease_synchronize(lease); });
    sim::fail("cuEventRecord", 1, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_REFUSED(gcx_lease_release(lease), GCX_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(sms_of(lease), 132U);
    CHECK_OK(gcx_lease_release(lease));
    release_all({}, {acquire(GCX_REST)});
    CHECK_OK(call.finish());
    release_all({stream}, {});
}

// The leases of a device record events of one pool.
void busy_leases_are_synchronized_by_several_threads() {
    const Work work;
    in_threads(4, [&](unsigned) {
        const gcx_lease lease = acquire(24);
        const gcx_stream stream = stream_of(lease);
        for (int round = 0; round < 100; round++) {
            work.spin(gcx_stream_native(stream), 1000);
            CHECK_OK(gcx_lease_synchronize(lease));
        }
        release_all({stream}, {lease});
    });
}

void one_lease_is_used_during_changes() {
    const Work work;
    const gcx_lease lease = acquire(24);
    const gcx_stream stream = stream_of(lease);
    in_threads(5, [&](unsigned i) {
        for (uint32_t round = 0; round < 100; round++) {
            switch (i) {
            case 0:
                CHECK_OK(resize(lease, round % 2 == 0 ? 32 : 24));
                break;
            case 1:
                work.spin(gcx_stream_native(stream), 1000);
                break;
            case 2:
                CHECK_OK(gcx_stream_destroy(stream_of(lease)));
                break;
            case 3:
                CHECK_OK(gcx_lease_synchronize(lease));
                break;
            default:
                const gcx_result result = gcx_lease_query(lease);
                CHECK(result == GCX_SUCCESS || result == GCX_ERROR_NOT_READY);
            }
        }
    });
    release_all({stream}, {lease});
}

// A resize that fails destroys the contexts that it has created. Other leases do not wait for that.
void failed_resize_delays_no_other_lease() {
    CHECK_OK(gcx_cache_set_limit(0));
    const gcx_lease first = acquire(64);
    const gcx_lease second = acquire(32);
    sim::fail("cuGreenCtxCreate", 2, CUDA_ERROR_OUT_OF_MEMORY);
    BlockedCall call("cuGreenCtxDestroy",
                     [&] { return support::resize({{first, 32, 0}, {second, 64, 0}}); });
    std::atomic<bool> listed{false};
    std::thread other([&] {
        CHECK_EQ(live_leases().size(), 2U);
        listed = true;
    });
    for (int i = 0; i < 200 && !listed; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(listed);
    CHECK_EQ(call.finish(), GCX_ERROR_OUT_OF_MEMORY);
    other.join();
    release_all({}, {first, second});
}

// What delays a request before it asks for the folder's lock does not shorten its wait for it.
void delayed_request_waits_for_the_folder() {
    const publish::Folder folder;
    const int lock = open(folder.inner().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(flock(lock, LOCK_EX), 0);
    gcx_reservation reservation = nullptr;
    BlockedCall call("cuDeviceGetAttribute",
                     [&] { return gcx_reservation_acquire(0, 8, nullptr, &reservation); });
    std::this_thread::sleep_for(std::chrono::milliseconds(600)); // longer than that wait
    call.release();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    close(lock);
    CHECK_OK(call.finish());
    CHECK_OK(gcx_reservation_release(reservation));
}

} // namespace

int main(int, char** argv) {
    driver_path = argv[1];
    for (void (*body)() :
         {release_during_synchronize_frees_sms, release_during_probe_frees_sms,
          probe_of_moved_stream_sees_new_sms, probe_of_stream_that_moves_each_time_times_out,
          change_waits_for_submissions, wait_during_change_holds_later_work,
          parking_during_release_is_all_or_nothing, release_twice_succeeds_once,
          refused_release_can_be_repeated, busy_leases_are_synchronized_by_several_threads,
          one_lease_is_used_during_changes, failed_resize_delays_no_other_lease,
          delayed_request_waits_for_the_folder}) {
        in_child("leases in threads", [&] {
            if (!CHECK_OK(gcx_driver_open(driver_path.c_str())))
                return;
            const gcx_sim_counts before = sim::counts();
            body();
            sim::advance(10'000'000'000);
            CHECK_OK(gcx_cache_set_limit(0));
            CHECK_EQ(cache_stats().in_use, 0U);
            gcx_sim_counts after = sim::counts();
            after.modules = before.modules; // the probe's kernel stays loaded
            CHECK_EQ(left_behind(before, after), std::string());
        });
    }
    return check::summary("lease threads");
}
