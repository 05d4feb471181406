#include "sim/graph.hpp"

#include <algorithm>
#include <unordered_map>

namespace gcx::sim {

Graph& new_graph(Machine& machine) {
    auto graph = std::make_unique<Graph>();
    graph->handle = new_handle();
    Graph& made = *graph;
    machine.graphs[made.handle] = std::move(graph);
    return made;
}

const Node* find_node(const Graph& graph, Handle node) {
    const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                    [&](const auto& other) { return other->handle == node; });
    return found == graph.nodes.end() ? nullptr : found->get();
}

Node* find_node(Graph& graph, Handle node) {
    const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                    [&](const auto& other) { return other->handle == node; });
    return found == graph.nodes.end() ? nullptr : found->get();
}

Node& add_node(Graph& graph, Work work, std::vector<Handle> dependencies) {
    auto node = std::make_unique<Node>();
    node->handle = new_handle();
    node->graph = graph.handle;
    node->work = std::move(work);
    node->dependencies = std::move(dependencies);
    graph.nodes.push_back(std::move(node));
    return *graph.nodes.back();
}

void copy_nodes(const Graph& from, Graph& to) {
    std::unordered_map<Handle, Handle> copies;
    for (const auto& node : from.nodes) {
        Node& copy = add_node(to, node->work, node->dependencies);
        copy.origin = node->handle;
        copies[node->handle] = copy.handle;
    }
    for (const auto& node : to.nodes)
        for (Handle& dependency : node->dependencies)
            if (const auto copy = copies.find(dependency); copy != copies.end())
                dependency = copy->second;
}

} // namespace gcx::sim
