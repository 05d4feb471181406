// Tests misuse: each case is an error with a message, or a success where that is correct; never a
// crash, a hang or a wrong success.

#include "calls.hpp"
#include "graph_kernels.hpp"
#include "publish.hpp"

#include <cstring>
#include <memory>

using namespace support;

namespace {

void null_pointers_are_refused() {
    const Objects made = Objects::make();
    const gcx_resource& r = made.resource;
    const gcx_sm_request request = requests_for({8})[0];
    gcx_resource out{};
    uint32_t number = 0;
    uint32_t ids[GCX_MAX_SMS];
    constexpr gcx_result kNull = GCX_ERROR_INVALID_VALUE;

    CHECK_REFUSED(gcx_driver_get_info(nullptr), kNull);
    CHECK_REFUSED(gcx_device_get_count(nullptr), kNull);
    CHECK_REFUSED(gcx_device_get_info(0, nullptr), kNull);
    int32_t priority = 0;
    CHECK_REFUSED(gcx_device_get_stream_priority_range(0, nullptr, &priority), kNull);
    CHECK_REFUSED(gcx_device_get_stream_priority_range(0, &priority, nullptr), kNull);
    CHECK_REFUSED(gcx_device_get_resource(0, GCX_RESOURCE_SM, nullptr), kNull);
    auto info = sized<gcx_resource_info>();
    CHECK_REFUSED(gcx_resource_get_info(nullptr, &info), kNull);
    CHECK_REFUSED(gcx_resource_get_info(&r, nullptr), kNull);
    CHECK_REFUSED(gcx_workqueue_configure(nullptr, GCX_WORKQUEUE_SCOPE_DEVICE_CTX, 0, &out), kNull);
    CHECK_REFUSED(gcx_workqueue_configure(&r, GCX_WORKQUEUE_SCOPE_DEVICE_CTX, 0, nullptr), kNull);
    CHECK_REFUSED(gcx_workqueue_configure(&r, GCX_WORKQUEUE_SCOPE_DEVICE_CTX, 0, &out),
                  GCX_ERROR_INVALID_RESOURCE_TYPE);
    CHECK_REFUSED(gcx_sm_split(nullptr, &request, 1, 0, &out, &out, nullptr, nullptr), kNull);
    CHECK_REFUSED(gcx_sm_split(&r, nullptr, 1, 0, &out, &out, nullptr, nullptr), kNull);
    // A dry run gives no remainder.
    CHECK_REFUSED(gcx_sm_split(&r, &request, 1, 0, nullptr, &out, nullptr, nullptr), kNull);
    CHECK_REFUSED(gcx_sm_split(&r, nullptr, 0, 0, &out, &out, nullptr, nullptr), kNull);
    CHECK_REFUSED(gcx_sm_split(&r, &request, 0, 0, &out, &out, nullptr, nullptr), kNull);
    // Vectors pass an empty list like this; the message is about the list.
    CHECK_REFUSED(gcx_sm_split(&r, nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr), kNull);
    CHECK(std::string(gcx_last_error_message()).find("no requests") != std::string::npos);
    CHECK_OK(gcx_sm_split(&r, &request, 1, 0, &out, nullptr, nullptr, nullptr)); // allowed
    CHECK_REFUSED(gcx_sm_split(nullptr, &request, 1, 0, nullptr, nullptr, &number, &number), kNull);
    CHECK_REFUSED(gcx_sm_split(&r, nullptr, 1, 0, nullptr, nullptr, &number, &number), kNull);
    CHECK_OK(gcx_sm_split(&r, &request, 1, 0, nullptr, nullptr, nullptr, nullptr)); // allowed
    for (const auto combine : {gcx_resource_union, gcx_resource_subtract}) {
        CHECK_REFUSED(combine(nullptr, &r, &out), kNull);
        CHECK_REFUSED(combine(&r, nullptr, &out), kNull);
        CHECK_REFUSED(combine(&r, &r, nullptr), kNull);
    }
    CHECK_REFUSED(gcx_resource_get_overlap(nullptr, &r, &number), kNull);
    CHECK_REFUSED(gcx_resource_get_overlap(&r, nullptr, &number), kNull);
    CHECK_REFUSED(gcx_resource_get_overlap(&r, &r, nullptr), kNull);
    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
    CHECK_REFUSED(gcx_context_create(nullptr, 1, nullptr, &context), kNull);
    CHECK_REFUSED(gcx_context_create(nullptr, 0, nullptr, &context), kNull);
    CHECK_REFUSED(gcx_context_create(&r, 0, nullptr, &context), kNull);
    CHECK_REFUSED(gcx_context_create(&r, 1, nullptr, nullptr), kNull);
    CHECK_REFUSED(gcx_context_get_info(made.context, nullptr), kNull);
    CHECK_REFUSED(gcx_context_get_resource(made.context, GCX_RESOURCE_SM, nullptr), kNull);
    CHECK_REFUSED(gcx_context_get_current(nullptr), kNull);
    CHECK_REFUSED(gcx_stream_create(made.context, nullptr, nullptr), kNull);
    CHECK_REFUSED(gcx_stream_from_native(nullptr, &stream), kNull);
    CHECK_REFUSED(gcx_stream_from_native(gcx_stream_native(made.stream), nullptr), kNull);
    CHECK_REFUSED(gcx_stream_get_info(made.stream, nullptr), kNull);
    CHECK_REFUSED(gcx_stream_get_resource(made.stream, GCX_RESOURCE_SM, nullptr), kNull);
    CHECK_REFUSED(gcx_resource_find_max_cluster_size(&r, nullptr), kNull);
    CHECK_REFUSED(gcx_resource_find_max_cluster_size(nullptr, &number), kNull);
    CHECK_REFUSED(gcx_event_create(0, 0, nullptr), kNull);
    CHECK_REFUSED(gcx_event_get_elapsed(made.event, made.event, nullptr), kNull);
    CHECK_REFUSED(gcx_cache_get_stats(nullptr), kNull);
    CHECK_REFUSED(gcx_context_list(0, nullptr, 1, &number), kNull);
    gcx_live_context live{};
    CHECK_REFUSED(gcx_context_list(0, &live, 1, nullptr), kNull);
    CHECK_REFUSED(gcx_stream_probe_sms(made.stream, nullptr, 8, &number), kNull);
    CHECK_REFUSED(gcx_stream_probe_sms(made.stream, ids, 8, nullptr), kNull);
    CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
    CHECK_REFUSED(gcx_resource_get_sm_ids(nullptr, ids, 8, &number), kNull);
    CHECK_REFUSED(gcx_resource_get_sm_ids(&r, nullptr, 8, &number), kNull);
    CHECK_REFUSED(gcx_resource_get_sm_ids(&r, ids, 8, nullptr), kNull);
    CHECK_REFUSED(gcx_resource_get_atom(nullptr, 0, &out), kNull);
    CHECK_REFUSED(gcx_resource_get_atom(&r, 0, nullptr), kNull);
    made.destroy();
}

// Calls every function that takes a handle of one type with an invalid one.
template <class Handle>
void refuse_handle(const Objects& made, Handle Objects::* member, unsigned uses, Handle bad) {
    Objects objects = made;
    objects.*member = bad;
    refuse_calls(objects, uses, GCX_ERROR_INVALID_HANDLE);
}

// The same bits as a handle of each type.
void refuse_handles(const Objects& made, uint64_t bits) {
    refuse_handle(made, &Objects::context, kContext, forged<gcx_context>(bits));
    refuse_handle(made, &Objects::stream, kStream, forged<gcx_stream>(bits));
    refuse_handle(made, &Objects::event, kEvent, forged<gcx_event>(bits));
}

void invalid_handles_are_refused() {
    const Objects made = Objects::make();
    const Objects gone = Objects::make();
    gone.destroy();
    // The handles are stale, so they can't be destroyed twice either.
    refuse_handle(made, &Objects::context, kContext, gone.context);
    refuse_handle(made, &Objects::stream, kStream, gone.stream);
    refuse_handle(made, &Objects::event, kEvent, gone.event);
    // These are handles of other types.
    refuse_handle(made, &Objects::context, kContext, handle_cast<gcx_context>(made.stream));
    refuse_handle(made, &Objects::stream, kStream, handle_cast<gcx_stream>(made.event));
    refuse_handle(made, &Objects::event, kEvent, handle_cast<gcx_event>(made.context));
    // These are CUDA's handles.
    for (void* native : {static_cast<void*>(gcx_context_native(made.context)),
                         static_cast<void*>(gcx_stream_native(made.stream)),
                         static_cast<void*>(gcx_event_native(made.event))})
        refuse_handles(made, reinterpret_cast<uint64_t>(native));
    // tests/core/handle_table_test.cpp forges others.
    for (const uint64_t bits : {uint64_t{0}, uint64_t{1}, UINT64_MAX, uint64_t{0xdeadbeef}})
        refuse_handles(made, bits);
    made.destroy();
}

// Passes one handle of each type to a function of each other type, which refuses it.
void handles_of_other_types_are_refused() {
    const Objects made = Objects::make();
    gcx_lease lease = nullptr;
    gcx_cancel cancel = nullptr;
    gcx_graph graph = nullptr;
    gcx_reservation reservation = nullptr;
    const publish::Folder folder;
    const GraphKernels kernels;
    CUgraph captured = capture(kernels.plain, [&] { kernels.spin(kernels.plain, 1'000); });
    CHECK_OK(gcx_lease_acquire(0, 8, nullptr, &lease));
    CHECK_OK(gcx_cancel_create(&cancel));
    CHECK_OK(gcx_graph_create(captured, nullptr, &graph));
    CHECK_OK(gcx_reservation_acquire(0, 8, nullptr, &reservation));
    using Take = gcx_result (*)(void*);
    const std::pair<void*, Take> types[] = {
        {made.context,
         [](void* it) { return gcx_context_synchronize(handle_cast<gcx_context>(it)); }},
        {made.stream, [](void* it) { return gcx_stream_synchronize(handle_cast<gcx_stream>(it)); }},
        {made.event, [](void* it) { return gcx_event_synchronize(handle_cast<gcx_event>(it)); }},
        {lease, [](void* it) { return gcx_lease_synchronize(handle_cast<gcx_lease>(it)); }},
        {cancel, [](void* it) { return gcx_cancel_signal(handle_cast<gcx_cancel>(it)); }},
        {graph, [](void* it) { return gcx_graph_destroy(handle_cast<gcx_graph>(it)); }},
        {reservation,
         [](void* it) { return gcx_reservation_release(handle_cast<gcx_reservation>(it)); }},
    };
    for (const auto& [own, take] : types) {
        for (const auto& [other, unused] : types) {
            if (other != own)
                CHECK_REFUSED(take(other), GCX_ERROR_INVALID_HANDLE);
        }
    }
    for (const auto& [own, take] : types)
        CHECK_OK(take(own));
    CHECK_OK(gcx_lease_release(lease));
    CHECK_OK(gcx_cancel_destroy(cancel));
    CHECK_NATIVE(cuGraphDestroy, captured);
    made.destroy();
}

void children_outlive_their_parents() {
    const Objects made = Objects::make();
    CHECK_OK(gcx_context_destroy(made.context));
    auto info = sized<gcx_stream_info>();
    CHECK_OK(gcx_stream_get_info(made.stream, &info));
    CHECK_EQ(info.sm_count, 8U);
    CHECK_OK(gcx_stream_record(made.stream, made.event));
    CHECK_OK(gcx_stream_synchronize(made.stream));
    CHECK_OK(gcx_event_synchronize(made.event));
    uint32_t ids[GCX_MAX_SMS];
    uint32_t count = 0;
    CHECK_OK(gcx_stream_probe_sms(made.stream, ids, GCX_MAX_SMS, &count));
    CHECK_EQ(count, 8U);
    // That is so even if nothing is cached.
    CHECK_OK(gcx_cache_set_limit(0));
    CHECK_OK(gcx_stream_synchronize(made.stream));
    CHECK_EQ(sim::counts().green_contexts, 1U);
    CHECK_OK(gcx_stream_destroy(made.stream));
    CHECK_EQ(sim::counts().green_contexts, 0U);
    for (const gcx_event event : {made.event, made.end})
        CHECK_OK(gcx_event_destroy(event));
}

void current_contexts_are_not_destroyed() {
    const Objects made = Objects::make();
    const CUcontext native = gcx_context_native(made.context);
    CHECK_OK(gcx_context_push(made.context));
    CHECK_REFUSED(gcx_context_destroy(made.context), GCX_ERROR_CONTEXT_ALREADY_IN_USE);
    CHECK(message_has("gcx_context_pop"));
    gcx_context current = nullptr;
    CHECK_OK(gcx_context_get_current(&current));
    CHECK(current == made.context);
    // A context that is pushed below another one is in use.
    CUcontext popped = nullptr;
    {
        const Partition other(split(whole_device(), {16}).groups[0]);
        CHECK_NATIVE(cuCtxPushCurrent, gcx_context_native(other.context));
        CHECK_REFUSED(gcx_context_destroy(made.context), GCX_ERROR_CONTEXT_ALREADY_IN_USE);
        CHECK_NATIVE(cuCtxPopCurrent, &popped);
    }
    CHECK_OK(gcx_context_pop(&current));
    CHECK(current == made.context);

    // A context that CUDA's functions made current is cached, and spared as long as it is current.
    CHECK_NATIVE(cuCtxSetCurrent, native);
    CHECK_OK(gcx_stream_destroy(made.stream));
    CHECK_OK(gcx_context_destroy(made.context));
    CHECK_REFUSED(gcx_cache_set_limit(0), GCX_ERROR_CONTEXT_ALREADY_IN_USE);
    CHECK_EQ(sim::counts().green_contexts, 1U);
    gcx_context second = nullptr;
    CHECK_OK(gcx_context_create(&made.resource, 1, nullptr, &second));
    CHECK_EQ(gcx_context_native(second), native);
    CHECK_REFUSED(gcx_context_destroy(second), GCX_ERROR_CONTEXT_ALREADY_IN_USE);
    // A further handle is not the last reference, and can be destroyed.
    gcx_context third = nullptr;
    CHECK_OK(gcx_context_create(&made.resource, 1, nullptr, &third));
    CHECK_OK(gcx_context_destroy(third));
    CHECK_NATIVE(cuCtxSetCurrent, nullptr);
    CHECK_OK(gcx_context_destroy(second));
    CHECK_EQ(sim::counts().green_contexts, 0U);
    for (const gcx_event event : {made.event, made.end})
        CHECK_OK(gcx_event_destroy(event));
}

void push_and_pop_nest() {
    const Objects made = Objects::make();
    gcx_context context = made.context;
    gcx_context other = nullptr;
    const gcx_resource resource = split(whole_device(), {8, 16}).groups[1];
    CHECK_OK(gcx_context_create(&resource, 1, nullptr, &other));
    CHECK_REFUSED(gcx_context_pop(nullptr), GCX_ERROR_INVALID_CONTEXT);
    CHECK_REFUSED(gcx_context_pop(&context), GCX_ERROR_INVALID_CONTEXT);
    CHECK(context == made.context);
    CHECK_OK(gcx_context_get_current(&context));
    CHECK(context == nullptr);

    // Pushes nest, also of the same context.
    for (gcx_context pushed : {made.context, other, other, made.context})
        CHECK_OK(gcx_context_push(pushed));
    for (gcx_context expected : {made.context, other, other, made.context}) {
        CHECK_OK(gcx_context_pop(&context));
        CHECK(context == expected);
    }
    CHECK_REFUSED(gcx_context_pop(nullptr), GCX_ERROR_INVALID_CONTEXT);

    // No other function changes which context is current.
    CUcontext popped = nullptr;
    CHECK_NATIVE(cuCtxSetCurrent, gcx_context_native(other));
    CHECK_OK(gcx_context_synchronize(made.context));
    CHECK_OK(gcx_stream_synchronize(made.stream));
    uint32_t ids[GCX_MAX_SMS];
    uint32_t count = 0;
    CHECK_OK(gcx_stream_probe_sms(made.stream, ids, GCX_MAX_SMS, &count));
    CHECK_NATIVE(cuCtxGetCurrent, &popped);
    CHECK(popped == gcx_context_native(other));
    CHECK_NATIVE(cuCtxSetCurrent, nullptr);
    CHECK_OK(gcx_context_destroy(other));
    made.destroy();
}

// The contexts that the thread has pushed, the current one last.
std::vector<CUcontext> native_stack() {
    std::vector<CUcontext> stack;
    CUcontext context = nullptr;
    while (NATIVE(cuCtxPopCurrent)(&context) == CUDA_SUCCESS)
        stack.insert(stack.begin(), context);
    for (const CUcontext each : stack)
        CHECK_NATIVE(cuCtxPushCurrent, each);
    return stack;
}

// Other code changes which context is current while one is pushed. Popping that one restores the
// stack from before.
void pop_survives_other_code() {
    const Objects made = Objects::make();
    const gcx_resource resource = split(whole_device(), {8, 16}).groups[1];
    gcx_context other = nullptr;
    CHECK_OK(gcx_context_create(&resource, 1, nullptr, &other));
    CUcontext primary = nullptr;
    CUcontext popped = nullptr;
    CHECK_NATIVE(cuDevicePrimaryCtxRetain, &primary, 0);
    const CUcontext ours = gcx_context_native(made.context);
    const CUcontext its_native = gcx_context_native(other);
    const std::vector<std::function<void()>> changes = {
        [] {},
        [&] { CHECK_NATIVE(cuCtxSetCurrent, primary); }, // cudaSetDevice
        [&] { CHECK_NATIVE(cuCtxSetCurrent, its_native); },
        [&] { CHECK_NATIVE(cuCtxPushCurrent, primary); }, // and leaves it
        [&] {
            for (const CUcontext each : {its_native, ours, primary})
                CHECK_NATIVE(cuCtxPushCurrent, each);
        },
        [&] { CHECK_NATIVE(cuCtxPopCurrent, &popped); },
        [&] { CHECK_NATIVE(cuCtxSetCurrent, nullptr); },
    };
    using Stack = std::vector<CUcontext>;
    for (const Stack& before : {Stack{}, Stack{primary}, Stack{its_native, primary},
                                Stack{primary, primary}, Stack{ours, its_native}}) {
        for (const CUcontext each : before)
            CHECK_NATIVE(cuCtxPushCurrent, each);
        for (const auto& change : changes) {
            CHECK_OK(gcx_context_push(made.context));
            change();
            gcx_context context = nullptr;
            CHECK_OK(gcx_context_pop(&context));
            CHECK(context == made.context);
            CHECK(native_stack() == before);
            CHECK_REFUSED(gcx_context_pop(nullptr), GCX_ERROR_INVALID_CONTEXT);
        }
        for (std::size_t i = 0; i < before.size(); i++)
            CHECK_NATIVE(cuCtxPopCurrent, &popped);
    }
    CHECK_NATIVE(cuDevicePrimaryCtxRelease, 0);
    CHECK_OK(gcx_context_destroy(other));
    made.destroy();
}

void context_of_unfit_resources_is_refused() {
    const gcx_resource whole = whole_device();
    const Split two = split(whole, {24, 24});
    const Split fine = split(whole, {24}, GCX_SPLIT_IGNORE_SM_COSCHEDULING);
    const gcx_resource larger = split(whole, {32}).groups[0];
    gcx_resource empty{};
    CHECK_OK(gcx_resource_subtract(&whole, &whole, &empty));
    constexpr gcx_result kUnfit = GCX_ERROR_INVALID_RESOURCE_CONFIGURATION;
    gcx_context context = nullptr;
    const uint64_t misses = cache_stats().misses;
    const auto refuse = [&](std::vector<gcx_resource> resources) {
        CHECK_REFUSED(gcx_context_create(resources.data(), static_cast<uint32_t>(resources.size()),
                                         nullptr, &context),
                      kUnfit);
        CHECK(context == nullptr);
    };
    refuse({two.groups[0], larger}); // overlap
    CHECK(message_has("24"));
    refuse({two.groups[0], two.groups[0]}); // the same twice
    refuse({two.groups[0], two.groups[1], two.groups[0]});
    refuse({two.groups[0], fine.groups[0]}); // two families
    CHECK(message_has("family"));
    refuse({empty});
    refuse({empty, empty});
    CHECK_EQ(cache_stats().misses, misses);
    // An empty resource next to another adds nothing, in its family.
    const gcx_resource with_empty[] = {two.groups[0], empty};
    CHECK_OK(gcx_context_create(with_empty, 2, nullptr, &context));
    CHECK_OK(gcx_context_destroy(context));
    gcx_resource out{};
    uint32_t count = 0;
    for (const auto combine : {gcx_resource_union, gcx_resource_subtract})
        CHECK_REFUSED(combine(two.groups.data(), fine.groups.data(), &out), kUnfit);
    CHECK_REFUSED(gcx_resource_get_overlap(two.groups.data(), fine.groups.data(), &count),
                  GCX_ERROR_SMS_NOT_MAPPED);
}

// Calls every function that takes a resource with an invalid one.
void refuse_resource(const gcx_resource& bad, const gcx_resource& good, gcx_result expected) {
    Objects objects{bad, good};
    refuse_calls(objects, kResource, expected);
    gcx_context context = nullptr;
    const gcx_resource both[] = {good, bad};
    CHECK_REFUSED(gcx_context_create(both, 2, nullptr, &context), expected);
    CHECK(context == nullptr);
    gcx_resource out{};
    CHECK_REFUSED(gcx_workqueue_configure(&bad, GCX_WORKQUEUE_SCOPE_DEVICE_CTX, 1, &out), expected);
}

void forged_resources_are_refused() {
    const Split two = split(whole_device(), {24, 24});
    const gcx_resource& good = two.groups[1];
    refuse_resource(gcx_resource{}, good, GCX_ERROR_INVALID_RESOURCE_TYPE);
    gcx_resource bad;
    std::memset(&bad, 0xff, sizeof bad);
    refuse_resource(bad, good, GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    for (std::size_t byte = 0; byte < sizeof bad; byte++) {
        bad = two.groups[0];
        reinterpret_cast<unsigned char*>(&bad)[byte] ^= 0xffU;
        refuse_resource(bad, good, GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    }
}

// The child's exit status returns bytes that another process sealed.
void resources_of_another_process_are_refused() {
    const uint64_t check = answer_of_child([] {
        CHECK_OK(gcx_driver_open("sim:h100@13.0"));
        return whole_device().opaque[0];
    });
    on_machine("h100@13.0", [&] {
        gcx_resource mine = whole_device();
        CHECK(mine.opaque[0] != check);
        mine.opaque[0] = check;
        refuse_resource(mine, whole_device(), GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    });
}

void unknown_enums_and_flags_are_refused() {
    const Objects made = Objects::make();
    const gcx_resource whole = whole_device();
    constexpr gcx_result kInvalid = GCX_ERROR_INVALID_VALUE;
    gcx_resource out{};
    gcx_stream stream = nullptr;
    gcx_event event = nullptr;
    gcx_context context = nullptr;
    for (const int bad : {-1, 0, 2, 999, 9999}) {
        const auto type = no_such<gcx_resource_type>(bad);
        CHECK_REFUSED(gcx_device_get_resource(0, type, &out), GCX_ERROR_INVALID_RESOURCE_TYPE);
        CHECK_REFUSED(gcx_context_get_resource(made.context, type, &out),
                      GCX_ERROR_INVALID_RESOURCE_TYPE);
        CHECK_REFUSED(gcx_stream_get_resource(made.stream, type, &out),
                      GCX_ERROR_INVALID_RESOURCE_TYPE);
    }
    CHECK_REFUSED(gcx_device_get_resource(0, GCX_RESOURCE_WORKQUEUE, &out),
                  GCX_ERROR_INVALID_RESOURCE_TYPE);
    for (const int bad : {-1, 0, 4, 5, 77})
        CHECK_REFUSED(gcx_device_map_sms(0, no_such<gcx_sm_family>(bad)), kInvalid);
    for (const int bad : {1, 2, -1}) {
        auto params = sized<gcx_stream_params>();
        params.sync = no_such<gcx_stream_sync>(bad); // GCX_STREAM_BLOCKING is 1
        CHECK_REFUSED(gcx_stream_create(made.context, &params, &stream), kInvalid);
    }
    auto params = sized<gcx_context_params>();
    for (const uint32_t bad : {2U, 3U, 0x80000000U}) {
        params.flags = bad;
        CHECK_REFUSED(gcx_context_create(&whole, 1, &params, &context), kInvalid);
    }
    gcx_live_context live{};
    uint32_t number = 7;
    for (const int32_t device : {-2, 1, INT32_MAX, INT32_MIN})
        CHECK_REFUSED(gcx_context_list(device, &live, 1, &number), GCX_ERROR_INVALID_DEVICE);
    CHECK_EQ(number, 7U);
    for (const uint32_t bad : {4U, 7U, 0x80000000U})
        CHECK_REFUSED(gcx_event_create(0, bad, &event), kInvalid);
    for (const uint32_t bad : {3U, 4U, 8U, 0x800U, 0x80000000U})
        CHECK_REFUSED(try_split(whole, {8}, bad).result, kInvalid);
    gcx_sm_request request = requests_for({8})[0];
    request.flags = 8;
    CHECK_REFUSED(gcx_sm_split(&whole, &request, 1, 0, &out, nullptr, nullptr, nullptr), kInvalid);
    for (uint32_t& word : request.reserved) {
        request = requests_for({8})[0];
        word = 1;
        CHECK_REFUSED(gcx_sm_split(&whole, &request, 1, 0, &out, nullptr, nullptr, nullptr),
                      kInvalid);
        CHECK(message_has("reserved"));
    }
    CHECK_REFUSED(gcx_log_set_callback(no_such<gcx_log_level>(5), nullptr, nullptr), kInvalid);
    CHECK_REFUSED(gcx_log_set_callback(no_such<gcx_log_level>(-1), nullptr, nullptr), kInvalid);
    CHECK_REFUSED(try_split(whole, {GCX_REST, 132}).result,
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK_REFUSED(try_split(whole, {GCX_REST - 1}).result,
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK_REFUSED(try_split(whole, std::vector<uint32_t>(5000, GCX_REST)).result,
                  GCX_ERROR_INVALID_RESOURCE_CONFIGURATION);
    gcx_resource atom{};
    CHECK_REFUSED(gcx_resource_get_atom(&whole, 16, &atom), kInvalid);
    CHECK_REFUSED(gcx_resource_get_atom(&whole, UINT32_MAX, &atom), kInvalid);
    made.destroy();
}

// The vectors test what is refused; this records the messages.
void refusals_are_described() {
    const gcx_resource whole = whole_device();
    const gcx_resource part = split(whole, {24}).groups[0];
    const gcx_resource elsewhere = split(whole_device(1), {24}).groups[0];
    constexpr gcx_result kUnfit = GCX_ERROR_INVALID_RESOURCE_CONFIGURATION;
    constexpr gcx_result kWrongType = GCX_ERROR_INVALID_RESOURCE_TYPE;
    gcx_context context = nullptr;
    gcx_resource out{};
    uint32_t count = 0;
    const auto no_context = [&](std::vector<gcx_resource> of, gcx_result expected) {
        CHECK_REFUSED(
            gcx_context_create(of.data(), static_cast<uint32_t>(of.size()), nullptr, &context),
            expected);
    };
    no_context({part, elsewhere}, kUnfit);
    CHECK_REFUSED(gcx_resource_union(&part, &elsewhere, &out), kUnfit);
    CHECK_REFUSED(gcx_resource_subtract(&part, &elsewhere, &out), kUnfit);
    for (const int32_t device : {-1, 2})
        CHECK_REFUSED(gcx_device_get_resource(device, GCX_RESOURCE_SM, &out),
                      GCX_ERROR_INVALID_DEVICE);
    CHECK_REFUSED(try_split(part, {8}, GCX_SPLIT_IGNORE_SM_COSCHEDULING).result, kUnfit);
    CHECK_REFUSED(try_split(part, {25}).result, kUnfit);
    CHECK_REFUSED(try_split(whole, {8, 0}).result, GCX_ERROR_INVALID_VALUE);

    gcx_lease lease = nullptr;
    CHECK_REFUSED(gcx_lease_acquire(0, 0, nullptr, &lease), GCX_ERROR_INVALID_VALUE);
    CHECK_OK(gcx_lease_acquire(0, 24, nullptr, &lease));
    const gcx_lease_size none = {lease, 0, 0};
    CHECK_REFUSED(gcx_lease_resize(&none, 1, 0), GCX_ERROR_INVALID_VALUE);
    CHECK_REFUSED(gcx_lease_prepare(&none, 1), GCX_ERROR_INVALID_VALUE);
    CHECK_OK(gcx_lease_release(lease));

    gcx_sm_request structured = requests_for({16})[0];
    structured.coscheduled_sm_count = 8;
    gcx_sm_request local = requests_for({16})[0];
    local.flags = GCX_SM_REQUEST_LOCALITY_DOMAIN_ID;
    gcx_resource queue{};
    if (gcx_device_get_resource(0, GCX_RESOURCE_WORKQUEUE_CONFIG, &queue) != GCX_SUCCESS) {
        const Partition partition(part);
        constexpr gcx_result kNew = GCX_ERROR_NOT_SUPPORTED;
        CHECK_REFUSED(gcx_device_get_resource(0, GCX_RESOURCE_WORKQUEUE_CONFIG, &out), kNew);
        CHECK_REFUSED(gcx_context_get_resource(partition.context, GCX_RESOURCE_WORKQUEUE, &out),
                      kNew);
        CHECK_REFUSED(gcx_stream_get_resource(partition.stream, GCX_RESOURCE_WORKQUEUE, &out),
                      kNew);
        CHECK_REFUSED(split_by_requests(whole, {structured}).result, kNew);
        CHECK_REFUSED(split_by_requests(whole, {local}).result, kNew);
        return;
    }
    no_context({atom_of(whole, 0), atom_of(whole, 15)}, kUnfit);
    no_context({queue}, kWrongType);
    no_context({part, queue, queue}, kWrongType);
    CHECK_REFUSED(gcx_resource_get_overlap(&part, &queue, &count), kWrongType);
    CHECK_REFUSED(split_by_requests(part, {structured}).result, kUnfit);
    CHECK_REFUSED(gcx_sm_split(&whole, &structured, 1, GCX_SPLIT_IGNORE_SM_COSCHEDULING, &out,
                               nullptr, nullptr, nullptr),
                  GCX_ERROR_INVALID_VALUE);
}

void short_arrays_are_refused() {
    const Objects made = Objects::make();
    uint32_t ids[8] = {5, 5, 5, 5, 5, 5, 5, 5};
    uint32_t count = 0;
    CHECK_REFUSED(gcx_stream_probe_sms(made.stream, ids, 7, &count),
                  GCX_ERROR_INSUFFICIENT_CAPACITY);
    CHECK_EQ(count, 8U);
    CHECK_EQ(ids[0], 5U);
    count = 0;
    CHECK_REFUSED(gcx_stream_probe_sms(made.stream, nullptr, 0, &count),
                  GCX_ERROR_INSUFFICIENT_CAPACITY);
    CHECK_EQ(count, 8U);
    CHECK_OK(gcx_stream_probe_sms(made.stream, ids, 8, &count));
    CHECK_OK(gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED));
    count = 0;
    CHECK_REFUSED(gcx_resource_get_sm_ids(&made.resource, ids, 7, &count),
                  GCX_ERROR_INSUFFICIENT_CAPACITY);
    CHECK_EQ(count, 8U);
    CHECK(message_has("8") && message_has("7"));
    CHECK_OK(gcx_resource_get_sm_ids(&made.resource, ids, 8, &count));
    made.destroy();
}

} // namespace

int main() {
    for (const char* driver : drivers({"12.4", "12.8", "13.0", "13.5"})) {
        const std::string h100 = std::string("h100@") + driver;
        for (const auto test :
             {null_pointers_are_refused, invalid_handles_are_refused,
              handles_of_other_types_are_refused, children_outlive_their_parents,
              current_contexts_are_not_destroyed, push_and_pop_nest, pop_survives_other_code,
              context_of_unfit_resources_is_refused, forged_resources_are_refused,
              unknown_enums_and_flags_are_refused, short_arrays_are_refused})
            leaves_nothing(h100, test);
        on_machine("2x" + h100, refusals_are_described);
    }
    resources_of_another_process_are_refused();
    return support::summary("misuse");
}
