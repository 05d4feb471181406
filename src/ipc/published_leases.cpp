#include "ipc/published_leases.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "ipc/reservation.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

namespace gcx::published {
namespace {

using Clock = std::chrono::steady_clock;

// Writing a change takes less than a microsecond and reading a few, so one of these tries falls
// between two changes, unless the writer was stopped in the middle of one.
constexpr int kTriesAtOnce = 64;
constexpr auto kReadTimeout = std::chrono::milliseconds(100);
constexpr auto kPause = std::chrono::microseconds(200);
constexpr std::size_t kMaxWarnings = 8;
constexpr std::size_t kIdDigits = 16;

enum class Read : uint8_t { done, nothing, busy };

// Uses pread() and not mmap(): a file that is shortened while it is mapped ends the reader.
template <class T>
void read_at(int file, std::size_t offset, T* to, std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    const ssize_t got = pread(file, to, bytes, static_cast<off_t>(offset));
    if (got < 0)
        fail(GCX_ERROR_OPERATING_SYSTEM, format("it can't be read: %s", std::strerror(errno)));
    if (static_cast<std::size_t>(got) != bytes)
        fail(GCX_ERROR_OPERATING_SYSTEM, "it is too short");
}

uint32_t read_sequence(int file) {
    uint32_t sequence = 0;
    read_at(file, offsetof(Head, sequence), &sequence, 1);
    return sequence;
}

bool try_to_read(int file, Process& process) {
    const uint32_t before = read_sequence(file);
    if (before % 2 != 0)
        return false;
    std::atomic_thread_fence(std::memory_order_acquire);
    read_at(file, 0, &process.head, 1);
    process.rows.resize(std::min(process.head.row_count, kMaxRows));
    if (!process.rows.empty())
        read_at(file, offsetof(File, rows), process.rows.data(), process.rows.size());
    read_at(file, offsetof(File, counters), &process.counters, 1);
    std::atomic_thread_fence(std::memory_order_acquire);
    return read_sequence(file) == before;
}

Read read(int file, Process& process) {
    struct stat info{};
    if (fstat(file, &info) == 0 && info.st_size > static_cast<off_t>(sizeof(File)))
        fail(GCX_ERROR_OPERATING_SYSTEM,
             format("it has %lld bytes, and can't have more than %zu",
                    static_cast<long long>(info.st_size), sizeof(File)));
    struct {
        uint64_t magic;
        uint32_t version;
        uint32_t sequence;
    } start{};
    read_at(file, 0, &start, 1);
    if (start.magic == 0)
        return Read::nothing;
    if (start.magic != kMagic)
        fail(GCX_ERROR_OPERATING_SYSTEM, "it is no file of gcx");
    if (start.version != kVersion)
        fail(GCX_ERROR_OPERATING_SYSTEM,
             format("another version of gcx wrote it: its layout is %u, this version reads %u",
                    start.version, kVersion));
    for (int tries = 0; tries < kTriesAtOnce; tries++) {
        if (!try_to_read(file, process))
            continue;
        if (const std::string problem = problem_of(process); !problem.empty())
            fail(GCX_ERROR_OPERATING_SYSTEM, problem);
        return Read::done;
    }
    return Read::busy;
}

template <std::size_t size>
bool is_terminated(const char (&text)[size]) {
    return std::memchr(text, 0, size) != nullptr;
}

std::string problem_of_row(const Row& row, const Head& head) {
    if (row.device < 0 || static_cast<uint32_t>(row.device) >= head.device_count)
        return "no such device";
    if (row.family < GCX_SM_FAMILY_COSCHEDULED || row.family > GCX_SM_FAMILY_MAX_CLUSTER)
        return "no such family";
    if ((row.flags & ~GCX_LEASE_SHARED) != 0 || row.waits > 1 || !is_terminated(row.name))
        return "flags or a name out of range";
    if (row.unit_count >= AtomSet::kCapacity || row.unit_size > GCX_MAX_SMS ||
        row.remainder_size > GCX_MAX_SMS)
        return "impossible atoms";
    const AtomShape shape{row.unit_count, row.unit_size, row.remainder_size};
    const AtomSet exclusive = AtomSet::of_words(row.exclusive);
    const AtomSet shared = AtomSet::of_words(row.shared);
    if (!((exclusive | shared) - shape.all()).empty() || !(exclusive & shared).empty() ||
        (row.flags == 0 && !shared.empty()))
        return "atoms that are not those of the family";
    if (shape.sm_count(shape.all()) > head.devices[row.device].sm_count)
        return "more SMs in atoms than in the device";
    const bool consistent = row.waits != 0
                                ? (exclusive | shared).empty() && row.exclusive_sm_count == 0
                                : row.sm_count == shape.sm_count(exclusive | shared) &&
                                      row.exclusive_sm_count == shape.sm_count(exclusive);
    return consistent ? "" : "counts of SMs that aren't those of its atoms";
}

// Returns an error if exclusive SMs have two owners.
std::string problem_of_owners(const std::vector<Row>& rows) {
    for (std::size_t i = 0; i < rows.size(); i++) {
        const AtomSet exclusive = AtomSet::of_words(rows[i].exclusive);
        for (std::size_t j = 0; j < rows.size() && !exclusive.empty(); j++) {
            if (i == j || rows[i].device != rows[j].device || rows[i].family != rows[j].family)
                continue;
            if (!(exclusive &
                  (AtomSet::of_words(rows[j].exclusive) | AtomSet::of_words(rows[j].shared)))
                     .empty())
                return "SMs that are exclusive to one lease and belong to another too";
        }
    }
    return "";
}

bool is_file_name(std::string_view name) {
    constexpr std::size_t kPrefixSize = sizeof kPrefix - 1;
    return name.size() == kPrefixSize + kIdDigits &&
           name.substr(kPrefixSize).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

class Reader {
  public:
    explicit Reader(const LockDir& dir) : dir_(dir) {}

    std::vector<Process> all() {
        std::vector<std::string> left = dir_.names(kPrefix);
        std::erase_if(left, [](const std::string& name) { return !is_file_name(name); });
        const auto end = Clock::now() + kReadTimeout;
        for (;;) {
            std::erase_if(left, [&](const std::string& name) { return !is_busy(name); });
            if (left.empty() || Clock::now() > end)
                break;
            std::this_thread::sleep_for(kPause);
        }
        for (const std::string& name : left)
            warn(name, "its process was stopped while it wrote, or never stops writing");
        if (refused_ > kMaxWarnings)
            log::write(GCX_LOG_WARNING, format("%zu more files in %s are not read",
                                               refused_ - kMaxWarnings, dir_.path().c_str()));
        // By start, so that the order stays the same as processes are added.
        std::sort(found_.begin(), found_.end(), [](const Process& a, const Process& b) {
            return std::pair(a.head.since_ms, a.head.process) <
                   std::pair(b.head.since_ms, b.head.process);
        });
        return std::move(found_);
    }

  private:
    bool is_busy(const std::string& name) {
        const LockDir::Found found = dir_.look_at(name);
        if (!found.problem.empty())
            warn(name, found.problem);
        if (!found.file)
            return false;
        if (!found.alive)
            return false;
        Process process{};
        Read outcome = Read::nothing;
        try {
            outcome = read(found.file.get(), process);
        } catch (const Error& error) {
            warn(name, error.message);
        }
        if (outcome == Read::done)
            add(std::move(process));
        return outcome == Read::busy;
    }

    void add(Process process) {
        std::sort(process.rows.begin(), process.rows.end(), [](const Row& a, const Row& b) {
            return std::pair(a.waits, a.id) < std::pair(b.waits, b.id);
        });
        found_.push_back(std::move(process));
    }

    void warn(const std::string& name, const std::string& why) {
        if (++refused_ <= kMaxWarnings)
            log::write(GCX_LOG_WARNING, format("the file %s/%s is not read: %s",
                                               dir_.path().c_str(), name.c_str(), why.c_str()));
    }

    const LockDir& dir_;
    std::vector<Process> found_;
    std::size_t refused_ = 0;
};

} // namespace

std::string problem_of(const Process& process) {
    const Head& head = process.head;
    if (head.row_count > kMaxRows || head.row_count != process.rows.size() ||
        head.device_count > kMaxDevices || head.simulated > 1 || !is_terminated(head.name))
        return "its head has values out of range";
    for (uint32_t i = 0; i < head.device_count; i++) {
        if (head.devices[i].sm_count > GCX_MAX_SMS || !is_terminated(head.devices[i].name))
            return format("its device %u has values out of range", i);
    }
    for (std::size_t i = 0; i < process.rows.size(); i++) {
        if (const std::string problem = problem_of_row(process.rows[i], head); !problem.empty())
            return format("its lease at %zu has %s", i, problem.c_str());
    }
    const std::string problem = problem_of_owners(process.rows);
    return problem.empty() ? "" : "it has " + problem;
}

std::string shared_dir() {
    const std::string path = reservations::reservation_dir(nullptr);
    if (!path.empty())
        LockDir::open(path); // throws unless only its user or group can enter it
    return path;
}

std::vector<Process> read_all() {
    const auto dir = LockDir::find_private(shared_dir());
    return dir ? Reader(*dir).all() : std::vector<Process>();
}

} // namespace gcx::published

namespace gcx {
namespace {

constexpr int kTriesAtExit = 100;
// How long a publisher waits for the directory's lock, without which it does not clean up.
constexpr auto kPublishLockTimeout = std::chrono::milliseconds(200);

using published::File;
using published::Row;

std::string random_name() {
    return format("%s%016llx", published::kPrefix, static_cast<unsigned long long>(random_bits()));
}

// Removes what processes left behind that were killed. The directory is locked.
void clean_up(const LockDir& dir) {
    for (const std::string& name : dir.names(published::kPrefix)) {
        const bool unfinished = name.ends_with(LockDir::kUnfinished);
        const std::size_t suffix = unfinished ? LockDir::kUnfinished.size() : 0;
        if (!published::is_file_name(std::string_view(name).substr(0, name.size() - suffix)))
            continue;
        const LockDir::Found found = unfinished ? LockDir::Found() : dir.look_at(name);
        if (unfinished)
            dir.remove(name);
        else if (found.file && !found.alive)
            static_cast<void>(dir.remove_dead(name));
    }
}

std::atomic_ref<uint32_t> sequence_of(File& file) {
    return std::atomic_ref(file.head.sequence);
}

// Readers discard what they copied between these two calls.
void begin_change(File& file) {
    auto sequence = sequence_of(file);
    sequence.store(sequence.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
}

void end_change(File& file) {
    auto sequence = sequence_of(file);
    sequence.store(sequence.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

// Children of a fork don't inherit the mapping.
File* map(int file) {
    void* const at = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at != MAP_FAILED && madvise(at, sizeof(File), MADV_DONTFORK) == 0)
        return static_cast<File*>(at);
    const int error = errno;
    if (at != MAP_FAILED)
        munmap(at, sizeof(File));
    fail(GCX_ERROR_OPERATING_SYSTEM,
         format("can't map the file to publish in: %s", std::strerror(error)));
}

} // namespace

void Publisher::start(const published::Head& head) {
    const std::lock_guard lock(mutex_);
    if (file_ != nullptr) {
        begin_change(*file_);
        std::memcpy(file_->head.name, head.name, sizeof head.name);
        end_change(*file_);
        return;
    }
    ids_.reserve(published::kMaxRows);
    LockDir dir = LockDir::open_private(published::shared_dir());
    if (dir.lock(LockDir::Clock::now() + kPublishLockTimeout))
        clean_up(dir);
    name_ = random_name();
    CloseOnForkFile file = dir.create_read_only(name_, sizeof(File));
    dir.unlock();
    try {
        file_ = map(file.get());
    } catch (...) {
        dir.remove(name_);
        throw;
    }
    file_->head = head;
    file_->head.version = published::kVersion;
    file_->counters.library = gcx_version();
    dir_.emplace(std::move(dir));
    owned_ = std::move(file);
    active_.store(true, std::memory_order_release);
}

void Publisher::show() {
    const std::lock_guard lock(mutex_);
    if (file_ != nullptr)
        std::atomic_ref(file_->head.magic).store(published::kMagic, std::memory_order_release);
}

void Publisher::stop() noexcept {
    const std::lock_guard lock(mutex_);
    if (file_ == nullptr)
        return;
    active_.store(false, std::memory_order_release);
    munmap(file_, sizeof(File));
    file_ = nullptr;
    if (dir_)
        dir_->remove(name_);
    owned_ = {};
    dir_.reset();
    ids_.clear();
    unlisted_.clear();
}

void Publisher::forget() noexcept {
    if (active_.exchange(false))
        file_ = nullptr; // CloseOnForkFile and MADV_DONTFORK did the rest
}

void Publisher::remove_file() noexcept {
    for (int tries = 0; active() && tries < kTriesAtExit; tries++) {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (lock && dir_)
            dir_->remove(name_);
        if (lock)
            return;
        std::this_thread::yield();
    }
    // Otherwise the next reader removes it.
}

std::size_t Publisher::row_of(uint64_t id) const {
    const auto found = std::find(ids_.begin(), ids_.end(), id);
    return found == ids_.end() ? kNowhere : static_cast<std::size_t>(found - ids_.begin());
}

bool Publisher::has_room_for(const Row& row) const {
    return ids_.size() < published::kMaxRows &&
           static_cast<uint32_t>(row.device) < file_->head.device_count;
}

// Allocates nothing: start() reserved the ids.
void Publisher::list(const Row& row) {
    file_->rows[ids_.size()] = row;
    ids_.push_back(row.id);
    file_->head.row_count = static_cast<uint32_t>(ids_.size());
}

std::vector<Row>::iterator Publisher::find_unlisted(uint64_t id) {
    return std::find_if(unlisted_.begin(), unlisted_.end(),
                        [id](const Row& row) { return row.id == id; });
}

void Publisher::count_unlisted() {
    file_->head.unlisted_count = static_cast<uint32_t>(unlisted_.size());
}

Publisher::Update::Update(Publisher& publisher) : publisher_(publisher) {
    if (!publisher.active())
        return;
    lock_ = std::unique_lock(publisher.mutex_);
    file_ = publisher.file_;
    if (file_ != nullptr)
        begin_change(*file_);
}

Publisher::Update::~Update() {
    if (file_ != nullptr)
        end_change(*file_);
}

void Publisher::Update::put(const Row& row) noexcept {
    if (file_ == nullptr)
        return;
    const auto replace = [&](Row& old) {
        const uint32_t streams = old.stream_count;
        old = row;
        old.stream_count = streams;
    };
    if (const std::size_t at = publisher_.row_of(row.id); at != kNowhere)
        return replace(file_->rows[at]);
    const auto unlisted = publisher_.find_unlisted(row.id);
    if (unlisted != publisher_.unlisted_.end())
        return replace(*unlisted);
    if (publisher_.has_room_for(row))
        return publisher_.list(row);
    try {
        publisher_.unlisted_.push_back(row);
    } catch (const std::bad_alloc&) {
        return; // only the count is wrong
    }
    publisher_.count_unlisted();
}

void Publisher::Update::remove(uint64_t id) noexcept {
    if (file_ == nullptr)
        return;
    std::vector<Row>& unlisted = publisher_.unlisted_;
    std::vector<uint64_t>& ids = publisher_.ids_;
    if (const std::size_t at = publisher_.row_of(id); at != kNowhere) {
        file_->rows[at] = file_->rows[ids.size() - 1];
        ids[at] = ids.back();
        ids.pop_back();
        file_->head.row_count = static_cast<uint32_t>(ids.size());
        const auto next = std::find_if(unlisted.begin(), unlisted.end(), [&](const Row& row) {
            return publisher_.has_room_for(row);
        });
        if (next == unlisted.end())
            return;
        publisher_.list(*next);
        unlisted.erase(next);
    } else if (const auto found = publisher_.find_unlisted(id); found != unlisted.end()) {
        unlisted.erase(found);
    }
    publisher_.count_unlisted();
}

void Publisher::Update::set_streams(uint64_t id, uint32_t count) noexcept {
    if (file_ == nullptr)
        return;
    if (const std::size_t at = publisher_.row_of(id); at != kNowhere)
        file_->rows[at].stream_count = count;
    else if (const auto found = publisher_.find_unlisted(id); found != publisher_.unlisted_.end())
        found->stream_count = count;
}

void Publisher::Update::set_contexts(std::size_t count, uint64_t created,
                                     uint64_t evicted) noexcept {
    if (file_ == nullptr)
        return;
    file_->counters.contexts = static_cast<uint32_t>(count);
    file_->counters.contexts_created = created;
    file_->counters.contexts_evicted = evicted;
}

void Publisher::Update::set_requests(uint64_t resizes, uint64_t waits,
                                     uint64_t waited_ns) noexcept {
    if (file_ == nullptr)
        return;
    file_->counters.resizes = resizes;
    file_->counters.waits = waits;
    file_->counters.waited_ns = waited_ns;
}

} // namespace gcx
