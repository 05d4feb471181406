// Building graphs: nodes, edges, parameters.
#include "sim/edge/entry.hpp"
#include "sim/graph/graph.hpp"

#include <algorithm>
#include <cstring>

namespace gcx::sim {
namespace {

CUresult add(Machine& machine, CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies,
             std::size_t count, Work work) {
    Graph* const graph = find(machine.graphs, handle);
    if (out == nullptr || graph == nullptr || (count > 0 && dependencies == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    std::vector<Handle> after;
    for (std::size_t i = 0; i < count; i++) {
        if (find_node(*graph, to_handle(dependencies[i])) == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        after.push_back(to_handle(dependencies[i]));
    }
    *out = to_pointer<CUgraphNode>(add_node(*graph, std::move(work), std::move(after)).handle);
    return CUDA_SUCCESS;
}

CUDA_KERNEL_NODE_PARAMS_v2 widen(const CUDA_KERNEL_NODE_PARAMS_v1& old) {
    CUDA_KERNEL_NODE_PARAMS_v2 parameters{};
    std::memcpy(&parameters, &old, sizeof old); // the later one has two fields more at its end
    return parameters;
}

CUresult add_kernel(Machine& machine, CUgraphNode* out, CUgraph graph,
                    const CUgraphNode* dependencies, std::size_t count,
                    const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    if (parameters == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    Work work;
    const CUresult code = read_kernel_parameters(machine, *parameters, work);
    return code == CUDA_SUCCESS ? add(machine, out, graph, dependencies, count, std::move(work))
                                : code;
}

CUresult kernel_node(Machine& machine, CUgraphNode handle, Node*& node) {
    node = find_node(machine, handle);
    return node != nullptr && node->work.kind == Work::Kind::Kernel ? CUDA_SUCCESS
                                                                    : CUDA_ERROR_INVALID_VALUE;
}

CUresult set_kernel(Machine& machine, CUgraphNode handle,
                    const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    Node* node = nullptr;
    if (const CUresult code = kernel_node(machine, handle, node); code != CUDA_SUCCESS)
        return code;
    if (parameters == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    Work work = node->work;
    if (const CUresult code = change_kernel(machine, *parameters, work); code != CUDA_SUCCESS)
        return code;
    // What a query of the parameters gave out points to the node's arguments, for as long as it
    // lives.
    if (work.arguments.size() == node->work.arguments.size()) {
        std::copy(work.arguments.begin(), work.arguments.end(), node->work.arguments.begin());
        work.arguments = std::move(node->work.arguments);
    }
    node->work = std::move(work);
    return CUDA_SUCCESS;
}

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
    default:
        return CU_GRAPH_NODE_TYPE_EMPTY;
    }
}

// Lists are given in the usual two steps: the number, then as many as there is room for.
CUresult give_nodes(const std::vector<Handle>& nodes, CUgraphNode* out, std::size_t* count) {
    if (count == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    if (out == nullptr) {
        *count = nodes.size();
        return CUDA_SUCCESS;
    }
    for (std::size_t i = 0; i < *count; i++)
        out[i] = i < nodes.size() ? to_pointer<CUgraphNode>(nodes[i]) : nullptr;
    *count = std::min(*count, nodes.size());
    return CUDA_SUCCESS;
}

CUresult get_nodes(Machine& machine, CUgraph handle, CUgraphNode* out, std::size_t* count,
                   bool roots_only) {
    const Graph* const graph = find(machine.graphs, handle);
    if (graph == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    std::vector<Handle> nodes;
    for (const auto& node : graph->nodes)
        if (!roots_only || node->dependencies.empty())
            nodes.push_back(node->handle);
    return give_nodes(nodes, out, count);
}

CUresult get_edges(Machine& machine, CUgraph handle, CUgraphNode* from, CUgraphNode* to,
                   CUgraphEdgeData* data, std::size_t* count) {
    const Graph* const graph = find(machine.graphs, handle);
    if (graph == nullptr || count == nullptr || (from == nullptr) != (to == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    std::vector<Handle> sources;
    std::vector<Handle> targets;
    for (const auto& node : graph->nodes) {
        for (const Handle dependency : node->dependencies) {
            sources.push_back(dependency);
            targets.push_back(node->handle);
        }
    }
    std::size_t room = *count;
    if (data != nullptr)
        std::memset(data, 0, sizeof *data * std::min(room, sources.size()));
    const CUresult code = give_nodes(sources, from, count);
    return code == CUDA_SUCCESS && to != nullptr ? give_nodes(targets, to, &room) : code;
}

CUresult change_edges(Machine& machine, CUgraph handle, const CUgraphNode* from,
                      const CUgraphNode* to, std::size_t count, bool add_them) {
    Graph* const graph = find(machine.graphs, handle);
    if (graph == nullptr || (count > 0 && (from == nullptr || to == nullptr)))
        return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; i++) {
        Node* const node = find_node(*graph, to_handle(to[i]));
        if (node == nullptr || find_node(*graph, to_handle(from[i])) == nullptr || from[i] == to[i])
            return CUDA_ERROR_INVALID_VALUE;
        const auto edge =
            std::find(node->dependencies.begin(), node->dependencies.end(), to_handle(from[i]));
        if (add_them == (edge != node->dependencies.end()))
            return CUDA_ERROR_INVALID_VALUE;
        if (add_them)
            node->dependencies.push_back(to_handle(from[i]));
        else
            node->dependencies.erase(edge);
    }
    return CUDA_SUCCESS;
}

CUresult get_neighbours(Machine& machine, CUgraphNode handle, CUgraphNode* out,
                        CUgraphEdgeData* data, std::size_t* count, bool dependents) {
    const Node* const node = find_node(machine, handle);
    if (node == nullptr || count == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    std::vector<Handle> nodes = node->dependencies;
    if (dependents) {
        nodes.clear();
        for (const auto& other : machine.graphs[node->graph]->nodes)
            if (std::find(other->dependencies.begin(), other->dependencies.end(), node->handle) !=
                other->dependencies.end())
                nodes.push_back(other->handle);
    }
    if (data != nullptr && out != nullptr)
        std::memset(data, 0, sizeof *data * std::min(*count, nodes.size()));
    return give_nodes(nodes, out, count);
}

template <class T>
CUresult get_kept(Machine& machine, CUgraphNode handle, Work::Kind kind, T* out) {
    const Node* const node = find_node(machine, handle);
    if (node == nullptr || out == nullptr || node->work.kind != kind ||
        node->work.parameters.size() != sizeof *out)
        return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(out, node->work.parameters.data(), sizeof *out);
    return CUDA_SUCCESS;
}

} // namespace

GCX_SIM_API(cuGraphCreate, CUgraph* out, unsigned flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (out == nullptr || flags != 0)
            return CUDA_ERROR_INVALID_VALUE;
        *out = to_pointer<CUgraph>(new_graph(machine).handle);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuGraphDestroy, CUgraph handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Graph* const graph = find(machine.graphs, handle);
        if (graph == nullptr || graph->hidden)
            return CUDA_ERROR_INVALID_VALUE;
        delete_graph(machine, graph->handle);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuGraphClone, CUgraph* out, CUgraph handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Graph* const graph = find(machine.graphs, handle);
        if (out == nullptr || graph == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Graph& copy = new_graph(machine);
        copy_nodes(machine, *graph, copy);
        machine.clock_ns += 1'100 * copy.nodes.size(); // recorded: 1000 nodes 1.1 ms
        *out = to_pointer<CUgraph>(copy.handle);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuGraphNodeFindInClone, CUgraphNode* out, CUgraphNode original, CUgraph handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Graph* const graph = find(machine.graphs, handle);
        if (out == nullptr || graph == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        for (const auto& node : graph->nodes) {
            if (node->origin == to_handle(original)) {
                *out = to_pointer<CUgraphNode>(node->handle);
                return CUDA_SUCCESS;
            }
        }
        return CUDA_ERROR_INVALID_VALUE;
    });
}

GCX_SIM_API(cuGraphGetNodes, CUgraph graph, CUgraphNode* out, std::size_t* count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return get_nodes(machine, graph, out, count, false);
    });
}

GCX_SIM_API(cuGraphGetRootNodes, CUgraph graph, CUgraphNode* out, std::size_t* count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return get_nodes(machine, graph, out, count, true);
    });
}

GCX_SIM_API(cuGraphGetEdges, CUgraph graph, CUgraphNode* from, CUgraphNode* to,
            std::size_t* count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return get_edges(machine, graph, from, to, nullptr, count);
    });
}

GCX_SIM_API(cuGraphGetEdges_v2, CUgraph graph, CUgraphNode* from, CUgraphNode* to,
            CUgraphEdgeData* data, std::size_t* count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return get_edges(machine, graph, from, to, data, count);
    });
}

GCX_SIM_API(cuGraphNodeGetDependencies, CUgraphNode node, CUgraphNode* out, std::size_t* count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return get_neighbours(machine, node, out, nullptr, count, false);
    });
}

GCX_SIM_API(cuGraphNodeGetDependencies_v2, CUgraphNode node, CUgraphNode* out,
            CUgraphEdgeData* data, std::size_t* count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return get_neighbours(machine, node, out, data, count, false);
    });
}

GCX_SIM_API(cuGraphNodeGetDependentNodes, CUgraphNode node, CUgraphNode* out, std::size_t* count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return get_neighbours(machine, node, out, nullptr, count, true);
    });
}

GCX_SIM_API(cuGraphNodeGetDependentNodes_v2, CUgraphNode node, CUgraphNode* out,
            CUgraphEdgeData* data, std::size_t* count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return get_neighbours(machine, node, out, data, count, true);
    });
}

GCX_SIM_API(cuGraphAddDependencies, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
            std::size_t count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return change_edges(machine, graph, from, to, count, true);
    });
}

GCX_SIM_API(cuGraphAddDependencies_v2, CUgraph graph, const CUgraphNode* from,
            const CUgraphNode* to, const CUgraphEdgeData*, std::size_t count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return change_edges(machine, graph, from, to, count, true);
    });
}

GCX_SIM_API(cuGraphRemoveDependencies, CUgraph graph, const CUgraphNode* from,
            const CUgraphNode* to, std::size_t count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return change_edges(machine, graph, from, to, count, false);
    });
}

GCX_SIM_API(cuGraphRemoveDependencies_v2, CUgraph graph, const CUgraphNode* from,
            const CUgraphNode* to, const CUgraphEdgeData*, std::size_t count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return change_edges(machine, graph, from, to, count, false);
    });
}

GCX_SIM_API(cuGraphDestroyNode, CUgraphNode handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Node* const node = find_node(machine, handle);
        if (node == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        if (node->work.child != 0)
            delete_graph(machine, node->work.child);
        auto& nodes = machine.graphs[node->graph]->nodes;
        for (const auto& other : nodes)
            std::erase(other->dependencies, node->handle);
        std::erase_if(nodes, [&](const auto& other) { return other.get() == node; });
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuGraphNodeGetType, CUgraphNode handle, CUgraphNodeType* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Node* const node = find_node(machine, handle);
        if (node == nullptr || out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        *out = node_type(node->work);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuGraphAddKernelNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
            std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (parameters == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        const CUDA_KERNEL_NODE_PARAMS_v2 wide = widen(*parameters);
        return add_kernel(machine, out, graph, dependencies, count, &wide);
    });
}

GCX_SIM_API(cuGraphAddKernelNode_v2, CUgraphNode* out, CUgraph graph,
            const CUgraphNode* dependencies, std::size_t count,
            const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return add_kernel(machine, out, graph, dependencies, count, parameters);
    });
}

GCX_SIM_API(cuGraphKernelNodeGetParams, CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Node* node = nullptr;
        if (const CUresult code = kernel_node(machine, handle, node); code != CUDA_SUCCESS)
            return code;
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        CUDA_KERNEL_NODE_PARAMS_v2 wide;
        write_kernel_parameters(machine, *node, wide);
        std::memcpy(out, &wide, sizeof *out);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuGraphKernelNodeGetParams_v2, CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Node* node = nullptr;
        if (const CUresult code = kernel_node(machine, handle, node); code != CUDA_SUCCESS)
            return code;
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        write_kernel_parameters(machine, *node, *out);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuGraphKernelNodeSetParams, CUgraphNode node,
            const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (parameters == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        const CUDA_KERNEL_NODE_PARAMS_v2 wide = widen(*parameters);
        return set_kernel(machine, node, &wide);
    });
}

GCX_SIM_API(cuGraphKernelNodeSetParams_v2, CUgraphNode node,
            const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return set_kernel(machine, node, parameters);
    });
}

GCX_SIM_API(cuGraphKernelNodeCopyAttributes, CUgraphNode to, CUgraphNode from) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Node* target = nullptr;
        Node* source = nullptr;
        if (const CUresult code = kernel_node(machine, to, target); code != CUDA_SUCCESS)
            return code;
        if (const CUresult code = kernel_node(machine, from, source); code != CUDA_SUCCESS)
            return code;
        if (target->work.context != source->work.context) // recorded
            return CUDA_ERROR_INVALID_VALUE;
        target->work.attributes = source->work.attributes;
        std::copy_n(source->work.config.cluster, 3, target->work.config.cluster);
        target->work.config.cooperative = source->work.config.cooperative;
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuGraphKernelNodeGetAttribute, CUgraphNode handle, CUlaunchAttributeID attribute,
            CUlaunchAttributeValue* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Node* node = nullptr;
        if (const CUresult code = kernel_node(machine, handle, node); code != CUDA_SUCCESS)
            return code;
        if (out == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        std::memset(out, 0, sizeof *out);
        if (const auto kept = node->work.attributes.find(attribute);
            kept != node->work.attributes.end())
            std::memcpy(out, kept->second.data(), std::min(sizeof *out, kept->second.size()));
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuGraphKernelNodeSetAttribute, CUgraphNode handle, CUlaunchAttributeID attribute,
            const CUlaunchAttributeValue* value) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Node* node = nullptr;
        if (const CUresult code = kernel_node(machine, handle, node); code != CUDA_SUCCESS)
            return code;
        if (value == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        CUlaunchAttribute one{};
        one.id = attribute;
        one.value = *value;
        LaunchConfig config = node->work.config;
        std::map<int, std::string> kept = node->work.attributes;
        read_launch_attributes(&one, 1, config, kept);
        if (const CUresult code =
                check_launch(machine, *node->work.context, node->work.function, config);
            code != CUDA_SUCCESS)
            return code;
        node->work.config = config;
        node->work.attributes = std::move(kept);
        return CUDA_SUCCESS;
    });
}

GCX_SIM_API(cuGraphAddEmptyNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
            std::size_t count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Work work;
        work.kind = Work::Kind::Empty;
        return add(machine, out, graph, dependencies, count, std::move(work));
    });
}

GCX_SIM_API(cuGraphAddMemsetNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
            std::size_t count, const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Work work;
        if (const CUresult code = check_context(machine, handle, work.context);
            code != CUDA_SUCCESS)
            return code;
        if (parameters == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        const CUresult code = memset_work(machine, *parameters, work);
        return code == CUDA_SUCCESS ? add(machine, out, graph, dependencies, count, std::move(work))
                                    : code;
    });
}

GCX_SIM_API(cuGraphMemsetNodeGetParams, CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return get_kept(machine, node, Work::Kind::Memset, out);
    });
}

GCX_SIM_API(cuGraphAddMemcpyNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
            std::size_t count, const CUDA_MEMCPY3D* parameters, CUcontext handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        Work work;
        if (const CUresult code = check_context(machine, handle, work.context);
            code != CUDA_SUCCESS)
            return code;
        if (parameters == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        const CUresult code = memcpy_work(machine, *parameters, work);
        return code == CUDA_SUCCESS ? add(machine, out, graph, dependencies, count, std::move(work))
                                    : code;
    });
}

GCX_SIM_API(cuGraphMemcpyNodeGetParams, CUgraphNode node, CUDA_MEMCPY3D* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return get_kept(machine, node, Work::Kind::Memcpy, out);
    });
}

GCX_SIM_API(cuGraphAddHostNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
            std::size_t count, const CUDA_HOST_NODE_PARAMS* parameters) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (parameters == nullptr || parameters->fn == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Work work;
        work.kind = Work::Kind::Host;
        const CUDA_HOST_NODE_PARAMS copy = *parameters;
        work.host = [copy] { copy.fn(copy.userData); };
        work.parameters = to_bytes(copy);
        return add(machine, out, graph, dependencies, count, std::move(work));
    });
}

GCX_SIM_API(cuGraphHostNodeGetParams, CUgraphNode node, CUDA_HOST_NODE_PARAMS* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return get_kept(machine, node, Work::Kind::Host, out);
    });
}

GCX_SIM_API(cuGraphAddEventRecordNode, CUgraphNode* out, CUgraph graph,
            const CUgraphNode* dependencies, std::size_t count, CUevent event) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (find(machine.events, event) == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Work work;
        work.kind = Work::Kind::EventRecord;
        work.event = to_handle(event);
        return add(machine, out, graph, dependencies, count, std::move(work));
    });
}

GCX_SIM_API(cuGraphAddEventWaitNode, CUgraphNode* out, CUgraph graph,
            const CUgraphNode* dependencies, std::size_t count, CUevent event) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (find(machine.events, event) == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        Work work;
        work.kind = Work::Kind::EventWait;
        work.event = to_handle(event);
        return add(machine, out, graph, dependencies, count, std::move(work));
    });
}

GCX_SIM_API(cuGraphAddChildGraphNode, CUgraphNode* out, CUgraph graph,
            const CUgraphNode* dependencies, std::size_t count, CUgraph handle) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Graph* const source = find(machine.graphs, handle);
        if (source == nullptr || handle == graph)
            return CUDA_ERROR_INVALID_VALUE;
        Graph& child = new_graph(machine);
        child.hidden = true;
        copy_nodes(machine, *source, child);
        Work work;
        work.kind = Work::Kind::ChildGraph;
        work.child = child.handle;
        const CUresult code = add(machine, out, graph, dependencies, count, std::move(work));
        if (code != CUDA_SUCCESS)
            delete_graph(machine, child.handle);
        return code;
    });
}

GCX_SIM_API(cuGraphChildGraphNodeGetGraph, CUgraphNode handle, CUgraph* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        const Node* const node = find_node(machine, handle);
        if (node == nullptr || out == nullptr || node->work.child == 0)
            return CUDA_ERROR_INVALID_VALUE;
        *out = to_pointer<CUgraph>(node->work.child);
        return CUDA_SUCCESS;
    });
}

} // namespace gcx::sim
