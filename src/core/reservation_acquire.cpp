#include "core/reservation_acquire.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "core/reservation_process.hpp"
#include "core/sm_allocator.hpp"
#include "driver/mps.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <tuple>
#include <utility>

namespace gcx::reservations {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kFirstPause = 500us;
constexpr auto kLongestPause = 20ms;
// How long a process tries to lock the folder at a time. A request whose timeout is shorter waits
// so long too, since others may be changing the folder just then.
constexpr auto kLongestLock = 500ms;

constinit std::atomic<bool> warned_of_mps{false};

uint64_t now_ms() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

template <std::size_t size>
void put(char (&to)[size], const char* text) {
    std::memcpy(to, text, strnlen(text, size - 1));
}

std::string count_text(uint32_t sm_count) {
    return sm_count == kRest ? "the rest" : format("%u SMs", sm_count);
}

// What MPS leaves of the device to a process with a percentage of its own: the daemon decides which
// SMs they are, for each process, and nobody has measured whether the driver shows it.
bool is_limited(const Record& record) {
    return record.mps != GCX_MPS_OFF && record.mps_thread_percentage > 0 &&
           record.mps_thread_percentage < 100;
}

// Why the atoms of two may be other SMs; empty: they are the same.
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
    if (std::tie(mine.device_sm_count, mine.unit_count, mine.unit_size, mine.odd_size) !=
        std::tie(other.device_sm_count, other.unit_count, other.unit_size, other.odd_size))
        return format("it sees %u SMs, in atoms of %u", other.device_sm_count, other.unit_size);
    return "";
}

bool same_atoms(const Record& a, const Record& b) {
    return difference_of(a, b).empty();
}

std::string label_of(const Entry& entry) {
    const Record& record = entry.record;
    const std::string label = record.name[0] != '\0' ? format("\"%s\" of ", record.name) : "";
    return label + describe(process_of(record));
}

void warn_without_mps(const Device& device) {
    if (!warned_of_mps.exchange(true))
        log::write(GCX_LOG_WARNING,
                   format("%s is not shared by way of MPS: processes take turns on it, and holds "
                          "isolate nothing. Start nvidia-cuda-mps-control -d before the processes",
                          device.label().c_str()));
}

// One that is taken.
class Taking final : private CancelList::Wait {
  public:
    Taking(Device& device, const Request& request)
        : device_(device), request_(request), family_(device.family(request.family)),
          prefix_(describe()) {}

    std::shared_ptr<Reservation> run() {
        const CancelList::Entry entry(request_.cancel, *this);
        if (request_.given_up())
            refuse(std::vector<Entry>());
        {
            const SharedFolder folder = locked_folder();
            if (!request_.parent.empty())
                join_parent(folder);
            const std::vector<Entry> entries = look(folder);
            const bool anybody_waits =
                std::any_of(entries.begin(), entries.end(),
                            [&](const Entry& e) { return waits_in_same_queue(e.record); });
            const auto granted = anybody_waits ? std::nullopt : plan(entries);
            if (granted)
                become_holder(*granted, entries);
            else
                become_waiter(entries);
            folder_ = folder.path();
            const std::lock_guard lock(deciding_);
            if (state_ == State::cancelled)
                refuse(entries);
            file_ = folder.create(file_name(record_), record_.bytes());
            if (granted)
                state_ = State::granted;
        }
        try {
            if (record_.waits != 0)
                wait();
        } catch (...) {
            {
                const std::lock_guard lock(deciding_);
                state_ = State::cancelled; // from here on cancel() leaves the file alone
            }
            give_up(folder_, file_name(record_), std::move(file_), false);
            throw;
        }
        if ((request_.flags & GCX_RESERVATION_INHERIT) != 0)
            file_.bequeath();
        return std::make_shared<Reservation>(folder_, std::move(file_), record_, request_.flags,
                                             false, parent_);
    }

  private:
    // Whether the SMs were granted or the request was cancelled, whichever came first.
    enum class State : uint8_t { undecided, granted, cancelled };

    // Takes the request out of the queue: a file that nobody keeps alive counts for nobody, and is
    // removed by whoever locks the folder next. That waits for no other process.
    void cancel() noexcept override {
        const std::lock_guard lock(deciding_);
        if (state_ != State::undecided)
            return;
        state_ = State::cancelled;
        stop_keeping_alive(file_);
    }

    // Fills in what stays as it is, and gives back what the device's files begin with.
    std::string describe() {
        gcx_device_info info = GCX_DEVICE_INFO_INIT;
        device_.get_info(info);
        const Driver& driver = device_.driver();
        const Mps mps = mps_of(driver, device_.native());
        if (mps.state == GCX_MPS_OFF)
            warn_without_mps(device_);
        const AtomShape& shape = family_->shape();
        std::random_device random;
        record_.id = uint64_t{random()} << 32 | random();
        record_.pid = getpid();
        record_.driver_version = driver.version();
        record_.simulated = driver.simulated() ? 1 : 0;
        record_.wanted = request_.sm_count;
        record_.family = static_cast<uint32_t>(family_->kind());
        record_.device_sm_count = device_.sm_count();
        record_.unit_count = shape.unit_count;
        record_.unit_size = shape.unit_size;
        record_.odd_size = shape.remainder_size;
        record_.mps = static_cast<uint32_t>(mps.state);
        record_.mps_thread_percentage = mps.thread_percentage;
        record_.inherit = (request_.flags & GCX_RESERVATION_INHERIT) != 0 ? 1 : 0;
        std::memcpy(record_.uuid, info.uuid, sizeof record_.uuid);
        put(record_.name, request_.name.c_str());
        put(record_.process_name, program_invocation_short_name);
        put(record_.device_name, info.name);
        return prefix_of(record_.uuid, driver.simulated());
    }

    SharedFolder locked_folder() {
        SharedFolder folder = SharedFolder::open(request_.folder);
        const auto until = request_.timeout_ms == GCX_FOREVER
                               ? Clock::time_point::max()
                               : std::max(end_, begin_ + kLongestLock);
        if (!folder.lock_or_fail(until, request_.given_up))
            refuse(std::vector<Entry>());
        return folder;
    }

    // Keeps the reservation that this one is a part of alive, and takes its atoms for the device's.
    void join_parent(const SharedFolder& folder) {
        parent_ = join_in(folder, request_.parent);
        const Record& outer = parent_->record();
        if (!same_atoms(record_, outer))
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format("can't reserve a part of %s: %s", reach_text().c_str(),
                        difference_of(record_, outer).c_str()));
        record_.parent = outer.id;
        within_ = within_ & outer.set();
    }

    // Reads the device's files, and finds out which reservations this one is a part of.
    std::vector<Entry> look(const SharedFolder& folder) {
        std::vector<Entry> entries = read_entries(folder, prefix_, Bad::fail, true);
        around_.clear();
        const Record* outer = nullptr;
        for (uint64_t id = record_.parent; id != 0 && around_.size() <= entries.size();
             id = outer != nullptr ? outer->parent : 0) {
            around_.push_back(id);
            outer = find(entries, id);
        }
        if (record_.parent != 0 && find(entries, record_.parent) == nullptr)
            fail(GCX_ERROR_OPERATING_SYSTEM,
                 format("can't reserve a part of %s: its file was removed, %s",
                        reach_text().c_str(), request_.parent.c_str()));
        return entries;
    }

    // Null: there is none.
    static const Record* find(const std::vector<Entry>& entries, uint64_t id) {
        const auto found = std::find_if(entries.begin(), entries.end(),
                                        [&](const Entry& entry) { return entry.record.id == id; });
        return found != entries.end() ? &found->record : nullptr;
    }

    bool waits_in_same_queue(const Record& other) const {
        return other.waits != 0 && other.parent == record_.parent;
    }

    // Whether a reservation may have SMs that this request is about. Those around this one may not:
    // it is a part of them. Nor may those that are not a part of the one around it. One whose own
    // parent has ended counts by itself, wherever it is.
    bool concerns(const Record& other, const std::vector<Entry>& entries) const {
        if (std::find(around_.begin(), around_.end(), other.id) != around_.end())
            return false;
        const Record* record = &other;
        for (std::size_t step = 0; step <= entries.size(); step++) {
            if (record->parent == record_.parent)
                return true;
            if (record->parent == 0)
                return false;
            record = find(entries, record->parent);
            if (record == nullptr)
                return true;
        }
        return true; // a circle, which nobody but a forger makes
    }

    // Whether messages name it: parts of a reservation that is named itself are not.
    bool is_named(const Record& other, const std::vector<Entry>& entries) const {
        return concerns(other, entries) &&
               (other.parent == record_.parent || find(entries, other.parent) == nullptr);
    }

    // "device 0", or "the reservation "job" of device 0": where the SMs come from.
    std::string reach_text() const {
        if (parent_ == nullptr)
            return device_.label();
        const char* const name = parent_->record().name;
        return "the reservation " + (*name != '\0' ? "\"" + std::string(name) + "\" " : "") +
               "of " + device_.label();
    }

    // The atoms that a reservation takes away from this family.
    AtomSet taken_by(const Record& other) const {
        if (same_atoms(record_, other))
            return other.set();
        // Numbers of SMs are virtual under MPS, those that a map has too.
        if (record_.mps != GCX_MPS_ON && record_.family != other.family) {
            if (const auto met = met_by(other))
                return *met;
        }
        return family_->all();
    }

    // Of a reservation of another family; nothing if that isn't known.
    std::optional<AtomSet> met_by(const Record& other) const {
        try {
            // One of those that have holds: what is read was checked.
            const auto kind = static_cast<gcx_sm_family>(
                other.family); // NOLINT(clang-analyzer-optin.core.EnumCastOutOfRange)
            const auto family = device_.family(kind);
            Record mine = record_;
            const AtomShape& shape = family->shape();
            std::tie(mine.family, mine.unit_count, mine.unit_size, mine.odd_size) =
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
            return family_->can_make_context(set) && (request_.legal == nullptr || request_.legal(set));
        });
        const SmAllocator::Request wanted{1, request_.sm_count, request_.least, false, 0};
        const auto planned = allocator.plan({&wanted, 1}, usable);
        return planned ? std::optional(planned->front().exclusive) : std::nullopt;
    }

    // What this one would get if it were its turn.
    std::optional<AtomSet> plan(const std::vector<Entry>& entries) const {
        AtomSet usable = within_;
        for (const Entry& entry : entries) {
            if (entry.record.waits == 0 && concerns(entry.record, entries))
                usable = usable - taken_by(entry.record);
        }
        return plan_within(usable);
    }

    uint32_t reach_sm_count() const {
        return parent_ == nullptr ? device_.sm_count() : family_->sm_count(within_);
    }

    void come_last(const std::vector<Entry>& entries) {
        for (const Entry& entry : entries)
            record_.ticket = std::max(record_.ticket, entry.record.ticket);
        record_.ticket += record_.ticket == UINT64_MAX ? 0 : 1;
    }

    void become_holder(const AtomSet& atoms, const std::vector<Entry>& entries) {
        record_.waits = 0;
        come_last(entries);
        record_.until_ms = 0;
        record_.since_ms = now_ms();
        std::copy(atoms.words().begin(), atoms.words().end(), record_.atoms);
        seal(record_);
    }

    void become_waiter(const std::vector<Entry>& entries) {
        if (!plan_within(within_))
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format("asked for %s; %s has %u SMs, whoever holds them",
                        count_text(request_.sm_count).c_str(), reach_text().c_str(),
                        reach_sm_count()));
        if (request_.timeout_ms == 0)
            refuse(entries);
        record_.waits = 1;
        come_last(entries);
        record_.since_ms = now_ms();
        if (request_.timeout_ms != GCX_FOREVER)
            record_.until_ms = record_.since_ms + request_.timeout_ms;
        seal(record_);
    }

    static auto turn_of(const Record& record) { return std::pair(record.ticket, record.id); }

    // Waits for its turn and its SMs. Who is not the first looks at the one before it alone.
    void wait() {
        const bool forever = request_.timeout_ms == GCX_FOREVER;
        std::vector<Entry> entries;
        UnforkedFile before; // of the one before; none: it has to look anew
        for (std::chrono::microseconds pause = kFirstPause;;
             pause = std::min(pause * 2, std::chrono::microseconds(kLongestPause))) {
            const auto patience = Clock::now() + kLongestLock;
            if (!still_waits(before) &&
                try_to_take(entries, before, forever ? patience : std::min(patience, end_)))
                return;
            if (request_.given_up() || (!forever && Clock::now() >= end_))
                refuse(entries);
            const auto left =
                std::chrono::duration_cast<std::chrono::microseconds>(end_ - Clock::now());
            std::this_thread::sleep_for(forever ? pause : std::min(pause, left));
        }
    }

    static bool still_waits(const UnforkedFile& file) {
        try {
            return file && is_kept_alive(file, "") && read_record(file).waits == 1;
        } catch (const Error&) {
            return false; // what is wrong is said by who looks at all of them
        }
    }

    bool try_to_take(std::vector<Entry>& entries, UnforkedFile& before, Clock::time_point until) {
        SharedFolder folder = SharedFolder::open(request_.folder);
        if (!folder.lock(until, request_.given_up))
            return false;
        entries = look(folder);
        const auto own = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
            return entry.record.id == record_.id;
        });
        if (own == entries.end() && request_.given_up())
            return false; // cancel() took it out
        if (own == entries.end())
            fail(GCX_ERROR_OPERATING_SYSTEM, format("the file of this wait was removed, %s/%s",
                                                    folder_.c_str(), file_name(record_).c_str()));
        entries.erase(own);
        const Entry* ahead = nullptr;
        for (const Entry& entry : entries) {
            if (waits_in_same_queue(entry.record) && turn_of(entry.record) < turn_of(record_) &&
                (ahead == nullptr || turn_of(ahead->record) < turn_of(entry.record)))
                ahead = &entry;
        }
        before = ahead != nullptr ? folder.look_at(ahead->name).file : UnforkedFile();
        const auto granted = ahead != nullptr ? std::nullopt : plan(entries);
        if (!granted)
            return false;
        become_holder(*granted, entries);
        const std::lock_guard lock(deciding_);
        if (state_ == State::cancelled)
            return false;
        state_ = State::granted;
        folder.write(file_, record_.bytes());
        return true;
    }

    // "device 0 has 132 SMs; "decode" of process 12 (python) has 64; 1 waits, the first for 24
    // SMs".
    std::string holders_text(const std::vector<Entry>& entries) const {
        std::string text = format("%s has %u SMs", reach_text().c_str(), reach_sm_count());
        const Entry* first = nullptr;
        std::size_t waiters = 0;
        for (const Entry& entry : entries) {
            if (entry.record.waits == 0) {
                if (!is_named(entry.record, entries))
                    continue;
                text += format("; %s has %u", label_of(entry).c_str(), entry.record.sm_count());
                if (!same_atoms(record_, entry.record) && taken_by(entry.record) == family_->all())
                    text += format(", so that no other process can have any here (%s)",
                                   difference_of(record_, entry.record).c_str());
                continue;
            }
            if (!waits_in_same_queue(entry.record))
                continue;
            waiters++;
            if (first == nullptr || turn_of(entry.record) < turn_of(first->record))
                first = &entry;
        }
        if (first != nullptr)
            text += format("; %zu wait%s, the first, %s, for %s", waiters, waiters == 1 ? "s" : "",
                           label_of(*first).c_str(), count_text(first->record.wanted).c_str());
        return text;
    }

    [[noreturn]] void refuse(const std::vector<Entry>& entries) const {
        const std::string asked = count_text(request_.sm_count);
        const std::string who = holders_text(entries);
        if (request_.given_up())
            fail(GCX_ERROR_NOT_PERMITTED,
                 format("the wait for %s was cancelled by gcx_cancel_signal: %s", asked.c_str(),
                        who.c_str()));
        if (request_.timeout_ms != 0)
            fail(GCX_ERROR_ALREADY_ACQUIRED,
                 format("timed out after %u ms waiting for %s: %s", request_.timeout_ms,
                        asked.c_str(), who.c_str()));
        fail(GCX_ERROR_ALREADY_ACQUIRED,
             format("asked for %s: %s; set a timeout to wait for them, or %s", asked.c_str(),
                    who.c_str(),
                    request_.least != 0 ? "lower min_sm_count" : "min_sm_count to accept fewer"));
    }

    Device& device_;
    const Request& request_;
    const std::shared_ptr<Family> family_;
    const Clock::time_point begin_ = Clock::now();
    const Clock::time_point end_ = begin_ + std::chrono::milliseconds(request_.timeout_ms);
    Record record_{};
    std::string prefix_;
    std::string folder_;
    std::shared_ptr<Reservation> parent_; // null: none
    AtomSet within_ = request_.usable.value_or(family_->all());
    std::vector<uint64_t> around_; // the ids of the reservations that it is a part of
    std::mutex deciding_;          // guards what follows
    State state_ = State::undecided;
    UnforkedFile file_;
};

} // namespace

std::shared_ptr<Reservation> take(Device& device, const Request& request) {
    return Taking(device, request).run();
}

SmResource resource_of(Device& device, const Record& record) {
    // One of those that have holds: what is read was checked.
    const auto kind = static_cast<gcx_sm_family>(
        record.family); // NOLINT(clang-analyzer-optin.core.EnumCastOutOfRange)
    auto family = device.family(kind);
    const AtomShape& shape = family->shape();
    Record mine = record;
    const Mps mps = mps_of(device.driver(), device.native());
    mine.mps = static_cast<uint32_t>(mps.state);
    mine.mps_thread_percentage = mps.thread_percentage;
    // Of who is limited itself the others take it to have the whole device.
    if (is_limited(mine) && !is_limited(record))
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("this process has CUDA_MPS_ACTIVE_THREAD_PERCENTAGE set, and the one that took "
                    "the reservation had not: which SMs of %s are meant isn't known. Unset it, or "
                    "set it "
                    "there too",
                    device.label().c_str()));
    if (record.driver_version != device.driver().version() ||
        record.device_sm_count != device.sm_count() || record.unit_count != shape.unit_count ||
        record.unit_size != shape.unit_size || record.odd_size != shape.remainder_size) {
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("the reservation was taken where %s has %u SMs, the %s family %u atoms of %u, "
                    "and the "
                    "driver is %s; here it has %u SMs, %u atoms of %u, and the driver is %s: which "
                    "SMs are meant isn't known. CUDA_MPS_ACTIVE_THREAD_PERCENTAGE and another "
                    "libcuda can do that",
                    device.label().c_str(), record.device_sm_count, family_name(kind),
                    record.unit_count, record.unit_size,
                    version_text(record.driver_version).c_str(), device.sm_count(),
                    shape.unit_count, shape.unit_size,
                    version_text(device.driver().version()).c_str()));
    }
    return {&device, std::move(family), record.set()};
}

} // namespace gcx::reservations
