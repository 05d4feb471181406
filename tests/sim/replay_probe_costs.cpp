// facts/h100-driver580-probe.txt: what things cost, and graphs.
#include "replay_probe.hpp"

#include <algorithm>

using namespace sim_test;

namespace {

double middle(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

template <class Body>
double median_us(const Body& body) {
    std::vector<double> times(20);
    for (double& time : times)
        time = taken_us(body);
    return middle(times);
}

double used_mib() {
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    CHECK_OK(cuMemGetInfo_v2(&free_bytes, &total));
    return static_cast<double>(total - free_bytes) / 1048576;
}

// What kernels on shared SMs do to each other is not simulated: the form of these lines alone.
Kind contention(const std::string& what) {
    return {what, [what] { say({what, " med {} p95 {} max {} us"}); }};
}

} // namespace

// Twenty contexts of so many SMs.
void Probe::creation_costs(unsigned count) {
    std::vector<double> create;
    std::vector<double> stream_create;
    std::vector<double> stream_destroy;
    std::vector<double> destroy;
    const double before = used_mib();
    double first = 0;
    const auto time = [](std::vector<double>& times, const auto& body) {
        times.push_back(taken_us([&] { CHECK_OK(body()); }));
    };
    for (int i = 0; i < 20; i++) {
        CUdevResourceDesc descriptor = describe({split(device, 1, 0, count).groups[0]});
        CUgreenCtx green = nullptr;
        CUstream stream = nullptr;
        time(create, [&] { return cuGreenCtxCreate(&green, descriptor, 0, 1); });
        first = i == 0 ? used_mib() - before : first;
        time(stream_create, [&] {
            return later().green_stream_create(&stream, green, CU_STREAM_NON_BLOCKING, 0);
        });
        time(stream_destroy, [&] { return cuStreamDestroy_v2(stream); });
        time(destroy, [&] { return cuGreenCtxDestroy(green); });
    }
    CHECK_EQ(first, 4.0);
    // The median of 108 is twice that of the others, with the same least.
    say({"k=", count, " create med ", count == 108 ? "{}" : cost(middle(create)),
         " min {} max {} | stream create ", cost(middle(stream_create)), " destroy ",
         cost(middle(stream_destroy)), " | ctx destroy ", cost(middle(destroy)),
         " | mem first 4.00 MiB"});
}

void Probe::many() {
    const double before = used_mib();
    const CUdevResource eight = split(device, 1, 0, 8).groups[0];
    {
        std::vector<Partition> all;
        all.reserve(300);
        for (int i = 0; i < 300; i++)
            all.emplace_back(std::vector<CUdevResource>{eight});
        say({"created 300 green ctx (last ", all.back().result, "), 300 streams, mem ",
             cost(used_mib() - before), " MiB"});
        sms("last of many", all.back().stream);
    }
    say({"after destroy ", cost(used_mib() - before), " MiB"});
    for (int i = 0; i < 200; i++)
        const Partition cycle({eight});
    say({"after 200 cycles ", cost(used_mib() - before), " MiB"});
    for (int i = 0; i < 200; i++) {
        Partition leaky({eight});
        leaky.stream = nullptr;
    }
    say({"after 200 cycles with leaked streams ", cost(used_mib() - before), " MiB"});
}

// Leaves the counting to the reader.
void Probe::launch(CUstream stream, CUdeviceptr counts) {
    uint32_t max_sms = Primary::kMaxSms;
    uint32_t spin_ns = 1000;
    void* arguments[] = {&counts, &max_sms, &spin_ns};
    CHECK_OK(cuLaunchKernel(primary->probe, 2048, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr));
}

unsigned Probe::counted(CUdeviceptr counts) {
    std::vector<uint32_t> host(Primary::kMaxSms);
    CHECK_OK(cuMemcpyDtoH_v2(host.data(), counts, Primary::kMaxSms * sizeof(uint32_t)));
    CHECK_OK(cuMemsetD32_v2(counts, 0, Primary::kMaxSms));
    return static_cast<unsigned>(
        std::count_if(host.begin(), host.end(), [](uint32_t n) { return n != 0; }));
}

// An executable of what was captured on the stream, which is launched and destroyed in the end.
class Captured {
  public:
    explicit Captured(CUgraph graph) : graph_(graph) {}
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;
    ~Captured() {
        CHECK_OK(cuGraphExecDestroy(exec_));
        CHECK_OK(cuGraphDestroy(graph_));
    }
    CUresult instantiate() { return cuGraphInstantiateWithFlags(&exec_, graph_, 0); }
    void launch(CUstream stream) {
        CHECK_OK(cuGraphLaunch(exec_, stream));
        CHECK_OK(cuStreamSynchronize(stream));
    }

  private:
    CUgraph graph_;
    CUgraphExec exec_ = nullptr;
};

void Probe::captured(const Partition& large, const Partition& small, CUstream plain) {
    CUgraph graph = nullptr;
    CHECK_OK(cuStreamBeginCapture_v2(large.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch(large.stream, primary->counts);
    CHECK_OK(cuStreamEndCapture(large.stream, &graph));
    Captured captured(graph);
    CHECK_OK(captured.instantiate());
    captured.launch(plain);
    say({"graph captured on 108-stream replayed on plain stream uses ", counted(primary->counts),
         " SMs"});
    captured.launch(small.stream);
    say({"replayed on 24-SM green stream uses ", counted(primary->counts), " SMs"});
}

void Probe::forked(const Partition& large, const Partition& small, CUstream plain, CUevent event) {
    CUgraph graph = nullptr;
    CUdeviceptr other = 0;
    CHECK_OK(cuMemAlloc_v2(&other, Primary::kMaxSms * sizeof(uint32_t)));
    CHECK_OK(cuMemsetD32_v2(other, 0, Primary::kMaxSms));
    CHECK_OK(cuStreamBeginCapture_v2(large.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_OK(cuEventRecord(event, large.stream));
    say({"fork to other green in capture ", cuStreamWaitEvent(small.stream, event, 0)});
    launch(large.stream, primary->counts);
    launch(small.stream, other);
    CHECK_OK(cuEventRecord(event, small.stream));
    CHECK_OK(cuStreamWaitEvent(large.stream, event, 0));
    say({"end ", cuStreamEndCapture(large.stream, &graph)});
    Captured captured(graph);
    say({"inst ", captured.instantiate()});
    captured.launch(plain);
    say({"forked graph: ", counted(primary->counts), " and ", counted(other), " SMs"});
    CHECK_OK(cuMemFree_v2(other));
}

void Probe::graphs() {
    const Split sizes = split(device, 1, 0, 24);
    const Partition large({sizes.remainder});
    const Partition small({sizes.groups[0]});
    CUstream plain = nullptr;
    CUevent event = nullptr;
    CHECK_OK(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
    CHECK_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    counted(primary->counts);
    captured(large, small, plain);
    forked(large, small, plain, event);
    say({"greenctx record event ", cuGreenCtxRecordEvent(large.green, event)});
    say({"wait ", cuGreenCtxWaitEvent(small.green, event)});
    CHECK_OK(cuEventDestroy_v2(event));
    launches(plain, small.stream, large.stream);
    CHECK_OK(cuStreamDestroy_v2(plain));
}

// The partitions' streams against each other: what a launch and a round trip cost.
void Probe::launches(CUstream plain, CUstream small, CUstream large) {
    CUevent event = nullptr;
    CHECK_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    const auto launch_us = [&](CUstream stream) {
        return cost(median_us([&] { CHECK_OK(primary->spin(stream, 0)); }));
    };
    const auto trip_us = [&](CUstream stream) {
        return cost(median_us([&] {
            CHECK_OK(primary->spin(stream, 0));
            CHECK_OK(cuStreamSynchronize(stream));
        }));
    };
    const auto ping_us = [&](CUstream one, CUstream two) {
        return cost(median_us([&] {
            for (const auto& [from, to] : {std::pair(one, two), std::pair(two, one)}) {
                CHECK_OK(primary->spin(from, 0));
                CHECK_OK(cuEventRecord(event, from));
                CHECK_OK(cuStreamWaitEvent(to, event, 0));
            }
        }));
    };
    say({"launch us: plain ", launch_us(plain), " green24 ", launch_us(small), " green108 ",
         launch_us(large), " | roundtrip plain ", trip_us(plain), " g24 ", trip_us(small), " g108 ",
         trip_us(large)});
    say({"ping-pong us/iter: plain-plain ", ping_us(plain, plain), " same-green ",
         ping_us(small, small), " green-green ", ping_us(small, large), " plain-green ",
         ping_us(plain, small)});
    CHECK_OK(cuEventDestroy_v2(event));
}

std::vector<Kind> Probe::cost_kinds() {
    return {
        literal("== timings (median us of 50)"),
        {"cuDeviceGetDevResource",
         [] { say({"cuDeviceGetDevResource ", cost(median_us([] { query(); }))}); }},
        {"split(#,#)",
         [this](const Line& line) {
             const unsigned groups = line.numbers[0];
             const unsigned least = line.numbers[1];
             say({"split(", groups, ",", least, ") ",
                  cost(median_us([&] { split(device, groups, 0, least); }))});
         }},
        {"gendesc",
         [this] {
             const CUdevResource group = split(device, 1, 0, 24).groups[0];
             say({"gendesc ", cost(median_us([&] { describe({group}); }))});
         }},
        {"k=# create", [this](const Line& line) { creation_costs(line.numbers[0]); }},
        {"created 300 green ctx", [this] { many(); }},
        {"graph captured", [this] { graphs(); }},
        contention("critical alone:"),
        contention("two plain streams, hog 2 blocks/SM x 4 waves:"),
        contention("priority streams:"),
        contention("green 108 hog/24 crit:"),
    };
}
