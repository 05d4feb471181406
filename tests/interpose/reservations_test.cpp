// Reservations of a program inside gcx exec, which sees its partition as the device. Each is a part
// of the partition's reservation, and its atoms mean the same SMs as on the whole device.
#include "../api/reservations.hpp"
#include "inside.hpp"

#include <sys/mman.h>

using namespace support;
using inside::Inside;
using inside::Setup;
using publish::Folder;
using publish::Other;

namespace {

struct Case {
    const char* spec;
    uint32_t sms;
    uint32_t split_flags;
    gcx_sm_family family;
};

// Memory that the processes of the test share.
struct Board {
    char token[GCX_MAX_RESERVATION_TOKEN];
    uint32_t atom_count;
    uint64_t atoms[8];           // of a reservation
    inside::Sms sms_of_atom[80]; // on the whole device
};

Board* make_board() {
    void* const page =
        mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    return static_cast<Board*>(page);
}

inside::Sms set_of(const SmIds& ids) {
    inside::Sms set{};
    for (const uint32_t id : ids)
        set[id / 64] |= uint64_t{1} << id % 64;
    return set;
}

void read_atoms(const Case& wanted, Board& board) {
    on_machine(wanted.spec, [&] {
        gcx_resource whole = whole_device();
        gcx_resource family{};
        const gcx_sm_request rest = {.sm_count = GCX_REST};
        CHECK_OK(
            gcx_sm_split(&whole, &rest, 1, wanted.split_flags, &family, nullptr, nullptr, nullptr));
        board.atom_count = info_of(family).atom_count;
        CHECK(board.atom_count <= std::size(board.sms_of_atom));
        CHECK_OK(gcx_device_map_sms(0, wanted.family));
        for (uint32_t i = 0; i < board.atom_count; i++) {
            gcx_resource atom{};
            uint32_t ids[GCX_MAX_SMS];
            uint32_t count = 0;
            CHECK_OK(gcx_resource_get_atom(&family, i, &atom));
            CHECK_OK(gcx_resource_get_sm_ids(&atom, ids, GCX_MAX_SMS, &count));
            board.sms_of_atom[i] = set_of(SmIds(ids, ids + count));
        }
    });
}

// Checks that a reservation has the SMs that its file names.
void check_sms(gcx_reservation reservation, const Board& board) {
    const gcx_reservation_info info = reservations::info_of(reservation);
    gcx_resource resource{};
    CHECK_OK(gcx_reservation_get_resource(reservation, &resource));
    CHECK_EQ(sms(resource), info.sm_count);
    inside::Sms expected{};
    for (uint32_t atom = 0; atom < board.atom_count; atom++) {
        for (std::size_t word = 0; word < expected.size(); word++)
            if ((info.atoms[atom / 64] >> (atom % 64) & 1) != 0)
                expected[word] |= board.sms_of_atom[atom][word];
    }
    const Partition partition(resource);
    CHECK(set_of(partition.probe()) == expected);
    gcx_lease lease = nullptr;
    gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
    params.reservation = reservation;
    CHECK_OK(gcx_lease_acquire(-1, GCX_REST, &params, &lease));
    gcx_lease_info leased = GCX_LEASE_INFO_INIT;
    CHECK_OK(gcx_lease_get_info(lease, &leased));
    CHECK_EQ(leased.sm_count, info.sm_count);
    CHECK_OK(gcx_lease_release(lease));
}

void reservation_inside_runs_on_sms_of_its_atoms(const Case& wanted) {
    const Folder folder;
    Board& board = *make_board();
    read_atoms(wanted, board);
    Other owner([&](Other& other) {
        CHECK_OK(gcx_driver_open(("sim:" + std::string(wanted.spec)).c_str()));
        const gcx_reservation reservation =
            reservations::reserve(wanted.sms, {.family = wanted.family});
        const std::string token = reservations::token_of(reservation);
        std::memcpy(board.token, token.c_str(), token.size() + 1);
        other.point();
        reservations::release(reservation);
    });
    owner.arrived();
    const Setup setup = {.spec = wanted.spec,
                         .sms = {wanted.sms},
                         .split_flags = wanted.split_flags,
                         .plan_in_stub = true};
    inside::run_damaged(
        setup, [&](gcx::interpose::Plan& plan) { plan.devices[0].token = board.token; },
        [&](const Inside&) {
            gcx_reservation first = nullptr;
            if (reservations::try_reserve(8, {}, &first) == GCX_ERROR_NOT_SUPPORTED) {
                CHECK(wanted.family ==
                      GCX_SM_FAMILY_MAX_CLUSTER); // the driver splits it differently
                return;
            }
            check_sms(first, board);
            gcx_reservation second = nullptr;
            CHECK_OK(reservations::try_reserve(GCX_REST, {}, &second));
            check_sms(second, board);
            const auto found = reservations::listed();
            CHECK_EQ(found.size(), 3U);
            gcx_reservation third = nullptr;
            CHECK_EQ(reservations::try_reserve(8, {}, &third), GCX_ERROR_ALREADY_ACQUIRED);
            reservations::release(second);
            // Joining the partition's reservation gives the SMs of the partition.
            CHECK_OK(gcx_reservation_join(board.token, &third));
            check_sms(third, board);
            reservations::release(third);
            reservations::release(first);
        });
    owner.next();
    owner.ended();
    CHECK(folder.files().empty());
    munmap(&board, sizeof board);
}

} // namespace

int main() {
    for (const char* spec : {"h100@12.4", "h100@13.0", "h100@13.5", "a100@13.0"}) {
        for (const uint32_t count : {24U, 48U, 60U}) {
            reservation_inside_runs_on_sms_of_its_atoms(
                {spec, count, 0, GCX_SM_FAMILY_COSCHEDULED});
            reservation_inside_runs_on_sms_of_its_atoms(
                {spec, count, GCX_SPLIT_IGNORE_SM_COSCHEDULING, GCX_SM_FAMILY_FINE});
        }
    }
    reservation_inside_runs_on_sms_of_its_atoms({"h100@13.0", 132, 0, GCX_SM_FAMILY_COSCHEDULED});
    reservation_inside_runs_on_sms_of_its_atoms(
        {"h100@13.0", 48, GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE, GCX_SM_FAMILY_MAX_CLUSTER});
    return check::summary("reservations inside");
}
