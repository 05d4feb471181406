// Calls every part of gcx from many threads at once, with a log callback that takes a lock under
// which the threads call gcx. The thread sanitizer finds missing locks here.

#include "calls.hpp"

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

// Calls find contexts by their SMs, native context or workqueue while other threads create and
// destroy contexts and change the limit.
void cache_is_searched_while_contexts_come_and_go() {
    const std::vector<gcx_resource> groups = split(whole_device(), {8, 16, 24, 32}).groups;
    const Partition lasting(groups[0]);
    CUstream_st* const native = gcx_stream_native(lasting.stream);
    gcx_resource queue{};
    const bool queues =
        gcx_context_get_resource(lasting.context, GCX_RESOURCE_WORKQUEUE, &queue) == GCX_SUCCESS;
    const auto create_and_destroy = [](std::vector<gcx_resource> resources) {
        gcx_context context = nullptr;
        CHECK_OK(gcx_context_create(resources.data(), static_cast<uint32_t>(resources.size()),
                                    nullptr, &context));
        CHECK_OK(gcx_context_destroy(context));
    };
    together([&](unsigned i) {
        for (uint32_t round = 0; round < 300; round++) {
            gcx_stream stream = nullptr;
            gcx_resource its_queue{};
            switch (i % 5) {
            case 0:
                create_and_destroy({groups[1]});
                break;
            case 1:
                CHECK_OK(gcx_stream_from_native(native, &stream));
                CHECK_OK(gcx_stream_destroy(stream));
                break;
            case 2:
                if (queues)
                    create_and_destroy({groups[2], queue});
                break;
            case 3: {
                const gcx_result prepared = gcx_cache_prepare(&groups[3], 1, nullptr);
                CHECK(prepared == GCX_SUCCESS || prepared == GCX_ERROR_CACHE_LIMIT_EXCEEDED);
                break;
            }
            default:
                CHECK_OK(gcx_cache_set_limit(round % 2));
                if (queues)
                    CHECK_OK(gcx_context_get_resource(lasting.context, GCX_RESOURCE_WORKQUEUE,
                                                      &its_queue));
            }
        }
    });
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

// An application's lock, which its log callback takes and under which threads call gcx.
std::recursive_mutex application_lock;
std::atomic<uint64_t> messages{0};

void log_under_the_lock(gcx_log_level, const char*, void*) {
    const std::lock_guard lock(application_lock);
    messages++;
}

// Threads call everything with the same few objects, which are created and destroyed concurrently.
// A stale handle is an error, and nothing else is.
void shared_objects_and_a_locking_log_callback_are_safe() {
    constexpr int kRounds = 400;
    constexpr std::size_t kSlots = 3;
    const Split made = split(whole_device(), {8, 16, 24});
    std::atomic<gcx_context> contexts[kSlots] = {};
    std::atomic<gcx_stream> streams[kSlots] = {};
    std::atomic<gcx_event> events[kSlots] = {};
    std::atomic<int> succeeded{0};
    CHECK_OK(gcx_log_set_callback(GCX_LOG_DEBUG, log_under_the_lock, nullptr));
    const auto expect = [&](gcx_result result) {
        succeeded += result == GCX_SUCCESS ? 1 : 0;
        CHECK(result == GCX_SUCCESS || result == GCX_ERROR_INVALID_HANDLE ||
              result == GCX_ERROR_NOT_READY);
    };
    const auto replace = [&](auto& slot, auto destroy, const auto& create) {
        auto handle = slot.load();
        handle = nullptr;
        expect(create(&handle));
        if (handle == nullptr)
            return;
        if (const auto old = slot.exchange(handle); old != nullptr)
            expect(destroy(old));
    };
    together([&](unsigned thread) {
        std::mt19937 random(thread);
        for (int round = 0; round < kRounds; round++) {
            const std::size_t slot = random() % kSlots;
            const Objects objects{made.groups[slot], made.remainder, contexts[slot],
                                  streams[slot],     events[slot],   events[slot]};
            std::unique_lock lock(application_lock, std::defer_lock);
            if (round % 2 == 0)
                lock.lock();
            switch (random() % 16) {
            case 0:
                replace(contexts[slot], gcx_context_destroy, [&](gcx_context* context) {
                    gcx_context_params params = GCX_CONTEXT_PARAMS_INIT;
                    params.flags = round % 5 == 0 ? GCX_CONTEXT_PRIVATE : 0;
                    return gcx_context_create(&objects.resource, 1, &params, context);
                });
                break;
            case 1:
            case 2:
                replace(streams[slot], gcx_stream_destroy, [&](gcx_stream* stream) {
                    return gcx_stream_create(objects.context, nullptr, stream);
                });
                break;
            case 3:
                replace(events[slot], gcx_event_destroy,
                        [](gcx_event* event) { return gcx_event_create(0, 0, event); });
                break;
            case 4:
                if (gcx_context_push(objects.context) == GCX_SUCCESS)
                    expect(gcx_context_pop(nullptr));
                break;
            case 5:
                expect(gcx_cache_set_limit(static_cast<uint32_t>(random() % 3)));
                expect(gcx_cache_trim(static_cast<uint32_t>(random() % 3), nullptr));
                break;
            case 6:
                // This waits for callbacks, which wait for the lock.
                if (!lock.owns_lock())
                    CHECK_OK(gcx_log_set_callback(GCX_LOG_DEBUG, log_under_the_lock, nullptr));
                break;
            default:
                const Call& call = all_calls()[random() % all_calls().size()];
                Outputs out;
                const gcx_result result =
                    (call.uses & kEffects) == 0 ? call.run(objects, out) : GCX_SUCCESS;
                if ((call.uses & kNative) == 0)
                    expect(result);
            }
        }
    });
    CHECK(messages > kThreads);
    CHECK(succeeded > static_cast<int>(kThreads) * kRounds / 2);
    CHECK_OK(gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr));
    for (std::size_t slot = 0; slot < kSlots; slot++) {
        CHECK_OK(gcx_stream_destroy(streams[slot]));
        CHECK_OK(gcx_event_destroy(events[slot]));
        CHECK_OK(gcx_context_destroy(contexts[slot]));
    }
    trim(0);
    CHECK_EQ(sim::counts().green_contexts, 0U);
    CHECK_EQ(sim::counts().streams, 0U);
    CHECK_EQ(cache_stats().in_use + cache_stats().cached, 0U);
    CHECK_EQ(cache_stats().misses, cache_stats().evicted);
}

} // namespace

int main() {
    for (const char* driver : {"12.4", "13.5"}) {
        const std::string h100 = std::string("h100@") + driver;
        for (const auto test :
             {concurrent_maps_cost_one_map, failed_map_is_repeated_by_the_next_caller,
              families_are_mapped_concurrently, concurrent_first_uses_succeed,
              concurrent_first_probes_succeed, failed_creation_affects_its_callers_only,
              cache_is_searched_while_contexts_come_and_go})
            on_machine(h100, test);
        if (version_of(driver) >= 13010)
            on_machine(h100, concurrent_structured_splits_are_equal);
        on_machine(h100, shared_objects_and_a_locking_log_callback_are_safe);
    }
    return check::summary("threads");
}
