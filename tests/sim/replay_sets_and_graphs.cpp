// facts/h200-driver580-sets-and-graphs.txt: lists line by line, and prose as statements.
#include "replay.hpp"

#include <algorithm>
#include <memory>

using namespace sim_test;

namespace {

std::vector<unsigned> sms_of(Primary& primary, std::vector<CUdevResource> resources) {
    const Partition part(std::move(resources));
    return primary.sms(part.stream);
}

// Says the sets of one group of 8, 16, ... SMs and returns whether each contains the previous one.
bool say_nested_sets(Primary& primary) {
    const CUdevResource device = query();
    std::vector<unsigned> before;
    bool nested = true;
    for (unsigned count = 8; count <= 128; count += 8) {
        const std::vector<unsigned> sms = sms_of(primary, {split(device, 1, 0, count).groups[0]});
        nested = nested && std::includes(sms.begin(), sms.end(), before.begin(), before.end()) &&
                 sms == sms_of(primary, {split(device, 1, 0, count).groups[0]});
        say({"k=", count, " ", ranges(sms)});
        before = sms;
    }
    return nested;
}

void say_coarse_atoms(Primary& primary) {
    const Split coarse = split(query(), 32, 0, 8);
    const auto atom = [&](std::size_t i) {
        return line_of({"g", i, " ", ranges(sms_of(primary, {coarse.groups[i]}))});
    };
    for (std::size_t i = 0; i < 7; i++)
        say({atom(i), " ", atom(i + 8)});
    const std::vector<unsigned> rest = sms_of(primary, {coarse.remainder});
    say({atom(7), " remainder ", ranges(rest), " (", rest.size(), " SMs)"});
}

void say_fine_atoms(Primary& primary) {
    const Split fine = split(query(), 80, 1, 2);
    const auto atom = [&](std::size_t i) {
        return line_of({" g", i, " ", ranges(sms_of(primary, {fine.groups[i]}))});
    };
    say({"nb=80, k=2, flags=1 (ignore coscheduling): ", fine.groups.size(), " groups, ",
         type_of(fine.remainder) == 0 ? "no remainder;" : "a remainder;", atom(0), ",", atom(1),
         ",", atom(2), ",", atom(3), "; groups 10..14 in one descriptor: ",
         ranges(sms_of(primary, {fine.groups.begin() + 10, fine.groups.begin() + 15}))});
}

bool event_costs(Bench& bench) {
    CUevent event = new_event();
    const double streams = taken_us([&] {
        CHECK_OK(cuEventRecord(event, bench.parts[0].stream));
        CHECK_OK(cuStreamWaitEvent(bench.parts[1].stream, event, 0));
    });
    const double greens = taken_us([&] {
        CHECK_OK(cuGreenCtxRecordEvent(bench.parts[0].green, event));
        CHECK_OK(cuGreenCtxWaitEvent(bench.parts[1].green, event));
    });
    CHECK_OK(cuEventDestroy_v2(event));
    return is_about(0.26, streams) && is_about(0.29, greens);
}

bool ids_in_order() {
    const CUdevResource group = split(query(), 1, 0, 8).groups[0];
    const Partition one({group});
    const Partition two({group});
    unsigned long long first = 0;
    unsigned long long second = 0;
    CHECK_OK(later().green_get_id(one.green, &first));
    CHECK_OK(later().green_get_id(two.green, &second));
    return first > 0 && first < 1000 && second == first + 1;
}

bool same_function(Bench& bench) {
    bool holds = true;
    for (const Partition& part : bench.parts) {
        CHECK_OK(cuCtxPushCurrent_v2(part.context));
        CUfunction of_module = nullptr;
        CUfunction of_kernel = nullptr;
        CHECK_OK(cuModuleGetFunction(&of_module, bench.primary.module, "gcx_probe"));
        CHECK_OK(cuKernelGetFunction(&of_kernel, bench.kernel));
        holds = holds && of_module == bench.primary.probe && of_kernel == bench.kernel_function;
        CHECK_OK(cuCtxPopCurrent_v2(nullptr));
    }
    return holds;
}

bool waits_for_kernels(Bench& bench) {
    const CUdevResource group = split(query(), 1, 0, 8).groups[0];
    // 44.4 ms: the 50 ms kernel had run for a while when the creation began.
    CHECK_OK(bench.primary.spin(bench.plain, 50'000'000));
    gcx_sim_advance(5'600'000);
    const double next_to = taken_us([&] { const Partition part({group}); });
    CHECK_OK(cuCtxSynchronize());
    // measured separately: 88 ms next to a 90 ms kernel of another partition
    CHECK_OK(bench.primary.spin(bench.parts[0].stream, 90'000'000));
    gcx_sim_advance(2'000'000);
    const double other = taken_us([&] { const Partition part({group}); });
    CHECK_OK(cuCtxSynchronize());
    for (int i = 0; i < 64; i++)
        CHECK_OK(bench.primary.spin(bench.plain, 10'000));
    const double queue = taken_us([&] { const Partition part({group}); });
    return is_about(44'400, next_to) && is_about(88'000, other) && is_about(2'000, queue);
}

bool idle_context_is_destroyed_at_once(Bench& bench) {
    Partition part({split(query(), 1, 0, 8).groups[0]});
    CHECK_OK(bench.primary.spin(bench.parts[0].stream, 50'000'000));
    const double stream = taken_us([&] { part.destroy_stream(); });
    const double context = taken_us([&] { CHECK_OK(part.destroy_context()); });
    const bool still_busy = cuStreamQuery(bench.parts[0].stream) == CUDA_ERROR_NOT_READY;
    CHECK_OK(cuCtxSynchronize());
    return still_busy && stream < 20 && context < 30;
}

bool busy_context_is_destroyed_at_once(Bench& bench) {
    Partition part({split(query(), 1, 0, 8).groups[0]});
    CHECK_OK(bench.primary.spin(part.stream, 50'000'000));
    const double context = taken_us([&] { CHECK_OK(part.destroy_context()); });
    const bool holds = context < 60 &&
                       cuStreamQuery(part.stream) == CUDA_ERROR_CONTEXT_IS_DESTROYED &&
                       cuStreamSynchronize(part.stream) == CUDA_ERROR_CONTEXT_IS_DESTROYED &&
                       cuStreamDestroy_v2(part.stream) == CUDA_ERROR_CONTEXT_IS_DESTROYED;
    part.stream = nullptr;
    return holds;
}

// Graphs.

bool captured_on(Bench& bench) {
    bool holds = true;
    CUgraph graph = bench.capture(bench.primary.probe, bench.plain);
    holds = holds && bench.sms_of_graph(graph) == 132;
    CHECK_OK(cuGraphDestroy(graph));
    graph = bench.capture(bench.primary.probe, bench.parts[0].stream);
    CUgraphExec exec = nullptr;
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (CUstream stream : {bench.plain, bench.parts[0].stream, bench.parts[1].stream})
        holds = holds && bench.sms_of_exec(exec, stream) == 24;
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(graph));
    return holds;
}

bool moved(Bench& bench, bool keep_function) {
    CUgraph graph = bench.capture(bench.kernel_function, bench.plain);
    const bool holds = keep_function
                           ? bench.sms_when_moved(graph, bench.parts[0], true) == 132
                           : bench.sms_when_moved(graph, bench.parts[0], false) == 24 &&
                                 bench.sms_when_moved(graph, bench.parts[1], false) == 108;
    CHECK_OK(cuGraphDestroy(graph));
    return holds;
}

// Moves a node of a module's kernel to a partition in the two ways that work.
bool rebuilt(Bench& bench) {
    CUgraph graph = bench.capture(bench.primary.probe, bench.plain);
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    CHECK_OK(cuGraphKernelNodeGetParams_v2(Bench::first_node(graph), &parameters));
    bool holds = parameters.kern == nullptr;

    CUgraph ended = nullptr;
    CUgraph relaunched = new_graph();
    CHECK_OK(cuStreamBeginCaptureToGraph(bench.parts[0].stream, relaunched, nullptr, nullptr, 0,
                                         CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_OK(cuLaunchKernel(parameters.func, parameters.gridDimX, 1, 1, parameters.blockDimX, 1, 1,
                            parameters.sharedMemBytes, bench.parts[0].stream,
                            parameters.kernelParams, nullptr));
    CHECK_OK(cuStreamEndCapture(bench.parts[0].stream, &ended));
    holds = holds && ended == relaunched && bench.sms_of_graph(relaunched) == 24;
    CHECK_OK(cuGraphDestroy(relaunched));

    CUgraphNode node = nullptr;
    CUgraph added = new_graph();
    CHECK_OK(cuCtxPushCurrent_v2(bench.parts[0].context));
    CHECK_OK(cuGraphAddKernelNode_v2(&node, added, nullptr, 0, &parameters));
    CHECK_OK(cuCtxPopCurrent_v2(nullptr));
    holds = holds && bench.sms_of_graph(added) == 24;
    CHECK_OK(cuGraphDestroy(added));
    CHECK_OK(cuGraphDestroy(graph));
    return holds;
}

bool attributes_not_copied(Bench& bench) {
    CUgraph one = bench.capture(bench.primary.probe, bench.parts[0].stream);
    CUgraph two = bench.capture(bench.primary.probe, bench.parts[1].stream);
    const bool holds =
        cuGraphKernelNodeCopyAttributes(Bench::first_node(two), Bench::first_node(one)) ==
        CUDA_ERROR_INVALID_VALUE;
    CHECK_OK(cuGraphKernelNodeCopyAttributes(Bench::first_node(one), Bench::first_node(one)));
    CHECK_OK(cuGraphDestroy(one));
    CHECK_OK(cuGraphDestroy(two));
    return holds;
}

bool executable_stays(Bench& bench) {
    CUgraph one = bench.capture(bench.kernel_function, bench.parts[0].stream);
    CUgraph two = bench.capture(bench.kernel_function, bench.parts[1].stream);
    CUgraphExec exec = nullptr;
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, one, 0));
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    CHECK_OK(cuGraphKernelNodeGetParams_v2(Bench::first_node(one), &parameters));
    parameters.func = nullptr;
    CHECK_OK(cuGraphExecKernelNodeSetParams_v2(exec, Bench::first_node(one), &parameters));
    parameters.ctx = bench.parts[1].context;
    const CUresult set =
        cuGraphExecKernelNodeSetParams_v2(exec, Bench::first_node(one), &parameters);
    CUgraphExecUpdateResultInfo info{};
    const CUresult updated = cuGraphExecUpdate_v2(exec, two, &info);
    CHECK_OK(cuGraphExecUpdate_v2(exec, one, nullptr));
    const bool holds = set == CUDA_ERROR_INVALID_VALUE &&
                       updated == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE &&
                       static_cast<int>(info.result) == 7;
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(one));
    CHECK_OK(cuGraphDestroy(two));
    return holds;
}

double used_bytes() {
    return static_cast<double>(counts_now().device_bytes_used);
}

bool graph_costs(Bench& bench) {
    CUgraph small = bench.capture(bench.primary.probe, bench.plain);
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    const CUgraphNode node = Bench::first_node(small);
    CHECK_OK(cuGraphKernelNodeGetParams_v2(node, &parameters));
    const double set =
        taken_us([&] { CHECK_OK(cuGraphKernelNodeSetParams_v2(node, &parameters)); });
    CUgraph clone = nullptr;
    CUgraphExec exec = nullptr;
    CUgraph large = new_graph();
    for (int i = 0; i < 1000; i++) {
        CUgraphNode added = nullptr;
        CHECK_OK(cuGraphAddKernelNode_v2(&added, large, nullptr, 0, &parameters));
    }
    const double cloned = taken_us([&] { CHECK_OK(cuGraphClone(&clone, large)); });
    const double made = taken_us([&] { CHECK_OK(cuGraphInstantiateWithFlags(&exec, large, 0)); });
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(clone));
    CHECK_OK(cuGraphDestroy(large));
    CUgraph three = new_graph();
    for (int i = 0; i < 3; i++) {
        CUgraphNode added = nullptr;
        CHECK_OK(cuGraphAddKernelNode_v2(&added, three, nullptr, 0, &parameters));
    }
    const double before = used_bytes();
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, three, 0));
    const double mib = (used_bytes() - before) / 1048576;
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(three));
    CHECK_OK(cuGraphDestroy(small));
    return is_about(0.13, set) && is_about(1100, cloned) && is_about(3300, made) &&
           is_about(0.12, mib);
}

bool outlives_context(Bench& bench) {
    Partition part({split(query(), 1, 0, 24).groups[0]});
    CUgraph graph = bench.capture(bench.primary.probe, part.stream);
    CUgraphExec exec = nullptr;
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    part.destroy_stream();
    CHECK_OK(part.destroy_context());
    const bool holds = cuGraphLaunch(exec, bench.plain) == CUDA_SUCCESS &&
                       cuStreamSynchronize(bench.plain) == CUDA_SUCCESS;
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(graph));
    return holds;
}

// The times are of real kernels, so that only the kinds of nodes are checked.
bool node_kinds(Bench& bench) {
    CUgraph graph = nullptr;
    CHECK_OK(cuStreamBeginCapture_v2(bench.plain, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_OK(cuMemsetD32Async(bench.primary.counts, 0, 4, bench.plain));
    CHECK_OK(bench.launch(bench.primary.probe, bench.plain));
    CHECK_OK(cuStreamEndCapture(bench.plain, &graph));
    CUgraphNode nodes[2];
    std::size_t count = 2;
    CHECK_OK(cuGraphGetNodes(graph, nodes, &count));
    CUgraphNodeType type{};
    CHECK_OK(cuGraphNodeGetType(nodes[0], &type));
    CUDA_KERNEL_NODE_PARAMS_v2 parameters;
    CHECK_OK(cuGraphKernelNodeGetParams_v2(nodes[1], &parameters));
    CHECK_OK(cuGraphDestroy(graph));
    return count == 2 && type == CU_GRAPH_NODE_TYPE_MEMSET && parameters.kern == nullptr;
}

std::vector<Kind> graph_kinds(const std::function<Kind(const char*, bool (*)(Bench&))>& holds) {
    return {
        literal("CUDA graphs"),
        holds("captured on a plain stream: 132 SMs;", captured_on),
        holds("kernel node whose params.kern is not NULL",
              [](Bench& on) { return moved(on, false); }),
        holds("the same with func left set: ctx is ignored, 132 SMs.",
              [](Bench& on) { return moved(on, true); }),
        holds("kernel node whose params.kern is NULL", rebuilt),
        holds("cuGraphKernelNodeCopyAttributes(new, old) between nodes of different contexts",
              attributes_not_copied),
        holds("cuGraphExecKernelNodeSetParams to another context: CUDA_ERROR_INVALID_VALUE.",
              executable_stays),
        holds("costs: set params 0.13 us a node;", graph_costs),
        holds("an executable whose green context has been destroyed still launches",
              outlives_context),
        holds("torch 2.11 CUDAGraph(keep_graph=True), retargeted to 24 / 108 SMs", node_kinds),
    };
}

struct SetsAndGraphs : Log {
    std::unique_ptr<Primary> primary;
    std::unique_ptr<Bench> bench;
    bool nested = false;

    std::vector<Kind> kinds() override;
    Kind holds(const char* beginning, bool (*test)(Bench&));
    bool begin();
};

bool SetsAndGraphs::begin() {
    CHECK_OK(cuInit(0));
    primary = std::make_unique<Primary>();
    bench = std::make_unique<Bench>(*primary);
    return true;
}

Kind SetsAndGraphs::holds(const char* beginning, bool (*test)(Bench&)) {
    return states(beginning, [this, test] { return test(*bench); });
}

std::vector<Kind> SetsAndGraphs::kinds() {
    std::vector<Kind> all =
        graph_kinds([this](const char* beginning, auto* test) { return holds(beginning, test); });
    const std::vector<Kind> others = {
        states("NVIDIA H200, driver 580.159.04 (CUDA 13.0), one die. smid sets",
               [this] { return begin(); }),
        {"k=8 ", [this] { nested = say_nested_sets(*primary); }},
        states("Each set contains the one before it; the same k gives the same set again.",
               [this] { return nested; }),
        states("nb=32, k=8, flags=0: 15 groups and a remainder",
               [] { return split(query(), 32, 0, 8).groups.size() == 15; }),
        {"g0 ", [this] { say_coarse_atoms(*primary); }},
        {"nb=80, k=2, flags=1", [this] { say_fine_atoms(*primary); }},
        literal(""),
        holds("events: record on one partition's stream + wait on another's: 0.26 us;",
              event_costs),
        states("cuGreenCtxGetId: small integers", ids_in_order),
        holds("cuModuleGetFunction and cuKernelGetFunction give the same CUfunction",
              same_function),
        literal("creation and destruction under load"),
        holds("cuGreenCtxCreate while a plain stream of the primary context runs a 50 ms",
              waits_for_kernels),
        holds("destroying an idle context's stream and the context while another partition",
              idle_context_is_destroyed_at_once),
        holds("destroying a context with work in flight: 29 us, no wait;",
              busy_context_is_destroyed_at_once),
    };
    all.insert(all.end(), others.begin(), others.end());
    return all;
}

} // namespace

std::unique_ptr<Log> sim_test::sets_and_graphs_log() {
    return std::make_unique<SetsAndGraphs>();
}
