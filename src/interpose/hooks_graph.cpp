// Nodes of graphs that name the context in which they run: for the primary one the partition's.
// What a capture makes runs where its stream does and needs nothing.
#include "interpose/partition.hpp"
#include "interpose/real_driver.hpp"

#include <cstddef>

namespace gcx::shim {
namespace {

// A node's context, changed while the driver reads or fills in the parameters, which are the
// program's.
CUcontext* context_in(CUgraphNodeParams* parameters) {
    if (parameters == nullptr)
        return nullptr;
    switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return &parameters->kernel.ctx;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return &parameters->memcpy.copyCtx;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return &parameters->memset.ctx;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return &parameters->conditional.ctx;
    default:
        return nullptr;
    }
}

// Calls with the inner context in the parameters' place, and puts the program's own back.
template <class Call>
CUresult with_inner(CUgraphNodeParams* parameters, const Call& call) {
    CUcontext* const context = context_in(parameters);
    if (context == nullptr)
        return call();
    const CUcontext named = *context;
    *context = inner(named);
    const CUresult result = call();
    *context = named;
    return result;
}

CUDA_KERNEL_NODE_PARAMS_v2 with_inner(CUDA_KERNEL_NODE_PARAMS_v2 parameters) {
    parameters.ctx = inner(parameters.ctx);
    return parameters;
}

} // namespace

GCX_SHIM_API(cuGraphAddNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
             std::size_t count, CUgraphNodeParams* parameters) {
    return with_inner(parameters, [&] {
        return GCX_REAL(cuGraphAddNode)(out, graph, dependencies, count, parameters);
    });
}

GCX_SHIM_API(cuGraphAddNode_v2, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
             const CUgraphEdgeData* edges, std::size_t count, CUgraphNodeParams* parameters) {
    return with_inner(parameters, [&] {
        return GCX_REAL(cuGraphAddNode_v2)(out, graph, dependencies, edges, count, parameters);
    });
}

GCX_SHIM_API(cuGraphAddNode_v3, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
             const CUgraphEdgeData* edges, std::size_t count, CUgraphNodeParams* parameters) {
    return with_inner(parameters, [&] {
        return GCX_REAL(cuGraphAddNode_v3)(out, graph, dependencies, edges, count, parameters);
    });
}

GCX_SHIM_API(cuGraphNodeSetParams, CUgraphNode node, CUgraphNodeParams* parameters) {
    return with_inner(parameters, [&] { return GCX_REAL(cuGraphNodeSetParams)(node, parameters); });
}

GCX_SHIM_API(cuGraphNodeSetParams_v2, CUgraphNode node, CUgraphNodeParams* parameters) {
    return with_inner(parameters,
                      [&] { return GCX_REAL(cuGraphNodeSetParams_v2)(node, parameters); });
}

GCX_SHIM_API(cuGraphExecNodeSetParams, CUgraphExec executable, CUgraphNode node,
             CUgraphNodeParams* parameters) {
    return with_inner(parameters, [&] {
        return GCX_REAL(cuGraphExecNodeSetParams)(executable, node, parameters);
    });
}

GCX_SHIM_API(cuGraphNodeGetParams, CUgraphNode node, CUgraphNodeParams* parameters) {
    const CUresult result = GCX_REAL(cuGraphNodeGetParams)(node, parameters);
    if (result == CUDA_SUCCESS)
        if (CUcontext* const context = context_in(parameters); context != nullptr)
            *context = outer(*context);
    return result;
}

GCX_SHIM_API(cuGraphAddKernelNode_v2, CUgraphNode* out, CUgraph graph,
             const CUgraphNode* dependencies, std::size_t count,
             const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    const auto changed =
        with_inner(parameters != nullptr ? *parameters : CUDA_KERNEL_NODE_PARAMS_v2{});
    return GCX_REAL(cuGraphAddKernelNode_v2)(out, graph, dependencies, count,
                                             parameters != nullptr ? &changed : nullptr);
}

GCX_SHIM_API(cuGraphKernelNodeSetParams_v2, CUgraphNode node,
             const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    const auto changed =
        with_inner(parameters != nullptr ? *parameters : CUDA_KERNEL_NODE_PARAMS_v2{});
    return GCX_REAL(cuGraphKernelNodeSetParams_v2)(node,
                                                   parameters != nullptr ? &changed : nullptr);
}

GCX_SHIM_API(cuGraphExecKernelNodeSetParams_v2, CUgraphExec executable, CUgraphNode node,
             const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    const auto changed =
        with_inner(parameters != nullptr ? *parameters : CUDA_KERNEL_NODE_PARAMS_v2{});
    return GCX_REAL(cuGraphExecKernelNodeSetParams_v2)(executable, node,
                                                       parameters != nullptr ? &changed : nullptr);
}

GCX_SHIM_API(cuGraphKernelNodeGetParams_v2, CUgraphNode node,
             CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    const CUresult result = GCX_REAL(cuGraphKernelNodeGetParams_v2)(node, parameters);
    if (result == CUDA_SUCCESS)
        parameters->ctx = outer(parameters->ctx);
    return result;
}

GCX_SHIM_API(cuGraphAddMemcpyNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
             std::size_t count, const CUDA_MEMCPY3D* copy, CUcontext context) {
    return GCX_REAL(cuGraphAddMemcpyNode)(out, graph, dependencies, count, copy, inner(context));
}

GCX_SHIM_API(cuGraphAddMemsetNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
             std::size_t count, const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
    return GCX_REAL(cuGraphAddMemsetNode)(out, graph, dependencies, count, fill, inner(context));
}

GCX_SHIM_API(cuGraphExecMemcpyNodeSetParams, CUgraphExec executable, CUgraphNode node,
             const CUDA_MEMCPY3D* copy, CUcontext context) {
    return GCX_REAL(cuGraphExecMemcpyNodeSetParams)(executable, node, copy, inner(context));
}

GCX_SHIM_API(cuGraphExecMemsetNodeSetParams, CUgraphExec executable, CUgraphNode node,
             const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
    return GCX_REAL(cuGraphExecMemsetNodeSetParams)(executable, node, fill, inner(context));
}

GCX_SHIM_API(cuGraphConditionalHandleCreate, CUgraphConditionalHandle* out, CUgraph graph,
             CUcontext context, unsigned value, unsigned flags) {
    return GCX_REAL(cuGraphConditionalHandleCreate)(out, graph, inner(context), value, flags);
}

} // namespace gcx::shim
