// Graphs, events, streams and contexts.
#include "isolation_bodies.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace isolation {
namespace {

constexpr uint64_t kLongNs = 10 * raw::kMillisecond;

bool wait_for_all(const Neighbour& n) {
    for (CUstream const stream : n.streams)
        NEED(raw::cuStreamSynchronize(stream));
    return true;
}

} // namespace

// -------------------------------------------------------------------------------------- graphs

static CUgraph captured(const Neighbour& n, const std::function<void()>& body) {
    CUgraph graph = nullptr;
    NEED(raw::cuStreamBeginCapture(n.stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    body();
    NEED(raw::cuStreamEndCapture(n.stream(), &graph));
    return graph;
}

static CUgraph chain(const Neighbour& n, unsigned kernels, uint64_t nanoseconds) {
    return captured(n, [&] {
        for (unsigned i = 0; i < kernels; i++)
            NEED(raw::launch_spin(n.stream(), nanoseconds));
    });
}

static CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    NEED(raw::cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

Body capture(Neighbour& n) {
    return [&n] {
        NEED(raw::cuGraphDestroy(chain(n, 200, 1000)));
        return true;
    };
}

Body make_executables(Neighbour& n) {
    return [graph = chain(n, 200, 1000)] {
        NEED(raw::cuGraphExecDestroy(instantiate(graph)));
        return true;
    };
}

Body upload(Neighbour& n) {
    return [&n, graph = chain(n, 200, 1000)] {
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
        return finish(n);
    };
}

static void wait_for(CUstream stream, CUstream other) {
    CUevent event = nullptr;
    NEED(raw::cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    NEED(raw::cuEventRecord(event, other));
    NEED(raw::cuStreamWaitEvent(stream, event, 0));
    NEED(raw::cuEventDestroy(event));
}

Body launch_branches(Neighbour& n, Branches how) {
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
}

// ----------------------------------------------------------------- events, callbacks, streams

Body events(Neighbour& n) {
    return [&n] {
        CUevent event = nullptr;
        NEED(raw::cuEventCreate(&event, CU_EVENT_DEFAULT));
        NEED(raw::launch_spin(n.stream(), 10'000));
        NEED(raw::cuEventRecord(event, n.stream()));
        while (raw::cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
        }
        NEED(raw::cuEventDestroy(event));
        return true;
    };
}

Body blocking_events(Neighbour& n) {
    return [&n] {
        CUevent event = nullptr;
        NEED(raw::cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC));
        NEED(raw::launch_spin(n.stream(), 100'000));
        NEED(raw::cuEventRecord(event, n.stream()));
        NEED(raw::cuEventSynchronize(event));
        NEED(raw::cuEventDestroy(event));
        return true;
    };
}

Body callbacks(Neighbour& n) {
    return [&n] {
        const auto busy = [](void*) { usleep(1000); };
        NEED(raw::launch_spin(n.stream(), 10'000));
        NEED(raw::cuLaunchHostFunc(n.stream(), busy, nullptr));
        NEED(raw::launch_spin(n.stream(), 10'000));
        return finish(n);
    };
}

Body streams_made(Neighbour&) {
    return [] {
        CUstream stream = nullptr;
        NEED(raw::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        NEED(raw::cuStreamDestroy(stream));
        return true;
    };
}

Body waiting_streams(Neighbour& n, unsigned count) {
    return [&n, count] {
        for (unsigned i = 0; i < count; i++) {
            for (int kernel = 0; kernel < 8; kernel++)
                fill(n, n.streams[i]);
        }
        return wait_for_all(n);
    };
}

// -------------------------------------------------------------------------------------- contexts

static gcx_resource first_atom() {
    gcx_resource whole{};
    gcx_resource atom{};
    NEED(gcx_device_get_resource(0, GCX_RESOURCE_SM, &whole));
    NEED(gcx_resource_get_atom(&whole, 0, &atom));
    return atom;
}

Body max_contexts(Neighbour&) {
    const gcx_resource atom = first_atom();
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

} // namespace isolation
