// Operations on reservations. Also checks that listed reservations are disjoint and that a lease of
// a reservation has only SMs of the reservation.

#include "api.hpp"

#include <memory>
#include <string>

namespace fuzz {
namespace {

constexpr uint32_t kMaxListed = 64;

bool are_disjoint(const gcx_live_reservation& a, const gcx_live_reservation& b) {
    bool disjoint = true;
    for (std::size_t word = 0; word < 8; word++)
        disjoint = disjoint && (a.atoms[word] & b.atoms[word]) == 0;
    return disjoint || std::memcmp(a.device_uuid, b.device_uuid, sizeof a.device_uuid) != 0;
}

void list_reservations(uint32_t capacity) {
    const std::unique_ptr<gcx_live_reservation[]> found(new gcx_live_reservation[capacity]);
    uint32_t count = 0;
    if (CALL(gcx_reservation_list(nullptr, found.get(), capacity, &count)) != GCX_SUCCESS)
        return;
    must(count <= capacity, "more reservations than there is room for");
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < i; j++)
            must(are_disjoint(found[i], found[j]), "two reservations have an atom in common");
    }
}

} // namespace

void acquire_reservation(Bytes& bytes, Shared& shared) {
    gcx_reservation_params params = sized<gcx_reservation_params>(bytes).value;
    params.flags = bytes.next() % 3;
    params.family = static_cast<gcx_sm_family>(bytes.next() % 7);
    params.min_sm_count = bytes.flag() ? bytes.next() : 0;
    params.timeout_ms = bytes.next() % 3; // long waits would time the fuzzer out
    params.cancel = bytes.flag() ? shared.cancels.pick(bytes) : nullptr;
    const std::string name(bytes.next() % 70, 'x');
    params.name = bytes.flag() ? name.c_str() : nullptr;
    constexpr std::array kFolders = {"", "tmp", "/nonexistent", "/"};
    params.folder = (bytes.next() & 7) == 0 ? bytes.of(kFolders) : nullptr;
    const int32_t which = device(bytes);
    const uint32_t count = bytes.count();
    Out<gcx_reservation> reservation;
    if (CALL_OUT(reservation,
                 gcx_reservation_acquire(which, count, bytes.flag() ? &params : nullptr,
                                         &reservation.value)) == GCX_SUCCESS)
        shared.reservations.put(bytes, reservation.value);
}

void join_reservation(Bytes& bytes, Shared& shared) {
    char token[GCX_MAX_RESERVATION_TOKEN] = "";
    const uint32_t room = bytes.flag() ? GCX_MAX_RESERVATION_TOKEN : bytes.next();
    if (CALL(gcx_reservation_get_token(shared.reservations.pick(bytes), token, room)) !=
        GCX_SUCCESS)
        return;
    if (const uint8_t at = bytes.next(); at >= 0x80) // a wrong token
        token[at & 0x7f] = static_cast<char>(bytes.next());
    Out<gcx_reservation> reservation;
    if (CALL_OUT(reservation, gcx_reservation_join(token, &reservation.value)) == GCX_SUCCESS)
        shared.reservations.put(bytes, reservation.value);
}

void reservation_facts(Bytes& bytes, Shared& shared) {
    gcx_reservation reservation = shared.reservations.pick(bytes);
    auto info = sized<gcx_reservation_info>(bytes);
    CALL_OUT(info, gcx_reservation_get_info(reservation, &info.value));
    Out<gcx_resource> resource;
    const gcx_result got =
        CALL_OUT(resource, gcx_reservation_get_resource(reservation, &resource.value));
    if (got == GCX_SUCCESS)
        shared.put(bytes, resource.value);
    const uint32_t count = bytes.count();
    Out<gcx_lease> lease;
    gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
    params.reservation = reservation;
    if (CALL_OUT(lease, gcx_lease_acquire(-1, count, &params, &lease.value)) == GCX_SUCCESS &&
        reservation != nullptr) {
        gcx_resource sms{};
        uint32_t common = 0;
        if (got == GCX_SUCCESS && gcx_lease_get_resource(lease.value, &sms) == GCX_SUCCESS &&
            gcx_resource_get_overlap(&sms, &resource.value, &common) == GCX_SUCCESS)
            must(common == sm_count_of(sms), "a lease of a reservation has other SMs");
        shared.leases.put(bytes, lease.value);
    }
    list_reservations(bytes.next() & (kMaxListed - 1));
}

} // namespace fuzz
