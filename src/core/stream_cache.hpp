// The streams of a green context: those that are given out, and those that were given up and wait
// for the next who wants one.
//
// They are kept not for speed alone: a library that caches memory by stream, as PyTorch does, goes
// on to name a stream after its owner gave it up, and ends the process if the driver no longer
// knows it.
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

// Priorities are as the driver has them: clamped.
class StreamCache {
  public:
    // The most that are kept: as many as PyTorch has in a pool.
    static constexpr std::size_t kMaxCached = 32;

    // A kept stream of that priority whose work has finished, or first of all one that this user
    // gave up, with work or not, and with the attributes that the user gave it: later work of the
    // same user belongs behind that. null if there is none. user: a number of its own, or 0.
    CUstream acquire(const Driver& driver, int priority, uint64_t owner = 0);
    // Takes in a stream of that priority that the driver just made, and is given out.
    void add(const Driver& driver, CUstream stream, int priority);
    // Gives a stream up that was taken or added: it is kept, or destroyed if it is one too many.
    // Throws, and changes nothing, if the driver refuses.
    void release(const Driver& driver, CUstream stream, int priority, uint64_t owner = 0);
    // Whether any of them takes part in a graph capture.
    bool capturing(const Driver& driver);
    // How many are kept.
    std::size_t cached_count();
    // Destroys those that are kept, or says what the driver refused.
    CUresult destroy(const Driver& driver);
    // The same, but not of those with work in flight, which somebody may wait for, and those that
    // capture.
    CUresult trim(const Driver& driver);

  private:
    using Streams = std::set<CUstream>;
    // A stream comes and goes between the two containers with its node, which costs no memory.
    struct Cached {
        Streams::node_type node;
        int priority;
        uint64_t owner = 0;

        CUstream stream() const { return node.value(); }
    };
    // Values as bytes: they are compared, not read.
    using Attributes = std::array<std::array<std::byte, sizeof(CUlaunchAttributeValue)>, 5>;
    static std::optional<Attributes> attributes_of(const Driver& driver, CUstream stream);

    // These want the mutex.
    CUstream hand_out(const std::deque<Cached>::iterator& cached);
    std::optional<bool> changed(const Driver& driver, CUstream stream, int priority) const;
    bool has_room(const Driver& driver, CUstream stream);
    bool make_room(const Driver& driver, bool for_capture);

    std::mutex mutex_;
    Streams in_use_;
    std::deque<Cached> cached_;                    // the one that was given up first comes first
    std::map<int, Attributes> default_attributes_; // what a new stream has, by priority
};

} // namespace gcx
