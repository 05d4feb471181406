// The functions that take nodes of any kind, with a tagged union of their parameters.
#include "sim/device/device.hpp"
#include "sim/edge/entry.hpp"
#include "sim/graph/graph.hpp"
#include "sim/work/work.hpp"

#include <cstring>

namespace gcx::sim {
namespace {

// The same fields in the structs with and without a context at their end.
template <class To, class From>
To prefix_of(const From& from) {
    To to{};
    std::memcpy(&to, &from, std::min(sizeof to, sizeof from));
    return to;
}

CUDA_KERNEL_NODE_PARAMS_v2 kernel_of(const CUgraphNodeParams& p) {
    return prefix_of<CUDA_KERNEL_NODE_PARAMS_v2>(p.kernel);
}

// Assumed, where the header says which context runs a node and none is given: the current one.
Work placed(Machine& machine, Work work, CUcontext context) {
    work.context = &context_or_current(machine, context);
    return work;
}

// Kinds whose work is made of their parameters alone.
Work work_of(Machine& machine, const CUgraphNodeParams& p) {
    switch (p.type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return placed(machine, memcpy_work(machine, p.memcpy.copyParams), p.memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return placed(machine, memset_work(machine, prefix_of<CUDA_MEMSET_NODE_PARAMS>(p.memset)),
                      p.memset.ctx);
    case CU_GRAPH_NODE_TYPE_HOST:
        return host_work(prefix_of<CUDA_HOST_NODE_PARAMS>(p.host));
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return event_work(machine, Work::Kind::EventWait, p.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return event_work(machine, Work::Kind::EventRecord, p.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_EMPTY: {
        Work work;
        work.kind = Work::Kind::Empty;
        return work;
    }
    default:
        refuse(CUDA_ERROR_NOT_SUPPORTED);
    }
}

void add_any(Machine& machine, const NodePlace& place, CUgraphNodeParams* parameters) {
    CUgraphNodeParams& p = known(parameters);
    switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        const CUDA_KERNEL_NODE_PARAMS_v2 kernel = kernel_of(p);
        return add_kernel(machine, place, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
        add_child(machine, place, p.graph.graph);
        return;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
        Node& node =
            add_allocation(machine, place, p.alloc.poolProps, p.alloc.bytesize, p.alloc.dptr);
        node.work.parameters = to_bytes(prefix_of<CUDA_MEM_ALLOC_NODE_PARAMS>(p.alloc));
        return;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        add_free(machine, place, p.free.dptr);
        return;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        add_conditional(machine, place, p.conditional);
        return;
    default:
        add_node(machine, place, work_of(machine, p));
    }
}

Handle context_handle(const Work& work) {
    return work.context == nullptr ? 0 : work.context->handle;
}

CUgraphNodeParams any_parameters(Machine& machine, Node& node) {
    const Work& work = node.work;
    CUgraphNodeParams p{};
    switch (work.kind) {
    case Work::Kind::Kernel:
        p.type = CU_GRAPH_NODE_TYPE_KERNEL;
        p.kernel = prefix_of<CUDA_KERNEL_NODE_PARAMS_v3>(kernel_parameters(machine, node));
        break;
    case Work::Kind::Memcpy:
        p.type = CU_GRAPH_NODE_TYPE_MEMCPY;
        p.memcpy.copyParams = parameters_of<CUDA_MEMCPY3D>(work, work.kind);
        p.memcpy.copyCtx = to_pointer<CUcontext>(context_handle(work));
        break;
    case Work::Kind::Memset:
        p.type = CU_GRAPH_NODE_TYPE_MEMSET;
        p.memset = prefix_of<CUDA_MEMSET_NODE_PARAMS_v2>(
            parameters_of<CUDA_MEMSET_NODE_PARAMS>(work, work.kind));
        p.memset.ctx = to_pointer<CUcontext>(context_handle(work));
        break;
    case Work::Kind::Host:
        p.type = CU_GRAPH_NODE_TYPE_HOST;
        p.host = prefix_of<CUDA_HOST_NODE_PARAMS_v2>(
            parameters_of<CUDA_HOST_NODE_PARAMS>(work, work.kind));
        break;
    case Work::Kind::EventRecord:
        p.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
        p.eventRecord.event = to_pointer<CUevent>(work.event);
        break;
    case Work::Kind::EventWait:
        p.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
        p.eventWait.event = to_pointer<CUevent>(work.event);
        break;
    case Work::Kind::ChildGraph:
        p.type = CU_GRAPH_NODE_TYPE_GRAPH;
        p.graph.graph = to_pointer<CUgraph>(work.child);
        break;
    case Work::Kind::MemoryAlloc:
        p.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
        p.alloc = prefix_of<CUDA_MEM_ALLOC_NODE_PARAMS_v2>(
            parameters_of<CUDA_MEM_ALLOC_NODE_PARAMS>(work, work.kind));
        break;
    case Work::Kind::MemoryFree:
        p.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
        p.free.dptr = parameters_of<CUdeviceptr>(work, work.kind);
        break;
    case Work::Kind::Conditional:
        p.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
        p.conditional = parameters_of<CUDA_CONDITIONAL_NODE_PARAMS>(work, work.kind);
        break;
    default:
        p.type = CU_GRAPH_NODE_TYPE_EMPTY;
    }
    return p;
}

void set_any(Machine& machine, CUgraphNode handle, const CUgraphNodeParams& p) {
    Node& node = node_of(machine, handle);
    require(any_parameters(machine, node).type == p.type);
    if (p.type == CU_GRAPH_NODE_TYPE_KERNEL) {
        const CUDA_KERNEL_NODE_PARAMS_v2 kernel = kernel_of(p);
        set_kernel(machine, handle, &kernel);
    } else {
        node.work = work_of(machine, p);
    }
}

// Recorded: copies and fills stay in their context, whichever is given.
void set_any_in(Machine& machine, CUgraphExec exec, CUgraphNode handle,
                const CUgraphNodeParams& p) {
    if (p.type == CU_GRAPH_NODE_TYPE_KERNEL)
        return set_exec_kernel(machine, exec, handle, kernel_of(p));
    Node& node = node_in(machine, exec, handle);
    require(any_parameters(machine, node).type == p.type);
    if (p.type == CU_GRAPH_NODE_TYPE_GRAPH) {
        CUgraphExecUpdateResultInfo info{};
        const CUresult result = update_nodes(machine, *machine.graphs[node.work.child],
                                             graph_of(machine, p.graph.graph), false, info);
        require(result == CUDA_SUCCESS, result);
        return;
    }
    change_work(node, work_of(machine, p));
}

} // namespace

GCX_SIM_API(cuGraphAddNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
            std::size_t count, CUgraphNodeParams* parameters) {
    GCX_SIM_BODY(add_any(machine, {out, graph, dependencies, count}, parameters));
}

GCX_SIM_API(cuGraphAddNode_v2, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
            const CUgraphEdgeData* edges, std::size_t count, CUgraphNodeParams* parameters) {
    GCX_SIM_BODY(add_any(machine, {out, graph, dependencies, count, edges}, parameters));
}

GCX_SIM_API(cuGraphNodeGetParams, CUgraphNode handle, CUgraphNodeParams* out) {
    GCX_SIM_BODY(give(out, any_parameters(machine, node_of(machine, handle))));
}

GCX_SIM_API(cuGraphNodeSetParams, CUgraphNode handle, CUgraphNodeParams* parameters) {
    GCX_SIM_BODY(set_any(machine, handle, known(parameters)));
}

GCX_SIM_API(cuGraphExecNodeSetParams, CUgraphExec exec, CUgraphNode handle,
            CUgraphNodeParams* parameters) {
    GCX_SIM_BODY(set_any_in(machine, exec, handle, known(parameters)));
}

} // namespace gcx::sim
