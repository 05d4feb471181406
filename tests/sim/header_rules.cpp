// The rules of the header text of CUDA 13.1 to 13.5, one test for each. No driver of these versions
// was measured.
#include "support.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <set>

using namespace sim_test;

namespace {

using Params = cu::SmGroupParams;

constexpr const char* kNewest = "h100@13.5";
constexpr auto kOk = CUDA_SUCCESS;
constexpr auto kInvalid = CUDA_ERROR_INVALID_VALUE;
constexpr auto kImpossible = static_cast<CUresult>(915);
constexpr auto kWrongType = static_cast<CUresult>(914);

// A call of cuDevSmResourceSplit.
struct Structured {
    CUresult result = CUDA_SUCCESS;
    std::vector<CUdevResource> groups;
    CUdevResource remainder{};
    std::vector<cu::SmGroupParams> params;
};

Structured structured(std::vector<cu::SmGroupParams> params, bool dry = false,
                      const CUdevResource* input = nullptr, unsigned flags = 0) {
    const CUdevResource device = query();
    Structured made;
    made.params = std::move(params);
    made.groups.resize(made.params.size());
    made.result = later().split(
        dry ? nullptr : made.groups.data(), static_cast<unsigned>(made.params.size()),
        input == nullptr ? &device : input, &made.remainder, flags, made.params.data());
    return made;
}

// Returns the SMs that a kernel in a new context sees.
std::vector<unsigned> sms_of(const CUdevResource& resource) {
    Primary primary;
    const Partition part({resource});
    CHECK_OK(part.result);
    return primary.sms(part.stream);
}

// cuDevSmResourceSplit.

CUresult result_of(const Params& params) {
    return structured({params}).result;
}

// The simulated B200 has two dies of four GPCs. Its SMs are numbered in pairs, die by die.
unsigned domain_of(unsigned sm) {
    if (sm >= 144)
        return sm >= 146 ? 1 : 0;
    return sm % 16 < 8 ? 0 : 1;
}

Params group(unsigned sm_count, unsigned coscheduled = 0, unsigned flags = 0, unsigned domain = 0) {
    return {.sm_count = sm_count,
            .coscheduled_sm_count = coscheduled,
            .flags = flags,
            .locality_domain_id = domain};
}

// A split of the whole device whose result is the whole rule.
struct SplitResult {
    const char* name;
    const char* machine;
    std::vector<Params> groups;
    CUresult result;
};

std::vector<NamedTest> split_results() {
    const SplitResult results[] = {
        {"sm_count_not_aligned_is_refused", kNewest, {group(20)}, kImpossible},
        {"sm_count_below_range_is_refused", kNewest, {group(1, 2)}, kImpossible},
        {"sm_count_of_pair_is_allowed", kNewest, {group(2, 2)}, kOk},
        {"sm_count_of_device_is_allowed", kNewest, {group(132, 2)}, kOk},
        {"sm_count_above_range_is_refused", kNewest, {group(134, 2)}, kImpossible},
        {"sm_count_odd_is_refused", kNewest, {group(9, 2)}, kImpossible},
        {"sm_count_odd_is_refused_with_backfill",
         kNewest,
         {group(9, 0, cu::kGroupBackfill)},
         kImpossible},
        {"sm_count_not_multiple_of_16_is_refused", kNewest, {group(24, 16)}, kImpossible},
        {"sm_count_multiple_of_16_is_allowed", kNewest, {group(32, 16)}, kOk},
        {"sm_count_multiple_of_4_is_allowed", kNewest, {group(12, 4)}, kOk},
        {"coscheduled_count_34_is_refused", kNewest, {group(34, 34)}, kInvalid},
        // allowed, but no GPC of an H100 has 32 SMs
        {"coscheduled_count_32_does_not_fit", kNewest, {group(32, 32)}, kImpossible},
        {"coscheduled_count_4_before_9_0_is_refused", "rtx4090@13.1", {group(8, 4)}, kInvalid},
        {"coscheduled_count_2_before_9_0_is_allowed", "rtx4090@13.1", {group(8, 2)}, kOk},
        {"discovered_zero_with_result_is_refused", kNewest, {group(132, 2), group(0)}, kImpossible},
        {"sm_count_below_coscheduled_is_refused", kNewest, {group(4)}, kImpossible},
        {"sm_count_below_coscheduled_is_refused_with_backfill",
         kNewest,
         {group(4, 0, cu::kGroupBackfill)},
         kImpossible},
        {"structure_of_all_sms_is_refused", kNewest, {group(132)}, kImpossible},
        {"backfill_ignores_structure_if_needed", kNewest, {group(132, 0, cu::kGroupBackfill)}, kOk},
        {"backfill_without_coscheduled_sms_is_refused",
         kNewest,
         {group(120), group(12, 0, cu::kGroupBackfill)},
         kImpossible},
        {"unknown_group_flags_are_refused", kNewest, {group(8, 0, 8)}, kInvalid},
        {"locality_domain_unknown_is_refused",
         "b200@13.4",
         {group(32, 0, cu::kGroupLocalityDomain, 2)},
         kInvalid},
        {"locality_domain_without_flag_is_refused", "b200@13.4", {group(32, 0, 0, 1)}, kInvalid},
        {"supplemental_without_domain_flag_is_refused",
         "b200@13.4",
         {group(8, 0, cu::kGroupLocalitySupplemental)},
         kInvalid},
        {"locality_domain_without_free_sm_is_refused",
         "b200@13.4",
         {group(74, 2, cu::kGroupLocalityDomain | cu::kGroupLocalitySupplemental),
          group(8, 0, cu::kGroupLocalityDomain | cu::kGroupBackfill)},
         kImpossible},
        {"split_before_13_1_is_not_supported", "h100@13.0", {group(8)}, CUDA_ERROR_NOT_SUPPORTED},
    };
    std::vector<NamedTest> tests;
    for (const SplitResult& one : results)
        tests.push_back({one.name, [one] {
                             simulate(one.machine);
                             CHECK_EQ(structured(one.groups).result, one.result);
                         }});
    return tests;
}

// A split of the whole device that succeeds, or its dry run, and the SMs of its parts.
struct SplitCounts {
    const char* name;
    const char* machine;
    std::vector<Params> groups;
    std::vector<unsigned> counts;
    unsigned remainder;
    bool dry = false;
};

void check_counts(const SplitCounts& expected) {
    simulate(expected.machine);
    const Structured made = structured(expected.groups, expected.dry);
    CHECK_EQ(made.result, kOk);
    for (std::size_t i = 0; i < expected.counts.size(); i++) {
        CHECK_EQ(made.params[i].sm_count, expected.counts[i]);
        CHECK_EQ(sm_count(made.groups[i]), expected.dry ? 0 : expected.counts[i]);
        const unsigned flags = fields(made.groups[i]).flags;
        CHECK(expected.dry || ((flags ^ expected.groups[i].flags) & cu::kGroupBackfill) == 0);
    }
    if (!expected.dry)
        CHECK_EQ(sm_count(made.remainder), expected.remainder);
    CHECK(expected.remainder != 0 || type_of(made.remainder) == 0);
}

std::vector<NamedTest> split_counts() {
    constexpr auto kBackfill = cu::kGroupBackfill;
    constexpr auto kDomain = cu::kGroupLocalityDomain;
    constexpr auto kAnyDomain = cu::kLocalityDomainAny;
    constexpr auto kSupplemental = kDomain | cu::kGroupLocalitySupplemental;
    constexpr const char* kDies = "b200@13.4";
    const SplitCounts splits[] = {
        {"zero_discovers_with_result", kNewest, {group(0)}, {120}, 12},
        {"zero_discovers_without_result", kNewest, {group(0, 2)}, {132}, 0, true},
        {"discovered_zero_without_result", kNewest, {group(132, 2), group(0)}, {132, 0}, 0, true},
        {"evaluated_in_order", kNewest, {group(112), group(0), group(0)}, {112, 8, 0}, 12, true},
        {"backfill_allows_unaligned_count", kNewest, {group(28, 0, kBackfill)}, {28}, 104},
        {"example_3", kNewest, {group(8, 4), group(0, 2, kBackfill)}, {8, 124}, 0},
        {"remainder_of_nothing_has_invalid_type", kNewest, {group(132, 2)}, {132}, 0},
        {"any_domain_selects_from_all", kDies, {group(0, 2, kDomain, kAnyDomain)}, {144}, 4},
        {"domain_without_supplemental_is_limited", kDies, {group(0, 2, kDomain)}, {72}, 76},
        {"supplemental_allows_other_sms", kDies, {group(0, 2, kSupplemental)}, {74}, 74},
    };
    std::vector<NamedTest> tests;
    for (const SplitCounts& one : splits)
        tests.push_back({one.name, [one] { check_counts(one); }});
    return tests;
}

std::vector<NamedTest> structured_split_rules() {
    return {
        {"split_groups_of_different_sizes_leave_remainder",
         [] {
             const Structured made = structured({{.sm_count = 64}, {.sm_count = 24}});
             CHECK_EQ(made.result, kOk);
             CHECK_EQ(sm_count(made.groups[0]), 64U);
             CHECK_EQ(sm_count(made.groups[1]), 24U);
             CHECK_EQ(sm_count(made.remainder), 44U);
             std::set<unsigned> all;
             for (const CUdevResource& part : {made.groups[0], made.groups[1], made.remainder})
                 for (const unsigned sm : sms_of(part))
                     CHECK(all.insert(sm).second);
             CHECK_EQ(all.size(), 132U);
         }},
        {"coscheduled_count_zero_means_default",
         [] {
             const Structured made = structured({{.sm_count = 16}});
             CHECK_EQ(made.result, kOk);
             CHECK_EQ(made.params[0].coscheduled_sm_count, 0U);
             CHECK_EQ(fields(made.groups[0]).coscheduled_alignment, 8U);
             CHECK_EQ(result_of({.sm_count = 12}), kImpossible);
         }},
        {"coscheduled_default_is_2_before_9_0",
         [] {
             simulate("a100@13.5");
             const Structured made = structured({{.sm_count = 10}});
             CHECK_EQ(made.result, kOk);
             CHECK_EQ(fields(made.groups[0]).coscheduled_alignment, 2U);
         }},
        {"coscheduled_group_holds_cluster_of_its_size",
         [] {
             const Structured made = structured({{.sm_count = 32, .coscheduled_sm_count = 16}});
             Primary primary;
             const Partition part({made.groups[0]});
             CHECK_EQ(primary.max_cluster(part.stream, true, 1024), 16);
             CHECK_EQ(primary.active_clusters(part.stream, 16, 1024), 4);
         }},
        {"preferred_coscheduled_count_merges_groups",
         [] {
             Primary primary;
             const Structured plain = structured({{.sm_count = 16}});
             const Structured merged =
                 structured({{.sm_count = 16, .preferred_coscheduled_sm_count = 16}});
             const Partition one({plain.groups[0]});
             const Partition two({merged.groups[0]});
             CHECK_EQ(primary.max_cluster(one.stream, true, 1024), 8);
             CHECK_EQ(primary.max_cluster(two.stream, true, 1024), 16);
             // a preference only: no GPC has 20 SMs
             CHECK_EQ(result_of({.sm_count = 20,
                                 .coscheduled_sm_count = 10,
                                 .preferred_coscheduled_sm_count = 20}),
                      kOk);
         }},
        {"example_2_coscheduled_count_2_always_succeeds",
         [] {
             for (unsigned count = 2; count <= 132; count += 2)
                 CHECK_EQ(result_of({.sm_count = count, .coscheduled_sm_count = 2}), kOk);
         }},
        {"remainder_may_be_null",
         [] {
             const CUdevResource device = query();
             CUdevResource group;
             Params params{.sm_count = 8};
             CHECK_EQ(later().split(&group, 1, &device, nullptr, 0, &params), kOk);
         }},
        {"remainder_is_unstructured",
         [] {
             CHECK_EQ(fields(structured({{.sm_count = 8}}).remainder).coscheduled_alignment, 2U);
         }},
        {"remainder_can_be_split_again",
         [] {
             const Structured first = structured({{.sm_count = 64}});
             const Structured second = structured({{.sm_count = 32}}, false, &first.remainder);
             CHECK_EQ(second.result, kOk);
             CHECK_EQ(sm_count(second.remainder), 36U);
         }},
        {"group_without_green_context_cannot_be_split",
         [] {
             const Structured first = structured({{.sm_count = 64}});
             CHECK_EQ(structured({{.sm_count = 32}}, false, first.groups.data()).result,
                      kImpossible);
             const Partition part({first.groups[0]});
             CUdevResource own;
             CHECK_OK(cuGreenCtxGetDevResource(part.green, &own, cu::kResourceSm));
             CHECK_EQ(structured({{.sm_count = 32}}, false, &own).result, kOk);
         }},
        {"input_may_come_from_context",
         [] {
             const Primary primary;
             CUdevResource own;
             CHECK_OK(cuCtxGetDevResource(primary.context, &own, cu::kResourceSm));
             CHECK_EQ(structured({{.sm_count = 32}}, false, &own).result, kOk);
         }},
        {"flags_not_zero_are_refused",
         [] { CHECK_EQ(structured({{.sm_count = 8}}, false, nullptr, 1).result, kInvalid); }},
        {"reserved_words_not_zero_are_refused",
         [] {
             Params params{.sm_count = 8};
             params.reserved[10] = 1;
             CHECK_EQ(result_of(params), kInvalid);
         }},
        {"missing_arguments_are_refused",
         [] {
             const CUdevResource device = query();
             CUdevResource group;
             Params params{.sm_count = 8};
             CHECK_EQ(later().split(&group, 1, nullptr, nullptr, 0, &params), kInvalid);
             CHECK_EQ(later().split(&group, 1, &device, nullptr, 0, nullptr), kInvalid);
             CHECK_EQ(later().split(&group, 0, &device, nullptr, 0, &params), kInvalid);
         }},
        {"input_of_other_type_is_refused",
         [] {
             const CUdevResource nothing{};
             CHECK_EQ(structured({{.sm_count = 8}}, false, &nothing).result, kWrongType);
         }},
        {"refused_call_changes_nothing",
         [] {
             const Structured made = structured({{}, {.sm_count = 132}});
             CHECK_EQ(made.result, kImpossible);
             CHECK_EQ(made.params[0].sm_count, 0U);
             CHECK_EQ(type_of(made.groups[0]), 0);
         }},
        {"locality_domain_limits_sms_to_domain",
         [] {
             simulate("b200@13.4");
             int guaranteed = 0;
             CHECK_OK(cuDeviceGetAttribute(&guaranteed, cu::kAttributeLocalityDomainSmCount, 0));
             CHECK_EQ(guaranteed, 72);
             for (const unsigned domain : {0U, 1U}) {
                 const Structured made = structured({{.sm_count = 32,
                                                      .flags = cu::kGroupLocalityDomain,
                                                      .locality_domain_id = domain}});
                 CHECK_EQ(made.result, kOk);
                 CHECK_EQ(fields(made.groups[0]).locality_domain_id, domain);
                 for (const unsigned sm : sms_of(made.groups[0]))
                     CHECK_EQ(domain_of(sm), domain);
             }
         }},
        {"backfill_prefers_sms_of_domain",
         [] {
             simulate("b200@13.4");
             const Structured made = structured(
                 {{.sm_count = 100, .flags = cu::kGroupLocalityDomain | cu::kGroupBackfill}});
             CHECK_EQ(made.result, kOk);
             const std::vector<unsigned> sms = sms_of(made.groups[0]);
             CHECK_EQ(std::count_if(sms.begin(), sms.end(),
                                    [](unsigned sm) { return domain_of(sm) == 0; }) >= 72,
                      true);
             CHECK_EQ(sms.size(), 100U);
         }},
        {"locality_domains_before_13_4_are_refused",
         [] {
             simulate("b200@13.1");
             CHECK_EQ(result_of({.sm_count = 8, .flags = cu::kGroupLocalityDomain}), kInvalid);
             int count = 0;
             CHECK_EQ(cuDeviceGetAttribute(&count, cu::kAttributeLocalityDomainCount, 0), kInvalid);
         }},
    };
}

// Descriptors, green contexts, streams and workqueues.

CUdevResource workqueue(CUdevResourceType type, CUcontext context = nullptr) {
    CUdevResource resource{};
    if (context != nullptr)
        CHECK_OK(cuCtxGetDevResource(context, &resource, type));
    else
        CHECK_OK(cuDeviceGetDevResource(0, &resource, type));
    return resource;
}

cu::WorkqueueFields queue_fields(const CUdevResource& resource) {
    return cu::get_fields<cu::WorkqueueFields>(resource);
}

// Returns the variant of a function for per-thread default streams.
template <class Function>
Function* per_thread(Function*, const char* name) {
    auto* const found = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
    CHECK(found != nullptr);
    return found;
}
#define PER_THREAD(name, suffix) per_thread(&name, #name suffix)

CUresult launch(const Primary& primary, CUstream stream, decltype(&cuLaunchKernel) by) {
    int argument = 0;
    void* arguments[] = {&argument};
    return by(primary.unknown, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

CUresult launch(const Primary& primary, CUstream stream) {
    return launch(primary, stream, cuLaunchKernel);
}

void expect_of_own_stream(const Primary& primary, CUresult expected) {
    CUdeviceptr memory = 0;
    CUgraph graph = nullptr;
    unsigned flags = 0;
    int word = 0;
    CUevent event = new_event();
    CHECK_OK(cuMemAlloc_v2(&memory, 64));
    CHECK_EQ(launch(primary, CU_STREAM_PER_THREAD), expected);
    CHECK_EQ(launch(primary, nullptr, PER_THREAD(cuLaunchKernel, "_ptsz")), expected);
    CHECK_EQ(cuMemcpyHtoDAsync_v2(memory, &word, 4, CU_STREAM_PER_THREAD), expected);
    CHECK_EQ(PER_THREAD(cuMemcpyHtoD_v2, "_ptds")(memory, &word, 4), expected);
    CHECK_EQ(PER_THREAD(cuMemsetD8_v2, "_ptds")(memory, 1, 4), expected);
    CHECK_EQ(cuEventRecord(event, CU_STREAM_PER_THREAD), expected);
    CHECK_EQ(PER_THREAD(cuEventRecord, "_ptsz")(event, nullptr), expected);
    CHECK_EQ(cuStreamSynchronize(CU_STREAM_PER_THREAD), expected);
    CHECK_EQ(cuStreamGetFlags(CU_STREAM_PER_THREAD, &flags), expected);
    CHECK_EQ(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED),
             expected);
    CHECK_EQ(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph), expected);
    if (graph != nullptr)
        CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuMemFree_v2(memory));
    CHECK_OK(cuEventDestroy_v2(event));
}

std::vector<NamedTest> descriptor_rules() {
    return {
        {"groups_of_one_split_can_be_combined",
         [] {
             const Split made = split(query(), 32, 0, 8);
             CHECK_EQ(described({made.groups[0], made.groups[3], made.groups[14]}), kOk);
             const Structured other = structured({{.sm_count = 64}, {.sm_count = 24}});
             CHECK_EQ(described({other.groups[0], other.groups[1]}), kOk);
         }},
        {"groups_of_different_splits_are_refused",
         [] {
             CHECK_EQ(
                 described({split(query(), 1, 0, 8).groups[0], split(query(), 2, 0, 8).groups[1]}),
                 kImpossible);
         }},
        {"group_and_remainder_of_different_alignment_are_refused",
         [] {
             const Split made = split(query(), 1, 0, 24);
             CHECK_EQ(described({made.groups[0], made.remainder}), kImpossible);
         }},
        {"group_and_remainder_of_same_alignment_can_be_combined",
         [] {
             const Split made = split(query(), 1, 1, 24);
             CHECK_EQ(described({made.groups[0], made.remainder}), kOk);
         }},
        {"groups_of_different_coscheduled_count_are_refused",
         [] {
             const Structured made =
                 structured({{.sm_count = 32, .coscheduled_sm_count = 16}, {.sm_count = 24}});
             CHECK_EQ(described({made.groups[0], made.groups[1]}), kImpossible);
         }},
        {"groups_of_different_locality_domains_are_refused",
         [] {
             simulate("b200@13.4");
             const Structured made = structured(
                 {{.sm_count = 8, .flags = cu::kGroupLocalityDomain},
                  {.sm_count = 8, .flags = cu::kGroupLocalityDomain, .locality_domain_id = 1},
                  {.sm_count = 8, .flags = cu::kGroupLocalityDomain}});
             CHECK_EQ(described({made.groups[0], made.groups[1]}), kImpossible);
             CHECK_EQ(described({made.groups[0], made.groups[2]}), kOk);
         }},
        {"resources_of_different_devices_are_refused",
         [] {
             simulate("2xh100@13.5");
             CHECK_EQ(described({query(0), query(1)}), kImpossible);
         }},
        {"same_group_twice_is_refused",
         [] {
             const CUdevResource group = split(query(), 1, 0, 24).groups[0];
             CHECK_EQ(described({group, group}), kImpossible);
         }},
        {"groups_report_alignment_from_13_1",
         [] {
             const Split now = split(query(), 1, 0, 24);
             CHECK_EQ(fields(now.groups[0]).coscheduled_alignment, 8U);
             CHECK_EQ(fields(now.remainder).coscheduled_alignment, 2U);
             simulate("h100@13.0");
             CHECK_EQ(fields(split(query(), 1, 0, 24).groups[0]).coscheduled_alignment, 0U);
         }},
        {"remainder_of_split_by_count_cannot_be_split",
         [] { CHECK_EQ(split(split(query(), 1, 0, 24).remainder, 1, 0, 8).result, kImpossible); }},
    };
}

std::vector<NamedTest> context_rules() {
    return {
        {"green_ctx_none_is_accepted",
         [] {
             CUgreenCtx green = nullptr;
             CHECK_EQ(cuGreenCtxCreate(&green, describe({query()}), 0, 0), kOk);
             CHECK_EQ(cuGreenCtxDestroy(green), kOk);
             CHECK_EQ(cuGreenCtxCreate(&green, describe({query()}), 0, 2), kInvalid);
         }},
        {"stream_of_destroyed_context_is_detached",
         [] {
             Primary primary;
             Partition part({query()});
             CHECK_OK(part.destroy_context());
             CHECK_EQ(static_cast<int>(cuStreamQuery(part.stream)), 917);
             CHECK_EQ(static_cast<int>(cuStreamSynchronize(part.stream)), 917);
             CHECK_EQ(static_cast<int>(primary.spin(part.stream, 1)), 917);
             part.destroy_stream();
         }},
        {"stream_of_destroyed_context_can_be_destroyed",
         [] {
             Partition part({query()});
             CHECK_OK(part.destroy_context());
             CHECK_EQ(cuStreamDestroy_v2(part.stream), kOk);
             part.stream = nullptr;
         }},
        {"destroying_context_invalidates_captures",
         [] {
             const Primary primary;
             Partition part({query()});
             CUstream stream = new_stream();
             CUevent event = new_event();
             CHECK_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
             CHECK_OK(cuEventRecord(event, stream));
             CHECK_OK(cuStreamWaitEvent(part.stream, event, 0));
             CHECK_OK(part.destroy_context());
             CUgraph graph = nullptr;
             CHECK_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
             CHECK(graph == nullptr);
             CHECK_OK(cuEventDestroy_v2(event));
             CHECK_OK(cuStreamDestroy_v2(stream));
         }},
        {"green_context_retains_primary_context",
         [] {
             unsigned flags = 0;
             int active = 0;
             CUgreenCtx green = nullptr;
             CHECK_OK(cuGreenCtxCreate(&green, nullptr, 0, 1));
             CHECK_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
             CHECK_EQ(active, 1);
             CHECK_OK(cuGreenCtxDestroy(green));
             CHECK_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
             CHECK_EQ(active, 0);
         }},
        {"per_thread_stream_in_green_context_is_refused",
         [] {
             // Recorded for launches; the header does not mention it.
             const Primary primary;
             const Partition part({split(query(), 1, 0, 24).groups[0]});
             expect_of_own_stream(primary, CUDA_SUCCESS);
             CHECK_OK(cuCtxPushCurrent_v2(part.context));
             expect_of_own_stream(primary, CUDA_ERROR_INVALID_HANDLE);
             CHECK_EQ(launch(primary, nullptr), kOk);
             CHECK_EQ(launch(primary, CU_STREAM_LEGACY), kOk);
             CHECK_OK(cuCtxPopCurrent_v2(nullptr));
             expect_of_own_stream(primary, CUDA_SUCCESS);
         }},
        {"creation_makes_nothing_current",
         [] {
             CUcontext before = nullptr;
             CUcontext after = nullptr;
             CHECK_OK(cuCtxGetCurrent(&before));
             const Partition part({query()});
             CHECK_OK(cuCtxGetCurrent(&after));
             CHECK(before == after);
         }},
        {"green_ctx_id_of_null_is_of_current",
         [] {
             const Partition part({query()});
             unsigned long long named = 0;
             unsigned long long current = 0;
             CHECK_EQ(later().green_get_id(nullptr, &current), CUDA_ERROR_INVALID_CONTEXT);
             CHECK_OK(cuCtxPushCurrent_v2(part.context));
             CHECK_OK(later().green_get_id(part.green, &named));
             CHECK_OK(later().green_get_id(nullptr, &current));
             CHECK_OK(cuCtxPopCurrent_v2(nullptr));
             CHECK_EQ(named, current);
         }},
        {"stream_get_dev_resource_returns_sms",
         [] {
             const Partition part({split(query(), 1, 0, 24).groups[0]});
             CUdevResource resource;
             CHECK_OK(later().stream_get_dev_resource(part.stream, &resource, cu::kResourceSm));
             CHECK_EQ(sm_count(resource), 24U);
             for (const auto type : {cu::kResourceWorkqueueConfig, cu::kResourceWorkqueue})
                 CHECK_EQ(later().stream_get_dev_resource(part.stream, &resource, type),
                          kWrongType);
         }},
        {"access_policy_window_is_checked",
         [] {
             const Partition part({split(query(), 1, 0, 24).groups[0]});
             const auto id = CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW;
             int most = 0;
             CHECK_OK(
                 cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, 0));
             CHECK(most > 0);
             CUstreamAttrValue value{};
             CUaccessPolicyWindow& window = value.accessPolicyWindow;
             window.num_bytes = static_cast<std::size_t>(most);
             window.hitRatio = 0.5F;
             window.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
             window.missProp = CU_ACCESS_PROPERTY_STREAMING;
             CHECK_OK(cuStreamSetAttribute(part.stream, id, &value));
             CUstreamAttrValue found{};
             CHECK_OK(cuStreamGetAttribute(part.stream, id, &found));
             CHECK_EQ(found.accessPolicyWindow.num_bytes, window.num_bytes);
             CHECK(found.accessPolicyWindow.hitProp == CU_ACCESS_PROPERTY_PERSISTING);
             window.num_bytes++;
             CHECK_EQ(cuStreamSetAttribute(part.stream, id, &value), kInvalid);
             window.num_bytes = 4096;
             window.missProp = CU_ACCESS_PROPERTY_PERSISTING;
             CHECK_EQ(cuStreamSetAttribute(part.stream, id, &value), kInvalid);
             window.missProp = CU_ACCESS_PROPERTY_NORMAL;
             for (const float share : {-0.1F, 1.1F}) {
                 window.hitRatio = share;
                 CHECK_EQ(cuStreamSetAttribute(part.stream, id, &value), kInvalid);
             }
         }},
        {"persisting_l2_limit_is_refused_above_the_most",
         [] {
             const Primary primary;
             int most = 0;
             CHECK_OK(
                 cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 0));
             CHECK(most > 0);
             std::size_t found = 1;
             CHECK_OK(cuCtxGetLimit(&found, CU_LIMIT_PERSISTING_L2_CACHE_SIZE));
             CHECK_EQ(found, 0U);
             CHECK_EQ(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, SIZE_MAX),
                      CUDA_ERROR_INVALID_VALUE);
             CHECK_OK(
                 cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, static_cast<std::size_t>(most)));
             CHECK_OK(cuCtxGetLimit(&found, CU_LIMIT_PERSISTING_L2_CACHE_SIZE));
             CHECK_EQ(found, static_cast<std::size_t>(most));
             CHECK_OK(cuCtxResetPersistingL2Cache());
         }},
        {"workqueue_config_can_be_changed_and_used",
         [] {
             CUdevResource config = workqueue(cu::kResourceWorkqueueConfig);
             cu::WorkqueueFields config_fields = queue_fields(config);
             CHECK_EQ(config_fields.scope, cu::kWorkqueueScopeDevice);
             CHECK_EQ(config_fields.device, 0);
             config_fields.concurrency_limit = 3;
             config_fields.scope = cu::kWorkqueueScopeBalanced;
             cu::set_fields(config, config_fields);
             const Partition part({split(query(), 1, 0, 24).groups[0], config});
             CHECK_EQ(part.result, kOk);
             const cu::WorkqueueFields got =
                 queue_fields(workqueue(cu::kResourceWorkqueueConfig, part.context));
             CHECK_EQ(got.concurrency_limit, 3U);
             CHECK_EQ(got.scope, cu::kWorkqueueScopeBalanced);
         }},
        {"workqueue_of_context_can_be_shared",
         [] {
             CUdevResource config = workqueue(cu::kResourceWorkqueueConfig);
             cu::WorkqueueFields balanced = queue_fields(config);
             balanced.scope = cu::kWorkqueueScopeBalanced;
             cu::set_fields(config, balanced);
             const Split made = split(query(), 2, 0, 24);
             const Partition one({made.groups[0], config});
             const CUdevResource queue = workqueue(cu::kResourceWorkqueue, one.context);
             const Partition two({made.groups[1], queue});
             const CUdevResource shared = workqueue(cu::kResourceWorkqueue, two.context);
             CHECK_EQ(std::memcmp(&queue, &shared, sizeof queue), 0);
         }},
        {"workqueue_of_device_is_shared_one",
         [] {
             const CUdevResource shared = workqueue(cu::kResourceWorkqueue);
             const Partition plain({split(query(), 1, 0, 24).groups[0]});
             const CUdevResource of_context = workqueue(cu::kResourceWorkqueue, plain.context);
             CHECK_EQ(std::memcmp(&shared, &of_context, sizeof of_context), 0);
         }},
        {"workqueue_scope_or_limit_invalid_is_refused",
         [] {
             CUdevResource config = workqueue(cu::kResourceWorkqueueConfig);
             cu::WorkqueueFields wrong = queue_fields(config);
             wrong.scope = 2;
             cu::set_fields(config, wrong);
             CHECK_EQ(described({query(), config}), kInvalid);
             wrong.scope = 0;
             wrong.concurrency_limit = 0;
             cu::set_fields(config, wrong);
             CHECK_EQ(described({query(), config}), kInvalid);
         }},
        {"workqueues_before_13_1_are_refused",
         [] {
             CUdevResource config = workqueue(cu::kResourceWorkqueueConfig);
             simulate("h100@13.0");
             CHECK_EQ(described({query(), config}), kWrongType);
         }},
    };
}

} // namespace

int main() {
    for (const auto& list : {split_results(), split_counts(), structured_split_rules(),
                             descriptor_rules(), context_rules()}) {
        for (const NamedTest& test : list) {
            simulate(kNewest);
            run(test, kNewest);
        }
    }
    return check::summary("rules of the header");
}
