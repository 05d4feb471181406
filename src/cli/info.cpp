// gcx info: driver, devices, atoms, capabilities, queues, environment; --record writes a profile.
#include "cli/device.hpp"
#include "interpose/exec_plan.hpp"

#include <array>
#include <cstdlib>
#include <string_view>

namespace gcx::cli {
namespace {

// "16 atoms: 15 of 8 SMs, 1 of 12".
std::string atoms_text(const Family& family) {
    std::string text = count_of(family.sm_counts.size(), "atom") + ": ";
    const char* separator = "";
    for (std::size_t first = 0; first < family.sm_counts.size();) {
        std::size_t last = first;
        while (last < family.sm_counts.size() && family.sm_counts[last] == family.sm_counts[first])
            last++;
        text += format("%s%zu of %u", separator, last - first, family.sm_counts[first]);
        text += first == 0 ? " SMs" : "";
        separator = ", ";
        first = last;
    }
    return text;
}

Json family_json(const resource& all, const FamilyName& name, const Family& family) {
    const gcx_resource_info info = all.info();
    return Json::object()
        .set("name", name.name)
        .set("available", true)
        .set("atom_count", info.atom_count)
        .set("atoms", family.sm_counts)
        .set("min_partition_size", info.min_partition_size)
        .set("alignment", info.coscheduled_alignment);
}

// limits: whether to add the largest clusters of one atom and of the whole device.
Json add_family(int32_t device, const FamilyName& name, bool clusters, bool limits,
                Report& report) {
    const Family family = find_family(device, name);
    report.text += "  " + padded(name.name, 22);
    if (!family.unavailable.empty()) {
        report.text += "not available: " + family.unavailable + "\n";
        return Json::object()
            .set("name", name.name)
            .set("available", false)
            .set("message", family.unavailable);
    }
    const std::string_view promise = clusters ? name.promise : name.promise_without_clusters;
    report.text += atoms_text(family) + "; " + std::string(promise) + "\n";
    Json json = family_json(family.all, name, family);
    if (!limits)
        return json;
    const uint32_t one = family.atoms.front().max_cluster_size();
    const uint32_t all = family.all.max_cluster_size();
    if (clusters)
        report.text +=
            format("%24sclusters of up to %u in one atom, %u in the whole device\n", "", one, all);
    return json.set("max_cluster_size", Json::object().set("atom", one).set("device", all));
}

Json add_mps(const gcx_device_info& info, Report& report) {
    const float percentage = info.mps_thread_percentage;
    const bool on = info.mps == mps_state::on;
    const char* const state = on ? "on" : info.mps == mps_state::off ? "off" : "unknown";
    report.text += std::string("  MPS                   ") + state;
    if (on)
        report.text +=
            ": partitions of several processes run side by side, on disjoint SMs if\n"
            "                        all split alike and take different parts; SM numbers are "
            "virtual\n";
    else if (info.mps == mps_state::off)
        report.text += ": processes take turns on the whole device, whatever their partitions\n";
    else
        report.text += ": the driver doesn't report whether other processes run concurrently\n";
    if (on && percentage > 0)
        report.text +=
            format("                        and CUDA_MPS_ACTIVE_THREAD_PERCENTAGE limits "
                   "this process to %g percent;\n"
                   "                        cuBLAS 13.1 computes wrong products with "
                   "many such limits, see docs/guides/two-processes.md\n",
                   double{percentage});
    return Json::object()
        .set("state", state)
        .set("thread_percentage", percentage > 0 ? Json(double{percentage}) : Json());
}

Json add_device(int32_t ordinal, bool limits, Report& report) {
    const gcx::device device(ordinal);
    const gcx_device_info info = device.info();
    const std::string capability =
        format("%d.%d", info.compute_capability_major, info.compute_capability_minor);
    Json json = Json::object();
    json.set("ordinal", ordinal)
        .set("name", info.name)
        .set("compute_capability", capability)
        .set("sm_count", info.sm_count)
        .set("min_partition_size", info.min_partition_size)
        .set("coscheduled_alignment", info.coscheduled_alignment)
        .set("locality_domain_count", info.locality_domain_count)
        .set("uuid", uuid_text(info.uuid));
    report.text += format("device %d: %s\n", ordinal, info.name);
    report.text += "  compute capability    " + capability + "\n";
    report.text += format("  SMs                   %u\n", info.sm_count);
    report.text +=
        format("  smallest partition    %s\n", count_of(info.min_partition_size, "SM").c_str());
    report.text +=
        format("  coscheduled steps     %s\n", count_of(info.coscheduled_alignment, "SM").c_str());
    json.set("mps", add_mps(info, report));
    if (limits) {
        const auto [least, greatest] = device.stream_priority_range();
        report.text +=
            format("  stream priorities     %d to %d, the most urgent\n", least, greatest);
        json.set("stream_priorities", Json::object().set("least", least).set("greatest", greatest));
    }
    const bool clusters = info.compute_capability_major >= 9;
    return json.set("families", Json::array(family_names, [&](const FamilyName& name) {
                        return add_family(ordinal, name, clusters, limits, report);
                    }));
}

struct CapabilityName {
    const char* name;
    const char* required_version;
};
// By gcx_capability, whose comments have the versions.
constexpr CapabilityName kCapabilities[] = {
    {"green contexts", "12.4"},   {"stream creation", "12.5"},  {"context ids", "13.0"},
    {"resource details", "13.0"}, {"structured split", "13.1"}, {"workqueues", "13.1"},
    {"stream resources", "13.1"}, {"locality domains", "13.4"},
};
static_assert(std::size(kCapabilities) == GCX_CAPABILITY_COUNT);

void add_capabilities(const gcx_driver_info& driver, Report& report) {
    std::vector<Json> capabilities;
    report.text += "capabilities\n";
    for (std::size_t i = 0; i < std::size(kCapabilities); i++) {
        const auto& [name, required] = kCapabilities[i];
        const bool available = driver.capabilities[i] != 0;
        capabilities.push_back(Json::object()
                                   .set("name", name)
                                   .set("available", available)
                                   .set("required_version", required));
        report.text +=
            format("  %-20s  %-3s  from CUDA %s\n", name, available ? "yes" : "no", required);
    }
    report.json.set("capabilities", Json::array(capabilities));
}

// Adds the hardware queues, which all partitions of a process share.
void add_queues(Report& report) {
    constexpr const char* kVariable = "CUDA_DEVICE_MAX_CONNECTIONS";
    const char* const value = std::getenv(kVariable);
    const gcx_queue_info info = queue_info();
    std::string warning;
    if (info.connections == 0)
        warning = format("%s=%s: CUDA takes 1 to %u; its behaviour with other values isn't "
                         "documented",
                         kVariable, value, max_connections);
    if (info.too_few != 0)
        warning = format("with one connection all partitions wait as soon as one stream of "
                         "the process does; set %s=%u before CUDA starts",
                         kVariable, max_connections);
    report.text += format(
        "queues\n  connections           %s, %s%s; read when CUDA starts, at most %u\n",
        info.connections != 0 ? std::to_string(info.connections).c_str() : "unknown", kVariable,
        value != nullptr ? ("=" + visible(value)).c_str() : " isn't set", max_connections);
    report.text +=
        "  All partitions of a process share them. A stream occupies one while its first command\n"
        "  waits for something; while all are occupied, every other launch of the process waits,\n"
        "  whatever its SMs. More connections let more streams wait.\n";
    if (!warning.empty())
        report.text += "  WARNING: " + visible(warning) + "\n";
    report.json.set("queues",
                    Json::object()
                        .set("variable", kVariable)
                        .set("value", value != nullptr ? Json(value) : Json())
                        .set("connections", info.connections != 0 ? Json(info.connections) : Json())
                        .set("most", max_connections)
                        .set("warning", warning.empty() ? Json() : Json(warning)));
}

struct Variable {
    const char* name;
    const char* effect;
};
constexpr std::array kVariables = {
    Variable{interpose::kPlanVariable,
             "a gcx exec around this command gives it the SMs that are shown above, and no others"},
    Variable{"CUDA_VISIBLE_DEVICES",
             "which devices the driver shows and in which order; ordinals count within it"},
    Variable{"NVIDIA_VISIBLE_DEVICES", "which GPUs the container runtime gives to this container"},
    Variable{"CUDA_MPS_PIPE_DIRECTORY",
             "where the MPS daemon is looked for; a client of MPS may get a part of the SMs"},
    Variable{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
             "under MPS, the share of the SMs that this process may use, in percent"},
    Variable{"CUDA_MPS_SM_PARTITION",
             "under MPS, a static partition, which limits this process to its SMs"},
    Variable{"CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING",
             "under MPS, 1 lets each context of a process have a share of the SMs of its own"},
};

// Whether the open driver has exactly the plan's SMs. It is another driver if --driver chose it, or
// if the auditor of gcx exec is no longer loaded.
bool has_partition(const interpose::Plan& plan) {
    bool any = false;
    const int32_t count = gcx::device::count();
    for (int32_t device = 0; device < count; device++) {
        const gcx_device_info info = gcx::device(device).info();
        const interpose::DevicePart* const part = plan.find(info.uuid);
        if (part != nullptr && part->sm_count != info.sm_count)
            return false;
        any = any || part != nullptr;
    }
    return any;
}

// value: null if the variable isn't set.
std::string effect_of(const Variable& variable, const char* value) {
    if (value == nullptr || variable.name != std::string_view(interpose::kPlanVariable))
        return variable.effect;
    try {
        if (has_partition(interpose::read_plan(value)))
            return variable.effect;
    } catch (const interpose::PlanError& error) {
        return "no partition: " + visible(error.what());
    }
    return "no partition: the driver that is shown above is not limited by it";
}

// Leaves the token of a reservation out, with which any process can join the reservation.
std::string without_token(const char* value) {
    std::string text;
    for (const std::string& word : split(value, ' '))
        text += (text.empty() ? "" : " ") + (word.starts_with("token=") ? "token=..." : word);
    return text;
}

// Adds the environment variables that limit the SMs of a process.
void add_environment(Report& report) {
    std::vector<Json> variables;
    std::string text;
    for (const Variable& variable : kVariables) {
        const char* const value = std::getenv(variable.name);
        const std::string effect = effect_of(variable, value);
        variables.push_back(
            Json::object()
                .set("name", variable.name)
                .set("value", value != nullptr ? Json(without_token(value)) : Json())
                .set("effect", effect));
        if (value != nullptr)
            text += std::string("  ") + variable.name + "=" + visible(without_token(value)) +
                    "\n      " + effect + "\n";
    }
    report.text += "environment\n" + (text.empty() ? "  nothing that limits SMs is set\n" : text);
    report.json.set("environment", Json::array(variables));
}

// Device attributes that a profile holds, with their numbers in CUdevice_attribute.
struct Attribute {
    const char* field;
    int number;
};
constexpr std::array kAttributes = {
    Attribute{"clock_khz", 13},
    Attribute{"memory_clock_khz", 36},
    Attribute{"memory_bus_bits", 37},
    Attribute{"l2_bytes", 38},
    Attribute{"threads_per_sm", 39},
    Attribute{"blocks_per_sm", 106},
    Attribute{"registers_per_sm", 82},
    Attribute{"shared_memory_per_sm", 81},
    Attribute{"shared_memory_per_block_optin", 97},
    Attribute{"integrated", 18},
    Attribute{"pci_bus", 33},
    Attribute{"pageable_memory_access", 88},
};

std::string device_lines(const gcx_driver_info& driver, int32_t ordinal) {
    const gcx_device_info info = gcx::device(ordinal).info();
    const std::string name = plain_name(info);
    const std::string version = version_text(driver.version);
    const std::string capability =
        format("%d.%d", info.compute_capability_major, info.compute_capability_minor);
    std::string text = "name " + name + "\n";
    text += format("description %s%s: %u SMs, compute capability %s; recorded on CUDA %s\n",
                   driver.simulated != 0 ? "SIMULATED " : "", name.c_str(), info.sm_count,
                   capability.c_str(), version.c_str());
    text += "driver " + version + "\ncompute_capability " + capability + "\n";
    text += format("sm_count %u\nmin_partition_size %u\ncoscheduled_alignment %u\n", info.sm_count,
                   info.min_partition_size, info.coscheduled_alignment);

    const DriverCall<int*, int> get_device(driver, "cuDeviceGet");
    const DriverCall<std::size_t*, int> get_memory(driver, "cuDeviceTotalMem_v2");
    const DriverCall<int*, int, int> get_attribute(driver, "cuDeviceGetAttribute");
    int device = 0;
    std::size_t bytes = 0;
    get_device(&device, ordinal);
    get_memory(&bytes, device);
    text += format("memory_bytes %zu\n", bytes);
    for (const Attribute& attribute : kAttributes) {
        int value = 0;
        get_attribute(&value, attribute.number, device);
        text += format("%s %d\n", attribute.field, value);
    }
    return text;
}

std::string sm_line(const char* field, const resource& atom) {
    std::string line = field;
    for (const uint32_t sm : atom.sm_ids())
        (line += ' ') += std::to_string(sm);
    return line + "\n";
}

// Returns a device as a profile that the simulated driver replays, in the format of
// docs/reference/simulated-driver.md. Creates contexts to find out which SMs each atom holds.
std::string record_profile(const gcx_driver_info& driver, int32_t device) {
    std::string text = "gcx-profile 1\n# Written by gcx info --record. The lists of SMs are those "
                       "that a kernel saw on each atom.\n";
    text += device_lines(driver, device);
    const gcx_device_info info = gcx::device(device).info();
    for (const FamilyName& name : family_names) {
        const Family family = find_family(device, name);
        // A device smaller than a group is one atom, which is not from a split.
        const bool whole =
            name.family == gcx::family::coscheduled && info.sm_count < info.min_partition_size;
        if (!family.unavailable.empty() || whole)
            continue;
        gcx::device(device).map_sms(name.family);
        text += "\nfamily " + std::string(name.name) + "\n";
        for (std::size_t i = 0; i < family.atoms.size(); i++)
            text += sm_line(i < family.equal_atoms() ? "group" : "remainder", family.atoms[i]);
    }
    return text;
}

// Returns the driver that replays a recording: "sim:./gpu.profile". The slash tells it from a GPU's
// name; an @ at the end tells a file name like gpu@13.0 from a GPU with a version.
std::string replay_driver(const std::string& path) {
    std::string driver = path.find('/') == std::string::npos ? "sim:./" + path : "sim:" + path;
    const std::size_t at = path.rfind('@');
    if (at != std::string::npos && path.find_first_not_of("0123456789.", at + 1) == path.npos)
        driver += '@';
    return driver;
}

void record(const std::string& path, const gcx_driver_info& driver, int32_t device,
            Report& report) {
    write_file(path, record_profile(driver, device));
    const std::string replay = replay_driver(path);
    report.text += format("recorded device %d in %s; replay it with GCX_DRIVER=%s\n", device,
                          visible(path).c_str(), shell_word(replay).c_str());
    report.json.set("recorded", path).set("replay", replay);
    const uint32_t domains = gcx::device(device).info().locality_domain_count;
    if (domains > 1)
        report.text += format("not recorded: which SMs each of the %u locality domains holds, "
                              "which the driver doesn't report; the replay has one domain\n",
                              domains);
}

std::string library_version() {
    const uint32_t version = gcx::version();
    if (version == GCX_VERSION)
        return GCX_VERSION_TEXT;
    return library_version_text(version);
}

} // namespace

Report run_info(const Arguments& arguments) {
    const bool one = arguments.has("--device");
    const auto recording = arguments.file("--record", "gpu.profile");
    const gcx_driver_info driver = open_driver(arguments);
    const int32_t count = gcx::device::count();
    const int32_t device = device_option(arguments);

    Report report;
    report.json = report_start(driver).set("version", library_version());
    report.text = banner(driver);
    report.text += "driver   CUDA " + version_text(driver.version) + "\n";
    report.text += "library  " + visible(driver.library) + "\n";
    report.text += "gcx      " + library_version() + ", built with the headers of CUDA " +
                   version_text(driver.header_version) + "\n";
    std::vector<Json> devices;
    for (int32_t i = one ? device : 0; i < (one ? device + 1 : count); i++)
        devices.push_back(add_device(i, arguments.has("--limits"), report));
    report.json.set("devices", Json::array(devices));
    add_capabilities(driver, report);
    add_queues(report);
    add_environment(report);
    if (recording)
        record(*recording, driver, device, report);
    return report;
}

} // namespace gcx::cli
