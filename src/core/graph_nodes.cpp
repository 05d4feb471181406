#include "core/graph_nodes.hpp"

#include "core/scoped_current.hpp"

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
    fail(GCX_ERROR_NOT_SUPPORTED,
         format("node %zu is a %s node (CUgraphNodeType %d), which can't be moved to other SMs; "
                "capture the graph without it, as with memory that was allocated before",
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

// What a node has where nobody set the attribute.
NodeAttribute default_attribute(unsigned id) {
    CUlaunchAttributeValue value;
    std::memset(&value, 0, sizeof value);
    if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) // measured on 13.0, of streams
        value.memSyncDomainMap.remote = 1;
    NodeAttribute attribute{id, {}};
    std::memcpy(attribute.value.data(), &value, sizeof value);
    return attribute;
}

// The arguments as a launch by CU_LAUNCH_PARAM_BUFFER_POINTER gives them; empty: it gives none.
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
    CUlaunchAttributeValue value; // the driver fills in as much as the attribute has
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

// Measured on 13.0, of nodes and of executables' nodes: where func is given, the driver takes the
// current context and ignores kern and ctx; where it is null, it takes kern and ctx.
const CUDA_KERNEL_NODE_PARAMS_v2* KernelParams::of(const KernelLaunch& launch, CUcontext context) {
    // The driver reads what they point to, and changes nothing.
    auto* const begin = const_cast<std::byte*>(launch.arguments.data());
    pointers_.clear();
    for (const KernelLayout::Place& place : launch.layout->parameters)
        pointers_.push_back(begin + place.offset);
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

void refuse_unmovable(const Driver& driver, CUgraph graph) {
    const auto natives = native_nodes(driver, graph);
    for (std::size_t i = 0; i < natives.size(); i++) {
        CUgraphNodeType kind{};
        GCX_CALL(driver, cuGraphNodeGetType, natives[i], &kind);
        if (!can_move(kind))
            refuse_kind(kind, i);
    }
}

GraphNodes::GraphNodes(ContextCache& cache, const Driver& driver, CUgraph graph,
                       const std::function<Device&(int32_t)>& device_of)
    : cache_(cache), driver_(driver) {
    told_.assign(std::begin(cu::kNodeAttributes), std::end(cu::kNodeAttributes));
    read_level(graph, GCX_NO_NODE);
    find_device(device_of);
    find_parts();
    const Device::PrimaryHold primary = device_->hold_primary();
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
        keep_context(params.ctx, number);
    KernelLaunch& launch = node.kernel;
    launch.func = params.func;
    launch.kern = params.kern;
    launch.grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
    launch.block = {params.blockDimX, params.blockDimY, params.blockDimZ};
    launch.shared_bytes = params.sharedMemBytes;
    launch.layout = layout_of(params);
    node.at = params.ctx;
    read_arguments(launch, params, number);
    read_attributes(node, number);
}

// Before anything is asked of the context: one of gcx's may be cached, where others push it out.
void GraphNodes::keep_context(CUcontext context, uint32_t number) {
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
                    "tells %zu of them",
                    number, layout.name.c_str(), layout.bytes, buffer.size()));
    std::memcpy(launch.arguments.data(), buffer.data(), layout.bytes);
}

void GraphNodes::read_attributes(GraphNode& node, uint32_t number) {
    std::vector<unsigned> told;
    for (const unsigned id : told_) {
        const auto attribute = read_attribute(driver_, node.native, id);
        if (!attribute)
            continue;
        told.push_back(id);
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
    if (!std::exchange(asked_, true))
        told_ = std::move(told);
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
    // Measured on 13.0: the driver tells a kernel's parameters only where a context is current.
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
        KernelLayout::Place place{};
        const CUresult result =
            kern != nullptr ? driver_.cuKernelGetParamInfo(kern, i, &place.offset, &place.size)
                            : driver_.cuFuncGetParamInfo(func, i, &place.offset, &place.size);
        if (result == CUDA_ERROR_INVALID_VALUE)
            break; // past the last
        driver_.check(result, kern != nullptr ? "cuKernelGetParamInfo" : "cuFuncGetParamInfo");
        layout->parameters.push_back(place);
        layout->bytes = std::max(layout->bytes, place.offset + place.size);
    }
    found = std::move(layout);
    return found;
}

} // namespace gcx
