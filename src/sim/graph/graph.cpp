// Graphs as sets of nodes: found, copied, ordered, deleted.
#include "sim/graph/graph.hpp"
#include "sim/device/device.hpp"
#include "sim/edge/entry.hpp"

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
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const auto& node) {
        const std::vector<Handle> inner = inner_graphs(node->work);
        return std::find(kinds.begin(), kinds.end(), node->work.kind) != kinds.end() ||
               std::any_of(inner.begin(), inner.end(), [&](Handle handle) {
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
    // Assumed: the memory of a graph's allocation nodes is there for as long as the graph.
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

// The header's text: ports other than 0 are those of kernels, and programmatic.
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

Node& add_node(Machine& machine, const NodePlace& place, Work work) {
    Graph& graph = graph_of(machine, place.graph);
    require(place.out != nullptr);
    std::vector<Edge> after = edges_from(graph, place.dependencies, place.edges, place.count);
    for (const Edge& edge : after)
        check_edge(graph, edge, work);
    Node& node = add_node(graph, std::move(work), std::move(after));
    give(place.out, node.handle);
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
            if (done.contains(node->handle) ||
                !std::all_of(needs.begin(), needs.end(),
                             [&](const Edge& edge) { return done.contains(edge.node); }))
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

} // namespace gcx::sim
