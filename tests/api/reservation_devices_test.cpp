// Reservations and what they are of: devices, families, drivers, MPS; and leases that live within
// one.
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

// A device is told by its UUID, whatever its number.
void test_devices() {
    const Folder folder;
    Other other([](Other& self) {
        setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
        publish::open_machine("2xh100@13.0");
        taken(132, {.name = "second", .device = 0});
        self.point();
    });
    other.arrived();
    on_machine("2xh100@13.0", [] {
        gcx_reservation reservation = nullptr;
        CHECK_REFUSED(take(8, {.device = 1}, &reservation), GCX_ERROR_ALREADY_ACQUIRED);
        reservation = taken(132);
        CHECK_EQ(listed().size(), 2U);
        give_back(reservation);
    });
    // One that this process doesn't see.
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
        CHECK_REFUSED(gcx_reservation_acquire_lease(reservation, 8, nullptr, &lease),
                      GCX_ERROR_NO_DEVICE);
        give_back(reservation);
    });
    joined.ended();
    other.kill(SIGKILL);
    CHECK(listed().empty());
}

// Families: overlap is known once both are mapped, and not under MPS. Another driver's atoms are
// never taken for these.
void test_families() {
    const Folder folder;
    on_machine(kH100, [] {
        const gcx_reservation fine = taken(2, {.family = GCX_SM_FAMILY_FINE});
        gcx_reservation reservation = nullptr;
        CHECK_REFUSED(take(8, {}, &reservation), GCX_ERROR_ALREADY_ACQUIRED);
        CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_FINE));
        CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
        reservation = taken(GCX_REST);
        CHECK_EQ(info_of(reservation).sm_count, 124U);
        gcx_resource a{};
        gcx_resource b{};
        CHECK_OK(gcx_reservation_get_resource(fine, &a));
        CHECK_OK(gcx_reservation_get_resource(reservation, &b));
        CHECK_EQ(overlap(a, b), 0U);
        give_back(reservation);
        give_back(fine);
    });
    for (const char* variable : {"", "GCX_SIM_MPS"}) {
        Other other([&](Other& self) {
            if (*variable != '\0')
                setenv(variable, "1", 1);
            publish::open_machine(*variable != '\0' ? "h100@13.0" : "h100@12.8");
            taken(8, {.family = *variable != '\0' ? GCX_SM_FAMILY_FINE : GCX_SM_FAMILY_NONE});
            self.point();
        });
        other.arrived();
        setenv("GCX_SIM_MPS", *variable != '\0' ? "1" : "0", 1);
        on_machine(kH100, [&] {
            for (const gcx_sm_family family : {GCX_SM_FAMILY_FINE, GCX_SM_FAMILY_COSCHEDULED}) {
                // Virtual numbers don't tell which SMs an atom holds.
                const gcx_result mapped = gcx_device_map_sms(0, family);
                if (*variable != '\0')
                    CHECK_REFUSED(mapped, GCX_ERROR_NOT_SUPPORTED);
                else
                    CHECK_OK(mapped);
            }
            gcx_reservation reservation = nullptr;
            CHECK_REFUSED(take(8, {}, &reservation), GCX_ERROR_ALREADY_ACQUIRED);
        });
        unsetenv("GCX_SIM_MPS");
        other.kill(SIGKILL);
    }
}

void test_mps() {
    const Folder folder;
    for (const bool on : {false, true}) {
        in_child(on ? "MPS" : "no MPS", [&] {
            setenv("GCX_SIM_MPS", on ? "1" : "0", 1);
            setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", on ? "12.5" : "many", 1);
            CHECK_OK(gcx_log_set_callback(GCX_LOG_WARNING, publish::note_warning, nullptr));
            publish::open_machine(kH100);
            const gcx_reservation reservation = taken(24);
            CHECK_EQ(info_of(reservation).mps, on ? GCX_MPS_ON : GCX_MPS_OFF);
            CHECK_EQ(info_of(reservation).mps_thread_percentage, on ? 12.5F : 0.0F);
            CHECK_EQ(listed().at(0).mps, on ? GCX_MPS_ON : GCX_MPS_OFF);
            gcx_mps_info info = GCX_MPS_INFO_INIT;
            CHECK_OK(gcx_mps_get_info(0, &info));
            CHECK_EQ(info.state, on ? GCX_MPS_ON : GCX_MPS_OFF);
            give_back(reservation);
            give_back(taken(24));
            const bool warned =
                std::any_of(publish::warnings.begin(), publish::warnings.end(),
                            [](const std::string& w) { return w.find("MPS") != w.npos; });
            CHECK_EQ(warned, !on);
            CHECK(publish::warnings.size() <= 1);
        });
    }
}

// Which SMs a percentage leaves to a process is known to the daemon alone.
void test_percentages() {
    const Folder folder;
    setenv("GCX_SIM_MPS", "1", 1);
    for (const char* percentage : {"50", "100"}) {
        const bool limited = std::string(percentage) == "50";
        Other other([&](Other& self) {
            setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percentage, 1);
            publish::open_machine(kH100);
            taken(24, {.name = "limited"});
            self.point();
        });
        other.arrived();
        on_machine(kH100, [&] {
            gcx_reservation reservation = nullptr;
            CHECK_EQ(take(8, {}, &reservation), limited ? GCX_ERROR_ALREADY_ACQUIRED : GCX_SUCCESS);
            CHECK(!limited || message_has("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
        });
        other.kill(SIGKILL);
        Other holder([](Other& self) {
            publish::open_machine(kH100);
            taken(24);
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
            give_back(reservation);
        });
        holder.kill(SIGKILL);
    }
    unsetenv("GCX_SIM_MPS");
    CHECK(listed().empty());
}

void test_leases() {
    const Folder folder;
    on_machine(kH100, [] {
        const gcx_reservation reservation = taken(32);
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
        CHECK_OK(gcx_reservation_acquire_lease(reservation, 8, nullptr, &a));
        CHECK_REFUSED(gcx_reservation_acquire_lease(reservation, 0, nullptr, &b),
                      GCX_ERROR_INVALID_VALUE);
        CHECK(message_has("sm_count is 0; GCX_REST"));
        CHECK_OK(gcx_reservation_acquire_lease(reservation, GCX_REST, nullptr, &b));
        CHECK_EQ(sms_in_reservation(a) + sms_in_reservation(b), 32U);
        gcx_lease more = nullptr;
        CHECK_REFUSED(gcx_reservation_acquire_lease(reservation, 8, nullptr, &more),
                      GCX_ERROR_ALREADY_ACQUIRED);
        CHECK_REFUSED(gcx_reservation_acquire_lease(reservation, 40, nullptr, &more),
                      GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        CHECK(message_has("the reservation of device 0 has 32"));
        gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
        params.family = GCX_SM_FAMILY_FINE;
        CHECK_REFUSED(gcx_reservation_acquire_lease(reservation, 8, &params, &more),
                      GCX_ERROR_INVALID_VALUE);
        // They grow within it, and only with each other.
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
        CHECK_REFUSED(gcx_lease_hand_over(more, a, 0), GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        CHECK_OK(gcx_lease_release(more));
        CHECK_OK(gcx_lease_hand_over(b, a, 0));
        CHECK_EQ(sms_in_reservation(a), 32U);
        gcx_stream stream = nullptr;
        CHECK_OK(gcx_lease_stream_create(a, nullptr, &stream));
        CHECK_OK(gcx_stream_destroy(stream));
        // The lease keeps the reservation.
        give_back(reservation);
        CHECK_EQ(held_sms(listed()), 32U);
        CHECK_EQ(sms_in_reservation(a), 32U);
        CHECK_OK(gcx_lease_release(a));
        CHECK(listed().empty());
    });
    CHECK(folder.files().empty());
}

// Every driver call made to fail in turn: an error, and nothing held.
void test_driver_calls() {
    const Folder folder;
    for (const char* spec : {"h100@12.4", "h100@13.0", "h100@13.5"}) {
        for (uint64_t nth = 1; nth < 12; nth++) {
            on_machine(spec, [&] {
                sim::fail(nullptr, nth, CUDA_ERROR_UNKNOWN);
                gcx_reservation reservation = nullptr;
                gcx_resource resource{};
                gcx_lease lease = nullptr;
                const gcx_result result = take(24, {}, &reservation);
                CHECK(result == GCX_SUCCESS ? reservation != nullptr : reservation == nullptr);
                CHECK_EQ(listed().size(), reservation == nullptr ? 0U : 1U);
                if (reservation == nullptr)
                    return;
                gcx_reservation_get_resource(reservation, &resource);
                if (gcx_reservation_acquire_lease(reservation, 8, nullptr, &lease) == GCX_SUCCESS)
                    gcx_lease_release(lease);
                give_back(reservation);
                CHECK(listed().empty());
            });
        }
    }
    CHECK(folder.files().empty());
}

} // namespace

int main() {
    test_devices();
    test_families();
    test_mps();
    test_percentages();
    test_leases();
    test_driver_calls();
    return check::summary("reservation devices");
}
