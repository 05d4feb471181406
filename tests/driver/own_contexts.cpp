// Contexts of cuCtxCreate: their order, and what they have in common with the primary context.
#include "targets.hpp"

namespace conformance {
namespace {

using Kind = StreamKind;

// The primary context stays current. Kernels belong to the context that loaded them.
struct Own {
    CUcontext context = nullptr;
    Kernels kernels;
};

Own make_own() {
    const Kernels of_primary = kernels;
    Own own;
    MUST(cuCtxCreate_v2, &own.context, 0, gpu.device);
    load_kernels();
    run_kernels_once();
    own.kernels = kernels;
    kernels = of_primary;
    make_current(gpu.primary);
    return own;
}

// Makes a context current, with its kernels.
class Within {
  public:
    Within(CUcontext context, const Kernels& its_kernels) : before_(kernels) {
        MUST(cuCtxPushCurrent_v2, context);
        kernels = its_kernels;
    }
    ~Within() {
        CUcontext context = nullptr;
        CU(cuCtxPopCurrent_v2)(&context);
        kernels = before_;
    }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

  private:
    Kernels before_;
};

// Words that all contexts reach.
CUdeviceptr shared_words() {
    return address_of(host_words());
}

uint32_t read_shared(CUdeviceptr word) {
    return *reinterpret_cast<const volatile uint32_t*>(word);
}

// Waits for both contexts, and reads.
uint32_t read_after_all(const Own& own, CUdeviceptr word) {
    {
        const Within within(own.context, own.kernels);
        MUST(cuCtxSynchronize);
    }
    settle();
    return read_shared(word);
}

std::string order_within(Kind first, Kind second) {
    const Own own = make_own();
    const CUdeviceptr words = shared_words();
    {
        const Within within(own.context, own.kernels);
        const CUstream a = make_stream(first);
        const CUstream b = make_stream(second);
        must(store(a, words, 1), "the first launch");
        must(load(b, words + 4, words), "the second launch");
    }
    return read_after_all(own, words + 4) == 1 ? "ordered" : "independent";
}

// A slow launch in a stream of one context, then a launch in NULL of the other.
std::string order_across(Kind first, bool own_first) {
    const Own own = make_own();
    const CUdeviceptr words = shared_words();
    const Kernels of_primary = kernels;
    const auto in_own = [&](const std::function<void()>& body) {
        const Within within(own.context, own.kernels);
        body();
    };
    const auto in_primary = [&](const std::function<void()>& body) {
        const Within within(gpu.primary, of_primary);
        body();
    };
    const auto slow = [&] { must(store(make_stream(first), words, 1), "the first launch"); };
    const auto fast = [&] { must(load(nullptr, words + 4, words), "the second launch"); };
    if (own_first) {
        in_own(slow);
        in_primary(fast);
    } else {
        in_primary(slow);
        in_own(fast);
    }
    return read_after_all(own, words + 4) == 1 ? "ordered" : "independent";
}

// A call while the other context works.
std::string call_beside(bool own_works, CUresult (*call)()) {
    const Own own = make_own();
    CUevent end = nullptr;
    const Kernels of_primary = kernels;
    const auto works = [&] {
        const CUstream stream = non_blocking_stream();
        must(spin(stream, 60 * kMillisecond), "gcx_spin");
        end = mark(stream);
    };
    CUresult result = CUDA_SUCCESS;
    {
        const Within within(own_works ? own.context : gpu.primary,
                            own_works ? own.kernels : of_primary);
        works();
    }
    {
        const Within within(own_works ? gpu.primary : own.context, of_primary);
        result = call();
    }
    return result == CUDA_SUCCESS ? waited_for(end) : name_of(result);
}

CUresult synchronize() {
    return CU(cuCtxSynchronize)();
}

CUresult allocate_and_free() {
    CUdeviceptr memory = 0;
    const CUresult result = CU(cuMemAlloc_v2)(&memory, 1 << 22);
    return result == CUDA_SUCCESS ? CU(cuMemFree_v2)(memory) : result;
}

CUresult query_null() {
    return CU(cuStreamQuery)(nullptr);
}

std::string event_of_another_context() {
    const Own own = make_own();
    const CUdeviceptr words = shared_words();
    CUevent end = nullptr;
    {
        const Within within(own.context, own.kernels);
        const CUstream stream = non_blocking_stream();
        must(store(stream, words, 1), "the slow launch");
        end = mark(stream);
    }
    const CUstream stream = non_blocking_stream();
    const CUresult waited = CU(cuStreamWaitEvent)(stream, end, 0);
    must(load(stream, words + 4, words), "the launch");
    return "wait " + name_of(waited) + ", " +
           (read_after_all(own, words + 4) == 1 ? "ordered" : "independent");
}

std::string capture_beside(bool null_of_own) {
    const Own own = make_own();
    const CUdeviceptr words = shared_words();
    const Kernels of_primary = kernels;
    const Within within(own.context, own.kernels);
    const CUstream stream = blocking_stream();
    MUST(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    CUresult result = CUDA_SUCCESS;
    if (null_of_own) {
        result = load(nullptr, words + 4, words);
    } else {
        const Within primary(gpu.primary, of_primary);
        result = load(nullptr, words + 4, words);
    }
    CUgraph graph = nullptr;
    return name_of(result) + ", end " + name_of(CU(cuStreamEndCapture)(stream, &graph));
}

std::string destroy_with_work() {
    const Own own = make_own();
    const CUdeviceptr words = shared_words();
    {
        const Within within(own.context, own.kernels);
        must(store(non_blocking_stream(), words, 3), "the slow launch");
    }
    const CUresult destroyed = CU(cuCtxDestroy_v2)(own.context);
    return name_of(destroyed) + ", value then " + std::to_string(read_shared(words));
}

std::string properties() {
    const Own own = make_own();
    const Within within(own.context, own.kernels);
    const CUstream stream = blocking_stream();
    unsigned flags = 99;
    CUcontext context = nullptr;
    MUST(cuStreamGetFlags, stream, &flags);
    MUST(cuStreamGetCtx, stream, &context);
    const CUdeviceptr memory = device_words();
    CUcontext of_memory = nullptr;
    MUST(cuPointerGetAttribute, &of_memory, CU_POINTER_ATTRIBUTE_CONTEXT, memory);
    const auto whose = [&](CUcontext which) {
        return which == own.context   ? "this one"
               : which == gpu.primary ? "the primary one"
                                      : "another";
    };
    return "flags of a blocking stream " + std::to_string(flags) + ", its context " +
           whose(context) + ", context of memory " + whose(of_memory);
}

std::string sms() {
    const Own own = make_own();
    const std::set<unsigned> of_primary = sms_of(nullptr);
    const Within within(own.context, own.kernels);
    const CUdeviceptr counts = device_words(kMaxSms * sizeof(uint32_t));
    must(probe(nullptr, counts, own.kernels.probe), "gcx_probe");
    MUST(cuCtxSynchronize);
    return sms_in(counts) == of_primary ? "those of the primary context" : "others";
}

} // namespace

void add_own_contexts(Checks& checks) {
    const auto add = [&](const std::string& name, const Body& body) {
        checks.add_primary("own_context_" + name, body);
    };
    const Kind pairs[][2] = {{Kind::kBlocking, Kind::kNull},
                             {Kind::kNull, Kind::kBlocking},
                             {Kind::kPerThread, Kind::kNull},
                             {Kind::kNonBlocking, Kind::kNull}};
    for (const auto& pair : pairs)
        add(std::string(name_of(pair[0])) + "_then_" + name_of(pair[1]),
            [a = pair[0], b = pair[1]] { return order_within(a, b); });
    for (const Kind kind : {Kind::kNull, Kind::kBlocking}) {
        add(std::string(name_of(kind)) + "_then_null_of_primary",
            [kind] { return order_across(kind, true); });
        add(std::string(name_of(kind)) + "_of_primary_then_null",
            [kind] { return order_across(kind, false); });
    }
    add("synchronize_beside_primary", [] { return call_beside(false, synchronize); });
    add("beside_synchronize_of_primary", [] { return call_beside(true, synchronize); });
    add("free_beside_primary", [] { return call_beside(false, allocate_and_free); });
    add("beside_free_in_primary", [] { return call_beside(true, allocate_and_free); });
    add("beside_query_of_null_of_primary", [] { return call_beside(true, query_null); });
    add("event_in_stream_of_primary", event_of_another_context);
    add("captures_launch_in_null", [] { return capture_beside(true); });
    add("captures_launch_in_null_of_primary", [] { return capture_beside(false); });
    add("destroy_with_work", destroy_with_work);
    add("properties", properties);
    add("sms", sms);
}

} // namespace conformance
