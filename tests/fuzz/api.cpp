// Interprets an input as a program: a machine, a number of threads, then operations on a small
// table of resources and handles. Driver calls fail, streams capture and the device is reset in
// between.
//
// Besides crashes, hangs and leaks, the harness checks that
// - a failure has a message and writes nothing,
// - no call returns GCX_ERROR_UNKNOWN, which would be a defect of gcx,
// - a split returns the counts of its plan,
// - all objects can be destroyed, and then no context is in use.

#include "api.hpp"
#include "harness.hpp"

#include <gcx.h>
#include <gcx_sim.h>

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace fuzz;

namespace {

constexpr std::array kMachines = {
    "h100@13.0", "2xh100@13.5", "h100@12.4", "b200@13.1",      "gb200@13.4",
    "orin@12.8", "none@13.0",   "a100@12.5", "h100,a100@13.1", "rtx4090@13.5",
};
constexpr std::array kInjected = {
    CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE,      CUDA_ERROR_LAUNCH_FAILED,
    CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_DEVICE_UNAVAILABLE, CUDA_ERROR_CONTEXT_IS_DESTROYED,
};
constexpr uint32_t kMaxRequests = 200;

// A lock of the application, which the log callback takes and callers of gcx may hold.
std::recursive_mutex& application() {
    static std::recursive_mutex lock;
    return lock;
}
std::size_t logged = 0;

void on_log(gcx_log_level level, const char* message, void* user_data) {
    const std::lock_guard lock(application());
    must(user_data == &logged, "the log's user_data");
    must(level > GCX_LOG_NONE && level <= GCX_LOG_DEBUG, "the log's level");
    logged += std::strlen(message);
}

// --------------------------------------------------------------------------------------------
// Operations
// --------------------------------------------------------------------------------------------

void library_facts(Bytes& bytes, Shared&) {
    must(gcx_version() == GCX_VERSION, "the version");
    const auto result = static_cast<gcx_result>(static_cast<int>(bytes.number()));
    must(*gcx_result_name(result) != '\0' && *gcx_result_string(result) != '\0', "a name, a text");
    must(gcx_simulator_path() != nullptr, "the simulator's path");
}

void set_log(Bytes& bytes, Shared&) {
    const auto level = static_cast<gcx_log_level>(static_cast<int>(bytes.next() % 7) - 1);
    CALL(gcx_log_set_callback(level, bytes.flag() ? on_log : nullptr, &logged));
}

void open_driver(Bytes& bytes, Shared&) {
    constexpr std::array<const char*, 5> kChoices = {nullptr, "", "sim:h100@13.0", "sim:none@1",
                                                     "no such library.so"};
    CALL(gcx_driver_open(bytes.of(kChoices)));
}

void driver_info(Bytes& bytes, Shared&) {
    auto info = sized<gcx_driver_info>(bytes);
    CALL_OUT(info, gcx_driver_get_info(&info.value));
}

void device_info(Bytes& bytes, Shared&) {
    Out<int32_t> count;
    CALL_OUT(count, gcx_device_get_count(&count.value));
    auto info = sized<gcx_device_info>(bytes);
    const int32_t which = device(bytes);
    CALL_OUT(info, gcx_device_get_info(which, &info.value));
    Out<int32_t> least;
    Out<int32_t> greatest;
    const gcx_result result =
        CALL_OUT(least, gcx_device_get_stream_priority_range(which, &least.value, &greatest.value));
    greatest.check(result, "the greatest priority");
}

void device_resource(Bytes& bytes, Shared& shared) {
    Out<gcx_resource> resource;
    const int32_t which = device(bytes);
    if (CALL_OUT(resource, gcx_device_get_resource(which, type(bytes), &resource.value)) ==
        GCX_SUCCESS)
        shared.put(bytes, resource.value);
}

void resource_info(Bytes& bytes, Shared& shared) {
    const gcx_resource resource = shared.resource(bytes);
    auto info = sized<gcx_resource_info>(bytes);
    CALL_OUT(info, gcx_resource_get_info(&resource, &info.value));
}

void configure_workqueue(Bytes& bytes, Shared& shared) {
    const gcx_resource config = shared.resource(bytes);
    Out<gcx_resource> configured;
    const auto scope = static_cast<gcx_workqueue_scope>(bytes.next() % 3);
    if (CALL_OUT(configured, gcx_workqueue_configure(&config, scope, bytes.number(),
                                                     &configured.value)) == GCX_SUCCESS)
        shared.put(bytes, configured.value);
}

std::vector<gcx_sm_request> requests(Bytes& bytes) {
    const uint32_t count = bytes.number();
    std::vector<gcx_sm_request> list(count < 16 ? count : count < 0xf0 ? 2 : kMaxRequests);
    for (gcx_sm_request& request : list) {
        request.sm_count = bytes.count();
        const uint8_t more = bytes.next();
        if (more < 0xc0)
            continue;
        request.coscheduled_sm_count = bytes.number();
        request.preferred_coscheduled_sm_count = bytes.number();
        request.flags = bytes.next() % 16;
        request.locality_domain_id = bytes.number();
        request.reserved[bytes.next() % 11] = more == 0xff ? 1 : 0;
    }
    return list;
}

uint32_t split_flags(Bytes& bytes) {
    constexpr std::array<uint32_t, 8> kFlags = {0, 1, 2, 0x100, 0x101, 0x102, 3, 0x80000000U};
    return bytes.of(kFlags);
}

void check_split(const gcx_resource& input, const std::vector<gcx_resource>& groups,
                 const gcx_resource& remainder) {
    uint32_t total = sm_count_of(remainder);
    for (const gcx_resource& group : groups) {
        total += sm_count_of(group);
        must(sm_count_of(group) > 0, "an empty group");
        uint32_t shared = 1;
        must(gcx_resource_get_overlap(&group, &remainder, &shared) == GCX_SUCCESS && shared == 0,
             "a group and the remainder overlap");
    }
    must(total == sm_count_of(input), "a split lost or found SMs");
}

void split(Bytes& bytes, Shared& shared) {
    const gcx_resource input = shared.resource(bytes);
    const std::vector<gcx_sm_request> list = requests(bytes);
    const uint32_t flags = split_flags(bytes);
    const auto count = static_cast<uint32_t>(list.size());
    // Always passes an array, so that both calls report the same errors.
    std::vector<gcx_resource> groups(list.size() + 1);
    Out<gcx_resource> remainder;
    const gcx_result result =
        CALL_OUT(remainder, gcx_sm_split(&input, list.data(), count, flags, groups.data(),
                                         &remainder.value, nullptr, nullptr));
    std::vector<uint32_t> counts(list.size() + 1);
    Out<uint32_t> rest;
    const gcx_result planned =
        CALL_OUT(rest, gcx_sm_split(&input, list.data(), count, flags, nullptr, nullptr,
                                    counts.data(), &rest.value));
    must(shared.injected || result == planned,
         "a split and its plan differ:", gcx_result_name(planned));
    if (result != GCX_SUCCESS)
        return;
    groups.resize(count);
    check_split(input, groups, remainder.value);
    for (uint32_t i = 0; i < count && planned == GCX_SUCCESS; i++)
        must(sm_count_of(groups[i]) == counts[i], "a group differs from its plan");
    shared.put(bytes, remainder.value);
    for (uint32_t i = 0; i < count && i < 4; i++)
        shared.put(bytes, groups[i]);
}

void combine(Bytes& bytes, Shared& shared) {
    const gcx_resource a = shared.resource(bytes);
    const gcx_resource b = shared.resource(bytes);
    Out<uint32_t> overlap;
    const gcx_result known = CALL_OUT(overlap, gcx_resource_get_overlap(&a, &b, &overlap.value));
    Out<gcx_resource> either;
    Out<gcx_resource> without;
    const gcx_result joined = CALL_OUT(either, gcx_resource_union(&a, &b, &either.value));
    const gcx_result left = CALL_OUT(without, gcx_resource_subtract(&a, &b, &without.value));
    must(shared.injected || joined == left, "union and difference disagree");
    Out<gcx_resource> both;
    if (joined != GCX_SUCCESS || left != GCX_SUCCESS ||
        CALL_OUT(both, gcx_resource_subtract(&a, &without.value, &both.value)) != GCX_SUCCESS)
        return;
    must(shared.injected || known == GCX_SUCCESS, "no overlap is known");
    must(known != GCX_SUCCESS || sm_count_of(both.value) == overlap.value, "the overlap");
    must(sm_count_of(either.value) == sm_count_of(without.value) + sm_count_of(b), "the union");
    shared.put(bytes, both.value);
    shared.put(bytes, either.value);
    shared.put(bytes, without.value);
}

void take_atom(Bytes& bytes, Shared& shared) {
    const gcx_resource resource = shared.resource(bytes);
    Out<gcx_resource> atom;
    if (CALL_OUT(atom, gcx_resource_get_atom(&resource, bytes.number(), &atom.value)) ==
        GCX_SUCCESS)
        shared.put(bytes, atom.value);
}

// Requests a list of SMs with a capacity that may be too small.
template <class Get>
void list_sms(Bytes& bytes, const Get& get) {
    const uint32_t capacity = bytes.flag() ? GCX_MAX_SMS : bytes.next();
    const std::unique_ptr<uint32_t[]> ids(new uint32_t[capacity]);
    uint32_t count = 0;
    if (checked(get(ids.get(), capacity, &count), "a list of SMs") != GCX_SUCCESS)
        return;
    must(count <= capacity, "more SMs than there is room for");
    for (uint32_t i = 1; i < count; i++)
        must(ids[i - 1] < ids[i], "SMs in the wrong order");
}

void map_sms(Bytes& bytes, Shared& shared) {
    const int32_t which = device(bytes);
    CALL(gcx_device_map_sms(which, static_cast<gcx_sm_family>(bytes.next() % 7)));
    const gcx_resource resource = shared.resource(bytes);
    list_sms(bytes, [&](uint32_t* ids, uint32_t capacity, uint32_t* count) {
        return gcx_resource_get_sm_ids(&resource, ids, capacity, count);
    });
}

void shared_sms(Bytes& bytes, Shared& /*shared*/) {
    const int32_t which = device(bytes);
    list_sms(bytes, [&](uint32_t* ids, uint32_t capacity, uint32_t* count) {
        return gcx_device_find_shared_sms(which, ids, capacity, count);
    });
}

void probe(Bytes& bytes, Shared& shared) {
    const gcx_stream stream = shared.streams.pick(bytes);
    list_sms(bytes, [&](uint32_t* ids, uint32_t capacity, uint32_t* count) {
        return gcx_stream_probe_sms(stream, ids, capacity, count);
    });
}

void verify(Bytes& bytes, Shared& shared) {
    std::vector<gcx_stream> streams(bytes.next() % 4);
    for (gcx_stream& stream : streams)
        stream = shared.streams.pick(bytes);
    std::vector<gcx_verified_stream> results(streams.size());
    gcx_verification found = GCX_VERIFICATION_INIT;
    gcx_verify(streams.data(), static_cast<uint32_t>(streams.size()), results.data(), &found);
}

void create_context(Bytes& bytes, Shared& shared) {
    std::vector<gcx_resource> resources;
    for (unsigned left = 1U + (bytes.next() & 3); left > 0; left--)
        resources.push_back(shared.resource(bytes));
    auto params = sized<gcx_context_params>(bytes);
    params.value.flags = bytes.number() & 3;
    Out<gcx_context> context;
    if (CALL_OUT(context,
                 gcx_context_create(resources.data(), static_cast<uint32_t>(resources.size()),
                                    bytes.flag() ? &params.value : nullptr, &context.value)) ==
        GCX_SUCCESS)
        shared.contexts.put(bytes, context.value);
}

void context_facts(Bytes& bytes, Shared& shared) {
    const gcx_context context = shared.contexts.pick(bytes);
    auto info = sized<gcx_context_info>(bytes);
    CALL_OUT(info, gcx_context_get_info(context, &info.value));
    Out<gcx_resource> resource;
    if (CALL_OUT(resource, gcx_context_get_resource(context, type(bytes), &resource.value)) ==
        GCX_SUCCESS)
        shared.put(bytes, resource.value);
    must((gcx_context_native(context) != nullptr && gcx_context_native_green(context) != nullptr) ||
             *gcx_last_error_message() != '\0',
         "no native handle and no message");
}

void push(Bytes& bytes, Shared& shared) {
    if (shared.nested)
        return;
    CALL(gcx_context_push(shared.contexts.pick(bytes)));
    Out<gcx_context> current;
    CALL_OUT(current, gcx_context_get_current(&current.value));
}

void pop(Bytes& bytes, Shared& shared) {
    if (shared.nested)
        return;
    Out<gcx_context> popped;
    CALL_OUT(popped, gcx_context_pop(bytes.flag() ? &popped.value : nullptr));
}

void synchronize_context(Bytes& bytes, Shared& shared) {
    CALL(gcx_context_synchronize(shared.contexts.pick(bytes)));
}

void create_stream(Bytes& bytes, Shared& shared) {
    const gcx_context context = shared.contexts.pick(bytes);
    auto params = sized<gcx_stream_params>(bytes);
    params.value.sync = static_cast<gcx_stream_sync>(bytes.next() >= 0xf0 ? 1 : 0);
    params.value.priority = static_cast<int8_t>(bytes.next());
    Out<gcx_stream> stream;
    if (CALL_OUT(stream, gcx_stream_create(context, bytes.flag() ? &params.value : nullptr,
                                           &stream.value)) == GCX_SUCCESS)
        shared.streams.put(bytes, stream.value);
}

void stream_facts(Bytes& bytes, Shared& shared) {
    const gcx_stream stream = shared.streams.pick(bytes);
    auto info = sized<gcx_stream_info>(bytes);
    CALL_OUT(info, gcx_stream_get_info(stream, &info.value));
    Out<gcx_resource> resource;
    if (CALL_OUT(resource, gcx_stream_get_resource(stream, type(bytes), &resource.value)) ==
        GCX_SUCCESS)
        shared.put(bytes, resource.value);
    must(gcx_stream_native(stream) != nullptr || *gcx_last_error_message() != '\0',
         "no native handle and no message");
}

void wait_for_stream(Bytes& bytes, Shared& shared) {
    const gcx_stream stream = shared.streams.pick(bytes);
    CALL(gcx_stream_query(stream));
    CALL(gcx_stream_synchronize(stream));
}

void create_event(Bytes& bytes, Shared& shared) {
    const int32_t which = device(bytes);
    Out<gcx_event> event;
    if (CALL_OUT(event, gcx_event_create(which, bytes.number(), &event.value)) == GCX_SUCCESS)
        shared.events.put(bytes, event.value);
}

void order(Bytes& bytes, Shared& shared) {
    const gcx_event event = shared.events.pick(bytes);
    switch (bytes.next() % 4) {
    case 0:
        CALL(gcx_stream_record(shared.streams.pick(bytes), event));
        break;
    case 1:
        CALL(gcx_context_record(shared.contexts.pick(bytes), event));
        break;
    case 2:
        CALL(gcx_stream_wait(shared.streams.pick(bytes), event));
        break;
    default:
        CALL(gcx_context_wait(shared.contexts.pick(bytes), event));
    }
}

void wait_for_event(Bytes& bytes, Shared& shared) {
    const gcx_event event = shared.events.pick(bytes);
    CALL(gcx_event_query(event));
    CALL(gcx_event_synchronize(event));
    must(gcx_event_native(event) != nullptr || *gcx_last_error_message() != '\0',
         "no native handle and no message");
    Out<float> milliseconds;
    const gcx_event end = shared.events.pick(bytes);
    CALL_OUT(milliseconds, gcx_event_get_elapsed(event, end, &milliseconds.value));
}

void cache(Bytes& bytes, Shared&) {
    auto stats = sized<gcx_cache_stats>(bytes);
    CALL_OUT(stats, gcx_cache_get_stats(&stats.value));
    if (bytes.flag())
        CALL(gcx_cache_set_limit(bytes.number()));
}

struct Preparation {
    Bytes& bytes;
    gcx_cancel cancel;
    uint32_t done;
    uint8_t cancel_at;
};

// A progress callback may call gcx.
void on_progress(uint32_t done, uint32_t count, void* user_data) {
    auto& preparation = *static_cast<Preparation*>(user_data);
    must(done == ++preparation.done && done <= count, "progress in steps of one");
    if (done == preparation.cancel_at)
        CALL(gcx_cancel_signal(preparation.cancel));
    gcx_cache_trimmed trimmed = GCX_CACHE_TRIMMED_INIT;
    if (preparation.bytes.next() == 0x77)
        CALL(gcx_cache_trim(0, &trimmed));
}

CUfunction forged(Bytes& bytes) {
    return reinterpret_cast<CUfunction>(uint64_t{bytes.word()});
}

void prepare(Bytes& bytes, Shared& shared) {
    std::vector<gcx_resource> resources(bytes.next() & 7);
    for (gcx_resource& resource : resources)
        resource = shared.resource(bytes);
    auto params = sized<gcx_prepare_params>(bytes).value;
    Preparation preparation = {bytes, shared.cancels.pick(bytes), 0, bytes.next()};
    params.flags = bytes.next() % 3;
    params.cancel = bytes.flag() ? preparation.cancel : nullptr;
    params.progress = bytes.flag() ? on_progress : nullptr;
    params.user_data = &preparation;
    const auto count = static_cast<uint32_t>(resources.size());
    if (CALL(gcx_cache_prepare(resources.data(), count, bytes.flag() ? &params : nullptr)) ==
        GCX_SUCCESS)
        must(preparation.done == 0 || preparation.done == count, "progress of all");
}

void trim(Bytes& bytes, Shared&) {
    if (bytes.flag())
        CALL(gcx_cache_set_limit(bytes.flag() ? 64 : bytes.number() % 8));
    auto trimmed = sized<gcx_cache_trimmed>(bytes);
    CALL_OUT(trimmed, gcx_cache_trim(bytes.number(), &trimmed.value));
    CALL(gcx_cache_trim(bytes.number(), nullptr));
}

void kernel_fit(Bytes& bytes, Shared& shared) {
    const gcx_stream stream = shared.streams.pick(bytes);
    auto params = sized<gcx_kernel_fit_params>(bytes).value;
    params.block_threads = bytes.number();
    params.dynamic_shared_bytes = bytes.flag() ? bytes.number() : 0;
    params.cluster_blocks = bytes.next();
    auto fit = sized<gcx_kernel_fit>(bytes);
    const Kernel kernel;
    CUfunction function = bytes.flag() ? reinterpret_cast<CUfunction>(kernel.get()) : forged(bytes);
    if (CALL_OUT(fit, gcx_stream_get_kernel_fit(stream, function, &params, &fit.value)) ==
        GCX_SUCCESS)
        must(fit.value.max_blocks <= fit.value.blocks_per_sm * fit.value.sm_count,
             "more blocks than the SMs hold");
}

// --------------------------------------------------------------------------------------------
// Injected failures, and uses of the driver by the application
// --------------------------------------------------------------------------------------------

void fail_call(Bytes& bytes, Shared& shared) {
    shared.injected = true;
    gcx_sim_fail(nullptr, 1U + (bytes.next() & 31), bytes.of(kInjected));
}

void advance(Bytes& bytes, Shared&) {
    gcx_sim_advance(bytes.word());
}

void reset_device(Bytes& bytes, Shared& shared) {
    if (!shared.single_thread)
        return;
    shared.reset = true;
    cuDevicePrimaryCtxReset(device(bytes));
}

void external_stream(Bytes& bytes, Shared& shared) {
    // One of CUDA's special streams, a stream of the application, or a stream of gcx.
    constexpr std::array<uint64_t, 3> kSpecial = {0, 1, 2};
    const uint8_t kind = bytes.next() % 8;
    CUstream native = nullptr;
    if (kind < 3) {
        native = reinterpret_cast<CUstream>(kSpecial[kind]);
    } else if (!shared.single_thread) {
        return;
    } else if (kind < 6) {
        CUcontext primary = nullptr;
        if (cuDevicePrimaryCtxRetain(&primary, 0) != CUDA_SUCCESS)
            return;
        if (cuCtxPushCurrent(primary) == CUDA_SUCCESS) {
            if (cuStreamCreate(&native, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS)
                shared.native_streams.push_back(native);
            CUcontext popped = nullptr;
            cuCtxPopCurrent(&popped);
        }
        cuDevicePrimaryCtxRelease(0);
        if (native == nullptr)
            return;
    } else {
        native = gcx_stream_native(shared.streams.pick(bytes));
    }
    Out<gcx_stream> stream;
    if (CALL_OUT(stream, gcx_stream_from_native(native, &stream.value)) == GCX_SUCCESS)
        shared.streams.put(bytes, stream.value);
}

CUstream native_of(Bytes& bytes, Shared& shared) {
    return shared.single_thread ? gcx_stream_native(shared.streams.pick(bytes)) : nullptr;
}

void begin_capture(Bytes& bytes, Shared& shared) {
    if (CUstream const native = native_of(bytes, shared); native != nullptr)
        cuStreamBeginCapture(native, static_cast<CUstreamCaptureMode>(bytes.next() % 3));
}

void end_capture(Bytes& bytes, Shared& shared) {
    CUgraph graph = nullptr;
    if (CUstream const native = native_of(bytes, shared);
        native != nullptr && cuStreamEndCapture(native, &graph) == CUDA_SUCCESS && graph != nullptr)
        cuGraphDestroy(graph);
}

void set_priority(Bytes& bytes, Shared& shared) {
    CUstream const native = native_of(bytes, shared);
    CUstreamAttrValue value{};
    value.priority = static_cast<int8_t>(bytes.next());
    if (native != nullptr)
        cuStreamSetAttribute(native, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
}

// Submits work that takes time.
void busy(Bytes& bytes, Shared& shared) {
    CUstream const native = native_of(bytes, shared);
    CUdeviceptr memory = 0;
    constexpr std::size_t kBytes = 1 << 16;
    if (native == nullptr || cuMemAllocAsync(&memory, kBytes, native) != CUDA_SUCCESS)
        return;
    cuMemsetD8Async(memory, 1, kBytes, native);
    cuMemFreeAsync(memory, native);
}

void one_operation(Bytes& bytes, Shared& shared);

// Runs the next operation while the application's context is current. The operation must not push
// or pop, so that the stack is unchanged afterwards.
void current_natively(Bytes& bytes, Shared& shared) {
    CUcontext const native = gcx_context_native(shared.contexts.pick(bytes));
    if (!shared.single_thread || shared.nested || native == nullptr ||
        cuCtxPushCurrent(native) != CUDA_SUCCESS)
        return;
    shared.nested = true;
    one_operation(bytes, shared);
    shared.nested = false;
    CUcontext popped = nullptr;
    // Repeat the call in case it failed by injection.
    if (cuCtxPopCurrent(&popped) != CUDA_SUCCESS)
        cuCtxPopCurrent(&popped);
}

void cluster_sizes(Bytes& bytes, Shared& shared) {
    const gcx_resource resource = shared.resource(bytes);
    Out<uint32_t> of_resource;
    CALL_OUT(of_resource, gcx_resource_find_max_cluster_size(&resource, &of_resource.value));
}

void external_event(Bytes& bytes, Shared& shared) {
    CUevent native = nullptr;
    if (!shared.single_thread)
        return;
    if (bytes.flag()) {
        native = gcx_event_native(shared.events.pick(bytes));
    } else if (cuEventCreate(&native, bytes.next() & 3) == CUDA_SUCCESS) {
        shared.native_events.push_back(native);
    }
    Out<gcx_event> event;
    if (CALL_OUT(event, gcx_event_from_native(native, &event.value)) == GCX_SUCCESS)
        shared.events.put(bytes, event.value);
}

void live_contexts(Bytes& bytes, Shared&) {
    const int32_t which = bytes.flag() ? -1 : device(bytes);
    const uint32_t capacity = bytes.next() & 31;
    const std::unique_ptr<gcx_live_context[]> contexts(new gcx_live_context[capacity]);
    uint32_t count = 0;
    if (CALL(gcx_context_list(which, contexts.get(), capacity, &count)) == GCX_SUCCESS) {
        must(count <= capacity, "more contexts than there is room for");
        for (uint32_t i = 0; i < count; i++)
            must(sm_count_of(contexts[i].resource) == contexts[i].sm_count, "a context's SMs");
    }
}

using Operation = void (*)(Bytes&, Shared&);
// New operations go to the end, so that existing seeds keep their meaning.
constexpr auto kOperations = std::to_array<Operation>({
    device_resource,
    split,
    create_context,
    create_stream,
    create_event,
    order,
    wait_for_stream,
    wait_for_event,
    destroy<&Shared::streams>,
    destroy<&Shared::contexts>,
    destroy<&Shared::events>,
    resource_info,
    context_facts,
    stream_facts,
    push,
    pop,
    combine,
    take_atom,
    map_sms,
    probe,
    cache,
    fail_call,
    synchronize_context,
    configure_workqueue,
    library_facts,
    set_log,
    open_driver,
    driver_info,
    device_info,
    advance,
    reset_device,
    external_stream,
    begin_capture,
    end_capture,
    current_natively,
    busy,
    set_priority,
    cluster_sizes,
    external_event,
    live_contexts,
    acquire_lease,
    destroy<&Shared::leases>,
    resize_leases,
    park_lease,
    lease_stream,
    lease_facts,
    live_leases,
    cancel,
    publish,
    prepare,
    trim,
    kernel_fit,
    queues,
    make_graph,
    launch_graph,
    prepare_graph,
    change_graph,
    graph_facts,
    partition_counts,
    acquire_reservation,
    join_reservation,
    destroy<&Shared::reservations>,
    reservation_facts,
    shared_sms,
    verify,
});

void one_operation(Bytes& bytes, Shared& shared) {
    const uint8_t byte = bytes.next();
    const Operation operation = kOperations[(byte & 0x7f) % kOperations.size()];
    // set_log waits for callbacks, which wait for the lock.
    if (byte >= 0x80 && operation != set_log && operation != current_natively) {
        const std::lock_guard lock(application());
        operation(bytes, shared);
    } else {
        operation(bytes, shared);
    }
}

void run(Bytes bytes, Shared& shared) {
    while (!bytes.empty())
        one_operation(bytes, shared);
    // Repeat the call in case it failed by injection.
    while (gcx_context_pop(nullptr) == GCX_SUCCESS || gcx_context_pop(nullptr) == GCX_SUCCESS) {
    }
}

void end(Shared& shared) {
    gcx_sim_fail(nullptr, 0, 0);
    must(gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr) == GCX_SUCCESS, "the log's end");
    gcx_sim_advance(UINT32_MAX); // unfinished work of leases keeps its context in use
    shared.graphs.destroy_all();
    shared.streams.destroy_all();
    shared.leases.destroy_all();
    shared.reservations.destroy_all();
    shared.cancels.destroy_all();
    shared.contexts.destroy_all();
    shared.events.destroy_all();
    for (CUstream native : shared.native_streams)
        cuStreamDestroy(native);
    for (CUevent native : shared.native_events)
        cuEventDestroy(native);
    gcx_cache_stats stats = GCX_CACHE_STATS_INIT;
    if (gcx_cache_get_stats(&stats) == GCX_SUCCESS)
        must(stats.in_use == 0, "contexts without handles are in use");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
    if (size < 4)
        return -1;
    Bytes bytes(data, size);
    const std::string machine = bytes.of(kMachines);
    const unsigned threads = 1U + (bytes.next() >= 0xc0 ? 1U + bytes.next() % 3 : 0U);
    // The library that this program is linked with. Opened by path, it keeps its configuration.
    fuzz::begin_input(FUZZ_SIM_LIBRARY);
    must(gcx_sim_configure(machine.c_str()) == 0, gcx_sim_last_error());
    Shared shared;
    shared.single_thread = threads == 1;
    if (const uint8_t nth = bytes.next(); nth >= 0xf0) {
        shared.injected = true;
        gcx_sim_fail(nullptr, 1U + (nth & 15) * 4, CUDA_ERROR_OUT_OF_MEMORY);
    }
    std::vector<std::thread> others;
    for (unsigned left = threads; left > 1; left--)
        others.emplace_back(run, bytes.part(left), std::ref(shared));
    run(bytes, shared);
    for (std::thread& other : others)
        other.join();
    end(shared);
    fuzz::close_library();
    gcx_sim_counts counts{};
    gcx_sim_get_counts(&counts);
    if (!shared.injected && !shared.reset)
        must(counts.green_contexts == 0 && counts.streams == 0 && counts.events == 0 &&
                 counts.contexts == 0,
             "objects remain on the device");
    return 0;
}
