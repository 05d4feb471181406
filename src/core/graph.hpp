// What a graph handle stands for: a captured graph, and its executables.
#pragma once

#include "core/executables.hpp"
#include "core/fence.hpp"
#include "core/graph_move.hpp"
#include "core/objects.hpp"

#include <atomic>
#include <optional>

namespace gcx {

class Graph {
  public:
    using DeviceOf = std::function<Device&(int32_t)>;

    // params are checked.
    Graph(ContextCache& cache, const Driver& driver, CUgraph captured,
          const gcx_graph_params& params, const DeviceOf& device_of);

    // Throws GCX_ERROR_CONTEXT_IS_DESTROYED if the device was reset.
    void check_alive() const;
    void close();

    Device& device() const { return device_; }
    // Throws unless it is the number of parts.
    void check_count(std::size_t count) const;
    // One stream for all parts, or one for each.
    void launch(std::span<Stream* const> streams);
    // The same of contexts, to be made if they are not there.
    void prepare(std::span<const ContextKey> contexts);
    void set_part(std::span<const uint32_t> numbers, uint32_t part);
    void set_kernel(uint32_t number, const gcx_kernel_params& params);
    void update(CUgraph captured, const DeviceOf& device_of);
    void get_info(gcx_graph_info& info) const;
    std::vector<gcx_graph_node> describe_nodes() const;

  private:
    using Pointer = Executables::Pointer;
    // Where the streams of a launch are.
    struct Lanes {
        std::array<Stream::Place, GCX_MAX_GRAPH_PARTS> at;
        uint32_t count = 0;
        PlaceKey key;
    };
    struct Change {
        uint32_t number;
        KernelLaunch launch;
    };
    struct Wanted {
        PlaceKey key;
        Places places;
    };
    using Targets = std::vector<MovableGraph::Target>;

    std::optional<Wanted> try_launch(std::span<Stream* const> streams, bool make_now);
    void find_lane(Lanes& lanes, Stream& stream) const;
    uint64_t id_of(const Stream::Place& place) const;
    Wanted wanted_for(const Lanes& lanes, std::span<Stream* const> streams);
    bool submit(Executable& executable, const Lanes& lanes);
    void launch_in(Executable& executable, const Lanes& lanes);
    Pointer make(const PlaceKey& key, Places places);
    // These want building_.
    static Targets targets_of(const Places& places);
    std::vector<CapturedContext> captured_for(const MovableGraph& movable, const Targets& targets);
    Pointer build(MovableGraph& movable, const PlaceKey& key, Places places);
    std::vector<Pointer> build_all(MovableGraph& movable, const std::vector<Pointer>& like);
    std::vector<Pointer> alive_ones();
    void apply(std::vector<Change> changes);
    bool set_in_place(const std::vector<Pointer>& executables, const std::vector<Change>& changes,
                      std::vector<Pointer>& touched);
    KernelLaunch changed(uint32_t number, const gcx_kernel_params& params);

    ContextCache& cache_;
    const Driver& driver_;
    const uint32_t flags_;
    mutable std::mutex building_; // held while executables are made; launches don't want it
    std::unique_ptr<MovableGraph> movable_;
    Device& device_;
    Device::PrimaryHold primary_;
    EventPool events_;
    Executables executables_;
    std::atomic<uint32_t> part_count_;
    std::atomic<uint64_t> launches_{0};
    std::atomic<uint64_t> made_{0};
};

} // namespace gcx
