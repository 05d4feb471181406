// gcx exec: becomes another command, whose programs get a part of the GPU's SMs.
#include "cli/checked.hpp"
#include "cli/chosen_driver.hpp"
#include "cli/exec_layout.hpp"
#include "cli/exec_libraries.hpp"
#include "cli/exec_parts.hpp"
#include "cli/exec_program.hpp"
#include "cli/report.hpp"
#include "cli/run_command.hpp"
#include "cli/text.hpp"

#include <gnu/libc-version.h>

#include <errno.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <string_view>

namespace gcx::cli {
namespace {

constexpr uint32_t kMostSeconds = 4000000; // in milliseconds it fits a number
constexpr char kExample[] = "e.g. gcx exec --sms 24 -- python serve.py";

// Whether the option is the other of two words. Without the option it is what the gcx exec around
// this one chose, or false.
bool chosen(const Arguments& arguments, std::string_view option, std::string_view otherwise,
            std::string_view other, bool inherited) {
    const std::string given =
        arguments.get(option).value_or(std::string(inherited ? other : otherwise));
    if (given != otherwise && given != other)
        throw UsageError(format("%s %s: it takes %s or %s", std::string(option).c_str(),
                                given.c_str(), std::string(otherwise).c_str(),
                                std::string(other).c_str()));
    return given == other;
}

interpose::ReportedCount reported_count(const Arguments& arguments,
                                        interpose::ReportedCount inherited) {
    interpose::ReportedCount count = inherited;
    const auto given = arguments.get("--report");
    if (given && !interpose::read_reported_count(*given, count))
        throw UsageError(format("--report %s: it takes auto, partition or device", given->c_str()));
    return count;
}

// The plan that this process runs by itself, if any.
std::optional<interpose::Plan> plan_around() {
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

// Inside a partition the stub library would show the partition as the device. A part of the
// partition is split from the whole device, so the real driver is opened.
gcx_driver_info open_driver_of(const Arguments& arguments, const interpose::Plan* around) {
    if (around == nullptr)
        return open_driver(arguments);
    if (arguments.has("--driver"))
        throw UsageError("--driver: gcx exec runs in a partition already, on that one's driver; "
                         "leave it away");
    return open_driver_named(interpose::kRealPrefix + around->driver);
}

// A program that is out of reach is refused, or spoken of unless quiet, before it runs.
void check_reach(const std::string& command, bool quiet) {
    const ProgramKind kind = program_kind(command);
    if (kind.reach == ProgramKind::Reach::kNobody)
        throw Failure(GCX_ERROR_NOT_SUPPORTED,
                      format("%s, so the system keeps gcx exec out of it; put gcx exec behind it, "
                             "like sudo gcx exec --sms 24 -- COMMAND",
                             kind.why.c_str()));
    if (kind.reach == ProgramKind::Reach::kChildren && !quiet)
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
                 "gcx exec: with this system's glibc %s calls between libraries are slower "
                 "here, from 2.35 on they aren't; LD_BIND_NOW=1 in the environment avoids it\n",
                 version);
}

std::string auditors_with(const std::string& own) {
    const char* const before = std::getenv("LD_AUDIT");
    std::string others = before != nullptr ? before : "";
    if ((":" + others + ":").find(":" + own + ":") != std::string::npos)
        return others;
    // The last is asked last, so that whatever the others make of libcuda's name comes to it.
    return others.empty() ? own : others + ":" + own;
}

// With an auditor, libraries that a program starts with take their thread-local memory from a
// reserve, which is small unless asked for. So much of it leaves room in the smallest stacks that
// threads have.
std::string tunables_with_reserve() {
    constexpr char kName[] = "glibc.rtld.optional_static_tls";
    const char* const before = std::getenv("GLIBC_TUNABLES");
    std::string others = before != nullptr ? before : "";
    if (others.find(kName) != std::string::npos)
        return others;
    return (others.empty() ? "" : others + ":") + kName + "=8192";
}

// The name that lists of reservations show: the command's, as far as there is room.
ReservationRequest reservation_request(const Arguments& arguments) {
    ReservationRequest wish;
    wish.wanted = !arguments.has("--shared");
    wish.quiet = arguments.has("--quiet");
    wish.timeout = std::chrono::seconds(arguments.number("--wait", 0, kMostSeconds, 0));
    const std::string& command = arguments.operands[0];
    wish.name = arguments.get("--name").value_or(command.substr(command.rfind('/') + 1));
    if (!arguments.has("--name") && wish.name.size() >= GCX_MAX_LEASE_NAME)
        wish.name.resize(GCX_MAX_LEASE_NAME - 1);
    for (const char* option : {"--name", "--wait"}) {
        if (!wish.wanted && arguments.has(option))
            throw UsageError(
                format("%s is of a reservation, and with --shared there is none; leave one "
                       "of them away",
                       option));
    }
    return wish;
}

// The folders of the parts' holds, which are one unless some devices are in a partition already.
std::string reservations_folder_of(const std::vector<ExecPart>& parts) {
    std::set<std::string> folders;
    for (const ExecPart& part : parts)
        folders.insert(part.plan.token.substr(0, part.plan.token.rfind('/')));
    std::string text;
    for (const std::string& folder : folders)
        text += (text.empty() ? "" : " and ") + visible(folder);
    return text;
}

// What a user should know of processes beside this one.
std::string beside(const std::vector<ExecPart>& parts) {
    const auto all = [&](auto reservations) {
        return std::all_of(parts.begin(), parts.end(), reservations);
    };
    const bool off = all([](const ExecPart& part) { return part.mps == GCX_MPS_OFF; });
    if (!all([](const ExecPart& part) { return part.held; }))
        return off ? "; without MPS, processes take turns on all SMs" : "";
    const std::string folder = reservations_folder_of(parts);
    if (off)
        return format("; held in %s; without MPS, processes take turns on all SMs", folder.c_str());
    // A nested command's SMs are those of the reservation around it.
    return all([](const ExecPart& part) { return part.nested; })
               ? format("; no other part of that reservation has them, in %s", folder.c_str())
               : format("; no other reservation in %s has them", folder.c_str());
}

// A device that this command does not name stays as the gcx exec around it left it.
void keep_unnamed_devices(const interpose::Plan& outer, interpose::Plan& plan) {
    for (const interpose::DevicePart& part : outer.devices) {
        const auto same = [&](const interpose::DevicePart& named) {
            return named.uuid == part.uuid;
        };
        if (std::none_of(plan.devices.begin(), plan.devices.end(), same))
            plan.devices.push_back(part);
    }
}

void announce(const std::string& command, const std::vector<ExecPart>& parts) {
    std::string text;
    for (const ExecPart& part : parts)
        text += (text.empty() ? "" : ", ") + describe(part);
    std::fprintf(stderr, "gcx exec: %s%s has %s%s\n", is_simulated() ? "SIMULATED: " : "",
                 visible(command).c_str(), visible(text).c_str(), beside(parts).c_str());
}

} // namespace

Report run_exec(const Arguments& arguments) {
    if (arguments.operands.empty())
        throw UsageError(format("there is no command to run; %s", kExample));
    const std::string& command = arguments.operands[0];
    const ExecLayout layout = read_exec_layout(arguments);
    const FamilyName* const family = arguments.has("--family") ? read_family(arguments) : nullptr;
    const auto around = plan_around();
    const interpose::Plan* const outer = around ? &*around : nullptr;
    interpose::Plan plan;
    plan.reported_count = reported_count(
        arguments, outer != nullptr ? outer->reported_count : interpose::ReportedCount::kAuto);
    plan.own_contexts = chosen(arguments, "--contexts", "refuse", "device",
                               outer != nullptr && outer->own_contexts);
    const ReservationRequest reservation = reservation_request(arguments);

    const gcx_driver_info driver = open_driver_of(arguments, outer);
    // Before SMs are reserved for it.
    if (const int reason = why_not_found(command); reason != 0)
        return cannot_run(command, reason, is_simulated());
    // Messages and lists name the program that the process will be, also to other containers, which
    // can't look at it.
    static std::string program;
    program = command.substr(command.rfind('/') + 1);
    program_invocation_short_name = program.data();
    const std::vector<ExecPart> parts =
        find_parts(layout, family, arguments.has("--exact"), outer, reservation);
    const ExecLibraries libraries = find_exec_libraries();
    plan.driver = open_driver_path(driver);
    plan.shim = libraries.shim;
    for (const ExecPart& part : parts)
        plan.devices.push_back(part.plan);
    if (outer != nullptr)
        keep_unnamed_devices(*outer, plan);
    check_reach(command, reservation.quiet);
    if (!reservation.quiet)
        warn_of_old_loader();

    set_environment(interpose::kPlanVariable, interpose::write_plan(plan));
    set_environment("LD_AUDIT", auditors_with(libraries.auditor));
    set_environment("GLIBC_TUNABLES", tunables_with_reserve());
    if (const std::string spec = open_simulation(driver); !spec.empty())
        set_environment("GCX_SIM", spec);
    if (!reservation.quiet)
        announce(command, parts);
    return become(arguments.operands, is_simulated());
}

} // namespace gcx::cli
