// Measures what graphs cost; checks nothing. Each pair is measured in turn, in one run.

#include "graph_work.hpp"
#include "tests.hpp"

#include <chrono>
#include <cstdio>
#include <functional>

using namespace fixture;
using namespace graph_work;

namespace {

using Clock = std::chrono::steady_clock;

double us_of(const std::function<void()>& call) {
    const auto begin = Clock::now();
    call();
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double percentile(std::vector<double> values, double part) {
    const auto at = static_cast<std::ptrdiff_t>(static_cast<double>(values.size() - 1) * part);
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return values[static_cast<std::size_t>(at)];
}

double median(const std::vector<double>& values) {
    return percentile(values, 0.5);
}

// Captures a graph of so many short kernels in a row.
CUgraph row_of(CUfunction fill, CUstream stream, int nodes, unsigned blocks, CUdeviceptr seen,
               uint64_t nanoseconds) {
    CUgraph graph = nullptr;
    CHECK_EQ(raw::cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
    for (int i = 0; i < nodes; i++)
        CHECK_EQ(launch_fill(fill, stream, blocks, seen, nanoseconds), CUDA_SUCCESS);
    CHECK_EQ(raw::cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    return graph;
}

void launches(const Kernels& kernels, const Template& work, CUdeviceptr seen) {
    const Partition part(split(whole_device(), {24}).groups[0]);
    for (const int nodes : {1, 10, 400}) {
        CUgraph plain = row_of(kernels.fill, work.plain, nodes, 1, seen, 0);
        CUgraph there = row_of(kernels.fill, part.native(), nodes, 1, seen, 0);
        CUgraphExec exec = instantiate(there);
        gcx_graph graph = nullptr;
        CHECK_OK(gcx_graph_create(plain, nullptr, &graph));
        std::vector<double> ours;
        std::vector<double> drivers;
        for (int round = 0; round < 2100; round++) {
            gcx_result result = GCX_SUCCESS;
            CUresult launched = CUDA_SUCCESS;
            CUstream native = part.native();
            const double one = us_of([&] { result = gcx_graph_launch(graph, &part.stream, 1); });
            CHECK_OK(gcx_stream_synchronize(part.stream));
            const double other = us_of([&] { launched = raw::cuGraphLaunch(exec, native); });
            CHECK_OK(result);
            CHECK_EQ(launched, CUDA_SUCCESS);
            CHECK_OK(gcx_stream_synchronize(part.stream));
            if (round < 100)
                continue;
            ours.push_back(one);
            drivers.push_back(other);
        }
        std::printf(
            "   launch, %d nodes: gcx %.3f us (p99 %.3f), cuGraphLaunch %.3f us (p99 %.3f): "
            "%+.3f us, wanted +0.5 at most\n",
            nodes, median(ours), percentile(ours, 0.99), median(drivers), percentile(drivers, 0.99),
            median(ours) - median(drivers));
        CHECK_OK(gcx_graph_destroy(graph));
        CHECK_EQ(raw::cuGraphExecDestroy(exec), CUDA_SUCCESS);
        CHECK_EQ(raw::cuGraphDestroy(plain), CUDA_SUCCESS);
        CHECK_EQ(raw::cuGraphDestroy(there), CUDA_SUCCESS);
    }
}

void preparing(const Kernels& kernels, const Template& work, CUdeviceptr seen) {
    const gcx_resource resource = split(whole_device(), {24}).groups[0];
    const Partition part(resource);
    const std::pair<const char*, CUfunction> kinds[] = {{"of a library", kernels.fill},
                                                        {"of a module", kernels.module_fill}};
    for (const auto& [name, fill] : kinds) {
        CUgraph captured = row_of(fill, work.plain, 1000, 1, seen, 0);
        std::vector<double> create;
        std::vector<double> prepare;
        std::vector<double> plain;
        for (int round = 0; round < 31; round++) {
            gcx_graph graph = nullptr;
            CUgraphExec exec = nullptr;
            create.push_back(us_of([&] { CHECK_OK(gcx_graph_create(captured, nullptr, &graph)); }));
            prepare.push_back(us_of([&] { CHECK_OK(gcx_graph_prepare(graph, &resource, 1, 0)); }));
            CHECK_OK(gcx_graph_destroy(graph));
            plain.push_back(us_of([&] { exec = instantiate(captured); }));
            CHECK_EQ(raw::cuGraphExecDestroy(exec), CUDA_SUCCESS);
        }
        std::printf("   1000 kernels %s: create %.0f us, prepare %.0f us, cuGraphInstantiate %.0f "
                    "us: %.2f, wanted 1.30 at most\n",
                    name, median(create), median(prepare), median(plain),
                    median(prepare) / median(plain));
        CHECK_EQ(raw::cuGraphDestroy(captured), CUDA_SUCCESS);
    }
}

class Timer {
  public:
    Timer() {
        CHECK_EQ(raw::cuEventCreate(&begin_, CU_EVENT_DEFAULT), CUDA_SUCCESS);
        CHECK_EQ(raw::cuEventCreate(&end_, CU_EVENT_DEFAULT), CUDA_SUCCESS);
    }
    ~Timer() {
        CHECK_EQ(raw::cuEventDestroy(begin_), CUDA_SUCCESS);
        CHECK_EQ(raw::cuEventDestroy(end_), CUDA_SUCCESS);
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    // Returns the device time of what the body submits to the stream.
    double us(CUstream stream, const std::function<void()>& body) {
        float milliseconds = 0;
        CHECK_EQ(raw::cuEventRecord(begin_, stream), CUDA_SUCCESS);
        body();
        CHECK_EQ(raw::cuEventRecord(end_, stream), CUDA_SUCCESS);
        CHECK_EQ(raw::cuEventSynchronize(end_), CUDA_SUCCESS);
        CHECK_EQ(raw::cuEventElapsedTime(&milliseconds, begin_, end_), CUDA_SUCCESS);
        return milliseconds * 1000.0;
    }

  private:
    CUevent begin_ = nullptr;
    CUevent end_ = nullptr;
};

// Runs 416 kernels, as of a decode step, that fill the whole device in one wave each, and the
// template.
void running(const Kernels& kernels, Template& work, CUdeviceptr seen) {
    Timer timer;
    const Split parts = split(whole_device(), {24, 108});
    for (const gcx_resource& resource : parts.groups) {
        const Partition part(resource);
        for (const bool is_row : {true, false}) {
            const auto captured_in = [&](CUstream stream, CUstream branch) {
                return is_row ? row_of(kernels.fill, stream, 416, 264, seen, 2000)
                              : work.capture(stream, branch);
            };
            gcx_stream second = nullptr;
            CHECK_OK(gcx_stream_create(part.context, nullptr, &second));
            CUgraph plain = captured_in(work.plain, work.second);
            CUgraph there = captured_in(part.native(), gcx_stream_native(second));
            CUgraphExec exec = instantiate(there);
            gcx_graph graph = nullptr;
            CHECK_OK(gcx_graph_create(plain, nullptr, &graph));
            std::vector<double> moved;
            std::vector<double> captured;
            for (int round = 0; round < 60; round++) {
                const double one = timer.us(
                    part.native(), [&] { CHECK_OK(gcx_graph_launch(graph, &part.stream, 1)); });
                const double other =
                    timer.us(part.native(), [&] { raw::cuGraphLaunch(exec, part.native()); });
                if (round < 10)
                    continue;
                moved.push_back(one);
                captured.push_back(other);
            }
            std::printf("   %u SMs, %s: moved %.1f us, captured there %.1f us: %.3f, wanted 1.03 "
                        "at most\n",
                        sm_count(resource), is_row ? "416 kernels" : "every kind of node",
                        median(moved), median(captured), median(moved) / median(captured));
            CHECK_OK(gcx_graph_destroy(graph));
            CHECK_EQ(raw::cuGraphExecDestroy(exec), CUDA_SUCCESS);
            CHECK_EQ(raw::cuGraphDestroy(plain), CUDA_SUCCESS);
            CHECK_EQ(raw::cuGraphDestroy(there), CUDA_SUCCESS);
            CHECK_OK(gcx_stream_destroy(second));
        }
    }
}

} // namespace

void graph_figures() {
    const InPrimary current;
    const Kernels kernels;
    Template work(kernels);
    CUdeviceptr seen = 0;
    CHECK_EQ(raw::cuMemAlloc(&seen, kMaxSms * 4), CUDA_SUCCESS);
    section("figures: launching a moved graph");
    launches(kernels, work, seen);
    section("figures: preparing a graph");
    preparing(kernels, work, seen);
    section("figures: a moved graph's time");
    running(kernels, work, seen);
    CHECK_EQ(raw::cuMemFree(seen), CUDA_SUCCESS);
}
