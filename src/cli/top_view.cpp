#include "cli/top_view.hpp"

#include "cli/checked.hpp"
#include "cli/layout.hpp"
#include "cli/sm_map.hpp"
#include "cli/text.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

namespace gcx::cli {
namespace {

constexpr std::string_view kMark = "SIMULATED ";
constexpr std::size_t kMostName = 20;
constexpr int kFree = SmMap::kNobody;
constexpr int kSeveral = SmMap::kSeveral;

template <class T>
std::vector<T> list(gcx_result (*give)(T*, uint32_t, uint32_t*)) {
    std::vector<T> found;
    uint32_t count = 64;
    gcx_result result = GCX_ERROR_INVALID_VALUE;
    // More may have come since it was said how many there are.
    while (result == GCX_ERROR_INVALID_VALUE && count > found.size()) {
        found.resize(count + count / 4);
        result = give(found.data(), static_cast<uint32_t>(found.size()), &count);
    }
    check(result);
    found.resize(count);
    return found;
}

// What the library says of files that it doesn't read.
class Warnings {
  public:
    explicit Warnings(std::vector<std::string>& to) {
        check(gcx_log_set_callback(GCX_LOG_WARNING, take, &to));
    }
    ~Warnings() { gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr); }
    Warnings(const Warnings&) = delete;
    Warnings& operator=(const Warnings&) = delete;

  private:
    static void take(gcx_log_level, const char* message, void* to) {
        auto& warnings = *static_cast<std::vector<std::string>*>(to);
        if (std::find(warnings.begin(), warnings.end(), message) == warnings.end())
            warnings.emplace_back(message);
    }
};

std::string family_text(gcx_sm_family kind) {
    const auto found =
        std::find_if(family_names.begin(), family_names.end(),
                     [&](const FamilyName& family) { return family.family == kind; });
    return found == family_names.end() ? "another family" : std::string(found->name);
}

bool has(const uint64_t (&atoms)[8], uint32_t atom) {
    return (atoms[atom / 64] >> (atom % 64) & 1) != 0;
}

bool holds(const gcx_published_lease& lease, uint32_t atom) {
    return has(lease.exclusive_atoms, atom) || has(lease.shared_atoms, atom);
}

uint32_t atom_size(const gcx_published_lease& lease, uint32_t atom) {
    return atom + 1 == lease.atom_count ? lease.last_atom_sm_count : lease.atom_sm_count;
}

std::string uuid_text(const uint8_t (&uuid)[16]) {
    std::string text;
    for (const uint8_t byte : uuid)
        text += format("%02x", static_cast<unsigned>(byte));
    return text;
}

// Leases that lie on the same atoms: of one device and family, in whatever process.
using MapKey = std::tuple<std::string, gcx_sm_family, uint32_t, uint32_t, uint32_t>;
MapKey map_key(const gcx_published_lease& lease) {
    return {uuid_text(lease.device_uuid), lease.family, lease.atom_count, lease.atom_sm_count,
            lease.last_atom_sm_count};
}

struct Device {
    const gcx_published_lease* first; // of its leases
    std::vector<std::size_t> leases;
};

std::vector<Device> devices_of(const std::vector<gcx_published_lease>& leases) {
    std::map<std::string, Device> by_uuid;
    std::vector<std::string> order;
    for (std::size_t i = 0; i < leases.size(); i++) {
        const std::string uuid = uuid_text(leases[i].device_uuid);
        const auto [found, fresh] = by_uuid.try_emplace(uuid, Device{&leases[i], {}});
        if (fresh)
            order.push_back(uuid);
        found->second.leases.push_back(i);
    }
    std::vector<Device> devices;
    for (const std::string& uuid : order)
        devices.push_back(by_uuid.at(uuid));
    return devices;
}

std::string short_text(const char* text, std::size_t most) {
    const std::string whole = visible(text);
    std::size_t characters = 0;
    for (std::size_t i = 0; i < whole.size(); i++) {
        if ((static_cast<unsigned char>(whole[i]) & 0xc0) == 0x80)
            continue;
        if (++characters > most)
            return whole.substr(0, i) + "~";
    }
    return whole + std::string(most - characters + 1, ' ');
}

// Draws the atoms of a family, an SM a cell, an atom a group.
class AtomMap {
  public:
    AtomMap(const Published& published, const Device& device, const MapKey& key) {
        for (const std::size_t index : device.leases) {
            const gcx_published_lease& lease = published.leases[index];
            if (map_key(lease) != key)
                continue;
            if (shape_ == nullptr)
                owners_.assign(lease.atom_count, kFree);
            shape_ = &lease;
            for (uint32_t atom = 0; atom < lease.atom_count; atom++) {
                if (holds(lease, atom))
                    owners_[atom] = owners_[atom] == kFree ? static_cast<int>(index) : kSeveral;
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
    uint32_t free_sms() const {
        uint32_t count = 0;
        for (uint32_t atom = 0; atom < owners_.size(); atom++)
            count += owners_[atom] == kFree ? atom_size(*shape_, atom) : 0;
        return count;
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
            return std::string(width, owner == kFree ? '.' : '+');
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

std::string table(const Published& published, const Device& device, bool colours) {
    std::string text = "      lease                 process                    pid   SMs  "
                       "streams  changes  held\n";
    for (const std::size_t index : device.leases) {
        const gcx_published_lease& lease = published.leases[index];
        const std::string letter = lease.waits != 0 ? "-" : partition_name(index);
        const std::string name =
            *lease.name != '\0' ? lease.name
                                : format("lease %llu", static_cast<unsigned long long>(lease.id));
        text += "  " + painted(format("%2s", letter.c_str()),
                               lease.waits != 0 ? kFree : static_cast<int>(index), colours);
        text += format(
            "  %s %s %8d %5s %8u %8llu  %s\n", short_text(name.c_str(), kMostName).c_str(),
            short_text(lease.process_name, kMostName).c_str(), lease.pid,
            lease.waits != 0 ? "" : std::to_string(lease.sm_count).c_str(), lease.stream_count,
            static_cast<unsigned long long>(lease.changes), what_it_is(lease).c_str());
    }
    return text;
}

std::string device_text(const Published& published, const Device& device, std::size_t columns,
                        bool colours) {
    std::string_view name = device.first->device_name;
    const bool marked = name.starts_with(kMark);
    if (marked)
        name.remove_prefix(kMark.size());
    std::string text =
        format("device %d: %s, %u SMs%s\n", device.first->device, visible(name).c_str(),
               device.first->device_sm_count, device.first->simulated != 0 ? ", SIMULATED" : "");
    std::vector<MapKey> keys;
    for (const std::size_t index : device.leases) {
        const MapKey key = map_key(published.leases[index]);
        if (std::find(keys.begin(), keys.end(), key) == keys.end())
            keys.push_back(key);
    }
    for (const MapKey& key : keys)
        text += AtomMap(published, device, key).text(columns, colours);
    return text + table(published, device, colours);
}

std::string nobody() {
    return "nobody publishes leases. A process of this user does so after gcx_publish_start, or if "
           "GCX_PUBLISH=1\n(or a name) is in its environment when it opens the driver\n";
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

Json atoms_json(const uint64_t (&atoms)[8]) {
    std::vector<uint32_t> found;
    for (uint32_t atom = 0; atom < 512; atom++) {
        if (has(atoms, atom))
            found.push_back(atom);
    }
    return found;
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
        .set("sm_count", lease.sm_count)
        .set("exclusive_sm_count", lease.exclusive_sm_count)
        .set("stream_count", lease.stream_count)
        .set("changes", lease.changes)
        .set("atom_count", lease.atom_count)
        .set("exclusive_atoms", atoms_json(lease.exclusive_atoms))
        .set("shared_atoms", atoms_json(lease.shared_atoms));
}

} // namespace

Published read_published() {
    Published published;
    const Warnings warnings(published.warnings);
    published.leases = list(gcx_published_lease_list);
    published.processes = list(gcx_published_process_list);
    return published;
}

Json published_json(const Published& published) {
    Json processes = Json::array();
    for (const gcx_published_process& process : published.processes)
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
    Json leases = Json::array();
    for (const gcx_published_lease& lease : published.leases)
        leases.add(lease_json(lease));
    Json warnings = Json::array();
    for (const std::string& warning : published.warnings)
        warnings.add(warning);
    const bool simulated =
        std::any_of(published.processes.begin(), published.processes.end(),
                    [](const gcx_published_process& process) { return process.simulated != 0; });
    Json json = Json::object();
    json.set("simulated", simulated)
        .set("processes", std::move(processes))
        .set("leases", std::move(leases))
        .set("warnings", std::move(warnings));
    return json;
}

std::string published_text(const Published& published, std::size_t columns, bool colours) {
    std::string text;
    for (const Device& device : devices_of(published.leases))
        text += device_text(published, device, columns, colours);
    text += idle_text(published);
    if (text.empty())
        text = nobody();
    for (const std::string& warning : published.warnings)
        text += "warning: " + visible(warning) + "\n";
    return text;
}

} // namespace gcx::cli
