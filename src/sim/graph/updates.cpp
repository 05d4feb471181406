// What may be changed of an executable graph.
#include "sim/device/device.hpp"
#include "sim/edge/entry.hpp"
#include "sim/graph/graph.hpp"
#include "sim/work/work.hpp"

#include <algorithm>
#include <unordered_map>

namespace gcx::sim {
namespace {

using Nodes = std::vector<std::unique_ptr<Node>>;

CUresult differs(CUgraphExecUpdateResultInfo& info, CUgraphExecUpdateResult how, Handle node) {
    info.result = how;
    info.errorNode = to_pointer<CUgraphNode>(node);
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

// The header: nodes are paired in the order in which they were added.
bool same_edges(const Nodes& now, const Nodes& wanted, std::size_t at) {
    const auto place = [](const Nodes& nodes, Handle handle) {
        return std::find_if(nodes.begin(), nodes.end(),
                            [&](const auto& node) { return node->handle == handle; }) -
               nodes.begin();
    };
    return std::equal(now[at]->dependencies.begin(), now[at]->dependencies.end(),
                      wanted[at]->dependencies.begin(), wanted[at]->dependencies.end(),
                      [&](const Edge& one, const Edge& other) {
                          return same_data(one.data, other.data) &&
                                 place(now, one.node) == place(wanted, other.node);
                      });
}

int priority_of(const Work& work) {
    const auto kept = work.attributes.find(CU_LAUNCH_ATTRIBUTE_PRIORITY);
    int priority = 0;
    if (kept != work.attributes.end())
        kept->second.copy(reinterpret_cast<char*>(&priority), sizeof priority);
    return priority;
}

CUgraphExecUpdateResult kernel_difference(Machine& machine, const Work& now, const Work& wanted,
                                          bool priorities_count) {
    // Recorded: a graph that was captured on another partition is refused with this.
    if (now.context != wanted.context)
        return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    // The header: the device may change neither.
    if (is_updatable(now) || is_updatable(wanted))
        return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    // The header says that these can't change; which error that is, is assumed.
    if (now.config.cooperative != wanted.config.cooperative ||
        (priorities_count && priority_of(now) != priority_of(wanted)))
        return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    // Assumed: what would not be instantiated is no update either.
    try {
        check_launch(machine, *wanted.context, wanted.function, wanted.config);
    } catch (const Refusal&) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult compare(Machine& machine, const Graph& now, const Graph& wanted, bool priorities_count,
                 CUgraphExecUpdateResultInfo& info) {
    if (now.nodes.size() != wanted.nodes.size())
        return differs(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, 0);
    for (std::size_t i = 0; i < now.nodes.size(); i++) {
        const Work& old_work = now.nodes[i]->work;
        const Work& new_work = wanted.nodes[i]->work;
        const Handle node = wanted.nodes[i]->handle;
        if (!same_edges(now.nodes, wanted.nodes, i))
            return differs(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node);
        if (old_work.kind != new_work.kind)
            return differs(info, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, node);
        // The header has this of conditions; of memory and the context of copies it is assumed.
        if (old_work.kind != Work::Kind::Kernel &&
            (old_work.context != new_work.context ||
             old_work.bodies.size() != new_work.bodies.size() ||
             old_work.owned_address != new_work.owned_address))
            return differs(info, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, node);
        if (old_work.kind == Work::Kind::Kernel) {
            const CUgraphExecUpdateResult how =
                kernel_difference(machine, old_work, new_work, priorities_count);
            if (how != CU_GRAPH_EXEC_UPDATE_SUCCESS)
                return differs(info, how, node);
        }
        const std::vector<Handle> old_inner = inner_graphs(old_work);
        const std::vector<Handle> new_inner = inner_graphs(new_work);
        for (std::size_t j = 0; j < old_inner.size(); j++) {
            const CUresult inner = compare(machine, *machine.graphs[old_inner[j]],
                                           *machine.graphs[new_inner[j]], priorities_count, info);
            if (inner != CUDA_SUCCESS)
                return inner;
        }
    }
    return CUDA_SUCCESS;
}

void take_over(Machine& machine, Graph& now, const Graph& wanted) {
    for (std::size_t i = 0; i < wanted.nodes.size(); i++) {
        Work& work = now.nodes[i]->work;
        const Work& source = wanted.nodes[i]->work;
        if (work.child != 0)
            take_over(machine, *machine.graphs[work.child], *machine.graphs[source.child]);
        for (std::size_t j = 0; j < work.bodies.size(); j++)
            take_over(machine, *machine.graphs[work.bodies[j]], *machine.graphs[source.bodies[j]]);
        const Handle child = work.child;
        std::vector<Handle> bodies = std::move(work.bodies);
        work = source;
        work.child = child;
        work.bodies = std::move(bodies);
    }
}

Node* find_copy(const Machine& machine, const Graph& graph, Handle source) {
    for (const auto& node : graph.nodes) {
        if (node->origin == source)
            return node.get();
        for (const Handle inner : inner_graphs(node->work))
            if (Node* const found = find_copy(machine, *machine.graphs.at(inner), source))
                return found;
    }
    return nullptr;
}

// A node's new work, which by the header changes nothing but later launches.
void replace(Machine& machine, CUgraphExec exec, CUgraphNode handle, Work work) {
    Node& node = node_in(machine, exec, handle);
    require_kind(node.work, work.kind);
    change_work(node, std::move(work));
}

// Recorded: copies and fills stay in their context, whichever is given.
void replace_in(Machine& machine, CUgraphExec exec, CUgraphNode handle, Work work,
                CUcontext context) {
    context_or_current(machine, context);
    replace(machine, exec, handle, std::move(work));
}

} // namespace

// Assumed of nodes in child graphs and bodies: they are found as those beside them are.
Node& node_in(Machine& machine, CUgraphExec exec, CUgraphNode source) {
    node_of(machine, source); // the header: it must not have been removed
    return known(find_copy(machine, executable_of(machine, exec).graph, to_handle(source)));
}

CUresult update_nodes(Machine& machine, Graph& now, const Graph& wanted, bool priorities_count,
                      CUgraphExecUpdateResultInfo& info) {
    info = {};
    const CUresult result = compare(machine, now, wanted, priorities_count, info);
    if (result == CUDA_SUCCESS)
        take_over(machine, now, wanted);
    return result;
}

CUresult update(Machine& machine, CUgraphExec exec_handle, CUgraph graph_handle,
                CUgraphExecUpdateResultInfo& info) {
    info = {};
    info.result = CU_GRAPH_EXEC_UPDATE_ERROR;
    GraphExec& exec = executable_of(machine, exec_handle);
    const bool priorities_count = (exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0;
    return update_nodes(machine, exec.graph, graph_of(machine, graph_handle), priorities_count,
                        info);
}

void set_exec_kernel(Machine& machine, CUgraphExec exec, CUgraphNode source,
                     const CUDA_KERNEL_NODE_PARAMS_v2& parameters) {
    Node& node = node_in(machine, exec, source);
    require_kind(node.work, Work::Kind::Kernel);
    Work work = node.work;
    change_kernel(machine, parameters, work);
    require(work.context == node.work.context); // recorded
    check_launch(machine, *work.context, work.function, work.config);
    node.work = std::move(work);
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
    GCX_SIM_BODY(set_exec_kernel(machine, exec, node, widen(parameters)));
}

GCX_SIM_API(cuGraphExecKernelNodeSetParams_v2, CUgraphExec exec, CUgraphNode node,
            const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    GCX_SIM_BODY(set_exec_kernel(machine, exec, node, known(parameters)));
}

GCX_SIM_API(cuGraphExecMemsetNodeSetParams, CUgraphExec exec, CUgraphNode node,
            const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext context) {
    GCX_SIM_BODY(replace_in(machine, exec, node, memset_work(machine, known(parameters)), context));
}

GCX_SIM_API(cuGraphExecMemcpyNodeSetParams, CUgraphExec exec, CUgraphNode node,
            const CUDA_MEMCPY3D* parameters, CUcontext context) {
    GCX_SIM_BODY(replace_in(machine, exec, node, memcpy_work(machine, known(parameters)), context));
}

} // namespace gcx::sim
