// Tests the description of resources and structured splits. tests/fuzz/layouts.cpp splits devices of
// every size.

#include "support.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <malloc.h>
#include <string>
#include <unistd.h>
#include <utility>

namespace {

using namespace support;
using Counts = std::vector<uint32_t>;

gcx_sm_request structured_request(uint32_t sm_count, uint32_t coscheduled) {
    gcx_sm_request request{};
    request.sm_count = sm_count;
    request.coscheduled_sm_count = coscheduled;
    return request;
}

Split structured(const std::vector<gcx_sm_request>& requests) {
    return split_by_requests(whole_device(), requests);
}

std::pair<uint32_t, uint32_t> limits(const gcx_resource& resource) {
    const gcx_resource_info info = info_of(resource);
    return {info.min_partition_size, info.coscheduled_alignment};
}

using Limits = std::pair<uint32_t, uint32_t>;

void min_and_alignment_are_those_of_splits() {
    on_machine("h100@13.0", [] {
        const gcx_resource whole = whole_device();
        CHECK(limits(whole) == Limits(8, 8));
        const gcx_resource remainder = split(whole, {12}, GCX_SPLIT_EXACT).groups[0];
        CHECK(limits(remainder) == Limits(12, 12));
        CHECK(sizes(split(remainder, {8})) == Counts({12, 0}));
        const gcx_resource empty = without(remainder, remainder);
        CHECK(limits(empty) == Limits(0, 8));
        CHECK(limits(split(whole, {108}).groups[0]) == Limits(8, 8));
        CHECK(limits(split(whole, {8}).groups[0]) == Limits(8, 8));
        const gcx_resource large =
            split(whole, {24, GCX_REST}, GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE).groups[1];
        CHECK(limits(large) == Limits(12, 24)); // 12 is the remainder atom
        CHECK(sizes(split(large, {12})) == Counts({12, 96}));
    });
    on_machine("h100@13.5", [] {
        const Split made = structured({structured_request(24, 8), structured_request(16, 16)});
        CHECK_OK(made.result);
        CHECK(limits(made.groups[0]) == Limits(24, 8));
        CHECK(limits(made.groups[1]) == Limits(16, 16));
        CHECK(limits(united(made.groups[0], made.groups[1])) == Limits(40, 8));
        const gcx_resource empty = without(made.groups[0], made.groups[0]);
        CHECK_EQ(info_of(empty).min_partition_size, 0U);
        CHECK(info_of(empty).coscheduled_alignment != 0);
        CHECK_REFUSED(try_split(made.groups[0], {8}).result,
                      GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    });
}

// Groups that are united without the rest run on the SMs of both.
void structured_groups_are_united() {
    on_machine("h100@13.5", [] {
        const Split made = structured(
            {structured_request(24, 8), structured_request(16, 8), structured_request(8, 8)});
        CHECK_OK(made.result);
        SmIds expected;
        for (const std::size_t group : {0U, 1U}) {
            const SmIds sms = Partition(made.groups[group]).probe();
            expected.insert(expected.end(), sms.begin(), sms.end());
        }
        std::sort(expected.begin(), expected.end());
        CHECK(Partition(united(made.groups[0], made.groups[1])).probe() == expected);
        CHECK_EQ(expected.size(), 40U);
    });
}

gcx_result sm_ids(const gcx_resource& resource, uint32_t& count) {
    SmIds ids(GCX_MAX_SMS);
    return gcx_resource_get_sm_ids(&resource, ids.data(), GCX_MAX_SMS, &count);
}

void advice_can_be_followed() {
    on_machine("h100@13.5", [] {
        const Split made = structured({structured_request(24, 8)});
        const gcx_resource fine =
            split(whole_device(), {8}, GCX_SPLIT_IGNORE_SM_COSCHEDULING).groups[0];
        uint32_t count = 7;
        CHECK_REFUSED(sm_ids(made.groups[0], count), GCX_ERROR_NOT_SUPPORTED);
        CHECK(message_has("gcx_stream_probe_sms") && !message_has("gcx_device_map_sms"));
        CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_FINE));
        CHECK_REFUSED(gcx_resource_get_overlap(&made.groups[0], &fine, &count),
                      GCX_ERROR_NOT_SUPPORTED);
        CHECK_EQ(count, 7U);
        // The location of nothing is known, and it intersects nothing.
        CHECK_EQ(overlap(without(fine, fine), made.groups[0]), 0U);
        CHECK_EQ(overlap(made.groups[0], without(fine, fine)), 0U);
        for (const gcx_resource& one : {made.groups[0], split(whole_device(), {8}).groups[0]}) {
            CHECK_OK(sm_ids(without(one, one), count));
            CHECK_EQ(count, 0U);
        }
        CHECK_REFUSED(sm_ids(split(whole_device(), {8}).groups[0], count),
                      GCX_ERROR_SMS_NOT_MAPPED);
        CHECK(message_has("gcx_device_map_sms(0, 1)"));
    });
}

void structured_refusals_name_the_request() {
    on_machine("h100@13.5", [] {
        CHECK_REFUSED(structured({structured_request(24, 8), structured_request(20, 8),
                                  structured_request(16, 8)})
                          .result,
                      GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        CHECK(message_has("request 1") && message_has("20 SMs") && message_has("8 coscheduled"));
        CHECK_REFUSED(structured({structured_request(104, 8), structured_request(40, 8)}).result,
                      GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        CHECK(message_has("request 1") && message_has("40 SMs") && message_has("104 of the 132"));
        CHECK_REFUSED(structured({structured_request(24, 8), structured_request(24, 7)}).result,
                      GCX_ERROR_INVALID_VALUE);
        CHECK(message_has("request 1") && message_has("7 coscheduled"));
        gcx_sm_request preferring = structured_request(20, 8);
        preferring.preferred_coscheduled_sm_count = 16;
        CHECK_REFUSED(structured({preferring}).result, GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        CHECK(message_has("request 0: 20 SMs, 8 coscheduled, 16 preferred"));
        CHECK_REFUSED(
            structured(std::vector<gcx_sm_request>(100'000, structured_request(2, 2))).result,
            GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        CHECK(message_has("100000") && message_has("132"));
    });
}

// Returns the bytes of the process's heap in use.
std::size_t heap() {
#if __GLIBC_PREREQ(2, 33)
    return mallinfo2().uordblks;
#else
    return static_cast<std::size_t>(mallinfo().uordblks);
#endif
}

// Returns the nth of 2^20 different lists of four requests.
std::vector<gcx_sm_request> nth_requests(uint32_t nth) {
    std::vector<gcx_sm_request> requests;
    for (int i = 0; i < 4; i++) {
        requests.push_back(structured_request(2 + nth % 16 * 2, 2));
        requests.back().preferred_coscheduled_sm_count = nth / 16 % 2 * 2;
        nth /= 32;
    }
    return requests;
}

// gcx knows at least this many splits, and at most twice as many that no context has.
constexpr uint32_t kKeptSplits = 1024;

// GCX_TEST_SPLITS sets the number of splits.
void structured_splits_keep_memory_flat() {
    on_machine("h100@13.5", [] {
        const char* const wanted = std::getenv("GCX_TEST_SPLITS");
        const auto rounds =
            wanted != nullptr ? static_cast<uint32_t>(std::atoi(wanted)) : 12 * kKeptSplits;
        std::size_t early = 0;
        std::size_t late = 0;
        for (uint32_t round = 0; round < rounds; round++) {
            const Split made = structured(nth_requests(round));
            if (!CHECK_OK(made.result))
                return;
            if (round % 256 != 0)
                continue;
            CHECK_EQ(sms(made.groups[1]), nth_requests(round)[1].sm_count);
            std::size_t& peak = round < 6 * kKeptSplits ? early : late;
            peak = std::max(peak, heap());
        }
        CHECK(late <= early + 65536);
        if (wanted != nullptr)
            std::printf("%u splits: at most %zu bytes in the first %u, %zu after\n", rounds, early,
                        6 * kKeptSplits, late);
    });
}

void evicted_split_is_refused_until_repeated() {
    on_machine("h100@13.5", [] {
        const Split first = structured(nth_requests(0));
        const Split used = structured(nth_requests(1));
        const Partition partition(used.groups[0]);
        for (uint32_t round = 2; round <= kKeptSplits; round++)
            CHECK_OK(structured(nth_requests(round)).result);
        CHECK_EQ(sms(first.groups[0]), 2U);
        for (uint32_t round = 0; round < 3 * kKeptSplits; round++)
            CHECK_OK(structured(nth_requests(2 + round)).result);
        gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
        CHECK_REFUSED(gcx_resource_get_info(&first.groups[0], &info),
                      GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        CHECK(message_has("1024 other structured splits of device 0") && message_has("repeat"));
        gcx_context context = nullptr;
        CHECK_REFUSED(gcx_context_create(&first.groups[0], 1, nullptr, &context),
                      GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        CHECK_EQ(sms(used.groups[1]), 2U); // a context has a group of this split
        const Split again = structured(nth_requests(0));
        CHECK_EQ(std::memcmp(again.groups.data(), first.groups.data(), 4 * sizeof(gcx_resource)),
                 0);
        const Partition one(first.groups[0]);
        const Partition other(again.groups[0]);
        CHECK(one.probe() == other.probe());
        CHECK_EQ(cache_stats().in_use, 2U);
    });
}

void last_used_splits_are_kept() {
    on_machine("h100@13.5", [] {
        std::vector<gcx_resource> groups;
        const auto is_known = [&](std::size_t nth) {
            gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
            return gcx_resource_get_info(&groups[nth], &info) == GCX_SUCCESS;
        };
        for (uint32_t nth = 0; nth < 2 * kKeptSplits; nth++)
            groups.push_back(structured(nth_requests(nth)).groups[0]);
        constexpr std::size_t kHalf = kKeptSplits / 2;
        for (std::size_t nth = 0; nth < kHalf; nth++)
            CHECK(is_known(nth)); // which is a use
        CHECK_OK(structured(nth_requests(2 * kKeptSplits)).result);
        for (std::size_t nth = 0; nth < groups.size(); nth++)
            CHECK_EQ(is_known(nth), nth < kHalf || nth >= groups.size() - kHalf);
    });
}

gcx_result dry_run(const std::vector<gcx_sm_request>& requests, Counts& counts, uint32_t& rest) {
    const gcx_resource whole = whole_device();
    counts.resize(requests.size());
    return gcx_sm_split(&whole, requests.data(), static_cast<uint32_t>(requests.size()), 0, nullptr,
                        nullptr, counts.data(), &rest);
}

void dry_run_of_structured_splits_keeps_nothing() {
    on_machine("h100@13.5", [] {
        const Split first = structured(nth_requests(0));
        Counts counts;
        uint32_t rest = 0;
        CHECK_OK(dry_run(nth_requests(1), counts, rest));
        const std::size_t before = heap();
        for (uint32_t round = 2; round < 4 * kKeptSplits; round++)
            CHECK_OK(dry_run(nth_requests(round), counts, rest));
        CHECK(heap() <= before + 4096);
        CHECK_EQ(counts[0], nth_requests(4 * kKeptSplits - 1)[0].sm_count);
        CHECK_EQ(counts[0] + counts[1] + counts[2] + counts[3] + rest, 132U);
        // Interned, they would have evicted it.
        CHECK_EQ(sms(first.groups[0]), 2U);
        CHECK_OK(dry_run(nth_requests(0), counts, rest));
        CHECK(counts == Counts({2, 2, 2, 2}));
        CHECK_EQ(rest, 124U);
        const std::vector<gcx_sm_request> refused = {structured_request(24, 7)};
        const gcx_result result = structured(refused).result;
        const std::string message = gcx_last_error_message();
        CHECK_REFUSED(dry_run(refused, counts, rest), result);
        CHECK_EQ(std::string(gcx_last_error_message()), message);
    });
}

void split_writes_groups_and_counts() {
    on_machine("h100@13.0", [] {
        const gcx_resource whole = whole_device();
        gcx_sm_request requests[2]{};
        requests[0].sm_count = 10;
        requests[1].sm_count = 16;
        gcx_resource groups[2];
        gcx_resource remainder;
        uint32_t counts[3] = {0, 0, 77};
        uint32_t rest = 0;
        CHECK_OK(gcx_sm_split(&whole, requests, 2, 0, groups, &remainder, counts, &rest));
        CHECK_EQ(counts[0], sms(groups[0]));
        CHECK_EQ(counts[1], sms(groups[1]));
        CHECK_EQ(rest, sms(remainder));
        CHECK_EQ(counts[2], 77U);
        requests[1].sm_count = 200; // a failure writes nothing
        const gcx_resource before = groups[0];
        CHECK_REFUSED(gcx_sm_split(&whole, requests, 2, 0, groups, &remainder, counts, &rest),
                      GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        CHECK(counts[0] == 12 && counts[1] == 16 && rest == 104);
        CHECK_EQ(std::memcmp(&before, &groups[0], sizeof before), 0);
        requests[1].sm_count = 16;
        CHECK_REFUSED(gcx_sm_split(&whole, requests, 2, 0, nullptr, &remainder, counts, &rest),
                      GCX_ERROR_INVALID_VALUE);
        CHECK(message_has("remainder"));
    });
}

void split_into_many_different_groups() {
    on_machine("h100@13.5", [] {
        std::vector<gcx_sm_request> requests;
        for (uint32_t i = 0; i < 44; i++)
            requests.push_back(structured_request(i % 2 == 0 ? 2 : 4, 2));
        const Split made = structured(requests);
        CHECK_OK(made.result);
        const Split again = structured(requests);
        for (std::size_t i = 0; i < requests.size(); i++) {
            CHECK_EQ(sms(made.groups[i]), requests[i].sm_count);
            CHECK_EQ(std::memcmp(&made.groups[i], &again.groups[i], sizeof made.groups[i]), 0);
        }
        gcx_resource all = made.remainder;
        for (const gcx_resource& group : made.groups)
            all = united(all, group);
        CHECK_EQ(sms(all), 132U);
    });
}

std::string profile_of(int major, int minor, uint32_t sm_count) {
    std::ostringstream text;
    text << "gcx-profile 1\nname Invented\ndescription Invented\ncompute_capability " << major
         << "." << minor << "\nsm_count " << sm_count
         << "\nmemory_bytes 8589934592\nclock_khz 1000000\nmemory_clock_khz 1000000\n"
            "memory_bus_bits 256\nl2_bytes 4194304\nthreads_per_sm 1024\nblocks_per_sm 16\n"
            "registers_per_sm 65536\nshared_memory_per_sm 102400\n"
            "shared_memory_per_block_optin 101376\n";
    if (major >= 9)
        text << "max_cluster_size 16\n";
    text << "gpc_sizes";
    for (uint32_t left = sm_count; left != 0; left -= std::min(left, 18U))
        text << " " << std::min(left, 18U);
    text << "\n";
    return text.str();
}

void small_slices_have_no_max_cluster_family() {
    const Profile profile(profile_of(9, 0, 16));
    on_machine(profile.path() + "@13.0", [] {
        CHECK_REFUSED(try_split(whole_device(), {8}, GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE).result,
                      GCX_ERROR_NOT_SUPPORTED);
        CHECK(message_has("24 SMs") && message_has("device 0 has 16"));
        CHECK_REFUSED(gcx_device_map_sms(0, GCX_SM_FAMILY_MAX_CLUSTER), GCX_ERROR_NOT_SUPPORTED);
    });
}

} // namespace

int main() {
    min_and_alignment_are_those_of_splits();
    structured_groups_are_united();
    advice_can_be_followed();
    structured_refusals_name_the_request();
    split_writes_groups_and_counts();
    structured_splits_keep_memory_flat();
    evicted_split_is_refused_until_repeated();
    last_used_splits_are_kept();
    dry_run_of_structured_splits_keeps_nothing();
    split_into_many_different_groups();
    small_slices_have_no_max_cluster_family();
    return support::summary("resources");
}
