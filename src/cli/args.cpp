#include "cli/args.hpp"

#include "cli/output.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace gcx::cli {
namespace {

constexpr std::array kGlobalOptions = {
    Option{"--driver", "SPEC",
           "the driver: sim:GPU@VERSION for the simulated one, or a path; if not given, "
           "GCX_DRIVER or libcuda.so.1"},
    Option{"--json", "", "print JSON, also for errors"},
    Option{"--help", "", "print this text"},
};

constexpr Option kDevice = {"--device", "DEVICE",
                            "the device's ordinal or (the beginning of) its UUID; 0 if not given"};
constexpr Option kFamily = {
    "--family", "NAME",
    "coscheduled (large clusters work), fine (the smallest steps) or max-cluster (for the largest "
    "clusters); coscheduled if not given",
    "coscheduled fine max-cluster"};
constexpr std::array kInfoOptions = {
    Option{"--device", "DEVICE",
           "only this device, by its ordinal or UUID; all devices if not given"},
    Option{"--limits", "",
           "also stream priorities and the largest thread block clusters; creates contexts to find "
           "out"},
    Option{"--record", "FILE",
           "write the device (0 if not given) as a profile for the simulated driver"},
};
// plan and split take the first four, verify takes all.
constexpr std::array kSplitOptions = {
    Option{
        "--sms", "COUNTS",
        "the SMs of each partition, e.g. 108,24; 25% is at most that part of all; rest takes what "
        "the others leave"},
    kDevice,
    kFamily,
    Option{"--exact", "", "refuse a count or percentage that would have to be rounded"},
    Option{"--svg", "FILE", "write the map as an SVG picture"},
};
constexpr std::span kPlanOptions = std::span(kSplitOptions).first(4);
constexpr std::array kBenchOptions = {
    kDevice,
    Option{"--rounds", "N",
           "rounds of split, two contexts, two streams, destroy; the other measurements scale with "
           "it; 10000 if not given"},
};
constexpr std::array kRepartitionOptions = {
    kDevice,
    Option{"--rounds", "N", "rounds of each measurement; 1000 if not given"},
};
constexpr std::array kExecOptions = {
    Option{"--sms", "SMS",
           "the SMs of each device: a count, a percentage like 12.5%, which is never exceeded, or "
           "rest for all free SMs"},
    Option{"--device", "DEVICES", "ordinals or UUIDs, like 0,2; all devices if not given"},
    Option{"--layout", "DEVICE=SMS,...", "instead of --sms and --device: the SMs of each device"},
    kFamily,
    Option{"--report", "WHAT",
           "the SM count that programs see: partition, device, or auto (if not given), which is "
           "the partition's except for cuBLAS versions that compute wrong results with it",
           "partition device auto"},
    Option{"--contexts", "WHAT",
           "the SMs of contexts that programs create with cuCtxCreate: the partition's (partition, "
           "if not given) or all of the device (device)",
           "partition device"},
    Option{"--wait", "SECONDS",
           "how long to wait for SMs that other processes have reserved, like 60 or 0.5; 0 if not "
           "given"},
    Option{"--name", "NAME",
           "the reservation's name in gcx ps; the name of the command if not given"},
    Option{"--join", "NAME",
           "share the SMs of your reservation of this name, instead of reserving any"},
    Option{"--shared", "", "reserve nothing: other processes may use the same SMs"},
    Option{"--exact", "", "refuse a count or percentage that would have to be rounded"},
    Option{
        "--quiet", "",
        "print only errors, and that a command isn't in the partition itself, on standard error"},
};
constexpr std::array kTopOptions = {
    Option{"--once", "", "print the current state and exit, as without a terminal"},
    Option{"--interval", "SECONDS", "time between updates; 1 if not given"},
    Option{"--metrics", "", "print OpenMetrics text and exit, for a textfile collector"},
};
constexpr std::array kPsOptions = {
    Option{"--folder", "PATH",
           "where processes keep reservations; if not given, GCX_RESERVATION_DIR or "
           "/dev/shm/gcx-UID"},
};
constexpr std::array kSimRunOptions = {
    Option{"--gpu", "GPU", "h100, 2xh100, h100,a100, or a file that gcx info --record wrote"},
    Option{"--driver", "VERSION", "the CUDA version of the driver, e.g. 13.0"},
};

constexpr std::span<const Option> kNoOptions;

Report run_help(const Arguments& arguments);

constexpr std::array kCommands = {
    Command{"info", "shows the driver, the devices and their capabilities", "",
            "Shows the driver, the devices, the atoms of each family, the driver's capabilities, "
            "and environment variables that limit SMs. --limits and --record create contexts.",
            "gcx info --record gpu.profile", kInfoOptions, run_info},
    Command{"plan", "shows what a split would give, and creates nothing", "",
            "Shows how many SMs each partition would get. Counts are rounded up to what the GPU "
            "can give. Exit status 0: the split is possible.",
            "gcx plan --sms 108,24", kPlanOptions, run_plan},
    Command{"split", "creates the partitions, runs kernels, and destroys them", "",
            "Creates a context and a stream for each partition, runs a kernel in each, and "
            "destroys everything, with the time of each step.",
            "gcx split --sms 108,24", kPlanOptions, run_split},
    Command{"verify", "shows which SMs each partition really uses", "",
            "Runs a kernel in each partition that records the SMs it runs on, and shows a map. "
            "Exit status 0: each partition has as many SMs as promised and no SM is in two.",
            "gcx verify --sms 108,24 --svg sms.svg", kSplitOptions, run_verify},
    Command{"bench", "compares gcx with the driver's own calls", "",
            "Measures gcx and the driver's own calls alternately, in one run, and how much device "
            "memory gcx uses over many rounds.",
            "gcx bench --rounds 10000", kBenchOptions, run_bench},
    Command{"bench repartition", "measures resizes of leases", "",
            "Measures leases: acquiring, resizing while idle and next to a busy third, and the "
            "time to the end of the first kernel after a resize, with the driver's own calls for "
            "comparison.",
            "gcx bench repartition --rounds 1000", kRepartitionOptions, run_bench_repartition},
    Command{"exec", "runs any CUDA program on a part of the GPU", "-- COMMAND [ARGUMENT...]",
            "Runs COMMAND and all programs that it starts on the given SMs. They need not know "
            "gcx. The exit status is that of COMMAND; 127 if there is no such command, 126 if it "
            "can't be run, 125 if gcx itself failed.",
            "gcx exec --sms 24 -- python serve.py", kExecOptions, run_exec, 125},
    Command{"ps", "shows which processes have reserved which SMs", "",
            "Shows the reservations of all processes that use the same folder, and the processes "
            "that wait for SMs. Opens no driver.",
            "gcx ps --json", kPsOptions, run_ps},
    Command{"top", "shows the leases that running processes publish", "",
            "Shows the leases of your processes that publish them, with GCX_PUBLISH=1 in the "
            "environment or by a call, with a map of the SMs, and all reservations. Updates until "
            "q is pressed. Opens no driver.",
            "gcx top --once", kTopOptions, run_top},
    Command{"sim list", "shows the GPUs and drivers that can be simulated", "",
            "Shows the GPUs and driver versions of the simulated driver.", "gcx sim list",
            kNoOptions, run_sim_list},
    Command{"sim run", "runs a command on the simulated driver", "-- COMMAND [ARGUMENT...]",
            "Runs COMMAND with gcx's simulated driver as its libcuda. The exit status is that of "
            "COMMAND; 127 if there is no such command, 126 if it can't be run.",
            "gcx sim run --gpu h100 --driver 13.0 -- gcx info", kSimRunOptions, run_sim_run},
    Command{"help", "explains gcx, or a command", "[COMMAND]", "Explains gcx, or a command.",
            "gcx help verify", kNoOptions, run_help},
};

std::string option_lines(std::span<const Option> options) {
    constexpr std::size_t kNameWidth = 20;
    std::string text;
    for (const Option& option : options) {
        std::string name = "  " + std::string(option.name);
        if (!option.value.empty())
            (name += ' ') += option.value;
        std::string line = padded(name, kNameWidth);
        if (name.size() >= kNameWidth)
            line += "\n" + std::string(kNameWidth, ' ');
        line += ' ';
        text += line + wrapped(option.help, kNameWidth + 1, kNameWidth + 1) + "\n";
    }
    return text;
}

const Option* find_option(std::span<const Option> options, std::string_view name) {
    const auto found = std::ranges::find(options, name, &Option::name);
    return found == options.end() ? nullptr : &*found;
}

std::string overview_text() {
    std::string text = "gcx " + std::string(kSummary) + ".\n\n";
    std::string before = "usage: ";
    for (const std::string_view usage : kUsage) {
        ((text += before) += usage) += "\n";
        before = "       ";
    }
    text += "\ncommands:\n";
    std::size_t width = 0;
    for (const Command& command : kCommands)
        width = std::max(width, command.name.size() + 2);
    for (const Command& command : kCommands)
        text += "  " + padded(command.name, width) +
                wrapped(command.summary, width + 2, width + 2) + "\n";
    text += "\noptions of every command:\n" + option_lines(kGlobalOptions);
    text += "\nexit status: " + std::string(kExitStatus) + "\n";
    text += "\nexample: " + std::string(kExample) + "\n";
    return text;
}

std::string help_text(const Command& command) {
    const std::string name(command.name);
    std::string text = "usage: gcx " + name + " [OPTION...]";
    if (!command.operands.empty())
        (text += ' ') += command.operands;
    text += "\n\n" + wrapped(command.description, 0, 0) + "\n\noptions:\n";
    text += option_lines(options_of(command));
    text += "\nexample: " + std::string(command.example) + "\n";
    return text;
}

std::string names_of(std::span<const Option> options) {
    std::string names;
    for (const Option& option : options)
        (names += names.empty() ? "" : ", ") += option.name;
    return names;
}

std::string example_of(const Command* command) {
    return "e.g. " + std::string(command != nullptr ? command->example : "gcx plan --sms 108,24");
}

// Returns the command with a name of one or two words, "sim run". Throws UsageError.
const Command& find_command(std::span<const std::string> words) {
    const std::string one = words.empty() ? "" : words[0];
    const std::string two = words.size() < 2 ? one : one + " " + words[1];
    std::string names;
    std::string longer;
    // "bench repartition" comes before "bench".
    for (const std::string& name : {two, one}) {
        if (const Command* const found = command_named(name); found != nullptr)
            return *found;
    }
    for (const Command& command : kCommands) {
        (names += names.empty() ? "" : ", ") += command.name;
        if (command.name.starts_with(one + " "))
            (longer += longer.empty() ? "gcx " : " or gcx ") += command.name;
    }
    if (!longer.empty())
        throw UsageError("\"gcx " + one + "\" is incomplete; give " + longer +
                         ", e.g. gcx sim run --gpu h100 --driver 13.0 -- gcx info");
    throw UsageError("unknown command \"" + one + "\"; the commands are " + names + "; " +
                     example_of(nullptr));
}

// Reads the words once, from the left.
class Parser {
  public:
    explicit Parser(std::span<char* const> words) : words_(words) {}

    Invocation run() {
        try {
            return read_words();
        } catch (UsageError& error) {
            if (command() != nullptr && command()->failure_status != 0)
                error.status = command()->failure_status;
            throw;
        }
    }

  private:
    Invocation read_words() {
        while (at_ < words_.size()) {
            const std::string_view word = words_[at_];
            if (word == "--") {
                at_++;
                break;
            }
            if (word.size() > 1 && word[0] == '-')
                read_option(word);
            else if (invocation_.command == nullptr)
                read_command();
            else if (!takes_words())
                break;
            else
                invocation_.arguments.operands.emplace_back(words_[at_++]);
        }
        read_operands();
        return std::move(invocation_);
    }

    const Command* command() const { return invocation_.command; }

    // Whether options may follow words: not those of another program.
    bool takes_words() const { return !command()->operands.empty() && !command()->runs_another(); }

    void read_command() {
        const std::size_t most = std::min<std::size_t>(2, words_.size() - at_);
        std::vector<std::string> words(words_.begin() + static_cast<std::ptrdiff_t>(at_),
                                       words_.begin() + static_cast<std::ptrdiff_t>(at_ + most));
        const Command& found = find_command(words);
        at_ += found.name.find(' ') == std::string_view::npos ? 1 : 2;
        invocation_.command = &found;
    }

    void read_option(std::string_view word) {
        if (word == "-h")
            word = "--help";
        const std::size_t equals = word.find('=');
        const std::string_view name = word.substr(0, equals);
        if (name == "--version" && command() == nullptr) {
            if (equals != std::string_view::npos)
                throw UsageError("--version takes no value");
            invocation_.version = true;
            at_++;
            return;
        }
        const Option* option =
            command() != nullptr ? find_option(command()->options, name) : nullptr;
        if (option == nullptr)
            option = find_option(kGlobalOptions, name);
        if (option == nullptr)
            refuse_option(name);
        at_++;
        if (invocation_.arguments.has(name))
            throw UsageError(std::string(name) + " is given twice; give it once, " +
                             example_of(command()));
        if (option->value.empty() && equals != std::string_view::npos)
            throw UsageError(std::string(name) + " takes no value");
        invocation_.arguments.put(name, option->value.empty() ? "" : value_of(*option, word));
        invocation_.help = invocation_.help || option->name == "--help";
    }

    std::string value_of(const Option& option, std::string_view word) {
        const std::size_t equals = word.find('=');
        if (equals != std::string_view::npos)
            return std::string(word.substr(equals + 1));
        // A value may begin with one dash, so that "--sms -3" is a bad number; two begin the next
        // option.
        if (at_ == words_.size() || std::string_view(words_[at_]).starts_with("--"))
            throw UsageError(std::string(option.name) +
                             " needs a value: " + std::string(option.name) + " " +
                             std::string(option.value) + ", " + example_of(command()));
        return words_[at_++];
    }

    [[noreturn]] void refuse_option(std::string_view name) const {
        std::string message = "unknown option " + std::string(name);
        if (command() == nullptr)
            message += " before a command; gcx takes " + names_of(kGlobalOptions) + ", --version";
        else
            message += "; gcx " + std::string(command()->name) + " takes " +
                       (command()->options.empty() ? "" : names_of(command()->options) + ", ") +
                       names_of(kGlobalOptions);
        throw UsageError(message + "; " + example_of(command()));
    }

    void read_operands() {
        const auto rest = words_.subspan(std::min(at_, words_.size()));
        if (rest.empty())
            return;
        if (command() == nullptr)
            throw UsageError("there is no command before --; " + example_of(nullptr));
        if (command()->operands.empty())
            throw UsageError("unexpected word \"" + std::string(rest[0]) + "\": gcx " +
                             std::string(command()->name) + " takes only options, " +
                             example_of(command()));
        std::vector<std::string>& operands = invocation_.arguments.operands;
        operands.insert(operands.end(), rest.begin(), rest.end());
    }

    std::span<char* const> words_;
    std::size_t at_ = 0;
    Invocation invocation_;
};

// command: null for the overview.
Report help_report(const Command* command) {
    Report report;
    report.text = command != nullptr ? help_text(*command) : overview_text();
    report.json.set("help", report.text);
    return report;
}

Report run_help(const Arguments& arguments) {
    if (arguments.operands.empty())
        return help_report(nullptr);
    const Command& command = find_command(arguments.operands);
    const std::size_t words = command.name.find(' ') == std::string_view::npos ? 1 : 2;
    if (arguments.operands.size() > words)
        throw UsageError("help explains one command at a time, e.g. gcx help verify");
    return help_report(&command);
}

} // namespace

std::span<const Command> commands() {
    return kCommands;
}

const Command* command_named(std::string_view name) {
    const auto* const found = std::ranges::find(kCommands, name, &Command::name);
    return found == kCommands.end() ? nullptr : found;
}

std::span<const Option> global_options() {
    return kGlobalOptions;
}

std::vector<Option> options_of(const Command& command) {
    std::vector<Option> options(command.options.begin(), command.options.end());
    for (const Option& option : kGlobalOptions) {
        if (find_option(command.options, option.name) == nullptr)
            options.push_back(option);
    }
    return options;
}

Report report_of(const Invocation& invocation) {
    if (invocation.version) {
        Report report;
        report.text = "gcx " GCX_VERSION_TEXT "\n";
        report.json.set("version", GCX_VERSION_TEXT);
        return report;
    }
    if (invocation.help)
        return help_report(invocation.command);
    if (invocation.command == nullptr)
        throw UsageError("there is no command; gcx help lists them, e.g. gcx info");
    return invocation.command->run(invocation.arguments);
}

std::optional<std::string> Arguments::get(std::string_view option) const {
    const auto found = options_.find(option);
    if (found == options_.end())
        return std::nullopt;
    return found->second;
}

void Arguments::put(std::string_view option, std::string value) {
    options_.insert_or_assign(std::string(option), std::move(value));
}

uint32_t Arguments::number(std::string_view option, uint32_t least, uint32_t most,
                           uint32_t otherwise) const {
    const auto text = get(option);
    if (!text)
        return otherwise;
    const auto value = parse_number(*text);
    if (!value || *value < least || *value > most)
        throw UsageError(format("%s %s: \"%s\" is not a whole number from %u to %u, e.g. %s %u",
                                std::string(option).c_str(), text->c_str(), text->c_str(), least,
                                most, std::string(option).c_str(), otherwise));
    return *value;
}

std::optional<std::string> Arguments::file(std::string_view option, const char* example) const {
    const auto given = get(option);
    if (given && given->empty())
        throw UsageError(format("%s is empty; give the file to write, e.g. %s %s",
                                std::string(option).c_str(), std::string(option).c_str(), example));
    return given;
}

std::optional<uint32_t> parse_number(std::string_view text) {
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

std::optional<uint64_t> parse_decimal(std::string_view text, std::size_t decimals) {
    const std::size_t point = std::min(text.find('.'), text.size());
    std::string fraction(text.substr(std::min(point + 1, text.size())));
    if (fraction.size() > decimals || (fraction.empty() && point != text.size()))
        return std::nullopt;
    fraction.resize(decimals, '0');
    const auto whole = parse_number(text.substr(0, point));
    const auto rest = parse_number(fraction);
    if (!whole || !rest)
        return std::nullopt;
    uint64_t value = *whole;
    for (std::size_t i = 0; i < decimals; i++)
        value *= 10;
    return value + *rest;
}

Invocation parse(std::span<char* const> words) {
    return Parser(words).run();
}

} // namespace gcx::cli
