// The default folder, which is the same for all processes of a user in all sessions. Runs in a
// private mount namespace, so that the folder of the user who runs the test is not touched. Skipped
// if there can be none.
#include "reservations.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>

using namespace reservations;
using namespace support;
using publish::Other;
namespace fs = std::filesystem;

namespace {

constexpr int kSkipped = 77; // what meson takes for a test that was skipped

std::string usual_path() {
    return "/dev/shm/gcx-" + std::to_string(geteuid());
}

void map_user(const char* file, uid_t outside) {
    std::ofstream(file) << outside << ' ' << outside << " 1";
}

// Returns why this process can't have one, or an empty string.
std::string enter_namespace() {
    const uid_t user = geteuid();
    const gid_t group = getegid();
    if (unshare(user == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return std::string("unshare: ") + std::strerror(errno);
    if (user != 0) {
        map_user("/proc/self/uid_map", user);
        std::ofstream("/proc/self/setgroups") << "deny";
        map_user("/proc/self/gid_map", group);
    }
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", "/dev/shm", "tmpfs", 0, "mode=1777") != 0)
        return std::string("mount: ") + std::strerror(errno);
    return "";
}

// Replaces /dev/shm by an empty one.
class Shm {
  public:
    explicit Shm(const char* options = "mode=1777") {
        CHECK_EQ(mount("none", "/dev/shm", "tmpfs", 0, options), 0);
    }
    ~Shm() { CHECK_EQ(umount2("/dev/shm", MNT_DETACH), 0); }
    Shm(const Shm&) = delete;
    Shm& operator=(const Shm&) = delete;
};

// Runs a test in a process with private mounts.
void with_own_mounts(const char* name, const std::function<void()>& body) {
    in_child(name, [&] {
        CHECK_EQ(unshare(CLONE_NEWNS), 0);
        body();
    });
}

void start_mps() {
    setenv("GCX_SIM_MPS", "1", 1);
    publish::open_machine();
}

// What differs between two processes of one user.
struct Session {
    const char* name;
    std::function<void()> enter;
};

const std::vector<Session>& sessions() {
    static const std::vector<Session> all = {
        {"service", [] { unsetenv("XDG_RUNTIME_DIR"); }},
        {"login",
         [] {
             fs::create_directory("/dev/shm/run");
             fs::permissions("/dev/shm/run", fs::perms::owner_all);
             setenv("XDG_RUNTIME_DIR", "/dev/shm/run", 1);
         }},
        {"private tmp",
         [] {
             unsetenv("XDG_RUNTIME_DIR");
             CHECK_EQ(unshare(CLONE_NEWNS), 0);
             CHECK_EQ(mount("none", "/tmp", "tmpfs", 0, "mode=1777"), 0);
         }},
        {"sudo",
         [] {
             fs::create_directory("/dev/shm/theirs");
             if (geteuid() == 0)
                 CHECK_EQ(chown("/dev/shm/theirs", 4711, 4711), 0);
             setenv("XDG_RUNTIME_DIR", "/dev/shm/theirs", 1);
             setenv("HOME", "/dev/shm/theirs", 1);
         }},
    };
    return all;
}

// All of them reserve SMs and publish before any of them checks what it sees.
void sessions_of_one_user_share_reservations_and_published_leases() {
    const Shm shm;
    std::vector<std::unique_ptr<Other>> others;
    for (const Session& session : sessions()) {
        others.push_back(std::make_unique<Other>([&](Other& self) {
            start_mps();
            session.enter();
            CHECK_EQ(token_of(reserve(32, {.name = session.name})).find(usual_path() + "/"), 0U);
            CHECK_OK(gcx_publish_start(session.name));
            self.point();
            CHECK_EQ(listed().size(), sessions().size());
            CHECK(held_sms(listed()) >= 128);
            CHECK_EQ(try_reserve(32), GCX_ERROR_ALREADY_ACQUIRED);
            for (const Session& other : sessions())
                CHECK(message_has(other.name));
            CHECK_EQ(publish::processes().size(), sessions().size());
            self.point();
        }));
        others.back()->arrived();
    }
    for (const auto& other : others)
        other->proceed();
    for (const auto& other : others) {
        other->next();
        other->ended();
    }
}

void folder_is_created_with_mode_700() {
    for (const mode_t mask : {0U, 0177U, 0777U}) {
        const Shm shm;
        in_child("any umask", [mask] {
            umask(mask);
            uint32_t count = 1;
            CHECK_OK(gcx_reservation_list(nullptr, nullptr, 0, &count));
            CHECK_EQ(count, 0U);
            CHECK_OK(gcx_published_process_list(nullptr, 0, &count));
            CHECK(fs::is_empty("/dev/shm")); // listing creates nothing
            publish::open_machine();
            release(reserve(8));
            struct stat info{};
            CHECK_EQ(stat(usual_path().c_str(), &info), 0);
            CHECK_EQ(info.st_mode, mode_t{S_IFDIR | 0700});
            CHECK_EQ(info.st_uid, geteuid());
        });
    }
}

// Removes the folder, as logind does at the end of a session.
void folder_removed_under_a_live_reservation_is_not_created_again() {
    const Shm shm;
    Other first([](Other& self) {
        publish::open_machine();
        const gcx_reservation reservation = reserve(100);
        CHECK_OK(gcx_publish_start("first"));
        self.point();
        CHECK_EQ(info_of(reservation).lost, 1);
    });
    first.arrived();
    fs::remove_all(usual_path());
    in_child("a login", [&] {
        publish::open_machine();
        for (int round = 0; round < 2; round++) {
            CHECK_EQ(try_reserve(100), GCX_ERROR_OPERATING_SYSTEM);
            CHECK(message_has("process " + std::to_string(first.pid()) + " had a reservation"));
            CHECK(message_has("RemoveIPC") && message_has("GCX_RESERVATION_DIR"));
            CHECK_EQ(gcx_publish_start("x"), GCX_ERROR_OPERATING_SYSTEM);
            CHECK(listed().empty());
        }
        // Without descriptors, /proc can't be searched for such a process.
        rlimit before{};
        CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
        const rlimit none{0, before.rlim_max};
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
        CHECK_EQ(try_reserve(100), GCX_ERROR_OPERATING_SYSTEM);
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        CHECK(message_has("Too many open files"));
        CHECK(!fs::exists(usual_path()));
    });
    first.next();
    first.ended();
    in_child("the next one", [] {
        publish::open_machine();
        release(reserve(100));
    });
}

// Only reservations that were in the folder prevent that it is created.
void reservations_elsewhere_do_not_prevent_the_folder() {
    const Shm shm;
    const std::string named = "/dev/shm/named";
    CHECK_EQ(mkdir(named.c_str(), 0700), 0);
    Other removed([&](Other& self) {
        publish::open_machine();
        reserve(100, {.folder = named.c_str()});
        fs::remove_all(named);
        self.point();
    });
    removed.arrived();
    Other container([](Other& self) {
        CHECK_EQ(unshare(CLONE_NEWNS), 0);
        CHECK_EQ(mount("none", "/dev/shm", "tmpfs", 0, "mode=1777"), 0);
        publish::open_machine();
        reserve(100);
        self.point();
    });
    container.arrived();
    CHECK(fs::is_empty("/dev/shm"));
    in_child("a login", [] {
        publish::open_machine();
        release(reserve(100));
    });
    removed.kill(SIGKILL);
    container.kill(SIGKILL);
}

void effective_user_has_the_folder() {
    if (geteuid() != 0)
        return;
    const Shm shm;
    in_child("another user", [] {
        publish::open_machine();
        CHECK_EQ(setresuid(0, 4711, 0), 0);
        release(reserve(8));
        CHECK_OK(gcx_publish_start("x"));
        CHECK(fs::exists("/dev/shm/gcx-4711"));
        CHECK(!fs::exists("/dev/shm/gcx-0"));
        // The leak sanitizer inspects its process, which is not permitted after a change of the
        // user.
        CHECK_EQ(setresuid(0, 0, 0), 0);
        CHECK_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
    });
}

void check_refused(gcx_result expected, const std::vector<std::string>& words) {
    const auto says_all = [&] {
        return std::all_of(words.begin(), words.end(),
                           [](const std::string& word) { return message_has(word); }) &&
               message_has("GCX_RESERVATION_DIR");
    };
    CHECK_REFUSED(try_reserve(8), expected);
    CHECK(says_all());
    CHECK_REFUSED(gcx_publish_start("x"), expected);
    CHECK(says_all());
}

void folder_that_others_can_change_is_refused() {
    in_child("folders", [] {
        publish::open_machine();
        const std::string path = usual_path();
        uint32_t count = 0;
        {
            const Shm shm;
            fs::create_directory("/dev/shm/elsewhere");
            fs::permissions("/dev/shm/elsewhere", fs::perms::owner_all);
            fs::create_symlink("/dev/shm/elsewhere", path);
            check_refused(GCX_ERROR_UNSAFE_FOLDER, {path, "a symbolic link", "remove it"});
            CHECK_REFUSED(gcx_reservation_list(nullptr, nullptr, 0, &count),
                          GCX_ERROR_UNSAFE_FOLDER);
            CHECK(fs::is_empty("/dev/shm/elsewhere"));
        }
        {
            const Shm shm;
            std::ofstream(path) << "a file";
            check_refused(GCX_ERROR_UNSAFE_FOLDER, {path, "not a folder"});
        }
        for (const mode_t mode : {0770U, 0701U, 0750U, 01777U}) {
            const Shm shm;
            fs::create_directory(path);
            CHECK_EQ(chmod(path.c_str(), mode), 0);
            char text[16];
            std::snprintf(text, sizeof text, "mode %o", mode);
            check_refused(GCX_ERROR_UNSAFE_FOLDER, {path, text, "chmod 700"});
            CHECK_REFUSED(gcx_published_process_list(nullptr, 0, &count), GCX_ERROR_UNSAFE_FOLDER);
        }
        if (geteuid() == 0) {
            const Shm shm;
            fs::create_directory(path);
            fs::permissions(path, fs::perms::owner_all);
            CHECK_EQ(chown(path.c_str(), 4711, 4711), 0);
            check_refused(GCX_ERROR_UNSAFE_FOLDER, {path, "belongs to user 4711", "user 0"});
            CHECK_REFUSED(gcx_reservation_list(nullptr, nullptr, 0, &count),
                          GCX_ERROR_UNSAFE_FOLDER);
        }
    });
}

void folder_that_cannot_be_created_is_named() {
    with_own_mounts("no /dev/shm", [] {
        publish::open_machine();
        CHECK_EQ(mount("none", "/dev", "tmpfs", 0, "mode=755"), 0);
        check_refused(GCX_ERROR_OPERATING_SYSTEM, {usual_path(), "/dev/shm does not exist"});
        // Another folder can be used.
        CHECK_EQ(mkdir("/dev/holds", 0700), 0);
        setenv("GCX_RESERVATION_DIR", "/dev/holds", 1);
        release(reserve(8));
        CHECK_OK(gcx_publish_start("x"));
    });
    in_child("full disks", [] {
        publish::open_machine();
        {
            const Shm no_inodes("mode=1777,nr_inodes=1");
            check_refused(GCX_ERROR_OPERATING_SYSTEM, {usual_path(), "No space left"});
        }
        const Shm small("mode=1777,size=8k");
        std::ofstream filler("/dev/shm/filler");
        filler << std::string(size_t{16} << 10, 'x') << std::flush;
        check_refused(GCX_ERROR_OPERATING_SYSTEM, {usual_path(), "No space left"});
        CHECK(fs::is_empty(usual_path()));
    });
    in_child("a read-only /dev/shm", [] {
        publish::open_machine();
        const Shm read_only("mode=1777,ro");
        check_refused(GCX_ERROR_OPERATING_SYSTEM, {usual_path(), "Read-only"});
    });
}

// In a group's folder, all users share reservations, and each publishes in a private folder.
void named_folder_has_a_private_one_for_each_user() {
    const Shm shm;
    const fs::path named = "/dev/shm/named";
    fs::create_directory(named);
    if (geteuid() == 0)
        CHECK_EQ(chown(named.c_str(), 0, 4711), 0);
    CHECK_EQ(chmod(named.c_str(), 03770), 0);
    setenv("GCX_RESERVATION_DIR", named.c_str(), 1);
    Other first([&](Other& self) {
        umask(0);
        publish::open_machine();
        CHECK_EQ(token_of(reserve(24)).find(named.string() + "/"), 0U);
        CHECK_OK(gcx_publish_start("first"));
        self.point();
    });
    first.arrived();
    const fs::path own = named / ("user-" + std::to_string(geteuid()));
    struct stat info{};
    CHECK_EQ(stat(own.c_str(), &info), 0);
    CHECK_EQ(info.st_mode & 0777U, 0700U);
    CHECK_EQ(publish::processes().size(), 1U);
    CHECK_EQ(listed().size(), 1U);
    CHECK(!fs::exists(usual_path()));
    if (geteuid() == 0) {
        Other second([&](Other&) {
            publish::open_machine();
            CHECK_EQ(setgid(4711), 0);
            CHECK_EQ(setuid(4712), 0);
            CHECK_EQ(listed().size(), 1U);
            CHECK(publish::processes().empty());
            CHECK_OK(gcx_publish_start("second"));
            CHECK_EQ(publish::processes().size(), 1U);
            CHECK(fs::exists(named / "user-4712"));
        });
        second.ended();
        CHECK_EQ(publish::processes().size(), 1U);
    }
    first.next();
    first.ended();
    unsetenv("GCX_RESERVATION_DIR");
}

} // namespace

int main() {
    if (const std::string problem = enter_namespace(); !problem.empty()) {
        std::printf("no mount namespace of its own: %s\n", problem.c_str());
        return kSkipped;
    }
    unsetenv("GCX_RESERVATION_DIR");
    sessions_of_one_user_share_reservations_and_published_leases();
    folder_is_created_with_mode_700();
    folder_removed_under_a_live_reservation_is_not_created_again();
    reservations_elsewhere_do_not_prevent_the_folder();
    effective_user_has_the_folder();
    folder_that_others_can_change_is_refused();
    folder_that_cannot_be_created_is_named();
    named_folder_has_a_private_one_for_each_user();
    return summary("place");
}
