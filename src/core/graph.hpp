// Graphs: a captured graph, and its executables, one for each combination of targets that it was
// launched on.
#pragma once

#include "core/event.hpp"
#include "core/graph_nodes.hpp"
#include "core/stream.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace gcx {

// The ids of targets, or a single id if all are the same. Allocates no memory.
class TargetKey {
  public:
    void add(uint64_t id) { ids_[count_++] = id; }
    void fold() {
        if (std::all_of(ids_.begin(), ids_.begin() + count_,
                        [&](uint64_t id) { return id == ids_[0]; }))
            count_ = 1;
    }
    uint32_t count() const { return count_; }
    bool operator==(const TargetKey& other) const {
        return count_ == other.count_ &&
               std::equal(ids_.begin(), ids_.begin() + count_, other.ids_.begin());
    }

  private:
    std::array<uint64_t, GCX_MAX_GRAPH_PARTS> ids_{};
    uint32_t count_ = 0;
};

// An executable graph and the contexts that it needs.
class Executable {
  public:
    Executable(Device& device, const TargetKey& its_key, PartTargets its_targets,
               std::vector<CapturedContext> its_captured);
    ~Executable();
    Executable(const Executable&) = delete;
    Executable& operator=(const Executable&) = delete;

    const TargetKey key;
    const PartTargets targets; // one per part, or one for all
    // The capture's own contexts in which parts of this executable run.
    const std::vector<CapturedContext> captured;

    // Returns whether the captured contexts that gcx did not make still exist.
    bool captured_alive() const;
    // Returns the same of all contexts in which it runs.
    bool alive() const;
    void set_native(CUgraphExec native) { native_ = native; }
    // CUDA allows one thread at a time, so callers of the next three hold this lock. A change of
    // several kernels holds it throughout, so that no launch sees half of the change.
    std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
    // Set to false while a change is incomplete; it is then not launched.
    bool usable = true;
    void launch(CUstream stream);
    CUresult set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2& params);
    // Destroys the driver's executable. Throws, and changes nothing, if the driver refuses.
    void destroy();

  private:
    const Driver& driver_;
    Device::PrimaryContextRef primary_;
    std::mutex mutex_;
    CUgraphExec native_ = nullptr;
};

// The executables of a graph. Thread-safe. An executable that leaves the cache lives until its last
// user releases it.
class ExecutableCache {
  public:
    explicit ExecutableCache(uint32_t limit) : limit_(limit) {}

    using Pointer = std::shared_ptr<Executable>;
    // Returns null if there is none.
    Pointer find(const TargetKey& key);
    // Adds an executable. Evicts the least recently used one if the cache is full.
    void add(Pointer executable);
    std::vector<Pointer> all() const;
    // Replaces all executables. Each new one inherits the age of the one with its key.
    void replace(std::vector<Pointer> others);
    void remove(const Pointer& one);
    uint32_t limit() const { return limit_; }
    uint64_t evicted() const;
    // Destroys all executables. Throws, and keeps the others, if the driver refuses one.
    void destroy();

  private:
    struct Entry {
        Pointer executable;
        uint64_t last_used;
    };

    const uint32_t limit_;
    mutable std::mutex mutex_;
    std::vector<Entry> entries_;
    uint64_t clock_ = 0;
    uint64_t evicted_ = 0;
};

// The object of a graph handle. Thread-safe.
class Graph {
  public:
    using DeviceOf = std::function<Device&(int32_t)>;

    // params are checked by the caller.
    Graph(ContextCache& cache, const Driver& driver, CUgraph captured,
          const gcx_graph_params& params, const DeviceOf& device_of);

    // Throws GCX_ERROR_CONTEXT_IS_DESTROYED if the device was reset.
    void check_alive() const;
    void close();

    Device& device() const { return device_; }
    // Throws unless count is the number of parts.
    void check_count(std::size_t count) const;
    // Launches the graph. streams has one stream for all parts, or one per part.
    void launch(std::span<Stream* const> streams);
    // Makes the executable for these contexts, and the contexts if they are missing.
    void prepare(std::span<const ContextKey> contexts);
    void set_part(std::span<const uint32_t> numbers, uint32_t part);
    void set_kernel(uint32_t number, const gcx_kernel_params& params);
    void update(CUgraph captured, const DeviceOf& device_of);
    void get_info(gcx_graph_info& info) const;
    std::vector<gcx_graph_node> describe_nodes() const;

  private:
    using Pointer = ExecutableCache::Pointer;
    // The targets of a launch.
    struct LaunchTargets {
        std::array<Stream::Target, GCX_MAX_GRAPH_PARTS> at;
        uint32_t count = 0;
        TargetKey key;
    };
    // A kernel node's new launch.
    struct Change {
        uint32_t number;
        KernelLaunch launch;
    };
    struct MissingExecutable {
        TargetKey key;
        PartTargets targets;
    };

    std::optional<MissingExecutable> try_launch(std::span<Stream* const> streams, bool make_now);
    void add_target(LaunchTargets& launch_targets, Stream& stream) const;
    uint64_t id_of(const Stream::Target& target) const;
    MissingExecutable describe_missing(const LaunchTargets& launch_targets,
                                       std::span<Stream* const> streams);
    bool submit(Executable& executable, const LaunchTargets& launch_targets);
    void launch_in(Executable& executable, const LaunchTargets& launch_targets);
    Pointer make(const TargetKey& key, PartTargets targets);
    // These require building_.
    std::vector<CapturedContext> captured_for(const MovableGraph& movable,
                                              std::span<const PartTarget> targets);
    Pointer build(MovableGraph& movable, const TargetKey& key, PartTargets targets);
    std::vector<Pointer> build_all(MovableGraph& movable, const std::vector<Pointer>& like);
    std::vector<Pointer> live_executables();
    void apply(std::vector<Change> changes);
    void check_parameters(const std::vector<Change>& changes);
    bool set_in_place(const std::vector<Pointer>& executables, const std::vector<Change>& changes,
                      std::vector<Pointer>& touched);
    KernelLaunch changed(uint32_t number, const gcx_kernel_params& params);

    ContextCache& cache_;
    const Driver& driver_;
    const uint32_t flags_;
    mutable std::mutex building_; // held while executables are made, not by launches
    std::unique_ptr<MovableGraph> movable_;
    Device& device_;
    Device::PrimaryContextRef primary_;
    EventPool events_;
    ExecutableCache executables_;
    std::atomic<uint32_t> part_count_;
    std::atomic<uint64_t> launches_{0};
    std::atomic<uint64_t> built_{0}; // executables
};

} // namespace gcx
