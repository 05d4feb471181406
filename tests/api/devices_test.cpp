// Tests several devices in one process. Each has its own partitions, leases and graphs; events
// order work across devices; calls that mix devices are refused and change nothing.

#include "graph_kernels.hpp"
#include "leases.hpp"
#include "work.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

using namespace support;

namespace {

constexpr int32_t kDevices = 2;

struct Side {
    explicit Side(int32_t device, uint32_t sm_count = 24)
        : work(device), part(split(whole_device(device), {sm_count}).groups[0]) {}
    CUstream native() const { return gcx_stream_native(part.stream); }
    void spin(uint64_t nanoseconds) const { work.spin(native(), nanoseconds); }

    Work work;
    Partition part;
};

uint32_t leases_of(int32_t device) {
    uint32_t count = 0;
    gcx_live_lease leases[16];
    CHECK_OK(gcx_lease_list(device, leases, 16, &count));
    for (uint32_t i = 0; i < count && device >= 0; i++)
        CHECK_EQ(leases[i].device, device);
    return count;
}

// The same atoms of two devices are two sets of SMs, with a context each.
void devices_have_their_own_contexts() {
    const Partition first(split(whole_device(0), {24}).groups[0]);
    const Partition second(split(whole_device(1), {24}).groups[0]);
    CHECK(gcx_context_native(first.context) != gcx_context_native(second.context));
    CHECK_EQ(first.probe().size(), 24U);
    CHECK_EQ(second.probe().size(), 24U);
    for (int32_t device = 0; device < kDevices; device++) {
        gcx_live_context live[4];
        uint32_t count = 0;
        CHECK_OK(gcx_context_list(device, live, 4, &count));
        CHECK(count == 1 && live[0].device == device);
        CHECK_OK(gcx_device_map_sms(device, GCX_SM_FAMILY_FINE));
    }
    // A native handle identifies its device, whichever device is current.
    CHECK_OK(gcx_context_push(first.context));
    gcx_stream plain = handle_for(gcx_stream_native(second.stream));
    gcx_stream_info info = info_of(plain);
    CHECK(info.device == 1 && info.sm_count == 24);
    // A thread's stack can have contexts of both devices.
    CHECK_OK(gcx_context_push(second.context));
    CUdevice device = -1;
    CHECK_NATIVE(cuCtxGetDevice, &device);
    CHECK_EQ(device, 1);
    CHECK_EQ(first.probe().size(), 24U); // of the device that isn't current
    CHECK_REFUSED(gcx_context_destroy(second.context), GCX_ERROR_CONTEXT_ALREADY_IN_USE);
    CHECK_OK(gcx_context_pop(nullptr));
    CHECK_NATIVE(cuCtxGetDevice, &device);
    CHECK_EQ(device, 0);
    CHECK_OK(gcx_context_pop(nullptr));
    CHECK_OK(gcx_stream_destroy(plain));
}

// One call prepares contexts of both devices.
void prepare_covers_two_devices() {
    const gcx_resource both[] = {split(whole_device(0), {24}).groups[0],
                                 split(whole_device(1), {24}).groups[0]};
    CHECK_OK(gcx_cache_prepare(both, 2, nullptr));
    const uint64_t made = sim::calls("cuGreenCtxCreate");
    {
        const Partition first(both[0]), second(both[1]);
    }
    CHECK_EQ(sim::calls("cuGreenCtxCreate"), made);
    CHECK_EQ(cache_stats().cached, 2U);
}

void events_order_work_across() {
    const Side first(0), second(1);
    gcx_event event = make_event(0, GCX_EVENT_TIMING);
    // Streams of both devices can wait for the event; only those of its own device can record it.
    for (const bool by_stream : {true, false}) {
        first.spin(5'000'000);
        const uint64_t launched = sim::counts().clock_ns;
        CHECK_OK(gcx_stream_record(first.part.stream, event));
        CHECK_OK(by_stream ? gcx_stream_wait(second.part.stream, event)
                           : gcx_context_wait(second.part.context, event));
        second.spin(1'000);
        CHECK_EQ(gcx_event_query(event), GCX_ERROR_NOT_READY);
        CHECK_OK(gcx_stream_synchronize(second.part.stream));
        CHECK(sim::counts().clock_ns - launched >= 4'900'000);
        CHECK_OK(gcx_event_query(event));
    }
    CHECK_REFUSED(gcx_stream_record(second.part.stream, event), GCX_ERROR_INVALID_HANDLE);
    CHECK_REFUSED(gcx_context_record(second.part.context, event), GCX_ERROR_INVALID_HANDLE);
    CHECK_OK(gcx_event_query(event)); // the refused calls changed nothing
    // By the programming guide, no elapsed time exists between events of two devices.
    gcx_event other = make_event(1, GCX_EVENT_TIMING);
    CHECK_OK(gcx_stream_record(second.part.stream, other));
    CHECK_OK(gcx_event_synchronize(other));
    float milliseconds = 7;
    CHECK_REFUSED(gcx_event_get_elapsed(event, other, &milliseconds), GCX_ERROR_INVALID_HANDLE);
    CHECK(message_has("device 0") && message_has("device 1"));
    CHECK_EQ(milliseconds, 7.0F);
    // For an event of unknown device, the driver refuses.
    gcx_event external = nullptr;
    CHECK_OK(gcx_event_from_native(gcx_event_native(other), &external));
    CHECK_REFUSED(gcx_event_get_elapsed(event, external, &milliseconds), GCX_ERROR_INVALID_HANDLE);
    CHECK_OK(gcx_event_destroy(external));
    CHECK_OK(gcx_event_destroy(event));
    CHECK_OK(gcx_event_destroy(other));
}

// A partition of one device reads memory of the other that was written there, ordered by an event.
void peer_memory_is_usable() {
    constexpr std::size_t kWords = 1024;
    const Side here(0), there(1);
    int can = 0;
    CHECK_NATIVE(cuDeviceCanAccessPeer, &can, 0, 1);
    CHECK_EQ(can, 1);
    CUdeviceptr memory = 0;
    CUdeviceptr peers = 0;
    gcx_event written = make_event(1);
    CHECK_OK(gcx_context_push(there.part.context));
    CHECK_NATIVE(cuMemAlloc, &peers, kWords * 4);
    CHECK_NATIVE(cuMemsetD32Async, peers, 0x1234, kWords, there.native());
    CHECK_OK(gcx_stream_record(there.part.stream, written));
    CHECK_OK(gcx_context_push(here.part.context));
    CHECK_NATIVE(cuMemAlloc, &memory, kWords * 4);
    CHECK_NATIVE(cuCtxEnablePeerAccess, there.work.primary(), 0);
    CHECK_OK(gcx_stream_wait(here.part.stream, written));
    CHECK_NATIVE(cuMemcpyPeerAsync, memory, here.work.primary(), peers, there.work.primary(),
                 kWords * 4, here.native());
    CHECK_OK(gcx_stream_synchronize(here.part.stream));
    std::vector<uint32_t> words(kWords);
    CHECK_NATIVE(cuMemcpyDtoH, words.data(), memory, kWords * 4);
    CHECK_EQ(std::count(words.begin(), words.end(), 0x1234U), 1024);
    CHECK_NATIVE(cuMemFree, memory);
    CHECK_NATIVE(cuMemFree, peers);
    CHECK_OK(gcx_context_pop(nullptr));
    CHECK_OK(gcx_context_pop(nullptr));
    CHECK_OK(gcx_event_destroy(written));
}

// Leases take all SMs of both devices; a change on one device does not affect the other.
void lease_belongs_to_one_device() {
    gcx_lease lease[kDevices] = {acquire(GCX_REST, nullptr, 0, 0),
                                 acquire(GCX_REST, nullptr, 0, 1)};
    for (int32_t device = 0; device < kDevices; device++) {
        CHECK_EQ(info_of(lease[device]).device, device);
        CHECK_EQ(info_of(lease[device]).sm_count, sms(whole_device(device)));
        CHECK_EQ(leases_of(device), 1U);
    }
    CHECK_EQ(leases_of(-1), 2U);
    gcx_stream stream[kDevices] = {};
    for (int i = 0; i < kDevices; i++)
        CHECK_OK(gcx_lease_stream_create(lease[i], nullptr, &stream[i]));
    const gcx_lease_size one{.lease = lease[1], .sm_count = 24};
    CHECK_OK(gcx_lease_resize(&one, 1, 0));
    CHECK_EQ(info_of(lease[0]).changes, 0U);

    const gcx_lease_size mixed[] = {{.lease = lease[0], .sm_count = 24},
                                    {.lease = lease[1], .sm_count = 48}};
    constexpr auto kUnfit = GCX_ERROR_INVALID_RESOURCE_CONFIGURATION;
    CHECK_REFUSED(gcx_lease_resize(mixed, 2, 0), kUnfit);
    CHECK_REFUSED(gcx_lease_prepare(mixed, 2), kUnfit);
    CHECK_REFUSED(hand_over(lease[0], lease[1]), kUnfit);
    CHECK_EQ(info_of(lease[0]).sm_count, sms(whole_device(0)));
    CHECK_EQ(info_of(lease[1]).sm_count, 24U);

    // A request for one device's SMs is served when that device has some.
    std::atomic<bool> got = false;
    std::thread waiter([&] {
        const gcx_lease waited = acquire(16, {.timeout_ms = 60'000});
        got = true;
        CHECK_EQ(info_of(waited).device, 0);
        CHECK_OK(gcx_lease_release(waited));
    });
    while (leases_of(0) != 2)
        std::this_thread::yield();
    CHECK_OK(gcx_lease_release(acquire(48, nullptr, 0, 1))); // passes the queue of the other device
    CHECK(!got);
    for (int i = 0; i < kDevices; i++)
        CHECK_OK(gcx_stream_destroy(stream[i]));
    CHECK_OK(gcx_lease_release(lease[0]));
    waiter.join();
    CHECK_OK(gcx_lease_release(lease[1]));
}

CUgraph captured_on(const Side& side) {
    return capture(side.native(), [&] { side.spin(1'000); });
}

void graph_belongs_to_one_device() {
    const Side side[kDevices] = {Side(0), Side(1)};
    gcx_graph graph[kDevices] = {};
    for (int i = 0; i < kDevices; i++) {
        graph[i] = graph_of(captured_on(side[i]));
        gcx_graph_info info = GCX_GRAPH_INFO_INIT;
        CHECK_OK(gcx_graph_get_info(graph[i], &info));
        CHECK_EQ(info.device, i);
    }
    for (int i = 0; i < kDevices; i++) {
        gcx_stream other = side[1 - i].part.stream;
        CHECK_OK(gcx_graph_launch(graph[i], &side[i].part.stream, 1));
        CHECK_REFUSED(gcx_graph_launch(graph[i], &other, 1), GCX_ERROR_INVALID_DEVICE);
        CHECK_REFUSED(gcx_graph_launch(graph[i], &other, 1), GCX_ERROR_INVALID_DEVICE);
        const gcx_resource there = whole_device(1 - i);
        CHECK_REFUSED(gcx_graph_prepare(graph[i], &there, 1, 0), GCX_ERROR_INVALID_DEVICE);
        // A current context of the other device changes nothing.
        CHECK_OK(gcx_context_push(side[1 - i].part.context));
        CHECK_OK(gcx_graph_launch(graph[i], &side[i].part.stream, 1));
        CHECK_OK(gcx_context_pop(nullptr));
    }
    // A graph of the same nodes that was captured on the other device is no update.
    CUgraph other = captured_on(side[1]);
    CHECK(gcx_graph_update(graph[0], other) != GCX_SUCCESS);
    CHECK_OK(gcx_graph_launch(graph[0], &side[0].part.stream, 1));
    CHECK_OK(gcx_stream_synchronize(side[0].part.stream));
    CHECK_NATIVE(cuGraphDestroy, other);
    for (int i = 0; i < kDevices; i++)
        CHECK_OK(gcx_graph_destroy(graph[i]));
}

// A capture that forks to the other device has kernels of both, which no single partition can run.
void graph_over_two_devices_is_refused() {
    const Side first(0), second(1);
    gcx_event fork = make_event(0);
    gcx_event join = make_event(1);
    CUgraph both = capture(first.native(), [&] {
        CHECK_OK(gcx_stream_record(first.part.stream, fork));
        CHECK_OK(gcx_stream_wait(second.part.stream, fork));
        first.spin(1'000);
        second.spin(1'000);
        CHECK_OK(gcx_stream_record(second.part.stream, join));
        CHECK_OK(gcx_stream_wait(first.part.stream, join));
    });
    gcx_graph graph = nullptr;
    CHECK_REFUSED(gcx_graph_create(both, nullptr, &graph),
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK(message_has("device 0") && message_has("device 1"));
    CHECK(graph == nullptr);
    CHECK_NATIVE(cuGraphDestroy, both);
    CHECK_OK(gcx_event_destroy(fork));
    CHECK_OK(gcx_event_destroy(join));
}

// While one device captures, the other can be used, and its work is not captured.
void capture_on_one_device_leaves_the_other() {
    const Side first(0), second(1);
    gcx_graph graph = graph_of(capture(first.native(), [&] {
        first.spin(1'000);
        const Partition fresh(split(whole_device(1), {40}).groups[0]);
        second.spin(1'000);
        CHECK_OK(gcx_lease_release(acquire(16, nullptr, 0, 1)));
    }));
    CHECK_OK(gcx_graph_launch(graph, &first.part.stream, 1));
    CHECK_OK(gcx_graph_destroy(graph));
}

// 12.4 allows a reset while green contexts of the device are alive.
void reset_affects_one_device() {
    const Partition first(split(whole_device(0), {24}).groups[0]);
    gcx_lease lease[kDevices] = {acquire(48, nullptr, 0, 0), acquire(48, nullptr, 0, 1)};
    {
        const Partition second(split(whole_device(1), {24}).groups[0]);
        CHECK_NATIVE(cuDevicePrimaryCtxReset, 1);
        CHECK_REFUSED(gcx_stream_synchronize(second.stream), GCX_ERROR_CONTEXT_IS_DESTROYED);
    }
    CHECK_EQ(first.probe().size(), 24U);
    gcx_stream stream = stream_of(lease[0]);
    CHECK_OK(gcx_stream_synchronize(stream));
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_OK(gcx_lease_release(lease[0]));
    CHECK_OK(gcx_lease_release(lease[1]));
    const Partition fresh(split(whole_device(1), {24}).groups[0]);
    CHECK_EQ(fresh.probe().size(), 24U);
}

} // namespace

int main() {
    for (const char* driver : drivers()) {
        const std::string machine = std::string("2xh100@") + driver;
        for (const auto body :
             {devices_have_their_own_contexts, prepare_covers_two_devices, events_order_work_across,
              peer_memory_is_usable, lease_belongs_to_one_device, graph_belongs_to_one_device,
              graph_over_two_devices_is_refused, capture_on_one_device_leaves_the_other})
            leaves_nothing(machine, body);
    }
    on_machine("2xh100@12.4", reset_affects_one_device);
    return support::summary("devices");
}
