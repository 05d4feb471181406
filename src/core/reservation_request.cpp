#include "core/reservation_request.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "core/cancel.hpp"
#include "core/device.hpp"
#include "core/sm_allocator.hpp"
#include "driver/driver.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

namespace gcx::reservations {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kFirstPause = 500us;
constexpr auto kLongestPause = 20ms;
// The longest wait for the directory's lock at a time. Requests with a shorter timeout wait as
// long, since another process may be in the middle of a change.
constexpr auto kLockTimeout = 500ms;

// A reservation in more than so many others counts as one that takes SMs away, wherever it is.
constexpr std::size_t kDeepest = 64;

constinit std::atomic<bool> warned_of_mps{false};

template <std::size_t size>
void copy_text(char (&to)[size], const char* text) {
    std::memcpy(to, text, strnlen(text, size - 1));
}

// Returns whether MPS limits the process to a percentage of the device. The daemon chooses the SMs
// for each process; it was not measured whether the driver shows which.
bool is_limited(const Record& record) {
    return record.mps != GCX_MPS_OFF && record.mps_thread_percentage > 0 &&
           record.mps_thread_percentage < 100;
}

// Returns why the atoms of two records may be different SMs; an empty string if they are the same.
std::string difference_of(const Record& mine, const Record& other) {
    if (is_limited(mine) || is_limited(other))
        return format("%s has CUDA_MPS_ACTIVE_THREAD_PERCENTAGE set",
                      is_limited(other) ? "it" : "this process");
    if (mine.family != other.family)
        return format("it is of the %s family",
                      family_name(static_cast<gcx_sm_family>(
                          other.family))); // NOLINT(clang-analyzer-optin.core.EnumCastOutOfRange)
    if (mine.driver_version != other.driver_version)
        return format("its driver is %s", version_text(other.driver_version).c_str());
    if (std::tie(mine.device_sm_count, mine.unit_count, mine.unit_size, mine.remainder_size) !=
        std::tie(other.device_sm_count, other.unit_count, other.unit_size, other.remainder_size))
        return format("it sees %u SMs, in atoms of %u", other.device_sm_count, other.unit_size);
    return "";
}

bool same_atoms(const Record& a, const Record& b) {
    return difference_of(a, b).empty();
}

std::string label_of(const StoredReservation& stored) {
    const std::string name = printable(stored.record.name);
    return (name.empty() ? "" : "\"" + name + "\" of ") + describe(owner_of(stored));
}

void warn_without_mps(const Device& device) {
    if (!warned_of_mps.exchange(true))
        log::write(
            GCX_LOG_WARNING,
            format("%s is not shared through MPS: processes take turns on it, and reservations "
                   "isolate nothing; start nvidia-cuda-mps-control -d before the processes",
                   device.label().c_str()));
}

// One call of acquire().
class Acquisition final : private Cancel::Wait {
  public:
    Acquisition(Device& device, const ReservationRequest& request)
        : device_(device), request_(request), family_(device.family(request.family)),
          prefix_(fill_record()) {}

    std::shared_ptr<Reservation> run() {
        const Cancel::Entry entry(request_.cancel, *this);
        if (cancelled())
            refuse({});
        {
            LockDir dir = locked_dir();
            if (!request_.parent.empty())
                join_parent(dir);
            const Reservations others = read_others(dir);
            const bool has_queue =
                std::any_of(others.begin(), others.end(),
                            [&](const auto& other) { return waits_in_same_queue(other.record); });
            const auto granted = has_queue ? std::nullopt : plan(others);
            if (granted)
                record_grant(*granted, others);
            else
                record_wait(dir, others);
            dir_ = dir.path();
            const std::lock_guard lock(state_mutex_);
            if (state_ == State::cancelled)
                refuse_unlocked(dir, others);
            file_ = dir.create(file_name(record_), record_.bytes());
            if (granted)
                state_ = State::granted;
        }
        try {
            if (record_.waits != 0)
                wait();
        } catch (...) {
            {
                const std::lock_guard lock(state_mutex_);
                state_ = State::cancelled; // from here on cancel() does not touch the file
            }
            release_file(dir_, file_name(record_), std::move(file_), false);
            throw;
        }
        if ((request_.flags & GCX_RESERVATION_INHERIT) != 0)
            file_.make_inheritable();
        return std::make_shared<Reservation>(dir_, std::move(file_), record_, request_.flags, false,
                                             parent_);
    }

  private:
    using Reservations = std::vector<StoredReservation>;

    // Whether the SMs were granted or the request was cancelled, whichever came first.
    enum class State : uint8_t { undecided, granted, cancelled };

    // Removes the request from the queue without waiting for another process: a file without an
    // owner is ignored, and removed by the next process that locks the directory.
    void cancel() noexcept override {
        const std::lock_guard lock(state_mutex_);
        if (state_ != State::undecided)
            return;
        state_ = State::cancelled;
        disown(file_);
    }

    bool cancelled() const { return request_.cancel != nullptr && request_.cancel->signalled(); }

    // Sets the fields that do not change, and returns the prefix of the device's files.
    std::string fill_record() {
        gcx_device_info info = GCX_DEVICE_INFO_INIT;
        device_.get_info(info);
        const Driver& driver = device_.driver();
        const Mps mps = mps_of(driver, device_.native());
        if (mps.state == GCX_MPS_OFF)
            warn_without_mps(device_);
        const AtomShape& shape = family_->shape();
        record_.id = random_bits();
        record_.pid = getpid();
        record_.driver_version = driver.version();
        record_.simulated = driver.simulated() ? 1 : 0;
        record_.requested = request_.sm_count;
        record_.family = static_cast<uint32_t>(family_->kind());
        record_.device_sm_count = device_.sm_count();
        record_.unit_count = shape.unit_count;
        record_.unit_size = shape.unit_size;
        record_.remainder_size = shape.remainder_size;
        record_.mps = static_cast<uint32_t>(mps.state);
        record_.mps_thread_percentage = mps.thread_percentage;
        record_.inherit = (request_.flags & GCX_RESERVATION_INHERIT) != 0 ? 1 : 0;
        std::memcpy(record_.uuid, info.uuid, sizeof record_.uuid);
        copy_text(record_.name, request_.name.c_str());
        copy_text(record_.process_name, program_invocation_short_name);
        copy_text(record_.device_name, info.name);
        return prefix_of(record_.uuid, driver.simulated());
    }

    // Looks for dead files before the directory is locked, since that may take 100 ms.
    LockDir open_dir() {
        LockDir dir = LockDir::open(request_.dir);
        dead_ = find_dead(dir, dir.names(prefix_));
        return dir;
    }

    LockDir locked_dir() {
        LockDir dir = open_dir();
        const auto deadline = request_.timeout_ms == GCX_FOREVER
                                  ? Clock::time_point::max()
                                  : std::max(end_, Clock::now() + kLockTimeout);
        if (!dir.lock_or_fail(deadline, [this] { return cancelled(); }))
            refuse({});
        return dir;
    }

    // Becomes an owner of the reservation to divide, and restricts this one to its atoms.
    void join_parent(const LockDir& dir) {
        parent_ = join_in(dir, request_.parent, dead_);
        const Record& parent = parent_->record();
        if (!same_atoms(record_, parent))
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format("can't reserve a part of %s: %s", source_text().c_str(),
                        difference_of(record_, parent).c_str()));
        record_.parent = parent.id;
        within_ = within_ & parent.set();
    }

    // Reads the device's files, and finds the reservations that contain this one.
    Reservations read_others(const LockDir& dir) {
        Reservations others = read_reservations(dir, prefix_, OnInvalid::fail, true, dead_);
        ancestors_.clear();
        const Record* ancestor = nullptr;
        for (uint64_t id = record_.parent; id != 0 && ancestors_.size() <= others.size();
             id = ancestor != nullptr ? ancestor->parent : 0) {
            ancestors_.push_back(id);
            ancestor = find(others, id);
        }
        if (record_.parent != 0 && find(others, record_.parent) == nullptr)
            fail(GCX_ERROR_OPERATING_SYSTEM,
                 format("can't reserve a part of %s: its file was removed, %s",
                        source_text().c_str(), request_.parent.c_str()));
        return others;
    }

    // Returns null if there is none. The names of a device's files end with the id, so that the
    // files are in its order.
    static const Record* find(const Reservations& others, uint64_t id) {
        const auto found =
            std::lower_bound(others.begin(), others.end(), id,
                             [](const auto& other, uint64_t its) { return other.record.id < its; });
        return found != others.end() && found->record.id == id ? &found->record : nullptr;
    }

    bool waits_in_same_queue(const Record& other) const {
        return other.waits != 0 && other.parent == record_.parent;
    }

    // Returns whether a reservation takes SMs away from this request. Its ancestors don't, since it
    // divides them, and neither do reservations outside of its parent. A reservation that lost its
    // parent does wherever it is.
    bool competes(const Record& other, const Reservations& others) const {
        if (std::find(ancestors_.begin(), ancestors_.end(), other.id) != ancestors_.end())
            return false;
        const Record* record = &other;
        for (std::size_t step = 0; step < kDeepest; step++) {
            if (record->parent == record_.parent)
                return true;
            if (record->parent == 0)
                return false;
            record = find(others, record->parent);
            if (record == nullptr)
                return true;
        }
        return true; // a cycle, which only forged records make
    }

    // Returns whether messages name a reservation. They don't name parts of one that they name.
    bool is_named(const Record& other, const Reservations& others) const {
        return competes(other, others) &&
               (other.parent == record_.parent || find(others, other.parent) == nullptr);
    }

    std::string source_text() const {
        return source_label(device_, parent_ != nullptr ? &parent_->record() : nullptr);
    }

    // Returns the atoms of this family that a reservation takes away.
    AtomSet taken_by(const Record& other) const {
        if (same_atoms(record_, other))
            return other.set();
        // Under MPS SM numbers are virtual, so that a map of them tells nothing.
        if (record_.mps != GCX_MPS_ON && record_.family != other.family) {
            if (const auto atoms = atoms_shared_with(other))
                return *atoms;
        }
        return family_->all();
    }

    // Returns the same for a reservation of another family; nothing if that is not known.
    std::optional<AtomSet> atoms_shared_with(const Record& other) const {
        try {
            // problem_of() checked the family.
            const auto kind = static_cast<gcx_sm_family>(
                other.family); // NOLINT(clang-analyzer-optin.core.EnumCastOutOfRange)
            const auto family = device_.family(kind);
            Record mine = record_;
            const AtomShape& shape = family->shape();
            std::tie(mine.family, mine.unit_count, mine.unit_size, mine.remainder_size) =
                std::tuple(other.family, shape.unit_count, shape.unit_size, shape.remainder_size);
            if (same_atoms(mine, other))
                return atoms_meeting(*family_, *family, other.set());
        } catch (const Error& error) {
            if (error.result != GCX_ERROR_NOT_SUPPORTED)
                throw;
        }
        return std::nullopt;
    }

    std::optional<AtomSet> plan_within(const AtomSet& usable) const {
        const SmAllocator allocator(family_->shape(), [&](const AtomSet& set) {
            return family_->can_make_context(set) &&
                   (request_.can_realise == nullptr || request_.can_realise(set));
        });
        const SmAllocator::Request requested{1, request_.sm_count, request_.min_sm_count, false, 0};
        const auto planned = allocator.plan({&requested, 1}, usable);
        return planned ? std::optional(planned->front().exclusive) : std::nullopt;
    }

    // Returns what the request gets if it is the first in the queue; nothing if it has to wait.
    std::optional<AtomSet> plan(const Reservations& others) const {
        AtomSet usable = within_;
        for (const auto& other : others) {
            if (other.record.waits == 0 && competes(other.record, others))
                usable = usable - taken_by(other.record);
        }
        return plan_within(usable);
    }

    uint32_t source_sm_count() const {
        return parent_ == nullptr ? device_.sm_count() : family_->sm_count(within_);
    }

    void draw_ticket(const Reservations& others) {
        for (const auto& other : others)
            record_.ticket = std::max(record_.ticket, other.record.ticket);
        record_.ticket += record_.ticket == UINT64_MAX ? 0 : 1;
    }

    void record_grant(const AtomSet& atoms, const Reservations& others) {
        record_.waits = 0;
        draw_ticket(others);
        record_.until_ms = 0;
        record_.since_ms = milliseconds_since_1970();
        std::copy(atoms.words().begin(), atoms.words().end(), record_.atoms);
        seal(record_);
    }

    void record_wait(LockDir& dir, const Reservations& others) {
        if (!plan_within(within_))
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format("requested %s; %s has %u SMs in all", count_text(request_.sm_count).c_str(),
                        source_text().c_str(), source_sm_count()));
        if (request_.timeout_ms == 0)
            refuse_unlocked(dir, others);
        record_.waits = 1;
        draw_ticket(others);
        record_.since_ms = milliseconds_since_1970();
        if (request_.timeout_ms != GCX_FOREVER)
            record_.until_ms = record_.since_ms + request_.timeout_ms;
        seal(record_);
    }

    static auto turn_of(const Record& record) { return std::pair(record.ticket, record.id); }

    // Waits for its turn and its SMs by polling. Looks only at the request before it in the queue
    // as long as there is one.
    void wait() {
        const bool forever = request_.timeout_ms == GCX_FOREVER;
        Reservations others;
        Previous previous;
        for (std::chrono::microseconds pause = kFirstPause;;
             pause = std::min(pause * 2, std::chrono::microseconds(kLongestPause))) {
            const auto lock_deadline = Clock::now() + kLockTimeout;
            if (!still_waits(previous) &&
                try_to_acquire(others, previous,
                               forever ? lock_deadline : std::min(lock_deadline, end_)))
                return;
            if (cancelled() || (!forever && Clock::now() >= end_))
                refuse(others);
            const auto left =
                std::chrono::duration_cast<std::chrono::microseconds>(end_ - Clock::now());
            std::this_thread::sleep_for(forever ? pause : std::min(pause, left));
        }
    }

    // The request before in the queue. If the file is empty, there is none.
    struct Previous {
        CloseOnForkFile file;
        std::string path;
    };

    static bool still_waits(const Previous& previous) {
        const CloseOnForkFile& file = previous.file;
        try {
            return file && !file.is_gone_from(previous.path.c_str()) && has_owner(file, "") &&
                   read_record(file).waits == 1;
        } catch (const Error&) {
            return false; // try_to_acquire() reports what is wrong
        }
    }

    bool try_to_acquire(Reservations& others, Previous& previous, Clock::time_point lock_deadline) {
        LockDir dir = open_dir();
        if (!dir.lock(lock_deadline, [this] { return cancelled(); }))
            return false;
        others = read_others(dir);
        const auto own = std::find_if(others.begin(), others.end(), [&](const auto& other) {
            return other.record.id == record_.id;
        });
        if (own == others.end() && cancelled())
            return false; // cancel() ended its ownership
        if (own == others.end())
            fail(GCX_ERROR_OPERATING_SYSTEM,
                 format("the file of this wait was removed, %s/%s; request the SMs again, and let "
                        "nothing else remove files from that folder",
                        dir_.c_str(), file_name(record_).c_str()));
        others.erase(own);
        const StoredReservation* before = nullptr;
        for (const auto& other : others) {
            if (waits_in_same_queue(other.record) && turn_of(other.record) < turn_of(record_) &&
                (before == nullptr || turn_of(before->record) < turn_of(other.record)))
                before = &other;
        }
        previous = {};
        if (before != nullptr)
            previous = {dir.look_at(before->name).file, dir.path() + "/" + before->name};
        const auto granted = before != nullptr ? std::nullopt : plan(others);
        if (!granted)
            return false;
        record_grant(*granted, others);
        const std::lock_guard lock(state_mutex_);
        if (state_ == State::cancelled)
            return false;
        state_ = State::granted;
        dir.write(file_, record_.bytes());
        return true;
    }

    // Returns "device 0 has 132 SMs; "decode" of process 12 (python) has 64; 1 waits, the first for
    // 24 SMs".
    std::string owners_text(const Reservations& others) const {
        std::string text = format("%s has %u SMs", source_text().c_str(), source_sm_count());
        const StoredReservation* first = nullptr;
        std::size_t waiting = 0;
        for (const auto& stored : others) {
            const Record& other = stored.record;
            if (other.waits == 0) {
                if (!is_named(other, others))
                    continue;
                text += format("; %s has %u", label_of(stored).c_str(), other.sm_count());
                if (!same_atoms(record_, other) && taken_by(other) == family_->all())
                    text += format(", so that no other process can have any here (%s)",
                                   difference_of(record_, other).c_str());
                continue;
            }
            if (!waits_in_same_queue(other))
                continue;
            waiting++;
            if (first == nullptr || turn_of(other) < turn_of(first->record))
                first = &stored;
        }
        if (first != nullptr)
            text += format("; %zu wait%s, the first, %s, for %s", waiting, waiting == 1 ? "s" : "",
                           label_of(*first).c_str(), count_text(first->record.requested).c_str());
        return text;
    }

    [[noreturn]] void refuse(const Reservations& others) const {
        refuse_request({count_text(request_.sm_count), owners_text(others), cancelled(),
                        request_.timeout_ms, request_.min_sm_count != 0});
    }

    // Reads all of /proc for an owner that is in another PID namespace, which may take a second.
    [[noreturn]] void refuse_unlocked(LockDir& dir, const Reservations& others) const {
        dir.unlock();
        refuse(others);
    }

    Device& device_;
    const ReservationRequest& request_;
    const std::shared_ptr<Family> family_;
    const Clock::time_point end_ = Clock::now() + std::chrono::milliseconds(request_.timeout_ms);
    Record record_{};
    std::string prefix_;
    std::string dir_;
    std::shared_ptr<Reservation> parent_; // null: divides the device
    AtomSet within_ = request_.usable.value_or(family_->all());
    std::vector<uint64_t> ancestors_; // the ids of the reservations that contain this one
    std::vector<std::string> dead_;   // from find_dead()
    std::mutex state_mutex_;          // guards the members below
    State state_ = State::undecided;
    CloseOnForkFile file_;
};

} // namespace

std::string count_text(uint32_t sm_count) {
    return sm_count == kRest ? "the rest" : format("%u SMs", sm_count);
}

std::string source_label(const Device& device, const Record* reservation) {
    if (reservation == nullptr)
        return device.label();
    const std::string name = printable(reservation->name);
    return "the reservation " + (name.empty() ? "" : "\"" + name + "\" ") + "of " + device.label();
}

void refuse_request(const Refusal& refusal) {
    const char* const requested = refusal.requested.c_str();
    const char* const usage = refusal.usage.c_str();
    if (refusal.cancelled)
        fail(GCX_ERROR_CANCELLED,
             format("the wait for %s was cancelled by gcx_cancel_signal: %s", requested, usage));
    if (refusal.timeout_ms != 0)
        fail(GCX_ERROR_TIMEOUT, format("timed out after %u ms waiting for %s: %s",
                                       refusal.timeout_ms, requested, usage));
    fail(GCX_ERROR_ALREADY_ACQUIRED,
         format("requested %s: %s; set a timeout to wait for them, or %s", requested, usage,
                refusal.has_min ? "lower min_sm_count" : "min_sm_count to accept fewer"));
}

std::shared_ptr<Reservation> acquire(Device& device, const ReservationRequest& request) {
    return Acquisition(device, request).run();
}

SmResource resource_of(Device& device, const Record& record) {
    // problem_of() checked the family.
    const auto kind = static_cast<gcx_sm_family>(
        record.family); // NOLINT(clang-analyzer-optin.core.EnumCastOutOfRange)
    auto family = device.family(kind);
    const AtomShape& shape = family->shape();
    Record mine = record;
    const Mps mps = mps_of(device.driver(), device.native());
    mine.mps = static_cast<uint32_t>(mps.state);
    mine.mps_thread_percentage = mps.thread_percentage;
    // Other processes treat the reservation of a limited process as the whole device.
    if (is_limited(mine) && !is_limited(record))
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("this process has CUDA_MPS_ACTIVE_THREAD_PERCENTAGE set, and the process that "
                    "acquired the reservation had not, so which SMs of %s it has is unknown; unset "
                    "the variable here or set it there too",
                    device.label().c_str()));
    if (record.driver_version != device.driver().version() ||
        record.device_sm_count != device.sm_count() || record.unit_count != shape.unit_count ||
        record.unit_size != shape.unit_size || record.remainder_size != shape.remainder_size) {
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("the reservation was acquired where %s has %u SMs, the %s family %u atoms of "
                    "%u, and the driver is %s; here it has %u SMs, %u atoms of %u, and the driver "
                    "is %s, so which SMs it has is unknown; use the same driver and the same "
                    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE in both processes",
                    device.label().c_str(), record.device_sm_count, family_name(kind),
                    record.unit_count, record.unit_size,
                    version_text(record.driver_version).c_str(), device.sm_count(),
                    shape.unit_count, shape.unit_size,
                    version_text(device.driver().version()).c_str()));
    }
    return {&device, std::move(family), record.set()};
}

} // namespace gcx::reservations
