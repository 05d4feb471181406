#include "core/reservation.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/user_folder.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <tuple>

namespace gcx::reservations {
namespace {

using namespace std::chrono_literals;

// How long it is tried to tidy up, which others do as well.
constexpr auto kTidying = 200ms;
// How long a process that joins waits for the folder's lock.
constexpr auto kLongestJoin = 5s;
// Under `gcx exec` a program that becomes another one, or that was started without its starter's
// descriptors, keeps its reservation by a mapping, which goes with the old program; the new one
// makes its own before its first instruction. Between the two no process may have the file locked;
// so one that is inherited is dead only if nobody has locked it for so long.
constexpr auto kSecondLook = 100ms; // a busy machine starts a program late
constexpr auto kNextLook = 1ms;     // from one look to the next

bool never() {
    return false;
}

[[noreturn]] void refuse_file(const SharedFolder& folder, const std::string& name,
                              const std::string& why) {
    fail(GCX_ERROR_OPERATING_SYSTEM,
         format("which SMs the reservation in %s/%s has can't be told: %s. End the process that "
                "keeps it "
                "alive (lsof tells which), or remove the file if it is no reservation",
                folder.path().c_str(), name.c_str(), why.c_str()));
}

// Reads what the file of a name says, if it can be believed; otherwise why not.
std::string problem_of_file(const UnforkedFile& file, const std::string& name, Record& record) {
    try {
        record = read_record(file);
        return problem_of(record, name);
    } catch (const Error& error) {
        return error.message;
    }
}

// Whether a process may yet begin to keep a file alive that none keeps alive now.
bool may_return(const UnforkedFile& file, const std::string& name) {
    Record record{};
    return problem_of_file(file, name, record).empty() && record.inherit != 0 && record.waits == 0;
}

// Files that nobody keeps alive.
struct Dead {
    std::vector<std::string> names;
    bool may_return = false; // one of them

    void add(const SharedFolder::Found& found, const std::string& name) {
        names.push_back(name);
        may_return = may_return || gcx::reservations::may_return(found.file, name);
    }
};

// Nothing: it is to be left out.
std::optional<Entry> read_entry(const SharedFolder& folder, const std::string& name, Bad bad,
                                Dead* dead) {
    const SharedFolder::Found found = folder.look_at(name);
    if (!found.file && found.refused.empty())
        return std::nullopt;
    if (found.file && !found.alive) {
        if (dead != nullptr)
            dead->add(found, name);
        return std::nullopt;
    }
    Entry entry{name, found.user, {}};
    const std::string problem =
        found.refused.empty() ? problem_of_file(found.file, name, entry.record) : found.refused;
    if (problem.empty())
        return entry;
    if (bad == Bad::fail)
        refuse_file(folder, name, problem);
    log::write(GCX_LOG_WARNING, format("the file %s/%s is left out: %s", folder.path().c_str(),
                                       name.c_str(), problem.c_str()));
    return std::nullopt;
}

// Of a process that was killed while it made the file, if the folder is locked.
bool is_unfinished(std::string_view name) {
    if (!name.ends_with(SharedFolder::kUnfinished))
        return false;
    name.remove_suffix(SharedFolder::kUnfinished.size());
    return is_file_name(name);
}

struct TokenParts {
    std::string folder;
    std::string name;
};

TokenParts parts_of(const std::string& token) {
    const std::size_t slash = token.rfind('/');
    if (token.size() >= GCX_MAX_RESERVATION_TOKEN || slash == std::string::npos || slash == 0 ||
        token.front() != '/' || !is_file_name(std::string_view(token).substr(slash + 1)))
        fail(GCX_ERROR_INVALID_VALUE, format("\"%.200s\" is no token of a reservation: one is what "
                                             "gcx_reservation_get_token gives, an "
                                             "absolute path",
                                             token.c_str()));
    return {token.substr(0, slash), token.substr(slash + 1)};
}

// Removes files that nobody keeps alive. Looks at them for a while if a process may yet begin to,
// and adds those that turn out to be alive.
void remove_dead(const SharedFolder& folder, Dead dead, Bad bad, std::vector<Entry>& alive) {
    const auto end = SharedFolder::Clock::now() + kSecondLook;
    while (dead.may_return && SharedFolder::Clock::now() < end) {
        std::this_thread::sleep_for(kNextLook);
        Dead still;
        for (const std::string& name : dead.names) {
            if (auto entry = read_entry(folder, name, bad, &still))
                alive.push_back(std::move(*entry));
        }
        dead = std::move(still);
    }
    for (const std::string& name : dead.names) {
        while (!folder.remove_dead(name)) { // its program may be becoming another one again
            if (auto entry = read_entry(folder, name, bad, nullptr)) {
                alive.push_back(std::move(*entry));
                break;
            }
        }
    }
}

// Looks at a file, and goes on for a while if nobody keeps it alive and that may change.
SharedFolder::Found look_patiently(const SharedFolder& folder, const std::string& name) {
    const auto end = SharedFolder::Clock::now() + kSecondLook;
    while (true) {
        SharedFolder::Found found = folder.look_at(name);
        if (!found.file || found.alive || !may_return(found.file, name) ||
            SharedFolder::Clock::now() >= end)
            return found;
        std::this_thread::sleep_for(kNextLook);
    }
}

} // namespace

Record read_record(const UnforkedFile& file) {
    std::array<char, sizeof(Record) + 1> bytes; // one more, to see that there is none
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

std::vector<Entry> read_entries(const SharedFolder& folder, std::string_view prefix, Bad bad,
                                bool tidy) {
    std::vector<Entry> entries;
    Dead dead;
    for (const std::string& name : folder.names(prefix)) {
        if (tidy && is_unfinished(name))
            folder.remove(name);
        if (!is_file_name(name))
            continue;
        if (auto entry = read_entry(folder, name, bad, tidy ? &dead : nullptr))
            entries.push_back(std::move(*entry));
    }
    const std::size_t seen = entries.size();
    remove_dead(folder, std::move(dead), bad, entries);
    if (entries.size() != seen)
        std::sort(entries.begin(), entries.end(),
                  [](const Entry& a, const Entry& b) { return a.name < b.name; });
    return entries;
}

std::string folder_of(const char* named) {
    std::string folder = named != nullptr ? named : chosen_folder();
    if (named != nullptr && folder.empty())
        fail(GCX_ERROR_INVALID_VALUE, "the folder is an empty text; NULL means the usual one");
    while (folder.size() > 1 && folder.back() == '/')
        folder.pop_back();
    constexpr std::size_t kNameAndMore = 128;
    if (folder.size() + kNameAndMore > GCX_MAX_RESERVATION_TOKEN)
        fail(GCX_ERROR_INVALID_VALUE,
             format("the folder's path has %zu bytes, which is too long", folder.size()));
    return folder;
}

Reservation::~Reservation() {
    // The processes of one that was joined may be becoming other programs.
    give_up(folder_, name_, std::move(file_), joined_);
}

bool Reservation::lost() const {
    return file_.left(token().c_str());
}

void give_up(const std::string& folder, const std::string& name, UnforkedFile file,
             bool patient) noexcept {
    if (!file)
        return;                    // in the child of a fork, where it is the parent's
    gcx::give_up(std::move(file)); // from here on others may have what it held
    try {
        SharedFolder there = SharedFolder::open(folder);
        if (!there.lock(SharedFolder::Clock::now() + kTidying, never))
            return;
        const SharedFolder::Found found =
            patient ? look_patiently(there, name) : there.look_at(name);
        if (found.file && !found.alive)
            static_cast<void>(there.remove_dead(name));
    } catch (const Error&) {          // NOLINT(bugprone-empty-catch): who comes next removes it
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch): the same
    }
}

std::shared_ptr<Reservation> join(const std::string& token) {
    SharedFolder folder = SharedFolder::open(folder_of_token(token));
    static_cast<void>(folder.lock_or_fail(SharedFolder::Clock::now() + kLongestJoin, never));
    return join_in(folder, token);
}

std::string folder_of_token(const std::string& token) {
    return parts_of(token).folder;
}

std::shared_ptr<Reservation> join_in(const SharedFolder& folder, const std::string& token) {
    const auto [path, name] = parts_of(token);
    SharedFolder::Found found = look_patiently(folder, name);
    if (!found.refused.empty())
        refuse_file(folder, name, found.refused);
    if (!found.file || !found.alive) {
        if (found.file)
            static_cast<void>(folder.remove_dead(name));
        fail(GCX_ERROR_NOT_FOUND,
             format("the reservation of the token %s has ended", token.c_str()));
    }
    Record record{};
    if (const std::string problem = problem_of_file(found.file, name, record); !problem.empty())
        refuse_file(folder, name, problem);
    if (record.waits != 0)
        fail(GCX_ERROR_NOT_FOUND,
             format("the reservation of the token %s waits for its SMs still", token.c_str()));
    keep_alive(found.file, token);
    return std::make_shared<Reservation>(path, std::move(found.file), record, 0U, true);
}

std::vector<Entry> list(const char* named) {
    auto folder = SharedFolder::find(folder_of(named));
    if (!folder)
        return {};
    // A file that is being written while somebody else has the lock has a wrong sum, and is left
    // out.
    const bool locked = folder->lock(SharedFolder::Clock::now() + kTidying, never);
    std::vector<Entry> found = read_entries(*folder, kPrefix, Bad::leave_out, locked);
    std::vector<Entry> simulated = read_entries(*folder, kSimulatedPrefix, Bad::leave_out, locked);
    std::move(simulated.begin(), simulated.end(), std::back_inserter(found));
    const auto order = [](const Entry& entry) {
        const Record& record = entry.record;
        return std::tuple(
            record.simulated,
            std::string_view(reinterpret_cast<const char*>(record.uuid), sizeof record.uuid),
            record.waits, record.ticket, record.id);
    };
    std::sort(found.begin(), found.end(),
              [&](const Entry& a, const Entry& b) { return order(a) < order(b); });
    return found;
}

} // namespace gcx::reservations
