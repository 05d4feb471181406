// Reservations of programs that start without standard streams, and of programs that close all
// descriptors, as daemons do.
#include "reservations.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

using namespace reservations;
using namespace support;
using publish::Folder;
namespace fs = std::filesystem;

namespace {

constexpr const char* kH100 = "h100@13.0";

bool is_open(int file) {
    return fcntl(file, F_GETFD) >= 0;
}

// The program's output must not be written to a reservation's file.
void program_without_standard_streams_keeps_files_apart(const Folder& /*folder*/) {
    close(STDIN_FILENO);
    for (const uint32_t flags : {0U, GCX_RESERVATION_INHERIT}) {
        const gcx_reservation reservation = reserve(24, {.flags = flags});
        CHECK(!is_open(STDIN_FILENO));
        release(reservation);
    }
}

// Closes all files that are open below the folder, and opens another file under their numbers.
std::vector<int> put_in_their_place(const Folder& folder, const fs::path& file) {
    std::vector<int> opened;
    for (int number = 3; number < 1024; number++) {
        std::error_code error;
        const fs::path target =
            fs::read_symlink(fs::path("/proc/self/fd") / std::to_string(number), error);
        if (error || target.string().find(folder.inner()) != 0)
            continue;
        const int other = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (other == number) { // gcx had it open for a moment, and has closed it by itself
            close(other);
            continue;
        }
        // Not by close(): the thread sanitizer reports that.
        CHECK_EQ(syscall(SYS_dup3, other, number, O_CLOEXEC), number);
        close(other);
        opened.push_back(number);
    }
    return opened;
}

// A program that closes or reuses the descriptors keeps its reservations.
void descriptors_closed_reservation_stays() {
    const Folder folder;
    const fs::path others_file = folder.path() / "others";
    for (const uint32_t flags : {0U, GCX_RESERVATION_INHERIT}) {
        on_machine(kH100, [&] {
            const gcx_reservation reservation = reserve(24, {.flags = flags});
            const auto opened = put_in_their_place(folder, others_file);
            CHECK_EQ(opened.size(), 1U);
            CHECK_EQ(held_sms(listed()), 24U);
            CHECK_EQ(info_of(reservation).lost, 0);
            gcx_reservation more = nullptr;
            CHECK_REFUSED(try_reserve(112, {}, &more), GCX_ERROR_ALREADY_ACQUIRED);
            CHECK_OK(gcx_reservation_join(token_of(reservation).c_str(), &more));
            in_child("a child", [] { CHECK_EQ(held_sms(listed()), 24U); });
            CHECK(is_open(opened.at(0)));
            release(more);
            CHECK_EQ(held_sms(listed()), 24U);
            release(reservation);
            CHECK(listed().empty());
            CHECK(is_open(opened.at(0)));
        });
    }
    CHECK_EQ(fs::file_size(others_file), 0U);
    remove_dead_files();
    CHECK(folder.files().empty());
}

// A waiting program does not write to another file that has its descriptor's number.
void descriptors_closed_while_waiting_foreign_file_is_untouched() {
    const Folder folder;
    const fs::path others_file = folder.path() / "others";
    on_machine(kH100, [&] {
        gcx_reservation all = reserve(132);
        std::thread waiter([] {
            // The second, if a file of another reservation was open at that moment.
            const gcx_result result = try_reserve(8, {.timeout_ms = 20'000});
            CHECK(result == GCX_ERROR_OPERATING_SYSTEM || result == GCX_ERROR_CORRUPT_FILE);
        });
        while (listed().size() != 2)
            std::this_thread::yield();
        // The waiting thread may briefly have the folder and other files open too.
        put_in_their_place(folder, others_file);
        release(all);
        waiter.join();
        CHECK(listed().empty());
        release(reserve(132));
    });
    CHECK_EQ(fs::file_size(others_file), 0U);
    CHECK(folder.files().empty());
}

// Other processes don't see a reservation whose folder was replaced.
void folder_replaced_reservation_is_lost(const Folder& folder) {
    const gcx_reservation reservation = reserve(24);
    CHECK_EQ(info_of(reservation).lost, 0);
    fs::rename(folder.inner(), folder.path() / "elsewhere");
    CHECK_EQ(info_of(reservation).lost, 1);
    CHECK_EQ(mkdir(folder.inner().c_str(), 0700), 0);
    release(reserve(132));
    fs::remove_all(folder.inner());
    fs::rename(folder.path() / "elsewhere", folder.inner());
    CHECK_EQ(info_of(reservation).lost, 0);
    release(reservation);
}

} // namespace

int main() {
    leaves_no_file(program_without_standard_streams_keeps_files_apart);
    descriptors_closed_reservation_stays();
    descriptors_closed_while_waiting_foreign_file_is_untouched();
    leaves_no_file(folder_replaced_reservation_is_lost);
    return check::summary("reservation descriptors");
}
