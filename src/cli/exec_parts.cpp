#include "cli/exec_parts.hpp"

#include "cli/checked.hpp"
#include "cli/chosen_driver.hpp"
#include "cli/families.hpp"
#include "cli/library_message.hpp"
#include "cli/listing.hpp"
#include "cli/reservations_view.hpp"
#include "cli/text.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

namespace gcx::cli {
namespace {

constexpr std::size_t kLeastDigits = 4; // of the beginning of a UUID

using Clock = std::chrono::steady_clock;

uint32_t milliseconds_until(Clock::time_point end) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    return static_cast<uint32_t>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

int32_t device_count() {
    int32_t count = 0;
    check(gcx_device_get_count(&count));
    return count;
}

std::string hex_of(const gcx_device_info& device) {
    std::string text;
    for (const uint8_t byte : device.uuid)
        text += format("%02x", static_cast<unsigned>(byte));
    return text;
}

// The hex digits of "GPU-1b2c..." or "MIG-...", or of a UUID without that; empty if it is none.
std::string digits_of(std::string text) {
    if (text.starts_with("GPU-") || text.starts_with("MIG-"))
        text.erase(0, 4);
    std::erase(text, '-');
    for (char& c : text) {
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        if (std::strchr("0123456789abcdef", c) == nullptr)
            return "";
    }
    return text;
}

int32_t device_named(const std::string& name, int32_t count) {
    if (const auto ordinal = parse_number(name); ordinal && name.size() < kLeastDigits) {
        if (*ordinal >= static_cast<uint32_t>(count))
            throw Failure(GCX_ERROR_INVALID_DEVICE,
                          format("there is no device %s; this driver shows %s, from 0 on",
                                 name.c_str(),
                                 count_of(static_cast<uint64_t>(count), "device").c_str()));
        return static_cast<int32_t>(*ordinal);
    }
    const std::string digits = digits_of(name);
    if (digits.size() < kLeastDigits)
        throw UsageError(format("device %s: that is no ordinal and no UUID of %zu digits and more, "
                                "e.g. 0 or GPU-1b2c3d4e",
                                name.c_str(), kLeastDigits));
    std::vector<int32_t> found;
    for (int32_t device = 0; device < count; device++) {
        if (hex_of(device_info(device)).starts_with(digits))
            found.push_back(device);
    }
    if (found.size() != 1)
        throw Failure(GCX_ERROR_INVALID_DEVICE,
                      format("%s of this driver's devices has the UUID %s; gcx info lists them",
                             found.empty() ? "none" : "more than one", name.c_str()));
    return found[0];
}

const interpose::DevicePart* part_around(const interpose::Plan* around,
                                         const gcx_device_info& device) {
    return around == nullptr ? nullptr : around->find(device.uuid);
}

const FamilyName& family_around(const interpose::DevicePart& around, const FamilyName* wanted) {
    const auto* const found =
        std::find_if(family_names.begin(), family_names.end(),
                     [&](const FamilyName& name) { return name.family == around.family; });
    if (wanted != nullptr && wanted != found)
        throw Failure(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                      format("gcx exec runs in a partition of the family %s already, and can give "
                             "parts of it alone: leave --family %s away",
                             std::string(found->name).c_str(), std::string(wanted->name).c_str()));
    return *found;
}

Family family_of(int32_t device, const FamilyName& name) {
    auto family = find_family(device, name);
    if (!family)
        throw Failure(GCX_ERROR_NOT_SUPPORTED, library_message());
    return std::move(*family);
}

gcx_resource sms_around(const Family& family, const interpose::DevicePart& around, int32_t device) {
    if (around.family_atoms != family.atoms.size())
        throw Failure(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                      format("device %d has %zu atoms, the partition around was made on one of %u: "
                             "the driver or its settings changed",
                             device, family.atoms.size(), around.family_atoms));
    gcx_resource all = family.atoms[around.atoms[0]];
    for (const uint32_t atom : around.atoms)
        check(gcx_resource_union(&all, &family.atoms[atom], &all));
    return all;
}

std::vector<uint32_t> atoms_of(const gcx_resource& sms, const Family& family) {
    std::vector<uint32_t> atoms;
    for (uint32_t atom = 0; atom < family.atoms.size(); atom++) {
        gcx_resource common;
        check(gcx_resource_intersect(&sms, &family.atoms[atom], &common));
        if (resource_info(common).sm_count != 0)
            atoms.push_back(atom);
    }
    return atoms;
}

// Where SMs are reserved: a device, or the partition of it that this command runs in.
struct Reach {
    std::string label;
    gcx_device_info device;
    uint32_t sm_count;
    gcx_sm_family family;
    uint64_t parent = 0; // the id of the partition's reservation
    std::optional<std::string> folder;
};

Reach reach_of(int32_t device, uint32_t sm_count, gcx_sm_family family,
               const interpose::DevicePart* around) {
    Reach reach{.label = format("device %d", device),
                .device = device_info(device),
                .sm_count = sm_count,
                .family = family,
                .parent = 0,
                .folder = std::nullopt};
    if (around == nullptr)
        return reach;
    reach.label = "this partition of " + reach.label;
    const std::string& token = around->token;
    reach.folder = token.substr(0, token.rfind('/'));
    reach.parent = std::strtoull(token.c_str() + token.rfind('-') + 1, nullptr, 16);
    return reach;
}

std::string process_text(const gcx_live_reservation& reservation) {
    return reservation.pid != 0
               ? format("process %d (%s)", reservation.pid, reservation.process_name)
               : format("a process that isn't visible here (%s)", reservation.process_name);
}

// "132 SMs, of which 68 are free; "train" of process 12 (python) has 64": of the reservations
// there. Free are those that a request like this one can have.
std::string reservations_text(const Reach& reach) {
    std::string text;
    uint32_t reserved = 0;
    uint32_t ahead = 0; // of those that wait
    bool known = true;  // which SMs the others leave
    bool own_found = false;
    const std::vector<gcx_live_reservation> reservations =
        read_reservations(reach.folder ? reach.folder->c_str() : nullptr);
    for (const gcx_live_reservation& reservation : reservations) {
        if (!std::equal(std::begin(reservation.device_uuid), std::end(reservation.device_uuid),
                        reach.device.uuid) ||
            (reservation.parent != reach.parent &&
             (reach.parent != 0 || has_parent(reservations, reservation))))
            continue;
        if (reservation.waits != 0) {
            // In the order in which they are served; this process may be one of them.
            own_found = own_found || reservation.pid == getpid();
            ahead += own_found ? 0 : 1;
            continue;
        }
        known = known && !differs(reservation, reach.family);
        reserved += reservation.sm_count;
        const std::string name =
            *reservation.name != '\0' ? format("\"%s\" of ", reservation.name) : "";
        text += format("; %s%s has %u", name.c_str(), process_text(reservation).c_str(),
                       reservation.sm_count);
        if (reservation.family != reach.family)
            text += " in the " + family_text(reservation.family) +
                    " family, which leaves none in the " + family_text(reach.family) + " family";
        else if (differs(reservation, reach.family))
            text += " with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, which leaves none that are known";
    }
    if (ahead != 0)
        text += format("; %u wait%s ahead", ahead, ahead == 1 ? "s" : "");
    const uint32_t free = known ? reach.sm_count - std::min(reserved, reach.sm_count) : 0;
    return format("%u SMs, of which %u are free", reach.sm_count, free) + visible(text);
}

// Says on standard error what gcx exec waits for, at once and every 10 s, until it ends.
class WaitNotice {
  public:
    explicit WaitNotice(const Reach& reach)
        : thread_([reach](const std::stop_token& stop) {
              std::mutex mutex;
              std::condition_variable_any ended;
              std::unique_lock lock(mutex);
              do {
                  std::fprintf(stderr, "gcx exec: %swaiting for SMs of %s: it has %s\n",
                               is_simulated() ? "SIMULATED: " : "", reach.label.c_str(),
                               reservations_text(reach).c_str());
              } while (!ended.wait_for(lock, stop, std::chrono::seconds(10),
                                       [&] { return stop.stop_requested(); }));
          }) {}

  private:
    std::jthread thread_;
};

// Ends the process at signals that end one. While it waits as a container's first process, which
// has no default actions, nothing else would.
class EndAtSignals {
  public:
    EndAtSignals() {
        for (std::size_t i = 0; i < kSignals.size(); i++) {
            sigaction(kSignals[i], nullptr, &before_[i]);
            if (before_[i].sa_handler != SIG_DFL)
                continue;
            struct sigaction end{};
            end.sa_handler = [](int signal) {
                raise(signal); // its default action, which a first process has not
                _exit(128 + signal);
            };
            end.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
            sigaction(kSignals[i], &end, nullptr);
        }
    }
    ~EndAtSignals() {
        for (std::size_t i = 0; i < kSignals.size(); i++)
            sigaction(kSignals[i], &before_[i], nullptr);
    }
    EndAtSignals(const EndAtSignals&) = delete;
    EndAtSignals& operator=(const EndAtSignals&) = delete;

  private:
    static constexpr std::array kSignals = {SIGTERM, SIGINT, SIGHUP};
    std::array<struct sigaction, kSignals.size()> before_{};
};

std::string refusal_text(const ExecPart& part, const ReservationRequest& wish, const Reach& reach) {
    const std::string requested = part.asked == GCX_REST ? "the rest" : count_of(part.asked, "SM");
    const std::string waited = wish.timeout.count() == 0
                                   ? ""
                                   : format("timed out after %lld s: ",
                                            static_cast<long long>(wish.timeout.count() / 1000));
    return format("%s%s of %s requested, which has %s; request fewer, %s, or take "
                  "SMs that others may have as well with --shared",
                  waited.c_str(), requested.c_str(), reach.label.c_str(),
                  reservations_text(reach).c_str(),
                  waited.empty() ? "wait for them with --wait SECONDS" : "wait longer");
}

// Takes the SMs from all processes that ask; they are the command's until its last process ends.
gcx_resource reservation_sms(ExecPart& part, const FamilyName& name, const ReservationRequest& wish,
                             const interpose::DevicePart* around, Clock::time_point wait_end) {
    gcx_reservation_params params = GCX_RESERVATION_PARAMS_INIT;
    params.flags = GCX_RESERVATION_INHERIT;
    params.family = name.family;
    params.name = wish.name.c_str();
    const Reach reach = reach_of(part.device, part.available, name.family, around);
    gcx_reservation reservation = nullptr;
    gcx_result result = gcx_reservation_acquire(part.device, part.asked, &params, &reservation);
    if (result == GCX_ERROR_ALREADY_ACQUIRED && wish.timeout.count() != 0) {
        std::optional<WaitNotice> notice;
        if (!wish.quiet)
            notice.emplace(reach);
        params.timeout_ms = milliseconds_until(wait_end);
        result = gcx_reservation_acquire(part.device, part.asked, &params, &reservation);
    }
    if (result == GCX_ERROR_ALREADY_ACQUIRED)
        throw Failure(result, refusal_text(part, wish, reach));
    check(result);
    gcx_resource sms;
    check(gcx_reservation_get_resource(reservation, &sms));
    std::string token(GCX_MAX_RESERVATION_TOKEN, '\0');
    check(gcx_reservation_get_token(reservation, token.data(), GCX_MAX_RESERVATION_TOKEN));
    token.resize(std::strlen(token.c_str()));
    part.plan.token = std::move(token);
    part.held = true;
    part.nested = around != nullptr;
    return sms;
}

gcx_resource split_off(const gcx_resource& all, uint32_t asked) {
    gcx_sm_request request{};
    request.sm_count = asked;
    gcx_resource sms;
    check(gcx_sm_split(&all, &request, 1, GCX_SPLIT_DEFAULT, &sms, nullptr));
    return sms;
}

// What a split of these SMs gives for a count; 0 if there is none.
uint32_t planned(const gcx_resource& all, uint32_t sm_count) {
    const gcx_sm_request request{.sm_count = sm_count};
    uint32_t given = 0;
    return gcx_sm_plan(&all, &request, 1, GCX_SPLIT_DEFAULT, &given, nullptr) == GCX_SUCCESS ? given
                                                                                             : 0;
}

// "the nearest sizes that can be given are 8 and 12".
std::string nearest_sizes(const gcx_resource& all, uint32_t sm_count) {
    uint32_t below = sm_count;
    while (below != 0 && planned(all, below) != below)
        below--;
    const uint32_t above = planned(all, sm_count + 1);
    if (below == 0 || above == 0)
        return format("the nearest size that can be given is %u", below != 0 ? below : above);
    return format("the nearest sizes that can be given are %u and %u", below, above);
}

// The share in SMs, or GCX_REST. Throws if these can't be divided so that it is exactly that.
uint32_t exact_count(const SmShare& share, const gcx_resource& all, const FamilyName& family,
                     const std::string& label) {
    const uint32_t sm_count = resource_info(all).sm_count;
    double requested = share.number;
    if (share.unit == SmShare::Unit::kPercent)
        requested = static_cast<double>(sm_count) * share.number / 100;
    if (share.unit == SmShare::Unit::kRest)
        return GCX_REST;
    if (requested > sm_count)
        return share.number; // which is refused later
    const auto whole = static_cast<uint32_t>(requested);
    if (static_cast<double>(whole) == requested && planned(all, whole) == whole)
        return whole;
    const std::string wanted =
        share.unit == SmShare::Unit::kPercent
            ? format("%u%% of %s (%g)", share.number, count_of(sm_count, "SM").c_str(), requested)
            : count_of(share.number, "SM");
    throw Failure(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                  format("--exact: %s can't give exactly %s in the %s family; %s", label.c_str(),
                         wanted.c_str(), std::string(family.name).c_str(),
                         nearest_sizes(all, whole).c_str()));
}

gcx_mps_state mps_state(int32_t device) {
    gcx_mps_info info = GCX_MPS_INFO_INIT;
    check(gcx_mps_get_info(device, &info));
    return info.state;
}

ExecPart find_part(int32_t device, const SmShare& share, const FamilyName* wanted, bool exact,
                   const interpose::Plan* plan_around, const ReservationRequest& reservation,
                   Clock::time_point wait_end) {
    const gcx_device_info info = device_info(device);
    const interpose::DevicePart* const around = part_around(plan_around, info);
    const FamilyName& name = around != nullptr   ? family_around(*around, wanted)
                             : wanted != nullptr ? *wanted
                                                 : family_names[0];
    const Family family = family_of(device, name);
    const gcx_resource all = around != nullptr ? sms_around(family, *around, device) : family.all;

    ExecPart part;
    part.device = device;
    part.available = resource_info(all).sm_count;
    const std::string label = reach_of(device, part.available, name.family, around).label;
    part.asked = exact ? exact_count(share, all, name, label)
                       : share.of(part.available, family.sm_counts.front());
    part.mps = mps_state(device);
    if (around != nullptr)
        part.plan.token = around->token;
    // Of what others may have as well nothing can be reserved.
    const bool own = reservation.wanted && (around == nullptr || !around->token.empty());
    const gcx_resource sms = own ? reservation_sms(part, name, reservation, around, wait_end)
                                 : split_off(all, part.asked);
    part.plan.family = name.family;
    part.plan.sm_count = resource_info(sms).sm_count;
    if (exact && part.asked != GCX_REST && part.plan.sm_count != part.asked)
        throw Failure(GCX_ERROR_ALREADY_ACQUIRED,
                      format("--exact: what others leave of %s can't give exactly %s now; %s",
                             label.c_str(), count_of(part.asked, "SM").c_str(),
                             nearest_sizes(sms, part.asked).c_str()));
    part.plan.atoms = atoms_of(sms, family);
    part.plan.family_atoms = static_cast<uint32_t>(family.atoms.size());
    std::copy(std::begin(info.uuid), std::end(info.uuid), part.plan.uuid.begin());
    return part;
}

// By device.
std::map<int32_t, SmShare> shares_by_device(const ExecLayout& layout) {
    std::map<int32_t, SmShare> shares;
    const int32_t count = device_count();
    for (int32_t device = 0; layout.of_each && device < count; device++)
        shares[device] = *layout.of_each;
    for (const DeviceShare& wanted : layout.devices) {
        const int32_t device = device_named(wanted.device, count);
        if (!shares.emplace(device, wanted.share).second)
            throw UsageError(format("device %s is device %d, which is given already",
                                    wanted.device.c_str(), device));
    }
    return shares;
}

} // namespace

std::vector<ExecPart> find_parts(const ExecLayout& layout, const FamilyName* family, bool exact,
                                 const interpose::Plan* around,
                                 const ReservationRequest& reservation) {
    // In an order that is every process's, whatever ordinals it sees the devices by, so that two
    // that wait for several devices don't wait for each other.
    std::map<std::string, std::pair<int32_t, SmShare>> by_uuid;
    for (const auto& [device, share] : shares_by_device(layout))
        by_uuid.try_emplace(hex_of(device_info(device)), device, share);
    const EndAtSignals end_at_signals;
    const Clock::time_point wait_end = Clock::now() + reservation.timeout;
    std::vector<ExecPart> parts;
    parts.reserve(by_uuid.size());
    for (const auto& [uuid, wanted] : by_uuid)
        parts.push_back(
            find_part(wanted.first, wanted.second, family, exact, around, reservation, wait_end));
    std::sort(parts.begin(), parts.end(),
              [](const ExecPart& a, const ExecPart& b) { return a.device < b.device; });
    return parts;
}

std::string describe(const ExecPart& part) {
    std::string text = format("%u of the %s of device %d (%s)", part.plan.sm_count,
                              count_of(part.available, "SM").c_str(), part.device,
                              plain_name(device_info(part.device)).c_str());
    if (part.asked != GCX_REST && part.asked != part.plan.sm_count)
        text += format(", %u requested", part.asked);
    return text;
}

} // namespace gcx::cli
