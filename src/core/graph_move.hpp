// A captured graph that is moved from SMs to SMs, and instantiated where it is.
#pragma once

#include "core/graph_nodes.hpp"

namespace gcx {

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

    // A node, and the context that it is to run in.
    struct Placed {
        uint32_t number;
        CUcontext context;
    };
    // Calls the body for each while its context is current.
    void in_contexts(std::span<const Placed> wanted,
                     const std::function<void(const Placed&)>& body) const;

  private:
    void move_to(Targets targets);
    void move_kernel(const Placed& where);
    void move_copy(const Placed& where);
    void check_set(CUresult result, const char* function, uint32_t number) const;
    void compare_copy(uint32_t number) const;
    void compare_kernel(const Placed& where) const;

    const Driver& driver_;
    CUgraph graph_ = nullptr;
    std::unique_ptr<GraphNodes> nodes_;
    KernelParams params_;
};

} // namespace gcx
