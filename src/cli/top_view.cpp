#include "cli/top_view.hpp"

#include "cli/listing.hpp"
#include "cli/reservations_view.hpp"
#include "cli/sm_map.hpp"
#include "cli/text.hpp"

#include <algorithm>
#include <tuple>

namespace gcx::cli {
namespace {

constexpr std::string_view kMark = "SIMULATED ";

bool has(const uint64_t (&atoms)[8], uint32_t atom) {
    return (atoms[atom / 64] >> (atom % 64) & 1) != 0;
}

bool reservations(const gcx_published_lease& lease, uint32_t atom) {
    return has(lease.exclusive_atoms, atom) || has(lease.shared_atoms, atom);
}

uint32_t atom_size(const gcx_published_lease& lease, uint32_t atom) {
    return atom + 1 == lease.atom_count ? lease.last_atom_sm_count : lease.atom_sm_count;
}

// What atoms a lease of a device lies on.
using MapKey = std::tuple<gcx_sm_family, uint32_t, uint32_t, uint32_t>;
MapKey map_key(const gcx_published_lease& lease) {
    return {lease.family, lease.atom_count, lease.atom_sm_count, lease.last_atom_sm_count};
}

// A lease with its letter's number; kNobody of one that waits.
struct Shown {
    const gcx_published_lease* lease;
    int number;
};

struct Device {
    std::vector<Shown> leases;
    const gcx_published_lease& first() const { return *leases.front().lease; }
};

std::vector<Device> devices_of(const std::vector<gcx_published_lease>& leases) {
    std::vector<Device> devices;
    int numbers = 0;
    for (const gcx_published_lease& lease : leases) {
        const auto same = [&](const Device& device) {
            return std::equal(std::begin(lease.device_uuid), std::end(lease.device_uuid),
                              device.first().device_uuid);
        };
        auto found = std::find_if(devices.begin(), devices.end(), same);
        if (found == devices.end())
            found = devices.emplace(devices.end());
        found->leases.push_back({&lease, lease.waits != 0 ? SmMap::kNobody : numbers++});
    }
    return devices;
}

// Draws the atoms of a family, an SM a cell, an atom a group.
class AtomMap {
  public:
    AtomMap(const Device& device, const MapKey& key) {
        for (const auto& [lease, number] : device.leases) {
            if (map_key(*lease) != key)
                continue;
            if (shape_ == nullptr)
                owners_.assign(lease->atom_count, SmMap::kNobody);
            shape_ = lease;
            for (uint32_t atom = 0; atom < lease->atom_count; atom++) {
                if (reservations(*lease, atom))
                    owners_[atom] = owners_[atom] == SmMap::kNobody ? number : SmMap::kSeveral;
            }
        }
    }

    std::string text(std::size_t columns, bool colours) const {
        std::string out;
        std::string line;
        std::size_t used = kIndent;
        for (uint32_t atom = 0; atom < owners_.size(); atom++) {
            const std::string group = cells(atom);
            if (used + 1 + group.size() > columns && used != kIndent) {
                out += head(out.empty()) + line + "\n";
                line.clear();
                used = kIndent;
            }
            line += " " + painted(group, owners_[atom], colours);
            used += 1 + group.size();
        }
        return out + head(out.empty()) + line + "\n";
    }

  private:
    static constexpr std::size_t kIndent = 13;

    std::string head(bool first) const {
        return padded(first ? std::string("  ") + family_text(shape_->family) : "", kIndent);
    }
    // As wide as the atom has SMs, with the lease's letters.
    std::string cells(uint32_t atom) const {
        const int owner = owners_[atom];
        const std::size_t width = atom_size(*shape_, atom);
        if (owner < 0)
            return std::string(width, owner == SmMap::kNobody ? '.' : '+');
        const std::string name = partition_name(static_cast<std::size_t>(owner));
        std::string text;
        while (text.size() < width)
            text += name;
        return text.substr(0, std::max(width, name.size()));
    }

    const gcx_published_lease* shape_ = nullptr;
    std::vector<int> owners_; // by atom
};

std::string what_it_is(const gcx_published_lease& lease) {
    if (lease.waits != 0)
        return lease.sm_count == GCX_REST ? "waits for the rest"
                                          : format("waits for %u", lease.sm_count);
    if ((lease.flags & GCX_LEASE_SHARED) == 0)
        return "exclusive";
    return lease.exclusive_sm_count == 0 ? "shared"
                                         : format("shared, %u alone", lease.exclusive_sm_count);
}

std::string table(const Device& device, bool colours) {
    std::string text =
        "      lease               SMs  held                streams  changes  process   "
        "              pid\n";
    for (const auto& [lease, number] : device.leases) {
        const bool waits = lease->waits != 0;
        const std::string letter = waits ? "-" : partition_name(static_cast<std::size_t>(number));
        const std::string name =
            *lease->name != '\0' ? lease->name
                                 : format("lease %llu", static_cast<unsigned long long>(lease->id));
        text += "  " + painted(format("%2s", letter.c_str()), number, colours);
        text += format("  %s %5s  %s %7u %8llu  %s %8d\n", name_column(name.c_str()).c_str(),
                       waits ? "" : std::to_string(lease->sm_count).c_str(),
                       padded(what_it_is(*lease), 18).c_str(), lease->stream_count,
                       static_cast<unsigned long long>(lease->changes),
                       name_column(lease->process_name).c_str(), lease->pid);
    }
    return text;
}

std::string device_text(const Device& device, std::size_t columns, bool colours) {
    const gcx_published_lease& first = device.first();
    std::string_view name = first.device_name;
    if (name.starts_with(kMark))
        name.remove_prefix(kMark.size());
    std::string text = format("device %d: %s, %u SMs%s\n", first.device, visible(name).c_str(),
                              first.device_sm_count, first.simulated != 0 ? ", SIMULATED" : "");
    std::vector<MapKey> keys;
    for (const Shown& shown : device.leases) {
        const MapKey key = map_key(*shown.lease);
        if (std::find(keys.begin(), keys.end(), key) == keys.end())
            keys.push_back(key);
    }
    for (const MapKey& key : keys)
        text += AtomMap(device, key).text(columns, colours);
    return text + table(device, colours);
}

std::string nobody() {
    return "nobody publishes leases. A process of this user does so if GCX_PUBLISH=1 (or a name) "
           "is in "
           "its\nenvironment when it opens the driver, or if it starts that by itself\n";
}

std::string idle_text(const Published& published) {
    std::string text;
    for (const gcx_published_process& process : published.processes) {
        if (process.lease_count == 0)
            text += format("%s (pid %d%s) has no lease\n", visible(process.name).c_str(),
                           process.pid, process.simulated != 0 ? ", SIMULATED" : "");
        if (process.unlisted_count != 0)
            text += format("%s (pid %d) has %s more\n", visible(process.name).c_str(), process.pid,
                           count_of(process.unlisted_count, "lease").c_str());
    }
    return text;
}

Json lease_json(const gcx_published_lease& lease) {
    return Json::object()
        .set("process", format("%016llx", static_cast<unsigned long long>(lease.process)))
        .set("pid", lease.pid)
        .set("id", lease.id)
        .set("name", lease.name)
        .set("simulated", lease.simulated != 0)
        .set("device", lease.device)
        .set("device_uuid", uuid_text(lease.device_uuid))
        .set("device_name", lease.device_name)
        .set("device_sm_count", lease.device_sm_count)
        .set("family", family_text(lease.family))
        .set("shared", (lease.flags & GCX_LEASE_SHARED) != 0)
        .set("waits", lease.waits != 0)
        .set("sm_count", count_json(lease.sm_count))
        .set("exclusive_sm_count", lease.exclusive_sm_count)
        .set("stream_count", lease.stream_count)
        .set("changes", lease.changes)
        .set("atom_count", lease.atom_count)
        .set("exclusive_atoms", bits_of(lease.exclusive_atoms))
        .set("shared_atoms", bits_of(lease.shared_atoms));
}

} // namespace

Published read_published() {
    Published published;
    const Warnings warnings(published.warnings);
    published.leases = list_all<gcx_published_lease>(gcx_published_lease_list);
    published.processes = list_all<gcx_published_process>(gcx_published_process_list);
    try {
        published.reservations = read_reservations(nullptr);
    } catch (const Failure& failure) {
        published.warnings.emplace_back(failure.what());
    }
    return published;
}

Json published_json(const Published& published) {
    Json processes = Json::array();
    for (const gcx_published_process& process : published.processes) {
        processes.add(
            Json::object()
                .set("process", format("%016llx", static_cast<unsigned long long>(process.process)))
                .set("pid", process.pid)
                .set("name", process.name)
                .set("simulated", process.simulated != 0)
                .set("driver_version", version_text(process.driver_version))
                .set("since_ms", process.since_ms)
                .set("lease_count", process.lease_count)
                .set("unlisted_count", process.unlisted_count));
    }
    Json leases = Json::array();
    for (const gcx_published_lease& lease : published.leases)
        leases.add(lease_json(lease));
    Json warnings = Json::array();
    for (const std::string& warning : published.warnings)
        warnings.add(warning);
    const bool simulated =
        std::any_of(published.processes.begin(), published.processes.end(),
                    [](const gcx_published_process& process) { return process.simulated != 0; }) ||
        std::any_of(
            published.reservations.begin(), published.reservations.end(),
            [](const gcx_live_reservation& reservation) { return reservation.simulated != 0; });
    Json json = Json::object();
    json.set("simulated", simulated)
        .set("processes", std::move(processes))
        .set("leases", std::move(leases))
        .set("reservations", reservations_json(published.reservations))
        .set("warnings", std::move(warnings));
    return json;
}

std::string published_text(const Published& published, std::size_t columns, bool colours) {
    std::string text;
    for (const Device& device : devices_of(published.leases))
        text += device_text(device, columns, colours);
    text += idle_text(published);
    if (const std::string reservations = reservations_text(published.reservations);
        !reservations.empty())
        text += (text.empty() ? "" : "\n") + ("held, across processes:\n" + reservations);
    if (text.empty())
        text = nobody();
    for (const std::string& warning : published.warnings)
        text += "warning: " + visible(warning) + "\n";
    return text;
}

} // namespace gcx::cli
