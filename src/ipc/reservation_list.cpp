#include "ipc/reservation_list.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "ipc/user_runtime_dir.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <thread>
#include <tuple>

namespace gcx::reservations {
namespace {

using namespace std::chrono_literals;

// How long list() waits for the directory's lock.
constexpr auto kListTimeout = 200ms;
// Under `gcx exec`, a program that is replaced by exec, or that is started without its parent's
// descriptors, keeps its reservation by a mapping. The mapping ends with the old program, and the
// new one owns the file again before its first instruction. In between the file may have no owner.
// An inheritable reservation is therefore dead only if it had no owner for this long.
constexpr auto kReturnTimeout = 100ms; // covers the start of a program on a busy machine
constexpr auto kReturnCheckInterval = 1ms;

// Returns whether a file without an owner may get one again.
bool may_return(const CloseOnForkFile& file, const std::string& name) {
    Record record{};
    return read_checked(file, name, record).empty() && record.inherit != 0 && record.waits == 0;
}

struct DeadFiles {
    std::vector<std::string> names;
    bool may_return = false; // one of them

    void add(const LockDir::Found& found, const std::string& name) {
        names.push_back(name);
        may_return = may_return || gcx::reservations::may_return(found.file, name);
    }
};

// Returns nothing if the file is to be skipped. Adds a file without an owner to dead, if that is
// not null.
std::optional<StoredReservation> read_file(const LockDir& dir, const std::string& name,
                                           OnInvalid on_invalid, DeadFiles* dead) {
    const LockDir::Found found = dir.look_at(name);
    if (!found.is_plain || (!found.file && found.problem.empty()))
        return std::nullopt;
    if (found.file && !found.alive) {
        if (dead != nullptr)
            dead->add(found, name);
        return std::nullopt;
    }
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

// Returns whether the process that created the file was killed before it was complete, provided
// that the directory is locked.
bool is_unfinished(std::string_view name) {
    if (!name.ends_with(LockDir::kUnfinished))
        return false;
    name.remove_suffix(LockDir::kUnfinished.size());
    return is_file_name(name);
}

// Waits if one of the files without an owner may get an owner again, and moves those that do to
// alive. Returns the others.
std::vector<std::string> await_return(const LockDir& dir, DeadFiles dead, OnInvalid on_invalid,
                                      std::vector<StoredReservation>& alive) {
    const auto end = LockDir::Clock::now() + kReturnTimeout;
    while (dead.may_return && LockDir::Clock::now() < end) {
        std::this_thread::sleep_for(kReturnCheckInterval);
        DeadFiles still_dead;
        for (const std::string& name : dead.names) {
            if (auto stored = read_file(dir, name, on_invalid, &still_dead))
                alive.push_back(std::move(*stored));
        }
        dead = std::move(still_dead);
    }
    return std::move(dead.names);
}

// Removes files without an owner. Adds those that get one just now to alive.
void remove_dead(const LockDir& dir, const std::vector<std::string>& dead, OnInvalid on_invalid,
                 std::vector<StoredReservation>& alive) {
    for (const std::string& name : dead) {
        while (!dir.remove_dead(name)) {
            if (auto stored = read_file(dir, name, on_invalid, nullptr)) {
                alive.push_back(std::move(*stored));
                break;
            }
        }
    }
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

} // namespace

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

LockDir::Found look_patiently(const LockDir& dir, const std::string& name) {
    const auto end = LockDir::Clock::now() + kReturnTimeout;
    while (true) {
        LockDir::Found found = dir.look_at(name);
        if (!found.file || found.alive || !may_return(found.file, name) ||
            LockDir::Clock::now() >= end)
            return found;
        std::this_thread::sleep_for(kReturnCheckInterval);
    }
}

std::vector<StoredReservation> read_reservations(const LockDir& dir, std::string_view prefix,
                                                 OnInvalid on_invalid, bool clean_up) {
    std::vector<StoredReservation> found;
    DeadFiles dead;
    for (const std::string& name : dir.names(prefix)) {
        if (clean_up && is_unfinished(name))
            dir.remove(name);
        if (!is_file_name(name))
            continue;
        if (auto stored = read_file(dir, name, on_invalid, &dead))
            found.push_back(std::move(*stored));
    }
    const std::size_t before = found.size();
    const auto left = await_return(dir, std::move(dead), on_invalid, found);
    if (clean_up)
        remove_dead(dir, left, on_invalid, found);
    if (found.size() != before)
        std::sort(found.begin(), found.end(),
                  [](const auto& a, const auto& b) { return a.name < b.name; });
    return found;
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
    // Without the lock, a file that is being written has a wrong checksum and is skipped.
    static_cast<void>(dir->lock(LockDir::Clock::now() + kListTimeout));
    auto found = read_reservations(*dir, kPrefix, OnInvalid::skip, false);
    auto simulated = read_reservations(*dir, kSimulatedPrefix, OnInvalid::skip, false);
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

Process owner_of(const Record& record) {
    // Normally only an inheritable reservation outlives its first owner. Messages are made while
    // the directory is locked, so don't search for the others.
    if (record.inherit == 0 && access(("/proc/" + std::to_string(record.pid)).c_str(), F_OK) == 0)
        return {record.pid, record.process_name};
    // The name contains a random number of 64 bits. The path differs in processes that see the
    // directory elsewhere, so it is not compared.
    const auto is_file = [ending = "/" + file_name(record)](std::string_view path) {
        return path.ends_with(ending);
    };
    switch (owns_file(record.pid, is_file)) {
    case Owns::yes:
        return {record.pid, name_of(record.pid, record)};
    case Owns::unknown:
        return {record.pid, record.process_name};
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
    return {0, record.process_name};
}

std::string describe(const Process& process) {
    return process.pid != 0
               ? format("process %d (%s)", process.pid, process.name.c_str())
               : format("a process that isn't visible here (%s)", process.name.c_str());
}

} // namespace gcx::reservations
