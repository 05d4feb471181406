// The order of actions in NULL, in blocking and in other streams. A slow action writes, the action
// under test reads or overwrites, and the value tells which was first.
#include "targets.hpp"

#include <array>
#include <atomic>
#include <thread>

namespace conformance {
namespace {

using Kind = StreamKind;

const char* ordered_if(bool value) {
    return value ? "ordered" : "independent";
}

// What an action reads and writes. The slow action sets *from to 1.
struct Words {
    CUdeviceptr from = device_words();
    CUdeviceptr to = device_words();
    volatile uint32_t* host_from = host_words();
    volatile uint32_t* host_to = host_words();
    CUdeviceptr managed = 0;
    CUgraphExec graph = nullptr; // loads *to from *from
    CUevent complete = nullptr;  // an event that has completed
};

Words make_words() {
    Words words;
    words.graph = load_graph(words.to, words.from);
    MUST(cuMemAllocManaged, &words.managed, 1 << 16, CU_MEM_ATTACH_GLOBAL);
    words.complete = mark(non_blocking_stream());
    // The first allocation of a pool, and the first upload and launch of a graph, may wait.
    const CUstream stream = non_blocking_stream();
    CUdeviceptr memory = 0;
    MUST(cuMemAllocAsync, &memory, 4096, stream);
    MUST(cuMemFreeAsync, memory, stream);
    MUST(cuGraphUpload, words.graph, stream);
    MUST(cuGraphLaunch, words.graph, stream);
    settle();
    return words;
}

// Whether an action came after the slow one can be seen in what it read, or in what is left of what
// it wrote.
enum class Seen { kRead, kWrote, kHostRead, kNotAtAll };

struct Action {
    const char* name;
    Seen seen;
    CUresult (*submit)(const Target& at, const Words& words);
};

void CUDA_CB read_on_host(void* data) {
    const auto* words = static_cast<const Words*>(data);
    *words->host_to = *words->host_from;
}

void CUDA_CB read_in_callback(CUstream, CUresult, void* data) {
    read_on_host(data);
}

void* as_data(const Words& words) {
    return const_cast<Words*>(&words);
}

CUresult launch_by_config(const Target& at, const Words& words) {
    CUdeviceptr to = words.to;
    CUdeviceptr from = words.from;
    void* arguments[] = {&to, &from};
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = at.stream;
    return CU_AT(at, cuLaunchKernelEx)(&config, kernels.load, arguments, nullptr);
}

CUresult launch_cooperative(const Target& at, const Words& words) {
    CUdeviceptr to = words.to;
    CUdeviceptr from = words.from;
    void* arguments[] = {&to, &from};
    return CU_AT(at, cuLaunchCooperativeKernel)(kernels.load, 1, 1, 1, 1, 1, 1, 0, at.stream,
                                                arguments);
}

CUresult copy_2d(const Target& at, const Words& words) {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = words.from;
    copy.dstDevice = words.to;
    copy.srcPitch = copy.dstPitch = 512;
    copy.WidthInBytes = 4;
    copy.Height = 1;
    return CU_AT(at, cuMemcpy2DAsync_v2)(&copy, at.stream);
}

CUresult allocate(const Target& at, const Words&) {
    CUdeviceptr memory = 0;
    return CU_AT(at, cuMemAllocAsync)(&memory, 4096, at.stream);
}

CUresult free_memory(const Target& at, const Words&) {
    CUdeviceptr memory = 0;
    const CUstream elsewhere = non_blocking_stream();
    MUST(cuMemAllocAsync, &memory, 4096, elsewhere);
    MUST(cuStreamSynchronize, elsewhere);
    return CU_AT(at, cuMemFreeAsync)(memory, at.stream);
}

CUresult write_in_batch(const Target& at, const Words& words) {
    CUstreamBatchMemOpParams operation{};
    operation.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operation.writeValue.address = words.from;
    operation.writeValue.value = 9;
    return CU_AT(at, cuStreamBatchMemOp_v2)(at.stream, 1, &operation, 0);
}

CUresult prefetch(const Target& at, const Words& words) {
    CUmemLocation location{};
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = gpu.device;
    return CU_AT(at, cuMemPrefetchAsync_v2)(words.managed, 1 << 16, location, 0, at.stream);
}

const Action kLaunch = {"launch", Seen::kRead, [](const Target& at, const Words& words) {
                            return load(at, words.to, words.from);
                        }};

const Action kActions[] = {
    kLaunch,
    {"launch_ex", Seen::kRead, launch_by_config},
    {"cooperative_launch", Seen::kRead, launch_cooperative},
    {"graph_launch", Seen::kRead,
     [](const Target& at, const Words& words) {
         return CU_AT(at, cuGraphLaunch)(words.graph, at.stream);
     }},
    {"copy", Seen::kRead,
     [](const Target& at, const Words& words) {
         return CU_AT(at, cuMemcpyDtoDAsync_v2)(words.to, words.from, 4, at.stream);
     }},
    {"copy_2d", Seen::kRead, copy_2d},
    {"copy_to_host", Seen::kHostRead,
     [](const Target& at, const Words& words) {
         return CU_AT(at, cuMemcpyDtoHAsync_v2)(const_cast<uint32_t*>(words.host_to), words.from, 4,
                                                at.stream);
     }},
    {"memset", Seen::kWrote,
     [](const Target& at, const Words& words) {
         return CU_AT(at, cuMemsetD32Async)(words.from, 9, 1, at.stream);
     }},
    {"host_function", Seen::kHostRead,
     [](const Target& at, const Words& words) {
         return CU_AT(at, cuLaunchHostFunc)(at.stream, read_on_host, as_data(words));
     }},
    {"callback", Seen::kHostRead,
     [](const Target& at, const Words& words) {
         return CU_AT(at, cuStreamAddCallback)(at.stream, read_in_callback, as_data(words), 0);
     }},
    {"write_value", Seen::kWrote,
     [](const Target& at, const Words& words) {
         return CU_AT(at, cuStreamWriteValue32_v2)(at.stream, words.from, 9, 0);
     }},
    {"memory_operations", Seen::kWrote, write_in_batch},
    {"wait_value", Seen::kNotAtAll, // the value is 0 already
     [](const Target& at, const Words& words) {
         return CU_AT(at, cuStreamWaitValue32_v2)(at.stream, words.to, 0, CU_STREAM_WAIT_VALUE_EQ);
     }},
    {"event_record", Seen::kNotAtAll,
     [](const Target& at, const Words&) {
         return CU_AT(at, cuEventRecord)(make_event(), at.stream);
     }},
    {"wait_event", Seen::kNotAtAll,
     [](const Target& at, const Words& words) {
         return CU_AT(at, cuStreamWaitEvent)(at.stream, words.complete, 0);
     }},
    {"graph_upload", Seen::kNotAtAll,
     [](const Target& at, const Words& words) {
         return CU_AT(at, cuGraphUpload)(words.graph, at.stream);
     }},
    {"alloc_async", Seen::kNotAtAll, allocate},
    {"free_async", Seen::kNotAtAll, free_memory},
    {"prefetch", Seen::kNotAtAll, prefetch},
    {"attach", Seen::kNotAtAll,
     [](const Target& at, const Words& words) {
         return CU_AT(at, cuStreamAttachMemAsync)(at.stream, words.managed, 0,
                                                  CU_MEM_ATTACH_GLOBAL);
     }},
};

std::string seen_order(const Action& action, const Words& words) {
    settle();
    switch (action.seen) {
    case Seen::kRead:
        return ordered_if(read_word(words.to) == 1);
    case Seen::kWrote:
        return ordered_if(read_word(words.from) == 9);
    case Seen::kHostRead:
        return ordered_if(*words.host_to == 1);
    case Seen::kNotAtAll:
        break;
    }
    return "";
}

// Where the slow action writes: to the host's word for a function of the host.
CUdeviceptr slow_word(const Action& action, const Words& words) {
    const std::string name = action.name;
    return name == "host_function" || name == "callback" ? address_of(words.host_from) : words.from;
}

// A slow launch in one stream, then the action in the other.
std::string order_of_two(Kind first, Kind second, const Action& action) {
    const Words words = make_words();
    const Target a = make_target(first);
    const Target b = make_target(second);
    must(store(a, slow_word(action, words), 1), "the slow launch");
    const CUresult result = action.submit(b, words);
    if (result != CUDA_SUCCESS)
        return name_of(result);
    return seen_order(action, words);
}

// The action in a blocking stream while NULL works: does the stream wait?
std::string order_after_null(const Action& action) {
    if (action.seen != Seen::kNotAtAll)
        return order_of_two(Kind::kNull, Kind::kBlocking, action);
    const Words words = make_words();
    const CUstream stream = blocking_stream();
    must(spin(nullptr), "gcx_spin");
    const CUevent slow = mark(nullptr);
    const CUresult result = action.submit({stream, false}, words);
    if (result != CUDA_SUCCESS)
        return name_of(result);
    return order_of([=] { return CU(cuStreamQuery)(stream); }, slow);
}

// A slow launch in a blocking stream, the action in NULL, a launch in another blocking stream. The
// last waits for the first if the action waits and is waited for.
std::string separates(const Action& action) {
    const Words words = make_words();
    const CUstream first = blocking_stream();
    const CUstream last = blocking_stream();
    const CUdeviceptr written = device_words();
    const CUdeviceptr read = device_words();
    must(store(first, written, 1), "the slow launch");
    const CUresult result = action.submit({nullptr, false}, words);
    if (result != CUDA_SUCCESS)
        return name_of(result);
    must(load(last, read, written), "the last launch");
    return read_word(read) == 1 ? "separates" : "does not separate";
}

void add_pair(Checks& checks, Kind first, Kind second, bool green) {
    const std::string name = std::string("order_") + name_of(first) + "_then_" + name_of(second);
    const Body body = [=] { return order_of_two(first, second, kLaunch); };
    if (green)
        checks.add_both(name, body);
    else
        checks.add_primary(name, body);
}

void add_pairs(Checks& checks) {
    for (const Kind legacy : {Kind::kNull, Kind::kLegacy, Kind::kPtszLegacy})
        for (const Kind other : {Kind::kBlocking, Kind::kPriority, Kind::kNonBlocking,
                                 Kind::kPerThread, Kind::kPtsz}) {
            const bool green = legacy == Kind::kNull && other != Kind::kPtsz;
            add_pair(checks, other, legacy, green);
            add_pair(checks, legacy, other, green);
        }
    add_pair(checks, Kind::kNull, Kind::kLegacy, true);
    add_pair(checks, Kind::kBlocking, Kind::kBlocking, true);
    add_pair(checks, Kind::kBlocking, Kind::kPerThread, false);
    add_pair(checks, Kind::kPerThread, Kind::kBlocking, false);
    add_pair(checks, Kind::kPerThread, Kind::kPtsz, false);
}

void add_actions(Checks& checks) {
    for (const Action& action : kActions) {
        const std::string name = action.name;
        const bool is_launch = name == "launch"; // those are among the pairs
        if (action.seen != Seen::kNotAtAll && !is_launch)
            checks.add_both("order_blocking_then_null_" + name, [&action] {
                return order_of_two(Kind::kBlocking, Kind::kNull, action);
            });
        const std::string after_null = "order_null_then_blocking_" + name;
        if (!is_launch)
            checks.add_primary(after_null, [&action] { return order_after_null(action); });
        if (name == "copy" || name == "event_record")
            checks.add_green(after_null + "_green", [&action] { return order_after_null(action); });
        const std::string between = "order_blocking_then_null_" + name + "_then_blocking";
        checks.add_primary(between, [&action] { return separates(action); });
        if (is_launch || name == "event_record")
            checks.add_green(between + "_green", [&action] { return separates(action); });
    }
}

// Slow actions other than a launch: another stream waits for them as for a launch.
struct SlowAction {
    const char* name;
    void (*submit)(CUstream stream, const Words& words);
};

void CUDA_CB write_on_host(void* data) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(kSlow));
    *static_cast<const Words*>(data)->host_from = 1;
}

const SlowAction kSlowActions[] = {
    {"graph",
     [](CUstream stream, const Words& words) {
         const CUgraphExec graph = store_graph(address_of(words.host_from), 1);
         MUST(cuGraphLaunch, graph, stream);
     }},
    {"host_function",
     [](CUstream stream, const Words& words) {
         MUST(cuLaunchHostFunc, stream, write_on_host, as_data(words));
     }},
    {"wait_for_event",
     [](CUstream stream, const Words& words) {
         const CUstream elsewhere = non_blocking_stream();
         must(store(elsewhere, address_of(words.host_from), 1), "the slow launch");
         MUST(cuStreamWaitEvent, stream, mark(elsewhere), 0);
     }},
    {"copy_after_wait_for_event",
     [](CUstream stream, const Words& words) {
         const CUstream elsewhere = non_blocking_stream();
         const CUdeviceptr value = device_words();
         must(store(elsewhere, value, 1), "the slow launch");
         MUST(cuStreamWaitEvent, stream, mark(elsewhere), 0);
         MUST(cuMemcpyDtoHAsync_v2, const_cast<uint32_t*>(words.host_from), value, 4, stream);
     }},
};

std::string order_after_slow(const SlowAction& slow, Kind first, Kind second) {
    const Words words = make_words();
    const CUstream a = make_stream(first);
    const CUstream b = make_stream(second);
    slow.submit(a, words);
    must(load(b, words.to, address_of(words.host_from)), "the second launch");
    return ordered_if(read_word(words.to) == 1);
}

void add_slow_actions(Checks& checks) {
    for (const SlowAction& slow : kSlowActions) {
        const std::string name = std::string("order_") + slow.name;
        checks.add_both(name + "_in_blocking_then_null",
                        [&slow] { return order_after_slow(slow, Kind::kBlocking, Kind::kNull); });
        checks.add_both(name + "_in_null_then_blocking",
                        [&slow] { return order_after_slow(slow, Kind::kNull, Kind::kBlocking); });
    }
}

// -- Threads

std::string order_in_threads(Kind first, Kind second) {
    const Words words = make_words();
    CUcontext context = nullptr;
    MUST(cuCtxGetCurrent, &context);
    in_thread(context, [&] { must(store(make_target(first), words.from, 1), "the first launch"); });
    in_thread(context,
              [&] { must(load(make_target(second), words.to, words.from), "the second launch"); });
    return ordered_if(read_word(words.to) == 1);
}

// The first thread lives until the second has launched.
std::string order_beside_thread(Kind first, Kind second) {
    const Words words = make_words();
    CUcontext context = nullptr;
    MUST(cuCtxGetCurrent, &context);
    in_thread(context, [&] {
        must(store(make_target(first), words.from, 1), "the first launch");
        in_thread(context, [&] {
            must(load(make_target(second), words.to, words.from), "the second launch");
        });
    });
    return ordered_if(read_word(words.to) == 1);
}

void add_threads(Checks& checks) {
    const std::array<Kind, 2> pairs[] = {
        {Kind::kNull, Kind::kNull},      {Kind::kBlocking, Kind::kNull},
        {Kind::kNull, Kind::kBlocking},  {Kind::kPerThread, Kind::kNull},
        {Kind::kNull, Kind::kPerThread}, {Kind::kPerThread, Kind::kPerThread},
    };
    for (const auto& pair : pairs) {
        const std::string names =
            std::string(name_of(pair[0])) + "_then_" + name_of(pair[1]) + "_of_another_thread";
        checks.add_primary("order_" + names,
                           [pair] { return order_beside_thread(pair[0], pair[1]); });
        if (pair[0] != Kind::kNull)
            checks.add_both("order_ended_thread_" + names,
                            [pair] { return order_in_threads(pair[0], pair[1]); });
    }
}

// -- Contexts

std::string order_across(CUcontext Gpu::* first, Kind a, CUcontext Gpu::* second, Kind b) {
    make_current(gpu.primary);
    const Words words = make_words();
    make_current(gpu.*first);
    const CUstream writes = make_stream(a);
    make_current(gpu.*second);
    const CUstream reads = make_stream(b);
    make_current(gpu.*first);
    must(store(writes, words.from, 1), "the first launch");
    make_current(gpu.*second);
    must(load(reads, words.to, words.from), "the second launch");
    return ordered_if(read_word(words.to) == 1);
}

void add_contexts_of_order(Checks& checks) {
    struct Side {
        CUcontext Gpu::* context;
        const char* name;
    };
    const Side primary = {&Gpu::primary, "primary"};
    const Side green = {&Gpu::green, "green"};
    const Side other = {&Gpu::other, "other_green"};
    const std::array<Side, 2> sides[] = {{primary, green}, {green, primary}, {green, other}};
    const std::array<Kind, 2> kinds[] = {
        {Kind::kNull, Kind::kNull}, {Kind::kBlocking, Kind::kNull}, {Kind::kNull, Kind::kBlocking}};
    for (const auto& side : sides)
        for (const auto& kind : kinds)
            checks.add_green(std::string("claim_03_") + name_of(kind[0]) + "_of_" + side[0].name +
                                 "_then_" + name_of(kind[1]) + "_of_" + side[1].name,
                             [side, kind] {
                                 return order_across(side[0].context, kind[0], side[1].context,
                                                     kind[1]);
                             });
}

// -- Old functions without a stream: they launch in NULL.

std::string order_of_old_launch(bool grid, Kind first) {
    const Words words = make_words();
    const Target slow = make_target(first);
    CUdeviceptr arguments[] = {words.to, words.from};
    using SetShape = CUresult(CUDAAPI*)(CUfunction, int, int, int);
    using SetSize = CUresult(CUDAAPI*)(CUfunction, unsigned);
    using SetBytes = CUresult(CUDAAPI*)(CUfunction, int, void*, unsigned);
    using Launch = CUresult(CUDAAPI*)(CUfunction);
    using LaunchGrid = CUresult(CUDAAPI*)(CUfunction, int, int);
    must(find_function<SetShape>("cuFuncSetBlockShape")(kernels.load, 1, 1, 1), "the shape");
    must(find_function<SetSize>("cuParamSetSize")(kernels.load, sizeof arguments), "the size");
    must(find_function<SetBytes>("cuParamSetv")(kernels.load, 0, arguments, sizeof arguments),
         "the parameters");
    must(store(slow, words.from, 1), "the slow launch");
    must(grid ? find_function<LaunchGrid>("cuLaunchGrid")(kernels.load, 1, 1)
              : find_function<Launch>("cuLaunch")(kernels.load),
         "the launch");
    return ordered_if(read_word(words.to) == 1);
}

} // namespace

void add_order(Checks& checks) {
    checks.add_both("claim_01_blocking_then_null",
                    [] { return order_of_two(Kind::kBlocking, Kind::kNull, kLaunch); });
    checks.add_both("claim_01_null_then_blocking",
                    [] { return order_of_two(Kind::kNull, Kind::kBlocking, kLaunch); });
    add_pairs(checks);
    add_actions(checks);
    add_slow_actions(checks);
    add_threads(checks);
    add_contexts_of_order(checks);
    for (const bool grid : {false, true})
        for (const Kind kind : {Kind::kBlocking, Kind::kNonBlocking})
            checks.add_primary(std::string("order_") + name_of(kind) + "_then_" +
                                   (grid ? "cuLaunchGrid" : "cuLaunch"),
                               [grid, kind] { return order_of_old_launch(grid, kind); });
}

} // namespace conformance
