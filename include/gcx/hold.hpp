// Part of gcx.hpp: holds, SMs that no other process has, and whether processes share by way of MPS.
//
//     const gcx::hold held(0, 24, {"decode"});         // others can't have these SMs
//     const gcx::lease decode(held, gcx::rest);        // out of the hold's
//     setenv("DECODE_HOLD", held.token().c_str(), 1);  // and in a process that this one starts:
//     const gcx::hold joined = gcx::hold::join(std::getenv("DECODE_HOLD"));
//
// Processes agree that take theirs in the same folder. Without MPS, which mps_info() tells of, they
// take turns on the whole device all the same. See gcx.h, Holds.
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

// gcx_hold_params. From C++20 on: {.name = "decode", .timeout = std::chrono::seconds(2)}.
struct hold_params {
    nonnull_string name = {};
    hold_flags flags = hold_flags::none;
    gcx_sm_family family = family::none;    // none: coscheduled
    uint32_t min_sm_count = 0;              // so many will do; 0: no less than asked for
    std::chrono::milliseconds timeout = {}; // to wait for the SMs; 0: don't; gcx::forever
    const gcx::cancel* cancel = nullptr;    // gives the wait up; stays the caller's
    std::optional<nonnull_string> folder =
        {}; // an absolute path; none: GCX_HOLD_FOLDER, or the user's
};

class hold : public detail::owner<gcx_hold, gcx_hold_destroy> {
  public:
    hold() noexcept = default;
    // gcx_hold_create: sms of a device, or gcx::rest. What it got is in info().
    template <class Count, class = detail::if_count<Count>>
    hold(gcx::device of, Count sms, const hold_params& params = {}) {
        take(of, detail::sm_count("gcx::hold", sms), params, params.cancel);
    }
#ifdef __cpp_lib_jthread
    // The same, whose wait is given up once a stop is requested, as of a std::jthread.
    template <class Count, class Stop, class = detail::if_count<Count>,
              class = detail::if_stop<Stop>>
    hold(gcx::device of, Count sms, const Stop& stop, const hold_params& params = {}) {
        detail::until_stopped("gcx::hold", stop, params.cancel, [&](const gcx::cancel& requested) {
            take(of, detail::sm_count("gcx::hold", sms), params, &requested);
        });
    }
#endif
    // gcx_hold_join: the hold of another process, by its token. Opens no driver.
    static hold join(const std::string& token) {
        hold joined;
        check(gcx_hold_join(detail::text("gcx::hold::join: the token", token), joined.receive()));
        return joined;
    }
    // The same with what std::getenv returns: GCX_ERROR_INVALID_VALUE if that is nullptr.
    static hold join(const char* token) {
        if (token == nullptr)
            throw error(GCX_ERROR_INVALID_VALUE,
                        "gcx::hold::join: the token is nullptr; if it comes from std::getenv, set "
                        "that variable to the hold's token() before this process starts");
        return join(std::string(token));
    }
    // A handle of gcx.h, which becomes this one's.
    static hold adopt(gcx_hold owned) noexcept {
        hold adopted;
        *adopted.receive() = owned;
        return adopted;
    }
    // Its name would say two things: close() gives the hold up, detach() hands the handle out.
    gcx_hold release() = delete;
    [[nodiscard]] gcx_hold detach() noexcept { return owner::release(); }

    // gcx_hold_get_info, and some of its fields.
    gcx_hold_info info() const { return raw::hold_get_info(handle()); }
    uint32_t sm_count() const { return info().sm_count; }
    uint64_t id() const { return info().id; }
    std::string name() const { return info().name; }

    // gcx_hold_get_token: what another process joins it by, in its environment.
    std::string token() const {
        std::string token(GCX_MAX_HOLD_TOKEN, '\0');
        check(gcx_hold_get_token(handle(), token.data(), GCX_MAX_HOLD_TOKEN));
        token.resize(token.find('\0'));
        return token;
    }

    // gcx_hold_get_resource: its SMs in this process. A context of them doesn't keep the hold, as
    // a gcx::lease of it does. Opens the driver.
    resource get_resource() const { return resource(raw::hold_get_resource(handle())); }

  private:
    void take(gcx::device of, uint32_t sms, const hold_params& params, const gcx::cancel* cancel) {
        gcx_hold_params raw = GCX_HOLD_PARAMS_INIT;
        raw.flags = static_cast<uint32_t>(params.flags);
        raw.family = params.family;
        raw.min_sm_count = params.min_sm_count;
        raw.timeout_ms = detail::timeout_ms("gcx::hold", params.timeout);
        raw.cancel = detail::cancel_of("gcx::hold", cancel);
        raw.name = params.name.empty() ? nullptr : detail::text("gcx::hold: the name", params.name);
        raw.folder =
            params.folder ? detail::text("gcx::hold: the folder", *params.folder) : nullptr;
        check(gcx_hold_create(of.ordinal(), sms, &raw, receive()));
    }
};

// gcx_hold_list: who has SMs and who waits for some, of all processes that use the folder that
// GCX_HOLD_FOLDER names or the user's own, or of those that use another. Names in it are any bytes:
// escape them. Opens no driver.
inline std::vector<gcx_live_hold> live_holds(const std::optional<nonnull_string>& folder = {}) {
    const char* const path =
        folder ? detail::text("gcx::live_holds: the folder", *folder) : nullptr;
    return raw::hold_list(path);
}

// gcx_mps_get_info: whether contexts of this process on the device are shared by way of MPS.
inline gcx_mps_info mps_info(device of) {
    return raw::mps_get_info(of.ordinal());
}

} // namespace gcx
