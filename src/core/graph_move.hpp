// A captured graph that is moved from SMs to SMs, and instantiated where it is.
#pragma once

#include "core/graph_nodes.hpp"

namespace gcx {

// One graph, whose nodes are told their contexts anew for each executable: that costs a fraction of
// a copy for each. One thread at a time.
class MovableGraph {
  public:
    // Copies a captured graph.
    MovableGraph(const Driver& driver, CUgraph captured,
                 const std::function<Device&(int32_t)>& device_of);
    ~MovableGraph();
    MovableGraph(const MovableGraph&) = delete;
    MovableGraph& operator=(const MovableGraph&) = delete;

    GraphNodes& all() { return *nodes_; }
    const std::vector<GraphNode>& nodes() const { return nodes_->nodes; }

    // Where parts are to run: by part, or one for all.
    struct Target {
        CUcontext context; // null: where each node was captured
        uint32_t sm_count; // 0: not asked
    };
    using Targets = std::span<const Target>;
    static CUcontext context_for(const GraphNode& node, Targets targets);
    // Refuses cooperative grids that are too large.
    void check_grids(Targets targets) const;
    // An executable whose parts run there.
    CUgraphExec instantiate(Targets targets, bool node_priorities);
    // A kernel has other parameters from the next executable on; gives the former.
    KernelLaunch exchange_kernel(uint32_t number, KernelLaunch launch);
    // Gives it back to the driver. Throws, and changes nothing, if that refuses.
    void destroy();

  private:
    struct Fresh {
        uint32_t number;
        CUgraphNode native;
    };

    // Of a function's new nodes: the attributes that they have from it, which aren't the default.
    using FromFunction = std::map<CUfunction, std::vector<NodeAttribute>>;

    void move_to(Targets targets);
    void move_in_place(uint32_t number, CUcontext context);
    void replace(const std::vector<uint32_t>& numbers, Targets targets);
    void add_again(const std::vector<uint32_t>& numbers, Targets targets,
                   std::vector<Fresh>& fresh);
    CUgraphNode add_again(const GraphNode& node, CUcontext context);
    void set_attributes(uint32_t number, CUgraphNode native, FromFunction& from_function);
    void set_attribute(uint32_t number, CUgraphNode native, const NodeAttribute& wanted);
    std::vector<NodeAttribute> set_from_the_beginning(CUgraphNode native) const;
    bool has_attribute(CUgraphNode native, const NodeAttribute& wanted) const;
    [[noreturn]] void refuse_attribute(uint32_t number, const NodeAttribute& wanted) const;
    void connect(const std::vector<Fresh>& fresh);
    void compare_copy(uint32_t number, CUgraphNode native);
    void compare_kernel(uint32_t number, CUgraphNode native, CUcontext context);
    void destroy_replaced();

    const Driver& driver_;
    CUgraph graph_ = nullptr;
    std::unique_ptr<GraphNodes> nodes_;
    KernelParams params_;
    std::vector<CUgraphNode> replaced_; // that others took the place of, and must go
};

} // namespace gcx
