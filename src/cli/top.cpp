// gcx top: the leases of processes that publish them, as a live view, a text, JSON or metrics.
#include "cli/args.hpp"
#include "cli/device.hpp"
#include "cli/output.hpp"
#include "cli/ps.hpp"
#include "cli/sm_map.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace gcx::cli {
namespace {

// What other processes publish and reserve.
struct Published {
    std::vector<gcx_published_process> processes;
    std::vector<gcx_published_lease> leases;
    Reservations reservations;
    std::vector<std::string> warnings; // of files that were not read
};

Published read_published() {
    Published published;
    const Warnings warnings(published.warnings);
    published.leases = published_leases();
    published.processes = published_processes();
    try {
        published.reservations = live_reservations();
    } catch (const error& error) {
        published.warnings.push_back(message_of(error));
    }
    return published;
}

bool has(const uint64_t (&atoms)[8], uint32_t atom) {
    return (atoms[atom / 64] >> (atom % 64) & 1) != 0;
}

bool has_atom(const gcx_published_lease& lease, uint32_t atom) {
    return has(lease.exclusive_atoms, atom) || has(lease.shared_atoms, atom);
}

uint32_t atom_size(const gcx_published_lease& lease, uint32_t atom) {
    return atom + 1 == lease.atom_count ? lease.last_atom_sm_count : lease.atom_sm_count;
}

// The atoms of a device that a lease is made of: leases with the same share a map.
using MapKey = std::tuple<gcx_sm_family, uint32_t, uint32_t, uint32_t>;
MapKey map_key(const gcx_published_lease& lease) {
    return {lease.family, lease.atom_count, lease.atom_sm_count, lease.last_atom_sm_count};
}

// A lease with the number of its letter, kNone if it waits.
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
        auto found = std::ranges::find_if(devices, same);
        if (found == devices.end())
            found = devices.emplace(devices.end());
        found->leases.push_back({&lease, lease.waits != 0 ? SmMap::kNone : numbers++});
    }
    return devices;
}

// Draws the atoms of a family: a cell for each SM, a group for each atom.
class AtomMap {
  public:
    AtomMap(const Device& device, const MapKey& key) {
        for (const auto& [lease, number] : device.leases) {
            if (map_key(*lease) != key)
                continue;
            if (shape_ == nullptr)
                owners_.assign(lease->atom_count, SmMap::kNone);
            shape_ = lease;
            for (uint32_t atom = 0; atom < lease->atom_count; atom++) {
                if (has_atom(*lease, atom))
                    owners_[atom] = owners_[atom] == SmMap::kNone ? number : SmMap::kSeveral;
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
    // Repeats the lease's letters, one cell for each SM.
    std::string cells(uint32_t atom) const {
        const int owner = owners_[atom];
        const std::size_t width = atom_size(*shape_, atom);
        if (owner < 0)
            return std::string(width, owner == SmMap::kNone ? '.' : '+');
        const std::string name = partition_name(static_cast<std::size_t>(owner));
        std::string text;
        while (text.size() < width)
            text += name;
        return text.substr(0, std::max(width, name.size()));
    }

    const gcx_published_lease* shape_ = nullptr;
    std::vector<int> owners_; // by atom
};

std::string state_text(const gcx_published_lease& lease) {
    if (lease.waits != 0)
        return lease.sm_count == GCX_REST ? "waits for the rest"
                                          : format("waits for %u", lease.sm_count);
    if ((lease.flags & GCX_LEASE_SHARED) == 0)
        return "exclusive";
    return lease.exclusive_sm_count == 0 ? "shared"
                                         : format("shared, %u exclusive", lease.exclusive_sm_count);
}

std::string table(const Device& device, bool colours) {
    std::string text =
        "      lease               SMs  state               streams  changes  process   "
        "              pid\n";
    for (const auto& [lease, number] : device.leases) {
        const bool waits = lease->waits != 0;
        const std::string letter = waits ? "-" : partition_name(static_cast<std::size_t>(number));
        const std::string name =
            *lease->name != '\0' ? lease->name
                                 : format("lease %llu", static_cast<unsigned long long>(lease->id));
        text += "  " + painted(format("%2s", letter.c_str()), number, colours);
        text += format("  %s %5s  %s %7u %8llu  %s %8d\n", name_column(name).c_str(),
                       waits ? "" : std::to_string(lease->sm_count).c_str(),
                       padded(state_text(*lease), 18).c_str(), lease->stream_count,
                       static_cast<unsigned long long>(lease->changes),
                       name_column(lease->process_name).c_str(), lease->pid);
    }
    return text;
}

std::string device_text(const Device& device, std::size_t columns, bool colours) {
    const gcx_published_lease& first = device.first();
    std::string text = format("device %d: %s, %u SMs%s\n", first.device,
                              visible(without_mark(first.device_name)).c_str(),
                              first.device_sm_count, first.simulated != 0 ? ", SIMULATED" : "");
    std::vector<MapKey> keys;
    for (const Shown& shown : device.leases) {
        const MapKey key = map_key(*shown.lease);
        if (std::ranges::find(keys, key) == keys.end())
            keys.push_back(key);
    }
    for (const MapKey& key : keys)
        text += AtomMap(device, key).text(columns, colours);
    return text + table(device, colours);
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

std::string text_of(const Published& published, std::size_t columns, bool colours) {
    std::string text;
    for (const Device& device : devices_of(published.leases))
        text += device_text(device, columns, colours);
    text += idle_text(published);
    if (const std::string reservations = reservations_text(published.reservations);
        !reservations.empty())
        text += (text.empty() ? "" : "\n") + ("reservations of all processes:\n" + reservations);
    if (text.empty())
        text = "no process publishes leases. A process of this user does if GCX_PUBLISH=1 (or a "
               "name) is in\nits environment when it opens the driver, or if it starts publishing "
               "by itself\n";
    for (const std::string& warning : published.warnings)
        text += "warning: " + visible(warning) + "\n";
    return text;
}

Json lease_json(const gcx_published_lease& lease) {
    return Json::object()
        .set("process", id_text(lease.process))
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

Json process_json(const gcx_published_process& process) {
    return Json::object()
        .set("process", id_text(process.process))
        .set("pid", process.pid)
        .set("name", process.name)
        .set("simulated", process.simulated != 0)
        .set("driver_version", version_text(process.driver_version))
        .set("since_ms", process.since_ms)
        .set("lease_count", process.lease_count)
        .set("unlisted_count", process.unlisted_count);
}

Json json_of(const Published& published) {
    const auto is_simulated = [](const auto& each) { return each.simulated != 0; };
    const bool simulated = std::ranges::any_of(published.processes, is_simulated) ||
                           std::ranges::any_of(published.reservations, is_simulated);
    return Json::object()
        .set("simulated", simulated)
        .set("processes", Json::array(published.processes, process_json))
        .set("leases", Json::array(published.leases, lease_json))
        .set("reservations", reservations_json(published.reservations))
        .set("warnings", published.warnings);
}

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

std::string labels_text(const Labels& labels) {
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

    void add(const Labels& labels, uint64_t value) { samples_[labels_text(labels)] += value; }

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

// The SMs that no listed lease has, by GPU. Leases of several processes can have the same atoms.
// Unknown for a GPU on which leases have atoms of several kinds.
class UnleasedSms {
  public:
    void add(const gcx_published_lease& lease) {
        Device& device = devices_[labels_text(gpu_labels(lease))];
        const auto shape = std::pair(map_key(lease), lease.device_sm_count);
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
        std::pair<MapKey, uint32_t> shape;
        bool one_shape = false;
        std::vector<const gcx_published_lease*> leases;

        uint32_t unleased() const {
            const gcx_published_lease& first = *leases.front();
            uint32_t leased = 0;
            for (uint32_t atom = 0; atom < first.atom_count; atom++) {
                const auto has = [atom](const auto* lease) { return has_atom(*lease, atom); };
                if (std::ranges::any_of(leases, has))
                    leased += atom_size(first, atom);
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
        devices[labels_text(labels)] = {labels, each.device_sm_count};
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
        balances.emplace(labels_text(gpu_labels(each)),
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
    Metric created("gcx_contexts_created", counter, "Green contexts created.");
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
        created.add(labels, process.contexts_created);
        evicted.add(labels, process.contexts_evicted);
        unlisted.add(labels, process.unlisted_count);
    }
    return info.text() + resizes.text() + waits.text() + waited.text(kNanoseconds) +
           contexts.text() + created.text() + evicted.text() + unlisted.text();
}

// Returns the exposition in the text format of OpenMetrics 1.0. It has only types and names that
// Prometheus's own text format has too, which textfile collectors read.
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

// The view in the terminal, on its alternate screen.
class LiveView {
  public:
    explicit LiveView(uint32_t seconds) : interval_(seconds) {
        // Blocked, so that they are read like keys and the terminal is restored before they act.
        sigset_t signals;
        sigemptyset(&signals);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH})
            sigaddset(&signals, signal);
        pthread_sigmask(SIG_BLOCK, &signals, &mask_before_);
        signals_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
        // O_NONBLOCK would affect the other programs that have the same open file. Opening it again
        // fails if the terminal belongs to another user, as after su.
        output_ = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (output_ < 0)
            output_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
        enter();
    }
    ~LiveView() {
        leave();
        close(signals_);
        close(output_);
        pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    }
    LiveView(const LiveView&) = delete;
    LiveView& operator=(const LiveView&) = delete;

    // Updates until q, Ctrl-C or a signal that ends programs. Returns false if the terminal is
    // gone.
    bool run() {
        while (!ended_) {
            if (!draw())
                return false;
            wait();
        }
        return !gone_;
    }
    // Returns the signal that ended it, 0 for none and for SIGINT, which is the same as q.
    int signal() const { return signal_; }

  private:
    using Clock = std::chrono::steady_clock;

    void enter() {
        termios keys = settings_before_;
        keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        keys.c_cc[VMIN] = 1;
        keys.c_cc[VTIME] = 0;
        if (has_keys_)
            tcsetattr(STDIN_FILENO, TCSANOW, &keys);
        write_all("\033[?1049h\033[?25l\033[?7l"); // other screen, no cursor, no line wrap
    }
    void leave() {
        write_all("\033[?7h\033[?25h\033[?1049l");
        if (has_keys_)
            tcsetattr(STDIN_FILENO, TCSANOW, &settings_before_);
    }

    // Waits for a terminal that takes no output until a signal arrives, at the end for 1 s. Returns
    // false if the terminal is gone.
    bool write_all(std::string_view text) const {
        while (!text.empty()) {
            const ssize_t wrote = write(output_, text.data(), text.size());
            if (wrote < 0 && errno != EINTR && errno != EAGAIN)
                return false;
            if (wrote > 0)
                text.remove_prefix(static_cast<std::size_t>(wrote));
            std::array<pollfd, 2> files = {
                {{output_, POLLOUT, 0}, {ended_ ? -1 : signals_, POLLIN, 0}}};
            if (wrote < 0 && (poll(files.data(), files.size(), ended_ ? 1000 : -1) <= 0 ||
                              files[1].revents != 0))
                break;
        }
        return true;
    }

    // Draws the lines that fit, each over the line before.
    bool draw() const {
        winsize size{};
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
            size = {.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
        const std::string frame = format("gcx top: every %lld s; q ends it\n",
                                         static_cast<long long>(interval_.count())) +
                                  text_of(read_published(), size.ws_col, colours_);
        std::string_view rest = frame;
        std::string drawn = "\033[H";
        for (unsigned row = 0; row < size.ws_row && !rest.empty(); row++) {
            const std::size_t end = std::min(rest.find('\n'), rest.size());
            drawn += row == 0 ? "" : "\r\n";
            (drawn += rest.substr(0, end)) += "\033[0m\033[K";
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        return write_all(drawn + "\033[J");
    }

    // Waits for the next frame, or for a signal that needs one sooner.
    void wait() {
        const auto until = Clock::now() + interval_;
        bool redraw = false;
        while (!ended_ && !redraw) {
            const auto left =
                std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
            if (left.count() <= 0)
                return;
            std::array<pollfd, 3> files = {{{signals_, POLLIN, 0},
                                            {has_keys_ ? STDIN_FILENO : -1, POLLIN, 0},
                                            {output_, 0, 0}}};
            poll(files.data(), files.size(), static_cast<int>(left.count()));
            signalfd_siginfo info{};
            while (read(signals_, &info, sizeof info) == sizeof info)
                redraw = take_signal(static_cast<int>(info.ssi_signo)) || redraw;
            if (files[1].revents != 0)
                read_keys();
            if (files[2].revents != 0) // it hung up
                ended_ = gone_ = true;
        }
    }

    // Returns whether the signal needs a new frame.
    bool take_signal(int signal) {
        if (signal == SIGWINCH)
            return true;
        if (signal == SIGTSTP) {
            leave();
            raise(SIGSTOP);
            enter();
            return true;
        }
        ended_ = true;
        gone_ = signal == SIGHUP;
        signal_ = signal == SIGINT ? 0 : signal;
        return false;
    }

    void read_keys() {
        std::array<char, 64> keys{};
        const ssize_t count = read(STDIN_FILENO, keys.data(), keys.size());
        if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) // it hung up
            ended_ = gone_ = true;
        constexpr char kInterrupt = 3;
        for (const char key :
             std::span(keys).first(static_cast<std::size_t>(std::max<ssize_t>(count, 0))))
            ended_ = ended_ || key == 'q' || key == 'Q' || key == kInterrupt;
    }

    std::chrono::seconds interval_;
    bool colours_ = wants_colours();
    termios settings_before_{};
    bool has_keys_ = tcgetattr(STDIN_FILENO, &settings_before_) == 0;
    sigset_t mask_before_{};
    int signals_ = -1;
    int output_ = -1;
    bool ended_ = false;
    bool gone_ = false;
    int signal_ = 0;
};

bool show_live(uint32_t seconds) {
    bool shown = false;
    int signal = 0;
    {
        LiveView view(seconds);
        shown = view.run();
        signal = view.signal();
    }
    if (signal != 0)
        raise(signal); // ends the program as if the signal had not been blocked
    return shown;
}

} // namespace

Report run_top(const Arguments& arguments) {
    constexpr std::size_t kColumns = 100; // where there is no terminal
    const uint32_t seconds = arguments.number("--interval", 1, 3600, 1);
    const bool metrics = arguments.has("--metrics");
    if (metrics && arguments.has("--json"))
        throw UsageError("--metrics prints OpenMetrics text; give it without --json");
    const bool once = metrics || arguments.has("--once") || arguments.has("--json");
    Report report;
    if (!once && is_terminal()) {
        report.show_live = [seconds] { return show_live(seconds); };
        return report;
    }
    const Published published = read_published();
    report.json = json_of(published);
    report.text = metrics ? metrics_text(published) : text_of(published, kColumns, wants_colours());
    return report;
}

} // namespace gcx::cli
