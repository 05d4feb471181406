// The command line: what the commands take, as data, and what was given.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gcx::cli {

// The command line was wrong: exit status 2, or that of the command it was for. The message says
// what was wrong and what would work.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
    int status = 2;
};

struct Option {
    std::string_view name;  // "--sms"
    std::string_view value; // what it takes, "COUNTS"; empty: it is a switch
    std::string_view help;
};

// Options that every command takes.
extern const std::span<const Option> global_options;

// Null if it isn't among them.
const Option* find_option(std::span<const Option> options, std::string_view name);

class Arguments {
  public:
    bool has(std::string_view option) const { return options_.contains(option); }
    std::optional<std::string> get(std::string_view option) const;

    // The value of an option as a number from least to most, otherwise if it wasn't given.
    uint32_t number(std::string_view option, uint32_t least, uint32_t most,
                    uint32_t otherwise) const;

    // What followed the options.
    std::vector<std::string> operands;

    void put(std::string_view option, std::string value);

  private:
    std::map<std::string, std::string, std::less<>> options_;
};

struct Report;

struct Command {
    std::string_view name; // "plan", "sim run"
    std::string_view summary;
    std::string_view operands; // "-- COMMAND [ARGUMENT...]"; empty: it takes none
    std::string_view description;
    std::string_view example;
    std::span<const Option> options;
    Report (*run)(const Arguments&);
    // The exit status when it fails, where scripts have to tell that from those of a command that
    // it runs; 0: 2 for a wrong command line, else 1.
    int failure_status = 0;
};

struct Invocation {
    const Command* command = nullptr; // null: gcx --help or --version
    bool help = false;
    bool version = false;
    Arguments arguments;
};

// Reads the words after the program's name.
Invocation parse(std::span<const Command> commands, std::span<char* const> words);

// A whole number without sign, and nothing else.
std::optional<uint32_t> parse_number(std::string_view text);

// The command with a name of one or two words, "sim run"; throws UsageError.
const Command& find_command(std::span<const Command> commands, std::span<const std::string> words);

} // namespace gcx::cli
