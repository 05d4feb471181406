// Executable graphs.
#include "sim/device/device.hpp"
#include "sim/edge/entry.hpp"
#include "sim/graph/graph.hpp"
#include "sim/work/work.hpp"

#include <algorithm>
#include <unordered_map>

namespace gcx::sim {
namespace {

// Recorded: an executable of 3 nodes takes 0.12 MiB.
constexpr uint64_t kBytesPerNode = 40ULL << 10;
// Recorded: 1000 nodes are instantiated in 3.3 ms.
constexpr uint64_t kInstantiateNs = 3'300;

// The device of the graph's nodes, or else the current one.
Device& device_of(Machine& machine, const Graph& graph) {
    Context* context = nullptr;
    for (const auto& node : graph.nodes)
        if (node->work.context != nullptr)
            context = node->work.context;
    return *(context == nullptr ? current_context(machine) : *context).device;
}

// Recorded: a node outlives its green context. Assumed: not the primary context under it, as after
// a reset of the device.
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

// The header: what was not validated before is when a graph is instantiated. Assumed: so it is of
// a grid or a cluster that doesn't fit the SMs of its node's context.
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

// The header: what is in a conditional node's graphs, and that all of it runs in the node's
// context.
void check_bodies(Machine& machine, const Graph& graph, const Context* context) {
    for (const auto& node : graph.nodes) {
        const Work& work = node->work;
        using Kind = Work::Kind;
        const auto is_one_of = [&](std::initializer_list<Kind> kinds) {
            return std::find(kinds.begin(), kinds.end(), work.kind) != kinds.end();
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
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const auto& node) {
        const std::vector<Handle> inner = inner_graphs(node->work);
        return is_updatable(node->work) ||
               std::any_of(inner.begin(), inner.end(), [&](Handle handle) {
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
    current_context(machine); // measured on 13.0: INVALID_CONTEXT if there is none
    check_nodes(machine, graph);
    check_bodies(machine, graph, nullptr);
    // The header: one executable at a time of such a graph.
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

// The header: in flight it is freed when it has ended. Here its effects were when it was launched.
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

uint64_t run_graph(const Launch& launch, const Graph& graph, uint64_t start);

uint64_t end_of(const Launch& launch, const Work& work, uint64_t start) {
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
            event->done_at = start;
        }
        return start;
    case Work::Kind::EventWait:
        return event != nullptr && event->recorded ? std::max(start, event->done_at) : start;
    case Work::Kind::Kernel:
        kernel_effect(machine, work);
        return start + kernel_duration(machine, work);
    default:
        if (work.effect)
            work.effect(machine);
        if (work.host)
            after_call(work.host);
        return start + work.duration_ns;
    }
}

uint64_t run_node(const Launch& launch, const Node& node, uint64_t start) {
    const uint64_t end = end_of(launch, node.work, start);
    note_run(launch.machine, launch.stream, node.work, launch.number, start, end);
    return end;
}

// What runs one after the other in a graph: until when the kernels of each branch wait for their
// turn.
class Branches {
  public:
    // Of the branch of a node: one whose tip it follows, else one of its own.
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

    // Recorded (queues): a graph of 15 parallel branches of 4 kernels held all 8 queues. One of 60
    // kernels in a row held none that could be seen: 8 streams with a graph of 8 in a row each, as
    // many as there were queues, held up nobody.
    void reservation_queues(const Launch& launch) {
        std::erase(branches_, 0U);
        if (branches_.size() < 2)
            return;
        for (const uint64_t until : branches_)
            reservation_queue(launch.machine, launch.stream, until);
    }

  private:
    std::vector<uint64_t> branches_;
    std::unordered_map<Handle, std::size_t> tips_;
};

// Each node when those before it have ended; a programmatic edge is one that the kernel could have
// begun at earlier, and doesn't. When all have ended: that time.
uint64_t run_graph(const Launch& launch, const Graph& graph, uint64_t start) {
    std::unordered_map<Handle, uint64_t> ends;
    Branches branches;
    uint64_t last = start;
    for (const Node* const node : in_order(graph)) {
        uint64_t begin = start;
        for (const Edge& edge : node->dependencies)
            begin = std::max(begin, ends[edge.node]);
        uint64_t& waits_until = branches.waits_until(*node);
        if (node->work.kind == Work::Kind::Kernel && begin > start)
            waits_until = begin;
        ends[node->handle] = run_node(launch, *node, begin);
        last = std::max(last, ends[node->handle]);
    }
    branches.reservation_queues(launch);
    return last;
}

void launch(Machine& machine, CUgraphExec handle, CUstream stream_handle) {
    refuse_dead_stream(machine, stream_handle);
    GraphExec& exec = executable_of(machine, handle);
    Stream& stream = stream_of(machine, stream_handle);
    if (stream.capture != nullptr) {
        stream.capture->invalid = true; // measured on 13.0
        refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    check_all_alive(machine, exec.graph);
    // Recorded: the nodes keep the partition they were captured on, and run even when its green
    // context is gone. The header: a launch comes behind those of the same executable before it.
    const uint64_t ready = std::max(start_time(machine, stream), exec.busy_until);
    const uint64_t start = start_in_queue(machine, stream, ready);
    const Launch one{machine, stream, machine.next_graph_launch++};
    stream.busy_until = exec.busy_until = run_graph(one, exec.graph, start);
    Device& device = *stream.context->device;
    device.busy_until = std::max(device.busy_until, stream.busy_until);
}

} // namespace

GraphExec& executable_of(Machine& machine, CUgraphExec handle) {
    return known(find(machine.graph_execs, handle));
}

GCX_SIM_API(cuGraphInstantiateWithFlags, CUgraphExec* out, CUgraph graph,
            unsigned long long flags) {
    GCX_SIM_BODY(instantiate(machine, out, graph, flags));
}

// The variant before there were flags.
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
        stream_of(machine, stream);
        executable_of(machine, exec);
    });
}

GCX_SIM_API(cuGraphExecDestroy, CUgraphExec handle) {
    GCX_SIM_BODY(destroy(machine, handle));
}

} // namespace gcx::sim
