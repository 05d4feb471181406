// Tests devices, resources, requests and views.
#include "tests.hpp"

#include <algorithm>
#include <array>
#include <list>
#include <type_traits>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

namespace {

using Counts = std::vector<uint32_t>;

void device_reports_its_properties() {
    CHECK_EQ(gcx::device::count(), 2);
    const gcx::device device = 1;
    CHECK_EQ(device.ordinal(), 1);
    CHECK_EQ(device.sm_count(), 132u);
    CHECK_EQ(device.name(), "SIMULATED NVIDIA H100 80GB HBM3");
    CHECK_EQ(device.info().compute_capability_major, 9);
    const auto [least, greatest] = device.stream_priority_range();
    CHECK(least == 0 && greatest == -5);
    CHECK_EQ(device.sms().device(), 1);
    CHECK_EQ(device.sms().family(), gcx::family::coscheduled);
}

void split_accepts_any_range_of_counts() {
    const gcx::resource sms = gcx::device(0).sms();

    // A braced list gives an array of its size.
    const auto [groups, left] = sms.split({108, 16});
    static_assert(std::is_same_v<decltype(groups), const std::array<gcx::resource, 2>>);
    CHECK(groups[0].sm_count() == 108 && groups[1].sm_count() == 16 && left.sm_count() == 8);
    const auto plan = sms.plan({7, 10, 17});
    static_assert(std::is_same_v<decltype(plan.groups), std::array<uint32_t, 3>>);
    CHECK((plan.groups == std::array<uint32_t, 3>{8, 12, 24}) && plan.remainder == 88);
    CHECK((sms.plan({gcx::rest, 24}).groups == std::array<uint32_t, 2>{108, 24}));

    // Any other range of counts or requests gives a vector.
    const std::vector<uint32_t> vector = {108, 24};
    const std::vector<int64_t> wide = {108, 24};
    const std::array<int, 2> array = {108, 24};
    const unsigned short plain[] = {108, 24};
    const std::vector<gcx::request> requests = {108, 24};
    const std::initializer_list<gcx::request> list = {108, 24};
    const auto same = [&](const auto& counts) {
        const auto split = sms.split(counts);
        const auto planned = sms.plan(counts);
        static_assert(std::is_same_v<decltype(split.groups), std::vector<gcx::resource>> ||
                      std::is_same_v<decltype(split.groups), std::array<gcx::resource, 2>>);
        return split.groups.size() == 2 && split.groups[0].sm_count() == 108 &&
               split.groups[1].sm_count() == 24 && planned.groups[0] == 108 &&
               planned.groups[1] == 24 && planned.remainder == 0;
    };
    CHECK(same(vector) && same(wide) && same(array) && same(plain) && same(requests) && same(list));
#if __cplusplus >= 202002L
    CHECK(same(std::span<const uint32_t>(vector)) && same(std::span(requests)));
#endif

    // Tests flags.
    CHECK_EQ(sms.plan({10}, gcx::split_flags::fine).groups[0], 10u);
    CHECK_EQ(sms.split({10}, gcx::split_flags::fine | gcx::split_flags::exact).groups[0].family(),
             gcx::family::fine);
    CHECK_EQ(sms.split({24}, gcx::split_flags::max_cluster).groups[0].family(),
             gcx::family::max_cluster);
    CHECK_THROWS(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 sms.split({10}, gcx::split_flags::exact));
}

void split_of_invalid_counts_is_refused() {
    const gcx::resource sms = gcx::device(0).sms();
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, sms.plan({-1}));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, sms.plan({int64_t{1} << 32 | 8}));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, sms.plan(std::vector<long>{8, -8}));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, sms.plan(Counts{}));
    CHECK_THROWS(GCX_ERROR_INVALID_VALUE, sms.split(Counts{}));
    CHECK_THROWS(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, sms.split({UINT32_MAX - 1}));
    CHECK_THROWS(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, sms.split({140}));
    static_assert(!std::is_convertible_v<bool, gcx::request>);
    static_assert(!std::is_convertible_v<double, gcx::request>);
    static_assert(gcx::request(24).sm_count == 24);
}

void structured_request_groups_sms() {
    constexpr gcx::request request =
        gcx::request(16).coscheduled(8).preferred_coscheduled(16).backfill();
    static_assert(request.sm_count == 16 && request.coscheduled_sm_count == 8);
    static_assert(request.preferred_coscheduled_sm_count == 16);
    static_assert(request.flags == GCX_SM_REQUEST_BACKFILL && request.reserved[10] == 0);
    constexpr gcx::request local =
        gcx::request(16).locality_domain(gcx::any_locality_domain).supplemental_sms();
    static_assert(local.locality_domain_id == GCX_LOCALITY_DOMAIN_ID_ANY);
    static_assert(local.flags == (GCX_SM_REQUEST_LOCALITY_DOMAIN_ID |
                                  GCX_SM_REQUEST_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS));

    const gcx::resource sms = gcx::device(0).sms();
    if (!gcx::driver_info().capabilities[gcx::capability::structured_split]) {
        CHECK_THROWS(GCX_ERROR_NOT_SUPPORTED, sms.split({request}));
        return;
    }
    const auto [groups, left] = sms.split({gcx::request(16).coscheduled(8), 24});
    CHECK(groups[0].family() == gcx::family::structured && groups[1].sm_count() == 24);
    CHECK_EQ(left.sm_count(), 92u);
}

void resource_operators_are_set_operations() {
    const auto [parts, left] = gcx::device(0).sms().split({24, 32});
    const auto& [a, b] = parts;
    CHECK_EQ((a | b).sm_count(), 56u);
    CHECK((a | b) - b == a && ((a | b) & b) == b && a != b);
    CHECK_EQ((a & b).sm_count(), 0u);
    CHECK_EQ((a | b).overlap(a), 24u);
    CHECK_EQ(a.overlap(left), 0u);
    CHECK_EQ(a.info().atom_count, 3u);
    CHECK((a.atom(0) | a.atom(1) | a.atom(2)) == a);
    CHECK_EQ(a.max_cluster_size(), 8u);
    const gcx::resource again(a.value());
    CHECK(again == a);
}

void view_accepts_any_contiguous_range() {
    const std::vector<int> vector = {1, 2, 3};
    const auto sum = [](gcx::view<int> of) {
        int added = 0;
        for (const int value : of)
            added += value;
        return added + 100 * static_cast<int>(of.size());
    };
    CHECK_EQ(sum(vector), 306);
    CHECK_EQ(sum({1, 2}), 203);
    CHECK_EQ(sum(7), 107);
    CHECK_EQ(sum({}), 0);
    const int array[] = {4, 5};
    CHECK_EQ(sum(array), 209);
    CHECK_EQ(sum(std::array<int, 2>{4, 5}), 209);
    CHECK_EQ(sum({vector.data() + 1, 2}), 205);
#if __cplusplus >= 202002L
    CHECK_EQ(sum(std::span(vector).first(2)), 203);
#endif
    static_assert(!std::is_convertible_v<std::vector<long>, gcx::view<int>>);
    static_assert(!std::is_convertible_v<std::list<int>, gcx::view<int>>);
}

} // namespace

void test_values() {
    view_accepts_any_contiguous_range();
    on_each_driver([] {
        device_reports_its_properties();
        split_accepts_any_range_of_counts();
        split_of_invalid_counts_is_refused();
        structured_request_groups_sms();
        resource_operators_are_set_operations();
    });
}
