// cuDevSmResourceSplit
#include "rules.hpp"

#include <algorithm>
#include <set>

namespace sim_test {
namespace {

using Params = cu::SmGroupParams;

void on(const char* spec) {
    CHECK_EQ(gcx_sim_configure(spec), 0);
    CHECK_OK(cuInit(0));
}

CUresult result_of(const Params& params) {
    return structured({params}).result;
}

// Of the simulated B200: two dies of four GPCs, whose SMs are numbered in pairs in turn.
unsigned domain_of(unsigned sm) {
    if (sm >= 144)
        return sm >= 146 ? 1 : 0;
    return sm % 16 < 8 ? 0 : 1;
}

} // namespace

std::vector<Rule> structured_split_rules() {
    return {
        {"groups may differ in size, and the rest is the remainder",
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
        {"smCount is not rounded up", [] { CHECK_EQ(result_of({.sm_count = 20}), kImpossible); }},
        {"smCount is 0 or in [2, what the input has]",
         [] {
             CHECK_EQ(result_of({.sm_count = 1, .coscheduled_sm_count = 2}), kImpossible);
             CHECK_EQ(result_of({.sm_count = 2, .coscheduled_sm_count = 2}), kOk);
             CHECK_EQ(result_of({.sm_count = 132, .coscheduled_sm_count = 2}), kOk);
             CHECK_EQ(result_of({.sm_count = 134, .coscheduled_sm_count = 2}), kImpossible);
         }},
        {"smCount is a multiple of 2",
         [] {
             CHECK_EQ(result_of({.sm_count = 9, .coscheduled_sm_count = 2}), kImpossible);
             CHECK_EQ(result_of({.sm_count = 9, .flags = cu::kGroupBackfill}), kImpossible);
         }},
        {"smCount is a multiple of coscheduledSmCount if that is nonzero",
         [] {
             CHECK_EQ(result_of({.sm_count = 24, .coscheduled_sm_count = 16}), kImpossible);
             CHECK_EQ(result_of({.sm_count = 32, .coscheduled_sm_count = 16}), kOk);
             CHECK_EQ(result_of({.sm_count = 12, .coscheduled_sm_count = 4}), kOk);
         }},
        {"coscheduledSmCount 0 means the default, 8 on 9.0 and newer, and stays 0 in groupParams",
         [] {
             const Structured made = structured({{.sm_count = 16}});
             CHECK_EQ(made.result, kOk);
             CHECK_EQ(made.params[0].coscheduled_sm_count, 0U);
             CHECK_EQ(fields(made.groups[0]).coscheduled_alignment, 8U);
             CHECK_EQ(result_of({.sm_count = 12}), kImpossible);
         }},
        {"the default of coscheduledSmCount is 2 before 9.0",
         [] {
             on("a100@13.5");
             const Structured made = structured({{.sm_count = 10}});
             CHECK_EQ(made.result, kOk);
             CHECK_EQ(fields(made.groups[0]).coscheduled_alignment, 2U);
         }},
        {"the maximum of coscheduledSmCount is 32 on 9.0 and newer",
         [] {
             CHECK_EQ(result_of({.sm_count = 34, .coscheduled_sm_count = 34}), kInvalid);
             // allowed, but no GPC of an H100 has as many
             CHECK_EQ(result_of({.sm_count = 32, .coscheduled_sm_count = 32}), kImpossible);
         }},
        {"the maximum of coscheduledSmCount is 2 before 9.0",
         [] {
             on("rtx4090@13.1");
             CHECK_EQ(result_of({.sm_count = 8, .coscheduled_sm_count = 4}), kInvalid);
             CHECK_EQ(result_of({.sm_count = 8, .coscheduled_sm_count = 2}), kOk);
         }},
        {"SMs of one coscheduled group can hold a cluster of that size",
         [] {
             const Structured made = structured({{.sm_count = 32, .coscheduled_sm_count = 16}});
             Primary primary;
             const Partition part({made.groups[0]});
             CHECK_EQ(primary.max_cluster(part.stream, true, 1024), 16);
             CHECK_EQ(primary.active_clusters(part.stream, 16, 1024), 4);
         }},
        {"preferredCoscheduledSmCount merges coscheduled groups where possible",
         [] {
             Primary primary;
             const Structured plain = structured({{.sm_count = 16}});
             const Structured merged =
                 structured({{.sm_count = 16, .preferred_coscheduled_sm_count = 16}});
             const Partition one({plain.groups[0]});
             const Partition two({merged.groups[0]});
             CHECK_EQ(primary.max_cluster(one.stream, true, 1024), 8);
             CHECK_EQ(primary.max_cluster(two.stream, true, 1024), 16);
             // only a wish: 20 would be needed in one GPC
             CHECK_EQ(result_of({.sm_count = 20,
                                 .coscheduled_sm_count = 10,
                                 .preferred_coscheduled_sm_count = 20}),
                      kOk);
         }},
        {"smCount 0 discovers how many SMs there are, with a result",
         [] {
             const Structured made = structured({{}});
             CHECK_EQ(made.result, kOk);
             CHECK_EQ(made.params[0].sm_count, 120U);
             CHECK_EQ(sm_count(made.groups[0]), 120U);
             CHECK_EQ(sm_count(made.remainder), 12U);
         }},
        {"smCount 0 discovers with result NULL as well, and fills groupParams alone",
         [] {
             const Structured made = structured({{.coscheduled_sm_count = 2}}, true);
             CHECK_EQ(made.result, kOk);
             CHECK_EQ(made.params[0].sm_count, 132U);
             CHECK_EQ(type_of(made.groups[0]), 0);
         }},
        {"a discovered smCount of 0 is allowed where result is NULL",
         [] {
             const Structured made =
                 structured({{.sm_count = 132, .coscheduled_sm_count = 2}, {}}, true);
             CHECK_EQ(made.result, kOk);
             CHECK_EQ(made.params[1].sm_count, 0U);
         }},
        {"a discovered smCount of 0 is INVALID_RESOURCE_CONFIGURATION where results are wanted",
         [] {
             CHECK_EQ(structured({{.sm_count = 132, .coscheduled_sm_count = 2}, {}}).result,
                      kImpossible);
         }},
        {"smCount less than coscheduledSmCount is INVALID_RESOURCE_CONFIGURATION",
         [] {
             CHECK_EQ(result_of({.sm_count = 4}), kImpossible);
             CHECK_EQ(result_of({.sm_count = 4, .flags = cu::kGroupBackfill}), kImpossible);
         }},
        {"groupParams are evaluated from index 0 on",
         [] {
             const Structured made = structured({{.sm_count = 112}, {}, {}}, true);
             CHECK_EQ(made.result, kOk);
             CHECK_EQ(made.params[1].sm_count, 8U);
             CHECK_EQ(made.params[2].sm_count, 0U);
         }},
        {"backfill lets smCount be no multiple of coscheduledSmCount",
         [] {
             const Structured made = structured({{.sm_count = 28, .flags = cu::kGroupBackfill}});
             CHECK_EQ(made.result, kOk);
             CHECK_EQ(sm_count(made.groups[0]), 28U);
             CHECK_EQ(fields(made.groups[0]).flags, cu::kGroupBackfill);
         }},
        {"backfill ignores the structure where that is needed to reach smCount",
         [] {
             CHECK_EQ(result_of({.sm_count = 132}), kImpossible);
             CHECK_EQ(result_of({.sm_count = 132, .flags = cu::kGroupBackfill}), kOk);
         }},
        {"a group needs enough coscheduled SMs for its structure, even with backfill",
         [] {
             const Structured made =
                 structured({{.sm_count = 120}, {.sm_count = 12, .flags = cu::kGroupBackfill}});
             CHECK_EQ(made.result, kImpossible);
         }},
        {"example 3: a second group, discovered with backfill, holds everything else",
         [] {
             const Structured made =
                 structured({{.sm_count = 8, .coscheduled_sm_count = 4},
                             {.coscheduled_sm_count = 2, .flags = cu::kGroupBackfill}});
             CHECK_EQ(made.result, kOk);
             CHECK_EQ(made.params[1].sm_count, 124U);
             CHECK_EQ(type_of(made.remainder), 0);
         }},
        {"example 2: coscheduledSmCount 2 always gives a result",
         [] {
             for (unsigned count = 2; count <= 132; count += 2)
                 CHECK_EQ(result_of({.sm_count = count, .coscheduled_sm_count = 2}), kOk);
         }},
        {"the remainder may be NULL",
         [] {
             const CUdevResource device = query();
             CUdevResource group;
             Params params{.sm_count = 8};
             CHECK_EQ(later().split(&group, 1, &device, nullptr, 0, &params), kOk);
         }},
        {"the remainder is of type INVALID where nothing remains",
         [] {
             CHECK_EQ(type_of(structured({{.sm_count = 132, .coscheduled_sm_count = 2}}).remainder),
                      0);
         }},
        {"the remainder is unstructured",
         [] {
             CHECK_EQ(fields(structured({{.sm_count = 8}}).remainder).coscheduled_alignment, 2U);
         }},
        {"a remainder may be split further by this function",
         [] {
             const Structured first = structured({{.sm_count = 64}});
             const Structured second = structured({{.sm_count = 32}}, false, &first.remainder);
             CHECK_EQ(second.result, kOk);
             CHECK_EQ(sm_count(second.remainder), 36U);
         }},
        {"a group may not be split before a green context was made of it",
         [] {
             const Structured first = structured({{.sm_count = 64}});
             CHECK_EQ(structured({{.sm_count = 32}}, false, first.groups.data()).result,
                      kImpossible);
             const Partition part({first.groups[0]});
             CUdevResource own;
             CHECK_OK(cuGreenCtxGetDevResource(part.green, &own, cu::kResourceSm));
             CHECK_EQ(structured({{.sm_count = 32}}, false, &own).result, kOk);
         }},
        {"the input may come from querying a context",
         [] {
             const Primary primary;
             CUdevResource own;
             CHECK_OK(cuCtxGetDevResource(primary.context, &own, cu::kResourceSm));
             CHECK_EQ(structured({{.sm_count = 32}}, false, &own).result, kOk);
         }},
        {"flags must be 0",
         [] { CHECK_EQ(structured({{.sm_count = 8}}, false, nullptr, 1).result, kInvalid); }},
        {"each entry's reserved words must be 0",
         [] {
             Params params{.sm_count = 8};
             params.reserved[10] = 1;
             CHECK_EQ(result_of(params), kInvalid);
         }},
        {"unknown flags of a group are refused",
         [] { CHECK_EQ(result_of({.sm_count = 8, .flags = 8}), kInvalid); }},
        {"input, groupParams and nbGroups must be given",
         [] {
             const CUdevResource device = query();
             CUdevResource group;
             Params params{.sm_count = 8};
             CHECK_EQ(later().split(&group, 1, nullptr, nullptr, 0, &params), kInvalid);
             CHECK_EQ(later().split(&group, 1, &device, nullptr, 0, nullptr), kInvalid);
             CHECK_EQ(later().split(&group, 0, &device, nullptr, 0, &params), kInvalid);
         }},
        {"an input of another type is INVALID_RESOURCE_TYPE",
         [] {
             const CUdevResource nothing{};
             CHECK_EQ(structured({{.sm_count = 8}}, false, &nothing).result, kWrongType);
         }},
        {"a refused call changes neither groupParams nor results",
         [] {
             const Structured made = structured({{}, {.sm_count = 132}});
             CHECK_EQ(made.result, kImpossible);
             CHECK_EQ(made.params[0].sm_count, 0U);
             CHECK_EQ(type_of(made.groups[0]), 0);
         }},
        {"a locality domain's id gives SMs of that domain alone",
         [] {
             on("b200@13.4");
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
        {"the id of no domain is refused",
         [] {
             on("b200@13.4");
             CHECK_EQ(
                 result_of(
                     {.sm_count = 32, .flags = cu::kGroupLocalityDomain, .locality_domain_id = 2}),
                 kInvalid);
         }},
        {"a domain's id is only valid with the flag",
         [] {
             on("b200@13.4");
             CHECK_EQ(result_of({.sm_count = 32, .locality_domain_id = 1}), kInvalid);
         }},
        {"the id ANY selects from the union of all domains",
         [] {
             on("b200@13.4");
             const Structured made = structured({{.coscheduled_sm_count = 2,
                                                  .flags = cu::kGroupLocalityDomain,
                                                  .locality_domain_id = cu::kLocalityDomainAny}});
             CHECK_EQ(made.params[0].sm_count, 144U);
         }},
        {"without the supplemental flag a domain gives no more than its attribute tells",
         [] {
             on("b200@13.4");
             int each = 0;
             CHECK_OK(cuDeviceGetAttribute(&each, cu::kAttributeLocalityDomainSmCount, 0));
             const Structured made =
                 structured({{.coscheduled_sm_count = 2, .flags = cu::kGroupLocalityDomain}});
             CHECK_EQ(made.params[0].sm_count, static_cast<unsigned>(each));
         }},
        {"the supplemental flag allows the domain's other SMs",
         [] {
             on("b200@13.4");
             const Structured made =
                 structured({{.coscheduled_sm_count = 2,
                              .flags = cu::kGroupLocalityDomain | cu::kGroupLocalitySupplemental}});
             CHECK_EQ(made.params[0].sm_count, 74U);
         }},
        {"the supplemental flag is a modifier of the domain flag",
         [] {
             on("b200@13.4");
             CHECK_EQ(result_of({.sm_count = 8, .flags = cu::kGroupLocalitySupplemental}),
                      kInvalid);
         }},
        {"backfill takes the domain's own SMs first, then those of other domains",
         [] {
             on("b200@13.4");
             const Structured made = structured(
                 {{.sm_count = 100, .flags = cu::kGroupLocalityDomain | cu::kGroupBackfill}});
             CHECK_EQ(made.result, kOk);
             const std::vector<unsigned> sms = sms_of(made.groups[0]);
             CHECK_EQ(std::count_if(sms.begin(), sms.end(),
                                    [](unsigned sm) { return domain_of(sm) == 0; }) >= 72,
                      true);
             CHECK_EQ(sms.size(), 100U);
         }},
        {"no SM left in the domain is INVALID_RESOURCE_CONFIGURATION, with backfill as well",
         [] {
             on("b200@13.4");
             const unsigned all = cu::kGroupLocalityDomain | cu::kGroupLocalitySupplemental;
             CHECK_EQ(structured(
                          {{.sm_count = 74, .coscheduled_sm_count = 2, .flags = all},
                           {.sm_count = 8, .flags = cu::kGroupLocalityDomain | cu::kGroupBackfill}})
                          .result,
                      kImpossible);
         }},
        {"before 13.4 there are no locality domains",
         [] {
             on("b200@13.1");
             CHECK_EQ(result_of({.sm_count = 8, .flags = cu::kGroupLocalityDomain}), kInvalid);
             int count = 0;
             CHECK_EQ(cuDeviceGetAttribute(&count, cu::kAttributeLocalityDomainCount, 0), kInvalid);
         }},
        {"before 13.1 there is no such function",
         [] {
             on("h100@13.0");
             CHECK_EQ(result_of({.sm_count = 8}), CUDA_ERROR_NOT_SUPPORTED);
         }},
    };
}

} // namespace sim_test
