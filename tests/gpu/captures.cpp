// Tests graph captures next to gcx: its calls must not break them.

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
        const auto call_gcx = [&] {
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
        call_gcx();
        in_another_thread(call_gcx);
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

void destroyed_streams_are_reused() {
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

} // namespace

void test_captures(bool quick) {
    if (!quick) { // compute-sanitizer runs no kernel next to the host, and reports refusals
        section("destroyed streams are reused");
        destroyed_streams_are_reused();
    }
    section("captures survive gcx");
    captures_survive_gcx();
}
