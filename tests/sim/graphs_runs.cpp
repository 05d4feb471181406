// What launches of executables do: order, place and time, and what is destroyed meanwhile.
#include "graphs.hpp"

#include <algorithm>

namespace sim_test {
namespace {

bool overlap(const gcx_sim_run& one, const gcx_sim_run& other) {
    return std::equal(std::begin(one.sms), std::end(one.sms), std::begin(other.sms),
                      [](uint64_t a, uint64_t b) { return (a & b) == 0; }) == false;
}

// The header: behind what the stream has, and behind its own launches in whatever stream.
void behind_itself() {
    GraphBench on;
    on.add(on.spin());
    CUgraphExec exec = on.instantiate();
    CUgraphExec other = on.instantiate();
    on.nanoseconds = 50'000;
    const auto runs = runs_of([&] {
        CHECK_OK(on.primary.spin(on.bench.plain, 20'000));
        CHECK_OK(cuGraphLaunch(exec, on.bench.plain));
        CHECK_OK(cuGraphLaunch(exec, on.bench.parts[0].stream));
        CHECK_OK(cuGraphLaunch(other, on.bench.parts[1].stream));
    });
    CHECK_EQ(runs.size(), 4U);
    CHECK_EQ(runs[0].launch, 0U);
    CHECK_EQ(runs[1].begin_ns, runs[0].end_ns);
    CHECK_EQ(runs[2].begin_ns, runs[1].end_ns);
    CHECK(runs[1].launch != runs[2].launch);
    CHECK(runs[3].begin_ns < runs[1].begin_ns); // an executable of its own waits for neither
    // The stream is busy for as long.
    CHECK_EQ(cuStreamQuery(on.bench.parts[0].stream), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuStreamSynchronize(on.bench.parts[0].stream));
    CHECK(clock_ns() >= runs[2].end_ns);
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphExecDestroy(other));
}

// The header: an executable in flight isn't terminated. Graphs and contexts may go as well.
void destroyed_in_flight() {
    GraphBench on;
    CUgraph captured = on.bench.capture(on.primary.spinner, on.bench.parts[0].stream);
    gcx_sim_counts before;
    gcx_sim_get_counts(&before);
    CUgraphExec exec = on.instantiate(captured);
    gcx_sim_counts counts;
    gcx_sim_get_counts(&counts);
    CHECK_EQ(counts.graphs, before.graphs + 1);
    CHECK(counts.device_bytes_used > before.device_bytes_used);
    CHECK_OK(cuGraphDestroy(captured));
    uint64_t end = 0;
    const auto runs = runs_of([&] { CHECK_OK(cuGraphLaunch(exec, on.bench.plain)); });
    CHECK_EQ(runs.size(), 1U);
    end = runs[0].end_ns;
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_EQ(cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuGraphLaunch(exec, on.bench.plain), CUDA_ERROR_INVALID_VALUE);
    gcx_sim_get_counts(&counts);
    CHECK_EQ(counts.graphs, before.graphs - 1);
    CHECK_EQ(counts.device_bytes_used, before.device_bytes_used);
    CHECK_EQ(cuStreamQuery(on.bench.plain), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuStreamSynchronize(on.bench.plain));
    CHECK(clock_ns() >= end);
}

// Branches that events fork off and join, over streams of two contexts.
void branches() {
    GraphBench on;
    CUevent fork = nullptr;
    CUevent join = nullptr;
    CHECK_OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    CHECK_OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    CUstream here = on.bench.parts[0].stream;
    CUstream there = on.bench.parts[1].stream;
    CUgraph captured = nullptr;
    CHECK_OK(cuStreamBeginCapture_v2(here, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_OK(on.primary.spin(here, 1000));
    CHECK_OK(cuEventRecord(fork, here));
    CHECK_OK(cuStreamWaitEvent(there, fork, 0));
    CHECK_OK(on.primary.spin(there, 30'000));
    CHECK_OK(on.primary.spin(here, 20'000));
    CHECK_OK(cuEventRecord(join, there));
    CHECK_OK(cuStreamWaitEvent(here, join, 0));
    CHECK_OK(on.primary.spin(here, 1000));
    CHECK_OK(cuStreamEndCapture(here, &captured));
    const auto runs = on.launched(on.bench.plain, captured);
    CHECK_EQ(runs.size(), 4U);
    for (std::size_t i = 0; i < runs.size(); i++)
        CHECK_EQ(runs[i].sm_count, i == 1 ? 108U : 24U);
    CHECK(!overlap(runs[1], runs[2]) && overlap(runs[0], runs[2]));
    CHECK_EQ(runs[1].begin_ns, runs[0].end_ns);
    CHECK_EQ(runs[2].begin_ns, runs[0].end_ns); // side by side
    CHECK_EQ(runs[3].begin_ns, std::max(runs[1].end_ns, runs[2].end_ns));
    CHECK_OK(cuGraphDestroy(captured));
    CHECK_OK(cuEventDestroy_v2(fork));
    CHECK_OK(cuEventDestroy_v2(join));
}

// Measured on 13.0: a launch in a stream that captures is refused, and breaks the capture.
void captured_launch() {
    GraphBench on;
    {
        const Current current(on.bench.parts[0].context);
        on.add(on.spin());
    }
    CUgraphExec exec = on.instantiate();
    CUgraph outer = nullptr;
    CHECK_OK(cuStreamBeginCapture_v2(on.bench.plain, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CHECK_EQ(cuGraphLaunch(exec, on.bench.plain), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQ(cuStreamEndCapture(on.bench.plain, &outer), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(outer == nullptr);
    CHECK_OK(cuGraphLaunch(exec, on.bench.plain));
    CHECK_OK(cuGraphExecDestroy(exec));
}

// Assumed: what is of a device's primary context doesn't run when that was reset.
void after_a_reset() {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExec exec = nullptr;
    CUstream stream = nullptr;
    uint64_t nanoseconds = 10;
    void* arguments[] = {&nanoseconds};
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    CHECK_OK(cuModuleLoadData(&module, kPtx));
    CHECK_OK(cuModuleGetFunction(&function, module, "gcx_spin"));
    CHECK_OK(cuGraphCreate(&graph, 0));
    CUDA_KERNEL_NODE_PARAMS_v2 parameters{};
    parameters.func = function;
    parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
    parameters.kernelParams = arguments;
    CHECK_OK(cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &parameters));
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK_OK(cuDevicePrimaryCtxReset_v2(0));
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    CHECK_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK_EQ(cuGraphLaunch(exec, stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuStreamDestroy_v2(stream));
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
}

// No more is noted than was asked for.
void notes_have_an_end() {
    GraphBench on;
    gcx_sim_note_runs(2);
    for (int i = 0; i < 3; i++)
        CHECK_OK(on.primary.spin(on.bench.plain, 10));
    gcx_sim_run one[1];
    CHECK_EQ(gcx_sim_get_runs(one, 1), 2U);
    CHECK_EQ(std::string(one[0].kernel), "gcx_spin");
    gcx_sim_note_runs(0);
    CHECK_OK(on.primary.spin(on.bench.plain, 10));
    CHECK_EQ(gcx_sim_get_runs(nullptr, 0), 0U);
}

} // namespace

std::vector<Rule> graph_run_rules() {
    return {
        {"a launch comes behind those of its executable", behind_itself},
        {"destroyed in flight", destroyed_in_flight},
        {"branches over two partitions", branches},
        {"a launch that is captured", captured_launch},
        {"after a reset", after_a_reset},
        {"notes of what ran", notes_have_an_end},
    };
}

} // namespace sim_test
