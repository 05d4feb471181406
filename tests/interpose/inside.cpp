#include "inside.hpp"

#include "interpose/exec_plan.hpp"
#include "interpose/stub_library.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>

namespace inside {
namespace {

CUfunction load(const char* ptx, const char* name) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CU_OK(cuModuleLoadData, &module, ptx);
    CU_OK(cuModuleGetFunction, &function, module, name);
    return function;
}

// Runs in a separate process, in which gcx opens the simulated driver.
void write_part(int32_t device, uint32_t sms, uint32_t flags, FILE* out) {
    const gcx_resource family =
        support::split(support::whole_device(device), {GCX_REST}, flags).groups[0];
    const gcx_resource part = support::split(family, {sms}).groups[0];
    gcx_device_info info = GCX_DEVICE_INFO_INIT;
    CHECK_OK(gcx_device_get_info(device, &info));
    gcx::interpose::DevicePart planned;
    std::copy(std::begin(info.uuid), std::end(info.uuid), planned.uuid.begin());
    planned.family = support::info_of(part).family;
    planned.sm_count = support::sms(part);
    planned.family_atoms = support::info_of(family).atom_count;
    for (uint32_t i = 0; i < planned.family_atoms; i++)
        if (support::overlap(support::atom_of(family, i), part) != 0)
            planned.atoms.push_back(i);
    uint32_t ids[GCX_MAX_SMS];
    uint32_t count = 0;
    CHECK_OK(gcx_device_map_sms(device, planned.family));
    CHECK_OK(gcx_resource_get_sm_ids(&part, ids, GCX_MAX_SMS, &count));
    Sms set{};
    for (uint32_t i = 0; i < count; i++)
        set[ids[i] / 64] |= uint64_t{1} << ids[i] % 64;
    gcx::interpose::Plan plan;
    plan.driver = plan.shim = "/";
    plan.devices.push_back(planned);
    std::fprintf(out, "%s\n", write_plan(plan).c_str());
    for (const uint64_t word : set)
        std::fprintf(out, "%llx ", static_cast<unsigned long long>(word));
    std::fprintf(out, "\n");
}

Inside read_parts(FILE* in, std::size_t devices) {
    Inside found;
    std::rewind(in);
    char line[4096];
    for (std::size_t i = 0; i < devices; i++) {
        found.sms.emplace_back();
        if (std::fgets(line, sizeof line, in) == nullptr || *line == '\n')
            continue;
        const std::string text(line, std::char_traits<char>::length(line) - 1);
        found.plan.devices.push_back(gcx::interpose::read_plan(text).devices.front());
        CHECK(std::fgets(line, sizeof line, in) != nullptr);
        std::istringstream words(line);
        for (uint64_t& word : found.sms.back())
            words >> std::hex >> word;
        CHECK(!words.fail());
    }
    return found;
}

// Cached, since many cases have the same setup.
const Inside& plan_of(const Setup& setup) {
    static std::map<std::string, Inside> known;
    std::string key = setup.spec + " " + std::to_string(setup.split_flags);
    for (const uint32_t count : setup.sms)
        key += " " + std::to_string(count);
    if (const auto found = known.find(key); found != known.end())
        return found->second;
    FILE* const file = std::tmpfile();
    support::on_machine(setup.spec, [&] {
        for (std::size_t i = 0; i < setup.sms.size(); i++)
            if (setup.sms[i] != 0)
                write_part(static_cast<int32_t>(i), setup.sms[i], setup.split_flags, file);
            else
                std::fprintf(file, "\n");
        std::fflush(file);
    });
    const Inside& made = known[key] = read_parts(file, setup.sms.size());
    std::fclose(file);
    return made;
}

void* libcuda = nullptr;

void open_libcuda(const Inside& inside, bool plan_in_stub) {
    const int descriptor = gcx::interpose::make_stub_library(
        inside.plan.shim.c_str(), inside.plan.driver.c_str(),
        plan_in_stub ? std::getenv(gcx::interpose::kPlanVariable) : nullptr);
    void* const stub =
        dlopen(gcx::interpose::stub_library_path(descriptor).text, RTLD_NOW | RTLD_LOCAL);
    if (stub == nullptr)
        std::fprintf(stderr, "%s\n", dlerror());
    close(descriptor);
    libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(libcuda != nullptr && libcuda == stub);
}

} // namespace

const std::vector<std::string> kDrivers = {"12.4", "12.5", "12.8", "13.0", "13.1", "13.4", "13.5"};

void run_on_every_driver(const std::function<void(const Inside&)>& body) {
    for (const std::string& driver : kDrivers)
        run({.spec = "h100@" + driver}, body);
}

void run_damaged(const Setup& setup, const std::function<void(gcx::interpose::Plan&)>& damage,
                 const std::function<void(const Inside&)>& body) {
    Inside inside = plan_of(setup);
    inside.plan.driver = std::getenv("GCX_SIM_LIBRARY");
    inside.plan.shim = std::getenv("GCX_TEST_SHIM");
    inside.plan.own_contexts = setup.own_contexts;
    inside.plan.reported_count = setup.reported_count;
    damage(inside.plan);
    support::in_child(setup.spec, [&] {
        setenv(gcx::interpose::kPlanVariable, write_plan(inside.plan).c_str(), 1);
        setenv("GCX_SIM", setup.spec.c_str(), 1);
        open_libcuda(inside, setup.plan_in_stub);
        body(inside);
    });
}

void run(const Setup& setup, const std::function<void(const Inside&)>& body) {
    run_damaged(setup, [](gcx::interpose::Plan&) {}, body);
}

void* symbol(const char* name) {
    void* const found = dlsym(libcuda, name);
    if (found == nullptr)
        std::fprintf(stderr, "libcuda.so.1 has no %s\n", name);
    return found;
}

CUcontext retain(CUdevice device) {
    CUcontext primary = nullptr;
    CU_OK(cuDevicePrimaryCtxRetain, &primary, device);
    return primary;
}

CUcontext use_primary() {
    CU_OK(cuInit, 0);
    const CUcontext primary = retain();
    CU_OK(cuCtxSetCurrent, primary);
    return primary;
}

const char* const kPtx =
    ".version 6.3\n.target sm_70\n.address_size 64\n.visible .entry work()\n{ ret; }\n";

CUfunction kernel() {
    return load(kPtx, "work");
}

CUresult launch(CUfunction function, CUstream stream) {
    return CU(cuLaunchKernel)(function, 500, 1, 1, 64, 1, 1, 0, stream, nullptr, nullptr);
}

void check_runs(const Sms& sms, std::size_t min, const std::function<void()>& body) {
    support::sim::note_runs(100'000);
    body();
    std::size_t checked = 0;
    for (const gcx_sim_run& run : support::sim::runs()) {
        if (run.kind != GCX_SIM_RUN_KERNEL && run.kind != GCX_SIM_RUN_FILL)
            continue;
        checked++;
        for (std::size_t word = 0; word < sms.size(); word++)
            CHECK_EQ(run.sms[word], sms[word]);
    }
    CHECK(checked >= min);
}

CUfunction spinner() {
    return load(".version 6.3\n.target sm_70\n.address_size 64\n"
                ".visible .entry gcx_spin(.param .u64 nanoseconds)\n{ ret; }\n",
                "gcx_spin");
}

void spin(CUfunction function, CUstream stream) {
    uint64_t nanoseconds = 50'000'000;
    void* arguments[] = {&nanoseconds};
    CU_OK(cuLaunchKernel, function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr);
}

int status_of_child(const std::function<int()>& body) {
    int status = -1;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(body());
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string lines_of(const std::function<void()>& body) {
    std::fflush(stderr);
    FILE* const file = std::tmpfile();
    const int before = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    body();
    std::fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    std::rewind(file);
    std::string lines;
    for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file))
        lines += static_cast<char>(c);
    std::fclose(file);
    return lines;
}

} // namespace inside
