// Of a captured graph: its device, its parts, and how much of its kernels an SM holds.
#include "core/graph_nodes.hpp"

#include "core/scoped_current.hpp"

#include <algorithm>
#include <unordered_map>

namespace gcx {

void GraphNodes::find_device(const std::function<Device&(int32_t)>& device_of) {
    std::map<CUcontext, int32_t> seen;
    uint32_t first = 0;
    for (uint32_t i = 0; i < nodes.size(); i++) {
        const GraphNode& node = nodes[i];
        if (!node.is_kernel() || node.at == nullptr || seen.contains(node.at))
            continue;
        CUdevice ordinal = 0;
        const ScopedCurrent current(driver_, node.at);
        GCX_CALL(driver_, cuCtxGetDevice, &ordinal);
        if (seen.empty())
            first = i;
        else if (ordinal != seen.begin()->second)
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format("%s is of device %d, and %s of device %d: a graph of two devices can't be "
                        "moved",
                        describe_node(nodes, first).c_str(), seen.begin()->second,
                        describe_node(nodes, i).c_str(), ordinal));
        seen[node.at] = ordinal;
    }
    if (seen.empty()) {
        CUcontext current = nullptr;
        GCX_CALL(driver_, cuCtxGetCurrent, &current);
        if (current == nullptr)
            fail(GCX_ERROR_INVALID_CONTEXT, "the graph has no kernels that would tell its device, "
                                            "and no context is current in this thread: make one "
                                            "of the device current");
        CUdevice ordinal = 0;
        GCX_CALL(driver_, cuCtxGetDevice, &ordinal);
        device_ = &device_of(ordinal);
        return;
    }
    device_ = &device_of(seen.begin()->second);
}

// One for each context that kernels were captured in.
void GraphNodes::find_parts() {
    const Device::PrimaryHold primary = device_->hold_primary();
    std::vector<CUcontext> contexts;
    for (uint32_t i = 0; i < nodes.size(); i++) {
        GraphNode& node = nodes[i];
        if (!node.is_kernel())
            continue;
        if (node.at == nullptr)
            node.at = primary.context();
        node.captured = node.at;
        const auto found = std::find(contexts.begin(), contexts.end(), node.at);
        node.part = static_cast<uint32_t>(found - contexts.begin());
        if (found != contexts.end())
            continue;
        if (contexts.size() == GCX_MAX_GRAPH_PARTS)
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format("%s, is of one more context than the %u that a graph's kernels can be of",
                        describe_node(nodes, i).c_str(), GCX_MAX_GRAPH_PARTS));
        contexts.push_back(node.at);
    }
    if (contexts.empty())
        contexts.push_back(primary.context());
    part_count_ = static_cast<uint32_t>(contexts.size());
    place_copies();
    for (GraphNode& node : nodes) {
        if (node.has_place() && !node.is_kernel())
            node.captured = contexts[node.part];
    }
}

// Those whose context CUDA doesn't tell go with the kernel before them, or else after them; in a
// child graph without kernels, with the node that stands for it.
void GraphNodes::place_copies() {
    constexpr uint32_t kNone = GCX_NO_NODE;
    std::vector<uint32_t> nearest(nodes.size(), kNone); // the part of a kernel near a node
    for (uint32_t i = 0; i < nodes.size(); i++) {
        if (nodes[i].is_kernel())
            nearest[i] = nodes[i].part;
    }
    // Breadth first along the edges, first forwards, then backwards.
    for (const bool forwards : {true, false}) {
        for (const GraphLevel& level : levels) {
            std::unordered_map<uint32_t, std::vector<uint32_t>> next;
            for (const GraphLevel::Edge& edge : level.edges)
                next[forwards ? edge.from : edge.to].push_back(forwards ? edge.to : edge.from);
            std::vector<uint32_t> open;
            std::copy_if(level.nodes.begin(), level.nodes.end(), std::back_inserter(open),
                         [&](uint32_t number) { return nearest[number] != kNone; });
            for (std::size_t i = 0; i < open.size(); i++) {
                for (const uint32_t number : next[open[i]]) {
                    if (nearest[number] != kNone)
                        continue;
                    nearest[number] = nearest[open[i]];
                    open.push_back(number);
                }
            }
        }
    }
    for (uint32_t i = 0; i < nodes.size(); i++) {
        const uint32_t parent = nodes[i].parent; // comes before
        const uint32_t otherwise = parent == GCX_NO_NODE ? 0 : nodes[parent].part;
        nodes[i].part = nearest[i] == kNone ? otherwise : nearest[i];
    }
}

void GraphNodes::set_part(std::span<const uint32_t> numbers, uint32_t part) {
    for (const uint32_t number : numbers) {
        nodes[number].part = part;
        // Those in its child graph, which follow it.
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

void GraphNodes::take_parts(const GraphNodes& other) {
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

} // namespace gcx
