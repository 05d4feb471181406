// What the nodes of a captured graph are, read once.
#pragma once

#include "core/context_cache.hpp"
#include "core/device.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gcx {

// A kernel's name, and where its parameters lie.
struct KernelLayout {
    struct Parameter {
        std::size_t offset;
        std::size_t size;
        bool operator==(const Parameter&) const = default;
    };
    std::string name;
    std::vector<Parameter> parameters;
    std::size_t bytes = 0; // to the end of the last
};

// An attribute as bytes: they are compared, not read.
struct NodeAttribute {
    unsigned id;
    std::array<std::byte, sizeof(CUlaunchAttributeValue)> value;
    bool operator==(const NodeAttribute&) const = default;
};

struct KernelLaunch {
    CUfunction func = nullptr;
    CUkernel kern = nullptr; // null: of a module, which has a function alone
    std::array<unsigned, 3> grid{};
    std::array<unsigned, 3> block{};
    unsigned shared_bytes = 0;
    std::vector<std::byte> arguments; // as the layout has them
    std::shared_ptr<const KernelLayout> layout;
    std::vector<NodeAttribute> attributes; // those that aren't the default
    uint32_t blocks_per_sm = 0;

    std::array<unsigned, 3> cluster() const;
    bool cooperative() const;
    uint64_t blocks() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
    bool same_code(const KernelLaunch& other) const;
    // Whether both are the same launch, wherever they run.
    bool same_parameters(const KernelLaunch& other) const;
};

// What the driver is told of a launch. One serves many, one after the other.
class KernelParams {
  public:
    // Points into the launch. The context is to be current where the kernel is of a module.
    const CUDA_KERNEL_NODE_PARAMS_v2* of(const KernelLaunch& launch, CUcontext context);

  private:
    std::vector<void*> pointers_;
    CUDA_KERNEL_NODE_PARAMS_v2 native_{};
};

struct GraphNode {
    gcx_graph_node_kind kind = GCX_GRAPH_NODE_EMPTY;
    CUgraphNode native = nullptr;
    uint32_t level = 0; // the graph that it is in
    uint32_t parent = GCX_NO_NODE;
    uint32_t part = 0;
    CUcontext captured = nullptr; // where it was captured; of copies, where their part was
    CUcontext at = nullptr;       // where it is now; null: not known, or nowhere
    KernelLaunch kernel;          // of a kernel
    // Of the others that have parameters: the driver's struct.
    std::vector<std::byte> parameters;

    bool is_kernel() const { return kind == GCX_GRAPH_NODE_KERNEL; }
    // Whether it runs in a context.
    bool has_context() const {
        return is_kernel() || kind == GCX_GRAPH_NODE_MEMCPY || kind == GCX_GRAPH_NODE_MEMSET;
    }
};

// A graph, or one that a node of it stands for.
struct GraphLevel {
    struct Edge {
        uint32_t from; // numbers of nodes
        uint32_t to;
        std::array<std::byte, sizeof(CUgraphEdgeData)> data;
        auto operator<=>(const Edge&) const = default;
    };
    CUgraph graph = nullptr;
    std::vector<uint32_t> nodes;
    std::vector<Edge> edges; // sorted
};

// A context that kernels were captured in.
struct CapturedContext {
    CUcontext native = nullptr;
    unsigned long long id = 0; // of one that is not gcx's
    ContextCache::Ref keep;    // of one of gcx's, so that the cache does not destroy it

    bool alive(const Driver& driver) const { return keep || driver.context_has_id(native, id); }
};

// "node 3, a kernel node of gemm": for messages.
std::string describe_node(const std::vector<GraphNode>& nodes, uint32_t number);

// The nodes of a graph, those of child graphs behind their own.
class GraphNodes {
  public:
    // Reads them. Throws for what can't be moved, and if a context that kernels were captured in
    // does not exist any more.
    GraphNodes(ContextCache& cache, const Driver& driver, CUgraph graph,
               const std::function<Device&(int32_t)>& device_of);

    Device& device() const { return *device_; }
    uint32_t part_count() const { return part_count_; }
    // Puts nodes into a part, which may be the next one.
    void set_part(std::span<const uint32_t> numbers, uint32_t part);
    // The parts of another graph with the same nodes.
    void copy_parts(const GraphNodes& other);

    std::vector<GraphNode> nodes;
    std::vector<GraphLevel> levels;
    std::vector<CapturedContext> captured_in;

    // How many blocks of a launch an SM holds. Wants a current context.
    uint32_t blocks_per_sm(const KernelLaunch& launch);

  private:
    void read_level(CUgraph graph, uint32_t parent);
    void read_node(GraphNode& node, uint32_t number);
    void read_kernel(GraphNode& node, uint32_t number);
    void read_arguments(KernelLaunch& launch, const CUDA_KERNEL_NODE_PARAMS_v2& params,
                        uint32_t number);
    void read_attributes(GraphNode& node, uint32_t number);
    void read_edges(GraphLevel& level);
    std::shared_ptr<const KernelLayout> layout_of(const CUDA_KERNEL_NODE_PARAMS_v2& params);
    void keep_captured_context(CUcontext context, uint32_t number);
    void find_device(const std::function<Device&(int32_t)>& device_of);
    void find_parts();
    void assign_copies();

    ContextCache& cache_;
    const Driver& driver_;
    Device* device_ = nullptr;
    uint32_t part_count_ = 0;
    std::vector<unsigned> attribute_ids_; // the attributes of kernel nodes that the driver knows
    bool attributes_known_ = false;       // whether the driver was asked which it tells
    std::map<const void*, std::shared_ptr<const KernelLayout>> layouts_;
    struct Occupancy {
        const void* kernel;
        unsigned threads;
        unsigned shared_bytes;
        auto operator<=>(const Occupancy&) const = default;
    };
    std::map<Occupancy, uint32_t> occupancies_;
};

// The attribute of a node; nothing if the driver doesn't know it, as one that is older than it.
std::optional<NodeAttribute> read_attribute(const Driver& driver, CUgraphNode node, unsigned id);

// Refuses a graph by the kind of the node that can't be moved, if that is what is wrong with it.
void check_movable(const Driver& driver, CUgraph graph);

// Where a part of a graph runs.
struct PartTarget {
    // What names the place for good: 0 where the part was captured, GreenContext::id, or of a
    // context that isn't gcx's the driver's id and kForeign.
    static constexpr uint64_t kExternal = uint64_t{1} << 63;
    uint64_t id = 0;
    CUcontext context = nullptr;  // null: where it was captured
    uint32_t sm_count = 0;        // 0: where it was captured
    ContextCache::Ref keep_alive; // of a context of gcx
};
using PartTargets = std::vector<PartTarget>;

// One graph, whose nodes are told their contexts anew for each executable: that costs a fraction of
// a copy for each. One thread at a time.
class MovableGraph {
  public:
    // Copies a captured graph.
    MovableGraph(ContextCache& cache, const Driver& driver, CUgraph captured,
                 const std::function<Device&(int32_t)>& device_of);
    ~MovableGraph();
    MovableGraph(const MovableGraph&) = delete;
    MovableGraph& operator=(const MovableGraph&) = delete;

    GraphNodes& all() { return *nodes_; }
    const std::vector<GraphNode>& nodes() const { return nodes_->nodes; }
    const std::vector<CapturedContext>& captured_in() const { return nodes_->captured_in; }

    static CUcontext context_for(const GraphNode& node, std::span<const PartTarget> targets);
    // Refuses cooperative grids that are too large.
    void check_grids(std::span<const PartTarget> targets) const;
    // An executable whose parts run there.
    CUgraphExec instantiate(std::span<const PartTarget> targets, bool node_priorities);
    // A kernel has other parameters from the next executable on; gives the former.
    KernelLaunch exchange_kernel(uint32_t number, KernelLaunch launch);
    // Gives it back to the driver. Throws, and changes nothing, if that refuses.
    void destroy();

    // A node, and the context that it is to run in.
    struct NodeTarget {
        uint32_t number;
        CUcontext context;
    };
    // Calls the body for each while its context is current.
    void in_contexts(std::span<const NodeTarget> wanted,
                     const std::function<void(const NodeTarget&)>& body) const;

  private:
    void move_to(std::span<const PartTarget> targets);
    void move_kernel(const NodeTarget& where);
    void move_copy(const NodeTarget& where);
    void check_set(CUresult result, const char* function, uint32_t number) const;
    void compare_copy(uint32_t number) const;
    void compare_kernel(const NodeTarget& where) const;

    const Driver& driver_;
    CUgraph graph_ = nullptr;
    std::unique_ptr<GraphNodes> nodes_;
    KernelParams params_;
};

} // namespace gcx
