// Graphs as sets of nodes and edges.
#include "sim/graph/graph.hpp"
#include "sim/device/device.hpp"
#include "sim/entry/entry.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace gcx::sim {

Graph& graph_of(Machine& machine, CUgraph handle) {
    return known(find(machine.graphs, handle));
}

Graph& new_graph(Machine& machine) {
    return create(machine.graphs);
}

Graph& new_hidden_copy(Machine& machine, const Graph& graph) {
    Graph& copy = new_graph(machine);
    copy.hidden = true;
    copy_nodes(machine, graph, copy);
    return copy;
}

std::vector<Handle> inner_graphs(const Work& work) {
    std::vector<Handle> graphs = work.bodies;
    if (work.child != 0)
        graphs.push_back(work.child);
    return graphs;
}

bool holds_any(const Machine& machine, const Graph& graph,
               std::initializer_list<Work::Kind> kinds) {
    return std::ranges::any_of(graph.nodes, [&](const auto& node) {
        const std::vector<Handle> inner = inner_graphs(node->work);
        return std::ranges::find(kinds, node->work.kind) != kinds.end() ||
               std::ranges::any_of(inner, [&](Handle handle) {
                   return holds_any(machine, *machine.graphs.at(handle), kinds);
               });
    });
}

void delete_graph(Machine& machine, Handle handle) {
    const auto found = machine.graphs.find(handle);
    if (found == machine.graphs.end())
        return;
    const std::unique_ptr<Graph> graph = std::move(found->second);
    machine.graphs.erase(found);
    delete_children(machine, *graph);
    // Assumed: the memory of allocation nodes exists as long as their graph.
    for (const auto& node : graph->nodes) {
        if (node->work.kind != Work::Kind::MemoryAlloc)
            continue;
        const auto memory = machine.allocations.find(node->work.owned_address);
        if (memory != machine.allocations.end())
            drop_allocation(machine, memory);
    }
}

void delete_children(Machine& machine, const Graph& graph) {
    for (const auto& node : graph.nodes)
        for (const Handle inner : inner_graphs(node->work))
            delete_graph(machine, inner);
}

Node* find_node(const Graph& graph, Handle node) {
    const auto found = graph.by_handle.find(node);
    return found == graph.by_handle.end() ? nullptr : found->second;
}

Node& node_of(Machine& machine, CUgraphNode node) {
    for (const auto& [handle, graph] : machine.graphs)
        if (Node* const found = find_node(*graph, to_handle(node)); found != nullptr)
            return *found;
    refuse(CUDA_ERROR_INVALID_VALUE);
}

bool same_data(const CUgraphEdgeData& one, const CUgraphEdgeData& other) {
    return to_bytes(one) == to_bytes(other);
}

bool is_plain(const CUgraphEdgeData& data) {
    return same_data(data, {});
}

// By the header's text, only programmatic edges between kernels have ports other than 0.
void check_edge(const Graph& graph, const Edge& edge, const Work& to) {
    const Work& from = known(find_node(graph, edge.node)).work;
    const CUgraphEdgeData& data = edge.data;
    const bool programmatic = data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    require(data.type <= CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && data.to_port == 0 &&
            data.from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER &&
            programmatic == (data.from_port != CU_GRAPH_KERNEL_NODE_PORT_DEFAULT));
    require(!programmatic || (from.kind == Work::Kind::Kernel && to.kind == Work::Kind::Kernel));
}

std::vector<Edge> edges_from(const Graph& graph, const CUgraphNode* nodes,
                             const CUgraphEdgeData* data, std::size_t count) {
    require(count == 0 || nodes != nullptr);
    std::vector<Edge> edges;
    for (std::size_t i = 0; i < count; i++) {
        const Handle node = to_handle(nodes[i]);
        require(find_node(graph, node) != nullptr);
        edges.push_back({node, data == nullptr ? CUgraphEdgeData{} : data[i]});
    }
    return edges;
}

Node& add_node(Machine& machine, const NewNode& target, Work work) {
    Graph& graph = graph_of(machine, target.graph);
    require(target.out != nullptr);
    std::vector<Edge> after = edges_from(graph, target.dependencies, target.edges, target.count);
    for (const Edge& edge : after)
        check_edge(graph, edge, work);
    Node& node = add_node(graph, std::move(work), std::move(after));
    give(target.out, node.handle);
    return node;
}

Node& add_node(Graph& graph, Work work, std::vector<Edge> dependencies) {
    auto node = std::make_unique<Node>();
    node->handle = new_handle();
    node->graph = graph.handle;
    node->work = std::move(work);
    node->dependencies = std::move(dependencies);
    graph.by_handle[node->handle] = node.get();
    graph.nodes.push_back(std::move(node));
    return *graph.nodes.back();
}

void copy_nodes(Machine& machine, const Graph& from, Graph& to) {
    std::unordered_map<Handle, Handle> copies;
    for (const auto& node : from.nodes) {
        Node& copy = add_node(to, node->work, node->dependencies);
        copy.origin = node->handle;
        copies[node->handle] = copy.handle;
        if (node->work.child != 0)
            copy.work.child = new_hidden_copy(machine, *machine.graphs[node->work.child]).handle;
        for (Handle& body : copy.work.bodies)
            body = new_hidden_copy(machine, *machine.graphs[body]).handle;
    }
    for (const auto& node : to.nodes)
        for (Edge& edge : node->dependencies)
            if (const auto copy = copies.find(edge.node); copy != copies.end())
                edge.node = copy->second;
}

std::vector<Node*> in_order(const Graph& graph) {
    std::vector<Node*> order;
    std::set<Handle> done;
    while (order.size() < graph.nodes.size()) {
        const std::size_t before = order.size();
        for (const auto& node : graph.nodes) {
            const auto& needs = node->dependencies;
            if (done.contains(node->handle) || !std::ranges::all_of(needs, [&](const Edge& edge) {
                    return done.contains(edge.node);
                }))
                continue;
            done.insert(node->handle);
            order.push_back(node.get());
        }
        if (order.size() == before)
            return {};
    }
    return order;
}

void require_kind(const Work& work, Work::Kind kind) {
    require(work.kind == kind);
}

void copy_parameters(const Work& work, void* out, std::size_t bytes) {
    require(work.parameters.size() == bytes);
    std::memcpy(out, work.parameters.data(), bytes);
}

void change_work(Node& node, Work work) {
    work.context = node.work.context;
    node.work = std::move(work);
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
        // The header says that it isn't supported; the result is assumed.
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
        const auto found = std::ranges::find_if(
            graph.nodes, [&](const auto& node) { return node->origin == to_handle(original); });
        require(found != graph.nodes.end());
        give(out, (*found)->handle);
    });
}

// Lists of nodes and edges.

namespace {

// Writes the number of nodes if out is null, otherwise as many nodes as *count allows.
void give_nodes(const std::vector<Handle>& nodes, CUgraphNode* out, std::size_t* count) {
    require(count != nullptr);
    if (out == nullptr) {
        *count = nodes.size();
        return;
    }
    for (std::size_t i = 0; i < *count; i++)
        out[i] = i < nodes.size() ? to_pointer<CUgraphNode>(nodes[i]) : nullptr;
    *count = std::min(*count, nodes.size());
}

void give_graph_nodes(Machine& machine, CUgraph handle, CUgraphNode* out, std::size_t* count) {
    std::vector<Handle> nodes;
    for (const auto& node : graph_of(machine, handle).nodes)
        nodes.push_back(node->handle);
    give_nodes(nodes, out, count);
}

// The header: a query that would omit edge data is refused.
void give_data(const std::vector<Edge>& edges, CUgraphEdgeData* out, std::size_t room) {
    for (std::size_t i = 0; i < edges.size(); i++) {
        require(out != nullptr || is_plain(edges[i].data),
                static_cast<CUresult>(CUDA_ERROR_LOSSY_QUERY));
        if (out != nullptr && i < room)
            out[i] = edges[i].data;
    }
}

void give_edges(Machine& machine, CUgraph handle, CUgraphNode* from, CUgraphNode* to,
                CUgraphEdgeData* data, std::size_t* count) {
    const Graph& graph = graph_of(machine, handle);
    require(count != nullptr && (from == nullptr) == (to == nullptr) &&
            (data == nullptr || from != nullptr));
    std::vector<Edge> edges;
    std::vector<Handle> sources;
    std::vector<Handle> targets;
    for (const auto& node : graph.nodes) {
        for (const Edge& edge : node->dependencies) {
            edges.push_back(edge);
            sources.push_back(edge.node);
            targets.push_back(node->handle);
        }
    }
    if (from != nullptr)
        give_data(edges, data, *count);
    std::size_t room = *count;
    give_nodes(sources, from, count);
    if (to != nullptr)
        give_nodes(targets, to, &room);
}

} // namespace

GCX_SIM_API(cuGraphGetNodes, CUgraph graph, CUgraphNode* out, std::size_t* count) {
    GCX_SIM_BODY(give_graph_nodes(machine, graph, out, count));
}

GCX_SIM_API(cuGraphGetEdges, CUgraph graph, CUgraphNode* from, CUgraphNode* to,
            std::size_t* count) {
    GCX_SIM_BODY(give_edges(machine, graph, from, to, nullptr, count));
}

GCX_SIM_API(cuGraphGetEdges_v2, CUgraph graph, CUgraphNode* from, CUgraphNode* to,
            CUgraphEdgeData* data, std::size_t* count) {
    GCX_SIM_BODY(give_edges(machine, graph, from, to, data, count));
}

} // namespace gcx::sim
