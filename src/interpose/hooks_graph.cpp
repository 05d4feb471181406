// Hooks for graph nodes that name their context: the primary context is replaced by the partition's
// green context. Captured nodes need no hook, since they run where their stream does.
#include "interpose/partition.hpp"
#include "interpose/real_driver.hpp"

#include <cstddef>

namespace gcx::interpose {
namespace {

// Returns the place of the context in a node's parameters, or null if the node has none.
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

// Calls with the driver's context in the parameters, and then restores the program's.
template <class Call>
CUresult with_driver_context(CUgraphNodeParams* parameters, const Call& call) {
    CUcontext* const context = context_in(parameters);
    if (context == nullptr)
        return call();
    const CUcontext named = *context;
    *context = to_driver(named);
    const CUresult result = call();
    *context = named;
    return result;
}

CUDA_KERNEL_NODE_PARAMS_v2 with_driver_context(CUDA_KERNEL_NODE_PARAMS_v2 parameters) {
    parameters.ctx = to_driver(parameters.ctx);
    return parameters;
}

} // namespace

GCX_HOOK(cuGraphAddNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
         std::size_t count, CUgraphNodeParams* parameters) {
    return with_driver_context(parameters, [&] {
        return GCX_REAL(cuGraphAddNode)(out, graph, dependencies, count, parameters);
    });
}

GCX_HOOK(cuGraphAddNode_v2, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
         const CUgraphEdgeData* edges, std::size_t count, CUgraphNodeParams* parameters) {
    return with_driver_context(parameters, [&] {
        return GCX_REAL(cuGraphAddNode_v2)(out, graph, dependencies, edges, count, parameters);
    });
}

GCX_HOOK(cuGraphAddNode_v3, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
         const CUgraphEdgeData* edges, std::size_t count, CUgraphNodeParams* parameters) {
    return with_driver_context(parameters, [&] {
        return GCX_REAL(cuGraphAddNode_v3)(out, graph, dependencies, edges, count, parameters);
    });
}

GCX_HOOK(cuGraphNodeSetParams, CUgraphNode node, CUgraphNodeParams* parameters) {
    return with_driver_context(parameters,
                               [&] { return GCX_REAL(cuGraphNodeSetParams)(node, parameters); });
}

GCX_HOOK(cuGraphNodeSetParams_v2, CUgraphNode node, CUgraphNodeParams* parameters) {
    return with_driver_context(parameters,
                               [&] { return GCX_REAL(cuGraphNodeSetParams_v2)(node, parameters); });
}

GCX_HOOK(cuGraphExecNodeSetParams, CUgraphExec executable, CUgraphNode node,
         CUgraphNodeParams* parameters) {
    return with_driver_context(parameters, [&] {
        return GCX_REAL(cuGraphExecNodeSetParams)(executable, node, parameters);
    });
}

GCX_HOOK(cuGraphNodeGetParams, CUgraphNode node, CUgraphNodeParams* parameters) {
    const CUresult result = GCX_REAL(cuGraphNodeGetParams)(node, parameters);
    if (result == CUDA_SUCCESS)
        if (CUcontext* const context = context_in(parameters); context != nullptr)
            *context = to_program(*context);
    return result;
}

GCX_HOOK(cuGraphAddKernelNode_v2, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
         std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    const auto changed =
        with_driver_context(parameters != nullptr ? *parameters : CUDA_KERNEL_NODE_PARAMS_v2{});
    return GCX_REAL(cuGraphAddKernelNode_v2)(out, graph, dependencies, count,
                                             parameters != nullptr ? &changed : nullptr);
}

GCX_HOOK(cuGraphKernelNodeSetParams_v2, CUgraphNode node,
         const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    const auto changed =
        with_driver_context(parameters != nullptr ? *parameters : CUDA_KERNEL_NODE_PARAMS_v2{});
    return GCX_REAL(cuGraphKernelNodeSetParams_v2)(node,
                                                   parameters != nullptr ? &changed : nullptr);
}

GCX_HOOK(cuGraphExecKernelNodeSetParams_v2, CUgraphExec executable, CUgraphNode node,
         const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    const auto changed =
        with_driver_context(parameters != nullptr ? *parameters : CUDA_KERNEL_NODE_PARAMS_v2{});
    return GCX_REAL(cuGraphExecKernelNodeSetParams_v2)(executable, node,
                                                       parameters != nullptr ? &changed : nullptr);
}

GCX_HOOK(cuGraphKernelNodeGetParams_v2, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    const CUresult result = GCX_REAL(cuGraphKernelNodeGetParams_v2)(node, parameters);
    if (result == CUDA_SUCCESS)
        parameters->ctx = to_program(parameters->ctx);
    return result;
}

GCX_HOOK(cuGraphAddMemcpyNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
         std::size_t count, const CUDA_MEMCPY3D* copy, CUcontext context) {
    return GCX_REAL(cuGraphAddMemcpyNode)(out, graph, dependencies, count, copy,
                                          to_driver(context));
}

GCX_HOOK(cuGraphAddMemsetNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
         std::size_t count, const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
    return GCX_REAL(cuGraphAddMemsetNode)(out, graph, dependencies, count, fill,
                                          to_driver(context));
}

GCX_HOOK(cuGraphExecMemcpyNodeSetParams, CUgraphExec executable, CUgraphNode node,
         const CUDA_MEMCPY3D* copy, CUcontext context) {
    return GCX_REAL(cuGraphExecMemcpyNodeSetParams)(executable, node, copy, to_driver(context));
}

GCX_HOOK(cuGraphExecMemsetNodeSetParams, CUgraphExec executable, CUgraphNode node,
         const CUDA_MEMSET_NODE_PARAMS* fill, CUcontext context) {
    return GCX_REAL(cuGraphExecMemsetNodeSetParams)(executable, node, fill, to_driver(context));
}

GCX_HOOK(cuGraphConditionalHandleCreate, CUgraphConditionalHandle* out, CUgraph graph,
         CUcontext context, unsigned value, unsigned flags) {
    return GCX_REAL(cuGraphConditionalHandleCreate)(out, graph, to_driver(context), value, flags);
}

} // namespace gcx::interpose
