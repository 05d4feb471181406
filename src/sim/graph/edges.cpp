// Which nodes a graph has, and which come before which.
#include "sim/edge/entry.hpp"
#include "sim/graph/graph.hpp"

#include <algorithm>
#include <cstring>

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

void give_edges(Machine& machine, CUgraph handle, CUgraphNode* from, CUgraphNode* to,
                CUgraphEdgeData* data, std::size_t* count) {
    const Graph& graph = graph_of(machine, handle);
    require(count != nullptr && (from == nullptr) == (to == nullptr));
    std::vector<Handle> sources;
    std::vector<Handle> targets;
    for (const auto& node : graph.nodes) {
        for (const Handle dependency : node->dependencies) {
            sources.push_back(dependency);
            targets.push_back(node->handle);
        }
    }
    std::size_t room = *count;
    if (data != nullptr)
        std::memset(data, 0, sizeof *data * std::min(room, sources.size()));
    give_nodes(sources, from, count);
    if (to != nullptr)
        give_nodes(targets, to, &room);
}

void change_edges(Machine& machine, CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                  std::size_t count, bool add_them) {
    const Graph& graph = graph_of(machine, handle);
    require(count == 0 || (from != nullptr && to != nullptr));
    for (std::size_t i = 0; i < count; i++) {
        Node& node = known(find_node(graph, to_handle(to[i])));
        const Handle before = to_handle(from[i]);
        require(find_node(graph, before) != nullptr && before != node.handle);
        auto& edges = node.dependencies;
        const auto edge = std::find(edges.begin(), edges.end(), before);
        require(add_them == (edge == edges.end()));
        if (add_them)
            edges.push_back(before);
        else
            edges.erase(edge);
    }
}

std::vector<Handle> dependents_of(const Graph& graph, Handle handle) {
    std::vector<Handle> nodes;
    for (const auto& other : graph.nodes) {
        const auto& before = other->dependencies;
        if (std::find(before.begin(), before.end(), handle) != before.end())
            nodes.push_back(other->handle);
    }
    return nodes;
}

void give_neighbours(Machine& machine, CUgraphNode handle, CUgraphNode* out, CUgraphEdgeData* data,
                     std::size_t* count, bool dependents) {
    const Node& node = node_of(machine, handle);
    require(count != nullptr);
    const std::vector<Handle> nodes =
        dependents ? dependents_of(*machine.graphs[node.graph], node.handle) : node.dependencies;
    if (data != nullptr && out != nullptr)
        std::memset(data, 0, sizeof *data * std::min(*count, nodes.size()));
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
    GCX_SIM_BODY(change_edges(machine, graph, from, to, count, true));
}

GCX_SIM_API(cuGraphAddDependencies_v2, CUgraph graph, const CUgraphNode* from,
            const CUgraphNode* to, const CUgraphEdgeData*, std::size_t count) {
    GCX_SIM_BODY(change_edges(machine, graph, from, to, count, true));
}

GCX_SIM_API(cuGraphRemoveDependencies, CUgraph graph, const CUgraphNode* from,
            const CUgraphNode* to, std::size_t count) {
    GCX_SIM_BODY(change_edges(machine, graph, from, to, count, false));
}

GCX_SIM_API(cuGraphRemoveDependencies_v2, CUgraph graph, const CUgraphNode* from,
            const CUgraphNode* to, const CUgraphEdgeData*, std::size_t count) {
    GCX_SIM_BODY(change_edges(machine, graph, from, to, count, false));
}

} // namespace gcx::sim
