/* Graphs: nodes of work, and what may be changed about them. */
#pragma once

#include "sim/machine.hpp"

namespace gcx::sim {

Graph& new_graph(Machine& machine);
Node* find_node(Graph& graph, Handle node);
const Node* find_node(const Graph& graph, Handle node);
Node& add_node(Graph& graph, Work work, std::vector<Handle> dependencies);

/* Copies the nodes of one graph to another, each with its origin. */
void copy_nodes(const Graph& from, Graph& to);

} // namespace gcx::sim
