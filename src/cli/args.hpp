// The command line: the commands with their options and help, and what was given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gcx::cli {

struct Report;

// The command line is wrong: exit status 2, or the failure status of the command.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
    int status = 2;
};

struct Option {
    std::string_view name;  // "--sms"
    std::string_view value; // "COUNTS"; empty for a switch
    std::string_view help;
    std::string_view choices; // the only values that it takes, with spaces between; empty: any
};

class Arguments {
  public:
    bool has(std::string_view option) const { return options_.contains(option); }
    std::optional<std::string> get(std::string_view option) const;

    // Returns the option's value as a number from least to most, or otherwise if it was not given.
    uint32_t number(std::string_view option, uint32_t least, uint32_t most,
                    uint32_t otherwise) const;
    // Returns the value of an option that names a file. Throws UsageError if it is empty.
    std::optional<std::string> file(std::string_view option, const char* example) const;

    // What followed the options.
    std::vector<std::string> operands;

    void put(std::string_view option, std::string value);

  private:
    std::map<std::string, std::string, std::less<>> options_;
};

struct Command {
    std::string_view name; // "plan", "sim run"
    std::string_view summary;
    std::string_view operands; // "-- COMMAND [ARGUMENT...]"; empty if it takes none
    std::string_view description;
    std::string_view example;
    std::span<const Option> options;
    Report (*run)(const Arguments&);
    // The exit status of a failure, where scripts must tell it from those of a command that is run;
    // 0: 2 for a wrong command line, else 1.
    int failure_status = 0;

    // Whether it becomes another program, which writes the output.
    bool runs_another() const { return operands.starts_with("--"); }
};

// All commands, in the order of the help.
std::span<const Command> commands();
const Command* command_named(std::string_view name); // null if there is none
// The options that every command takes.
std::span<const Option> global_options();
// Returns the command's own options, then those of every command.
std::vector<Option> options_of(const Command& command);

// What the help of gcx itself and its man page say.
inline constexpr std::string_view kSummary = "divides the SMs of a GPU into partitions";
inline constexpr std::string_view kUsage[] = {
    "gcx [--driver SPEC] [--json] COMMAND [OPTION...]",
    "gcx help [COMMAND]",
    "gcx --version",
};
inline constexpr std::string_view kExitStatus =
    "0 on success, 2 for a wrong command line, 1 for anything else";
inline constexpr std::string_view kExample = "gcx --driver sim:h100@13.0 verify --sms 108,24";

struct Invocation {
    const Command* command = nullptr; // null: gcx --help or --version
    bool help = false;
    bool version = false;
    Arguments arguments;
};

// Reads the words behind the program's name. Throws UsageError.
Invocation parse(std::span<char* const> words);

// Returns a whole number without a sign, and nothing if the text is anything else.
std::optional<uint32_t> parse_number(std::string_view text);

// Returns a number like "12.5" without a sign in units of its last decimal, exactly; nothing if the
// text is anything else or has more decimals. There are 9 decimals at most.
std::optional<uint64_t> parse_decimal(std::string_view text, std::size_t decimals);

// Runs the command, or returns the text that --help or --version asks for. Throws UsageError.
Report report_of(const Invocation& invocation);

// The commands, each in a file of its name.
Report run_info(const Arguments& arguments);
Report run_plan(const Arguments& arguments);
Report run_split(const Arguments& arguments);
Report run_verify(const Arguments& arguments);
Report run_bench(const Arguments& arguments);
Report run_bench_repartition(const Arguments& arguments);
Report run_exec(const Arguments& arguments);
Report run_ps(const Arguments& arguments);
Report run_top(const Arguments& arguments);
Report run_sim_list(const Arguments& arguments);
Report run_sim_run(const Arguments& arguments);

} // namespace gcx::cli
