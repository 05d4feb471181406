#include "support.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

namespace support {
namespace {

struct Report {
    int passed = 0;
    int failed = 0;
    uint64_t answer = 0;
    int done = 0;
};

Report run_child(const std::string& name, const std::function<uint64_t()>& body, unsigned seconds,
                 int& status) {
    Report report;
    int ends[2];
    if (pipe(ends) != 0)
        return report;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        alarm(seconds);
        check::passed = 0;
        check::failed = 0;
        report.answer = body();
        report.passed = check::passed;
        report.failed = check::failed;
        report.done = 1;
        if (report.failed != 0)
            std::fprintf(stderr, "    on %s\n", name.c_str());
        if (write(ends[1], &report, sizeof report) != sizeof report)
            std::abort();
        std::exit(0); // runs the exit handlers: the library's, and the leak check
    }
    close(ends[1]);
    if (read(ends[0], &report, sizeof report) != sizeof report)
        report = Report();
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child)
        status = -1;
    return report;
}

} // namespace

void in_child(const std::string& name, const std::function<void()>& body, unsigned seconds) {
    int status = -1;
    const Report report = run_child(
        name,
        [&] {
            body();
            return uint64_t{0};
        },
        seconds, status);
    check::passed += report.passed;
    check::failed += report.failed;
    if (report.done == 1 && status == 0)
        return;
    check::failed++;
    std::fprintf(stderr, "%s: the process ended badly: %s %d\n", name.c_str(),
                 WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void on_machine(const std::string& spec, const std::function<void()>& body) {
    in_child(spec, [&] {
        if (CHECK_OK(gcx_driver_open(("sim:" + spec).c_str())))
            body();
    });
}

void leaves_nothing(const std::string& spec, const std::function<void()>& body) {
    on_machine(spec, [&] {
        const gcx_sim_counts before = sim::counts();
        body();
        sim::advance(2'000'000'000'000'000'000);
        CHECK_OK(gcx_cache_set_limit(0));
        CHECK_EQ(cache_stats().in_use, 0U);
        CHECK_EQ(left_behind(before, sim::counts()), std::string());
    });
}

std::vector<const char*> drivers(std::initializer_list<const char*> all) {
    return check::emulated ? std::vector<const char*>{"13.0"} : std::vector<const char*>(all);
}

void on_h100(std::initializer_list<void (*)()> tests, const std::vector<const char*>& versions) {
    for (const char* driver : versions) {
        for (const auto test : tests)
            on_machine(std::string("h100@") + driver, test);
    }
}

uint64_t answer_of_child(const std::function<uint64_t()>& body) {
    int status = -1;
    const Report report = run_child("a question", body, 100, status);
    CHECK(report.done == 1 && status == 0 && report.failed == 0);
    return report.answer;
}

void* sim_symbol(const char* name) {
    // gcx opens the library by this path too, so this is the same instance.
    static void* const library = [] {
        const char* const path = gcx_simulator_path();
        return path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }();
    void* const symbol = library == nullptr ? nullptr : dlsym(library, name);
    if (symbol == nullptr)
        std::fprintf(stderr, "the simulated driver has no %s\n", name);
    return symbol;
}

void check_child_of_fork(const std::function<bool()>& body) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(30); // ends a child that hangs
        _exit(body() ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

Catalogue catalogue() {
    // The library is closed again, so that children start without one.
    const auto names = [](const char* function) {
        std::vector<std::string> list;
        const char* const path = gcx_simulator_path();
        void* const library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr)
            return list;
        const auto name = reinterpret_cast<decltype(&gcx_sim_gpu_name)>(dlsym(library, function));
        for (std::size_t i = 0; name(i) != nullptr; i++)
            list.emplace_back(name(i));
        dlclose(library);
        return list;
    };
    return {names("gcx_sim_gpu_name"), names("gcx_sim_driver_name")};
}

int version_of(const std::string& driver) {
    const std::size_t dot = driver.find('.');
    return std::stoi(driver.substr(0, dot)) * 1000 + std::stoi(driver.substr(dot + 1)) * 10;
}

namespace sim {

gcx_sim_counts counts() {
    static const auto get = sim_function<decltype(&gcx_sim_get_counts)>("gcx_sim_get_counts");
    gcx_sim_counts counts{};
    get(&counts);
    return counts;
}

uint64_t calls(const char* function) {
    static const auto get = sim_function<decltype(&gcx_sim_calls)>("gcx_sim_calls");
    return get(function);
}

void fail(const char* function, uint64_t nth, CUresult result) {
    static const auto order = sim_function<decltype(&gcx_sim_fail)>("gcx_sim_fail");
    CHECK_EQ(order(function, nth, result), 0);
}

void advance(uint64_t nanoseconds) {
    sim_function<decltype(&gcx_sim_advance)>("gcx_sim_advance")(nanoseconds);
}

void note_runs(std::size_t max) {
    sim_function<decltype(&gcx_sim_note_runs)>("gcx_sim_note_runs")(max);
}

std::vector<gcx_sim_run> runs() {
    static const auto get = sim_function<decltype(&gcx_sim_get_runs)>("gcx_sim_get_runs");
    std::vector<gcx_sim_run> runs(get(nullptr, 0));
    runs.resize(std::min(runs.size(), get(runs.data(), runs.size())));
    return runs;
}

} // namespace sim

std::string left_behind(const gcx_sim_counts& before, const gcx_sim_counts& after) {
    std::string text;
    const auto compare = [&](const char* name, uint64_t was, uint64_t is) {
        if (was != is)
            text += std::string(name) + " " + std::to_string(was) + " before, " +
                    std::to_string(is) + " after; ";
    };
    compare("primary_retains", before.primary_retains, after.primary_retains);
    compare("contexts", before.contexts, after.contexts);
    compare("green_contexts", before.green_contexts, after.green_contexts);
    compare("streams", before.streams, after.streams);
    compare("events", before.events, after.events);
    compare("graphs", before.graphs, after.graphs);
    compare("allocations", before.allocations, after.allocations);
    compare("allocated_bytes", before.allocated_bytes, after.allocated_bytes);
    return text;
}

bool message_has(const std::string& text) {
    return std::strstr(gcx_last_error_message(), text.c_str()) != nullptr;
}

bool refused(gcx_result got, gcx_result expected, const char* file, int line, const char* call) {
    if (!check::equal(got, expected, file, line, call))
        return false;
    note_message(got);
    return check::count(*gcx_last_error_message() != '\0', file, line,
                        std::string("a message of ") + call);
}

gcx_resource whole_device(int32_t device) {
    gcx_resource resource{};
    CHECK_OK(gcx_device_get_resource(device, GCX_RESOURCE_SM, &resource));
    return resource;
}

std::vector<gcx_sm_request> requests_for(const std::vector<uint32_t>& counts) {
    std::vector<gcx_sm_request> requests(counts.size());
    for (std::size_t i = 0; i < counts.size(); i++)
        requests[i].sm_count = counts[i];
    return requests;
}

Split try_split(const gcx_resource& from, const std::vector<uint32_t>& counts, uint32_t flags) {
    return split_by_requests(from, requests_for(counts), flags);
}

Split split_by_requests(const gcx_resource& from, const std::vector<gcx_sm_request>& requests,
                        uint32_t flags) {
    Split made;
    made.groups.resize(requests.size());
    made.result = gcx_sm_split(&from, requests.data(), static_cast<uint32_t>(requests.size()),
                               flags, made.groups.data(), &made.remainder, nullptr, nullptr);
    return made;
}

Split split(const gcx_resource& from, const std::vector<uint32_t>& counts, uint32_t flags) {
    Split made = try_split(from, counts, flags);
    CHECK_OK(made.result);
    return made;
}

gcx_resource_info info_of(const gcx_resource& resource) {
    gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
    CHECK_OK(gcx_resource_get_info(&resource, &info));
    return info;
}

uint32_t sms(const gcx_resource& resource) {
    return info_of(resource).sm_count;
}

std::vector<uint32_t> sizes(const Split& split) {
    std::vector<uint32_t> list;
    list.reserve(split.groups.size() + 1);
    for (const gcx_resource& group : split.groups)
        list.push_back(sms(group));
    list.push_back(sms(split.remainder));
    return list;
}

uint32_t overlap(const gcx_resource& a, const gcx_resource& b) {
    uint32_t count = UINT32_MAX;
    CHECK_OK(gcx_resource_get_overlap(&a, &b, &count));
    return count;
}

gcx_resource united(const gcx_resource& a, const gcx_resource& b) {
    gcx_resource result{};
    CHECK_OK(gcx_resource_union(&a, &b, &result));
    return result;
}

gcx_resource without(const gcx_resource& a, const gcx_resource& b) {
    gcx_resource result{};
    CHECK_OK(gcx_resource_subtract(&a, &b, &result));
    return result;
}

gcx_resource atom_of(const gcx_resource& resource, uint32_t index) {
    gcx_resource atom{};
    CHECK_OK(gcx_resource_get_atom(&resource, index, &atom));
    return atom;
}

std::vector<gcx_resource> sets(const std::vector<uint32_t>& sizes, int32_t device) {
    std::vector<gcx_resource> found;
    for (const uint32_t size : sizes)
        found.push_back(split(whole_device(device), {size}).groups[0]);
    return found;
}

gcx_cache_trimmed trim(uint32_t keep) {
    gcx_cache_trimmed trimmed = GCX_CACHE_TRIMMED_INIT;
    CHECK_OK(gcx_cache_trim(keep, &trimmed));
    return trimmed;
}

gcx_context make_context(const gcx_resource& resource, uint32_t flags) {
    return make_context(std::vector{resource}, flags);
}

gcx_context make_context(const std::vector<gcx_resource>& resources, uint32_t flags) {
    gcx_context_params params = GCX_CONTEXT_PARAMS_INIT;
    params.flags = flags;
    gcx_context context = nullptr;
    CHECK_OK(gcx_context_create(resources.data(), static_cast<uint32_t>(resources.size()),
                                flags == 0 ? nullptr : &params, &context));
    return context;
}

gcx_stream make_stream(gcx_context context, int32_t priority) {
    gcx_stream_params params = GCX_STREAM_PARAMS_INIT;
    params.priority = priority;
    gcx_stream stream = nullptr;
    CHECK_OK(gcx_stream_create(context, priority == 0 ? nullptr : &params, &stream));
    return stream;
}

gcx_stream handle_for(CUstream native) {
    gcx_stream stream = nullptr;
    CHECK_OK(gcx_stream_from_native(native, &stream));
    return stream;
}

gcx_event make_event(int32_t device, uint32_t flags) {
    gcx_event event = nullptr;
    CHECK_OK(gcx_event_create(device, flags, &event));
    return event;
}

gcx_cancel make_cancel() {
    gcx_cancel cancel = nullptr;
    CHECK_OK(gcx_cancel_create(&cancel));
    return cancel;
}

gcx_context_info info_of(gcx_context context) {
    gcx_context_info info = GCX_CONTEXT_INFO_INIT;
    CHECK_OK(gcx_context_get_info(context, &info));
    return info;
}

gcx_stream_info info_of(gcx_stream stream) {
    gcx_stream_info info = GCX_STREAM_INFO_INIT;
    CHECK_OK(gcx_stream_get_info(stream, &info));
    return info;
}

uint64_t id_of(gcx_context context) {
    return info_of(context).id;
}

SmIds probe(gcx_stream stream) {
    SmIds ids(GCX_MAX_SMS);
    uint32_t count = 0;
    CHECK_OK(gcx_stream_probe_sms(stream, ids.data(), GCX_MAX_SMS, &count));
    ids.resize(count);
    return ids;
}

bool share_sms(const gcx_sim_run& a, const gcx_sim_run& b) {
    for (std::size_t i = 0; i < std::size(a.sms); i++) {
        if ((a.sms[i] & b.sms[i]) != 0)
            return true;
    }
    return false;
}

Current::Current(CUcontext context) {
    CHECK_NATIVE(cuCtxPushCurrent, context);
}

Current::~Current() {
    CUcontext popped = nullptr;
    CHECK_NATIVE(cuCtxPopCurrent, &popped);
}

void begin_capture(CUstream stream, CUstreamCaptureMode mode) {
    CHECK_NATIVE(cuStreamBeginCapture, stream, mode);
}

void end_capture(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CHECK_NATIVE(cuStreamIsCapturing, stream, &status);
    CHECK_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CUgraph graph = nullptr;
    CHECK_NATIVE(cuStreamEndCapture, stream, &graph);
    if (CHECK(graph != nullptr))
        CHECK_NATIVE(cuGraphDestroy, graph);
}

CUdevResource native_device(int device) {
    CUdevResource whole{};
    CHECK_NATIVE(cuDeviceGetDevResource, device, &whole, CU_DEV_RESOURCE_TYPE_SM);
    return whole;
}

std::vector<CUdevResource> native_split(uint32_t sm_count, unsigned groups, unsigned flags,
                                        int device) {
    const CUdevResource whole = native_device(device);
    std::vector<CUdevResource> parts(groups + 1);
    unsigned made = groups;
    CHECK_NATIVE(cuDevSmResourceSplitByCount, parts.data(), &made, &whole, &parts[groups], flags,
                 sm_count);
    CHECK_EQ(made, groups);
    return parts;
}

External::External(uint32_t sm_count, int device)
    : External(sm_count == 0 ? std::vector<CUdevResource>()
                             : std::vector{native_split(sm_count, 1, 0, device)[0]},
               device) {
}

External::External(std::vector<CUdevResource> resources, int device) : device_(device) {
    CUcontext context = nullptr;
    CHECK_NATIVE(cuDevicePrimaryCtxRetain, &context, device);
    if (!resources.empty()) {
        CUdevResourceDesc descriptor = nullptr;
        CHECK_NATIVE(cuDevResourceGenerateDesc, &descriptor, resources.data(),
                     static_cast<unsigned>(resources.size()));
        CHECK_NATIVE(cuGreenCtxCreate, &green_, descriptor, device, CU_GREEN_CTX_DEFAULT_STREAM);
        CHECK_NATIVE(cuCtxFromGreenCtx, &context, green_);
    }
    const Current current(context);
    CHECK_NATIVE(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    CHECK_NATIVE(cuEventCreate, &event, CU_EVENT_DEFAULT);
}

External::~External() {
    CHECK_NATIVE(cuEventDestroy, event);
    CHECK_NATIVE(cuStreamDestroy, stream);
    if (green_ != nullptr)
        CHECK_NATIVE(cuGreenCtxDestroy, green_);
    CHECK_NATIVE(cuDevicePrimaryCtxRelease, device_);
}

Profile::Profile(const std::string& text)
    : path_("/tmp/gcx-test-" + std::to_string(getpid()) + ".profile") {
    std::ofstream(path_) << text;
}

Profile::~Profile() {
    std::remove(path_.c_str());
}

void in_threads(unsigned count, const std::function<void(unsigned)>& body) {
    std::atomic<unsigned> ready{0};
    std::vector<std::thread> threads;
    for (unsigned number = 0; number != count; number++) {
        threads.emplace_back([&, number] {
            ready++;
            while (ready != count)
                std::this_thread::yield();
            body(number);
        });
    }
    for (std::thread& thread : threads)
        thread.join();
}

gcx_cache_stats cache_stats() {
    gcx_cache_stats stats = GCX_CACHE_STATS_INIT;
    CHECK_OK(gcx_cache_get_stats(&stats));
    return stats;
}

Partition::Partition(const gcx_resource& resource) {
    context = make_context(resource);
    stream = make_stream(context);
}

Partition::~Partition() {
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_OK(gcx_context_destroy(context));
}

} // namespace support
