// The blocking calls that one gcx_cancel cancels. Waits for leases are not listed here, because
// they are in the lease manager's queues.
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

namespace gcx {

class CancelList {
  public:
    class Wait {
      public:
        // Called at most once, by the thread that cancels. When it returns, the wait has succeeded
        // or never will.
        virtual void cancel() noexcept = 0;

      protected:
        ~Wait() = default;
    };

    // Keeps a wait in a list. If the list was cancelled before, cancels the wait at once.
    class Entry {
      public:
        // list may be null.
        Entry(CancelList* list, Wait& wait) : list_(list), wait_(wait) {
            if (list_ == nullptr)
                return;
            const std::lock_guard lock(list_->mutex_);
            if (list_->cancelled_)
                wait_.cancel();
            else
                list_->waits_.push_back(&wait_);
        }
        // Waits for a running cancel().
        ~Entry() {
            if (list_ == nullptr)
                return;
            const std::lock_guard lock(list_->mutex_);
            std::erase(list_->waits_, &wait_);
        }
        Entry(const Entry&) = delete;
        Entry& operator=(const Entry&) = delete;

      private:
        CancelList* const list_;
        Wait& wait_;
    };

    void cancel_all() noexcept {
        const std::lock_guard lock(mutex_);
        cancelled_ = true;
        for (Wait* const wait : waits_)
            wait->cancel();
        waits_.clear();
    }

  private:
    std::mutex mutex_;
    bool cancelled_ = false;
    std::vector<Wait*> waits_;
};

} // namespace gcx
