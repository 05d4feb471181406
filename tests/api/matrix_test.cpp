// Tests what gcx promises of resources, on every simulated GPU with every driver version. The vectors
// test all counts, splits of splits and set operations there, and tests/fuzz/layouts.cpp other GPUs.

#include "support.hpp"

#include <algorithm>
#include <cstring>

using namespace support;

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

void h100_refusals_name_the_counts() {
    const gcx_resource whole = whole_device();
    CHECK_REFUSED(try_split(whole, {133}).result, GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK(message_has("133") && message_has("132"));
    CHECK_REFUSED(try_split(whole, {100, 40}).result, GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK(message_has("100 + 40") && message_has("132"));
    CHECK_REFUSED(try_split(whole, {10}, GCX_SPLIT_EXACT).result,
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK(message_has("10"));
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

void one_machine(const std::string& gpu, const std::string& driver) {
    leaves_nothing(gpu + "@" + driver, [&] {
        const gcx_device_info device = device_info();
        driver_and_capabilities(driver, device);
        maps_agree_with_kernels(device);
        probed_sets_are_disjoint(device);
        if (gpu == "h100" || gpu == "h200")
            h100_refusals_name_the_counts();
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
