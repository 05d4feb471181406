// Replays facts/h100-driver580-probe.txt: the same operations give the same lines.
#include "facts.hpp"
#include "support.hpp"

#include <algorithm>

using namespace sim_test;

namespace {

constexpr double kMiB = 1048576;

std::vector<Mask> masks() {
    const auto mask = [](const char* pattern, const char* replacement) {
        return Mask{std::regex(pattern), replacement};
    };
    return {
        mask("^dev SIMULATED ", "dev "),            // the name says what it is
        mask("0x[0-9a-f]+", "POINTER"),             // addresses
        mask("raw3=0 [0-9.]+us$", "raw3=0 TIMEus"), // timings, from here on
        mask("^primary retain [0-9.]+ us$", "primary retain TIME us"),
        mask("^(cuDeviceGetDevResource|split\\(1,24\\)|split\\(16,8\\)|gendesc) [0-9.]+$",
             "$1 TIME"),
        mask("(create med|med|min|max|p95|stream create|destroy) [0-9]+\\.[0-9]+", "$1 TIME"),
        mask("(plain|green24|green108|g24|g108) [0-9]+\\.[0-9]+", "$1 TIME"),
        mask("(plain-plain|same-green|green-green|plain-green) [0-9.]+", "$1 TIME"),
        mask("(mem|destroy|cycles|streams) [0-9]+\\.[0-9] MiB$", "$1 SIZE MiB"),
    };
}

std::string rc_text(CUresult result) {
    return result == CUDA_SUCCESS ? "ok" : name_of(result);
}

void symbols(Facts& facts) {
    while (facts.next().starts_with("sym ")) {
        const std::string name = facts.next().substr(4, facts.next().find(' ', 4) - 4);
        std::string line = format("sym %-32s", name.c_str());
        for (const int version : {12040, 12050, 12080, 13000, 13010, 13020, 13040}) {
            void* address = &line;
            CUdriverProcAddressQueryResult status{};
            const CUresult code = cuGetProcAddress_v2(name.c_str(), &address, version, 0, &status);
            line += format(" %d:%s%s", version, rc_text(code).c_str(),
                           address == nullptr ? "-null" : "");
            if (static_cast<int>(status) != 0)
                line += format("(q%d)", static_cast<int>(status));
        }
        facts.expect(line);
    }
}

void before_primary(Facts& facts) {
    CUdevResource resource;
    const CUresult code = cuDeviceGetDevResource(0, &resource, cu::kResourceSm);
    const cu::SmFields seen = fields(resource);
    facts.expect(format("devres before primary: %s sm=%u min=%u align=%u raw3=%u  0.54us",
                        name_of(code).c_str(), seen.sm_count, seen.min_partition_size,
                        seen.coscheduled_alignment, seen.flags));
    for (const int type : {0, 2, 3, 1000, 10000})
        facts.expect(format(
            "devres type %d -> %s", type,
            name_of(cuDeviceGetDevResource(0, &resource, static_cast<CUdevResourceType>(type)))
                .c_str()));
}

void sweep(Facts& facts, const CUdevResource& device) {
    facts.expect("== split sweep (flags,nb,min): rc groups [each] remaining");
    while (facts.next().starts_with("S ")) {
        unsigned flags = 0;
        unsigned groups = 0;
        unsigned least = 0;
        CHECK_EQ(std::sscanf(facts.next().c_str(), "S %u %u %u", &flags, &groups, &least), 3);
        const Split made = split(device, groups, flags, least);
        std::string line =
            format("S %u %u %u %d", flags, groups, least, static_cast<int>(made.result));
        if (made.result == CUDA_SUCCESS) {
            const cu::SmFields first = fields(made.groups.front());
            const cu::SmFields rest = fields(made.remainder);
            line += format(" n=%u c=%u min=%u al=%u last=%u rem(type%d)=%u,%u,%u", made.count,
                           first.sm_count, first.min_partition_size, first.coscheduled_alignment,
                           sm_count(made.groups.back()), type_of(made.remainder), rest.sm_count,
                           rest.min_partition_size, rest.coscheduled_alignment);
        } else {
            CHECK_EQ(made.count, groups);
        }
        if (groups == 1) {
            unsigned count = 0xdead;
            const CUresult code =
                cuDevSmResourceSplitByCount(nullptr, &count, &device, nullptr, flags, least);
            line += format(" query rc=%d n=%u", static_cast<int>(code), count);
        }
        facts.expect(line);
    }
}

std::string clusters(Primary& primary, CUstream stream) {
    std::string line;
    for (const unsigned size : {1U, 2U, 4U, 8U})
        line += format(" ac%u=%d", size, primary.active_clusters(stream, size, 256));
    return line;
}

std::string numbered(const std::string& what, const std::vector<unsigned>& sms) {
    return format("%s n=%zu: ", what.c_str(), sms.size()) + join(sms);
}

// The log took groups [begin, end) of an array that holds the groups and zeros behind them.
void combination(Facts& facts, Primary& primary, std::vector<CUdevResource> resources) {
    const std::size_t count = resources.size();
    const Partition part(std::move(resources));
    std::string line = format("combo of %zu groups -> %s", count, name_of(part.result).c_str());
    if (part.result == CUDA_SUCCESS) {
        CUdevResource own;
        CHECK_OK(cuGreenCtxGetDevResource(part.green, &own, cu::kResourceSm));
        line +=
            format(" sm=%u min=%u al=%u measured=%zu maxcluster=%d(CUDA_SUCCESS)", sm_count(own),
                   fields(own).min_partition_size, fields(own).coscheduled_alignment,
                   primary.sms(part.stream).size(), primary.max_cluster(part.stream, false, 256));
        line += clusters(primary, part.stream);
    }
    facts.expect(line);
}

void groups(Facts& facts, Primary& primary, const CUdevResource& device) {
    const Split base = split(device, 32, 0, 8);
    facts.expect(format("base split n=%u rem=%u type=%d", base.count, sm_count(base.remainder),
                        type_of(base.remainder)));
    for (std::size_t i = 0; i < base.groups.size(); i++) {
        const Partition part({base.groups[i]});
        facts.expect(numbered(format("grp%zu", i), primary.sms(part.stream)));
    }
    {
        const Partition rest({base.remainder});
        facts.expect(format("rem ctx %s", name_of(rest.result).c_str()));
        facts.expect(numbered("rem", primary.sms(rest.stream)));
    }
    std::vector<CUdevResource> all = base.groups;
    all.push_back(CUdevResource{});
    const auto slice = [&](long from, long to) {
        return std::vector<CUdevResource>(all.begin() + from, all.begin() + to);
    };
    combination(facts, primary, slice(0, 3));
    combination(facts, primary, slice(3, 16));
    combination(facts, primary, slice(14, 16));
    combination(facts, primary, slice(14, 15));
    std::vector<CUdevResource> most = slice(3, 15);
    most.push_back(base.remainder);
    const std::size_t count = most.size();
    const Partition part(std::move(most));
    CUdevResource own;
    CHECK_OK(cuGreenCtxGetDevResource(part.green, &own, cu::kResourceSm));
    facts.expect(format("%zu groups + remaining -> %s sm=%u measured=%zu", count,
                        name_of(part.result).c_str(), sm_count(own),
                        primary.sms(part.stream).size()));
}

void direct_splits(Facts& facts, Primary& primary, const CUdevResource& device) {
    for (const unsigned count : {8U, 16U, 24U, 32U, 64U, 104U, 108U, 128U}) {
        for (const unsigned flags : {0U, 1U, 2U}) {
            const Split made = split(device, 1, flags, count);
            const Partition part({made.groups[0]});
            const std::vector<unsigned> seen = primary.sms(part.stream);
            int attribute = 0;
            CHECK_OK(cuDeviceGetAttribute(&attribute, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
            facts.expect(format("direct %u fl%u sm=%u measured=%zu maxcluster=%d", count, flags,
                                sm_count(made.groups[0]), seen.size(),
                                primary.max_cluster(part.stream, false, 256)) +
                         clusters(primary, part.stream) + format(" attrSM=%d", attribute));
            facts.expect(numbered("   ids", seen));
        }
    }
}

void sub_splits(Facts& facts, Primary& primary, const CUdevResource& device) {
    const Split fine = split(device, 80, 1, 2);
    facts.expect(format("fl1 2-split rc=%s n=%u each=%u rem=%u", name_of(fine.result).c_str(),
                        fine.count, sm_count(fine.groups[0]), sm_count(fine.remainder)));
    {
        const Partition seven({fine.groups.begin(), fine.groups.begin() + 7});
        facts.expect(format("combo 7x2 -> %s", name_of(seven.result).c_str()));
        facts.expect(numbered("7x2", primary.sms(seven.stream)));
    }
    Partition parent({split(device, 1, 0, 64).groups[0]});
    CUdevResource own;
    CHECK_OK(cuGreenCtxGetDevResource(parent.green, &own, cu::kResourceSm));
    facts.expect(format("sub: parent sm=%u min=%u al=%u", sm_count(own),
                        fields(own).min_partition_size, fields(own).coscheduled_alignment));
    const Split made = split(own, 8, 0, 16);
    facts.expect(format("sub split -> %s n=%u each=%u rem=%u", name_of(made.result).c_str(),
                        made.count, sm_count(made.groups[0]), sm_count(made.remainder)));
    facts.expect(numbered("parent", primary.sms(parent.stream)));
    const Partition child({made.groups[0]});
    facts.expect(numbered("child0", primary.sms(child.stream)));
    parent.destroy_stream();
    facts.expect("destroy parent first -> " + name_of(parent.destroy_context()));
    facts.expect(" " + name_of(cuStreamSynchronize(child.stream)));
    facts.expect("child stream after parent gone -> " + name_of(primary.spin(child.stream, 10)));
    facts.expect(numbered("child0 again", primary.sms(child.stream)));
}

template <class Body>
double median_us(const Body& body) {
    std::vector<double> times;
    for (int i = 0; i < 20; i++) {
        const uint64_t before = clock_ns();
        body();
        times.push_back(static_cast<double>(clock_ns() - before) / 1000);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

void expect_time(Facts& facts, const char* what, double simulated) {
    check_cost(what, number_after(facts.next(), std::string(what) + " "), simulated);
    facts.expect(format("%s %.3f", what, simulated));
}

double used_mib() {
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    CHECK_OK(cuMemGetInfo_v2(&free_bytes, &total));
    return static_cast<double>(total - free_bytes) / kMiB;
}

// One line of twenty contexts of k SMs.
void creation_costs(Facts& facts, const CUdevResource& device, unsigned count) {
    std::vector<double> create;
    std::vector<double> stream_create;
    std::vector<double> stream_destroy;
    std::vector<double> destroy;
    double first = 0;
    const auto timed = [](std::vector<double>& times, const auto& body) {
        const uint64_t before = clock_ns();
        CHECK_OK(body());
        times.push_back(static_cast<double>(clock_ns() - before) / 1000);
    };
    for (int i = 0; i < 20; i++) {
        CUdevResourceDesc descriptor = describe({split(device, 1, 0, count).groups[0]});
        CUgreenCtx green = nullptr;
        CUstream stream = nullptr;
        const double before = used_mib();
        timed(create, [&] { return cuGreenCtxCreate(&green, descriptor, 0, 1); });
        if (i == 0)
            first = used_mib() - before;
        timed(stream_create, [&] {
            return later().green_stream_create(&stream, green, CU_STREAM_NON_BLOCKING, 0);
        });
        timed(stream_destroy, [&] { return cuStreamDestroy_v2(stream); });
        timed(destroy, [&] { return cuGreenCtxDestroy(green); });
    }
    const auto middle = [](std::vector<double> times) {
        std::sort(times.begin(), times.end());
        return times[times.size() / 2];
    };
    const std::string& line = facts.next();
    if (count != 108) // whose median is twice that of the others, with the same least
        check_cost("cuGreenCtxCreate", number_after(line, "create med "), middle(create));
    check_cost("stream create", number_after(line, "stream create "), middle(stream_create));
    check_cost("stream destroy", number_after(line, " destroy "), middle(stream_destroy));
    check_cost("ctx destroy", number_after(line, "ctx destroy "), middle(destroy));
    facts.expect(format("k=%u create med %.1f min %.1f max %.1f | stream create %.1f destroy %.1f"
                        " | ctx destroy %.1f | mem first %.2f MiB",
                        count, middle(create), create.front(), create.back(), middle(stream_create),
                        middle(stream_destroy), middle(destroy), first));
}

void memory_line(Facts& facts, const std::string& before_number, double simulated) {
    const std::string& line = facts.next();
    const auto at = line.rfind(' ', line.rfind(" MiB") - 1);
    check_cost(line.c_str(), std::strtod(line.c_str() + at, nullptr), simulated);
    facts.expect(format("%s %.1f MiB", before_number.c_str(), simulated));
}

void timings(Facts& facts, Primary& primary, const CUdevResource& device) {
    facts.expect("== timings (median us of 50)");
    CUdevResource resource;
    expect_time(facts, "cuDeviceGetDevResource",
                median_us([&] { cuDeviceGetDevResource(0, &resource, cu::kResourceSm); }));
    expect_time(facts, "split(1,24)", median_us([&] { split(device, 1, 0, 24); }));
    expect_time(facts, "split(16,8)", median_us([&] { split(device, 16, 0, 8); }));
    const CUdevResource group = split(device, 1, 0, 24).groups[0];
    expect_time(facts, "gendesc", median_us([&] { describe({group}); }));
    for (const unsigned count : {8U, 24U, 64U, 108U})
        creation_costs(facts, device, count);

    const double before = used_mib();
    const CUdevResource eight = split(device, 1, 0, 8).groups[0];
    {
        std::vector<Partition> many;
        many.reserve(300);
        for (int i = 0; i < 300; i++)
            many.emplace_back(std::vector<CUdevResource>{eight});
        memory_line(facts,
                    format("created 300 green ctx (last %s), 300 streams, mem",
                           name_of(many.back().result).c_str()),
                    used_mib() - before);
        facts.expect(numbered("last of many", primary.sms(many.back().stream)));
    }
    memory_line(facts, "after destroy", used_mib() - before);
    for (int i = 0; i < 200; i++)
        const Partition cycle({eight});
    memory_line(facts, "after 200 cycles", used_mib() - before);
    for (int i = 0; i < 200; i++) {
        Partition leaky({eight});
        leaky.stream = nullptr;
    }
    memory_line(facts, "after 200 cycles with leaked streams", used_mib() - before);
}

void streams(Facts& facts, Primary& primary, const CUdevResource& device) {
    CUstream stream = nullptr;
    {
        const Partition part({split(device, 1, 0, 24).groups[0]});
        facts.expect("blocking stream -> " + name_of(later().green_stream_create(
                                                 &stream, part.green, CU_STREAM_DEFAULT, 0)));
        int least = 1;
        int greatest = 1;
        CHECK_OK(cuCtxGetStreamPriorityRange(&least, &greatest));
        facts.expect(format("prio %d..%d", least, greatest));
        for (const int priority : {-10, -5, -1, 0, 1, 10}) {
            int got = 1;
            const CUresult code =
                later().green_stream_create(&stream, part.green, CU_STREAM_NON_BLOCKING, priority);
            CHECK_OK(cuStreamGetPriority(stream, &got));
            CHECK_OK(cuStreamDestroy_v2(stream));
            facts.expect(format("prio %d -> %s got %d", priority, name_of(code).c_str(), got));
        }
    }
    Partition part({split(device, 1, 0, 24).groups[0]});
    CUcontext again = nullptr;
    CHECK_OK(cuCtxFromGreenCtx(&again, part.green));
    facts.expect(format("ctxfrom twice same? %d", again == part.context));
    CUcontext of_stream = nullptr;
    CHECK_OK(cuStreamGetCtx(part.stream, &of_stream));
    facts.expect(format("streamgetctx==ctxfrom %d", of_stream == part.context));
    CUgreenCtx green = nullptr;
    CUresult code = cuStreamGetGreenCtx(part.stream, &green);
    facts.expect(format("streamgetgreen %s same %d", name_of(code).c_str(), green == part.green));
    CUstream plain = nullptr;
    CHECK_OK(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
    code = cuStreamGetGreenCtx(plain, &green);
    facts.expect(
        format("plain stream getgreen %s null=%d", name_of(code).c_str(), green == nullptr));
    CHECK_OK(cuStreamDestroy_v2(plain));
    unsigned long long id = 0;
    code = later().green_get_id(part.green, &id);
    facts.expect(format("greenid %s %llu", name_of(code).c_str(), id));
    CHECK_OK(cuCtxPushCurrent_v2(part.context));
    CUdevice ordinal = -1;
    CHECK_OK(cuCtxGetDevice(&ordinal));
    facts.expect(format("dev of green %d", ordinal));
    CUstream inner = nullptr;
    facts.expect("cuStreamCreate inside green current -> " +
                 name_of(cuStreamCreate(&inner, CU_STREAM_NON_BLOCKING)));
    facts.expect(numbered("inner", primary.sms(inner)));
    CUstream blocking = nullptr;
    facts.expect("blocking cuStreamCreate inside green -> " +
                 name_of(cuStreamCreate(&blocking, CU_STREAM_DEFAULT)));
    facts.expect(numbered("null stream inside green", primary.sms(nullptr)));
    CHECK_OK(cuStreamDestroy_v2(inner));
    CHECK_OK(cuStreamDestroy_v2(blocking));
    part.destroy_stream();
    facts.expect("destroy while current -> " + name_of(part.destroy_context()));
    CUcontext current = nullptr;
    code = cuCtxGetCurrent(&current);
    CHECK(current == part.context);
    facts.expect(format("current after destroy: %s %p (c=%p)", name_of(code).c_str(),
                        static_cast<void*>(current), static_cast<void*>(part.context)));
    facts.expect("pop -> " + name_of(cuCtxPopCurrent_v2(nullptr)));
}

// Launches the probe and leaves the counting to the reader.
void launch_probe(Primary& primary, CUstream stream, CUdeviceptr counts) {
    uint32_t max_sms = Primary::kMaxSms;
    uint32_t spin_ns = 1000;
    void* arguments[] = {&counts, &max_sms, &spin_ns};
    CHECK_OK(cuLaunchKernel(primary.probe, 2048, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr));
}

unsigned counted(CUdeviceptr counts) {
    std::vector<uint32_t> host(Primary::kMaxSms);
    CHECK_OK(cuMemcpyDtoH_v2(host.data(), counts, Primary::kMaxSms * 4));
    CHECK_OK(cuMemsetD32_v2(counts, 0, Primary::kMaxSms));
    return static_cast<unsigned>(
        std::count_if(host.begin(), host.end(), [](uint32_t n) { return n != 0; }));
}

struct Pair {
    Partition large; // 108
    Partition small; // 24
    CUstream plain = nullptr;
};

void graphs(Facts& facts, Primary& primary, const Pair& parts) {
    CUdeviceptr other = 0;
    CHECK_OK(cuMemAlloc_v2(&other, Primary::kMaxSms * 4));
    CHECK_OK(cuMemsetD32_v2(other, 0, Primary::kMaxSms));
    counted(primary.counts);
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CHECK_OK(cuStreamBeginCapture_v2(parts.large.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch_probe(primary, parts.large.stream, primary.counts);
    CHECK_OK(cuStreamEndCapture(parts.large.stream, &graph));
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK_OK(cuGraphLaunch(exec, parts.plain));
    CHECK_OK(cuStreamSynchronize(parts.plain));
    facts.expect(format("graph captured on 108-stream replayed on plain stream uses %u SMs",
                        counted(primary.counts)));
    CHECK_OK(cuGraphLaunch(exec, parts.small.stream));
    CHECK_OK(cuStreamSynchronize(parts.small.stream));
    facts.expect(format("replayed on 24-SM green stream uses %u SMs", counted(primary.counts)));
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(graph));

    CUevent fork = nullptr;
    CUevent joined = nullptr;
    CHECK_OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    CHECK_OK(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
    CHECK_OK(cuStreamBeginCapture_v2(parts.large.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_OK(cuEventRecord(fork, parts.large.stream));
    facts.expect("fork to other green in capture " +
                 name_of(cuStreamWaitEvent(parts.small.stream, fork, 0)));
    launch_probe(primary, parts.large.stream, primary.counts);
    launch_probe(primary, parts.small.stream, other);
    CHECK_OK(cuEventRecord(joined, parts.small.stream));
    CHECK_OK(cuStreamWaitEvent(parts.large.stream, joined, 0));
    facts.expect("end " + name_of(cuStreamEndCapture(parts.large.stream, &graph)));
    facts.expect("inst " + name_of(cuGraphInstantiateWithFlags(&exec, graph, 0)));
    CHECK_OK(cuGraphLaunch(exec, parts.plain));
    CHECK_OK(cuStreamSynchronize(parts.plain));
    facts.expect(format("forked graph: %u and %u SMs", counted(primary.counts), counted(other)));
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuMemFree_v2(other));
    facts.expect("greenctx record event " +
                 name_of(cuGreenCtxRecordEvent(parts.large.green, fork)));
    facts.expect("wait " + name_of(cuGreenCtxWaitEvent(parts.small.green, fork)));
    CHECK_OK(cuEventDestroy_v2(fork));
    CHECK_OK(cuEventDestroy_v2(joined));
}

// The partitions' streams against each other: what a launch and a round trip cost.
void launches(Facts& facts, Primary& primary, const Pair& parts) {
    const auto launch_us = [&](CUstream stream) {
        return median_us([&] { CHECK_OK(primary.spin(stream, 0)); });
    };
    const auto trip_us = [&](CUstream stream) {
        return median_us([&] {
            CHECK_OK(primary.spin(stream, 0));
            CHECK_OK(cuStreamSynchronize(stream));
        });
    };
    const std::string line = facts.next();
    const double plain = launch_us(parts.plain);
    const double trip = trip_us(parts.plain);
    check_cost("launch", number_after(line, "launch us: plain "), plain);
    check_cost("round trip", number_after(line, "roundtrip plain "), trip);
    facts.expect(format("launch us: plain %.2f green24 %.2f green108 %.2f | roundtrip plain %.2f "
                        "g24 %.2f g108 %.2f",
                        plain, launch_us(parts.small.stream), launch_us(parts.large.stream), trip,
                        trip_us(parts.small.stream), trip_us(parts.large.stream)));
    CUevent event = nullptr;
    CHECK_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    const auto ping_us = [&](CUstream one, CUstream two) {
        return median_us([&] {
            for (const auto& [from, to] : {std::pair(one, two), std::pair(two, one)}) {
                CHECK_OK(primary.spin(from, 0));
                CHECK_OK(cuEventRecord(event, from));
                CHECK_OK(cuStreamWaitEvent(to, event, 0));
            }
        });
    };
    const double ping = ping_us(parts.plain, parts.plain);
    check_cost("ping-pong", number_after(facts.next(), "plain-plain "), ping);
    facts.expect(format(
        "ping-pong us/iter: plain-plain %.2f same-green %.2f green-green %.2f plain-green %.2f",
        ping, ping_us(parts.small.stream, parts.small.stream),
        ping_us(parts.small.stream, parts.large.stream), ping_us(parts.plain, parts.small.stream)));
    CHECK_OK(cuEventDestroy_v2(event));
}

// What kernels on shared SMs do to each other is not simulated: the form of these lines alone.
void contention(Facts& facts) {
    for (const char* what : {"critical alone:", "two plain streams, hog 2 blocks/SM x 4 waves:",
                             "priority streams:", "green 108 hog/24 crit:"})
        facts.expect(format("%s med %.1f p95 %.1f max %.1f us", what, 0.0, 0.0, 0.0));
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2)
        return 2;
    CHECK_EQ(gcx_sim_configure("h100@13.0"), 0);
    Facts facts(argv[1], masks());
    int version = 0;
    char name[128];
    CHECK_OK(cuDriverGetVersion(&version));
    facts.expect(format("driver %d", version));
    CHECK_OK(cuInit(0));
    CHECK_OK(cuDeviceGetName(name, sizeof name, 0));
    facts.expect(format("dev %s", name));
    symbols(facts);
    before_primary(facts);
    const uint64_t before = clock_ns();
    {
        Primary primary;
        const double retain_us = static_cast<double>(clock_ns() - before) / 1000;
        check_cost("retain", number_after(facts.next(), "retain "), retain_us);
        facts.expect(format("primary retain %.1f us", retain_us));
        const CUdevResource device = query();
        CUdevResource own;
        CHECK_OK(cuCtxGetDevResource(primary.context, &own, cu::kResourceSm));
        facts.expect(format("primary ctx sm=%u", sm_count(own)));
        facts.expect(numbered("primary smids", primary.sms(nullptr)));
        sweep(facts, device);
        groups(facts, primary, device);
        direct_splits(facts, primary, device);
        sub_splits(facts, primary, device);
        timings(facts, primary, device);
        streams(facts, primary, device);
        const Split sizes = split(device, 1, 0, 24);
        Pair parts{Partition({sizes.remainder}), Partition({sizes.groups[0]}), nullptr};
        CHECK_OK(cuStreamCreate(&parts.plain, CU_STREAM_NON_BLOCKING));
        graphs(facts, primary, parts);
        launches(facts, primary, parts);
        contention(facts);
        CHECK_OK(cuStreamDestroy_v2(parts.plain));
    }
    facts.expect("done");
    facts.summary();
    return check::summary("replay of the probe");
}
