// Tests cached contexts, resets of the device, forks, threads and exits.

#include "calls.hpp"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

using namespace support;

namespace {

// The vectors test which ones are evicted.
void contexts_in_use_are_not_evicted() {
    const auto resources = sets({8, 16, 24, 32, 40, 48, 56, 64});
    CHECK_OK(gcx_cache_set_limit(1));
    const auto use = [&](std::size_t index) {
        const gcx_context context = make_context(resources[index]);
        const uint64_t id = id_of(context);
        CHECK_OK(gcx_context_destroy(context));
        return id;
    };
    const uint64_t first = use(0);
    use(1);
    CHECK(use(0) != first); // it was evicted, and an id is never reused
    CHECK_EQ(cache_stats().evicted, 2U);
    CHECK_EQ(cache_stats().limit, 1U);
    std::vector<gcx_context> contexts;
    for (const gcx_resource& resource : resources)
        contexts.push_back(make_context(resource));
    CHECK_OK(gcx_cache_set_limit(0));
    CHECK_EQ(cache_stats().in_use, resources.size());
    CHECK_EQ(cache_stats().cached, 0U);
    for (const gcx_context context : contexts) {
        CHECK_OK(gcx_context_synchronize(context));
        CHECK_OK(gcx_context_destroy(context));
    }
    CHECK_EQ(sim::counts().green_contexts, 0U);
    CHECK_EQ(sim::counts().primary_retains, 0U);
    CHECK_EQ(cache_stats().in_use + cache_stats().cached, 0U);
    CHECK_EQ(cache_stats().lost, 0U);
}

void check_dead(const Objects& dead) {
    refuse_calls(dead, kContext | kStream | kEvent, GCX_ERROR_CONTEXT_IS_DESTROYED, kDestroys);
}

// The driver allows the reset.
void reset_destroys_all_contexts() {
    const Split made = split(whole_device(), {24, 24, GCX_REST});
    const Objects live = Objects::make(24);
    const gcx_context cached = make_context(made.groups[1]);
    const uint64_t cached_id = id_of(cached);
    CHECK_OK(gcx_context_destroy(cached));
    CHECK_NATIVE(cuDevicePrimaryCtxReset, 0);
    check_dead(live);
    // Resources stay valid, and new contexts of them work next to the dead handles.
    const Objects fresh = Objects::make(24);
    CHECK(id_of(fresh.context) != 0);
    const gcx_context again = make_context(made.groups[1]);
    CHECK(id_of(again) != cached_id);
    CHECK_OK(gcx_stream_synchronize(fresh.stream));
    check_dead(live);
    uint32_t ids[GCX_MAX_SMS];
    uint32_t count = 0;
    CHECK_OK(gcx_stream_probe_sms(fresh.stream, ids, GCX_MAX_SMS, &count));
    CHECK_EQ(count, 24U);
    CHECK_EQ(cache_stats().lost, 2U);
    live.destroy();
    CHECK_OK(gcx_stream_synchronize(fresh.stream));
    fresh.destroy();
    CHECK_OK(gcx_context_destroy(again));
    // Resets twice without a call in between, and while a context is pushed.
    const Objects pushed = Objects::make(24);
    CHECK_OK(gcx_context_push(pushed.context));
    CHECK_NATIVE(cuDevicePrimaryCtxReset, 0);
    CHECK_NATIVE(cuDevicePrimaryCtxReset, 0);
    gcx_context popped = nullptr;
    CHECK_OK(gcx_context_pop(&popped));
    CHECK(popped == pushed.context);
    check_dead(pushed);
    pushed.destroy();
    CHECK_OK(gcx_cache_set_limit(0));
    CHECK_EQ(cache_stats().in_use + cache_stats().cached, 0U);
    CHECK_EQ(sim::counts().green_contexts, 0U);
    CHECK_EQ(sim::counts().streams, 0U);
    CHECK_EQ(sim::counts().events, 0U);
    CHECK_EQ(sim::counts().primary_retains, 0U);
}

// The driver refuses a reset while a green context is alive.
void reset_with_cached_contexts_is_refused() {
    const Split made = split(whole_device(), {24});
    {
        const Partition partition(made.groups[0]);
        CHECK_EQ(NATIVE(cuDevicePrimaryCtxReset)(0), CUDA_ERROR_NOT_PERMITTED);
        CHECK_EQ(partition.probe().size(), 24U);
    }
    CHECK_EQ(NATIVE(cuDevicePrimaryCtxReset)(0), CUDA_ERROR_NOT_PERMITTED);
    gcx_event event = make_event();
    CHECK_OK(gcx_cache_set_limit(0));
    CHECK_NATIVE(cuDevicePrimaryCtxReset, 0);
    CHECK_REFUSED(gcx_event_query(event), GCX_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_OK(gcx_event_destroy(event));
    CHECK_EQ(sim::counts().primary_retains, 0U);
    const Partition partition(made.groups[0]);
    CHECK_EQ(partition.probe().size(), 24U);
}

void calls_after_fork_are_refused() {
    const Objects live = Objects::make();
    gcx_driver_info driver = GCX_DRIVER_INFO_INIT;
    CHECK_OK(gcx_driver_get_info(&driver));
    gcx_resource config{};
    if (driver.capabilities[GCX_CAPABILITY_WORKQUEUES] != 0)
        CHECK_OK(gcx_device_get_resource(0, GCX_RESOURCE_WORKQUEUE_CONFIG, &config));
    check_child_of_fork([&] {
        refuse_calls(live, ~0U, GCX_ERROR_NOT_INITIALIZED);
        gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
        CHECK_REFUSED(gcx_resource_get_info(&config, &info), GCX_ERROR_NOT_INITIALIZED);
        // These need no driver and work.
        CHECK(gcx_version() == GCX_VERSION);
        CHECK(gcx_result_name(GCX_ERROR_UNKNOWN) != nullptr);
        CHECK(gcx_simulator_path() != nullptr);
        return check::failed == 0;
    });
    // The parent continues.
    CHECK_OK(gcx_stream_synchronize(live.stream));
    live.destroy();
}

// Forks while other threads are inside gcx.
void fork_during_calls_does_not_hang() {
    const Objects live = Objects::make(24);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++) {
        threads.emplace_back([&] {
            while (!stop)
                CHECK_OK(gcx_context_destroy(make_context(live.resource)));
        });
    }
    for (int round = 0; round < 5; round++) {
        check_child_of_fork([&] {
            gcx_driver_info info = GCX_DRIVER_INFO_INIT;
            return gcx_driver_get_info(&info) == GCX_ERROR_NOT_INITIALIZED &&
                   gcx_stream_synchronize(live.stream) == GCX_ERROR_NOT_INITIALIZED;
        });
    }
    stop = true;
    for (std::thread& thread : threads)
        thread.join();
    live.destroy();
}

// Threads that create the same context at once share one.
void threads_share_one_context() {
    const gcx_resource resource = split(whole_device(), {40}).groups[0];
    std::vector<gcx_context> made(16);
    in_threads(16, [&](unsigned i) { made[i] = make_context(resource); });
    CHECK_EQ(sim::counts().green_contexts, 1U);
    CHECK_EQ(cache_stats().misses, 1U);
    for (gcx_context context : made)
        CHECK_OK(gcx_context_destroy(context));
}

void message_is_per_thread() {
    gcx_resource out{};
    CHECK_REFUSED(gcx_device_get_resource(77, GCX_RESOURCE_SM, &out), GCX_ERROR_INVALID_DEVICE);
    std::thread([] {
        CHECK_EQ(std::string(gcx_last_error_message()), std::string());
        int32_t count = 0;
        CHECK_OK(gcx_device_get_count(&count));
        CHECK_REFUSED(gcx_device_get_count(nullptr), GCX_ERROR_INVALID_VALUE);
        CHECK(message_has("gcx_device_get_count"));
    }).join();
    CHECK(message_has("77"));
    CHECK_OK(gcx_device_get_resource(0, GCX_RESOURCE_SM, &out));
    CHECK(message_has("77")); // success leaves it unchanged
}

// A thread that exits with contexts pushed releases them.
void thread_exit_releases_pushed_contexts() {
    const gcx_resource resource = split(whole_device(), {24}).groups[0];
    const gcx_context context = make_context(resource);
    std::thread([&] {
        CHECK_OK(gcx_context_push(context));
        CHECK_OK(gcx_context_push(context));
    }).join();
    CHECK_OK(gcx_context_synchronize(context));
    {
        const Partition partition(resource);
        CHECK_EQ(partition.probe().size(), 24U);
    }
    CHECK_EQ(cache_stats().in_use, 1U);
    CHECK_OK(gcx_context_destroy(context));
    CHECK_EQ(cache_stats().in_use, 0U);
    // The handle may be destroyed before the thread ends; then the thread's reference is the last.
    CHECK_OK(gcx_cache_set_limit(0));
    const gcx_context other = make_context(resource);
    std::atomic<int> step{0};
    std::thread holder([&] {
        CHECK_OK(gcx_context_push(other));
        step = 1;
        while (step != 2)
            std::this_thread::yield();
    });
    while (step != 1)
        std::this_thread::yield();
    CHECK_OK(gcx_context_destroy(other));
    CHECK_EQ(sim::counts().green_contexts, 1U);
    step = 2;
    holder.join();
    CHECK_EQ(sim::counts().green_contexts, 0U);
    gcx_context current = nullptr;
    CHECK_OK(gcx_context_get_current(&current));
    CHECK(current == nullptr);
}

// Thread-local destructors may run after the one that releases the pushed contexts.
void pop_after_thread_exit_is_safe() {
    static std::string said;
    const gcx_context context = make_context(split(whole_device(), {24}).groups[0]);
    // The first push creates gcx's key, so that this destructor runs after gcx's.
    CHECK_OK(gcx_context_push(context));
    CHECK_OK(gcx_context_pop(nullptr));
    pthread_key_t key{};
    CHECK_EQ(pthread_key_create(&key,
                                [](void*) {
                                    said = gcx_context_pop(nullptr) == GCX_SUCCESS
                                               ? "popped"
                                               : gcx_last_error_message();
                                }),
             0);
    std::thread([&] {
        CHECK_OK(gcx_context_push(context));
        CHECK_EQ(pthread_setspecific(key, &key), 0);
    }).join();
    CHECK_EQ(pthread_key_delete(key), 0);
    CHECK(said.find("is ending") != std::string::npos);
    CHECK_OK(gcx_context_destroy(context));
}

std::vector<std::string> heard;

void hear(gcx_log_level level, const char* message, void*) {
    heard.push_back(std::to_string(level) + " " + message);
}

bool has_heard(gcx_log_level level, const std::string& text) {
    return std::any_of(heard.begin(), heard.end(), [&](const std::string& line) {
        return line[0] == static_cast<char>('0' + level) && line.find(text) != line.npos;
    });
}

void log_goes_to_the_callback() {
    in_child("log", [] {
        CHECK_OK(gcx_log_set_callback(GCX_LOG_DEBUG, hear, nullptr));
        CHECK_OK(gcx_driver_open("sim:h100@12.4"));
        CHECK(has_heard(GCX_LOG_INFO, "12.4"));
        const gcx_resource resource = split(whole_device(), {24}).groups[0];
        CHECK_OK(gcx_context_destroy(make_context(resource)));
        CHECK(has_heard(GCX_LOG_INFO, "24 SMs"));
        CHECK_EQ(gcx_device_get_count(nullptr), GCX_ERROR_INVALID_VALUE);
        CHECK(has_heard(GCX_LOG_DEBUG, "gcx_device_get_count"));
        CHECK_OK(gcx_log_set_callback(GCX_LOG_WARNING, hear, nullptr));
        heard.clear();
        CHECK_EQ(gcx_device_get_count(nullptr), GCX_ERROR_INVALID_VALUE);
        CHECK(heard.empty());
        // A context that can't be destroyed stays cached, and that is logged.
        CHECK_OK(gcx_cache_set_limit(0));
        const gcx_context unlucky = make_context(resource);
        sim::fail("cuGreenCtxDestroy", 1, CUDA_ERROR_UNKNOWN);
        CHECK_OK(gcx_context_destroy(unlucky));
        CHECK(has_heard(GCX_LOG_WARNING, "cuGreenCtxDestroy"));
        CHECK_EQ(cache_stats().cached, 1U);
        CHECK_OK(gcx_cache_set_limit(0));
        CHECK_EQ(cache_stats().cached, 0U);
    });
}

// Returns what a child prints to standard error.
std::string errors_of(const std::function<void()>& body) {
    int ends[2];
    if (pipe(ends) != 0)
        return "no pipe";
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        alarm(30);
        body();
        std::exit(0);
    }
    close(ends[1]);
    std::string text;
    char buffer[512];
    for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
        text.append(buffer, static_cast<std::size_t>(got));
    close(ends[0]);
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return text;
}

void exit_with_live_objects_is_silent() {
    CHECK_EQ(errors_of([] {
                 gcx_driver_open("sim:h100@13.0");
                 // The objects are static, so that they exist when the process exits.
                 static const Objects live = Objects::make(24);
                 gcx_context_push(live.context);
                 gcx_context_pop(nullptr);
             }),
             std::string());
    CHECK_EQ(errors_of([] {
                 gcx_driver_open("sim:h100@13.0");
                 const Partition cached(split(whole_device(), {24}).groups[0]);
             }),
             std::string());
    // The library prints only if a log level is set.
    const std::string requested = errors_of([] {
        setenv("GCX_LOG", "info", 1);
        gcx_driver_open("sim:h100@13.0");
    });
    CHECK(requested.find("SIMULATED") != std::string::npos);
    const std::string wrong = errors_of([] {
        setenv("GCX_LOG", "loud", 1);
        gcx_driver_open("sim:h100@13.0");
    });
    CHECK(wrong.find("GCX_LOG=loud") != std::string::npos);
}

} // namespace

int main() {
    for (const char* driver : drivers()) {
        const std::string h100 = std::string("h100@") + driver;
        // Drivers from 13.0 on refuse a reset while a green context is alive, as on an H200.
        on_machine(h100, version_of(driver) >= 13000 ? reset_with_cached_contexts_is_refused
                                                     : reset_destroys_all_contexts);
        for (const auto test :
             {contexts_in_use_are_not_evicted, calls_after_fork_are_refused,
              fork_during_calls_does_not_hang, threads_share_one_context, message_is_per_thread,
              thread_exit_releases_pushed_contexts, pop_after_thread_exit_is_safe})
            on_machine(h100, test);
    }
    log_goes_to_the_callback();
    exit_with_live_objects_is_silent();
    return support::summary("lifetime");
}
