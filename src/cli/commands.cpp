#include "cli/commands.hpp"

#include "cli/args.hpp"
#include "cli/help.hpp"
#include "cli/layout.hpp"
#include "cli/text.hpp"

#include <gcx.h>

#include <array>

namespace gcx::cli {
namespace {

constexpr std::array kInfoOptions = {
    Option{"--device", "N", "this device alone; all of them if not given"},
    Option{"--limits", "",
           "also stream priorities and the largest thread block clusters, for which it makes "
           "contexts for a moment"},
    Option{"--record", "FILE",
           "write the device (0 if not given) as a profile for the simulated driver"},
};
constexpr std::array kPlanOptions = {kSmsOption, kDeviceOption, kFamilyOption, kExactOption};
constexpr std::array kVerifyOptions = {kSmsOption, kDeviceOption, kFamilyOption, kExactOption,
                                       Option{"--svg", "FILE", "write the picture as SVG"}};
constexpr std::array kBenchOptions = {
    kDeviceOption,
    Option{"--rounds", "N",
           "rounds of split, two contexts, two streams, destroy; the other measurements follow it; "
           "10000 if not given"},
};
constexpr std::array kRepartitionOptions = {
    kDeviceOption,
    Option{"--rounds", "N", "rounds of each measurement; 1000 if not given"},
};
constexpr std::array kIsolationOptions = {
    kDeviceOption,
    Option{"--connections", "N", "this number of connections alone; 1, 8 and 32 if not given"},
    Option{"--rounds", "N", "rounds of each measurement; 5 if not given"},
};
constexpr std::array kExecOptions = {
    Option{"--sms", "SMS",
           "the SMs of each device: a count, a part like 50%, or rest for all that "
           "are free"},
    Option{"--device", "DEVICES", "ordinals or UUIDs, like 0,2; all devices if not given"},
    Option{"--layout", "DEVICE=SMS,...", "in the place of both: each device with its own SMs"},
    kFamilyOption,
    Option{"--report", "WHAT",
           "the count of SMs that programs are told: the partition's, but a cuBLAS that is wrong "
           "with it the device's (auto, if not given), the partition's (partition), or the "
           "device's (device)"},
    Option{"--contexts", "WHAT",
           "what becomes of contexts that programs make by cuCtxCreate, which "
           "would have all SMs: refuse (if not given) or device"},
    Option{"--wait", "SECONDS", "wait so long for SMs that other processes hold; 0 if not given"},
    Option{"--name", "NAME", "what gcx ps shows for the SMs; the command's if not given"},
    Option{"--shared", "", "hold nothing: other processes may have the same SMs"},
    Option{"--exact", "", "refuse a count or a part that would have to be rounded"},
    Option{"--quiet", "", "print nothing on standard error but errors"},
};
constexpr std::array kTopOptions = {
    Option{"--once", "", "print what there is now, and end; so does output that is no terminal"},
    Option{"--interval", "SECONDS", "from one picture to the next; 1 if not given"},
};
constexpr std::array kPsOptions = {
    Option{"--folder", "PATH",
           "where processes agree on holds; if not given, GCX_RESERVATION_DIR or /dev/shm/gcx-UID"},
};
constexpr std::array kSimRunOptions = {
    Option{"--gpu", "GPU", "h100, 2xh100, h100,a100, or a file that gcx info --record wrote"},
    Option{"--driver", "VERSION", "the CUDA version of the driver, e.g. 13.0"},
};

// It needs the table that it is part of, so that main runs it.
Report run_help(const Arguments& arguments);

constexpr std::array kCommands = {
    Command{"info", "the driver, the devices and what they can do", "",
            "Shows the driver, the devices, the atoms of each family, what the driver can do and "
            "what in the environment limits SMs. --limits and --record make contexts for a moment.",
            "gcx info --record gpu.profile", kInfoOptions, run_info},
    Command{
        "plan", "what a split would give, without making anything", "",
        "Shows how many SMs each partition would get. Counts are rounded up to what the GPU can "
        "give. Exit status 0: the split is possible.",
        "gcx plan --sms 108,24", kPlanOptions, run_plan},
    Command{"split", "makes the partitions, runs a kernel in each, takes all down", "",
            "Makes a context and a stream for each partition, runs a kernel in each, and takes "
            "everything down again, with the time of each step.",
            "gcx split --sms 108,24", kPlanOptions, run_split},
    Command{"verify", "shows which SMs each partition really uses", "",
            "Runs a kernel in each partition that notes the SMs it runs on, and shows a map. Exit "
            "status 0: each partition has as many SMs as promised and no SM is in two.",
            "gcx verify --sms 108,24 --svg sms.svg", kVerifyOptions, run_verify},
    Command{"bench", "gcx against the driver's own calls", "",
            "Measures gcx and the driver's own calls in turns, in one run, and how much device "
            "memory gcx uses up over many rounds.",
            "gcx bench --rounds 10000", kBenchOptions, run_bench},
    Command{
        "bench repartition", "changing partitions at work, and what it costs", "",
        "Measures leases: acquiring, resizing idle and beside a busy neighbour, and the time to "
        "the end of the first kernel after a resize, with the driver's own way beside it.",
        "gcx bench repartition --rounds 1000", kRepartitionOptions, run_bench_repartition},
    Command{"bench isolation", "what a partition's kernel waits for, beside the other's work", "",
            "Measures a small kernel in one partition while streams of the other wait: by how many "
            "do, by what they wait for, and by the number of connections that CUDA starts with.",
            "gcx bench isolation --connections 8", kIsolationOptions, run_bench_isolation},
    Command{"exec", "runs any CUDA program in a part of the GPU", "-- COMMAND [ARGUMENT...]",
            "Runs COMMAND, which needs to know nothing of gcx, and all that it starts, on so many "
            "SMs. The exit status is that of COMMAND; 127 if there is none of that name, 126 if "
            "it can't be run, 125 if gcx itself failed.",
            "gcx exec --sms 24 -- python serve.py", kExecOptions, run_exec, 125},
    Command{
        "ps", "who holds which SMs, across processes", "",
        "Shows the reservations of all processes that use the same folder, and who waits for SMs. "
        "What the dead left behind is removed. Opens no driver.",
        "gcx ps --json", kPsOptions, run_ps},
    Command{"top", "the leases of running processes that publish them", "",
            "Shows the leases of your processes that publish them, with "
            "GCX_PUBLISH=1 in the environment or by themselves, with a map of the SMs, and the "
            "reservations of all; again "
            "and again until q. "
            "Opens no driver.",
            "gcx top --once", kTopOptions, run_top},
    Command{"sim list", "the GPUs and drivers that can be simulated", "",
            "Shows the GPUs and driver versions of the simulated driver.", "gcx sim list",
            std::span<const Option>(), run_sim_list},
    Command{"sim run", "runs a command on the simulated driver", "-- COMMAND [ARGUMENT...]",
            "Runs COMMAND with gcx's simulated driver as its libcuda. The exit status is that of "
            "COMMAND; 127 if there is none of that name, 126 if it can't be run.",
            "gcx sim run --gpu h100 --driver 13.0 -- gcx info", kSimRunOptions, run_sim_run},
    Command{"help", "this text, or that of a command", "[COMMAND]", "Explains gcx, or a command.",
            "gcx help verify", std::span<const Option>(), run_help},
};

Report report_of(const std::string& help) {
    Report report;
    report.text = help;
    report.json.set("help", help);
    return report;
}

Report run_help(const Arguments& arguments) {
    if (arguments.operands.empty())
        return overview_report();
    const Command& command = find_command(kCommands, arguments.operands);
    const std::size_t words = command.name.find(' ') == std::string_view::npos ? 1 : 2;
    if (arguments.operands.size() > words)
        throw UsageError("help explains one command at a time, e.g. gcx help verify");
    return help_report(command);
}

} // namespace

const std::span<const Command> commands = kCommands;

Report version_report() {
    Report report;
    const std::string version = GCX_VERSION_TEXT;
    report.text = "gcx " + version + "\n";
    report.json.set("version", version);
    return report;
}

Report overview_report() {
    return report_of(help_text(kCommands));
}

Report help_report(const Command& command) {
    return report_of(help_text(command));
}

} // namespace gcx::cli
