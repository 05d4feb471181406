// Graphs: nodes of work, and what may be changed about them.
#pragma once

#include "sim/machine.hpp"

namespace gcx::sim {

Graph& new_graph(Machine& machine);
void delete_graph(Machine& machine, Handle graph);
Node* find_node(Graph& graph, Handle node);
const Node* find_node(const Graph& graph, Handle node);
Node& add_node(Graph& graph, Work work, std::vector<Handle> dependencies);

// The node of any graph that a program can name.
Node* find_node(Machine& machine, CUgraphNode node);

// Copies the nodes of one graph to another, each with its origin, child graphs included.
void copy_nodes(Machine& machine, const Graph& from, Graph& to);

// Each node after those it depends on; empty if they go round in a circle.
std::vector<Node*> in_order(const Graph& graph);

// Fills the work of a new kernel node. Its context is the current one, or that of the parameters
// where they name the kernel by CUkernel alone.
CUresult read_kernel_parameters(Machine& machine, const CUDA_KERNEL_NODE_PARAMS_v2& parameters,
                                Work& work);

// Changes that of a node. Recorded: where func is set the node stays in its context.
CUresult change_kernel(Machine& machine, const CUDA_KERNEL_NODE_PARAMS_v2& parameters, Work& work);

void write_kernel_parameters(Machine& machine, Node& node, CUDA_KERNEL_NODE_PARAMS_v2& out);

// copies.cpp
CUresult memset_work(Machine& machine, const CUDA_MEMSET_NODE_PARAMS& parameters, Work& work);
CUresult memcpy_work(Machine& machine, const CUDA_MEMCPY3D& parameters, Work& work);

} // namespace gcx::sim
