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

const CUDA_KERNEL_NODE_PARAMS_v2* with_driver_context(const CUDA_KERNEL_NODE_PARAMS_v2* parameters,
                                                      CUDA_KERNEL_NODE_PARAMS_v2& copy) {
    if (parameters == nullptr)
        return nullptr;
    copy = *parameters;
    copy.ctx = to_driver(copy.ctx);
    return &copy;
}

} // namespace

// Define hooks. The parameters and the arguments are in parentheses. NODE_HOOK changes the context
// in `parameters`. KERNEL_HOOK changes it in a copy, which is the argument `changed`.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define NODE_HOOK(name, types, arguments)                                                          \
    GCX_HOOK(name, GCX_UNPACK types) {                                                             \
        return with_driver_context(parameters, [&] { return GCX_REAL(name) arguments; });          \
    }
#define KERNEL_HOOK(name, types, arguments)                                                        \
    GCX_HOOK(name, GCX_UNPACK types, const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {               \
        CUDA_KERNEL_NODE_PARAMS_v2 copy{};                                                         \
        const auto* const changed = with_driver_context(parameters, copy);                         \
        return GCX_REAL(name) arguments;                                                           \
    }
// NOLINTEND(bugprone-macro-parentheses)

NODE_HOOK(cuGraphAddNode,
          (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
           CUgraphNodeParams* parameters),
          (out, graph, dependencies, count, parameters))
NODE_HOOK(cuGraphAddNode_v2,
          (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies,
           const CUgraphEdgeData* edges, std::size_t count, CUgraphNodeParams* parameters),
          (out, graph, dependencies, edges, count, parameters))
NODE_HOOK(cuGraphAddNode_v3,
          (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies,
           const CUgraphEdgeData* edges, std::size_t count, CUgraphNodeParams* parameters),
          (out, graph, dependencies, edges, count, parameters))
NODE_HOOK(cuGraphNodeSetParams, (CUgraphNode node, CUgraphNodeParams* parameters),
          (node, parameters))
NODE_HOOK(cuGraphNodeSetParams_v2, (CUgraphNode node, CUgraphNodeParams* parameters),
          (node, parameters))
NODE_HOOK(cuGraphExecNodeSetParams,
          (CUgraphExec executable, CUgraphNode node, CUgraphNodeParams* parameters),
          (executable, node, parameters))

GCX_HOOK(cuGraphNodeGetParams, CUgraphNode node, CUgraphNodeParams* parameters) {
    const CUresult result = GCX_REAL(cuGraphNodeGetParams)(node, parameters);
    if (result == CUDA_SUCCESS)
        if (CUcontext* const context = context_in(parameters); context != nullptr)
            *context = to_program(*context);
    return result;
}

KERNEL_HOOK(cuGraphAddKernelNode_v2,
            (CUgraphNode * out, CUgraph graph, const CUgraphNode* dependencies, std::size_t count),
            (out, graph, dependencies, count, changed))
KERNEL_HOOK(cuGraphKernelNodeSetParams_v2, (CUgraphNode node), (node, changed))
KERNEL_HOOK(cuGraphExecKernelNodeSetParams_v2, (CUgraphExec executable, CUgraphNode node),
            (executable, node, changed))

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
