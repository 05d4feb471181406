// The executables of a graph, one for each set of SMs, kept as long as they are used.
#pragma once

#include "core/graph_nodes.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace gcx {

// Where a part of a graph runs.
struct PartPlace {
    // What names the place for good: 0 where the part was captured, GreenContext::id, or of a
    // context that isn't gcx's the driver's id and kForeign.
    static constexpr uint64_t kForeign = uint64_t{1} << 63;
    uint64_t id = 0;
    CUcontext context = nullptr; // null: where it was captured
    uint32_t sm_count = 0;       // 0: where it was captured
    ContextCache::Ref hold;      // of a context of gcx
};
using Places = std::vector<PartPlace>;

// The ids of places, one alone if they are all the same. No memory is taken.
class PlaceKey {
  public:
    void add(uint64_t id) { ids_[count_++] = id; }
    void fold() {
        if (std::all_of(ids_.begin(), ids_.begin() + count_,
                        [&](uint64_t id) { return id == ids_[0]; }))
            count_ = 1;
    }
    uint32_t count() const { return count_; }
    bool operator==(const PlaceKey& other) const {
        return count_ == other.count_ &&
               std::equal(ids_.begin(), ids_.begin() + count_, other.ids_.begin());
    }

  private:
    std::array<uint64_t, GCX_MAX_GRAPH_PARTS> ids_{};
    uint32_t count_ = 0;
};

class Executable {
  public:
    Executable(Device& device, const PlaceKey& its_key, Places its_places,
               std::vector<CapturedContext> its_captured);
    ~Executable();
    Executable(const Executable&) = delete;
    Executable& operator=(const Executable&) = delete;

    const PlaceKey key;
    const Places places; // one for each part, or one for all
    // Those that parts run in which run where they were captured.
    const std::vector<CapturedContext> captured;

    // Whether those that are not gcx's still exist.
    bool captured_alive() const;
    // The same of all contexts that it runs in.
    bool alive() const;
    const PartPlace& place_of(uint32_t part) const { return places[places.size() == 1 ? 0 : part]; }
    // What the driver made is this one's now.
    void take(CUgraphExec native) { native_ = native; }
    // CUDA wants one thread at a time: the caller of the next three holds this lock. A change of
    // several kernels holds it from the first to the last, so that no launch sees half of them.
    std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
    // One that a change has left incomplete is not launched any more.
    bool usable = true;
    void launch(CUstream stream);
    CUresult set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2& params);
    // Gives it back. Throws, and changes nothing, if the driver refuses.
    void destroy();

  private:
    const Driver& driver_;
    Device::PrimaryHold primary_;
    std::mutex mutex_;
    CUgraphExec native_ = nullptr;
};

// Threads may use one that leaves the table meanwhile: it goes when the last has let go.
class Executables {
  public:
    explicit Executables(uint32_t limit) : limit_(limit) {}

    using Pointer = std::shared_ptr<Executable>;
    // Null: there is none.
    Pointer find(const PlaceKey& key);
    // Takes one in. What is one too many goes, the longest unused first.
    void add(Pointer made);
    std::vector<Pointer> all() const;
    // These instead of those that there are: each in the place of the one with its key, as long
    // unused.
    void replace(std::vector<Pointer> others);
    void remove(const Pointer& one);
    uint32_t limit() const { return limit_; }
    uint64_t evicted() const;
    // Gives all back to the driver. Throws, and keeps the rest, if it refuses.
    void destroy();

  private:
    struct Entry {
        Pointer executable;
        uint64_t last_used;
    };

    const uint32_t limit_;
    mutable std::mutex mutex_;
    std::vector<Entry> entries_;
    std::size_t last_ = 0; // where the last was found
    uint64_t clock_ = 0;
    uint64_t evicted_ = 0;
};

} // namespace gcx
