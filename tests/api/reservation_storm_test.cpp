// Many processes reserve, wait, release, pass reservations to children and are killed at any
// moment. GCX_RESERVATION_STORM=PROCESSES:SECONDS sets the size: a release is tested with 200:600.
//
// The check does not rely on gcx: a process that has an atom locks a byte for it in a private file.
// These are POSIX locks. At the end of a process the kernel releases them before those of gcx,
// which belong to the open files.
#include "reservations.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

using namespace reservations;
using namespace support;
using publish::Folder;

namespace {

using Clock = std::chrono::steady_clock;

// Counters in memory that all processes share.
struct Sums {
    std::atomic<uint64_t> reserved;
    std::atomic<uint64_t> waited;
    std::atomic<uint64_t> in_vain;
    std::atomic<uint64_t> handed_over;
    std::atomic<uint64_t> twice;   // an atom with two holders
    std::atomic<uint64_t> refused; // with another error than that others have the SMs
};
Sums* sums = nullptr;

struct Plan {
    unsigned processes = check::slow ? 8 : 24;
    std::chrono::milliseconds time{check::slow ? 1500 : 2000};
    // The test continues until this many reservations were acquired: a busy emulated machine may
    // need longer than the time above to open the driver once.
    unsigned min_reservations = check::slow ? 5 : 20;
    // The longest time between two kills. The shortest is a quarter of it.
    unsigned pause_ms = check::slow ? 280 : 35;
};

Plan plan_of_environment() {
    Plan plan;
    if (const char* const text = std::getenv("GCX_RESERVATION_STORM")) {
        unsigned seconds = 0;
        CHECK_EQ(std::sscanf(text, "%u:%u", &plan.processes, &seconds), 2);
        plan.time = std::chrono::seconds(seconds);
    }
    return plan;
}

class Marks {
  public:
    explicit Marks(const std::string& path) : file_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
        if (file_ < 0)
            _exit(3);
    }
    // Returns whether no other process has any of the atoms. One object marks all reservations of a
    // process.
    bool mark(int32_t device, const gcx_reservation_info& info, bool add) const {
        const off_t base = device * 10'000;
        bool alone = true;
        // A reservation of another family blocks the whole device, since nothing is mapped.
        if (info.family == GCX_SM_FAMILY_FINE)
            alone = lock(base, 1000, add ? F_RDLCK : F_UNLCK);
        const off_t first = info.family == GCX_SM_FAMILY_FINE ? base + 1000 : base;
        for (off_t atom = 0; atom < 512; atom++) {
            if ((info.atoms[atom / 64] >> (atom % 64) & 1) != 0)
                alone = lock(first + atom, 1, add ? F_WRLCK : F_UNLCK) && alone;
        }
        return alone;
    }

  private:
    bool lock(off_t at, off_t count, int type) const {
        struct flock lock{};
        lock.l_type = static_cast<short>(type);
        lock.l_whence = SEEK_SET;
        lock.l_start = at;
        lock.l_len = count;
        return fcntl(file_, F_SETLK, &lock) == 0;
    }
    int file_;
};

void end_with_parent() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

// Passes the reservation to a child of this process.
void hand_over(const Marks& marks, gcx_reservation reservation, int32_t device,
               const gcx_reservation_info& info) {
    const std::string token = token_of(reservation);
    int joined[2];
    int go[2];
    if (pipe2(joined, O_CLOEXEC) != 0 || pipe2(go, O_CLOEXEC) != 0)
        return;
    const pid_t child = fork();
    if (child == 0) { // it outlives a parent that is killed, for the few ms that it has left
        close(joined[0]);
        close(go[1]);
        gcx_reservation own = nullptr;
        char byte = 0;
        const bool has = gcx_reservation_join(token.c_str(), &own) == GCX_SUCCESS;
        if (!has || write(joined[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
            _exit(0);
        if (!marks.mark(device, info, true))
            sums->twice++;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        sums->handed_over++;
        _exit(0); // without giving it back
    }
    close(joined[1]);
    close(go[0]);
    char byte = 0;
    const bool has = child > 0 && read(joined[0], &byte, 1) == 1;
    marks.mark(device, info, false);
    gcx_reservation_release(reservation);
    if (has && write(go[1], &byte, 1) != 1)
        sums->refused++;
    close(joined[0]);
    close(go[1]);
    if (child > 0)
        waitpid(child, nullptr, 0);
}

void one_round(const Marks& marks, std::mt19937& random) {
    const int32_t device = random() % 4 == 0 ? 1 : 0;
    const bool fine = random() % 16 == 0;
    const uint32_t timeouts[] = {0, 1, 5, 50, 1000, GCX_FOREVER};
    const uint32_t counts[] = {8, 8, 16, 24, 64, 108, 132, GCX_REST};
    Wanted wanted;
    wanted.device = device;
    wanted.name = "storm";
    wanted.timeout_ms = timeouts[random() % 6];
    wanted.family = fine ? GCX_SM_FAMILY_FINE : GCX_SM_FAMILY_NONE;
    gcx_reservation reservation = nullptr;
    const gcx_result result =
        try_reserve(fine ? 2 + random() % 8 : counts[random() % 8], wanted, &reservation);
    if (result == GCX_ERROR_TIMEOUT ||
        (result == GCX_ERROR_ALREADY_ACQUIRED && wanted.timeout_ms == 0)) {
        sums->in_vain++;
        return;
    }
    if (result != GCX_SUCCESS) {
        if (sums->refused++ < 10)
            std::fprintf(stderr, "    refused: %s\n", gcx_last_error_message());
        return;
    }
    sums->reserved++;
    sums->waited += wanted.timeout_ms != 0 ? 1 : 0;
    const gcx_reservation_info info = info_of(reservation);
    if (!marks.mark(device, info, true) || info.lost != 0)
        sums->twice++;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
    if (random() % 16 == 0) {
        hand_over(marks, reservation, device, info);
        return;
    }
    marks.mark(device, info, false);
    gcx_reservation_release(reservation);
}

// The number of rounds per second of all processes together.
void pause_between_rounds(unsigned processes, std::mt19937& random) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % (processes * 10'000)));
}

pid_t start(const std::string& marks_path, unsigned processes, unsigned seed) {
    const pid_t child = fork();
    if (child < 0) {
        std::perror("fork"); // and nobody is killed by that number
        std::exit(1);
    }
    if (child != 0)
        return child;
    end_with_parent();
    const Marks marks(marks_path);
    std::mt19937 random(seed);
    if (gcx_driver_open("sim:2xh100@13.0") != GCX_SUCCESS)
        _exit(2);
    for (;;) {
        pause_between_rounds(processes, random);
        one_round(marks, random);
    }
}

void test_storm() {
    const Folder folder;
    const Plan plan = plan_of_environment();
    const std::string marks_path = folder.path() / "marks";
    close(open(marks_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    std::mt19937 random(std::random_device{}());
    std::vector<pid_t> children;
    for (unsigned i = 0; i < plan.processes; i++)
        children.push_back(start(marks_path, plan.processes, static_cast<unsigned>(random())));
    uint64_t killed = 0;
    uint64_t looks = 0;
    const auto begin = Clock::now();
    while (Clock::now() < begin + plan.time ||
           (sums->reserved <= plan.min_reservations && Clock::now() < begin + 20 * plan.time)) {
        const unsigned shortest = plan.pause_ms / 4;
        std::this_thread::sleep_for(
            std::chrono::milliseconds(shortest + random() % (plan.pause_ms - shortest)));
        pid_t& child = children[random() % children.size()];
        ::kill(child, random() % 8 == 0 ? SIGTERM : SIGKILL);
        int status = 0;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSIGNALED(status));
        killed++;
        child = start(marks_path, plan.processes, static_cast<unsigned>(random()));
        if (killed % 4 == 0) {
            listed(); // checks that no two have an atom in common
            looks++;
        }
    }
    for (const pid_t child : children)
        ::kill(child, SIGKILL);
    for (const pid_t child : children)
        waitpid(child, nullptr, 0);
    // Children that were passed a reservation end on their own.
    const auto end = Clock::now() + std::chrono::seconds(10);
    while (!listed().empty() && Clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(listed().empty());
    const auto removal_end = Clock::now() + std::chrono::seconds(10);
    while (!folder.files().empty() && Clock::now() < removal_end)
        remove_dead_files(nullptr, "2xh100@13.0");
    for (const auto& file : folder.files())
        std::fprintf(stderr, "left: %s\n", file.c_str());
    CHECK(folder.files().empty());
    CHECK_EQ(sums->twice.load(), 0U);
    CHECK_EQ(sums->refused.load(), 0U);
    CHECK(sums->reserved > plan.min_reservations);
    std::printf("%u processes, %llu killed, %llu looked at: %llu reservations acquired, %llu of "
                "them with a "
                "time-out, %llu in vain, %llu handed over; %llu atoms with two holders\n",
                plan.processes, static_cast<unsigned long long>(killed),
                static_cast<unsigned long long>(looks),
                static_cast<unsigned long long>(sums->reserved.load()),
                static_cast<unsigned long long>(sums->waited.load()),
                static_cast<unsigned long long>(sums->in_vain.load()),
                static_cast<unsigned long long>(sums->handed_over.load()),
                static_cast<unsigned long long>(sums->twice.load()));
    // All SMs can be reserved again.
    on_machine("2xh100@13.0", [] {
        for (const int32_t device : {0, 1})
            release(reserve(132, {.device = device}));
    });
}

} // namespace

int main() {
    sums = static_cast<Sums*>(
        mmap(nullptr, sizeof(Sums), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    test_storm();
    return check::summary("reservation storm");
}
