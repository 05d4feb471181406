// The command gcx: chooses what to run, prints what it reports, and says how it went.
#include "cli/args.hpp"
#include "cli/driver.hpp"
#include "cli/layout.hpp"
#include "cli/report.hpp"
#include "cli/text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

namespace gcx::cli {
namespace {

constexpr int kUsage = 2;

constexpr std::array kInfoOptions = {
    Option{"--device", "N", "this device alone; all of them if not given"},
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
constexpr std::array kSimRunOptions = {
    Option{"--gpu", "GPU", "h100, 2xh100, h100,a100, or a file that gcx info --record wrote"},
    Option{"--driver", "VERSION", "the CUDA version of the driver, e.g. 13.0"},
};

// It needs the table that it is part of, so that main runs it.
Report run_help(const Arguments& arguments);

constexpr std::array kCommands = {
    Command{"info", "the driver, the devices and what they can do", "",
            "Shows the driver, the devices, the atoms of each family, what the driver can do and "
            "what in\nthe environment limits SMs. --record makes contexts for a moment.",
            "gcx info --record gpu.profile", kInfoOptions, run_info},
    Command{
        "plan", "what a split would give, without making anything", "",
        "Shows how many SMs each partition would get. Counts are rounded up to what the GPU can "
        "give.\nExit status 0: the split is possible.",
        "gcx plan --sms 108,24", kPlanOptions, run_plan},
    Command{"split", "makes the partitions, runs a kernel in each, takes all down", "",
            "Makes a context and a stream for each partition, runs a kernel in each, and takes "
            "everything\ndown again, with the time of each step.",
            "gcx split --sms 108,24", kPlanOptions, run_split},
    Command{"verify", "shows which SMs each partition really uses", "",
            "Runs a kernel in each partition that notes the SMs it runs on, and shows a map. Exit "
            "status 0:\neach partition has as many SMs as promised and no SM is in two.",
            "gcx verify --sms 108,24 --svg sms.svg", kVerifyOptions, run_verify},
    Command{"bench", "gcx against the driver's own calls", "",
            "Measures gcx and the driver's own calls in turns, in one run, and how much device "
            "memory gcx\nuses up over many rounds.",
            "gcx bench --rounds 10000", kBenchOptions, run_bench},
    Command{"sim list", "the GPUs and drivers that can be simulated", "",
            "Shows the GPUs and driver versions of the simulated driver.", "gcx sim list",
            std::span<const Option>(), run_sim_list},
    Command{"sim run", "runs a command on the simulated driver", "-- COMMAND [ARGUMENT...]",
            "Runs COMMAND with gcx's simulated driver as its libcuda. The exit status is that of "
            "COMMAND; 127\nif there is none of that name, 126 if it can't be run.",
            "gcx sim run --gpu h100 --driver 13.0 -- gcx info", kSimRunOptions, run_sim_run},
    Command{"help", "this text, or that of a command", "[COMMAND]", "Explains gcx, or a command.",
            "gcx help verify", std::span<const Option>(), run_help},
};

Report help_report(const std::string& text) {
    Report report;
    report.text = text;
    report.json.set("help", text);
    return report;
}

Report run_help(const Arguments& arguments) {
    if (arguments.operands.empty())
        return help_report(help_text(kCommands));
    const Command& command = find_command(kCommands, arguments.operands);
    const std::size_t words = command.name.find(' ') == std::string_view::npos ? 1 : 2;
    if (arguments.operands.size() > words)
        throw UsageError("help explains one command at a time, e.g. gcx help verify");
    return help_report(help_text(command));
}

Report version_report() {
    Report report;
    const std::string version =
        format("%d.%d.%d", GCX_VERSION_MAJOR, GCX_VERSION_MINOR, GCX_VERSION_PATCH);
    report.text = "gcx " + version + "\n";
    report.json.set("version", version);
    return report;
}

// Where a descriptor of the first three is closed, the next file opened would take its place, and
// what is meant for the terminal would end up in it. Returns whether standard output was open.
bool hold_standard_descriptors() {
    const bool open_output = fcntl(STDOUT_FILENO, F_GETFD) != -1;
    for (int descriptor = 0; descriptor <= 2; descriptor++) {
        if (fcntl(descriptor, F_GETFD) == -1)
            static_cast<void>(open("/dev/null", O_RDWR));
    }
    return open_output;
}

void complain(const std::string& command, const std::string& message) {
    std::fprintf(stderr, "gcx%s%s: %s%s\n", command.empty() ? "" : " ", command.c_str(),
                 is_simulated() ? "SIMULATED: " : "", message.c_str());
}

// False, with a message, if not all of it could be written.
bool print(const std::string& command, const std::string& text) {
    errno = 0;
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
        return true;
    complain(command, format("can't write to standard output: %s", std::strerror(errno)));
    return false;
}

class Program {
  public:
    Program(std::span<char* const> words, bool open_output)
        : words_(words), open_output_(open_output), json_(asks_for_json(words)) {}

    int run() {
        try {
            return run_command();
        } catch (const UsageError& error) {
            fail(GCX_ERROR_INVALID_VALUE, error.what());
            return kUsage;
        } catch (const Failure& failure) {
            fail(failure.result, failure.what());
        } catch (const std::bad_alloc&) {
            fail(GCX_ERROR_OUT_OF_MEMORY, "this machine's memory is exhausted");
        } catch (const std::exception& error) {
            fail(GCX_ERROR_UNKNOWN, error.what());
        }
        return 1;
    }

  private:
    // Before the words are understood: a mistake in them is reported in JSON as well.
    static bool asks_for_json(std::span<char* const> words) {
        for (const std::string_view word : words) {
            if (word == "--")
                return false;
            if (word == "--json")
                return true;
        }
        return false;
    }

    int run_command() {
        const Invocation invocation = parse(kCommands, words_);
        json_ = invocation.arguments.has("--json");
        if (invocation.command != nullptr)
            command_ = invocation.command->name;
        // The output of sim run is the command's own affair.
        const bool needs_output = command_ != "sim run" || invocation.help;
        if (needs_output && !open_output_)
            throw Failure(GCX_ERROR_OPERATING_SYSTEM,
                          "can't write to standard output: it is closed");
        const Report report = report_of(invocation);
        const bool printed = print(command_, json_ ? report.json.dump() : report.text);
        for (const std::string& problem : report.problems)
            complain(command_, problem);
        if (!report.problems.empty())
            return report.status;
        return printed ? 0 : 1;
    }

    static Report report_of(const Invocation& invocation) {
        if (invocation.version)
            return version_report();
        if (invocation.command == nullptr) {
            if (!invocation.help)
                throw UsageError("there is no command; gcx help lists them, e.g. gcx info");
            return help_report(help_text(kCommands));
        }
        if (invocation.help)
            return help_report(help_text(*invocation.command));
        return invocation.command->run(invocation.arguments);
    }

    void fail(gcx_result result, const std::string& message) const {
        complain(command_, message);
        if (!json_ || !open_output_)
            return;
        Json json = Json::object();
        json.set("simulated", is_simulated())
            .set("error", Json::object()
                              .set("result", gcx_result_name(result))
                              .set("code", static_cast<int>(result))
                              .set("message", message));
        print(command_, json.dump());
    }

    std::span<char* const> words_;
    bool open_output_;
    bool json_;
    std::string command_;
};

} // namespace
} // namespace gcx::cli

int main(int argc, char** argv) {
    const bool open_output = gcx::cli::hold_standard_descriptors();
    const std::span<char* const> words(argv, static_cast<std::size_t>(argc));
    return gcx::cli::Program(words.subspan(argc > 0 ? 1 : 0), open_output).run();
}
