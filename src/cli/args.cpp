#include "cli/args.hpp"

#include "cli/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace gcx::cli {
namespace {

constexpr std::array kGlobalOptions = {
    Option{"--driver", "SPEC",
           "the driver: sim:GPU@VERSION for the simulated one, or a path; otherwise the "
           "environment's GCX_DRIVER, otherwise libcuda.so.1"},
    Option{"--json", "", "print JSON, errors too"},
    Option{"--help", "", "print this text"},
};

std::string names_of(std::span<const Option> options) {
    std::string names;
    for (const Option& option : options)
        (names += names.empty() ? "" : ", ") += option.name;
    return names;
}

std::string example_of(const Command* command) {
    return "e.g. " + std::string(command != nullptr ? command->example : "gcx plan --sms 108,24");
}

// One pass over the words, from the left.
class Parser {
  public:
    Parser(std::span<const Command> commands, std::span<char* const> words)
        : commands_(commands), words_(words) {}

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

    // Whether words may come before further options; those of another program may not.
    bool takes_words() const {
        return !command()->operands.empty() && !command()->operands.starts_with("--");
    }

    void read_command() {
        const std::size_t most = std::min<std::size_t>(2, words_.size() - at_);
        std::vector<std::string> words(words_.begin() + static_cast<std::ptrdiff_t>(at_),
                                       words_.begin() + static_cast<std::ptrdiff_t>(at_ + most));
        const Command& found = find_command(commands_, words);
        at_ += found.name.find(' ') == std::string_view::npos ? 1 : 2;
        invocation_.command = &found;
    }

    void read_option(std::string_view word) {
        if (word == "-h")
            word = "--help";
        if (word == "--version" && command() == nullptr) {
            invocation_.version = true;
            at_++;
            return;
        }
        const std::size_t equals = word.find('=');
        const std::string_view name = word.substr(0, equals);
        const Option* option =
            command() != nullptr ? find_option(command()->options, name) : nullptr;
        if (option == nullptr)
            option = find_option(global_options, name);
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
            message += " before a command; gcx takes " + names_of(global_options) + ", --version";
        else
            message += "; gcx " + std::string(command()->name) + " takes " +
                       (command()->options.empty() ? "" : names_of(command()->options) + ", ") +
                       names_of(global_options);
        throw UsageError(message + "; " + example_of(command()));
    }

    void read_operands() {
        const auto rest = words_.subspan(std::min(at_, words_.size()));
        if (rest.empty())
            return;
        if (command() == nullptr)
            throw UsageError("there is no command before --; " + example_of(nullptr));
        if (command()->operands.empty())
            throw UsageError("gcx " + std::string(command()->name) + " doesn't know what \"" +
                             rest[0] + "\" is for: it takes options alone, " +
                             example_of(command()));
        std::vector<std::string>& operands = invocation_.arguments.operands;
        operands.insert(operands.end(), rest.begin(), rest.end());
    }

    std::span<const Command> commands_;
    std::span<char* const> words_;
    std::size_t at_ = 0;
    Invocation invocation_;
};

} // namespace

const std::span<const Option> global_options = kGlobalOptions;

const Option* find_option(std::span<const Option> options, std::string_view name) {
    const auto found = std::find_if(options.begin(), options.end(),
                                    [&](const Option& option) { return option.name == name; });
    return found == options.end() ? nullptr : &*found;
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
        throw UsageError(format("%.*s %s: \"%s\" is no whole number from %u to %u, e.g. %.*s %u",
                                static_cast<int>(option.size()), option.data(), text->c_str(),
                                text->c_str(), least, most, static_cast<int>(option.size()),
                                option.data(), otherwise));
    return *value;
}

std::optional<uint32_t> parse_number(std::string_view text) {
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

const Command& find_command(std::span<const Command> commands, std::span<const std::string> words) {
    const std::string one = words.empty() ? "" : words[0];
    const std::string two = words.size() < 2 ? one : one + " " + words[1];
    std::string names;
    std::string longer;
    const auto named = [&](const std::string& name) {
        return std::find_if(commands.begin(), commands.end(),
                            [&](const Command& command) { return command.name == name; });
    };
    // "bench isolation" before "bench".
    for (const std::string& name : {two, one}) {
        if (const auto found = named(name); found != commands.end())
            return *found;
    }
    for (const Command& command : commands) {
        (names += names.empty() ? "" : ", ") += command.name;
        if (command.name.starts_with(one + " "))
            (longer += longer.empty() ? "gcx " : " or gcx ") += command.name;
    }
    if (!longer.empty())
        throw UsageError("\"gcx " + one + "\" needs one word more: " + longer +
                         ", e.g. gcx sim run --gpu h100 --driver 13.0 -- gcx info");
    throw UsageError("unknown command \"" + one + "\"; the commands are " + names + "; " +
                     example_of(nullptr));
}

Invocation parse(std::span<const Command> commands, std::span<char* const> words) {
    return Parser(commands, words).run();
}

} // namespace gcx::cli
