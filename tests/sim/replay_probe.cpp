// facts/h100-driver580-probe.txt
#include "replay.hpp"

#include <algorithm>
#include <memory>

using namespace sim_test;

namespace {

// The lines of the log share a context.
struct Probe : Log {
    std::unique_ptr<Primary> primary;
    CUdevResource device{};
    Split base;

    std::vector<Kind> kinds() override;
    std::vector<Kind> cost_kinds();
    void retain();
    void sms(const std::string& what, CUstream stream);
    std::string clusters(CUstream stream, const char* asked);
    void group(std::size_t index);
    void remainder();
    void combination(unsigned count);
    void with_remainder(unsigned count);
    void direct(unsigned count, unsigned flags);
    void fine();
    void sub_split();
    void creation_costs(unsigned count);
    void many();
    void priorities();
    void one_context();
    void graphs();
    void captured(const Partition& large, const Partition& small, CUstream plain);
    void forked(const Partition& large, const Partition& small, CUstream plain, CUevent fork);
    void launches(CUstream plain, CUstream small, CUstream large);
    void launch(CUstream stream, CUdeviceptr counts);
    unsigned counted(CUdeviceptr counts);
};

CUdevResource resource_of(const Partition& part) {
    CUdevResource own;
    CHECK_OK(cuGreenCtxGetDevResource(part.green, &own, cu::kResourceSm));
    return own;
}

std::string sizes_of(const CUdevResource& resource, const char* alignment) {
    const cu::SmFields seen = fields(resource);
    return line_of({"sm=", seen.sm_count, " min=", seen.min_partition_size, alignment,
                    seen.coscheduled_alignment});
}

void say_symbol(const std::string& name) {
    std::string line = "sym " + name;
    for (const int version : {12040, 12050, 12080, 13000, 13010, 13020, 13040}) {
        void* address = &line;
        CUdriverProcAddressQueryResult status{};
        const CUresult code = cuGetProcAddress_v2(name.c_str(), &address, version, 0, &status);
        line += line_of({" ", version, ":", code == CUDA_SUCCESS ? "ok" : name_of(code),
                         address == nullptr ? "-null" : ""});
        if (static_cast<int>(status) != 0)
            line += line_of({"(q", static_cast<int>(status), ")"});
    }
    say({line});
}

void say_device(bool first) {
    if (first) {
        const int version = driver_version();
        CHECK_OK(cuInit(0));
        return say({"driver ", version});
    }
    char name[128];
    CHECK_OK(cuDeviceGetName(name, sizeof name, 0));
    const std::string what_it_is = "SIMULATED ";
    CHECK(std::string(name).starts_with(what_it_is));
    say({"dev ", name + what_it_is.size()});
}

void say_resource_before_primary(unsigned type) {
    CUdevResource resource;
    const CUresult code =
        cuDeviceGetDevResource(0, &resource, static_cast<CUdevResourceType>(type));
    if (type == cu::kResourceSm)
        say({"devres before primary: ", code, " ", sizes_of(resource, " align="),
             " raw3=", fields(resource).flags, " {}us"});
    else
        say({"devres type ", type, " -> ", code});
}

void say_swept(unsigned flags, unsigned groups, unsigned least) {
    const CUdevResource device = query();
    const Split made = split(device, groups, flags, least);
    std::string line =
        line_of({"S ", flags, " ", groups, " ", least, " ", static_cast<int>(made.result)});
    if (made.result == CUDA_SUCCESS) {
        const cu::SmFields first = fields(made.groups.front());
        const cu::SmFields rest = fields(made.remainder);
        line +=
            line_of({" n=", made.count, " c=", first.sm_count, " min=", first.min_partition_size,
                     " al=", first.coscheduled_alignment, " last=", sm_count(made.groups.back()),
                     " rem(type", type_of(made.remainder), ")=", rest.sm_count, ",",
                     rest.min_partition_size, ",", rest.coscheduled_alignment});
    } else {
        CHECK_EQ(made.count, groups);
    }
    if (groups == 1) {
        unsigned count = 0xdead;
        const CUresult code =
            cuDevSmResourceSplitByCount(nullptr, &count, &device, nullptr, flags, least);
        line += line_of({" query rc=", static_cast<int>(code), " n=", count});
    }
    say({line});
}

void Probe::retain() {
    say({"primary retain ", cost(taken_us([&] { primary = std::make_unique<Primary>(); })), " us"});
    device = query();
    CUdevResource own;
    CHECK_OK(cuCtxGetDevResource(primary->context, &own, cu::kResourceSm));
    say({"primary ctx sm=", sm_count(own)});
    sms("primary smids", nullptr);
}

void Probe::sms(const std::string& what, CUstream stream) {
    const std::vector<unsigned> seen = primary->sms(stream);
    say({what, " n=", seen.size(), ": ", join(seen)});
}

std::string Probe::clusters(CUstream stream, const char* asked) {
    std::string line = line_of({" measured=", primary->sms(stream).size(),
                                " maxcluster=", primary->max_cluster(stream, false, 256), asked});
    for (const unsigned size : {1U, 2U, 4U, 8U})
        line += line_of({" ac", size, "=", primary->active_clusters(stream, size, 256)});
    return line;
}

void Probe::group(std::size_t index) {
    const Partition part({base.groups[index]});
    sms(line_of({"grp", index}), part.stream);
}

void Probe::remainder() {
    const Partition rest({base.remainder});
    say({"rem ctx ", rest.result});
    sms("rem", rest.stream);
}

// The recorder took the resources from an array of the groups followed by zeros.
void Probe::combination(unsigned count) {
    std::vector<CUdevResource> all = base.groups;
    all.push_back(CUdevResource{});
    const auto first = all.begin() + (count == 3 ? 0 : count == 13 ? 3 : 14);
    const Partition part({first, first + count});
    std::string line = line_of({"combo of ", count, " groups -> ", part.result});
    if (part.result == CUDA_SUCCESS)
        line += " " + sizes_of(resource_of(part), " al=") + clusters(part.stream, "(CUDA_SUCCESS)");
    say({line});
}

void Probe::with_remainder(unsigned count) {
    std::vector<CUdevResource> most(base.groups.begin() + 3, base.groups.begin() + 2 + count);
    most.push_back(base.remainder);
    const Partition part(std::move(most));
    say({count, " groups + remaining -> ", part.result, " sm=", sm_count(resource_of(part)),
         " measured=", primary->sms(part.stream).size()});
}

void Probe::direct(unsigned count, unsigned flags) {
    const Split made = split(device, 1, flags, count);
    const Partition part({made.groups[0]});
    int attribute = 0;
    CHECK_OK(cuDeviceGetAttribute(&attribute, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    say({"direct ", count, " fl", flags, " sm=", sm_count(made.groups[0]),
         clusters(part.stream, ""), " attrSM=", attribute});
    sms("   ids", part.stream);
}

void Probe::fine() {
    const Split made = split(device, 80, 1, 2);
    say({"fl1 2-split rc=", made.result, " n=", made.count, " each=", sm_count(made.groups[0]),
         " rem=", sm_count(made.remainder)});
    const Partition seven({made.groups.begin(), made.groups.begin() + 7});
    say({"combo 7x2 -> ", seven.result});
    sms("7x2", seven.stream);
}

void Probe::sub_split() {
    Partition parent({split(device, 1, 0, 64).groups[0]});
    const CUdevResource own = resource_of(parent);
    say({"sub: parent ", sizes_of(own, " al=")});
    const Split made = split(own, 8, 0, 16);
    say({"sub split -> ", made.result, " n=", made.count, " each=", sm_count(made.groups[0]),
         " rem=", sm_count(made.remainder)});
    sms("parent", parent.stream);
    const Partition child({made.groups[0]});
    sms("child0", child.stream);
    parent.destroy_stream();
    say({"destroy parent first -> ", parent.destroy_context()});
    say({" ", cuStreamSynchronize(child.stream)});
    say({"child stream after parent gone -> ", primary->spin(child.stream, 10)});
    sms("child0 again", child.stream);
}

void Probe::priorities() {
    const Partition part({split(device, 1, 0, 24).groups[0]});
    CUstream stream = nullptr;
    say({"blocking stream -> ",
         later().green_stream_create(&stream, part.green, CU_STREAM_DEFAULT, 0)});
    int least = 1;
    int greatest = 1;
    CHECK_OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    say({"prio ", least, "..", greatest});
    for (const int priority : {-10, -5, -1, 0, 1, 10}) {
        int got = 1;
        const CUresult code =
            later().green_stream_create(&stream, part.green, CU_STREAM_NON_BLOCKING, priority);
        CHECK_OK(cuStreamGetPriority(stream, &got));
        CHECK_OK(cuStreamDestroy_v2(stream));
        say({"prio ", priority, " -> ", code, " got ", got});
    }
}

// Queries of a context and its stream, and streams created while it is current.
void Probe::one_context() {
    Partition part({split(device, 1, 0, 24).groups[0]});
    CUcontext context = nullptr;
    CHECK_OK(cuCtxFromGreenCtx(&context, part.green));
    say({"ctxfrom twice same? ", context == part.context});
    CHECK_OK(cuStreamGetCtx(part.stream, &context));
    say({"streamgetctx==ctxfrom ", context == part.context});
    CUgreenCtx green = nullptr;
    say({"streamgetgreen ", cuStreamGetGreenCtx(part.stream, &green), " same ",
         green == part.green});
    CUstream plain = new_stream();
    say({"plain stream getgreen ", cuStreamGetGreenCtx(plain, &green), " null=", green == nullptr});
    CHECK_OK(cuStreamDestroy_v2(plain));
    unsigned long long id = 0;
    say({"greenid ", later().green_get_id(part.green, &id), " ", id});
    CHECK_OK(cuCtxPushCurrent_v2(part.context));
    CUdevice ordinal = -1;
    CHECK_OK(cuCtxGetDevice(&ordinal));
    say({"dev of green ", ordinal});
    CUstream inner = nullptr;
    say({"cuStreamCreate inside green current -> ",
         cuStreamCreate(&inner, CU_STREAM_NON_BLOCKING)});
    sms("inner", inner);
    CUstream blocking = nullptr;
    say({"blocking cuStreamCreate inside green -> ", cuStreamCreate(&blocking, CU_STREAM_DEFAULT)});
    sms("null stream inside green", nullptr);
    CHECK_OK(cuStreamDestroy_v2(inner));
    CHECK_OK(cuStreamDestroy_v2(blocking));
    part.destroy_stream();
    say({"destroy while current -> ", part.destroy_context()});
    say({"current after destroy: ", cuCtxGetCurrent(&context), " {} (c={})"});
    CHECK(context == part.context);
    say({"pop -> ", cuCtxPopCurrent_v2(nullptr)});
}

// Costs and graphs.

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

// Contention on shared SMs is not simulated, so that only the form of these lines is checked.
Kind contention(const std::string& what) {
    return {what, [what] { say({what, " med {} p95 {} max {} us"}); }};
}

// Creates twenty contexts of count SMs.
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
    // The median for 108 SMs is twice that of the others, with the same minimum.
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

// Launches the probe without reading its counts.
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

// A captured graph and its executable.
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
    CUstream plain = new_stream();
    CUevent event = new_event();
    counted(primary->counts);
    captured(large, small, plain);
    forked(large, small, plain, event);
    say({"greenctx record event ", cuGreenCtxRecordEvent(large.green, event)});
    say({"wait ", cuGreenCtxWaitEvent(small.green, event)});
    CHECK_OK(cuEventDestroy_v2(event));
    launches(plain, small.stream, large.stream);
    CHECK_OK(cuStreamDestroy_v2(plain));
}

// The costs of launches, round trips and events on the partitions' streams.
void Probe::launches(CUstream plain, CUstream small, CUstream large) {
    CUevent event = new_event();
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

std::vector<Kind> Probe::kinds() {
    std::vector<Kind> all = cost_kinds();
    const std::vector<Kind> others = {
        {"driver #", [] { say_device(true); }},
        {"dev ", [] { say_device(false); }},
        {"sym ",
         [](const Line& line) { say_symbol(line.text.substr(4, line.text.find(' ', 4) - 4)); }},
        {"devres before primary", [] { say_resource_before_primary(cu::kResourceSm); }},
        {"devres type #", [](const Line& line) { say_resource_before_primary(line.numbers[0]); }},
        {"primary retain", [this] { retain(); }},
        literal("== split sweep (flags,nb,min): rc groups [each] remaining"),
        {"S # # #",
         [](const Line& line) { say_swept(line.numbers[0], line.numbers[1], line.numbers[2]); }},
        {"base split",
         [this] {
             base = split(device, 32, 0, 8);
             say({"base split n=", base.count, " rem=", sm_count(base.remainder),
                  " type=", type_of(base.remainder)});
         }},
        {"grp#", [this](const Line& line) { group(line.numbers[0]); }},
        {"rem ctx", [this] { remainder(); }},
        {"combo of #", [this](const Line& line) { combination(line.numbers[0]); }},
        {"# groups + remaining", [this](const Line& line) { with_remainder(line.numbers[0]); }},
        {"direct # fl#", [this](const Line& line) { direct(line.numbers[0], line.numbers[1]); }},
        {"fl1 2-split", [this] { fine(); }},
        {"sub: parent", [this] { sub_split(); }},
        {"blocking stream", [this] { priorities(); }},
        {"ctxfrom twice", [this] { one_context(); }},
        literal("done"),
    };
    all.insert(all.end(), others.begin(), others.end());
    return all;
}

} // namespace

std::unique_ptr<Log> sim_test::probe_log() {
    return std::make_unique<Probe>();
}
