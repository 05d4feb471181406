// What streams answer: flags, priorities, ids, queries and synchronizations, destroyed streams.
#include "targets.hpp"

#include <thread>

namespace conformance {
namespace {

using Kind = StreamKind;

// -- Query and synchronize

CUresult query(const Target& target) {
    return CU_AT(target, cuStreamQuery)(target.stream);
}

// A query of one stream while another works.
std::string query_while(Kind busy, Kind asked) {
    const Target slow = make_target(busy);
    const Target other = make_target(asked);
    must(store(slow, device_words(), 1), "the slow launch");
    return name_of(query(other));
}

// The same after the asked stream had an action that it waits with.
std::string query_after_action_while(Kind busy, Kind asked) {
    const Target slow = make_target(busy);
    const Target other = make_target(asked);
    const CUdeviceptr words = device_words();
    must(store(slow, words, 1), "the slow launch");
    const CUevent end = mark(slow.stream);
    must(load(other, words + 8, words + 4), "the action");
    return order_of([&] { return query(other); }, end);
}

std::string synchronize_while(Kind busy, Kind asked) {
    const Target slow = make_target(busy);
    const Target other = make_target(asked);
    must(store(slow, device_words(), 1), "the slow launch");
    const CUevent end = make_event();
    must(CU_AT(slow, cuEventRecord)(end, slow.stream), "cuEventRecord");
    const CUresult result = CU_AT(other, cuStreamSynchronize)(other.stream);
    return result == CUDA_SUCCESS ? waited_for(end) : name_of(result);
}

// An event recorded in one stream while another works: does it cover that work?
std::string event_covers(Kind busy, Kind recorded) {
    const Target slow = make_target(busy);
    const Target other = make_target(recorded);
    must(store(slow, device_words(), 1), "the slow launch");
    const CUevent end = make_event();
    must(CU_AT(slow, cuEventRecord)(end, slow.stream), "cuEventRecord");
    const CUevent event = make_event();
    must(CU_AT(other, cuEventRecord)(event, other.stream), "cuEventRecord");
    MUST(cuEventSynchronize, event);
    return CU(cuEventQuery)(end) == CUDA_SUCCESS ? "covers" : "does not cover";
}

void add_waits(Checks& checks, Kind busy, Kind asked, bool green) {
    const std::string names = std::string(name_of(asked)) + "_while_" + name_of(busy) + "_works";
    const auto add = [&](const std::string& name, const Body& body) {
        if (green)
            checks.add_both(name, body);
        else
            checks.add_primary(name, body);
    };
    add("query_" + names, [=] { return query_while(busy, asked); });
    add("query_after_action_in_" + names, [=] { return query_after_action_while(busy, asked); });
    add("synchronize_" + names, [=] { return synchronize_while(busy, asked); });
    add("event_in_" + names, [=] { return event_covers(busy, asked); });
}

void add_waits(Checks& checks) {
    for (const Kind other : {Kind::kBlocking, Kind::kNonBlocking, Kind::kPerThread}) {
        add_waits(checks, other, Kind::kNull, other == Kind::kBlocking);
        add_waits(checks, Kind::kNull, other, other == Kind::kBlocking);
    }
    add_waits(checks, Kind::kBlocking, Kind::kLegacy, false);
    add_waits(checks, Kind::kBlocking, Kind::kPtszLegacy, false);
    checks.add_both("synchronize_null_while_null_works",
                    [] { return synchronize_while(Kind::kNull, Kind::kNull); });
    checks.add_primary("synchronize_ptsz_while_per_thread_works",
                       [] { return synchronize_while(Kind::kPerThread, Kind::kPtsz); });
}

// An event recorded in NULL separates earlier work of blocking streams from later work: it does not
// cover a launch that came after it.
std::string event_separates() {
    const CUstream stream = blocking_stream();
    const CUevent event = mark(nullptr);
    must(spin(stream), "gcx_spin");
    const CUevent end = mark(stream);
    return order_of([=] { return CU(cuEventQuery)(event); }, end);
}

// -- Destroyed streams

struct Destroyed {
    CUdeviceptr word = device_words();
    CUevent end = nullptr;
};

Destroyed destroyed_with_work(Kind kind) {
    Destroyed destroyed;
    const CUstream stream = make_stream(kind);
    must(store(stream, destroyed.word, 1), "the slow launch");
    destroyed.end = mark(stream);
    MUST(cuStreamDestroy_v2, stream);
    return destroyed;
}

void add_destroyed(Checks& checks) {
    for (const Kind kind : {Kind::kBlocking, Kind::kNonBlocking}) {
        const std::string name = std::string("destroyed_") + name_of(kind) + "_stream_";
        checks.add_both(name + "then_null", [=] {
            const CUdeviceptr to = device_words();
            const Destroyed destroyed = destroyed_with_work(kind);
            must(load(nullptr, to, destroyed.word), "the launch in NULL");
            return read_word(to) == 1 ? "ordered" : "independent";
        });
        checks.add_both(name + "query_null", [=] {
            destroyed_with_work(kind);
            return name_of(CU(cuStreamQuery)(nullptr));
        });
        checks.add_both(name + "synchronize_null", [=] {
            const Destroyed destroyed = destroyed_with_work(kind);
            MUST(cuStreamSynchronize, nullptr);
            return waited_for(destroyed.end);
        });
        checks.add_both(name + "event_in_null", [=] {
            const Destroyed destroyed = destroyed_with_work(kind);
            MUST(cuEventSynchronize, mark(nullptr));
            return waited_for(destroyed.end);
        });
    }
    checks.add_both("destroy_of_stream_with_work",
                    [] { return waited_for(destroyed_with_work(Kind::kBlocking).end); });
}

// -- Properties

std::string flags_of(Kind kind) {
    const Target target = make_target(kind);
    unsigned flags = 99;
    const CUresult result = CU_AT(target, cuStreamGetFlags)(target.stream, &flags);
    return result == CUDA_SUCCESS ? std::to_string(flags) : name_of(result);
}

std::string priority_of(CUstream stream) {
    int priority = 99;
    const CUresult result = CU(cuStreamGetPriority)(stream, &priority);
    return result == CUDA_SUCCESS ? std::to_string(priority) : name_of(result);
}

std::string ids() {
    const auto id = [](CUstream stream) {
        unsigned long long value = 0;
        const CUresult result = CU(cuStreamGetId)(stream, &value);
        return std::make_pair(result, value);
    };
    const auto null = id(nullptr);
    const auto thread = id(CU_STREAM_PER_THREAD);
    const auto own = id(blocking_stream());
    return std::string("NULL and legacy have one id: ") + yes_no(null == id(CU_STREAM_LEGACY)) +
           "; per-thread " + name_of(thread.first) +
           ", another: " + yes_no(thread.second != null.second) +
           "; a created stream has another: " + yes_no(own.second != null.second);
}

std::string context_of_stream(Kind kind) {
    const Target target = make_target(kind);
    CUcontext current = nullptr;
    CUcontext context = nullptr;
    MUST(cuCtxGetCurrent, &current);
    const CUresult result = CU_AT(target, cuStreamGetCtx)(target.stream, &context);
    if (result != CUDA_SUCCESS)
        return name_of(result);
    return context == current ? "current" : context == gpu.primary ? "primary" : "another";
}

CUstream given = nullptr;

void CUDA_CB note_stream(CUstream stream, CUresult, void*) {
    given = stream;
}

std::string stream_of_callback(Kind kind) {
    const Target target = make_target(kind);
    given = reinterpret_cast<CUstream>(uintptr_t{0x10});
    const CUresult result =
        CU_AT(target, cuStreamAddCallback)(target.stream, note_stream, nullptr, 0);
    if (result != CUDA_SUCCESS)
        return name_of(result);
    settle();
    MUST(cuStreamSynchronize, target.stream); // callbacks may run after the work has ended
    return given == target.stream          ? "the same"
           : given == nullptr              ? "NULL"
           : given == CU_STREAM_LEGACY     ? "CU_STREAM_LEGACY"
           : given == CU_STREAM_PER_THREAD ? "CU_STREAM_PER_THREAD"
                                           : "another";
}

void add_properties(Checks& checks) {
    for (CUcontext Gpu::* const context : {&Gpu::primary, &Gpu::green}) {
        const bool green = context == &Gpu::green;
        checks.begin_family(green ? "properties green" : "properties");
        const auto add = [&](const std::string& name, const Body& body) {
            if (green)
                checks.add_green(name + "_green", body);
            else
                checks.add_primary(name, body);
        };
        for (const Kind kind :
             {Kind::kNull, Kind::kLegacy, Kind::kPtszLegacy, Kind::kBlocking, Kind::kPriority,
              Kind::kNonBlocking, Kind::kPerThread, Kind::kPtsz}) {
            const std::string name = name_of(kind);
            add("flags_of_" + name, [kind] { return flags_of(kind); });
            add("context_of_stream_" + name, [kind] { return context_of_stream(kind); });
            add("claim_38_callback_gets_stream_" + name,
                [kind] { return stream_of_callback(kind); });
        }
        add("priorities", [] {
            return "NULL " + priority_of(nullptr) + ", blocking " + priority_of(blocking_stream()) +
                   ", highest " + priority_of(make_stream(Kind::kPriority));
        });
        add("stream_ids", ids);
    }
    checks.begin_family("");
}

// An event and its stream are destroyed directly after the wait.
std::string order_after_destroy() {
    const CUstream first = non_blocking_stream();
    const CUstream second = non_blocking_stream();
    const CUdeviceptr from = device_words();
    const CUdeviceptr to = device_words();
    const CUevent event = make_event();
    must(store(first, from, 1), "the slow launch");
    MUST(cuEventRecord, event, first);
    MUST(cuStreamWaitEvent, second, event, 0);
    MUST(cuEventDestroy_v2, event);
    MUST(cuStreamDestroy_v2, first);
    must(load(second, to, from), "the launch");
    return read_word(to) == 1 ? "ordered" : "independent";
}

// Many streams wait behind a host function, or a memset that waits for one. Is a launch of another
// stream held?
struct Latch {
    volatile uint32_t released = 0;
    volatile uint32_t ended = 0;
};

void CUDA_CB wait_for_release(void* data) {
    auto* latch = static_cast<Latch*>(data);
    for (int i = 0; i < 300 && latch->released == 0; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    latch->ended = 1;
}

std::string held_by_host_function(bool memsets) {
    static Latch latch;
    const CUdeviceptr words = device_words();
    const CUstream first = non_blocking_stream();
    MUST(cuLaunchHostFunc, first, wait_for_release, &latch);
    const CUevent event = mark(first);
    for (unsigned i = 0; i < 16; i++) {
        const CUstream stream = non_blocking_stream();
        MUST(cuStreamWaitEvent, stream, event, 0);
        if (memsets)
            MUST(cuMemsetD32Async, words + 64 + 4 * i, 1, 1, stream);
        else
            MUST(cuLaunchHostFunc, stream, [](void*) {}, nullptr);
    }
    make_current(gpu.other != nullptr ? gpu.other : gpu.primary);
    const CUstream other = non_blocking_stream();
    must(load(other, words, words + 4), "the launch");
    CUresult result = CUDA_ERROR_NOT_READY;
    while (result == CUDA_ERROR_NOT_READY && latch.ended == 0)
        result = CU(cuStreamQuery)(other);
    latch.released = 1;
    settle();
    return result == CUDA_SUCCESS ? "not held" : "held";
}

} // namespace

void add_streams(Checks& checks) {
    add_waits(checks);
    checks.add_both("event_in_null_before_launch_in_blocking", event_separates);
    add_destroyed(checks);
    add_properties(checks);
    checks.add_both("claim_18_order_after_event_and_stream_are_destroyed", order_after_destroy);
    for (const bool memsets : {false, true})
        checks.add_both(memsets ? "claim_40_launch_behind_waiting_memsets"
                                : "claim_40_launch_behind_waiting_host_functions",
                        [memsets] { return held_by_host_function(memsets); });
}

} // namespace conformance
