// A gate: any number of threads pass it at once, and wait while somebody has it closed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace gcx {

class Gate {
  public:
    // A thread on its way through several, of which some may be null or the same. In one order for
    // all, as by those who close several.
    class Passes {
      public:
        explicit Passes(std::span<Gate*> gates) : gates_(gates) {
            std::sort(gates_.begin(), gates_.end());
            for (std::size_t i = 0; i < gates_.size(); i++) {
                if (i != 0 && gates_[i] == gates_[i - 1])
                    gates_[i - 1] = nullptr;
            }
            for (Gate* gate : gates_) {
                if (gate != nullptr)
                    gate->enter();
            }
        }
        ~Passes() {
            for (Gate* gate : gates_) {
                if (gate != nullptr)
                    gate->leave();
            }
        }
        Passes(const Passes&) = delete;
        Passes& operator=(const Passes&) = delete;

      private:
        std::span<Gate*> gates_;
    };

    // Keeps it closed, once all who were on their way are through. One at a time.
    class Closed {
      public:
        explicit Closed(Gate& gate) : gate_(&gate) { gate.close(); }
        Closed(Closed&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
        Closed& operator=(Closed&& other) noexcept {
            std::swap(gate_, other.gate_);
            return *this;
        }
        ~Closed() {
            if (gate_ != nullptr)
                gate_->open();
        }

      private:
        Gate* gate_;
    };

  private:
    static constexpr uint32_t kClosed = uint32_t{1} << 31;

    void enter() {
        uint32_t state = state_.load(std::memory_order_relaxed);
        for (;;) {
            if ((state & kClosed) != 0) {
                state_.wait(state);
                state = state_.load(std::memory_order_relaxed);
            } else if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire)) {
                return;
            }
        }
    }
    void leave() {
        if (state_.fetch_sub(1, std::memory_order_release) == kClosed + 1)
            state_.notify_all();
    }
    void close() {
        uint32_t state = state_.fetch_or(kClosed, std::memory_order_acquire) | kClosed;
        while (state != kClosed) {
            state_.wait(state);
            state = state_.load(std::memory_order_acquire);
        }
    }
    void open() {
        state_.fetch_and(~kClosed, std::memory_order_release);
        state_.notify_all();
    }

    std::atomic<uint32_t> state_{0}; // who is on the way, and whether it is closed
};

} // namespace gcx
