// Each system call of reservations fails in turn: the caller gets an error or the SMs, no SM has
// two owners, and nothing stays reserved or on the disk afterwards.
#include "reservations.hpp"
#include "system_calls.hpp"

#include <dirent.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

using namespace reservations;
using namespace support;
using publish::Folder;

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

// A folder that is not locked while /proc is read; empty: any may be.
std::string unlocked_path;
int lookups = 0;
int locked_lookups = 0;

} // namespace

extern "C" __attribute__((visibility("default"))) DIR* opendir(const char* path) {
    if (!unlocked_path.empty()) {
        const int file = open(unlocked_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        lookups++;
        locked_lookups += flock(file, LOCK_EX | LOCK_NB) == 0 ? 0 : 1;
        close(file);
    }
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
        CHECK_EQ(locked_lookups, 0);
        release(own);
    });
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
    allocation_interrupted_by_signals_is_repeated();
    return check::summary("reservation faults");
}
