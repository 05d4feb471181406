// gcx sim list shows what can be simulated; gcx sim run runs a program on the simulated driver.
#include "cli/args.hpp"
#include "cli/device.hpp"
#include "cli/run.hpp"
#include "interpose/exec_plan.hpp"

#include <gcx_sim.h>

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace gcx::cli {
namespace {

// Functions of libgcx-sim. It is not linked because it has libcuda's symbols.
struct Simulator {
    Simulator() {
        const char* const found = gcx_simulator_path();
        if (found == nullptr)
            throw Failure(GCX_ERROR_FILE_NOT_FOUND, plain_message(last_error_message()));
        // Absolute, because the command that is run may change its folder.
        path = std::filesystem::absolute(found).lexically_normal().string();
        void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            const char* const reason = dlerror();
            throw Failure(GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
                          format("can't load the simulated driver: %s", reason));
        }
        const auto find = [&]<class Function>(const char* name, Function& function) {
            function = reinterpret_cast<Function>(dlsym(library, name));
            if (function == nullptr)
                throw Failure(GCX_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
                              format("%s lacks %s: it is not the simulated driver of gcx %d.%d",
                                     path.c_str(), name, GCX_VERSION_MAJOR, GCX_VERSION_MINOR));
        };
        find("gcx_sim_gpu_name", gpu_name);
        find("gcx_sim_gpu_description", gpu_description);
        find("gcx_sim_driver_name", driver_name);
        find("gcx_sim_driver_description", driver_description);
        find("gcx_sim_configure", configure);
        find("gcx_sim_last_error", last_error);
        find("gcx_sim_spec", spec);
    }

    std::string path;
    decltype(&gcx_sim_gpu_name) gpu_name;
    decltype(&gcx_sim_gpu_description) gpu_description;
    decltype(&gcx_sim_driver_name) driver_name;
    decltype(&gcx_sim_driver_description) driver_description;
    decltype(&gcx_sim_configure) configure;
    decltype(&gcx_sim_last_error) last_error;
    decltype(&gcx_sim_spec) spec;
};

// Returns one of the simulator's lists as JSON, and adds it to the text.
Json list(const char* (*name)(std::size_t), const char* (*description)(std::size_t),
          std::string& text) {
    std::vector<Json> rows;
    for (std::size_t i = 0; name(i) != nullptr; i++) {
        rows.push_back(Json::object().set("name", name(i)).set("description", description(i)));
        text += format("  %-9s %s\n", name(i), description(i));
    }
    return Json::array(rows);
}

// Returns GPU@VERSION as the simulated driver reads it. A recording has its absolute path, since
// the command may change its folder. Throws UsageError if the driver refuses it.
std::string read_spec(const Arguments& arguments, const Simulator& simulator) {
    std::string spec = arguments.get("--gpu").value_or("h100");
    if (spec.empty())
        throw UsageError("--gpu is empty; gcx sim list shows the GPUs, e.g. --gpu h100");
    if (const auto version = arguments.get("--driver")) {
        if (version->empty())
            throw UsageError(
                "--driver is empty; gcx sim list shows the versions, e.g. --driver 13.0");
        if (version->starts_with("sim:"))
            throw UsageError(format("--driver %s: sim run takes only the version, and the GPU with "
                                    "--gpu, e.g. gcx sim run --gpu h100 --driver 13.0 -- gcx info",
                                    version->c_str()));
        (spec += '@') += *version;
    }
    if (simulator.configure(spec.c_str()) != 0)
        throw UsageError(format("%s; gcx sim list shows what there is, e.g. gcx sim run --gpu h100 "
                                "--driver 13.0 -- gcx info",
                                simulator.last_error()));
    return simulator.spec();
}

// Puts the folder with libcuda.so.1, the simulated driver by the name that programs open, first.
void put_libcuda_first(const Simulator& simulator) {
    const std::string folder = std::filesystem::path(simulator.path).replace_filename("libcuda");
    const std::string library = folder + "/libcuda.so.1";
    if (access(library.c_str(), R_OK) != 0)
        throw Failure(GCX_ERROR_FILE_NOT_FOUND,
                      format("the simulated libcuda isn't installed: %s: %s", library.c_str(),
                             std::strerror(errno)));
    if (folder.find_first_of(":;") != std::string::npos)
        throw Failure(
            GCX_ERROR_INVALID_VALUE,
            format("the simulated libcuda is in %s, and LD_LIBRARY_PATH separates folders "
                   "by \":\" and \";\"; set GCX_SIM_LIBRARY to a path without them, as "
                   "through a symbolic link to the folder of %s",
                   folder.c_str(), simulator.path.c_str()));
    const char* const before = std::getenv("LD_LIBRARY_PATH");
    const bool any = before != nullptr && *before != '\0';
    set_environment("LD_LIBRARY_PATH", any ? folder + ":" + before : folder);
}

// Removes the auditor of a gcx exec around this command from the environment: it would replace the
// simulated driver with the partition's.
void leave_partition() {
    if (std::getenv(interpose::kPlanVariable) == nullptr)
        return;
    unsetenv(interpose::kPlanVariable);
    const char* const before = std::getenv("LD_AUDIT");
    std::string others;
    for (const std::string& auditor : split(before != nullptr ? before : "", ':')) {
        if (!auditor.empty() && auditor.substr(auditor.rfind('/') + 1) != "libgcx-audit.so")
            (others += others.empty() ? "" : ":") += auditor;
    }
    set_environment("LD_AUDIT", others);
}

} // namespace

Report run_sim_list(const Arguments& /*arguments*/) {
    const Simulator simulator;
    Report report;
    report.text = "SIMULATED: what gcx's simulated driver can be\nGPUs\n";
    Json gpus = list(simulator.gpu_name, simulator.gpu_description, report.text);
    report.text += "driver versions\n";
    Json drivers = list(simulator.driver_name, simulator.driver_description, report.text);
    report.text +=
        "use: GCX_DRIVER=sim:h100@13.0, several GPUs as 2xh100 or h100,a100; or gcx sim run "
        "--gpu h100 --driver 13.0 -- COMMAND\n";
    report.json.set("simulated", true)
        .set("library", simulator.path)
        .set("gpus", std::move(gpus))
        .set("drivers", std::move(drivers));
    return report;
}

Report run_sim_run(const Arguments& arguments) {
    if (arguments.operands.empty())
        throw UsageError("there is no command to run; e.g. gcx sim run --gpu h100 --driver 13.0 -- "
                         "gcx info");
    const Simulator simulator;
    const std::string spec = read_spec(arguments, simulator);
    if (const ProgramKind kind = program_kind(arguments.operands[0]);
        kind.reach == ProgramKind::Reach::kNone)
        throw Failure(GCX_ERROR_NOT_SUPPORTED,
                      format("%s, so the system clears its environment; run gcx sim run inside it, "
                             "like sudo gcx sim run -- COMMAND",
                             kind.why.c_str()));
    leave_partition();
    put_libcuda_first(simulator);
    if (std::getenv("GCX_SIM_LIBRARY") != nullptr)
        set_environment("GCX_SIM_LIBRARY", simulator.path); // it may be relative
    set_environment("GCX_SIM", spec);
    set_environment("GCX_DRIVER", "sim:" + spec);
    std::fprintf(stderr, "SIMULATED: %s runs on gcx's simulated driver, %s; no GPU is involved\n",
                 visible(arguments.operands[0]).c_str(), visible(spec).c_str());

    return become(arguments.operands, true);
}

} // namespace gcx::cli
