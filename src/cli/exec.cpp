// gcx exec: becomes another command, whose programs get a part of the GPU's SMs.
#include "cli/args.hpp"
#include "cli/device.hpp"
#include "cli/ps.hpp"
#include "cli/run.hpp"
#include "interpose/exec_plan.hpp"
#include "ipc/lock_dir.hpp"

#include <gcx_sim.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace gcx::cli {
namespace {

constexpr uint32_t kMaxSeconds = 4000000; // fits a number of milliseconds
constexpr std::chrono::milliseconds kPause{100};

// ---- The command line

struct DeviceShare {
    std::string device; // an ordinal or a UUID, as given
    SmShare share;
};

struct ExecLayout {
    std::vector<DeviceShare> devices;
    std::optional<SmShare> of_each; // if set, the share of every device instead
};

constexpr char kShares[] =
    "give SMs like --sms 24, a part of them like --sms 50%, or --sms rest for all that are free";
constexpr char kLayouts[] = "give each device its SMs, like --layout 0=24,1=50%";
constexpr char kDevices[] =
    "give ordinals or UUIDs, like --device 0,2 or --device GPU-1b2c; all if not given";

// Splits at commas. Throws UsageError if a part is empty.
std::vector<std::string> read_list(const std::string& text, const char* option, const char* help) {
    std::vector<std::string> parts = split(text, ',');
    if (const auto empty = std::ranges::find(parts, ""); empty != parts.end())
        throw UsageError(format("%s %s: number %td is empty; %s", option, text.c_str(),
                                empty - parts.begin() + 1, help));
    return parts;
}

void add_device(std::vector<DeviceShare>& devices, const std::string& device,
                const SmShare& share) {
    if (std::ranges::find(devices, device, &DeviceShare::device) != devices.end())
        throw UsageError(format("device %s is given twice; give each once", device.c_str()));
    devices.push_back({device, share});
}

ExecLayout read_layout_option(const std::string& text) {
    ExecLayout layout;
    for (const std::string& part : read_list(text, "--layout", kLayouts)) {
        const std::size_t equals = part.find('=');
        if (equals == std::string::npos || equals == 0)
            throw UsageError(format("--layout %s: \"%s\" is not DEVICE=SMS; %s", text.c_str(),
                                    part.c_str(), kLayouts));
        add_device(layout.devices, part.substr(0, equals),
                   read_share(part.substr(equals + 1), "--layout " + text, kLayouts));
    }
    return layout;
}

ExecLayout read_exec_layout(const Arguments& arguments) {
    const auto sms = arguments.get("--sms");
    const auto devices = arguments.get("--device");
    if (const auto given = arguments.get("--layout")) {
        if (sms || devices)
            throw UsageError(format("--layout names the devices and their SMs; leave out %s",
                                    sms ? "--sms" : "--device"));
        return read_layout_option(*given);
    }
    if (!sms)
        throw UsageError(format("--sms is missing: %s", kShares));
    const SmShare share = read_share(*sms, "--sms " + *sms, kShares);
    ExecLayout layout;
    if (!devices) {
        layout.of_each = share;
        return layout;
    }
    for (const std::string& device : read_list(*devices, "--device", kDevices))
        add_device(layout.devices, device, share);
    return layout;
}

// ---- Devices and SMs

using Clock = std::chrono::steady_clock;

const FamilyName& outer_family(const interpose::DevicePart& outer, const FamilyName* requested) {
    const auto* const found = std::ranges::find(family_names, outer.family, &FamilyName::family);
    if (requested != nullptr && requested != found)
        throw Failure(
            GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
            format("gcx exec runs in a partition of the %s family already, and gives parts "
                   "of it; leave out --family %s",
                   found->name, requested->name));
    return *found;
}

resource outer_sms(const Family& family, const interpose::DevicePart& outer, int32_t device) {
    if (outer.family_atoms != family.atoms.size())
        throw Failure(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                      format("device %d has %zu atoms, the partition around was created with %u: "
                             "the driver or its settings changed",
                             device, family.atoms.size(), outer.family_atoms));
    resource all = family.atoms[outer.atoms[0]];
    for (const uint32_t atom : outer.atoms)
        all = all | family.atoms[atom];
    return all;
}

std::vector<uint32_t> atoms_of(const resource& sms, const Family& family) {
    std::vector<uint32_t> atoms;
    for (uint32_t atom = 0; atom < family.atoms.size(); atom++) {
        if (sms.overlap(family.atoms[atom]) != 0)
            atoms.push_back(atom);
    }
    return atoms;
}

// Where SMs are reserved: a device, or the partition of it that this process runs in.
struct Place {
    std::string label;
    gcx_device_info device;
    uint32_t sm_count;
    gcx_sm_family family;
    uint64_t parent = 0; // the id of the partition's reservation
    std::optional<nonnull_string> folder;
};

// A token is the path of a file, whose name ends with the id of the reservation.
std::string folder_of_token(const std::string& token) {
    return token.substr(0, token.rfind('/'));
}

uint64_t id_of_token(const std::string& token) {
    return std::strtoull(token.c_str() + token.rfind('-') + 1, nullptr, 16);
}

Place place_of(int32_t device, uint32_t sm_count, gcx_sm_family family,
               const interpose::DevicePart* outer) {
    Place place{.label = format("device %d", device),
                .device = gcx::device(device).info(),
                .sm_count = sm_count,
                .family = family,
                .parent = 0,
                .folder = std::nullopt};
    if (outer == nullptr)
        return place;
    place.label = "this partition of " + place.label;
    place.folder = folder_of_token(outer->token);
    place.parent = id_of_token(outer->token);
    return place;
}

std::string process_text(const gcx_live_reservation& reservation) {
    return reservation.pid != 0
               ? format("process %d (%s)", reservation.pid, reservation.process_name)
               : format("a process that isn't visible here (%s)", reservation.process_name);
}

// Describes the reservations in a place: "132 SMs, of which 68 are free; "train" of process 12
// (python) has 64". Free are SMs that a request of the same family can have.
std::string usage_text(const Place& place) {
    std::string text;
    uint32_t reserved = 0;
    uint32_t ahead = 0; // requests that wait
    bool known = true;  // which SMs the others leave
    bool own_found = false;
    const Reservations reservations = live_reservations(place.folder);
    for (const gcx_live_reservation& reservation : reservations) {
        if (!std::ranges::equal(reservation.device_uuid, place.device.uuid) ||
            (reservation.parent != place.parent &&
             (place.parent != 0 || has_parent(reservations, reservation))))
            continue;
        if (reservation.waits != 0) {
            // Listed in the order in which they are served; one may be of this process.
            own_found = own_found || reservation.pid == getpid();
            ahead += own_found ? 0 : 1;
            continue;
        }
        const bool other_atoms = has_other_atoms(reservation, place.family);
        known = known && !other_atoms;
        reserved += reservation.sm_count;
        const std::string name =
            *reservation.name != '\0' ? format("\"%s\" of ", reservation.name) : "";
        text += format("; %s%s has %u", name.c_str(), process_text(reservation).c_str(),
                       reservation.sm_count);
        if (reservation.family != place.family)
            text += " in the " + family_text(reservation.family) +
                    " family, which leaves none in the " + family_text(place.family) + " family";
        else if (other_atoms)
            text += " with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, which leaves none that are known";
    }
    if (ahead != 0)
        text += format("; %u wait%s ahead", ahead, ahead == 1 ? "s" : "");
    const uint32_t free = known ? place.sm_count - std::min(reserved, place.sm_count) : 0;
    return format("%u SMs, of which %u are free", place.sm_count, free) + visible(text);
}

// Prints what gcx exec waits for, immediately and every 10 s until it is destroyed.
class WaitNotice {
  public:
    explicit WaitNotice(const Place& place)
        : thread_([place](const std::stop_token& stop) {
              std::mutex mutex;
              std::condition_variable_any ended;
              std::unique_lock lock(mutex);
              do {
                  std::string state;
                  try {
                      state = "it has " + usage_text(place);
                  } catch (const error& error) { // a folder that can't be read any more
                      state = visible(message_of(error));
                  }
                  std::fprintf(stderr, "gcx exec: %swaiting for SMs of %s: %s\n",
                               is_simulated() ? "SIMULATED: " : "", place.label.c_str(),
                               state.c_str());
              } while (!ended.wait_for(lock, stop, std::chrono::seconds(10),
                                       [&] { return stop.stop_requested(); }));
          }) {}

  private:
    std::jthread thread_;
};

// Lets signals that end programs end this process. A container's first process has no default
// actions for signals, so that nothing else would end it while it waits. The command does not
// inherit these handlers.
void end_at_signals() {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        struct sigaction action{};
        sigaction(signal, nullptr, &action);
        if (action.sa_handler != SIG_DFL)
            continue;
        action.sa_handler = [](int number) {
            raise(number); // has no effect in a container's first process
            _exit(128 + number);
        };
        action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
        sigaction(signal, &action, nullptr);
    }
}

struct ExecPart {
    int32_t device = 0;
    uint32_t available = 0; // SMs of the device, or of the partition around
    SmShare share;
    SmSizes sizes;         // of the share
    bool reserved = false; // other processes that request SMs don't get these
    bool nested = false;   // the SMs are part of the reservation around
    gcx_mps_state mps = GCX_MPS_UNKNOWN;
    std::string shared_with; // the process whose reservation the command joins; empty: none
    interpose::DevicePart plan;

    // "24 of the 132 SMs of device 0 (NVIDIA H100 80GB HBM3)".
    std::string text() const {
        std::string text = format("%u of the %s of device %d (%s)", plan.sm_count,
                                  count_of(available, "SM").c_str(), device,
                                  plain_name(gcx::device(device).info()).c_str());
        if (share.is_percentage() || (share.sm_count != rest && share.sm_count != plan.sm_count))
            text += ", " + share.text + " requested";
        return text;
    }

    // "50% (64 SMs)", "24 SMs" or "the rest".
    std::string requested_text() const {
        if (sizes.preferred == rest)
            return "the rest";
        const std::string text = count_of(sizes.preferred, "SM");
        return share.is_percentage() ? share.text + " (" + text + ")" : text;
    }
};

// How the SMs are reserved. Reservations outlive gcx exec: they belong to the command.
struct ReserveOptions {
    bool wanted = true;
    bool quiet = false; // prints nothing while it waits
    std::string name;
    std::chrono::milliseconds timeout{0}; // for the SMs of all devices together
};

// free_sizes: those that the free SMs have, if none of them is acceptable; else empty.
std::string refusal_text(const ExecPart& part, const ReserveOptions& options, const Place& place,
                         const std::string& free_sizes) {
    const double seconds = std::chrono::duration<double>(options.timeout).count();
    return format("%s%s of %s requested, which has %s; %s, %s, or use SMs that other processes may "
                  "use as well with --shared",
                  seconds == 0 ? "" : format("timed out after %.10g s: ", seconds).c_str(),
                  part.requested_text().c_str(), place.label.c_str(), usage_text(place).c_str(),
                  free_sizes.empty() ? "request fewer"
                                     : (free_sizes + "; request another size").c_str(),
                  seconds == 0 ? "wait for them with --wait SECONDS" : "wait longer");
}

// Reserves the SMs until the command's last process ends.
resource reserve(ExecPart& part, const FamilyName& name, const ReserveOptions& options,
                 const interpose::DevicePart* outer, Clock::time_point wait_end) {
    const Place place = place_of(part.device, part.available, name.family, outer);
    reservation_params params;
    params.name = options.name;
    params.flags = reservation_flags::inherit;
    params.family = name.family;
    gcx::reservation reserved;
    std::string free_sizes; // see refusal_text()
    // Returns why there are no SMs now: other processes have them, or have the folder locked.
    const auto acquire = [&](uint32_t sm_count) -> std::optional<error> {
        free_sizes.clear();
        try {
            reserved = gcx::reservation(part.device, sm_count, params);
        } catch (const error& error) {
            if (error.result() != GCX_ERROR_ALREADY_ACQUIRED && error.result() != GCX_ERROR_TIMEOUT)
                throw;
            return error;
        }
        if (reserved.sm_count() <= part.sizes.most)
            return std::nullopt;
        // The remainder atom is free, and too few others are.
        free_sizes = nearest_sizes(reserved.get_resource(), sm_count);
        reserved.close();
        return error(GCX_ERROR_ALREADY_ACQUIRED, free_sizes);
    };
    std::optional<error> refused = acquire(part.sizes.preferred);
    const bool in_use = refused && refused->result() == GCX_ERROR_ALREADY_ACQUIRED;
    if (in_use && part.sizes.least != part.sizes.preferred)
        refused = acquire(part.sizes.least);
    if (refused && options.timeout.count() != 0) {
        std::optional<WaitNotice> notice;
        try {
            if (!options.quiet)
                notice.emplace(place);
        } catch (const std::system_error&) { // NOLINT(bugprone-empty-catch): waits without it
        }
        const auto time_left = [&] {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(wait_end - Clock::now());
            return std::max(left, std::chrono::milliseconds(0));
        };
        params.timeout = time_left();
        refused = acquire(part.sizes.least);
        // A request waits until its SMs or more are free. If more is not acceptable, asks again when
        // the reservations have changed, so that it takes no SMs from others in between.
        std::string usage;
        while (!free_sizes.empty() && time_left().count() != 0) {
            std::this_thread::sleep_for(std::min(time_left(), kPause));
            std::string now = usage_text(place);
            if (now == usage)
                continue;
            usage = std::move(now);
            params.timeout = time_left();
            refused = acquire(part.sizes.least);
        }
    }
    if (refused && (in_use || !free_sizes.empty()))
        throw Failure(GCX_ERROR_ALREADY_ACQUIRED, refusal_text(part, options, place, free_sizes));
    if (refused)
        throw error(*refused);
    const resource sms = reserved.get_resource();
    part.plan.token = reserved.token();
    part.reserved = true;
    part.nested = outer != nullptr;
    static_cast<void>(reserved.detach());
    return sms;
}

ExecPart find_part(int32_t device, const SmShare& share, const FamilyName* requested, bool exact,
                   const interpose::Plan* outer_plan, const ReserveOptions& options,
                   Clock::time_point wait_end) {
    const gcx_device_info info = gcx::device(device).info();
    const interpose::DevicePart* const outer =
        outer_plan != nullptr ? outer_plan->find(info.uuid) : nullptr;
    const FamilyName& name = outer != nullptr       ? outer_family(*outer, requested)
                             : requested != nullptr ? *requested
                                                    : family_names[0];
    const Family family = find_family(device, name);
    if (!family.unavailable.empty())
        throw Failure(GCX_ERROR_NOT_SUPPORTED, family.unavailable);
    const resource all = outer != nullptr ? outer_sms(family, *outer, device) : family.all;

    ExecPart part;
    part.device = device;
    part.available = all.sm_count();
    const std::string label = place_of(device, part.available, name.family, outer).label;
    part.share = share;
    part.sizes = exact ? find_exact_sizes(share, all, name, label) : find_sizes(share, all, label);
    part.mps = gcx::device(device).info().mps;
    if (outer != nullptr)
        part.plan.token = outer->token;
    // Nothing can be reserved of a partition that is not reserved.
    const bool reserved = options.wanted && (outer == nullptr || !outer->token.empty());
    const resource sms = reserved ? reserve(part, name, options, outer, wait_end)
                                  : all.split({part.sizes.preferred}).groups[0];
    part.plan.family = name.family;
    part.plan.sm_count = sms.sm_count();
    part.plan.atoms = atoms_of(sms, family);
    part.plan.family_atoms = static_cast<uint32_t>(family.atoms.size());
    std::ranges::copy(info.uuid, part.plan.uuid.begin());
    return part;
}

std::map<int32_t, SmShare> shares_by_device(const ExecLayout& layout) {
    std::map<int32_t, SmShare> shares;
    const int32_t count = gcx::device::count();
    for (int32_t device = 0; layout.of_each && device < count; device++)
        shares[device] = *layout.of_each;
    for (const DeviceShare& given : layout.devices) {
        const int32_t device = device_named(given.device, count);
        if (!shares.emplace(device, given.share).second)
            throw UsageError(format("device %s is device %d, which is given already",
                                    given.device.c_str(), device));
    }
    return shares;
}

// Finds the SMs of each device, by ordinal. family may be null: that of the partition around, else
// coscheduled. outer is the plan in which gcx exec itself runs, null if none. exact: throws Failure
// where a count would be rounded.
std::vector<ExecPart> find_parts(const ExecLayout& layout, const FamilyName* family, bool exact,
                                 const interpose::Plan* outer, const ReserveOptions& options) {
    // Every process reserves in the order of UUIDs, whatever its ordinals, so that two that wait
    // for several devices don't wait for each other.
    std::map<std::string, std::pair<int32_t, SmShare>> by_uuid;
    for (const auto& [device, share] : shares_by_device(layout))
        by_uuid.try_emplace(uuid_text(gcx::device(device).info().uuid), device, share);
    end_at_signals();
    const Clock::time_point wait_end = Clock::now() + options.timeout;
    std::vector<ExecPart> parts;
    parts.reserve(by_uuid.size());
    for (const auto& [uuid, given] : by_uuid)
        parts.push_back(
            find_part(given.first, given.second, family, exact, outer, options, wait_end));
    std::ranges::sort(parts, {}, &ExecPart::device);
    return parts;
}

// ---- A reservation to join

// Returns the name that --join gives, or nothing. Throws UsageError for an option next to it that
// chooses SMs.
std::optional<std::string> read_join(const Arguments& arguments) {
    auto name = arguments.get("--join");
    if (!name)
        return std::nullopt;
    for (const char* option :
         {"--sms", "--device", "--layout", "--family", "--exact", "--wait", "--name", "--shared"}) {
        if (arguments.has(option))
            throw UsageError(format("--join gives the SMs of a reservation as they are; leave out "
                                    "%s",
                                    option));
    }
    if (name->empty())
        throw UsageError("--join has no name; give one that gcx ps shows");
    return name;
}

struct Joinable {
    int32_t device;
    const interpose::DevicePart* outer; // null: the device is in no partition
    bool outside;                       // the SMs are no part of that partition
    gcx_live_reservation reservation;

    std::string text() const {
        return format("\"%s\" of ", reservation.name) + process_text(reservation);
    }
};

// Returns whether a reservation divides the one with the id, or a part of that.
bool is_within(const Reservations& reservations, const gcx_live_reservation& part, uint64_t id) {
    const gcx_live_reservation* step = &part;
    for (std::size_t i = 0; i < reservations.size() && step->parent != id; i++) {
        const auto parent =
            std::ranges::find(reservations, step->parent, &gcx_live_reservation::id);
        if (parent == reservations.end())
            return false;
        step = &*parent;
    }
    return step->parent == id;
}

// Returns the reservations of this user on the devices of this driver that have a name.
std::vector<Joinable> find_joinable(const interpose::Plan* outer,
                                    const std::optional<nonnull_string>& folder) {
    std::vector<Joinable> found;
    const Reservations reservations = live_reservations(folder);
    for (int32_t device = 0; device < gcx::device::count(); device++) {
        const gcx_device_info info = gcx::device(device).info();
        const interpose::DevicePart* const part =
            outer != nullptr ? outer->find(info.uuid) : nullptr;
        for (const gcx_live_reservation& reservation : reservations) {
            if (*reservation.name == '\0' || reservation.user != geteuid() ||
                (reservation.simulated != 0) != is_simulated() ||
                !std::ranges::equal(reservation.device_uuid, info.uuid))
                continue;
            const bool inside =
                part == nullptr || (!part->token.empty() &&
                                    is_within(reservations, reservation, id_of_token(part->token)));
            found.push_back({device, part, !inside, reservation});
        }
    }
    return found;
}

std::string list_text(const std::vector<Joinable>& joinable) {
    constexpr std::size_t kMost = 8;
    std::set<std::string> texts;
    for (const Joinable& each : joinable)
        texts.insert(each.text());
    std::string text;
    std::size_t listed = 0;
    for (const std::string& each : texts) {
        if (++listed > kMost)
            return text + " and others";
        text += (text.empty() ? "" : ", ") + visible(each);
    }
    return text;
}

// Returns the reservations with the name: one, or those of one process on several devices, which
// count as those of one command. Throws Failure if there are none, or others.
std::vector<Joinable> choose_joined(std::vector<Joinable> joinable, const std::string& name,
                                    const std::string& where) {
    std::vector<Joinable> named;
    const auto has_name = [&](const Joinable& each) { return each.reservation.name == name; };
    std::ranges::copy_if(joinable, std::back_inserter(named), has_name);
    std::erase_if(joinable, [](const Joinable& each) { return each.outside; });
    const std::string option = "--join " + visible(name);
    if (std::ranges::none_of(joinable, has_name))
        throw Failure(
            GCX_ERROR_NOT_FOUND,
            format("%s: this user has no reservation of that name in %s; %s%s", option.c_str(),
                   where.c_str(),
                   joinable.empty() ? "it has none there, so reserve SMs with --sms" : "it has ",
                   list_text(joinable).c_str()));
    // Requests of other processes, and what they have outside, are not meant.
    const auto waits_or_outside = [](const Joinable& each) {
        return each.reservation.waits != 0 || each.outside;
    };
    auto meant = std::ranges::find_if_not(named, waits_or_outside);
    if (meant == named.end())
        meant = std::ranges::find(named, false, &Joinable::outside);
    const int32_t pid = meant->reservation.pid;
    std::erase_if(named, [&](const Joinable& each) {
        return waits_or_outside(each) && each.reservation.pid != pid;
    });
    const auto waits = std::ranges::find_if(
        named, [](const Joinable& each) { return each.reservation.waits != 0; });
    if (waits != named.end())
        throw Failure(GCX_ERROR_NOT_FOUND,
                      format("%s: %s waits for SMs of device %d; try again when gcx ps shows that "
                             "it has them",
                             option.c_str(), visible(process_text(waits->reservation)).c_str(),
                             waits->device));
    const auto is_of_other_command = [&](const Joinable& each) {
        return pid == 0 || each.reservation.pid != pid ||
               std::ranges::count(named, each.device, &Joinable::device) != 1;
    };
    if (named.size() > 1 && std::ranges::any_of(named, is_of_other_command))
        throw Failure(GCX_ERROR_INVALID_VALUE,
                      format("%s: %zu reservations in %s have that name, and are not known to be "
                             "of one command: %s; end all but one, or give each its own name",
                             option.c_str(), named.size(), where.c_str(),
                             list_text(named).c_str()));
    const auto outside = std::ranges::find(named, true, &Joinable::outside);
    if (outside != named.end())
        throw Failure(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                      format("%s: %s also has SMs of device %d, outside the partition in which "
                             "gcx exec runs; run it outside too",
                             option.c_str(), visible(process_text(outside->reservation)).c_str(),
                             outside->device));
    return named;
}

// Lets the command inherit a lock on the reservation, which this process has joined: it has none of
// its own before its loader runs.
void pass_on(const std::string& token) {
    constexpr int kLowest = 700; // programs expect to get low numbers
    const int opened = open(token.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    const int moved = fcntl(opened, F_DUPFD, kLowest);
    struct flock lock{};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    if (fcntl(moved >= 0 ? moved : opened, F_OFD_SETLK, &lock) != 0)
        throw Failure(GCX_ERROR_OPERATING_SYSTEM,
                      format("--join: can't lock %s: %s", token.c_str(), std::strerror(errno)));
    if (moved >= 0)
        close(opened);
}

ExecPart join_part(const Joinable& joinable, const std::string& folder) {
    const gcx_live_reservation& reservation = joinable.reservation;
    gcx::reservation joined = gcx::reservation::join(
        folder + "/" + (reservation.simulated != 0 ? "simulated-" : "") + "reservation-" +
        uuid_digits(uuid_text(reservation.device_uuid)) + "-" + id_text(reservation.id));
    const resource sms = joined.get_resource();
    const Family family =
        find_family(joinable.device,
                    *std::ranges::find(family_names, joined.info().family, &FamilyName::family));
    ExecPart part;
    part.device = joinable.device;
    part.available = joinable.outer != nullptr ? joinable.outer->sm_count : family.all.sm_count();
    part.reserved = true;
    part.nested = joinable.outer != nullptr;
    part.mps = gcx::device(joinable.device).info().mps;
    part.shared_with = process_text(reservation);
    std::ranges::copy(reservation.device_uuid, part.plan.uuid.begin());
    part.plan.family = joined.info().family;
    part.plan.sm_count = sms.sm_count();
    part.plan.atoms = atoms_of(sms, family);
    part.plan.family_atoms = static_cast<uint32_t>(family.atoms.size());
    part.plan.token = joined.token();
    pass_on(part.plan.token);
    static_cast<void>(joined.detach());
    return part;
}

// Joins the reservations of a command, on all of its devices.
std::vector<ExecPart> join_parts(const std::string& name, const interpose::Plan* outer) {
    std::string folder = chosen_folder().empty() ? usual_folder() : chosen_folder();
    std::optional<nonnull_string> listed; // nothing: a missing folder of the user has none
    if (!chosen_folder().empty())
        listed = folder;
    if (outer != nullptr) {
        for (const interpose::DevicePart& part : outer->devices) {
            if (!part.token.empty())
                listed = folder = folder_of_token(part.token);
        }
    }
    while (folder.size() > 1 && folder.back() == '/')
        folder.pop_back();
    const std::string where =
        visible(folder) + (outer != nullptr ? ", inside the partition in which gcx exec runs" : "");
    std::vector<ExecPart> parts;
    for (const Joinable& each : choose_joined(find_joinable(outer, listed), name, where))
        parts.push_back(join_part(each, folder));
    return parts;
}

// ---- Libraries and the environment

std::string absolute(const char* path) {
    char real[PATH_MAX];
    if (realpath(path, real) == nullptr)
        throw Failure(GCX_ERROR_FILE_NOT_FOUND, format("%s: %s", path, std::strerror(errno)));
    return real;
}

std::string folder_of_libgcx() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&gcx_driver_open), &info) == 0)
        throw Failure(GCX_ERROR_FILE_NOT_FOUND, "can't tell where libgcx is");
    const std::string path = absolute(info.dli_fname);
    return path.substr(0, path.rfind('/'));
}

// Returns the path of a library of gcx exec. It is in gcx/ where libraries are installed, and in
// interpose/ where they are built.
std::string find_library(const std::string& name) {
    const std::string folder = folder_of_libgcx();
    const std::string places[] = {folder + "/gcx/" + name, folder + "/interpose/" + name};
    for (const std::string& place : places) {
        if (access(place.c_str(), R_OK) == 0)
            return absolute(place.c_str());
    }
    throw Failure(GCX_ERROR_FILE_NOT_FOUND, format("gcx exec isn't installed: looked for %s and %s",
                                                   places[0].c_str(), places[1].c_str()));
}

// Returns the path of the auditor. LD_AUDIT separates auditors by colons.
std::string find_auditor() {
    std::string auditor = find_library("libgcx-audit.so");
    if (auditor.find(':') != std::string::npos)
        throw Failure(GCX_ERROR_INVALID_VALUE,
                      format("LD_AUDIT separates auditors by colons, and gcx's is %s; install gcx "
                             "in a folder without a colon in its path",
                             auditor.c_str()));
    return auditor;
}

// Returns the absolute path of the open driver, as the loader found it.
std::string open_driver_path(const gcx_driver_info& driver) {
    const link_map* map = nullptr;
    if (dlinfo(driver_library(driver), RTLD_DI_LINKMAP, &map) != 0)
        throw Failure(GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
                      format("can't find out where %s was loaded from", driver.library));
    return absolute(map->l_name);
}

// Returns SPEC of "sim:SPEC" as the simulated driver read it; empty for another driver.
std::string open_simulation(const gcx_driver_info& driver) {
    const auto spec =
        reinterpret_cast<decltype(&gcx_sim_spec)>(dlsym(driver_library(driver), "gcx_sim_spec"));
    return spec != nullptr ? spec() : "";
}

// Whether contexts that programs create have all SMs of the device. Inherited from the gcx exec around.
bool read_contexts(const Arguments& arguments, bool inherited) {
    const std::string given =
        arguments.get("--contexts").value_or(inherited ? "device" : "partition");
    if (given != "partition" && given != "device")
        throw UsageError(format("--contexts %s: it takes partition or device", given.c_str()));
    return given == "device";
}

// The SM count that programs see. Inherited from the gcx exec around.
interpose::ReportedCount read_report(const Arguments& arguments,
                                     interpose::ReportedCount inherited) {
    interpose::ReportedCount report = inherited;
    const auto given = arguments.get("--report");
    if (given && !interpose::read_reported_count(*given, report))
        throw UsageError(format("--report %s: it takes auto, partition or device", given->c_str()));
    return report;
}

// Returns the plan in which this process runs, if any.
std::optional<interpose::Plan> outer_plan() {
    const char* const text = std::getenv(interpose::kPlanVariable);
    if (text == nullptr)
        return std::nullopt;
    try {
        return interpose::read_plan(text);
    } catch (const interpose::PlanError& error) {
        throw Failure(GCX_ERROR_INVALID_VALUE,
                      format("%s; it belongs to a gcx exec around this one", error.what()));
    }
}

// Opens the driver. Inside a partition the stub library would show only the partition, and its
// parts are sets of the whole device's atoms, so the real driver is opened there.
gcx_driver_info open_driver_of(const Arguments& arguments, const interpose::Plan* outer) {
    if (outer == nullptr)
        return open_driver(arguments);
    if (arguments.has("--driver"))
        throw UsageError("--driver: gcx exec runs in a partition already, on its driver; leave it "
                         "out");
    return open_driver_named(interpose::kRealPrefix + outer->driver);
}

// Refuses a program that no partition can reach, and warns of one that only its children reach.
void check_reach(const std::string& command) {
    const ProgramKind kind = program_kind(command);
    if (kind.reach == ProgramKind::Reach::kNone)
        throw Failure(GCX_ERROR_NOT_SUPPORTED,
                      format("%s, so the system clears its environment; run gcx exec inside it, "
                             "like sudo gcx exec --sms 24 -- COMMAND",
                             kind.why.c_str()));
    if (kind.reach == ProgramKind::Reach::kChildren)
        std::fprintf(stderr,
                     "gcx exec: %s: it isn't in the partition itself, only programs that it "
                     "starts are\n",
                     visible(kind.why).c_str());
}

void warn_of_old_loader() {
    const char* const version = gnu_get_libc_version();
    char* point = nullptr;
    const long major = std::strtol(version, &point, 10);
    const long minor = *point == '.' ? std::strtol(point + 1, nullptr, 10) : 0;
    if (major != 2 || minor >= 35)
        return;
    std::fprintf(stderr,
                 "gcx exec: with this system's glibc %s, older than 2.35, calls between libraries "
                 "are slower inside; LD_BIND_NOW=1 in the environment avoids that\n",
                 version);
}

// Returns the variable's value, whose elements are separated by colons, with another element at its
// end unless the text is in it.
std::string with_element(const char* variable, const std::string& text,
                         const std::string& element) {
    const char* const before = std::getenv(variable);
    std::string others = before != nullptr ? before : "";
    if ((":" + others + ":").find(text) != std::string::npos)
        return others;
    return (others.empty() ? "" : others + ":") + element;
}

std::chrono::milliseconds read_wait(const Arguments& arguments) {
    const std::string text = arguments.get("--wait").value_or("0");
    const auto wait = parse_decimal(text, 3);
    if (!wait || *wait > 1000 * uint64_t{kMaxSeconds})
        throw UsageError(format("--wait %s: \"%s\" is not a number of seconds from 0 to %u with at "
                                "most 3 digits after the point, e.g. --wait 60",
                                text.c_str(), text.c_str(), kMaxSeconds));
    return std::chrono::milliseconds(*wait);
}

ReserveOptions read_reserve_options(const Arguments& arguments) {
    ReserveOptions options;
    options.wanted = !arguments.has("--shared");
    options.quiet = arguments.has("--quiet");
    options.timeout = read_wait(arguments);
    const std::string& command = arguments.operands[0];
    const auto given = arguments.get("--name");
    if (given && given->size() >= max_lease_name)
        throw UsageError(
            format("--name has %zu bytes; give at most %u", given->size(), max_lease_name - 1));
    options.name =
        given ? *given : command.substr(command.rfind('/') + 1).substr(0, max_lease_name - 1);
    for (const char* option : {"--name", "--wait"}) {
        if (!options.wanted && arguments.has(option))
            throw UsageError(format("%s is for reservations, and --shared makes none; leave one of "
                                    "them out",
                                    option));
    }
    return options;
}

// Returns the folders of the reservations, one unless some devices are in a partition already.
std::string folders_of(const std::vector<ExecPart>& parts) {
    std::set<std::string> folders;
    for (const ExecPart& part : parts)
        folders.insert(folder_of_token(part.plan.token));
    std::string text;
    for (const std::string& folder : folders)
        text += (text.empty() ? "" : " and ") + visible(folder);
    return text;
}

// Returns the variable by which MPS limits this process, as NAME=VALUE; empty if there is none.
std::string mps_limit(const std::vector<ExecPart>& parts) {
    for (const ExecPart& part : parts) {
        const float percentage = gcx::device(part.device).info().mps_thread_percentage;
        const bool limited = percentage > 0 && percentage < 100;
        const char* const name =
            limited ? "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE" : "CUDA_MPS_SM_PARTITION";
        const char* const value = std::getenv(name);
        if (part.mps != GCX_MPS_OFF && value != nullptr && *value != '\0')
            return std::string(name) + "=" + visible(value);
    }
    return "";
}

// Describes what other processes may do with the SMs.
std::string other_processes_text(const std::vector<ExecPart>& parts) {
    const bool off =
        std::ranges::all_of(parts, [](const ExecPart& part) { return part.mps == GCX_MPS_OFF; });
    if (const std::string limit = mps_limit(parts); !limit.empty())
        return format("; MPS limits this process by %s, so other processes may have these SMs "
                      "too; unset it to prevent that",
                      limit.c_str());
    if (!std::ranges::all_of(parts, &ExecPart::reserved))
        return off ? "; without MPS, processes take turns on all SMs" : "";
    const std::string folder = folders_of(parts);
    if (off)
        return format("; reserved in %s; without MPS, processes take turns on all SMs",
                      folder.c_str());
    // A nested command's SMs are part of the reservation around it.
    return std::ranges::all_of(parts, &ExecPart::nested)
               ? format("; no other part of that reservation has them, in %s", folder.c_str())
               : format("; no other reservation in %s has them", folder.c_str());
}

// Keeps the parts of devices that this command does not name.
void keep_unnamed_devices(const interpose::Plan& outer, interpose::Plan& plan) {
    for (const interpose::DevicePart& part : outer.devices) {
        if (std::ranges::find(plan.devices, part.uuid, &interpose::DevicePart::uuid) ==
            plan.devices.end())
            plan.devices.push_back(part);
    }
}

void announce(const std::string& command, const std::vector<ExecPart>& parts) {
    std::string text;
    for (const ExecPart& part : parts)
        text += (text.empty() ? "" : ", ") + part.text();
    if (!parts[0].shared_with.empty())
        text += ", shared with " + parts[0].shared_with;
    std::fprintf(stderr, "gcx exec: %s%s has %s%s\n", is_simulated() ? "SIMULATED: " : "",
                 visible(command).c_str(), visible(text).c_str(),
                 other_processes_text(parts).c_str());
}

} // namespace

Report run_exec(const Arguments& arguments) {
    if (arguments.operands.empty())
        throw UsageError("there is no command to run; e.g. gcx exec --sms 24 -- python serve.py");
    const std::string& command = arguments.operands[0];
    const auto joined = read_join(arguments);
    const ExecLayout layout = joined ? ExecLayout() : read_exec_layout(arguments);
    const FamilyName* const family = arguments.has("--family") ? &read_family(arguments) : nullptr;
    const auto around = outer_plan();
    const interpose::Plan* const outer = around ? &*around : nullptr;
    interpose::Plan plan;
    plan.reported_count = read_report(
        arguments, outer != nullptr ? outer->reported_count : interpose::ReportedCount::kAuto);
    plan.own_contexts = read_contexts(arguments, outer != nullptr && outer->own_contexts);
    const ReserveOptions options = read_reserve_options(arguments);

    const gcx_driver_info driver = open_driver_of(arguments, outer);
    // Checked before SMs are reserved.
    if (const int reason = why_not_found(command); reason != 0)
        return cannot_run(command, reason, is_simulated());
    // Names the program that this process becomes in lists of reservations, also for other
    // containers, which can't look at the process.
    static std::string program;
    program = command.substr(command.rfind('/') + 1);
    program_invocation_short_name = program.data();
    const std::vector<ExecPart> parts =
        joined ? join_parts(*joined, outer)
               : find_parts(layout, family, arguments.has("--exact"), outer, options);
    const std::string auditor = find_auditor();
    plan.shim = find_library("libgcx-shim.so");
    plan.driver = open_driver_path(driver);
    for (const ExecPart& part : parts)
        plan.devices.push_back(part.plan);
    if (outer != nullptr)
        keep_unnamed_devices(*outer, plan);
    check_reach(command);
    if (!options.quiet)
        warn_of_old_loader();

    set_environment(interpose::kPlanVariable, interpose::write_plan(plan));
    // The last auditor sees the names of libraries as the others changed them.
    set_environment("LD_AUDIT", with_element("LD_AUDIT", ":" + auditor + ":", auditor));
    // Enlarges the reserve from which libraries take their thread-local memory under an auditor.
    // 8 KiB leave room in the smallest stacks that threads have.
    const std::string reserve = "glibc.rtld.optional_static_tls";
    set_environment("GLIBC_TUNABLES", with_element("GLIBC_TUNABLES", reserve, reserve + "=8192"));
    if (const std::string spec = open_simulation(driver); !spec.empty())
        set_environment("GCX_SIM", spec);
    if (!options.quiet)
        announce(command, parts);
    return become(arguments.operands, is_simulated());
}

} // namespace gcx::cli
