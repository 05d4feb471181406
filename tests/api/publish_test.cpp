// Published leases: what other processes see, also while leases change and when a process ends or
// forks; invalid files, and folders in which nothing can be published.
#include "leases.hpp"
#include "publish.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
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
    stream_of(before);
    CHECK_OK(gcx_publish_start("engine"));
    other.point();
    const gcx_lease shared =
        acquire(48, {.name = "shared", .flags = GCX_LEASE_SHARED, .exclusive = 16});
    const gcx_stream stream = stream_of(shared);
    stream_of(shared);
    CHECK_OK(resize({{before, 48, 0}}));
    gcx_cancel cancel = make_cancel();
    std::thread waiting([&] {
        CHECK_EQ(try_acquire(120, {.name = "late", .timeout_ms = GCX_FOREVER, .cancel = cancel}),
                 GCX_ERROR_CANCELLED);
    });
    while (live_leases(0).size() < 3)
        std::this_thread::yield();
    other.point();
    CHECK_OK(gcx_cancel_signal(cancel));
    waiting.join();
    CHECK_OK(gcx_stream_destroy(stream));
    const gcx_lease giver = acquire(16, "giver");
    CHECK_OK(hand_over(giver, before));
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
    other.proceed();
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
    other.proceed();
    found = leases();
    if (!CHECK_EQ(found.size(), 3U))
        return;
    CHECK_EQ(found[0].sm_count, 64U);
    CHECK_EQ(found[0].changes, 2U);
    CHECK_EQ(found[1].stream_count, 1U);
    CHECK_EQ(std::string(found[2].name), "giver");
    CHECK_EQ(found[2].sm_count, 0U); // it is parked
    CHECK_EQ(found[2].waits, 0U);
    other.proceed();
    found = leases();
    if (!CHECK_EQ(found.size(), 1U))
        return;
    CHECK_EQ(std::string(found[0].name), "shared");
    CHECK_EQ(found[0].stream_count, 1U);
    CHECK_EQ(processes().at(0).lease_count, 1U);
    other.proceed();
    CHECK_EQ(processes().size(), 0U);
    other.proceed();
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
                    CHECK_OK(resize({{a, first + 8 * (i % 8), 0}, {b, GCX_REST, 0}}));
                }
            });
        }
        threads.emplace_back([&] {
            while (!over) {
                CHECK_OK(gcx_stream_destroy(stream_of(a)));
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

void wait_for_rest_is_listed_and_published_as_rest() {
    const Folder folder;
    in_child("rest", [] {
        open_machine();
        CHECK_OK(gcx_publish_start("rest"));
        const gcx_lease all = acquire(GCX_REST, "all");
        std::thread waiting([] { CHECK_OK(try_acquire(GCX_REST, {.timeout_ms = GCX_FOREVER})); });
        while (leases().size() != 2)
            std::this_thread::yield();
        const auto live = live_leases();
        const auto found = leases();
        CHECK_EQ(found[0].sm_count, 132U);
        CHECK_EQ(found[1].waits, 1U);
        CHECK_EQ(found[1].sm_count, GCX_REST);
        CHECK_EQ(live[0].sm_count, 132U);
        CHECK_EQ(live[1].sm_count, GCX_REST);
        CHECK_OK(gcx_lease_release(all));
        waiting.join();
    });
}

// A lease that failed is not listed.
void lease_failed_is_not_published() {
    const Folder folder;
    in_child("failures", [] {
        open_machine();
        CHECK_OK(gcx_publish_start("failing"));
        sim::fail("cuGreenCtxCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
        CHECK_EQ(try_acquire(32), GCX_ERROR_OUT_OF_MEMORY);
        CHECK_EQ(leases().size(), 0U);
        const gcx_lease lease = acquire(32, "made");
        sim::fail("cuGreenCtxCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
        CHECK_EQ(resize({{lease, 64, 0}}), GCX_ERROR_OUT_OF_MEMORY);
        CHECK_EQ(leases().at(0).sm_count, 32U);
        CHECK_EQ(leases().at(0).changes, 0U);
    });
}

// The counters begin when the driver is opened, whenever publishing begins.
void counters_are_those_of_the_process() {
    const Folder folder;
    in_child("counters", [] {
        open_machine();
        const auto contexts_match = [] {
            const gcx_published_process process = processes().at(0);
            const gcx_cache_stats stats = cache_stats();
            CHECK_EQ(process.context_count, stats.in_use + stats.cached);
            CHECK_EQ(process.contexts_created, stats.misses);
            CHECK_EQ(process.contexts_evicted, stats.evicted);
        };
        gcx_lease lease = acquire(32, "one");
        gcx_lease_size sizes[] = {{lease, 64, 0}};
        CHECK_OK(gcx_lease_resize(sizes, 1, 0));
        CHECK_OK(gcx_publish_start("counters"));
        CHECK_EQ(processes().at(0).resize_count, 1U);
        CHECK_EQ(processes().at(0).library, gcx_version());
        contexts_match();
        CHECK_OK(gcx_lease_resize(sizes, 1, 0)); // nothing changes
        sizes[0].sm_count = 24;
        CHECK_OK(gcx_lease_resize(sizes, 1, 0));
        sizes[0].sm_count = 500;
        CHECK_REFUSED(gcx_lease_resize(sizes, 1, 0), GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        CHECK_EQ(processes().at(0).resize_count, 2U);
        contexts_match();

        gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
        gcx_lease none = nullptr;
        CHECK_REFUSED(gcx_lease_acquire(0, 132, &params, &none), GCX_ERROR_ALREADY_ACQUIRED);
        CHECK_EQ(processes().at(0).wait_count, 0U);
        params.timeout_ms = 20;
        CHECK_REFUSED(gcx_lease_acquire(0, 132, &params, &none), GCX_ERROR_TIMEOUT);
        const gcx_published_process waited = processes().at(0);
        CHECK_EQ(waited.wait_count, 1U);
        CHECK(waited.waited_ns >= 20'000'000);
        gcx_cancel cancel = make_cancel();
        std::thread waiting([&] {
            const Terms terms = {.name = "waits", .timeout_ms = GCX_FOREVER, .cancel = cancel};
            CHECK_EQ(try_acquire(132, terms), GCX_ERROR_CANCELLED);
        });
        while (processes().at(0).wait_count != 2)
            std::this_thread::yield();
        CHECK_EQ(processes().at(0).waited_ns, waited.waited_ns); // it counts once it is over
        CHECK_OK(gcx_cancel_signal(cancel));
        waiting.join();
        CHECK_OK(gcx_cancel_destroy(cancel));
        CHECK(processes().at(0).waited_ns > waited.waited_ns);

        CHECK_OK(gcx_lease_release(lease));
        contexts_match();
        trim(0);
        contexts_match();
        CHECK(processes().at(0).contexts_evicted != 0);
        const Partition part(split(whole_device(), {8}).groups[0]);
        contexts_match();
        CHECK_OK(gcx_publish_stop());
        CHECK_OK(gcx_publish_start("again"));
        CHECK_EQ(processes().at(0).wait_count, 2U);
        contexts_match();
    });
}

// Starts a process that publishes one lease until next() is called.
Other publisher() {
    return Other([](Other& self) {
        open_machine();
        acquire(32, "right");
        CHECK_OK(gcx_publish_start("right"));
        self.point();
    });
}

// Lists the leases, of which one is valid, and returns whether a warning contains the text.
bool is_warned_of(const std::string& what) {
    warnings.clear();
    CHECK_EQ(leases().size(), 1U);
    const bool found = warned(what);
    if (!found) {
        for (const std::string& warning : warnings)
            std::fprintf(stderr, "    warned: %s\n", warning.c_str());
    }
    return found;
}

void invalid_file_is_skipped_with_warning() {
    const Folder folder;
    Other other = publisher();
    other.arrived();
    CHECK_OK(gcx_log_set_callback(GCX_LOG_WARNING, note_warning, nullptr));
    const fs::path real = folder.files().at(0);
    const std::string right = bytes_of(real);
    const fs::path bad = folder.published() / "leases-00000000deadbeef";
    CHECK(right.size() > 100000);

    CHECK_EQ(symlink(real.c_str(), bad.c_str()), 0);
    CHECK(is_warned_of("link"));
    unlink(bad.c_str());
    CHECK_EQ(mkfifo(bad.c_str(), 0600), 0);
    CHECK(is_warned_of("no plain file"));
    unlink(bad.c_str());
    CHECK_EQ(mkdir(bad.c_str(), 0700), 0);
    CHECK(is_warned_of("no plain file"));
    rmdir(bad.c_str());
    const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", bad.c_str());
    CHECK_EQ(bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    CHECK(is_warned_of("deadbeef"));
    close(listening);
    unlink(bad.c_str());

    {
        const OwnedFile owned(bad, right, off_t{1} << 40);
        CHECK(is_warned_of("bytes"));
    }
    const std::pair<std::string, const char*> invalid[] = {
        {right.substr(0, 5000), "too short"},
        {"", "too short"},
        {"hello" + right.substr(5), "no file of gcx"},
        {right.substr(0, 8) + "\x7f" + right.substr(9), "another version"}};
    for (const auto& [bytes, why] : invalid) {
        const OwnedFile owned(bad, bytes);
        CHECK(is_warned_of(why));
    }
    // The file is not complete yet, which is no reason for a warning.
    {
        const OwnedFile owned(bad, std::string(right.size(), '\0'));
        warnings.clear();
        CHECK_EQ(leases().size(), 1U);
        CHECK(warnings.empty());
    }
    // The publisher was stopped in the middle of a change. Readers wait only briefly.
    {
        std::string odd = right;
        odd[12] = static_cast<char>(odd[12] | 1);
        const OwnedFile owned(bad, odd);
        const auto begin = std::chrono::steady_clock::now();
        CHECK(is_warned_of("stopped"));
        CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    }
    if (geteuid() == 0) {
        const OwnedFile owned(bad, right);
        CHECK_EQ(chown(bad.c_str(), 12345, 12345), 0);
        CHECK(is_warned_of("belongs to user 12345"));
    }
    // The file has no owner: its process has ended.
    std::ofstream(bad) << right;
    CHECK_EQ(leases().size(), 1U);
    CHECK(fs::exists(bad)); // the next process that publishes removes it
    fs::remove(bad);
    // Files with other names are left alone.
    std::ofstream(folder.published() / "leases-") << right;
    std::ofstream(folder.published() / "leases-00000000DEADBEEF") << right;
    std::ofstream(folder.published() / "notes") << right;
    CHECK_EQ(leases().size(), 1U);
    CHECK_EQ(folder.files().size(), 4U);
    CHECK_OK(gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr));
    other.next();
    other.ended();
}

// A publisher removes what killed ones left, but not while another process changes the folder.
void leftover_files_are_removed_by_next_publisher() {
    const Folder folder;
    CHECK_EQ(mkdir(folder.published().c_str(), 0700), 0);
    const fs::path unfinished = folder.published() / "leases-00000000deadbeef.new";
    const fs::path dead = folder.published() / "leases-00000000deadbeef";
    const fs::path other = folder.published() / "leases-notes.new";
    const auto publish = [] {
        open_machine();
        CHECK_OK(gcx_publish_start("x"));
        CHECK_EQ(processes().size(), 1U);
    };
    for (const fs::path& path : {unfinished, dead, other})
        std::ofstream(path) << "left";
    const int locked = open(folder.published().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(flock(locked, LOCK_EX), 0);
    in_child("the folder is locked", publish);
    CHECK(fs::exists(unfinished));
    close(locked);
    std::ofstream(dead) << "left";
    in_child("the folder is free", publish);
    CHECK(!fs::exists(unfinished) && !fs::exists(dead) && fs::exists(other));
}

void many_publishers_are_all_listed() {
    const Folder folder;
    Other other = publisher();
    other.arrived();
    const std::string right = bytes_of(folder.files().at(0));
    // Almost as many files as descriptors: gcx needs a few itself.
    rlimit most{};
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &most), 0);
    most.rlim_cur = std::min<rlim_t>(most.rlim_max, 1100);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &most), 0);
    std::vector<std::unique_ptr<OwnedFile>> owned;
    const std::size_t count = most.rlim_cur - 100;
    for (std::size_t i = 0; i < count; i++) {
        char name[32];
        std::snprintf(name, sizeof name, "leases-%016zx", i);
        owned.push_back(
            std::make_unique<OwnedFile>(folder.published() / name, right.substr(0, 12000)));
    }
    CHECK_EQ(processes().size(), count + 1);
    CHECK_EQ(leases().size(), count + 1);
    uint32_t needed = 0;
    CHECK_EQ(gcx_published_lease_list(nullptr, 0, &needed), GCX_ERROR_INSUFFICIENT_CAPACITY);
    CHECK_EQ(needed, count + 1);
    other.next();
    other.ended();
}

void refused_start(gcx_result expected) {
    in_child("a folder that can't be", [&] {
        open_machine();
        const gcx_lease lease = acquire(32, "goes on");
        CHECK_REFUSED(gcx_publish_start("x"), expected);
        CHECK_OK(gcx_lease_release(lease));
    });
}

void unusable_folder_is_refused() {
    const Folder folder;
    const std::string inner = folder.published().string();
    CHECK_EQ(mkdir(inner.c_str(), 0755), 0);
    CHECK_EQ(chmod(inner.c_str(), 0755), 0);
    refused_start(GCX_ERROR_UNSAFE_FOLDER);
    uint32_t count = 0;
    CHECK_REFUSED(gcx_published_lease_list(nullptr, 0, &count), GCX_ERROR_UNSAFE_FOLDER);
    CHECK_EQ(rmdir(inner.c_str()), 0);

    CHECK_EQ(symlink("/tmp", inner.c_str()), 0);
    refused_start(GCX_ERROR_UNSAFE_FOLDER);
    CHECK_REFUSED(gcx_published_process_list(nullptr, 0, &count), GCX_ERROR_UNSAFE_FOLDER);
    unlink(inner.c_str());
    std::ofstream(inner) << "a file";
    refused_start(GCX_ERROR_UNSAFE_FOLDER);
    unlink(inner.c_str());

    struct Wrong {
        const char* path;
        gcx_result result;
    };
    const Wrong wrong_ones[] = {{"not/absolute", GCX_ERROR_INVALID_VALUE},
                                {"/nonexistent/folder", GCX_ERROR_OPERATING_SYSTEM},
                                {"/dev/null", GCX_ERROR_OPERATING_SYSTEM}};
    for (const Wrong& wrong : wrong_ones) {
        setenv("GCX_RESERVATION_DIR", wrong.path, 1);
        refused_start(wrong.result);
        CHECK_REFUSED(gcx_published_lease_list(nullptr, 0, &count), wrong.result);
    }
    setenv("GCX_RESERVATION_DIR", folder.inner().c_str(), 1);
    // A folder that others can enter is refused, even if the private one in it is not.
    CHECK_EQ(chmod(folder.inner().c_str(), 0755), 0);
    refused_start(GCX_ERROR_UNSAFE_FOLDER);
    CHECK_EQ(chmod(folder.inner().c_str(), 0700), 0);
    if (geteuid() == 0) {
        CHECK_EQ(mkdir(inner.c_str(), 0700), 0);
        CHECK_EQ(chown(inner.c_str(), 12345, 12345), 0);
        refused_start(GCX_ERROR_UNSAFE_FOLDER);
        CHECK_EQ(rmdir(inner.c_str()), 0);
    } else {
        CHECK_EQ(chmod(folder.inner().c_str(), 0500), 0);
        refused_start(GCX_ERROR_OPERATING_SYSTEM);
        CHECK_EQ(chmod(folder.inner().c_str(), 0700), 0);
    }
    // Reaching this limit would end the process by a signal.
    in_child("a small limit", [&] {
        open_machine();
        const rlimit least{4096, 4096};
        CHECK_EQ(setrlimit(RLIMIT_FSIZE, &least), 0);
        CHECK_EQ(gcx_publish_start("x"), GCX_ERROR_OPERATING_SYSTEM);
        CHECK(message_has("too large"));
        CHECK_EQ(folder.files().size(), 0U);
    });
}

// All atoms of a large device are listed, with the right device.
void many_atoms_are_listed_completely() {
    const Folder folder;
    in_child("many atoms", [] {
        open_machine("2xh100@13.0");
        gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
        params.family = GCX_SM_FAMILY_FINE;
        gcx_lease lease = nullptr;
        CHECK_OK(gcx_lease_acquire(1, GCX_REST, &params, &lease));
        CHECK_OK(gcx_publish_start("fine"));
        const auto found = leases();
        if (CHECK_EQ(found.size(), 1U)) {
            check_listed(found);
            CHECK_EQ(found[0].device, 1);
            CHECK_EQ(found[0].atom_count, 66U);
            CHECK_EQ(found[0].exclusive_atoms[0], UINT64_MAX);
            CHECK_EQ(found[0].exclusive_atoms[1], 3U);
            gcx_device_info info = GCX_DEVICE_INFO_INIT;
            CHECK_OK(gcx_device_get_info(1, &info));
            CHECK_EQ(std::memcmp(found[0].device_uuid, info.uuid, sizeof info.uuid), 0);
        }
        CHECK_OK(gcx_lease_release(lease));
    });
}

void environment_variable_starts_publishing() {
    const Folder folder;
    const auto name_with = [&](const char* value) {
        setenv("GCX_PUBLISH", value, 1);
        std::string name;
        in_child(value, [&] {
            open_machine();
            const auto found = processes();
            const std::string expected = std::string(value) == "1"
                                             ? program_invocation_short_name
                                             : std::string(value).substr(0, 63);
            const bool none = std::string(value).empty() || std::string(value) == "0";
            CHECK_EQ(found.size(), none ? 0U : 1U);
            if (found.size() == 1)
                CHECK_EQ(std::string(found[0].name), expected);
        });
    };
    for (const char* value : {"1", "0", "", "engine of mine"})
        name_with(value);
    name_with(std::string(100, 'y').c_str());
    setenv("GCX_PUBLISH", "1", 1);
    setenv("GCX_RESERVATION_DIR", "/nonexistent", 1);
    in_child("publishing that fails", [] {
        warnings.clear();
        CHECK_OK(gcx_log_set_callback(GCX_LOG_WARNING, note_warning, nullptr));
        open_machine();
        CHECK_EQ(warnings.size(), 1U);
        CHECK(warnings.at(0).starts_with("GCX_PUBLISH is set, and leases are not published"));
        CHECK_OK(gcx_lease_release(acquire(32, "works")));
    });
    unsetenv("GCX_PUBLISH");
}

} // namespace

int main() {
    no_publisher_lists_nothing();
    published_leases_are_listed_completely();
    publisher_ended_is_not_listed();
    publisher_forked_child_publishes_nothing();
    leases_changing_are_listed_consistently();
    leases_that_do_not_fit_are_counted();
    wait_for_rest_is_listed_and_published_as_rest();
    lease_failed_is_not_published();
    counters_are_those_of_the_process();
    invalid_file_is_skipped_with_warning();
    leftover_files_are_removed_by_next_publisher();
    many_publishers_are_all_listed();
    unusable_folder_is_refused();
    many_atoms_are_listed_completely();
    environment_variable_starts_publishing();
    return summary("publish");
}
