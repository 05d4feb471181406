// Captures next to the default stream: 17 calls during captures in three kinds of streams and two
// modes, as an H200 with driver 580.159.04 answered them (27 November 2026).
#include "support.hpp"

#include <functional>
#include <thread>

using namespace sim_test;

namespace {

constexpr auto kImplicit = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
constexpr auto kUnsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

// Results in a capture of a blocking stream, of a non-blocking stream in global mode, and of a
// non-blocking stream in relaxed mode; and for the first whether relaxed mode differs.
struct Case {
    const char* name;
    CUresult blocking;
    CUresult blocking_relaxed;
    CUresult other;
    CUresult other_relaxed;
    std::function<CUresult(CUstream)> call;
    bool valid_after = false; // also after a refusal
};

CUresult in_another_thread(const std::function<CUresult()>& call) {
    CUcontext context = nullptr;
    CHECK_OK(cuCtxGetCurrent(&context));
    CUresult result = CUDA_ERROR_UNKNOWN;
    std::thread([&] {
        CHECK_OK(cuCtxSetCurrent(context));
        result = call();
    }).join();
    return result;
}

CUresult fork_and_join(Primary& primary, CUstream captured, CUstream blocking, CUevent event) {
    CHECK_OK(cuEventRecord(event, captured));
    CHECK_OK(cuStreamWaitEvent(blocking, event, 0));
    CHECK_OK(primary.spin(blocking, 1000));
    CHECK_OK(cuEventRecord(event, blocking));
    return cuStreamWaitEvent(captured, event, 0);
}

CUresult allocate_and_free(CUstream stream) {
    CUdeviceptr memory = 0;
    const CUresult result = cuMemAllocAsync(&memory, 1024, stream);
    return result == CUDA_SUCCESS ? cuMemFreeAsync(memory, stream) : result;
}

struct Fixture {
    Primary primary;
    CUdeviceptr memory = 0;
    CUevent outside = new_event();
    CUevent inside = new_event();
    CUstream blocking = nullptr;
    CUstream forked = nullptr;
    CUstream other = new_stream();

    Fixture() {
        CHECK_OK(cuMemAlloc_v2(&memory, 64));
        CHECK_OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
        CHECK_OK(cuStreamCreate(&forked, CU_STREAM_DEFAULT));
        CHECK_OK(cuEventRecord(outside, other));
    }
    Fixture(const Fixture&) = delete;
    Fixture& operator=(const Fixture&) = delete;
    ~Fixture() { CHECK_OK(cuMemFree_v2(memory)); }
};

std::vector<Case> recorded_cases(Fixture& on) {
    constexpr auto ok = CUDA_SUCCESS;
    constexpr auto isolation = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    const auto spin_in_null = [&on] { return on.primary.spin(nullptr, 1000); };
    std::vector<Case> cases;
    // Always the same result.
    const auto add = [&](const char* name, CUresult result, auto call) {
        cases.push_back({name, result, result, result, result, call});
    };
    // An action in NULL.
    const auto add_implicit = [&](const char* name, auto call) {
        cases.push_back({name, kImplicit, kImplicit, ok, ok, call});
    };
    // A call that global mode forbids.
    const auto add_unsafe = [&](const char* name, auto call) {
        cases.push_back({name, kUnsupported, ok, kUnsupported, ok, call});
    };
    add_implicit("launch", [=](CUstream) { return spin_in_null(); });
    add_implicit("fill", [&on](CUstream) { return cuMemsetD32_v2(on.memory, 0, 1); });
    add_implicit("copy", [&on](CUstream) {
        uint32_t value = 0;
        return cuMemcpyDtoH_v2(&value, on.memory, 4);
    });
    add_implicit("record", [&on](CUstream) { return cuEventRecord(on.outside, nullptr); });
    add_implicit("launch in another thread",
                 [=](CUstream) { return in_another_thread(spin_in_null); });
    add_implicit("is capturing", [](CUstream) {
        CUstreamCaptureStatus status{};
        return cuStreamIsCapturing(CU_STREAM_LEGACY, &status);
    });
    cases.back().valid_after = true;
    cases.push_back({"synchronize", kImplicit, kImplicit, kUnsupported, ok,
                     [](CUstream) { return cuStreamSynchronize(nullptr); }});
    cases.push_back({"query", kImplicit, kImplicit, kUnsupported, ok,
                     [](CUstream) { return cuStreamQuery(nullptr); }});
    add_unsafe("allocate", [](CUstream) {
        CUdeviceptr made = 0;
        return cuMemAlloc_v2(&made, 4);
    });
    add_unsafe("allocate host memory", [](CUstream) {
        void* made = nullptr;
        return cuMemAllocHost_v2(&made, 4);
    });
    add("synchronize the context", kUnsupported, [](CUstream) { return cuCtxSynchronize(); });
    add("synchronize the context in another thread", kUnsupported,
        [](CUstream) { return in_another_thread([] { return cuCtxSynchronize(); }); });
    add("synchronize the stream", kUnsupported,
        [](CUstream captured) { return cuStreamSynchronize(captured); });
    add("wait for an outside event", isolation,
        [&on](CUstream captured) { return cuStreamWaitEvent(captured, on.outside, 0); });
    add("allocate and free in order", ok, allocate_and_free);
    cases.push_back({"allocate in NULL", kImplicit, kImplicit, kUnsupported, ok,
                     [](CUstream) { return allocate_and_free(nullptr); }});
    add("load a module", ok, [](CUstream) {
        CUmodule made = nullptr;
        return cuModuleLoadData(&made, kPtx);
    });
    add("host function", ok,
        [](CUstream captured) { return cuLaunchHostFunc(captured, [](void*) {}, nullptr); });
    add("fork and join", ok, [&on](CUstream captured) {
        return fork_and_join(on.primary, captured, on.forked, on.inside);
    });
    return cases;
}

// By cuda.h, or assumed to be like a recorded one.
std::vector<Case> further_cases(Fixture& on) {
    constexpr auto ok = CUDA_SUCCESS;
    std::vector<Case> cases;
    const auto add = [&](const char* name, CUresult global, auto call) {
        const bool unsafe = global == kUnsupported;
        cases.push_back({name, unsafe ? kUnsupported : kImplicit, unsafe ? ok : kImplicit,
                         unsafe ? kUnsupported : ok, ok, call});
    };
    add("wait in NULL", ok, [&on](CUstream) { return cuStreamWaitEvent(nullptr, on.outside, 0); });
    add("capture info", ok, [](CUstream) {
        CUstreamCaptureStatus status{};
        return cuStreamGetCaptureInfo_v2(nullptr, &status, nullptr, nullptr, nullptr, nullptr);
    });
    cases.back().valid_after = true;
    add("allocate managed memory", kUnsupported, [](CUstream) {
        CUdeviceptr made = 0;
        return cuMemAllocManaged(&made, 4, CU_MEM_ATTACH_GLOBAL);
    });
    return cases;
}

void check(CUstream captured, CUstreamCaptureMode mode, const Case& one, CUresult expected,
           const char* kind) {
    CHECK_OK(cuStreamBeginCapture_v2(captured, mode));
    const bool as_expected = CHECK_EQ(one.call(captured), expected);
    const bool valid = expected == CUDA_SUCCESS || one.valid_after;
    CUstreamCaptureStatus status{};
    CHECK_OK(cuStreamIsCapturing(captured, &status));
    const bool right_status = CHECK_EQ(status, valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                                     : CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CUgraph graph = nullptr;
    CHECK_EQ(cuStreamEndCapture(captured, &graph),
             valid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    if (graph != nullptr)
        CHECK_OK(cuGraphDestroy(graph));
    if (!as_expected || !right_status)
        std::fprintf(stderr, "  %s, %s, mode %d\n", one.name, kind, static_cast<int>(mode));
}

void check_all(Fixture& on, const std::vector<Case>& cases) {
    constexpr auto global = CU_STREAM_CAPTURE_MODE_GLOBAL;
    constexpr auto relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    for (const Case& one : cases) {
        for (CUstream stream : {on.blocking, CU_STREAM_PER_THREAD}) {
            check(stream, global, one, one.blocking, "blocking");
            check(stream, relaxed, one, one.blocking_relaxed, "blocking");
        }
        check(on.other, global, one, one.other, "non-blocking");
        check(on.other, relaxed, one, one.other_relaxed, "non-blocking");
    }
}

void calls_beside_a_capture_answer_as_recorded() {
    simulate("h200");
    Fixture on;
    const std::vector<Case> cases = recorded_cases(on);
    CHECK_EQ(cases.size(), std::size_t{19});
    check_all(on, cases);
    check_all(on, further_cases(on));
    for (CUstream stream : {CUstream{}, CU_STREAM_LEGACY})
        CHECK_EQ(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), kUnsupported);
}

// A capture in another context has nothing to do with this one's NULL stream.
void capture_in_another_context_allows_actions_in_null() {
    simulate("h200");
    Fixture on;
    CUcontext context = nullptr;
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
    CUstream stream = nullptr;
    CHECK_OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    CHECK_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_OK(cuCtxPopCurrent_v2(nullptr));
    CHECK_OK(on.primary.spin(nullptr, 1000));
    CUgraph graph = nullptr;
    CHECK_OK(cuStreamEndCapture(stream, &graph));
    CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuCtxDestroy_v2(context));
}

// Recorded: in a green context NULL can be captured, and actions in it invalidate no capture.
void green_context_has_no_implicit_captures() {
    simulate("h200");
    Fixture on;
    const Partition part({split(query(), 1, 0, 24).groups[0]});
    CHECK_OK(cuCtxPushCurrent_v2(part.context));
    CUstream blocking = nullptr;
    CHECK_OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
        CUgraph graph = nullptr;
        CUstreamCaptureStatus status{};
        CHECK_OK(cuStreamBeginCapture_v2(blocking, mode));
        CHECK_OK(on.primary.spin(nullptr, 1000));
        CHECK_OK(cuMemsetD32_v2(on.memory, 0, 1));
        CHECK_OK(cuEventRecord(on.outside, nullptr));
        CHECK_OK(cuStreamIsCapturing(nullptr, &status));
        CHECK_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
        CHECK_OK(cuStreamEndCapture(blocking, &graph));
        CHECK_OK(cuGraphDestroy(graph));
        CHECK_OK(cuStreamBeginCapture_v2(nullptr, mode));
        CHECK_OK(on.primary.spin(nullptr, 1000));
        CHECK_OK(cuStreamIsCapturing(nullptr, &status));
        CHECK_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
        CHECK_OK(cuStreamEndCapture(nullptr, &graph));
        std::size_t nodes = 0;
        CHECK_OK(cuGraphGetNodes(graph, nullptr, &nodes));
        CHECK_EQ(nodes, std::size_t{1});
        CHECK_OK(cuGraphDestroy(graph));
    }
    CHECK_OK(cuStreamDestroy_v2(blocking));
    CHECK_OK(cuCtxPopCurrent_v2(nullptr));
}

} // namespace

int main() {
    calls_beside_a_capture_answer_as_recorded();
    capture_in_another_context_allows_actions_in_null();
    green_context_has_no_implicit_captures();
    return check::summary("captures and the default stream");
}
