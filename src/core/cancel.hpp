// The object of a gcx_cancel handle: cancels blocking calls of other threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace gcx {

class Cancel {
  public:
    // A blocking call that signal() cancels. Calls that wait for leases register none: they are in
    // the lease manager's queues, and LeaseManager::signal() wakes them.
    class Wait {
      public:
        // Called at most once, by the thread that cancels. When it returns, the wait has succeeded
        // or never will.
        virtual void cancel() noexcept = 0;

      protected:
        ~Wait() = default;
    };

    // Registers a wait while it lives. If the cancel was signalled before, cancels the wait at
    // once.
    class Entry {
      public:
        // cancel may be null.
        Entry(Cancel* cancel, Wait& wait) : cancel_(cancel), wait_(wait) {
            if (cancel_ == nullptr)
                return;
            const std::lock_guard lock(cancel_->mutex_);
            if (cancel_->signalled())
                wait_.cancel();
            else
                cancel_->waits_.push_back(&wait_);
        }
        // Waits for a running signal().
        ~Entry() {
            if (cancel_ == nullptr)
                return;
            const std::lock_guard lock(cancel_->mutex_);
            std::erase(cancel_->waits_, &wait_);
        }
        Entry(const Entry&) = delete;
        Entry& operator=(const Entry&) = delete;

      private:
        Cancel* const cancel_;
        Wait& wait_;
    };

    bool signalled() const { return signalled_.load(std::memory_order_acquire); }
    // Cancels the registered waits, and those that are registered later.
    void signal() noexcept {
        const std::lock_guard lock(mutex_);
        signalled_.store(true, std::memory_order_release);
        for (Wait* const wait : waits_)
            wait->cancel();
        waits_.clear();
    }

    void check_alive() const {}
    void close() {}

  private:
    std::mutex mutex_;
    std::atomic<bool> signalled_{false};
    std::vector<Wait*> waits_;
};

} // namespace gcx
