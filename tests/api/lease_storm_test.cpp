// Runs random operations on leases, streams, events, graphs and the cache in four threads, and
// checks them against the contract of gcx.h. Each thread has a private device, where it knows the
// state exactly although other threads call functions on its leases. All threads share device 0.
//
//   api-lease_storm MODE DRIVER_WRAPPER
//     MODE is storm: four threads
//             signals: the same, while signals interrupt the threads
//             history: one thread; each step depends on its number only
//   GCX_LEASE_STORM=SECONDS[:SEED]   length and first seed; 2 seconds and a random seed by default.
//                                    0:SEED repeats one seed.
#include "driver_wrapper.hpp"
#include "publish.hpp"
#include "work.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

using namespace support;

namespace {

using Clock = std::chrono::steady_clock;

// --------------------------------------------------------------------------------------------
// What to run
// --------------------------------------------------------------------------------------------

enum class Mode { storm, signals, history };

struct Options {
    Mode mode = Mode::storm;
    const char* driver = nullptr; // the path of driver_wrapper.cpp's library
    double seconds = 2;
    unsigned seed = 0;
    bool one_seed = false;
};

constexpr unsigned kThreads = 4;
constexpr unsigned kSteps = 120; // of a history

Options options_of(int count, char** arguments) {
    Options options;
    CHECK_EQ(count, 3);
    const std::string mode = arguments[1];
    options.driver = arguments[2];
    options.mode =
        mode == "history" ? Mode::history : (mode == "signals" ? Mode::signals : Mode::storm);
    options.seed = std::random_device{}() % 1'000'000'000;
    if (const char* const text = std::getenv("GCX_LEASE_STORM")) {
        const int read = std::sscanf(text, "%lf:%u", &options.seconds, &options.seed);
        CHECK(read >= 1);
        options.one_seed = read == 2 && options.seconds == 0;
    }
    return options;
}

driver_wrapper::ThreadFunction* driver_thread_function = nullptr;

driver_wrapper::Thread& driver_thread() {
    return *driver_thread_function();
}

// A simulated kernel is identified by its length, which is its tag plus a multiple of kTagUnit.
// kMostCalls is per lease and change. lease_cost_test.cpp has the bound for repeated changes; here
// events are created, and several streams have unfinished work.
constexpr uint64_t kMostCalls = 40;
// Applies to a stream that enters a context for the first time: gcx queries up to 32 streams that
// the context caches.
constexpr uint64_t kMostToFollow = 128;
constexpr uint32_t kTags = 1U << 20;
constexpr uint64_t kTagUnit = kTags;

struct Launch {
    int32_t device = 0;
    uint64_t owner = 0; // the lease's serial number; 0: no lease
    bool shared = false;
};

// A lease and its objects. Handles are never reused, so a thread that has a bundle can call with
// them after another thread has released the lease.
struct Bundle {
    int32_t device = 0;
    gcx_lease lease = nullptr;
    uint64_t serial = 0;
    bool shared = false;
    std::mutex submit; // locked to submit work natively and to change the lease
    std::array<std::atomic<gcx_stream>, 3> streams{};
    std::array<uint32_t, 3> last{}; // the last native launch's tag
    std::array<bool, 3> used{};
    bool graph_launched = false; // its end is not tracked
    bool ended = false;          // its parts are destroyed, and no new ones are added
    std::atomic<gcx_graph> graph{nullptr};
    // The model's state, for a thread's private device.
    gcx_resource set{};
};
using BundlePointer = std::shared_ptr<Bundle>;

class Storm;

struct Worker {
    Worker(Storm& its_storm, unsigned its_number, unsigned seed)
        : storm(its_storm), number(its_number), random(seed) {}

    Storm& storm;
    const unsigned number;
    Random random;
    int32_t device = 0; // used by this thread only
    std::vector<BundlePointer> own;
    gcx_cancel cancel = nullptr;
    std::vector<std::pair<uint32_t, uint32_t>> order; // tags: the first ends before the second
    CUstream plain = nullptr;
    bool injected = false; // the last call had a failing driver call
    uint64_t calls = 0;    // driver calls of the last call
    uint64_t contexts_created = 0;
    uint64_t evictions = 0;
    // Read by watch().
    std::atomic<const char*> operation{"nothing"};
    std::atomic<const char*> function{"nothing"};
    std::atomic<int64_t> since{0};
    std::atomic<uint64_t> operations{0};
    std::atomic<bool> runs{false};
    pthread_t native{};
    unsigned step = 0;

    template <class Function>
    gcx_result call(const char* name, std::initializer_list<gcx_result> allowed,
                    const Function& function_to_call);
    bool complain(const char* format, ...) __attribute__((format(printf, 2, 3)));
};

// The type that %llu prints.
unsigned long long llu(uint64_t value) {
    return value;
}

// Calls a function that may fail with the given results.
#define CALL(function, arguments, ...)                                                             \
    worker.call(#function, {__VA_ARGS__}, [&] { return function arguments; })
#define DESTROY(function, ...) destroy(worker, #function, function, __VA_ARGS__)
// A handle that another thread may have destroyed gives these errors.
#define STALE GCX_ERROR_INVALID_HANDLE, GCX_ERROR_CONTEXT_IS_DESTROYED, GCX_ERROR_LEASE_PARKED

int64_t milliseconds_now() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch())
        .count();
}

class Storm {
  public:
    Storm(const Options& its_options, unsigned its_seed, std::string its_spec)
        : options(its_options), seed(its_seed), spec(std::move(its_spec)) {}

    const Options& options;
    const unsigned seed;
    const std::string spec;
    int32_t devices = 0;
    int driver = 0;
    bool alone = false;  // a history
    bool faulty = false; // driver calls fail, until the end
    bool was_faulty = false;
    bool resets = false; // threads reset their private devices
    std::vector<std::unique_ptr<Worker>> workers;

    std::vector<std::unique_ptr<Work>> work; // of each device
    std::vector<Launch> launches = std::vector<Launch>(kTags);
    std::atomic<uint32_t> next_tag{1};
    std::atomic<uint64_t> next_serial{1};

    // All threads use these.
    std::mutex mutex;
    std::array<BundlePointer, 8> common;
    std::array<BundlePointer, 8> published; // leases of threads' private devices, two each
    std::array<gcx_graph, 3> graphs{};      // with parts
    std::array<gcx_event, 4> events{};
    std::array<gcx_cancel, 3> cancels{};
    gcx_cancel stop = nullptr; // signalled at the end
    std::atomic<bool> over{false};
    std::atomic<uint64_t> operations{0};
    std::atomic<uint64_t> granted{0};
    std::atomic<uint64_t> changed{0};

    bool exact() const { return driver < 13010; }

    uint32_t new_tag(int32_t device, const Bundle* owner) {
        const uint32_t tag = 1 + next_tag++ % (kTags - 1);
        launches[tag] = {device, owner == nullptr ? 0 : owner->serial,
                         owner != nullptr && owner->shared};
        return tag;
    }
    template <class Handle, std::size_t size>
    Handle some(Random& random, const std::array<Handle, size>& of) {
        const std::lock_guard lock(mutex);
        return of[random.below(size)];
    }
    template <class Handle, std::size_t size>
    Handle put(Random& random, std::array<Handle, size>& into, Handle what) {
        const std::lock_guard lock(mutex);
        return std::exchange(into[random.below(size)], std::move(what));
    }
};

bool Worker::complain(const char* format, ...) {
    char text[1500];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char where[300];
    std::snprintf(where, sizeof where, "seed %u on %s%s, thread %u, step %u, %s: ", storm.seed,
                  storm.spec.c_str(), storm.was_faulty ? ", driver calls fail" : "", number, step,
                  operation.load());
    return check::count(false, "lease storm", 0, where + std::string(text));
}

template <class Function>
gcx_result Worker::call(const char* name, std::initializer_list<gcx_result> allowed,
                        const Function& function_to_call) {
    driver_wrapper::Thread& driver = driver_thread();
    driver.calls = driver.contexts_created = driver.evictions = 0;
    driver.failed = nullptr;
    const CUresult failures[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE,
                                 CUDA_ERROR_LAUNCH_FAILED};
    driver.failure = failures[random.below(3)];
    driver.fail_at = storm.faulty && random.one_in(12) ? 1 + random.below(14) : 0;
    function = name;
    since = milliseconds_now();
    const gcx_result result = function_to_call();
    driver.fail_at = 0;
    injected = driver.failed != nullptr;
    calls = driver.calls;
    contexts_created = driver.contexts_created;
    evictions = driver.evictions;
    if (result == GCX_SUCCESS) {
        check::passed++;
        return result;
    }
    const bool is_allowed = std::find(allowed.begin(), allowed.end(), result) != allowed.end() ||
                            (injected && result != GCX_ERROR_UNKNOWN);
    if (!is_allowed)
        complain("%s returned %s%s%s", name, gcx_result_name(result),
                 injected ? " after a failing " : "", injected ? driver.failed : "");
    else if (result != GCX_ERROR_NOT_READY && *gcx_last_error_message() == '\0')
        complain("%s returned %s without a message", name, gcx_result_name(result));
    else
        check::passed++;
    return result;
}

// Destroys a handle, and retries as long as driver calls fail.
template <class Handle>
void destroy(Worker& worker, const char* name, gcx_result (*function)(Handle), Handle handle,
             bool may_be_stale = false) {
    if (handle == nullptr)
        return;
    for (int attempt = 0; attempt < 5; attempt++) {
        const gcx_result result =
            worker.call(name, {GCX_ERROR_INVALID_HANDLE}, [&] { return function(handle); });
        const bool gone = result == GCX_ERROR_INVALID_HANDLE && (may_be_stale || attempt != 0);
        if (result == GCX_SUCCESS || gone)
            return;
        if (!worker.injected) {
            worker.complain("%s returned %s", name, gcx_result_name(result));
            return;
        }
    }
}

// --------------------------------------------------------------------------------------------
// Work
// --------------------------------------------------------------------------------------------

CUstream plain_stream(Storm& storm, int32_t device) {
    CUstream stream = nullptr;
    const Current current(storm.work[static_cast<std::size_t>(device)]->primary());
    CHECK_NATIVE(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    return stream;
}

void spin(Storm& storm, int32_t device, CUstream stream, uint64_t nanoseconds) {
    storm.work[static_cast<std::size_t>(device)]->spin(stream, nanoseconds);
}

// Most kernels are shorter than the host's work between them, some are much longer, a few are
// persistent.
uint64_t some_length(Random& random) {
    const uint32_t choice = random.below(40);
    if (choice == 0)
        return 1'000'000'000; // times kTagUnit: 12 days
    return choice < 6 ? 50 + random.below(1000) : random.below(3);
}

uint32_t tag_of(const gcx_sim_run& run) {
    return static_cast<uint32_t>((run.end_ns - run.begin_ns) % kTagUnit);
}

// Launches a kernel in a stream of a lease. Returns its tag, or 0 if the stream has ended.
uint32_t launch(Worker& worker, Bundle& bundle, std::size_t index, uint64_t length) {
    const std::lock_guard lock(bundle.submit);
    gcx_stream stream = bundle.streams[index];
    if (stream == nullptr)
        return 0;
    CUstream native = nullptr;
    worker.call("gcx_stream_native", {STALE}, [&] {
        native = gcx_stream_native(stream);
        return native != nullptr ? GCX_SUCCESS : GCX_ERROR_INVALID_HANDLE;
    });
    bundle.used[index] = true;
    if (native == nullptr)
        return 0;
    const uint32_t tag = worker.storm.new_tag(bundle.device, &bundle);
    spin(worker.storm, bundle.device, native, tag + length * kTagUnit);
    if (bundle.last[index] != 0)
        worker.order.emplace_back(bundle.last[index], tag);
    bundle.last[index] = tag;
    return tag;
}

// Checks that no two leases' kernels were on one SM at one time, unless both are shared, and that
// work ran in the order of streams and events.
void check_runs(Storm& storm) {
    struct Open {
        uint64_t end;
        uint32_t tag;
        const gcx_sim_run* run;
    };
    std::vector<gcx_sim_run> runs = sim::runs();
    std::erase_if(runs, [](const auto& run) { return run.kind != GCX_SIM_RUN_KERNEL; });
    std::sort(runs.begin(), runs.end(),
              [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
    std::map<int32_t, std::vector<Open>> open;
    std::map<uint32_t, std::pair<uint64_t, uint64_t>> times; // of native launches, by tag
    int complaints = 0;
    Worker& worker = *storm.workers[0];
    worker.operation = "the order of the kernels";
    for (const gcx_sim_run& run : runs) {
        const uint32_t tag = tag_of(run);
        const Launch& its = storm.launches[tag];
        if (run.launch == 0)
            times[tag] = {run.begin_ns, run.end_ns};
        if (tag == 0 || its.owner == 0)
            continue;
        const Open now{run.end_ns, tag, &run};
        auto& here = open[its.device];
        std::erase_if(here, [&](const Open& other) { return other.end <= run.begin_ns; });
        for (const Open& other : here) {
            if (other.run->stream == run.stream && complaints++ < 3)
                worker.complain("kernels %u and %u of one stream overlap", tag, other.tag);
            const Launch& earlier = storm.launches[other.tag];
            if (earlier.owner == its.owner || (earlier.shared && its.shared) ||
                !share_sms(*other.run, run) || complaints++ >= 3)
                continue;
            worker.complain("kernel %u of lease %llu runs from %llu to %llu on SMs of device %d "
                            "where kernel %u of lease %llu runs from %llu to %llu%s",
                            tag, llu(its.owner), llu(run.begin_ns), llu(run.end_ns), its.device,
                            other.tag, llu(earlier.owner), llu(other.run->begin_ns), llu(other.end),
                            run.launch != 0 ? " (a graph)" : "");
        }
        here.push_back(now);
    }
    for (const auto& each : storm.workers) {
        for (const auto& [first, second] : each->order) {
            const auto a = times.find(first);
            const auto b = times.find(second);
            if (a == times.end() || b == times.end() || b->second.first >= a->second.second ||
                complaints++ >= 3)
                continue;
            worker.complain("kernel %u of lease %llu begins at %llu, before kernel %u of lease "
                            "%llu, which is before it in its stream or by an event, ends at %llu "
                            "(thread %u)",
                            second, llu(storm.launches[second].owner), llu(b->second.first), first,
                            llu(storm.launches[first].owner), llu(a->second.second), each->number);
        }
    }
}

// --------------------------------------------------------------------------------------------
// Leases of any device
// --------------------------------------------------------------------------------------------

// Captures kernels with these tags, one after the other.
CUgraph captured_graph(Worker& worker, int32_t device, const std::vector<uint64_t>& lengths) {
    CUgraph graph = nullptr;
    CUstream stream = worker.plain;
    if (device != worker.device)
        stream = plain_stream(worker.storm, device);
    CHECK_NATIVE(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    for (const uint64_t length : lengths)
        spin(worker.storm, device, stream, length);
    CHECK_NATIVE(cuStreamEndCapture, stream, &graph);
    if (stream != worker.plain)
        CHECK_NATIVE(cuStreamDestroy, stream);
    return graph;
}

gcx_graph make_graph(Worker& worker, int32_t device, const std::vector<uint64_t>& lengths) {
    CUgraph captured = captured_graph(worker, device, lengths);
    gcx_graph_params params = GCX_GRAPH_PARAMS_INIT;
    params.max_executables = 1 + worker.random.below(3);
    gcx_graph graph = nullptr;
    CALL(gcx_graph_create, (captured, &params, &graph));
    CHECK_NATIVE(cuGraphDestroy, captured);
    return graph;
}

BundlePointer bundle_of(Worker& worker, int32_t device, gcx_lease lease,
                        const gcx_lease_params& params) {
    auto bundle = std::make_shared<Bundle>();
    bundle->device = device;
    bundle->lease = lease;
    bundle->serial = worker.storm.next_serial++;
    bundle->shared = (params.flags & GCX_LEASE_SHARED) != 0;
    for (std::size_t i = 0; i < 1 + worker.random.below(2); i++) {
        gcx_stream stream = nullptr;
        CALL(gcx_lease_stream_create, (lease, nullptr, &stream));
        bundle->streams[i] = stream;
    }
    return bundle;
}

// Destroys the lease's streams and graph, before or after the lease itself.
void destroy_parts(Worker& worker, Bundle& bundle) {
    for (auto& stream : bundle.streams) {
        const std::lock_guard lock(bundle.submit);
        DESTROY(gcx_stream_destroy, stream.exchange(nullptr));
    }
    DESTROY(gcx_graph_destroy, bundle.graph.exchange(nullptr));
}

void release(Worker& worker, Bundle& bundle) {
    const std::lock_guard lock(bundle.submit);
    DESTROY(gcx_lease_release, bundle.lease);
}

struct SubmitLocks {
    explicit SubmitLocks(std::vector<BundlePointer> bundles) : bundles_(std::move(bundles)) {
        std::sort(bundles_.begin(), bundles_.end());
        bundles_.erase(std::unique(bundles_.begin(), bundles_.end()), bundles_.end());
        for (const BundlePointer& bundle : bundles_)
            bundle->submit.lock();
    }
    ~SubmitLocks() {
        for (const BundlePointer& bundle : bundles_)
            bundle->submit.unlock();
    }
    SubmitLocks(const SubmitLocks&) = delete;
    SubmitLocks& operator=(const SubmitLocks&) = delete;

  private:
    std::vector<BundlePointer> bundles_;
};

// Checks that no two leases have an SM in common, unless both are shared.
void check_list(Worker& worker, int32_t device) {
    std::vector<gcx_live_lease> live(96);
    uint32_t count = 0;
    if (CALL(gcx_lease_list, (device, live.data(), 96, &count)) != GCX_SUCCESS)
        return;
    for (uint32_t i = 0; i < count; i++) {
        gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
        if (live[i].waits == 0 && (gcx_resource_get_info(&live[i].resource, &info) != GCX_SUCCESS ||
                                   info.sm_count != live[i].sm_count))
            worker.complain("lease %llu has %u SMs by the list, and %u by its resource",
                            llu(live[i].id), live[i].sm_count, info.sm_count);
        for (uint32_t j = 0; j < i; j++) {
            if (live[i].device != live[j].device || live[i].waits != 0 || live[j].waits != 0 ||
                (live[i].flags & live[j].flags & GCX_LEASE_SHARED) != 0)
                continue;
            uint32_t common = 0;
            if (gcx_resource_get_overlap(&live[i].resource, &live[j].resource, &common) ==
                    GCX_SUCCESS &&
                common != 0)
                worker.complain("leases %llu and %llu have %u SMs in common", llu(live[i].id),
                                llu(live[j].id), common);
        }
    }
}

uint32_t some_count(Random& random) {
    switch (random.below(8)) {
    case 0:
        return GCX_REST;
    case 1:
        return 1 + random.below(140);
    default:
        return 8 * (1 + random.below(8));
    }
}

// --------------------------------------------------------------------------------------------
// A thread's private device: no other thread acquires, changes or releases there
// --------------------------------------------------------------------------------------------

gcx_resource free_of(Worker& worker) {
    gcx_resource free{};
    gcx_device_get_resource(worker.device, GCX_RESOURCE_SM, &free);
    for (const BundlePointer& bundle : worker.own)
        gcx_resource_subtract(&free, &bundle->set, &free);
    return free;
}

uint32_t count_of(const gcx_resource& resource) {
    gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
    return gcx_resource_get_info(&resource, &info) == GCX_SUCCESS ? info.sm_count : 0;
}

// Returns the counts that a split of the resource has for these requests, or an empty list if it
// fails.
std::vector<uint32_t> planned(const gcx_resource& from, const std::vector<uint32_t>& counts) {
    std::vector<uint32_t> result(counts.size());
    const std::vector<gcx_sm_request> requests = requests_for(counts);
    if (count_of(from) == 0 ||
        gcx_sm_split(&from, requests.data(), static_cast<uint32_t>(counts.size()), 0, nullptr,
                     nullptr, result.data(), nullptr) != GCX_SUCCESS)
        return {};
    return result;
}

void read_set(Worker& worker, Bundle& bundle) {
    if (gcx_lease_get_resource(bundle.lease, &bundle.set) != GCX_SUCCESS)
        worker.complain("a lease of this thread can't be read");
}

// Checks that each lease has the SMs of the model.
void check_own(Worker& worker) {
    for (const BundlePointer& bundle : worker.own) {
        gcx_resource now{};
        if (gcx_lease_get_resource(bundle->lease, &now) != GCX_SUCCESS ||
            std::memcmp(&now, &bundle->set, sizeof now) != 0)
            worker.complain("lease %llu has %u SMs, not those %u that it had", llu(bundle->serial),
                            count_of(now), count_of(bundle->set));
    }
    check_list(worker, worker.device);
}

void check_waited(Worker& worker, Clock::time_point begin, uint32_t timeout) {
    const double waited = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    if (!worker.injected && (waited < timeout || waited > timeout + (check::slow ? 8000 : 4000)))
        worker.complain("waited %.0f ms of a timeout of %u ms", waited, timeout);
}

BundlePointer own_acquire_of(Worker& worker, uint32_t count, uint32_t minimum, uint32_t flags,
                             uint32_t timeout) {
    const gcx_resource free = free_of(worker);
    const std::vector<uint32_t> plan = planned(free, {count});
    gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
    params.flags = flags;
    params.min_sm_count = minimum;
    params.timeout_ms = timeout;
    params.name = worker.random.one_in(2) ? "own" : nullptr;
    if ((flags & GCX_LEASE_SHARED) != 0 && worker.random.one_in(3))
        params.exclusive_sm_count = count == GCX_REST ? 8 : count / 2;
    gcx_lease lease = nullptr;
    const auto begin = Clock::now();
    const gcx_result result = CALL(gcx_lease_acquire, (worker.device, count, &params, &lease),
                                   timeout == 0 ? GCX_ERROR_ALREADY_ACQUIRED : GCX_ERROR_TIMEOUT,
                                   GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    const bool injected = worker.injected;
    if (result == GCX_ERROR_TIMEOUT)
        check_waited(worker, begin, timeout);
    const bool has_exclusive =
        params.exclusive_sm_count == 0 || !planned(free, {params.exclusive_sm_count}).empty();
    const bool expected =
        has_exclusive && ((!plan.empty() && plan[0] >= minimum) ||
                          (minimum != 0 && count_of(free) >= minimum && count_of(free) != 0));
    const bool exclusive = (flags & GCX_LEASE_SHARED) == 0;
    if (result != GCX_SUCCESS) {
        if (lease != nullptr)
            worker.complain("a failed acquire wrote a handle");
        if (expected && !injected && worker.storm.exact())
            worker.complain("%u SMs (at least %u, flags %u) were refused with %s, and %u are free",
                            count, minimum, flags, gcx_result_name(result), count_of(free));
        check_own(worker);
        return nullptr;
    }
    worker.storm.granted++;
    BundlePointer bundle = bundle_of(worker, worker.device, lease, params);
    read_set(worker, *bundle);
    const uint32_t got = count_of(bundle->set);
    const uint32_t right = plan.empty() ? count_of(free) : plan[0];
    if (exclusive && worker.storm.exact() && (!expected || got != right))
        worker.complain("%u SMs (at least %u) gave %u, and %u would have been right", count,
                        minimum, got, expected ? right : 0);
    worker.own.push_back(bundle);
    check_own(worker);
    const std::lock_guard lock(worker.storm.mutex);
    worker.storm.published[worker.number * 2 + worker.random.below(2)] = bundle;
    return bundle;
}

void own_acquire(Worker& worker) {
    Random& random = worker.random;
    if (worker.own.size() >= 4)
        return;
    const uint32_t count = some_count(random);
    uint32_t minimum = random.one_in(4) ? 8 * (1 + random.below(3)) : 0;
    if (minimum > count)
        minimum = 0;
    own_acquire_of(worker, count, minimum, random.one_in(4) ? GCX_LEASE_SHARED : 0,
                   random.one_in(4) ? random.below(25) : 0);
}

std::size_t some_index(Worker& worker) {
    return worker.random.below(static_cast<uint32_t>(worker.own.size()));
}

BundlePointer take_own(Worker& worker) {
    if (worker.own.empty())
        return nullptr;
    const std::size_t at = some_index(worker);
    BundlePointer bundle = worker.own[at];
    worker.own.erase(worker.own.begin() + static_cast<std::ptrdiff_t>(at));
    return bundle;
}

// Calls an operation with one of the thread's leases, if it has any.
template <void (*operation)(Worker&, Bundle*)>
void on_some_own(Worker& worker) {
    if (!worker.own.empty())
        operation(worker, worker.own[some_index(worker)].get());
}

// SMs are free when release returns, whatever other threads do with the lease.
void own_release(Worker& worker) {
    const BundlePointer bundle = take_own(worker);
    if (bundle == nullptr)
        return;
    const bool parts_first = worker.random.one_in(2);
    const bool acquire_again = worker.random.one_in(2);
    if (parts_first)
        destroy_parts(worker, *bundle);
    release(worker, *bundle);
    check_own(worker);
    if (acquire_again && !bundle->shared)
        own_acquire_of(worker, count_of(bundle->set), 0, 0, 0);
    if (!parts_first)
        destroy_parts(worker, *bundle);
}

void own_resize(Worker& worker) {
    Random& random = worker.random;
    std::vector<gcx_lease_size> sizes;
    std::vector<BundlePointer> members;
    std::vector<uint32_t> counts;
    bool shared = false;
    gcx_resource usable = free_of(worker);
    for (const BundlePointer& bundle : worker.own) {
        if (!sizes.empty() && random.one_in(2))
            continue;
        const uint32_t count = some_count(random);
        sizes.push_back({bundle->lease, count, 0});
        counts.push_back(count);
        members.push_back(bundle);
        shared = shared || bundle->shared;
        gcx_resource_union(&usable, &bundle->set, &usable);
    }
    if (sizes.empty())
        return;
    const auto number = static_cast<uint32_t>(sizes.size());
    const uint32_t flags = random.one_in(3) ? GCX_RESIZE_DEFERRED : GCX_RESIZE_DEFAULT;
    bool prepared = false;
    if (random.one_in(3)) {
        prepared = CALL(gcx_lease_prepare, (sizes.data(), number), GCX_ERROR_ALREADY_ACQUIRED,
                        GCX_ERROR_CACHE_LIMIT_EXCEEDED,
                        GCX_ERROR_INVALID_RESOURCE_CONFIGURATION) == GCX_SUCCESS;
        check_own(worker);
    }
    // Growth is deferred only while work is running, and creating a context would wait for it.
    for (std::size_t i = 0; prepared && i < members.size(); i++)
        launch(worker, *members[i], 0, 50 + random.below(1000));
    const gcx_result result = [&] {
        const SubmitLocks locks(members);
        return CALL(gcx_lease_resize, (sizes.data(), number, flags), GCX_ERROR_ALREADY_ACQUIRED,
                    GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    }();
    const bool injected = worker.injected;
    // A call that failed inside also retried and undid work.
    if (worker.contexts_created == 0 && worker.evictions == 0 && !injected &&
        worker.calls / members.size() > kMostCalls)
        worker.complain("gcx_lease_resize of %zu leases made %llu driver calls", members.size(),
                        llu(worker.calls));
    if (prepared && worker.storm.alone && worker.contexts_created != 0)
        worker.complain("a prepared change made %llu contexts", llu(worker.contexts_created));
    const std::vector<uint32_t> plan = shared ? std::vector<uint32_t>() : planned(usable, counts);
    if (result != GCX_SUCCESS) {
        if (!plan.empty() && !injected && worker.storm.exact())
            worker.complain("a change that a split of the SMs allows was refused with %s",
                            gcx_result_name(result));
        check_own(worker);
        return;
    }
    worker.storm.changed++;
    for (std::size_t i = 0; i < members.size(); i++) {
        read_set(worker, *members[i]);
        const uint32_t got = count_of(members[i]->set);
        if (!shared && worker.storm.exact() && (plan.empty() || got != plan[i]))
            worker.complain("lease %llu was to have %u SMs and has %u; the split has %u",
                            llu(members[i]->serial), counts[i], got, plan.empty() ? 0 : plan[i]);
        if (shared && counts[i] != GCX_REST && got < counts[i])
            worker.complain("lease %llu was to have %u SMs and has %u", llu(members[i]->serial),
                            counts[i], got);
        if (members[i]->shared && counts[i] != GCX_REST && got >= counts[i] + 24)
            worker.complain("shared lease %llu was to have %u SMs and has %u",
                            llu(members[i]->serial), counts[i], got);
    }
    check_own(worker);
}

// One lease gives all its SMs to another, and is released.
void own_parking(Worker& worker) {
    if (worker.own.size() < 2)
        return;
    const BundlePointer from = take_own(worker);
    const BundlePointer to = take_own(worker);
    const uint32_t both = count_of(from->set) + count_of(to->set);
    const gcx_lease_size sizes[] = {{from->lease, 0, GCX_SIZE_PARKED}, {to->lease, both, 0}};
    const uint32_t flags = worker.random.below(2);
    const gcx_result result = [&] {
        const SubmitLocks locks({from, to});
        return CALL(gcx_lease_resize, (sizes, 2, flags), GCX_ERROR_ALREADY_ACQUIRED,
                    GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    }();
    worker.own.push_back(to);
    if (result != GCX_SUCCESS) {
        if (!worker.injected && worker.storm.exact() && !from->shared && !to->shared)
            worker.complain("a lease's SMs for another were refused with %s",
                            gcx_result_name(result));
        worker.own.push_back(from);
        check_own(worker);
        return;
    }
    worker.storm.changed++;
    read_set(worker, *to);
    read_set(worker, *from);
    if (count_of(from->set) != 0 || count_of(to->set) < both)
        worker.complain("%u SMs came to %u, and the parked lease has %u", both, count_of(to->set),
                        count_of(from->set));
    if (gcx_stream_native(from->streams[0]) != nullptr)
        worker.complain("a stream of a parked lease takes work");
    check_own(worker);
    destroy_parts(worker, *from);
    release(worker, *from);
}

// Returns the end of each owner's last kernel, by the owner's serial number.
std::map<uint64_t, uint64_t> ends(const Storm& storm) {
    std::map<uint64_t, uint64_t> found;
    for (const gcx_sim_run& run : sim::runs()) {
        const Launch& its = storm.launches[tag_of(run)];
        uint64_t& end = found[its.owner];
        end = std::max(end, run.end_ns);
    }
    return found;
}

bool is_unused(const Bundle& bundle) {
    return !bundle.graph_launched &&
           std::find(bundle.used.begin(), bundle.used.end(), true) == bundle.used.end();
}

// A query covers only the work of the lease's streams.
void own_query(Worker& worker, Bundle* bundle) {
    const gcx_result result = CALL(gcx_lease_query, (bundle->lease), GCX_ERROR_NOT_READY);
    // In a storm, other threads record and wait in these streams too.
    if (worker.injected || !worker.storm.alone)
        return;
    bool done = true;
    for (auto& stream : bundle->streams) {
        if (stream.load() != nullptr)
            done = gcx_stream_query(stream) == GCX_SUCCESS && done;
    }
    const uint64_t end = ends(worker.storm)[bundle->serial];
    if (result == GCX_SUCCESS && end > sim::counts().clock_ns)
        worker.complain("lease %llu is finished, and a kernel of it runs until %llu",
                        llu(bundle->serial), llu(end));
    if (result == GCX_SUCCESS)
        return;
    if (is_unused(*bundle))
        worker.complain("lease %llu, which has never used its streams, has unfinished work",
                        llu(bundle->serial));
    else if (done && gcx_lease_query(bundle->lease) == GCX_ERROR_NOT_READY)
        worker.complain("lease %llu has unfinished work, and none of its streams has",
                        llu(bundle->serial));
}

void own_synchronize(Worker& worker, Bundle* bundle) {
    const uint64_t before = sim::counts().clock_ns;
    if (CALL(gcx_lease_synchronize, (bundle->lease)) != GCX_SUCCESS || !worker.storm.alone)
        return;
    const uint64_t after = sim::counts().clock_ns;
    if (ends(worker.storm)[bundle->serial] > after)
        worker.complain("lease %llu was waited for, and a kernel of it runs on",
                        llu(bundle->serial));
    if (is_unused(*bundle) && after > before + 1'000'000)
        worker.complain("waiting for lease %llu, which has never used its streams, took %.3f ms",
                        llu(bundle->serial), static_cast<double>(after - before) / 1e6);
}

void own_stream(Worker& worker, Bundle* bundle) {
    const std::lock_guard lock(bundle->submit);
    const std::size_t at = worker.random.below(3);
    gcx_stream stream = bundle->streams[at];
    if (stream == nullptr) {
        gcx_stream_params params = GCX_STREAM_PARAMS_INIT;
        params.priority = -static_cast<int32_t>(worker.random.below(3));
        CALL(gcx_lease_stream_create, (bundle->lease, &params, &stream));
        bundle->streams[at] = stream;
    } else if (!bundle->used[at]) { // the end of its work could not be tracked
        bundle->streams[at] = nullptr;
        DESTROY(gcx_stream_destroy, stream);
    }
}

void own_release_all(Worker& worker) {
    while (!worker.own.empty()) {
        const BundlePointer bundle = take_own(worker);
        release(worker, *bundle);
        destroy_parts(worker, *bundle);
    }
    check_own(worker);
}

// Requests a reservation that gives this result. On a busy machine other threads may also have the
// folder locked for longer than a request waits.
gcx_result reserve(Worker& worker, uint32_t count, const gcx_reservation_params& params,
                   gcx_reservation* reservation, gcx_result expected) {
    const gcx_result result =
        CALL(gcx_reservation_acquire, (worker.device, count, &params, reservation), expected,
             GCX_ERROR_TIMEOUT);
    if (result == GCX_ERROR_TIMEOUT && expected != GCX_ERROR_TIMEOUT && !worker.injected &&
        std::strstr(gcx_last_error_message(), "locked for") == nullptr)
        worker.complain("a reservation of %u SMs timed out", count);
    return result;
}

// Reserves SMs among processes, and acquires a lease of them.
void own_reservation(Worker& worker) {
    Random& random = worker.random;
    own_release_all(worker);
    gcx_reservation_params params = GCX_RESERVATION_PARAMS_INIT;
    params.timeout_ms = random.one_in(3) ? random.below(40) : 0;
    gcx_reservation reservation = nullptr;
    if (reserve(worker, 64, params, &reservation, GCX_SUCCESS) != GCX_SUCCESS)
        return;
    gcx_lease_params lease_params = GCX_LEASE_PARAMS_INIT;
    lease_params.reservation = reservation;
    gcx_lease lease = nullptr;
    CALL(gcx_lease_acquire, (worker.device, GCX_REST, &lease_params, &lease));
    gcx_reservation other = nullptr;
    params.timeout_ms = random.below(30);
    reserve(worker, 96, params, &other,
            params.timeout_ms == 0 ? GCX_ERROR_ALREADY_ACQUIRED : GCX_ERROR_TIMEOUT);
    if (other != nullptr)
        worker.complain("96 SMs were reserved next to 64 of 132");
    DESTROY(gcx_reservation_release, other);
    DESTROY(gcx_reservation_release, reservation);
    DESTROY(gcx_lease_release, lease);
}

// The reset destroys everything on the device; what is acquired afterwards works.
void own_reset(Worker& worker) {
    Storm& storm = worker.storm;
    if (!storm.resets)
        return;
    {
        const SubmitLocks locks(worker.own);
        CHECK_NATIVE(cuDevicePrimaryCtxReset, worker.device);
        // What the former one has was destroyed by the reset, except its reference to the context.
        static std::mutex mutex;
        static std::vector<std::unique_ptr<Work>>& destroyed =
            *new std::vector<std::unique_ptr<Work>>;
        const std::lock_guard lock(mutex);
        auto& work = storm.work[static_cast<std::size_t>(worker.device)];
        destroyed.push_back(std::exchange(work, std::make_unique<Work>(worker.device)));
        CHECK_NATIVE(cuDevicePrimaryCtxRelease, worker.device);
        worker.plain = plain_stream(storm, worker.device);
    }
    for (const BundlePointer& bundle : worker.own) {
        gcx_lease_info info = GCX_LEASE_INFO_INIT;
        CALL(gcx_lease_get_info, (bundle->lease, &info), GCX_ERROR_CONTEXT_IS_DESTROYED);
    }
    own_release_all(worker);
    own_acquire_of(worker, GCX_REST, 0, 0, 0);
}

// --------------------------------------------------------------------------------------------
// The device of all threads
// --------------------------------------------------------------------------------------------

gcx_cancel some_cancel(Worker& worker) {
    switch (worker.random.below(3)) {
    case 0:
        return worker.storm.some(worker.random, worker.storm.cancels);
    case 1:
        return worker.storm.stop;
    default:
        return nullptr;
    }
}

void drop(Worker& worker, const BundlePointer& bundle) {
    if (bundle == nullptr)
        return;
    const bool parts_first = worker.random.one_in(2);
    {
        const std::lock_guard lock(bundle->submit);
        bundle->ended = true;
    }
    if (parts_first)
        destroy_parts(worker, *bundle);
    release(worker, *bundle);
    if (!parts_first)
        destroy_parts(worker, *bundle);
}

void common_acquire(Worker& worker) {
    Storm& storm = worker.storm;
    Random& random = worker.random;
    char name[80] = {};
    std::memset(name, 'n', random.below(70));
    gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
    params.flags = random.one_in(3) ? GCX_LEASE_SHARED : 0;
    const uint32_t count = some_count(random);
    params.min_sm_count = random.one_in(3) ? random.below(40) : 0;
    if (params.flags != 0 && random.one_in(3))
        params.exclusive_sm_count = random.below(24);
    params.family = random.one_in(8) ? static_cast<gcx_sm_family>(static_cast<int>(random.below(6)))
                                     : GCX_SM_FAMILY_NONE;
    params.name = random.one_in(2) ? name : nullptr;
    params.cancel = some_cancel(worker);
    params.timeout_ms = random.one_in(3) ? random.below(8) : 0;
    if (params.cancel == storm.stop && !storm.alone && random.one_in(12))
        params.timeout_ms = GCX_FOREVER;
    if (storm.alone)
        params.timeout_ms = random.below(3);
    gcx_lease lease = nullptr;
    const auto begin = Clock::now();
    const gcx_result result = CALL(
        gcx_lease_acquire, (0, count, &params, &lease),
        params.timeout_ms == 0 ? GCX_ERROR_ALREADY_ACQUIRED : GCX_ERROR_TIMEOUT,
        GCX_ERROR_CANCELLED, GCX_ERROR_SMS_NOT_MAPPED, GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
        GCX_ERROR_INVALID_VALUE, GCX_ERROR_NOT_SUPPORTED, GCX_ERROR_INVALID_HANDLE);
    if (result == GCX_ERROR_TIMEOUT && params.timeout_ms != GCX_FOREVER)
        check_waited(worker, begin, params.timeout_ms);
    if (result == GCX_ERROR_CANCELLED && params.cancel == nullptr && !worker.injected)
        worker.complain("cancelled without a cancel");
    if (result == GCX_ERROR_INVALID_HANDLE && params.cancel == nullptr && !worker.injected)
        worker.complain("an invalid handle, and none was given");
    if (result != GCX_SUCCESS)
        return;
    storm.granted++;
    drop(worker, storm.put(random, storm.common, bundle_of(worker, 0, lease, params)));
}

void common_release(Worker& worker) {
    drop(worker, worker.storm.put(worker.random, worker.storm.common, BundlePointer()));
}

void common_resize(Worker& worker) {
    Storm& storm = worker.storm;
    Random& random = worker.random;
    std::vector<gcx_lease_size> sizes;
    std::vector<BundlePointer> members;
    for (uint32_t left = 1 + random.below(4); left != 0; left--) {
        const BundlePointer bundle = storm.some(random, storm.common);
        if (bundle == nullptr)
            continue;
        members.push_back(bundle);
        const bool parked = random.one_in(6);
        sizes.push_back({bundle->lease, parked || random.one_in(20) ? 0U : some_count(random),
                         parked ? GCX_SIZE_PARKED : random.below(50) / 48});
    }
    const auto count = static_cast<uint32_t>(sizes.size());
    if (random.one_in(4))
        CALL(gcx_lease_prepare, (sizes.data(), count), STALE, GCX_ERROR_ALREADY_ACQUIRED,
             GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, GCX_ERROR_INVALID_VALUE,
             GCX_ERROR_CACHE_LIMIT_EXCEEDED, GCX_ERROR_SMS_NOT_MAPPED);
    const SubmitLocks locks(members);
    if (CALL(gcx_lease_resize, (sizes.data(), count, random.below(9) % 3), STALE,
             GCX_ERROR_ALREADY_ACQUIRED, GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             GCX_ERROR_INVALID_VALUE, GCX_ERROR_SMS_NOT_MAPPED) == GCX_SUCCESS)
        storm.changed++;
}

// Returns one of the thread's leases or one that all threads use, or null.
BundlePointer some_bundle(Worker& worker, bool own) {
    if (!own)
        return worker.storm.some(worker.random, worker.storm.common);
    return worker.own.empty() ? nullptr : worker.own[some_index(worker)];
}

template <bool own>
void launch_work(Worker& worker) {
    const BundlePointer bundle = some_bundle(worker, own);
    if (bundle != nullptr &&
        launch(worker, *bundle, worker.random.below(2), some_length(worker.random)) != 0 && own &&
        worker.calls > kMostToFollow && !worker.injected)
        worker.complain("gcx_stream_native made %llu driver calls", llu(worker.calls));
}

// Launches, records an event, lets another stream wait for it, and launches there.
template <bool own>
void order_by_event(Worker& worker) {
    Random& random = worker.random;
    const BundlePointer a = some_bundle(worker, own);
    const BundlePointer b = some_bundle(worker, own);
    gcx_event event = nullptr;
    if (a == nullptr || b == nullptr ||
        CALL(gcx_event_create, (a->device, 0, &event)) != GCX_SUCCESS)
        return;
    const std::size_t at_a = random.below(2);
    const std::size_t at_b = random.below(2);
    gcx_stream stream_a = a->streams[at_a];
    gcx_stream stream_b = b->streams[at_b];
    const uint32_t first = launch(worker, *a, at_a, random.below(50));
    const bool ordered = first != 0 && stream_a != nullptr && stream_b != nullptr &&
                         CALL(gcx_stream_record, (stream_a, event), STALE) == GCX_SUCCESS &&
                         CALL(gcx_stream_wait, (stream_b, event), STALE) == GCX_SUCCESS;
    if (ordered) {
        const uint32_t second = launch(worker, *b, at_b, 0);
        if (second != 0 && b->streams[at_b].load() == stream_b)
            worker.order.emplace_back(first, second);
    }
    DESTROY(gcx_event_destroy, event);
}

template <bool own>
void use_graph(Worker& worker) {
    Random& random = worker.random;
    const BundlePointer bundle = some_bundle(worker, own);
    if (bundle == nullptr)
        return;
    gcx_graph graph = bundle->graph;
    if (graph == nullptr) {
        const uint32_t tag = worker.storm.new_tag(bundle->device, bundle.get());
        graph = make_graph(worker, bundle->device, {tag + kTagUnit * random.below(3), tag});
        const std::lock_guard lock(bundle->submit);
        gcx_graph none = nullptr;
        if (bundle->ended || !bundle->graph.compare_exchange_strong(none, graph))
            DESTROY(gcx_graph_destroy, graph);
        return;
    }
    const std::size_t at = random.below(2);
    gcx_stream stream = bundle->streams[at];
    if (own && random.one_in(8)) {
        DESTROY(gcx_graph_destroy, bundle->graph.exchange(nullptr));
    } else if (own && random.one_in(6)) {
        CALL(gcx_graph_prepare, (graph, &bundle->set, 1, GCX_PREPARE_FOR_LEASES));
    } else if (stream != nullptr && own) {
        bundle->graph_launched = true;
        bundle->used[at] = true;
        CALL(gcx_graph_launch, (graph, &stream, 1));
    } else if (stream != nullptr) {
        CALL(gcx_graph_launch, (graph, &stream, 1), STALE);
    }
}

// Changes graphs with parts while other threads launch them.
void common_parts(Worker& worker) {
    Storm& storm = worker.storm;
    Random& random = worker.random;
    gcx_graph graph = storm.some(random, storm.graphs);
    if (graph == nullptr || random.one_in(8)) {
        const uint32_t tag = storm.new_tag(0, nullptr);
        graph = make_graph(worker, 0, {tag, tag, tag + kTagUnit, tag});
        DESTROY(gcx_graph_destroy, storm.put(random, storm.graphs, graph));
        return;
    }
    std::vector<gcx_stream> streams;
    std::vector<gcx_resource> sets;
    for (uint32_t left = 1 + random.below(3); left != 0; left--) {
        const BundlePointer bundle = storm.some(random, storm.common);
        if (bundle == nullptr)
            return;
        gcx_resource set{};
        if (gcx_lease_get_resource(bundle->lease, &set) != GCX_SUCCESS ||
            bundle->streams[0] == nullptr)
            return;
        sets.push_back(set);
        streams.push_back(bundle->streams[0]);
    }
    const auto count = static_cast<uint32_t>(streams.size());
    switch (random.below(8)) {
    case 0: {
        const uint32_t nodes[] = {random.below(5), random.below(4)};
        CALL(gcx_graph_set_part, (graph, nodes, 2, random.below(4)), STALE,
             GCX_ERROR_INVALID_VALUE);
        break;
    }
    case 1:
        CALL(gcx_graph_prepare,
             (graph, sets.data(), count, random.below(2) * GCX_PREPARE_FOR_LEASES), STALE,
             GCX_ERROR_INVALID_VALUE, GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             GCX_ERROR_INVALID_RESOURCE_TYPE);
        break;
    case 2: {
        gcx_graph_info info = GCX_GRAPH_INFO_INIT;
        gcx_graph_node nodes[8];
        uint32_t found = 0;
        if (CALL(gcx_graph_get_info, (graph, &info), STALE) == GCX_SUCCESS &&
            (info.node_count != 4 || info.part_count == 0 || info.part_count > 4 ||
             info.executables > info.max_executables))
            worker.complain("a graph of 4 nodes has %u, %u parts, %u of %u executables",
                            info.node_count, info.part_count, info.executables,
                            info.max_executables);
        CALL(gcx_graph_get_nodes, (graph, nodes, 8, &found), STALE);
        break;
    }
    case 3: {
        const uint64_t length = storm.new_tag(0, nullptr);
        gcx_kernel_params params = GCX_KERNEL_PARAMS_INIT;
        std::fill_n(params.grid, 3, 1U);
        std::fill_n(params.block, 3, 1U);
        params.arguments = &length;
        params.argument_bytes = sizeof length;
        CALL(gcx_graph_set_kernel, (graph, random.below(4), &params), STALE);
        break;
    }
    case 4: {
        const uint32_t tag = storm.new_tag(0, nullptr);
        CUgraph captured = captured_graph(worker, 0, {tag, tag, tag, tag});
        CALL(gcx_graph_update, (graph, captured), STALE);
        CHECK_NATIVE(cuGraphDestroy, captured);
        break;
    }
    default:
        CALL(gcx_graph_launch, (graph, streams.data(), count), STALE, GCX_ERROR_INVALID_VALUE);
    }
}

// Returns another thread's lease, also one of its private device.
BundlePointer some_lease(Worker& worker) {
    return worker.random.one_in(2) ? worker.storm.some(worker.random, worker.storm.common)
                                   : worker.storm.some(worker.random, worker.storm.published);
}

// Calls functions on a lease that its owner may release or change concurrently.
void anyone_queries(Worker& worker) {
    const BundlePointer bundle = some_lease(worker);
    if (bundle == nullptr)
        return;
    gcx_lease const lease = bundle->lease;
    gcx_stream stream = bundle->streams[worker.random.below(2)];
    gcx_resource set{};
    switch (worker.random.below(5)) {
    case 0:
        CALL(gcx_lease_query, (lease), STALE, GCX_ERROR_NOT_READY);
        break;
    case 1:
        if (!worker.storm.alone)
            CALL(gcx_lease_synchronize, (lease), STALE);
        break;
    case 2: {
        gcx_lease_info info = GCX_LEASE_INFO_INIT;
        CALL(gcx_lease_get_info, (lease, &info), STALE);
        CALL(gcx_lease_get_resource, (lease, &set), STALE);
        break;
    }
    case 3: {
        gcx_stream made = nullptr;
        gcx_stream_info info = GCX_STREAM_INFO_INIT;
        if (CALL(gcx_lease_stream_create, (lease, nullptr, &made), STALE) == GCX_SUCCESS)
            CALL(gcx_stream_get_info, (made, &info), STALE);
        DESTROY(gcx_stream_destroy, made);
        break;
    }
    default:
        if (stream == nullptr)
            return;
        CALL(gcx_stream_query, (stream), STALE, GCX_ERROR_NOT_READY);
        CALL(gcx_stream_get_resource, (stream, GCX_RESOURCE_SM, &set), STALE);
    }
}

void anyone_synchronizes(Worker& worker) {
    const BundlePointer bundle = some_lease(worker);
    if (bundle == nullptr || worker.storm.alone)
        return;
    gcx_stream stream = bundle->streams[worker.random.below(2)];
    if (stream != nullptr)
        CALL(gcx_stream_synchronize, (stream), STALE);
}

void anyone_lists(Worker& worker) {
    check_list(worker, worker.random.one_in(2) ? -1 : 0);
    gcx_live_context contexts[8];
    uint32_t count = 0;
    CALL(gcx_context_list, (-1, contexts, 8, &count), GCX_ERROR_INSUFFICIENT_CAPACITY);
    gcx_resource whole{};
    gcx_resource group{};
    gcx_device_get_resource(0, GCX_RESOURCE_SM, &whole);
    const gcx_sm_request request = {GCX_REST, 0, 0, 0, 0, {}};
    CALL(gcx_sm_split,
         (&whole, &request, 1, GCX_SPLIT_EXCLUDE_LEASED, &group, nullptr, nullptr, nullptr),
         GCX_ERROR_INVALID_RESOURCE_CONFIGURATION, GCX_ERROR_SMS_NOT_MAPPED);
}

void anyone_cancels(Worker& worker) {
    Storm& storm = worker.storm;
    gcx_cancel cancel = storm.some(worker.random, storm.cancels);
    if (cancel != nullptr && worker.random.one_in(2))
        CALL(gcx_cancel_signal, (cancel), GCX_ERROR_INVALID_HANDLE);
    gcx_cancel made = nullptr;
    if (worker.random.one_in(2))
        CALL(gcx_cancel_create, (&made));
    DESTROY(gcx_cancel_destroy, storm.put(worker.random, storm.cancels, made));
}

void anyone_records(Worker& worker) {
    Storm& storm = worker.storm;
    Random& random = worker.random;
    gcx_event event = storm.some(random, storm.events);
    const BundlePointer bundle = storm.some(random, storm.common);
    gcx_stream stream = bundle != nullptr ? bundle->streams[random.below(2)].load() : nullptr;
    switch (random.below(6)) {
    case 0: {
        gcx_event made = nullptr;
        CALL(gcx_event_create, (0, random.below(4), &made));
        DESTROY(gcx_event_destroy, storm.put(random, storm.events, made));
        break;
    }
    case 1:
        CALL(gcx_event_query, (event), STALE, GCX_ERROR_NOT_READY);
        break;
    case 2:
        if (!storm.alone)
            CALL(gcx_event_synchronize, (event), STALE);
        break;
    case 3:
        CALL(gcx_stream_wait, (stream, event), STALE);
        break;
    default:
        CALL(gcx_stream_record, (stream, event), STALE);
    }
}

void anyone_changes_the_cache(Worker& worker) {
    Random& random = worker.random;
    switch (random.below(6)) {
    case 0:
        worker.call("gcx_cache_trim", {}, [&] {
            gcx_cache_trimmed trimmed = GCX_CACHE_TRIMMED_INIT;
            return gcx_cache_trim(random.below(20), random.one_in(2) ? &trimmed : nullptr);
        });
        break;
    case 1:
        if (!worker.storm.alone) // prepared contexts must stay in a history
            CALL(gcx_cache_set_limit, (random.below(80)));
        break;
    case 2: {
        gcx_cache_stats stats = GCX_CACHE_STATS_INIT;
        CALL(gcx_cache_get_stats, (&stats));
        break;
    }
    case 3: {
        gcx_resource whole{};
        gcx_device_get_resource(static_cast<int32_t>(random.below(2)), GCX_RESOURCE_SM, &whole);
        const gcx_sm_request requests[] = {{8 + random.below(40), 0, 0, 0, 0, {}},
                                           {8 + random.below(40), 0, 0, 0, 0, {}}};
        gcx_resource groups[2] = {};
        gcx_sm_split(&whole, requests, 2, 0, groups, nullptr, nullptr, nullptr);
        gcx_prepare_params params = GCX_PREPARE_PARAMS_INIT;
        params.flags = random.below(2) * GCX_PREPARE_FOR_LEASES;
        params.cancel = worker.storm.some(random, worker.storm.cancels);
        // Device 1 is another thread's, which may reset it during the call.
        CALL(gcx_cache_prepare, (groups, 2, &params), GCX_ERROR_CANCELLED,
             GCX_ERROR_CACHE_LIMIT_EXCEEDED, GCX_ERROR_INVALID_HANDLE,
             worker.storm.resets ? GCX_ERROR_CONTEXT_IS_DESTROYED : GCX_SUCCESS);
        break;
    }
    default:
        if (random.one_in(8))
            sim::advance(random.below(100'000'000));
    }
}

void anyone_publishes(Worker& worker) {
    gcx_published_lease leases[4];
    uint32_t count = 0;
    switch (worker.random.below(3)) {
    case 0:
        CALL(gcx_publish_start, ("storm"));
        break;
    case 1:
        CALL(gcx_publish_stop, ());
        break;
    default:
        CALL(gcx_published_lease_list, (leases, 4, &count), GCX_ERROR_INSUFFICIENT_CAPACITY);
    }
}

// --------------------------------------------------------------------------------------------
// The operations
// --------------------------------------------------------------------------------------------

struct Operation {
    const char* name;
    uint32_t weight;
    void (*run)(Worker& worker);
};

constexpr Operation kOperations[] = {
    {"own_acquire", 14, own_acquire},
    {"own_release", 10, own_release},
    {"own_resize", 14, own_resize},
    {"own_parking", 3, own_parking},
    {"own_launch", 20, launch_work<true>},
    {"own_query", 8, on_some_own<own_query>},
    {"own_synchronize", 1, on_some_own<own_synchronize>},
    {"own_stream", 4, on_some_own<own_stream>},
    {"own_graph", 6, use_graph<true>},
    {"own_events", 4, order_by_event<true>},
    {"own_reservation", 1, own_reservation},
    {"own_reset", 1, own_reset},
    {"common_acquire", 10, common_acquire},
    {"common_release", 5, common_release},
    {"common_resize", 10, common_resize},
    {"common_launch", 12, launch_work<false>},
    {"common_events", 6, order_by_event<false>},
    {"common_graph", 8, use_graph<false>},
    {"common_parts", 10, common_parts},
    {"anyone_queries", 16, anyone_queries},
    {"anyone_synchronizes", 2, anyone_synchronizes},
    {"anyone_lists", 6, anyone_lists},
    {"anyone_cancels", 3, anyone_cancels},
    {"anyone_records", 8, anyone_records},
    {"anyone_changes_the_cache", 3, anyone_changes_the_cache},
    {"anyone_publishes", 2, anyone_publishes},
};

// Returns a random operation, each as often as its weight.
const Operation& next_operation(Random& random) {
    static const uint32_t total = [] {
        uint32_t sum = 0;
        for (const Operation& operation : kOperations)
            sum += operation.weight;
        return sum;
    }();
    uint32_t left = random.below(total);
    const Operation* operation = kOperations;
    for (; left >= operation->weight; operation++)
        left -= operation->weight;
    return *operation;
}

void one_operation(Worker& worker) {
    const Operation& operation = next_operation(worker.random);
    worker.operation = operation.name;
    operation.run(worker);
    worker.operations++;
    worker.storm.operations++;
}

// --------------------------------------------------------------------------------------------
// Rounds
// --------------------------------------------------------------------------------------------

unsigned seed_of_step(unsigned seed, unsigned step) {
    return seed * 100'003 + step;
}

void clean_up(Storm& storm) {
    Worker& last = *storm.workers[0];
    last.operation = "the end";
    storm.faulty = false;
    for (const auto& worker : storm.workers) {
        worker->operation = "the end";
        own_release_all(*worker);
    }
    for (BundlePointer& bundle : storm.common) {
        drop(last, bundle);
        bundle.reset();
    }
    storm.published = {};
    for (gcx_graph graph : storm.graphs)
        destroy(last, "gcx_graph_destroy", gcx_graph_destroy, graph);
    for (gcx_event event : storm.events)
        destroy(last, "gcx_event_destroy", gcx_event_destroy, event);
    for (gcx_cancel cancel : storm.cancels)
        destroy(last, "gcx_cancel_destroy", gcx_cancel_destroy, cancel);
    destroy(last, "gcx_cancel_destroy", gcx_cancel_destroy, storm.stop);
}

// Checks that the state is as before the round.
void check_end(Storm& storm, const gcx_sim_counts& before) {
    Worker& worker = *storm.workers[0];
    worker.operation = "the end";
    uint32_t count = 0;
    gcx_live_lease lease{};
    if (gcx_lease_list(-1, &lease, 1, &count) != GCX_SUCCESS || count != 0)
        worker.complain("%u leases are left, the first with %u SMs of device %d, waits %u", count,
                        lease.sm_count, lease.device, lease.waits);
    for (int32_t device = 0; device < storm.devices; device++) {
        gcx_lease all = nullptr;
        gcx_lease_info info = GCX_LEASE_INFO_INIT;
        if (gcx_lease_acquire(device, GCX_REST, nullptr, &all) != GCX_SUCCESS ||
            gcx_lease_get_info(all, &info) != GCX_SUCCESS || info.sm_count != 132)
            worker.complain("device %d has %u free SMs", device, info.sm_count);
        if (all != nullptr)
            gcx_lease_release(all);
    }
    gcx_cache_set_limit(64);
    sim::advance(2'000'000'000'000'000'000);
    gcx_cache_stats stats = cache_stats();
    const uint64_t greens = sim::counts().green_contexts - before.green_contexts;
    // gcx notices contexts that a reset destroyed when their device is next used.
    if ((storm.resets ? greens > stats.in_use + stats.cached
                      : stats.in_use + stats.cached != greens) ||
        stats.in_use != 0)
        worker.complain("%u contexts in use and %u cached of %llu that exist", stats.in_use,
                        stats.cached, llu(greens));
    gcx_cache_set_limit(0);
    stats = cache_stats();
    if (stats.in_use + stats.cached != 0)
        worker.complain("%u contexts in use and %u cached with a limit of 0", stats.in_use,
                        stats.cached);
    gcx_sim_counts after = sim::counts();
    if (storm.resets) { // the driver keeps counting what was destroyed with a primary context
        after.primary_retains = before.primary_retains;
        after.graphs = before.graphs;
    }
    const std::string left = left_behind(before, after);
    if (!left.empty())
        worker.complain("left behind: %s", left.c_str());
    gcx_cache_set_limit(64);
}

std::unique_ptr<Storm> begin_storm(const Options& options, unsigned seed, const std::string& spec,
                                   unsigned threads) {
    auto storm = std::make_unique<Storm>(options, seed, spec);
    gcx_device_get_count(&storm->devices);
    gcx_driver_info info = GCX_DRIVER_INFO_INIT;
    gcx_driver_get_info(&info);
    storm->driver = info.version;
    Random random(seed);
    storm->faulty = storm->was_faulty = random.one_in(3);
    storm->resets = storm->driver < 13000 && random.one_in(3);
    for (int32_t device = 0; device < storm->devices; device++)
        storm->work.push_back(std::make_unique<Work>(device));
    for (unsigned i = 0; i < threads; i++) {
        storm->workers.push_back(std::make_unique<Worker>(*storm, i, seed * 31U + i));
        storm->workers[i]->device = static_cast<int32_t>(i) + 1;
        storm->workers[i]->plain = plain_stream(*storm, storm->workers[i]->device);
    }
    CHECK_OK(gcx_cancel_create(&storm->stop));
    sim::note_runs(200'000);
    return storm;
}

void end_storm(Storm& storm, const gcx_sim_counts& before) {
    driver_thread().jitter = 0;
    clean_up(storm);
    check_runs(storm);
    sim::note_runs(0);
    for (const auto& worker : storm.workers)
        CHECK_NATIVE(cuStreamDestroy, worker->plain);
    storm.work.clear();
    check_end(storm, before);
}

void on_signal(int) {
}

// Aborts the process if a call does not end, and prints which.
void watch(Storm& storm) {
    const int64_t most = check::slow ? 90'000 : 40'000;
    for (const auto& worker : storm.workers) {
        if (!worker->runs || milliseconds_now() - worker->since < most)
            continue;
        for (const auto& each : storm.workers)
            std::fprintf(stderr, "seed %u on %s: thread %u is in %s, %s for %lld ms\n", storm.seed,
                         storm.spec.c_str(), each->number, each->operation.load(),
                         each->function.load(),
                         static_cast<long long>(milliseconds_now() - each->since));
        std::abort();
    }
}

void storm_round(const Options& options, unsigned seed, const std::string& spec, double seconds) {
    const gcx_sim_counts before = sim::counts();
    const auto storm = begin_storm(options, seed, spec, kThreads);
    for (const auto& worker : storm->workers)
        worker->since = milliseconds_now();
    std::vector<std::thread> threads;
    std::atomic<unsigned> started{0};
    for (const auto& each : storm->workers) {
        threads.emplace_back([&] {
            Worker& worker = *each;
            worker.native = pthread_self();
            driver_thread() = driver_wrapper::Thread();
            driver_thread().jitter = 4 + worker.random.below(100);
            driver_thread().random = worker.random.next() | 1;
            worker.runs = true;
            started++;
            while (!storm->over && check::failed == 0) {
                worker.step++;
                one_operation(worker);
            }
            worker.runs = false;
            driver_thread().jitter = 0;
            while (options.mode == Mode::signals &&
                   started != 0) // a signal may still be sent to this thread
                usleep(100);
        });
    }
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    Random random(seed + 17);
    while (started != kThreads)
        usleep(100);
    const auto all_ended = [&] {
        return std::none_of(storm->workers.begin(), storm->workers.end(),
                            [](const auto& worker) { return worker->runs.load(); });
    };
    while (!all_ended()) {
        if (Clock::now() > end || check::failed != 0) {
            if (!storm->over)
                gcx_cancel_signal(storm->stop);
            storm->over = true;
        }
        if (options.mode == Mode::signals) {
            pthread_kill(storm->workers[random.below(kThreads)]->native, SIGUSR1);
            usleep(random.below(300));
        } else {
            usleep(1000);
        }
        watch(*storm);
    }
    started = 0;
    for (std::thread& thread : threads)
        thread.join();
    end_storm(*storm, before);
    std::printf("seed %u: %llu operations, %llu leases, %llu changes\n", seed,
                llu(storm->operations), llu(storm->granted), llu(storm->changed));
}

void history(const Options& options, unsigned seed, const std::string& spec) {
    const gcx_sim_counts before = sim::counts();
    const auto storm = begin_storm(options, seed, spec, 1);
    storm->alone = true;
    Worker& worker = *storm->workers[0];
    driver_thread() = driver_wrapper::Thread();
    for (unsigned step = 0; step < kSteps && check::failed == 0; step++) {
        worker.step = step;
        worker.random = Random(seed_of_step(seed, step));
        one_operation(worker);
        check_list(worker, -1);
    }
    end_storm(*storm, before);
}

// --------------------------------------------------------------------------------------------
// Machines
// --------------------------------------------------------------------------------------------

std::string spec_of(const Options& options, unsigned seed) {
    const char* const versions[] = {"13.0", "12.4", "13.5", "13.0", "12.8"};
    return std::string(options.mode == Mode::history ? "2xh100@" : "5xh100@") + versions[seed % 5];
}

// Opens the simulated driver through the library that counts each thread's calls.
void open_driver(const Options& options, const std::string& spec) {
    void* const driver = dlopen(options.driver, RTLD_NOW | RTLD_LOCAL);
    if (driver == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        std::exit(2);
    }
    driver_thread_function =
        reinterpret_cast<driver_wrapper::ThreadFunction*>(dlsym(driver, "driver_wrapper_thread"));
    CHECK_EQ(sim_function<decltype(&gcx_sim_configure)>("gcx_sim_configure")(spec.c_str()), 0);
    if (options.mode == Mode::signals) {
        struct sigaction action{};
        action.sa_handler = on_signal; // without SA_RESTART
        sigaction(SIGUSR1, &action, nullptr);
    }
    CHECK_OK(gcx_driver_open(options.driver));
}

// Runs histories, each in a child process, until the time is over or one has failed.
void run_histories(const Options& options) {
    const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
    unsigned seed = options.seed;
    do {
        const std::string spec = spec_of(options, seed);
        in_child(spec + ", seed " + std::to_string(seed), [&] {
            open_driver(options, spec);
            history(options, seed, spec);
        });
        seed++;
    } while (!options.one_seed && check::failed == 0 &&
             (Clock::now() < end || seed < options.seed + 8));
    std::printf("history: %u histories of %u steps, seeds %u to %u\n", seed - options.seed, kSteps,
                options.seed, seed - 1);
}

// Runs rounds of 0.3 s, several in one process, until the time is over or one has failed.
void run_storms(const Options& options) {
    const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
    unsigned seed = options.seed;
    do {
        const double left = std::chrono::duration<double>(end - Clock::now()).count();
        const double time = options.one_seed ? 0.5 : std::clamp(left, 0.3, check::slow ? 2.0 : 1.0);
        const std::string spec = spec_of(options, seed);
        in_child(
            spec + ", seed " + std::to_string(seed),
            [&] {
                open_driver(options, spec);
                const double round = 0.3;
                const int rounds = std::max(1, static_cast<int>(time / round));
                for (int i = 0; i < rounds && check::failed == 0; i++)
                    storm_round(options, seed + static_cast<unsigned>(i) * 5, spec, round);
            },
            300);
        seed += 21;
    } while (!options.one_seed && check::failed == 0 && Clock::now() < end);
    std::printf("storm: seeds %u to %u\n", options.seed, seed - 1);
}

} // namespace

int main(int count, char** arguments) {
    const Options options = options_of(count, arguments);
    const publish::Folder folder;
    unsetenv("GCX_DRIVER");
    std::printf("seed %u\n", options.seed);
    std::fflush(stdout);
    if (const char* const path = gcx_simulator_path(); path != nullptr)
        setenv("GCX_SIM_LIBRARY", path, 1);
    if (options.mode == Mode::history)
        run_histories(options);
    else
        run_storms(options);
    return check::summary("lease storm");
}
