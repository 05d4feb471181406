// Tests what gcx promises of resources, on every simulated GPU with every driver version.

#include "support.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace support;
using Counts = std::vector<uint32_t>;

namespace {

gcx_device_info device_info(int32_t device = 0) {
    gcx_device_info info = GCX_DEVICE_INFO_INIT;
    CHECK_OK(gcx_device_get_info(device, &info));
    return info;
}

bool disjoint(const std::vector<SmIds>& sets) {
    std::set<uint32_t> all;
    std::size_t total = 0;
    for (const SmIds& set : sets) {
        all.insert(set.begin(), set.end());
        total += set.size();
    }
    return all.size() == total;
}

void plan_equals_split_and_groups_are_disjoint(const gcx_resource& from, const Counts& counts,
                                               uint32_t flags) {
    const std::vector<gcx_sm_request> requests = requests_for(counts);
    const auto size = static_cast<uint32_t>(counts.size());
    Counts planned(counts.size(), UINT32_MAX);
    uint32_t planned_rest = UINT32_MAX;
    const gcx_result plan = gcx_sm_split(&from, requests.data(), size, flags, nullptr, nullptr,
                                         planned.data(), &planned_rest);
    const Split made = try_split(from, counts, flags);
    CHECK_EQ(plan, made.result);
    if (plan != GCX_SUCCESS) {
        CHECK(std::all_of(planned.begin(), planned.end(),
                          [](uint32_t count) { return count == UINT32_MAX; }));
        CHECK_EQ(planned_rest, UINT32_MAX);
        return;
    }
    uint32_t total = sms(made.remainder);
    CHECK_EQ(total, planned_rest);
    for (std::size_t i = 0; i < counts.size(); i++) {
        CHECK_EQ(sms(made.groups[i]), planned[i]);
        CHECK(counts[i] == GCX_REST || planned[i] >= counts[i]);
        CHECK(planned[i] > 0);
        total += planned[i];
        CHECK_EQ(overlap(made.groups[i], made.remainder), 0U);
        for (std::size_t j = 0; j < i; j++)
            CHECK_EQ(overlap(made.groups[i], made.groups[j]), 0U);
        CHECK_EQ(overlap(made.groups[i], from), planned[i]);
    }
    CHECK_EQ(total, sms(from));
}

std::vector<uint32_t> families_of(const gcx_device_info& device) {
    std::vector<uint32_t> flags = {GCX_SPLIT_DEFAULT, GCX_SPLIT_IGNORE_SM_COSCHEDULING};
    if (device.compute_capability_major >= 9)
        flags.push_back(GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE);
    return flags;
}

void all_counts(const gcx_device_info& device) {
    const gcx_resource whole = whole_device();
    const uint32_t total = device.sm_count;
    for (const uint32_t flags : families_of(device)) {
        const uint32_t part = check::slow ? 4 : 16; // checks one count of so many
        for (uint32_t count = 1; count <= total + 1; count += 1 + count / part) {
            plan_equals_split_and_groups_are_disjoint(whole, {count}, flags);
            plan_equals_split_and_groups_are_disjoint(whole, {count, GCX_REST}, flags);
            plan_equals_split_and_groups_are_disjoint(
                whole, {count, count / 2 + 1, GCX_REST, GCX_REST}, flags);
            plan_equals_split_and_groups_are_disjoint(whole, {total - count / 2, count},
                                                      flags | GCX_SPLIT_EXACT);
        }
        CHECK_REFUSED(try_split(whole, {total + 1}, flags).result,
                      GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
        CHECK(message_has(std::to_string(total + 1)) && message_has(std::to_string(total)));
        CHECK(sizes(split(whole, {total}, flags | GCX_SPLIT_EXACT)) == Counts({total, 0}));
    }
}

// Makes contexts over the groups and checks where their kernels run.
void kernels_see_what_was_promised(const Split& made) {
    std::vector<SmIds> seen;
    for (const gcx_resource& group : made.groups) {
        const Partition partition(group);
        seen.push_back(partition.probe());
        CHECK_EQ(seen.back().size(), sms(group));
        CHECK(std::is_sorted(seen.back().begin(), seen.back().end()));
    }
    if (sms(made.remainder) != 0) {
        const Partition rest(made.remainder);
        seen.push_back(rest.probe());
        CHECK_EQ(seen.back().size(), sms(made.remainder));
    }
    CHECK(disjoint(seen));
}

void probed_sets_are_disjoint(const gcx_device_info& device) {
    const gcx_resource whole = whole_device();
    const uint32_t least = info_of(whole).min_partition_size;
    kernels_see_what_was_promised(split(whole, {least, device.sm_count / 3, GCX_REST}));
    kernels_see_what_was_promised(split(whole, {device.sm_count}));
    kernels_see_what_was_promised(
        split(whole, {2, 6, device.sm_count / 2}, GCX_SPLIT_IGNORE_SM_COSCHEDULING));
}

void splits_of_splits(const gcx_device_info& device) {
    const gcx_resource whole = whole_device();
    const Split first = split(whole, {device.sm_count / 2, device.sm_count / 4});
    const uint32_t half = sms(first.groups[0]);
    for (const Counts& counts :
         {Counts{half}, Counts{1, GCX_REST}, Counts{1, 1}, Counts{GCX_REST, GCX_REST}}) {
        plan_equals_split_and_groups_are_disjoint(first.groups[0], counts, GCX_SPLIT_DEFAULT);
        const Split inner = split(first.groups[0], counts);
        for (const gcx_resource& group : inner.groups) {
            CHECK_EQ(overlap(group, first.groups[1]), 0U);
            CHECK_EQ(overlap(group, first.remainder), 0U);
        }
    }
    CHECK_REFUSED(try_split(first.groups[0], {half + 1}).result,
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK(message_has(std::to_string(half)));
    const uint32_t left = sms(first.remainder);
    if (left != 0) {
        plan_equals_split_and_groups_are_disjoint(first.remainder, {GCX_REST}, GCX_SPLIT_DEFAULT);
        plan_equals_split_and_groups_are_disjoint(first.remainder, {left}, GCX_SPLIT_EXACT);
        CHECK_EQ(overlap(split(first.remainder, {GCX_REST}).groups[0], first.remainder), left);
    }
    const Split inner = split(first.groups[0], {1, GCX_REST});
    kernels_see_what_was_promised(inner);
    // Atoms of another family are other SMs.
    CHECK_REFUSED(try_split(first.groups[0], {2}, GCX_SPLIT_IGNORE_SM_COSCHEDULING).result,
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

void set_operations(const gcx_device_info& device) {
    const gcx_resource whole = whole_device();
    const Split made = split(whole, {device.sm_count / 4, device.sm_count / 4});
    const gcx_resource& a = made.groups[0];
    const gcx_resource& b = made.groups[1];
    gcx_resource both{};
    gcx_resource result{};
    CHECK_OK(gcx_resource_union(&a, &b, &both));
    CHECK_EQ(sms(both), sms(a) + sms(b));
    CHECK_OK(gcx_resource_subtract(&both, &b, &result));
    CHECK_EQ(std::memcmp(&result, &a, sizeof a), 0);          // equal resources are equal bytes
    CHECK_OK(gcx_resource_subtract(&both, &result, &result)); // the intersection of both and b
    CHECK_EQ(std::memcmp(&result, &b, sizeof b), 0);
    CHECK_OK(gcx_resource_subtract(&a, &a, &result));
    CHECK_EQ(sms(result), 0U);
    CHECK_EQ(info_of(result).atom_count, 0U);
    result = a;
    CHECK_OK(gcx_resource_union(&result, &b, &result)); // in place
    CHECK_EQ(std::memcmp(&result, &both, sizeof both), 0);
    CHECK_OK(gcx_resource_union(&result, &made.remainder, &result));
    CHECK_EQ(std::memcmp(&result, &whole, sizeof whole), 0);
    // All atoms together are the whole device.
    gcx_resource sum = without(whole, whole);
    for (uint32_t i = 0; i < info_of(whole).atom_count; i++) {
        gcx_resource atom = atom_of(whole, i);
        CHECK_EQ(info_of(atom).atom_count, 1U);
        CHECK_EQ(overlap(sum, atom), 0U);
        CHECK_OK(gcx_resource_union(&sum, &atom, &sum));
    }
    CHECK_EQ(std::memcmp(&sum, &whole, sizeof whole), 0);
}

SmIds mapped(const gcx_resource& resource) {
    SmIds ids(GCX_MAX_SMS);
    uint32_t count = 0;
    CHECK_OK(gcx_resource_get_sm_ids(&resource, ids.data(), GCX_MAX_SMS, &count));
    ids.resize(count);
    return ids;
}

void maps_agree_with_kernels(const gcx_device_info& device) {
    const gcx_resource whole = whole_device();
    const Split coarse = split(whole, {device.sm_count / 3, device.sm_count / 3});
    const Split fine = split(whole, {device.sm_count / 3, 4}, GCX_SPLIT_IGNORE_SM_COSCHEDULING);
    uint32_t shared = 0;
    CHECK_REFUSED(gcx_resource_get_overlap(&coarse.groups[0], &fine.groups[0], &shared),
                  GCX_ERROR_SMS_NOT_MAPPED);
    CHECK_REFUSED(gcx_resource_get_sm_ids(&whole, nullptr, 0, &shared), GCX_ERROR_SMS_NOT_MAPPED);
    const gcx_sim_counts before = sim::counts();
    CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
    CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_FINE));
    CHECK_EQ(left_behind(before, sim::counts()), std::string());
    const uint64_t calls = sim::calls();
    CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_FINE));
    CHECK_EQ(sim::calls(), calls); // known already
    for (const gcx_resource* group : {&coarse.groups[0], &coarse.groups[1], &fine.groups[0]}) {
        const Partition partition(*group);
        CHECK(partition.probe() == mapped(*group));
    }
    const SmIds x = mapped(coarse.groups[1]);
    const SmIds y = mapped(fine.groups[0]);
    SmIds both;
    std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
    CHECK_EQ(overlap(coarse.groups[1], fine.groups[0]), both.size());
    CHECK_EQ(mapped(whole).size(), device.sm_count);
    if (device.compute_capability_major >= 9)
        CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_MAX_CLUSTER));
    else
        CHECK_REFUSED(gcx_device_map_sms(0, GCX_SM_FAMILY_MAX_CLUSTER), GCX_ERROR_NOT_SUPPORTED);
}

// tests/core/split_test.cpp has more of the coscheduled family's.
void h100_splits_as_recorded() {
    const gcx_resource whole = whole_device();
    CHECK(sizes(split(whole, {108, 24})) == Counts({108, 24, 0}));
    CHECK(sizes(split(whole, {7, 10, 17})) == Counts({8, 12, 24, 88}));
    CHECK_REFUSED(try_split(whole, {133}).result, GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK(message_has("133") && message_has("132"));
    CHECK_REFUSED(try_split(whole, {100, 40}).result, GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK(message_has("100 + 40") && message_has("132"));
    CHECK(sizes(split(whole, {10, 122}, GCX_SPLIT_IGNORE_SM_COSCHEDULING)) == Counts({10, 122, 0}));
    CHECK(sizes(split(whole, {9}, GCX_SPLIT_IGNORE_SM_COSCHEDULING)) == Counts({10, 122}));
    CHECK(sizes(split(whole, {108, 24}, GCX_SPLIT_EXACT)) == Counts({108, 24, 0}));
    CHECK_REFUSED(try_split(whole, {10}, GCX_SPLIT_EXACT).result,
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK(message_has("10"));
    const Split thirds = split(whole, {GCX_REST, GCX_REST, GCX_REST});
    CHECK_EQ(sms(thirds.groups[0]) + sms(thirds.groups[1]) + sms(thirds.groups[2]), 132U);
    const Split mixed = split(whole, {GCX_REST, 24, GCX_REST});
    CHECK_EQ(sms(mixed.groups[1]), 24U);
    CHECK_EQ(sms(mixed.remainder), 0U);
    kernels_see_what_was_promised(split(whole, {108, 24}));
    kernels_see_what_was_promised(split(whole, {8, 16, 24}));
    kernels_see_what_was_promised(split(whole, {10, 122}, GCX_SPLIT_IGNORE_SM_COSCHEDULING));
    const gcx_resource_info info = info_of(whole);
    CHECK_EQ(info.atom_count, 16U);
    CHECK_EQ(info.min_partition_size, 8U);
    CHECK_EQ(info.coscheduled_alignment, 8U);
}

void structured_splits(const std::string& driver, const gcx_device_info& device) {
    const gcx_resource whole = whole_device();
    gcx_sm_request requests[2] = {};
    requests[0].sm_count = 2 * device.min_partition_size;
    requests[0].coscheduled_sm_count = device.coscheduled_alignment;
    requests[1].sm_count = GCX_REST;
    gcx_resource groups[2] = {};
    gcx_resource rest{};
    if (version_of(driver) < 13010) {
        CHECK_REFUSED(gcx_sm_split(&whole, requests, 2, 0, groups, &rest, nullptr, nullptr),
                      GCX_ERROR_NOT_SUPPORTED);
        CHECK(message_has("13.1") && message_has(driver));
        return;
    }
    if (!CHECK_OK(gcx_sm_split(&whole, requests, 2, 0, groups, &rest, nullptr, nullptr)))
        return;
    CHECK_EQ(info_of(groups[0]).family, GCX_SM_FAMILY_STRUCTURED);
    CHECK_EQ(sms(groups[0]), requests[0].sm_count);
    CHECK_EQ(sms(groups[0]) + sms(groups[1]) + sms(rest), device.sm_count);
    CHECK_EQ(overlap(groups[0], groups[1]), 0U);
    uint32_t planned[2] = {};
    uint32_t planned_rest = 0;
    CHECK_OK(gcx_sm_split(&whole, requests, 2, 0, nullptr, nullptr, planned, &planned_rest));
    CHECK_EQ(planned[0], sms(groups[0]));
    CHECK_EQ(planned[1], sms(groups[1]));
    CHECK_EQ(planned_rest, sms(rest));
    // The same requests give the same groups.
    gcx_resource again[2] = {};
    CHECK_OK(gcx_sm_split(&whole, requests, 2, 0, again, nullptr, nullptr, nullptr));
    CHECK_EQ(std::memcmp(groups, again, sizeof groups), 0);
    CHECK_REFUSED(try_split(groups[0], {1}).result, GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    const Partition one(groups[0]);
    const Partition other(groups[1]);
    const std::vector<SmIds> seen = {one.probe(), other.probe()};
    CHECK_EQ(seen[0].size(), sms(groups[0]));
    CHECK(disjoint(seen));
    // A structured split starts from a whole device, and can't be combined with families' flags.
    const Split half = split(whole, {device.sm_count / 2});
    CHECK_REFUSED(gcx_sm_split(half.groups.data(), requests, 1, 0, groups, &rest, nullptr, nullptr),
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK_REFUSED(gcx_sm_split(&whole, requests, 1, GCX_SPLIT_IGNORE_SM_COSCHEDULING, groups, &rest,
                               nullptr, nullptr),
                  GCX_ERROR_INVALID_VALUE);
}

void locality_domains(const std::string& driver, const gcx_device_info& device) {
    const gcx_resource whole = whole_device();
    gcx_sm_request request{};
    request.sm_count = device.min_partition_size;
    request.flags = GCX_SM_REQUEST_LOCALITY_DOMAIN_ID;
    gcx_resource group{};
    if (version_of(driver) < 13040) {
        CHECK_EQ(device.locality_domain_count, 1U);
        CHECK_REFUSED(gcx_sm_split(&whole, &request, 1, 0, &group, nullptr, nullptr, nullptr),
                      GCX_ERROR_NOT_SUPPORTED);
        CHECK(message_has(driver) && message_has("13.4"));
        return;
    }
    CHECK(device.locality_domain_count >= 1);
    if (device.locality_domain_count < 2)
        return;
    request.locality_domain_id = 1;
    if (CHECK_OK(gcx_sm_split(&whole, &request, 1, 0, &group, nullptr, nullptr, nullptr))) {
        CHECK((info_of(group).flags & GCX_SM_REQUEST_LOCALITY_DOMAIN_ID) != 0);
        CHECK_EQ(info_of(group).locality_domain_id, 1U);
    }
}

void workqueues(const std::string& driver, const gcx_device_info& device) {
    const gcx_resource sm = split(whole_device(), {device.min_partition_size}).groups[0];
    gcx_resource config{};
    const gcx_result got = gcx_device_get_resource(0, GCX_RESOURCE_WORKQUEUE_CONFIG, &config);
    if (version_of(driver) < 13010) {
        CHECK_REFUSED(got, GCX_ERROR_NOT_SUPPORTED);
        CHECK(message_has("13.1") && message_has(driver));
        const Partition partition(sm);
        gcx_resource resource{};
        CHECK_REFUSED(
            gcx_context_get_resource(partition.context, GCX_RESOURCE_WORKQUEUE, &resource),
            GCX_ERROR_NOT_SUPPORTED);
        CHECK_REFUSED(
            gcx_stream_get_resource(partition.stream, GCX_RESOURCE_WORKQUEUE_CONFIG, &resource),
            GCX_ERROR_NOT_SUPPORTED);
        return;
    }
    CHECK_OK(got);
    CHECK_EQ(info_of(config).type, GCX_RESOURCE_WORKQUEUE_CONFIG);
    CHECK(info_of(config).workqueue_concurrency_limit > 0);
    gcx_resource balanced{};
    CHECK_OK(
        gcx_workqueue_configure(&config, GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED, 3, &balanced));
    CHECK_EQ(info_of(balanced).workqueue_scope, GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED);
    CHECK_EQ(info_of(balanced).workqueue_concurrency_limit, 3U);
    const gcx_resource both[] = {sm, balanced};
    gcx_context context = nullptr;
    CHECK_OK(gcx_context_create(both, 2, nullptr, &context));
    gcx_resource out{};
    CHECK_OK(gcx_context_get_resource(context, GCX_RESOURCE_WORKQUEUE_CONFIG, &out));
    CHECK_EQ(std::memcmp(&out, &balanced, sizeof out), 0);
    CHECK_OK(gcx_context_get_resource(context, GCX_RESOURCE_SM, &out));
    CHECK_EQ(std::memcmp(&out, &sm, sizeof out), 0);
    // Another context that is given its workqueue differs from one without it.
    gcx_resource queue{};
    CHECK_OK(gcx_context_get_resource(context, GCX_RESOURCE_WORKQUEUE, &queue));
    CHECK_EQ(info_of(queue).type, GCX_RESOURCE_WORKQUEUE);
    const gcx_resource other = split(whole_device(), {1, 1}).groups[1];
    const gcx_resource shared[] = {other, queue};
    gcx_context second = nullptr;
    gcx_context plain = nullptr;
    CHECK_OK(gcx_context_create(shared, 2, nullptr, &second));
    CHECK_OK(gcx_context_create(&other, 1, nullptr, &plain));
    CHECK(gcx_context_native(second) != gcx_context_native(plain));
    for (gcx_context made : {context, second, plain})
        CHECK_OK(gcx_context_destroy(made));
    const gcx_resource two[] = {sm, config, balanced};
    CHECK_REFUSED(gcx_context_create(two, 3, nullptr, &context), GCX_ERROR_INVALID_RESOURCE_TYPE);
    CHECK_REFUSED(gcx_context_create(&config, 1, nullptr, &context),
                  GCX_ERROR_INVALID_RESOURCE_TYPE);
    uint32_t count = 0;
    CHECK_REFUSED(gcx_resource_get_overlap(&sm, &config, &count), GCX_ERROR_INVALID_RESOURCE_TYPE);
    CHECK_REFUSED(try_split(config, {8}).result, GCX_ERROR_INVALID_RESOURCE_TYPE);
}

void driver_and_capabilities(const std::string& driver, const gcx_device_info& device) {
    gcx_driver_info info = GCX_DRIVER_INFO_INIT;
    std::fill(std::begin(info.capabilities), std::end(info.capabilities), uint8_t{0xff});
    CHECK_OK(gcx_driver_get_info(&info));
    CHECK_EQ(info.version, version_of(driver));
    CHECK_EQ(info.simulated, 1);
    CHECK_EQ(info.header_version, CUDA_VERSION);
    CHECK_EQ(std::string(info.library), std::string(gcx_simulator_path()));
    CHECK_EQ(std::strncmp(device.name, "SIMULATED", 9), 0);
    int32_t count = 0;
    CHECK_OK(gcx_device_get_count(&count));
    CHECK_EQ(count, 1);
    const int needed[] = {12040, 12050, 13000, 13000, 13010, 13010, 13010, 13040};
    for (std::size_t i = 0; i < std::size(info.capabilities); i++)
        CHECK_EQ(info.capabilities[i],
                 i < std::size(needed) && info.version >= needed[i] ? uint8_t{1} : uint8_t{0});
    CHECK_EQ(sms(whole_device()), device.sm_count);
}

// Growing and shrinking the first group moves nothing, as long as it needs no remainder atom: the
// smaller set is within the larger.
void growing_moves_nothing(const gcx_device_info& device) {
    const gcx_resource whole = whole_device();
    const uint32_t unit = info_of(whole).coscheduled_alignment;
    gcx_resource before = split(whole, {unit}).groups[0];
    uint32_t grown = 0;
    for (uint32_t count = 2 * unit; count <= device.sm_count; count += unit) {
        const gcx_resource larger = split(whole, {count}).groups[0];
        if (info_of(larger).atom_count * unit != sms(larger))
            break;
        CHECK_EQ(overlap(before, larger), sms(before));
        before = larger;
        grown++;
    }
    CHECK(grown > 0);
}

void one_machine(const std::string& gpu, const std::string& driver) {
    leaves_nothing(gpu + "@" + driver, [&] {
        const gcx_device_info device = device_info();
        driver_and_capabilities(driver, device);
        all_counts(device);
        growing_moves_nothing(device);
        splits_of_splits(device);
        set_operations(device);
        maps_agree_with_kernels(device);
        probed_sets_are_disjoint(device);
        structured_splits(driver, device);
        locality_domains(driver, device);
        workqueues(driver, device);
        if (gpu == "h100" || gpu == "h200")
            h100_splits_as_recorded();
    });
}

void unusable_driver_is_refused() {
    const struct {
        const char* driver;
        gcx_result result;
        std::vector<std::string> words; // of the message
    } rows[] = {
        {"sim:h100@12.2", GCX_ERROR_NOT_SUPPORTED, {"12.2", "12.4"}},
        {"sim:none@13.0", GCX_ERROR_NO_DEVICE, {"no device", "13.0"}},
        {"libc.so.6", GCX_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, {"libc.so.6"}},
        {"sim:nosuchgpu@13.0", GCX_ERROR_INVALID_VALUE, {"nosuchgpu"}},
        {"sim:h100@99.9", GCX_ERROR_INVALID_VALUE, {"99.9"}},
    };
    for (const auto& row : rows) {
        in_child(row.driver, [&] {
            CHECK_REFUSED(gcx_driver_open(row.driver), row.result);
            for (const std::string& word : row.words)
                CHECK(message_has(word));
            // The next call opens another driver, so nothing of the failure was cached.
            CHECK_OK(gcx_driver_open("sim:h100@13.0"));
            CHECK_REFUSED(gcx_driver_open("sim:h200@13.0"), GCX_ERROR_DRIVER_ALREADY_OPEN);
        });
    }
    in_child("absent", [] {
        setenv("GCX_DRIVER", "libno-such-cuda.so.1", 1);
        int32_t count = 7;
        CHECK_REFUSED(gcx_device_get_count(&count), GCX_ERROR_SHARED_OBJECT_INIT_FAILED);
        CHECK(message_has("libno-such-cuda.so.1"));
        CHECK_EQ(count, 7);
        gcx_driver_info info = GCX_DRIVER_INFO_INIT;
        CHECK_REFUSED(gcx_driver_get_info(&info), GCX_ERROR_SHARED_OBJECT_INIT_FAILED);
    });
    in_child("the environment's", [] {
        setenv("GCX_DRIVER", "sim:2xh100@12.8", 1);
        int32_t count = 0;
        CHECK_OK(gcx_device_get_count(&count));
        CHECK_EQ(count, 2);
        gcx_driver_info info = GCX_DRIVER_INFO_INIT;
        CHECK_OK(gcx_driver_get_info(&info));
        CHECK_EQ(info.version, 12080);
    });
}

// Before 13.0 the driver doesn't report them, and gcx derives them.
void details_are_the_same_on_every_driver(const std::string& gpu) {
    const auto details = [&](const std::string& driver) {
        return answer_of_child([&] {
            CHECK_OK(gcx_driver_open(("sim:" + gpu + "@" + driver).c_str()));
            const gcx_device_info info = device_info();
            return uint64_t{info.min_partition_size} << 32 | info.coscheduled_alignment;
        });
    };
    for (const char* driver : {"12.4", "12.8"})
        CHECK_EQ(details(driver), details("13.0"));
}

} // namespace

int main(int argc, char** argv) {
    if (argc > 1) { // one machine: GPU DRIVER
        one_machine(argv[1], argc > 2 ? argv[2] : "13.0");
        return support::summary("matrix");
    }
    const Catalogue known = catalogue();
    CHECK(known.gpus.size() >= 8);
    CHECK(known.drivers.size() >= 8);
    for (const std::string& gpu : known.gpus) {
        details_are_the_same_on_every_driver(gpu);
        for (const std::string& driver : known.drivers) {
            if (version_of(driver) >= 12040) {
                one_machine(gpu, driver);
                continue;
            }
            std::string spec = gpu;
            spec.append("@").append(driver);
            in_child(spec, [&] {
                CHECK_REFUSED(gcx_driver_open(spec.insert(0, "sim:").c_str()),
                              GCX_ERROR_NOT_SUPPORTED);
                CHECK(message_has(driver));
            });
        }
    }
    unusable_driver_is_refused();
    return support::summary("matrix");
}
