// The streams of one green context: those in use, and released ones that are cached for reuse.
// Caching does more than save time. A library that caches memory by stream, like PyTorch, still
// names a stream after its owner has released it, and aborts if the driver has destroyed it.
#pragma once

#include "driver/driver.hpp"

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>

namespace gcx {

// Thread-safe. Priorities are clamped to the driver's range by the caller.
class StreamCache {
  public:
    // Limit of cached streams: the size of a stream pool in PyTorch.
    static constexpr std::size_t kMaxCached = 32;

    // Returns a cached stream of this priority, or null. Prefers the one that this owner released,
    // even with work in flight and changed attributes, because later work of the same owner is
    // ordered behind it. Otherwise returns one that is idle and has default attributes. owner 0
    // stands for no owner.
    CUstream acquire(const Driver& driver, int priority, uint64_t owner = 0);
    // Adds a stream in use that the driver just made.
    void add(const Driver& driver, CUstream stream, int priority);
    // Releases a stream in use: caches it, or destroys it if the cache is full. Throws, and changes
    // nothing, if the driver refuses.
    void release(const Driver& driver, CUstream stream, int priority, uint64_t owner = 0);
    // Returns whether one of the streams captures a graph.
    bool capturing(const Driver& driver);
    std::size_t cached_count();
    // Destroys the cached streams. Returns the driver's error if it refuses one.
    CUresult destroy(const Driver& driver);
    // Like destroy(), but spares streams with work in flight, which may be waited for, and streams
    // that capture a graph.
    CUresult trim(const Driver& driver);

  private:
    using Streams = std::set<CUstream>;
    // A stream moves between the two containers as a node, so that release() allocates no set node.
    struct Cached {
        Streams::node_type node;
        int priority;
        uint64_t owner = 0;

        CUstream stream() const { return node.value(); }
    };
    // Five attribute values as bytes. They are only compared; by memcmp, as the bytes are integers.
    using Attributes = std::array<unsigned char, 5 * sizeof(CUlaunchAttributeValue)>;
    static std::optional<Attributes> attributes_of(const Driver& driver, CUstream stream);

    // These require mutex_.
    CUstream hand_out(const std::deque<Cached>::iterator& cached);
    std::optional<bool> changed(const Driver& driver, CUstream stream, int priority) const;
    bool has_room(const Driver& driver, CUstream stream);
    bool make_room(const Driver& driver, bool for_capture);

    std::mutex mutex_;
    Streams in_use_;
    std::deque<Cached> cached_;                    // in order of release
    std::map<int, Attributes> default_attributes_; // attributes of a new stream, by priority
};

} // namespace gcx
