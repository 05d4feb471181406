// Contexts: what their synchronize and their events cover, what is left after their end, their SMs,
// ids and settings.
#include "targets.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

namespace conformance {
namespace {

using Kind = StreamKind;

// -- Claim 7: cuCtxSynchronize

void CUDA_CB sleep_on_host(void*) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(kSlow));
}

// Starts slow work of a kind in the current context. Returns an event that it ends with.
struct Work {
    const char* name;
    CUevent (*start)();
};

CUevent slow_in(Kind kind) {
    const CUstream stream = make_stream(kind);
    must(spin(stream), "gcx_spin");
    return mark(stream);
}

CUgraphExec slow_graph() {
    return store_graph(device_words(), 1);
}

const Work kWork[] = {
    {"null", [] { return slow_in(Kind::kNull); }},
    {"blocking", [] { return slow_in(Kind::kBlocking); }},
    {"non_blocking", [] { return slow_in(Kind::kNonBlocking); }},
    {"per_thread", [] { return slow_in(Kind::kPerThread); }},
    {"destroyed_stream",
     [] {
         const CUstream stream = non_blocking_stream();
         must(spin(stream), "gcx_spin");
         const CUevent end = mark(stream);
         MUST(cuStreamDestroy_v2, stream);
         return end;
     }},
    {"ended_thread",
     [] {
         CUevent end = nullptr;
         CUcontext context = nullptr;
         MUST(cuCtxGetCurrent, &context);
         in_thread(context, [&] { end = slow_in(Kind::kPerThread); });
         return end;
     }},
    {"host_function",
     [] {
         const CUstream stream = non_blocking_stream();
         MUST(cuLaunchHostFunc, stream, sleep_on_host, nullptr);
         return mark(stream);
     }},
    {"graph",
     [] {
         const CUstream stream = non_blocking_stream();
         const CUgraphExec graph = slow_graph();
         MUST(cuGraphLaunch, graph, stream);
         return mark(stream);
     }},
};

std::string synchronize_after(const Work& work) {
    const CUevent end = work.start();
    MUST(cuCtxSynchronize);
    return waited_for(end);
}

std::string synchronize_beside(CUcontext Gpu::* caller, CUcontext Gpu::* worker) {
    make_current(gpu.*worker);
    const CUevent end = slow_in(Kind::kNonBlocking);
    make_current(gpu.*caller);
    MUST(cuCtxSynchronize);
    return waited_for(end);
}

// A graph whose node belongs to the primary context is launched in a stream of a green one.
std::string synchronize_after_graph_of_primary() {
    make_current(gpu.primary);
    const CUgraphExec graph = slow_graph();
    make_current(gpu.green);
    const CUstream stream = non_blocking_stream();
    MUST(cuGraphLaunch, graph, stream);
    const CUevent end = mark(stream);
    MUST(cuCtxSynchronize);
    return waited_for(end);
}

// -- Claim 8: the end of a green context

std::string destroy_with_work() {
    const CUdeviceptr word = device_words();
    const CUstream stream = non_blocking_stream();
    must(store(stream, word, 3), "the slow launch");
    const CUevent end = mark(stream);
    make_current(gpu.primary);
    const CUresult result = CU(cuGreenCtxDestroy)(gpu.green_handle);
    const CUresult running = CU(cuEventQuery)(end);
    MUST(cuCtxSynchronize);
    uint32_t at_once = 0;
    MUST(cuMemcpyDtoH_v2, &at_once, word, 4);
    return name_of(result) + ", the event then " + name_of(running) +
           ", value after the primary context's synchronize " + std::to_string(at_once);
}

std::string synchronize_after_destroy() {
    const CUdeviceptr word = device_words();
    must(store(non_blocking_stream(), word, 3), "the slow launch");
    const CUevent end = mark(nullptr);
    make_current(gpu.primary);
    MUST(cuGreenCtxDestroy, gpu.green_handle);
    const CUstream stream = non_blocking_stream();
    const CUresult waited = CU(cuStreamWaitEvent)(stream, end, 0);
    return "an event of it: query " + name_of(CU(cuEventQuery)(end)) + ", wait " + name_of(waited) +
           ", synchronize " + name_of(CU(cuEventSynchronize)(end));
}

std::string destroyed_context_is_current() {
    const CUdeviceptr word = device_words();
    MUST(cuGreenCtxDestroy, gpu.green_handle);
    CUcontext current = nullptr;
    std::string answer = "cuCtxGetCurrent " + name_of(CU(cuCtxGetCurrent)(&current));
    answer += ", the same: " + std::string(yes_no(current == gpu.green));
    answer += ", launch in NULL " + name_of(spin(nullptr, 1));
    CUdeviceptr memory = 0;
    answer += ", cuMemAlloc " + name_of(CU(cuMemAlloc_v2)(&memory, 64));
    answer += ", cuCtxSynchronize " + name_of(CU(cuCtxSynchronize)());
    answer += ", cuMemFree " + name_of(CU(cuMemFree_v2)(word));
    return answer + ", cuCtxSetCurrent of it " + name_of(CU(cuCtxSetCurrent)(gpu.green));
}

// -- Claims 10 and 11: events of contexts

// cuGreenCtxWaitEvent, then an action: does it wait?
std::string wait_event_holds(const std::function<CUstream()>& stream, bool made_after, bool graph) {
    const CUdeviceptr from = device_words();
    const CUdeviceptr to = device_words();
    const CUgraphExec executable = load_graph(to, from);
    CUstream reads = made_after ? nullptr : stream();
    make_current(gpu.other);
    const CUstream writes = non_blocking_stream();
    must(store(writes, from, 1), "the slow launch");
    const CUevent end = mark(writes);
    make_current(gpu.green);
    MUST(cuGreenCtxWaitEvent, gpu.green_handle, end);
    if (made_after)
        reads = stream();
    must(graph ? CU(cuGraphLaunch)(executable, reads) : load(reads, to, from), "the action");
    return read_word(to) == 1 ? "waits" : "does not wait";
}

void add_waits_of_contexts(Checks& checks) {
    const auto add = [&](const std::string& name, Kind kind, bool made_after, bool graph) {
        checks.add_green("claim_10_context_wait_holds_" + name, [=] {
            return wait_event_holds([kind] { return make_stream(kind); }, made_after, graph);
        });
    };
    add("null", Kind::kNull, false, false);
    add("blocking", Kind::kBlocking, false, false);
    add("non_blocking", Kind::kNonBlocking, false, false);
    add("new_non_blocking", Kind::kNonBlocking, true, false);
    add("new_blocking", Kind::kBlocking, true, false);
    add("graph_in_null", Kind::kNull, false, true);
    add("graph_in_non_blocking", Kind::kNonBlocking, false, true);
}

std::string record_event_covers(const Work& work) {
    const CUevent end = work.start();
    const CUevent all = make_event();
    MUST(cuGreenCtxRecordEvent, gpu.green_handle, all);
    MUST(cuEventSynchronize, all);
    return CU(cuEventQuery)(end) == CUDA_SUCCESS ? "covers" : "does not cover";
}

std::string context_event_during_capture(bool wait) {
    const CUevent event = mark(nullptr);
    settle();
    const CUstream stream = non_blocking_stream();
    MUST(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    const CUresult result = wait ? CU(cuGreenCtxWaitEvent)(gpu.green_handle, event)
                                 : CU(cuGreenCtxRecordEvent)(gpu.green_handle, event);
    CUgraph graph = nullptr;
    return name_of(result) + ", end of the capture " +
           name_of(CU(cuStreamEndCapture)(stream, &graph));
}

// -- Claims 19 and 20: SMs

CUcontext context_over(CUdevResource resource) {
    CUdevResourceDesc descriptor{};
    CUgreenCtx green = nullptr;
    CUcontext context = nullptr;
    MUST(cuDevResourceGenerateDesc, &descriptor, &resource, 1);
    MUST(cuGreenCtxCreate, &green, descriptor, gpu.device, gcx::cu::kGreenCtxDefaultStream);
    MUST(cuCtxFromGreenCtx, &context, green);
    return context;
}

std::set<unsigned> sms_of_context(CUcontext context) {
    make_current(context);
    return sms_of(nullptr);
}

bool within(const std::set<unsigned>& part, const std::set<unsigned>& whole) {
    return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

// The SMs of the other context are not the device's first ones.
std::string parts_of_green() {
    constexpr unsigned kPart = 8;
    CUdevResource all{};
    CUdevResource parts[2] = {};
    CUdevResource rest{};
    unsigned count = 2;
    MUST(cuGreenCtxGetDevResource, gpu.other_handle, &all, gcx::cu::kResourceSm);
    MUST(cuDevSmResourceSplitByCount, parts, &count, &all, &rest, 0, kPart);
    const std::set<unsigned> whole = sms_of_context(gpu.other);
    const std::set<unsigned> first = sms_of_context(context_over(parts[0]));
    const std::set<unsigned> second = sms_of_context(context_over(parts[1]));
    std::set<unsigned> both = first;
    both.insert(second.begin(), second.end());
    return std::to_string(count) +
           " parts, within the context: " + yes_no(within(first, whole) && within(second, whole)) +
           ", disjoint: " + yes_no(both.size() == first.size() + second.size()) +
           ", the rest within: " +
           (rest.type == gcx::cu::kResourceSm
                ? yes_no(within(sms_of_context(context_over(rest)), whole))
                : "none");
}

std::string same_resource() {
    CUdevResource all{};
    MUST(cuGreenCtxGetDevResource, gpu.other_handle, &all, gcx::cu::kResourceSm);
    const std::set<unsigned> whole = sms_of_context(gpu.other);
    return sms_of_context(context_over(all)) == whole ? "the same SMs" : "other SMs";
}

std::string null_descriptor() {
    make_current(gpu.primary);
    const std::set<unsigned> all = sms_of(nullptr);
    make_current(gpu.green);
    CUgreenCtx green = nullptr;
    CUcontext context = nullptr;
    const CUresult result =
        CU(cuGreenCtxCreate)(&green, nullptr, gpu.device, gcx::cu::kGreenCtxDefaultStream);
    if (result != CUDA_SUCCESS)
        return name_of(result);
    MUST(cuCtxFromGreenCtx, &context, green);
    return sms_of_context(context) == all ? "all SMs of the primary context" : "other SMs";
}

std::string sms_of_streams(Kind kind) {
    const std::set<unsigned> all = sms_of(nullptr);
    const Target target = make_target(kind);
    return sms_of(target.stream) == all ? "the SMs of NULL" : "other SMs";
}

std::string function_of_another_context() {
    make_current(gpu.other);
    load_kernels();
    run_kernels_once();
    const std::set<unsigned> of_other = sms_of(nullptr);
    make_current(gpu.green);
    const std::set<unsigned> own = sms_of(nullptr);
    return own.size() == of_other.size() && own != of_other ? "SMs of the stream" : "other SMs";
}

// -- Claim 25: ids and pointers of destroyed contexts

std::string id_of_destroyed() {
    unsigned long long id = 0;
    MUST(cuCtxGetId, gpu.green, &id);
    make_current(gpu.primary);
    MUST(cuGreenCtxDestroy, gpu.green_handle);
    return name_of(CU(cuCtxGetId)(gpu.green, &id));
}

std::string ids_are_new() {
    std::set<unsigned long long> ids;
    unsigned long long id = 0;
    MUST(cuCtxGetId, gpu.green, &id);
    ids.insert(id);
    CUdevResource all{};
    MUST(cuGreenCtxGetDevResource, gpu.green_handle, &all, gcx::cu::kResourceSm);
    make_current(gpu.primary);
    MUST(cuGreenCtxDestroy, gpu.green_handle);
    bool again = false;
    for (int i = 0; i < 8; i++) {
        CUdevResourceDesc descriptor{};
        CUgreenCtx green = nullptr;
        CUcontext context = nullptr;
        MUST(cuDevResourceGenerateDesc, &descriptor, &all, 1);
        MUST(cuGreenCtxCreate, &green, descriptor, gpu.device, gcx::cu::kGreenCtxDefaultStream);
        MUST(cuCtxFromGreenCtx, &context, green);
        MUST(cuCtxGetId, context, &id);
        again = !ids.insert(id).second || again;
        MUST(cuGreenCtxDestroy, green);
    }
    return again ? "an id is used again" : "no id is used again";
}

// -- Claim 26: one context in many threads

std::string many_threads() {
    CUcontext context = nullptr;
    MUST(cuCtxGetCurrent, &context);
    constexpr unsigned kThreads = 16;
    constexpr unsigned kRounds = 200;
    const CUdeviceptr words = device_words();
    const CUstream shared = non_blocking_stream();
    std::atomic<unsigned> errors{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; i++)
        threads.emplace_back([&, i] {
            const auto check = [&](CUresult result) { errors += result != CUDA_SUCCESS; };
            check(CU(cuCtxSetCurrent)(context));
            for (unsigned k = 1; k <= kRounds; k++) {
                check(store(k % 2 == 0 ? shared : nullptr, words + 8 * i + 4 * (k % 2), k, 0));
                CUstream stream = nullptr;
                if (k % 50 != 0)
                    continue;
                check(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
                check(CU(cuStreamDestroy_v2)(stream));
                check(CU(cuCtxSynchronize)());
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    bool right = true;
    for (unsigned i = 0; i < kThreads; i++)
        right = right && read_word(words + 8 * i) == kRounds &&
                read_word(words + 8 * i + 4) == kRounds - 1;
    return std::to_string(errors) + " errors, last values right: " + yes_no(right);
}

// -- Claims 33, 36, 39: settings and occupancy

std::string flags_and_version() {
    CUcontext context = nullptr;
    unsigned flags = 99;
    unsigned version = 0;
    MUST(cuCtxGetCurrent, &context);
    const CUresult flagged = CU(cuCtxGetFlags)(&flags);
    const CUresult versioned = CU(cuCtxGetApiVersion)(context, &version);
    return "flags " + (flagged == CUDA_SUCCESS ? std::to_string(flags) : name_of(flagged)) +
           ", API version " +
           (versioned == CUDA_SUCCESS ? std::to_string(version) : name_of(versioned));
}

std::string cache_config() {
    CUfunc_cache config{};
    const CUresult set = CU(cuCtxSetCacheConfig)(CU_FUNC_CACHE_PREFER_L1);
    const CUresult got = CU(cuCtxGetCacheConfig)(&config);
    return "set " + name_of(set) + ", get " + name_of(got) + " " + std::to_string(config);
}

// Flags that were set before the context existed.
std::string blocking_sync(CUcontext Gpu::* context) {
    MUST(cuInit, 0);
    MUST(cuDeviceGet, &gpu.device, 0);
    MUST(cuDevicePrimaryCtxSetFlags_v2, gpu.device, CU_CTX_SCHED_BLOCKING_SYNC);
    MUST(cuDevicePrimaryCtxRetain, &gpu.primary, gpu.device);
    make_current(gpu.primary);
    make_green_contexts();
    make_current(gpu.*context);
    return flags_and_version();
}

std::string potential_grid() {
    int grid = 0;
    int block = 0;
    int per_sm = 0;
    MUST(cuOccupancyMaxPotentialBlockSize, &grid, &block, kernels.spin, nullptr, 0, 0);
    MUST(cuOccupancyMaxActiveBlocksPerMultiprocessor, &per_sm, kernels.spin, block, 0);
    CUdevResource sms{};
    CUcontext context = nullptr;
    MUST(cuCtxGetCurrent, &context);
    MUST(cuCtxGetDevResource, context, &sms, gcx::cu::kResourceSm);
    const auto count = gcx::cu::get_fields<gcx::cu::SmFields>(sms).sm_count;
    const int filled = per_sm > 0 ? grid / per_sm : 0;
    return filled == static_cast<int>(count)            ? "fills the context's SMs"
           : filled == static_cast<int>(reported_sms()) ? "fills the reported SMs"
                                                        : "another number";
}

std::string cooperative(bool one_more) {
    int per_sm = 0;
    MUST(cuOccupancyMaxActiveBlocksPerMultiprocessor, &per_sm, kernels.spin, 1024, 0);
    CUdevResource sms{};
    CUcontext context = nullptr;
    MUST(cuCtxGetCurrent, &context);
    MUST(cuCtxGetDevResource, context, &sms, gcx::cu::kResourceSm);
    const auto count = gcx::cu::get_fields<gcx::cu::SmFields>(sms).sm_count;
    const unsigned blocks = count * static_cast<unsigned>(per_sm) + (one_more ? 1 : 0);
    uint64_t nanoseconds = 1;
    void* arguments[] = {&nanoseconds};
    const CUresult result = CU(cuLaunchCooperativeKernel)(kernels.spin, blocks, 1, 1, 1024, 1, 1, 0,
                                                          nullptr, arguments);
    settle();
    return name_of(result);
}

std::string access_window(float ratio, CUaccessProperty miss) {
    CUstreamAttrValue value{};
    value.accessPolicyWindow.base_ptr = reinterpret_cast<void*>(device_words(1 << 20));
    value.accessPolicyWindow.num_bytes = 1 << 20;
    value.accessPolicyWindow.hitRatio = ratio;
    value.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
    value.accessPolicyWindow.missProp = miss;
    return name_of(CU(cuStreamSetAttribute)(non_blocking_stream(),
                                            CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
}

std::string windows() {
    return "streaming misses " + access_window(1, CU_ACCESS_PROPERTY_STREAMING) +
           ", persisting misses " + access_window(1, CU_ACCESS_PROPERTY_PERSISTING) +
           ", ratio of 2 " + access_window(2, CU_ACCESS_PROPERTY_STREAMING) + ", of -1 " +
           access_window(-1, CU_ACCESS_PROPERTY_STREAMING);
}

std::string set_aside() {
    std::size_t value = 0;
    const CUresult set = CU(cuCtxSetLimit)(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, std::size_t{1} << 40);
    MUST(cuCtxGetLimit, &value, CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
    int most = 0;
    MUST(cuDeviceGetAttribute, &most, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, gpu.device);
    return "more than there is: " + name_of(set) +
           ", then the most: " + yes_no(value == static_cast<std::size_t>(most));
}

} // namespace

void add_contexts(Checks& checks) {
    for (const Work& work : kWork)
        checks.add_both(std::string("claim_07_synchronize_waits_for_") + work.name,
                        [&work] { return synchronize_after(work); });
    checks.add("claim_07_synchronize_of_primary_beside_green", Needs::kGreen,
               [] { return synchronize_beside(&Gpu::primary, &Gpu::green); });
    checks.add("claim_07_synchronize_of_green_beside_primary", Needs::kGreen,
               [] { return synchronize_beside(&Gpu::green, &Gpu::primary); });
    checks.add("claim_07_synchronize_of_green_beside_another", Needs::kGreen,
               [] { return synchronize_beside(&Gpu::green, &Gpu::other); });
    checks.add("claim_07_synchronize_of_green_after_graph_of_primary", Needs::kGreen,
               synchronize_after_graph_of_primary);
    checks.add_green("claim_08_destroy_with_work", destroy_with_work);
    checks.add_green("claim_08_events_of_a_destroyed_context", synchronize_after_destroy);
    checks.add_green("claim_08_destroyed_context_is_current", destroyed_context_is_current);
    add_waits_of_contexts(checks);
    for (const Work& work : kWork)
        checks.add_green(std::string("claim_11_context_record_covers_") + work.name,
                         [&work] { return record_event_covers(work); });
    checks.add_green("claim_11_context_record_beside_capture",
                     [] { return context_event_during_capture(false); });
    checks.add_green("claim_10_context_wait_beside_capture",
                     [] { return context_event_during_capture(true); });
    checks.add_green("claim_19_parts_of_a_green_context", parts_of_green);
    checks.add_green("claim_20_context_over_the_same_resource", same_resource);
    checks.add_green("claim_20_null_descriptor", null_descriptor);
    for (const Kind kind :
         {Kind::kLegacy, Kind::kBlocking, Kind::kPriority, Kind::kNonBlocking, Kind::kPerThread})
        checks.add_both(std::string("sms_of_stream_") + name_of(kind),
                        [kind] { return sms_of_streams(kind); });
    checks.begin_family("");
    checks.add_green("sms_of_function_of_another_context", function_of_another_context);
    checks.add_green("claim_25_id_of_a_destroyed_context", id_of_destroyed);
    checks.add_green("claim_25_ids_are_new", ids_are_new);
    checks.add_both("claim_26_one_context_in_16_threads", many_threads);
    checks.begin_family("settings");
    checks.add_both("claim_33_flags_and_api_version", flags_and_version);
    checks.add_both("claim_33_cache_config", cache_config);
    checks.add_both("claim_33_reset_persisting_l2",
                    [] { return name_of(CU(cuCtxResetPersistingL2Cache)()); });
    checks.begin_family("");
    checks.add("claim_33_blocking_sync", Needs::kNothing,
               [] { return blocking_sync(&Gpu::primary); });
    checks.add("claim_33_blocking_sync_green", Needs::kNothing,
               [] { return blocking_sync(&Gpu::green); });
    checks.begin_family("occupancy");
    checks.add_both("claim_36_potential_grid", potential_grid);
    checks.add_both("claim_36_cooperative_grid_that_fits", [] { return cooperative(false); });
    checks.add_both("claim_36_cooperative_grid_of_one_more", [] { return cooperative(true); });
    checks.add_both("claim_39_access_windows", windows);
    checks.add_both("claim_39_set_aside", set_aside);
    checks.begin_family("");
}

} // namespace conformance
