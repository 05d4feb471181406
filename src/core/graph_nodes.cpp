#include "core/graph_nodes.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

namespace gcx {

namespace {

const char* kind_name(int kind) {
    constexpr const char* kNames[] = {
        "kernel",
        "memcpy",
        "memset",
        "host",
        "child graph",
        "empty",
        "event wait",
        "event record",
        "semaphore",
        "semaphore",
        "memory allocation",
        "memory free",
        "batched memory operation",
        "conditional",
    };
    return kind >= 0 && static_cast<std::size_t>(kind) < std::size(kNames) ? kNames[kind]
                                                                           : "unknown";
}

bool can_move(int kind) {
    return kind >= GCX_GRAPH_NODE_KERNEL && kind <= GCX_GRAPH_NODE_SEMAPHORE_WAIT;
}

[[noreturn]] void refuse_kind(int kind, std::size_t number) {
    fail(
        GCX_ERROR_NOT_SUPPORTED,
        format("node %zu is a %s node (CUgraphNodeType %d), which cannot be moved to other SMs; "
               "capture the graph without it, for example with memory that is allocated beforehand",
               number, kind_name(kind), kind));
}

std::vector<CUgraphNode> native_nodes(const Driver& driver, CUgraph graph) {
    std::size_t count = 0;
    GCX_CALL(driver, cuGraphGetNodes, graph, nullptr, &count);
    std::vector<CUgraphNode> nodes(count);
    if (count != 0)
        GCX_CALL(driver, cuGraphGetNodes, graph, nodes.data(), &count);
    nodes.resize(count);
    return nodes;
}

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    return {begin, begin + sizeof value};
}

const NodeAttribute* find_attribute(const KernelLaunch& launch, unsigned id) {
    const auto found = std::find_if(launch.attributes.begin(), launch.attributes.end(),
                                    [&](const NodeAttribute& one) { return one.id == id; });
    return found == launch.attributes.end() ? nullptr : &*found;
}

// Returns the value that a node has if the attribute was never set.
NodeAttribute default_attribute(unsigned id) {
    CUlaunchAttributeValue value;
    std::memset(&value, 0, sizeof value);
    if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) // measured on streams with 13.0
        value.memSyncDomainMap.remote = 1;
    NodeAttribute attribute{id, {}};
    std::memcpy(attribute.value.data(), &value, sizeof value);
    return attribute;
}

// Returns the arguments passed by CU_LAUNCH_PARAM_BUFFER_POINTER; empty if there are none.
std::span<const std::byte> buffer_of(void** extra) {
    const std::byte* begin = nullptr;
    std::size_t size = 0;
    for (; extra != nullptr && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            begin = static_cast<const std::byte*>(extra[1]);
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = *static_cast<const std::size_t*>(extra[1]);
    }
    return {begin, begin == nullptr ? 0 : size};
}

} // namespace

std::array<unsigned, 3> KernelLaunch::cluster() const {
    std::array<unsigned, 3> size{};
    if (const NodeAttribute* found = find_attribute(*this, cu::kAttributeCluster))
        std::memcpy(size.data(), found->value.data(), sizeof size);
    return size;
}

bool KernelLaunch::cooperative() const {
    int flag = 0;
    if (const NodeAttribute* found = find_attribute(*this, cu::kAttributeCooperative))
        std::memcpy(&flag, found->value.data(), sizeof flag);
    return flag != 0;
}

bool KernelLaunch::same_code(const KernelLaunch& other) const {
    return kern == other.kern && (kern != nullptr || func == other.func);
}

bool KernelLaunch::same_parameters(const KernelLaunch& other) const {
    return same_code(other) && grid == other.grid && block == other.block &&
           shared_bytes == other.shared_bytes && arguments == other.arguments;
}

std::optional<NodeAttribute> read_attribute(const Driver& driver, CUgraphNode node, unsigned id) {
    CUlaunchAttributeValue value; // the driver fills in the attribute's own size
    std::memset(&value, 0, sizeof value);
    const CUresult result =
        driver.cuGraphKernelNodeGetAttribute(node, cu::attribute_id(id), &value);
    if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED)
        return std::nullopt;
    driver.check(result, "cuGraphKernelNodeGetAttribute");
    NodeAttribute attribute{id, {}};
    std::memcpy(attribute.value.data(), &value, sizeof value);
    return attribute;
}

// Measured on 13.0, for nodes and nodes of executables: if func is given, the driver takes the
// current context and ignores kern and ctx. If it is null, the driver takes kern and ctx.
const CUDA_KERNEL_NODE_PARAMS_v2* KernelParams::of(const KernelLaunch& launch, CUcontext context) {
    // The driver only reads what they point to.
    auto* const begin = const_cast<std::byte*>(launch.arguments.data());
    pointers_.clear();
    for (const KernelLayout::Parameter& parameter : launch.layout->parameters)
        pointers_.push_back(begin + parameter.offset);
    native_.func = launch.kern == nullptr ? launch.func : nullptr;
    native_.kern = launch.kern;
    native_.ctx = context;
    native_.gridDimX = launch.grid[0];
    native_.gridDimY = launch.grid[1];
    native_.gridDimZ = launch.grid[2];
    native_.blockDimX = launch.block[0];
    native_.blockDimY = launch.block[1];
    native_.blockDimZ = launch.block[2];
    native_.sharedMemBytes = launch.shared_bytes;
    native_.kernelParams = pointers_.empty() ? nullptr : pointers_.data();
    return &native_;
}

std::string describe_node(const std::vector<GraphNode>& nodes, uint32_t number) {
    const GraphNode& node = nodes[number];
    std::string text = format("node %u, a %s node", number, kind_name(node.kind));
    if (node.is_kernel() && node.kernel.layout != nullptr)
        text += " of " + node.kernel.layout->name;
    return text;
}

namespace {

// number: that of the graph's first node. Returns the number after its last node.
std::size_t check_level(const Driver& driver, CUgraph graph, std::size_t number) {
    for (CUgraphNode native : native_nodes(driver, graph)) {
        CUgraphNodeType kind{};
        GCX_CALL(driver, cuGraphNodeGetType, native, &kind);
        if (!can_move(kind))
            refuse_kind(kind, number);
        number++;
        if (kind != CU_GRAPH_NODE_TYPE_GRAPH)
            continue;
        CUgraph child = nullptr;
        GCX_CALL(driver, cuGraphChildGraphNodeGetGraph, native, &child);
        number = check_level(driver, child, number);
    }
    return number;
}

} // namespace

void check_movable(const Driver& driver, CUgraph graph) {
    check_level(driver, graph, 0);
}

GraphNodes::GraphNodes(ContextCache& cache, const Driver& driver, CUgraph graph,
                       const std::function<Device&(int32_t)>& device_of)
    : cache_(cache), driver_(driver) {
    attribute_ids_.assign(std::begin(cu::kNodeAttributes), std::end(cu::kNodeAttributes));
    read_level(graph, GCX_NO_NODE);
    find_device(device_of);
    find_parts();
    const Device::PrimaryContextRef primary = device_->retain_primary();
    const ScopedCurrent current(driver, primary.context());
    for (GraphNode& node : nodes) {
        if (node.is_kernel())
            node.kernel.blocks_per_sm = blocks_per_sm(node.kernel);
    }
}

void GraphNodes::read_level(CUgraph graph, uint32_t parent) {
    const auto level = static_cast<uint32_t>(levels.size());
    levels.push_back({graph, {}, {}});
    for (CUgraphNode native : native_nodes(driver_, graph)) {
        const auto number = static_cast<uint32_t>(nodes.size());
        levels[level].nodes.push_back(number);
        GraphNode node;
        node.native = native;
        node.level = level;
        node.parent = parent;
        read_node(node, number);
        const bool has_child = node.kind == GCX_GRAPH_NODE_GRAPH;
        nodes.push_back(std::move(node));
        if (has_child) {
            CUgraph child = nullptr;
            GCX_CALL(driver_, cuGraphChildGraphNodeGetGraph, native, &child);
            read_level(child, number);
        }
    }
    read_edges(levels[level]);
}

void GraphNodes::read_node(GraphNode& node, uint32_t number) {
    CUgraphNodeType kind{};
    GCX_CALL(driver_, cuGraphNodeGetType, node.native, &kind);
    if (!can_move(kind))
        refuse_kind(kind, number);
    node.kind = static_cast<gcx_graph_node_kind>(kind);
    if (node.is_kernel()) {
        read_kernel(node, number);
    } else if (node.kind == GCX_GRAPH_NODE_MEMCPY) {
        CUDA_MEMCPY3D params{};
        GCX_CALL(driver_, cuGraphMemcpyNodeGetParams, node.native, &params);
        node.parameters = bytes_of(params);
    } else if (node.kind == GCX_GRAPH_NODE_MEMSET) {
        CUDA_MEMSET_NODE_PARAMS params{};
        GCX_CALL(driver_, cuGraphMemsetNodeGetParams, node.native, &params);
        node.parameters = bytes_of(params);
    } else if (node.kind == GCX_GRAPH_NODE_HOST) {
        CUDA_HOST_NODE_PARAMS params{};
        GCX_CALL(driver_, cuGraphHostNodeGetParams, node.native, &params);
        node.parameters = bytes_of(params);
    }
}

void GraphNodes::read_kernel(GraphNode& node, uint32_t number) {
    CUDA_KERNEL_NODE_PARAMS_v2 params{};
    GCX_CALL(driver_, cuGraphKernelNodeGetParams, node.native, &params);
    if (params.ctx != nullptr)
        keep_captured_context(params.ctx, number);
    KernelLaunch& launch = node.kernel;
    launch.func = params.func;
    launch.kern = params.kern;
    launch.grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
    launch.block = {params.blockDimX, params.blockDimY, params.blockDimZ};
    launch.shared_bytes = params.sharedMemBytes;
    launch.layout = layout_of(params);
    node.captured = params.ctx;
    node.at = 0;
    read_arguments(launch, params, number);
    read_attributes(node, number);
}

// Called before anything else is asked of the context, because the cache may evict an unused one.
void GraphNodes::keep_captured_context(CUcontext context, uint32_t number) {
    const auto is_it = [&](const CapturedContext& one) { return one.native == context; };
    if (std::any_of(captured_in.begin(), captured_in.end(), is_it))
        return;
    CapturedContext one;
    one.native = context;
    one.keep = cache_.find(context, ContextCache::Use::graph);
    if (!one.keep) {
        const CUresult result = driver_.cuCtxGetId(context, &one.id);
        if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT)
            fail(GCX_ERROR_CONTEXT_IS_DESTROYED,
                 format("node %u, a kernel node, was captured in a context that does not exist any "
                        "more; capture the graph again, and keep the context until gcx has read it",
                        number));
        driver_.check(result, "cuCtxGetId");
    }
    captured_in.push_back(std::move(one));
}

void GraphNodes::read_arguments(KernelLaunch& launch, const CUDA_KERNEL_NODE_PARAMS_v2& params,
                                uint32_t number) {
    const KernelLayout& layout = *launch.layout;
    launch.arguments.resize(layout.bytes);
    if (layout.parameters.empty())
        return;
    if (params.kernelParams != nullptr) {
        for (std::size_t i = 0; i < layout.parameters.size(); i++)
            std::memcpy(launch.arguments.data() + layout.parameters[i].offset,
                        params.kernelParams[i], layout.parameters[i].size);
        return;
    }
    const auto buffer = buffer_of(params.extra);
    if (buffer.size() < layout.bytes)
        fail(GCX_ERROR_NOT_SUPPORTED,
             format("node %u, a kernel node of %s, has %zu bytes of arguments, and the driver "
                    "reports %zu of them",
                    number, layout.name.c_str(), layout.bytes, buffer.size()));
    std::memcpy(launch.arguments.data(), buffer.data(), layout.bytes);
}

void GraphNodes::read_attributes(GraphNode& node, uint32_t number) {
    std::vector<unsigned> supported;
    for (const unsigned id : attribute_ids_) {
        const auto attribute = read_attribute(driver_, node.native, id);
        if (!attribute)
            continue;
        supported.push_back(id);
        int flag = 0;
        std::memcpy(&flag, attribute->value.data(), sizeof flag);
        if (id == cu::kAttributeDeviceUpdatable && flag != 0)
            fail(GCX_ERROR_NOT_SUPPORTED,
                 format("node %u, a kernel node of %s, is one that device code updates: CUDA makes "
                        "a single executable of such a graph, so that it can't be moved",
                        number, node.kernel.layout->name.c_str()));
        if (*attribute != default_attribute(id))
            node.kernel.attributes.push_back(*attribute);
    }
    if (!std::exchange(attributes_known_, true))
        attribute_ids_ = std::move(supported);
}

void GraphNodes::read_edges(GraphLevel& level) {
    std::size_t count = 0;
    GCX_CALL(driver_, cuGraphGetEdges, level.graph, nullptr, nullptr, nullptr, &count);
    if (count == 0)
        return;
    std::vector<CUgraphNode> from(count);
    std::vector<CUgraphNode> to(count);
    std::vector<CUgraphEdgeData> data(count);
    GCX_CALL(driver_, cuGraphGetEdges, level.graph, from.data(), to.data(), data.data(), &count);
    std::unordered_map<CUgraphNode, uint32_t> numbers;
    for (const uint32_t number : level.nodes)
        numbers[nodes[number].native] = number;
    for (std::size_t i = 0; i < count; i++) {
        GraphLevel::Edge edge{numbers.at(from[i]), numbers.at(to[i]), {}};
        std::memcpy(edge.data.data(), &data[i], sizeof data[i]);
        level.edges.push_back(edge);
    }
    std::sort(level.edges.begin(), level.edges.end());
}

std::shared_ptr<const KernelLayout>
GraphNodes::layout_of(const CUDA_KERNEL_NODE_PARAMS_v2& params) {
    CUfunction const func = params.func;
    CUkernel const kern = params.kern;
    const void* const key = kern != nullptr ? static_cast<const void*>(kern) : func;
    std::shared_ptr<const KernelLayout>& found = layouts_[key];
    if (found != nullptr)
        return found;
    // Measured on 13.0: the driver reports a kernel's parameters only while a context is current.
    std::optional<ScopedCurrent> current;
    if (params.ctx != nullptr)
        current.emplace(driver_, params.ctx);
    auto layout = std::make_shared<KernelLayout>();
    const char* name = nullptr;
    if (kern != nullptr)
        GCX_CALL(driver_, cuKernelGetName, &name, kern);
    else
        GCX_CALL(driver_, cuFuncGetName, &name, func);
    layout->name = name;
    for (std::size_t i = 0;; i++) {
        KernelLayout::Parameter parameter{};
        const CUresult result =
            kern != nullptr
                ? driver_.cuKernelGetParamInfo(kern, i, &parameter.offset, &parameter.size)
                : driver_.cuFuncGetParamInfo(func, i, &parameter.offset, &parameter.size);
        if (result == CUDA_ERROR_INVALID_VALUE)
            break; // past the last
        driver_.check(result, kern != nullptr ? "cuKernelGetParamInfo" : "cuFuncGetParamInfo");
        layout->parameters.push_back(parameter);
        layout->bytes = std::max(layout->bytes, parameter.offset + parameter.size);
    }
    found = std::move(layout);
    return found;
}

void GraphNodes::find_device(const std::function<Device&(int32_t)>& device_of) {
    std::map<CUcontext, int32_t> seen;
    uint32_t first = 0;
    for (uint32_t i = 0; i < nodes.size(); i++) {
        const GraphNode& node = nodes[i];
        if (!node.is_kernel() || node.captured == nullptr || seen.contains(node.captured))
            continue;
        CUdevice ordinal = 0;
        const ScopedCurrent current(driver_, node.captured);
        GCX_CALL(driver_, cuCtxGetDevice, &ordinal);
        if (seen.empty())
            first = i;
        else if (ordinal != seen.begin()->second)
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format("%s is of device %d, and %s of device %d: a graph of two devices can't be "
                        "moved",
                        describe_node(nodes, first).c_str(), seen.begin()->second,
                        describe_node(nodes, i).c_str(), ordinal));
        seen[node.captured] = ordinal;
    }
    if (seen.empty()) {
        CUcontext current = nullptr;
        GCX_CALL(driver_, cuCtxGetCurrent, &current);
        if (current == nullptr)
            fail(GCX_ERROR_INVALID_CONTEXT,
                 "the graph has no kernels from which to tell its device, and no context is "
                 "current in this thread; make a context of the device current");
        CUdevice ordinal = 0;
        GCX_CALL(driver_, cuCtxGetDevice, &ordinal);
        device_ = &device_of(ordinal);
        return;
    }
    device_ = &device_of(seen.begin()->second);
}

// Makes one part for each context in which kernels were captured.
void GraphNodes::find_parts() {
    const Device::PrimaryContextRef primary = device_->retain_primary();
    std::vector<CUcontext> contexts;
    for (uint32_t i = 0; i < nodes.size(); i++) {
        GraphNode& node = nodes[i];
        if (!node.is_kernel())
            continue;
        if (node.captured == nullptr)
            node.captured = primary.context();
        const auto found = std::find(contexts.begin(), contexts.end(), node.captured);
        node.part = static_cast<uint32_t>(found - contexts.begin());
        if (found != contexts.end())
            continue;
        if (contexts.size() == GCX_MAX_GRAPH_PARTS)
            fail(
                GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                format("%s, is in one more context than the limit of %u for the kernels of a graph",
                       describe_node(nodes, i).c_str(), GCX_MAX_GRAPH_PARTS));
        contexts.push_back(node.captured);
    }
    if (contexts.empty())
        contexts.push_back(primary.context());
    part_count_ = static_cast<uint32_t>(contexts.size());
    assign_copies();
    for (GraphNode& node : nodes) {
        if (node.has_context() && !node.is_kernel())
            node.captured = contexts[node.part];
    }
}

namespace {

using Neighbours = std::vector<std::vector<uint32_t>>; // by place

// Returns the part of each place's nearest kernel, breadth first; GCX_NO_NODE where there is none.
std::vector<uint32_t> nearest_parts(const std::vector<GraphNode>& nodes,
                                    const Neighbours& neighbours) {
    std::vector<uint32_t> parts(neighbours.size(), GCX_NO_NODE);
    std::vector<uint32_t> open;
    for (uint32_t i = 0; i < nodes.size(); i++) {
        if (!nodes[i].is_kernel())
            continue;
        parts[i] = nodes[i].part;
        open.push_back(i);
    }
    for (std::size_t i = 0; i < open.size(); i++) {
        for (const uint32_t place : neighbours[open[i]]) {
            if (parts[place] != GCX_NO_NODE)
                continue;
            parts[place] = parts[open[i]];
            open.push_back(place);
        }
    }
    return parts;
}

} // namespace

// CUDA does not report the context of copies. They join the part of the nearest kernel before them,
// or else after them. Those of a child graph without kernels join the part of its node.
void GraphNodes::assign_copies() {
    const auto count = static_cast<uint32_t>(nodes.size());
    // The node of a child graph stands for two places: before and behind the nodes of that graph.
    const auto behind = [&](uint32_t number) {
        const bool has_child = number + 1 < count && nodes[number + 1].parent == number;
        return has_child ? number + count : number;
    };
    Neighbours next(2 * nodes.size());
    Neighbours previous(2 * nodes.size());
    const auto connect = [&](uint32_t from, uint32_t to) {
        next[from].push_back(to);
        previous[to].push_back(from);
    };
    for (const GraphLevel& level : levels) {
        for (const GraphLevel::Edge& edge : level.edges)
            connect(behind(edge.from), edge.to);
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t parent = nodes[i].parent;
        if (parent == GCX_NO_NODE)
            continue;
        if (previous[i].empty())
            connect(parent, i);
        if (next[behind(i)].empty())
            connect(behind(i), parent + count);
    }
    const std::vector<uint32_t> before = nearest_parts(nodes, next);
    const std::vector<uint32_t> after = nearest_parts(nodes, previous);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t parent = nodes[i].parent; // comes before the node
        const uint32_t part = before[i] != GCX_NO_NODE ? before[i] : after[i];
        if (part != GCX_NO_NODE)
            nodes[i].part = part;
        else
            nodes[i].part = parent == GCX_NO_NODE ? 0 : nodes[parent].part;
    }
}

void GraphNodes::set_part(std::span<const uint32_t> numbers, uint32_t part) {
    for (const uint32_t number : numbers) {
        nodes[number].part = part;
        // The nodes of its child graph follow it.
        for (std::size_t i = number + 1; i < nodes.size(); i++) {
            uint32_t parent = nodes[i].parent;
            while (parent != GCX_NO_NODE && parent > number)
                parent = nodes[parent].parent;
            if (parent != number)
                break;
            nodes[i].part = part;
        }
    }
    part_count_ = std::max(part_count_, part + 1);
}

void GraphNodes::copy_parts(const GraphNodes& other) {
    for (std::size_t i = 0; i < nodes.size(); i++)
        nodes[i].part = other.nodes[i].part;
    part_count_ = other.part_count_;
}

uint32_t GraphNodes::blocks_per_sm(const KernelLaunch& launch) {
    const unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
    const void* const kernel =
        launch.kern != nullptr ? static_cast<const void*>(launch.kern) : launch.func;
    const Occupancy key = {kernel, threads, launch.shared_bytes};
    if (const auto found = occupancies_.find(key); found != occupancies_.end())
        return found->second;
    CUfunction func = launch.func;
    if (launch.kern != nullptr)
        GCX_CALL(driver_, cuKernelGetFunction, &func, launch.kern);
    int blocks = 0;
    GCX_CALL(driver_, cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, func,
             static_cast<int>(threads), launch.shared_bytes);
    return occupancies_[key] = static_cast<uint32_t>(blocks);
}

namespace {

template <class T>
T from_bytes(const std::vector<std::byte>& bytes) {
    T value{};
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

// CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
constexpr unsigned long long kUseNodePriority = 8;

} // namespace

MovableGraph::MovableGraph(ContextCache& cache, const Driver& driver, CUgraph captured,
                           const std::function<Device&(int32_t)>& device_of)
    : driver_(driver) {
    const RelaxedCapture relaxed(driver);
    const CUresult result = driver.cuGraphClone(&graph_, captured);
    if (result != CUDA_SUCCESS) {
        graph_ = nullptr;
        check_movable(driver, captured);
        driver.check(result, "cuGraphClone");
    }
    try {
        nodes_ = std::make_unique<GraphNodes>(cache, driver, graph_, device_of);
    } catch (...) {
        retry_once([&] { return driver.cuGraphDestroy(graph_); });
        throw;
    }
}

MovableGraph::~MovableGraph() {
    try {
        destroy();
    } catch (const Error& error) {
        log::write(GCX_LOG_ERROR, "a graph could not be destroyed: " + error.message);
    }
}

void MovableGraph::destroy() {
    if (graph_ != nullptr)
        driver_.check(retry_once([&] { return driver_.cuGraphDestroy(graph_); }), "cuGraphDestroy");
    graph_ = nullptr;
}

const PartTarget& MovableGraph::target_of(const GraphNode& node,
                                          std::span<const PartTarget> targets) {
    return targets[targets.size() == 1 ? 0 : node.part];
}

CUcontext MovableGraph::context_for(const GraphNode& node, std::span<const PartTarget> targets) {
    const PartTarget& target = target_of(node, targets);
    return target.context != nullptr ? target.context : node.captured;
}

void MovableGraph::check_grids(std::span<const PartTarget> targets) const {
    const auto& nodes = nodes_->nodes;
    for (uint32_t i = 0; i < nodes.size(); i++) {
        const KernelLaunch& launch = nodes[i].kernel;
        if (!nodes[i].is_kernel() || !launch.cooperative())
            continue;
        const uint32_t sm_count = target_of(nodes[i], targets).sm_count;
        const uint64_t largest = uint64_t{launch.blocks_per_sm} * sm_count;
        if (sm_count != 0 && launch.blocks() > largest)
            fail(GCX_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                 format("%s, is cooperative with a grid of %u x %u x %u, %llu blocks; %u SMs hold "
                        "%llu of them at once",
                        describe_node(nodes, i).c_str(), launch.grid[0], launch.grid[1],
                        launch.grid[2], static_cast<unsigned long long>(launch.blocks()), sm_count,
                        static_cast<unsigned long long>(largest)));
    }
}

CUgraphExec MovableGraph::instantiate(std::span<const PartTarget> targets, bool node_priorities) {
    const RelaxedCapture relaxed(driver_);
    move_to(targets);
    CUgraphExec executable = nullptr;
    GCX_CALL(driver_, cuGraphInstantiateWithFlags, &executable, graph_,
             node_priorities ? kUseNodePriority : 0);
    return executable;
}

KernelLaunch MovableGraph::exchange_kernel(uint32_t number, KernelLaunch launch) {
    GraphNode& node = nodes_->nodes[number];
    node.at = GraphNode::kUnknown; // forces the next move to set it
    return std::exchange(node.kernel, std::move(launch));
}

void MovableGraph::in_contexts(std::span<const NodeTarget> targets,
                               const std::function<void(const NodeTarget&)>& body) const {
    std::vector<CUcontext> contexts;
    for (const NodeTarget& one : targets) {
        if (std::find(contexts.begin(), contexts.end(), one.context) == contexts.end())
            contexts.push_back(one.context);
    }
    for (CUcontext context : contexts) {
        const ScopedCurrent current(driver_, context);
        for (const NodeTarget& one : targets) {
            if (one.context == context)
                body(one);
        }
    }
}

void MovableGraph::move_to(std::span<const PartTarget> targets) {
    std::vector<NodeTarget> moves;
    moves.reserve(nodes().size());
    for (uint32_t i = 0; i < nodes().size(); i++) {
        const GraphNode& node = nodes()[i];
        const uint64_t id = target_of(node, targets).id;
        if (node.has_context() && node.at != id)
            moves.push_back({i, context_for(node, targets), id});
    }
    move(moves);
}

void MovableGraph::move(std::span<const NodeTarget> moves) {
    const RelaxedCapture relaxed(driver_);
    in_contexts(moves, [this](const NodeTarget& one) {
        GraphNode& node = nodes_->nodes[one.number];
        node.at = GraphNode::kUnknown; // if the call fails
        if (node.is_kernel())
            move_kernel(one);
        else
            move_copy(one);
        node.at = one.id;
    });
}

void MovableGraph::check_set(CUresult result, const char* function, uint32_t number) const {
    if (result != CUDA_SUCCESS)
        fail(static_cast<gcx_result>(result),
             describe_node(nodes(), number) + ": " + driver_.describe(result, function));
}

// Requires that the context is current.
void MovableGraph::move_kernel(const NodeTarget& where) {
    const GraphNode& node = nodes()[where.number];
    check_set(
        driver_.cuGraphKernelNodeSetParams(node.native, params_.of(node.kernel, where.context)),
        "cuGraphKernelNodeSetParams", where.number);
    compare_kernel(where);
    for (const NodeAttribute& attribute : node.kernel.attributes) {
        if (read_attribute(driver_, node.native, attribute.id) != attribute)
            fail(GCX_ERROR_NOT_SUPPORTED,
                 format("%s: the driver did not keep its launch attribute %u when it was moved",
                        describe_node(nodes(), where.number).c_str(), attribute.id));
    }
}

// Moves a memcpy or memset node. Drivers before 13.2 do not report the context of one.
void MovableGraph::move_copy(const NodeTarget& where) {
    const GraphNode& node = nodes()[where.number];
    CUgraphNodeParams params{};
    if (node.kind == GCX_GRAPH_NODE_MEMCPY) {
        params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
        params.memcpy.copyCtx = where.context;
        params.memcpy.copyParams = from_bytes<CUDA_MEMCPY3D>(node.parameters);
    } else {
        params.type = CU_GRAPH_NODE_TYPE_MEMSET;
        const auto of_node = from_bytes<CUDA_MEMSET_NODE_PARAMS>(node.parameters);
        std::memcpy(&params.memset, &of_node, sizeof of_node); // same fields, then ctx
        params.memset.ctx = where.context;
    }
    check_set(driver_.cuGraphNodeSetParams(node.native, &params), "cuGraphNodeSetParams",
              where.number);
    compare_copy(where.number);
}

void MovableGraph::compare_copy(uint32_t number) const {
    const GraphNode& node = nodes()[number];
    CUgraphNode const native = node.native;
    std::vector<std::byte> reported(node.parameters.size());
    if (node.kind == GCX_GRAPH_NODE_MEMCPY)
        GCX_CALL(driver_, cuGraphMemcpyNodeGetParams, native,
                 reinterpret_cast<CUDA_MEMCPY3D*>(reported.data()));
    else
        GCX_CALL(driver_, cuGraphMemsetNodeGetParams, native,
                 reinterpret_cast<CUDA_MEMSET_NODE_PARAMS*>(reported.data()));
    if (reported != node.parameters)
        fail(GCX_ERROR_NOT_SUPPORTED, describe_node(nodes(), number) +
                                          ": the driver reports other parameters than were set");
}

void MovableGraph::compare_kernel(const NodeTarget& where) const {
    const KernelLaunch& expected = nodes()[where.number].kernel;
    CUDA_KERNEL_NODE_PARAMS_v2 params{};
    GCX_CALL(driver_, cuGraphKernelNodeGetParams, nodes()[where.number].native, &params);
    const auto refuse = [&](const char* what) {
        fail(GCX_ERROR_NOT_SUPPORTED, format("%s: the driver reports other %s than were set",
                                             describe_node(nodes(), where.number).c_str(), what));
    };
    if (params.ctx != where.context)
        refuse("SMs");
    if (params.kern != expected.kern || (expected.kern == nullptr && params.func != expected.func))
        refuse("code");
    const std::array<unsigned, 3> grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
    const std::array<unsigned, 3> block = {params.blockDimX, params.blockDimY, params.blockDimZ};
    if (grid != expected.grid || block != expected.block ||
        params.sharedMemBytes != expected.shared_bytes)
        refuse("grid, block or shared memory");
    const auto& parameters = expected.layout->parameters;
    if (parameters.empty() || params.kernelParams == nullptr)
        return;
    for (std::size_t i = 0; i < parameters.size(); i++) {
        if (std::memcmp(params.kernelParams[i], expected.arguments.data() + parameters[i].offset,
                        parameters[i].size) != 0)
            refuse("arguments");
    }
}

} // namespace gcx
