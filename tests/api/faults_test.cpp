// Makes each driver call and each allocation of every operation fail in turn, allocations also with
// all after it: the result is an error with a message or a correct success, what the operation was
// to change is unchanged or changed completely, it then works, and nothing is left after cleanup.
//
//     api-faults objects|ahead|graphs|leases DRIVER

#include "calls.hpp"
#include "failing_memory.hpp"
#include "graph_kernels.hpp"
#include "leases.hpp"
#include "work.hpp"

#include <cstring>
#include <functional>
#include <memory>

using namespace support;
using From = GraphKernels::From;

namespace {

// Each failing call runs in a child, which is slow under an emulator. The address sanitizer sees
// each call fail with one of the three driver versions.
const uint64_t kStep = check::slow_alone ? 29 : check::sanitized ? 3 : 1;

struct Operation {
    std::string name;
    std::function<void()> prepare; // doesn't fail
    std::function<gcx_result()> run;
    std::function<void()> cleanup; // destroys what the two have created
};

// What fails during an operation.
struct Fault {
    enum class Of { kNothing, kCall, kAllocation, kAllocations };
    Of of = Of::kNothing;
    uint64_t nth = 0;
    CUresult result = CUDA_SUCCESS; // of a call
    bool of_memory() const { return of == Of::kAllocation || of == Of::kAllocations; }
};

// The driver calls and the allocations of an operation.
struct Counts {
    uint64_t calls = 0;
    uint64_t allocations = 0;
};

void begin(const Fault& fault) {
    if (fault.of == Fault::Of::kCall)
        sim::fail(nullptr, fault.nth, fault.result);
    else if (fault.of_memory())
        memory::fail(fault.nth, fault.of == Fault::Of::kAllocations);
}

// The checks after an operation must not fail.
void no_more_failures() {
    memory::fail(0, false);
    sim::fail(nullptr, 0, CUDA_SUCCESS);
}

// Runs an operation with a fault, and returns what it made.
Counts run_once(const Operation& operation, const std::string& spec, const Fault& fault) {
    CHECK_OK(gcx_driver_open(("sim:" + spec).c_str()));
    const gcx_sim_counts before = sim::counts();
    operation.prepare();
    const Counts began{sim::calls(), memory::allocations()};
    begin(fault);
    const gcx_result result = operation.run();
    const Counts made{sim::calls() - began.calls, memory::allocations() - began.allocations};
    no_more_failures();
    if (fault.of == Fault::Of::kNothing)
        CHECK_OK(result);
    else if (result != GCX_SUCCESS && CHECK(*gcx_last_error_message() != '\0'))
        note_message(result);
    if (fault.of_memory() && result != GCX_SUCCESS)
        CHECK(message_has("the host's memory is exhausted"));
    // A failure changed nothing, so the operation works now. A handle that is null was destroyed.
    CHECK_OK(gcx_cache_set_limit(64));
    if (result != GCX_SUCCESS)
        CHECK_OK(operation.run());
    operation.cleanup();
    CHECK_OK(gcx_cache_set_limit(0));
    const gcx_sim_counts after = sim::counts();
    CHECK_EQ(left_behind(before, after), std::string());
    CHECK(after.modules <= before.modules + 1); // the probe's kernel stays loaded
    CHECK_EQ(cache_stats().in_use + cache_stats().cached, 0U);
    CUcontext current = nullptr;
    CHECK_NATIVE(cuCtxGetCurrent, &current);
    CHECK(current == nullptr);
    return made;
}

// Where calls are skipped, each operation and driver version skips others.
uint64_t first_failing(const Operation& operation, const std::string& spec) {
    uint64_t of_operation = 0;
    for (const char letter : operation.name)
        of_operation = of_operation * 31 + static_cast<unsigned char>(letter);
    const uint64_t driver = spec.ends_with("12.4") ? 0 : spec.ends_with("13.0") ? 1 : 2;
    return 1 + (of_operation + driver * kStep / 3) % kStep;
}

void every_call_fails_with(const Operation& operation, const std::string& spec, CUresult injected) {
    const uint64_t calls = answer_of_child([&] { return run_once(operation, spec, {}).calls; });
    for (uint64_t nth = first_failing(operation, spec); nth <= calls; nth += kStep) {
        const std::string name =
            spec + ": " + operation.name + ", call " + std::to_string(nth) + " fails";
        in_child(name, [&] { run_once(operation, spec, {Fault::Of::kCall, nth, injected}); });
    }
}

// Each allocation fails with one of the three driver versions.
void every_allocation_fails(const Operation& operation, const std::string& spec) {
    constexpr uint64_t kVersions = 3;
    const uint64_t version = spec.ends_with("12.4") ? 0 : spec.ends_with("13.0") ? 1 : 2;
    const uint64_t allocations =
        answer_of_child([&] { return run_once(operation, spec, {}).allocations; });
    for (const Fault::Of of : {Fault::Of::kAllocation, Fault::Of::kAllocations})
        for (uint64_t nth = 1 + version; nth <= allocations; nth += kVersions) {
            const char* const which = of == Fault::Of::kAllocation ? "" : " and all after it";
            const std::string name = spec + ": " + operation.name + ", allocation " +
                                     std::to_string(nth) + which + " fails";
            in_child(name, [&] { run_once(operation, spec, {of, nth}); });
        }
}

// Makes each driver call of the operation fail, as often as the operation makes it.
void every_call_fails(const Operation& operation, const std::string& spec) {
    every_call_fails_with(operation, spec, CUDA_ERROR_UNKNOWN);
    // Runs in this process with the same sequence of calls.
    if (!check::slow)
        every_call_fails_with(operation, spec, CUDA_ERROR_OUT_OF_MEMORY);
    if (memory::can_fail && !check::slow)
        every_allocation_fails(operation, spec);
}

// Destroys an object that the operation may have created.
template <class Handle>
void destroy(Handle& handle, gcx_result (*function)(Handle)) {
    if (handle != nullptr)
        CHECK_OK(function(handle));
    handle = nullptr;
}

// An operation on a State, which the functions create, use and destroy.
template <class State>
struct Named {
    const char* name;
    void (*prepare)(State&);
    gcx_result (*run)(State&);
    int since = 12040; // the driver's version
};

// Tests all operations on the driver; returns main's result.
template <class State, std::size_t kCount>
int test_all(const char* name, const std::string& driver, const Named<State> (&operations)[kCount],
             void (*destroy)(State&)) {
    for (const Named<State>& operation : operations) {
        if (version_of(driver) < operation.since)
            continue;
        State state;
        every_call_fails({operation.name, [&] { operation.prepare(state); },
                          [&] { return operation.run(state); }, [&] { destroy(state); }},
                         "h100@" + driver);
    }
    return support::summary((name + ("-" + driver)).c_str());
}

// A destroy function that fails keeps the handle valid; success sets it to null, and a repetition
// has nothing to do.
template <class Handle, class Destroy>
gcx_result destroyed(Handle& handle, Destroy function) {
    const gcx_result result = handle != nullptr ? function(handle) : GCX_SUCCESS;
    if (result == GCX_SUCCESS)
        handle = nullptr;
    return result;
}

namespace objects {

// Has what an operation uses and what it creates, so that cleanup destroys both.
struct State {
    gcx_resource sm{};
    gcx_resource other_sm{};
    gcx_context context = nullptr;
    gcx_context second = nullptr;
    gcx_stream stream = nullptr;
    gcx_stream own_stream = nullptr;
    gcx_event event = nullptr;
    Outputs out;
    int pushed = 0;
    std::unique_ptr<External> external;
};

void destroy_all(State& state) {
    for (; state.pushed > 0; state.pushed--)
        CHECK_OK(gcx_context_pop(nullptr));
    destroy(state.event, gcx_event_destroy);
    for (gcx_stream* stream : {&state.stream, &state.own_stream})
        destroy(*stream, gcx_stream_destroy);
    for (gcx_context* context : {&state.context, &state.second})
        destroy(*context, gcx_context_destroy);
    state.external.reset();
}

// The following functions prepare a state and don't fail.
void nothing(State&) {
}
void resources(State& state) {
    const Split made = split(whole_device(), {24, 108});
    state.sm = made.groups[0];
    state.other_sm = made.groups[1];
}
void context(State& state) {
    resources(state);
    CHECK_OK(gcx_context_create(&state.sm, 1, nullptr, &state.context));
}
void cached_context(State& state) {
    context(state);
    destroy(state.context, gcx_context_destroy);
}
void stream(State& state) {
    context(state);
    CHECK_OK(gcx_stream_create(state.context, nullptr, &state.stream));
}
void last_stream(State& state) {
    stream(state);
    destroy(state.context, gcx_context_destroy);
}
void event(State& state) {
    context(state);
    state.event = make_event(0, GCX_EVENT_TIMING);
}
void pushed(State& state) {
    context(state);
    CHECK_OK(gcx_context_push(state.context));
    state.pushed = 1;
}
void external(State& state) {
    resources(state);
    state.external = std::make_unique<External>();
}
void external_handle(State& state) {
    external(state);
    CHECK_OK(gcx_stream_from_native(state.external->stream, &state.stream));
}
// Makes a handle of a stream of a green context that gcx did not create.
void external_green_handle(State& state) {
    state.external = std::make_unique<External>(16);
    CHECK_OK(gcx_stream_from_native(state.external->stream, &state.stream));
}

gcx_result split_whole(gcx_sm_request request, uint32_t flags) {
    gcx_resource whole{};
    gcx_resource group{};
    const gcx_result result = gcx_device_get_resource(0, GCX_RESOURCE_SM, &whole);
    return result != GCX_SUCCESS
               ? result
               : gcx_sm_split(&whole, &request, 1, flags, &group, nullptr, nullptr, nullptr);
}

gcx_result with_workqueue(State& state) {
    gcx_resource both[2] = {state.sm, {}};
    gcx_result result = gcx_device_get_resource(0, GCX_RESOURCE_WORKQUEUE_CONFIG, &both[1]);
    if (result == GCX_SUCCESS)
        result =
            gcx_workqueue_configure(&both[1], GCX_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED, 2, &both[1]);
    if (result == GCX_SUCCESS)
        result = gcx_context_create(both, 2, nullptr, &state.second);
    return result;
}

gcx_result probe(gcx_stream stream, uint32_t expected) {
    uint32_t ids[GCX_MAX_SMS];
    uint32_t count = 0;
    const gcx_result result = gcx_stream_probe_sms(stream, ids, GCX_MAX_SMS, &count);
    if (result == GCX_SUCCESS)
        CHECK_EQ(count, expected);
    return result;
}

const Named<State> kOperations[] = {
    {"split", nothing, [](State&) { return split_whole({.sm_count = 24}, GCX_SPLIT_DEFAULT); }},
    {"fine split", nothing,
     [](State&) { return split_whole({.sm_count = 24}, GCX_SPLIT_IGNORE_SM_COSCHEDULING); }},
    {"max-cluster split", nothing,
     [](State&) { return split_whole({.sm_count = 24}, GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE); }},
    {"structured split", nothing,
     [](State&) { return split_whole({.sm_count = 16, .coscheduled_sm_count = 8}, 0); }, 13010},
    {"context create, the first", resources,
     [](State& state) { return gcx_context_create(&state.sm, 1, nullptr, &state.context); }},
    {"context create, of the remainder atom", resources,
     [](State& state) { return gcx_context_create(&state.other_sm, 1, nullptr, &state.context); }},
    {"context create, one more", context,
     [](State& state) { return gcx_context_create(&state.other_sm, 1, nullptr, &state.second); }},
    {"context create, one in use", context,
     [](State& state) { return gcx_context_create(&state.sm, 1, nullptr, &state.second); }},
    {"context create, a cached one", cached_context,
     [](State& state) { return gcx_context_create(&state.sm, 1, nullptr, &state.second); }},
    {"context create, with a workqueue", resources, with_workqueue, 13010},
    {"context create, a private one", context,
     [](State& state) {
         gcx_context_params params = GCX_CONTEXT_PARAMS_INIT;
         params.flags = GCX_CONTEXT_PRIVATE;
         return gcx_context_create(&state.sm, 1, &params, &state.second);
     }},
    {"context create, with another's workqueue", context,
     [](State& state) {
         gcx_resource both[2] = {state.other_sm, {}};
         const gcx_result result =
             gcx_context_get_resource(state.context, GCX_RESOURCE_WORKQUEUE, &both[1]);
         return result != GCX_SUCCESS ? result
                                      : gcx_context_create(both, 2, nullptr, &state.second);
     },
     13010},
    {"context workqueue", context,
     [](State& state) {
         return gcx_context_get_resource(state.context, GCX_RESOURCE_WORKQUEUE,
                                         &state.out.resource);
     },
     13010},
    {"context push", context,
     [](State& state) {
         const gcx_result result = gcx_context_push(state.context);
         state.pushed += result == GCX_SUCCESS ? 1 : 0;
         return result;
     }},
    {"context push, on one", pushed,
     [](State& state) {
         const gcx_result result = gcx_context_push(state.context);
         state.pushed += result == GCX_SUCCESS ? 1 : 0;
         return result;
     }},
    {"context pop", pushed,
     [](State& state) {
         const gcx_result result = gcx_context_pop(nullptr);
         state.pushed -= result == GCX_SUCCESS ? 1 : 0;
         return result;
     }},
    {"context list", context,
     [](State& state) { return gcx_context_list(-1, state.out.live, 64, &state.out.number); }},
    {"context get current", pushed,
     [](State& state) { return gcx_context_get_current(&state.out.context); }},
    {"resource clusters, with the first context", resources,
     [](State& state) { return gcx_resource_find_max_cluster_size(&state.sm, &state.out.number); }},
    {"context destroy", context,
     [](State& state) { return destroyed(state.context, gcx_context_destroy); }},
    {"context destroy, keeping none", context,
     [](State& state) {
         const gcx_result result = gcx_cache_set_limit(0);
         return result != GCX_SUCCESS ? result : destroyed(state.context, gcx_context_destroy);
     }},
    {"stream create", context,
     [](State& state) { return gcx_stream_create(state.context, nullptr, &state.stream); }},
    {"stream destroy", stream,
     [](State& state) { return destroyed(state.stream, gcx_stream_destroy); }},
    {"stream destroy, the last of its context", last_stream,
     [](State& state) { return destroyed(state.stream, gcx_stream_destroy); }},
    {"stream destroy, keeping none", last_stream,
     [](State& state) {
         const gcx_result result = gcx_cache_set_limit(0);
         return result != GCX_SUCCESS ? result : destroyed(state.stream, gcx_stream_destroy);
     }},
    {"stream from native", external,
     [](State& state) { return gcx_stream_from_native(state.external->stream, &state.stream); }},
    {"stream from native, of gcx", stream,
     [](State& state) {
         const CUstream native = gcx_stream_native(state.stream);
         return native == nullptr ? GCX_ERROR_UNKNOWN
                                  : gcx_stream_from_native(native, &state.own_stream);
     }},
    {"external stream info", external_handle,
     [](State& state) { return gcx_stream_get_info(state.stream, &state.out.of_stream); }},
    {"external stream resource", external_green_handle,
     [](State& state) {
         return gcx_stream_get_resource(state.stream, GCX_RESOURCE_SM, &state.out.resource);
     },
     13010},
    {"external stream resource, of the whole device", external_handle,
     [](State& state) {
         return gcx_stream_get_resource(state.stream, GCX_RESOURCE_SM, &state.out.resource);
     }},
    {"event from native", external,
     [](State& state) { return gcx_event_from_native(state.external->event, &state.event); }},
    {"event create", resources,
     [](State& state) { return gcx_event_create(0, GCX_EVENT_TIMING, &state.event); }},
    {"event destroy", event,
     [](State& state) { return destroyed(state.event, gcx_event_destroy); }},
    {"event destroy, with the primary context",
     [](State& state) { CHECK_OK(gcx_event_create(0, 0, &state.event)); },
     [](State& state) { return destroyed(state.event, gcx_event_destroy); }},
    {"probe, one more",
     [](State& state) {
         stream(state);
         CHECK_OK(probe(state.stream, 24));
     },
     [](State& state) { return probe(state.stream, 24); }},
    {"external probe", external_handle, [](State& state) { return probe(state.stream, 132); }},
    {"fine map", nothing, [](State&) { return gcx_device_map_sms(0, GCX_SM_FAMILY_FINE); }},
    {"cache limit 0", cached_context, [](State&) { return gcx_cache_set_limit(0); }},
    {"cache limit 0, of three",
     [](State& state) {
         for (const gcx_resource& group : split(whole_device(), {8, 16, 24}).groups) {
             CHECK_OK(gcx_context_create(&group, 1, nullptr, &state.context));
             destroy(state.context, gcx_context_destroy);
         }
     },
     [](State&) { return gcx_cache_set_limit(0); }},
};

// Calls the functions that leave all objects as they are.
void every_function_fails(const std::string& spec) {
    for (const Call& call : all_calls()) {
        if ((call.uses & kEffects) != 0)
            continue;
        Objects made;
        Outputs out;
        const auto prepare = [&] {
            if ((call.uses & kNothing) == 0)
                made = Objects::make(24);
        };
        const auto cleanup = [&] {
            if (made.context != nullptr)
                made.destroy();
        };
        every_call_fails({call.name, prepare, [&] { return call.run(made, out); }, cleanup}, spec);
    }
}

// Opening a driver begins before a failure can be set by a call, so the environment sets it.
void opening_fails_at_every_call(const std::string& spec) {
    const std::string choice = "sim:" + spec;
    const uint64_t calls = answer_of_child([&] {
        CHECK_OK(gcx_driver_open(choice.c_str()));
        return sim::calls();
    });
    CHECK(calls > 10);
    for (uint64_t nth = 1; nth <= calls; nth += kStep) {
        for (const CUresult injected : {CUDA_ERROR_UNKNOWN, CUDA_ERROR_OUT_OF_MEMORY}) {
            in_child(spec + ": opening, call " + std::to_string(nth) + " fails", [&] {
                const std::string order =
                    "*:" + std::to_string(nth) + ":" + std::to_string(injected);
                setenv("GCX_SIM_FAIL", order.c_str(), 1);
                sim_symbol("cuInit"); // keeps the library loaded, so that the order is given once
                int32_t count = -1;
                const gcx_result opened = gcx_driver_open(choice.c_str());
                if (opened == GCX_SUCCESS) {
                    CHECK_OK(gcx_device_get_count(&count));
                } else {
                    CHECK_EQ(static_cast<int>(opened), static_cast<int>(injected));
                    CHECK(*gcx_last_error_message() != '\0');
                    CHECK_OK(gcx_driver_open(choice.c_str()));
                    CHECK_OK(gcx_device_get_count(&count));
                }
                CHECK_EQ(count, 1);
                CHECK_EQ(left_behind(gcx_sim_counts{}, sim::counts()), std::string());
            });
        }
    }
}

} // namespace objects

namespace ahead {

struct State {
    std::vector<gcx_resource> sets;
    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
    std::unique_ptr<GraphKernels> kernels;
};

void three_sets(State& state) {
    state.sets = sets({8, 24, 40});
}

void some_cached(State& state) {
    three_sets(state);
    CHECK_OK(gcx_cache_prepare(state.sets.data(), 3, nullptr));
    state.context = make_context(state.sets[0]);
    for (int i = 0; i < 2; i++) {
        gcx_stream stream = make_stream(state.context);
        CHECK_OK(gcx_stream_destroy(stream));
    }
}

void stream_and_kernel(State& state) {
    state.context = make_context(sets({24})[0]);
    state.stream = make_stream(state.context);
    state.kernels = std::make_unique<GraphKernels>();
}

void destroy_all(State& state) {
    destroy(state.stream, gcx_stream_destroy);
    destroy(state.context, gcx_context_destroy);
    state.kernels.reset();
}

gcx_result prepare(const State& state, uint32_t flags) {
    gcx_prepare_params params = GCX_PREPARE_PARAMS_INIT;
    params.flags = flags;
    const gcx_result result = gcx_cache_prepare(state.sets.data(), 3, &params);
    no_more_failures();
    const gcx_cache_stats stats = cache_stats();
    CHECK(result != GCX_SUCCESS || stats.cached == 3);
    CHECK_EQ(stats.cached,
             sim::counts().green_contexts); // every context that was created is cached
    CHECK_EQ(stats.in_use, 0U);
    return result;
}

gcx_result trim() {
    gcx_cache_trimmed trimmed = GCX_CACHE_TRIMMED_INIT;
    const gcx_result result = gcx_cache_trim(0, &trimmed);
    no_more_failures();
    const gcx_cache_stats stats = cache_stats();
    CHECK_EQ(stats.cached + stats.in_use, sim::counts().green_contexts);
    CHECK_EQ(stats.cached_streams, sim::counts().streams);
    return result;
}

const Named<State> kOperations[] = {
    {"prepare", three_sets, [](State& state) { return prepare(state, 0); }},
    {"prepare for leases", three_sets,
     [](State& state) { return prepare(state, GCX_PREPARE_FOR_LEASES); }},
    {"trim", some_cached, [](State&) { return trim(); }},
    {"limit 0", some_cached, [](State&) { return gcx_cache_set_limit(0); }},
    {"kernel fit", stream_and_kernel,
     [](State& state) {
         gcx_kernel_fit_params params = GCX_KERNEL_FIT_PARAMS_INIT;
         params.block_threads = 256;
         params.cluster_blocks = 4;
         gcx_kernel_fit fit = GCX_KERNEL_FIT_INIT;
         return gcx_stream_get_kernel_fit(state.stream, state.kernels->library_probe, &params,
                                          &fit);
     }},
};

} // namespace ahead

namespace graphs {

struct State {
    std::unique_ptr<GraphKernels> kernels;
    std::unique_ptr<Split> parts;
    std::unique_ptr<Partition> small;
    std::unique_ptr<Partition> large;
    CUgraph captured = nullptr;
    CUgraph other = nullptr; // the same nodes, other parameters
    gcx_graph graph = nullptr;
};

CUgraph capture_one(const GraphKernels& kernels, uint32_t place) {
    return capture(kernels.plain, [&] {
        kernels.probe(kernels.plain, From::library, place);
        kernels.clear(kernels.plain, 4);
        kernels.probe(kernels.plain, From::module, place + 1);
    });
}

void captured(State& state) {
    state.kernels = std::make_unique<GraphKernels>();
    state.parts = std::make_unique<Split>(split(whole_device(), {24, 108}));
    state.small = std::make_unique<Partition>(state.parts->groups[0]);
    state.large = std::make_unique<Partition>(state.parts->groups[1]);
    state.captured = capture_one(*state.kernels, 0);
    state.other = capture_one(*state.kernels, 2);
}

void created(State& state) {
    captured(state);
    CHECK_OK(gcx_graph_create(state.captured, nullptr, &state.graph));
}

void prepared(State& state) {
    created(state);
    for (const gcx_resource& part : state.parts->groups)
        CHECK_OK(gcx_graph_prepare(state.graph, &part, 1, 0));
}

void of_two_parts(State& state) {
    created(state);
    const uint32_t last = 2;
    CHECK_OK(gcx_graph_set_part(state.graph, &last, 1, 1));
    CHECK_OK(gcx_graph_prepare(state.graph, state.parts->groups.data(), 2, 0));
    state.kernels->spin(gcx_stream_native(state.large->stream), 1'000'000);
}

// Checks that the graph's two kernels note their SMs in these places, whatever failed before.
void check_graph(const State& state, uint32_t place) {
    for (uint32_t i = 0; i < 6; i++)
        state.kernels->take_sms(i);
    for (const Partition* part : {state.small.get(), state.large.get()}) {
        CHECK_OK(gcx_graph_launch(state.graph, &part->stream, 1));
        const std::size_t sms = part == state.small.get() ? 24 : 108;
        CHECK_EQ(state.kernels->count_sms(place), sms);
        CHECK_EQ(state.kernels->count_sms(place + 1), sms);
    }
}

void destroy_all(State& state) {
    destroy(state.graph, gcx_graph_destroy);
    for (CUgraph graph : {state.captured, state.other})
        CHECK_NATIVE(cuGraphDestroy, graph);
    state.small.reset();
    state.large.reset();
    state.kernels.reset();
}

// Checks that all executables changed or none did.
gcx_result set_kernel_checked(State& state, uint32_t node) {
    const gcx_result result = state.kernels->redirect(state.graph, node, 5);
    no_more_failures();
    for (uint32_t i = 0; i < 6; i++)
        state.kernels->take_sms(i);
    for (const Partition* part : {state.small.get(), state.large.get()}) {
        CHECK_OK(gcx_graph_launch(state.graph, &part->stream, 1));
        const bool there = state.kernels->count_sms(5) != 0;
        CHECK_EQ(there, result == GCX_SUCCESS);
    }
    return result;
}

const Named<State> kOperations[] = {
    {"create", captured,
     [](State& state) {
         destroy(state.graph, gcx_graph_destroy);
         return gcx_graph_create(state.captured, nullptr, &state.graph);
     }},
    {"first launch", created,
     [](State& state) {
         const gcx_result result = gcx_graph_launch(state.graph, &state.small->stream, 1);
         no_more_failures();
         check_graph(state, 0);
         return result;
     }},
    {"launch", prepared,
     [](State& state) { return gcx_graph_launch(state.graph, &state.small->stream, 1); }},
    {"launch of parts", of_two_parts,
     [](State& state) {
         const gcx_stream streams[] = {state.small->stream, state.large->stream};
         return gcx_graph_launch(state.graph, streams, 2);
     }},
    {"launch of parts elsewhere", of_two_parts,
     [](State& state) {
         const gcx_stream streams[] = {state.large->stream, state.small->stream};
         return gcx_graph_launch(state.graph, streams, 2);
     }},
    {"prepare another", prepared,
     [](State& state) {
         const gcx_resource whole = whole_device();
         const gcx_result result = gcx_graph_prepare(state.graph, &whole, 1, 0);
         no_more_failures();
         check_graph(state, 0);
         return result;
     }},
    {"prepare for leases", created,
     [](State& state) {
         return gcx_graph_prepare(state.graph, state.parts->groups.data(), 1,
                                  GCX_PREPARE_FOR_LEASES);
     }},
    {"set part", prepared,
     [](State& state) {
         const uint32_t last = 2;
         return gcx_graph_set_part(state.graph, &last, 1, 1);
     }},
    {"set a kernel before any launch", created,
     [](State& state) { return set_kernel_checked(state, 2); }},
    {"set a library's kernel", prepared, [](State& state) { return set_kernel_checked(state, 0); }},
    {"set a module's kernel", prepared, [](State& state) { return set_kernel_checked(state, 2); }},
    {"update", prepared,
     [](State& state) {
         const gcx_result result = gcx_graph_update(state.graph, state.other);
         no_more_failures();
         check_graph(state, result == GCX_SUCCESS ? 2 : 0);
         return result;
     }},
    {"nodes and info", prepared,
     [](State& state) {
         uint32_t count = 0;
         gcx_graph_node nodes[3];
         const gcx_result result = gcx_graph_get_nodes(state.graph, nodes, 3, &count);
         gcx_graph_info info = GCX_GRAPH_INFO_INIT;
         return result == GCX_SUCCESS ? gcx_graph_get_info(state.graph, &info) : result;
     }},
    {"destroy", prepared, [](State& state) { return destroyed(state.graph, gcx_graph_destroy); }},
};

} // namespace graphs

namespace leases {

struct State {
    std::unique_ptr<Work> work;
    gcx_lease decode = nullptr;
    gcx_lease prefill = nullptr;
    gcx_stream fast = nullptr;
    gcx_stream heavy = nullptr;
    gcx_lease more = nullptr;
    gcx_resource had[2] = {}; // decode's and prefill's
};

void destroy_all(State& state) {
    check_live_leases();
    // A context with unfinished work would stay in use.
    sim::advance(10'000'000);
    for (gcx_stream* stream : {&state.fast, &state.heavy})
        destroy(*stream, gcx_stream_destroy);
    for (gcx_lease* lease : {&state.decode, &state.prefill, &state.more})
        destroy(*lease, gcx_lease_release);
    state.work.reset();
}

void nothing(State&) {
}

void one(State& state) {
    CHECK_OK(gcx_lease_acquire(0, 32, nullptr, &state.decode));
}

void one_with_a_stream(State& state) {
    one(state);
    CHECK_OK(gcx_lease_stream_create(state.decode, nullptr, &state.fast));
}

// Creates leases for decode and prefill, both with work in flight.
void two_at_work(State& state) {
    state.work = std::make_unique<Work>();
    one_with_a_stream(state);
    CHECK_OK(gcx_lease_acquire(0, GCX_REST, nullptr, &state.prefill));
    CHECK_OK(gcx_lease_stream_create(state.prefill, nullptr, &state.heavy));
    state.had[0] = resource_of(state.decode);
    state.had[1] = resource_of(state.prefill);
    state.work->spin(gcx_stream_native(state.fast), 1'000'000);
    state.work->spin(gcx_stream_native(state.heavy), 5'000'000);
}

// Also caches the context of both together, since creating it would wait for the work.
void two_at_work_next_to_all(State& state) {
    gcx_lease all = acquire(GCX_REST);
    CHECK_OK(gcx_lease_release(all));
    two_at_work(state);
}

void two_changed(State& state) {
    two_at_work(state);
    CHECK_OK(resize({{state.decode, 64, 0}, {state.prefill, GCX_REST, 0}}));
}

void two_parked(State& state) {
    two_at_work_next_to_all(state);
    CHECK_OK(resize({{state.prefill, 0, GCX_SIZE_PARKED}, {state.decode, GCX_REST, 0}}));
    state.had[0] = resource_of(state.decode);
    state.had[1] = resource_of(state.prefill);
}

// Decode's stream stays on its SMs until prefill's work on the new ones is done.
void two_deferred(State& state) {
    two_at_work(state);
    const gcx_lease_size sizes[] = {{state.decode, 64, 0}, {state.prefill, GCX_REST, 0}};
    CHECK_OK(gcx_lease_prepare(sizes, 2));
    state.work->spin(gcx_stream_native(state.heavy), 5'000'000);
    CHECK_OK(gcx_lease_resize(sizes, 2, GCX_RESIZE_DEFERRED));
}

void two_deferred_and_free(State& state) {
    two_deferred(state);
    state.work->spin(gcx_stream_native(state.fast), 9'000'000);
    sim::advance(6'000'000);
}

// Checks that both leases changed or neither did, also if the driver failed in between.
gcx_result resize_both(State& state, uint32_t flags) {
    const gcx_lease_size sizes[] = {{state.decode, 64, 0}, {state.prefill, GCX_REST, 0}};
    const gcx_result result = gcx_lease_resize(sizes, 2, flags);
    no_more_failures();
    const gcx_resource decode = resource_of(state.decode);
    const gcx_resource prefill = resource_of(state.prefill);
    if (result == GCX_SUCCESS) {
        CHECK_EQ(sms(decode), 64U);
        CHECK_EQ(sms(prefill), 68U);
    } else {
        CHECK_EQ(std::memcmp(&decode, &state.had[0], sizeof decode), 0);
        CHECK_EQ(std::memcmp(&prefill, &state.had[1], sizeof prefill), 0);
    }
    return result;
}

gcx_result native(gcx_stream stream) {
    return gcx_stream_native(stream) != nullptr ? GCX_SUCCESS : GCX_ERROR_UNKNOWN;
}

gcx_result park(State& state) {
    const gcx_lease_size sizes[] = {{state.prefill, 0, GCX_SIZE_PARKED},
                                    {state.decode, GCX_REST, 0}};
    const gcx_result result = gcx_lease_resize(sizes, 2, GCX_RESIZE_DEFAULT);
    no_more_failures();
    CHECK_EQ(sms_of(state.prefill), result == GCX_SUCCESS ? 0U : 100U);
    CHECK_EQ(sms_of(state.decode), result == GCX_SUCCESS ? 132U : 32U);
    return result;
}

const Named<State> kOperations[] = {
    {"acquire", nothing,
     [](State& state) {
         destroy(state.more, gcx_lease_release);
         return gcx_lease_acquire(0, 24, nullptr, &state.more);
     }},
    {"acquire the rest", one,
     [](State& state) {
         destroy(state.more, gcx_lease_release);
         return gcx_lease_acquire(0, GCX_REST, nullptr, &state.more);
     }},
    {"stream create", one,
     [](State& state) {
         destroy(state.fast, gcx_stream_destroy);
         return gcx_lease_stream_create(state.decode, nullptr, &state.fast);
     }},
    {"resize two", two_at_work, [](State& state) { return resize_both(state, 0); }},
    {"resize two at once", two_at_work,
     [](State& state) { return resize_both(state, GCX_RESIZE_DEFERRED); }},
    {"a stream follows", two_changed, [](State& state) { return native(state.fast); }},
    {"a stream follows, the one that gave", two_changed,
     [](State& state) { return native(state.heavy); }},
    {"a stream stays", two_deferred, [](State& state) { return native(state.fast); }},
    {"a stream follows when the SMs are free", two_deferred_and_free,
     [](State& state) { return native(state.fast); }},
    {"release of a deferred one", two_deferred,
     [](State& state) { return destroyed(state.decode, gcx_lease_release); }},
    {"stream info after a change", two_changed,
     [](State& state) {
         gcx_stream_info info = GCX_STREAM_INFO_INIT;
         return gcx_stream_get_info(state.fast, &info);
     }},
    {"prepare", two_at_work,
     [](State& state) {
         const gcx_lease_size sizes[] = {{state.decode, 64, 0}, {state.prefill, GCX_REST, 0}};
         return gcx_lease_prepare(sizes, 2);
     }},
    {"park", two_at_work, park},
    {"park, all prepared", two_at_work_next_to_all, park},
    {"resize of a parked one", two_parked,
     [](State& state) {
         const gcx_result result = resize_both(state, 0);
         return result != GCX_SUCCESS ? result : native(state.heavy);
     }},
    {"release", two_at_work,
     [](State& state) { return destroyed(state.prefill, gcx_lease_release); }},
    {"release the last", one_with_a_stream,
     [](State& state) { return destroyed(state.decode, gcx_lease_release); }},
    {"synchronize", two_changed, [](State& state) { return gcx_lease_synchronize(state.decode); }},
    {"query", two_at_work,
     [](State& state) {
         const gcx_result result = gcx_lease_query(state.decode);
         return result == GCX_ERROR_NOT_READY ? GCX_SUCCESS : result;
     }},
    {"stream destroy after a change", two_changed,
     [](State& state) { return destroyed(state.fast, gcx_stream_destroy); }},
};

} // namespace leases

} // namespace

int main(int argc, char** argv) {
    const std::string subject = argc > 1 ? argv[1] : "objects";
    const std::string driver = argc > 2 ? argv[2] : "13.0";
    if (subject == "ahead")
        return test_all("ahead-faults", driver, ahead::kOperations, ahead::destroy_all);
    if (subject == "graphs")
        return test_all("graph-faults", driver, graphs::kOperations, graphs::destroy_all);
    if (subject == "leases")
        return test_all("lease-faults", driver, leases::kOperations, leases::destroy_all);
    objects::opening_fails_at_every_call("h100@" + driver);
    objects::every_function_fails("h100@" + driver);
    return test_all("faults", driver, objects::kOperations, objects::destroy_all);
}
