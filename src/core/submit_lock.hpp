// A lock that submitters of work share and a resize takes exclusively.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace gcx {

class SubmitLock {
  public:
    // Locks several for submission, in order of address. Entries may be null or equal.
    class Shared {
      public:
        explicit Shared(std::span<SubmitLock*> locks) : locks_(locks) {
            std::sort(locks_.begin(), locks_.end());
            for (std::size_t i = 0; i < locks_.size(); i++) {
                if (i != 0 && locks_[i] == locks_[i - 1])
                    locks_[i - 1] = nullptr;
            }
            for (SubmitLock* submit_lock : locks_) {
                if (submit_lock != nullptr)
                    submit_lock->enter();
            }
        }
        ~Shared() {
            for (SubmitLock* submit_lock : locks_) {
                if (submit_lock != nullptr)
                    submit_lock->leave();
            }
        }
        Shared(const Shared&) = delete;
        Shared& operator=(const Shared&) = delete;

      private:
        std::span<SubmitLock*> locks_;
    };

    // Waits for all submitters, then blocks new ones. One thread at a time.
    class Exclusive {
      public:
        explicit Exclusive(SubmitLock& submit_lock) : submit_lock_(&submit_lock) {
            submit_lock.close();
        }
        Exclusive(Exclusive&& other) noexcept
            : submit_lock_(std::exchange(other.submit_lock_, nullptr)) {}
        Exclusive& operator=(Exclusive&& other) noexcept {
            std::swap(submit_lock_, other.submit_lock_);
            return *this;
        }
        ~Exclusive() {
            if (submit_lock_ != nullptr)
                submit_lock_->open();
        }

      private:
        SubmitLock* submit_lock_;
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

    std::atomic<uint32_t> state_{0}; // number of submitters, and kClosed
};

} // namespace gcx
