// Kernel nodes: their parameters and attributes, and in which context they run.
#include "sim/edge/entry.hpp"
#include "sim/graph/graph.hpp"
#include "sim/work/work.hpp"

#include <algorithm>
#include <cstring>

namespace gcx::sim {
namespace {

// All but the context.
void read_launch(Machine& machine, const CUDA_KERNEL_NODE_PARAMS_v2& p, const Function& function,
                 Work& work) {
    work.kind = Work::Kind::Kernel;
    work.function = function.handle;
    work.by_kernel = function.kernel != 0;
    const unsigned grid[] = {p.gridDimX, p.gridDimY, p.gridDimZ};
    const unsigned block[] = {p.blockDimX, p.blockDimY, p.blockDimZ};
    std::copy_n(grid, 3, work.config.grid);
    std::copy_n(block, 3, work.config.block);
    work.config.shared_bytes = p.sharedMemBytes;
    check_launch(machine, *work.context, function.handle, work.config);
    pack_arguments(function, p.kernelParams, p.extra, work);
}

const Function& function_of(Machine& machine, const CUDA_KERNEL_NODE_PARAMS_v2& parameters) {
    if (parameters.func != nullptr)
        return function_of(machine, to_handle(parameters.func), CUDA_ERROR_INVALID_VALUE);
    const Function& function =
        function_of(machine, to_handle(parameters.kern), CUDA_ERROR_INVALID_VALUE);
    require(function.kernel != 0);
    return function;
}

// The context that the parameters name, where they name the kernel by CUkernel alone.
bool names_context(const CUDA_KERNEL_NODE_PARAMS_v2& parameters) {
    return parameters.func == nullptr && parameters.ctx != nullptr;
}

void add_kernel(Machine& machine, const NodePlace& place,
                const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    const CUDA_KERNEL_NODE_PARAMS_v2& p = known(parameters);
    const Function& function = function_of(machine, p);
    Work work;
    work.context = names_context(p) ? &context_of(machine, p.ctx) : &current_context(machine);
    read_launch(machine, p, function, work);
    add_node(machine, place, std::move(work));
}

Node& kernel_node_of(Machine& machine, CUgraphNode handle) {
    Node& node = node_of(machine, handle);
    require(node.work.kind == Work::Kind::Kernel);
    return node;
}

void set_kernel(Machine& machine, CUgraphNode handle,
                const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    Node& node = kernel_node_of(machine, handle);
    Work work = node.work;
    change_kernel(machine, known(parameters), work);
    // What a query of the parameters gave out points to the node's arguments, for as long as it
    // lives.
    if (work.arguments.size() == node.work.arguments.size()) {
        std::copy(work.arguments.begin(), work.arguments.end(), node.work.arguments.begin());
        work.arguments = std::move(node.work.arguments);
    }
    node.work = std::move(work);
}

CUDA_KERNEL_NODE_PARAMS_v2 parameters_of(Machine& machine, Node& node) {
    Work& work = node.work;
    CUDA_KERNEL_NODE_PARAMS_v2 p{};
    p.func = to_pointer<CUfunction>(work.function);
    if (const Function* function = find_function(machine, work.function);
        function != nullptr && work.by_kernel)
        p.kern = to_pointer<CUkernel>(function->kernel);
    p.ctx = to_pointer<CUcontext>(work.context->handle);
    const LaunchConfig& config = work.config;
    p.gridDimX = config.grid[0];
    p.gridDimY = config.grid[1];
    p.gridDimZ = config.grid[2];
    p.blockDimX = config.block[0];
    p.blockDimY = config.block[1];
    p.blockDimZ = config.block[2];
    p.sharedMemBytes = work.config.shared_bytes;
    node.argument_pointers.clear();
    for (const std::size_t offset : work.argument_offsets)
        node.argument_pointers.push_back(work.arguments.data() + offset);
    p.kernelParams = node.argument_pointers.empty() ? nullptr : node.argument_pointers.data();
    return p;
}

void copy_attributes(Machine& machine, CUgraphNode to, CUgraphNode from) {
    Work& target = kernel_node_of(machine, to).work;
    const Work& source = kernel_node_of(machine, from).work;
    require(target.context == source.context); // recorded
    target.attributes = source.attributes;
    std::copy_n(source.config.cluster, 3, target.config.cluster);
    target.config.cooperative = source.config.cooperative;
}

void set_attribute(Machine& machine, CUgraphNode handle, CUlaunchAttributeID attribute,
                   const CUlaunchAttributeValue* value) {
    Work& work = kernel_node_of(machine, handle).work;
    CUlaunchAttribute one{};
    one.id = attribute;
    one.value = known(value);
    LaunchConfig config = work.config;
    std::map<int, std::string> kept = work.attributes;
    read_launch_attributes(&one, 1, config, kept);
    check_launch(machine, *work.context, work.function, config);
    work.config = config;
    work.attributes = std::move(kept);
}

} // namespace

CUDA_KERNEL_NODE_PARAMS_v2 widen(const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    CUDA_KERNEL_NODE_PARAMS_v2 wide{};
    std::memcpy(&wide, &known(parameters), sizeof *parameters);
    return wide;
}

void change_kernel(Machine& machine, const CUDA_KERNEL_NODE_PARAMS_v2& parameters, Work& work) {
    const Function& function = function_of(machine, parameters);
    if (names_context(parameters))
        work.context = &context_of(machine, parameters.ctx);
    read_launch(machine, parameters, function, work);
}

GCX_SIM_API(cuGraphAddKernelNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
            std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    GCX_SIM_BODY({
        const CUDA_KERNEL_NODE_PARAMS_v2 wide = widen(parameters);
        add_kernel(machine, {out, graph, dependencies, count}, &wide);
    });
}

GCX_SIM_API(cuGraphAddKernelNode_v2, CUgraphNode* out, CUgraph graph,
            const CUgraphNode* dependencies, std::size_t count,
            const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    GCX_SIM_BODY(add_kernel(machine, {out, graph, dependencies, count}, parameters));
}

GCX_SIM_API(cuGraphKernelNodeGetParams, CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1* out) {
    GCX_SIM_BODY({
        Node& node = kernel_node_of(machine, handle);
        require(out != nullptr);
        const CUDA_KERNEL_NODE_PARAMS_v2 wide = parameters_of(machine, node);
        std::memcpy(out, &wide, sizeof *out);
    });
}

GCX_SIM_API(cuGraphKernelNodeGetParams_v2, CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2* out) {
    GCX_SIM_BODY(give(out, parameters_of(machine, kernel_node_of(machine, handle))));
}

GCX_SIM_API(cuGraphKernelNodeSetParams, CUgraphNode node,
            const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    GCX_SIM_BODY({
        const CUDA_KERNEL_NODE_PARAMS_v2 wide = widen(parameters);
        set_kernel(machine, node, &wide);
    });
}

GCX_SIM_API(cuGraphKernelNodeSetParams_v2, CUgraphNode node,
            const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    GCX_SIM_BODY(set_kernel(machine, node, parameters));
}

GCX_SIM_API(cuGraphKernelNodeCopyAttributes, CUgraphNode to, CUgraphNode from) {
    GCX_SIM_BODY(copy_attributes(machine, to, from));
}

GCX_SIM_API(cuGraphKernelNodeGetAttribute, CUgraphNode handle, CUlaunchAttributeID attribute,
            CUlaunchAttributeValue* out) {
    GCX_SIM_BODY({
        const Work& work = kernel_node_of(machine, handle).work;
        require(out != nullptr);
        std::memset(out, 0, sizeof *out);
        if (const auto kept = work.attributes.find(attribute); kept != work.attributes.end())
            std::memcpy(out, kept->second.data(), std::min(sizeof *out, kept->second.size()));
    });
}

GCX_SIM_API(cuGraphKernelNodeSetAttribute, CUgraphNode handle, CUlaunchAttributeID attribute,
            const CUlaunchAttributeValue* value) {
    GCX_SIM_BODY(set_attribute(machine, handle, attribute, value));
}

} // namespace gcx::sim
