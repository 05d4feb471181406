#include "reservations.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace reservations {
namespace {

bool same_sms(const gcx_live_reservation& a, const gcx_live_reservation& b) {
    if (std::memcmp(a.device_uuid, b.device_uuid, sizeof a.device_uuid) != 0 || a.waits != 0 ||
        b.waits != 0)
        return false;
    uint64_t common = 0;
    for (std::size_t word = 0; word < 8; word++)
        common |= a.atoms[word] & b.atoms[word];
    return common != 0;
}

// Returns whether one reservation is a part of the other, directly or not.
bool is_part_of(const gcx_live_reservation& part, const gcx_live_reservation& whole,
                const std::vector<gcx_live_reservation>& found) {
    uint64_t parent = part.parent;
    for (std::size_t step = 0; parent != 0 && step <= found.size(); step++) {
        if (parent == whole.id)
            return true;
        uint64_t next = 0;
        for (const gcx_live_reservation& reservation : found)
            next = reservation.id == parent ? reservation.parent : next;
        parent = next;
    }
    return false;
}

bool is_within(const gcx_live_reservation& part, const gcx_live_reservation& whole) {
    uint64_t beyond = 0;
    for (std::size_t word = 0; word < 8; word++)
        beyond |= part.atoms[word] & ~whole.atoms[word];
    return beyond == 0;
}

bool agree(const gcx_live_reservation& a, const gcx_live_reservation& b,
           const std::vector<gcx_live_reservation>& found) {
    if (is_part_of(a, b, found))
        return is_within(a, b);
    return is_part_of(b, a, found) || !same_sms(a, b);
}

} // namespace

gcx_result try_reserve(uint32_t sm_count, const Wanted& wanted, gcx_reservation* reservation) {
    gcx_reservation_params params = GCX_RESERVATION_PARAMS_INIT;
    params.name = wanted.name;
    params.timeout_ms = wanted.timeout_ms;
    params.family = wanted.family;
    params.min_sm_count = wanted.min_sm_count;
    params.flags = wanted.flags;
    params.cancel = wanted.cancel;
    params.folder = wanted.folder;
    return gcx_reservation_acquire(wanted.device, sm_count, &params, reservation);
}

gcx_result try_reserve(uint32_t sm_count, const Wanted& wanted) {
    gcx_reservation reservation = nullptr;
    const gcx_result result = try_reserve(sm_count, wanted, &reservation);
    CHECK_EQ(result == GCX_SUCCESS, reservation != nullptr);
    if (reservation != nullptr)
        release(reservation);
    return result;
}

gcx_reservation reserve(uint32_t sm_count, const Wanted& wanted) {
    gcx_reservation reservation = nullptr;
    CHECK_OK(try_reserve(sm_count, wanted, &reservation));
    return reservation;
}

void release(gcx_reservation reservation) {
    CHECK_OK(gcx_reservation_release(reservation));
}

void remove_dead_files(const char* folder, const char* spec) {
    const auto acquire = [folder] {
        int32_t devices = 0;
        const gcx_result result = gcx_device_get_count(&devices);
        for (int32_t device = 0; device < devices; device++)
            try_reserve(8, {.folder = folder, .device = device});
        return result;
    };
    const pid_t child = fork();
    if (child == 0) {
        gcx_driver_open((std::string("sim:") + spec).c_str());
        _exit(acquire() == GCX_ERROR_NOT_INITIALIZED ? 1 : 0);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    if (status != 0)
        acquire();
}

void leaves_no_file(void (*body)(const publish::Folder& folder), const char* spec) {
    const publish::Folder folder;
    support::on_machine(spec, [&] { body(folder); });
    CHECK(folder.files().empty());
}

GroupFolder::GroupFolder() {
    CHECK_EQ(chmod(path().c_str(), 0755), 0);
    CHECK_EQ(chown(inner().c_str(), 0, 4711), 0);
    CHECK_EQ(chmod(inner().c_str(), 03770), 0);
}

void GroupFolder::become(uid_t user) {
    publish::open_machine("h100@13.0");
    CHECK_EQ(setgid(4711), 0);
    CHECK_EQ(setuid(user), 0);
    umask(0777);
}

gcx_reservation_info info_of(gcx_reservation reservation) {
    gcx_reservation_info info = GCX_RESERVATION_INFO_INIT;
    CHECK_OK(gcx_reservation_get_info(reservation, &info));
    return info;
}

std::string token_of(gcx_reservation reservation) {
    std::string token(GCX_MAX_RESERVATION_TOKEN, 'x'); // the call writes the final 0
    CHECK_OK(gcx_reservation_get_token(reservation, token.data(), GCX_MAX_RESERVATION_TOKEN));
    const std::size_t size = token.find('\0');
    CHECK(size != std::string::npos);
    return token.substr(0, size);
}

std::vector<gcx_live_reservation> listed(const char* folder) {
    std::vector<gcx_live_reservation> found(1024);
    uint32_t count = 0;
    CHECK_OK(
        gcx_reservation_list(folder, found.data(), static_cast<uint32_t>(found.size()), &count));
    found.resize(count);
    bool right = true;
    for (const gcx_live_reservation& reservation : found) {
        const uint32_t sms = publish::sms_of(reservation, reservation.atoms);
        right = right && sms == (reservation.waits != 0 ? 0 : reservation.sm_count);
        for (const gcx_live_reservation& other : found)
            right = right && (&reservation == &other || agree(reservation, other, found));
    }
    CHECK(right);
    return found;
}

void until_listed(std::size_t count) {
    while (listed().size() != count)
        std::this_thread::yield();
}

uint32_t held_sms(const std::vector<gcx_live_reservation>& found) {
    uint32_t held = 0;
    for (const gcx_live_reservation& reservation : found) {
        const bool counted =
            reservation.parent != 0 &&
            std::any_of(found.begin(), found.end(), [&](const gcx_live_reservation& other) {
                return other.id == reservation.parent;
            });
        held += reservation.waits != 0 || counted ? 0 : reservation.sm_count;
    }
    return held;
}

} // namespace reservations
