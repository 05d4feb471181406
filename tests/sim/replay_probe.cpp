// facts/h100-driver580-probe.txt
#include "replay_probe.hpp"

using namespace sim_test;

namespace {

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
        int version = 0;
        CHECK_OK(cuDriverGetVersion(&version));
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

} // namespace

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

// The log took so many from an array that holds the groups and zeros behind them.
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

// What a context and its stream are told to be, and what is made while it is current.
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
    CUstream plain = nullptr;
    CHECK_OK(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
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

std::unique_ptr<Log> sim_test::probe_log() {
    return std::make_unique<Probe>();
}
