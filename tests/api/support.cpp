#include "support.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

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

std::vector<const char*> drivers(std::initializer_list<const char*> all) {
    return check::emulated ? std::vector<const char*>{"13.0"} : std::vector<const char*>(all);
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
    const std::vector<gcx_sm_request> requests = requests_for(counts);
    Split made;
    made.groups.resize(counts.size());
    made.result = gcx_sm_split(&from, requests.data(), static_cast<uint32_t>(counts.size()), flags,
                               made.groups.data(), &made.remainder);
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

gcx_cache_stats cache_stats() {
    gcx_cache_stats stats = GCX_CACHE_STATS_INIT;
    CHECK_OK(gcx_cache_get_stats(&stats));
    return stats;
}

Partition::Partition(const gcx_resource& resource) {
    CHECK_OK(gcx_context_create(&resource, 1, nullptr, &context));
    CHECK_OK(gcx_stream_create(context, nullptr, &stream));
}

Partition::~Partition() {
    CHECK_OK(gcx_stream_destroy(stream));
    CHECK_OK(gcx_context_destroy(context));
}

SmIds Partition::probe() const {
    SmIds ids(GCX_MAX_SMS);
    uint32_t count = 0;
    CHECK_OK(gcx_stream_probe_sms(stream, ids.data(), GCX_MAX_SMS, &count));
    ids.resize(count);
    return ids;
}

} // namespace support
