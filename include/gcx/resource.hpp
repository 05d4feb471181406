// Part of gcx.hpp: devices, resources and splits.
#pragma once

#include "error.hpp"
#include "generated/raw.hpp"
#include "view.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace gcx {

namespace detail {
template <class Count>
using if_count = std::enable_if_t<std::is_integral_v<Count> && !std::is_same_v<Count, bool>>;

// Converts an SM count of any integer type.
template <class Count>
constexpr uint32_t sm_count(const char* where, Count sms) {
    bool fits = true; // NOLINT(misc-const-correctness): assigned for signed types
    if constexpr (std::is_signed_v<Count>)
        fits = sms >= 0;
    if (!fits || static_cast<std::make_unsigned_t<Count>>(sms) > UINT32_MAX)
        throw error(GCX_ERROR_INVALID_VALUE,
                    std::string(where) + ": " + std::to_string(sms) + " is not an SM count");
    return static_cast<uint32_t>(sms);
}
} // namespace detail

// gcx_sm_request. Converts from an SM count.
struct request : gcx_sm_request {
    template <class Count, class = detail::if_count<Count>>
    constexpr request(Count sms) : gcx_sm_request{} {
        sm_count = detail::sm_count("gcx::request", sms);
    }

    // Return a copy with one more property. [13.1+] These make the split a structured one.
    [[nodiscard]] constexpr request coscheduled(uint32_t sms) const {
        request more = *this;
        more.coscheduled_sm_count = sms;
        return more;
    }
    [[nodiscard]] constexpr request preferred_coscheduled(uint32_t sms) const {
        request more = *this;
        more.preferred_coscheduled_sm_count = sms;
        return more;
    }
    [[nodiscard]] constexpr request backfill() const { return with(GCX_SM_REQUEST_BACKFILL); }
    // [13.4+]
    [[nodiscard]] constexpr request locality_domain(uint32_t id) const {
        request more = with(GCX_SM_REQUEST_LOCALITY_DOMAIN_ID);
        more.locality_domain_id = id;
        return more;
    }
    [[nodiscard]] constexpr request supplemental_sms() const {
        return with(GCX_SM_REQUEST_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS);
    }

  private:
    constexpr request with(uint32_t flag) const {
        request more = *this;
        more.flags |= flag;
        return more;
    }
};
static_assert(sizeof(request) == sizeof(gcx_sm_request), "an array of them is one of C's");

// The result of a split: a std::array for a braced list of counts, else a std::vector.
template <class Groups, class Remainder>
struct parts {
    Groups groups;
    Remainder remainder;
};

namespace detail {
// Converts counts or requests to requests.
template <class Range>
auto requests_of(const Range& range) {
    if constexpr (std::is_same_v<element_of<Range>, request>)
        return view<request>(range);
    else
        return std::vector<request>(std::begin(range), std::end(range));
}

} // namespace detail

// gcx_resource
class resource {
  public:
    // An empty value, which every function refuses.
    resource() noexcept = default;
    explicit resource(const gcx_resource& value) noexcept : value_(value) {}
    const gcx_resource& value() const noexcept { return value_; }

    // gcx_resource_get_info, and some of its fields.
    gcx_resource_info info() const { return raw::resource_get_info(&value_); }
    uint32_t sm_count() const { return info().sm_count; }
    gcx_sm_family family() const { return info().family; }
    int32_t device() const { return info().device; }

    // gcx_sm_split: split({108, 24}), split({gcx::rest, 24}), split(vector of counts or requests).
    template <std::size_t Count>
    parts<std::array<resource, Count>, resource>
    split(const request (&requests)[Count], split_flags flags = split_flags::none) const {
        parts<std::array<resource, Count>, resource> into;
        split(view<request>(requests), into.groups.data(), flags, into.remainder);
        return into;
    }
    template <class Range, class = detail::element_of<Range>>
    parts<std::vector<resource>, resource> split(const Range& requests,
                                                 split_flags flags = split_flags::none) const {
        const auto requested = detail::requests_of(requests);
        parts<std::vector<resource>, resource> into{std::vector<resource>(requested.size()), {}};
        split(view<request>(requested), into.groups.data(), flags, into.remainder);
        return into;
    }

    // gcx_sm_split without groups: the SM counts that a split would give.
    template <std::size_t Count>
    parts<std::array<uint32_t, Count>, uint32_t> plan(const request (&requests)[Count],
                                                      split_flags flags = split_flags::none) const {
        parts<std::array<uint32_t, Count>, uint32_t> into{};
        plan(view<request>(requests), into.groups.data(), flags, into.remainder);
        return into;
    }
    template <class Range, class = detail::element_of<Range>>
    parts<std::vector<uint32_t>, uint32_t> plan(const Range& requests,
                                                split_flags flags = split_flags::none) const {
        const auto requested = detail::requests_of(requests);
        parts<std::vector<uint32_t>, uint32_t> into{std::vector<uint32_t>(requested.size()), 0};
        plan(view<request>(requested), into.groups.data(), flags, into.remainder);
        return into;
    }

    // gcx_resource_union and _subtract.
    friend resource operator|(const resource& a, const resource& b) {
        return resource(raw::resource_union(&a.value_, &b.value_));
    }
    friend resource operator-(const resource& a, const resource& b) {
        return resource(raw::resource_subtract(&a.value_, &b.value_));
    }
    friend resource operator&(const resource& a, const resource& b) { return a - (a - b); }
    friend bool operator==(const resource& a, const resource& b) noexcept {
        return std::memcmp(&a.value_, &b.value_, sizeof a.value_) == 0;
    }
    friend bool operator!=(const resource& a, const resource& b) noexcept { return !(a == b); }

    // gcx_resource_get_overlap
    uint32_t overlap(const resource& other) const {
        return raw::resource_get_overlap(&value_, &other.value_);
    }

    // gcx_resource_find_max_cluster_size
    uint32_t max_cluster_size() const { return raw::resource_find_max_cluster_size(&value_); }

    // gcx_resource_get_sm_ids: after gcx::device::map_sms.
    std::vector<uint32_t> sm_ids() const { return raw::resource_get_sm_ids(&value_); }

    // gcx_resource_get_atom: 0 to info().atom_count - 1.
    resource atom(uint32_t index) const { return resource(raw::resource_get_atom(&value_, index)); }

    // gcx_workqueue_configure [13.1+]: this workqueue configuration, changed.
    resource configured(gcx_workqueue_scope scope, uint32_t concurrency_limit = 0) const {
        return resource(raw::workqueue_configure(&value_, scope, concurrency_limit));
    }

  private:
    void split(view<request> requested, resource* groups, split_flags flags, resource& left) const {
        check(gcx_sm_split(&value_, requested.data(), detail::size_for_c(requested.size()),
                           static_cast<uint32_t>(flags), reinterpret_cast<gcx_resource*>(groups),
                           &left.value_, nullptr, nullptr));
    }
    void plan(view<request> requested, uint32_t* groups, split_flags flags, uint32_t& left) const {
        check(gcx_sm_split(&value_, requested.data(), detail::size_for_c(requested.size()),
                           static_cast<uint32_t>(flags), nullptr, nullptr, groups, &left));
    }

    gcx_resource value_{};
};
static_assert(sizeof(resource) == sizeof(gcx_resource) && std::is_standard_layout_v<resource>,
              "an array of them is one of C's");

// A device, by its ordinal, which is checked when it is used.
class device {
  public:
    constexpr device(int32_t ordinal) noexcept : ordinal_(ordinal) {}
    constexpr int32_t ordinal() const noexcept { return ordinal_; }

    // gcx_device_get_count
    static int32_t count() { return raw::device_get_count(); }

    // gcx_device_get_info, and some of its fields.
    gcx_device_info info() const { return raw::device_get_info(ordinal_); }
    uint32_t sm_count() const { return info().sm_count; }
    std::string name() const { return info().name; }

    // gcx_device_get_resource
    resource get_resource(gcx_resource_type type) const {
        return resource(raw::device_get_resource(ordinal_, type));
    }
    resource sms() const { return get_resource(type::sm); }

    // gcx_device_get_stream_priority_range: greatest is the most urgent and the smaller number.
    struct priority_range {
        int32_t least;
        int32_t greatest;
    };
    priority_range stream_priority_range() const {
        priority_range range{};
        check(gcx_device_get_stream_priority_range(ordinal_, &range.least, &range.greatest));
        return range;
    }

    // gcx_device_map_sms
    void map_sms(gcx_sm_family family) const { check(gcx_device_map_sms(ordinal_, family)); }
    // gcx_device_find_shared_sms
    std::vector<uint32_t> shared_sms() const { return raw::device_find_shared_sms(ordinal_); }

  private:
    int32_t ordinal_;
};

} // namespace gcx
