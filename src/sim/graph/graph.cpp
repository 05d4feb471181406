#include "sim/graph/graph.hpp"
#include "sim/edge/entry.hpp"

#include <algorithm>
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

void delete_graph(Machine& machine, Handle handle) {
    const auto found = machine.graphs.find(handle);
    if (found == machine.graphs.end())
        return;
    const std::unique_ptr<Graph> graph = std::move(found->second);
    machine.graphs.erase(found);
    delete_children(machine, *graph);
}

void delete_children(Machine& machine, const Graph& graph) {
    for (const auto& node : graph.nodes)
        if (node->work.child != 0)
            delete_graph(machine, node->work.child);
}

Node* find_node(const Graph& graph, Handle node) {
    const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                    [&](const auto& other) { return other->handle == node; });
    return found == graph.nodes.end() ? nullptr : found->get();
}

Node& node_of(Machine& machine, CUgraphNode node) {
    for (const auto& [handle, graph] : machine.graphs)
        if (Node* const found = find_node(*graph, to_handle(node)); found != nullptr)
            return *found;
    refuse(CUDA_ERROR_INVALID_VALUE);
}

std::vector<Handle> nodes_of(const Graph& graph, const CUgraphNode* nodes, std::size_t count) {
    require(count == 0 || nodes != nullptr);
    std::vector<Handle> handles;
    for (std::size_t i = 0; i < count; i++) {
        require(find_node(graph, to_handle(nodes[i])) != nullptr);
        handles.push_back(to_handle(nodes[i]));
    }
    return handles;
}

Node& add_node(Machine& machine, const NodePlace& place, Work work) {
    Graph& graph = graph_of(machine, place.graph);
    require(place.out != nullptr);
    std::vector<Handle> after = nodes_of(graph, place.dependencies, place.count);
    Node& node = add_node(graph, std::move(work), std::move(after));
    give(place.out, node.handle);
    return node;
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

void copy_nodes(Machine& machine, const Graph& from, Graph& to) {
    std::unordered_map<Handle, Handle> copies;
    for (const auto& node : from.nodes) {
        Node& copy = add_node(to, node->work, node->dependencies);
        copy.origin = node->handle;
        copies[node->handle] = copy.handle;
        if (node->work.child != 0)
            copy.work.child = new_hidden_copy(machine, *machine.graphs[node->work.child]).handle;
    }
    for (const auto& node : to.nodes)
        for (Handle& dependency : node->dependencies)
            if (const auto copy = copies.find(dependency); copy != copies.end())
                dependency = copy->second;
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
                             [&](Handle handle) { return done.contains(handle); }))
                continue;
            done.insert(node->handle);
            order.push_back(node.get());
        }
        if (order.size() == before)
            return {};
    }
    return order;
}

} // namespace gcx::sim
