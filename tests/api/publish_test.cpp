// Published leases: what other processes see of them, also while they change, and what lies in the
// folder and is not to be believed.
#include "support.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace support;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kMachines = {"h100@12.4", "h100@13.0", "h100@13.5"};

// A folder of the test's own, in the place of the user's.
class Folder {
  public:
    Folder() {
        char path[] = "/tmp/gcx-publish-XXXXXX";
        CHECK(mkdtemp(path) != nullptr);
        path_ = path;
        setenv("XDG_RUNTIME_DIR", path, 1);
    }
    ~Folder() {
        std::error_code error;
        fs::remove_all(path_, error);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    fs::path path() const { return path_; }
    fs::path inner() const { return path_ / "gcx"; }
    std::vector<fs::path> files() const {
        std::vector<fs::path> found;
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(inner(), error))
            found.push_back(entry.path());
        return found;
    }

  private:
    fs::path path_;
};

template <class T, gcx_result (*List)(T*, uint32_t, uint32_t*)>
std::vector<T> all() {
    std::vector<T> found(4096);
    uint32_t count = 0;
    CHECK_OK(List(found.data(), static_cast<uint32_t>(found.size()), &count));
    found.resize(count);
    return found;
}
const auto processes = all<gcx_published_process, gcx_published_process_list>;
const auto leases = all<gcx_published_lease, gcx_published_lease_list>;

gcx_lease acquire(uint32_t sm_count, const char* name, uint32_t flags = 0, uint32_t own = 0,
                  gcx_cancel cancel = nullptr) {
    gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
    params.name = name;
    params.flags = flags;
    params.exclusive_sm_count = own;
    params.cancel = cancel;
    params.timeout_ms = cancel != nullptr ? GCX_FOREVER : 0;
    gcx_lease lease = nullptr;
    if (cancel == nullptr)
        CHECK_OK(gcx_lease_acquire(0, sm_count, &params, &lease));
    else
        CHECK_EQ(gcx_lease_acquire(0, sm_count, &params, &lease), GCX_ERROR_NOT_PERMITTED);
    return lease;
}

// A child process that goes on from point to point, as its parent says.
class Other {
  public:
    explicit Other(const std::function<void(Other&)>& body) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
        std::fflush(nullptr);
        pid_ = fork();
        if (pid_ != 0) {
            close(ends_[1]);
            return;
        }
        close(ends_[0]);
        alarm(100);
        check::failed = 0;
        body(*this);
        std::exit(check::failed == 0 ? 0 : 1);
    }
    ~Other() {
        if (pid_ > 0)
            kill(SIGKILL);
        close(ends_[0]);
    }
    Other(const Other&) = delete;
    Other& operator=(const Other&) = delete;

    // In the child: says that it is there, and waits for next().
    void point() {
        say_arrived();
        char byte = 0;
        CHECK_EQ(read(ends_[1], &byte, 1), 1);
    }
    void say_arrived() {
        const char byte = 'p';
        CHECK_EQ(write(ends_[1], &byte, 1), 1);
    }
    // In the parent: waits until the child is at a point.
    void arrived() {
        char byte = 0;
        CHECK_EQ(read(ends_[0], &byte, 1), 1);
    }
    void next() {
        const char byte = 'n';
        CHECK_EQ(write(ends_[0], &byte, 1), 1);
    }
    void ended() {
        int status = -1;
        CHECK_EQ(waitpid(pid_, &status, 0), pid_);
        CHECK_EQ(status, 0);
        pid_ = 0;
    }
    void kill(int signal) {
        ::kill(pid_, signal);
        waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }
    pid_t pid() const { return pid_; }

  private:
    int ends_[2] = {-1, -1};
    pid_t pid_ = 0;
};

void open_machine(const std::string& spec = "h100@13.0") {
    CHECK_OK(gcx_driver_open(("sim:" + spec).c_str()));
}

uint32_t sms_of(const gcx_published_lease& lease, const uint64_t (&atoms)[8]) {
    uint32_t sms = 0;
    for (uint32_t atom = 0; atom < 512; atom++) {
        if ((atoms[atom / 64] >> (atom % 64) & 1) == 0)
            continue;
        CHECK(atom < lease.atom_count);
        sms += atom + 1 == lease.atom_count ? lease.last_atom_sm_count : lease.atom_sm_count;
    }
    return sms;
}

template <std::size_t size>
bool ends(const char (&text)[size]) {
    return std::memchr(text, 0, size) != nullptr;
}

// What holds of whatever is listed. Says whether it does, and counts nothing if so.
void check_listed(const std::vector<gcx_published_lease>& found) {
    bool right = true;
    for (const gcx_published_lease& lease : found) {
        const uint32_t own = sms_of(lease, lease.exclusive_atoms);
        const uint32_t shared = sms_of(lease, lease.shared_atoms);
        right = right && ends(lease.name) && ends(lease.process_name) && ends(lease.device_name);
        right = right && (lease.waits == 1
                              ? own + shared == 0
                              : lease.sm_count == own + shared && lease.exclusive_sm_count == own);
        for (const gcx_published_lease& other : found) {
            if (&other == &lease || other.process != lease.process ||
                other.family != lease.family || other.device != lease.device)
                continue;
            for (std::size_t word = 0; word < 8; word++)
                right = right && (lease.exclusive_atoms[word] &
                                  (other.exclusive_atoms[word] | other.shared_atoms[word])) == 0;
        }
    }
    if (CHECK(right))
        return;
    for (const gcx_published_lease& lease : found)
        std::fprintf(
            stderr, "    %016llx device %d lease %llu \"%.63s\" waits %u has %u of %u, %llx %llx\n",
            static_cast<unsigned long long>(lease.process), lease.device,
            static_cast<unsigned long long>(lease.id), lease.name, lease.waits,
            lease.exclusive_sm_count, lease.sm_count,
            static_cast<unsigned long long>(lease.exclusive_atoms[0]),
            static_cast<unsigned long long>(lease.shared_atoms[0]));
}

void test_nobody() {
    const Folder folder;
    CHECK_EQ(processes().size(), 0U);
    CHECK_EQ(leases().size(), 0U);
    CHECK(!fs::exists(folder.inner())); // reading makes nothing
    CHECK_OK(gcx_publish_stop());       // nor does stopping, which opens no driver
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
        CHECK_REFUSED(gcx_published_process_list(&one, 0, &count), GCX_ERROR_INVALID_VALUE);
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
    gcx_cancel cancel = nullptr;
    CHECK_OK(gcx_cancel_create(&cancel));
    std::thread waiting([&] { acquire(120, "late", 0, 0, cancel); });
    gcx_live_lease live[8];
    uint32_t count = 0;
    while (gcx_lease_list(0, live, 8, &count) == GCX_SUCCESS && count < 3)
        std::this_thread::yield();
    other.point();
    CHECK_OK(gcx_cancel_signal(cancel));
    waiting.join();
    CHECK_OK(gcx_stream_destroy(streams[1]));
    CHECK_OK(gcx_lease_hand_over(shared, before, GCX_RESIZE_DEFAULT) == GCX_SUCCESS
                 ? GCX_ERROR_UNKNOWN
                 : GCX_SUCCESS); // refused: it is shared
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

void test_what_is_seen() {
    for (const std::string& machine : kMachines) {
        const Folder folder;
        Other other([&](Other& self) {
            open_machine(machine);
            publish_some(self);
        });
        check_some(other);
        struct stat info{};
        CHECK_EQ(stat(folder.inner().c_str(), &info), 0);
        CHECK_EQ(info.st_mode & 0777U, 0700U);
        CHECK_EQ(stat(folder.files().at(0).c_str(), &info), 0);
        CHECK_EQ(info.st_mode & 0777U, 0400U);
        other.next();
        other.ended();
        CHECK_EQ(folder.files().size(), 0U); // a lease and a stream were alive
    }
}

// However a process ends, it is seen no more, and what it leaves is cleared away.
void test_ends() {
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
    CHECK_EQ(folder.files().size(), 1U);
    stopped.kill(SIGKILL);
    Other fresh(body); // which clears away as well
    fresh.arrived();
    CHECK_EQ(folder.files().size(), 1U);
    CHECK_EQ(processes().at(0).pid, fresh.pid());
}

// The child of a fork publishes nothing, takes nothing away, and does not keep its parent alive.
void test_fork() {
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
            self.say_arrived(); // the lock is its parent's alone by now
            static_cast<void>(read(lives[0], &byte, 1));
            _exit(0);
        }
        pause();
    });
    other.arrived();
    CHECK_EQ(leases().size(), 1U);
    other.kill(SIGKILL);
    CHECK_EQ(leases().size(), 0U); // while the other child lives
    close(lives[1]);
    close(lives[0]);
}

// A process whose leases change in loops: whatever is read is the state of one moment.
void test_while_they_change() {
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

// The file of a process that publishes.
std::string bytes_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// A file that somebody holds, as publishers do.
class Held {
  public:
    Held(const fs::path& path, const std::string& bytes, off_t size = -1)
        : path_(path), file_(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
        put(bytes);
        if (size >= 0)
            CHECK_EQ(ftruncate(file_, size), 0);
        struct flock lock{};
        lock.l_type = F_WRLCK;
        CHECK_EQ(fcntl(file_, F_OFD_SETLK, &lock), 0);
    }
    ~Held() {
        close(file_);
        unlink(path_.c_str());
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    void put(const std::string& bytes) const {
        CHECK_EQ(pwrite(file_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    }

  private:
    fs::path path_;
    int file_;
};

std::vector<std::string> warnings;
void note_warning(gcx_log_level, const char* message, void*) {
    warnings.emplace_back(message);
}

// What was warned of while the leases were listed, of which there is one that is right.
bool is_warned_of(const std::string& what) {
    warnings.clear();
    CHECK_EQ(leases().size(), 1U);
    bool found = false;
    for (const std::string& warning : warnings)
        found = found || warning.find(what) != std::string::npos;
    if (!found) {
        for (const std::string& warning : warnings)
            std::fprintf(stderr, "    warned: %s\n", warning.c_str());
    }
    return found;
}

void test_hostile_files() {
    const Folder folder;
    Other other([](Other& self) {
        open_machine();
        acquire(32, "right");
        CHECK_OK(gcx_publish_start("right"));
        self.point();
    });
    other.arrived();
    CHECK_OK(gcx_log_set_callback(GCX_LOG_WARNING, note_warning, nullptr));
    const fs::path real = folder.files().at(0);
    const std::string right = bytes_of(real);
    const fs::path bad = folder.inner() / "leases-00000000deadbeef";
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
        const Held held(bad, right, off_t{1} << 40);
        CHECK(is_warned_of("bytes"));
    }
    {
        const Held held(bad, right.substr(0, 5000));
        CHECK(is_warned_of("too short"));
    }
    {
        const Held held(bad, "");
        CHECK(is_warned_of("too short"));
    }
    {
        const Held held(bad, "hello" + right.substr(5));
        CHECK(is_warned_of("no file of gcx"));
    }
    {
        const Held held(bad, right.substr(0, 8) + "\x7f" + right.substr(9));
        CHECK(is_warned_of("another version"));
    }
    // Being made: nothing to say yet.
    {
        const Held held(bad, std::string(right.size(), '\0'));
        warnings.clear();
        CHECK_EQ(leases().size(), 1U);
        CHECK(warnings.empty());
    }
    // Stopped in the middle of a change. Readers don't wait for it for long.
    {
        std::string odd = right;
        odd[12] = static_cast<char>(odd[12] | 1);
        const Held held(bad, odd);
        const auto begin = std::chrono::steady_clock::now();
        CHECK(is_warned_of("stopped"));
        CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    }
    if (geteuid() == 0) {
        const Held held(bad, right);
        CHECK_EQ(chown(bad.c_str(), 12345, 12345), 0);
        CHECK(is_warned_of("belongs to user 12345"));
    }
    // Held by nobody: of a dead process.
    std::ofstream(bad) << right;
    CHECK_EQ(leases().size(), 1U);
    CHECK(!fs::exists(bad));
    // Other names are no business of gcx.
    std::ofstream(folder.inner() / "leases-") << right;
    std::ofstream(folder.inner() / "leases-00000000DEADBEEF") << right;
    std::ofstream(folder.inner() / "notes") << right;
    CHECK_EQ(leases().size(), 1U);
    CHECK_EQ(folder.files().size(), 4U);
    CHECK_OK(gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr));
    other.next();
    other.ended();
}

// Bytes of a right file changed at random, also while it is read.
void test_changed_files() {
    const Folder folder;
    Other other([](Other& self) {
        open_machine();
        acquire(32, "one");
        acquire(40, "two");
        acquire(16, "three", GCX_LEASE_SHARED, 8);
        CHECK_OK(gcx_publish_start("right"));
        self.point();
    });
    other.arrived();
    std::string right = bytes_of(folder.files().at(0));
    right[16] = static_cast<char>(~right[16]); // another process
    const Held held(folder.inner() / "leases-00000000deadbeef", right);
    CHECK_EQ(leases().size(), 6U);
    std::mt19937 dice(7);
    const std::size_t head = right.find("one") & ~std::size_t{7};
    int believed = 0;
    for (int round = 0; round < (check::slow ? 100 : 1500); round++) {
        std::string bytes = right;
        for (auto left = 1 + dice() % 3; left > 0; left--) {
            const bool in_rows = dice() % 2 != 0;
            const std::size_t at = in_rows ? head - 184 + dice() % 744 : dice() % 280;
            // An odd sequence is waited for; and it is to stay another process.
            if (at / 4 != 3 && at != 16)
                bytes[at] = static_cast<char>(dice() % 3 == 0 ? 0xff : dice());
        }
        held.put(bytes);
        const auto found = leases();
        check_listed(found);
        CHECK(found.size() >= 3);
        believed += found.size() == 6 ? 1 : 0;
        processes();
    }
    CHECK(believed > 10); // a name, or what no lease has
    std::atomic<bool> over{false};
    std::thread writer([&] {
        std::mt19937 own(11);
        while (!over) {
            std::string bytes = right;
            bytes[head - 184 + own() % 744] = static_cast<char>(own());
            held.put(bytes);
        }
    });
    for (int round = 0; round < (check::slow ? 50 : 500); round++)
        check_listed(leases());
    over = true;
    writer.join();
    other.next();
    other.ended();
}

void test_many() {
    const Folder folder;
    Other other([](Other& self) {
        open_machine();
        acquire(32, "one");
        CHECK_OK(gcx_publish_start("right"));
        self.point();
    });
    other.arrived();
    const std::string right = bytes_of(folder.files().at(0));
    // As many as there can be descriptors: gcx needs a few itself.
    rlimit most{};
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &most), 0);
    most.rlim_cur = std::min<rlim_t>(most.rlim_max, 1100);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &most), 0);
    std::vector<std::unique_ptr<Held>> held;
    const std::size_t count = most.rlim_cur - 100;
    for (std::size_t i = 0; i < count; i++) {
        char name[32];
        std::snprintf(name, sizeof name, "leases-%016zx", i);
        held.push_back(std::make_unique<Held>(folder.inner() / name, right.substr(0, 12000)));
    }
    CHECK_EQ(processes().size(), count + 1);
    CHECK_EQ(leases().size(), count + 1);
    uint32_t needed = 0;
    CHECK_EQ(gcx_published_lease_list(nullptr, 0, &needed), GCX_ERROR_INVALID_VALUE);
    CHECK_EQ(needed, count + 1);
    other.next();
    other.ended();
}

// More leases than there is room for.
void test_many_leases() {
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
        for (int i = 0; i < 10; i++)
            CHECK_OK(gcx_lease_release(held[static_cast<std::size_t>(i) * 52]));
        CHECK_EQ(leases().size(), 502U);
        CHECK_EQ(processes().at(0).unlisted_count, 8U);
        held.push_back(acquire(8, "one more", GCX_LEASE_SHARED));
        CHECK_EQ(std::string(leases().back().name), "one more");
        check_listed(leases());
        for (gcx_lease lease : held)
            gcx_lease_release(lease);
        CHECK_EQ(leases().size(), 0U);
        CHECK_EQ(processes().at(0).unlisted_count, 0U);
    });
}

// A lease that could not be made is not seen.
void test_failures_of_the_driver() {
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

void refused_start(gcx_result expected) {
    in_child("a folder that can't be", [&] {
        open_machine();
        const gcx_lease lease = acquire(32, "goes on");
        CHECK_REFUSED(gcx_publish_start("x"), expected);
        CHECK_OK(gcx_lease_release(lease));
    });
}

void test_folders() {
    const Folder folder;
    const std::string inner = folder.inner().string();
    CHECK_EQ(mkdir(inner.c_str(), 0755), 0);
    CHECK_EQ(chmod(inner.c_str(), 0755), 0);
    refused_start(GCX_ERROR_NOT_PERMITTED);
    uint32_t count = 0;
    CHECK_REFUSED(gcx_published_lease_list(nullptr, 0, &count), GCX_ERROR_NOT_PERMITTED);
    CHECK_EQ(rmdir(inner.c_str()), 0);

    CHECK_EQ(symlink("/tmp", inner.c_str()), 0);
    refused_start(GCX_ERROR_OPERATING_SYSTEM);
    CHECK_REFUSED(gcx_published_process_list(nullptr, 0, &count), GCX_ERROR_OPERATING_SYSTEM);
    unlink(inner.c_str());
    std::ofstream(inner) << "a file";
    refused_start(GCX_ERROR_OPERATING_SYSTEM);
    unlink(inner.c_str());

    for (const char* wrong : {"not/absolute", "/nonexistent/folder", "/dev/null"}) {
        setenv("XDG_RUNTIME_DIR", wrong, 1);
        refused_start(GCX_ERROR_NOT_PERMITTED);
        CHECK_REFUSED(gcx_published_lease_list(nullptr, 0, &count), GCX_ERROR_NOT_PERMITTED);
    }
    setenv("XDG_RUNTIME_DIR", folder.path().c_str(), 1);
    if (geteuid() == 0) {
        CHECK_EQ(mkdir(inner.c_str(), 0700), 0);
        CHECK_EQ(chown(inner.c_str(), 12345, 12345), 0);
        refused_start(GCX_ERROR_NOT_PERMITTED);
        CHECK_EQ(rmdir(inner.c_str()), 0);
    } else {
        CHECK_EQ(chmod(folder.path().c_str(), 0500), 0);
        refused_start(GCX_ERROR_OPERATING_SYSTEM);
        CHECK_EQ(chmod(folder.path().c_str(), 0700), 0);
    }
    // A limit that would end the process by a signal, were it reached.
    in_child("a small limit", [&] {
        open_machine();
        const rlimit least{4096, 4096};
        CHECK_EQ(setrlimit(RLIMIT_FSIZE, &least), 0);
        CHECK_EQ(gcx_publish_start("x"), GCX_ERROR_OPERATING_SYSTEM);
        CHECK(message_has("too large"));
        CHECK_EQ(folder.files().size(), 0U);
    });
    // A full disk, where this user may mount one.
    in_child("a full disk", [&] {
        if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
            mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount("none", folder.path().c_str(), "tmpfs", 0, "size=32k,mode=700") != 0) {
            CHECK(true);
            return;
        }
        open_machine();
        CHECK_EQ(gcx_publish_start("x"), GCX_ERROR_OPERATING_SYSTEM);
        CHECK(message_has("No space"));
        CHECK_EQ(folder.files().size(), 0U);
    });
}

void test_environment() {
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
    setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);
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

// Threads that publish, stop, take leases and list, all at once.
void test_threads() {
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
    test_nobody();
    test_what_is_seen();
    test_ends();
    test_fork();
    test_while_they_change();
    test_hostile_files();
    test_changed_files();
    test_many();
    test_many_leases();
    test_failures_of_the_driver();
    test_folders();
    test_environment();
    test_threads();
    return summary("publish");
}
