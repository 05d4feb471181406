// What a hostile user does with leases: each time gcx::error, and never a crash.
#include "tests.hpp"

#include "../api/work.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

gcx::lease_params given_up_by(const gcx::cancel* cancel) {
    gcx::lease_params params;
    params.cancel = cancel;
    return params;
}

// Every member function of an owner without a handle, and closing again.
void empty_leases() {
    const gcx::lease none;
    gcx::lease lease(0, 24);
    const gcx_result invalid = GCX_ERROR_INVALID_HANDLE;
    CHECK_THROWS(invalid, none.info());
    CHECK_THROWS(invalid, none.get_resource());
    CHECK_THROWS(invalid, none.resize(8));
    CHECK_THROWS(invalid, none.prepare(8));
    CHECK_THROWS(invalid, none.synchronize());
    CHECK_THROWS(invalid, none.query());
    CHECK_THROWS(invalid, lease.hand_over(none));
    CHECK_THROWS(invalid, gcx::lease().hand_over(lease));
    CHECK_THROWS(invalid, gcx::resize({{lease, 8}, {none, 8}}));
    CHECK_THROWS(invalid, gcx::stream(none));
    CHECK_EQ(lease.sm_count(), 24u);

    gcx::cancel cancel;
    for (int i = 0; i < 2; i++) {
        lease.close();
        cancel.close();
        CHECK(!lease && !cancel);
    }
    CHECK_THROWS(invalid, lease.info());
    CHECK_THROWS(invalid, cancel.signal());
    // One without a handle isn't none at all.
    CHECK_THROWS(invalid, gcx::lease(0, 8, given_up_by(&cancel)));

    // Given up behind its back, by C.
    gcx::lease other(0, 24);
    CHECK_OK(gcx_lease_release(other.handle()));
    CHECK_THROWS(invalid, other.close());
    CHECK_THROWS(invalid, other.resize(8));
    (void)other.detach();
}

void wrong_leases() {
    const auto refused = [](auto change) {
        gcx::lease_params params;
        change(params);
        CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::lease(0, 24, params));
    };
    refused([](auto& params) { params.flags = static_cast<gcx::lease_flags>(0x80); });
    refused([](auto& params) { params.family = gcx::family::structured; });
    refused([](auto& params) { params.min_sm_count = 25; });
    refused([](auto& params) { params.exclusive_sm_count = 8; });
    refused([](auto& params) { params.timeout = -1ms; });
    refused([](auto& params) { params.name = std::string(64, 'n'); });
    refused([](auto& params) { params.name = std::string("de\0code", 7); });
    CHECK_THROWS(GCX_ERROR_INVALID_DEVICE, gcx::lease(2, 24));
    CHECK_THROWS(GCX_ERROR_INVALID_DEVICE, gcx::lease(-1, 24));
    CHECK_THROWS(GCX_ERROR_INVALID_DEVICE, gcx::live_leases(2));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::lease(0, -8));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::lease(0, 0));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::lease(0, 0U, {{}, gcx::lease_flags::shared}));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::lease(0, 1L << 40));
    CHECK_THROWS(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, gcx::lease(0, 140));

    gcx::lease lease(0, 24, {std::string(63, 'n')});
    CHECK_EQ(lease.name(), std::string(63, 'n'));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, lease.resize(-8));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, lease.resize(0));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::prepare({{lease, 0}}));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::resize({{lease, 8}, {lease, 16}}));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::resize(std::vector<gcx::lease_size>()));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, gcx::prepare({}));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, lease.resize(8, static_cast<gcx::resize_flags>(0x80)));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, lease.hand_over(lease));
    CHECK(lease && lease.sm_count() == 24);
    gcx::lease there(1, 24);
    CHECK_THROWS(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, gcx::resize({{lease, 8}, {there, 8}}));
    CHECK_THROWS(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, there.hand_over(lease));
    CHECK(there && there.sm_count() == 24 && lease.sm_count() == 24);
}

// A lease ends while its stream lives and works; the work goes on.
void a_stream_outlives() {
    const support::Work work;
    std::optional<gcx::lease> lease(std::in_place, 0, 24);
    gcx::stream stream(*lease);
    CUstream const native = stream.native();
    work.spin(native, 4'000'000);
    lease.reset();
    const gcx_result ended = GCX_ERROR_CONTEXT_IS_DESTROYED;
    const gcx::event event(0);
    CHECK_THROWS(ended, stream.native());
    CHECK_THROWS(ended, stream.info());
    CHECK_THROWS(ended, stream.get_resource());
    CHECK_THROWS(ended, stream.synchronize());
    CHECK_THROWS(ended, stream.query());
    CHECK_THROWS(ended, stream.record(event));
    CHECK_THROWS(ended, stream.wait(event));
    CHECK_THROWS(ended, stream.sm_ids());
    CHECK(NATIVE(cuStreamQuery)(native) == CUDA_ERROR_NOT_READY);
    const gcx::lease next(0, 24);
    CHECK(work.free_at(gcx::stream(next).native()) >= 4.0F);
    stream.close();
}

// One thread changes a lease while others use its stream and ask for SMs.
void changed_in_threads() {
    const gcx::lease lease(0, 32);
    const gcx::stream stream(lease);
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    const auto until_stopped = [&](auto body) {
        return std::thread([&, body] {
            while (!stop) {
                try {
                    body();
                } catch (const gcx::error& error) {
                    std::fprintf(stderr, "%s\n", error.what());
                    wrong++;
                }
            }
        });
    };
    std::vector<std::thread> running;
    running.push_back(until_stopped([&] {
        if (stream.native() == nullptr || stream.sm_count() % 8 != 0)
            wrong++;
    }));
    running.push_back(until_stopped([&] {
        const gcx::event event(0);
        stream.record(event);
        stream.wait(event);
        lease.synchronize();
    }));
    running.push_back(until_stopped([&] {
        gcx::lease own(0, 16);
        const gcx::stream its(own);
        if (its.native() == nullptr || own.get_resource().overlap(lease.get_resource()) > 16)
            wrong++;
        own = gcx::lease(0, 8);
    }));
    for (int i = 0; i < 100; i++)
        lease.resize(i % 2 == 0 ? 64 : 32,
                     i % 3 == 0 ? gcx::resize_flags::at_once : gcx::resize_flags::none);
    stop = true;
    for (std::thread& thread : running)
        thread.join();
    CHECK_EQ(wrong.load(), 0);
    CHECK_EQ(lease.info().changes, 100u);
}

// Ended by a device's reset.
void leases_reset() {
    gcx::lease lease(0, 24);
    gcx::stream stream(lease);
    const CUresult reset = NATIVE(cuDevicePrimaryCtxReset)(0);
    // Newer drivers refuse it while there are green contexts.
    CHECK(reset == CUDA_SUCCESS ||
          (reset == CUDA_ERROR_NOT_PERMITTED && gcx::driver_info().version >= 13000));
    if (reset != CUDA_SUCCESS)
        return;
    CHECK_THROWS(GCX_ERROR_CONTEXT_IS_DESTROYED, stream.native());
    CHECK_THROWS(GCX_ERROR_CONTEXT_IS_DESTROYED, lease.info());
    CHECK_THROWS(GCX_ERROR_CONTEXT_IS_DESTROYED, lease.resize(32));
    stream.close();
    lease.close();
    const gcx::lease fresh(0, 24);
    CHECK_EQ(gcx::stream(fresh).sm_ids().size(), 24u);
}

// They end with the process, after the driver's own end.
void leases_left_to_the_end() {
    static gcx::lease lease(0, 24);
    static gcx::stream stream(lease);
    static const gcx::cancel cancel;
    stream.native();
    lease.resize(32);
    // Never ended at all.
    CHECK(gcx::lease(0, 8).detach() != nullptr);
}

} // namespace

void test_lease_misuse() {
    on_each_driver([] {
        empty_leases();
        wrong_leases();
        a_stream_outlives();
        changed_in_threads();
        leases_reset();
        leases_left_to_the_end();
    });
}
