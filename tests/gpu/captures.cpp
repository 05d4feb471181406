// Tests graph captures next to gcx: its calls must not break them. Also records what the driver
// forbids during a capture.

#include "fixture.hpp"
#include "tests.hpp"

#include <array>
#include <cstdio>
#include <functional>
#include <thread>
#include <utility>

using namespace fixture;

namespace {

constexpr std::array kModes = {
    std::pair{CU_STREAM_CAPTURE_MODE_GLOBAL, "global"},
    std::pair{CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, "thread-local"},
    std::pair{CU_STREAM_CAPTURE_MODE_RELAXED, "relaxed"},
};

CUstreamCaptureStatus status_of(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CHECK_EQ(raw::cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
    return status;
}

void in_another_thread(const std::function<void()>& body) {
    std::thread thread([&] {
        raw::cuCtxSetCurrent(raw::primary());
        body();
    });
    thread.join();
}

// Calls each function that takes microseconds: no capture may be affected.
void captures_survive_gcx() {
    const Split parts = split(whole_device(), {24, 24});
    {
        const Partition made_before(parts.groups[0]);
    }
    for (const auto& [mode, name] : kModes) {
        const Partition bystander(parts.groups[0]);
        const Partition capturing(parts.groups[1]);
        CHECK_EQ(raw::cuStreamBeginCapture(capturing.native(), mode), CUDA_SUCCESS);
        const auto come_and_go = [&] {
            for (int round = 0; round < 3; round++) {
                const Split again = split(whole_device(), {24, 24});
                const Partition cached(again.groups[0]);
                gcx_stream_info info = GCX_STREAM_INFO_INIT;
                CHECK_OK(gcx_stream_get_info(cached.stream, &info));
                CHECK_EQ(info.sm_count, 24U);
                CHECK_OK(gcx_stream_synchronize(cached.stream));
                CHECK_OK(gcx_stream_query(cached.stream));
                gcx_event event = nullptr;
                CHECK_OK(gcx_event_create(0, 0, &event));
                CHECK_OK(gcx_stream_record(cached.stream, event));
                CHECK_OK(gcx_event_synchronize(event));
                CHECK_OK(gcx_event_query(event));
                CHECK_OK(gcx_event_destroy(event));
                CHECK_EQ(cached.probe().size(), 24U);
            }
            CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_FINE));
            CHECK_OK(gcx_context_synchronize(bystander.context));
        };
        come_and_go();
        in_another_thread(come_and_go);
        CHECK_EQ(raw::launch_spin(capturing.native(), 1000), CUDA_SUCCESS);
        if (!CHECK_EQ(status_of(capturing.native()), CU_STREAM_CAPTURE_STATUS_ACTIVE))
            std::printf("   in %s mode\n", name);
        CUgraph graph = nullptr;
        CHECK_EQ(raw::cuStreamEndCapture(capturing.native(), &graph), CUDA_SUCCESS);
        CHECK_EQ(raw::cuGraphDestroy(graph), CUDA_SUCCESS);

        // Streams of a capture can't be waited for, in any mode; the refusal does not break the
        // capture.
        const Partition sharing(parts.groups[1]);
        gcx_event event = nullptr;
        CHECK_OK(gcx_event_create(0, 0, &event));
        CHECK_EQ(raw::cuStreamBeginCapture(capturing.native(), mode), CUDA_SUCCESS);
        constexpr gcx_result kCaptures = GCX_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        CHECK_EQ(gcx_stream_synchronize(capturing.stream), kCaptures);
        CHECK_EQ(gcx_stream_query(capturing.stream), kCaptures);
        CHECK_EQ(gcx_context_synchronize(sharing.context), kCaptures);
        CHECK_EQ(gcx_context_record(sharing.context, event), kCaptures);
        CHECK_EQ(gcx_context_wait(sharing.context, event), kCaptures);
        CHECK_OK(gcx_stream_record(capturing.stream, event));
        CHECK_EQ(gcx_event_query(event), GCX_ERROR_CAPTURED_EVENT);
        CHECK_EQ(gcx_event_synchronize(event), GCX_ERROR_CAPTURED_EVENT);
        CHECK_EQ(gcx_context_wait(bystander.context, event), GCX_ERROR_CAPTURED_EVENT);
        CHECK_EQ(raw::cuStreamEndCapture(capturing.native(), &graph), CUDA_SUCCESS);
        CHECK_EQ(raw::cuGraphDestroy(graph), CUDA_SUCCESS);
        CHECK_OK(gcx_event_destroy(event));
    }
}

void given_up_streams_come_back() {
    const Split parts = split(whole_device(), {16});
    CUstream first = nullptr;
    gcx_context context = nullptr;
    CHECK_OK(gcx_context_create(parts.groups.data(), 1, nullptr, &context));
    const auto next = [&] {
        gcx_stream stream = nullptr;
        CHECK_OK(gcx_stream_create(context, nullptr, &stream));
        CUstream native = gcx_stream_native(stream);
        CHECK_OK(gcx_stream_destroy(stream));
        return native;
    };
    first = next();
    CHECK(next() == first);

    // It is not reused while its work runs.
    gcx_stream stream = nullptr;
    CHECK_OK(gcx_stream_create(context, nullptr, &stream));
    CHECK(gcx_stream_native(stream) == first);
    CHECK_EQ(raw::launch_spin(first, 100'000'000), CUDA_SUCCESS);
    CHECK_OK(gcx_stream_destroy(stream));
    CUstream second = next();
    CHECK(second != first);
    CHECK_EQ(raw::cuStreamQuery(first), CUDA_ERROR_NOT_READY);
    CHECK_EQ(raw::cuStreamSynchronize(first), CUDA_SUCCESS);
    CHECK(next() == first);
    CHECK(next() == second);

    // It does not keep attributes of its former owner.
    CHECK_OK(gcx_stream_create(context, nullptr, &stream));
    CUstream changed = gcx_stream_native(stream);
    CUstreamAttrValue value{};
    value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    CHECK_EQ(raw::cuStreamSetAttribute(changed, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value),
             CUDA_SUCCESS);
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_OK(gcx_stream_create(context, nullptr, &stream));
    CHECK_EQ(raw::cuStreamGetAttribute(gcx_stream_native(stream),
                                       CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value),
             CUDA_SUCCESS);
    CHECK_EQ(value.memSyncDomain, CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT);
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_OK(gcx_context_destroy(context));
}

// Prints a table of what the driver answers to calls unrelated to the capture, and whether the
// capture continues. It is for docs/measurements/log.md; only what gcx relies on is checked.
void what_a_capture_forbids() {
    const Split parts = split(whole_device(), {24, 8, 8});
    const Partition partition(parts.groups[0]);
    gcx_stream other = nullptr;
    CHECK_OK(gcx_stream_create(partition.context, nullptr, &other));
    CUstream idle = gcx_stream_native(other);
    CUevent event = nullptr;
    CHECK_EQ(raw::cuCtxSetCurrent(raw::primary()), CUDA_SUCCESS);
    CHECK_EQ(raw::cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    CUdeviceptr memory = 0;
    std::size_t next = 1;
    const std::pair<const char*, std::function<CUresult()>> calls[] = {
        {"cuStreamQuery", [&] { return raw::cuStreamQuery(idle); }},
        {"cuStreamSynchronize", [&] { return raw::cuStreamSynchronize(idle); }},
        {"cuEventQuery", [&] { return raw::cuEventQuery(event); }},
        {"cuEventSynchronize", [&] { return raw::cuEventSynchronize(event); }},
        {"cuCtxSynchronize", [] { return raw::cuCtxSynchronize(); }},
        {"cuMemAlloc", [&] { return raw::cuMemAlloc(&memory, 4096); }},
        {"cuMemFree", [&] { return raw::cuMemFree(std::exchange(memory, 0)); }},
        {"gcx_context_create, the first of its SMs",
         [&] {
             gcx_context context = nullptr;
             const gcx_result result =
                 gcx_context_create(&parts.groups[next++ % 3], 1, nullptr, &context);
             if (result == GCX_SUCCESS)
                 CHECK_OK(gcx_context_destroy(context));
             return static_cast<CUresult>(static_cast<int>(result));
         }},
        {"gcx_cache_set_limit, which destroys contexts",
         [] {
             const auto result = static_cast<int>(gcx_cache_set_limit(0));
             CHECK_OK(gcx_cache_set_limit(64));
             return static_cast<CUresult>(result);
         }},
    };
    for (const auto& [name, call] : calls) {
        for (const bool same_thread : {true, false}) {
            CHECK_EQ(raw::cuStreamBeginCapture(partition.native(), CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_SUCCESS);
            CUresult result = CUDA_SUCCESS;
            if (same_thread)
                result = call();
            else
                in_another_thread([&] { result = call(); });
            const bool alive = status_of(partition.native()) == CU_STREAM_CAPTURE_STATUS_ACTIVE;
            std::printf("   global capture, %s thread, %s: %s, the capture %s\n",
                        same_thread ? "same" : "another", name, raw::name_of(result),
                        alive ? "goes on" : "is broken");
            CUgraph graph = nullptr;
            if (raw::cuStreamEndCapture(partition.native(), &graph) == CUDA_SUCCESS)
                CHECK_EQ(raw::cuGraphDestroy(graph), CUDA_SUCCESS);
        }
    }
    if (memory != 0)
        CHECK_EQ(raw::cuMemFree(memory), CUDA_SUCCESS);
    CHECK_EQ(raw::cuEventDestroy(event), CUDA_SUCCESS);
    CHECK_OK(gcx_stream_destroy(other));
}

} // namespace

void test_captures(bool quick) {
    if (!quick) { // compute-sanitizer runs no kernel next to the host, and reports refusals
        section("destroyed streams are reused");
        given_up_streams_come_back();
        section("what a capture forbids");
        what_a_capture_forbids();
    }
    section("captures survive gcx");
    captures_survive_gcx();
}
