// Published leases: what other processes see, also while leases change and when a process ends or
// forks. publish_files_test.cpp tests the files.
#include "publish.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace publish;
using namespace support;

namespace {

const std::vector<std::string> kMachines = {"h100@12.4", "h100@13.0", "h100@13.5"};

void no_publisher_lists_nothing() {
    const Folder folder;
    CHECK_EQ(processes().size(), 0U);
    CHECK_EQ(leases().size(), 0U);
    CHECK(!fs::exists(folder.published())); // reading makes nothing
    CHECK_OK(gcx_publish_stop());           // nor does stopping, which opens no driver
    CHECK_REFUSED(gcx_published_process_list(nullptr, 0, nullptr), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_published_lease_list(nullptr, 0, nullptr), GCX_ERROR_INVALID_VALUE);
    uint32_t count = 7;
    CHECK_REFUSED(gcx_published_process_list(nullptr, 1, &count), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_published_lease_list(nullptr, 1, &count), GCX_ERROR_INVALID_VALUE);
    CHECK_EQ(count, 7U);
    const std::string longest(63, 'x');
    in_child("names", [&] {
        open_machine();
        CHECK_REFUSED(gcx_publish_start((longest + "x").c_str()), GCX_ERROR_INVALID_VALUE);
        CHECK_EQ(processes().size(), 0U);
        CHECK_OK(gcx_publish_start(longest.c_str()));
        CHECK_EQ(processes().at(0).name, longest);
        CHECK_OK(gcx_publish_start("\x1b[31mred"));
        CHECK_EQ(std::string(processes().at(0).name), "\x1b[31mred");
        CHECK_OK(gcx_publish_start(nullptr));
        CHECK_EQ(std::string(processes().at(0).name), program_invocation_short_name);
        CHECK_EQ(processes().size(), 1U);
        gcx_published_process one;
        CHECK_REFUSED(gcx_published_process_list(&one, 0, &count), GCX_ERROR_INSUFFICIENT_CAPACITY);
        CHECK_EQ(count, 1U);
    });
    CHECK_EQ(folder.files().size(), 0U);
}

void publish_some(Other& other) {
    const gcx_lease before = acquire(32, "before");
    gcx_stream streams[3] = {};
    CHECK_OK(gcx_lease_stream_create(before, nullptr, &streams[0]));
    CHECK_OK(gcx_publish_start("engine"));
    other.point();
    const gcx_lease shared = acquire(48, "shared", GCX_LEASE_SHARED, 16);
    CHECK_OK(gcx_lease_stream_create(shared, nullptr, &streams[1]));
    CHECK_OK(gcx_lease_stream_create(shared, nullptr, &streams[2]));
    const gcx_lease_size sizes[] = {{before, 48, 0}};
    CHECK_OK(gcx_lease_resize(sizes, 1, GCX_RESIZE_DEFAULT));
    gcx_cancel cancel = make_cancel();
    std::thread waiting([&] { acquire(120, "late", 0, 0, cancel); });
    gcx_live_lease live[8];
    uint32_t count = 0;
    while (gcx_lease_list(0, live, 8, &count) == GCX_SUCCESS && count < 3)
        std::this_thread::yield();
    other.point();
    CHECK_OK(gcx_cancel_signal(cancel));
    waiting.join();
    CHECK_OK(gcx_stream_destroy(streams[1]));
    const gcx_lease giver = acquire(16, "giver");
    const gcx_lease_size parked[] = {{giver, 0, GCX_SIZE_PARKED}, {before, 64, 0}};
    CHECK_OK(gcx_lease_resize(parked, 2, GCX_RESIZE_DEFAULT));
    other.point();
    CHECK_OK(gcx_lease_release(giver));
    CHECK_OK(gcx_lease_release(before));
    other.point();
    CHECK_OK(gcx_publish_stop());
    other.point();
    CHECK_OK(gcx_publish_start("again"));
    other.point();
}

void check_some(Other& other) {
    other.arrived();
    auto found = leases();
    if (!CHECK_EQ(found.size(), 1U))
        return;
    CHECK_EQ(std::string(found[0].name), "before");
    CHECK_EQ(std::string(found[0].process_name), "engine");
    CHECK_EQ(found[0].pid, other.pid());
    CHECK_EQ(found[0].simulated, 1);
    CHECK_EQ(found[0].sm_count, 32U);
    CHECK_EQ(found[0].exclusive_atoms[0], 0xfU);
    CHECK_EQ(found[0].stream_count, 1U);
    CHECK_EQ(found[0].changes, 0U);
    CHECK_EQ(found[0].device_sm_count, 132U);
    CHECK_EQ(found[0].atom_count, 16U);
    CHECK_EQ(found[0].atom_sm_count, 8U);
    CHECK_EQ(found[0].last_atom_sm_count, 12U);
    CHECK(std::string(found[0].device_name).starts_with("SIMULATED NVIDIA H100"));
    other.next();
    other.arrived();
    found = leases();
    if (!CHECK_EQ(found.size(), 3U))
        return;
    CHECK_EQ(found[0].sm_count, 48U);
    CHECK_EQ(found[0].changes, 1U);
    CHECK_EQ(found[0].stream_count, 1U);
    CHECK_EQ(found[1].flags, GCX_LEASE_SHARED);
    CHECK_EQ(found[1].sm_count, 48U);
    CHECK_EQ(found[1].exclusive_sm_count, 16U);
    CHECK_EQ(found[1].stream_count, 2U);
    CHECK_EQ(found[2].waits, 1U);
    CHECK_EQ(found[2].sm_count, 120U);
    CHECK_EQ(std::string(found[2].name), "late");
    check_listed(found);
    other.next();
    other.arrived();
    found = leases();
    if (!CHECK_EQ(found.size(), 3U))
        return;
    CHECK_EQ(found[0].sm_count, 64U);
    CHECK_EQ(found[0].changes, 2U);
    CHECK_EQ(found[1].stream_count, 1U);
    CHECK_EQ(std::string(found[2].name), "giver");
    CHECK_EQ(found[2].sm_count, 0U); // it is parked
    CHECK_EQ(found[2].waits, 0U);
    other.next();
    other.arrived();
    found = leases();
    if (!CHECK_EQ(found.size(), 1U))
        return;
    CHECK_EQ(std::string(found[0].name), "shared");
    CHECK_EQ(found[0].stream_count, 1U);
    CHECK_EQ(processes().at(0).lease_count, 1U);
    other.next();
    other.arrived();
    CHECK_EQ(processes().size(), 0U);
    other.next();
    other.arrived();
    CHECK_EQ(std::string(processes().at(0).name), "again");
    CHECK_EQ(std::string(leases().at(0).name), "shared");
    CHECK_EQ(leases().at(0).stream_count, 1U);
}

void published_leases_are_listed_completely() {
    for (const std::string& machine : kMachines) {
        const Folder folder;
        Other other([&](Other& self) {
            open_machine(machine);
            publish_some(self);
        });
        check_some(other);
        struct stat info{};
        CHECK_EQ(stat(folder.published().c_str(), &info), 0);
        CHECK_EQ(info.st_mode & 0777U, 0700U);
        CHECK_EQ(stat(folder.files().at(0).c_str(), &info), 0);
        CHECK_EQ(info.st_mode & 0777U, 0400U);
        other.next();
        other.ended();
        CHECK_EQ(folder.files().size(), 0U); // a lease and a stream were alive
    }
}

// A process that ended is not listed, and its file is removed.
void publisher_ended_is_not_listed() {
    const Folder folder;
    const auto body = [](Other& other) {
        open_machine();
        acquire(32, "some");
        CHECK_OK(gcx_publish_start("some"));
        other.point();
        _exit(0);
    };
    Other killed(body);
    Other left(body);
    Other stopped(body);
    killed.arrived();
    left.arrived();
    stopped.arrived();
    CHECK_EQ(processes().size(), 3U);
    kill(stopped.pid(), SIGSTOP);
    CHECK_EQ(processes().size(), 3U);
    killed.kill(SIGKILL);
    left.next();
    left.ended();
    CHECK_EQ(folder.files().size(), 3U);
    CHECK_EQ(processes().size(), 1U);
    CHECK_EQ(leases().size(), 1U);
    CHECK_EQ(folder.files().size(), 3U);
    stopped.kill(SIGKILL);
    Other fresh(body); // which clears away as well
    fresh.arrived();
    CHECK_EQ(folder.files().size(), 1U);
    CHECK_EQ(processes().at(0).pid, fresh.pid());
}

// The child of a fork publishes nothing, removes nothing, and does not own its parent's file.
void publisher_forked_child_publishes_nothing() {
    const Folder folder;
    int lives[2];
    CHECK_EQ(pipe(lives), 0);
    Other other([&](Other& self) {
        open_machine();
        acquire(32, "parent");
        CHECK_OK(gcx_publish_start("parent"));
        const pid_t brief = fork();
        if (brief == 0) {
            CHECK_EQ(gcx_publish_start("child"), GCX_ERROR_NOT_INITIALIZED);
            CHECK_OK(gcx_publish_stop());
            CHECK_EQ(processes().size(), 1U);
            std::exit(check::failed == 0 ? 0 : 1);
        }
        int status = -1;
        CHECK_EQ(waitpid(brief, &status, 0), brief);
        CHECK_EQ(status, 0);
        if (fork() == 0) {
            char byte = 0;
            close(lives[1]);
            self.say_arrived();                  // the lock is its parent's alone by now
            while (read(lives[0], &byte, 1) > 0) // until the test ends
                continue;
            _exit(0);
        }
        pause();
    });
    other.arrived();
    CHECK_EQ(leases().size(), 1U);
    other.kill(SIGKILL);
    // The other child still runs. (Under qemu it inherits the file and its lock.)
    if (!check::emulated)
        CHECK_EQ(leases().size(), 0U);
    close(lives[1]);
    close(lives[0]);
}

// The leases change in loops. Each list is the state of one moment.
void leases_changing_are_listed_consistently() {
    const Folder folder;
    Other other([](Other& self) {
        open_machine();
        const gcx_lease a = acquire(64, "a");
        const gcx_lease b = acquire(GCX_REST, "b");
        CHECK_OK(gcx_publish_start("busy"));
        std::atomic<bool> over{false};
        std::vector<std::thread> threads;
        for (uint32_t first : {8U, 40U}) {
            threads.emplace_back([&, first] {
                for (uint32_t i = 0; !over; i++) {
                    const gcx_lease_size sizes[] = {{a, first + 8 * (i % 8), 0}, {b, GCX_REST, 0}};
                    CHECK_OK(gcx_lease_resize(sizes, 2, GCX_RESIZE_DEFAULT));
                }
            });
        }
        threads.emplace_back([&] {
            while (!over) {
                gcx_stream stream = nullptr;
                CHECK_OK(gcx_lease_stream_create(a, nullptr, &stream));
                CHECK_OK(gcx_stream_destroy(stream));
            }
        });
        self.point();
        over = true;
        for (std::thread& thread : threads)
            thread.join();
    });
    other.arrived();
    std::set<uint64_t> changes;
    std::set<uint32_t> sizes;
    bool whole = true;
    const int rounds = check::slow ? 200 : 2000;
    int read = 0;
    for (int round = 0; round < rounds; round++) {
        const auto found = leases();
        check_listed(found);
        if (found.size() != 2) // never for long, however busy
            continue;
        read++;
        whole = whole && found[0].sm_count + found[1].sm_count == 132 &&
                found[0].stream_count <= 1 && found[1].stream_count == 0;
        changes.insert(found[0].changes);
        sizes.insert(found[0].sm_count);
    }
    CHECK(whole);
    CHECK(read > rounds * 9 / 10);
    CHECK(changes.size() > 10 && sizes.size() > 3);
    other.next();
    other.ended();
}

// More leases than fit in the file.
void leases_that_do_not_fit_are_counted() {
    const Folder folder;
    in_child("many leases", [] {
        open_machine();
        CHECK_OK(gcx_publish_start("many"));
        std::vector<gcx_lease> held;
        for (int i = 0; i < 520; i++)
            held.push_back(acquire(8, "shared", GCX_LEASE_SHARED));
        CHECK_EQ(leases().size(), 512U);
        CHECK_EQ(processes().at(0).lease_count, 512U);
        CHECK_EQ(processes().at(0).unlisted_count, 8U);
        // Leases that did not fit are listed when others are released.
        for (int i = 0; i < 5; i++)
            CHECK_OK(gcx_lease_release(held[static_cast<std::size_t>(i) * 52]));
        CHECK_EQ(leases().size(), 512U);
        CHECK_EQ(processes().at(0).unlisted_count, 3U);
        for (int i = 5; i < 10; i++)
            CHECK_OK(gcx_lease_release(held[static_cast<std::size_t>(i) * 52]));
        CHECK_EQ(leases().size(), 510U);
        CHECK_EQ(processes().at(0).unlisted_count, 0U);
        held.push_back(acquire(8, "one more", GCX_LEASE_SHARED));
        CHECK_EQ(std::string(leases().back().name), "one more");
        check_listed(leases());
        for (gcx_lease lease : held)
            gcx_lease_release(lease);
        CHECK_EQ(leases().size(), 0U);
        CHECK_EQ(processes().at(0).unlisted_count, 0U);
    });
}

void wait_for_rest_is_published_as_rest() {
    const Folder folder;
    in_child("rest", [] {
        open_machine();
        CHECK_OK(gcx_publish_start("rest"));
        const gcx_lease all = acquire(GCX_REST, "all");
        gcx_cancel cancel = make_cancel();
        std::thread waiting([&] { acquire(GCX_REST, "late", 0, 0, cancel); });
        while (leases().size() != 2)
            std::this_thread::yield();
        CHECK_EQ(leases()[0].sm_count, 132U);
        CHECK_EQ(leases()[1].waits, 1U);
        CHECK_EQ(leases()[1].sm_count, GCX_REST);
        CHECK_OK(gcx_cancel_signal(cancel));
        waiting.join();
        CHECK_OK(gcx_lease_release(all));
    });
}

// A lease that failed is not listed.
void lease_failed_is_not_published() {
    const Folder folder;
    in_child("failures", [] {
        open_machine();
        CHECK_OK(gcx_publish_start("failing"));
        sim::fail("cuGreenCtxCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
        gcx_lease lease = nullptr;
        CHECK_EQ(gcx_lease_acquire(0, 32, nullptr, &lease), GCX_ERROR_OUT_OF_MEMORY);
        CHECK_EQ(leases().size(), 0U);
        lease = acquire(32, "made");
        sim::fail("cuGreenCtxCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
        const gcx_lease_size sizes[] = {{lease, 64, 0}};
        CHECK_EQ(gcx_lease_resize(sizes, 1, 0), GCX_ERROR_OUT_OF_MEMORY);
        CHECK_EQ(leases().at(0).sm_count, 32U);
        CHECK_EQ(leases().at(0).changes, 0U);
    });
}

// Threads publish, stop, acquire leases and list concurrently.
void threads_publish_and_list_concurrently() {
    const Folder folder;
    in_child("threads", [] {
        open_machine();
        std::atomic<bool> over{false};
        std::vector<std::thread> threads;
        threads.emplace_back([&] {
            while (!over) {
                CHECK_OK(gcx_publish_start("threads"));
                CHECK_OK(gcx_publish_stop());
            }
        });
        for (int i = 0; i < 2; i++) {
            threads.emplace_back([&] {
                while (!over) {
                    gcx_lease lease = nullptr;
                    gcx_stream stream = nullptr;
                    if (gcx_lease_acquire(0, 64, nullptr, &lease) != GCX_SUCCESS)
                        continue;
                    CHECK_OK(gcx_lease_stream_create(lease, nullptr, &stream));
                    CHECK_OK(gcx_stream_destroy(stream));
                    CHECK_OK(gcx_lease_release(lease));
                }
            });
        }
        for (int round = 0; round < (check::slow ? 50 : 400); round++) {
            const auto found = leases();
            CHECK(found.size() <= 2);
            check_listed(found);
        }
        over = true;
        for (std::thread& thread : threads)
            thread.join();
        CHECK_OK(gcx_publish_start("threads"));
        CHECK_EQ(leases().size(), 0U);
    });
    CHECK_EQ(folder.files().size(), 0U);
}

} // namespace

int main() {
    no_publisher_lists_nothing();
    published_leases_are_listed_completely();
    publisher_ended_is_not_listed();
    publisher_forked_child_publishes_nothing();
    leases_changing_are_listed_consistently();
    leases_that_do_not_fit_are_counted();
    wait_for_rest_is_published_as_rest();
    lease_failed_is_not_published();
    threads_publish_and_list_concurrently();
    return summary("publish");
}
