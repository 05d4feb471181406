#include "core/published.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/private_folder.hpp"
#include "core/atom_set.hpp"
#include "core/reservation.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace gcx::published {
namespace {

using Clock = std::chrono::steady_clock;

// A change is written in less than a microsecond, and read in a few. So one of these finds a moment
// between two, unless the writer was stopped in the middle.
constexpr int kTriesAtOnce = 64;
constexpr auto kPatience = std::chrono::milliseconds(100);
constexpr auto kPause = std::chrono::microseconds(200);
constexpr std::size_t kMostWarnings = 8;

enum class Read : uint8_t { done, nothing, busy };

// pread, and not mmap: who cuts the file short meanwhile does no harm.
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
    process.rows.resize(std::min(process.head.row_count, kMostRows));
    if (!process.rows.empty())
        read_at(file, offsetof(File, rows), process.rows.data(), process.rows.size());
    std::atomic_thread_fence(std::memory_order_acquire);
    return read_sequence(file) == before;
}

Read read(int file, Process& process) {
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
bool ends(const char (&text)[size]) {
    return std::memchr(text, 0, size) != nullptr;
}

std::string problem_of_row(const Row& row, const Head& head) {
    if (row.device < 0 || static_cast<uint32_t>(row.device) >= head.device_count)
        return "no such device";
    if (row.family < GCX_SM_FAMILY_COSCHEDULED || row.family > GCX_SM_FAMILY_MAX_CLUSTER)
        return "no such family";
    if ((row.flags & ~GCX_LEASE_SHARED) != 0 || row.waits > 1 || !ends(row.name))
        return "flags or a name that can't be";
    if (row.unit_count >= AtomSet::kCapacity || row.unit_size > GCX_MAX_SMS ||
        row.odd_size > GCX_MAX_SMS)
        return "atoms that can't be";
    const AtomShape shape{row.unit_count, row.unit_size, row.odd_size};
    const AtomSet own = AtomSet::of_words(row.own);
    const AtomSet shared = AtomSet::of_words(row.shared);
    if (!((own | shared) - shape.all()).empty() || !(own & shared).empty() ||
        (row.flags == 0 && !shared.empty()))
        return "atoms that it can't have";
    if (shape.sm_count(shape.all()) > head.devices[row.device].sm_count)
        return "more SMs in atoms than in the device";
    const bool right = row.waits != 0 ? (own | shared).empty() && row.exclusive_sm_count == 0
                                      : row.sm_count == shape.sm_count(own | shared) &&
                                            row.exclusive_sm_count == shape.sm_count(own);
    return right ? "" : "counts of SMs that aren't those of its atoms";
}

// What is wrong with exclusive ones.
std::string problem_of_holders(const std::vector<Row>& rows) {
    for (std::size_t i = 0; i < rows.size(); i++) {
        const AtomSet own = AtomSet::of_words(rows[i].own);
        for (std::size_t j = 0; j < rows.size() && !own.empty(); j++) {
            if (i == j || rows[i].device != rows[j].device || rows[i].family != rows[j].family)
                continue;
            if (!(own & (AtomSet::of_words(rows[j].own) | AtomSet::of_words(rows[j].shared)))
                     .empty())
                return "SMs that are one lease's alone, and another's too";
        }
    }
    return "";
}

class Reading {
  public:
    explicit Reading(const PrivateFolder& folder) : folder_(folder) {}

    std::vector<Process> all() {
        std::vector<std::string> left = folder_.names(kPrefix);
        const auto end = Clock::now() + kPatience;
        for (;;) {
            std::erase_if(left, [&](const std::string& name) { return !is_busy(name); });
            if (left.empty() || Clock::now() > end)
                break;
            std::this_thread::sleep_for(kPause);
        }
        for (const std::string& name : left)
            warn(name, "its process was stopped while it wrote, or never stops writing");
        if (refused_ > kMostWarnings)
            log::write(GCX_LOG_WARNING, format("%zu more files in %s are not read",
                                               refused_ - kMostWarnings, folder_.path().c_str()));
        // In the order in which they began, so that it stays as more come.
        std::sort(found_.begin(), found_.end(), [](const Process& a, const Process& b) {
            return std::pair(a.head.since_ms, a.head.process) <
                   std::pair(b.head.since_ms, b.head.process);
        });
        return std::move(found_);
    }

  private:
    bool is_busy(const std::string& name) {
        const FoundFile there = folder_.open(name, sizeof(File));
        if (!there.file) {
            if (!there.refused.empty())
                warn(name, there.refused);
            return false;
        }
        Process process{};
        Read how = Read::nothing;
        try {
            how = read(there.file.get(), process);
        } catch (const Error& error) {
            warn(name, error.message);
        }
        if (how == Read::done)
            take(std::move(process));
        return how == Read::busy;
    }

    void take(Process process) {
        std::sort(process.rows.begin(), process.rows.end(), [](const Row& a, const Row& b) {
            return std::pair(a.waits, a.id) < std::pair(b.waits, b.id);
        });
        found_.push_back(std::move(process));
    }

    void warn(const std::string& name, const std::string& why) {
        if (++refused_ <= kMostWarnings)
            log::write(GCX_LOG_WARNING, format("the file %s/%s is not read: %s",
                                               folder_.path().c_str(), name.c_str(), why.c_str()));
    }

    const PrivateFolder& folder_;
    std::vector<Process> found_;
    std::size_t refused_ = 0;
};

} // namespace

std::string problem_of(const Process& process) {
    const Head& head = process.head;
    if (head.row_count > kMostRows || head.row_count != process.rows.size() ||
        head.device_count > kMostDevices || head.simulated > 1 || !ends(head.name))
        return "it begins with numbers that can't be";
    for (uint32_t i = 0; i < head.device_count; i++) {
        if (head.devices[i].sm_count > GCX_MAX_SMS || !ends(head.devices[i].name))
            return format("its device %u can't be", i);
    }
    for (std::size_t i = 0; i < process.rows.size(); i++) {
        if (const std::string problem = problem_of_row(process.rows[i], head); !problem.empty())
            return format("its lease at %zu has %s", i, problem.c_str());
    }
    const std::string problem = problem_of_holders(process.rows);
    return problem.empty() ? "" : "it has " + problem;
}

std::string shared_folder() {
    const std::string folder = reservations::folder_of(nullptr);
    if (!folder.empty())
        SharedFolder::open(folder); // throws unless only its user or group can enter it
    return folder;
}

std::vector<Process> read_all() {
    const auto folder = PrivateFolder::find(shared_folder());
    return folder ? Reading(*folder).all() : std::vector<Process>();
}

} // namespace gcx::published
