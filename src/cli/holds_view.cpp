#include "cli/holds_view.hpp"

#include "base/user_folder.hpp"
#include "cli/listing.hpp"
#include "cli/text.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>

namespace gcx::cli {
namespace {

constexpr std::string_view kMark = "SIMULATED ";
bool of_one_device(const gcx_live_hold& a, const gcx_live_hold& b) {
    return a.simulated == b.simulated &&
           std::equal(std::begin(a.device_uuid), std::end(a.device_uuid), b.device_uuid);
}

uint64_t now_ms() {
    using namespace std::chrono;
    const auto now = system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(duration_cast<milliseconds>(now).count());
}

// "5 s", "12 min", "3 h", "8 d"; of a time to come, by clocks that differ, "0 s".
std::string time_text(uint64_t since_ms) {
    const uint64_t now = now_ms();
    const uint64_t seconds = now > since_ms ? (now - since_ms) / 1000 : 0;
    if (seconds < 100)
        return std::to_string(seconds) + " s";
    if (seconds < 6000)
        return std::to_string(seconds / 60) + " min";
    if (seconds < 360000)
        return std::to_string(seconds / 3600) + " h";
    return std::to_string(seconds / 86400) + " d";
}

std::string mps_text(const gcx_live_hold& hold) {
    if (hold.mps == GCX_MPS_OFF)
        return "no";
    std::string text = hold.mps == GCX_MPS_ON ? "yes" : "?";
    if (hold.mps_thread_percentage != 0)
        text += format(", %g%% of the SMs", static_cast<double>(hold.mps_thread_percentage));
    return text;
}

std::string row_text(const gcx_live_hold& hold, std::size_t depth) {
    const std::string name = *hold.name != '\0'
                                 ? hold.name
                                 : format("%016llx", static_cast<unsigned long long>(hold.id));
    const std::string count = count_text(hold.sm_count);
    return format(
        "  %s %4s  %s %s %s %s %7s %10u  %s\n",
        name_column((std::string(2 * depth, ' ') + name).c_str()).c_str(), count.c_str(),
        padded(family_text(hold.family), 14).c_str(),
        padded(hold.waits != 0 ? "waits" : ranges(bits_of(hold.atoms)), 13).c_str(),
        padded(time_text(hold.since_ms), 7).c_str(), name_column(hold.process_name).c_str(),
        hold.pid != 0 ? std::to_string(hold.pid).c_str() : "-", hold.user, mps_text(hold).c_str());
}

// "64 held, 68 free"; where holds may have the same SMs as others, or more than they list, nothing.
// What is free while somebody waits is that one's.
std::string balance_text(const std::vector<gcx_live_hold>& holds, const gcx_live_hold& device) {
    uint32_t held = 0;
    bool waits = false;
    for (const gcx_live_hold& hold : holds) {
        if (!of_one_device(hold, device) || has_parent(holds, hold))
            continue;
        if (hold.waits != 0) {
            waits = true;
            continue;
        }
        // Those that wait come last, so that the first of the device has SMs, if any has.
        if (differs(hold, device.family) || hold.device_sm_count != device.device_sm_count)
            return "";
        held += hold.sm_count;
    }
    if (held > device.device_sm_count)
        return "";
    const uint32_t free = device.device_sm_count - held;
    return format(": %u held, %u free%s", held, free,
                  waits && free != 0 ? " for those that wait" : "");
}

// The parts of a reservation, each with its own; of 0 those that are no part of one in the list.
std::string rows_text(const std::vector<gcx_live_hold>& holds, const gcx_live_hold& device,
                      uint64_t parent, std::size_t depth) {
    std::string text;
    for (const gcx_live_hold& hold : holds) {
        if (!of_one_device(hold, device) ||
            (depth == 0 ? has_parent(holds, hold) : hold.parent != parent))
            continue;
        text += row_text(hold, depth);
        if (depth < holds.size()) // those of forged files could be parts of each other
            text += rows_text(holds, device, hold.id, depth + 1);
    }
    return text;
}

std::string device_text(const std::vector<gcx_live_hold>& holds, const gcx_live_hold& device) {
    std::string_view name = device.device_name;
    if (name.starts_with(kMark))
        name.remove_prefix(kMark.size());
    std::string text =
        format("%s, %s, %u SMs%s%s\n", visible(name).c_str(), uuid_text(device.device_uuid).c_str(),
               device.device_sm_count, device.simulated != 0 ? ", SIMULATED" : "",
               balance_text(holds, device).c_str());
    text += format("  %-17s %4s  %-14s %-13s %-7s %-17s %7s %10s  %s\n", "hold", "SMs", "family",
                   "atoms", "for", "process", "pid", "user", "MPS");
    bool without_mps = false;
    for (const gcx_live_hold& hold : holds) {
        without_mps = without_mps || (of_one_device(hold, device) && hold.mps == GCX_MPS_OFF);
    }
    text += rows_text(holds, device, 0, 0);
    if (without_mps)
        text += "  Without MPS, processes take turns on the device: holds change nothing there\n";
    return text;
}

const char* mps_name(gcx_mps_state state) {
    return state == GCX_MPS_ON ? "on" : state == GCX_MPS_OFF ? "off" : "unknown";
}

Json hold_json(const gcx_live_hold& hold) {
    return Json::object()
        .set("id", format("%016llx", static_cast<unsigned long long>(hold.id)))
        .set("parent", hold.parent != 0
                           ? Json(format("%016llx", static_cast<unsigned long long>(hold.parent)))
                           : Json())
        .set("name", hold.name)
        .set("waits", hold.waits != 0)
        .set("sm_count", count_json(hold.sm_count))
        .set("family", family_text(hold.family))
        .set("atoms", bits_of(hold.atoms))
        .set("atom_count", hold.atom_count)
        .set("since_ms", hold.since_ms)
        .set("until_ms", hold.until_ms)
        .set("pid", hold.pid != 0 ? Json(hold.pid) : Json())
        .set("process_name", hold.process_name)
        .set("user", hold.user)
        .set("mps", mps_name(hold.mps))
        .set("mps_thread_percentage", static_cast<double>(hold.mps_thread_percentage))
        .set("simulated", hold.simulated != 0)
        .set("device_uuid", uuid_text(hold.device_uuid))
        .set("device_name", hold.device_name)
        .set("device_sm_count", hold.device_sm_count);
}

} // namespace

std::vector<gcx_live_hold> read_holds(const char* folder) {
    return list_all<gcx_live_hold>([&](gcx_live_hold* holds, uint32_t capacity, uint32_t* count) {
        return gcx_hold_list(folder, holds, capacity, count);
    });
}

std::string holds_folder() {
    const std::string chosen = chosen_folder();
    return chosen.empty() ? usual_folder() : chosen;
}

bool has_parent(const std::vector<gcx_live_hold>& holds, const gcx_live_hold& hold) {
    return hold.parent != 0 &&
           std::any_of(holds.begin(), holds.end(),
                       [&](const gcx_live_hold& other) { return other.id == hold.parent; });
}

bool differs(const gcx_live_hold& hold, gcx_sm_family family) {
    const bool limited = hold.mps != GCX_MPS_OFF && hold.mps_thread_percentage > 0 &&
                         hold.mps_thread_percentage < 100;
    return hold.family != family || limited;
}

Json holds_json(const std::vector<gcx_live_hold>& holds) {
    Json json = Json::array();
    for (const gcx_live_hold& hold : holds)
        json.add(hold_json(hold));
    return json;
}

std::string holds_text(const std::vector<gcx_live_hold>& holds) {
    std::string text;
    for (std::size_t i = 0; i < holds.size(); i++) {
        if (i == 0 || !of_one_device(holds[i - 1], holds[i]))
            text += device_text(holds, holds[i]);
    }
    return text;
}

} // namespace gcx::cli
