// The files of reservations: invalid files, unusable folders, exhausted resources, and descriptors
// that the program closes or never had.
#include "reservations.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>

using namespace reservations;
using namespace support;
using publish::bytes_of;
using publish::Folder;
using publish::Other;
using publish::OwnedFile;
namespace fs = std::filesystem;

namespace {

constexpr const char* kH100 = "h100@13.0";

// Returns an unused name of a file of device 0.
std::string free_name(const std::string& token) {
    std::string name = fs::path(token).filename();
    name.replace(name.size() - 16, 16, "0123456789abcdef");
    return name;
}

// Checks that no SMs are reserved next to an invalid file with an owner, and that lists skip it.
void check_refused_as_invalid(const fs::path& path, const std::string& bytes,
                              const std::string& why) {
    const OwnedFile owned(path, bytes);
    gcx_reservation reservation = nullptr;
    publish::warnings.clear();
    CHECK_EQ(listed().size(), 1U);
    CHECK(publish::warned(why));
    CHECK_EQ(try_reserve(8, {}, &reservation), GCX_ERROR_CORRUPT_FILE);
    CHECK(message_has(path.filename()));
    CHECK(message_has(why));
    CHECK_EQ(gcx_reservation_join(path.c_str(), &reservation), GCX_ERROR_CORRUPT_FILE);
}

void invalid_files_are_skipped_or_refused(const Folder& folder) {
    CHECK_OK(gcx_log_set_callback(GCX_LOG_WARNING, publish::note_warning, nullptr));
    const gcx_reservation own = reserve(24);
    const std::string token = token_of(own);
    const std::string right = bytes_of(token);
    const fs::path path = folder.inner() / free_name(token);
    check_refused_as_invalid(path, right, "it was renamed or copied");
    check_refused_as_invalid(path, "", "it has less");
    check_refused_as_invalid(path, right + "x", "it has more");
    check_refused_as_invalid(path, std::string(right.size(), '\0'), "it is no reservation of gcx");
    std::string damaged = right;
    damaged[200] ^= 1;
    check_refused_as_invalid(path, damaged, "checksum mismatch");
    damaged = right;
    damaged[16] = 9;
    check_refused_as_invalid(path, damaged, "its layout is 9");
    // Entries that can't be reservations are ignored.
    CHECK_EQ(mkfifo(path.c_str(), 0600), 0);
    release(reserve(8));
    unlink(path.c_str());
    CHECK_EQ(symlink("/etc/passwd", path.c_str()), 0);
    release(reserve(8));
    unlink(path.c_str());
    CHECK_EQ(mkdir(path.c_str(), 0700), 0);
    release(reserve(8));
    rmdir(path.c_str());
    // Files without an owner are removed, whatever their content.
    std::ofstream(path) << right;
    std::ofstream(folder.inner() / "reservation-0") << "no name of a reservation, and left alone";
    release(reserve(8));
    CHECK(!fs::exists(path));
    CHECK(fs::exists(folder.inner() / "reservation-0"));
    fs::remove(folder.inner() / "reservation-0");
    // The owner sees that its file was removed.
    CHECK_EQ(info_of(own).lost, 0);
    fs::remove(token);
    CHECK_EQ(info_of(own).lost, 1);
    release(own);
}

// Waiting requests report invalid files too.
void waiter_reports_invalid_files(const Folder& folder) {
    const gcx_reservation all = reserve(GCX_REST);
    std::string token = token_of(all);
    for (const bool removed : {false, true}) {
        std::thread waiter([removed] {
            gcx_reservation reservation = nullptr;
            const gcx_result result = try_reserve(8, {.timeout_ms = 20'000}, &reservation);
            // Before the removal the file is a corrupt one, which the waiter can see first.
            if (result != GCX_ERROR_CORRUPT_FILE || !removed)
                CHECK_EQ(result, removed ? GCX_ERROR_OPERATING_SYSTEM : GCX_ERROR_CORRUPT_FILE);
        });
        until_listed(2);
        const OwnedFile owned(folder.inner() / free_name(token), removed ? bytes_of(token) : "");
        if (removed) {
            for (const fs::path& file : folder.files())
                fs::remove(file);
        }
        waiter.join();
    }
    release(all);
}

void refused(const char* path, gcx_result expected, const char* why) {
    CHECK_EQ(try_reserve(8, {.folder = path}), expected);
    CHECK(message_has(why));
    uint32_t count = 0;
    CHECK_EQ(gcx_reservation_list(path, nullptr, 0, &count), expected);
}

void unusable_folder_is_refused(const Folder& folder) {
    const std::string path = folder.path() / "group";
    refused(path.c_str(), GCX_ERROR_OPERATING_SYSTEM, "can't open the folder");
    fs::create_directory(path);
    struct Mode {
        mode_t mode;
        const char* why; // null: good
    };
    const Mode modes[] = {{0700, nullptr},      {02770, nullptr},
                          {03770, nullptr},     {0755, "all users can enter"},
                          {02777, "all users"}, {0770, "2770 or 3770"},
                          {0750, "2770"},       {02750, "2770"}};
    for (const auto& [mode, why] : modes) {
        CHECK_EQ(chmod(path.c_str(), mode), 0);
        if (why != nullptr) {
            refused(path.c_str(), GCX_ERROR_UNSAFE_FOLDER, why);
            continue;
        }
        const gcx_reservation reservation = reserve(24, {.folder = path.c_str()});
        struct stat info{};
        CHECK_EQ(stat(token_of(reservation).c_str(), &info), 0);
        CHECK_EQ(info.st_mode & 07777, mode == 0700 ? 01600U : 01640U);
        CHECK_EQ(listed(path.c_str()).size(), 1U);
        CHECK(listed().empty()); // another folder, another agreement
        setenv("GCX_RESERVATION_DIR", (path + "//").c_str(), 1);
        CHECK_EQ(listed().size(), 1U);
        release(reserve(108));
        setenv("GCX_RESERVATION_DIR", folder.inner().c_str(), 1);
        release(reservation);
        CHECK(fs::is_empty(path));
    }
    CHECK_EQ(chmod(path.c_str(), 0700), 0);
    const std::string link = folder.path() / "link";
    fs::create_directory_symlink(path, link);
    release(reserve(8, {.folder = link.c_str()}));
    refused("/etc/passwd", GCX_ERROR_OPERATING_SYSTEM, "can't open the folder");
    if (geteuid() == 0) { // another user's
        CHECK_EQ(chmod(path.c_str(), 0700), 0);
        CHECK_EQ(chown(path.c_str(), 4711, 4711), 0);
        refused(path.c_str(), GCX_ERROR_UNSAFE_FOLDER, "is private to user 4711");
        CHECK_EQ(chmod(path.c_str(), 02770), 0);
        CHECK_EQ(chmod(folder.path().c_str(), 0755), 0);
        Other stranger([&](Other&) {
            CHECK_EQ(setgid(4712), 0);
            CHECK_EQ(setuid(4712), 0);
            uint32_t count = 0;
            CHECK_EQ(gcx_reservation_list(path.c_str(), nullptr, 0, &count),
                     GCX_ERROR_OPERATING_SYSTEM);
            CHECK(message_has("Permission denied"));
        });
        stranger.ended();
    }
}

// In a group's folder, all members see each other's reservations.
void group_members_respect_each_other() {
    if (geteuid() != 0)
        return;
    const GroupFolder folder;
    Other first([](Other& self) {
        GroupFolder::become(1001);
        reserve(24);
        self.point();
    });
    first.arrived();
    Other second([](Other& self) {
        GroupFolder::become(1002);
        const auto found = listed();
        CHECK_EQ(found.size(), 1U);
        CHECK_EQ(found.at(0).user, 1001U);
        const gcx_reservation rest = reserve(GCX_REST);
        CHECK_EQ(info_of(rest).sm_count, 108U);
        CHECK_EQ(try_reserve(8), GCX_ERROR_ALREADY_ACQUIRED);
        self.point(); // until the first one was killed
        // In a folder with the sticky bit, dead files of others can't be removed. They reserve
        // nothing.
        CHECK_OK(try_reserve(24));
        release(rest);
        CHECK(listed().empty());
    });
    second.arrived();
    first.kill(SIGKILL);
    second.next();
    second.ended();
    CHECK_EQ(folder.files().size(), 2U); // the file and its mark
    CHECK(listed().empty());
    remove_dead_files(); // as root, who may remove both
    CHECK(folder.files().empty());
}

// The number of a process in another PID namespace may be that of any process here.
void owner_in_another_pid_namespace_is_not_named() {
    if (geteuid() != 0)
        return;
    const GroupFolder folder;
    for (const bool apart : {false, true}) {
        Other first([&](Other&) {
            if (apart)
                CHECK_EQ(unshare(CLONE_NEWPID), 0);
            Other second([&](Other& inner) {
                GroupFolder::become(1001);
                CHECK_EQ(getpid() == 1, apart);
                reserve(24);
                inner.point();
            });
            second.arrived();
            in_child("a member", [&] {
                // The parent has the process id 1 in the new namespace, which is that of init here.
                GroupFolder::become(1002);
                const auto found = listed();
                CHECK_EQ(found.size(), 1U);
                CHECK_EQ(found.at(0).pid, apart ? 0 : second.pid());
                CHECK_EQ(try_reserve(132), GCX_ERROR_ALREADY_ACQUIRED);
                CHECK_EQ(message_has("a process that isn't visible here"), apart);
            });
            second.kill(SIGKILL);
            // Without the leak sanitizer, whose own process would be in the new namespace.
            _exit(check::failed == 0 ? 0 : 1);
        });
        first.ended();
    }
    remove_dead_files(); // as root, who may
}

// Returns the record of a file with other values, as if gcx wrote it.
std::string forged_record(std::string bytes, uint64_t id, uint64_t ticket, uint64_t parent) {
    constexpr std::size_t kChecksum = 8;
    constexpr std::size_t kCovered = 16;
    constexpr std::size_t kId = 24;
    constexpr std::size_t kTicket = 32;
    constexpr std::size_t kParent = 440;
    std::memcpy(bytes.data() + kId, &id, sizeof id);
    std::memcpy(bytes.data() + kTicket, &ticket, sizeof ticket);
    std::memcpy(bytes.data() + kParent, &parent, sizeof parent);
    uint64_t sum = 0xcbf29ce484222325;
    for (const char byte : bytes.substr(kCovered))
        sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    std::memcpy(bytes.data() + kChecksum, &sum, sizeof sum);
    return bytes;
}

// After the last ticket the queue has no order, but all requests are served.
void forged_last_ticket_all_are_served(const Folder& folder) {
    const gcx_reservation source = reserve(24);
    const fs::path path = folder.inner() / free_name(token_of(source));
    const std::string bytes =
        forged_record(bytes_of(token_of(source)), 0x0123456789abcdef, UINT64_MAX, 0);
    release(source);
    {
        const OwnedFile forged(path, bytes);
        const gcx_reservation rest = reserve(GCX_REST);
        CHECK_EQ(info_of(rest).sm_count, 108U);
        std::vector<std::thread> waiters;
        for (int i = 0; i < 4; i++)
            waiters.emplace_back([] { release(reserve(64, {.timeout_ms = 60'000})); });
        until_listed(6);
        release(rest);
        for (std::thread& waiter : waiters)
            waiter.join();
        CHECK_EQ(listed().size(), 1U);
    }
    release(reserve(132));
}

// Each is a part of the next, and the last of the first.
void forged_cycle_of_parts_counts_as_others(const Folder& /*folder*/) {
    const gcx_reservation source = reserve(24);
    const std::string token = token_of(source);
    const std::string bytes = bytes_of(token);
    release(source);
    constexpr uint64_t kCount = 100; // more than are followed
    std::vector<std::unique_ptr<OwnedFile>> forged;
    for (uint64_t id = 1; id <= kCount; id++) {
        char digits[17];
        std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(id));
        const std::string path = token.substr(0, token.size() - 16) + digits;
        forged.push_back(
            std::make_unique<OwnedFile>(path, forged_record(bytes, id, 1, id % kCount + 1)));
    }
    const gcx_reservation rest = reserve(GCX_REST);
    CHECK_EQ(info_of(rest).sm_count, 108U);
    release(rest);
}

// A file that can't be read may be a live reservation. The others can't remove it, nor see whether
// its process has ended.
void unreadable_file_of_a_member_is_refused() {
    if (geteuid() != 0)
        return;
    const GroupFolder folder;
    Other first([&](Other&) {
        GroupFolder::become(1001);
        const gcx_reservation reservation = reserve(24);
        CHECK_EQ(chmod(token_of(reservation).c_str(), 0), 0);
        _exit(check::failed == 0 ? 0 : 1);
    });
    first.ended();
    Other second([](Other&) {
        GroupFolder::become(1002);
        CHECK_EQ(try_reserve(8), GCX_ERROR_CORRUPT_FILE);
        CHECK(message_has("it can't be opened: Permission denied"));
        CHECK(listed().empty());
    });
    second.ended();
    remove_dead_files(); // as root, who may
    CHECK(folder.files().empty());
}

// Returns whether this process got a mount namespace.
bool enter_mount_namespace() {
    return unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

bool mount_disk(const fs::path& path) {
    return mount("none", path.c_str(), "tmpfs", 0, "size=64k,nr_inodes=8,mode=700") == 0;
}

void resource_exhausted_is_reported() {
    const Folder folder;
    on_machine(kH100, [&] {
        const gcx_reservation own = reserve(8);
        gcx_reservation reservation = nullptr;
        // No descriptors are left, or files are limited in size.
        rlimit before{};
        CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
        int last = 0;
        for (int open = 1; open != 0; open--) {
            last = dup(0);
            close(last);
        }
        for (int room = 0; room < 4; room++) {
            const rlimit few{static_cast<rlim_t>(last + room), before.rlim_max};
            CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
            const gcx_result result = try_reserve(8, {}, &reservation);
            CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
            CHECK(result == GCX_SUCCESS || result == GCX_ERROR_OPERATING_SYSTEM);
            if (result == GCX_SUCCESS)
                release(reservation);
            else
                CHECK(message_has("Too many open files") && !message_has("remove the file"));
        }
        CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
        const rlimit small{100, before.rlim_max};
        CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
        CHECK_EQ(try_reserve(8, {}, &reservation), GCX_ERROR_OPERATING_SYSTEM);
        CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
        release(own);
        CHECK(listed().empty());
        remove_dead_files();
        CHECK(folder.files().empty());
    });
    // A full disk and a read-only one, if this user may mount them.
    in_child("disks", [&] {
        if (!enter_mount_namespace() || !mount_disk(folder.inner()))
            return;
        publish::open_machine(kH100);
        const gcx_reservation own = reserve(8);
        std::ofstream filler(folder.inner() / "filler");
        filler << std::string(64 << 10, 'x') << std::flush;
        CHECK_EQ(try_reserve(8), GCX_ERROR_OPERATING_SYSTEM);
        CHECK(message_has("can't make a file"));
        CHECK_EQ(listed().size(), 1U);
        CHECK_EQ(mount("none", folder.inner().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr),
                 filler.is_open() ? -1 : 0); // a file is open for writing
        filler.close();
        fs::remove(folder.inner() / "filler");
        release(own);
        CHECK_EQ(mount("none", folder.inner().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr),
                 0);
        CHECK_EQ(try_reserve(8), GCX_ERROR_OPERATING_SYSTEM);
        CHECK(listed().empty());
    });
}

// Programs start without standard streams, or close all descriptors, as daemons do.

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
        until_listed(2);
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

// Monitors may see the folder in a read-only mount, where they can't remove dead files.
void folder_read_only_list_has_only_live_reservations() {
    const Folder folder;
    in_child("a read-only mount", [&] {
        const std::string view = folder.path() / "view";
        fs::create_directory(view);
        if (!enter_mount_namespace() ||
            mount(folder.inner().c_str(), view.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
            mount("none", view.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) != 0)
            return;
        Other dead([](Other& self) {
            publish::open_machine(kH100);
            reserve(24);
            reserve(24, {.flags = GCX_RESERVATION_INHERIT});
            self.point();
        });
        dead.arrived();
        publish::open_machine(kH100);
        const gcx_reservation own = reserve(8);
        dead.kill(SIGKILL);
        CHECK_EQ(held_sms(listed(view.c_str())), 8U);
        CHECK_EQ(folder.files().size(), 3U);
        CHECK_EQ(try_reserve(8, {.folder = view.c_str()}), GCX_ERROR_OPERATING_SYSTEM);
        CHECK_EQ(held_sms(listed()), 8U);
        CHECK_EQ(folder.files().size(), 2U);
        release(own);
        release(reserve(132));
    });
    CHECK(folder.files().empty());
}

int count_open(const fs::path& path) {
    int count = 0;
    for (int number = 3; number < 1024; number++) {
        std::error_code error;
        count +=
            fs::read_symlink(fs::path("/proc/self/fd") / std::to_string(number), error) == path;
    }
    return count;
}

// A request that waited for the lock of the folder that was here before must not go on there.
void check_refused_after(const fs::path& path, const std::function<void()>& replace) {
    const int lock = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(flock(lock, LOCK_EX), 0);
    std::thread waiter([] {
        CHECK_EQ(try_reserve(8, {.timeout_ms = 20'000}), GCX_ERROR_OPERATING_SYSTEM);
        CHECK(message_has("was just removed or replaced"));
    });
    while (count_open(path) != 2)
        std::this_thread::yield();
    replace();
    close(lock);
    waiter.join();
}

void folder_replaced_while_locked_is_refused() {
    const Folder folder;
    on_machine(kH100, [&] {
        check_refused_after(folder.inner(), [&] {
            fs::rename(folder.inner(), folder.path() / "elsewhere");
            CHECK_EQ(mkdir(folder.inner().c_str(), 0700), 0);
        });
    });
    // Another disk, whose root has the same inode number.
    in_child("disks", [&] {
        if (!enter_mount_namespace() || !mount_disk(folder.inner()))
            return;
        publish::open_machine(kH100);
        check_refused_after(folder.inner(), [&] { CHECK(mount_disk(folder.inner())); });
    });
    CHECK(folder.files().empty());
}

} // namespace

int main() {
    leaves_no_file(invalid_files_are_skipped_or_refused);
    leaves_no_file(waiter_reports_invalid_files);
    leaves_no_file(unusable_folder_is_refused);
    group_members_respect_each_other();
    owner_in_another_pid_namespace_is_not_named();
    unreadable_file_of_a_member_is_refused();
    leaves_no_file(forged_last_ticket_all_are_served);
    leaves_no_file(forged_cycle_of_parts_counts_as_others);
    resource_exhausted_is_reported();
    leaves_no_file(program_without_standard_streams_keeps_files_apart);
    descriptors_closed_reservation_stays();
    descriptors_closed_while_waiting_foreign_file_is_untouched();
    leaves_no_file(folder_replaced_reservation_is_lost);
    folder_replaced_while_locked_is_refused();
    folder_read_only_list_has_only_live_reservations();
    return check::summary("reservation files");
}
