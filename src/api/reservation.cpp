// Reservations: SMs that no other process has.

#include "ipc/reservation.hpp"

#include "api/library.hpp"
#include "api/result.hpp"
#include "core/reservation_request.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

using namespace gcx;

namespace {

// A handle's ownership of a reservation. Leases in the reservation have theirs.
struct ReservationHandle {
    std::shared_ptr<const reservations::Reservation> reservation;

    void check_alive() const {}
    void close() { reservation.reset(); }
};

// The handles need no driver, so they are not in Library.
struct Handles {
    unsigned forks = fork_count();
    HandleTable<ReservationHandle> table{kReservationHandle, "reservation"};
};
// Never destroyed: other threads may use them while the process exits.
constinit std::atomic<Handles*> current_handles{nullptr};

// Returns a new table in the child of a fork, which does not own its parent's reservations.
HandleTable<ReservationHandle>& reservation_handles() {
    Handles* now = current_handles.load(std::memory_order_acquire);
    while (now == nullptr || now->forks != fork_count()) {
        auto fresh = std::make_unique<Handles>();
        if (current_handles.compare_exchange_strong(now, fresh.get(), std::memory_order_acq_rel))
            now = fresh.release();
    }
    return now->table;
}

reservations::ReservationRequest reservation_request(uint32_t sm_count,
                                                     const gcx_reservation_params& params) {
    if ((params.flags & ~GCX_RESERVATION_INHERIT) != 0)
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->flags is %#x; there is only GCX_RESERVATION_INHERIT (1)",
                    params.flags));
    if (sm_count == 0)
        fail(GCX_ERROR_INVALID_VALUE, "sm_count is 0; GCX_REST requests all SMs that are free");
    if (sm_count != GCX_REST && params.min_sm_count > sm_count)
        fail(GCX_ERROR_INVALID_VALUE,
             format("params->min_sm_count is %u, more than the %u requested", params.min_sm_count,
                    sm_count));
    if (sm_count > GCX_MAX_SMS && sm_count != GCX_REST)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("sm_count is %u; no device has more than %u SMs", sm_count, GCX_MAX_SMS));
    reservations::ReservationRequest request;
    request.sm_count = sm_count;
    request.min_sm_count = params.min_sm_count;
    request.family = leasable_family(params.family);
    request.flags = params.flags;
    request.timeout_ms = params.timeout_ms;
    request.name = lease_name(params.name);
    request.dir = reservations::reservation_dir(params.folder);
    return request;
}

struct stat look_at_folder(const std::string& path) {
    struct stat info{};
    if (stat(path.c_str(), &info) != 0)
        fail(GCX_ERROR_OPERATING_SYSTEM,
             format("can't look at the folder %s: %s", path.c_str(), std::strerror(errno)));
    return info;
}

bool is_same_folder(const std::string& a, const std::string& b) {
    const struct stat first = look_at_folder(a);
    const struct stat second = look_at_folder(b);
    return first.st_ino == second.st_ino && first.st_dev == second.st_dev;
}

// Lets the request divide the reservation of the partition that this process runs in.
void divide_partition(reservations::ReservationRequest& request,
                      const gcx_reservation_params& params, const EnclosingPartition::Part& part,
                      const Device& device) {
    const std::string folder = reservations::dir_of_token(part.plan->token);
    // Without a name, the folder is the partition's.
    if (!request.dir.empty() && !is_same_folder(request.dir, folder))
        fail(GCX_ERROR_INVALID_VALUE,
             format("%s is %s; gcx exec reserved the SMs of this process in %s, and stores "
                    "reservations in them there; leave it out",
                    params.folder != nullptr ? "params->folder" : kFolderVariable,
                    request.dir.c_str(), folder.c_str()));
    const gcx_sm_family family = part.plan->family;
    if (params.family != GCX_SM_FAMILY_NONE && params.family != family)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("the %s family was requested; gcx exec reserved the SMs of this process in the "
                    "%s family, and parts are of the same",
                    family_name(params.family), family_name(family)));
    if (part.usable().empty())
        fail(GCX_ERROR_NOT_SUPPORTED,
             format("the driver divides the partition of this process on %s into other atoms of "
                    "the %s family than the device; divide the partition with gcx exec instead",
                    device.label().c_str(), family_name(family)));
    request.dir = folder;
    request.family = family;
    request.parent = part.plan->token;
    request.usable = part.usable();
    request.can_realise = [&part](const AtomSet& atoms) {
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
         format("the reservation is of the device %s, which is none of the %d devices of this "
                "process; CUDA_VISIBLE_DEVICES may hide it, or the driver is another one",
                reservations::prefix_of(record.uuid, record.simulated != 0).c_str(),
                lib.device_count()));
}

// Returns the SMs of a reservation as atoms of this process.
SmResource resource_of_reservation(Library& lib, const reservations::Record& record) {
    Device& device = device_of_reservation(lib, record);
    const EnclosingPartition::Part* const part = lib.enclosing.find(device);
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

gcx_live_reservation describe_reservation(const reservations::StoredReservation& stored) {
    const reservations::Record& record = stored.record;
    gcx_live_reservation live{};
    live.id = record.id;
    live.since_ms = record.since_ms;
    live.until_ms = record.until_ms;
    live.pid = record.pid;
    live.user = stored.user;
    live.simulated = static_cast<int32_t>(record.simulated);
    live.waits = record.waits;
    live.parent = record.parent;
    // problem_of() checked both.
    // NOLINTBEGIN(clang-analyzer-optin.core.EnumCastOutOfRange)
    live.family = static_cast<gcx_sm_family>(record.family);
    live.mps = static_cast<gcx_mps_state>(record.mps);
    // NOLINTEND(clang-analyzer-optin.core.EnumCastOutOfRange)
    live.sm_count = record.waits != 0 ? record.requested : record.sm_count();
    live.device_sm_count = record.device_sm_count;
    live.atom_count = record.shape().atom_count();
    live.atom_sm_count = record.unit_size;
    live.last_atom_sm_count = record.remainder_size != 0 ? record.remainder_size : record.unit_size;
    live.mps_thread_percentage = record.mps_thread_percentage;
    std::memcpy(live.atoms, record.atoms, sizeof live.atoms);
    std::memcpy(live.device_uuid, record.uuid, sizeof live.device_uuid);
    std::memcpy(live.name, record.name, sizeof live.name);
    std::memcpy(live.process_name, record.process_name, sizeof live.process_name);
    std::memcpy(live.device_name, record.device_name, sizeof live.device_name);
    return live;
}

// Does the same and looks up the process to name, which reads /proc.
gcx_live_reservation describe_live_reservation(const reservations::StoredReservation& stored) {
    gcx_live_reservation live = describe_reservation(stored);
    const reservations::Process process = reservations::owner_of(stored);
    live.pid = process.pid;
    std::memset(live.process_name, 0, sizeof live.process_name);
    std::memcpy(live.process_name, process.name.c_str(),
                std::min(process.name.size(), sizeof live.process_name - 1));
    return live;
}

gcx_reservation add_handle(std::shared_ptr<const reservations::Reservation> reservation) {
    return handle_of<gcx_reservation>(
        reservation_handles().add(std::make_unique<ReservationHandle>(std::move(reservation))));
}

} // namespace

ReservationSms gcx::sms_of_reservation(Library& lib, gcx_reservation reservation) {
    const auto pin = reservation_handles().pin(reservation);
    return {pin->reservation, resource_of_reservation(lib, pin->reservation->record())};
}

gcx_result gcx_reservation_acquire(int32_t device, uint32_t sm_count,
                                   const gcx_reservation_params* params,
                                   gcx_reservation* reservation) {
    GCX_BODY({
        not_null(reservation, "reservation");
        const auto requested = params_or_defaults(params, GCX_RESERVATION_PARAMS_INIT);
        reservations::ReservationRequest request = reservation_request(sm_count, requested);
        Library& lib = library();
        Device& its_device = lib.device(device);
        std::optional<HandleTable<Cancel>::Pin> cancel;
        if (requested.cancel != nullptr) {
            cancel.emplace(lib.cancels.pin(requested.cancel));
            request.cancel = &**cancel;
        }
        const EnclosingPartition::Part* const part = lib.enclosing.find(its_device);
        if (part != nullptr)
            divide_partition(request, requested, *part, its_device);
        *reservation =
            add_handle(reservations::acquire(part != nullptr ? *part->whole : its_device, request));
    });
}

gcx_result gcx_reservation_get_token(gcx_reservation reservation, char* token, uint32_t capacity) {
    GCX_BODY({
        not_null(token, "token");
        const std::string text = reservation_handles().pin(reservation)->reservation->token();
        if (text.size() >= capacity)
            fail(GCX_ERROR_INSUFFICIENT_CAPACITY,
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
        *reservation = add_handle(
            reservations::join(std::string(token, strnlen(token, GCX_MAX_RESERVATION_TOKEN))));
    });
}

gcx_result gcx_reservation_release(gcx_reservation reservation) {
    GCX_BODY({ reservation_handles().close(reservation_handles().pin(reservation)); });
}

gcx_result gcx_reservation_get_info(gcx_reservation reservation, gcx_reservation_info* info) {
    GCX_BODY({
        StructOutput out(info, "info");
        const auto pin = reservation_handles().pin(reservation);
        const reservations::Reservation& its = *pin->reservation;
        const reservations::Record& record = its.record();
        const gcx_live_reservation live = describe_reservation({"", 0, record});
        out->family = live.family;
        out->flags = its.flags();
        out->sm_count = live.sm_count;
        out->device_sm_count = live.device_sm_count;
        out->joined = its.joined() ? 1 : 0;
        out->simulated = live.simulated;
        out->lost = its.lost() ? 1 : 0;
        out->mps = live.mps;
        out->mps_thread_percentage = live.mps_thread_percentage;
        out->id = live.id;
        out->since_ms = live.since_ms;
        std::memcpy(out->atoms, live.atoms, sizeof out->atoms);
        std::memcpy(out->device_uuid, live.device_uuid, sizeof out->device_uuid);
        std::memcpy(out->name, live.name, sizeof out->name);
        out.write();
    });
}

gcx_result gcx_reservation_get_resource(gcx_reservation reservation, gcx_resource* resource) {
    GCX_BODY({
        not_null(resource, "resource");
        *resource = seal(sms_of_reservation(library(), reservation).resource);
    });
}

gcx_result gcx_reservation_list(const char* folder, gcx_live_reservation* reservations,
                                uint32_t capacity, uint32_t* count) {
    GCX_BODY({
        check_list(reservations, "reservations", capacity, count);
        give_list(reservations::list(folder), "reservations", reservations, capacity, count,
                  describe_live_reservation);
    });
}
