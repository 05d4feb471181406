// Part of gcx.hpp: reservations, SMs that no other process has.
//
//     const gcx::reservation reserved(0, 24, {"decode"});
//     const gcx::lease decode(reserved, gcx::rest);           // within the reservation
//     setenv("RESERVATION", reserved.token().c_str(), 1);     // for a child process, which calls
//     gcx::reservation::join(std::getenv("RESERVATION"));
//
// All processes must use the same folder. Without MPS (device::info) processes take turns on the
// whole device. See gcx.h, Reservations.
#pragma once

#include "cancel.hpp"
#include "error.hpp"
#include "generated/raw.hpp"
#include "owner.hpp"
#include "resource.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gcx {

// gcx_reservation_params. From C++20 on: {.name = "decode", .timeout = std::chrono::seconds(2)}.
struct reservation_params {
    nonnull_string name = {};
    reservation_flags flags = reservation_flags::none;
    gcx_sm_family family = family::none;    // none: coscheduled
    uint32_t min_sm_count = 0;              // smallest acceptable count; 0: the requested one
    std::chrono::milliseconds timeout = {}; // to wait for the SMs; 0: do not wait; gcx::forever
    const gcx::cancel* cancel = nullptr;    // aborts the wait; not owned
    // An absolute path. Default: GCX_RESERVATION_DIR in the environment, or the user's folder.
    std::optional<nonnull_string> folder = {};
};

class reservation : public detail::owner<gcx_reservation, gcx_reservation_release> {
  public:
    reservation() noexcept = default;
    // gcx_reservation_acquire: SMs of a device, or gcx::rest. info() returns what was acquired.
    template <class Count, class = detail::if_count<Count>>
    reservation(gcx::device of, Count sms, const reservation_params& params = {}) {
        acquire(of, detail::sm_count("gcx::reservation", sms), params, params.cancel);
    }
#ifdef __cpp_lib_jthread
    // The same, with a wait that ends when a stop is requested, as of a std::jthread.
    template <class Count, class Stop, class = detail::if_count<Count>,
              class = detail::if_stop<Stop>>
    reservation(gcx::device of, Count sms, const Stop& stop,
                const reservation_params& params = {}) {
        detail::until_stopped(
            "gcx::reservation", stop, params.cancel, [&](const gcx::cancel& requested) {
                acquire(of, detail::sm_count("gcx::reservation", sms), params, &requested);
            });
    }
#endif
    // gcx_reservation_join: joins a reservation by its token. Opens no driver.
    static reservation join(const std::string& token) {
        reservation joined;
        check(gcx_reservation_join(detail::text("gcx::reservation::join: the token", token),
                                   joined.receive()));
        return joined;
    }
    // The same for the result of std::getenv. Throws GCX_ERROR_INVALID_VALUE for nullptr.
    static reservation join(const char* token) {
        if (token == nullptr)
            throw error(
                GCX_ERROR_INVALID_VALUE,
                "gcx::reservation::join: the token is nullptr; if it comes from std::getenv, set "
                "that variable to the reservation's token() before this process starts");
        return join(std::string(token));
    }
    // Takes ownership of a handle of gcx.h.
    static reservation adopt(gcx_reservation owned) noexcept {
        reservation adopted;
        *adopted.receive() = owned;
        return adopted;
    }
    // Deleted, since its meaning would be unclear: close() releases the reservation, detach()
    // returns the handle.
    gcx_reservation release() = delete;
    [[nodiscard]] gcx_reservation detach() noexcept { return owner::release(); }

    // gcx_reservation_get_info, and some of its fields.
    gcx_reservation_info info() const { return raw::reservation_get_info(handle()); }
    uint32_t sm_count() const { return info().sm_count; }
    uint64_t id() const { return info().id; }
    std::string name() const { return info().name; }

    // gcx_reservation_get_token: the token with which another process joins it.
    std::string token() const {
        std::string token(GCX_MAX_RESERVATION_TOKEN, '\0');
        check(gcx_reservation_get_token(handle(), token.data(), GCX_MAX_RESERVATION_TOKEN));
        token.resize(token.find('\0'));
        return token;
    }

    // gcx_reservation_get_resource: its SMs. A context of them does not keep the reservation alive,
    // a gcx::lease of it does. Opens the driver.
    resource get_resource() const { return resource(raw::reservation_get_resource(handle())); }

  private:
    void acquire(gcx::device of, uint32_t sms, const reservation_params& params,
                 const gcx::cancel* cancel) {
        gcx_reservation_params raw = GCX_RESERVATION_PARAMS_INIT;
        raw.flags = static_cast<uint32_t>(params.flags);
        raw.family = params.family;
        raw.min_sm_count = params.min_sm_count;
        raw.timeout_ms = detail::timeout_ms("gcx::reservation", params.timeout);
        raw.cancel = detail::cancel_of("gcx::reservation", cancel);
        raw.name =
            params.name.empty() ? nullptr : detail::text("gcx::reservation: the name", params.name);
        raw.folder =
            params.folder ? detail::text("gcx::reservation: the folder", *params.folder) : nullptr;
        check(gcx_reservation_acquire(of.ordinal(), sms, &raw, receive()));
    }
};

// gcx_reservation_list: the reservations of a folder, and the requests that wait. Default:
// GCX_RESERVATION_DIR in the environment, or the user's folder. Names are any bytes: escape them
// for display. Opens no driver.
inline std::vector<gcx_live_reservation>
live_reservations(const std::optional<nonnull_string>& folder = {}) {
    const char* const path =
        folder ? detail::text("gcx::live_reservations: the folder", *folder) : nullptr;
    return raw::reservation_list(path);
}

} // namespace gcx
