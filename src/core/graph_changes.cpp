// Changes of a graph: its parts, its kernels' parameters, all of it.
#include "core/graph.hpp"

#include "base/log.hpp"
#include "core/scoped_current.hpp"

#include <algorithm>
#include <cstring>

namespace gcx {
namespace {

// What no function of the driver tells, so that it may differ.
bool is_opaque(const GraphNode& node) {
    return node.kind >= GCX_GRAPH_NODE_WAIT_EVENT;
}

[[noreturn]] void refuse_update(const std::string& where) {
    fail(GCX_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
         "the captured graph is another one: " + where + ". Make a new graph object of it");
}

void check_same_shape(const GraphNodes& now, const GraphNodes& other) {
    if (&now.device() != &other.device())
        refuse_update(format("it is of %s, not %s", other.device().label().c_str(),
                             now.device().label().c_str()));
    if (now.nodes.size() != other.nodes.size())
        refuse_update(format("it has %zu nodes, not %zu", other.nodes.size(), now.nodes.size()));
    for (uint32_t i = 0; i < now.nodes.size(); i++) {
        if (now.nodes[i].kind != other.nodes[i].kind ||
            now.nodes[i].parent != other.nodes[i].parent)
            refuse_update("it has " + describe_node(other.nodes, i) + ", instead of " +
                          describe_node(now.nodes, i));
    }
    for (std::size_t i = 0; i < now.levels.size(); i++) {
        if (now.levels[i].edges != other.levels[i].edges)
            refuse_update("the order of its nodes differs");
    }
}

// Whether nothing but parameters of kernels differs.
bool differs_in_parameters_alone(const GraphNodes& now, const GraphNodes& other) {
    return std::equal(now.nodes.begin(), now.nodes.end(), other.nodes.begin(),
                      [](const GraphNode& a, const GraphNode& b) {
                          return !is_opaque(a) && a.parameters == b.parameters &&
                                 a.captured == b.captured &&
                                 a.kernel.attributes == b.kernel.attributes;
                      });
}

} // namespace

void Graph::set_part(std::span<const uint32_t> numbers, uint32_t part) {
    const std::lock_guard lock(building_);
    GraphNodes& nodes = movable_->all();
    for (const uint32_t number : numbers) {
        if (number >= nodes.nodes.size())
            fail(GCX_ERROR_INVALID_VALUE,
                 format("there is no node %u; the graph has %zu, counted from 0", number,
                        nodes.nodes.size()));
    }
    if (part > nodes.part_count() || part >= GCX_MAX_GRAPH_PARTS)
        fail(GCX_ERROR_INVALID_VALUE,
             format("part is %u; the graph has %u parts, counted from 0, so that the next is %u; "
                    "there can be %u",
                    part, nodes.part_count(), nodes.part_count(), GCX_MAX_GRAPH_PARTS));
    if (numbers.empty() && part == nodes.part_count())
        fail(GCX_ERROR_INVALID_VALUE,
             format("no nodes for part %u, which the graph doesn't have yet: give a new part at "
                    "least one node",
                    part));
    if (numbers.empty())
        return; // the executables stay
    nodes.set_part(numbers, part);
    part_count_.store(nodes.part_count(), std::memory_order_relaxed);
    for (const Pointer& executable : executables_.all()) {
        if (executable->key.count() > 1)
            executables_.remove(executable);
    }
}

KernelLaunch Graph::changed(uint32_t number, const gcx_kernel_params& params) {
    GraphNodes& all = movable_->all();
    if (number >= all.nodes.size() || !all.nodes[number].is_kernel())
        fail(GCX_ERROR_INVALID_VALUE,
             number < all.nodes.size()
                 ? describe_node(all.nodes, number) + ", launches no kernel"
                 : format("there is no node %u; the graph has %zu, counted from 0", number,
                          all.nodes.size()));
    KernelLaunch launch = all.nodes[number].kernel;
    std::copy_n(params.grid, 3, launch.grid.begin());
    std::copy_n(params.block, 3, launch.block.begin());
    launch.shared_bytes = params.shared_bytes;
    if (params.arguments != nullptr) {
        if (params.argument_bytes < launch.arguments.size())
            fail(GCX_ERROR_INVALID_VALUE,
                 format("params->argument_bytes is %llu; the arguments of %s are %zu bytes",
                        static_cast<unsigned long long>(params.argument_bytes),
                        launch.layout->name.c_str(), launch.arguments.size()));
        std::memcpy(launch.arguments.data(), params.arguments, launch.arguments.size());
    }
    const bool empty = std::count(launch.grid.begin(), launch.grid.end(), 0U) != 0 ||
                       std::count(launch.block.begin(), launch.block.end(), 0U) != 0;
    if (empty)
        fail(GCX_ERROR_INVALID_VALUE,
             "params->grid and params->block have a 0; gcx_graph_get_nodes "
             "tells what the kernel has");
    const ScopedCurrent current(driver_, primary_.context());
    launch.blocks_per_sm = all.blocks_per_sm(launch);
    return launch;
}

void Graph::set_kernel(uint32_t number, const gcx_kernel_params& params) {
    const std::lock_guard lock(building_);
    std::vector<Change> changes;
    changes.push_back({number, changed(number, params)});
    apply(std::move(changes));
}

void Graph::update(CUgraph captured, const DeviceOf& device_of) {
    const std::lock_guard lock(building_);
    auto other = std::make_unique<MovableGraph>(cache_, driver_, captured, device_of);
    GraphNodes& now = movable_->all();
    check_same_shape(now, other->all());
    if (differs_in_parameters_alone(now, other->all())) {
        std::vector<Change> changes;
        for (uint32_t i = 0; i < now.nodes.size(); i++) {
            KernelLaunch& launch = other->all().nodes[i].kernel;
            if (now.nodes[i].is_kernel() && !now.nodes[i].kernel.same_parameters(launch))
                changes.push_back({i, std::move(launch)});
        }
        if (!changes.empty())
            apply(std::move(changes));
        return;
    }
    other->all().take_parts(now);
    executables_.replace(build_all(*other, alive_ones()));
    std::swap(movable_, other);
}

// Drops those with a context that is not gcx's and has been destroyed.
std::vector<Graph::Pointer> Graph::alive_ones() {
    std::vector<Pointer> all = executables_.all();
    std::erase_if(all, [&](const Pointer& executable) {
        const bool alive = executable->alive();
        if (!alive)
            executables_.remove(executable);
        return !alive;
    });
    return all;
}

std::vector<Graph::Pointer> Graph::build_all(MovableGraph& movable,
                                             const std::vector<Pointer>& like) {
    std::vector<Pointer> built;
    for (const Pointer& former : like) {
        Places places;
        for (const PartPlace& place : former->places) {
            PartPlace& same = places.emplace_back();
            same.id = place.id;
            same.context = place.context;
            same.sm_count = place.sm_count;
            if (place.hold)
                same.hold = cache_.share(*place.hold, ContextCache::Use::graph);
        }
        built.push_back(build(movable, former->key, std::move(places)));
    }
    return built;
}

// All of it or nothing. An executable that was told of a change which is then taken back is given
// up, to be made anew when it is used.
void Graph::apply(std::vector<Change> changes) {
    const auto exchange = [&] {
        for (Change& change : changes)
            change.launch = movable_->exchange_kernel(change.number, std::move(change.launch));
    };
    exchange();
    std::vector<Pointer> touched;
    try {
        const std::vector<Pointer> executables = alive_ones();
        for (const Pointer& executable : executables)
            movable_->check_grids(targets_of(executable->places));
        if (!set_in_place(executables, changes, touched))
            executables_.replace(build_all(*movable_, executables));
    } catch (...) {
        exchange();
        for (const Pointer& executable : touched)
            executables_.remove(executable);
        throw;
    }
}

// Whether the driver could: not where the code is another one, nor in child graphs, whose
// executables it doesn't know by their nodes.
bool Graph::set_in_place(const std::vector<Pointer>& executables,
                         const std::vector<Change>& changes, std::vector<Pointer>& touched) {
    const auto& nodes = movable_->nodes();
    for (const Change& change : changes) {
        const GraphNode& node = nodes[change.number];
        if (node.level != 0 || !node.kernel.same_code(change.launch))
            return false;
    }
    KernelParams params;
    std::vector<std::unique_lock<std::mutex>> locks; // until all are changed
    locks.reserve(executables.size());
    for (const Pointer& executable : executables)
        locks.push_back(executable->lock());
    for (const Pointer& executable : executables) {
        touched.push_back(executable);
        executable->usable = false;
        CUresult result = CUDA_SUCCESS;
        const Targets targets = targets_of(executable->places);
        std::vector<MovableGraph::Placed> placed;
        placed.reserve(changes.size());
        for (const Change& change : changes)
            placed.push_back(
                {change.number, MovableGraph::context_for(nodes[change.number], targets)});
        movable_->in_contexts(placed, [&](const MovableGraph::Placed& one) {
            const GraphNode& node = nodes[one.number];
            if (result == CUDA_SUCCESS)
                result = executable->set_kernel(node.native, *params.of(node.kernel, one.context));
        });
        if (result == CUDA_SUCCESS)
            continue;
        if (log::wanted(GCX_LOG_DEBUG))
            log::write(GCX_LOG_DEBUG, driver_.describe(result, "cuGraphExecKernelNodeSetParams") +
                                          "; the executables are recreated");
        return false;
    }
    for (const Pointer& executable : executables)
        executable->usable = true;
    return true;
}

} // namespace gcx
