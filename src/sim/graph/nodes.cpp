// Graph nodes of every kind: parameters, attributes, and the context they run in.
#include "sim/device/device.hpp"
#include "sim/entry/entry.hpp"
#include "sim/graph/graph.hpp"
#include "sim/work/work.hpp"

#include <algorithm>
#include <cstring>

namespace gcx::sim {

// Kernel nodes.

namespace {

// Reads all parameters except the context. Assumed: the instantiation checks whether the grid fits
// the context's SMs, since by the header's text it validates what was not validated before.
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

// The attributes of kernel nodes by the header's text. Assumed: the first driver that has one is
// that of the first header that names it.
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
    const auto* const found = std::ranges::find(kNodeAttributes, id, &NodeAttribute::id);
    return found == std::end(kNodeAttributes) ? nullptr : found;
}

void check_attribute(const Machine& machine, int id) {
    require(known(find_attribute(id)).since <= machine.driver->version);
}

// An attribute that was not set is zero, unless another default was measured on streams.
CUlaunchAttributeValue attribute_of(const Work& work, int id) {
    CUlaunchAttributeValue value{};
    const auto found = work.attributes.find(id);
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
        value.cooperative = work.config.cooperative ? 1 : 0;
    } else if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
        value.clusterDim.x = work.config.cluster[0];
        value.clusterDim.y = work.config.cluster[1];
        value.clusterDim.z = work.config.cluster[2];
    } else if (found != work.attributes.end()) {
        std::memcpy(&value, found->second.data(), std::min(sizeof value, found->second.size()));
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
    // The header: this attribute can't be reset.
    require(!is_updatable(work) || attribute != kDeviceUpdatable || value->pad[0] != 0);
    LaunchConfig config = work.config;
    std::map<int, std::string> attributes = work.attributes;
    read_launch_attributes(&one, 1, config, attributes);
    check_limits(*work.context->device, function_of(machine, work.function), config);
    work.config = config;
    work.attributes = std::move(attributes);
}

// The header: if func is set, ctx is ignored; no ctx means the current context. Recorded: with func
// the node moves to the current context.
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

namespace {

void add_kernel(Machine& machine, const NewNode& target, const CUDA_KERNEL_NODE_PARAMS_v2& p) {
    const Function& function = function_of(machine, p);
    Work work;
    work.context = &context_for(machine, p);
    read_launch(p, function, work);
    add_node(machine, target, std::move(work));
}

void set_kernel(Machine& machine, CUgraphNode handle,
                const CUDA_KERNEL_NODE_PARAMS_v2& parameters) {
    Node& node = kernel_node_of(machine, handle);
    Work work = node.work;
    change_kernel(machine, parameters, work);
    // Queries return pointers to the node's arguments, which stay valid as long as the node.
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

} // namespace

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
    GCX_SIM_BODY(add_kernel(machine, {out, graph, dependencies, count}, widen(parameters)));
}

GCX_SIM_API(cuGraphAddKernelNode_v2, CUgraphNode* out, CUgraph graph,
            const CUgraphNode* dependencies, std::size_t count,
            const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    GCX_SIM_BODY(add_kernel(machine, {out, graph, dependencies, count}, known(parameters)));
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
    GCX_SIM_BODY(set_kernel(machine, node, widen(parameters)));
}

GCX_SIM_API(cuGraphKernelNodeSetParams_v2, CUgraphNode node,
            const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    GCX_SIM_BODY(set_kernel(machine, node, known(parameters)));
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

// Memory nodes.

namespace {

// The header: the address is returned at once and does not change. Assumed: the memory exists as
// long as the graph.
Node& add_allocation(Machine& machine, const NewNode& target, const CUmemPoolProps& properties,
                     std::size_t bytes, CUdeviceptr& address) {
    require(properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE && bytes != 0 &&
            properties.handleTypes == CU_MEM_HANDLE_TYPE_NONE);
    Device& device = known(machine.device(properties.location.id));
    Context& context = current_context(machine);
    edges_from(graph_of(machine, target.graph), target.dependencies, target.edges, target.count);
    require(target.out != nullptr);
    Work work(Work::Kind::MemoryAlloc);
    work.owned_address = allocate(machine, device, context, bytes, MemoryKind::Device).address;
    address = work.owned_address;
    return add_node(machine, target, std::move(work));
}

Node& add_free(Machine& machine, const NewNode& target, CUdeviceptr address) {
    require(find_allocation(machine, address) != nullptr);
    Work work(Work::Kind::MemoryFree);
    work.parameters = to_bytes(address);
    return add_node(machine, target, std::move(work));
}

} // namespace

// Conditional nodes, by the header's text. No simulated kernel sets a condition: it keeps its
// initial value, and the body of a loop runs once.

namespace {

void check_size(const CUDA_CONDITIONAL_NODE_PARAMS& p) {
    switch (static_cast<int>(p.type)) {
    case CU_GRAPH_COND_TYPE_IF:
        return require(p.size == 1 || p.size == 2);
    case CU_GRAPH_COND_TYPE_WHILE:
        return require(p.size == 1);
    case 2: // CU_GRAPH_COND_TYPE_SWITCH, of 12.8
        return require(p.size >= 1);
    default:
        refuse(CUDA_ERROR_INVALID_VALUE);
    }
}

Node& add_conditional(Machine& machine, const NewNode& target,
                      CUDA_CONDITIONAL_NODE_PARAMS& parameters) {
    check_size(parameters);
    Conditional& condition =
        known(find(machine.conditionals, to_pointer<void*>(parameters.handle)));
    require(!condition.used && condition.graph == to_handle(target.graph) &&
            condition.context == &context_or_current(machine, parameters.ctx));
    Work work(Work::Kind::Conditional);
    work.context = condition.context;
    Node& node = add_node(machine, target, std::move(work));
    condition.used = true;
    for (unsigned i = 0; i < parameters.size; i++) {
        Graph& body = new_graph(machine);
        body.hidden = true;
        node.work.bodies.push_back(body.handle);
        node.body_pointers.push_back(to_pointer<CUgraph>(body.handle));
    }
    parameters.phGraph_out = node.body_pointers.data();
    node.work.parameters = to_bytes(parameters);
    return node;
}

} // namespace

const Graph* chosen_body(Machine& machine, const Work& work) {
    const auto p = parameters_of<CUDA_CONDITIONAL_NODE_PARAMS>(work, Work::Kind::Conditional);
    const Conditional* const condition = find(machine.conditionals, to_pointer<void*>(p.handle));
    const unsigned value = condition == nullptr ? 0 : condition->value;
    // The first body of an IF or a WHILE runs if the value is not 0, the second of an IF if it is.
    const bool is_switch = static_cast<int>(p.type) == 2;
    const std::size_t index = is_switch ? value : value != 0 ? 0 : 1;
    return index < work.bodies.size() ? machine.graphs[work.bodies[index]].get() : nullptr;
}

GCX_SIM_API(cuGraphConditionalHandleCreate, CUgraphConditionalHandle* out, CUgraph graph,
            CUcontext context, unsigned value, unsigned flags) {
    GCX_SIM_BODY({
        require(out != nullptr && flags <= CU_GRAPH_COND_ASSIGN_DEFAULT);
        const Graph& owner = graph_of(machine, graph);
        Context& place = context_or_current(machine, context);
        Conditional& made = create(machine.conditionals);
        made.graph = owner.handle;
        made.context = &place;
        made.value = flags == CU_GRAPH_COND_ASSIGN_DEFAULT ? value : 0;
        *out = made.handle;
    });
}

// Copies, fills, host functions, events and child graphs.

namespace {

CUgraphNodeType node_type(const Work& work) {
    switch (work.kind) {
    case Work::Kind::Kernel:
        return CU_GRAPH_NODE_TYPE_KERNEL;
    case Work::Kind::Memcpy:
        return CU_GRAPH_NODE_TYPE_MEMCPY;
    case Work::Kind::Memset:
        return CU_GRAPH_NODE_TYPE_MEMSET;
    case Work::Kind::Host:
        return CU_GRAPH_NODE_TYPE_HOST;
    case Work::Kind::EventRecord:
        return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    case Work::Kind::EventWait:
        return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    case Work::Kind::ChildGraph:
        return CU_GRAPH_NODE_TYPE_GRAPH;
    case Work::Kind::MemoryAlloc:
        return CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    case Work::Kind::MemoryFree:
        return CU_GRAPH_NODE_TYPE_MEM_FREE;
    case Work::Kind::Conditional:
        return CU_GRAPH_NODE_TYPE_CONDITIONAL;
    case Work::Kind::MemoryOperation:
        return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    default:
        return CU_GRAPH_NODE_TYPE_EMPTY;
    }
}

template <class T>
void give_parameters(Machine& machine, CUgraphNode handle, Work::Kind kind, T* out) {
    const Work& work = node_of(machine, handle).work;
    give(out, parameters_of<T>(work, kind));
}

Work host_work(const CUDA_HOST_NODE_PARAMS& parameters) {
    require(parameters.fn != nullptr);
    Work work(Work::Kind::Host);
    work.host = [parameters] { parameters.fn(parameters.userData); };
    work.parameters = to_bytes(parameters);
    return work;
}

Work event_work(Machine& machine, Work::Kind kind, CUevent event) {
    Work work(kind);
    work.event = known(find(machine.events, event)).handle;
    return work;
}

Node& add_child(Machine& machine, const NewNode& target, CUgraph child) {
    const Graph& source = graph_of(machine, child);
    require(child != target.graph);
    require(!holds_any(machine, source, kUncloned)); // the header's text
    Node& node = add_node(machine, target, Work(Work::Kind::ChildGraph));
    node.work.child = new_hidden_copy(machine, source).handle;
    return node;
}

} // namespace

GCX_SIM_API(cuGraphNodeGetType, CUgraphNode handle, CUgraphNodeType* out) {
    GCX_SIM_BODY(give(out, node_type(node_of(machine, handle).work)));
}

GCX_SIM_API(cuGraphAddEmptyNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
            std::size_t count) {
    GCX_SIM_BODY(add_node(machine, {out, graph, dependencies, count}, Work(Work::Kind::Empty)));
}

GCX_SIM_API(cuGraphAddMemsetNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
            std::size_t count, const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext handle) {
    GCX_SIM_BODY({
        Context& context = context_of(machine, handle);
        Work work = memset_work(machine, known(parameters));
        work.context = &context;
        add_node(machine, {out, graph, dependencies, count}, std::move(work));
    });
}

GCX_SIM_API(cuGraphMemsetNodeGetParams, CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) {
    GCX_SIM_BODY(give_parameters(machine, node, Work::Kind::Memset, out));
}

GCX_SIM_API(cuGraphAddMemcpyNode, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
            std::size_t count, const CUDA_MEMCPY3D* parameters, CUcontext handle) {
    GCX_SIM_BODY({
        Context& context = context_of(machine, handle);
        Work work = memcpy_work(machine, known(parameters));
        work.context = &context;
        add_node(machine, {out, graph, dependencies, count}, std::move(work));
    });
}

GCX_SIM_API(cuGraphMemcpyNodeGetParams, CUgraphNode node, CUDA_MEMCPY3D* out) {
    GCX_SIM_BODY(give_parameters(machine, node, Work::Kind::Memcpy, out));
}

GCX_SIM_API(cuGraphHostNodeGetParams, CUgraphNode node, CUDA_HOST_NODE_PARAMS* out) {
    GCX_SIM_BODY(give_parameters(machine, node, Work::Kind::Host, out));
}

GCX_SIM_API(cuGraphAddChildGraphNode, CUgraphNode* out, CUgraph graph,
            const CUgraphNode* dependencies, std::size_t count, CUgraph child) {
    GCX_SIM_BODY(add_child(machine, {out, graph, dependencies, count}, child));
}

GCX_SIM_API(cuGraphChildGraphNodeGetGraph, CUgraphNode handle, CUgraph* out) {
    GCX_SIM_BODY({
        const Node& node = node_of(machine, handle);
        require(node.work.child != 0);
        give(out, node.work.child);
    });
}

// Functions that take a node of any kind.

namespace {

// Copies the common fields of structs that differ in a context at their end.
template <class To, class From>
To prefix_of(const From& from) {
    To to{};
    std::memcpy(&to, &from, std::min(sizeof to, sizeof from));
    return to;
}

CUDA_KERNEL_NODE_PARAMS_v2 kernel_of(const CUgraphNodeParams& p) {
    return prefix_of<CUDA_KERNEL_NODE_PARAMS_v2>(p.kernel);
}

// Sets the context of a node. Assumed: no context means the current one.
Work in_context(Machine& machine, Work work, CUcontext context) {
    work.context = &context_or_current(machine, context);
    return work;
}

// Returns the work of the kinds that depend only on their parameters.
Work work_of(Machine& machine, const CUgraphNodeParams& p) {
    switch (p.type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return in_context(machine, memcpy_work(machine, p.memcpy.copyParams), p.memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return in_context(machine,
                          memset_work(machine, prefix_of<CUDA_MEMSET_NODE_PARAMS>(p.memset)),
                          p.memset.ctx);
    case CU_GRAPH_NODE_TYPE_HOST:
        return host_work(prefix_of<CUDA_HOST_NODE_PARAMS>(p.host));
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return event_work(machine, Work::Kind::EventWait, p.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return event_work(machine, Work::Kind::EventRecord, p.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return Work(Work::Kind::Empty);
    default:
        refuse(CUDA_ERROR_NOT_SUPPORTED);
    }
}

void add_any(Machine& machine, const NewNode& target, CUgraphNodeParams* parameters) {
    CUgraphNodeParams& p = known(parameters);
    switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return add_kernel(machine, target, kernel_of(p));
    case CU_GRAPH_NODE_TYPE_GRAPH:
        add_child(machine, target, p.graph.graph);
        return;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
        Node& node =
            add_allocation(machine, target, p.alloc.poolProps, p.alloc.bytesize, p.alloc.dptr);
        node.work.parameters = to_bytes(prefix_of<CUDA_MEM_ALLOC_NODE_PARAMS>(p.alloc));
        return;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        add_free(machine, target, p.free.dptr);
        return;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        add_conditional(machine, target, p.conditional);
        return;
    default:
        add_node(machine, target, work_of(machine, p));
    }
}

Handle context_handle(const Work& work) {
    return work.context == nullptr ? 0 : work.context->handle;
}

CUgraphNodeParams any_parameters(Machine& machine, Node& node) {
    const Work& work = node.work;
    CUgraphNodeParams p{};
    p.type = node_type(work);
    switch (work.kind) {
    case Work::Kind::Kernel:
        p.kernel = prefix_of<CUDA_KERNEL_NODE_PARAMS_v3>(kernel_parameters(machine, node));
        break;
    case Work::Kind::Memcpy:
        p.memcpy.copyParams = parameters_of<CUDA_MEMCPY3D>(work, work.kind);
        p.memcpy.copyCtx = to_pointer<CUcontext>(context_handle(work));
        break;
    case Work::Kind::Memset:
        p.memset = prefix_of<CUDA_MEMSET_NODE_PARAMS_v2>(
            parameters_of<CUDA_MEMSET_NODE_PARAMS>(work, work.kind));
        p.memset.ctx = to_pointer<CUcontext>(context_handle(work));
        break;
    case Work::Kind::Host:
        p.host = prefix_of<CUDA_HOST_NODE_PARAMS_v2>(
            parameters_of<CUDA_HOST_NODE_PARAMS>(work, work.kind));
        break;
    case Work::Kind::EventRecord:
        p.eventRecord.event = to_pointer<CUevent>(work.event);
        break;
    case Work::Kind::EventWait:
        p.eventWait.event = to_pointer<CUevent>(work.event);
        break;
    case Work::Kind::ChildGraph:
        p.graph.graph = to_pointer<CUgraph>(work.child);
        break;
    case Work::Kind::MemoryAlloc:
        p.alloc = prefix_of<CUDA_MEM_ALLOC_NODE_PARAMS_v2>(
            parameters_of<CUDA_MEM_ALLOC_NODE_PARAMS>(work, work.kind));
        break;
    case Work::Kind::MemoryFree:
        p.free.dptr = parameters_of<CUdeviceptr>(work, work.kind);
        break;
    case Work::Kind::Conditional:
        p.conditional = parameters_of<CUDA_CONDITIONAL_NODE_PARAMS>(work, work.kind);
        break;
    default:
        break;
    }
    return p;
}

void set_any(Machine& machine, CUgraphNode handle, const CUgraphNodeParams& p) {
    Node& node = node_of(machine, handle);
    require(node_type(node.work) == p.type);
    if (p.type == CU_GRAPH_NODE_TYPE_KERNEL)
        set_kernel(machine, handle, kernel_of(p));
    else
        node.work = work_of(machine, p);
}

// Recorded: copies and fills keep their context and ignore the given one.
void set_any_in(Machine& machine, CUgraphExec exec, CUgraphNode handle,
                const CUgraphNodeParams& p) {
    if (p.type == CU_GRAPH_NODE_TYPE_KERNEL)
        return set_exec_kernel(machine, exec, handle, kernel_of(p));
    Node& node = node_in(machine, exec, handle);
    require(node_type(node.work) == p.type);
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
