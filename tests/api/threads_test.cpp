// Calls every part of gcx from many threads at once, with a log callback that takes a lock under
// which the threads call gcx. The thread sanitizer finds missing locks here.

#include "support.hpp"

#include <atomic>
#include <mutex>
#include <random>
#include <thread>

using namespace support;

namespace {

constexpr unsigned kThreads = 16;

void together(const std::function<void(unsigned)>& body) {
    in_threads(kThreads, body);
}

// Threads that map at once wait for one map, because contexts cost device memory permanently.
void concurrent_maps_cost_one_map() {
    for (const gcx_sm_family family : {GCX_SM_FAMILY_COSCHEDULED, GCX_SM_FAMILY_FINE}) {
        const uint64_t before = sim::calls("cuGreenCtxCreate");
        together([&](unsigned) { CHECK_OK(gcx_device_map_sms(0, family)); });
        const uint64_t made = sim::calls("cuGreenCtxCreate") - before;
        CHECK_EQ(made, family == GCX_SM_FAMILY_FINE ? 8U : 5U);
    }
}

// Two concurrent maps share no state except the cache of contexts.
void families_are_mapped_concurrently() {
    together([](unsigned i) {
        CHECK_OK(
            gcx_device_map_sms(0, i % 2 == 0 ? GCX_SM_FAMILY_FINE : GCX_SM_FAMILY_COSCHEDULED));
    });
}

// If a map fails, the next caller makes it.
void failed_map_is_repeated_by_the_next_caller() {
    sim::fail("cuGreenCtxCreate", 2, CUDA_ERROR_OUT_OF_MEMORY);
    std::atomic<int> failed{0};
    together([&](unsigned) {
        failed += gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED) == GCX_SUCCESS ? 0 : 1;
    });
    CHECK_EQ(failed.load(), 1);
    CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
}

// First uses of a device's families, of a context's streams and of its workqueue happen at once.
void concurrent_first_uses_succeed() {
    gcx_resource config{};
    const bool queues =
        gcx_device_get_resource(0, GCX_RESOURCE_WORKQUEUE_CONFIG, &config) == GCX_SUCCESS;
    gcx_context context = nullptr;
    const gcx_resource whole = whole_device();
    CHECK_OK(gcx_context_create(&whole, 1, nullptr, &context));
    together([&](unsigned i) {
        const uint32_t flags[] = {GCX_SPLIT_IGNORE_SM_COSCHEDULING,
                                  GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE, GCX_SPLIT_DEFAULT};
        CHECK_EQ(sms(split(whole, {24}, flags[i % 3]).groups[0]), 24U);
        gcx_stream_params params = GCX_STREAM_PARAMS_INIT;
        params.priority = -static_cast<int32_t>(i);
        gcx_stream stream = nullptr;
        CHECK_OK(gcx_stream_create(context, &params, &stream));
        gcx_resource queue{};
        for (int round = 0; queues && round < 200; round++)
            CHECK_OK(gcx_context_get_resource(context, GCX_RESOURCE_WORKQUEUE, &queue));
        gcx_context again = nullptr;
        CHECK_OK(gcx_context_create(&whole, 1, nullptr, &again));
        CHECK_OK(gcx_stream_destroy(stream));
        CHECK_OK(gcx_context_destroy(again));
    });
    CHECK_OK(gcx_context_destroy(context));
    CHECK_EQ(cache_stats().in_use, 0U);
}

// First uses of the kernel that all probes share happen at once.
void concurrent_first_probes_succeed() {
    const gcx_resource whole = whole_device();
    together([&](unsigned i) {
        gcx_resource atom = atom_of(whole, i % 15);
        CHECK_EQ(Partition(atom).probe().size(), 8U);
    });
}

// Some threads create a context that can't be created, others a different one.
void failed_creation_affects_its_callers_only() {
    const Split made = split(whole_device(), {24, 32, GCX_REST});
    for (uint64_t nth = 1; nth < 6; nth++) {
        sim::fail("cuGreenCtxCreate", nth, CUDA_ERROR_OUT_OF_MEMORY);
        std::atomic<int> failed{0};
        together([&](unsigned i) {
            gcx_context context = nullptr;
            if (gcx_context_create(&made.groups[i % 3], 1, nullptr, &context) == GCX_SUCCESS)
                CHECK_OK(gcx_context_destroy(context));
            else
                failed++;
        });
        sim::fail(nullptr, 0, CUDA_SUCCESS);
        CHECK(failed <= 1);
        CHECK_OK(gcx_cache_set_limit(0));
        CHECK_OK(gcx_cache_set_limit(64));
        CHECK_EQ(cache_stats().in_use + cache_stats().cached, 0U);
    }
}

// The requests are of 2 and 4 SMs in turn, so that each is separate, and one is the other way
// round.
std::vector<gcx_resource> structured_groups(std::size_t count, std::size_t turned) {
    std::vector<gcx_sm_request> requests(count);
    for (std::size_t k = 0; k < count; k++) {
        requests[k].sm_count = (k % 2 == 0) == (k != turned) ? 2 : 4;
        requests[k].coscheduled_sm_count = 2;
    }
    const gcx_resource whole = whole_device();
    std::vector<gcx_resource> groups(count);
    CHECK_OK(gcx_sm_split(&whole, requests.data(), static_cast<uint32_t>(count), 0, groups.data(),
                          nullptr, nullptr, nullptr));
    for (std::size_t k = 0; k < count; k++)
        CHECK_EQ(sms(groups[k]), requests[k].sm_count);
    return groups;
}

// Threads intern splits while others read them.
void concurrent_structured_splits_are_equal() {
    std::atomic<unsigned> splitting{kThreads / 2};
    together([&](unsigned i) {
        const std::vector<gcx_resource> groups = structured_groups(38, i);
        if (i % 2 == 0) {
            for (const std::size_t count : {1U, 39U, 40U, 41U, 42U, 43U})
                structured_groups(count, i);
            splitting--;
        }
        while (i % 2 != 0 && splitting != 0) {
            gcx_resource again = united(groups[i], groups[i]);
            CHECK_EQ(sms(again), sms(groups[i]));
        }
    });
}

struct Application {
    std::recursive_mutex lock; // private
    std::atomic<uint64_t> messages{0};
};

void log_under_the_lock(gcx_log_level, const char*, void* user_data) {
    auto& application = *static_cast<Application*>(user_data);
    const std::lock_guard lock(application.lock);
    application.messages++;
}

// Runs one round of a thread. Refusals are expected, and lost objects are found.
void use_everything(const Split& made, unsigned choice) {
    const gcx_resource& resource = made.groups[choice % made.groups.size()];
    gcx_context_params params = GCX_CONTEXT_PARAMS_INIT;
    params.flags = choice % 5 == 0 ? GCX_CONTEXT_PRIVATE : 0;
    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
    gcx_event event = nullptr;
    CHECK_OK(gcx_context_create(&resource, 1, &params, &context));
    CHECK_OK(gcx_stream_create(context, nullptr, &stream));
    CHECK_OK(gcx_event_create(0, 0, &event));
    CHECK_OK(gcx_stream_record(stream, event));
    CHECK_OK(gcx_context_wait(context, event));
    CHECK_OK(gcx_context_record(context, event));
    CHECK_OK(gcx_stream_wait(stream, event));
    CHECK_OK(gcx_event_synchronize(event));
    CHECK_OK(gcx_event_query(event));
    CHECK_OK(gcx_stream_synchronize(stream));
    CHECK_OK(gcx_context_synchronize(context));
    CHECK_OK(gcx_context_push(context));
    CHECK_OK(gcx_context_pop(nullptr));
    gcx_live_context live[64];
    uint32_t count = 0;
    CHECK_OK(gcx_context_list(-1, live, 64, &count));
    CHECK(count >= 1);
    CHECK(cache_stats().in_use >= 1);
    if (choice % 4 == 0) {
        uint32_t ids[GCX_MAX_SMS];
        CHECK_OK(gcx_stream_probe_sms(stream, ids, GCX_MAX_SMS, &count));
        CHECK_EQ(count, sms(resource));
    }
    if (choice % 7 == 0)
        CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
    if (choice % 3 == 0)
        CHECK_OK(gcx_cache_set_limit(choice % 6 == 0 ? 0 : 2));
    CHECK_EQ(gcx_device_get_count(nullptr), GCX_ERROR_INVALID_VALUE); // leaves a message
    CHECK_OK(gcx_event_destroy(event));
    CHECK_OK(gcx_context_destroy(context));
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_REFUSED(gcx_stream_query(stream), GCX_ERROR_INVALID_HANDLE);
}

// Every second round calls gcx under the application's lock, which every thread's callback takes.
void log_callback_that_takes_a_lock_does_not_deadlock() {
    Application application;
    CHECK_OK(gcx_log_set_callback(GCX_LOG_DEBUG, log_under_the_lock, &application));
    const Split made = split(whole_device(), {8, 16, 24});
    together([&](unsigned thread) {
        std::mt19937 random(thread);
        for (int round = 0; round < 25; round++) {
            std::unique_lock lock(application.lock, std::defer_lock);
            if (round % 2 == 0)
                lock.lock();
            use_everything(made, static_cast<unsigned>(random() % 1000));
            if (round % 8 == 1 && thread == 3)
                CHECK_OK(gcx_log_set_callback(GCX_LOG_INFO, log_under_the_lock, &application));
        }
    });
    CHECK(application.messages > kThreads);
    CHECK_OK(gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr));
    CHECK_OK(gcx_cache_set_limit(0));
    CHECK_EQ(cache_stats().in_use + cache_stats().cached, 0U);
    CHECK_EQ(sim::counts().streams, 0U);
}

} // namespace

int main() {
    for (const char* driver : {"12.4", "13.5"}) {
        const std::string h100 = std::string("h100@") + driver;
        for (const auto test :
             {concurrent_maps_cost_one_map, failed_map_is_repeated_by_the_next_caller,
              families_are_mapped_concurrently, concurrent_first_uses_succeed,
              concurrent_first_probes_succeed, failed_creation_affects_its_callers_only})
            on_machine(h100, test);
        if (version_of(driver) >= 13010)
            on_machine(h100, concurrent_structured_splits_are_equal);
        on_machine(h100, log_callback_that_takes_a_lock_does_not_deadlock);
    }
    return check::summary("threads");
}
