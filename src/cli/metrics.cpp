#include "cli/metrics.hpp"

#include "cli/device.hpp"
#include "cli/output.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace gcx::cli {
namespace {

using Labels = std::vector<std::pair<const char*, std::string>>;

// Escapes what ends a label's value, in the text of a name that can have any bytes.
std::string label_text(std::string_view value) {
    std::string text = "\"";
    for (const char letter : visible(value)) {
        if (letter == '\\' || letter == '"')
            text += '\\';
        text += letter;
    }
    return text + "\"";
}

std::string text_of(const Labels& labels) {
    std::string text;
    for (const auto& [name, value] : labels)
        text += (text.empty() ? "{" : ",") + std::string(name) + "=" + label_text(value);
    return text.empty() ? "" : text + "}";
}

// A metric. Samples with equal labels are added up, since none may occur twice.
class Metric {
  public:
    enum class Type { gauge, counter };
    Metric(const char* name, Type type, const char* help, const char* unit = nullptr)
        : name_(name), type_(type), help_(help), unit_(unit) {}

    void add(const Labels& labels, uint64_t value) { samples_[text_of(labels)] += value; }

    // Returns nothing if there are no samples. The samples of a scale of 1e9 are billionths.
    std::string text(uint64_t scale = 1) const {
        if (samples_.empty())
            return "";
        const bool counter = type_ == Type::counter;
        std::string text = format("# TYPE %s %s\n", name_, counter ? "counter" : "gauge");
        if (unit_ != nullptr)
            text += format("# UNIT %s %s\n", name_, unit_);
        text += format("# HELP %s %s\n", name_, help_);
        for (const auto& [labels, value] : samples_) {
            text += name_ + std::string(counter ? "_total" : "") + labels + " " +
                    std::to_string(value / scale);
            if (scale != 1)
                text += format(".%09llu", static_cast<unsigned long long>(value % scale));
            text += "\n";
        }
        return text;
    }

  private:
    const char* name_;
    Type type_;
    const char* help_;
    const char* unit_;
    std::map<std::string, uint64_t> samples_; // by the text of their labels
};

std::string simulated_text(bool simulated) {
    return simulated ? "true" : "false";
}

template <class Of> // a lease or a reservation
Labels gpu_labels(const Of& of) {
    return {{"gpu", uuid_text(of.device_uuid)}, {"simulated", simulated_text(of.simulated != 0)}};
}

Labels operator+(Labels labels, const Labels& more) {
    labels.insert(labels.end(), more.begin(), more.end());
    return labels;
}

Labels process_labels(const gcx_published_process& process) {
    return {{"process", process.name},
            {"pid", std::to_string(process.pid)},
            {"simulated", simulated_text(process.simulated != 0)}};
}

std::string library_version_text(uint32_t version) {
    return format("%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
}

// The SMs that no listed lease has, by GPU. Leases of several processes can have the same atoms.
// Unknown for a GPU on which leases have atoms of several kinds.
class UnleasedSms {
  public:
    void add(const gcx_published_lease& lease) {
        Device& device = devices_[text_of(gpu_labels(lease))];
        const auto shape = std::tuple(lease.family, lease.atom_count, lease.atom_sm_count,
                                      lease.last_atom_sm_count, lease.device_sm_count);
        device.labels = gpu_labels(lease);
        device.one_shape = device.leases.empty() || (device.one_shape && device.shape == shape);
        device.shape = shape;
        device.leases.push_back(&lease);
    }
    void give(Metric& metric) const {
        for (const auto& [key, device] : devices_) {
            if (device.one_shape)
                metric.add(device.labels, device.unleased());
        }
    }

  private:
    struct Device {
        Labels labels;
        std::tuple<gcx_sm_family, uint32_t, uint32_t, uint32_t, uint32_t> shape;
        bool one_shape = false;
        std::vector<const gcx_published_lease*> leases;

        uint32_t unleased() const {
            const gcx_published_lease& first = *leases.front();
            uint32_t leased = 0;
            for (uint32_t atom = 0; atom < first.atom_count; atom++) {
                const auto has = [atom](const gcx_published_lease* lease) {
                    return ((lease->exclusive_atoms[atom / 64] | lease->shared_atoms[atom / 64]) >>
                                (atom % 64) &
                            1) != 0;
                };
                if (std::ranges::any_of(leases, has))
                    leased += atom + 1 == first.atom_count ? first.last_atom_sm_count
                                                           : first.atom_sm_count;
            }
            return first.device_sm_count - std::min(leased, first.device_sm_count);
        }
    };
    std::map<std::string, Device> devices_; // by the text of their labels
};

// The sizes of devices, which leases and reservations both tell.
template <class List>
void add_devices(std::map<std::string, std::pair<Labels, uint32_t>>& devices, const List& list) {
    for (const auto& each : list) {
        const Labels labels =
            gpu_labels(each) + Labels{{"device_name", without_mark(each.device_name)}};
        devices[text_of(labels)] = {labels, each.device_sm_count};
    }
}

std::string device_metrics(const Published& published) {
    std::map<std::string, std::pair<Labels, uint32_t>> devices;
    add_devices(devices, published.leases);
    add_devices(devices, published.reservations);
    Metric sms("gcx_device_sms", Metric::Type::gauge,
               "SMs of a GPU on which there is a published lease or a reservation.");
    for (const auto& [key, device] : devices)
        sms.add(device.first, device.second);
    return sms.text();
}

std::string reservation_metrics(const Reservations& reservations) {
    Metric reserved("gcx_reserved_sms", Metric::Type::gauge,
                    "SMs of reservations by name. Those inside another reservation have the label "
                    "nested=\"true\" and count in the outer one too.");
    Metric free("gcx_unreserved_sms", Metric::Type::gauge,
                "SMs of a GPU that no reservation has; no sample if that is unknown.");
    Metric waiting("gcx_waiting_reservations", Metric::Type::gauge,
                   "Requests for reservations that wait for SMs, by name.");
    std::map<std::string, std::pair<Labels, std::optional<uint32_t>>> balances;
    for (const gcx_live_reservation& each : reservations) {
        const Labels labels = gpu_labels(each) + Labels{{"name", each.name}};
        if (each.waits != 0)
            waiting.add(labels, 1);
        else
            reserved.add(labels +
                             Labels{{"nested", has_parent(reservations, each) ? "true" : "false"}},
                         each.sm_count);
        // Those that wait are last: the first of a device tells what its atoms are.
        balances.emplace(text_of(gpu_labels(each)),
                         std::pair(gpu_labels(each), unreserved_sms(reservations, each)));
    }
    for (const auto& [key, balance] : balances) {
        if (balance.second)
            free.add(balance.first, *balance.second);
    }
    return reserved.text() + free.text() + waiting.text();
}

std::string lease_metrics(const std::vector<gcx_published_lease>& leases) {
    Metric leased("gcx_leased_sms", Metric::Type::gauge,
                  "SMs of published leases by process and name. With sharing=\"shared\" other "
                  "leases can have them too. Leases of two processes can have the same SMs.");
    Metric changes("gcx_lease_changes", Metric::Type::gauge,
                   "How often the SMs of the leases that exist have changed.");
    Metric free("gcx_unleased_sms", Metric::Type::gauge,
                "SMs of a GPU that no published lease has; no sample if that is unknown.");
    Metric waiting("gcx_waiting_leases", Metric::Type::gauge,
                   "Requests for leases that wait for SMs, by process and name.");
    UnleasedSms unleased;
    for (const gcx_published_lease& lease : leases) {
        const Labels labels = gpu_labels(lease) + Labels{{"process", lease.process_name},
                                                         {"pid", std::to_string(lease.pid)},
                                                         {"name", lease.name}};
        unleased.add(lease);
        if (lease.waits != 0) {
            waiting.add(labels, 1);
            continue;
        }
        changes.add(labels, lease.changes);
        const uint32_t shared = lease.sm_count - lease.exclusive_sm_count;
        if ((lease.flags & GCX_LEASE_SHARED) == 0 || lease.exclusive_sm_count != 0)
            leased.add(labels + Labels{{"sharing", "exclusive"}}, lease.exclusive_sm_count);
        if ((lease.flags & GCX_LEASE_SHARED) != 0)
            leased.add(labels + Labels{{"sharing", "shared"}}, shared);
    }
    unleased.give(free);
    return leased.text() + free.text() + waiting.text() + changes.text();
}

std::string process_metrics(const std::vector<gcx_published_process>& processes) {
    using enum Metric::Type;
    constexpr uint64_t kNanoseconds = 1'000'000'000;
    Metric info("gcx_process_info", gauge, "1 for each process that publishes its leases.");
    Metric resizes("gcx_resizes", counter, "Operations that changed the SMs of leases.");
    Metric waits("gcx_waits", counter, "Requests for leases that waited or wait for SMs.");
    Metric waited("gcx_waited_seconds", counter,
                  "Time that requests for leases waited; those that wait now count later.",
                  "seconds");
    Metric contexts("gcx_contexts", gauge, "Green contexts that exist, in use or cached.");
    Metric made("gcx_contexts_made", counter, "Green contexts created.");
    Metric evicted("gcx_contexts_evicted", counter,
                   "Green contexts destroyed by the cache's limit and by trims.");
    Metric unlisted("gcx_unlisted_leases", gauge, "Leases beyond the 512 that a process lists.");
    for (const gcx_published_process& process : processes) {
        const Labels labels = process_labels(process);
        info.add(labels + Labels{{"gcx_version", library_version_text(process.library)},
                                 {"driver_version", version_text(process.driver_version)}},
                 1);
        resizes.add(labels, process.resize_count);
        waits.add(labels, process.wait_count);
        waited.add(labels, process.waited_ns);
        contexts.add(labels, process.context_count);
        made.add(labels, process.contexts_made);
        evicted.add(labels, process.contexts_evicted);
        unlisted.add(labels, process.unlisted_count);
    }
    return info.text() + resizes.text() + waits.text() + waited.text(kNanoseconds) +
           contexts.text() + made.text() + evicted.text() + unlisted.text();
}

} // namespace

std::string metrics_text(const Published& published) {
    Metric build("gcx_build_info", Metric::Type::gauge, "1, with the version of this command.");
    build.add({{"version", GCX_VERSION_TEXT}}, 1);
    Metric unread("gcx_unread_files", Metric::Type::gauge,
                  "Warnings about files of processes that could not be read.");
    unread.add({}, published.warnings.size());
    return build.text() + unread.text() + device_metrics(published) +
           reservation_metrics(published.reservations) + lease_metrics(published.leases) +
           process_metrics(published.processes) + "# EOF\n";
}

} // namespace gcx::cli
