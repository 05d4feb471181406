// Graphs, and nodes of all kinds but kernels.
#include "sim/device/device.hpp"
#include "sim/edge/entry.hpp"
#include "sim/graph/graph.hpp"
#include "sim/work/work.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

CUgraphNodeType node_type(const Work& work) {
    switch (work.kind) {
    case Work::Kind::Kernel:
        return CU_GRAPH_NODE_TYPE_KERNEL;
    case Work::Kind::Memcpy:
        return CU_GRAPH_NODE_TYPE_MEMCPY;
    case Work::Kind::Memset:
        return CU_GRAPH_NODE_TYPE_MEMSET;
    case Work::Kind::Host:
        return CU_GRAPH_NODE_TYPE_HOST;
    case Work::Kind::EventRecord:
        return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    case Work::Kind::EventWait:
        return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    case Work::Kind::ChildGraph:
        return CU_GRAPH_NODE_TYPE_GRAPH;
    case Work::Kind::MemoryAlloc:
        return CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    case Work::Kind::MemoryFree:
        return CU_GRAPH_NODE_TYPE_MEM_FREE;
    case Work::Kind::Conditional:
        return CU_GRAPH_NODE_TYPE_CONDITIONAL;
    default:
        return CU_GRAPH_NODE_TYPE_EMPTY;
    }
}

template <class T>
void give_parameters(Machine& machine, CUgraphNode handle, Work::Kind kind, T* out) {
    const Work& work = node_of(machine, handle).work;
    give(out, parameters_of<T>(work, kind));
}

} // namespace

Work host_work(const CUDA_HOST_NODE_PARAMS& parameters) {
    require(parameters.fn != nullptr);
    Work work;
    work.kind = Work::Kind::Host;
    work.host = [parameters] { parameters.fn(parameters.userData); };
    work.parameters = to_bytes(parameters);
    return work;
}

Work event_work(Machine& machine, Work::Kind kind, CUevent event) {
    Work work;
    work.kind = kind;
    work.event = known(find(machine.events, event)).handle;
    return work;
}

Node& add_child(Machine& machine, const NodePlace& place, CUgraph child) {
    const Graph& source = graph_of(machine, child);
    require(child != place.graph);
    require(!holds_any(machine, source, kUncloned)); // the header's text
    Work work;
    work.kind = Work::Kind::ChildGraph;
    Node& node = add_node(machine, place, std::move(work));
    node.work.child = new_hidden_copy(machine, source).handle;
    return node;
}

GCX_SIM_API(cuGraphCreate, CUgraph* out, unsigned flags) {
    GCX_SIM_BODY({
        require(out != nullptr && flags == 0);
        give(out, new_graph(machine).handle);
    });
}

GCX_SIM_API(cuGraphDestroy, CUgraph handle) {
    GCX_SIM_BODY({
        const Graph& graph = graph_of(machine, handle);
        require(!graph.hidden);
        delete_graph(machine, graph.handle);
    });
}

GCX_SIM_API(cuGraphClone, CUgraph* out, CUgraph handle) {
    GCX_SIM_BODY({
        const Graph& graph = graph_of(machine, handle);
        require(out != nullptr);
        // The header says that it isn't supported; which error that is, is assumed.
        require(!holds_any(machine, graph, kUncloned), CUDA_ERROR_NOT_SUPPORTED);
        Graph& copy = new_graph(machine);
        copy_nodes(machine, graph, copy);
        machine.clock_ns += 1'100 * copy.nodes.size(); // recorded: 1000 nodes 1.1 ms
        give(out, copy.handle);
    });
}

GCX_SIM_API(cuGraphNodeFindInClone, CUgraphNode* out, CUgraphNode original, CUgraph handle) {
    GCX_SIM_BODY({
        const Graph& graph = graph_of(machine, handle);
        require(out != nullptr);
        const auto found =
            std::find_if(graph.nodes.begin(), graph.nodes.end(),
                         [&](const auto& node) { return node->origin == to_handle(original); });
        require(found != graph.nodes.end());
        give(out, (*found)->handle);
    });
}

GCX_SIM_API(cuGraphNodeGetType, CUgraphNode handle, CUgraphNodeType* out) {
    GCX_SIM_BODY(give(out, node_type(node_of(machine, handle).work)));
}

GCX_SIM_API(cuGraphAddEmptyNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
            std::size_t count) {
    GCX_SIM_BODY({
        Work work;
        work.kind = Work::Kind::Empty;
        add_node(machine, {out, graph, dependencies, count}, std::move(work));
    });
}

GCX_SIM_API(cuGraphAddMemsetNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
            std::size_t count, const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext handle) {
    GCX_SIM_BODY({
        Context& context = context_of(machine, handle);
        Work work = memset_work(machine, known(parameters));
        work.context = &context;
        add_node(machine, {out, graph, dependencies, count}, std::move(work));
    });
}

GCX_SIM_API(cuGraphMemsetNodeGetParams, CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) {
    GCX_SIM_BODY(give_parameters(machine, node, Work::Kind::Memset, out));
}

GCX_SIM_API(cuGraphAddMemcpyNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
            std::size_t count, const CUDA_MEMCPY3D* parameters, CUcontext handle) {
    GCX_SIM_BODY({
        Context& context = context_of(machine, handle);
        Work work = memcpy_work(machine, known(parameters));
        work.context = &context;
        add_node(machine, {out, graph, dependencies, count}, std::move(work));
    });
}

GCX_SIM_API(cuGraphMemcpyNodeGetParams, CUgraphNode node, CUDA_MEMCPY3D* out) {
    GCX_SIM_BODY(give_parameters(machine, node, Work::Kind::Memcpy, out));
}

GCX_SIM_API(cuGraphHostNodeGetParams, CUgraphNode node, CUDA_HOST_NODE_PARAMS* out) {
    GCX_SIM_BODY(give_parameters(machine, node, Work::Kind::Host, out));
}

GCX_SIM_API(cuGraphAddChildGraphNode, CUgraphNode* out, CUgraph graph,
            const CUgraphNode* dependencies, std::size_t count, CUgraph child) {
    GCX_SIM_BODY(add_child(machine, {out, graph, dependencies, count}, child));
}

GCX_SIM_API(cuGraphChildGraphNodeGetGraph, CUgraphNode handle, CUgraph* out) {
    GCX_SIM_BODY({
        const Node& node = node_of(machine, handle);
        require(node.work.child != 0);
        give(out, node.work.child);
    });
}

} // namespace gcx::sim
