// Reservations: SMs that no other process has.

#include "api/reservation.hpp"

#include "api/common.hpp"
#include "api/guard.hpp"
#include "core/reservation_acquire.hpp"
#include "core/reservation_process.hpp"
#include "driver/mps.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>

using namespace gcx;

namespace {

struct Parts {
    unsigned forks = forks_seen();
    HandleTable<ReservationPart> table{kReservationHandle, "reservation"};
};
// Never destroyed: other threads may be in here while the process exits.
constinit std::atomic<Parts*> all_parts{nullptr};

reservations::Request reservation_params(uint32_t sm_count, const gcx_reservation_params& params) {
    if ((params.flags & ~GCX_RESERVATION_INHERIT) != 0)
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->flags is %#x; there is only GCX_RESERVATION_INHERIT (1)",
                    params.flags));
    if (params.reserved != 0)
        fail(GCX_ERROR_INVALID_VALUE, "params->reserved is not 0");
    if (sm_count == 0)
        fail(GCX_ERROR_INVALID_VALUE, "sm_count is 0; GCX_REST requests all SMs that are free");
    if (sm_count != GCX_REST && params.min_sm_count > sm_count)
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->min_sm_count is %u, more than the %u asked for", params.min_sm_count,
                    sm_count));
    if (sm_count > GCX_MAX_SMS && sm_count != GCX_REST)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("sm_count is %u; no device has more than %u SMs", sm_count, GCX_MAX_SMS));
    reservations::Request request;
    request.sm_count = sm_count;
    request.least = params.min_sm_count;
    request.family = leasable_family(params.family);
    request.flags = params.flags;
    request.timeout_ms = params.timeout_ms;
    request.name = lease_name(params.name);
    request.folder = reservations::folder_of(params.folder);
    return request;
}

// Makes it a part of the reservation around, on one device.
void put_inside(reservations::Request& request, const gcx_reservation_params& params,
                const Around::Part& part, const Device& device) {
    const std::string folder = reservations::folder_of_token(part.plan->token);
    std::error_code error;
    if (params.folder != nullptr && !std::filesystem::equivalent(request.folder, folder, error))
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->folder is %s; gcx exec reserved the SMs of this process in %s, and "
                    "reservations in it are kept there",
                    request.folder.c_str(), folder.c_str()));
    const gcx_sm_family family = part.plan->family;
    if (params.family != GCX_SM_FAMILY_NONE && params.family != family)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("the %s family was requested; gcx exec reserved the SMs of this process in the "
                    "%s family, and parts are of the same",
                    family_name(params.family), family_name(family)));
    if (part.usable().empty())
        fail(GCX_ERROR_NOT_SUPPORTED,
             format("the driver divides the partition of this process on %s into other atoms of "
                    "the %s family than the device; start programs with gcx exec in the partition "
                    "to divide it",
                    device.label().c_str(), family_name(family)));
    request.folder = folder;
    request.family = family;
    request.parent = part.plan->token;
    request.usable = part.usable();
    request.legal = [&part](const AtomSet& atoms) {
        return part.inside->can_make_context(part.to_inside(atoms));
    };
}

Device& device_of_reservation(Library& lib, const reservations::Record& record) {
    for (int32_t ordinal = 0; ordinal < lib.device_count(); ordinal++) {
        gcx_device_info info = GCX_DEVICE_INFO_INIT;
        lib.device(ordinal).get_info(info);
        if (std::memcmp(info.uuid, record.uuid, sizeof record.uuid) == 0 &&
            lib.driver.simulated() == (record.simulated != 0))
            return lib.device(ordinal);
    }
    fail(GCX_ERROR_NO_DEVICE,
         format("the reservation is of the device %s, which is none of the %d of this process: "
                "CUDA_VISIBLE_DEVICES may hide it, or the driver is another one",
                reservations::prefix_of(record.uuid, record.simulated != 0).c_str(),
                lib.device_count()));
}

// Its SMs among the atoms of this process.
SmResource resource_of_reservation(Library& lib, const reservations::Record& record) {
    Device& device = device_of_reservation(lib, record);
    const Around::Part* const part = lib.around.find(device);
    if (part == nullptr || part->whole == &device)
        return reservations::resource_of(device, record);
    const SmResource whole = reservations::resource_of(*part->whole, record);
    if (whole.family != part->outside || !part->is_usable(whole.set))
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format(
                 "the reservation has SMs of %s that are outside the partition of this process, or "
                 "are divided otherwise in it",
                 device.label().c_str()));
    return {&device, part->inside, part->to_inside(whole.set)};
}

gcx_live_reservation describe_reservation(const reservations::Entry& entry) {
    const reservations::Record& record = entry.record;
    gcx_live_reservation live{};
    live.id = record.id;
    live.since_ms = record.since_ms;
    live.until_ms = record.until_ms;
    live.pid = record.pid;
    live.user = entry.user;
    live.simulated = static_cast<int32_t>(record.simulated);
    live.waits = record.waits;
    live.parent = record.parent;
    // What is read was checked.
    // NOLINTBEGIN(clang-analyzer-optin.core.EnumCastOutOfRange)
    live.family = static_cast<gcx_sm_family>(record.family);
    live.mps = static_cast<gcx_mps_state>(record.mps);
    // NOLINTEND(clang-analyzer-optin.core.EnumCastOutOfRange)
    live.sm_count = record.waits != 0 ? record.wanted : record.sm_count();
    live.device_sm_count = record.device_sm_count;
    live.atom_count = record.shape().atom_count();
    live.atom_sm_count = record.unit_size;
    live.last_atom_sm_count = record.odd_size != 0 ? record.odd_size : record.unit_size;
    live.mps_thread_percentage = record.mps_thread_percentage;
    std::memcpy(live.atoms, record.atoms, sizeof live.atoms);
    std::memcpy(live.device_uuid, record.uuid, sizeof live.device_uuid);
    std::memcpy(live.name, record.name, sizeof live.name);
    std::memcpy(live.process_name, record.process_name, sizeof live.process_name);
    std::memcpy(live.device_name, record.device_name, sizeof live.device_name);
    return live;
}

// The same with the process to name for it, which costs a look at the system's processes.
gcx_live_reservation describe_live_reservation(const reservations::Entry& entry) {
    gcx_live_reservation live = describe_reservation(entry);
    const reservations::Process process = reservations::process_of(entry.record);
    live.pid = process.pid;
    std::memset(live.process_name, 0, sizeof live.process_name);
    std::memcpy(live.process_name, process.name.c_str(),
                std::min(process.name.size(), sizeof live.process_name - 1));
    return live;
}

gcx_reservation give_out_reservation(std::shared_ptr<const reservations::Reservation> reservation) {
    return handle_of<gcx_reservation>(
        reservation_parts().add(std::make_unique<ReservationPart>(std::move(reservation))));
}

} // namespace

HandleTable<ReservationPart>& gcx::reservation_parts() {
    Parts* now = all_parts.load(std::memory_order_acquire);
    while (now == nullptr || now->forks != forks_seen()) {
        auto fresh = std::make_unique<Parts>();
        if (all_parts.compare_exchange_strong(now, fresh.get(), std::memory_order_acq_rel))
            now = fresh.release();
    }
    return now->table;
}

gcx_result gcx_reservation_acquire(int32_t device, uint32_t sm_count,
                                   const gcx_reservation_params* params,
                                   gcx_reservation* reservation) {
    GCX_BODY({
        not_null(reservation, "reservation");
        gcx_reservation_params wanted = GCX_RESERVATION_PARAMS_INIT;
        if (params != nullptr) {
            check_size(params, "params");
            wanted = *params;
        }
        reservations::Request request = reservation_params(sm_count, wanted);
        Library& lib = library();
        Device& its_device = lib.device(device);
        std::optional<HandleTable<Cancel>::Pin> cancel;
        if (wanted.cancel != nullptr)
            cancel.emplace(lib.cancels.pin(wanted.cancel));
        request.given_up = [&] { return cancel && (*cancel)->signalled(); };
        request.cancel = cancel ? &(*cancel)->waits : nullptr;
        const Around::Part* const part = lib.around.find(its_device);
        if (part != nullptr)
            put_inside(request, wanted, *part, its_device);
        *reservation = give_out_reservation(
            reservations::take(part != nullptr ? *part->whole : its_device, request));
    });
}

gcx_result gcx_reservation_get_token(gcx_reservation reservation, char* token, uint32_t capacity) {
    GCX_BODY({
        not_null(token, "token");
        const std::string text = reservation_parts().pin(reservation)->reservation->token();
        if (text.size() >= capacity)
            fail(GCX_ERROR_INVALID_VALUE,
                 format("the token has %zu bytes with its final 0, and there is room for %u; "
                        "GCX_MAX_RESERVATION_TOKEN (%u) is enough",
                        text.size() + 1, capacity, GCX_MAX_RESERVATION_TOKEN));
        std::memcpy(token, text.c_str(), text.size() + 1);
    });
}

gcx_result gcx_reservation_join(const char* token, gcx_reservation* reservation) {
    GCX_BODY({
        not_null(token, "token");
        not_null(reservation, "reservation");
        *reservation = give_out_reservation(
            reservations::join(std::string(token, strnlen(token, GCX_MAX_RESERVATION_TOKEN))));
    });
}

gcx_result gcx_reservation_release(gcx_reservation reservation) {
    GCX_BODY({ reservation_parts().close(reservation_parts().pin(reservation)); });
}

gcx_result gcx_reservation_get_info(gcx_reservation reservation, gcx_reservation_info* info) {
    GCX_BODY({
        check_size(info, "info");
        const auto pin = reservation_parts().pin(reservation);
        const reservations::Reservation& its = *pin->reservation;
        const reservations::Record& record = its.record();
        const gcx_live_reservation live = describe_reservation({"", 0, record});
        info->family = live.family;
        info->flags = its.flags();
        info->sm_count = live.sm_count;
        info->device_sm_count = live.device_sm_count;
        info->joined = its.joined() ? 1 : 0;
        info->simulated = live.simulated;
        info->lost = its.lost() ? 1 : 0;
        info->mps = live.mps;
        info->mps_thread_percentage = live.mps_thread_percentage;
        info->id = live.id;
        info->since_ms = live.since_ms;
        std::memcpy(info->atoms, live.atoms, sizeof info->atoms);
        std::memcpy(info->device_uuid, live.device_uuid, sizeof info->device_uuid);
        std::memcpy(info->name, live.name, sizeof info->name);
    });
}

gcx_result gcx_reservation_get_resource(gcx_reservation reservation, gcx_resource* resource) {
    GCX_BODY({
        not_null(resource, "resource");
        const auto pin = reservation_parts().pin(reservation);
        const reservations::Record& record = pin->reservation->record();
        *resource = seal(resource_of_reservation(library(), record));
    });
}

gcx_result gcx_reservation_acquire_lease(gcx_reservation reservation, uint32_t sm_count,
                                         const gcx_lease_params* params, gcx_lease* lease) {
    GCX_BODY({
        not_null(lease, "lease");
        const auto pin = reservation_parts().pin(reservation);
        const reservations::Record& record = pin->reservation->record();
        Library& lib = library();
        const SmResource resource = resource_of_reservation(lib, record);
        gcx_lease_params wanted = GCX_LEASE_PARAMS_INIT;
        if (params != nullptr) {
            check_size(params, "params");
            wanted = *params;
        }
        if (wanted.family == GCX_SM_FAMILY_NONE)
            wanted.family = resource.family->kind();
        if (wanted.family != resource.family->kind())
            fail(GCX_ERROR_INVALID_VALUE,
                 format("params->family is %d; the reservation is of the %s family (%d)",
                        wanted.family, family_name(resource.family->kind()),
                        resource.family->kind()));
        LeaseRequest request = lease_request(sm_count, wanted);
        request.reservation = pin->reservation;
        request.terms.reservation =
            std::make_shared<const reservations::Record>(pin->reservation->record());
        request.terms.reservation_atoms = resource.set;
        *lease = acquire_lease(lib, *resource.device, std::move(request), wanted.cancel);
    });
}

gcx_result gcx_reservation_list(const char* folder, gcx_live_reservation* reservations,
                                uint32_t capacity, uint32_t* count) {
    GCX_BODY({
        not_null(count, "count");
        if (capacity != 0)
            not_null(reservations, "reservations");
        const std::vector<reservations::Entry> found = reservations::list(folder);
        *count = static_cast<uint32_t>(found.size());
        if (found.size() > capacity)
            fail(GCX_ERROR_INVALID_VALUE,
                 format("there are %zu holds, and room for %u; *count is what is needed",
                        found.size(), capacity));
        std::transform(found.begin(), found.end(), reservations, describe_live_reservation);
    });
}

gcx_result gcx_mps_get_info(int32_t device, gcx_mps_info* info) {
    GCX_BODY({
        check_size(info, "info");
        Library& lib = library();
        const Mps mps = mps_of(lib.driver, lib.device(device).native());
        info->state = mps.state;
        info->thread_percentage = mps.thread_percentage;
        info->reserved = 0;
    });
}
