// Stream capture.
#include "sim/graph/capture.hpp"
#include "sim/entry/entry.hpp"
#include "sim/graph/graph.hpp"
#include "sim/work/work.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

CUstreamCaptureMode& thread_capture_mode() {
    thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return mode;
}

Stream& stream_to_capture(Machine& machine, CUstream handle, CUstreamCaptureMode mode) {
    Stream& stream = stream_of(machine, handle);
    // Recorded: the NULL stream of a green context can be captured.
    require(!is_legacy(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    require(stream.capture == nullptr, CUDA_ERROR_ILLEGAL_STATE);
    require(mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    return stream;
}

Capture& begin(Machine& machine, Stream& stream, CUstreamCaptureMode mode, const Graph& graph) {
    auto made = std::make_unique<Capture>();
    Capture& capture = *made;
    capture.id = machine.next_capture++;
    capture.graph = graph.handle;
    capture.mode = mode;
    capture.thread = std::this_thread::get_id();
    capture.origin = &stream;
    capture.tips[&stream] = {};
    stream.capture = &capture;
    machine.captures[capture.id] = std::move(made);
    return capture;
}

void forget(Machine& machine, const Capture& capture) {
    for (const auto& [captured, nodes] : capture.tips)
        captured->capture = nullptr;
    for (const auto& [handle, event] : machine.events) {
        if (event->capture == &capture) {
            event->capture = nullptr;
            event->capture_nodes.clear();
        }
    }
    machine.captures.erase(capture.id);
}

void abandon(Machine& machine, const Capture& capture) {
    const Handle graph = capture.graph;
    const bool own = !capture.into_existing;
    forget(machine, capture);
    if (own)
        delete_graph(machine, graph);
}

// Returns whether the origin's last nodes depend on the last nodes of every other stream.
bool is_joined(const Graph& graph, const Capture& capture) {
    std::set<Handle> reached;
    std::vector<Edge> open = capture.tips.at(capture.origin);
    while (!open.empty()) {
        const Handle node = open.back().node;
        open.pop_back();
        if (!reached.insert(node).second)
            continue;
        const Node* const found = find_node(graph, node);
        if (found != nullptr)
            open.insert(open.end(), found->dependencies.begin(), found->dependencies.end());
    }
    return std::ranges::all_of(capture.tips, [&](const auto& tip) {
        return std::ranges::all_of(tip.second,
                                   [&](const Edge& edge) { return reached.contains(edge.node); });
    });
}

void end(Machine& machine, CUstream handle, CUgraph* out) {
    const Stream& stream = stream_of(machine, handle);
    if (out != nullptr)
        *out = nullptr;
    require(stream.capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    const Capture& capture = *stream.capture;
    require(capture.origin == &stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    Graph& graph = *machine.graphs[capture.graph];
    CUresult result = CUDA_SUCCESS;
    if (capture.invalid)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!is_joined(graph, capture))
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (result != CUDA_SUCCESS) {
        abandon(machine, capture);
        refuse(result);
    }
    forget(machine, capture);
    graph.hidden = false;
    if (out != nullptr)
        give(out, graph.handle);
}

struct CaptureInfo {
    CUstreamCaptureStatus* status = nullptr;
    cuuint64_t* id = nullptr;
    CUgraph* graph = nullptr;
    const CUgraphNode** dependencies = nullptr;
    std::size_t* count = nullptr;
    const CUgraphEdgeData** edges = nullptr;
};

void give_info(Machine& machine, CUstream handle, const CaptureInfo& out) {
    Stream& stream = stream_of(machine, handle);
    require(out.status != nullptr);
    refuse_implicit_capture(machine, stream, true);
    *out.status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (stream.capture == nullptr)
        return;
    *out.status = stream.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                          : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (stream.capture->invalid)
        return;
    if (out.id != nullptr)
        *out.id = stream.capture->id;
    if (out.graph != nullptr)
        give(out.graph, stream.capture->graph);
    // Valid until the thread's next query, at least as long as the driver promises.
    thread_local std::vector<CUgraphNode> nodes;
    thread_local std::vector<CUgraphEdgeData> data;
    nodes.clear();
    data.clear();
    for (const Edge& edge : stream.capture->tips[&stream]) {
        // The header: a query that would omit edge data is refused.
        require(out.dependencies == nullptr || out.edges != nullptr || is_plain(edge.data),
                static_cast<CUresult>(CUDA_ERROR_LOSSY_QUERY));
        nodes.push_back(to_pointer<CUgraphNode>(edge.node));
        data.push_back(edge.data);
    }
    if (out.edges != nullptr)
        *out.edges = data.data();
    if (out.dependencies != nullptr)
        *out.dependencies = nodes.data();
    if (out.count != nullptr)
        *out.count = nodes.size();
}

void update_dependencies(Machine& machine, CUstream handle, const CUgraphNode* nodes,
                         const CUgraphEdgeData* edges, std::size_t count, unsigned flags) {
    Stream& stream = stream_of(machine, handle);
    require(stream.capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    require(flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    const std::vector<Edge> more =
        edges_from(*machine.graphs[stream.capture->graph], nodes, edges, count);
    std::vector<Edge>& tip = stream.capture->tips[&stream];
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        tip.clear();
    tip.insert(tip.end(), more.begin(), more.end());
}

bool is_set(const Work& work, int attribute) {
    const auto found = work.attributes.find(attribute);
    return found != work.attributes.end() && found->second.front() != 0;
}

// Converts a launch to a node. The header: the node gets the stream's priority, loses attributes
// that are valid only for launches, and has programmatic edges if it may overlap the kernels before
// it. Assumed: the stream's other attributes are copied as well.
void become_node(const Graph& graph, const Stream& stream, Work& work, std::vector<Edge>& tip) {
    if (is_set(work, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION))
        for (Edge& edge : tip)
            if (find_node(graph, edge.node)->work.kind == Work::Kind::Kernel &&
                is_plain(edge.data)) {
                edge.data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
                edge.data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
            }
    std::erase_if(work.attributes, [](const auto& entry) { return !is_of_nodes(entry.first); });
    CUlaunchAttributeValue priority{};
    priority.priority = stream.priority;
    work.attributes.emplace(CU_LAUNCH_ATTRIBUTE_PRIORITY, to_bytes(priority));
    for (const auto& [attribute, value] : stream.attributes)
        if (is_of_nodes(attribute))
            work.attributes.emplace(attribute, to_bytes(value));
}

} // namespace

// Measured on 13.0: destroying the stream that began a capture ends the capture without an error; a
// stream that joined it can be destroyed.
void leave_capture(Machine& machine, Stream& stream) {
    Capture& capture = *stream.capture;
    if (capture.origin == &stream) {
        abandon(machine, capture);
        return;
    }
    stream.capture = nullptr;
    capture.tips.erase(&stream);
}

// Measured on 13.0 with streams and events outside the capture. cuCtxSynchronize and the creation
// of green contexts, streams and events are allowed.
void refuse_during_capture(Machine& machine) {
    const CUstreamCaptureMode mode = thread_capture_mode();
    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return;
    bool forbidden = false;
    for (const auto& [id, capture] : machine.captures) {
        const bool own = capture->thread == std::this_thread::get_id();
        const bool forbids = own ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                                 : capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                       mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (forbids)
            forbidden = capture->invalid = true;
    }
    require(!forbidden, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

// Recorded on an H200, in all modes; the per-thread default stream is a blocking one.
void refuse_implicit_capture(const Machine& machine, const Stream& stream, bool question) {
    if (machine.captures.empty() || !is_legacy(stream))
        return;
    bool found = false;
    for (const auto& [id, capture] : machine.captures) {
        const bool implicit = std::ranges::any_of(capture->tips, [&](const auto& tip) {
            return tip.first->context == stream.context && is_blocking(*tip.first);
        });
        capture->invalid = capture->invalid || (implicit && !question);
        found = found || implicit;
    }
    require(!found, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

void capture_work(Machine& machine, Stream& stream, Work work) {
    Capture& capture = *stream.capture;
    require(!capture.invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    Graph& graph = *machine.graphs[capture.graph];
    std::vector<Edge>& tip = capture.tips[&stream];
    if (work.kind == Work::Kind::Kernel)
        become_node(graph, stream, work, tip);
    for (const Edge& edge : tip)
        check_edge(graph, edge, work);
    tip = {{add_node(graph, std::move(work), tip).handle, {}}};
}

void join_capture(Stream& stream, const Event& event) {
    Capture& capture = *event.capture;
    require(!capture.invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    if (stream.capture != nullptr && stream.capture != &capture) {
        stream.capture->invalid = true;
        capture.invalid = true;
        refuse(CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    if (is_legacy(stream)) { // recorded
        capture.invalid = true;
        refuse(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    stream.capture = &capture;
    std::vector<Edge>& tip = capture.tips[&stream];
    for (const Edge& edge : event.capture_nodes)
        if (std::ranges::none_of(tip, [&](const Edge& other) { return other.node == edge.node; }))
            tip.push_back(edge);
}

GCX_SIM_STREAM_API(cuStreamBeginCapture_v2, _ptsz, (CUstream handle, CUstreamCaptureMode mode),
                   (handle, mode)) {
    GCX_SIM_BODY({
        Stream& stream = stream_to_capture(machine, handle, mode);
        Graph& graph = new_graph(machine);
        graph.hidden = true;
        begin(machine, stream, mode, graph);
    });
}

GCX_SIM_STREAM_API(cuStreamBeginCaptureToGraph, _ptsz,
                   (CUstream handle, CUgraph into, const CUgraphNode* dependencies,
                    const CUgraphEdgeData* edges, std::size_t count, CUstreamCaptureMode mode),
                   (handle, into, dependencies, edges, count, mode)) {
    GCX_SIM_BODY({
        require(into != nullptr);
        Stream& stream = stream_to_capture(machine, handle, mode);
        const Graph& graph = graph_of(machine, into);
        std::vector<Edge> tip = edges_from(graph, dependencies, edges, count);
        Capture& capture = begin(machine, stream, mode, graph);
        capture.into_existing = true;
        capture.tips[&stream] = std::move(tip);
    });
}

GCX_SIM_STREAM_API(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph* out), (stream, out)) {
    GCX_SIM_BODY(end(machine, stream, out));
}

GCX_SIM_STREAM_API(cuStreamIsCapturing, _ptsz, (CUstream stream, CUstreamCaptureStatus* out),
                   (stream, out)) {
    GCX_SIM_BODY(give_info(machine, stream, {out}));
}

GCX_SIM_STREAM_API(cuStreamGetCaptureInfo_v2, _ptsz,
                   (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                    const CUgraphNode** dependencies, std::size_t* count),
                   (stream, status, id, graph, dependencies, count)) {
    GCX_SIM_BODY(give_info(machine, stream, {status, id, graph, dependencies, count}));
}

GCX_SIM_STREAM_API(cuStreamGetCaptureInfo_v3, _ptsz,
                   (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                    const CUgraphNode** dependencies, const CUgraphEdgeData** edges,
                    std::size_t* count),
                   (stream, status, id, graph, dependencies, edges, count)) {
    GCX_SIM_BODY(give_info(machine, stream, {status, id, graph, dependencies, count, edges}));
}

GCX_SIM_STREAM_API(cuStreamUpdateCaptureDependencies, _ptsz,
                   (CUstream stream, CUgraphNode* nodes, std::size_t count, unsigned flags),
                   (stream, nodes, count, flags)) {
    GCX_SIM_BODY(update_dependencies(machine, stream, nodes, nullptr, count, flags));
}

GCX_SIM_STREAM_API(cuStreamUpdateCaptureDependencies_v2, _ptsz,
                   (CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* edges,
                    std::size_t count, unsigned flags),
                   (stream, nodes, edges, count, flags)) {
    GCX_SIM_BODY(update_dependencies(machine, stream, nodes, edges, count, flags));
}

GCX_SIM_API(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode* mode) {
    GCX_SIM_BODY(std::swap(thread_capture_mode(), known(mode)));
}

} // namespace gcx::sim
