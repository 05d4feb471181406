// Tests what only two real GPUs in one process show: SMs seen, memory of a peer, order by the clock.
// tests/api/devices_test.cpp has what is refused, on two simulated devices. gcx-gpu-two-gpus needs
// two GPUs of one host.
#include "fixture.hpp"

#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

using namespace fixture;

namespace {

constexpr int kDevices = 2;
using Clock = std::chrono::steady_clock;

#define CHECK_CU(call) CHECK_EQ(call, CUDA_SUCCESS)

// Has a partition of a device.
struct Side : Partition {
    Side(int32_t device, uint32_t sm_count)
        : Partition(fixture::split(whole_device(device), {sm_count}).groups[0]) {}

    void push() const { CHECK_OK(gcx_context_push(context)); }
    static void pop() { CHECK_OK(gcx_context_pop(nullptr)); }
    void spin(uint64_t nanoseconds) const {
        CHECK_CU(raw::launch_spin_anywhere(native(), nanoseconds));
    }
    std::size_t count_sms() const { return probe().size(); }
};

gcx_event make_event(int32_t device) {
    gcx_event event = nullptr;
    CHECK_OK(gcx_event_create(device, 0, &event));
    return event;
}

void each_on_its_sms() {
    for (const uint32_t count : {8U, 24U, 64U}) {
        const Side first(0, count), second(1, count);
        first.push();
        CHECK_EQ(second.count_sms(), count);
        second.push();
        CHECK_EQ(first.count_sms(), count);
        CUdevice device = -1;
        CHECK_CU(raw::cuCtxGetDevice(&device));
        CHECK_EQ(device, 1);
        Side::pop();
        CHECK_CU(raw::cuCtxGetDevice(&device));
        CHECK_EQ(device, 0);
        Side::pop();
    }
}

void order_across() {
    const Side first(0, 24), second(1, 24);
    gcx_event event = make_event(0);
    for (const bool by_stream : {true, false}) {
        const auto before = Clock::now();
        first.spin(50 * raw::kMillisecond);
        CHECK_OK(gcx_stream_record(first.stream, event));
        CHECK_OK(by_stream ? gcx_stream_wait(second.stream, event)
                           : gcx_context_wait(second.context, event));
        second.spin(1000);
        CHECK_OK(gcx_stream_synchronize(second.stream));
        const std::chrono::duration<double, std::milli> took = Clock::now() - before;
        CHECK(took.count() >= 49);
        CHECK_OK(gcx_event_query(event));
    }
    CHECK_OK(gcx_event_destroy(event));
}

// A kernel in a partition of one device reads memory of the other, if it may. Access is enabled for
// the partition's context, and for the primary one, and both answers are printed.
void memory_of_a_peer() {
    const Side here(0, 24), there(1, 24);
    int can = 0;
    CHECK_CU(raw::cuDeviceCanAccessPeer(&can, 0, 1));
    if (can == 0) {
        std::printf("    skipped: device 0 can't reach device 1's memory\n");
        return;
    }
    constexpr std::size_t kBytes = std::size_t{64} << 20;
    CUdeviceptr mine = 0;
    CUdeviceptr peer_data = 0;
    CUcontext peer = nullptr;
    CHECK_CU(raw::cuDevicePrimaryCtxRetain(&peer, 1));
    gcx_event written = make_event(1);
    there.push();
    CHECK_CU(raw::cuMemAlloc(&peer_data, kBytes));
    CHECK_CU(raw::cuMemsetD8Async(peer_data, 0x5a, kBytes, there.native()));
    CHECK_OK(gcx_stream_record(there.stream, written));
    here.push();
    CHECK_CU(raw::cuMemAlloc(&mine, kBytes));
    std::printf("    cuCtxEnablePeerAccess of the primary context in a partition: %s\n",
                raw::name_of(raw::cuCtxEnablePeerAccess(peer, 0)));
    std::printf("    of the other partition's context: %s\n",
                raw::name_of(raw::cuCtxEnablePeerAccess(gcx_context_native(there.context), 0)));
    CHECK_OK(gcx_stream_wait(here.stream, written));
    CHECK_CU(raw::cuMemcpyPeerAsync(mine, raw::primary(), peer_data, peer, kBytes, here.native()));
    CHECK_CU(raw::launch_read(here.native(), peer_data, kBytes / 4, 48));
    CHECK_OK(gcx_stream_synchronize(here.stream));
    std::vector<unsigned char> bytes(kBytes);
    CHECK_CU(raw::cuMemcpyDtoH(bytes.data(), mine, kBytes));
    CHECK_EQ(std::count(bytes.begin(), bytes.end(), 0x5a), static_cast<long>(kBytes));
    CHECK_CU(raw::cuMemFree(mine));
    CHECK_CU(raw::cuMemFree(peer_data));
    Side::pop();
    Side::pop();
    CHECK_OK(gcx_event_destroy(written));
    CHECK_CU(raw::cuDevicePrimaryCtxRelease(1));
}

void leases_of_both() {
    gcx_lease lease[kDevices] = {};
    for (int32_t device = 0; device < kDevices; device++)
        CHECK_OK(gcx_lease_acquire(device, GCX_REST, nullptr, &lease[device]));
    for (gcx_lease one : lease) {
        const gcx_lease_size size = {one, 24, 0};
        gcx_stream stream = nullptr;
        CHECK_OK(gcx_lease_stream_create(one, nullptr, &stream));
        CHECK_OK(gcx_lease_resize(&size, 1, 0));
        CHECK_EQ(probed(stream).size(), 24U);
        CHECK_OK(gcx_stream_destroy(stream));
        CHECK_OK(gcx_lease_release(one));
    }
}

gcx_graph capture(const Side& side) {
    CUgraph captured = nullptr;
    gcx_graph graph = nullptr;
    side.push();
    CHECK_CU(raw::cuStreamBeginCapture(side.native(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int i = 0; i < 8; i++)
        side.spin(10'000);
    CHECK_CU(raw::cuStreamEndCapture(side.native(), &captured));
    CHECK_OK(gcx_graph_create(captured, nullptr, &graph));
    CHECK_CU(raw::cuGraphDestroy(captured));
    Side::pop();
    return graph;
}

void graphs_of_both() {
    const Side sides[kDevices] = {Side(0, 24), Side(1, 24)};
    const Side others[kDevices] = {Side(0, 64), Side(1, 64)};
    gcx_graph graphs[kDevices] = {capture(sides[0]), capture(sides[1])};
    for (int i = 0; i < kDevices; i++) {
        CHECK_OK(gcx_graph_launch(graphs[i], &others[i].stream, 1));
        others[1 - i].push(); // the other device's context is current
        CHECK_OK(gcx_graph_launch(graphs[i], &sides[i].stream, 1));
        Side::pop();
    }
    for (int i = 0; i < kDevices; i++) {
        CHECK_OK(gcx_stream_synchronize(sides[i].stream));
        CHECK_OK(gcx_stream_synchronize(others[i].stream));
        CHECK_OK(gcx_graph_destroy(graphs[i]));
    }
}

// Work on one device doesn't delay the creation of the other's contexts, which waits for all
// kernels of its device.
void create_during_work_of_the_other() {
    const Side busy(0, 24);
    busy.spin(500 * raw::kMillisecond);
    const auto before = Clock::now();
    const Side fresh(1, 56);
    const std::chrono::duration<double, std::milli> took = Clock::now() - before;
    std::printf("    a context of device 1 next to a kernel of 500 ms on device 0: %.2f ms\n",
                took.count());
    CHECK_OK(gcx_stream_synchronize(busy.stream));
}

void threads_of_both() {
    constexpr unsigned kThreads = 8;
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (unsigned number = 0; number < kThreads; number++) {
        threads.emplace_back([number] {
            std::minstd_rand random(number + 1);
            for (int round = 0; round < 200; round++) {
                const auto device = static_cast<int32_t>(random() % kDevices);
                const uint32_t count = 8 * (1 + static_cast<uint32_t>(random() % 3));
                const Side here(device, count), there(1 - device, count);
                gcx_event event = make_event(device);
                here.spin(10'000);
                CHECK_OK(gcx_stream_record(here.stream, event));
                CHECK_OK(gcx_stream_wait(there.stream, event));
                there.spin(1'000);
                if (round % 20 == 0) {
                    CHECK_EQ(here.count_sms(), count);
                    CHECK_EQ(there.count_sms(), count);
                }
                gcx_lease lease = nullptr;
                CHECK_OK(gcx_lease_acquire(device, 8, nullptr, &lease));
                CHECK_OK(gcx_lease_release(lease));
                CHECK_OK(gcx_stream_synchronize(there.stream));
                CHECK_OK(gcx_event_destroy(event));
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
}

} // namespace

int main() {
    int32_t count = 0;
    CHECK_OK(gcx_device_get_count(&count));
    if (count < kDevices) {
        std::printf("this needs two GPUs of one host, and there are %d\n0 passed, 1 failed\n",
                    count);
        return 1;
    }
    raw::load();
    const struct {
        const char* name;
        void (*body)();
    } parts[] = {
        {"each on its SMs", each_on_its_sms},
        {"order across devices", order_across},
        {"memory of a peer", memory_of_a_peer},
        {"leases of both", leases_of_both},
        {"graphs of both", graphs_of_both},
        {"creating contexts during the other's work", create_during_work_of_the_other},
        {"8 threads", threads_of_both},
    };
    for (const auto& part : parts) {
        std::printf("-- %s\n", part.name);
        std::fflush(stdout);
        part.body();
    }
    gcx_cache_stats stats = GCX_CACHE_STATS_INIT;
    CHECK_OK(gcx_cache_get_stats(&stats));
    CHECK_EQ(stats.in_use, 0U);
    std::printf("%d passed, %d failed\n", check::passed.load(), check::failed.load());
    return check::failed.load() == 0 ? 0 : 1;
}
