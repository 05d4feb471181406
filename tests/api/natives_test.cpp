// Tests streams, events and resources that other code made, and what gcx reports of them; clusters;
// events across devices.

#include "calls.hpp"
#include "work.hpp"

#include <array>
#include <cstring>

using namespace support;

namespace {

void default_streams_are_refused() {
    for (const auto& [number, name] : {std::pair{0, "NULL"}, {1, "Legacy"}, {2, "PerThread"}}) {
        gcx_stream stream = nullptr;
        CHECK_REFUSED(
            gcx_stream_from_native(forged<CUstream>(static_cast<uint64_t>(number)), &stream),
            GCX_ERROR_INVALID_VALUE);
        CHECK(message_has(name) && message_has("default stream"));
        CHECK(message_has("pass a stream that was made"));
        CHECK(stream == nullptr);
    }
    gcx_stream stream = nullptr;
    CHECK(gcx_stream_from_native(forged<CUstream>(0x123450), &stream) != GCX_SUCCESS);
    CHECK(stream == nullptr);
}

void stream_of_gcx_is_recognised() {
    const gcx_resource resource = split(whole_device(), {8}).groups[0];
    const Partition partition(resource);
    const gcx_stream stream = handle_for(gcx_stream_native(partition.stream));
    gcx_resource found{};
    CHECK_OK(gcx_stream_get_resource(stream, GCX_RESOURCE_SM, &found));
    CHECK_EQ(std::memcmp(&found, &resource, sizeof found), 0);
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_OK(gcx_stream_synchronize(partition.stream));
}

void stream_of_the_whole_device_has_its_resource() {
    const External external;
    const gcx_stream stream = handle_for(external.stream);
    const gcx_resource whole = whole_device();
    gcx_resource resource{};
    CHECK_OK(gcx_stream_get_resource(stream, GCX_RESOURCE_SM, &resource));
    CHECK_EQ(std::memcmp(&resource, &whole, sizeof whole), 0);
    gcx_stream_info info = info_of(stream);
    CHECK_EQ(info.sm_count, 132U);
    CHECK_EQ(info.device, 0);
    CHECK_EQ(info.context_id, 0U);
    CHECK_OK(gcx_stream_synchronize(stream));
    CHECK_EQ(probe(stream).size(), 132U);
    for (const gcx_resource_type type : {GCX_RESOURCE_WORKQUEUE, GCX_RESOURCE_WORKQUEUE_CONFIG})
        CHECK_REFUSED(gcx_stream_get_resource(stream, type, &resource), GCX_ERROR_NOT_FOUND);
    CHECK_REFUSED(gcx_stream_get_resource(stream, no_such<gcx_resource_type>(2), &resource),
                  GCX_ERROR_INVALID_RESOURCE_TYPE);
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_NATIVE(cuStreamQuery, external.stream); // it is unchanged
}

void stream_of_part_of_the_device_has_counts(bool reported) {
    const External external(16);
    const gcx_stream stream = handle_for(external.stream);
    gcx_stream_info info = info_of(stream);
    CHECK_EQ(info.sm_count, 16U);
    CHECK_EQ(info.context_id, 0U);
    gcx_resource resource{};
    if (!reported) {
        CHECK_REFUSED(gcx_stream_get_resource(stream, GCX_RESOURCE_SM, &resource),
                      GCX_ERROR_NOT_SUPPORTED);
        CHECK(message_has("13.1") && message_has("16 SMs"));
    } else {
        gcx_resource again{};
        CHECK_OK(gcx_stream_get_resource(stream, GCX_RESOURCE_SM, &resource));
        CHECK_OK(gcx_stream_get_resource(stream, GCX_RESOURCE_SM, &again));
        CHECK_EQ(std::memcmp(&resource, &again, sizeof again), 0);
        const gcx_resource_info told_info = info_of(resource);
        CHECK_EQ(told_info.family, GCX_SM_FAMILY_EXTERNAL);
        CHECK_EQ(told_info.type, GCX_RESOURCE_SM);
        CHECK_EQ(told_info.device, 0);
        CHECK_EQ(told_info.sm_count, 16U);
        CHECK_EQ(told_info.atom_count, 0U);
        CHECK_EQ(told_info.min_partition_size, 8U);
        CHECK_EQ(told_info.coscheduled_alignment, 8U);
        // Functions that need the atoms refuse the resource.
        refuse_calls({resource, whole_device()}, kResource,
                     GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, kAnyResource);
        CHECK(message_has("16 SMs") && message_has("did not create"));
        // A resource with changed bytes is not one of gcx's.
        for (uint64_t& word : resource.opaque) {
            gcx_resource_info none = GCX_RESOURCE_INFO_INIT;
            word ^= 1;
            CHECK_REFUSED(gcx_resource_get_info(&resource, &none),
                          GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
            word ^= 1;
        }
    }
    CHECK_OK(gcx_stream_destroy(stream));
}

gcx_resource from_native(const CUdevResource& native, int32_t device = 0) {
    gcx_resource resource{};
    CHECK_OK(gcx_resource_from_native(device, &native, &resource));
    return resource;
}

std::vector<CUdevResource> to_native(const gcx_resource& resource) {
    uint32_t count = 0;
    gcx_resource_get_native(&resource, nullptr, 0, &count);
    std::vector<CUdevResource> natives(count);
    CHECK_OK(gcx_resource_get_native(&resource, natives.data(), count, &count));
    CHECK_EQ(count, natives.size());
    return natives;
}

SmIds sms_of(const std::vector<CUdevResource>& natives) {
    const External external(natives);
    const gcx_stream stream = handle_for(external.stream);
    SmIds seen = probe(stream);
    CHECK_OK(gcx_stream_destroy(stream));
    return seen;
}

// Checks that the resource is the same SMs as the native one, in this family.
void check_same(const CUdevResource& native, gcx_sm_family family) {
    const gcx_resource resource = from_native(native);
    CHECK_EQ(info_of(resource).family, family);
    const SmIds seen = sms_of({native});
    CHECK(Partition(resource).probe() == seen);
    CHECK(sms_of(to_native(resource)) == seen);
}

void native_resources_become_resources() {
    const gcx_resource whole = whole_device();
    const gcx_resource same = from_native(native_device());
    CHECK_EQ(std::memcmp(&same, &whole, sizeof whole), 0);
    for (const uint32_t sms : {8U, 16U, 24U, 64U, 120U}) {
        for (const CUdevResource& native : native_split(sms, 1))
            check_same(native, GCX_SM_FAMILY_COSCHEDULED);
    }
    for (const CUdevResource& native : native_split(10, 2, GCX_SPLIT_IGNORE_SM_COSCHEDULING))
        check_same(native, GCX_SM_FAMILY_FINE);
    for (const CUdevResource& native : native_split(24, 5, GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE))
        from_native(native);
    // What a green context has is what it was made of.
    const Partition partition(split(whole, {24}).groups[0]);
    CUdevResource native{};
    CHECK_NATIVE(cuGreenCtxGetDevResource, gcx_context_native_green(partition.context), &native,
                 CU_DEV_RESOURCE_TYPE_SM);
    CHECK(Partition(from_native(native)).probe() == partition.probe());
    CHECK(sizes(split(from_native(native_split(64, 1)[0]), {24})) ==
          (std::vector<uint32_t>{24, 40}));
}

void resources_become_native_ones() {
    const gcx_resource whole = whole_device();
    CHECK_EQ(to_native(whole).size(), 1U);
    const gcx_resource parts = split(whole, {24}).groups[0];
    CHECK_EQ(to_native(parts).size(), 3U);
    CHECK(sms_of(to_native(parts)) == Partition(parts).probe());
    const gcx_resource rest = without(whole, parts);
    CHECK_EQ(to_native(rest).size(), 1U); // what a direct split leaves
    CHECK(sms_of(to_native(rest)) == Partition(rest).probe());
    CUdevResource two[2] = {};
    uint32_t count = 0;
    CHECK_REFUSED(gcx_resource_get_native(&parts, two, 2, &count), GCX_ERROR_INSUFFICIENT_CAPACITY);
    CHECK_EQ(count, 3U);
    CHECK_EQ(two[0].type, CU_DEV_RESOURCE_TYPE_INVALID);
}

void forged_native_resources_are_refused() {
    constexpr gcx_result kNoSet = GCX_ERROR_INVALID_RESOURCE_CONFIGURATION;
    gcx_resource resource{};
    const CUdevResource good = native_split(24, 1)[0];
    const auto refuse = [&](const CUdevResource& native, gcx_result result) {
        CHECK_REFUSED(gcx_resource_from_native(0, &native, &resource), result);
    };
    CUdevResource native{};
    refuse(native, GCX_ERROR_INVALID_RESOURCE_TYPE);
    CHECK(message_has("the type 0"));
    native = good;
    native.sm.smCount = 32;
    refuse(native, kNoSet);
    CHECK(message_has("32 SMs"));
    native = good;
    std::memset(native._internal_padding, 0xff, sizeof native._internal_padding);
    refuse(native, kNoSet);
    std::memset(native._internal_padding, 0, sizeof native._internal_padding);
    refuse(native, kNoSet);
    CHECK_REFUSED(gcx_resource_from_native(7, &good, &resource), GCX_ERROR_INVALID_DEVICE);
    CHECK_REFUSED(gcx_resource_from_native(0, nullptr, &resource), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_resource_from_native(0, &good, nullptr), GCX_ERROR_INVALID_VALUE);
    uint32_t count = 0;
    CHECK_REFUSED(gcx_resource_get_native(&resource, nullptr, 0, &count),
                  GCX_ERROR_INVALID_RESOURCE_TYPE);
    const gcx_resource whole = whole_device();
    CHECK_REFUSED(gcx_resource_get_native(&whole, nullptr, 1, &count), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_resource_get_native(&whole, nullptr, 0, nullptr), GCX_ERROR_INVALID_VALUE);
}

void workqueue_configuration_is_converted() {
    gcx_resource whole{};
    gcx_resource changed{};
    CHECK_OK(gcx_device_get_resource(0, GCX_RESOURCE_WORKQUEUE_CONFIG, &whole));
    CHECK_OK(gcx_workqueue_configure(&whole, GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED, 3, &changed));
    const std::vector<CUdevResource> natives = to_native(changed);
    CHECK_EQ(natives.size(), 1U);
    const gcx_resource back = from_native(natives[0]);
    CHECK_EQ(std::memcmp(&back, &changed, sizeof back), 0);
    const gcx_context context = make_context({split(whole_device(), {8}).groups[0], back});
    gcx_resource queue{};
    CHECK_OK(gcx_context_get_resource(context, GCX_RESOURCE_WORKQUEUE, &queue));
    uint32_t count = 0;
    CHECK_REFUSED(gcx_resource_get_native(&queue, nullptr, 0, &count),
                  GCX_ERROR_INVALID_RESOURCE_TYPE);
    CHECK_OK(gcx_context_destroy(context));
    gcx_resource resource{};
    CHECK_REFUSED(gcx_resource_from_native(1, natives.data(), &resource),
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK(message_has("CUdevice 0"));
}

void events_of_others() {
    const Partition partition(split(whole_device(), {8}).groups[0]);
    const External external;
    gcx_event event = nullptr;
    CHECK_REFUSED(gcx_event_from_native(nullptr, &event), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_event_from_native(external.event, nullptr), GCX_ERROR_INVALID_VALUE);
    CHECK(gcx_event_from_native(forged<CUevent>(0x123450), &event) != GCX_SUCCESS);
    CHECK(event == nullptr);
    CHECK_OK(gcx_event_from_native(external.event, &event));
    CHECK(gcx_event_native(event) == external.event);
    const gcx_event mine = make_event(0, GCX_EVENT_TIMING);
    float milliseconds = 5;
    CHECK_OK(gcx_stream_record(partition.stream, mine));
    CHECK_REFUSED(gcx_event_get_elapsed(mine, event, &milliseconds), GCX_ERROR_INVALID_HANDLE);
    CHECK(message_has("end, which gcx did not make"));
    CHECK_OK(gcx_stream_record(partition.stream, event));
    CHECK_OK(gcx_stream_wait(partition.stream, event));
    CHECK_OK(gcx_context_record(partition.context, event));
    CHECK_OK(gcx_context_wait(partition.context, event));
    CHECK_OK(gcx_event_synchronize(event));
    CHECK_OK(gcx_event_query(event));
    CHECK_OK(gcx_event_synchronize(mine));
    CHECK_OK(gcx_event_get_elapsed(mine, event, &milliseconds));
    // The event still belongs to its owner.
    CHECK_OK(gcx_event_destroy(event));
    CHECK_REFUSED(gcx_event_query(event), GCX_ERROR_INVALID_HANDLE);
    CHECK_NATIVE(cuEventQuery, external.event);
    CHECK_OK(gcx_event_destroy(mine));
}

void event_in_a_capture_has_a_handle() {
    const External external;
    begin_capture(external.stream);
    CHECK_NATIVE(cuEventRecord, external.event, external.stream);
    gcx_event event = nullptr;
    CHECK_OK(gcx_event_from_native(external.event, &event));
    CHECK_OK(gcx_event_destroy(event));
    end_capture(external.stream);
}

void refused_elapsed_time_names_the_cause() {
    const Partition partition(split(whole_device(), {8}).groups[0]);
    const gcx_event timed = make_event(0, GCX_EVENT_TIMING);
    const gcx_event plain = make_event(0, GCX_EVENT_BLOCKING_SYNC);
    const gcx_event fresh = make_event(0, GCX_EVENT_TIMING | GCX_EVENT_BLOCKING_SYNC);
    CHECK_OK(gcx_stream_record(partition.stream, timed));
    CHECK_OK(gcx_stream_record(partition.stream, plain));
    CHECK_OK(gcx_event_synchronize(timed));
    CHECK_OK(gcx_event_synchronize(plain));
    float milliseconds = 5;
    const auto refuse = [&](gcx_event start, gcx_event end, gcx_result result, const char* text) {
        CHECK_REFUSED(gcx_event_get_elapsed(start, end, &milliseconds), result);
        CHECK(message_has(text));
        CHECK_EQ(milliseconds, 5.0F);
    };
    constexpr gcx_result kNoTime = GCX_ERROR_INVALID_HANDLE;
    refuse(timed, plain, kNoTime, "end records no times: it was made without GCX_EVENT_TIMING");
    refuse(plain, timed, kNoTime, "start records no times");
    refuse(timed, fresh, kNoTime, "end was never recorded");
    refuse(fresh, timed, kNoTime, "start was never recorded");
    sim::fail("cuEventElapsedTime", 1, CUDA_ERROR_UNKNOWN);
    refuse(timed, timed, GCX_ERROR_UNKNOWN, "cuEventElapsedTime");
    const Work work;
    work.spin(gcx_stream_native(partition.stream), 1'000'000);
    CHECK_OK(gcx_stream_record(partition.stream, fresh));
    refuse(timed, fresh, GCX_ERROR_NOT_READY, "the work of end has not finished");
    refuse(fresh, timed, GCX_ERROR_NOT_READY, "the work of start has not finished");
    CHECK_OK(gcx_event_synchronize(fresh));
    CHECK_OK(gcx_event_get_elapsed(timed, fresh, &milliseconds));
    for (const gcx_event event : {timed, plain, fresh})
        CHECK_OK(gcx_event_destroy(event));
}

void event_is_recorded_on_its_device() {
    const Partition here(split(whole_device(0), {8}).groups[0]);
    const External external(0, 1);
    const gcx_stream there = handle_for(external.stream);
    const gcx_event event = make_event(1);
    for (const gcx_result result :
         {gcx_stream_record(here.stream, event), gcx_context_record(here.context, event)}) {
        CHECK_EQ(result, GCX_ERROR_INVALID_HANDLE);
        CHECK(message_has("device 1") && message_has("device 0"));
        CHECK(message_has("gcx_event_create(0"));
    }
    CHECK_OK(gcx_stream_record(there, event));
    CHECK_OK(gcx_stream_wait(here.stream, event)); // waiting works across devices
    const gcx_event mine = make_event();
    CHECK_REFUSED(gcx_stream_record(there, mine), GCX_ERROR_INVALID_HANDLE);
    CHECK(message_has("gcx_event_create(1"));
    gcx_stream_info info = info_of(there);
    CHECK_EQ(info.device, 1);
    CHECK_OK(gcx_event_destroy(mine));
    CHECK_OK(gcx_event_destroy(event));
    CHECK_OK(gcx_stream_destroy(there));
}

// Returns a stream that will not be cached when it is destroyed, since the cache is full.
gcx_stream surplus_stream(gcx_context context) {
    std::array<gcx_stream, 33> streams{};
    for (gcx_stream& stream : streams)
        CHECK_OK(gcx_stream_create(context, nullptr, &stream));
    for (std::size_t i = 1; i < streams.size(); i++)
        CHECK_OK(gcx_stream_destroy(streams[i]));
    return streams[0];
}

void destroyed_natives_end_their_handles() {
    const Partition partition(split(whole_device(), {8}).groups[0]);
    // Other code destroyed the native ones.
    gcx_stream stream = make_stream(partition.context);
    CHECK_NATIVE(cuStreamDestroy, gcx_stream_native(stream));
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_REFUSED(gcx_stream_destroy(stream), GCX_ERROR_INVALID_HANDLE);
    gcx_event event = make_event();
    CHECK_NATIVE(cuEventDestroy, gcx_event_native(event));
    CHECK_OK(gcx_event_destroy(event));
    CHECK_REFUSED(gcx_event_destroy(event), GCX_ERROR_INVALID_HANDLE);
    // If the driver reports that nothing exists to destroy, the handle ends; any other error leaves
    // it valid.
    CHECK_OK(gcx_stream_destroy(surplus_stream(partition.context)));
    for (const CUresult result : {CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_INVALID_HANDLE}) {
        const gcx_sim_counts before = sim::counts();
        stream = surplus_stream(partition.context);
        CUstream native = gcx_stream_native(stream);
        sim::fail("cuStreamDestroy_v2", 1, result);
        CHECK_OK(gcx_stream_destroy(stream));
        CHECK_NATIVE(cuStreamDestroy, native);
        event = make_event();
        CUevent native_event = gcx_event_native(event);
        sim::fail("cuEventDestroy_v2", 1, result);
        CHECK_OK(gcx_event_destroy(event));
        CHECK_NATIVE(cuEventDestroy, native_event);
        CHECK_EQ(left_behind(before, sim::counts()), std::string());
    }
    stream = surplus_stream(partition.context);
    sim::fail("cuStreamDestroy_v2", 1, CUDA_ERROR_UNKNOWN);
    CHECK_REFUSED(gcx_stream_destroy(stream), GCX_ERROR_UNKNOWN);
    CHECK_OK(gcx_stream_destroy(stream));
    event = make_event();
    sim::fail("cuEventDestroy_v2", 1, CUDA_ERROR_UNKNOWN);
    CHECK_REFUSED(gcx_event_destroy(event), GCX_ERROR_UNKNOWN);
    CHECK_OK(gcx_event_destroy(event));
}

// The vectors test the numbers.
void largest_cluster_costs_one_cached_context() {
    const gcx_resource part = split(whole_device(), {24}).groups[0];
    const gcx_resource none = without(part, part);
    uint32_t blocks = 9;
    CHECK_REFUSED(gcx_resource_find_max_cluster_size(&none, &blocks),
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK_EQ(blocks, 9U);
    for (int round = 0; round < 2; round++) {
        CHECK_OK(gcx_resource_find_max_cluster_size(&part, &blocks));
        CHECK_EQ(blocks, 8U);
        CHECK_EQ(cache_stats().misses, 1U);
        CHECK_EQ(cache_stats().in_use, 0U);
    }
}

void there_are_no_clusters_before_9_0() {
    const gcx_resource whole = whole_device();
    uint32_t blocks = 0;
    CHECK_OK(gcx_resource_find_max_cluster_size(&whole, &blocks));
    CHECK_EQ(blocks, 1U);
    CHECK_EQ(sim::counts().green_contexts, 0U); // none is created to find out
}

} // namespace

int main() {
    for (const char* driver : drivers({"12.4", "13.0", "13.1", "13.5"})) {
        const std::string at = std::string("@") + driver;
        const bool reported = version_of(driver) >= 13010;
        on_machine("h100" + at, default_streams_are_refused);
        on_machine("h100" + at, stream_of_gcx_is_recognised);
        on_machine("h100" + at, stream_of_the_whole_device_has_its_resource);
        on_machine("h100" + at, [reported] { stream_of_part_of_the_device_has_counts(reported); });
        on_machine("h200" + at, native_resources_become_resources);
        on_machine("h200" + at, resources_become_native_ones);
        on_machine("h200" + at, forged_native_resources_are_refused);
        if (reported)
            on_machine("2xh200" + at, workqueue_configuration_is_converted);
        on_machine("h100" + at, events_of_others);
        on_machine("h100" + at, event_in_a_capture_has_a_handle);
        on_machine("h100" + at, refused_elapsed_time_names_the_cause);
        on_machine("2xh100" + at, event_is_recorded_on_its_device);
        on_machine("h100" + at, destroyed_natives_end_their_handles);
        on_machine("h200" + at, largest_cluster_costs_one_cached_context);
        on_machine("a100" + at, there_are_no_clusters_before_9_0);
    }
    return support::summary("natives");
}
