// Graphs: nodes of work, and what may be changed about them. For this room alone.
#pragma once

#include "sim/machine.hpp"

namespace gcx::sim {

Graph& graph_of(Machine& machine, CUgraph handle); // CUDA_ERROR_INVALID_VALUE: there is none
Graph& new_graph(Machine& machine);
Graph& new_hidden_copy(Machine& machine, const Graph& graph);
void delete_graph(Machine& machine, Handle graph);
void delete_children(Machine& machine, const Graph& graph);

// Where a new node goes: out there, in that graph, behind these nodes of it.
struct NodePlace {
    CUgraphNode* out;
    CUgraph graph;
    const CUgraphNode* dependencies;
    std::size_t count;
};
Node& add_node(Machine& machine, const NodePlace& place, Work work);
Node& add_node(Graph& graph, Work work, std::vector<Handle> dependencies);

// Handles of nodes that are the graph's, or CUDA_ERROR_INVALID_VALUE.
std::vector<Handle> nodes_of(const Graph& graph, const CUgraphNode* nodes, std::size_t count);
Node* find_node(const Graph& graph, Handle node);
Node& node_of(Machine& machine, CUgraphNode node); // of any graph that a program can name

// Copies the nodes of one graph to another, each with its origin, child graphs included.
void copy_nodes(Machine& machine, const Graph& from, Graph& to);

// Each node after those it depends on; empty if they go round in a circle.
std::vector<Node*> in_order(const Graph& graph);

// The later parameters have two fields more at their end.
CUDA_KERNEL_NODE_PARAMS_v2 widen(const CUDA_KERNEL_NODE_PARAMS_v1* parameters);

// Changes a kernel node's work. Recorded: where func is set the node stays in its context.
void change_kernel(Machine& machine, const CUDA_KERNEL_NODE_PARAMS_v2& parameters, Work& work);

} // namespace gcx::sim
