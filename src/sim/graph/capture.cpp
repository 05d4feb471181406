// Stream capture.
#include "sim/edge/entry.hpp"
#include "sim/graph/graph.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

CUresult begin(Machine& machine, CUstream handle, CUstreamCaptureMode mode, CUgraph into,
               const CUgraphNode* dependencies, std::size_t count) {
    Stream* stream = nullptr;
    if (const CUresult code = check_stream(machine, handle, stream); code != CUDA_SUCCESS)
        return code;
    if (stream == &stream->context->null_stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture != nullptr)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED || (count > 0 && dependencies == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    Graph* graph = nullptr;
    std::vector<Handle> tip;
    if (into != nullptr) {
        graph = find(machine.graphs, into);
        if (graph == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        for (std::size_t i = 0; i < count; i++) {
            if (find_node(*graph, to_handle(dependencies[i])) == nullptr)
                return CUDA_ERROR_INVALID_VALUE;
            tip.push_back(to_handle(dependencies[i]));
        }
    } else {
        graph = &new_graph(machine);
        graph->hidden = true;
    }
    auto made = std::make_unique<Capture>();
    made->id = machine.next_capture++;
    made->graph = graph->handle;
    made->into_existing = into != nullptr;
    made->mode = mode;
    made->thread = std::this_thread::get_id();
    made->origin = stream;
    made->tips[stream] = tip;
    stream->capture = made.get();
    machine.captures[made->id] = std::move(made);
    return CUDA_SUCCESS;
}

void forget(Machine& machine, const Capture& capture) {
    for (const auto& [handle, event] : machine.events) {
        if (event->capture == &capture) {
            event->capture = nullptr;
            event->capture_nodes.clear();
        }
    }
    machine.captures.erase(capture.id);
}

// All that was forked off must have come back: the stream's tip follows every other stream's.
bool is_joined(const Graph& graph, const Capture& capture) {
    std::set<Handle> reached;
    std::vector<Handle> open = capture.tips.at(capture.origin);
    while (!open.empty()) {
        const Handle node = open.back();
        open.pop_back();
        if (!reached.insert(node).second)
            continue;
        const Node* const found = find_node(graph, node);
        if (found != nullptr)
            open.insert(open.end(), found->dependencies.begin(), found->dependencies.end());
    }
    return std::all_of(capture.tips.begin(), capture.tips.end(), [&](const auto& tip) {
        return std::all_of(tip.second.begin(), tip.second.end(),
                           [&](Handle node) { return reached.contains(node); });
    });
}

CUresult end(Machine& machine, CUstream handle, CUgraph* out) {
    Stream* stream = nullptr;
    if (const CUresult code = check_stream(machine, handle, stream); code != CUDA_SUCCESS)
        return code;
    if (out != nullptr)
        *out = nullptr;
    Capture* const capture = stream->capture;
    if (capture == nullptr)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    const Handle graph = capture->graph;
    CUresult result = CUDA_SUCCESS;
    if (capture->invalid)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!is_joined(*machine.graphs[graph], *capture))
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    for (const auto& [captured, nodes] : capture->tips)
        captured->capture = nullptr;
    const bool own = !capture->into_existing;
    forget(machine, *capture);
    if (result != CUDA_SUCCESS) {
        if (own)
            delete_graph(machine, graph);
        return result;
    }
    machine.graphs[graph]->hidden = false;
    if (out != nullptr)
        *out = to_pointer<CUgraph>(graph);
    return CUDA_SUCCESS;
}

CUstreamCaptureMode& thread_capture_mode() {
    thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return mode;
}

CUstreamCaptureStatus status_of(const Stream& stream) {
    if (stream.capture == nullptr)
        return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                   : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

struct CaptureInfo {
    CUstreamCaptureStatus* status;
    cuuint64_t* id;
    CUgraph* graph;
    const CUgraphNode** dependencies;
    std::size_t* count;
};

CUresult get_info(Machine& machine, CUstream handle, const CaptureInfo& out) {
    Stream* stream = nullptr;
    if (const CUresult code = check_stream(machine, handle, stream); code != CUDA_SUCCESS)
        return code;
    if (out.status == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *out.status = status_of(*stream);
    if (*out.status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    if (out.id != nullptr)
        *out.id = stream->capture->id;
    if (out.graph != nullptr)
        *out.graph = to_pointer<CUgraph>(stream->capture->graph);
    // Valid until the thread asks again, which is at least as long as the driver promises.
    thread_local std::vector<CUgraphNode> nodes;
    nodes.clear();
    for (const Handle node : stream->capture->tips[stream])
        nodes.push_back(to_pointer<CUgraphNode>(node));
    if (out.dependencies != nullptr)
        *out.dependencies = nodes.data();
    if (out.count != nullptr)
        *out.count = nodes.size();
    return CUDA_SUCCESS;
}

CUresult update_dependencies(Machine& machine, CUstream handle, const CUgraphNode* nodes,
                             std::size_t count, unsigned flags) {
    Stream* stream = nullptr;
    if (const CUresult code = check_stream(machine, handle, stream); code != CUDA_SUCCESS)
        return code;
    if (stream->capture == nullptr)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count > 0 && nodes == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    std::vector<Handle>& tip = stream->capture->tips[stream];
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        tip.clear();
    for (std::size_t i = 0; i < count; i++)
        tip.push_back(to_handle(nodes[i]));
    return CUDA_SUCCESS;
}

} // namespace

// Measured on 13.0, with streams and events that take no part in the capture; cuCtxSynchronize and
// making green contexts, streams and events are let through.
CUresult refuse_during_capture(Machine& machine) {
    const CUstreamCaptureMode mode = thread_capture_mode();
    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    for (const auto& [id, capture] : machine.captures) {
        const bool own = capture->thread == std::this_thread::get_id();
        const bool forbids = own ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                                 : capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                       mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (!forbids)
            continue;
        invalidate_capture(machine, *capture);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

CUresult capture_work(Machine& machine, Stream& stream, Work work) {
    Capture& capture = *stream.capture;
    if (capture.invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    Graph& graph = *machine.graphs[capture.graph];
    const Handle node = add_node(graph, std::move(work), capture.tips[&stream]).handle;
    capture.tips[&stream] = {node};
    return CUDA_SUCCESS;
}

CUresult join_capture(Machine&, Stream& stream, const Event& event) {
    Capture& capture = *event.capture;
    if (capture.invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream.capture != nullptr && stream.capture != &capture) {
        stream.capture->invalid = true;
        capture.invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    stream.capture = &capture;
    std::vector<Handle>& tip = capture.tips[&stream];
    for (const Handle node : event.capture_nodes)
        if (std::find(tip.begin(), tip.end(), node) == tip.end())
            tip.push_back(node);
    return CUDA_SUCCESS;
}

void invalidate_capture(Machine&, Capture& capture) {
    capture.invalid = true;
}

GCX_SIM_API(cuStreamBeginCapture_v2, CUstream stream, CUstreamCaptureMode mode) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return begin(machine, stream, mode, nullptr, nullptr, 0);
    });
}

GCX_SIM_API(cuStreamBeginCaptureToGraph, CUstream stream, CUgraph graph,
            const CUgraphNode* dependencies, const CUgraphEdgeData*, std::size_t count,
            CUstreamCaptureMode mode) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (graph == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        return begin(machine, stream, mode, graph, dependencies, count);
    });
}

GCX_SIM_API(cuStreamEndCapture, CUstream stream, CUgraph* out) {
    return call(__func__, [&](Machine& machine) -> CUresult { return end(machine, stream, out); });
}

GCX_SIM_API(cuStreamIsCapturing, CUstream handle, CUstreamCaptureStatus* out) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return get_info(machine, handle, {out, nullptr, nullptr, nullptr, nullptr});
    });
}

GCX_SIM_API(cuStreamGetCaptureInfo_v2, CUstream stream, CUstreamCaptureStatus* status,
            cuuint64_t* id, CUgraph* graph, const CUgraphNode** dependencies, std::size_t* count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return get_info(machine, stream, {status, id, graph, dependencies, count});
    });
}

GCX_SIM_API(cuStreamGetCaptureInfo_v3, CUstream stream, CUstreamCaptureStatus* status,
            cuuint64_t* id, CUgraph* graph, const CUgraphNode** dependencies,
            const CUgraphEdgeData** edges, std::size_t* count) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        if (edges != nullptr)
            *edges = nullptr; // every edge is a full one
        return get_info(machine, stream, {status, id, graph, dependencies, count});
    });
}

GCX_SIM_API(cuStreamUpdateCaptureDependencies, CUstream stream, CUgraphNode* nodes,
            std::size_t count, unsigned flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return update_dependencies(machine, stream, nodes, count, flags);
    });
}

GCX_SIM_API(cuStreamUpdateCaptureDependencies_v2, CUstream stream, CUgraphNode* nodes,
            const CUgraphEdgeData*, std::size_t count, unsigned flags) {
    return call(__func__, [&](Machine& machine) -> CUresult {
        return update_dependencies(machine, stream, nodes, count, flags);
    });
}

GCX_SIM_API(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode* mode) {
    return call(__func__, [&](Machine&) -> CUresult {
        if (mode == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        std::swap(thread_capture_mode(), *mode);
        return CUDA_SUCCESS;
    });
}

} // namespace gcx::sim
