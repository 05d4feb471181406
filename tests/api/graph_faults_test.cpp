// Makes each driver call of every operation on graphs fail in turn: the graph is unchanged, and
// nothing leaks.

#include "faults.hpp"
#include "graph_kernels.hpp"

#include <memory>

using namespace support;
using From = GraphKernels::From;

namespace {

struct State {
    std::unique_ptr<GraphKernels> kernels;
    std::unique_ptr<Split> parts;
    std::unique_ptr<Partition> small;
    std::unique_ptr<Partition> large;
    CUgraph captured = nullptr;
    CUgraph other = nullptr; // the same nodes, other parameters
    gcx_graph graph = nullptr;
};

void no_failures() {
    sim::fail(nullptr, 0, CUDA_SUCCESS);
}

CUgraph capture_one(const GraphKernels& kernels, uint32_t place) {
    return capture(kernels.plain, [&] {
        kernels.probe(kernels.plain, From::library, place);
        kernels.clear(kernels.plain, 4);
        kernels.probe(kernels.plain, From::module, place + 1);
    });
}

void captured(State& state) {
    state.kernels = std::make_unique<GraphKernels>();
    state.parts = std::make_unique<Split>(split(whole_device(), {24, 108}));
    state.small = std::make_unique<Partition>(state.parts->groups[0]);
    state.large = std::make_unique<Partition>(state.parts->groups[1]);
    state.captured = capture_one(*state.kernels, 0);
    state.other = capture_one(*state.kernels, 2);
}

void created(State& state) {
    captured(state);
    CHECK_OK(gcx_graph_create(state.captured, nullptr, &state.graph));
}

void prepared(State& state) {
    created(state);
    for (const gcx_resource& part : state.parts->groups)
        CHECK_OK(gcx_graph_prepare(state.graph, &part, 1, 0));
}

void of_two_parts(State& state) {
    created(state);
    const uint32_t last = 2;
    CHECK_OK(gcx_graph_set_part(state.graph, &last, 1, 1));
    CHECK_OK(gcx_graph_prepare(state.graph, state.parts->groups.data(), 2, 0));
    uint64_t long_enough = 1'000'000;
    state.kernels->spin(gcx_stream_native(state.large->stream), long_enough);
}

// Checks that the graph's two kernels note their SMs in these places, whatever failed before.
void check_graph(const State& state, uint32_t place) {
    for (uint32_t i = 0; i < 6; i++)
        state.kernels->take_sms(i);
    for (const Partition* part : {state.small.get(), state.large.get()}) {
        CHECK_OK(gcx_graph_launch(state.graph, &part->stream, 1));
        const std::size_t sms = part == state.small.get() ? 24 : 108;
        CHECK_EQ(state.kernels->count_sms(place), sms);
        CHECK_EQ(state.kernels->count_sms(place + 1), sms);
    }
}

void destroy_all(State& state) {
    if (state.graph != nullptr) {
        const gcx_result result = gcx_graph_destroy(state.graph);
        CHECK(result == GCX_SUCCESS || result == GCX_ERROR_INVALID_HANDLE);
    }
    state.graph = nullptr;
    for (CUgraph graph : {state.captured, state.other})
        CHECK_NATIVE(cuGraphDestroy, graph);
    state.small.reset();
    state.large.reset();
    state.kernels.reset();
}

gcx_result set_kernel(State& state, uint32_t node, uint32_t place) {
    struct {
        CUdeviceptr counts;
        uint32_t max_sms = GraphKernels::kMaxSms;
        uint32_t nanoseconds = 1'000;
    } arguments{state.kernels->at(place)};
    gcx_kernel_params params = GCX_KERNEL_PARAMS_INIT;
    params.grid[0] = 1024;
    params.block[0] = 64;
    params.grid[1] = params.grid[2] = params.block[1] = params.block[2] = 1;
    params.arguments = &arguments;
    params.argument_bytes = sizeof arguments;
    return gcx_graph_set_kernel(state.graph, node, &params);
}

// Checks that all executables changed or none did.
gcx_result set_kernel_checked(State& state, uint32_t node) {
    const gcx_result result = set_kernel(state, node, 5);
    no_failures();
    for (uint32_t i = 0; i < 6; i++)
        state.kernels->take_sms(i);
    for (const Partition* part : {state.small.get(), state.large.get()}) {
        CHECK_OK(gcx_graph_launch(state.graph, &part->stream, 1));
        const bool there = state.kernels->count_sms(5) != 0;
        CHECK_EQ(there, result == GCX_SUCCESS);
    }
    return result;
}

const faults::Named<State> kOperations[] = {
    {"create", captured,
     [](State& state) {
         if (state.graph != nullptr)
             CHECK_OK(gcx_graph_destroy(state.graph));
         state.graph = nullptr;
         return gcx_graph_create(state.captured, nullptr, &state.graph);
     }},
    {"first launch", created,
     [](State& state) {
         const gcx_result result = gcx_graph_launch(state.graph, &state.small->stream, 1);
         no_failures();
         check_graph(state, 0);
         return result;
     }},
    {"launch", prepared,
     [](State& state) { return gcx_graph_launch(state.graph, &state.small->stream, 1); }},
    {"launch of parts", of_two_parts,
     [](State& state) {
         const gcx_stream streams[] = {state.small->stream, state.large->stream};
         return gcx_graph_launch(state.graph, streams, 2);
     }},
    {"launch of parts elsewhere", of_two_parts,
     [](State& state) {
         const gcx_stream streams[] = {state.large->stream, state.small->stream};
         return gcx_graph_launch(state.graph, streams, 2);
     }},
    {"prepare another", prepared,
     [](State& state) {
         const gcx_resource whole = whole_device();
         const gcx_result result = gcx_graph_prepare(state.graph, &whole, 1, 0);
         no_failures();
         check_graph(state, 0);
         return result;
     }},
    {"prepare for leases", created,
     [](State& state) {
         return gcx_graph_prepare(state.graph, state.parts->groups.data(), 1,
                                  GCX_PREPARE_FOR_LEASES);
     }},
    {"set part", prepared,
     [](State& state) {
         const uint32_t last = 2;
         return gcx_graph_set_part(state.graph, &last, 1, 1);
     }},
    {"set a library's kernel", prepared, [](State& state) { return set_kernel_checked(state, 0); }},
    {"set a module's kernel", prepared, [](State& state) { return set_kernel_checked(state, 2); }},
    {"update", prepared,
     [](State& state) {
         const gcx_result result = gcx_graph_update(state.graph, state.other);
         no_failures();
         check_graph(state, result == GCX_SUCCESS ? 2 : 0);
         return result;
     }},
    {"nodes and info", prepared,
     [](State& state) {
         uint32_t count = 0;
         gcx_graph_node nodes[3];
         const gcx_result result = gcx_graph_get_nodes(state.graph, nodes, 3, &count);
         gcx_graph_info info = GCX_GRAPH_INFO_INIT;
         return result == GCX_SUCCESS ? gcx_graph_get_info(state.graph, &info) : result;
     }},
    {"destroy", prepared,
     [](State& state) {
         const gcx_result result = gcx_graph_destroy(state.graph);
         return result == GCX_ERROR_INVALID_HANDLE ? GCX_SUCCESS : result;
     }},
};

} // namespace

int main(int argc, char** argv) {
    return faults::test_all("graph-faults", argc, argv, kOperations, destroy_all);
}
