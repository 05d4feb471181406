// Executable graphs.
#include "sim/device/device.hpp"
#include "sim/edge/entry.hpp"
#include "sim/graph/graph.hpp"
#include "sim/work/work.hpp"

#include <algorithm>
#include <unordered_map>

namespace gcx::sim {
namespace {

// Recorded: an executable of 3 nodes takes 0.12 MiB.
constexpr uint64_t kBytesPerNode = 40ULL << 10;
// Recorded: 1000 nodes are instantiated in 3.3 ms.
constexpr uint64_t kInstantiateNs = 3'300;

constexpr int kUpdateSuccess = 0;
constexpr int kUpdateTopologyChanged = 2;
constexpr int kUpdateTypeChanged = 3;
constexpr int kUpdateUnsupportedFunctionChange = 7;

GraphExec& executable_of(Machine& machine, CUgraphExec handle) {
    return known(find(machine.graph_execs, handle));
}

// The device of the graph's nodes, or else the current one.
Device& device_of(Machine& machine, const Graph& graph) {
    Context* context = nullptr;
    for (const auto& node : graph.nodes)
        if (node->work.context != nullptr)
            context = node->work.context;
    return *(context == nullptr ? current_context(machine) : *context).device;
}

void instantiate(Machine& machine, CUgraphExec* out, CUgraph handle, unsigned long long flags) {
    const Graph& graph = graph_of(machine, handle);
    require(out != nullptr && flags <= 15);
    require(graph.nodes.empty() || !in_order(graph).empty());
    Device& device = device_of(machine, graph);
    charge_memory(device, kBytesPerNode * graph.nodes.size());
    GraphExec& exec = create(machine.graph_execs);
    exec.flags = flags;
    exec.device = &device;
    copy_nodes(machine, graph, exec.graph);
    machine.clock_ns += kInstantiateNs * graph.nodes.size();
    give(out, exec.handle);
}

void destroy(Machine& machine, CUgraphExec handle) {
    const GraphExec& exec = executable_of(machine, handle);
    delete_children(machine, exec.graph);
    return_memory(*exec.device, kBytesPerNode * exec.graph.nodes.size());
    machine.graph_execs.erase(exec.handle);
}

uint64_t run_graph(Machine& machine, Stream& stream, const Graph& graph, uint64_t start);

uint64_t run_node(Machine& machine, Stream& stream, Node& node, uint64_t start) {
    const Work& work = node.work;
    Event* const event =
        work.event == 0 ? nullptr : find(machine.events, to_pointer<CUevent>(work.event));
    switch (work.kind) {
    case Work::Kind::ChildGraph:
        return run_graph(machine, stream, *machine.graphs[work.child], start);
    case Work::Kind::EventRecord:
        if (event != nullptr) {
            event->recorded = true;
            event->done_at = start;
        }
        return start;
    case Work::Kind::EventWait:
        return event != nullptr && event->recorded ? std::max(start, event->done_at) : start;
    case Work::Kind::Kernel:
        kernel_effect(machine, work);
        return start + kernel_duration(machine, work);
    default:
        if (work.effect)
            work.effect(machine);
        if (work.host)
            after_call(work.host);
        return start + work.duration_ns;
    }
}

// Each node when those before it have ended. When all have: that time.
uint64_t run_graph(Machine& machine, Stream& stream, const Graph& graph, uint64_t start) {
    std::unordered_map<Handle, uint64_t> ends;
    uint64_t last = start;
    for (Node* const node : in_order(graph)) {
        uint64_t begin = start;
        for (const Handle dependency : node->dependencies)
            begin = std::max(begin, ends[dependency]);
        ends[node->handle] = run_node(machine, stream, *node, begin);
        last = std::max(last, ends[node->handle]);
    }
    return last;
}

void launch(Machine& machine, CUgraphExec handle, CUstream stream_handle) {
    refuse_dead_stream(machine, stream_handle);
    const GraphExec& exec = executable_of(machine, handle);
    Stream& stream = stream_of(machine, stream_handle);
    if (stream.capture != nullptr) {
        Work work;
        work.kind = Work::Kind::ChildGraph;
        work.child = new_hidden_copy(machine, exec.graph).handle;
        return submit(machine, stream, std::move(work));
    }
    // Recorded: the nodes keep the partition they were captured on, and run even when its green
    // context is gone.
    stream.busy_until = run_graph(machine, stream, exec.graph, start_time(machine, stream));
    Device& device = *stream.context->device;
    device.busy_until = std::max(device.busy_until, stream.busy_until);
}

struct UpdateProblem {
    int result = kUpdateSuccess;
    Handle node = 0;
};

UpdateProblem compare(const Graph& now, const Graph& wanted) {
    if (now.nodes.size() != wanted.nodes.size())
        return {kUpdateTopologyChanged, 0};
    for (std::size_t i = 0; i < now.nodes.size(); i++) {
        const Node& old_node = *now.nodes[i];
        const Node& new_node = *wanted.nodes[i];
        if (old_node.dependencies.size() != new_node.dependencies.size())
            return {kUpdateTopologyChanged, new_node.handle};
        if (old_node.work.kind != new_node.work.kind)
            return {kUpdateTypeChanged, new_node.handle};
        // Recorded: a graph that was captured on another partition is refused with this.
        if (old_node.work.kind == Work::Kind::Kernel &&
            old_node.work.context != new_node.work.context)
            return {kUpdateUnsupportedFunctionChange, new_node.handle};
    }
    return {};
}

// Tells what is in the way even when the call fails; of handles that are none nothing is.
CUresult update(Machine& machine, CUgraphExec exec_handle, CUgraph graph_handle,
                CUgraphExecUpdateResultInfo& info) {
    info = {};
    const GraphExec* const exec = find(machine.graph_execs, exec_handle);
    const Graph* const graph = find(machine.graphs, graph_handle);
    if (exec == nullptr || graph == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const UpdateProblem problem = compare(exec->graph, *graph);
    info.result = static_cast<CUgraphExecUpdateResult>(problem.result);
    info.errorNode = to_pointer<CUgraphNode>(problem.node);
    if (problem.result != kUpdateSuccess)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    for (std::size_t i = 0; i < graph->nodes.size(); i++) {
        Work& work = exec->graph.nodes[i]->work;
        const Handle child = work.child;
        work = graph->nodes[i]->work;
        work.child = child;
    }
    return CUDA_SUCCESS;
}

void set_kernel(Machine& machine, CUgraphExec handle, CUgraphNode source,
                const CUDA_KERNEL_NODE_PARAMS_v2& parameters) {
    const auto& nodes = executable_of(machine, handle).graph.nodes;
    const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const auto& node) {
        return node->origin == to_handle(source) && node->work.kind == Work::Kind::Kernel;
    });
    require(found != nodes.end());
    Work work = (*found)->work;
    change_kernel(machine, parameters, work);
    require(work.context == (*found)->work.context); // recorded
    (*found)->work = std::move(work);
}

} // namespace

GCX_SIM_API(cuGraphInstantiateWithFlags, CUgraphExec* out, CUgraph graph,
            unsigned long long flags) {
    GCX_SIM_BODY(instantiate(machine, out, graph, flags));
}

// The variant before there were flags.
GCX_SIM_API(cuGraphInstantiate_v2, CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char*,
            std::size_t) {
    GCX_SIM_BODY({
        if (error_node != nullptr)
            *error_node = nullptr;
        instantiate(machine, out, graph, 0);
    });
}

GCX_SIM_STREAM_API(cuGraphInstantiateWithParams, _ptsz,
                   (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters),
                   (out, graph, parameters)) {
    GCX_SIM_BODY({
        require(parameters != nullptr);
        parameters->hErrNode_out = nullptr;
        parameters->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
        instantiate(machine, out, graph, parameters->flags);
        parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    });
}

GCX_SIM_STREAM_API(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream), (exec, stream)) {
    GCX_SIM_BODY(launch(machine, exec, stream));
}

GCX_SIM_STREAM_API(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream stream), (exec, stream)) {
    GCX_SIM_BODY({
        stream_of(machine, stream);
        executable_of(machine, exec);
    });
}

GCX_SIM_API(cuGraphExecGetFlags, CUgraphExec handle, cuuint64_t* out) {
    GCX_SIM_BODY(give(out, executable_of(machine, handle).flags));
}

GCX_SIM_API(cuGraphExecDestroy, CUgraphExec handle) {
    GCX_SIM_BODY(destroy(machine, handle));
}

GCX_SIM_API(cuGraphExecUpdate, CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
            CUgraphExecUpdateResult* result) {
    GCX_SIM_BODY({
        CUgraphExecUpdateResultInfo info{};
        const CUresult code = update(machine, exec, graph, info);
        if (error_node != nullptr)
            *error_node = info.errorNode;
        if (result != nullptr)
            *result = info.result;
        return code;
    });
}

GCX_SIM_API(cuGraphExecUpdate_v2, CUgraphExec exec, CUgraph graph,
            CUgraphExecUpdateResultInfo* info) {
    GCX_SIM_BODY({
        CUgraphExecUpdateResultInfo unwanted{};
        return update(machine, exec, graph, info == nullptr ? unwanted : *info);
    });
}

GCX_SIM_API(cuGraphExecKernelNodeSetParams, CUgraphExec exec, CUgraphNode node,
            const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    GCX_SIM_BODY(set_kernel(machine, exec, node, widen(parameters)));
}

GCX_SIM_API(cuGraphExecKernelNodeSetParams_v2, CUgraphExec exec, CUgraphNode node,
            const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    GCX_SIM_BODY(set_kernel(machine, exec, node, known(parameters)));
}

} // namespace gcx::sim
