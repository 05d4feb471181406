// The first call of a process, and of a thread: on which SMs it runs, and who waits for it. Inside
// gcx exec it must run in the partition.
#include "targets.hpp"

namespace conformance {
namespace {

// The kernels as a library, which needs no context, with memory that needs no allocation.
struct Loaded {
    CUlibrary library = nullptr;
    CUkernel probe = nullptr;
    CUkernel store = nullptr;
};

Loaded load_library() {
    Loaded loaded;
    MUST(cuLibraryLoadData, &loaded.library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0);
    MUST(cuLibraryGetKernel, &loaded.probe, loaded.library, "gcx_probe");
    MUST(cuLibraryGetKernel, &loaded.store, loaded.library, "gcx_store");
    return loaded;
}

// The library's array in the current context.
CUdeviceptr counts_of(const Loaded& loaded) {
    CUmodule module = nullptr;
    CUdeviceptr counts = 0;
    std::size_t bytes = 0;
    MUST(cuLibraryGetModule, &module, loaded.library);
    MUST(cuModuleGetGlobal_v2, &counts, &bytes, module, "gcx_counts");
    return counts;
}

CUfunction as_function(CUkernel kernel) {
    return reinterpret_cast<CUfunction>(kernel);
}

struct Call {
    const char* name;
    CUresult (*call)(CUdeviceptr counts);
};

// What comes before the launch whose SMs are looked at.
const Call kCalls[] = {
    {"launch", [](CUdeviceptr) { return CUDA_SUCCESS; }},
    {"copy",
     [](CUdeviceptr counts) {
         const uint32_t zero = 0;
         return CU(cuMemcpyHtoD_v2)(counts, &zero, sizeof zero);
     }},
    {"copy_in_null",
     [](CUdeviceptr counts) { return CU(cuMemcpyDtoDAsync_v2)(counts, counts + 64, 4, nullptr); }},
    {"memset", [](CUdeviceptr counts) { return CU(cuMemsetD8_v2)(counts, 0, 4); }},
    {"memset_in_null",
     [](CUdeviceptr counts) { return CU(cuMemsetD8Async)(counts, 0, 4, nullptr); }},
    {"event",
     [](CUdeviceptr) {
         CUevent event = nullptr;
         const CUresult result = CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
         return result == CUDA_SUCCESS ? CU(cuEventRecord)(event, nullptr) : result;
     }},
    {"module_load",
     [](CUdeviceptr) {
         CUmodule module = nullptr;
         return CU(cuModuleLoadData)(&module, kKernels);
     }},
    {"allocation",
     [](CUdeviceptr) {
         CUdeviceptr memory = 0;
         return CU(cuMemAlloc_v2)(&memory, 64);
     }},
    {"stream",
     [](CUdeviceptr) {
         CUstream stream = nullptr;
         return CU(cuStreamCreate)(&stream, CU_STREAM_DEFAULT);
     }},
    {"synchronize", [](CUdeviceptr) { return CU(cuCtxSynchronize)(); }},
    {"query_of_null", [](CUdeviceptr) { return CU(cuStreamQuery)(nullptr); }},
    {"limit", [](CUdeviceptr) { return CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 2048); }},
    {"graph",
     [](CUdeviceptr) {
         CUgraph graph = nullptr;
         return CU(cuGraphCreate)(&graph, 0);
     }},
};

// Compares with the NULL stream of a thread that allocated first.
std::string compare_sms(const std::set<unsigned>& seen) {
    std::set<unsigned> usual;
    in_thread(gpu.primary, [&] {
        device_words();
        load_kernels();
        usual = sms_of(nullptr);
    });
    const std::size_t reported = reported_sms();
    return std::string("SMs ") +
           (seen.size() == reported  ? "as reported"
            : seen.size() > reported ? "more than reported"
                                     : "fewer than reported") +
           ", the same as after an allocation: " + yes_no(seen == usual);
}

enum class Enter { kSetCurrent, kPushCurrent };

void enter(Enter how) {
    if (how == Enter::kSetCurrent)
        make_current(gpu.primary);
    else
        MUST(cuCtxPushCurrent_v2, gpu.primary);
}

// The call, then a launch in NULL.
std::string launch_after(const Call& call, CUdeviceptr counts, const Loaded& loaded) {
    const CUresult result = call.call(counts);
    if (result != CUDA_SUCCESS)
        return name_of(result);
    const CUresult launched = probe(nullptr, counts, as_function(loaded.probe));
    return launched == CUDA_SUCCESS ? "" : name_of(launched);
}

std::string first_of_process(const Call& call, Enter how) {
    start_driver();
    const Loaded loaded = load_library();
    enter(how);
    const CUdeviceptr counts = counts_of(loaded);
    const std::string failure = launch_after(call, counts, loaded);
    return failure.empty() ? compare_sms(sms_in(counts)) : failure;
}

std::string first_of_thread(const Call& call, Enter how) {
    start_driver();
    make_current(gpu.primary);
    const CUdeviceptr counts = device_words(kMaxSms * sizeof(uint32_t));
    const Loaded loaded = load_library();
    std::string failure;
    in_thread(nullptr, [&] {
        enter(how);
        failure = launch_after(call, counts, loaded);
    });
    return failure.empty() ? compare_sms(sms_in(counts)) : failure;
}

// The first call of a thread is a slow launch in NULL. Who waits for it?
std::string first_launch_is_waited_for(bool by_thread) {
    start_driver();
    make_current(gpu.primary);
    const CUdeviceptr words = device_words();
    load_kernels();
    run_kernels_once();
    CUresult launched = CUDA_SUCCESS;
    const auto slow = [&] { launched = store(nullptr, words, 1); };
    if (by_thread) {
        in_thread(gpu.primary, [&] {
            slow();
            MUST(cuCtxSynchronize);
        });
        const CUstream other = non_blocking_stream();
        must(load(other, words + 4, words), "the launch");
        MUST(cuStreamSynchronize, other);
    } else {
        in_thread(gpu.primary, slow);
        must(load(nullptr, words + 4, words), "the launch");
    }
    must(launched, "the first launch");
    return read_word(words + 4) == 1 ? "waits" : "does not wait";
}

std::string launch_without_context() {
    start_driver();
    const Loaded loaded = load_library();
    make_current(nullptr);
    return name_of(probe(nullptr, 0, as_function(loaded.probe)));
}

} // namespace

void add_first_calls(Checks& checks) {
    for (const Call& call : kCalls) {
        const std::string name = call.name;
        checks.add("claim_02_first_call_of_process_" + name, Needs::kNothing,
                   [&call] { return first_of_process(call, Enter::kSetCurrent); });
        checks.add("claim_02_first_call_of_thread_" + name, Needs::kNothing,
                   [&call] { return first_of_thread(call, Enter::kSetCurrent); });
    }
    checks.add("claim_02_first_call_of_process_launch_after_push", Needs::kNothing,
               [] { return first_of_process(kCalls[0], Enter::kPushCurrent); });
    checks.add("claim_02_first_call_of_thread_launch_after_push", Needs::kNothing,
               [] { return first_of_thread(kCalls[0], Enter::kPushCurrent); });
    checks.add("first_launch_of_thread_and_its_synchronize", Needs::kNothing,
               [] { return first_launch_is_waited_for(true); });
    checks.add("first_launch_of_thread_and_null_of_another", Needs::kNothing,
               [] { return first_launch_is_waited_for(false); });
    checks.add("launch_without_context", Needs::kNothing, launch_without_context);
}

} // namespace conformance
