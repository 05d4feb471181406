// Executable graphs: instantiation, launches, and updates.
#include "sim/device/device.hpp"
#include "sim/entry/entry.hpp"
#include "sim/graph/capture.hpp"
#include "sim/graph/graph.hpp"
#include "sim/work/work.hpp"

#include <algorithm>
#include <unordered_map>

namespace gcx::sim {

namespace {

// Recorded: an executable of 3 nodes uses 0.12 MiB.
constexpr uint64_t kBytesPerNode = 40ULL << 10;
// Recorded: the instantiation of 1000 nodes takes 3.3 ms.
constexpr uint64_t kInstantiateNs = 3'300;

// Returns the device of the graph's nodes, or else the current one.
Device& device_of(Machine& machine, const Graph& graph) {
    Context* context = nullptr;
    for (const auto& node : graph.nodes)
        if (node->work.context != nullptr)
            context = node->work.context;
    return *(context == nullptr ? current_context(machine) : *context).device;
}

// Recorded: a node of an executable outlives its green context; instantiating or launching a graph
// whose node's context is destroyed already crashes the driver, which is not simulated. Assumed: a
// node does not outlive the primary context.
void check_alive(const Work& work) {
    require(work.context == nullptr || work.context->owner().alive,
            CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

void check_all_alive(const Machine& machine, const Graph& graph) {
    for (const auto& node : graph.nodes) {
        check_alive(node->work);
        for (const Handle inner : inner_graphs(node->work))
            check_all_alive(machine, *machine.graphs.at(inner));
    }
}

// The header: the instantiation validates what was not validated before. Assumed: this includes
// grids and clusters that don't fit the SMs of the node's context.
void check_nodes(Machine& machine, const Graph& graph) {
    require(graph.nodes.empty() || !in_order(graph).empty());
    for (const auto& node : graph.nodes) {
        const Work& work = node->work;
        check_alive(work);
        if (work.kind == Work::Kind::Kernel && find_function(machine, work.function) != nullptr)
            check_launch(machine, *work.context, work.function, work.config);
        for (const Handle inner : inner_graphs(work))
            check_nodes(machine, *machine.graphs[inner]);
    }
}

// Checks the kinds and contexts of nodes in the bodies of conditional nodes, by the header's text.
void check_bodies(Machine& machine, const Graph& graph, const Context* context) {
    for (const auto& node : graph.nodes) {
        const Work& work = node->work;
        using Kind = Work::Kind;
        const auto is_one_of = [&](std::initializer_list<Kind> kinds) {
            return std::ranges::find(kinds, work.kind) != kinds.end();
        };
        require(context == nullptr || is_one_of({Kind::Kernel, Kind::Empty, Kind::ChildGraph,
                                                 Kind::Memset, Kind::Memcpy, Kind::Conditional}));
        require(context == nullptr || !is_one_of({Kind::Kernel, Kind::Conditional}) ||
                work.context == context);
        const Context* const inside = work.kind == Kind::Conditional ? work.context : context;
        for (const Handle inner : inner_graphs(work))
            check_bodies(machine, *machine.graphs[inner], inside);
    }
}

bool holds_updatable(const Machine& machine, const Graph& graph) {
    return std::ranges::any_of(graph.nodes, [&](const auto& node) {
        const std::vector<Handle> inner = inner_graphs(node->work);
        return is_updatable(node->work) || std::ranges::any_of(inner, [&](Handle handle) {
                   return holds_updatable(machine, *machine.graphs.at(handle));
               });
    });
}

std::size_t count_nodes(const Machine& machine, const Graph& graph) {
    std::size_t count = graph.nodes.size();
    for (const auto& node : graph.nodes)
        for (const Handle inner : inner_graphs(node->work))
            count += count_nodes(machine, *machine.graphs.at(inner));
    return count;
}

void instantiate(Machine& machine, CUgraphExec* out, CUgraph handle, unsigned long long flags) {
    const Graph& graph = graph_of(machine, handle);
    require(out != nullptr && flags <= 15);
    current_context(machine); // measured on 13.0: fails with INVALID_CONTEXT if there is none
    check_nodes(machine, graph);
    check_bodies(machine, graph, nullptr);
    // The header: such a graph has one executable at a time.
    if (holds_any(machine, graph, kMemoryKinds) || holds_updatable(machine, graph))
        for (const auto& [other, exec] : machine.graph_execs)
            require(exec->source != graph.handle);
    Device& device = device_of(machine, graph);
    const std::size_t nodes = count_nodes(machine, graph);
    charge_memory(device, kBytesPerNode * nodes);
    GraphExec& exec = create(machine.graph_execs);
    exec.source = graph.handle;
    exec.flags = flags;
    exec.device = &device;
    exec.bytes = kBytesPerNode * nodes;
    copy_nodes(machine, graph, exec.graph);
    machine.clock_ns += kInstantiateNs * nodes;
    give(out, exec.handle);
}

// The header: an executable in flight is freed when it has completed. In the simulation, a launch
// has copied what it needs.
void destroy(Machine& machine, CUgraphExec handle) {
    const GraphExec& exec = executable_of(machine, handle);
    delete_children(machine, exec.graph);
    return_memory(*exec.device, exec.bytes);
    machine.graph_execs.erase(exec.handle);
}

// A launch of an executable.
struct Launch {
    Machine& machine;
    Stream& stream;
    uint64_t number;
};

Moment run_graph(const Launch& launch, const Graph& graph, const Moment& start);

Moment run_node(const Launch& launch, const Work& work, const Moment& start) {
    Machine& machine = launch.machine;
    Event* const event =
        work.event == 0 ? nullptr : find(machine.events, to_pointer<CUevent>(work.event));
    switch (work.kind) {
    case Work::Kind::ChildGraph:
        return run_graph(launch, *machine.graphs[work.child], start);
    case Work::Kind::Conditional: {
        const Graph* const body = chosen_body(machine, work);
        return body == nullptr ? start : run_graph(launch, *body, start);
    }
    case Work::Kind::EventRecord:
        if (event != nullptr) {
            event->recorded = true;
            event->done = start;
        }
        return start;
    case Work::Kind::EventWait:
        return event != nullptr && event->recorded ? later(start, event->done) : start;
    default:
        return perform(machine, launch.stream, work, start, launch.number);
    }
}

// The branches of a graph, each a sequence of nodes, and until when its kernels wait.
class Branches {
  public:
    // Returns the value of the node's branch: the one that it continues, or a new one.
    uint64_t& waits_until(const Node& node) {
        std::size_t index = branches_.size();
        for (const Edge& edge : node.dependencies) {
            if (const auto found = tips_.find(edge.node); found != tips_.end()) {
                index = found->second;
                tips_.erase(found);
                break;
            }
        }
        if (index == branches_.size())
            branches_.push_back(0);
        tips_[node.handle] = index;
        return branches_[index];
    }

    // Recorded (queues log): a graph of 15 parallel branches of 4 kernels occupied all 8 queues. A
    // linear graph of 60 kernels, and 8 streams with a linear graph of 8 kernels each, delayed no
    // other launch.
    void occupy_queues(const Launch& launch) {
        std::erase(branches_, 0U);
        if (branches_.size() < 2)
            return;
        for (const uint64_t until : branches_)
            occupy_queue(launch.machine, launch.stream, until);
    }

  private:
    std::vector<uint64_t> branches_;
    std::unordered_map<Handle, std::size_t> tips_;
};

// Runs each node when its dependencies have completed, and returns when all have. A programmatic
// edge would allow an earlier start, which is not simulated.
Moment run_graph(const Launch& launch, const Graph& graph, const Moment& start) {
    const uint64_t start_ns = planned_ns(start);
    std::unordered_map<Handle, Moment> ends;
    Branches branches;
    Moment last = start;
    for (const Node* const node : in_order(graph)) {
        Moment begin = start;
        for (const Edge& edge : node->dependencies)
            extend(begin, ends[edge.node]);
        uint64_t& waits_until = branches.waits_until(*node);
        if (node->work.kind == Work::Kind::Kernel && planned_ns(begin) > start_ns)
            waits_until = planned_ns(begin);
        ends[node->handle] = run_node(launch, node->work, begin);
        extend(last, ends[node->handle]);
    }
    branches.occupy_queues(launch);
    return last;
}

void launch(Machine& machine, CUgraphExec handle, CUstream stream_handle) {
    refuse_dead_stream(machine, stream_handle);
    GraphExec& exec = executable_of(machine, handle);
    Stream& stream = stream_of(machine, stream_handle);
    refuse_implicit_capture(machine, stream);
    refuse_capturing(stream); // measured on 13.0
    check_all_alive(machine, exec.graph);
    // Recorded: the nodes keep the partition they were captured on, and run even if its green
    // context was destroyed. The header: a launch waits for earlier launches of the executable.
    Moment ready = later(start_time(machine, stream), exec.busy);
    const Moment start = start_in_queue(machine, stream, std::move(ready));
    const Launch one{machine, stream, machine.next_graph_launch++};
    exec.busy = run_graph(one, exec.graph, start);
    note_action(stream, exec.busy);
}

} // namespace

GraphExec& executable_of(Machine& machine, CUgraphExec handle) {
    return known(find(machine.graph_execs, handle));
}

GCX_SIM_API(cuGraphInstantiateWithFlags, CUgraphExec* out, CUgraph graph,
            unsigned long long flags) {
    GCX_SIM_BODY(instantiate(machine, out, graph, flags));
}

// The variant without flags.
GCX_SIM_API(cuGraphInstantiate_v2, CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char*,
            std::size_t) {
    GCX_SIM_BODY({
        if (error_node != nullptr)
            *error_node = nullptr;
        instantiate(machine, out, graph, 0);
    });
}

GCX_SIM_STREAM_API(cuGraphInstantiateWithParams, _ptsz,
                   (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters),
                   (out, graph, parameters)) {
    GCX_SIM_BODY({
        require(parameters != nullptr);
        parameters->hErrNode_out = nullptr;
        parameters->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
        instantiate(machine, out, graph, parameters->flags);
        parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    });
}

GCX_SIM_STREAM_API(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream), (exec, stream)) {
    GCX_SIM_BODY(launch(machine, exec, stream));
}

GCX_SIM_STREAM_API(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream stream), (exec, stream)) {
    GCX_SIM_BODY({
        Stream& place = stream_of(machine, stream);
        executable_of(machine, exec);
        refuse_implicit_capture(machine, place);
        refuse_capturing(place); // assumed: like a launch
        note_action(place, start_time(machine, place));
    });
}

GCX_SIM_API(cuGraphExecDestroy, CUgraphExec handle) {
    GCX_SIM_BODY(destroy(machine, handle));
}

// Updates.

namespace {

using Nodes = std::vector<std::unique_ptr<Node>>;

CUresult differs(CUgraphExecUpdateResultInfo& info, CUgraphExecUpdateResult how, Handle node) {
    info.result = how;
    info.errorNode = to_pointer<CUgraphNode>(node);
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

// The header: nodes are paired in the order of their addition.
bool same_edges(const Nodes& now, const Nodes& source, std::size_t at) {
    const auto place = [](const Nodes& nodes, Handle handle) {
        return std::ranges::find_if(nodes,
                                    [&](const auto& node) { return node->handle == handle; }) -
               nodes.begin();
    };
    return std::equal(now[at]->dependencies.begin(), now[at]->dependencies.end(),
                      source[at]->dependencies.begin(), source[at]->dependencies.end(),
                      [&](const Edge& one, const Edge& other) {
                          return same_data(one.data, other.data) &&
                                 place(now, one.node) == place(source, other.node);
                      });
}

int priority_of(const Work& work) {
    const auto found = work.attributes.find(CU_LAUNCH_ATTRIBUTE_PRIORITY);
    int priority = 0;
    if (found != work.attributes.end())
        found->second.copy(reinterpret_cast<char*>(&priority), sizeof priority);
    return priority;
}

CUgraphExecUpdateResult kernel_difference(Machine& machine, const Work& now, const Work& source,
                                          bool priorities_count) {
    // Recorded: the result for a graph that was captured on another partition.
    if (now.context != source.context)
        return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    // The header: neither may be device-updatable.
    if (is_updatable(now) || is_updatable(source))
        return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    // The header says that these can't change; the result is assumed.
    if (now.config.cooperative != source.config.cooperative ||
        (priorities_count && priority_of(now) != priority_of(source)))
        return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    // Assumed: an update is refused if the instantiation would be.
    try {
        check_launch(machine, *source.context, source.function, source.config);
    } catch (const Refusal&) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult compare(Machine& machine, const Graph& now, const Graph& source, bool priorities_count,
                 CUgraphExecUpdateResultInfo& info) {
    if (now.nodes.size() != source.nodes.size())
        return differs(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, 0);
    for (std::size_t i = 0; i < now.nodes.size(); i++) {
        const Work& old_work = now.nodes[i]->work;
        const Work& new_work = source.nodes[i]->work;
        const Handle node = source.nodes[i]->handle;
        if (!same_edges(now.nodes, source.nodes, i))
            return differs(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node);
        if (old_work.kind != new_work.kind)
            return differs(info, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, node);
        // The header says this of conditions; for memory and the context of copies it is assumed.
        if (old_work.kind != Work::Kind::Kernel &&
            (old_work.context != new_work.context ||
             old_work.bodies.size() != new_work.bodies.size() ||
             old_work.owned_address != new_work.owned_address))
            return differs(info, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, node);
        if (old_work.kind == Work::Kind::Kernel) {
            const CUgraphExecUpdateResult how =
                kernel_difference(machine, old_work, new_work, priorities_count);
            if (how != CU_GRAPH_EXEC_UPDATE_SUCCESS)
                return differs(info, how, node);
        }
        const std::vector<Handle> old_inner = inner_graphs(old_work);
        const std::vector<Handle> new_inner = inner_graphs(new_work);
        for (std::size_t j = 0; j < old_inner.size(); j++) {
            const CUresult inner = compare(machine, *machine.graphs[old_inner[j]],
                                           *machine.graphs[new_inner[j]], priorities_count, info);
            if (inner != CUDA_SUCCESS)
                return inner;
        }
    }
    return CUDA_SUCCESS;
}

void take_over(Machine& machine, Graph& now, const Graph& source) {
    for (std::size_t i = 0; i < source.nodes.size(); i++) {
        Work& work = now.nodes[i]->work;
        const Work& from = source.nodes[i]->work;
        if (work.child != 0)
            take_over(machine, *machine.graphs[work.child], *machine.graphs[from.child]);
        for (std::size_t j = 0; j < work.bodies.size(); j++)
            take_over(machine, *machine.graphs[work.bodies[j]], *machine.graphs[from.bodies[j]]);
        const Handle child = work.child;
        std::vector<Handle> bodies = std::move(work.bodies);
        work = from;
        work.child = child;
        work.bodies = std::move(bodies);
    }
}

Node* find_copy(const Machine& machine, const Graph& graph, Handle source) {
    for (const auto& node : graph.nodes) {
        if (node->origin == source)
            return node.get();
        for (const Handle inner : inner_graphs(node->work))
            if (Node* const found = find_copy(machine, *machine.graphs.at(inner), source))
                return found;
    }
    return nullptr;
}

// Replaces a node's work. By the header's text, this affects only later launches.
void replace(Machine& machine, CUgraphExec exec, CUgraphNode handle, Work work) {
    Node& node = node_in(machine, exec, handle);
    require_kind(node.work, work.kind);
    change_work(node, std::move(work));
}

// Recorded: copies and fills keep their context and ignore the given one.
void replace_in(Machine& machine, CUgraphExec exec, CUgraphNode handle, Work work,
                CUcontext context) {
    context_or_current(machine, context);
    replace(machine, exec, handle, std::move(work));
}

} // namespace

// Assumed: nodes in child graphs and bodies are found too.
Node& node_in(Machine& machine, CUgraphExec exec, CUgraphNode source) {
    node_of(machine, source); // the header: it must still exist
    return known(find_copy(machine, executable_of(machine, exec).graph, to_handle(source)));
}

CUresult update_nodes(Machine& machine, Graph& now, const Graph& source, bool priorities_count,
                      CUgraphExecUpdateResultInfo& info) {
    info = {};
    const CUresult result = compare(machine, now, source, priorities_count, info);
    if (result == CUDA_SUCCESS)
        take_over(machine, now, source);
    return result;
}

namespace {

// Writes info even if the call fails.
CUresult update(Machine& machine, CUgraphExec exec_handle, CUgraph graph_handle,
                CUgraphExecUpdateResultInfo& info) {
    info = {};
    info.result = CU_GRAPH_EXEC_UPDATE_ERROR;
    GraphExec& exec = executable_of(machine, exec_handle);
    const bool priorities_count = (exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0;
    return update_nodes(machine, exec.graph, graph_of(machine, graph_handle), priorities_count,
                        info);
}

} // namespace

void set_exec_kernel(Machine& machine, CUgraphExec exec, CUgraphNode source,
                     const CUDA_KERNEL_NODE_PARAMS_v2& parameters) {
    Node& node = node_in(machine, exec, source);
    require_kind(node.work, Work::Kind::Kernel);
    Work work = node.work;
    change_kernel(machine, parameters, work);
    require(work.context == node.work.context); // recorded
    check_launch(machine, *work.context, work.function, work.config);
    node.work = std::move(work);
}

GCX_SIM_API(cuGraphExecUpdate_v2, CUgraphExec exec, CUgraph graph,
            CUgraphExecUpdateResultInfo* info) {
    GCX_SIM_BODY({
        CUgraphExecUpdateResultInfo ignored{};
        return update(machine, exec, graph, info == nullptr ? ignored : *info);
    });
}

GCX_SIM_API(cuGraphExecKernelNodeSetParams, CUgraphExec exec, CUgraphNode node,
            const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    GCX_SIM_BODY(set_exec_kernel(machine, exec, node, widen(parameters)));
}

GCX_SIM_API(cuGraphExecKernelNodeSetParams_v2, CUgraphExec exec, CUgraphNode node,
            const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    GCX_SIM_BODY(set_exec_kernel(machine, exec, node, known(parameters)));
}

GCX_SIM_API(cuGraphExecMemsetNodeSetParams, CUgraphExec exec, CUgraphNode node,
            const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext context) {
    GCX_SIM_BODY(replace_in(machine, exec, node, memset_work(machine, known(parameters)), context));
}

GCX_SIM_API(cuGraphExecMemcpyNodeSetParams, CUgraphExec exec, CUgraphNode node,
            const CUDA_MEMCPY3D* parameters, CUcontext context) {
    GCX_SIM_BODY(replace_in(machine, exec, node, memcpy_work(machine, known(parameters)), context));
}

} // namespace gcx::sim
