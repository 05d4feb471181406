#include "core/graph_move.hpp"

#include "base/log.hpp"
#include "core/capture.hpp"
#include "core/scoped_current.hpp"

#include <algorithm>
#include <cstring>

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

MovableGraph::MovableGraph(ContextCache& cache, const Driver& driver, CUgraph captured,
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
        nodes_ = std::make_unique<GraphNodes>(cache, driver, graph_, device_of);
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

void MovableGraph::in_contexts(std::span<const Placed> wanted,
                               const std::function<void(const Placed&)>& body) const {
    std::vector<CUcontext> contexts;
    for (const Placed& one : wanted) {
        if (std::find(contexts.begin(), contexts.end(), one.context) == contexts.end())
            contexts.push_back(one.context);
    }
    for (CUcontext context : contexts) {
        const ScopedCurrent current(driver_, context);
        for (const Placed& one : wanted) {
            if (one.context == context)
                body(one);
        }
    }
}

void MovableGraph::move_to(Targets targets) {
    std::vector<Placed> elsewhere;
    elsewhere.reserve(nodes().size());
    for (uint32_t i = 0; i < nodes().size(); i++) {
        const GraphNode& node = nodes()[i];
        CUcontext const context = context_for(node, targets);
        if (node.has_place() && node.at != context)
            elsewhere.push_back({i, context});
    }
    in_contexts(elsewhere, [this](const Placed& one) {
        GraphNode& node = nodes_->nodes[one.number];
        node.at = nullptr; // until it is known
        if (node.is_kernel())
            move_kernel(one);
        else
            move_copy(one);
        node.at = one.context;
    });
}

void MovableGraph::check_set(CUresult result, const char* function, uint32_t number) const {
    if (result != CUDA_SUCCESS)
        fail(static_cast<gcx_result>(result),
             describe_node(nodes(), number) + ": " + driver_.describe(result, function));
}

// Wants the context to be current.
void MovableGraph::move_kernel(const Placed& where) {
    const GraphNode& node = nodes()[where.number];
    check_set(
        driver_.cuGraphKernelNodeSetParams(node.native, params_.of(node.kernel, where.context)),
        "cuGraphKernelNodeSetParams", where.number);
    compare_kernel(where);
    for (const NodeAttribute& wanted : node.kernel.attributes) {
        if (read_attribute(driver_, node.native, wanted.id) != wanted)
            fail(GCX_ERROR_NOT_SUPPORTED,
                 format("%s: the driver did not keep its launch attribute %u when it was moved",
                        describe_node(nodes(), where.number).c_str(), wanted.id));
    }
}

// A memcpy or memset node. No driver before 13.2 tells the context that one has.
void MovableGraph::move_copy(const Placed& where) {
    const GraphNode& node = nodes()[where.number];
    CUgraphNodeParams params{};
    if (node.kind == GCX_GRAPH_NODE_MEMCPY) {
        params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
        params.memcpy.copyCtx = where.context;
        params.memcpy.copyParams = from_bytes<CUDA_MEMCPY3D>(node.parameters);
    } else {
        params.type = CU_GRAPH_NODE_TYPE_MEMSET;
        const auto of_node = from_bytes<CUDA_MEMSET_NODE_PARAMS>(node.parameters);
        std::memcpy(&params.memset, &of_node, sizeof of_node); // the same fields, then ctx
        params.memset.ctx = where.context;
    }
    check_set(driver_.cuGraphNodeSetParams(node.native, &params), "cuGraphNodeSetParams",
              where.number);
    compare_copy(where.number);
}

void MovableGraph::compare_copy(uint32_t number) const {
    const GraphNode& wanted = nodes()[number];
    CUgraphNode const native = wanted.native;
    std::vector<std::byte> has(wanted.parameters.size());
    if (wanted.kind == GCX_GRAPH_NODE_MEMCPY)
        GCX_CALL(driver_, cuGraphMemcpyNodeGetParams, native,
                 reinterpret_cast<CUDA_MEMCPY3D*>(has.data()));
    else
        GCX_CALL(driver_, cuGraphMemsetNodeGetParams, native,
                 reinterpret_cast<CUDA_MEMSET_NODE_PARAMS*>(has.data()));
    if (has != wanted.parameters)
        fail(GCX_ERROR_NOT_SUPPORTED,
             describe_node(nodes(), number) + ": the driver has other parameters than it was told");
}

void MovableGraph::compare_kernel(const Placed& where) const {
    const KernelLaunch& wanted = nodes()[where.number].kernel;
    CUDA_KERNEL_NODE_PARAMS_v2 params{};
    GCX_CALL(driver_, cuGraphKernelNodeGetParams, nodes()[where.number].native, &params);
    const auto refuse = [&](const char* what) {
        fail(GCX_ERROR_NOT_SUPPORTED, format("%s: the driver has other %s than it was told",
                                             describe_node(nodes(), where.number).c_str(), what));
    };
    if (params.ctx != where.context)
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

} // namespace gcx
