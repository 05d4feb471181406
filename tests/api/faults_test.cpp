// Makes each driver call of every operation fail in turn: the result is an error with a message or
// a correct success, the operation then works, and nothing is left after cleanup.

#include "faults.hpp"

#include <array>
#include <cstring>
#include <memory>

using namespace support;
using faults::destroy;

namespace {

// Has what an operation uses and what it creates, so that cleanup destroys both.
struct State {
    gcx_resource sm{};
    gcx_resource other_sm{};
    gcx_context context = nullptr;
    gcx_context second = nullptr;
    gcx_stream stream = nullptr;
    gcx_stream own_stream = nullptr;
    gcx_event start = nullptr;
    gcx_event end = nullptr;
    gcx_event event = nullptr;
    int pushed = 0;
    std::unique_ptr<External> external;
};

void destroy_all(State& state) {
    for (; state.pushed > 0; state.pushed--)
        CHECK_OK(gcx_context_pop(nullptr));
    for (gcx_event* event : {&state.start, &state.end, &state.event})
        destroy(*event, gcx_event_destroy);
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
void events(State& state) {
    stream(state);
    CHECK_OK(gcx_event_create(0, GCX_EVENT_TIMING, &state.start));
    CHECK_OK(gcx_event_create(0, GCX_EVENT_TIMING, &state.end));
}
void recorded(State& state) {
    events(state);
    CHECK_OK(gcx_stream_record(state.stream, state.start));
    CHECK_OK(gcx_stream_record(state.stream, state.end));
    CHECK_OK(gcx_stream_synchronize(state.stream));
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

gcx_result split_in(uint32_t flags) {
    const gcx_sm_request request = requests_for({24})[0];
    gcx_resource whole{};
    gcx_resource group{};
    gcx_result result = gcx_device_get_resource(0, GCX_RESOURCE_SM, &whole);
    if (result == GCX_SUCCESS)
        result = gcx_sm_split(&whole, &request, 1, flags, &group, nullptr, nullptr, nullptr);
    return result;
}

gcx_result structured(State&) {
    gcx_sm_request request = requests_for({16})[0];
    request.coscheduled_sm_count = 8;
    gcx_resource whole{};
    gcx_resource group{};
    const gcx_result result = gcx_device_get_resource(0, GCX_RESOURCE_SM, &whole);
    return result != GCX_SUCCESS
               ? result
               : gcx_sm_split(&whole, &request, 1, 0, &group, nullptr, nullptr, nullptr);
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

// A destroy function that fails keeps the handle valid; success sets it to null.
template <class Handle, class Destroy>
gcx_result destroyed(Handle& handle, Destroy function) {
    const gcx_result result = function(handle);
    if (result == GCX_SUCCESS)
        handle = nullptr;
    return result;
}

struct Operation {
    const char* name;
    void (*prepare)(State&);
    gcx_result (*run)(State&);
    int since = 12040;
};

const Operation kOperations[] = {
    {"driver info", nothing,
     [](State&) {
         gcx_driver_info info = GCX_DRIVER_INFO_INIT;
         return gcx_driver_get_info(&info);
     }},
    {"device info", nothing,
     [](State&) {
         gcx_device_info info = GCX_DEVICE_INFO_INIT;
         return gcx_device_get_info(0, &info);
     }},
    {"priority range", nothing,
     [](State&) {
         int32_t least = 0;
         int32_t greatest = 0;
         return gcx_device_get_stream_priority_range(0, &least, &greatest);
     }},
    {"device resource", nothing,
     [](State&) {
         gcx_resource resource{};
         return gcx_device_get_resource(0, GCX_RESOURCE_SM, &resource);
     }},
    {"split", nothing, [](State&) { return split_in(GCX_SPLIT_DEFAULT); }},
    {"fine split", nothing, [](State&) { return split_in(GCX_SPLIT_IGNORE_SM_COSCHEDULING); }},
    {"max-cluster split", nothing,
     [](State&) { return split_in(GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE); }},
    {"structured split", nothing, structured, 13010},
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
    {"context list", context,
     [](State&) {
         gcx_live_context live[2];
         uint32_t count = 0;
         return gcx_context_list(-1, live, 2, &count);
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
         gcx_resource queue{};
         return gcx_context_get_resource(state.context, GCX_RESOURCE_WORKQUEUE, &queue);
     },
     13010},
    {"context info", context,
     [](State& state) {
         gcx_context_info info = GCX_CONTEXT_INFO_INIT;
         return gcx_context_get_info(state.context, &info);
     }},
    {"context resource", context,
     [](State& state) {
         gcx_resource resource{};
         return gcx_context_get_resource(state.context, GCX_RESOURCE_SM, &resource);
     }},
    {"context native", context,
     [](State& state) {
         return gcx_context_native(state.context) != nullptr ? GCX_SUCCESS : GCX_ERROR_UNKNOWN;
     }},
    {"context native green", context,
     [](State& state) {
         return gcx_context_native_green(state.context) != nullptr ? GCX_SUCCESS
                                                                   : GCX_ERROR_UNKNOWN;
     }},
    {"context push", context,
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
    {"context get current", pushed,
     [](State&) {
         gcx_context current = nullptr;
         return gcx_context_get_current(&current);
     }},
    {"context synchronize", stream,
     [](State& state) { return gcx_context_synchronize(state.context); }},
    {"context destroy", context,
     [](State& state) { return destroyed(state.context, gcx_context_destroy); }},
    {"context destroy, keeping none", context,
     [](State& state) {
         const gcx_result result = gcx_cache_set_limit(0);
         return result != GCX_SUCCESS ? result : destroyed(state.context, gcx_context_destroy);
     }},
    {"context record", events,
     [](State& state) { return gcx_context_record(state.context, state.start); }},
    {"context wait", recorded,
     [](State& state) { return gcx_context_wait(state.context, state.start); }},
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
    {"stream native", stream,
     [](State& state) {
         return gcx_stream_native(state.stream) != nullptr ? GCX_SUCCESS : GCX_ERROR_UNKNOWN;
     }},
    {"stream info", stream,
     [](State& state) {
         gcx_stream_info info = GCX_STREAM_INFO_INIT;
         return gcx_stream_get_info(state.stream, &info);
     }},
    {"stream resource", stream,
     [](State& state) {
         gcx_resource resource{};
         return gcx_stream_get_resource(state.stream, GCX_RESOURCE_SM, &resource);
     }},
    {"stream synchronize", stream,
     [](State& state) { return gcx_stream_synchronize(state.stream); }},
    {"stream query", stream, [](State& state) { return gcx_stream_query(state.stream); }},
    {"stream record", events,
     [](State& state) { return gcx_stream_record(state.stream, state.start); }},
    {"stream wait", recorded,
     [](State& state) { return gcx_stream_wait(state.stream, state.start); }},
    {"stream from native", external,
     [](State& state) { return gcx_stream_from_native(state.external->stream, &state.stream); }},
    {"stream from native, of gcx", stream,
     [](State& state) {
         const CUstream native = gcx_stream_native(state.stream);
         return native == nullptr ? GCX_ERROR_UNKNOWN
                                  : gcx_stream_from_native(native, &state.own_stream);
     }},
    {"external stream info", external_handle,
     [](State& state) {
         gcx_stream_info info = GCX_STREAM_INFO_INIT;
         return gcx_stream_get_info(state.stream, &info);
     }},
    {"external stream resource", external_green_handle,
     [](State& state) {
         gcx_resource resource{};
         return gcx_stream_get_resource(state.stream, GCX_RESOURCE_SM, &resource);
     },
     13010},
    {"external stream resource, of the whole device", external_handle,
     [](State& state) {
         gcx_resource resource{};
         return gcx_stream_get_resource(state.stream, GCX_RESOURCE_SM, &resource);
     }},
    {"resource clusters", resources,
     [](State& state) {
         uint32_t blocks = 0;
         return gcx_resource_find_max_cluster_size(&state.sm, &blocks);
     }},
    {"event from native", external,
     [](State& state) { return gcx_event_from_native(state.external->event, &state.event); }},
    {"event create", resources,
     [](State& state) { return gcx_event_create(0, GCX_EVENT_TIMING, &state.event); }},
    {"event destroy", events,
     [](State& state) { return destroyed(state.start, gcx_event_destroy); }},
    {"event destroy, with the primary context",
     [](State& state) { CHECK_OK(gcx_event_create(0, 0, &state.event)); },
     [](State& state) { return destroyed(state.event, gcx_event_destroy); }},
    {"event native", events,
     [](State& state) {
         return gcx_event_native(state.start) != nullptr ? GCX_SUCCESS : GCX_ERROR_UNKNOWN;
     }},
    {"event synchronize", recorded,
     [](State& state) { return gcx_event_synchronize(state.start); }},
    {"event query", recorded, [](State& state) { return gcx_event_query(state.start); }},
    {"event elapsed", recorded,
     [](State& state) {
         float milliseconds = 0;
         return gcx_event_get_elapsed(state.start, state.end, &milliseconds);
     }},
    {"probe, the first", stream, [](State& state) { return probe(state.stream, 24); }},
    {"probe, one more",
     [](State& state) {
         stream(state);
         CHECK_OK(probe(state.stream, 24));
     },
     [](State& state) { return probe(state.stream, 24); }},
    {"external probe", external_handle, [](State& state) { return probe(state.stream, 132); }},
    {"map", nothing, [](State&) { return gcx_device_map_sms(0, GCX_SM_FAMILY_COSCHEDULED); }},
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

// Opening a driver begins before a failure can be set by a call, so the environment sets it.
void opening_fails_at_every_call(const std::string& spec) {
    const std::string choice = "sim:" + spec;
    const uint64_t calls = answer_of_child([&] {
        CHECK_OK(gcx_driver_open(choice.c_str()));
        return sim::calls();
    });
    CHECK(calls > 10);
    for (uint64_t nth = 1; nth <= calls; nth += faults::kStep) {
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

} // namespace

int main(int argc, char** argv) {
    const std::string driver = argc > 1 ? argv[1] : "13.0";
    const std::string spec = "h100@" + driver;
    opening_fails_at_every_call(spec);
    for (const Operation& operation : kOperations) {
        if (version_of(driver) < operation.since)
            continue;
        State state;
        faults::every_call_fails({operation.name, [&] { operation.prepare(state); },
                                  [&] { return operation.run(state); },
                                  [&] { destroy_all(state); }},
                                 spec);
    }
    return support::summary(("faults-" + driver).c_str());
}
