// Graphs: nodes of work, and what may be changed about them. For this room alone.
#pragma once

#include "sim/machine.hpp"

#include <initializer_list>

namespace gcx::sim {

Graph& graph_of(Machine& machine, CUgraph handle); // CUDA_ERROR_INVALID_VALUE: there is none
Graph& new_graph(Machine& machine);
Graph& new_hidden_copy(Machine& machine, const Graph& graph);
void delete_graph(Machine& machine, Handle graph);
void delete_children(Machine& machine, const Graph& graph);

// The graphs that a node holds: its child, or the bodies of a condition.
std::vector<Handle> inner_graphs(const Work& work);
// Whether one of the graph's nodes, those of its inner graphs among them, is of such a kind.
bool holds_any(const Machine& machine, const Graph& graph, std::initializer_list<Work::Kind> kinds);
inline constexpr std::initializer_list<Work::Kind> kMemoryKinds = {Work::Kind::MemoryAlloc,
                                                                   Work::Kind::MemoryFree};
// What by the header's text can be neither cloned nor made a child.
inline constexpr std::initializer_list<Work::Kind> kUncloned = {
    Work::Kind::MemoryAlloc, Work::Kind::MemoryFree, Work::Kind::Conditional};

// Where a new node goes: out there, in that graph, behind these nodes of it.
struct NodePlace {
    CUgraphNode* out;
    CUgraph graph;
    const CUgraphNode* dependencies;
    std::size_t count;
    const CUgraphEdgeData* edges = nullptr; // all zero
};
Node& add_node(Machine& machine, const NodePlace& place, Work work);
Node& add_node(Graph& graph, Work work, std::vector<Edge> dependencies);

// The nodes as edges from them. CUDA_ERROR_INVALID_VALUE: one isn't the graph's, or what an edge
// says is nothing that the header has.
std::vector<Edge> edges_from(const Graph& graph, const CUgraphNode* nodes,
                             const CUgraphEdgeData* data, std::size_t count);
bool is_plain(const CUgraphEdgeData& data);
bool same_data(const CUgraphEdgeData& one, const CUgraphEdgeData& other);
// From a kernel to a kernel, where the edge asks for that.
void check_edge(const Graph& graph, const Edge& edge, const Work& to);
Node* find_node(const Graph& graph, Handle node);
Node& node_of(Machine& machine, CUgraphNode node); // of any graph that a program can name

// Copies the nodes of one graph to another, each with its origin, inner graphs included.
void copy_nodes(Machine& machine, const Graph& from, Graph& to);

// Each node after those it depends on; empty if they go round in a circle.
std::vector<Node*> in_order(const Graph& graph);

// The later parameters have two fields more at their end.
CUDA_KERNEL_NODE_PARAMS_v2 widen(const CUDA_KERNEL_NODE_PARAMS_v1* parameters);

// Kernel nodes. Recorded: where func is set a node stays in its context.
void add_kernel(Machine& machine, const NodePlace& place,
                const CUDA_KERNEL_NODE_PARAMS_v2* parameters);
void set_kernel(Machine& machine, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* parameters);
void change_kernel(Machine& machine, const CUDA_KERNEL_NODE_PARAMS_v2& parameters, Work& work);
CUDA_KERNEL_NODE_PARAMS_v2 kernel_parameters(Machine& machine, Node& node);

// Attributes: those that nodes have, by the header's text; and whether the device may change it.
bool is_of_nodes(int attribute);
bool is_updatable(const Work& work);

// Work of the other kinds of nodes.
Work host_work(const CUDA_HOST_NODE_PARAMS& parameters);
Work event_work(Machine& machine, Work::Kind kind, CUevent event);
Node& add_child(Machine& machine, const NodePlace& place, CUgraph child);
Node& add_allocation(Machine& machine, const NodePlace& place, const CUmemPoolProps& properties,
                     std::size_t bytes, CUdeviceptr& address);
Node& add_free(Machine& machine, const NodePlace& place, CUdeviceptr address);
Node& add_conditional(Machine& machine, const NodePlace& place,
                      CUDA_CONDITIONAL_NODE_PARAMS& parameters);
// Which of its bodies a conditional node runs; null: none.
const Graph* chosen_body(Machine& machine, const Work& work);

// Gives a node other work of its kind, in the context where it is.
void change_work(Node& node, Work work);

// The parameters of a node that is of this kind, as they were kept.
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

// Executables. The copy of a node there, in inner graphs too.
GraphExec& executable_of(Machine& machine, CUgraphExec handle);
Node& node_in(Machine& machine, CUgraphExec exec, CUgraphNode source);
// What is in the way of an update is told even when the call fails.
CUresult update(Machine& machine, CUgraphExec exec, CUgraph graph,
                CUgraphExecUpdateResultInfo& info);
// As if the graph now had those nodes. CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: it can't.
CUresult update_nodes(Machine& machine, Graph& now, const Graph& wanted, bool priorities_count,
                      CUgraphExecUpdateResultInfo& info);
void set_exec_kernel(Machine& machine, CUgraphExec exec, CUgraphNode node,
                     const CUDA_KERNEL_NODE_PARAMS_v2& parameters);

} // namespace gcx::sim
