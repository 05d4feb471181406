// Reservations across devices, families, drivers and MPS, and leases within a reservation.
#include "leases.hpp"
#include "reservations.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>

using namespace reservations;
using namespace support;
using publish::Folder;
using publish::Other;

namespace {

constexpr const char* kH100 = "h100@13.0";

// The UUID identifies a device, whatever its number.
void devices_are_identified_by_uuid() {
    const Folder folder;
    Other other([](Other& self) {
        setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
        publish::open_machine("2xh100@13.0");
        reserve(132, {.name = "second", .device = 0});
        self.point();
    });
    other.arrived();
    on_machine("2xh100@13.0", [] {
        gcx_reservation reservation = nullptr;
        CHECK_REFUSED(try_reserve(8, {.device = 1}, &reservation), GCX_ERROR_ALREADY_ACQUIRED);
        reservation = reserve(132);
        CHECK_EQ(listed().size(), 2U);
        release(reservation);
    });
    // A device that this process does not see.
    Other joined([](Other&) {
        setenv("CUDA_VISIBLE_DEVICES", "0", 1);
        publish::open_machine("2xh100@13.0");
        const auto found = listed();
        std::string token =
            std::string(std::getenv("GCX_RESERVATION_DIR")) + "/simulated-reservation-";
        char text[40] = "";
        for (const uint8_t byte : found.at(0).device_uuid) {
            std::snprintf(text, sizeof text, "%02x", byte);
            token += text;
        }
        std::snprintf(text, sizeof text, "-%016llx",
                      static_cast<unsigned long long>(found.at(0).id));
        gcx_reservation reservation = nullptr;
        CHECK_OK(gcx_reservation_join((token + text).c_str(), &reservation));
        gcx_resource resource{};
        CHECK_REFUSED(gcx_reservation_get_resource(reservation, &resource), GCX_ERROR_NO_DEVICE);
        gcx_lease lease = nullptr;
        CHECK_REFUSED(try_acquire(8, {.reservation = reservation}, &lease), GCX_ERROR_NO_DEVICE);
        release(reservation);
    });
    joined.ended();
    other.kill(SIGKILL);
    CHECK(listed().empty());
}

// The overlap of two families is known when both are mapped, and never under MPS. Atoms of another
// driver are never considered the same.
void families_overlap_only_where_known() {
    const Folder folder;
    on_machine(kH100, [] {
        const gcx_reservation fine = reserve(2, {.family = GCX_SM_FAMILY_FINE});
        gcx_reservation reservation = nullptr;
        CHECK_REFUSED(try_reserve(8, {}, &reservation), GCX_ERROR_ALREADY_ACQUIRED);
        CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_FINE));
        CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
        reservation = reserve(GCX_REST);
        CHECK_EQ(info_of(reservation).sm_count, 124U);
        gcx_resource a{};
        gcx_resource b{};
        CHECK_OK(gcx_reservation_get_resource(fine, &a));
        CHECK_OK(gcx_reservation_get_resource(reservation, &b));
        CHECK_EQ(overlap(a, b), 0U);
        release(reservation);
        release(fine);
    });
    for (const char* variable : {"", "GCX_SIM_MPS"}) {
        Other other([&](Other& self) {
            if (*variable != '\0')
                setenv(variable, "1", 1);
            publish::open_machine(*variable != '\0' ? "h100@13.0" : "h100@12.8");
            reserve(8, {.family = *variable != '\0' ? GCX_SM_FAMILY_FINE : GCX_SM_FAMILY_NONE});
            self.point();
        });
        other.arrived();
        setenv("GCX_SIM_MPS", *variable != '\0' ? "1" : "0", 1);
        on_machine(kH100, [&] {
            for (const gcx_sm_family family : {GCX_SM_FAMILY_FINE, GCX_SM_FAMILY_COSCHEDULED}) {
                // Virtual numbers don't identify the SMs of an atom.
                const gcx_result mapped = gcx_device_map_sms(0, family);
                if (*variable != '\0')
                    CHECK_REFUSED(mapped, GCX_ERROR_NOT_SUPPORTED);
                else
                    CHECK_OK(mapped);
            }
            CHECK_REFUSED(try_reserve(8), GCX_ERROR_ALREADY_ACQUIRED);
        });
        unsetenv("GCX_SIM_MPS");
        other.kill(SIGKILL);
    }
}

// Atom numbers of another driver may be other SMs.
void reservation_of_another_driver_has_no_resource_here() {
    const Folder folder;
    Other other([](Other& self) {
        publish::open_machine("h100@12.8");
        reserve(24);
        self.point();
    });
    other.arrived();
    on_machine(kH100, [&] {
        gcx_reservation joined = nullptr;
        gcx_resource resource{};
        CHECK_OK(gcx_reservation_join(folder.files().at(0).c_str(), &joined));
        CHECK_REFUSED(gcx_reservation_get_resource(joined, &resource),
                      GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        CHECK(message_has("the driver is 12.8; here it has 132 SMs"));
        release(joined);
    });
    other.kill(SIGKILL);
}

void mps_state_is_recorded() {
    const Folder folder;
    for (const bool on : {false, true}) {
        in_child(on ? "MPS" : "no MPS", [&] {
            setenv("GCX_SIM_MPS", on ? "1" : "0", 1);
            setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", on ? "12.5" : "many", 1);
            CHECK_OK(gcx_log_set_callback(GCX_LOG_WARNING, publish::note_warning, nullptr));
            publish::open_machine(kH100);
            const gcx_reservation reservation = reserve(24);
            CHECK_EQ(info_of(reservation).mps, on ? GCX_MPS_ON : GCX_MPS_OFF);
            CHECK_EQ(info_of(reservation).mps_thread_percentage, on ? 12.5F : 0.0F);
            CHECK_EQ(listed().at(0).mps, on ? GCX_MPS_ON : GCX_MPS_OFF);
            gcx_device_info info = GCX_DEVICE_INFO_INIT;
            CHECK_OK(gcx_device_get_info(0, &info));
            CHECK_EQ(info.mps, on ? GCX_MPS_ON : GCX_MPS_OFF);
            CHECK_EQ(info.mps_thread_percentage, on ? 12.5F : 0.0F);
            release(reservation);
            release(reserve(24));
            if (CHECK_EQ(publish::warnings.size(), 1U))
                CHECK(publish::warnings[0].find(on ? "MPS limits this process"
                                                   : "is not shared through MPS") !=
                      std::string::npos);
        });
    }
}

// Only the MPS daemon knows which SMs a percentage leaves to a process.
void mps_percentage_reserves_whole_device() {
    const Folder folder;
    setenv("GCX_SIM_MPS", "1", 1);
    for (const char* percentage : {"50", "100"}) {
        const bool limited = std::string(percentage) == "50";
        Other other([&](Other& self) {
            setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percentage, 1);
            publish::open_machine(kH100);
            reserve(24, {.name = "limited"});
            self.point();
        });
        other.arrived();
        on_machine(kH100, [&] {
            CHECK_EQ(try_reserve(8), limited ? GCX_ERROR_ALREADY_ACQUIRED : GCX_SUCCESS);
            CHECK(!limited || message_has("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
        });
        other.kill(SIGKILL);
        Other holder([](Other& self) {
            publish::open_machine(kH100);
            reserve(24);
            self.point();
        });
        holder.arrived();
        in_child("joins", [&] {
            setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percentage, 1);
            publish::open_machine(kH100);
            gcx_reservation reservation = nullptr;
            gcx_resource resource{};
            CHECK_OK(gcx_reservation_join(folder.files().at(0).c_str(), &reservation));
            CHECK_EQ(gcx_reservation_get_resource(reservation, &resource),
                     limited ? GCX_ERROR_INVALID_RESOURCE_CONFIGURATION : GCX_SUCCESS);
            CHECK(!limited || message_has("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
            release(reservation);
        });
        holder.kill(SIGKILL);
    }
    unsetenv("GCX_SIM_MPS");
    CHECK(listed().empty());
}

void leases_in_reservation_stay_within(const Folder& /*folder*/) {
    const gcx_reservation reservation = reserve(32);
    gcx_resource held{};
    CHECK_OK(gcx_reservation_get_resource(reservation, &held));
    const auto sms_in_reservation = [&](gcx_lease lease) {
        gcx_resource its{};
        CHECK_OK(gcx_lease_get_resource(lease, &its));
        CHECK_EQ(overlap(its, held), sms(its));
        return sms(its);
    };
    gcx_lease a = nullptr;
    gcx_lease b = nullptr;
    CHECK_OK(try_acquire(8, {.reservation = reservation}, &a));
    CHECK_REFUSED(try_acquire(0, {.reservation = reservation}, &b), GCX_ERROR_INVALID_VALUE);
    CHECK(message_has("sm_count is 0; GCX_REST"));
    CHECK_OK(try_acquire(GCX_REST, {.reservation = reservation}, &b));
    CHECK_EQ(sms_in_reservation(a) + sms_in_reservation(b), 32U);
    gcx_lease more = nullptr;
    CHECK_REFUSED(try_acquire(8, {.reservation = reservation}, &more), GCX_ERROR_ALREADY_ACQUIRED);
    CHECK_REFUSED(try_acquire(40, {.reservation = reservation}, &more),
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK(message_has("the reservation of device 0 has 32"));
    CHECK_REFUSED(try_acquire(8, {.reservation = reservation, .family = GCX_SM_FAMILY_FINE}, &more),
                  GCX_ERROR_INVALID_VALUE);
    gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
    params.reservation = reservation;
    for (const int32_t other : {1, 7, -2}) {
        CHECK_REFUSED(gcx_lease_acquire(other, 8, &params, &more), GCX_ERROR_INVALID_DEVICE);
        CHECK(message_has("the reservation is of device 0"));
    }
    params.reservation = forged<gcx_reservation>(1234);
    CHECK_REFUSED(gcx_lease_acquire(-1, 8, &params, &more), GCX_ERROR_INVALID_HANDLE);
    CHECK_REFUSED(gcx_lease_acquire(-1, 8, nullptr, &more), GCX_ERROR_INVALID_DEVICE);
    // Leases grow within the reservation and compete only with each other.
    const gcx_lease_size sizes[] = {{a, 24, 0}, {b, 8, 0}};
    CHECK_OK(gcx_lease_resize(sizes, 2, GCX_RESIZE_DEFAULT));
    CHECK_EQ(sms_in_reservation(a), 24U);
    CHECK_EQ(sms_in_reservation(b), 8U);
    const gcx_lease_size beyond = {a, 32, 0};
    CHECK_REFUSED(gcx_lease_resize(&beyond, 1, GCX_RESIZE_DEFAULT), GCX_ERROR_ALREADY_ACQUIRED);
    const gcx_lease_size far_beyond = {a, 64, 0};
    CHECK_REFUSED(gcx_lease_resize(&far_beyond, 1, GCX_RESIZE_DEFAULT),
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK_OK(gcx_lease_acquire(0, 16, nullptr, &more)); // of the others
    CHECK_REFUSED(hand_over(more, a), GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK_OK(gcx_lease_release(more));
    CHECK_OK(hand_over(b, a));
    CHECK_OK(gcx_lease_release(b));
    CHECK_EQ(sms_in_reservation(a), 32U);
    gcx_stream stream = nullptr;
    CHECK_OK(gcx_lease_stream_create(a, nullptr, &stream));
    CHECK_OK(gcx_stream_destroy(stream));
    // The lease keeps the reservation owned.
    release(reservation);
    CHECK_EQ(held_sms(listed()), 32U);
    CHECK_EQ(sms_in_reservation(a), 32U);
    CHECK_OK(gcx_lease_release(a));
    CHECK(listed().empty());
}

// Each driver call fails in turn: the caller gets an error and nothing stays reserved.
void driver_call_failed_leaves_nothing_reserved() {
    const Folder folder;
    for (const char* spec : {"h100@12.4", "h100@13.0", "h100@13.5"}) {
        for (uint64_t nth = 1; nth < 12; nth++) {
            on_machine(spec, [&] {
                sim::fail(nullptr, nth, CUDA_ERROR_UNKNOWN);
                gcx_reservation reservation = nullptr;
                gcx_resource resource{};
                gcx_lease lease = nullptr;
                const gcx_result result = try_reserve(24, {}, &reservation);
                CHECK(result == GCX_SUCCESS ? reservation != nullptr : reservation == nullptr);
                CHECK_EQ(listed().size(), reservation == nullptr ? 0U : 1U);
                if (reservation == nullptr)
                    return;
                gcx_reservation_get_resource(reservation, &resource);
                if (try_acquire(8, {.reservation = reservation}, &lease) == GCX_SUCCESS)
                    gcx_lease_release(lease);
                release(reservation);
                CHECK(listed().empty());
            });
        }
    }
    CHECK(folder.files().empty());
}

} // namespace

int main() {
    devices_are_identified_by_uuid();
    families_overlap_only_where_known();
    reservation_of_another_driver_has_no_resource_here();
    mps_state_is_recorded();
    mps_percentage_reserves_whole_device();
    leaves_no_file(leases_in_reservation_stay_within);
    driver_call_failed_leaves_nothing_reserved();
    return check::summary("reservation devices");
}
