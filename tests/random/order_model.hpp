// The order that plain CUDA promises within one primary context, as vector clocks, and the words of
// memory whose values follow from it. Calls no driver.
//
// The clocks count the actions of each timeline: the host, NULL, the threads' default streams, and
// the created streams. In a program whose threads take turns, each call happens after the one
// before it, whatever the thread, so that the host is one timeline.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace random_programs {

using Slot = uint8_t;
constexpr Slot kHost = 0;
constexpr Slot kNull = 1;
constexpr Slot kThreadStreams = 2; // one for each of 4 threads
constexpr Slot kCreated = 6;
constexpr Slot kSlots = 24;

class Clock {
  public:
    void join(const Clock& other) {
        for (std::size_t i = 0; i < kSlots; i++)
            at_[i] = std::max(at_[i], other.at_[i]);
    }
    bool covers(Slot slot, uint32_t count) const { return count <= at_[slot]; }
    bool covers(const Clock& other) const {
        bool all = true;
        for (std::size_t i = 0; i < kSlots; i++)
            all &= other.at_[i] <= at_[i];
        return all;
    }
    uint32_t& at(Slot slot) { return at_[slot]; }
    uint32_t at(Slot slot) const { return at_[slot]; }

  private:
    std::array<uint32_t, kSlots> at_{};
};

// An action that is about to be submitted: what happens before it, and itself.
struct Action {
    Slot slot = kHost;
    Clock clock;
};

class Timelines {
  public:
    Timelines();

    const Clock& host() const { return host_; }
    bool blocking(Slot slot) const { return streams_[slot].blocking; }

    // Plans the next action of a stream. It happens when it is committed, and not if the call is
    // not made.
    Action plan(Slot slot) const;
    void commit(const Action& action);
    // Plans and commits a record: it does not make a blocking stream wait for NULL, and its event
    // covers earlier work in NULL only sometimes (recorded). In NULL it is an action as any other.
    Action record(Slot slot);
    // An allocation does not make a blocking stream wait for NULL, and is in NULL no action for the
    // blocking streams (recorded).
    Action allocate(Slot slot);
    // Orders later actions of a stream after an event. In NULL this is an action. It does not make
    // a blocking stream wait for NULL (recorded).
    void wait(Slot slot, const Clock& event);
    // Plans and commits an action of the host, such as a write of memory.
    Action act_on_host();

    // What is complete once the stream is idle: for NULL, the blocking streams too.
    Clock work_of(Slot slot) const;
    Clock all_work() const;
    // The host has waited for all of this.
    void host_waits(const Clock& clock) { host_.join(clock); }

    // Returns a slot for a new stream, or kHost if none is free. The slot of a destroyed stream is
    // free once the host has waited for its work.
    Slot create(bool blocking);
    void destroy(Slot slot) { streams_[slot].live = false; }

  private:
    struct Stream {
        Clock clock; // of its last action, and of the events that it has waited for
        Clock acted; // of its last action
        bool blocking = true;
        bool live = false;
    };

    Clock host_;
    Clock blocking_; // all actions of blocking streams, also of destroyed ones
    std::array<Stream, kSlots> streams_;
};

enum class Memory : uint8_t {
    kDevice,
    kPinned,
    kPageable,
    kManaged,
    kAllocated, // by an allocation in stream order or cuMemAlloc during the program
};
constexpr std::size_t kMemories = 5;

inline bool is_read_by_host(Memory memory) {
    return memory == Memory::kPinned || memory == Memory::kPageable || memory == Memory::kManaged;
}

struct Word {
    uint64_t address = 0;
    Memory memory = Memory::kDevice;
    bool live = false;
    bool known = false;     // it was written, so that its value is determined
    bool unchecked = false; // it was written since the host read it; only if the host can
    Slot writer = kHost;
    uint32_t written = 0; // the writer's count
    uint32_t value = 0;
    Clock readers; // since the last write
};

class Words {
  public:
    std::size_t size() const { return words_.size(); }
    Word& operator[](std::size_t index) { return words_[index]; }
    const Word& operator[](std::size_t index) const { return words_[index]; }
    std::size_t add(const Word& word) {
        words_.push_back(word);
        return words_.size() - 1;
    }

    // Is each earlier access that matters ordered before the clock?
    static bool readable(const Word& word, const Clock& clock) {
        return word.live && word.known && clock.covers(word.writer, word.written);
    }
    static bool writable(const Word& word, const Clock& clock) {
        return word.live && clock.covers(word.writer, word.written) && clock.covers(word.readers);
    }

    void read(std::size_t index, const Action& action) {
        Word& word = words_[index];
        word.readers.at(action.slot) =
            std::max(word.readers.at(action.slot), action.clock.at(action.slot));
    }
    void write(std::size_t index, const Action& action, uint32_t value);

    // Calls check for each word that the host can read, has not checked since it was written, and
    // whose value is determined for a host that knows the clock.
    template <class Check>
    void check(const Clock& clock, const Check& check) {
        std::erase_if(unchecked_, [&](std::size_t index) {
            Word& word = words_[index];
            if (!clock.covers(word.writer, word.written))
                return false;
            check(index);
            word.unchecked = false;
            return true;
        });
    }

  private:
    std::vector<Word> words_;
    std::vector<std::size_t> unchecked_;
};

} // namespace random_programs
