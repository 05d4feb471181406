// Part of gcx.hpp: leases.
//
//     gcx::lease decode(0, 32, {"decode"});
//     gcx::lease prefill(0, gcx::rest, {"prefill"});
//     const gcx::stream steps(decode);
//     gcx::resize({{decode, 64}, {prefill, gcx::rest}}); // one operation
//     kernel<<<grid, block, 0, steps.native()>>>();      // on decode's present SMs
//     gcx::resize({{prefill, gcx::parked}, {decode, gcx::rest}}); // prefill has no SMs now
//
// A CUstream that was obtained before a resize stays valid on the SMs of that time. So obtain it
// again for each step, and submit nothing to it while another thread resizes the lease. See gcx.h,
// Leases.
#pragma once

#include "cancel.hpp"
#include "error.hpp"
#include "generated/raw.hpp"
#include "owner.hpp"
#include "reservation.hpp"
#include "resource.hpp"
#include "view.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <type_traits>

namespace gcx {

// gcx_lease_params. From C++20 on: {.name = "decode", .timeout = std::chrono::seconds(2)}.
struct lease_params {
    nonnull_string name = {};
    lease_flags flags = lease_flags::none;
    gcx_sm_family family = family::none;    // none: coscheduled
    uint32_t min_sm_count = 0;              // smallest acceptable count; 0: the requested one
    uint32_t exclusive_sm_count = 0;        // of a shared lease: SMs that it has exclusively
    std::chrono::milliseconds timeout = {}; // to wait for the SMs; 0: do not wait; gcx::forever
    const gcx::cancel* cancel = nullptr;    // aborts the wait; not owned
};

// In place of an SM count: the lease has no SMs until it is resized, see gcx.h.
struct parked_t {};
inline constexpr parked_t parked{};

class lease : public detail::owner<gcx_lease, gcx_lease_release> {
  public:
    lease() noexcept = default;
    // gcx_lease_acquire: SMs of a device, or gcx::rest. info() returns what was acquired.
    template <class Count, class = detail::if_count<Count>>
    lease(gcx::device of, Count sms, const lease_params& params = {}) {
        acquire(of, sms, params, params.cancel);
    }
    // The same, within the reservation's SMs. The lease keeps the reservation.
    template <class Count, class = detail::if_count<Count>>
    lease(const reservation& of, Count sms, const lease_params& params = {}) {
        acquire(of, sms, params, params.cancel);
    }
#ifdef __cpp_lib_jthread
    // The same, with a wait that ends when a stop is requested, as of a std::jthread.
    template <class Count, class Stop, class = detail::if_count<Count>,
              class = detail::if_stop<Stop>>
    lease(gcx::device of, Count sms, const Stop& stop, const lease_params& params = {}) {
        acquire_or_stop(of, sms, stop, params);
    }
    template <class Count, class Stop, class = detail::if_count<Count>,
              class = detail::if_stop<Stop>>
    lease(const reservation& of, Count sms, const Stop& stop, const lease_params& params = {}) {
        acquire_or_stop(of, sms, stop, params);
    }
#endif
    // Takes ownership of a handle of gcx.h.
    static lease adopt(gcx_lease owned) noexcept {
        lease adopted;
        *adopted.receive() = owned;
        return adopted;
    }
    // Deleted, since its meaning would be unclear: close() releases the lease, detach() returns the
    // handle.
    gcx_lease release() = delete;
    [[nodiscard]] gcx_lease detach() noexcept { return owner::release(); }

    // gcx_lease_get_info, and some of its fields.
    gcx_lease_info info() const { return raw::lease_get_info(handle()); }
    uint32_t sm_count() const { return info().sm_count; }
    int32_t device() const { return info().device; }
    uint64_t id() const { return info().id; }
    std::string name() const { return info().name; }

    // gcx_lease_get_resource: the SMs that it has now.
    resource get_resource() const { return resource(raw::lease_get_resource(handle())); }

    // gcx_lease_resize and gcx_lease_prepare; gcx::resize and gcx::prepare take several leases.
    template <class Count, class = detail::if_count<Count>>
    void resize(Count sms, resize_flags flags = resize_flags::none) const;
    void resize(parked_t, resize_flags flags = resize_flags::none) const;
    template <class Count, class = detail::if_count<Count>>
    void prepare(Count sms) const;

    // gcx_lease_synchronize
    void synchronize() const { check(gcx_lease_synchronize(handle())); }
    // gcx_lease_query: returns whether the work of its streams has finished.
    bool query() const { return raw::lease_query(handle()); }

  private:
    template <class Count>
    void acquire(gcx::device of, Count sms, const lease_params& params, const gcx::cancel* cancel) {
        const gcx_lease_params raw = raw_of(params, cancel);
        check(
            gcx_lease_acquire(of.ordinal(), detail::sm_count("gcx::lease", sms), &raw, receive()));
    }
    template <class Count>
    void acquire(const reservation& of, Count sms, const lease_params& params,
                 const gcx::cancel* cancel) {
        if (!of)
            throw error(GCX_ERROR_INVALID_HANDLE,
                        "gcx::lease: the reservation was closed or moved from");
        gcx_lease_params raw = raw_of(params, cancel);
        raw.reservation = of.handle();
        check(gcx_lease_acquire(-1, detail::sm_count("gcx::lease", sms), &raw, receive()));
    }
#ifdef __cpp_lib_jthread
    template <class Of, class Count>
    void acquire_or_stop(const Of& of, Count sms, const std::stop_token& stop,
                         const lease_params& params) {
        detail::until_stopped("gcx::lease", stop, params.cancel, [&](const gcx::cancel& requested) {
            acquire(of, sms, params, &requested);
        });
    }
#endif
    static gcx_lease_params raw_of(const lease_params& params, const gcx::cancel* cancel) {
        gcx_lease_params raw = GCX_LEASE_PARAMS_INIT;
        raw.flags = static_cast<uint32_t>(params.flags);
        raw.family = params.family;
        raw.min_sm_count = params.min_sm_count;
        raw.exclusive_sm_count = params.exclusive_sm_count;
        raw.timeout_ms = detail::timeout_ms("gcx::lease", params.timeout);
        raw.cancel = detail::cancel_of("gcx::lease", cancel);
        raw.name =
            params.name.empty() ? nullptr : detail::text("gcx::lease: the name", params.name);
        return raw;
    }
};

// gcx_lease_size: a lease and its new SM count.
struct lease_size : gcx_lease_size {
    template <class Count, class = detail::if_count<Count>>
    lease_size(const gcx::lease& of, Count sms)
        : gcx_lease_size{of.handle(), detail::sm_count("gcx::lease_size", sms), 0} {}
    lease_size(const gcx::lease& of, parked_t) : gcx_lease_size{of.handle(), 0, GCX_SIZE_PARKED} {}
};
static_assert(sizeof(lease_size) == sizeof(gcx_lease_size), "an array of them is one of C's");

// gcx_lease_resize: resizes all leases in one operation, or none.
inline void resize(view<lease_size> sizes, resize_flags flags = resize_flags::none) {
    check(gcx_lease_resize(sizes.data(), detail::size_for_c(sizes.size()),
                           static_cast<uint32_t>(flags)));
}

// gcx_lease_prepare: creates the contexts for such a resize, and resizes nothing.
inline void prepare(view<lease_size> sizes) {
    check(gcx_lease_prepare(sizes.data(), detail::size_for_c(sizes.size())));
}

template <class Count, class>
void lease::resize(Count sms, resize_flags flags) const {
    gcx::resize(lease_size(*this, sms), flags);
}
inline void lease::resize(parked_t, resize_flags flags) const {
    gcx::resize(lease_size(*this, parked), flags);
}
template <class Count, class>
void lease::prepare(Count sms) const {
    gcx::prepare(lease_size(*this, sms));
}

} // namespace gcx
