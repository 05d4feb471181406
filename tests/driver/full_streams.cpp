// Full streams: how many launches a stream takes while a kernel holds it, and what then blocks. A
// launch is blocked in one thread, and other calls are tried in others.
#include "targets.hpp"

#include <atomic>
#include <thread>

namespace conformance {
namespace {

using std::chrono::milliseconds;

// The simulated driver's streams never fill.
constexpr unsigned kTooMany = 8'000;
// A launch takes 5 us, an allocation less than 1 ms.
constexpr milliseconds kBlocked(100);

// A stream that a kernel holds, filled by a thread until a launch blocks.
class FullStream {
  public:
    explicit FullStream(CUstream stream);
    ~FullStream();
    FullStream(const FullStream&) = delete;
    FullStream& operator=(const FullStream&) = delete;

    bool full() const { return state_->launched < kTooMany; }
    unsigned launched() const { return state_->launched; }
    // Ends the kernel, and waits until the blocked launch has returned.
    bool release();

  private:
    struct State {
        std::atomic<unsigned> launched{0};
        std::atomic<bool> released{false};
    };
    std::shared_ptr<State> state_ = std::make_shared<State>();
    volatile uint32_t* flag_ = host_words();
    std::unique_ptr<Attempt> filler_;
};

FullStream::FullStream(CUstream stream) {
    constexpr uint64_t kLimit = 8'000 * kMillisecond;
    const CUdeviceptr words = device_words();
    must(launch(kernels.wait, stream, address_of(flag_), kLimit), "gcx_wait");
    CUcontext context = nullptr;
    MUST(cuCtxGetCurrent, &context);
    filler_ = std::make_unique<Attempt>(context, [state = state_, stream, words] {
        while (state->launched < kTooMany && !state->released) {
            const CUresult result = load(stream, words, words + 4);
            if (result != CUDA_SUCCESS)
                return result;
            ++state->launched;
        }
        return CUDA_SUCCESS;
    });
    // Blocked: nothing was launched for a while, although the machine may be busy.
    unsigned before = 0;
    for (int quiet = 0; quiet < 3 && !filler_->ends_within(kBlocked / 2);) {
        quiet = before != 0 && before == state_->launched ? quiet + 1 : 0;
        before = state_->launched;
    }
}

bool FullStream::release() {
    state_->released = true;
    *flag_ = 1;
    return filler_->ends_within(milliseconds(5'000));
}

FullStream::~FullStream() {
    release();
}

std::string how_many() {
    FullStream full(non_blocking_stream());
    const unsigned count = full.launched();
    const bool is_full = full.full();
    if (!full.release())
        return "the launch stays blocked after the stream was released";
    if (!is_full)
        return "streams do not fill";
    // Not in the line, since it may vary.
    std::fprintf(stderr, "full_stream_fills: a stream takes %u launches\n", count);
    unsigned power = 1;
    while (power < count)
        power *= 2;
    return "more than " + std::to_string(power / 2) + ", at most " + std::to_string(power);
}

// Streams and other things that exist before a stream is full.
struct Around {
    CUstream full = nullptr;
    CUstream blocking = blocking_stream();
    CUstream non_blocking = non_blocking_stream();
    CUstream of_other = nullptr; // of the other green context
    CUevent complete = mark(non_blocking);
    CUevent event = make_event();
    CUdeviceptr words = device_words();
    CUgraphExec graph = load_graph(words, words + 4);
};

struct Try {
    const char* name;
    CUresult (*call)(const Around& around);
    bool everywhere = false; // also with a full blocking stream, and in a green context
};

CUresult record(const Around& around, CUstream stream) {
    return CU(cuEventRecord)(around.event, stream);
}

CUresult launch_in(const Around& around, CUstream stream) {
    return load(stream, around.words, around.words + 4);
}

const Try kTries[] = {
    {"launch_in_it", [](const Around& a) { return launch_in(a, a.full); }, true},
    {"record_in_it", [](const Around& a) { return record(a, a.full); }},
    {"wait_in_it", [](const Around& a) { return CU(cuStreamWaitEvent)(a.full, a.complete, 0); }},
    {"query_of_it",
     [](const Around& a) {
         const CUresult result = CU(cuStreamQuery)(a.full);
         return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
     },
     true},
    {"launch_in_null", [](const Around& a) { return launch_in(a, nullptr); }, true},
    {"record_in_null", [](const Around& a) { return record(a, nullptr); }, true},
    {"wait_in_null", [](const Around& a) { return CU(cuStreamWaitEvent)(nullptr, a.complete, 0); }},
    {"query_of_null",
     [](const Around&) {
         const CUresult result = CU(cuStreamQuery)(nullptr);
         return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
     },
     true},
    {"launch_in_blocking", [](const Around& a) { return launch_in(a, a.blocking); }, true},
    {"launch_in_non_blocking", [](const Around& a) { return launch_in(a, a.non_blocking); }, true},
    {"record_in_non_blocking", [](const Around& a) { return record(a, a.non_blocking); }, true},
    {"wait_in_non_blocking",
     [](const Around& a) { return CU(cuStreamWaitEvent)(a.non_blocking, a.complete, 0); }},
    {"query_of_non_blocking", [](const Around& a) { return CU(cuStreamQuery)(a.non_blocking); }},
    {"graph_launch_in_non_blocking",
     [](const Around& a) { return CU(cuGraphLaunch)(a.graph, a.non_blocking); }},
    {"launch_in_other_green_context", [](const Around& a) { return launch_in(a, a.of_other); },
     true},
    {"event_create_and_destroy",
     [](const Around&) {
         CUevent event = nullptr;
         const CUresult result = CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
         return result == CUDA_SUCCESS ? CU(cuEventDestroy_v2)(event) : result;
     }},
    {"event_query", [](const Around& a) { return CU(cuEventQuery)(a.complete); }},
    {"event_synchronize", [](const Around& a) { return CU(cuEventSynchronize)(a.complete); }},
    {"stream_create",
     [](const Around&) {
         CUstream stream = nullptr;
         return CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
     }},
    {"cuMemAlloc",
     [](const Around&) {
         CUdeviceptr memory = 0;
         return CU(cuMemAlloc_v2)(&memory, 4096);
     },
     true},
    {"cuMemAllocAsync",
     [](const Around& a) {
         CUdeviceptr memory = 0;
         return CU(cuMemAllocAsync)(&memory, 4096, a.non_blocking);
     }},
    {"copy_to_host_in_non_blocking",
     [](const Around& a) {
         static uint32_t value = 0;
         return CU(cuMemcpyDtoHAsync_v2)(&value, a.words, 4, a.non_blocking);
     }},
    {"host_function_in_non_blocking",
     [](const Around& a) { return CU(cuLaunchHostFunc)(a.non_blocking, [](void*) {}, nullptr); }},
    {"push_and_pop_of_context",
     [](const Around&) {
         CUcontext context = nullptr;
         const CUresult result = CU(cuCtxPushCurrent_v2)(gpu.primary);
         return result == CUDA_SUCCESS ? CU(cuCtxPopCurrent_v2)(&context) : result;
     }},
    {"green_context_record",
     [](const Around& a) { return CU(cuGreenCtxRecordEvent)(gpu.other_handle, a.event); }},
};

std::string tried(const Try& what, StreamKind kind) {
    static const Around around = [kind] {
        Around made;
        made.full = make_stream(kind);
        CUcontext before = nullptr;
        MUST(cuCtxGetCurrent, &before);
        make_current(gpu.other);
        made.of_other = non_blocking_stream();
        make_current(before);
        return made;
    }();
    CUcontext context = nullptr;
    MUST(cuCtxGetCurrent, &context);
    FullStream full(around.full);
    if (!full.full())
        return "streams do not fill";
    const Attempt attempt(context, [&what] { return what.call(around); });
    const std::string answer = attempt.answer_within(kBlocked);
    if (!full.release() || !attempt.ends_within(milliseconds(5'000)))
        return answer + ", and stays blocked after the stream was released";
    settle();
    return answer;
}

} // namespace

void add_full_streams(Checks& checks) {
    checks.add_both("full_stream_fills", how_many);
    for (const bool in_green : {false, true})
        for (const StreamKind kind : {StreamKind::kNonBlocking, StreamKind::kBlocking}) {
            if (in_green && kind == StreamKind::kBlocking)
                continue; // the driver has none there
            const std::string name = std::string("full_") + name_of(kind) + "_stream_";
            checks.begin_family(name + (in_green ? "green" : ""));
            for (const Try& what : kTries) {
                if (!what.everywhere && (in_green || kind == StreamKind::kBlocking))
                    continue;
                checks.add(name + what.name + (in_green ? "_green" : ""), Needs::kGreen,
                           [&what, kind, in_green] {
                               make_current(in_green ? gpu.green : gpu.primary);
                               return tried(what, kind);
                           });
            }
        }
    checks.begin_family("");
}

} // namespace conformance
