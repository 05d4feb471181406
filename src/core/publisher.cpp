#include "core/publisher.hpp"

#include "base/error.hpp"
#include "base/log.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>

namespace gcx {
namespace {

constexpr int kTriesAtTheEnd = 100;

using published::File;
using published::Row;

std::atomic_ref<uint32_t> sequence_of(File& file) {
    return std::atomic_ref(file.head.sequence);
}

// What readers copy before the second of these and after the first they throw away.
void begin_change(File& file) {
    auto sequence = sequence_of(file);
    sequence.store(sequence.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
}

void end_change(File& file) {
    auto sequence = sequence_of(file);
    sequence.store(sequence.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

// Not in children: one that outlives its parent would write about nothing.
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
    ids_.reserve(published::kMostRows);
    PrivateFolder folder = PrivateFolder::make(published::shared_folder());
    for (const std::string& name : folder.names(published::kPrefix))
        folder.open(name, 0); // which removes what dead ones left
    OwnFile own = folder.create(published::kPrefix, sizeof(File));
    try {
        file_ = map(own.file.get());
    } catch (...) {
        folder.remove(own.name.c_str());
        throw;
    }
    file_->head = head;
    file_->head.magic = 0;
    file_->head.version = published::kVersion;
    folder_.emplace(std::move(folder));
    own_ = std::move(own);
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
    if (folder_)
        folder_->remove(own_.name.c_str());
    own_ = OwnFile();
    folder_.reset();
    ids_.clear();
    unlisted_.clear();
}

void Publisher::forget() noexcept {
    if (!active_.exchange(false))
        return;
    file_ = nullptr;
    own_.file = Descriptor(); // the lock is the parent's alone again
}

void Publisher::remove_file() noexcept {
    for (int tries = 0; active() && tries < kTriesAtTheEnd; tries++) {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (lock && folder_)
            folder_->remove(own_.name.c_str());
        if (lock)
            return;
        std::this_thread::yield();
    }
    // Else it stays until somebody looks.
}

std::size_t Publisher::row_of(uint64_t id) const {
    const auto found = std::find(ids_.begin(), ids_.end(), id);
    return found == ids_.end() ? kNowhere : static_cast<std::size_t>(found - ids_.begin());
}

bool Publisher::has_room_for(const Row& row) const {
    return ids_.size() < published::kMostRows &&
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
        return; // the count alone is wrong
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

} // namespace gcx
