// The nodes of a captured graph: read once from the driver, then set to the contexts in which an
// executable is to run.
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

// A kernel's name and the layout of its parameters.
struct KernelLayout {
    struct Parameter {
        std::size_t offset;
        std::size_t size;
        bool operator==(const Parameter&) const = default;
    };
    std::string name;
    std::vector<Parameter> parameters;
    std::size_t bytes = 0; // end of the last parameter
};

// An attribute's value as bytes, which are only compared.
struct NodeAttribute {
    unsigned id;
    std::array<std::byte, sizeof(CUlaunchAttributeValue)> value;
    bool operator==(const NodeAttribute&) const = default;
};

struct KernelLaunch {
    CUfunction func = nullptr;
    CUkernel kern = nullptr; // null: a kernel of a module, which has only func
    std::array<unsigned, 3> grid{};
    std::array<unsigned, 3> block{};
    unsigned shared_bytes = 0;
    std::vector<std::byte> arguments; // in the layout's order
    std::shared_ptr<const KernelLayout> layout;
    std::vector<NodeAttribute> attributes; // those that differ from the default
    uint32_t blocks_per_sm = 0;

    std::array<unsigned, 3> cluster() const;
    bool cooperative() const;
    uint64_t blocks() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
    bool same_code(const KernelLaunch& other) const;
    // Returns whether both launch the same kernel in the same way, on whatever SMs.
    bool same_parameters(const KernelLaunch& other) const;
};

// Builds the driver's description of a launch. Reusable.
class KernelParams {
  public:
    // The result points into the launch and is valid until the next call. If the kernel is of a
    // module, the context must be current.
    const CUDA_KERNEL_NODE_PARAMS_v2* of(const KernelLaunch& launch, CUcontext context);

  private:
    std::vector<void*> pointers_;
    CUDA_KERNEL_NODE_PARAMS_v2 native_{};
};

struct GraphNode {
    gcx_graph_node_kind kind = GCX_GRAPH_NODE_EMPTY;
    CUgraphNode native = nullptr;
    uint32_t level = 0; // index in GraphNodes::levels
    uint32_t parent = GCX_NO_NODE;
    uint32_t part = 0;
    CUcontext captured = nullptr; // the context it was captured in; for copies, that of their part
    // PartTarget::id of where it is set to. A context can have the address of a destroyed one.
    uint64_t at = kUnknown;
    static constexpr uint64_t kUnknown = ~uint64_t{0};
    KernelLaunch kernel; // of a kernel node
    // Of other nodes with parameters: the driver's struct.
    std::vector<std::byte> parameters;

    bool is_kernel() const { return kind == GCX_GRAPH_NODE_KERNEL; }
    // Returns whether the node runs in a context.
    bool has_context() const {
        return is_kernel() || kind == GCX_GRAPH_NODE_MEMCPY || kind == GCX_GRAPH_NODE_MEMSET;
    }
};

// The graph itself, or the child graph of a node.
struct GraphLevel {
    struct Edge {
        uint32_t from; // node numbers
        uint32_t to;
        std::array<std::byte, sizeof(CUgraphEdgeData)> data;
        auto operator<=>(const Edge&) const = default;
    };
    CUgraph graph = nullptr;
    std::vector<uint32_t> nodes;
    std::vector<Edge> edges; // sorted
};

// A context in which kernels were captured.
struct CapturedContext {
    CUcontext native = nullptr;
    unsigned long long id = 0; // if gcx did not make it
    ContextCache::Ref keep;    // if gcx made it: keeps it in the cache

    bool alive(const Driver& driver) const { return keep || driver.context_has_id(native, id); }
};

// "node 3, a kernel node of gemm", for messages.
std::string describe_node(const std::vector<GraphNode>& nodes, uint32_t number);

// The nodes of a graph. Those of a child graph follow its node.
class GraphNodes {
  public:
    // Reads the nodes. Throws if one cannot be moved, or if a context in which kernels were
    // captured no longer exists.
    GraphNodes(ContextCache& cache, const Driver& driver, CUgraph graph,
               const std::function<Device&(int32_t)>& device_of);

    Device& device() const { return *device_; }
    uint32_t part_count() const { return part_count_; }
    // Assigns nodes to a part, which may be a new one.
    void set_part(std::span<const uint32_t> numbers, uint32_t part);
    // Copies the parts from a graph with the same nodes.
    void copy_parts(const GraphNodes& other);

    std::vector<GraphNode> nodes;
    std::vector<GraphLevel> levels;
    std::vector<CapturedContext> captured_in;

    // Returns how many blocks of a launch fit on an SM. Requires a current context.
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
    std::vector<unsigned> attribute_ids_; // attributes of kernel nodes that the driver supports
    bool attributes_known_ = false;       // whether attribute_ids_ was reduced to those
    std::map<const void*, std::shared_ptr<const KernelLayout>> layouts_;
    struct Occupancy {
        const void* kernel;
        unsigned threads;
        unsigned shared_bytes;
        auto operator<=>(const Occupancy&) const = default;
    };
    std::map<Occupancy, uint32_t> occupancies_;
};

// Returns an attribute of a node, or nothing if the driver is too old to know it.
std::optional<NodeAttribute> read_attribute(const Driver& driver, CUgraphNode node, unsigned id);

// Throws, and names the node, if the graph has a node that cannot be moved.
void check_movable(const Driver& driver, CUgraph graph);

// The context in which a part of a graph is to run.
struct PartTarget {
    // Identifies the target: 0 for the context of the capture, GreenContext::id, or kExternal and
    // the driver's id for a context that gcx did not make.
    static constexpr uint64_t kExternal = uint64_t{1} << 63;
    uint64_t id = 0;
    CUcontext context = nullptr;  // null: the context of the capture
    uint32_t sm_count = 0;        // 0: not checked
    ContextCache::Ref keep_alive; // of a context of gcx
};
using PartTargets = std::vector<PartTarget>;

// A copy of a captured graph whose nodes are set to other contexts before each instantiation, which
// costs a fraction of a copy per executable. Not thread-safe.
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

    static const PartTarget& target_of(const GraphNode& node, std::span<const PartTarget> targets);
    static CUcontext context_for(const GraphNode& node, std::span<const PartTarget> targets);
    // Throws if a cooperative grid does not fit on its target.
    void check_grids(std::span<const PartTarget> targets) const;
    // Makes an executable whose parts run on these targets.
    CUgraphExec instantiate(std::span<const PartTarget> targets, bool node_priorities);
    // Changes a kernel for later executables. Returns the former launch.
    KernelLaunch exchange_kernel(uint32_t number, KernelLaunch launch);
    // Destroys the copy. Throws, and changes nothing, if the driver refuses.
    void destroy();

    // A node and the context in which it is to run.
    struct NodeTarget {
        uint32_t number;
        CUcontext context;
        uint64_t id = GraphNode::kUnknown; // of the target
    };
    // Calls body for each node while its context is current.
    void in_contexts(std::span<const NodeTarget> targets,
                     const std::function<void(const NodeTarget&)>& body) const;
    // Sets the nodes to these contexts. Throws if the driver refuses a node's parameters.
    void move(std::span<const NodeTarget> moves);

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
