// Each system call of reservations fails in turn: the caller gets an error or the SMs, no SM has
// two owners, and nothing stays reserved or on the disk afterwards.
#include "reservations.hpp"
#include "system_calls.hpp"

#include <dirent.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

using namespace reservations;
using namespace support;
using publish::Folder;
using publish::Other;

namespace {

// The number of calls until one fails; 0: none fails.
int left = 0;
int error = 0;
int failed_calls = 0;
// A file that gets an owner when a call fails; empty: none. The descriptor is that of the owner.
std::string joined_path;
int joined_file = -1;
// A file that is replaced by a FIFO with a lock instead of a call that fails; empty: none.
std::string replaced_path;

void replace_file() {
    if (unlink(replaced_path.c_str()) != 0)
        return; // it was removed
    CHECK_EQ(mkfifo(replaced_path.c_str(), 0600), 0);
    struct flock lock{};
    lock.l_type = F_WRLCK;
    joined_file = open(replaced_path.c_str(), O_RDWR | O_CLOEXEC);
    CHECK_EQ(fcntl(joined_file, F_OFD_SETLK, &lock), 0);
}

void join_file() {
    struct flock lock{};
    lock.l_type = F_RDLCK;
    joined_file = open(joined_path.c_str(), O_RDONLY | O_CLOEXEC);
    fcntl(joined_file, F_OFD_SETLK, &lock);
}

// A folder that is not locked while /proc is read, or while a thread sleeps; empty: any may be.
std::string unlocked_path;
int lookups = 0;
int sleeps = 0;
int locked_waits = 0; // of both

void count_wait(int& waits) {
    if (unlocked_path.empty())
        return;
    const int file = open(unlocked_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    waits++;
    locked_waits += flock(file, LOCK_EX | LOCK_NB) == 0 ? 0 : 1;
    close(file);
}

} // namespace

extern "C" __attribute__((visibility("default"))) int nanosleep(const timespec* time,
                                                                timespec* rest) {
    count_wait(sleeps);
    errno = clock_nanosleep(CLOCK_MONOTONIC, 0, time, rest);
    return errno == 0 ? 0 : -1;
}

extern "C" __attribute__((visibility("default"))) DIR* opendir(const char* path) {
    count_wait(lookups);
    const int file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return file < 0 ? nullptr : fdopendir(file);
}

bool calls::fails(int& with) {
    if (left == 0 || --left != 0)
        return false;
    failed_calls++;
    if (!replaced_path.empty()) {
        replace_file();
        return false;
    }
    if (!joined_path.empty())
        join_file();
    with = error;
    return true;
}

namespace {

void order(int nth, int with) {
    left = nth;
    error = with;
}

// Reserves next to another process, times out waiting, joins, lists and releases.
void use_reservations(gcx_reservation other) {
    gcx_reservation reservation = nullptr;
    gcx_reservation joined = nullptr;
    uint32_t count = 0;
    gcx_live_reservation found[8];
    const gcx_result result = try_reserve(64, {.name = "own"}, &reservation);
    CHECK(result == GCX_SUCCESS ? reservation != nullptr : reservation == nullptr);
    const gcx_result timed_out = try_reserve(132, {.timeout_ms = 2}, &joined);
    CHECK(timed_out == GCX_ERROR_TIMEOUT || timed_out == GCX_ERROR_CORRUPT_FILE ||
          timed_out == GCX_ERROR_OPERATING_SYSTEM || timed_out == GCX_ERROR_CANCELLED);
    gcx_reservation_list(nullptr, found, 8, &count);
    if (reservation != nullptr &&
        gcx_reservation_join(token_of(reservation).c_str(), &joined) == GCX_SUCCESS) {
        CHECK_EQ(info_of(joined).sm_count, 64U);
        CHECK_OK(gcx_reservation_release(joined));
    }
    if (reservation != nullptr) {
        for (std::size_t word = 0; word < 8; word++)
            CHECK_EQ(info_of(reservation).atoms[word] & info_of(other).atoms[word], 0U);
        CHECK_OK(gcx_reservation_release(reservation));
    }
}

void system_call_failed_leaves_nothing_reserved() {
    const Folder folder;
    on_machine("h100@13.0", [&] {
        const gcx_reservation other = reserve(24, {.name = "other"});
        for (const int with : {EIO, ENOSPC, EACCES, ENOLCK, EMFILE}) {
            int nth = 1;
            for (int before = -1; before != failed_calls; nth++) {
                before = failed_calls;
                order(nth, with);
                use_reservations(other);
                order(0, 0);
                // The state is as before, and the next process has removed what was left.
                CHECK_EQ(listed().size(), 1U);
                remove_dead_files();
                CHECK_EQ(std::distance(std::filesystem::directory_iterator(folder.inner()),
                                       std::filesystem::directory_iterator()),
                         1);
            }
            CHECK(nth > 40);
        }
        release(other);
        CHECK(listed().empty());
    });
}

// Between the look at a file without an owner and its removal, another process may become its
// owner. The removal must notice that, also without descriptors.
void file_joined_while_descriptors_are_exhausted_stays() {
    const Folder folder;
    on_machine("h100@13.0", [&] {
        const gcx_reservation own = reserve(24);
        const std::string token = token_of(own);
        const std::string path = token.substr(0, token.size() - 16) + "0123456789abcdef";
        int refused = 0;
        for (int nth = 1, before = -1; before != failed_calls; nth++) {
            before = failed_calls;
            std::ofstream(path) << "a file without an owner";
            joined_path = path;
            order(nth, EMFILE);
            const gcx_result result = try_reserve(8);
            order(0, 0);
            joined_path.clear();
            if (joined_file >= 0) {
                CHECK(std::filesystem::exists(path));
                CHECK(result == GCX_SUCCESS || result == GCX_ERROR_OPERATING_SYSTEM ||
                      result == GCX_ERROR_CORRUPT_FILE);
                refused += result == GCX_ERROR_OPERATING_SYSTEM ? 1 : 0;
                close(std::exchange(joined_file, -1));
            }
        }
        CHECK(refused > 4);
        release(own);
    });
    remove_dead_files();
    CHECK(folder.files().empty());
}

// A member of the folder's group may do this, and must not keep the others in a loop.
void dead_file_replaced_by_a_locked_fifo_is_ignored() {
    const Folder folder;
    on_machine("h100@13.0", [&] {
        const gcx_reservation own = reserve(24);
        const std::string token = token_of(own);
        const std::string path = token.substr(0, token.size() - 16) + "0123456789abcdef";
        replaced_path = path;
        int nth = 0;
        do {
            close(std::exchange(joined_file, -1));
            std::filesystem::remove(path);
            std::ofstream(path) << "a file without an owner";
            order(++nth, 0);
            CHECK_OK(try_reserve(8));
            order(0, 0);
        } while (joined_file >= 0); // until the file was removed before it could be replaced
        CHECK(nth > 8);
        release(own);
    });
}

// Which process has the SMs may take long to find out, and the others must not wait for it.
void owners_are_looked_up_without_the_lock() {
    const Folder folder;
    on_machine("h100@13.0", [&] {
        const gcx_reservation own = reserve(24);
        unlocked_path = folder.inner();
        CHECK_EQ(try_reserve(132), GCX_ERROR_ALREADY_ACQUIRED);
        CHECK_EQ(try_reserve(132, {.timeout_ms = 2}), GCX_ERROR_TIMEOUT);
        CHECK(lookups >= 2);
        CHECK_EQ(locked_waits, 0);
        release(own);
    });
}

// Returns whether the body had to wait.
template <class Body>
bool waits(const Body& body) {
    sleeps = 0;
    body();
    return sleeps != 0;
}

// A process that has 24 SMs of device 1, which programs that it starts may inherit.
struct Owner {
    Owner() { process.arrived(); }
    Other process{[](Other& self) {
        publish::open_machine("2xh100@13.0");
        reserve(24, {.name = "dead", .flags = GCX_RESERVATION_INHERIT, .device = 1});
        self.point();
    }};
};

// A killed owner's file costs the first process that looks 100 ms, and the others nothing, whatever
// they do.
void owner_killed_first_call_waits_with_the_folder_unlocked() {
    const Folder folder;
    in_child("the others", [&] {
        Owner owners[4];
        publish::open_machine("2xh100@13.0");
        unlocked_path = folder.inner();
        const auto list = [] { return waits([] { listed(); }); };
        const auto reserve_rest = [](int32_t device) {
            return waits([device] { CHECK_OK(try_reserve(GCX_REST, {.device = device})); });
        };
        owners[0].process.kill(SIGKILL);
        CHECK(list());
        CHECK_EQ(folder.files().size(), 3U);
        CHECK(!list());
        owners[1].process.kill(SIGKILL);
        CHECK(!reserve_rest(0));
        CHECK(reserve_rest(1));
        CHECK_EQ(folder.files().size(), 2U);
        CHECK(!list());
        std::string token = folder.files().at(0);
        gcx_reservation joined = nullptr;
        CHECK_OK(gcx_reservation_join(token.c_str(), &joined));
        owners[2].process.kill(SIGKILL);
        owners[3].process.kill(SIGKILL);
        CHECK(waits([&] { release(joined); }));
        CHECK_EQ(folder.files().size(), 1U);
        token = folder.files().at(0);
        const auto join = [&] {
            CHECK_EQ(gcx_reservation_join(token.c_str(), &joined), GCX_ERROR_NOT_FOUND);
        };
        CHECK(waits(join));
        CHECK(!waits(join));
        const gcx_reservation own = reserve(132, {.device = 1});
        CHECK_EQ(try_reserve(132, {.timeout_ms = 50, .device = 1}), GCX_ERROR_TIMEOUT);
        release(own);
        CHECK_EQ(locked_waits, 0);
    });
    CHECK(folder.files().empty());
}

// Only the user and root can remove a file from a group's folder. The first process of another user
// that finds it dead marks it.
void owner_killed_in_a_group_others_mark_its_file() {
    if (geteuid() != 0)
        return;
    const GroupFolder folder;
    unlocked_path = folder.inner();
    Other owner([](Other& self) {
        GroupFolder::become(1001);
        reserve(24, {.flags = GCX_RESERVATION_INHERIT});
        self.point();
    });
    owner.arrived();
    const std::string token = folder.files().at(0);
    owner.kill(SIGKILL);
    const auto as_member = [](uid_t user, const std::function<void()>& body) {
        Other member([&](Other&) {
            GroupFolder::become(user);
            body();
            CHECK_EQ(locked_waits, 0);
        });
        member.ended();
    };
    for (const bool first : {true, false}) {
        as_member(1002, [&] { CHECK_EQ(waits([] { CHECK(listed().empty()); }), first); });
        CHECK_EQ(folder.files().size(), 2U);
    }
    as_member(1003, [] { CHECK(!waits([] { CHECK_OK(try_reserve(132)); })); });
    // A program that looked for the mark before it was there has this lock, until it looks again.
    struct flock lock{};
    lock.l_type = F_RDLCK;
    lock.l_start = 1;
    const int starting = open(token.c_str(), O_RDONLY | O_CLOEXEC);
    CHECK_EQ(fcntl(starting, F_OFD_SETLK, &lock), 0);
    as_member(1002, [] { listed(); });
    CHECK_EQ(folder.files().size(), 2U);
    close(starting);
    as_member(1001, [&] {
        // It can't come back, though nobody has its SMs.
        gcx_reservation joined = nullptr;
        CHECK_EQ(gcx_reservation_join(token.c_str(), &joined), GCX_ERROR_NOT_FOUND);
        CHECK(message_has("has ended"));
        CHECK_EQ(folder.files().size(), 1U); // the mark, which is of user 1002
    });
    as_member(1002, [] { CHECK_OK(try_reserve(8)); });
    CHECK(folder.files().empty());
    unlocked_path.clear();
}

// Anybody in the group can create a mark.
void mark_of_a_reservation_with_an_owner_is_ignored() {
    const Folder folder;
    on_machine("h100@13.0", [&] {
        const gcx_reservation own = reserve(24, {.flags = GCX_RESERVATION_INHERIT});
        const std::string mark = token_of(own) + ".dead";
        std::ofstream(mark).close();
        CHECK_EQ(listed().size(), 1U);
        CHECK_EQ(try_reserve(132), GCX_ERROR_ALREADY_ACQUIRED);
        gcx_reservation joined = nullptr;
        CHECK_OK(gcx_reservation_join(token_of(own).c_str(), &joined));
        release(joined);
        CHECK_EQ(listed().size(), 1U);
        CHECK(std::filesystem::exists(mark));
        release(own);
        release(reserve(132));
    });
    CHECK(folder.files().empty());
}

void allocation_interrupted_by_signals_is_repeated() {
    const Folder folder;
    on_machine("h100@13.0", [] {
        calls::interruptions = 3;
        CHECK_OK(try_reserve(8));
        CHECK_EQ(calls::interruptions, 0);
    });
}

} // namespace

int main() {
    system_call_failed_leaves_nothing_reserved();
    file_joined_while_descriptors_are_exhausted_stays();
    dead_file_replaced_by_a_locked_fifo_is_ignored();
    owners_are_looked_up_without_the_lock();
    owner_killed_first_call_waits_with_the_folder_unlocked();
    owner_killed_in_a_group_others_mark_its_file();
    mark_of_a_reservation_with_an_owner_is_ignored();
    allocation_interrupted_by_signals_is_repeated();
    return check::summary("reservation faults");
}
