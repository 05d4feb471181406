// Kernel nodes: their parameters and attributes, and in which context they run.
#include "sim/edge/entry.hpp"
#include "sim/graph/graph.hpp"
#include "sim/work/work.hpp"

#include <algorithm>
#include <cstring>

namespace gcx::sim {
namespace {

// All but the context. Assumed: whether the grid fits the context's SMs is asked when the graph is
// instantiated, which by the header's text validates what wasn't validated before.
void read_launch(const CUDA_KERNEL_NODE_PARAMS_v2& p, const Function& function, Work& work) {
    work.kind = Work::Kind::Kernel;
    work.function = function.handle;
    work.by_kernel = function.kernel != 0;
    const unsigned grid[] = {p.gridDimX, p.gridDimY, p.gridDimZ};
    const unsigned block[] = {p.blockDimX, p.blockDimY, p.blockDimZ};
    std::copy_n(grid, 3, work.config.grid);
    std::copy_n(block, 3, work.config.block);
    work.config.shared_bytes = p.sharedMemBytes;
    check_limits(*work.context->device, function, work.config);
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

Node& kernel_node_of(Machine& machine, CUgraphNode handle) {
    Node& node = node_of(machine, handle);
    require(node.work.kind == Work::Kind::Kernel);
    return node;
}

void copy_attributes(Machine& machine, CUgraphNode to, CUgraphNode from) {
    Work& target = kernel_node_of(machine, to).work;
    const Work& source = kernel_node_of(machine, from).work;
    require(target.context == source.context);               // recorded
    require(!is_updatable(target) && !is_updatable(source)); // the header's text
    target.attributes = source.attributes;
    std::copy_n(source.config.cluster, 3, target.config.cluster);
    target.config.cooperative = source.config.cooperative;
}

// The header's list of what kernel nodes have, and since when (assumed: the driver that came with
// the first header that names it).
struct NodeAttribute {
    int id;
    int since;
};
constexpr NodeAttribute kNodeAttributes[] = {
    {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, 11000},
    {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 11000},
    {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 11080},
    {CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 11080},
    {CU_LAUNCH_ATTRIBUTE_PRIORITY, 11070},
    {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 12000},
    {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 12000},
    {11, 12080}, // PREFERRED_CLUSTER_DIMENSION
    {13, 12040}, // DEVICE_UPDATABLE_KERNEL_NODE
    {14, 12050}, // PREFERRED_SHARED_MEMORY_CARVEOUT
    {16, 13000}, // NVLINK_UTIL_CENTRIC_SCHEDULING
    {17, 13040}, // PORTABLE_CLUSTER_SIZE_MODE
    {18, 13040}, // SHARED_MEMORY_MODE
};
constexpr int kDeviceUpdatable = 13;

const NodeAttribute* find_attribute(int id) {
    const auto* const found =
        std::find_if(std::begin(kNodeAttributes), std::end(kNodeAttributes),
                     [&](const NodeAttribute& attribute) { return attribute.id == id; });
    return found == std::end(kNodeAttributes) ? nullptr : found;
}

void check_attribute(const Machine& machine, int id) {
    require(known(find_attribute(id)).since <= machine.driver->version);
}

// Those that were not set: all zero, but for what streams have too, which was measured there.
CUlaunchAttributeValue attribute_of(const Work& work, int id) {
    CUlaunchAttributeValue value{};
    const auto kept = work.attributes.find(id);
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
        value.cooperative = work.config.cooperative ? 1 : 0;
    } else if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
        value.clusterDim.x = work.config.cluster[0];
        value.clusterDim.y = work.config.cluster[1];
        value.clusterDim.z = work.config.cluster[2];
    } else if (kept != work.attributes.end()) {
        std::memcpy(&value, kept->second.data(), std::min(sizeof value, kept->second.size()));
    } else if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) {
        value.memSyncDomainMap.remote = 1;
    }
    return value;
}

void set_attribute(Machine& machine, CUgraphNode handle, CUlaunchAttributeID attribute,
                   const CUlaunchAttributeValue* value) {
    Work& work = kernel_node_of(machine, handle).work;
    CUlaunchAttribute one{};
    one.id = attribute;
    one.value = known(value);
    check_attribute(machine, attribute);
    // The header: there is no way back.
    require(!is_updatable(work) || attribute != kDeviceUpdatable || value->pad[0] != 0);
    LaunchConfig config = work.config;
    std::map<int, std::string> kept = work.attributes;
    read_launch_attributes(&one, 1, config, kept);
    check_limits(*work.context->device, function_of(machine, work.function), config);
    work.config = config;
    work.attributes = std::move(kept);
}

// The header: ctx is ignored where func is set, and none means the current one. Recorded: so func
// means the current one, also of a node that is in another.
Context& context_for(Machine& machine, const CUDA_KERNEL_NODE_PARAMS_v2& p) {
    return p.func == nullptr ? context_or_current(machine, p.ctx) : current_context(machine);
}

} // namespace

bool is_of_nodes(int attribute) {
    return find_attribute(attribute) != nullptr;
}

bool is_updatable(const Work& work) {
    const auto found = work.attributes.find(kDeviceUpdatable);
    return found != work.attributes.end() && found->second.front() != 0;
}

void add_kernel(Machine& machine, const NodePlace& place,
                const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    const CUDA_KERNEL_NODE_PARAMS_v2& p = known(parameters);
    const Function& function = function_of(machine, p);
    Work work;
    work.context = &context_for(machine, p);
    read_launch(p, function, work);
    add_node(machine, place, std::move(work));
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

CUDA_KERNEL_NODE_PARAMS_v2 kernel_parameters(Machine& machine, Node& node) {
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

CUDA_KERNEL_NODE_PARAMS_v2 widen(const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    CUDA_KERNEL_NODE_PARAMS_v2 wide{};
    std::memcpy(&wide, &known(parameters), sizeof *parameters);
    return wide;
}

void change_kernel(Machine& machine, const CUDA_KERNEL_NODE_PARAMS_v2& parameters, Work& work) {
    const Function& function = function_of(machine, parameters);
    work.context = &context_for(machine, parameters);
    read_launch(parameters, function, work);
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
        const CUDA_KERNEL_NODE_PARAMS_v2 wide = kernel_parameters(machine, node);
        std::memcpy(out, &wide, sizeof *out);
    });
}

GCX_SIM_API(cuGraphKernelNodeGetParams_v2, CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2* out) {
    GCX_SIM_BODY(give(out, kernel_parameters(machine, kernel_node_of(machine, handle))));
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
        check_attribute(machine, attribute);
        *out = attribute_of(work, attribute);
    });
}

GCX_SIM_API(cuGraphKernelNodeSetAttribute, CUgraphNode handle, CUlaunchAttributeID attribute,
            const CUlaunchAttributeValue* value) {
    GCX_SIM_BODY(set_attribute(machine, handle, attribute, value));
}

} // namespace gcx::sim
