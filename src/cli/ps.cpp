// gcx ps: the reservations of all processes that use a folder.
#include "cli/ps.hpp"

#include "cli/args.hpp"
#include "cli/device.hpp"
#include "ipc/lock_dir.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace gcx::cli {
namespace {

bool of_one_device(const gcx_live_reservation& a, const gcx_live_reservation& b) {
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

std::string mps_text(const gcx_live_reservation& reservation) {
    if (reservation.mps == GCX_MPS_OFF)
        return "no";
    std::string text = reservation.mps == GCX_MPS_ON ? "yes" : "?";
    if (reservation.mps_thread_percentage != 0)
        text += format(", %g%% of the SMs", static_cast<double>(reservation.mps_thread_percentage));
    return text;
}

std::string row_text(const gcx_live_reservation& reservation, std::size_t depth) {
    const std::string name = *reservation.name != '\0' ? reservation.name : id_text(reservation.id);
    return format(
        "  %s %4s  %s %s %s %s %7s %10u  %s\n",
        name_column(std::string(2 * depth, ' ') + name).c_str(),
        count_text(reservation.sm_count).c_str(),
        padded(family_text(reservation.family), 14).c_str(),
        padded(reservation.waits != 0 ? "waits" : ranges(bits_of(reservation.atoms)), 13).c_str(),
        padded(time_text(reservation.since_ms), 7).c_str(),
        name_column(reservation.process_name).c_str(),
        reservation.pid != 0 ? std::to_string(reservation.pid).c_str() : "-", reservation.user,
        mps_text(reservation).c_str());
}

// ": 64 reserved, 68 free"; empty if that is unknown. SMs that are free while another reservation
// waits go to that one.
std::string balance_text(const Reservations& reservations, const gcx_live_reservation& device) {
    const auto free = unreserved_sms(reservations, device);
    if (!free)
        return "";
    const bool waits = std::ranges::any_of(reservations, [&](const auto& each) {
        return each.waits != 0 && of_one_device(each, device) && !has_parent(reservations, each);
    });
    return format(": %u reserved, %u free%s", device.device_sm_count - *free, *free,
                  waits && *free != 0 ? " for those that wait" : "");
}

// Returns the rows of a reservation's parts, with theirs below; for depth 0 the rows of those that
// are no part of another in the list.
std::string rows_text(const Reservations& reservations, const gcx_live_reservation& device,
                      uint64_t parent, std::size_t depth) {
    std::string text;
    for (const gcx_live_reservation& reservation : reservations) {
        if (!of_one_device(reservation, device) ||
            (depth == 0 ? has_parent(reservations, reservation) : reservation.parent != parent))
            continue;
        text += row_text(reservation, depth);
        if (depth < reservations.size()) // forged files could name each other as parents
            text += rows_text(reservations, device, reservation.id, depth + 1);
    }
    return text;
}

std::string device_text(const Reservations& reservations, const gcx_live_reservation& device) {
    std::string text = format(
        "%s, %s, %u SMs%s%s\n", visible(without_mark(device.device_name)).c_str(),
        uuid_text(device.device_uuid).c_str(), device.device_sm_count,
        device.simulated != 0 ? ", SIMULATED" : "", balance_text(reservations, device).c_str());
    text += format("  %-17s %4s  %-14s %-13s %-7s %-17s %7s %10s  %s\n", "reservation", "SMs",
                   "family", "atoms", "for", "process", "pid", "user", "MPS");
    bool without_mps = false;
    for (const gcx_live_reservation& reservation : reservations) {
        without_mps =
            without_mps || (of_one_device(reservation, device) && reservation.mps == GCX_MPS_OFF);
    }
    text += rows_text(reservations, device, 0, 0);
    if (without_mps)
        text += "  Without MPS, processes take turns on the whole device; reservations have no "
                "effect\n";
    return text;
}

const char* mps_name(gcx_mps_state state) {
    return state == GCX_MPS_ON ? "on" : state == GCX_MPS_OFF ? "off" : "unknown";
}

Json reservation_json(const gcx_live_reservation& reservation) {
    return Json::object()
        .set("id", id_text(reservation.id))
        .set("parent", reservation.parent != 0 ? Json(id_text(reservation.parent)) : Json())
        .set("name", reservation.name)
        .set("waits", reservation.waits != 0)
        .set("sm_count", count_json(reservation.sm_count))
        .set("family", family_text(reservation.family))
        .set("atoms", bits_of(reservation.atoms))
        .set("atom_count", reservation.atom_count)
        .set("since_ms", reservation.since_ms)
        .set("until_ms", reservation.until_ms)
        .set("pid", reservation.pid != 0 ? Json(reservation.pid) : Json())
        .set("process_name", reservation.process_name)
        .set("user", reservation.user)
        .set("mps", mps_name(reservation.mps))
        .set("mps_thread_percentage", static_cast<double>(reservation.mps_thread_percentage))
        .set("simulated", reservation.simulated != 0)
        .set("device_uuid", uuid_text(reservation.device_uuid))
        .set("device_name", reservation.device_name)
        .set("device_sm_count", reservation.device_sm_count);
}

} // namespace

bool has_parent(const Reservations& reservations, const gcx_live_reservation& reservation) {
    return reservation.parent != 0 &&
           std::ranges::any_of(reservations, [&](const gcx_live_reservation& other) {
               return other.id == reservation.parent;
           });
}

bool has_other_atoms(const gcx_live_reservation& reservation, gcx_sm_family family) {
    const bool limited = reservation.mps != GCX_MPS_OFF && reservation.mps_thread_percentage > 0 &&
                         reservation.mps_thread_percentage < 100;
    return reservation.family != family || limited;
}

std::optional<uint32_t> unreserved_sms(const Reservations& reservations,
                                       const gcx_live_reservation& device) {
    uint32_t reserved = 0;
    for (const gcx_live_reservation& reservation : reservations) {
        if (!of_one_device(reservation, device) || has_parent(reservations, reservation) ||
            reservation.waits != 0)
            continue;
        // Those that wait are last, so the first of the device has SMs if any has.
        if (has_other_atoms(reservation, device.family) ||
            reservation.device_sm_count != device.device_sm_count)
            return std::nullopt;
        reserved += reservation.sm_count;
    }
    if (reserved > device.device_sm_count)
        return std::nullopt;
    return device.device_sm_count - reserved;
}

Json reservations_json(const Reservations& reservations) {
    return Json::array(reservations, reservation_json);
}

std::string reservations_text(const Reservations& reservations) {
    std::string text;
    for (std::size_t i = 0; i < reservations.size(); i++) {
        if (i == 0 || !of_one_device(reservations[i - 1], reservations[i]))
            text += device_text(reservations, reservations[i]);
    }
    return text;
}

Report run_ps(const Arguments& arguments) {
    const auto folder = arguments.get("--folder");
    if (folder && folder->empty())
        throw UsageError("--folder is empty; give an absolute path, or leave it out for the usual "
                         "folder");
    std::vector<std::string> warnings;
    Reservations reservations;
    {
        const Warnings collected(warnings);
        reservations = folder ? live_reservations(*folder) : live_reservations();
    }
    const std::string chosen = chosen_folder();
    const std::string place = folder ? *folder : chosen.empty() ? usual_folder() : chosen;
    Report report;
    report.text = reservations_text(reservations);
    if (report.text.empty())
        report.text = format("no reservations in %s; gcx exec and programs that reserve SMs make "
                             "them\n",
                             visible(place).c_str());
    else
        report.text += format("Reservations in %s; those in other folders are not listed\n",
                              visible(place).c_str());
    for (const std::string& warning : warnings)
        report.text += "warning: " + visible(warning) + "\n";
    const bool any_simulated = std::ranges::any_of(
        reservations, [](const gcx_live_reservation& each) { return each.simulated != 0; });
    report.json.set("simulated", any_simulated)
        .set("folder", place)
        .set("reservations", reservations_json(reservations))
        .set("warnings", warnings);
    return report;
}

} // namespace gcx::cli
