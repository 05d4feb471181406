// gcx info: driver, devices, atoms, capabilities, environment.
#include "cli/checked.hpp"
#include "cli/chosen_driver.hpp"
#include "cli/environment.hpp"
#include "cli/families.hpp"
#include "cli/files.hpp"
#include "cli/library_message.hpp"
#include "cli/listing.hpp"
#include "cli/mps.hpp"
#include "cli/queues.hpp"
#include "cli/record.hpp"
#include "cli/report.hpp"
#include "cli/text.hpp"

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

uint32_t max_cluster_size(const gcx_resource& resource) {
    uint32_t blocks = 0;
    check(gcx_resource_get_max_cluster_size(&resource, &blocks));
    return blocks;
}

// The largest clusters: of one atom, and of the whole device.
void add_limits(const Family& family, bool clusters, Json& json, Report& report) {
    const uint32_t one = max_cluster_size(family.atoms.front());
    const uint32_t all = max_cluster_size(family.all);
    json.set("max_cluster_size", Json::object().set("atom", one).set("device", all));
    if (clusters)
        report.text +=
            format("%24sclusters of up to %u in one atom, %u in the whole device\n", "", one, all);
}

void add_families(int32_t device, bool clusters, bool limits, Json& json, Report& report) {
    Json families = Json::array();
    for (const FamilyName& name : family_names) {
        const std::string label = "  " + padded(name.name, 22);
        const auto family = find_family(device, name);
        if (!family) {
            const std::string why = library_message();
            families.add(
                Json::object().set("name", name.name).set("available", false).set("message", why));
            report.text.append(label).append("not available: ").append(why).append("\n");
            continue;
        }
        Json available = Json::object();
        available.set("name", name.name)
            .set("available", true)
            .set("atom_count", family->info.atom_count)
            .set("atoms", family->sm_counts)
            .set("min_partition_size", family->info.min_partition_size)
            .set("alignment", family->info.coscheduled_alignment);
        const std::string_view promise = clusters ? name.promise : name.promise_without_clusters;
        report.text += label + atoms_text(*family) + "; " + std::string(promise) + "\n";
        if (limits)
            add_limits(*family, clusters, available, report);
        families.add(std::move(available));
    }
    json.set("families", std::move(families));
}

void add_priorities(int32_t device, Json& json, Report& report) {
    int32_t least = 0;
    int32_t greatest = 0;
    check(gcx_device_get_stream_priority_range(device, &least, &greatest));
    report.text += format("  stream priorities     %d to %d, the most urgent\n", least, greatest);
    json.set("stream_priorities", Json::object().set("least", least).set("greatest", greatest));
}

Json add_device(int32_t device, bool limits, Report& report) {
    const gcx_device_info info = device_info(device);
    const std::string capability =
        format("%d.%d", info.compute_capability_major, info.compute_capability_minor);
    Json json = Json::object();
    json.set("ordinal", device)
        .set("name", info.name)
        .set("compute_capability", capability)
        .set("sm_count", info.sm_count)
        .set("min_partition_size", info.min_partition_size)
        .set("coscheduled_alignment", info.coscheduled_alignment)
        .set("locality_domain_count", info.locality_domain_count)
        .set("uuid", uuid_text(info.uuid));
    report.text += format("device %d: %s\n", device, info.name);
    report.text += "  compute capability    " + capability + "\n";
    report.text += format("  SMs                   %u\n", info.sm_count);
    report.text +=
        format("  smallest partition    %s\n", count_of(info.min_partition_size, "SM").c_str());
    report.text +=
        format("  coscheduled steps     %s\n", count_of(info.coscheduled_alignment, "SM").c_str());
    report.text += device_mps_text(device);
    json.set("mps", device_mps_json(device));
    if (limits)
        add_priorities(device, json, report);
    add_families(device, info.compute_capability_major >= 9, limits, json, report);
    return json;
}

void add_capabilities(Report& report) {
    Json capabilities = Json::array();
    report.text += "capabilities\n";
    for (int i = 0; i < GCX_CAPABILITY_COUNT; i++) {
        gcx_capability_info info = GCX_CAPABILITY_INFO_INIT;
        check(gcx_capability_get_info(static_cast<gcx_capability>(i), &info));
        const std::string required = version_text(info.required_version);
        capabilities.add(Json::object()
                             .set("name", info.name)
                             .set("available", info.available != 0)
                             .set("required_version", required));
        report.text += format("  %-20s  %-3s  from CUDA %s\n", info.name,
                              info.available != 0 ? "yes" : "no", required.c_str());
    }
    report.json.set("capabilities", std::move(capabilities));
}

std::string library_version() {
    const uint32_t version = gcx_version();
    if (version == GCX_VERSION)
        return GCX_VERSION_TEXT;
    return format("%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
}

} // namespace

Report run_info(const Arguments& arguments) {
    const bool one = arguments.has("--device");
    const auto device = static_cast<int32_t>(arguments.number("--device", 0, 1023, 0));
    const auto record = arguments.get("--record");
    if (record && record->empty())
        throw UsageError("--record is empty; give the file to write, e.g. --record gpu.profile");
    const gcx_driver_info driver = open_driver(arguments);
    int32_t count = 0;
    check(gcx_device_get_count(&count));

    Report report;
    report.json = report_start(driver);
    report.json.set("version", library_version());
    report.text = banner(driver);
    report.text += "driver   CUDA " + version_text(driver.version) + "\n";
    report.text += format("library  %s\n", driver.library);
    report.text += "gcx      " + library_version() + ", built with the headers of CUDA " +
                   version_text(driver.header_version) + "\n";
    Json devices = Json::array();
    for (int32_t i = one ? device : 0; i < (one ? device + 1 : count); i++)
        devices.add(add_device(i, arguments.has("--limits"), report));
    report.json.set("devices", std::move(devices));
    add_capabilities(report);
    report.text += "queues\n" + queues_text();
    report.json.set("queues", queues_json());
    report.text += "environment\n" + environment_text();
    report.json.set("environment", environment_json());
    if (record) {
        write_file(*record, record_profile(driver, device));
        const std::string replay = replay_driver(*record);
        report.text += format("recorded device %d in %s; replay it with GCX_DRIVER=%s\n", device,
                              visible(*record).c_str(), shell_word(replay).c_str());
        report.json.set("recorded", *record).set("replay", replay);
        const uint32_t domains = device_info(device).locality_domain_count;
        if (domains > 1)
            report.text += format("not recorded: which SMs each of the %u locality domains holds, "
                                  "which the driver doesn't tell; the replay has one\n",
                                  domains);
    }
    return report;
}

} // namespace gcx::cli
