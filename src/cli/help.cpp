#include "cli/help.hpp"

#include "cli/text.hpp"

#include <algorithm>
#include <vector>

namespace gcx::cli {
namespace {

std::string option_lines(std::span<const Option> options) {
    constexpr std::size_t kNameWidth = 20;
    constexpr std::size_t kTextWidth = 76;
    std::string text;
    for (const Option& option : options) {
        std::string name = "  " + std::string(option.name);
        if (!option.value.empty())
            (name += ' ') += option.value;
        std::string line = padded(name, kNameWidth);
        if (name.size() >= kNameWidth)
            line += "\n" + std::string(kNameWidth, ' ');
        std::size_t column = kNameWidth;
        for (std::string_view rest = option.help; !rest.empty();) {
            const std::size_t end = std::min(rest.find(' '), rest.size());
            if (column + 1 + end > kTextWidth) {
                line += "\n" + std::string(kNameWidth, ' ');
                column = kNameWidth;
            }
            (line += ' ') += rest.substr(0, end);
            column += 1 + end;
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        text += line + "\n";
    }
    return text;
}

} // namespace

std::string help_text(std::span<const Command> known) {
    std::string text = "gcx divides the SMs of a GPU into partitions.\n\n"
                       "usage: gcx [--driver SPEC] [--json] COMMAND [OPTION...]\n"
                       "       gcx help [COMMAND]\n"
                       "       gcx --version\n\n"
                       "commands:\n";
    std::size_t width = 0;
    for (const Command& command : known)
        width = std::max(width, command.name.size() + 2);
    for (const Command& command : known)
        text += "  " + padded(command.name, width) + std::string(command.summary) + "\n";
    text += "\noptions of every command:\n" + option_lines(global_options);
    text += "\nexit status: 0 what was asked holds; 2 the command line is wrong; 1 anything else.\n"
            "\nexample: gcx --driver sim:h100@13.0 verify --sms 108,24\n";
    return text;
}

std::string help_text(const Command& command) {
    const std::string name(command.name);
    std::string text = "usage: gcx " + name + " [OPTION...]";
    if (!command.operands.empty())
        (text += ' ') += command.operands;
    text += "\n\n" + std::string(command.description) + "\n\noptions:\n";
    std::vector<Option> options(command.options.begin(), command.options.end());
    for (const Option& option : global_options) {
        if (find_option(command.options, option.name) == nullptr)
            options.push_back(option);
    }
    text += option_lines(options);
    text += "\nexample: " + std::string(command.example) + "\n";
    return text;
}

} // namespace gcx::cli
