#include "core/graph_move.hpp"

#include "base/log.hpp"
#include "core/capture.hpp"
#include "core/scoped_current.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace gcx {
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

MovableGraph::MovableGraph(const Driver& driver, CUgraph captured,
                           const std::function<Device&(int32_t)>& device_of)
    : driver_(driver) {
    const RelaxedCapture relaxed(driver);
    const CUresult result = driver.cuGraphClone(&graph_, captured);
    if (result != CUDA_SUCCESS) {
        graph_ = nullptr;
        refuse_unmovable(driver, captured);
        driver.check(result, "cuGraphClone");
    }
    try {
        nodes_ = std::make_unique<GraphNodes>(driver, graph_, device_of);
    } catch (...) {
        give_back([&] { return driver.cuGraphDestroy(graph_); });
        throw;
    }
}

MovableGraph::~MovableGraph() {
    try {
        destroy();
    } catch (const Error& error) {
        log::write(GCX_LOG_ERROR, "a graph is left behind: " + error.message);
    }
}

void MovableGraph::destroy() {
    if (graph_ != nullptr)
        driver_.check(give_back([&] { return driver_.cuGraphDestroy(graph_); }), "cuGraphDestroy");
    graph_ = nullptr;
}

CUcontext MovableGraph::context_for(const GraphNode& node, Targets targets) {
    const Target& target = targets[targets.size() == 1 ? 0 : node.part];
    return target.context != nullptr ? target.context : node.captured;
}

void MovableGraph::check_grids(Targets targets) const {
    const auto& nodes = nodes_->nodes;
    for (uint32_t i = 0; i < nodes.size(); i++) {
        const KernelLaunch& launch = nodes[i].kernel;
        if (!nodes[i].is_kernel() || !launch.cooperative())
            continue;
        const uint32_t sm_count = targets[targets.size() == 1 ? 0 : nodes[i].part].sm_count;
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

CUgraphExec MovableGraph::instantiate(Targets targets, bool node_priorities) {
    const RelaxedCapture relaxed(driver_);
    move_to(targets);
    CUgraphExec made = nullptr;
    GCX_CALL(driver_, cuGraphInstantiateWithFlags, &made, graph_,
             node_priorities ? kUseNodePriority : 0);
    return made;
}

KernelLaunch MovableGraph::exchange_kernel(uint32_t number, KernelLaunch launch) {
    GraphNode& node = nodes_->nodes[number];
    node.at = nullptr; // so that it is told at the next move
    return std::exchange(node.kernel, std::move(launch));
}

void MovableGraph::move_to(Targets targets) {
    destroy_replaced();
    std::vector<uint32_t> others;
    for (uint32_t i = 0; i < nodes_->nodes.size(); i++) {
        const GraphNode& node = nodes_->nodes[i];
        if (!node.has_place() || node.at == context_for(node, targets))
            continue;
        if (node.moves_in_place())
            move_in_place(i, context_for(node, targets));
        else
            others.push_back(i);
    }
    if (others.empty())
        return;
    replace(others, targets);
    destroy_replaced();
}

// Measured on 13.0: only where func is null does the driver look at kern and ctx.
void MovableGraph::move_in_place(uint32_t number, CUcontext context) {
    GraphNode& node = nodes_->nodes[number];
    const auto* const params = params_.of(node.kernel, nullptr, node.kernel.kern, context);
    node.at = nullptr; // until it is known
    if (const CUresult result = driver_.cuGraphKernelNodeSetParams(node.native, params);
        result != CUDA_SUCCESS)
        fail(static_cast<gcx_result>(result),
             describe_node(nodes_->nodes, number) + ": " +
                 driver_.describe(result, "cuGraphKernelNodeSetParams"));
    compare_kernel(number, node.native, context);
    for (const NodeAttribute& wanted : node.kernel.attributes) {
        if (!has_attribute(node.native, wanted))
            refuse_attribute(number, wanted);
    }
    node.at = context;
}

// Nodes that keep their context for life: each is added again, with all that it has, and the former
// one goes. If anything fails, the new ones go.
void MovableGraph::replace(const std::vector<uint32_t>& numbers, Targets targets) {
    auto& nodes = nodes_->nodes;
    std::vector<Fresh> fresh;
    fresh.reserve(numbers.size());
    replaced_.reserve(replaced_.size() + numbers.size());
    try {
        add_again(numbers, targets, fresh);
        connect(fresh);
    } catch (...) {
        for (const Fresh& one : fresh) {
            if (give_back([&] { return driver_.cuGraphDestroyNode(one.native); }) != CUDA_SUCCESS)
                replaced_.push_back(one.native);
        }
        throw;
    }
    for (const Fresh& one : fresh) {
        GraphNode& node = nodes[one.number];
        replaced_.push_back(std::exchange(node.native, one.native));
        node.at = context_for(node, targets);
    }
}

// One context after the other, so that each is made current once.
void MovableGraph::add_again(const std::vector<uint32_t>& numbers, Targets targets,
                             std::vector<Fresh>& fresh) {
    const auto& nodes = nodes_->nodes;
    std::vector<CUcontext> contexts;
    for (const uint32_t number : numbers) {
        CUcontext const context = context_for(nodes[number], targets);
        if (std::find(contexts.begin(), contexts.end(), context) == contexts.end())
            contexts.push_back(context);
    }
    for (CUcontext context : contexts) {
        const ScopedCurrent current(driver_, context);
        FromFunction from_function;
        for (const uint32_t number : numbers) {
            if (context_for(nodes[number], targets) != context)
                continue;
            CUgraphNode const native = add_again(nodes[number], context);
            fresh.push_back({number, native});
            if (nodes[number].is_kernel()) {
                set_attributes(number, native, from_function);
                compare_kernel(number, native, context);
            } else {
                compare_copy(number, native);
            }
        }
    }
}

CUgraphNode MovableGraph::add_again(const GraphNode& node, CUcontext context) {
    CUgraph const graph = nodes_->levels[node.level].graph;
    CUgraphNode added = nullptr;
    if (node.kind == GCX_GRAPH_NODE_MEMCPY) {
        const auto params = from_bytes<CUDA_MEMCPY3D>(node.parameters);
        GCX_CALL(driver_, cuGraphAddMemcpyNode, &added, graph, nullptr, 0, &params, context);
    } else if (node.kind == GCX_GRAPH_NODE_MEMSET) {
        const auto params = from_bytes<CUDA_MEMSET_NODE_PARAMS>(node.parameters);
        GCX_CALL(driver_, cuGraphAddMemsetNode, &added, graph, nullptr, 0, &params, context);
    } else {
        // Measured on 13.0: func runs in the context that is current here.
        const auto* const params = params_.of(node.kernel, node.kernel.func, nullptr, nullptr);
        GCX_CALL(driver_, cuGraphAddKernelNode, &added, graph, nullptr, 0, params);
    }
    return added;
}

bool MovableGraph::has_attribute(CUgraphNode native, const NodeAttribute& wanted) const {
    return read_attribute(driver_, native, wanted.id) == wanted;
}

void MovableGraph::refuse_attribute(uint32_t number, const NodeAttribute& wanted) const {
    fail(GCX_ERROR_NOT_SUPPORTED,
         format("%s: the driver did not keep its launch attribute %u when it was moved",
                describe_node(nodes_->nodes, number).c_str(), wanted.id));
}

// The driver copies none between nodes of two contexts (measured on 13.0), so one by one.
void MovableGraph::set_attributes(uint32_t number, CUgraphNode native,
                                  FromFunction& from_function) {
    const KernelLaunch& launch = nodes_->nodes[number].kernel;
    const auto [known, is_first] = from_function.try_emplace(launch.func);
    if (is_first)
        known->second = set_from_the_beginning(native);
    for (const NodeAttribute& wanted : launch.attributes)
        set_attribute(number, native, wanted);
    for (const NodeAttribute& has : known->second) {
        const bool done = std::any_of(launch.attributes.begin(), launch.attributes.end(),
                                      [&](const NodeAttribute& one) { return one.id == has.id; });
        if (!done)
            set_attribute(number, native, default_attribute(has.id));
    }
}

void MovableGraph::set_attribute(uint32_t number, CUgraphNode native, const NodeAttribute& wanted) {
    if (has_attribute(native, wanted))
        return;
    CUlaunchAttributeValue value;
    std::memcpy(&value, wanted.value.data(), sizeof value);
    GCX_CALL(driver_, cuGraphKernelNodeSetAttribute, native, cu::attribute_id(wanted.id), &value);
    if (!has_attribute(native, wanted))
        refuse_attribute(number, wanted);
}

// What a new node has that isn't the default, which it has from its function.
std::vector<NodeAttribute> MovableGraph::set_from_the_beginning(CUgraphNode native) const {
    std::vector<NodeAttribute> found;
    for (const unsigned id : nodes_->attributes_told()) {
        const auto has = read_attribute(driver_, native, id);
        if (has && *has != default_attribute(id))
            found.push_back(*has);
    }
    return found;
}

// The edges of the new nodes, with what the driver has of each.
void MovableGraph::connect(const std::vector<Fresh>& fresh) {
    std::vector<CUgraphNode> now(nodes_->nodes.size());
    std::vector<bool> is_new(now.size(), false);
    for (std::size_t i = 0; i < now.size(); i++)
        now[i] = nodes_->nodes[i].native;
    for (const Fresh& one : fresh) {
        now[one.number] = one.native;
        is_new[one.number] = true;
    }
    for (const GraphLevel& level : nodes_->levels) {
        std::vector<CUgraphNode> from;
        std::vector<CUgraphNode> to;
        std::vector<CUgraphEdgeData> data;
        for (const GraphLevel::Edge& edge : level.edges) {
            if (!is_new[edge.from] && !is_new[edge.to])
                continue;
            from.push_back(now[edge.from]);
            to.push_back(now[edge.to]);
            std::memcpy(&data.emplace_back(), edge.data.data(), sizeof edge.data);
        }
        if (!from.empty())
            GCX_CALL(driver_, cuGraphAddDependencies, level.graph, from.data(), to.data(),
                     data.data(), from.size());
    }
}

void MovableGraph::compare_copy(uint32_t number, CUgraphNode native) {
    const GraphNode& wanted = nodes_->nodes[number];
    std::vector<std::byte> has(wanted.parameters.size());
    if (wanted.kind == GCX_GRAPH_NODE_MEMCPY)
        GCX_CALL(driver_, cuGraphMemcpyNodeGetParams, native,
                 reinterpret_cast<CUDA_MEMCPY3D*>(has.data()));
    else
        GCX_CALL(driver_, cuGraphMemsetNodeGetParams, native,
                 reinterpret_cast<CUDA_MEMSET_NODE_PARAMS*>(has.data()));
    if (has != wanted.parameters)
        fail(GCX_ERROR_NOT_SUPPORTED, describe_node(nodes_->nodes, number) +
                                          ": the driver has other parameters than it was told");
}

void MovableGraph::compare_kernel(uint32_t number, CUgraphNode native, CUcontext context) {
    const KernelLaunch& wanted = nodes_->nodes[number].kernel;
    CUDA_KERNEL_NODE_PARAMS_v2 params{};
    GCX_CALL(driver_, cuGraphKernelNodeGetParams, native, &params);
    const auto refuse = [&](const char* what) {
        fail(GCX_ERROR_NOT_SUPPORTED, format("%s: the driver has other %s than it was told",
                                             describe_node(nodes_->nodes, number).c_str(), what));
    };
    if (params.ctx != context)
        refuse("SMs");
    if (params.kern != wanted.kern || (wanted.kern == nullptr && params.func != wanted.func))
        refuse("code");
    const std::array<unsigned, 3> grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
    const std::array<unsigned, 3> block = {params.blockDimX, params.blockDimY, params.blockDimZ};
    if (grid != wanted.grid || block != wanted.block ||
        params.sharedMemBytes != wanted.shared_bytes)
        refuse("grid, block or shared memory");
    const auto& places = wanted.layout->parameters;
    if (places.empty() || params.kernelParams == nullptr)
        return;
    for (std::size_t i = 0; i < places.size(); i++) {
        if (std::memcmp(params.kernelParams[i], wanted.arguments.data() + places[i].offset,
                        places[i].size) != 0)
            refuse("arguments");
    }
}

void MovableGraph::destroy_replaced() {
    while (!replaced_.empty()) {
        CUgraphNode const node = replaced_.back();
        driver_.check(give_back([&] { return driver_.cuGraphDestroyNode(node); }),
                      "cuGraphDestroyNode");
        replaced_.pop_back();
    }
}

} // namespace gcx
