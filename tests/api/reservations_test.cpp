// Reservations: acquiring, joining and releasing them, also across forks and killed owners; waits
// that end at their timeout, even if another process has the folder locked, and by
// gcx_cancel_signal, even if the SMs become free at the same time.
#include "leases.hpp"
#include "reservations.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>

using namespace reservations;
using namespace support;
using publish::Folder;
using publish::Other;

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr const char* kH100 = "h100@13.0";

void device_reservations_are_disjoint(const std::string& spec) {
    const Folder folder;
    on_machine(spec, [] {
        const uint32_t all = sms(whole_device());
        const gcx_reservation small = reserve(8, {.name = "small"});
        const gcx_reservation_info info = info_of(small);
        CHECK(info.sm_count >= 8);
        CHECK_EQ(info.device_sm_count, all);
        CHECK_EQ(info.family, GCX_SM_FAMILY_COSCHEDULED);
        CHECK_EQ(info.joined + info.lost, 0);
        CHECK_EQ(info.simulated, 1);
        CHECK_EQ(info.mps, GCX_MPS_OFF);
        CHECK_EQ(std::string(info.name), "small");
        // The atoms are those of a split, so that processes with the same split agree on them.
        gcx_resource resource{};
        CHECK_OK(gcx_reservation_get_resource(small, &resource));
        CHECK_EQ(sms(resource), info.sm_count);
        CHECK_EQ(overlap(resource, split(whole_device(), {8}).groups[0]), info.sm_count);
        const gcx_reservation rest = reserve(GCX_REST);
        gcx_resource other{};
        CHECK_OK(gcx_reservation_get_resource(rest, &other));
        CHECK_EQ(overlap(resource, other), 0U);
        CHECK_EQ(sms(other), all - info.sm_count);
        gcx_reservation more = nullptr;
        CHECK_REFUSED(try_reserve(8, {}, &more), GCX_ERROR_ALREADY_ACQUIRED);
        CHECK(message_has("\"small\" of process "));
        CHECK_REFUSED(try_reserve(all + 1, {}, &more), GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        CHECK(more == nullptr);
        const auto found = listed();
        CHECK_EQ(found.size(), 2U);
        CHECK_EQ(held_sms(found), all);
        CHECK_EQ(found[0].pid, getpid());
        CHECK_EQ(found[0].user, geteuid());
        release(small);
        CHECK_REFUSED(gcx_reservation_release(small), GCX_ERROR_INVALID_HANDLE);
        CHECK_OK(try_reserve(8));
        release(rest);
        CHECK(listed().empty());
    });
    CHECK(folder.files().empty());
}

// The order is that of acquisition, even within one millisecond and after a wait.
// Another user of a group's folder chooses the name.
void name_with_control_characters_is_escaped_in_messages(const Folder& /*folder*/) {
    const gcx_reservation whole = reserve(GCX_REST, {.name = "a\n\x1b[2J\x7f\xc2\x9b\xc3\xa4"});
    CHECK_REFUSED(try_reserve(8), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK(message_has("\"a\\x0a\\x1b[2J\\x7f\\xc2\\x9b\xc3\xa4\" of process "));
    release(whole);
}

void list_order_is_order_of_acquisition(const Folder& /*folder*/) {
    const std::vector<std::string> names = {"i", "h", "g", "f", "e", "d", "c", "b"};
    std::vector<gcx_reservation> all;
    for (const std::string& name : names)
        all.push_back(reserve(16, {.name = name.c_str()}));
    std::thread late([] { CHECK_OK(try_reserve(32, {.name = "a", .timeout_ms = GCX_FOREVER})); });
    until_listed(names.size() + 1);
    std::string order;
    for (const gcx_live_reservation& reservation : listed())
        order += reservation.name;
    CHECK_EQ(order, "ihgfedcba");
    for (const gcx_reservation reservation : all)
        release(reservation);
    late.join();
}

void invalid_arguments_are_refused(const Folder& /*folder*/) {
    gcx_reservation reservation = nullptr;
    const std::string long_text(64, 'x');
    CHECK_REFUSED(gcx_reservation_acquire(0, 8, nullptr, nullptr), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_reservation_acquire(1, 8, nullptr, &reservation), GCX_ERROR_INVALID_DEVICE);
    CHECK_REFUSED(gcx_reservation_acquire(0, 1025, nullptr, &reservation),
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK_REFUSED(gcx_reservation_acquire(0, 0, nullptr, &reservation), GCX_ERROR_INVALID_VALUE);
    CHECK(message_has("sm_count is 0; GCX_REST"));
    CHECK_REFUSED(try_reserve(0, {.min_sm_count = 1}, &reservation), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(try_reserve(8, {.min_sm_count = 16}, &reservation), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(try_reserve(8, {.flags = 2}, &reservation), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(try_reserve(8, {.name = long_text.c_str()}, &reservation),
                  GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(try_reserve(8, {.family = GCX_SM_FAMILY_STRUCTURED}, &reservation),
                  GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(try_reserve(8, {.cancel = forged<gcx_cancel>(1)}, &reservation),
                  GCX_ERROR_INVALID_HANDLE);
    CHECK_REFUSED(try_reserve(8, {.folder = ""}, &reservation), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(try_reserve(8, {.folder = "tmp"}, &reservation), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(try_reserve(8, {.folder = "/nonexistent"}, &reservation),
                  GCX_ERROR_OPERATING_SYSTEM);
    CHECK_REFUSED(
        try_reserve(8, {.folder = std::string(5000, '/').append("x").c_str()}, &reservation),
        GCX_ERROR_INVALID_VALUE);
    for (const char* token : {"", "x", "/", "/tmp/x", "reservation-0",
                              "/reservation-00000000000000000000000"
                              "000000000-000000000000000g"})
        CHECK_REFUSED(gcx_reservation_join(token, &reservation), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_reservation_join(nullptr, &reservation), GCX_ERROR_INVALID_VALUE);
    CHECK(reservation == nullptr);
    reservation = reserve(8);
    char token[8] = "";
    CHECK_REFUSED(gcx_reservation_get_token(reservation, token, sizeof token),
                  GCX_ERROR_INSUFFICIENT_CAPACITY);
    CHECK_REFUSED(gcx_reservation_get_token(reservation, nullptr, 8), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_reservation_join(std::string(9000, 'x').c_str(), &reservation),
                  GCX_ERROR_INVALID_VALUE);
    gcx_reservation_info info{};
    CHECK_REFUSED(gcx_reservation_get_info(reservation, &info), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_reservation_get_resource(reservation, nullptr), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_reservation_release(nullptr), GCX_ERROR_INVALID_HANDLE);
    CHECK_REFUSED(gcx_reservation_release(handle_cast<gcx_reservation>(whole_device)),
                  GCX_ERROR_INVALID_HANDLE);
    uint32_t count = 7;
    CHECK_REFUSED(gcx_reservation_list(nullptr, nullptr, 0, &count),
                  GCX_ERROR_INSUFFICIENT_CAPACITY);
    CHECK_EQ(count, 1U);
    CHECK_REFUSED(gcx_reservation_list(nullptr, nullptr, 1, &count), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_reservation_list(nullptr, nullptr, 0, nullptr), GCX_ERROR_INVALID_VALUE);
    release(reservation);
    CHECK_OK(gcx_reservation_list(nullptr, nullptr, 0, &count));
    CHECK_EQ(count, 0U);
}

// One process is killed or releases its reservation while another one waits.
void owner_killed_or_released_waiter_is_served() {
    const Folder folder;
    for (const bool killed : {false, true}) {
        Other other([](Other& self) {
            publish::open_machine(kH100);
            const gcx_reservation big = reserve(108, {.name = "big"});
            self.point();
            release(big);
            self.point();
        });
        other.arrived();
        on_machine(kH100, [&] {
            const gcx_reservation small = reserve(24, {.name = "small"});
            gcx_reservation more = nullptr;
            CHECK_REFUSED(try_reserve(16, {}, &more), GCX_ERROR_ALREADY_ACQUIRED);
            CHECK(message_has("\"big\" of process "));
            CHECK_REFUSED(try_reserve(16, {.timeout_ms = 30}, &more), GCX_ERROR_TIMEOUT);
            CHECK(message_has("timed out after 30 ms"));
            std::thread later([&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(30));
                killed ? void(::kill(other.pid(), SIGKILL)) : other.next();
            });
            CHECK_OK(try_reserve(16, {.timeout_ms = 20'000}, &more));
            later.join();
            CHECK_EQ(held_sms(listed()), 40U);
            release(more);
            release(small);
        });
        killed ? other.kill(SIGKILL) : (other.arrived(), other.next(), other.ended());
        CHECK(listed().empty());
        CHECK(folder.files().empty());
    }
}

// The order of waiting requests. Threads behave like processes here, since each polls by itself.
void waiters_are_served_in_order(const Folder& /*folder*/) {
    const gcx_reservation all = reserve(GCX_REST);
    std::vector<int> served;
    std::mutex mutex;
    std::vector<std::thread> threads;
    for (int i = 0; i < 5; i++) {
        threads.emplace_back([&, i] {
            gcx_reservation reservation = nullptr;
            // The second request is the last to fit, and is still served second.
            CHECK_OK(try_reserve(i == 1 ? 132 : 64, {.timeout_ms = GCX_FOREVER}, &reservation));
            {
                const std::lock_guard lock(mutex);
                served.push_back(i);
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            release(reservation);
        });
        until_listed(static_cast<std::size_t>(i) + 2);
    }
    const auto found = listed();
    CHECK_EQ(found[2].waits, 1U);
    CHECK_EQ(found[2].sm_count, 132U);
    release(all);
    for (std::thread& thread : threads)
        thread.join();
    CHECK_EQ(served.size(), 5U);
    CHECK(served[0] == 0 && served[1] == 1);
    CHECK(listed().empty());
}

// Stops the process between two changes: in the middle of one it would block all others.
void stop_between_changes(pid_t process, const Folder& folder) {
    const int lock = open(folder.inner().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(flock(lock, LOCK_EX), 0);
    ::kill(process, SIGSTOP);
    const auto is_stopped = [process] {
        std::ifstream file("/proc/" + std::to_string(process) + "/stat");
        const std::string stat{std::istreambuf_iterator<char>(file), {}};
        return stat.find(") T ") != std::string::npos;
    };
    for (int tries = 0; tries < 10'000 && !is_stopped(); tries++)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(is_stopped());
    close(lock);
}

void waiter_killed_is_skipped() {
    const Folder folder;
    Other waiter([](Other& self) {
        publish::open_machine(kH100);
        self.point();
        gcx_reservation reservation = nullptr;
        try_reserve(132, {.timeout_ms = GCX_FOREVER}, &reservation);
    });
    waiter.arrived();
    on_machine(kH100, [&] {
        const gcx_reservation most = reserve(72);
        waiter.next();
        until_listed(2);
        CHECK_REFUSED(try_reserve(8), GCX_ERROR_ALREADY_ACQUIRED);
        stop_between_changes(waiter.pid(), folder);
        CHECK_REFUSED(try_reserve(8, {.timeout_ms = 30}), GCX_ERROR_TIMEOUT);
        ::kill(waiter.pid(), SIGKILL);
        CHECK_OK(try_reserve(8, {.timeout_ms = 10'000}));
        release(most);
    });
    waiter.kill(SIGKILL);
    CHECK(listed().empty());
    CHECK(folder.files().empty());
}

// The file is gone, so that no list shows what the others wait for.
void waiter_without_its_file_is_skipped() {
    const Folder folder;
    Other waiter([](Other& self) {
        publish::open_machine(kH100);
        self.point();
        CHECK_EQ(try_reserve(132, {.timeout_ms = GCX_FOREVER}), GCX_ERROR_OPERATING_SYSTEM);
        CHECK(message_has("the file of this wait was removed"));
    });
    waiter.arrived();
    on_machine(kH100, [&] {
        const gcx_reservation most = reserve(72);
        waiter.next();
        until_listed(2);
        const auto files = folder.files();
        CHECK_EQ(files.size(), 2U);
        stop_between_changes(waiter.pid(), folder);
        std::thread second([] { CHECK_OK(try_reserve(8, {.timeout_ms = 10'000})); });
        until_listed(3);
        std::this_thread::sleep_for(100ms); // until it waits for the first one
        std::filesystem::remove(files[files.at(0) == token_of(most) ? 1 : 0]);
        second.join();
        ::kill(waiter.pid(), SIGCONT);
        release(most);
    });
    waiter.ended();
    CHECK(folder.files().empty());
}

void layout_in_a_reservation_has_its_sms(const Folder& /*folder*/) {
    const gcx_reservation reservation = reserve(64);
    gcx_resource reserved{};
    CHECK_OK(gcx_reservation_get_resource(reservation, &reserved));
    const gcx_lease lease = acquire(16, {.reservation = reservation});
    gcx_lease_size size = {lease, 40, 0};
    gcx_resource found{};
    gcx_resource remainder{};
    CHECK_OK(gcx_lease_get_layout(&size, 1, &found, &remainder));
    CHECK_EQ(overlap(found, reserved), 40U);
    CHECK_EQ(overlap(remainder, reserved), 24U);
    CHECK_EQ(sms(found) + sms(remainder), 64U);
    CHECK_EQ(overlap(found, remainder), 0U);
    size.sm_count = 72; // the device has as many, the reservation has not
    CHECK_REFUSED(gcx_lease_get_layout(&size, 1, &found, &remainder),
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    // A request that waits in the reservation is to get what is free there.
    gcx_cancel cancel = make_cancel();
    std::thread waiter([&] {
        gcx_lease none = nullptr;
        CHECK_EQ(try_acquire(
                     64, {.timeout_ms = GCX_FOREVER, .cancel = cancel, .reservation = reservation},
                     &none),
                 GCX_ERROR_CANCELLED);
    });
    while (live_leases().size() != 2)
        std::this_thread::yield();
    size.sm_count = 40;
    CHECK_REFUSED(gcx_lease_get_layout(&size, 1, &found, &remainder), GCX_ERROR_ALREADY_ACQUIRED);
    size.sm_count = 8;
    CHECK_OK(gcx_lease_get_layout(&size, 1, &found, &remainder));
    CHECK_OK(gcx_cancel_signal(cancel));
    waiter.join();
    CHECK_OK(gcx_cancel_destroy(cancel));
    CHECK_OK(gcx_lease_release(lease));
    release(reservation);
}

void wait_for_rest_is_listed_as_rest(const Folder& /*folder*/) {
    const gcx_reservation all = reserve(GCX_REST);
    CHECK_EQ(listed()[0].sm_count, 132U);
    gcx_reservation reservation = nullptr;
    std::thread waiter(
        [&] { CHECK_OK(try_reserve(GCX_REST, {.timeout_ms = GCX_FOREVER}, &reservation)); });
    until_listed(2);
    CHECK_EQ(listed()[1].sm_count, GCX_REST);
    release(all);
    waiter.join();
    CHECK_EQ(info_of(reservation).sm_count, 132U);
    release(reservation);
}

void joined_reservation_stays_until_last_owner(const Folder& /*folder*/) {
    gcx_reservation reservation = reserve(24, {.name = "shared"});
    const std::string token = token_of(reservation);
    Other joined([&](Other& self) { // of a process that has used gcx: it may join, and no more
        gcx_reservation inner = nullptr;
        CHECK_REFUSED(gcx_reservation_get_info(reservation, nullptr), GCX_ERROR_INVALID_VALUE);
        gcx_reservation_info info = GCX_RESERVATION_INFO_INIT;
        CHECK_REFUSED(gcx_reservation_get_info(reservation, &info), GCX_ERROR_INVALID_HANDLE);
        CHECK_OK(gcx_reservation_join(token.c_str(), &inner));
        CHECK_EQ(info_of(inner).joined, 1);
        CHECK_EQ(info_of(inner).sm_count, 24U);
        gcx_resource resource{};
        CHECK_REFUSED(gcx_reservation_get_resource(inner, &resource), GCX_ERROR_NOT_INITIALIZED);
        self.point();
        self.point();
    });
    joined.arrived();
    CHECK_EQ(listed().size(), 1U);
    release(reservation);
    // The other owner still has it.
    CHECK_EQ(held_sms(listed()), 24U);
    CHECK_OK(gcx_reservation_join(token.c_str(), &reservation));
    gcx_resource resource{};
    CHECK_OK(gcx_reservation_get_resource(reservation, &resource));
    CHECK_EQ(sms(resource), 24U);
    CHECK_EQ(token_of(reservation), token);
    joined.kill(SIGKILL);
    CHECK_EQ(held_sms(listed()), 24U);
    release(reservation);
    CHECK(listed().empty());
    CHECK_REFUSED(gcx_reservation_join(token.c_str(), &reservation), GCX_ERROR_NOT_FOUND);
}

// A child that was just forked and has not run yet keeps nothing owned.
void release_during_fork_frees_sms(const Folder& folder) {
    for (int round = 0; round < 50; round++) {
        const gcx_reservation reservation = reserve(24);
        const pid_t child = fork();
        if (child == 0)
            _exit(0);
        release(reservation);
        CHECK(listed().empty());
        CHECK(folder.files().empty());
        CHECK_EQ(waitpid(child, nullptr, 0), child);
    }
}

// A child of a fork, and a program that it starts, own the reservation only with
// GCX_RESERVATION_INHERIT.
void fork_inherits_only_if_requested() {
    const Folder folder;
    for (const uint32_t flags : {0U, GCX_RESERVATION_INHERIT}) {
        int report[2] = {-1, -1};
        CHECK_EQ(pipe(report), 0);
        Other holder([&](Other& self) {
            publish::open_machine(kH100);
            const gcx_reservation reservation = reserve(24, {.flags = flags});
            CHECK_EQ(info_of(reservation).flags, flags);
            for (const bool starts : {false, true}) {
                const pid_t child = fork();
                if (child == 0) {
                    if (starts)
                        execlp("sleep", "sleep", "100", nullptr);
                    pause();
                }
                CHECK_EQ(write(report[1], &child, sizeof child),
                         static_cast<ssize_t>(sizeof child));
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(50)); // until exec is done
            self.point();
        });
        pid_t children[2] = {};
        for (pid_t& child : children)
            CHECK_EQ(read(report[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
        holder.arrived();
        CHECK_EQ(held_sms(listed()), 24U);
        holder.kill(SIGKILL);
        // (qemu lets a child keep what it must not inherit, and the lock with that.)
        if (flags != 0 || !check::emulated)
            CHECK_EQ(held_sms(listed()), flags == 0 ? 0U : 24U);
        for (const pid_t child : children) {
            if (CHECK(child > 0))
                ::kill(child, SIGKILL);
        }
        for (int tries = 0; tries < 1000 && !listed().empty(); tries++)
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        CHECK(listed().empty());
        close(report[0]);
        close(report[1]);
    }
    remove_dead_files();
    CHECK(folder.files().empty());
}

// Waits until a process runs this program.
void await_program(pid_t pid, const std::string& program) {
    std::string name;
    for (int tries = 0; tries < 5000 && name != program; tries++) {
        std::ifstream("/proc/" + std::to_string(pid) + "/comm") >> name;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK_EQ(name, program);
}

// The first owner executes another program, forks a process that inherits the reservation, and
// ends.
void listed_process_first_owner_ended_is_another_owner() {
    const Folder folder;
    std::array<int, 2> pids{};
    CHECK_EQ(pipe(pids.data()), 0);
    const pid_t taker = fork();
    if (taker == 0) {
        publish::open_machine(kH100);
        reserve(24, {.name = "job", .flags = GCX_RESERVATION_INHERIT});
        const std::string report = "echo $$ >&" + std::to_string(pids[1]) +
                                   "; sleep 100 & echo $! >&" + std::to_string(pids[1]);
        execlp("sh", "sh", "-c", report.c_str(), nullptr);
        _exit(127);
    }
    close(pids[1]);
    FILE* const report = fdopen(pids[0], "r");
    pid_t shell = 0;
    pid_t heir = 0;
    CHECK_EQ(std::fscanf(report, "%d %d", &shell, &heir), 2);
    CHECK_EQ(shell, taker);
    CHECK_EQ(waitpid(taker, nullptr, 0), taker);
    await_program(heir, "sleep");
    const std::vector<gcx_live_reservation> found = listed();
    CHECK_EQ(found.size(), 1U);
    if (found.size() == 1) {
        CHECK_EQ(found[0].pid, heir);
        CHECK_EQ(std::string(found[0].process_name), "sleep");
        CHECK_EQ(std::string(found[0].name), "job");
    }
    on_machine(kH100, [heir] {
        CHECK_REFUSED(try_reserve(112), GCX_ERROR_ALREADY_ACQUIRED);
        CHECK(message_has("\"job\" of process " + std::to_string(heir) + " (sleep) has 24"));
    });
    kill(heir, SIGKILL);
    std::fclose(report);
    while (!listed().empty()) // the one that reaps it does so in its own time
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// The first owner releases the reservation, which another process joined, and goes on.
void listed_process_first_owner_released_is_another_owner() {
    const Folder folder;
    on_machine(kH100, [] {
        const gcx_reservation reservation = reserve(24, {.name = "job"});
        const std::string token = token_of(reservation);
        Other joined([&token](Other& self) {
            gcx_reservation inner = nullptr;
            CHECK_OK(gcx_reservation_join(token.c_str(), &inner));
            self.point();
        });
        joined.arrived();
        const auto found = listed();
        CHECK(found.size() == 1 && found[0].pid == getpid());
        release(reservation);
        const auto left = listed();
        CHECK(left.size() == 1 && left[0].pid == joined.pid());
        CHECK_REFUSED(try_reserve(112), GCX_ERROR_ALREADY_ACQUIRED);
        CHECK(message_has("\"job\" of process " + std::to_string(joined.pid()) + " "));
    });
    remove_dead_files();
}

// While the first owner exists, lists name it, with its current program.
void listed_process_after_exec_has_new_name() {
    const Folder folder;
    const pid_t taker = fork();
    if (taker == 0) {
        publish::open_machine(kH100);
        reserve(24, {.flags = GCX_RESERVATION_INHERIT});
        execlp("sleep", "sleep", "100", nullptr);
        _exit(127);
    }
    await_program(taker, "sleep");
    const std::vector<gcx_live_reservation> found = listed();
    CHECK_EQ(found.size(), 1U);
    if (found.size() == 1) {
        CHECK_EQ(found[0].pid, taker);
        CHECK_EQ(std::string(found[0].process_name), "sleep");
    }
    kill(taker, SIGKILL);
    CHECK_EQ(waitpid(taker, nullptr, 0), taker);
    CHECK(listed().empty());
}

// The longest duration of a wait of half a second on a busy machine.
constexpr auto kPatience = 4s;

// Locks the folder, like a process that was stopped in the middle of a change.
class Locked {
  public:
    explicit Locked(const Folder& folder)
        : file_(open(folder.inner().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
        CHECK_EQ(flock(file_, LOCK_EX), 0);
    }
    ~Locked() { close(file_); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

  private:
    int file_;
};

// A thread that keeps creating and removing a file in the folder, as publishing processes do.
class Publishing {
  public:
    explicit Publishing(const Folder& folder) : path_(folder.inner() / "published") {
        thread_ = std::thread([this] {
            while (!done_) {
                std::ofstream(path_) << "x";
                std::this_thread::sleep_for(20ms);
                unlink(path_.c_str());
            }
        });
    }
    ~Publishing() {
        done_ = true;
        thread_.join();
    }
    Publishing(const Publishing&) = delete;
    Publishing& operator=(const Publishing&) = delete;

  private:
    publish::fs::path path_;
    std::atomic<bool> done_{false};
    std::thread thread_;
};

// Checks that the body takes no longer than this.
template <class Body>
void within(Clock::duration most, const Body& body) {
    const auto begin = Clock::now();
    body();
    CHECK(Clock::now() - begin < most);
}

bool is_lock_refusal(gcx_result result) {
    return result == GCX_ERROR_TIMEOUT && message_has("locked for");
}

void folder_locked_acquire_returns_at_timeout(const Folder& folder) {
    const gcx_reservation own = reserve(8);
    const std::string token = token_of(own);
    gcx_reservation reservation = nullptr;
    {
        const Locked locked(folder);
        const Publishing publishing(folder);
        within(kPatience, [&] { CHECK(is_lock_refusal(try_reserve(8, {}, &reservation))); });
        within(kPatience,
               [&] { CHECK(is_lock_refusal(try_reserve(8, {.timeout_ms = 5}, &reservation))); });
        const auto begin = Clock::now();
        CHECK(is_lock_refusal(try_reserve(8, {.timeout_ms = 900}, &reservation)));
        CHECK(Clock::now() - begin >= 900ms);
        CHECK(Clock::now() - begin < 900ms + kPatience);
        within(5s + kPatience,
               [&] { CHECK(is_lock_refusal(gcx_reservation_join(token.c_str(), &reservation))); });
        within(kPatience, [&] { CHECK_EQ(listed().size(), 1U); });
        within(kPatience, [&] { release(own); });
        CHECK(listed().empty());
    }
    CHECK(reservation == nullptr);
    release(reserve(GCX_REST));
}

// A request waits for SMs when another process is stopped in the middle of a change.
void folder_locked_waiter_returns_at_timeout(const Folder& folder) {
    const gcx_reservation all = reserve(GCX_REST);
    std::thread waiter([&] {
        within(1s + kPatience,
               [&] { CHECK_EQ(try_reserve(8, {.timeout_ms = 1000}), GCX_ERROR_TIMEOUT); });
    });
    until_listed(2);
    {
        const Locked locked(folder);
        const Publishing publishing(folder);
        release(all); // which it can't learn of
        waiter.join();
    }
    CHECK(listed().empty());
    release(reserve(GCX_REST));
}

struct Waiter {
    gcx_cancel cancel = nullptr;
    gcx_reservation reservation = nullptr;
    gcx_result result = GCX_SUCCESS;
    std::thread thread;

    explicit Waiter(uint32_t sm_count = 8) {
        const std::size_t before = listed().size();
        CHECK_OK(gcx_cancel_create(&cancel));
        thread = std::thread([this, sm_count] {
            result = try_reserve(
                sm_count, {.name = "w", .timeout_ms = GCX_FOREVER, .cancel = cancel}, &reservation);
        });
        while (listed().size() == before)
            std::this_thread::yield();
    }
    void end() {
        thread.join();
        if (reservation != nullptr)
            release(reservation);
        CHECK_OK(gcx_cancel_destroy(cancel));
    }
};

void cancel_signalled_waiter_is_never_granted(const Folder& /*folder*/) {
    for (int round = 0; round < 40; round++) {
        const gcx_reservation all = reserve(GCX_REST);
        Waiter waiter;
        CHECK_OK(gcx_cancel_signal(waiter.cancel));
        CHECK_EQ(listed().size(), 1U); // it is out of the queue
        release(all);
        const gcx_reservation next = reserve(GCX_REST);
        CHECK_EQ(info_of(next).sm_count, 132U);
        waiter.end();
        CHECK_EQ(waiter.result, GCX_ERROR_CANCELLED);
        release(next);
    }
}

// When the signal returns, it is decided whether the request was granted, and the result agrees.
void cancel_signalled_as_sms_become_free_is_decided(const Folder& /*folder*/) {
    int granted = 0;
    for (int round = 0; round < 60; round++) {
        const gcx_reservation all = reserve(GCX_REST);
        Waiter waiter;
        std::thread giver([&] {
            release(all);
            std::this_thread::sleep_for(std::chrono::microseconds(round * 400));
        });
        std::this_thread::sleep_for(std::chrono::microseconds(round * 400));
        CHECK_OK(gcx_cancel_signal(waiter.cancel));
        bool has = false;
        for (const gcx_live_reservation& live : listed())
            has = has || (live.waits == 0 && std::string(live.name) == "w");
        giver.join();
        waiter.thread.join();
        CHECK_EQ(waiter.result, has ? GCX_SUCCESS : GCX_ERROR_CANCELLED);
        granted += has ? 1 : 0;
        if (waiter.reservation != nullptr)
            release(waiter.reservation);
        CHECK_OK(gcx_cancel_destroy(waiter.cancel));
    }
    CHECK(granted < 60);
}

void cancel_signalled_next_waiter_is_served(const Folder& /*folder*/) {
    const gcx_reservation most = reserve(72);
    Waiter first(132);
    CHECK_REFUSED(try_reserve(8), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK(message_has("1 waits, the first, \"w\" of process "));
    Waiter second(8);
    CHECK_OK(gcx_cancel_signal(first.cancel));
    second.thread.join(); // though nothing came free
    CHECK_EQ(second.result, GCX_SUCCESS);
    second.thread = std::thread([] {});
    second.end();
    first.end();
    CHECK_EQ(first.result, GCX_ERROR_CANCELLED);
    release(most);
}

// The signal does not wait for other processes.
void cancel_signalled_while_folder_locked_returns(const Folder& folder) {
    const gcx_reservation all = reserve(GCX_REST);
    Waiter waiter;
    {
        const Locked locked(folder);
        within(kPatience, [&] { CHECK_OK(gcx_cancel_signal(waiter.cancel)); });
        CHECK_EQ(listed().size(), 1U);
        release(all);
        // A request that is cancelled while it waits for the lock gets nothing.
        gcx_cancel cancel = make_cancel();
        std::thread later([&] {
            std::this_thread::sleep_for(50ms);
            CHECK_OK(gcx_cancel_signal(cancel));
        });
        CHECK_EQ(try_reserve(8, {.timeout_ms = 1000, .cancel = cancel}), GCX_ERROR_CANCELLED);
        later.join();
        CHECK_OK(gcx_cancel_destroy(cancel));
    }
    release(reserve(GCX_REST));
    waiter.end();
    CHECK_EQ(waiter.result, GCX_ERROR_CANCELLED);
}

// One cancel ends several waits, including later ones.
void cancel_signalled_ends_all_its_waits(const Folder& /*folder*/) {
    const gcx_reservation all = reserve(GCX_REST);
    gcx_cancel cancel = make_cancel();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            CHECK_EQ(try_reserve(8, {.timeout_ms = GCX_FOREVER, .cancel = cancel}),
                     GCX_ERROR_CANCELLED);
        });
    until_listed(5);
    CHECK_OK(gcx_cancel_signal(cancel));
    CHECK_EQ(listed().size(), 1U);
    CHECK_OK(gcx_cancel_signal(cancel));
    release(all);
    CHECK_EQ(try_reserve(8, {.cancel = cancel}), GCX_ERROR_CANCELLED);
    for (std::thread& thread : threads)
        thread.join();
    CHECK_OK(gcx_cancel_destroy(cancel));
}

} // namespace

int main() {
    for (const char* spec : {"h100@12.4", "h100@13.0", "h200@13.1", "h100@13.5", "a100@12.8",
                             "orin@13.0", "gb200@13.5"})
        device_reservations_are_disjoint(spec);
    leaves_no_file(name_with_control_characters_is_escaped_in_messages);
    leaves_no_file(list_order_is_order_of_acquisition);
    leaves_no_file(invalid_arguments_are_refused);
    owner_killed_or_released_waiter_is_served();
    leaves_no_file(waiters_are_served_in_order);
    waiter_killed_is_skipped();
    waiter_without_its_file_is_skipped();
    leaves_no_file(layout_in_a_reservation_has_its_sms);
    leaves_no_file(wait_for_rest_is_listed_as_rest);
    leaves_no_file(joined_reservation_stays_until_last_owner);
    leaves_no_file(release_during_fork_frees_sms);
    fork_inherits_only_if_requested();
    if (!check::emulated) { // an emulator is the program then
        listed_process_first_owner_ended_is_another_owner();
        listed_process_first_owner_released_is_another_owner();
        listed_process_after_exec_has_new_name();
    }
    leaves_no_file(folder_locked_acquire_returns_at_timeout);
    leaves_no_file(folder_locked_waiter_returns_at_timeout);
    leaves_no_file(cancel_signalled_waiter_is_never_granted);
    leaves_no_file(cancel_signalled_as_sms_become_free_is_decided);
    leaves_no_file(cancel_signalled_next_waiter_is_served);
    leaves_no_file(cancel_signalled_while_folder_locked_returns);
    leaves_no_file(cancel_signalled_ends_all_its_waits);
    return check::summary("reservations");
}
