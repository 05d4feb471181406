// Reservations and descriptors: of programs that began without their standard ones, and of those
// that close all they find, as daemons do.
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

// What the program prints must not come into a reservation's file.
void test_standard_ones() {
    const Folder folder;
    on_machine(kH100, [] {
        close(STDIN_FILENO);
        for (const uint32_t flags : {0U, GCX_RESERVATION_INHERIT}) {
            const gcx_reservation reservation = taken(24, {.flags = flags});
            CHECK(!is_open(STDIN_FILENO));
            give_back(reservation);
        }
    });
}

// Closes what is open below the folder, and opens the file as often instead.
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
        // Not by the C library's function: the thread sanitizer knows that no program should.
        CHECK_EQ(syscall(SYS_dup3, other, number, O_CLOEXEC), number);
        close(other);
        opened.push_back(number);
    }
    return opened;
}

// A program that closes the descriptors, or has others under their numbers, keeps its reservations.
void test_closed_ones() {
    const Folder folder;
    const fs::path others_file = folder.path() / "others";
    for (const uint32_t flags : {0U, GCX_RESERVATION_INHERIT}) {
        on_machine(kH100, [&] {
            const gcx_reservation reservation = taken(24, {.flags = flags});
            const auto opened = put_in_their_place(folder, others_file);
            CHECK_EQ(opened.size(), 1U);
            CHECK_EQ(held_sms(listed()), 24U);
            CHECK_EQ(info_of(reservation).lost, 0);
            gcx_reservation more = nullptr;
            CHECK_REFUSED(take(112, {}, &more), GCX_ERROR_ALREADY_ACQUIRED);
            CHECK_OK(gcx_reservation_join(token_of(reservation).c_str(), &more));
            in_child("a child", [] { CHECK_EQ(held_sms(listed()), 24U); });
            CHECK(is_open(opened.at(0)));
            give_back(more);
            CHECK_EQ(held_sms(listed()), 24U);
            give_back(reservation);
            CHECK(listed().empty());
            CHECK(is_open(opened.at(0)));
        });
    }
    CHECK_EQ(fs::file_size(others_file), 0U);
    CHECK(folder.files().empty());
}

// Nor does one that waits write into a file that isn't its own.
void test_closed_while_waiting() {
    const Folder folder;
    const fs::path others_file = folder.path() / "others";
    on_machine(kH100, [&] {
        gcx_reservation all = taken(132);
        std::thread waiter([] {
            gcx_reservation reservation = nullptr;
            CHECK_EQ(take(8, {.timeout_ms = 20'000}, &reservation), GCX_ERROR_OPERATING_SYSTEM);
        });
        while (listed().size() != 2)
            std::this_thread::yield();
        // The waiter may have the folder and others' files open for a moment besides.
        put_in_their_place(folder, others_file);
        give_back(all);
        waiter.join();
        CHECK(listed().empty());
        give_back(taken(132));
    });
    CHECK_EQ(fs::file_size(others_file), 0U);
    CHECK(folder.files().empty());
}

// Others who take theirs by the same path don't see the reservation any more.
void test_lost_ones() {
    const Folder folder;
    on_machine(kH100, [&] {
        const gcx_reservation reservation = taken(24);
        CHECK_EQ(info_of(reservation).lost, 0);
        fs::rename(folder.inner(), folder.path() / "elsewhere");
        CHECK_EQ(info_of(reservation).lost, 1);
        CHECK_EQ(mkdir(folder.inner().c_str(), 0700), 0);
        give_back(taken(132));
        fs::remove_all(folder.inner());
        fs::rename(folder.path() / "elsewhere", folder.inner());
        CHECK_EQ(info_of(reservation).lost, 0);
        give_back(reservation);
    });
    CHECK(folder.files().empty());
}

} // namespace

int main() {
    test_standard_ones();
    test_closed_ones();
    test_closed_while_waiting();
    test_lost_ones();
    return check::summary("reservation descriptors");
}
