#include "ipc/reservation.hpp"

#include "base/error.hpp"
#include "base/log.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <iterator>
#include <optional>
#include <thread>
#include <tuple>

namespace gcx::reservations {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kJoinTimeout = 5s;
// The longest wait to remove the file of a released reservation. Other processes clean up as well.
constexpr auto kReleaseTimeout = 200ms;
constexpr std::size_t kUuidDigits = 32;
constexpr std::size_t kIdDigits = 16;

// FNV-1a detects damage; it does not prevent forgery.
uint64_t checksum_of(const Record& record) {
    constexpr std::size_t kFirst = offsetof(Record, version);
    uint64_t sum = 0xcbf29ce484222325;
    for (const char byte : record.bytes().substr(kFirst))
        sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    return sum;
}

template <std::size_t size>
bool is_terminated(const char (&text)[size]) {
    return std::memchr(text, 0, size) != nullptr;
}

bool is_hex(std::string_view text) {
    return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string problem_of_atoms(const Record& record) {
    if (record.unit_count == 0 || record.unit_count >= AtomSet::kCapacity ||
        record.unit_size == 0 || record.unit_size > GCX_MAX_SMS ||
        record.remainder_size > GCX_MAX_SMS || record.device_sm_count > GCX_MAX_SMS)
        return "corrupt record: impossible atoms";
    const AtomShape shape = record.shape();
    if (shape.sm_count(shape.all()) > record.device_sm_count)
        return "corrupt record: its atoms have more SMs than the device";
    if (!(record.set() - shape.all()).empty() || record.set().empty() != (record.waits != 0))
        return "corrupt record: its atoms are not those of the family";
    return "";
}

// How long list() waits for the directory's lock.
constexpr auto kListTimeout = 200ms;
// Under `gcx exec`, a program that is replaced by exec, or that is started without its parent's
// descriptors, keeps its reservation by a mapping. The mapping ends with the old program, and the
// new one owns the file again before its first instruction. In between the file may have no owner,
// on a busy machine for seconds. An inheritable reservation is therefore dead only if no visible
// process has it in its environment, and if it had no owner for this long, since processes in other
// containers are not visible.
constexpr auto kReturnTimeout = 100ms;
constexpr auto kReturnCheckInterval = 1ms;
// Most files have an owner again before this long. Reading all environments takes milliseconds.
constexpr auto kReadProcessesAfter = 20ms;

// Returns whether a file without an owner may get one again.
bool may_return(const CloseOnForkFile& file, const std::string& name) {
    Record record{};
    return read_checked(file, name, record).empty() && record.inherit != 0 && record.waits == 0;
}

// Returns the environment that the process's program was started with. A process in the middle of
// an exec has neither an environment nor a command line; waits until it has.
std::string environment_of(int32_t pid) {
    const std::string program = "/proc/" + std::to_string(pid) + "/exe";
    const auto end = Clock::now() + kReturnTimeout;
    while (true) {
        std::string text = read_proc(pid, "environ");
        if (!text.empty())
            return text;
        if (!read_proc(pid, "cmdline").empty())
            return read_proc(pid, "environ"); // the exec may have ended between the two
        // Kernel threads and processes that have ended have no program.
        if (access(program.c_str(), F_OK) != 0 || Clock::now() >= end)
            return text;
        std::this_thread::sleep_for(kReturnCheckInterval);
    }
}

// Returns the plan of `gcx exec` in an environment, with NUL at its end; empty if there is none.
std::string_view plan_in(std::string_view environment) {
    constexpr std::string_view kVariable = "GCX_EXEC_PLAN="; // interpose/exec_plan.hpp
    while (!environment.empty()) {
        const std::size_t size = std::min(environment.find('\0'), environment.size() - 1) + 1;
        if (environment.starts_with(kVariable))
            return environment.substr(0, size);
        environment.remove_prefix(size);
    }
    return {};
}

// The processes under `gcx exec` that are visible to this one. Reads /proc when first needed.
class ExecProcesses {
  public:
    // Returns one that was started with this reservation; 0 if there is none. It owns the file as
    // soon as its loader runs.
    int32_t find(const std::string& file_name) {
        if (!plans_)
            plans_ = read();
        const auto found = std::find_if(plans_->begin(), plans_->end(),
                                        [part = "/" + file_name](const auto& plan) {
                                            return plan.second.find(part) != std::string::npos;
                                        });
        return found != plans_->end() ? found->first : 0;
    }

  private:
    using Plans = std::vector<std::pair<int32_t, std::string>>;

    static Plans read() {
        Plans plans;
        for (const int32_t pid : visible_processes()) {
            const std::string environment = environment_of(pid);
            if (const std::string_view plan = plan_in(environment); !plan.empty())
                plans.emplace_back(pid, plan);
        }
        return plans;
    }

    std::optional<Plans> plans_;
};

// Returns whether a file without an owner is dead. dead: from find_dead().
bool is_dead(const LockDir& dir, const LockDir::Found& found, const std::string& name,
             const std::vector<std::string>& dead) {
    return std::binary_search(dead.begin(), dead.end(), name) ||
           dir.exists(name + std::string(LockDir::kDead)) || !may_return(found.file, name);
}

// Returns nothing if the file is to be skipped.
std::optional<StoredReservation> read_file(const LockDir& dir, const std::string& name,
                                           OnInvalid on_invalid, const LockDir::Found& found) {
    if (!found.is_plain || (!found.file && found.problem.empty()))
        return std::nullopt;
    StoredReservation stored{name, found.user, {}};
    const std::string problem =
        found.problem.empty() ? read_checked(found.file, name, stored.record) : found.problem;
    if (problem.empty())
        return stored;
    if (on_invalid == OnInvalid::fail)
        refuse_file(dir, name, problem);
    log::write(GCX_LOG_WARNING, format("skipped the file %s/%s: %s", dir.path().c_str(),
                                       name.c_str(), problem.c_str()));
    return std::nullopt;
}

// Returns whether a file is of no use, provided that the directory is locked: the process that
// created it was killed before it was complete, or it marks a file that is gone.
bool is_leftover(const LockDir& dir, std::string_view name) {
    for (const std::string_view suffix : {LockDir::kUnfinished, LockDir::kDead}) {
        const std::string_view file =
            name.substr(0, name.size() - std::min(suffix.size(), name.size()));
        if (name.ends_with(suffix) && is_file_name(file))
            return suffix == LockDir::kUnfinished || !dir.exists(std::string(file));
    }
    return false;
}

// Returns the current name of a process. The kernel truncates names, so a longer one in the record
// is better.
std::string name_of(int32_t pid, const Record& record) {
    std::string name = read_proc(pid, "comm");
    if (!name.empty() && name.back() == '\n')
        name.pop_back();
    const std::string recorded = record.process_name;
    const bool same = pid == record.pid && (record.inherit == 0 || recorded.starts_with(name));
    return name.empty() || same ? recorded : name;
}

// Returns whether a process may be one of this user, as far as /proc shows it. The owner of the
// folder /proc/PID is root if the process has changed its user.
bool may_be_of_user(int32_t pid, uint32_t user) {
    const std::string status = read_proc(pid, "status");
    constexpr std::string_view kLine = "\nUid:\t"; // then the real user and the effective one
    const std::size_t line = std::min(status.find(kLine), status.size());
    const std::size_t at = std::min(status.find('\t', line + kLine.size()), status.size());
    uint32_t effective = user;
    std::from_chars(status.data() + std::min(at + 1, status.size()), status.data() + status.size(),
                    effective);
    return effective == user;
}

struct TokenParts {
    std::string dir;
    std::string name;
};

TokenParts parts_of(const std::string& token) {
    const std::size_t slash = token.rfind('/');
    if (token.size() >= GCX_MAX_RESERVATION_TOKEN || slash == std::string::npos || slash == 0 ||
        token.front() != '/' || !is_file_name(std::string_view(token).substr(slash + 1)))
        fail(GCX_ERROR_INVALID_VALUE, format("\"%.200s\" is no token of a reservation; pass the "
                                             "absolute path that gcx_reservation_get_token returns",
                                             token.c_str()));
    return {token.substr(0, slash), token.substr(slash + 1)};
}

} // namespace

void seal(Record& record) {
    record.magic = kMagic;
    record.version = kVersion;
    record.checksum = checksum_of(record);
}

std::string problem_of(const Record& record, std::string_view name) {
    if (record.magic != kMagic)
        return "it is no reservation of gcx";
    if (record.version != kVersion)
        return format("another version of gcx wrote it: its layout is %u, this version reads %u",
                      record.version, kVersion);
    if (record.checksum != checksum_of(record))
        return "corrupt record: checksum mismatch";
    if (record.waits > 1 || record.simulated > 1 || record.mps > GCX_MPS_ON ||
        !(record.mps_thread_percentage >= 0 && record.mps_thread_percentage <= 100) ||
        (record.requested > GCX_MAX_SMS && record.requested != GCX_REST) || record.inherit > 1 ||
        record.parent == record.id || !is_terminated(record.name) ||
        !is_terminated(record.process_name) || !is_terminated(record.device_name))
        return "corrupt record: values out of range";
    if (record.family < GCX_SM_FAMILY_COSCHEDULED || record.family > GCX_SM_FAMILY_MAX_CLUSTER)
        return "corrupt record: it is of no family that has reservations";
    if (file_name(record) != name)
        return "it was renamed or copied: it says that it is " + file_name(record);
    return problem_of_atoms(record);
}

std::string prefix_of(const uint8_t (&uuid)[16], bool simulated) {
    std::string text = simulated ? kSimulatedPrefix : kPrefix;
    for (const uint8_t byte : uuid)
        text += format("%02x", byte);
    return text + "-";
}

std::string file_name(const Record& record) {
    return prefix_of(record.uuid, record.simulated != 0) +
           format("%016llx", static_cast<unsigned long long>(record.id));
}

bool is_file_name(std::string_view name) {
    if (name.starts_with(kSimulatedPrefix))
        name.remove_prefix(std::strlen(kSimulatedPrefix));
    else if (name.starts_with(kPrefix))
        name.remove_prefix(std::strlen(kPrefix));
    else
        return false;
    return name.size() == kUuidDigits + 1 + kIdDigits && is_hex(name.substr(0, kUuidDigits)) &&
           name[kUuidDigits] == '-' && is_hex(name.substr(kUuidDigits + 1));
}

void refuse_file(const LockDir& dir, const std::string& name, const std::string& why) {
    fail(GCX_ERROR_CORRUPT_FILE,
         format("can't tell which SMs the reservation in %s/%s has: %s; end the process that owns "
                "the file (lsof tells which), or remove the file if it is no reservation",
                dir.path().c_str(), name.c_str(), why.c_str()));
}

Record read_record(const CloseOnForkFile& file) {
    std::array<char, sizeof(Record) + 1> bytes; // one more, to detect a longer file
    const ssize_t got = pread(file.get(), bytes.data(), bytes.size(), 0);
    if (got < 0)
        fail(GCX_ERROR_OPERATING_SYSTEM, format("it can't be read: %s", std::strerror(errno)));
    if (got != static_cast<ssize_t>(sizeof(Record)))
        fail(GCX_ERROR_OPERATING_SYSTEM,
             format("it has %s than the %zu bytes of one",
                    got < static_cast<ssize_t>(sizeof(Record)) ? "less" : "more", sizeof(Record)));
    Record record{};
    std::memcpy(&record, bytes.data(), sizeof record);
    return record;
}

std::string read_checked(const CloseOnForkFile& file, const std::string& name, Record& record) {
    try {
        record = read_record(file);
        return problem_of(record, name);
    } catch (const Error& error) {
        return error.message;
    }
}

std::vector<std::string> find_dead(const LockDir& dir, std::vector<std::string> names) {
    ExecProcesses processes;
    const auto begin = Clock::now();
    while (true) {
        const auto waited = Clock::now() - begin;
        std::erase_if(names, [&](const std::string& name) {
            if (!is_file_name(name))
                return true;
            const LockDir::Found found = dir.look_at(name);
            return !found.file || found.alive || is_dead(dir, found, name, {}) ||
                   (waited >= kReadProcessesAfter && processes.find(name) != 0);
        });
        if (names.empty() || waited >= kReturnTimeout)
            return names;
        std::this_thread::sleep_for(kReturnCheckInterval);
    }
}

std::vector<StoredReservation> read_reservations(const LockDir& dir, std::string_view prefix,
                                                 OnInvalid on_invalid, bool clean_up,
                                                 const std::vector<std::string>& dead) {
    std::vector<StoredReservation> stored;
    const std::vector<std::string> names = dir.names(prefix);
    for (const std::string& name : names) {
        if (!is_file_name(name))
            continue;
        LockDir::Found found = dir.look_at(name);
        if (found.file && !found.alive && is_dead(dir, found, name, dead)) {
            if (!clean_up || dir.remove_dead(name))
                continue;
            found = dir.look_at(name); // it may have an owner now, or be another file
        }
        if (auto read = read_file(dir, name, on_invalid, found))
            stored.push_back(std::move(*read));
    }
    for (const std::string& name : names) {
        if (clean_up && is_leftover(dir, name))
            dir.remove(name);
    }
    return stored;
}

std::string reservation_dir(const char* dir) {
    std::string path = dir != nullptr ? dir : chosen_folder();
    if (dir != nullptr && path.empty())
        fail(GCX_ERROR_INVALID_VALUE,
             "the folder is an empty string; pass NULL for the default one");
    while (path.size() > 1 && path.back() == '/')
        path.pop_back();
    constexpr std::size_t kNameAndMore = 128;
    if (path.size() + kNameAndMore > GCX_MAX_RESERVATION_TOKEN)
        fail(GCX_ERROR_INVALID_VALUE,
             format("the folder's path has %zu bytes, which is too long", path.size()));
    return path;
}

std::vector<StoredReservation> list(const char* dir_path) {
    auto dir = LockDir::find(reservation_dir(dir_path));
    if (!dir)
        return {};
    std::vector<std::string> names = dir->names(kPrefix);
    std::ranges::copy(dir->names(kSimulatedPrefix), std::back_inserter(names));
    const std::vector<std::string> dead = find_dead(*dir, std::move(names));
    // Without the lock, a file that is being written has a wrong checksum and is skipped.
    const bool locked = dir->lock(Clock::now() + kListTimeout);
    // The next process need not wait for them again. The others are left to requests.
    for (const std::string& name : dead) {
        if (locked && !dir->look_at(name).alive)
            static_cast<void>(dir->remove_dead(name));
    }
    auto found = read_reservations(*dir, kPrefix, OnInvalid::skip, false, dead);
    auto simulated = read_reservations(*dir, kSimulatedPrefix, OnInvalid::skip, false, dead);
    std::move(simulated.begin(), simulated.end(), std::back_inserter(found));
    const auto order = [](const StoredReservation& stored) {
        const Record& record = stored.record;
        return std::tuple(
            record.simulated,
            std::string_view(reinterpret_cast<const char*>(record.uuid), sizeof record.uuid),
            record.waits, record.ticket, record.id);
    };
    std::sort(found.begin(), found.end(),
              [&](const auto& a, const auto& b) { return order(a) < order(b); });
    return found;
}

Process owner_of(const StoredReservation& stored) {
    const Record& record = stored.record;
    // The name contains a random number of 64 bits. The path differs in processes that see the
    // directory elsewhere, so it is not compared.
    const auto is_file = [ending = "/" + file_name(record)](std::string_view path) {
        return path.ends_with(ending);
    };
    switch (owns_file(record.pid, is_file)) {
    case Owns::yes:
        return {record.pid, name_of(record.pid, record)};
    case Owns::unknown:
        // Another process has the number if the first owner ended or is in another PID namespace.
        if (may_be_of_user(record.pid, stored.user))
            return {record.pid, record.process_name};
        break;
    case Owns::no:
        break;
    }
    const std::vector<int32_t> pids = visible_processes();
    if (pids.empty())
        return {record.pid, record.process_name};
    for (const int32_t pid : pids) {
        if (pid != record.pid && owns_file(pid, is_file) == Owns::yes)
            return {pid, name_of(pid, record)};
    }
    const int32_t pid = record.inherit != 0 ? ExecProcesses().find(file_name(record)) : 0;
    return {pid, pid != 0 ? name_of(pid, record) : record.process_name};
}

std::string printable(std::string_view name) {
    std::string text;
    const auto is_between = [&](std::size_t at, unsigned first, unsigned last) {
        return at < name.size() && static_cast<unsigned char>(name[at]) >= first &&
               static_cast<unsigned char>(name[at]) <= last;
    };
    for (std::size_t at = 0; at < name.size();) {
        // U+0080 to U+009F are control characters, too.
        const bool is_long = is_between(at, 0xc2, 0xc2) && is_between(at + 1, 0x80, 0x9f);
        const bool is_control = is_long || is_between(at, 0, 0x1f) || is_between(at, 0x7f, 0x7f);
        for (const std::size_t end = at + (is_long ? 2 : 1); at < end; at++)
            text += is_control ? format("\\x%02x", static_cast<unsigned char>(name[at]))
                               : std::string(1, name[at]);
    }
    return text;
}

std::string describe(const Process& process) {
    const std::string name = printable(process.name);
    return process.pid != 0 ? format("process %d (%s)", process.pid, name.c_str())
                            : format("a process that isn't visible here (%s)", name.c_str());
}

Reservation::~Reservation() {
    // The owners of a joined reservation may be about to start other programs.
    release_file(dir_, name_, std::move(file_), joined_);
}

bool Reservation::lost() const {
    return file_.is_gone_from(token().c_str());
}

std::shared_ptr<Reservation> join_in(const LockDir& dir, const std::string& token,
                                     const std::vector<std::string>& dead) {
    const auto [path, name] = parts_of(token);
    LockDir::Found found = dir.look_at(name);
    if (found.is_plain && !found.problem.empty())
        refuse_file(dir, name, found.problem);
    const bool ended = found.file && !found.alive && is_dead(dir, found, name, dead);
    if (ended)
        static_cast<void>(dir.remove_dead(name));
    if (ended || !found.file)
        fail(GCX_ERROR_NOT_FOUND,
             format("the reservation of the token %s has ended, and other processes may have its "
                    "SMs; reserve SMs again, and unset GCX_EXEC_PLAN and LD_AUDIT if an earlier "
                    "gcx exec set them",
                    token.c_str()));
    Record record{};
    if (const std::string problem = read_checked(found.file, name, record); !problem.empty())
        refuse_file(dir, name, problem);
    if (record.waits != 0)
        fail(GCX_ERROR_NOT_FOUND,
             format("the reservation of the token %s still waits for its SMs", token.c_str()));
    own(found.file, token);
    return std::make_shared<Reservation>(path, std::move(found.file), record, 0U, true);
}

std::shared_ptr<Reservation> join(const std::string& token) {
    const TokenParts parts = parts_of(token);
    LockDir dir = LockDir::open(parts.dir);
    const std::vector<std::string> dead = find_dead(dir, {parts.name});
    static_cast<void>(dir.lock_or_fail(Clock::now() + kJoinTimeout));
    return join_in(dir, token, dead);
}

std::string dir_of_token(const std::string& token) {
    return parts_of(token).dir;
}

void release_file(const std::string& dir_path, const std::string& name, CloseOnForkFile file,
                  bool patient) noexcept {
    if (!file)
        return; // in the child of a fork, where the parent owns it
    disown(file);
    file = {}; // from here on other processes may reserve its SMs
    try {
        LockDir dir = LockDir::open(dir_path);
        std::vector<std::string> dead = {name};
        if (patient)
            dead = find_dead(dir, std::move(dead));
        if (!dir.lock(Clock::now() + kReleaseTimeout))
            return;
        const LockDir::Found found = dir.look_at(name);
        if (found.file && !found.alive && is_dead(dir, found, name, dead))
            static_cast<void>(dir.remove_dead(name));
    } catch (const Error&) { // NOLINT(bugprone-empty-catch): the next process removes the file
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch): the same
    }
}

} // namespace gcx::reservations
