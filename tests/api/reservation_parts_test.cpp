// Reservations that divide another one: those of processes inside gcx exec, whose plan names the
// reservation to divide.
#include "reservations.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <thread>

using namespace reservations;
using namespace support;
using publish::Folder;
using publish::Other;
namespace fs = std::filesystem;

namespace {

constexpr char kH100[] = "h100@13.0";

// Memory that the processes of the test share.
struct Board {
    char tokens[8][GCX_MAX_RESERVATION_TOKEN];
    uint64_t ids[8];
};

class Shared {
  public:
    Shared()
        : page_(mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                     0)) {
        CHECK(page_ != MAP_FAILED);
    }
    ~Shared() { munmap(page_, sizeof(Board)); }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    Board* operator->() const { return static_cast<Board*>(page_); }
    void note(std::size_t slot, gcx_reservation reservation) const {
        const std::string token = token_of(reservation);
        std::memcpy((*this)->tokens[slot], token.c_str(), token.size() + 1);
        (*this)->ids[slot] = info_of(reservation).id;
    }

  private:
    void* page_;
};

gcx_live_reservation live(uint64_t id) {
    for (const gcx_live_reservation& reservation : listed()) {
        if (reservation.id == id)
            return reservation;
    }
    CHECK(false);
    return {};
}

uint32_t waiting() {
    uint32_t count = 0;
    for (const gcx_live_reservation& reservation : listed())
        count += reservation.waits;
    return count;
}

void until_waiting(uint32_t count) {
    while (waiting() != count)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Returns the plan that gcx exec passes to its command for a reservation.
std::string plan_of(const char* token, uint64_t id) {
    const gcx_live_reservation reservation = live(id);
    std::string text = "gcx-exec-1 driver=/x shim=/x device=";
    char piece[64];
    for (const uint8_t byte : reservation.device_uuid) {
        std::snprintf(piece, sizeof piece, "%02x", byte);
        text += piece;
    }
    std::snprintf(piece, sizeof piece, " family=%s sms=%u of=%u atoms=",
                  reservation.family == GCX_SM_FAMILY_FINE ? "fine" : "coscheduled",
                  reservation.sm_count, reservation.atom_count);
    text += piece;
    for (uint32_t atom = 0, count = 0; atom < reservation.atom_count; atom++) {
        if ((reservation.atoms[atom / 64] >> (atom % 64) & 1) == 0)
            continue;
        std::snprintf(piece, sizeof piece, "%s%u", count++ == 0 ? "" : ",", atom);
        text += piece;
    }
    return text + " token=" + token;
}

// Opens the driver as gcx exec inside a partition does.
void open_inside(const Shared& shared, std::size_t slot) {
    setenv("GCX_EXEC_PLAN", plan_of(shared->tokens[slot], shared->ids[slot]).c_str(), 1);
    setenv("GCX_SIM", kH100, 1);
    CHECK_OK(gcx_driver_open(("/./." + std::string(std::getenv("GCX_SIM_LIBRARY"))).c_str()));
}

// A process that has a reservation until next() is called.
Other outer(const Shared& shared, uint32_t sm_count) {
    return Other([&](Other& other) {
        publish::open_machine(kH100);
        const gcx_reservation reservation = reserve(sm_count, {.name = "outer"});
        shared.note(0, reservation);
        other.point();
        release(reservation);
    });
}

// A process that divides the reservation of one slot and stores its part in another slot.
Other part(const Shared& shared, std::size_t around, std::size_t slot, uint32_t sm_count,
           const Wanted& wanted = {}) {
    return Other([&, wanted](Other& other) {
        open_inside(shared, around);
        const gcx_reservation reservation = reserve(sm_count, wanted);
        shared.note(slot, reservation);
        other.point();
        release(reservation);
    });
}

void finish(Other& other) {
    other.next();
    other.ended();
}

// Runs the body in a child that gcx exec started in the reservation of a slot.
void inside(const Shared& shared, std::size_t slot, const std::function<void()>& body) {
    in_child("inside " + std::to_string(slot), [&] {
        open_inside(shared, slot);
        body();
    });
}

void outside(const std::function<void()>& body) {
    on_machine(kH100, body);
}

// Runs the body next to a process that has a reservation, in a folder in which no file stays.
void in_reservation(uint32_t sm_count,
                    const std::function<void(const Shared&, Other& owner)>& body) {
    const Folder folder;
    const Shared shared;
    Other owner = outer(shared, sm_count);
    owner.arrived();
    body(shared, owner);
    CHECK(folder.files().empty());
}

void parts_are_disjoint_and_within() {
    in_reservation(48, [](const Shared& shared, Other& owner) {
        Other a = part(shared, 0, 1, 24, {.name = "a"});
        a.arrived();
        Other b = part(shared, 0, 2, 16);
        b.arrived();
        const auto found = listed(); // which checks it
        CHECK_EQ(found.size(), 3U);
        CHECK_EQ(held_sms(found), 48U);
        CHECK_EQ(live(shared->ids[1]).parent, shared->ids[0]);
        CHECK_EQ(live(shared->ids[0]).parent, 0U);
        inside(shared, 0, [&] {
            gcx_reservation reservation = nullptr;
            CHECK_EQ(try_reserve(16, {}, &reservation), GCX_ERROR_ALREADY_ACQUIRED);
            CHECK(message_has("the reservation \"outer\" of device 0 has 48 SMs; "));
            CHECK(message_has("; \"a\" of process"));
            CHECK(!message_has("\"outer\" of process"));
            CHECK_EQ(try_reserve(56, {}, &reservation), GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
            CHECK(message_has("has 48 SMs"));
            CHECK_EQ(try_reserve(8, {.family = GCX_SM_FAMILY_FINE}, &reservation),
                     GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
            CHECK_EQ(try_reserve(8, {.folder = "/tmp"}, &reservation), GCX_ERROR_INVALID_VALUE);
            const std::string folder = fs::path(shared->tokens[0]).parent_path();
            const std::string missing = folder + "/missing";
            CHECK_EQ(try_reserve(8, {.folder = missing.c_str()}, &reservation),
                     GCX_ERROR_OPERATING_SYSTEM);
            CHECK(message_has("missing: No such file or directory"));
            fs::rename(folder, folder + "-moved");
            CHECK_EQ(try_reserve(8, {.folder = folder.c_str()}, &reservation),
                     GCX_ERROR_OPERATING_SYSTEM);
            fs::rename(folder + "-moved", folder);
            reservation = reserve(GCX_REST, {.folder = folder.c_str()});
            CHECK_EQ(info_of(reservation).sm_count, 8U);
            CHECK_EQ(listed().size(), 4U);
            release(reservation);
        });
        finish(a);
        finish(b);
        finish(owner);
    });
}

// Other processes can use no SM of a reservation, whether it has parts or not.
void parent_with_parts_is_reserved_as_a_whole() {
    in_reservation(48, [](const Shared& shared, Other& owner) {
        for (int round = 0; round < 2; round++) {
            outside([] {
                gcx_reservation reservation = nullptr;
                CHECK_EQ(try_reserve(92, {}, &reservation), GCX_ERROR_ALREADY_ACQUIRED);
                CHECK(message_has("device 0 has 132 SMs; \"outer\" of process"));
                CHECK(!message_has("\"part\""));
                reservation = reserve(GCX_REST);
                CHECK_EQ(info_of(reservation).sm_count, 84U);
                static_cast<void>(listed());
                release(reservation);
            });
            if (round == 0) {
                Other inner = part(shared, 0, 1, 8, {.name = "part"});
                inner.arrived();
                outside([] {
                    CHECK_EQ(try_reserve(92), GCX_ERROR_ALREADY_ACQUIRED);
                    CHECK(!message_has("\"part\""));
                });
                finish(inner);
            }
        }
        finish(owner);
    });
}

// Each reservation has a separate queue.
void waiting_part_is_served_when_a_sibling_ends() {
    in_reservation(48, [](const Shared& shared, Other& owner) {
        Other stranger([](Other& other) {
            publish::open_machine(kH100);
            const gcx_reservation reservation = reserve(100, {.timeout_ms = 60'000});
            other.point();
            release(reservation);
        });
        until_waiting(1);
        Other sibling = part(shared, 0, 1, 32);
        sibling.arrived();
        Other waiter = part(shared, 0, 2, 24, {.timeout_ms = 60'000});
        until_waiting(2);
        inside(shared, 0, [&] {
            CHECK_EQ(try_reserve(8), GCX_ERROR_ALREADY_ACQUIRED);
            CHECK(message_has("1 waits, the first, process "));
        });
        sibling.kill(SIGKILL);
        waiter.arrived();
        CHECK_EQ(waiting(), 1U); // the one outside
        static_cast<void>(listed());
        finish(waiter);
        finish(owner);
        stranger.arrived();
        finish(stranger);
    });
}

void waits_in_a_part_end_by_timeout_and_cancel() {
    in_reservation(24, [](const Shared& shared, Other& owner) {
        inside(shared, 0, [&] {
            const gcx_reservation all = reserve(GCX_REST);
            CHECK_EQ(info_of(all).sm_count, 24U);
            CHECK_EQ(try_reserve(8, {.timeout_ms = 50}), GCX_ERROR_TIMEOUT);
            gcx_cancel cancel = make_cancel();
            std::thread waiter([&] {
                CHECK_EQ(try_reserve(8, {.timeout_ms = 60'000, .cancel = cancel}),
                         GCX_ERROR_CANCELLED);
            });
            until_waiting(1);
            CHECK_OK(gcx_cancel_signal(cancel));
            waiter.join();
            CHECK_OK(gcx_cancel_destroy(cancel));
            CHECK_EQ(listed().size(), 2U);
            release(all);
            release(reserve(24));
        });
        finish(owner);
    });
}

// A part keeps its parent owned as long as its process exists.
// The first of them finds out which reservation they are in.
void threads_make_their_first_parts_at_once() {
    in_reservation(64, [](const Shared& shared, Other& owner) {
        inside(shared, 0, [] {
            in_threads(8, [](unsigned) { release(reserve(8)); });
            CHECK_EQ(listed().size(), 1U);
        });
        finish(owner);
    });
}

void part_keeps_its_parent() {
    in_reservation(48, [](const Shared& shared, Other& owner) {
        Other inner = part(shared, 0, 1, 24);
        inner.arrived();
        owner.kill(SIGKILL);
        CHECK_EQ(held_sms(listed()), 48U);
        finish(inner);
        on_machine(kH100, [] { release(reserve(GCX_REST)); });
    });
}

// A program that was started in a part owns only the part. Its SMs stay reserved when the rest of
// the parent is free.
void part_without_its_parent_counts_by_itself() {
    in_reservation(48, [](const Shared& shared, Other& owner) {
        Other starter([&](Other& other) {
            open_inside(shared, 0);
            const gcx_reservation reservation = reserve(24, {.flags = GCX_RESERVATION_INHERIT});
            shared.note(1, reservation);
            const pid_t starting = getpid();
            const pid_t started = fork(); // it has the part's descriptor, and not the parent's
            if (started == 0) {
                while (getppid() ==
                       starting) // which keeps the parent reservation until it has ended
                    usleep(1000);
                other.point();
                _exit(0);
            }
            _exit(0);
        });
        starter.arrived();
        finish(owner);
        outside([] {
            const gcx_reservation reservation = reserve(GCX_REST);
            CHECK_EQ(info_of(reservation).sm_count, 108U);
            CHECK_EQ(listed().size(), 2U);
            CHECK_EQ(try_reserve(8), GCX_ERROR_ALREADY_ACQUIRED);
            release(reservation);
        });
        in_child("inside what has ended", [&] {
            // This process was started in the parent before the parent ended.
            setenv("GCX_EXEC_PLAN", plan_of(shared->tokens[0], shared->ids[1]).c_str(), 1);
            setenv("GCX_SIM", kH100, 1);
            CHECK_OK(
                gcx_driver_open(("/./." + std::string(std::getenv("GCX_SIM_LIBRARY"))).c_str()));
            CHECK_EQ(try_reserve(8), GCX_ERROR_NOT_FOUND);
            CHECK(message_has("has ended"));
        });
        inside(shared, 1, [&] {
            gcx_reservation reservation = reserve(16);
            CHECK_EQ(listed().size(), 2U);
            CHECK_EQ(try_reserve(16), GCX_ERROR_ALREADY_ACQUIRED);
            release(reservation);
        });
        starter.next();
        starter.ended();
        // The programs that it started may still be ending.
        on_machine(kH100, [] { release(reserve(132, {.timeout_ms = 60'000})); });
    });
}

// Parts of another reservation are outside of this one, whatever their family.
void part_of_another_reservation_takes_nothing() {
    in_reservation(48, [](const Shared& shared, Other& owner) {
        Other fine([&](Other& other) {
            publish::open_machine(kH100);
            CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_FINE));
            CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
            const gcx_reservation reservation = reserve(16, {.family = GCX_SM_FAMILY_FINE});
            shared.note(1, reservation);
            other.point();
            release(reservation);
        });
        fine.arrived();
        Other cousin = part(shared, 1, 2, 8);
        cousin.arrived();
        CHECK_EQ(live(shared->ids[2]).family, GCX_SM_FAMILY_FINE);
        CHECK_EQ(live(shared->ids[2]).parent, shared->ids[1]);
        inside(shared, 0, [] { release(reserve(48)); });
        finish(cousin);
        finish(fine);
        finish(owner);
    });
}

void three_levels_are_disjoint() {
    in_reservation(64, [](const Shared& shared, Other& owner) {
        Other middle = part(shared, 0, 1, 40);
        middle.arrived();
        Other inner = part(shared, 1, 2, 16);
        inner.arrived();
        Other beside = part(shared, 1, 3, 24);
        beside.arrived();
        Other uncle = part(shared, 0, 4, 24);
        uncle.arrived();
        const auto found = listed();
        CHECK_EQ(found.size(), 5U);
        CHECK_EQ(held_sms(found), 64U);
        CHECK_EQ(live(shared->ids[2]).parent, shared->ids[1]);
        for (std::size_t slot = 0; slot < 2; slot++) {
            inside(shared, slot, [&] { CHECK_EQ(try_reserve(8), GCX_ERROR_ALREADY_ACQUIRED); });
        }
        // SMs of the released middle reservation stay with its parts until these end.
        middle.kill(SIGKILL);
        inner.kill(SIGKILL);
        inside(shared, 0, [&] {
            CHECK_EQ(try_reserve(8),
                     GCX_ERROR_ALREADY_ACQUIRED); // the parts keep the middle
        });
        finish(beside);
        inside(shared, 0, [&] { release(reserve(40)); });
        finish(uncle);
        finish(owner);
    });
}

} // namespace

int main() {
    parts_are_disjoint_and_within();
    parent_with_parts_is_reserved_as_a_whole();
    waiting_part_is_served_when_a_sibling_ends();
    waits_in_a_part_end_by_timeout_and_cancel();
    threads_make_their_first_parts_at_once();
    part_keeps_its_parent();
    if (!check::emulated) // qemu lets a child keep what it must not inherit
        part_without_its_parent_counts_by_itself();
    part_of_another_reservation_takes_nothing();
    three_levels_are_disjoint();
    return check::summary("reservation parts");
}
