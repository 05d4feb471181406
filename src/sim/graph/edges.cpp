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

void give_graph_nodes(Machine& machine, CUgraph handle, CUgraphNode* out, std::size_t* count) {
    std::vector<Handle> nodes;
    for (const auto& node : graph_of(machine, handle).nodes)
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
