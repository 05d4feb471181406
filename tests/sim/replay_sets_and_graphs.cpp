// facts/h200-driver580-sets-and-graphs.txt: its lists line by line, its prose as statements.
#include "replay_bench.hpp"

#include <algorithm>
#include <memory>

using namespace sim_test;

namespace {

std::vector<unsigned> sms_of(Primary& primary, std::vector<CUdevResource> resources) {
    const Partition part(std::move(resources));
    return primary.sms(part.stream);
}

// The sets of one group of 8, 16, ... SMs; whether each contains the one before it.
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
    CUevent event = nullptr;
    CHECK_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
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
    const double beside = taken_us([&] { const Partition part({group}); });
    CHECK_OK(cuCtxSynchronize());
    // facts of driver-facts: 88 ms beside a 90 ms kernel of another partition
    CHECK_OK(bench.primary.spin(bench.parts[0].stream, 90'000'000));
    gcx_sim_advance(2'000'000);
    const double other = taken_us([&] { const Partition part({group}); });
    CHECK_OK(cuCtxSynchronize());
    for (int i = 0; i < 64; i++)
        CHECK_OK(bench.primary.spin(bench.plain, 10'000));
    const double queue = taken_us([&] { const Partition part({group}); });
    return is_about(44'400, beside) && is_about(88'000, other) && is_about(2'000, queue);
}

bool idle_goes_at_once(Bench& bench) {
    Partition part({split(query(), 1, 0, 8).groups[0]});
    CHECK_OK(bench.primary.spin(bench.parts[0].stream, 50'000'000));
    const double stream = taken_us([&] { part.destroy_stream(); });
    const double context = taken_us([&] { CHECK_OK(part.destroy_context()); });
    const bool still_busy = cuStreamQuery(bench.parts[0].stream) == CUDA_ERROR_NOT_READY;
    CHECK_OK(cuCtxSynchronize());
    return still_busy && stream < 20 && context < 30;
}

bool busy_goes_at_once(Bench& bench) {
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
              idle_goes_at_once),
        holds("destroying a context with work in flight: 29 us, no wait;", busy_goes_at_once),
    };
    all.insert(all.end(), others.begin(), others.end());
    return all;
}

} // namespace

std::unique_ptr<Log> sim_test::sets_and_graphs_log() {
    return std::make_unique<SetsAndGraphs>();
}
