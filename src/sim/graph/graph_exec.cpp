// Executable graphs.
#include "sim/edge/entry.hpp"
#include "sim/graph/graph.hpp"

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

CUresult instantiate(Machine& machine, CUgraphExec* out, CUgraph handle, unsigned long long flags) {
    Graph* const graph = find(machine.graphs, handle);
    if (out == nullptr || graph == nullptr || flags > 15)
        return CUDA_ERROR_INVALID_VALUE;
    if (!graph->nodes.empty() && in_order(*graph).empty())
        return CUDA_ERROR_INVALID_VALUE;
    Context* context = nullptr;
    for (const auto& node : graph->nodes)
        if (node->work.context != nullptr)
            context = node->work.context;
    if (context == nullptr)
        if (const CUresult code = current_context(machine, context); code != CUDA_SUCCESS)
            return code;
    if (!charge_memory(*context->device, kBytesPerNode * graph->nodes.size()))
        return CUDA_ERROR_OUT_OF_MEMORY;
    auto exec = std::make_unique<GraphExec>();
    exec->handle = new_handle();
    exec->flags = flags;
    exec->device = context->device;
    copy_nodes(machine, *graph, exec->graph);
    machine.clock_ns += kInstantiateNs * graph->nodes.size();
    *out = to_pointer<CUgraphExec>(exec->handle);
    machine.graph_execs[exec->handle] = std::move(exec);
    return CUDA_SUCCESS;
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

CUresult launch(Machine& machine, CUgraphExec handle, CUstream stream_handle) {
    if (machine.dead_streams.contains(to_handle(stream_handle)))
        crash("a launch on a destroyed stream");
    const GraphExec* const exec = find(machine.graph_execs, handle);
    if (exec == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    Stream* stream = nullptr;
    if (const CUresult code = check_stream(machine, stream_handle, stream); code != CUDA_SUCCESS)
        return code;
    if (stream->capture != nullptr) {
        Graph& child = new_graph(machine);
        child.hidden = true;
        copy_nodes(machine, exec->graph, child);
        Work work;
        work.kind = Work::Kind::ChildGraph;
        work.child = child.handle;
        return submit(machine, *stream, std::move(work));
    }
    // Recorded: the nodes keep the partition they were captured on, and run even when its green
    // context is gone.
    stream->busy_until = run_graph(machine, *stream, exec->graph, start_time(machine, *stream));
    Device& device = *stream->context->device;
    device.busy_until = std::max(device.busy_until, stream->busy_until);
    return CUDA_SUCCESS;
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

CUresult update(Machine& machine, CUgraphExec handle, CUgraph graph_handle,
                UpdateProblem& problem) {
    GraphExec* const exec = find(machine.graph_execs, handle);
    const Graph* const graph = find(machine.graphs, graph_handle);
    if (exec == nullptr || graph == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    problem = compare(exec->graph, *graph);
    if (problem.result != kUpdateSuccess)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    for (std::size_t i = 0; i < graph->nodes.size(); i++) {
        const Handle child = exec->graph.nodes[i]->work.child;
        exec->graph.nodes[i]->work = graph->nodes[i]->work;
        exec->graph.nodes[i]->work.child = child;
    }
    return CUDA_SUCCESS;
}

CUresult set_kernel(Machine& machine, CUgraphExec handle, CUgraphNode node_handle,
                    const CUDA_KERNEL_NODE_PARAMS_v2& parameters) {
    GraphExec* const exec = find(machine.graph_execs, handle);
    if (exec == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    for (const auto& node : exec->graph.nodes) {
        if (node->origin != to_handle(node_handle) || node->work.kind != Work::Kind::Kernel)
            continue;
        Work work = node->work;
        if (const CUresult code = change_kernel(machine, parameters, work); code != CUDA_SUCCESS)
            return code;
        if (work.context != node->work.context) // recorded
            return CUDA_ERROR_INVALID_VALUE;
        node->work = std::move(work);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

} // namespace

GCX_SIM_API(cuGraphInstantiateWithFlags, CUgraphExec* out, CUgraph graph,
            unsigned long long flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return instantiate(machine, out, graph, flags);
    });
}

// The variant before there were flags.
GCX_SIM_API(cuGraphInstantiate_v2, CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char*,
            std::size_t) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (error_node != nullptr)
            *error_node = nullptr;
        return instantiate(machine, out, graph, 0);
    });
}

GCX_SIM_API(cuGraphInstantiateWithParams, CUgraphExec* out, CUgraph graph,
            CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (parameters == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        const CUresult code = instantiate(machine, out, graph, parameters->flags);
        parameters->hErrNode_out = nullptr;
        parameters->result_out =
            code == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
        return code;
    });
}

GCX_SIM_API(cuGraphLaunch, CUgraphExec exec, CUstream stream) {
    return call(__func__,
                [&](Machine& machine) -> CUresult { return launch(machine, exec, stream); });
}

GCX_SIM_API(cuGraphUpload, CUgraphExec exec, CUstream handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Stream* stream = nullptr;
        if (const CUresult code = check_stream(machine, handle, stream); code != CUDA_SUCCESS)
            return code;
        return find(machine.graph_execs, exec) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuGraphExecGetFlags, CUgraphExec handle, cuuint64_t* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const GraphExec* const exec = find(machine.graph_execs, handle);
        if (exec == nullptr || out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        *out = exec->flags;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuGraphExecDestroy, CUgraphExec handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        GraphExec* const exec = find(machine.graph_execs, handle);
        if (exec == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        for (const auto& node : exec->graph.nodes)
            if (node->work.child != 0)
                delete_graph(machine, node->work.child);
        exec->device->memory_used -=
            std::min(exec->device->memory_used, kBytesPerNode * exec->graph.nodes.size());
        machine.graph_execs.erase(to_handle(handle));
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuGraphExecUpdate, CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
            CUgraphExecUpdateResult* result) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        UpdateProblem problem;
        const CUresult code = update(machine, exec, graph, problem);
        if (error_node != nullptr)
            *error_node = to_pointer<CUgraphNode>(problem.node);
        if (result != nullptr)
            *result = static_cast<CUgraphExecUpdateResult>(problem.result);
        return code;
    });
}

GCX_SIM_API(cuGraphExecUpdate_v2, CUgraphExec exec, CUgraph graph,
            CUgraphExecUpdateResultInfo* info) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        UpdateProblem problem;
        const CUresult code = update(machine, exec, graph, problem);
        if (info != nullptr) {
            info->result = static_cast<CUgraphExecUpdateResult>(problem.result);
            info->errorNode = to_pointer<CUgraphNode>(problem.node);
            info->errorFromNode = nullptr;
        }
        return code;
    });
}

GCX_SIM_API(cuGraphExecKernelNodeSetParams, CUgraphExec exec, CUgraphNode node,
            const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (parameters == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        CUDA_KERNEL_NODE_PARAMS_v2 wide{};
        std::copy_n(reinterpret_cast<const char*>(parameters), sizeof *parameters,
                    reinterpret_cast<char*>(&wide));
        return set_kernel(machine, exec, node, wide);
    });
}

GCX_SIM_API(cuGraphExecKernelNodeSetParams_v2, CUgraphExec exec, CUgraphNode node,
            const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return parameters == nullptr ? CUDA_ERROR_INVALID_VALUE
                                     : set_kernel(machine, exec, node, *parameters);
    });
}

} // namespace gcx::sim
