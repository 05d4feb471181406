// Memory: which calls wait for work, variables, limits, pools, memory operations, two processes and
// two GPUs.
#include "targets.hpp"

#include <cstdlib>

namespace conformance {
namespace {

using Kind = StreamKind;
using std::chrono::milliseconds;

// -- Claim 4: calls that wait for work by themselves

// Prepares a call, and returns it.
using Prepare = std::function<CUresult()> (*)();

struct Waiting {
    const char* name;
    Prepare prepare;
};

CUmodule load_module() {
    CUmodule module = nullptr;
    MUST(cuModuleLoadData, &module, kKernels);
    return module;
}

const Waiting kWaiting[] = {
    {"free",
     [] {
         const CUdeviceptr memory = device_words(1 << 22);
         return std::function([=] { return CU(cuMemFree_v2)(memory); });
     }},
    {"free_host",
     [] {
         void* memory = nullptr;
         MUST(cuMemHostAlloc, &memory, 4096, 0);
         return std::function([=] { return CU(cuMemFreeHost)(memory); });
     }},
    {"host_unregister",
     [] {
         void* memory = std::aligned_alloc(4096, 1 << 20);
         MUST(cuMemHostRegister_v2, memory, 1 << 20, 0);
         return std::function([=] { return CU(cuMemHostUnregister)(memory); });
     }},
    {"host_register",
     [] {
         void* memory = std::aligned_alloc(4096, 1 << 20);
         return std::function([=] { return CU(cuMemHostRegister_v2)(memory, 1 << 20, 0); });
     }},
    {"array_destroy",
     [] {
         CUDA_ARRAY_DESCRIPTOR shape{};
         shape.Width = 1024;
         shape.Format = CU_AD_FORMAT_UNSIGNED_INT32;
         shape.NumChannels = 1;
         CUarray array = nullptr;
         MUST(cuArrayCreate_v2, &array, &shape);
         return std::function([=] { return CU(cuArrayDestroy)(array); });
     }},
    {"module_load",
     [] {
         return std::function([] {
             CUmodule module = nullptr;
             return CU(cuModuleLoadData)(&module, kKernels);
         });
     }},
    {"module_unload",
     [] {
         CUmodule module = load_module();
         return std::function([=] { return CU(cuModuleUnload)(module); });
     }},
    {"alloc",
     [] {
         return std::function([] {
             CUdeviceptr memory = 0;
             return CU(cuMemAlloc_v2)(&memory, 1 << 22);
         });
     }},
    {"host_alloc",
     [] {
         return std::function([] {
             void* memory = nullptr;
             return CU(cuMemHostAlloc)(&memory, 4096, 0);
         });
     }},
    {"alloc_managed",
     [] {
         return std::function([] {
             CUdeviceptr memory = 0;
             return CU(cuMemAllocManaged)(&memory, 1 << 16, CU_MEM_ATTACH_GLOBAL);
         });
     }},
    {"free_async",
     [] {
         const CUstream stream = non_blocking_stream();
         CUdeviceptr memory = 0;
         MUST(cuMemAllocAsync, &memory, 4096, stream);
         MUST(cuStreamSynchronize, stream);
         return std::function([=] { return CU(cuMemFreeAsync)(memory, stream); });
     }},
    {"pool_trim",
     [] {
         return std::function([] {
             CUmemoryPool pool = nullptr;
             MUST(cuDeviceGetDefaultMemPool, &pool, gpu.device);
             return CU(cuMemPoolTrimTo)(pool, 0);
         });
     }},
    {"stream_create",
     [] {
         return std::function([] {
             CUstream stream = nullptr;
             return CU(cuStreamCreate)(&stream, CU_STREAM_DEFAULT);
         });
     }},
    {"stream_destroy",
     [] {
         const CUstream stream = blocking_stream();
         return std::function([=] { return CU(cuStreamDestroy_v2)(stream); });
     }},
    {"event_destroy",
     [] {
         const CUevent event = make_event();
         return std::function([=] { return CU(cuEventDestroy_v2)(event); });
     }},
    {"set_limit",
     [] { return std::function([] { return CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4096); }); }},
    {"graph_instantiate",
     [] {
         const CUdeviceptr words = device_words();
         return std::function([=] {
             load_graph(words, words + 4);
             return CUDA_SUCCESS;
         });
     }},
    {"green_context_create",
     [] {
         return std::function([] {
             CUdevResource resource{};
             CUdevResourceDesc descriptor{};
             CUgreenCtx green = nullptr;
             MUST(cuGreenCtxGetDevResource, gpu.other_handle, &resource, gcx::cu::kResourceSm);
             MUST(cuDevResourceGenerateDesc, &descriptor, &resource, 1);
             return CU(cuGreenCtxCreate)(&green, descriptor, gpu.device,
                                         gcx::cu::kGreenCtxDefaultStream);
         });
     }},
    {"green_context_destroy",
     [] {
         CUdevResource resource{};
         CUdevResourceDesc descriptor{};
         CUgreenCtx green = nullptr;
         MUST(cuGreenCtxGetDevResource, gpu.other_handle, &resource, gcx::cu::kResourceSm);
         MUST(cuDevResourceGenerateDesc, &descriptor, &resource, 1);
         MUST(cuGreenCtxCreate, &green, descriptor, gpu.device, gcx::cu::kGreenCtxDefaultStream);
         return std::function([=] { return CU(cuGreenCtxDestroy)(green); });
     }},
};

std::string waits_for(const Waiting& waiting, CUcontext caller, CUcontext worker) {
    make_current(worker);
    const CUstream stream = non_blocking_stream();
    make_current(caller);
    const std::function<CUresult()> call = waiting.prepare();
    settle();
    make_current(worker);
    must(spin(stream, 60 * kMillisecond), "gcx_spin");
    const CUevent end = mark(stream);
    make_current(caller);
    const CUresult result = call();
    const std::string answer = waited_for(end);
    settle();
    return result == CUDA_SUCCESS ? answer : name_of(result);
}

void add_waiting(Checks& checks) {
    checks.begin_family("waiting in primary");
    for (const Waiting& waiting : kWaiting)
        checks.add(std::string("claim_04_") + waiting.name + "_waits_in_primary", Needs::kGreen,
                   [&waiting] {
                       return "for its own work: " + waits_for(waiting, gpu.primary, gpu.primary) +
                              "; for a green context's: " +
                              waits_for(waiting, gpu.primary, gpu.green);
                   });
    checks.begin_family("waiting in green");
    for (const Waiting& waiting : kWaiting)
        checks.add(
            std::string("claim_04_") + waiting.name + "_waits_in_green", Needs::kGreen, [&waiting] {
                return "for its own work: " + waits_for(waiting, gpu.green, gpu.green) +
                       "; for the primary context's: " +
                       waits_for(waiting, gpu.green, gpu.primary) +
                       "; for another green context's: " + waits_for(waiting, gpu.green, gpu.other);
            });
    checks.begin_family("");
}

// Is memory that was freed while a kernel writes to it given out before the kernel has ended?
std::string memory_after_free() {
    CUdeviceptr first = 0;
    CUdeviceptr second = 0;
    MUST(cuMemAlloc_v2, &first, 1 << 22);
    const CUstream stream = non_blocking_stream();
    const CUstream other = non_blocking_stream();
    must(store(stream, first, 77), "the slow launch");
    MUST(cuMemFree_v2, first);
    MUST(cuMemAlloc_v2, &second, 1 << 22);
    MUST(cuMemsetD32Async, second, 5, 1 << 20, other);
    MUST(cuStreamSynchronize, other);
    return read_word(second) == 5 ? "kept" : "overwritten by the kernel";
}

// Claim 28: the module of a running kernel is unloaded.
std::string unload_while_running() {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    MUST(cuModuleLoadData, &module, kKernels);
    MUST(cuModuleGetFunction, &function, module, "gcx_store");
    const CUdeviceptr word = device_words();
    const CUstream stream = non_blocking_stream();
    must(launch(function, stream, word, uint32_t{0}, uint64_t{1}), "gcx_store");
    settle();
    must(launch(function, stream, word, uint32_t{5}, kSlow), "gcx_store");
    const CUevent end = mark(stream);
    const CUresult unloaded = CU(cuModuleUnload)(module);
    const std::string waited = waited_for(end);
    const CUresult ended = CU(cuStreamSynchronize)(stream);
    return name_of(unloaded) + ", " + waited + ", its stream " + name_of(ended) + ", value " +
           std::to_string(read_word(word));
}

// -- Claim 5: variables

// By the addresses of one variable in three contexts.
std::string addresses_of_variable(bool library) {
    std::set<CUdeviceptr> addresses;
    CUlibrary loaded = nullptr;
    CUmodule module = nullptr;
    if (library)
        MUST(cuLibraryLoadData, &loaded, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0);
    else
        module = load_module();
    for (const CUcontext context : {gpu.primary, gpu.green, gpu.other}) {
        make_current(context);
        CUdeviceptr address = 0;
        std::size_t bytes = 0;
        if (library)
            MUST(cuLibraryGetModule, &module, loaded);
        MUST(cuModuleGetGlobal_v2, &address, &bytes, module, "gcx_variable");
        addresses.insert(address);
    }
    return addresses.size() == 1 ? "one address" : "several addresses";
}

std::string library_global() {
    CUlibrary library = nullptr;
    std::set<CUdeviceptr> addresses;
    MUST(cuLibraryLoadData, &library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0);
    for (const CUcontext context : {gpu.primary, gpu.green, gpu.other}) {
        make_current(context);
        CUdeviceptr address = 0;
        std::size_t bytes = 0;
        MUST(cuLibraryGetGlobal, &address, &bytes, library, "gcx_variable");
        addresses.insert(address);
    }
    return addresses.size() == 1 ? "one address" : "several addresses";
}

uint32_t variable_in(CUcontext context) {
    make_current(context);
    const CUdeviceptr word = device_words();
    must(launch(kernels.get_variable, nullptr, word), "gcx_get_variable");
    return read_word(word);
}

std::string values_of_variable() {
    make_current(gpu.green);
    must(launch(kernels.set_variable, nullptr, uint32_t{41}), "gcx_set_variable");
    settle();
    return "set to 41 in a green context, another reads " + std::to_string(variable_in(gpu.other)) +
           ", the primary context " + std::to_string(variable_in(gpu.primary));
}

std::string copies_of_variable() {
    make_current(gpu.primary);
    CUmodule module = load_module();
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    const uint32_t value = 21;
    uint32_t read = 0;
    MUST(cuModuleGetGlobal_v2, &address, &bytes, module, "gcx_variable");
    MUST(cuMemcpyHtoD_v2, address, &value, 4);
    make_current(gpu.green);
    MUST(cuMemcpyDtoH_v2, &read, address, 4);
    return "written in the primary context as 21, read in a green one as " + std::to_string(read);
}

// -- Claim 6: limits

struct Limit {
    CUlimit limit;
    const char* name;
    std::size_t value;
};

const Limit kLimits[] = {
    {CU_LIMIT_STACK_SIZE, "stack", 4096},
    {CU_LIMIT_PRINTF_FIFO_SIZE, "printf", 8 << 20},
    {CU_LIMIT_MALLOC_HEAP_SIZE, "heap", 64 << 20},
    {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, "pending_launches", 4096},
    {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, "persisting_l2", 4 << 20},
};

std::string limit_in(CUcontext context, const Limit& limit) {
    std::size_t value = 0;
    make_current(context);
    const CUresult result = CU(cuCtxGetLimit)(&value, limit.limit);
    if (result != CUDA_SUCCESS)
        return name_of(result);
    return value == limit.value ? "that" : "another";
}

std::string limit_set_in(CUcontext context, const Limit& limit) {
    make_current(context);
    const CUresult result = CU(cuCtxSetLimit)(limit.limit, limit.value);
    return name_of(result) + "; value in the primary context: " + limit_in(gpu.primary, limit) +
           ", in the green one: " + limit_in(gpu.green, limit) +
           ", in another: " + limit_in(gpu.other, limit);
}

// A kernel of its own module, as loading it makes the heap.
constexpr char kHeapKernel[] = R"(
.version 7.0
.target sm_70
.address_size 64

.extern .func (.param .b64 result) malloc (.param .b64 bytes);

.visible .entry gcx_malloc(.param .u64 to, .param .u64 bytes)
{
    .reg .pred %p<2>;
    .reg .b32  %r<2>;
    .reg .b64  %rd<4>;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd2, [bytes];
    {
    .param .b64 bytes_of_call;
    .param .b64 result_of_call;
    st.param.b64 [bytes_of_call], %rd2;
    call.uni (result_of_call), malloc, (bytes_of_call);
    ld.param.b64 %rd3, [result_of_call];
    }
    setp.ne.u64  %p1, %rd3, 0;
    selp.u32     %r1, 1, 2, %p1;
    st.volatile.global.u32 [%rd1], %r1;
    ret;
}
)";

std::string malloc_in_green(CUcontext Gpu::* limit_in) {
    make_current(gpu.*limit_in);
    const CUresult limited = CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, std::size_t{512} << 20);
    make_current(gpu.green);
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    MUST(cuModuleLoadData, &module, kHeapKernel);
    MUST(cuModuleGetFunction, &function, module, "gcx_malloc");
    const CUdeviceptr word = device_words();
    must(launch(function, nullptr, word, uint64_t{200} << 20), "gcx_malloc");
    const uint32_t got = read_word(word);
    return name_of(limited) + "; malloc of 200 MiB in a green context's kernel: " +
           (got == 1   ? "works"
            : got == 2 ? "fails"
                       : "the kernel did not run");
}

// -- Claim 9: pools

std::string pool_reuse(CUcontext Gpu::* first, CUcontext Gpu::* second) {
    CUmemoryPool pool = nullptr;
    cuuint64_t keep = ~cuuint64_t{0};
    MUST(cuDeviceGetDefaultMemPool, &pool, gpu.device);
    MUST(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
    make_current(gpu.*first);
    const CUstream a = non_blocking_stream();
    CUdeviceptr freed = 0;
    MUST(cuMemAllocAsync, &freed, 1 << 20, a);
    must(store(a, freed, 55), "the slow launch");
    MUST(cuMemFreeAsync, freed, a);
    make_current(gpu.*second);
    const CUstream b = non_blocking_stream();
    CUdeviceptr memory = 0;
    MUST(cuMemAllocAsync, &memory, 1 << 20, b);
    MUST(cuMemsetD32Async, memory, 5, 1 << 18, b);
    MUST(cuStreamSynchronize, b);
    return read_word(memory) == 5 ? "kept" : "overwritten by the other stream's kernel";
}

// -- Claim 12: memory operations of streams

int attribute(CUdevice_attribute which) {
    int value = 0;
    MUST(cuDeviceGetAttribute, &value, which, gpu.device);
    return value;
}

// A stream waits for a word of host memory. Whatever happens, the host writes it in the end.
std::string wait_value(unsigned flags, bool by_host, CUcontext Gpu::* writer) {
    CUcontext current = nullptr;
    MUST(cuCtxGetCurrent, &current);
    volatile uint32_t* flag = host_words();
    const CUdeviceptr word = device_words();
    const CUstream stream = non_blocking_stream();
    make_current(gpu.*writer != nullptr ? gpu.*writer : current);
    const CUstream other = non_blocking_stream();
    make_current(current);
    if ((flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0 &&
        attribute(CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES) == 0)
        return "the device cannot flush remote writes";
    std::string answer = name_of(CU(cuStreamWaitValue32_v2)(stream, address_of(flag), 1, flags));
    const Attempt launched(current, [=] { return load(stream, word, address_of(flag)); });
    answer += ", a launch behind it " + launched.answer_within(milliseconds(300));
    answer += ", held: " + std::string(yes_no(CU(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY));
    if (!by_host) {
        const Attempt written(
            current, [=] { return CU(cuStreamWriteValue32_v2)(other, address_of(flag), 1, 0); });
        answer += ", the write " + written.answer_within(milliseconds(300));
        const Attempt ended(current, [=] { return CU(cuStreamSynchronize)(stream); });
        answer += ", then the stream's synchronize " + ended.answer_within(milliseconds(2'000));
    }
    *flag = 1;
    const Attempt settled(gpu.primary, [] { return CU(cuCtxSynchronize)(); });
    answer += ", the context's " + settled.answer_within(milliseconds(5'000));
    return answer + ", value " +
           (settled.ends_within(milliseconds(0)) ? std::to_string(read_word(word)) : "?");
}

// The first launch of a kernel, which loads it, behind a wait.
std::string first_launch_behind_wait() {
    CUcontext current = nullptr;
    MUST(cuCtxGetCurrent, &current);
    volatile uint32_t* flag = host_words();
    const CUdeviceptr words = device_words();
    const CUstream stream = non_blocking_stream();
    CUmodule module = load_module();
    MUST(cuStreamWaitValue32_v2, stream, address_of(flag), 1, CU_STREAM_WAIT_VALUE_GEQ);
    const Attempt launched(current, [=] {
        CUfunction function = nullptr;
        const CUresult found = CU(cuModuleGetFunction)(&function, module, "gcx_add");
        return found == CUDA_SUCCESS ? launch(function, stream, words, uint32_t{4}) : found;
    });
    const std::string answer = launched.answer_within(milliseconds(500));
    *flag = 1;
    const bool ended = launched.ends_within(milliseconds(5'000));
    return answer + (ended ? ", value " + std::to_string(read_word(words))
                           : ", and stays blocked after the value was written");
}

std::string write_value_in(Kind kind) {
    const Target target = make_target(kind);
    const CUdeviceptr word = device_words();
    const CUresult result =
        CU_LIKE(cuStreamWriteValue32_v2,
                target.per_thread ? "cuStreamWriteValue32_v2_ptsz"
                                  : "cuStreamWriteValue32_v2")(target.stream, word, 7, 0);
    return name_of(result) + ", value " + std::to_string(read_word(word));
}

std::string batch_operations() {
    const CUstream stream = non_blocking_stream();
    const CUdeviceptr words = device_words();
    CUstreamBatchMemOpParams operations[3] = {};
    operations[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operations[0].writeValue.address = words;
    operations[0].writeValue.value = 3;
    operations[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    operations[1].waitValue.address = words;
    operations[1].waitValue.value = 3;
    operations[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    operations[2].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    operations[2].writeValue.address = words + 8;
    operations[2].writeValue.value64 = 4;
    const CUresult result = CU(cuStreamBatchMemOp_v2)(stream, 3, operations, 0);
    return name_of(result) + ", values " + std::to_string(read_word(words)) + " " +
           std::to_string(read_word(words + 8));
}

// -- Claims 13 and 14: peers

std::string peer_copy_after(CUcontext Gpu::* worker, bool with_contexts_of_green) {
    make_current(gpu.primary);
    const CUdeviceptr from = device_words();
    const CUdeviceptr to = device_words();
    make_current(gpu.*worker);
    const CUstream stream = non_blocking_stream();
    make_current(gpu.green);
    const CUcontext named = with_contexts_of_green ? gpu.green : gpu.primary;
    must(store(stream, from, 1), "the slow launch");
    const CUevent end = mark(stream);
    const CUresult result = CU(cuMemcpyPeer)(to, named, from, named, 4);
    const std::string waited = waited_for(end);
    if (result != CUDA_SUCCESS)
        return name_of(result);
    return std::string(read_word(to) == 1 ? "ordered" : "independent") + ", the host " + waited;
}

bool has_two_gpus() {
    int count = 0;
    MUST(cuDeviceGetCount, &count);
    return count >= 2;
}

CUcontext second_primary() {
    CUcontext context = nullptr;
    MUST(cuDevicePrimaryCtxRetain, &context, 1);
    return context;
}

std::string peer_copy_between_gpus() {
    if (!has_two_gpus())
        return "needs two GPUs";
    const CUcontext far_context = second_primary();
    make_current(far_context);
    CUdeviceptr far_word = 0;
    MUST(cuMemAlloc_v2, &far_word, 4096);
    MUST(cuMemsetD8_v2, far_word, 0, 4096);
    MUST(cuCtxSynchronize);
    make_current(gpu.green);
    const CUdeviceptr near_word = device_words();
    const CUstream stream = non_blocking_stream();
    must(store(stream, near_word, 12), "the slow launch");
    const CUevent end = mark(stream);
    const CUresult result = CU(cuMemcpyPeer)(far_word, far_context, near_word, gpu.primary, 4);
    const std::string waited = waited_for(end);
    if (result != CUDA_SUCCESS)
        return name_of(result);
    uint32_t value = 0;
    make_current(far_context);
    MUST(cuMemcpyDtoH_v2, &value, far_word, 4);
    return std::string(value == 12 ? "ordered" : "independent") + ", the host " + waited;
}

std::string peer_access() {
    if (!has_two_gpus())
        return "needs two GPUs";
    const CUcontext far_context = second_primary();
    const auto enable = [&](CUcontext context) {
        make_current(context);
        return name_of(CU(cuCtxEnablePeerAccess)(far_context, 0));
    };
    std::string answer = "enabled in a green context " + enable(gpu.green);
    answer += ", then in the primary one " + enable(gpu.primary);
    answer += ", in another " + enable(gpu.other);
    answer += ", disabled there " + name_of(CU(cuCtxDisablePeerAccess)(far_context));
    return answer + ", enabled in the primary one again " + enable(gpu.primary);
}

// -- Claims 32 and 34: pointers and RDMA

std::string context_of_pointer(const char* what) {
    CUdeviceptr pointer = 0;
    void* host = nullptr;
    const std::string kind = what;
    if (kind == "device")
        pointer = device_words();
    else if (kind == "managed")
        MUST(cuMemAllocManaged, &pointer, 4096, CU_MEM_ATTACH_GLOBAL);
    else if (kind == "pool")
        MUST(cuMemAllocAsync, &pointer, 4096, non_blocking_stream());
    else if (kind == "host")
        MUST(cuMemHostAlloc, &host, 4096, 0);
    if (host != nullptr)
        pointer = address_of(host);
    CUcontext context = nullptr;
    const CUresult result =
        CU(cuPointerGetAttribute)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer);
    if (result != CUDA_SUCCESS)
        return name_of(result);
    return context == gpu.primary ? "primary"
           : context == nullptr   ? "null"
           : context == gpu.green ? "green"
                                  : "another";
}

std::string rdma() {
    const CUdeviceptr memory = device_words();
    const unsigned on = 1;
    const CUresult synchronous =
        CU(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory);
    const CUresult flushed =
        CU(cuFlushGPUDirectRDMAWrites)(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                       CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
    return "SYNC_MEMOPS " + name_of(synchronous) + ", flush " + name_of(flushed);
}

std::string profiler() {
    using Call = CUresult(CUDAAPI*)();
    const CUresult begun = find_function<Call>("cuProfilerStart")();
    const CUresult ended = find_function<Call>("cuProfilerStop")();
    return "start " + name_of(begun) + ", stop " + name_of(ended);
}

} // namespace

void add_memory(Checks& checks) {
    add_waiting(checks);
    checks.add_both("claim_04_memory_freed_beside_a_kernel", memory_after_free);
    checks.add_both("claim_28_unload_while_running", unload_while_running);
    checks.add_green("claim_05_address_of_module_variable",
                     [] { return addresses_of_variable(false); });
    checks.add_green("claim_05_address_of_library_variable",
                     [] { return addresses_of_variable(true); });
    checks.add_green("claim_05_cuLibraryGetGlobal", library_global);
    checks.add_green("claim_05_kernels_and_variable", values_of_variable);
    checks.add_green("claim_05_copies_and_variable", copies_of_variable);
    for (const Limit& limit : kLimits) {
        const std::string name = std::string("claim_06_limit_") + limit.name + "_set_in_";
        checks.add(name + "primary", Needs::kGreen,
                   [&limit] { return limit_set_in(gpu.primary, limit); });
        checks.add(name + "green", Needs::kGreen,
                   [&limit] { return limit_set_in(gpu.green, limit); });
    }
    checks.add("claim_06_heap_limit_of_primary", Needs::kGreen,
               [] { return malloc_in_green(&Gpu::primary); });
    checks.add("claim_06_heap_limit_of_green", Needs::kGreen,
               [] { return malloc_in_green(&Gpu::green); });
    checks.add("claim_09_pool_reuse_in_green", Needs::kGreen,
               [] { return pool_reuse(&Gpu::green, &Gpu::green); });
    checks.add("claim_09_pool_reuse_in_another_green", Needs::kGreen,
               [] { return pool_reuse(&Gpu::green, &Gpu::other); });
    checks.add("claim_09_pool_reuse_of_primary_in_green", Needs::kGreen,
               [] { return pool_reuse(&Gpu::primary, &Gpu::green); });
    checks.add_primary("claim_09_pool_reuse_in_primary",
                       [] { return pool_reuse(&Gpu::primary, &Gpu::primary); });
    const struct {
        const char* name;
        unsigned flags;
    } waits[] = {{"equal", CU_STREAM_WAIT_VALUE_EQ},
                 {"at_least", CU_STREAM_WAIT_VALUE_GEQ},
                 {"and_flush", CU_STREAM_WAIT_VALUE_GEQ | CU_STREAM_WAIT_VALUE_FLUSH}};
    for (const auto& wait : waits)
        checks.add_both(std::string("claim_12_wait_value_") + wait.name,
                        [flags = wait.flags] { return wait_value(flags, false, &Gpu::other); });
    checks.add_both("claim_12_wait_value_written_by_host",
                    [] { return wait_value(CU_STREAM_WAIT_VALUE_GEQ, true, &Gpu::other); });
    checks.add_both("claim_12_first_launch_of_a_kernel_behind_wait_value",
                    first_launch_behind_wait);
    for (const Kind kind : {Kind::kNull, Kind::kPerThread, Kind::kPtsz, Kind::kNonBlocking})
        checks.add_both(std::string("claim_12_write_value_in_") + name_of(kind),
                        [kind] { return write_value_in(kind); });
    checks.add_both("claim_12_batch_of_memory_operations", batch_operations);
    checks.add_green("claim_13_cuMemcpyPeer_after_own_stream",
                     [] { return peer_copy_after(&Gpu::green, false); });
    checks.add_green("claim_13_cuMemcpyPeer_after_stream_of_primary",
                     [] { return peer_copy_after(&Gpu::primary, false); });
    checks.add_green("claim_13_cuMemcpyPeer_with_green_contexts",
                     [] { return peer_copy_after(&Gpu::green, true); });
    checks.add_green("claim_13_cuMemcpyPeer_between_gpus", peer_copy_between_gpus);
    checks.add_green("claim_14_peer_access", peer_access);
    checks.begin_family("pointers");
    for (const char* kind : {"device", "host", "managed", "pool"})
        checks.add_both(std::string("claim_32_context_of_pointer_") + kind,
                        [kind] { return context_of_pointer(kind); });
    checks.add_both("claim_34_rdma", rdma);
    checks.add_both("claim_34_profiler", profiler);
    checks.begin_family("");
}

} // namespace conformance
