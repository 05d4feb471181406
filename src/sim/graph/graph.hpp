// Graphs, for the files of this folder.
#pragma once

#include "sim/machine.hpp"

#include <initializer_list>

namespace gcx::sim {

Graph& graph_of(Machine& machine, CUgraph handle); // fails with CUDA_ERROR_INVALID_VALUE
Graph& new_graph(Machine& machine);
Graph& new_hidden_copy(Machine& machine, const Graph& graph);
void delete_graph(Machine& machine, Handle graph);
void delete_children(Machine& machine, const Graph& graph);

// Returns the graphs that a node owns: its child, or the bodies of a condition.
std::vector<Handle> inner_graphs(const Work& work);
// Returns whether the graph or one of its inner graphs has a node of one of the kinds.
bool holds_any(const Machine& machine, const Graph& graph, std::initializer_list<Work::Kind> kinds);
inline constexpr std::initializer_list<Work::Kind> kMemoryKinds = {Work::Kind::MemoryAlloc,
                                                                   Work::Kind::MemoryFree};
// By the header's text, graphs with these nodes can't be cloned or become a child.
inline constexpr std::initializer_list<Work::Kind> kUncloned = {
    Work::Kind::MemoryAlloc, Work::Kind::MemoryFree, Work::Kind::Conditional};

// The arguments that all functions take that add a node.
struct NewNode {
    CUgraphNode* out;
    CUgraph graph;
    const CUgraphNode* dependencies;
    std::size_t count;
    const CUgraphEdgeData* edges = nullptr; // null: no data
};
Node& add_node(Machine& machine, const NewNode& target, Work work);
Node& add_node(Graph& graph, Work work, std::vector<Edge> dependencies);

// Returns edges from the nodes. Fails with CUDA_ERROR_INVALID_VALUE if a node isn't the graph's.
std::vector<Edge> edges_from(const Graph& graph, const CUgraphNode* nodes,
                             const CUgraphEdgeData* data, std::size_t count);
bool is_plain(const CUgraphEdgeData& data);
bool same_data(const CUgraphEdgeData& one, const CUgraphEdgeData& other);
// Refuses edge data that the header does not allow for these nodes.
void check_edge(const Graph& graph, const Edge& edge, const Work& to);
Node* find_node(const Graph& graph, Handle node);
Node& node_of(Machine& machine, CUgraphNode node); // searches all graphs

// Copies the nodes and inner graphs of one graph to another, and sets their origin.
void copy_nodes(Machine& machine, const Graph& from, Graph& to);

// Returns the nodes in topological order; empty if there is a cycle.
std::vector<Node*> in_order(const Graph& graph);

// Converts to the newer struct, which has two more fields at its end.
CUDA_KERNEL_NODE_PARAMS_v2 widen(const CUDA_KERNEL_NODE_PARAMS_v1* parameters);

// Changes the work of a kernel node to the parameters.
void change_kernel(Machine& machine, const CUDA_KERNEL_NODE_PARAMS_v2& parameters, Work& work);

bool is_of_nodes(int attribute);     // whether kernel nodes have the attribute
bool is_updatable(const Work& work); // whether the device may change the node

// Returns the body that a conditional node runs, or null.
const Graph* chosen_body(Machine& machine, const Work& work);

// Replaces a node's work, but not its context.
void change_work(Node& node, Work work);

// Returns the stored parameters of a node; refuses a node of another kind.
template <class T>
T parameters_of(const Work& work, Work::Kind kind);
void require_kind(const Work& work, Work::Kind kind);
void copy_parameters(const Work& work, void* out, std::size_t bytes);

template <class T>
T parameters_of(const Work& work, Work::Kind kind) {
    require_kind(work, kind);
    T parameters{};
    copy_parameters(work, &parameters, sizeof parameters);
    return parameters;
}

GraphExec& executable_of(Machine& machine, CUgraphExec handle);
// Returns the executable's copy of a node, also from inner graphs.
Node& node_in(Machine& machine, CUgraphExec exec, CUgraphNode source);
// Replaces the work of all nodes. Returns CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE and the reason in
// info if the graphs differ too much.
CUresult update_nodes(Machine& machine, Graph& now, const Graph& source, bool priorities_count,
                      CUgraphExecUpdateResultInfo& info);
void set_exec_kernel(Machine& machine, CUgraphExec exec, CUgraphNode node,
                     const CUDA_KERNEL_NODE_PARAMS_v2& parameters);

} // namespace gcx::sim
