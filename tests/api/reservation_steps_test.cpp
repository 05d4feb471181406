// A process that reserves, waits, joins and releases is interrupted at each of its system calls. If
// it is stopped there, no other process gets its SMs. If it is killed there, nothing stays reserved
// or on the disk, and no other process is blocked.
#include "reservations.hpp"
#include "system_calls.hpp"

#include <sys/mman.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <utility>

using namespace reservations;
using namespace support;
using publish::Folder;
using publish::Other;

namespace {

constexpr int kGivenBackAt = 30; // calls, those of a wait among them

// The folder and the process.
struct Scene {
    std::string folder;
    bool of_group; // the two are of different users
    bool waits;    // all SMs are held until kGivenBackAt
    uint32_t beside;
};

void become(const Scene& scene, uid_t user) {
    publish::open_machine("h100@13.0");
    setenv("GCX_RESERVATION_DIR", scene.folder.c_str(), 1);
    umask(0777);
    if (!scene.of_group)
        return;
    CHECK_EQ(setgid(4711), 0);
    CHECK_EQ(setuid(user), 0);
}

// What happens at each call. A separate process does it, by order through shared memory.
enum class Act : uint8_t { take_all, give_all, take_beside, find_nothing };
struct Shared {
    Act act;
    bool ended; // the process that uses reservations has used them
};
Shared* shared = nullptr;

class Neighbour {
  public:
    explicit Neighbour(const Scene& scene)
        : process_([&](Other& self) {
              become(scene, 1002);
              for (gcx_reservation own = nullptr;;) {
                  self.point();
                  act(scene, shared->act, own);
              }
          }) {
        process_.arrived();
    }
    void act(Act what) {
        shared->act = what;
        process_.next();
        process_.arrived(); // it ends at the first thing that is wrong
    }

  private:
    static bool is_locked(const std::string& folder) {
        const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const bool locked = flock(file, LOCK_EX | LOCK_NB) != 0;
        close(file);
        return locked;
    }

    static void act(const Scene& scene, Act what, gcx_reservation& own) {
        // A process that is stopped in the middle of a change blocks all other changes.
        if (what == Act::take_beside && is_locked(scene.folder))
            return;
        if (own != nullptr)
            release(std::exchange(own, nullptr));
        if (what == Act::take_all)
            own = reserve(132);
        if (what == Act::take_beside) {
            const gcx_result result = try_reserve(scene.beside, {}, &own);
            CHECK(result == GCX_SUCCESS || result == GCX_ERROR_ALREADY_ACQUIRED);
            listed(); // checks that no two have an atom in common
        }
        if (what == Act::find_nothing) {
            CHECK(listed().empty());
            release(reserve(132));
            CHECK(publish::fs::is_empty(scene.folder));
        }
        if (check::failed != 0)
            std::exit(1);
    }

    Other process_;
};

// Runs in the process that uses reservations, before each of its calls.
enum class AtCall : uint8_t { nothing, stop, die };
AtCall at_call = AtCall::nothing;
int calls_made = 0;
int last_call = 0; // before which it dies
const Other* user = nullptr;
bool given_back = false;

void use_reservations(const Scene& scene) {
    gcx_reservation reservation = nullptr;
    const gcx_result result = try_reserve(
        24, {.name = "user", .timeout_ms = scene.waits ? GCX_FOREVER : 0}, &reservation);
    CHECK(result == GCX_SUCCESS || (result == GCX_ERROR_ALREADY_ACQUIRED && !scene.waits));
    if (result != GCX_SUCCESS)
        return;
    gcx_reservation joined = nullptr;
    CHECK_OK(gcx_reservation_join(token_of(reservation).c_str(), &joined));
    release(reservation);
    CHECK(held_sms(listed()) >= 24);
    release(joined);
}

Other start(const Scene& scene, AtCall what, int call) {
    shared->ended = false;
    return Other([&](Other& self) {
        become(scene, 1001);
        user = &self;
        last_call = call;
        given_back = !scene.waits;
        at_call = what;
        use_reservations(scene);
        at_call = AtCall::nothing;
        shared->ended = true;
        if (what == AtCall::stop)
            self.point();
    });
}

// Stops the process before each of its calls, and reserves in another one.
void process_stopped_keeps_its_sms(const Scene& scene) {
    Neighbour neighbour(scene);
    if (scene.waits)
        neighbour.act(Act::take_all);
    Other process = start(scene, AtCall::stop, 0);
    int calls = 0;
    for (process.arrived(); !shared->ended && calls < 1000; process.arrived()) {
        calls++;
        if (scene.waits && calls == kGivenBackAt)
            neighbour.act(Act::give_all);
        else if (!scene.waits || calls > kGivenBackAt)
            neighbour.act(Act::take_beside);
        process.next();
    }
    process.next();
    process.ended();
    CHECK(calls > 5); // of one that is refused at once
    neighbour.act(Act::find_nothing);
}

// Kills the process before one of its calls, each in turn.
void process_killed_leaves_nothing_reserved(const Scene& scene) {
    Neighbour neighbour(scene);
    const int step = check::slow_alone ? 4 : 1; // each is a process
    int call = 0;
    do {
        call += step;
        if (scene.waits)
            neighbour.act(Act::take_all);
        Other process = start(scene, AtCall::die, call);
        if (scene.waits && call >= kGivenBackAt) {
            process.arrived();
            neighbour.act(Act::give_all);
            process.next();
        }
        siginfo_t info{};
        CHECK_EQ(waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOWAIT), 0);
        CHECK(shared->ended ? info.si_code == CLD_EXITED && info.si_status == 0
                            : info.si_code == CLD_KILLED && info.si_status == SIGKILL);
        if (scene.waits && call < kGivenBackAt)
            neighbour.act(Act::give_all);
        neighbour.act(Act::find_nothing);
    } while (!shared->ended && call < 1000);
    CHECK(call > 30);
}

void test_in(const Folder& folder, bool of_group) {
    Scene scene{folder.path() / (of_group ? "group" : "own"), of_group, false, 64};
    publish::fs::create_directory(scene.folder);
    CHECK_EQ(chown(scene.folder.c_str(), geteuid(), of_group ? 4711 : getegid()), 0);
    CHECK_EQ(chmod(scene.folder.c_str(), of_group ? 02770 : 0700), 0);
    process_stopped_keeps_its_sms(scene);
    process_killed_leaves_nothing_reserved(scene);
    scene.beside = GCX_REST;
    process_stopped_keeps_its_sms(scene);
    scene.waits = true;
    process_stopped_keeps_its_sms(scene);
    process_killed_leaves_nothing_reserved(scene);
}

} // namespace

bool calls::fails(int& /*with*/) {
    if (at_call == AtCall::nothing)
        return false;
    const AtCall now = std::exchange(at_call, AtCall::nothing); // not at those made here
    calls_made++;
    if (now == AtCall::die && calls_made == kGivenBackAt && !given_back)
        user->point();
    if (now == AtCall::die && calls_made == last_call)
        raise(SIGKILL);
    if (now == AtCall::stop)
        user->point();
    at_call = now;
    return false;
}

int main() {
    shared = static_cast<Shared*>(
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const Folder folder;
    CHECK_EQ(chmod(folder.path().c_str(), 0755), 0);
    test_in(folder, false);
    if (geteuid() == 0)
        test_in(folder, true);
    return check::summary("reservation steps");
}
