// Part of gcx.hpp: reservations, SMs that no other process has, and whether processes share by way
// of MPS.
//
//     const gcx::reservation held(0, 24, {"decode"});         // others can't have these SMs
//     const gcx::lease decode(held, gcx::rest);        // out of the reservation's
//     setenv("DECODE_RESERVATION", held.token().c_str(), 1);  // and in a process that this one
//     starts: const gcx::reservation joined =
//     gcx::reservation::join(std::getenv("DECODE_RESERVATION"));
//
// Processes agree that take theirs in the same folder. Without MPS, which mps_info() tells of, they
// take turns on the whole device all the same. See gcx.h, Reservations.
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
    uint32_t min_sm_count = 0;              // so many will do; 0: no less than asked for
    std::chrono::milliseconds timeout = {}; // to wait for the SMs; 0: don't; gcx::forever
    const gcx::cancel* cancel = nullptr;    // gives the wait up; stays the caller's
    std::optional<nonnull_string> folder =
        {}; // an absolute path; none: GCX_RESERVATION_DIR, or the user's
};

class reservation : public detail::owner<gcx_reservation, gcx_reservation_release> {
  public:
    reservation() noexcept = default;
    // gcx_reservation_acquire: sms of a device, or gcx::rest. What it got is in info().
    template <class Count, class = detail::if_count<Count>>
    reservation(gcx::device of, Count sms, const reservation_params& params = {}) {
        take(of, detail::sm_count("gcx::reservation", sms), params, params.cancel);
    }
#ifdef __cpp_lib_jthread
    // The same, whose wait is given up once a stop is requested, as of a std::jthread.
    template <class Count, class Stop, class = detail::if_count<Count>,
              class = detail::if_stop<Stop>>
    reservation(gcx::device of, Count sms, const Stop& stop,
                const reservation_params& params = {}) {
        detail::until_stopped(
            "gcx::reservation", stop, params.cancel, [&](const gcx::cancel& requested) {
                take(of, detail::sm_count("gcx::reservation", sms), params, &requested);
            });
    }
#endif
    // gcx_reservation_join: the reservation of another process, by its token. Opens no driver.
    static reservation join(const std::string& token) {
        reservation joined;
        check(gcx_reservation_join(detail::text("gcx::reservation::join: the token", token),
                                   joined.receive()));
        return joined;
    }
    // The same with what std::getenv returns: GCX_ERROR_INVALID_VALUE if that is nullptr.
    static reservation join(const char* token) {
        if (token == nullptr)
            throw error(
                GCX_ERROR_INVALID_VALUE,
                "gcx::reservation::join: the token is nullptr; if it comes from std::getenv, set "
                "that variable to the reservation's token() before this process starts");
        return join(std::string(token));
    }
    // A handle of gcx.h, which becomes this one's.
    static reservation adopt(gcx_reservation owned) noexcept {
        reservation adopted;
        *adopted.receive() = owned;
        return adopted;
    }
    // Its name would say two things: close() gives the reservation up, detach() hands the handle
    // out.
    gcx_reservation release() = delete;
    [[nodiscard]] gcx_reservation detach() noexcept { return owner::release(); }

    // gcx_reservation_get_info, and some of its fields.
    gcx_reservation_info info() const { return raw::reservation_get_info(handle()); }
    uint32_t sm_count() const { return info().sm_count; }
    uint64_t id() const { return info().id; }
    std::string name() const { return info().name; }

    // gcx_reservation_get_token: what another process joins it by, in its environment.
    std::string token() const {
        std::string token(GCX_MAX_RESERVATION_TOKEN, '\0');
        check(gcx_reservation_get_token(handle(), token.data(), GCX_MAX_RESERVATION_TOKEN));
        token.resize(token.find('\0'));
        return token;
    }

    // gcx_reservation_get_resource: its SMs in this process. A context of them doesn't keep the
    // reservation, as a gcx::lease of it does. Opens the driver.
    resource get_resource() const { return resource(raw::reservation_get_resource(handle())); }

  private:
    void take(gcx::device of, uint32_t sms, const reservation_params& params,
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

// gcx_reservation_list: who has SMs and who waits for some, of all processes that use the folder
// that GCX_RESERVATION_DIR names or the user's own, or of those that use another. Names in it are
// any bytes: escape them. Opens no driver.
inline std::vector<gcx_live_reservation>
live_reservations(const std::optional<nonnull_string>& folder = {}) {
    const char* const path =
        folder ? detail::text("gcx::live_reservations: the folder", *folder) : nullptr;
    return raw::reservation_list(path);
}

// gcx_mps_get_info: whether contexts of this process on the device are shared by way of MPS.
inline gcx_mps_info mps_info(device of) {
    return raw::mps_get_info(of.ordinal());
}

} // namespace gcx
