// The operations of `order` on captures and graphs.
#include "order.hpp"

#include <algorithm>

namespace random_programs {
namespace {

constexpr std::size_t kMaxNodes = 16;
constexpr std::size_t kMaxStreams = 3; // of a capture
constexpr unsigned kNotInGraphs = 1U << static_cast<unsigned>(Memory::kAllocated) |
                                  1U << static_cast<unsigned>(Memory::kPageable);

} // namespace

bool Order::capture(Turn& turn) {
    if (!capture_.active)
        return turn.choices.chance(40) && begin_capture(turn);
    if (capture_.invalid)
        return end_capture(turn);
    const uint8_t kind = turn.choices.byte();
    if (kind < 140)
        return capture_work(turn);
    if (kind < 165)
        return fork(turn);
    if (kind < 185)
        return join(turn);
    if (kind < 200)
        return query_capture(turn);
    if (kind < 206)
        return break_capture(turn);
    return end_capture(turn);
}

bool Order::begin_capture(Turn& turn) {
    const auto picked = pick_stream(turn);
    uint32_t mode = turn.choices.below(3);
    if (!picked)
        return false;
    if (picked->slot == kNull)
        return capture_null(turn, *picked);
    if (options_.shared_context && timelines_.blocking(picked->slot))
        return false;
    if (options_.shared_context && mode == CU_STREAM_CAPTURE_MODE_GLOBAL)
        mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    turn.note("begins in %s, mode %u", name_of(*picked).c_str(), mode);
    capture_ = {};
    capture_.mode = static_cast<CUstreamCaptureMode>(mode);
    cuda_.check(cuda_.begin_capture.of(picked->thread_variant)(picked->handle, capture_.mode),
                "cuStreamBeginCapture");
    capture_.active = true;
    capture_.thread = turn.thread;
    capture_.streams = {*picked};
    capture_.ancestors = {0};
    return true;
}

// Recorded: NULL can't be captured, except in a green context.
bool Order::capture_null(Turn& turn, const Target& null) {
    if (!options_.null_ends_captures)
        return false;
    turn.note("of NULL is refused");
    const CUresult result =
        cuda_.begin_capture.of(null.thread_variant)(null.handle, CU_STREAM_CAPTURE_MODE_RELAXED);
    if (result != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
        throw Wrong("cuStreamBeginCapture of NULL returned " + cuda_.name_of(result));
    return true;
}

// Another thread's default stream has no handle here.
static bool reachable(const Target& target, const Turn& turn) {
    return target.slot >= kCreated || target.slot == kThreadStreams + turn.thread;
}

bool Order::capture_work(Turn& turn) {
    const uint32_t at = turn.choices.below(static_cast<uint32_t>(capture_.streams.size()));
    const Target& target = capture_.streams[at];
    if (capture_.nodes.size() == kMaxNodes || !reachable(target, turn))
        return false;
    const uint32_t ancestors = capture_.ancestors[at];
    // Accesses of nodes that are no ancestors have no order.
    const auto none = [&](const auto& conflicts) {
        for (std::size_t i = 0; i < capture_.nodes.size(); i++)
            if ((ancestors >> i & 1) == 0 && conflicts(capture_.nodes[i]))
                return false;
        return true;
    };
    const auto readable = [&](std::size_t index) {
        return none([&](const Effect& node) { return node.to == index; });
    };
    const auto writable = [&](std::size_t index) {
        return none([&](const Effect& node) {
            return node.to == index || (node.reads_from() && node.from == index);
        });
    };
    constexpr Effect::Kind kKinds[] = {Effect::kStore, Effect::kAdd,  Effect::kLoad,
                                       Effect::kFill,  Effect::kCopy, Effect::kHostAdd};
    Effect effect;
    effect.kind = turn.choices.of(kKinds);
    if (!pick_words(turn, effect, kNotInGraphs, writable, readable))
        return false;
    turn.note("node %zu in %s: kind %d, word %zu from %zu, value %u", capture_.nodes.size(),
              name_of(target).c_str(), effect.kind, effect.to, effect.from, effect.value);
    submit(effect, target, true);
    capture_.steps.push_back({Step::kWork, static_cast<uint8_t>(at), effect});
    capture_.ancestors[at] |= 1U << capture_.nodes.size();
    capture_.nodes.push_back(effect);
    return true;
}

// A second stream joins the capture, behind what the first has captured so far.
bool Order::fork(Turn& turn) {
    const auto target = pick_created(turn);
    if (!target || capture_.streams.size() == kMaxStreams ||
        !reachable(capture_.streams[0], turn) ||
        (options_.shared_context && timelines_.blocking(target->slot)))
        return false;
    turn.note("goes on in %s", name_of(*target).c_str());
    depend(capture_.streams[0], *target);
    capture_.steps.push_back({Step::kFork, static_cast<uint8_t>(capture_.streams.size()), {}});
    capture_.streams.push_back(*target);
    capture_.ancestors.push_back(capture_.ancestors[0]);
    return true;
}

bool Order::join(Turn& turn) {
    if (capture_.streams.size() < 2 || !reachable(capture_.streams[0], turn))
        return false;
    const uint32_t at = 1 + turn.choices.below(static_cast<uint32_t>(capture_.streams.size() - 1));
    turn.note("waits for %s", name_of(capture_.streams[at]).c_str());
    depend(capture_.streams[at], capture_.streams[0]);
    capture_.steps.push_back({Step::kJoin, static_cast<uint8_t>(at), {}});
    capture_.ancestors[0] |= capture_.ancestors[at];
    return true;
}

// Waits for the other streams of the capture, and ends it. Returns the graph, or null if an action
// in NULL made the capture invalid.
CUgraph Order::leave_capture() {
    const Target& first = capture_.streams[0];
    const CUresult expected =
        capture_.invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    for (std::size_t i = 1; i < capture_.streams.size() && !capture_.invalid; i++) {
        depend(capture_.streams[i], first);
        capture_.steps.push_back({Step::kJoin, static_cast<uint8_t>(i), {}});
    }
    CUgraph graph = nullptr;
    const CUresult result = cuda_.end_capture.of(first.thread_variant)(first.handle, &graph);
    capture_.active = false;
    if (result != expected)
        throw Wrong("cuStreamEndCapture returned " + cuda_.name_of(result) + " and not " +
                    cuda_.name_of(expected));
    return graph;
}

// The thread that began a capture ends it, if its mode isn't relaxed.
bool Order::end_capture(Turn& turn) {
    const Target first = capture_.streams[0];
    if (!reachable(first, turn) ||
        (capture_.mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture_.thread != turn.thread))
        return false;
    const CUgraph graph = leave_capture();
    if (graph == nullptr) {
        turn.note("ends invalid");
        return true;
    }
    turn.note("ends with %zu nodes", capture_.nodes.size());
    const auto free = std::ranges::find(executables_, CUgraphExec{}, &Executable::handle);
    if (free != executables_.end() && !capture_.nodes.empty()) {
        *free = {};
        cuda_.check(cuda_.instantiate(&free->handle, graph, 0), "cuGraphInstantiate");
        free->steps = std::move(capture_.steps);
        free->priority = std::ranges::any_of(
            capture_.streams, [&](const Target& target) { return streams_[target.slot].priority; });
        turn.note("executable %td", free - executables_.begin());
    }
    cuda_.check(cuda_.destroy_graph(graph), "cuGraphDestroy");
    return true;
}

// cuStreamIsCapturing, cuStreamGetCaptureInfo: a query of NULL fails while a blocking stream
// captures, and the capture stays valid.
bool Order::query_capture(Turn& turn) {
    const bool about_null = turn.choices.chance(128);
    const bool by_info = turn.choices.chance(128);
    const Target target = about_null ? Target{} : capture_.streams[0];
    if (!reachable(capture_.streams[0], turn) || !options_.null_ends_captures)
        return false;
    turn.note("query of %s", name_of(target).c_str());
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result =
        by_info ? cuda_.get_capture_info.of(target.thread_variant)(target.handle, &status, nullptr,
                                                                   nullptr, nullptr, nullptr)
                : cuda_.is_capturing.of(target.thread_variant)(target.handle, &status);
    const CUresult expected =
        about_null && !null_allowed() ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
    const CUstreamCaptureStatus expected_status =
        about_null ? CU_STREAM_CAPTURE_STATUS_NONE : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (result != expected)
        throw Wrong("the query of a capture returned " + cuda_.name_of(result) + " and not " +
                    cuda_.name_of(expected));
    if (result == CUDA_SUCCESS && status != expected_status)
        throw Wrong("the status of a capture is " + std::to_string(status));
    return true;
}

// Submits something to NULL, or asks for a copy without a stream. The words are read only.
CUresult Order::act_in_null(Turn& turn) {
    const Target kinds[] = {{kNull, nullptr, false}, {kNull, CU_STREAM_LEGACY, true}};
    const Target target = turn.choices.of(kinds);
    const bool variant = target.thread_variant;
    uint64_t ns = 0;
    uint32_t value = 0;
    void* arguments[] = {&ns};
    switch (turn.choices.below(7)) {
    case 0:
        turn.note("a kernel in NULL");
        return cuda_.launch.of(variant)(cuda_.spin, 1, 1, 1, 1, 1, 1, 0, target.handle, arguments,
                                        nullptr);
    case 1:
        turn.note("a fill in NULL");
        return cuda_.fill.of(variant)(device_memory_, 0, 1, target.handle);
    case 4:
        turn.note("a copy in NULL");
        return cuda_.copy_on_device.of(variant)(device_memory_, device_memory_ + 4, 4,
                                                target.handle);
    case 5:
        turn.note("a fill without a stream");
        return cuda_.fill_now.legacy(device_memory_, 0, 1);
    case 2:
        turn.note("a host function in NULL");
        return cuda_.launch_host.of(variant)(target.handle, [](void*) {}, nullptr);
    case 3: {
        turn.note("a record in NULL");
        CUevent event = nullptr;
        cuda_.check(cuda_.create_event(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
        const CUresult result = cuda_.record.of(variant)(event, target.handle);
        cuda_.check(cuda_.destroy_event(event), "cuEventDestroy");
        return result;
    }
    default:
        turn.note("a copy without a stream");
        return cuda_.copy_to_host_now.legacy(&value, device_memory_, 4);
    }
}

// An action in NULL while a blocking stream captures fails, and the capture becomes invalid.
bool Order::break_capture(Turn& turn) {
    if (null_allowed() || !options_.null_ends_captures)
        return false;
    const CUresult result = act_in_null(turn);
    if (result != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        throw Wrong("an action in NULL during the capture of a blocking stream returned " +
                    cuda_.name_of(result));
    capture_.invalid = true;
    return true;
}

Order::Executable* Order::pick_executable(Turn& turn) {
    const std::size_t first = turn.choices.below(static_cast<uint32_t>(executables_.size()));
    for (std::size_t i = 0; i < executables_.size(); i++)
        if (Executable& found = executables_[(first + i) % executables_.size()];
            found.handle != nullptr)
            return &found;
    return nullptr;
}

// A launch comes after the earlier launches of the same executable (cuGraphLaunch).
bool Order::launch_graph(Turn& turn) {
    const auto target = pick_stream(turn);
    Executable* const executable = pick_executable(turn);
    if (!target || executable == nullptr)
        return false;
    Action action = timelines_.plan(target->slot);
    action.clock.join(executable->last);
    for (const Step& step : executable->steps) {
        if (step.kind != Step::kWork)
            continue;
        if (!Words::writable(words_[step.effect.to], action.clock) ||
            (step.effect.reads_from() && !Words::readable(words_[step.effect.from], action.clock)))
            return false;
    }
    turn.note("%td in %s", executable - executables_.data(), name_of(*target).c_str());
    cuda_.check(cuda_.launch_graph.of(target->thread_variant)(executable->handle, target->handle),
                "cuGraphLaunch");
    timelines_.commit(action);
    executable->last = action.clock;
    for (const Step& step : executable->steps)
        if (step.kind == Step::kWork)
            apply(step.effect, action);
    return true;
}

bool Order::upload_graph(Turn& turn) {
    const auto target = pick_stream(turn);
    const Executable* const executable = pick_executable(turn);
    if (!target || executable == nullptr)
        return false;
    turn.note("%td in %s", executable - executables_.data(), name_of(*target).c_str());
    cuda_.check(cuda_.upload_graph.of(target->thread_variant)(executable->handle, target->handle),
                "cuGraphUpload");
    timelines_.commit(timelines_.plan(target->slot));
    return true;
}

// Captures the same steps in streams that nothing else uses.
CUgraph Order::capture_again(const std::vector<Step>& steps) {
    const auto spare = [&](uint8_t at) { return Target{kNull, spare_streams_[at], false}; };
    CUgraph graph = nullptr;
    cuda_.check(cuda_.begin_capture.legacy(spare_streams_[0], CU_STREAM_CAPTURE_MODE_RELAXED),
                "cuStreamBeginCapture");
    for (const Step& step : steps) {
        if (step.kind == Step::kWork)
            submit(step.effect, spare(step.stream), true);
        else if (step.kind == Step::kFork)
            depend(spare(0), spare(step.stream));
        else
            depend(spare(step.stream), spare(0));
    }
    cuda_.check(cuda_.end_capture.legacy(spare_streams_[0], &graph), "cuStreamEndCapture");
    return graph;
}

// Gives the nodes other values. Launches that are on the way keep theirs. The priority of nodes
// stays, since an update may not change it.
bool Order::update_graph(Turn& turn) {
    Executable* const executable = pick_executable(turn);
    if (executable == nullptr || executable->priority || capture_.active)
        return false;
    for (Step& step : executable->steps)
        if (step.kind == Step::kWork && step.effect.kind != Effect::kCopy)
            step.effect.value = turn.choices.word();
    turn.note("%td", executable - executables_.data());
    const CUgraph graph = capture_again(executable->steps);
    CUgraphExecUpdateResultInfo info{};
    cuda_.check(cuda_.update_executable(executable->handle, graph, &info), "cuGraphExecUpdate");
    cuda_.check(cuda_.destroy_graph(graph), "cuGraphDestroy");
    return true;
}

// An executable that runs is freed when it has ended (cuGraphExecDestroy).
bool Order::destroy_graph(Turn& turn) {
    Executable* const executable = pick_executable(turn);
    if (executable == nullptr || forbidden_by_capture(turn))
        return false;
    turn.note("%td", executable - executables_.data());
    cuda_.check(cuda_.destroy_executable(executable->handle), "cuGraphExecDestroy");
    *executable = {};
    return true;
}

} // namespace random_programs
