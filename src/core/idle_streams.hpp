// Streams of a green context that were given up, for those who want one next.
//
// Not for speed alone: a library that caches memory by stream, as PyTorch does, goes on to name a
// stream after its owner gave it up, and ends the process if the driver no longer knows it.
#pragma once

#include "driver/driver.hpp"

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

namespace gcx {

class IdleStreams {
  public:
    // The most that are kept: as many as PyTorch has in a pool.
    static constexpr std::size_t kMost = 32;

    // A stream of that priority, as asked for, whose work has finished; null if there is none.
    CUstream take(const Driver& driver, int priority);
    // Notes what a stream of that priority is like that the driver just made.
    void learn(const Driver& driver, CUstream stream, int priority);
    // Keeps a stream, unless it captures a graph, was changed by its owner, or is one too many:
    // then the answer is false, and the stream still the caller's.
    bool keep(const Driver& driver, CUstream stream, int priority);
    // Destroys them all, or says what the driver refused.
    CUresult destroy(const Driver& driver);

  private:
    struct Idle {
        CUstream stream;
        int priority;
    };
    // Values as bytes: they are compared, not read.
    using Attributes = std::array<std::array<std::byte, sizeof(CUlaunchAttributeValue)>, 5>;
    static std::optional<Attributes> attributes_of(const Driver& driver, CUstream stream);

    std::mutex mutex_;
    std::deque<Idle> idle_;           // the one that was given up first comes first
    std::map<int, Attributes> fresh_; // by priority
};

} // namespace gcx
