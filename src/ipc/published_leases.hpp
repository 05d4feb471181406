// The leases that processes of one user show each other: the format of the file that each process
// publishes, its validation, its reader and its writer.
#pragma once

#include "base/atom_set.hpp"
#include "ipc/lock_dir.hpp"

#include <gcx.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gcx::published {

constexpr uint64_t kMagic = 0x3173657361656c67; // "gleases1"
// Increment with each change of the structs below. Readers skip files of other versions.
constexpr uint32_t kVersion = 2;
constexpr uint32_t kMaxDevices = 64;
constexpr uint32_t kMaxRows = 512;
constexpr char kPrefix[] = "leases-";

struct DeviceRow {
    uint32_t sm_count;
    uint32_t reserved;
    uint8_t uuid[16];
    char name[128];
};

struct Head {
    uint64_t magic; // written last: 0 until the file is complete
    uint32_t version;
    uint32_t sequence; // odd while a change is being written
    uint64_t process;  // a random number
    uint64_t since_ms; // since 1970
    int32_t pid;
    int32_t driver_version;
    uint32_t simulated;
    uint32_t device_count;
    uint32_t row_count;
    uint32_t unlisted_count; // leases that did not fit
    char name[GCX_MAX_PROCESS_NAME];
    DeviceRow devices[kMaxDevices];
};

struct Row {
    uint64_t id;
    uint64_t changes;
    int32_t device;
    uint32_t family;
    uint32_t flags;
    uint32_t waits;
    uint32_t sm_count; // of a request that waits: the requested count
    uint32_t exclusive_sm_count;
    uint32_t stream_count;
    // The sizes of the family's atoms.
    uint32_t unit_count;
    uint32_t unit_size;
    uint32_t remainder_size;
    uint64_t exclusive[AtomSet::kWords];
    uint64_t shared[AtomSet::kWords];
    char name[GCX_MAX_LEASE_NAME];
};

// As in gcx_published_process.
struct Counters {
    uint64_t contexts_created;
    uint64_t contexts_evicted;
    uint64_t resizes;
    uint64_t waits;
    uint64_t waited_ns;
    uint32_t contexts;
    uint32_t library;
};

struct File {
    Head head;
    Counters counters;
    Row rows[kMaxRows];
};
static_assert(std::is_trivially_copyable_v<File> && sizeof(Head) == 9848 && sizeof(Row) == 248 &&
              sizeof(Counters) == 48);

struct Process {
    Head head;
    std::vector<Row> rows; // leases by id, then waiting requests
    Counters counters;
};

// Returns the directory in which the directories of users are: the one that GCX_RESERVATION_DIR
// names, or an empty string for the user's own. Throws if it can be entered by others.
std::string shared_dir();

// Returns the processes of this user that publish, each as of one moment. Skips invalid files with
// a warning in the log, and removes those without an owner.
std::vector<Process> read_all();

// Returns what is wrong with what a file says; an empty string if it is valid.
std::string problem_of(const Process& process);

} // namespace gcx::published

namespace gcx {

// Publishes the leases of this process in a file that is mapped into memory. A change takes well
// under a microsecond, no system call and no thread.
class Publisher {
  public:
    Publisher() = default;
    Publisher(const Publisher&) = delete;
    Publisher& operator=(const Publisher&) = delete;
    ~Publisher() { stop(); }

    // Returns whether this process publishes. Changes may be lost while start() runs, so follow it
    // by an update with all leases.
    bool active() const { return active_.load(std::memory_order_acquire); }
    // Creates the file, which readers skip until show() is called. If this process publishes
    // already, changes the name. head: name, process and driver; the magic number is 0.
    void start(const published::Head& head);
    void show();
    void stop() noexcept;
    // Stops in the child of a fork, and leaves the parent's file alone.
    void forget() noexcept;
    // Removes the file while the process ends. Never waits: the thread that a signal interrupted
    // may have the lock.
    void remove_file() noexcept;

    // A change that readers see completely or not at all. Does nothing if this process does not
    // publish.
    class Update {
      public:
        explicit Update(Publisher& publisher);
        ~Update();
        Update(const Update&) = delete;
        Update& operator=(const Update&) = delete;
        // Adds a row or replaces the one with the same id, except for its stream count.
        void put(const published::Row& row) noexcept;
        void remove(uint64_t id) noexcept;
        void set_streams(uint64_t id, uint32_t count) noexcept;
        void set_contexts(std::size_t count, uint64_t created, uint64_t evicted) noexcept;
        void set_requests(uint64_t resizes, uint64_t waits, uint64_t waited_ns) noexcept;

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

    // Lock order: the locks of leases before this one. Never call the driver while holding it.
    std::mutex mutex_;
    std::atomic<bool> active_{false};
    published::File* file_ = nullptr; // the mapping
    std::optional<LockDir> dir_;
    CloseOnForkFile owned_;                // keeps the file alive
    std::string name_;                     // of the file
    std::vector<uint64_t> ids_;            // of the rows
    std::vector<published::Row> unlisted_; // those that did not fit, oldest first
};

} // namespace gcx
