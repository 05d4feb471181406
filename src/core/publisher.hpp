// Writes what this process publishes of its leases, into a file of published.hpp that is mapped:
// well under a microsecond for a change, no system call, no thread.
#pragma once

#include "base/private_folder.hpp"
#include "core/published.hpp"

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace gcx {

class Publisher {
  public:
    Publisher() = default;
    Publisher(const Publisher&) = delete;
    Publisher& operator=(const Publisher&) = delete;
    ~Publisher() { stop(); }

    // Whether anybody wants to know. What comes to pass meanwhile may be missed: start() is
    // followed by all that there is.
    bool active() const { return active_.load(std::memory_order_acquire); }
    // Makes the file, which nobody reads before show(). Of one that publishes, changes the name.
    // head: name, process and driver.
    void start(const published::Head& head);
    void show();
    void stop() noexcept;
    // In the child of a fork, where the file is the parent's.
    void forget() noexcept;
    // While the process ends. Waits for nobody: who has the lock may be what a signal interrupted.
    void remove_file() noexcept;

    // A change, which readers see wholly or not at all. Does nothing where nothing is published.
    class Update {
      public:
        explicit Update(Publisher& publisher);
        ~Update();
        Update(const Update&) = delete;
        Update& operator=(const Update&) = delete;
        // Takes a row in, or in the place of what it was, but for its streams.
        void put(const published::Row& row) noexcept;
        void remove(uint64_t id) noexcept;
        void set_streams(uint64_t id, uint32_t count) noexcept;

      private:
        Publisher& publisher_;
        std::unique_lock<std::mutex> lock_;
        published::File* file_ = nullptr;
    };

  private:
    static constexpr std::size_t kNowhere = ~std::size_t{0};
    std::size_t row_of(uint64_t id) const;
    bool has_room_for(const published::Row& row) const;
    void list(const published::Row& row);
    std::vector<published::Row>::iterator find_unlisted(uint64_t id);
    void count_unlisted();

    // Held for no call of the driver's. Those of leases are taken before it.
    std::mutex mutex_;
    std::atomic<bool> active_{false};
    published::File* file_ = nullptr;
    std::optional<PrivateFolder> folder_;
    OwnFile own_;
    std::vector<uint64_t> ids_;            // of the rows
    std::vector<published::Row> unlisted_; // those that there was no room for, oldest first
};

} // namespace gcx
