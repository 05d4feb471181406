// The waits that one gcx_cancel ends at once, each in its own way. A wait for leases needs no entry
// here: it is in the queue of Leases.
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

namespace gcx {

class CancelList {
  public:
    class Wait {
      public:
        // Called once at most, by the thread that cancels. When it returns, the wait has succeeded
        // already or never will.
        virtual void cancel() noexcept = 0;

      protected:
        ~Wait() = default;
    };

    // Keeps a wait in a list. One that comes after cancel_all() is cancelled at once.
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
        // Waits until a cancel() that has begun returns.
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
