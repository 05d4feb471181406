// Measures the latency of a small kernel in a partition: alone, and while another thread does
// something else on the other partition or, for comparison, in a plain stream. Each cell has a
// process of its own, since much of it stays: memory, loaded kernels, the number of connections.
//     gcx-gpu-isolation [--quick] [--only WORD] [--line LABEL]
// One line a row, fields by tabs, as tests/gpu/python/isolation.py writes them;
// tests/gpu/isolation.sh makes one table of both. --line puts the label behind the rows' names.
#include "critical.hpp"
#include "need.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr unsigned kDefault = 0; // connections: the variable isn't set, which is 8
constexpr unsigned kMax = 32;
constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr uint64_t kLongNs = 10 * raw::kMillisecond;

// Where the other thread works: partition A, or, without partitions, the primary context.
struct Neighbour {
    CUcontext context = nullptr; // current in its thread
    unsigned sms = 0;
    std::vector<CUstream> streams;
    CUdeviceptr from = 0; // kBytes each
    CUdeviceptr to = 0;
    char* pageable = nullptr; // kHostBytes each
    char* pinned = nullptr;
    const char* program = nullptr; // this one, to be started as another process

    static constexpr std::size_t kBytes = 256 * kMebibyte; // more than the L2 cache holds
    static constexpr std::size_t kHostBytes = 32 * kMebibyte;
    CUstream stream() const { return streams.front(); }
};

// Done again and again. False: there is nothing more to do.
using Body = std::function<bool()>;
// Makes what must be there before the first time. No body: this machine lacks what the row needs.
using Prepare = std::function<Body(Neighbour&)>;

// What another thread does next to a partition's small kernel.
struct Row {
    const char* name;
    Prepare prepare;
    std::string known = "-";     // by docs/measurements/log.md: holds, costs, breaks
    unsigned connections = kMax; // CUDA_DEVICE_MAX_CONNECTIONS
    bool reads = false; // the small kernel reads 4 MiB that the L2 cache could hold, else it spins
};

// Waits for the neighbour's first stream.
void finish(const Neighbour& n) {
    NEED(raw::cuStreamSynchronize(n.stream()));
}

// A kernel of 0.3 ms: two blocks of 1024 threads are all that an SM has room for.
void fill(const Neighbour& n, CUstream stream) {
    NEED(raw::launch_spin(stream, 300'000, 2 * n.sms, 1024));
}

// Does the same again and again, and needs nothing before.
Prepare repeated(const std::function<void(Neighbour&)>& work) {
    return [work](Neighbour& n) {
        return [work, &n] {
            work(n);
            return true;
        };
    };
}

// Memory.

Body allocate_alone(Neighbour&) {
    return [left = 2000]() mutable { // 4 GiB, until the process ends
        CUdeviceptr memory = 0;
        NEED(raw::cuMemAlloc(&memory, 2 * kMebibyte));
        return --left > 0;
    };
}

Body free_alone(Neighbour&) {
    std::vector<CUdeviceptr> all(2000);
    for (CUdeviceptr& memory : all)
        NEED(raw::cuMemAlloc(&memory, 2 * kMebibyte));
    return [all]() mutable {
        NEED(raw::cuMemFree(all.back()));
        all.pop_back();
        return !all.empty();
    };
}

Prepare stream_ordered(uint64_t threshold) {
    return [threshold](Neighbour& n) {
        CUmemoryPool pool = nullptr;
        uint64_t kept = threshold;
        NEED(raw::cuDeviceGetDefaultMemPool(&pool, 0));
        NEED(raw::cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept));
        return [&n] {
            CUdeviceptr memory = 0;
            NEED(raw::cuMemAllocAsync(&memory, 64 * kMebibyte, n.stream()));
            NEED(raw::cuMemFreeAsync(memory, n.stream()));
            finish(n);
            return true;
        };
    };
}

// To another device, if there is one that may be reached.
Body copy_to_peer(Neighbour& n) {
    int devices = 0;
    int can = 0;
    NEED(raw::cuDeviceGetCount(&devices));
    if (devices > 1)
        NEED(raw::cuDeviceCanAccessPeer(&can, 0, 1));
    if (can == 0)
        return nullptr;
    CUcontext peer = nullptr;
    CUcontext old = nullptr;
    CUdeviceptr there = 0;
    NEED(raw::cuDevicePrimaryCtxRetain(&peer, 1));
    NEED(raw::cuCtxPushCurrent(peer));
    NEED(raw::cuMemAlloc(&there, Neighbour::kBytes));
    NEED(raw::cuCtxPopCurrent(&old));
    return [&n, peer, there] {
        NEED(raw::cuMemcpyPeerAsync(there, peer, n.from, n.context, Neighbour::kBytes, n.stream()));
        finish(n);
        return true;
    };
}

void copy_within_device(Neighbour& n) {
    NEED(raw::cuMemcpyDtoDAsync(n.to, n.from, Neighbour::kBytes, n.stream()));
    finish(n);
}

Prepare reading(std::size_t bytes) {
    return repeated([bytes](Neighbour& n) {
        for (int i = 0; i < 4; i++)
            NEED(raw::launch_read(n.stream(), n.from, static_cast<uint32_t>(bytes / 4), 2 * n.sms));
        finish(n);
    });
}

// Kernels of modules.

// A library of so many kernels that differ, by the text of each.
struct ManyKernels {
    ManyKernels(unsigned how_many, const std::function<std::string(unsigned)>& text)
        : count(how_many) {
        for (unsigned i = 0; i < count; i++)
            ptx += ".visible .entry kernel" + std::to_string(i) + "(.param .u64 out)\n{\n" +
                   text(i) + "ret;\n}\n";
    }

    CUlibrary load() const {
        CUlibrary library = nullptr;
        NEED(raw::cuLibraryLoadData(&library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr,
                                    0));
        return library;
    }

    static void launch(const Neighbour& n, CUlibrary library, unsigned number) {
        CUkernel kernel = nullptr;
        CUfunction function = nullptr;
        CUdeviceptr out = n.to;
        void* arguments[] = {&out};
        const std::string name = "kernel" + std::to_string(number);
        NEED(raw::cuLibraryGetKernel(&kernel, library, name.c_str()));
        NEED(raw::cuKernelGetFunction(&function, kernel));
        NEED(raw::cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, n.stream(), arguments, nullptr));
        finish(n);
    }

    // Launches each kernel once.
    Body launch_each(Neighbour& n) const {
        return [&n, library = load(), most = count, number = 0U]() mutable {
            launch(n, library, number++);
            return number < most;
        };
    }

    unsigned count;
    std::string ptx = ".version 7.8\n.target sm_90\n.address_size 64\n";
};

std::string store_number(unsigned i) {
    return ".reg .b64 %rd<2>;\n.reg .b32 %r<2>;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, " +
           std::to_string(i) + ";\nst.global.u32 [%rd1], %r1;\n";
}

// Each has more local memory than the one before: the driver makes room for all threads that the
// device holds.
std::string use_local_memory(unsigned i) {
    return ".local .align 4 .b8 room[" + std::to_string((i + 1) * 512) +
           "];\n.reg .b64 %rd<5>;\n.reg .b32 %r<4>;\nld.param.u64 %rd1, [out];\n"
           "mov.u32 %r1, %clock;\nand.b32 %r1, %r1, 127;\nmul.wide.u32 %rd2, %r1, 4;\n"
           "mov.u64 %rd3, room;\nadd.s64 %rd4, %rd3, %rd2;\nst.local.u32 [%rd4], %r1;\n"
           "ld.local.u32 %r2, [room+64];\nst.global.u32 [%rd1], %r2;\n";
}

// Graphs.

CUgraph captured(const Neighbour& n, const std::function<void()>& body) {
    CUgraph graph = nullptr;
    NEED(raw::cuStreamBeginCapture(n.stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    body();
    NEED(raw::cuStreamEndCapture(n.stream(), &graph));
    return graph;
}

CUgraph chain(const Neighbour& n) {
    return captured(n, [&] {
        for (unsigned i = 0; i < 200; i++)
            NEED(raw::launch_spin(n.stream(), 1000));
    });
}

CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    NEED(raw::cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

Body make_executables(Neighbour& n) {
    return [graph = chain(n)] {
        NEED(raw::cuGraphExecDestroy(instantiate(graph)));
        return true;
    };
}

Body upload(Neighbour& n) {
    return [&n, graph = chain(n)] {
        CUgraphExec const exec = instantiate(graph);
        NEED(raw::cuGraphUpload(exec, n.stream()));
        finish(n);
        NEED(raw::cuGraphExecDestroy(exec));
        return true;
    };
}

Body launch_chain(Neighbour& n) {
    return [&n, exec = instantiate(captured(n, [&] {
                    for (int i = 0; i < 60; i++)
                        fill(n, n.stream());
                }))] {
        NEED(raw::cuGraphLaunch(exec, n.stream()));
        finish(n);
        return true;
    };
}

void wait_for(CUstream stream, CUstream other) {
    CUevent event = nullptr;
    NEED(raw::cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    NEED(raw::cuEventRecord(event, other));
    NEED(raw::cuStreamWaitEvent(stream, event, 0));
    NEED(raw::cuEventDestroy(event));
}

// 15 branches of 4 kernels. What of it breaks isolation isn't known: kernels that fill A or small
// ones that last longer, an executable's first launch or a later one, many roots or one.
struct Branches {
    bool small = false;
    bool again = false;
    bool one_root = false;
};

Prepare branches(Branches how) {
    return [how](Neighbour& n) {
        constexpr unsigned kBranches = 15;
        CUgraph const graph = captured(n, [&] {
            if (how.one_root)
                NEED(raw::launch_spin(n.stream(), 1000));
            for (unsigned i = 1; i < kBranches; i++)
                wait_for(n.streams[i], n.stream());
            for (unsigned i = 0; i < kBranches; i++) {
                for (int kernel = 0; kernel < 4; kernel++) {
                    if (how.small)
                        NEED(raw::launch_spin(n.streams[i], kLongNs));
                    else
                        fill(n, n.streams[i]);
                }
            }
            for (unsigned i = 1; i < kBranches; i++)
                wait_for(n.stream(), n.streams[i]);
        });
        CUgraphExec const kept = how.again ? instantiate(graph) : nullptr;
        if (how.again) {
            NEED(raw::cuGraphLaunch(kept, n.stream()));
            finish(n);
        }
        return [&n, graph, kept] {
            CUgraphExec const exec = kept != nullptr ? kept : instantiate(graph);
            NEED(raw::cuGraphLaunch(exec, n.stream()));
            finish(n);
            if (kept == nullptr)
                NEED(raw::cuGraphExecDestroy(exec));
            return true;
        };
    };
}

// Events and streams.

void query_event(Neighbour& n) {
    CUevent event = nullptr;
    NEED(raw::cuEventCreate(&event, CU_EVENT_DEFAULT));
    NEED(raw::launch_spin(n.stream(), 10'000));
    NEED(raw::cuEventRecord(event, n.stream()));
    while (raw::cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
    }
    NEED(raw::cuEventDestroy(event));
}

void wait_for_event(Neighbour& n) {
    CUevent event = nullptr;
    NEED(raw::cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC));
    NEED(raw::launch_spin(n.stream(), 100'000));
    NEED(raw::cuEventRecord(event, n.stream()));
    NEED(raw::cuEventSynchronize(event));
    NEED(raw::cuEventDestroy(event));
}

Prepare waiting_streams(unsigned count) {
    return repeated([count](Neighbour& n) {
        for (unsigned i = 0; i < count; i++) {
            for (int kernel = 0; kernel < 8; kernel++)
                fill(n, n.streams[i]);
        }
        for (CUstream const stream : n.streams)
            NEED(raw::cuStreamSynchronize(stream));
    });
}

// Contexts.

Body cached_contexts(Neighbour&) {
    gcx_resource whole{};
    gcx_resource atom{};
    NEED(gcx_device_get_resource(0, GCX_RESOURCE_SM, &whole));
    NEED(gcx_resource_get_atom(&whole, 0, &atom));
    NEED(gcx_cache_prepare(&atom, 1, nullptr));
    return [atom] {
        gcx_context context = nullptr;
        NEED(gcx_context_create(&atom, 1, nullptr, &context));
        NEED(gcx_context_destroy(context));
        return true;
    };
}

Body resized_leases(Neighbour&) {
    gcx_lease lease = nullptr;
    gcx_stream stream = nullptr;
    NEED(gcx_lease_acquire(0, 16, nullptr, &lease));
    NEED(gcx_lease_stream_create(lease, nullptr, &stream));
    for (const uint32_t sms : {32U, 16U}) {
        const gcx_lease_size size{.lease = lease, .sm_count = sms};
        NEED(gcx_lease_prepare(&size, 1));
    }
    return [lease, sms = 16U]() mutable {
        sms = 48 - sms;
        const gcx_lease_size size{.lease = lease, .sm_count = sms};
        NEED(gcx_lease_resize(&size, 1, 0));
        return true;
    };
}

// By libcuda's own calls; each pair loses 4 MiB.
Body green_contexts(Neighbour&) {
    CUdevResource sms{};
    CUdevResource group{};
    CUdevResource rest{};
    CUdevResourceDesc description = nullptr;
    unsigned one = 1;
    NEED(raw::cuDeviceGetDevResource(0, &sms, CU_DEV_RESOURCE_TYPE_SM));
    NEED(raw::cuDevSmResourceSplitByCount(&group, &one, &sms, &rest, 0, 8));
    NEED(raw::cuDevResourceGenerateDesc(&description, &group, 1));
    return [description, left = 500]() mutable {
        CUgreenCtx green = nullptr;
        NEED(raw::cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
        NEED(raw::cuGreenCtxDestroy(green));
        return --left > 0;
    };
}

Body plain_contexts(Neighbour&) {
    // The variant that every driver has.
    using Create = CUresult (*)(CUcontext*, unsigned, CUdevice);
    using Destroy = CUresult (*)(CUcontext);
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    const auto create = reinterpret_cast<Create>(dlsym(library, "cuCtxCreate_v2"));
    const auto destroy = reinterpret_cast<Destroy>(dlsym(library, "cuCtxDestroy_v2"));
    if (create == nullptr || destroy == nullptr)
        return nullptr;
    return [=] {
        CUcontext context = nullptr;
        CUcontext old = nullptr;
        NEED(create(&context, 0, 0));
        NEED(raw::cuCtxPopCurrent(&old));
        NEED(destroy(context));
        return true;
    };
}

Body other_processes(Neighbour& n) {
    return [&n] {
        const pid_t child = fork();
        if (child == 0) {
            execl(n.program, n.program, "--touch", static_cast<char*>(nullptr));
            _exit(127);
        }
        int status = -1;
        return waitpid(child, &status, 0) == child && status == 0;
    };
}

const std::vector<Row>& rows() {
    static const std::vector<Row> all = {
        {"nothing", repeated([](Neighbour&) { std::this_thread::yield(); }), "holds"},
        {"kernels that fill its SMs", repeated([](Neighbour& n) {
             fill(n, n.stream());
             finish(n);
         }),
         "holds"},
        {"cuMemAlloc and cuMemFree, 64 MiB", repeated([](Neighbour&) {
             CUdeviceptr memory = 0;
             NEED(raw::cuMemAlloc(&memory, 64 * kMebibyte));
             NEED(raw::cuMemFree(memory));
         })},
        {"cuMemAlloc alone, 2 MiB", allocate_alone},
        {"cuMemFree alone, 2 MiB", free_alone},
        {"cuMemAllocAsync, pool gives back", stream_ordered(0)},
        {"cuMemAllocAsync, pool keeps", stream_ordered(UINT64_MAX)},
        {"cuMemHostAlloc and cuMemFreeHost, 16 MiB", repeated([](Neighbour&) {
             void* memory = nullptr;
             NEED(raw::cuMemHostAlloc(&memory, 16 * kMebibyte, 0));
             NEED(raw::cuMemFreeHost(memory));
         })},
        {"cuMemHostRegister, 32 MiB", repeated([](Neighbour& n) {
             NEED(raw::cuMemHostRegister(n.pageable, Neighbour::kHostBytes, 0));
             NEED(raw::cuMemHostUnregister(n.pageable));
         })},
        {"library loaded, first launch, unloaded",
         [](Neighbour& n) {
             return [&n, kernels = ManyKernels(4, store_number)] {
                 CUlibrary const library = kernels.load();
                 ManyKernels::launch(n, library, 0);
                 NEED(raw::cuLibraryUnload(library));
                 return true;
             };
         }},
        {"first launches of loaded kernels",
         [](Neighbour& n) { return ManyKernels(200, store_number).launch_each(n); }},
        {"kernels with ever more local memory",
         [](Neighbour& n) { return ManyKernels(24, use_local_memory).launch_each(n); }},
        {"copies from pageable memory", repeated([](Neighbour& n) {
             NEED(raw::cuMemcpyHtoD(n.to, n.pageable, Neighbour::kHostBytes));
         })},
        {"copies from pinned memory", repeated([](Neighbour& n) {
             NEED(raw::cuMemcpyHtoDAsync(n.to, n.pinned, Neighbour::kHostBytes, n.stream()));
             finish(n);
         })},
        {"copies to pinned memory", repeated([](Neighbour& n) {
             NEED(raw::cuMemcpyDtoHAsync(n.pinned, n.to, Neighbour::kHostBytes, n.stream()));
             finish(n);
         })},
        {"copies within the device", repeated(copy_within_device)},
        {"copies to a peer", copy_to_peer},
        {"fills in its stream", repeated([](Neighbour& n) {
             NEED(raw::cuMemsetD8Async(n.to, 1, Neighbour::kBytes, n.stream()));
             finish(n);
         })},
        {"fills in the default stream", repeated([](Neighbour& n) {
             NEED(raw::cuMemsetD8Async(n.to, 1, Neighbour::kBytes, nullptr));
             NEED(raw::cuStreamSynchronize(nullptr));
         })},
        {"kernels in the default stream", repeated([](Neighbour& n) {
             fill(n, nullptr);
             NEED(raw::cuStreamSynchronize(nullptr));
         })},
        {"cuCtxSynchronize", repeated([](Neighbour& n) {
             fill(n, n.stream());
             NEED(raw::cuCtxSynchronize());
         })},
        {"graphs captured, 200 nodes",
         repeated([](Neighbour& n) { NEED(raw::cuGraphDestroy(chain(n))); })},
        {"graphs instantiated, 200 nodes", make_executables},
        {"graphs uploaded, 200 nodes", upload},
        {"linear graph of 60 kernels", launch_chain, "holds", kDefault},
        {"15 branches that fill, first launch", branches({}), "holds", kDefault},
        {"15 branches that fill, again", branches({.again = true}), "-", kDefault},
        {"15 branches that fill, again, one root", branches({.again = true, .one_root = true}), "-",
         kDefault},
        {"15 small branches, first launch", branches({.small = true}), "-", kDefault},
        {"15 small branches, again", branches({.small = true, .again = true}), "-", kDefault},
        {"15 small branches, again, one root",
         branches({.small = true, .again = true, .one_root = true}), "-", kDefault},
        {"15 small branches, again, 32 queues", branches({.small = true, .again = true})},
        {"7 waiting streams, 8 queues", waiting_streams(7), "holds", kDefault},
        {"8 waiting streams, 8 queues", waiting_streams(8), "breaks", kDefault},
        {"16 waiting streams, 32 queues", waiting_streams(16), "holds"},
        {"1 waiting stream, 1 queue", waiting_streams(1), "breaks", 1},
        {"events recorded and queried", repeated(query_event)},
        {"events waited for, blocking", repeated(wait_for_event)},
        {"host callbacks", repeated([](Neighbour& n) {
             const auto busy = [](void*) { usleep(1000); };
             NEED(raw::launch_spin(n.stream(), 10'000));
             NEED(raw::cuLaunchHostFunc(n.stream(), busy, nullptr));
             NEED(raw::launch_spin(n.stream(), 10'000));
             finish(n);
         })},
        {"streams made and destroyed", repeated([](Neighbour&) {
             CUstream stream = nullptr;
             NEED(raw::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
             NEED(raw::cuStreamDestroy(stream));
         })},
        {"gcx contexts, kept", cached_contexts, "holds"},
        {"gcx leases resized", resized_leases, "holds"},
        {"cuGreenCtxCreate and cuGreenCtxDestroy", green_contexts},
        {"cuCtxCreate and cuCtxDestroy", plain_contexts},
        {"processes that start and end", other_processes},
        {"reads of 32 MiB, which L2 holds", reading(32 * kMebibyte), "-", kMax, true},
        {"reads of 256 MiB", reading(Neighbour::kBytes), "-", kMax, true},
        {"copies within the device, next to reads", repeated(copy_within_device), "-", kMax, true},
    };
    return all;
}

// The measurement.

constexpr unsigned kSmallSms = 24;
constexpr uint32_t kReadBytes = 4U << 20;
constexpr auto kPatience = std::chrono::seconds(20);
// The least by which a row is no longer said to hold, and to break: of the 99th percentile alone.
constexpr double kCosts = 2;
constexpr double kBreaks = 10;

struct Amount {
    std::size_t launches = 1000; // at least
    unsigned calls = 5;
};

// What the process of a cell sends.
struct Cell {
    double alone[3] = {}; // p50, p99, max
    double next_to[3] = {};
    double launches = 0;
    double calls = 0;
    int error = 0; // of the small kernel
    int simulated = 0;
    int missing = 0; // 1: this machine lacks what the row needs
};

// A stream for the small kernel and a place for the neighbour.
struct Places {
    CUstream small = nullptr;
    Neighbour neighbour;
};

void split(Places& places) {
    gcx_resource whole{};
    gcx_resource parts[2];
    gcx_sm_request request{};
    request.sm_count = kSmallSms;
    NEED(gcx_device_get_resource(0, GCX_RESOURCE_SM, &whole));
    NEED(gcx_sm_split(&whole, &request, 1, GCX_SPLIT_DEFAULT, &parts[0], &parts[1], nullptr,
                      nullptr));
    gcx_context contexts[2] = {};
    for (int i = 0; i < 2; i++)
        NEED(gcx_context_create(&parts[i], 1, nullptr, &contexts[i]));
    gcx_stream stream = nullptr;
    NEED(gcx_stream_create(contexts[0], nullptr, &stream));
    places.small = gcx_stream_native(stream);
    for (CUstream& native : places.neighbour.streams) {
        NEED(gcx_stream_create(contexts[1], nullptr, &stream));
        native = gcx_stream_native(stream);
    }
    gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
    NEED(gcx_resource_get_info(&parts[1], &info));
    places.neighbour.sms = info.sm_count;
    places.neighbour.context = gcx_context_native(contexts[1]);
}

Places make_places(bool partitions, const char* program) {
    Places places;
    Neighbour& n = places.neighbour;
    n.program = program;
    n.streams.resize(16);
    NEED(raw::cuCtxPushCurrent(raw::primary()));
    gcx_device_info device = GCX_DEVICE_INFO_INIT;
    NEED(gcx_device_get_info(0, &device));
    if (partitions) {
        split(places);
    } else {
        n.context = raw::primary();
        n.sms = device.sm_count;
        NEED(raw::cuStreamCreate(&places.small, CU_STREAM_NON_BLOCKING));
        for (CUstream& stream : n.streams)
            NEED(raw::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    }
    void* pinned = nullptr;
    NEED(raw::cuMemAlloc(&n.from, Neighbour::kBytes));
    NEED(raw::cuMemAlloc(&n.to, Neighbour::kBytes));
    NEED(raw::cuMemHostAlloc(&pinned, Neighbour::kHostBytes, 0));
    n.pinned = static_cast<char*>(pinned);
    n.pageable = static_cast<char*>(std::calloc(Neighbour::kHostBytes, 1));
    return places;
}

void note(const critical::Times& times, double* out, Cell& cell) {
    out[0] = times.p50();
    out[1] = times.p99();
    out[2] = times.max();
    if (times.error != CUDA_SUCCESS)
        cell.error = times.error;
}

Cell measure(const Row& row, bool partitions, Amount amount, const char* program) {
    raw::load();
    Places places = make_places(partitions, program);
    CUdeviceptr words = 0;
    NEED(raw::cuMemAlloc(&words, kReadBytes));
    const auto launch = [&] {
        return row.reads ? raw::launch_read(places.small, words, kReadBytes / 4, 2 * kSmallSms)
                         : raw::launch_spin(places.small, critical::kNanoseconds, kSmallSms, 32);
    };
    const auto enough = [&](std::size_t done) { return done < amount.launches; };
    Cell cell;
    gcx_driver_info driver = GCX_DRIVER_INFO_INIT;
    NEED(gcx_driver_get_info(&driver));
    cell.simulated = driver.simulated;
    critical::measure(places.small, launch, [](std::size_t done) { return done < 20; });
    note(critical::measure(places.small, launch, enough), cell.alone, cell);

    std::atomic<bool> ready = false;
    std::atomic<bool> stop = false;
    std::atomic<bool> ended = false;
    std::atomic<unsigned> calls = 0;
    std::thread thread([&] {
        NEED(raw::cuCtxPushCurrent(places.neighbour.context));
        const Body body = row.prepare(places.neighbour);
        cell.missing = body ? 0 : 1;
        ready = true;
        while (body && !stop && body())
            calls++;
        ended = true;
    });
    while (!ready)
        std::this_thread::yield();
    const auto until = std::chrono::steady_clock::now() + kPatience;
    const critical::Times next_to = critical::measure(places.small, launch, [&](std::size_t done) {
        if (ended) // what there was to do is done
            return done == 0;
        return (done < amount.launches || calls < amount.calls) &&
               std::chrono::steady_clock::now() < until;
    });
    note(next_to, cell.next_to, cell);
    cell.launches = static_cast<double>(next_to.us.size());
    cell.calls = calls;
    stop = true;
    thread.join();
    return cell;
}

// In a process of its own, with so many connections.
bool measure_apart(const Row& row, bool partitions, Amount amount, const char* program,
                   Cell& cell) {
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(120);
        if (row.connections != 0)
            setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(row.connections).c_str(), 1);
        else
            unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
        const Cell measured = measure(row, partitions, amount, program);
        _exit(write(ends[1], &measured, sizeof measured) == sizeof measured ? 0 : 1);
    }
    close(ends[1]);
    const bool whole = child > 0 && read(ends[0], &cell, sizeof cell) == sizeof cell;
    close(ends[0]);
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0 && whole;
}

const char* seen(const Cell& cell) {
    const double times = cell.alone[1] > 0 ? cell.next_to[1] / cell.alone[1] : 0;
    if (cell.error != 0 || times >= kBreaks)
        return "breaks";
    return times < kCosts ? "holds" : "costs";
}

void print(const std::string& name, const std::string& known, const Cell& own, const Cell& plain,
           const char* verdict) {
    std::printf("%s\t%s\t%s", name.c_str(), known.c_str(), own.missing != 0 ? "-" : seen(own));
    for (const double* figures : {own.alone, own.next_to, plain.next_to})
        std::printf("\t%.1f\t%.1f\t%.1f", figures[0], figures[1], figures[2]);
    std::printf("\t%.0f\t%.0f\t%d\t%s\n", own.launches, own.calls, own.error, verdict);
    std::fflush(stdout);
}

// Starts CUDA and ends: what a neighbour does that is another process.
int touch() {
    raw::load();
    NEED(raw::cuCtxPushCurrent(raw::primary()));
    NEED(raw::launch_spin(nullptr, 1000));
    NEED(raw::cuCtxSynchronize());
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    Amount amount;
    std::string only;
    std::string label;
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i];
        if (word == "--touch")
            return touch();
        if (word == "--quick")
            amount = {.launches = 20, .calls = 1};
        else if (word == "--only" && i + 1 < argc)
            only = argv[++i];
        else if (word == "--line" && i + 1 < argc)
            label = std::string(", ") + argv[++i];
        else
            return std::fprintf(stderr, "what is %s?\n", word.c_str()), 2;
    }
    bool good = true;
    for (const Row& row : rows()) {
        if (std::strstr(row.name, only.c_str()) == nullptr)
            continue;
        Cell own;
        Cell plain;
        const bool measured = measure_apart(row, true, amount, argv[0], own) &&
                              measure_apart(row, false, amount, argv[0], plain);
        // On the simulated driver it shows that all works, and no figures.
        const bool as_known = row.known == "-" || row.known == seen(own);
        const char* verdict = !measured            ? "FAILED"
                              : own.simulated != 0 ? "SIMULATED: no GPU is involved"
                              : own.missing != 0   ? "skipped"
                              : own.calls == 0     ? "FAILED: it did nothing"
                              : as_known           ? "passed"
                                                   : "FAILED: known otherwise";
        good = good && std::strncmp(verdict, "FAILED", 6) != 0;
        print(row.name + label, row.known, own, plain, verdict);
    }
    return good ? 0 : 1;
}
