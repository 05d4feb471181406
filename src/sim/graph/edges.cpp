// Which nodes a graph has, and which come before which.
#include "sim/edge/entry.hpp"
#include "sim/graph/graph.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

// Lists are given in the usual two steps: the number, then as many as there is room for.
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

void give_graph_nodes(Machine& machine, CUgraph handle, CUgraphNode* out, std::size_t* count,
                      bool roots_only) {
    std::vector<Handle> nodes;
    for (const auto& node : graph_of(machine, handle).nodes)
        if (!roots_only || node->dependencies.empty())
            nodes.push_back(node->handle);
    give_nodes(nodes, out, count);
}

// The header: a query that would hide what an edge says is refused.
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

void change_edges(Machine& machine, CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                  const CUgraphEdgeData* data, std::size_t count, bool add_them) {
    const Graph& graph = graph_of(machine, handle);
    require(count == 0 || to != nullptr);
    require(add_them || !holds_any(machine, graph, kMemoryKinds)); // the header's text
    const std::vector<Edge> changed = edges_from(graph, from, data, count);
    for (std::size_t i = 0; i < count; i++) {
        Node& node = known(find_node(graph, to_handle(to[i])));
        const Edge& edge = changed[i];
        require(edge.node != node.handle);
        auto& edges = node.dependencies;
        const auto found = std::find_if(edges.begin(), edges.end(), [&](const Edge& other) {
            return other.node == edge.node && same_data(other.data, edge.data);
        });
        require(add_them == (found == edges.end()));
        if (add_them) {
            check_edge(graph, edge, node.work);
            edges.push_back(edge);
        } else {
            edges.erase(found);
        }
    }
}

// As edges to them.
std::vector<Edge> dependents_of(const Graph& graph, Handle handle) {
    std::vector<Edge> edges;
    for (const auto& other : graph.nodes)
        for (const Edge& edge : other->dependencies)
            if (edge.node == handle)
                edges.push_back({other->handle, edge.data});
    return edges;
}

void give_neighbours(Machine& machine, CUgraphNode handle, CUgraphNode* out, CUgraphEdgeData* data,
                     std::size_t* count, bool dependents) {
    const Node& node = node_of(machine, handle);
    require(count != nullptr && (data == nullptr || out != nullptr));
    const std::vector<Edge> edges =
        dependents ? dependents_of(*machine.graphs[node.graph], node.handle) : node.dependencies;
    std::vector<Handle> nodes;
    nodes.reserve(edges.size());
    for (const Edge& edge : edges)
        nodes.push_back(edge.node);
    if (out != nullptr)
        give_data(edges, data, *count);
    give_nodes(nodes, out, count);
}

} // namespace

GCX_SIM_API(cuGraphGetNodes, CUgraph graph, CUgraphNode* out, std::size_t* count) {
    GCX_SIM_BODY(give_graph_nodes(machine, graph, out, count, false));
}

GCX_SIM_API(cuGraphGetRootNodes, CUgraph graph, CUgraphNode* out, std::size_t* count) {
    GCX_SIM_BODY(give_graph_nodes(machine, graph, out, count, true));
}

GCX_SIM_API(cuGraphGetEdges, CUgraph graph, CUgraphNode* from, CUgraphNode* to,
            std::size_t* count) {
    GCX_SIM_BODY(give_edges(machine, graph, from, to, nullptr, count));
}

GCX_SIM_API(cuGraphGetEdges_v2, CUgraph graph, CUgraphNode* from, CUgraphNode* to,
            CUgraphEdgeData* data, std::size_t* count) {
    GCX_SIM_BODY(give_edges(machine, graph, from, to, data, count));
}

GCX_SIM_API(cuGraphNodeGetDependencies, CUgraphNode node, CUgraphNode* out, std::size_t* count) {
    GCX_SIM_BODY(give_neighbours(machine, node, out, nullptr, count, false));
}

GCX_SIM_API(cuGraphNodeGetDependencies_v2, CUgraphNode node, CUgraphNode* out,
            CUgraphEdgeData* data, std::size_t* count) {
    GCX_SIM_BODY(give_neighbours(machine, node, out, data, count, false));
}

GCX_SIM_API(cuGraphNodeGetDependentNodes, CUgraphNode node, CUgraphNode* out, std::size_t* count) {
    GCX_SIM_BODY(give_neighbours(machine, node, out, nullptr, count, true));
}

GCX_SIM_API(cuGraphNodeGetDependentNodes_v2, CUgraphNode node, CUgraphNode* out,
            CUgraphEdgeData* data, std::size_t* count) {
    GCX_SIM_BODY(give_neighbours(machine, node, out, data, count, true));
}

GCX_SIM_API(cuGraphAddDependencies, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
            std::size_t count) {
    GCX_SIM_BODY(change_edges(machine, graph, from, to, nullptr, count, true));
}

GCX_SIM_API(cuGraphAddDependencies_v2, CUgraph graph, const CUgraphNode* from,
            const CUgraphNode* to, const CUgraphEdgeData* data, std::size_t count) {
    GCX_SIM_BODY(change_edges(machine, graph, from, to, data, count, true));
}

GCX_SIM_API(cuGraphRemoveDependencies, CUgraph graph, const CUgraphNode* from,
            const CUgraphNode* to, std::size_t count) {
    GCX_SIM_BODY(change_edges(machine, graph, from, to, nullptr, count, false));
}

GCX_SIM_API(cuGraphRemoveDependencies_v2, CUgraph graph, const CUgraphNode* from,
            const CUgraphNode* to, const CUgraphEdgeData* data, std::size_t count) {
    GCX_SIM_BODY(change_edges(machine, graph, from, to, data, count, false));
}

} // namespace gcx::sim
