// Captures: what calls return during one, and what they do to it.
#include "targets.hpp"

namespace conformance {
namespace {

using Kind = StreamKind;

const char* status_name(CUstreamCaptureStatus status) {
    switch (status) {
    case CU_STREAM_CAPTURE_STATUS_NONE:
        return "not capturing";
    case CU_STREAM_CAPTURE_STATUS_ACTIVE:
        return "goes on";
    case CU_STREAM_CAPTURE_STATUS_INVALIDATED:
        return "invalidated";
    }
    return "unknown";
}

struct Mode {
    CUstreamCaptureMode mode;
    const char* name;
};
const Mode kModes[] = {{CU_STREAM_CAPTURE_MODE_GLOBAL, "global"},
                       {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, "thread-local"},
                       {CU_STREAM_CAPTURE_MODE_RELAXED, "relaxed"}};

// What exists before a capture begins.
struct Words {
    CUdeviceptr a = device_words();
    CUdeviceptr b = device_words();
    CUevent event = make_event();
    CUevent complete = mark(nullptr);
    CUgraphExec graph = load_graph(b, a);
    CUstream blocking = blocking_stream();
    CUstream capturing = nullptr;
    CUcontext current = nullptr;
};

struct Call {
    const char* name;
    CUresult (*call)(const Words& words);
};

CUresult in_other_thread(const Words& words, CUresult (*call)(const Words&)) {
    CUresult result = CUDA_SUCCESS;
    in_thread(words.current, [&] { result = call(words); });
    return result;
}

CUresult launch_in_null(const Words& words) {
    return load(nullptr, words.b, words.a);
}

CUresult capture_info(CUstream stream) {
    CUstreamCaptureStatus status{};
    cuuint64_t id = 0;
    return CU(cuStreamGetCaptureInfo_v2)(stream, &status, &id, nullptr, nullptr, nullptr);
}

CUresult is_capturing(CUstream stream) {
    CUstreamCaptureStatus status{};
    return CU(cuStreamIsCapturing)(stream, &status);
}

CUresult synchronize_context(const Words&) {
    return CU(cuCtxSynchronize)();
}

// Calls that concern NULL.
const Call kInNull[] = {
    {"launch_in_null", launch_in_null},
    {"launch_in_legacy",
     [](const Words& words) { return load(CU_STREAM_LEGACY, words.b, words.a); }},
    {"graph_launch_in_null",
     [](const Words& words) { return CU(cuGraphLaunch)(words.graph, nullptr); }},
    {"copy_in_null",
     [](const Words& words) { return CU(cuMemcpyDtoDAsync_v2)(words.b, words.a, 4, nullptr); }},
    {"memset_in_null",
     [](const Words& words) { return CU(cuMemsetD32Async)(words.b, 1, 1, nullptr); }},
    {"host_function_in_null",
     [](const Words&) { return CU(cuLaunchHostFunc)(nullptr, [](void*) {}, nullptr); }},
    {"alloc_in_null",
     [](const Words&) {
         CUdeviceptr memory = 0;
         return CU(cuMemAllocAsync)(&memory, 64, nullptr);
     }},
    {"write_value_in_null",
     [](const Words& words) { return CU(cuStreamWriteValue32_v2)(nullptr, words.b, 1, 0); }},
    {"copy_to_host",
     [](const Words& words) {
         uint32_t value = 0;
         return CU(cuMemcpyDtoH_v2)(&value, words.a, 4);
     }},
    {"copy_on_device", [](const Words& words) { return CU(cuMemcpyDtoD_v2)(words.b, words.a, 4); }},
    {"memset", [](const Words& words) { return CU(cuMemsetD32_v2)(words.b, 1, 1); }},
    {"event_in_null", [](const Words& words) { return CU(cuEventRecord)(words.event, nullptr); }},
    {"wait_in_null",
     [](const Words& words) { return CU(cuStreamWaitEvent)(nullptr, words.complete, 0); }},
    {"query_null", [](const Words&) { return CU(cuStreamQuery)(nullptr); }},
    {"synchronize_null", [](const Words&) { return CU(cuStreamSynchronize)(nullptr); }},
    {"is_capturing_null", [](const Words&) { return is_capturing(nullptr); }},
    {"is_capturing_legacy", [](const Words&) { return is_capturing(CU_STREAM_LEGACY); }},
    {"capture_info_of_null", [](const Words&) { return capture_info(nullptr); }},
    {"launch_in_null_of_another_thread",
     [](const Words& words) { return in_other_thread(words, launch_in_null); }},
    {"launch_in_another_blocking",
     [](const Words& words) { return load(words.blocking, words.b, words.a); }},
};

CUresult fork_and_join(const Words& words) {
    CUresult result = CU(cuEventRecord)(words.event, words.capturing);
    if (result == CUDA_SUCCESS)
        result = CU(cuStreamWaitEvent)(words.blocking, words.event, 0);
    if (result == CUDA_SUCCESS)
        result = load(words.blocking, words.b, words.a);
    if (result == CUDA_SUCCESS)
        result = CU(cuEventRecord)(words.event, words.blocking);
    return result == CUDA_SUCCESS ? CU(cuStreamWaitEvent)(words.capturing, words.event, 0) : result;
}

// NULL waits for an event of the capture, and so would join it.
CUresult fork_to_null(const Words& words) {
    const CUresult result = CU(cuEventRecord)(words.event, words.capturing);
    return result == CUDA_SUCCESS ? CU(cuStreamWaitEvent)(nullptr, words.event, 0) : result;
}

// Calls of other kinds, which gcx's hooks make or forbid.
const Call kOthers[] = {
    {"cuMemAlloc",
     [](const Words&) {
         CUdeviceptr memory = 0;
         return CU(cuMemAlloc_v2)(&memory, 64);
     }},
    {"cuMemAllocHost",
     [](const Words&) {
         void* memory = nullptr;
         return CU(cuMemAllocHost_v2)(&memory, 64);
     }},
    {"cuMemAllocManaged",
     [](const Words&) {
         CUdeviceptr memory = 0;
         return CU(cuMemAllocManaged)(&memory, 64, CU_MEM_ATTACH_GLOBAL);
     }},
    {"cuModuleLoadData",
     [](const Words&) {
         CUmodule module = nullptr;
         return CU(cuModuleLoadData)(&module, kKernels);
     }},
    {"cuStreamCreate",
     [](const Words&) {
         CUstream stream = nullptr;
         return CU(cuStreamCreate)(&stream, CU_STREAM_DEFAULT);
     }},
    {"cuEventCreate",
     [](const Words&) {
         CUevent event = nullptr;
         return CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
     }},
    {"cuEventQuery", [](const Words& words) { return CU(cuEventQuery)(words.complete); }},
    {"cuEventSynchronize",
     [](const Words& words) { return CU(cuEventSynchronize)(words.complete); }},
    {"cuCtxSynchronize", synchronize_context},
    {"cuCtxSynchronize_of_another_thread",
     [](const Words& words) { return in_other_thread(words, synchronize_context); }},
    {"cuStreamSynchronize",
     [](const Words& words) { return CU(cuStreamSynchronize)(words.capturing); }},
    {"cuStreamQuery_of_another_blocking",
     [](const Words& words) { return CU(cuStreamQuery)(words.blocking); }},
    {"wait_for_outside_event",
     [](const Words& words) { return CU(cuStreamWaitEvent)(words.capturing, words.complete, 0); }},
    {"fork_and_join", fork_and_join},
    {"fork_to_null", fork_to_null},
};

// A capture is ended whatever happens.
std::string answer_of(const Call& call, const Words& words) {
    try {
        return name_of(call.call(words));
    } catch (const Stop& stop) {
        return stop.what();
    }
}

std::string capture_with(Kind kind, const Mode& mode, const Call& call) {
    Words words;
    MUST(cuCtxGetCurrent, &words.current);
    words.capturing = make_stream(kind);
    const CUresult begun = CU(cuStreamBeginCapture_v2)(words.capturing, mode.mode);
    if (begun != CUDA_SUCCESS)
        return "begin " + name_of(begun);
    const std::string answer = answer_of(call, words);
    CUstreamCaptureStatus status{};
    const CUresult asked = CU(cuStreamIsCapturing)(words.capturing, &status);
    CUgraph graph = nullptr;
    const CUresult ended = CU(cuStreamEndCapture)(words.capturing, &graph);
    return answer + ", " + (asked == CUDA_SUCCESS ? status_name(status) : name_of(asked)) +
           ", end " + name_of(ended);
}

std::string capture_in_all_modes(Kind kind, const Call& call) {
    std::string all;
    std::string last;
    for (const Mode& mode : kModes) {
        const std::string answer = capture_with(kind, mode, call);
        if (answer == last) {
            all.insert(all.rfind(last) - 2, std::string(", ") + mode.name);
            continue;
        }
        all += std::string(all.empty() ? "" : "; ") + mode.name + ": " + answer;
        last = answer;
    }
    return all;
}

std::string begin_capture_of(Kind kind) {
    const Target target = make_target(kind);
    std::string all;
    for (const Mode& mode : kModes) {
        const CUresult begun =
            CU_LIKE(cuStreamBeginCapture_v2,
                    target.per_thread ? "cuStreamBeginCapture_v2_ptsz"
                                      : "cuStreamBeginCapture_v2")(target.stream, mode.mode);
        all += std::string(all.empty() ? "" : "; ") + mode.name + ": " + name_of(begun);
        CUgraph graph = nullptr;
        if (begun == CUDA_SUCCESS)
            all += ", end " + name_of(CU_AT(target, cuStreamEndCapture)(target.stream, &graph));
    }
    return all;
}

// A stream of the green context captures; the primary context is synchronized.
std::string synchronize_primary_beside_green_capture() {
    const CUstream stream = non_blocking_stream();
    MUST(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    make_current(gpu.primary);
    const std::string answer = name_of(CU(cuCtxSynchronize)());
    make_current(gpu.green);
    CUgraph graph = nullptr;
    return answer + ", end " + name_of(CU(cuStreamEndCapture)(stream, &graph));
}

} // namespace

void add_captures(Checks& checks) {
    const auto add = [&](Kind kind, const std::string& name, const Call& call, bool green) {
        const Body body = [&call, kind] { return capture_in_all_modes(kind, call); };
        if (green)
            checks.add_green(name + "_green", body);
        else
            checks.add_primary(name, body);
    };
    for (const bool green : {false, true})
        for (const Kind kind : {Kind::kBlocking, Kind::kNonBlocking, Kind::kPerThread}) {
            if (green && kind == Kind::kPerThread)
                continue; // there is no such stream
            checks.begin_family(std::string("capture ") + name_of(kind) + (green ? " green" : ""));
            for (const Call& call : kInNull)
                add(kind, std::string("claim_31_") + name_of(kind) + "_captures_" + call.name, call,
                    green);
            for (const Call& call : kOthers)
                add(kind, std::string("capture_") + name_of(kind) + "_" + call.name, call, green);
        }
    checks.begin_family("begin of captures");
    for (const Kind kind : {Kind::kNull, Kind::kLegacy, Kind::kPtszLegacy, Kind::kPerThread,
                            Kind::kPtsz, Kind::kBlocking})
        checks.add_both(std::string("begin_capture_of_") + name_of(kind),
                        [kind] { return begin_capture_of(kind); });
    checks.begin_family("");
    checks.add_green("claim_37_synchronize_primary_beside_green_capture",
                     synchronize_primary_beside_green_capture);
}

} // namespace conformance
