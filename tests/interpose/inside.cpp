#include "inside.hpp"

#include "interpose/exec_plan.hpp"
#include "interpose/stub_library.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>

namespace inside {
namespace {

constexpr char kPtx[] = R"(
.version 6.3
.target sm_70
.address_size 64
.visible .entry work()
{ ret; }
)";

// Runs in a separate process, in which gcx opens the simulated driver.
void write_part(int32_t device, uint32_t sms, uint32_t flags, FILE* out) {
    gcx_resource whole{};
    gcx_resource family{};
    gcx_resource part{};
    const gcx_sm_request rest = {.sm_count = GCX_REST};
    const gcx_sm_request request = {.sm_count = sms};
    CHECK_OK(gcx_device_get_resource(device, GCX_RESOURCE_SM, &whole));
    CHECK_OK(gcx_sm_split(&whole, &rest, 1, flags, &family, nullptr));
    CHECK_OK(gcx_sm_split(&family, &request, 1, 0, &part, nullptr));
    gcx_device_info info = GCX_DEVICE_INFO_INIT;
    gcx_resource_info its = GCX_RESOURCE_INFO_INIT;
    gcx_resource_info all = GCX_RESOURCE_INFO_INIT;
    CHECK_OK(gcx_device_get_info(device, &info));
    CHECK_OK(gcx_resource_get_info(&part, &its));
    CHECK_OK(gcx_resource_get_info(&family, &all));
    gcx::interpose::DevicePart planned;
    std::copy(std::begin(info.uuid), std::end(info.uuid), planned.uuid.begin());
    planned.family = its.family;
    planned.sm_count = its.sm_count;
    planned.family_atoms = all.atom_count;
    for (uint32_t i = 0; i < all.atom_count; i++) {
        gcx_resource atom{};
        uint32_t shared = 0;
        CHECK_OK(gcx_resource_get_atom(&family, i, &atom));
        CHECK_OK(gcx_resource_get_overlap(&atom, &part, &shared));
        if (shared != 0)
            planned.atoms.push_back(i);
    }
    uint32_t ids[GCX_MAX_SMS];
    uint32_t count = 0;
    CHECK_OK(gcx_device_map_sms(device, its.family));
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

CUfunction kernel() {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CU_OK(cuModuleLoadData, &module, kPtx);
    CU_OK(cuModuleGetFunction, &function, module, "work");
    return function;
}

CUresult launch(CUfunction function, CUstream stream) {
    return CU(cuLaunchKernel)(function, 500, 1, 1, 64, 1, 1, 0, stream, nullptr, nullptr);
}

void note_runs() {
    support::sim_function<decltype(&gcx_sim_note_runs)>("gcx_sim_note_runs")(1000);
}

void check_runs(const Sms& sms, std::size_t min) {
    static gcx_sim_run runs[1000];
    const std::size_t count =
        support::sim_function<decltype(&gcx_sim_get_runs)>("gcx_sim_get_runs")(runs, 1000);
    std::size_t checked = 0;
    for (std::size_t i = 0; i < count && i < std::size(runs); i++) {
        if (runs[i].kind != GCX_SIM_RUN_KERNEL && runs[i].kind != GCX_SIM_RUN_FILL)
            continue;
        checked++;
        for (std::size_t word = 0; word < sms.size(); word++)
            CHECK_EQ(runs[i].sms[word], sms[word]);
    }
    CHECK(checked >= min);
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
