// Changes one graph in some threads while others launch it: each launch sees the graph before or
// after a change.

#include "graph_kernels.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

using namespace support;
using From = GraphKernels::From;

namespace {

constexpr uint32_t kNodes = 60;

// Calls the body in a thread until it is destroyed.
class Repeated {
  public:
    explicit Repeated(std::function<void(unsigned)> body)
        : thread_([this, body = std::move(body)] {
              for (unsigned round = 0; !over_.load(); round++)
                  body(round);
          }) {}
    ~Repeated() {
        over_ = true;
        thread_.join();
    }
    Repeated(const Repeated&) = delete;
    Repeated& operator=(const Repeated&) = delete;

  private:
    std::atomic<bool> over_{false};
    std::thread thread_;
};

CUgraph capture_many(const GraphKernels& kernels, uint32_t nanoseconds) {
    return capture(kernels.plain, [&] {
        for (uint32_t i = 0; i < kNodes; i++)
            kernels.probe(kernels.plain, From::library, 0, nanoseconds, false, 8);
    });
}

bool done_or_refused(gcx_result result) {
    return result == GCX_SUCCESS || result == GCX_ERROR_INVALID_VALUE;
}

// The number of parts grows between a call's check of it and the creation of its executable.
void parts_added_during_launches_are_seen_or_refused() {
    const GraphKernels kernels;
    std::vector<std::unique_ptr<Partition>> partitions;
    std::vector<gcx_resource> resources =
        split(whole_device(), std::vector<uint32_t>(15, 8)).groups;
    resources.push_back(resources[0]);
    std::vector<gcx_stream> streams;
    for (const gcx_resource& resource : resources)
        streams.push_back(partitions.emplace_back(std::make_unique<Partition>(resource))->stream);
    gcx_graph_params params = GCX_GRAPH_PARAMS_INIT;
    params.max_executables = 1; // so that each call creates an executable
    for (int round = 0; round < (check::slow ? 10 : 40); round++) {
        CUgraph captured = capture_many(kernels, 1000);
        gcx_graph graph = nullptr;
        CHECK_OK(gcx_graph_create(captured, &params, &graph));
        CHECK_NATIVE(cuGraphDestroy, captured);
        {
            const Repeated one([&](unsigned number) {
                CHECK_OK(gcx_graph_prepare(graph, &resources[number % 15], 1, 0));
            });
            const Repeated launching([&](unsigned) {
                CHECK(done_or_refused(
                    gcx_graph_launch(graph, streams.data(), info_of(graph).part_count)));
            });
            const Repeated preparing([&](unsigned) {
                CHECK(done_or_refused(
                    gcx_graph_prepare(graph, resources.data(), info_of(graph).part_count, 0)));
            });
            for (uint32_t part = 1; part < GCX_MAX_GRAPH_PARTS; part++) {
                CHECK_OK(gcx_graph_set_part(graph, &part, 1, part));
                const auto nodes = nodes_of(graph);
                CHECK_EQ(nodes[part].part, part);
            }
        }
        CHECK_EQ(info_of(graph).part_count, GCX_MAX_GRAPH_PARTS);
        CHECK_OK(gcx_graph_launch(graph, streams.data(), GCX_MAX_GRAPH_PARTS));
        CHECK_OK(gcx_graph_destroy(graph));
    }
}

// All kernels of a launch have the parameters of the same capture.
void update_during_launches_is_atomic() {
    const GraphKernels kernels;
    const Split parts = split(whole_device(), {24, 32, 40});
    CUgraph slow = capture_many(kernels, 9000);
    CUgraph fast = capture_many(kernels, 2000);
    gcx_graph graph = nullptr;
    CHECK_OK(gcx_graph_create(slow, nullptr, &graph));
    const Partition partition(parts.groups[0]);
    for (const gcx_resource& resource : parts.groups)
        CHECK_OK(gcx_graph_prepare(graph, &resource, 1, 0));
    const auto time_of = [](const gcx_sim_run& run) { return run.end_ns - run.begin_ns; };
    std::size_t mixed = 0;
    // With many cores each of an update's calls can wait for a launch in the simulator.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (int round = 0; round < (check::slow ? 10 : 40) && std::chrono::steady_clock::now() < end;
         round++) {
        sim::note_runs(200'000);
        {
            const Repeated launching(
                [&](unsigned) { CHECK_OK(gcx_graph_launch(graph, &partition.stream, 1)); });
            for (int i = 0; i < 10; i++)
                CHECK_OK(gcx_graph_update(graph, i % 2 == 0 ? fast : slow));
        }
        const std::vector<gcx_sim_run> runs = sim::runs();
        sim::note_runs(0);
        for (std::size_t i = 0; i < runs.size(); i++) {
            if (time_of(runs[i]) != time_of(runs[i - i % kNodes]))
                mixed++;
        }
    }
    CHECK_EQ(mixed, 0U);
    for (CUgraph captured : {slow, fast})
        CHECK_NATIVE(cuGraphDestroy, captured);
    CHECK_OK(gcx_graph_destroy(graph));
}

// A handle that is destroyed while it is used answers GCX_ERROR_INVALID_HANDLE from then on.
void destroy_during_calls_waits_for_them() {
    const GraphKernels kernels;
    const Partition partition(split(whole_device(), {24}).groups[0]);
    CUgraph captured = capture_many(kernels, 1000);
    gcx_kernel_params one_block = GCX_KERNEL_PARAMS_INIT;
    one_block.grid[0] = one_block.grid[1] = one_block.grid[2] = 1;
    one_block.block[0] = one_block.block[1] = one_block.block[2] = 1;
    for (int round = 0; round < 60; round++) {
        gcx_graph graph = nullptr;
        CHECK_OK(gcx_graph_create(captured, nullptr, &graph));
        const auto allowed = [](gcx_result result) {
            return result == GCX_SUCCESS || result == GCX_ERROR_INVALID_HANDLE;
        };
        std::atomic<int> started{0};
        const auto until_destroyed = [&](const std::function<gcx_result()>& call) {
            gcx_result result = GCX_SUCCESS;
            for (started++; result == GCX_SUCCESS;)
                result = call();
            CHECK(allowed(result));
        };
        std::vector<std::thread> threads;
        threads.emplace_back(until_destroyed,
                             [&] { return gcx_graph_launch(graph, &partition.stream, 1); });
        threads.emplace_back(until_destroyed, [&] { return gcx_graph_update(graph, captured); });
        threads.emplace_back(until_destroyed,
                             [&] { return gcx_graph_set_kernel(graph, 0, &one_block); });
        threads.emplace_back(until_destroyed, [&] {
            gcx_graph_info info = GCX_GRAPH_INFO_INIT;
            return gcx_graph_get_info(graph, &info);
        });
        while (started.load() != 4)
            std::this_thread::yield();
        CHECK_OK(gcx_graph_destroy(graph));
        for (std::thread& thread : threads)
            thread.join();
    }
    CHECK_NATIVE(cuGraphDestroy, captured);
}

} // namespace

int main() {
    for (const auto body : {parts_added_during_launches_are_seen_or_refused,
                            update_during_launches_is_atomic, destroy_during_calls_waits_for_them})
        leaves_nothing("h100@13.0", body);
    return check::summary("graph-threads");
}
