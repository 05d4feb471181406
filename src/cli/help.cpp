#include "cli/help.hpp"

#include "cli/text.hpp"

#include <algorithm>
#include <vector>

namespace gcx::cli {
namespace {

// So that a terminal of 80 columns doesn't fold lines.
constexpr std::size_t kTextWidth = 80;

// Words between line breaks that keep to the width; lines but the first are indented.
std::string wrapped(std::string_view words, std::size_t column, std::size_t indent) {
    std::string text;
    bool first = true;
    while (!words.empty()) {
        const std::size_t end = std::min(words.find(' '), words.size());
        if (!first && column + 1 + end > kTextWidth) {
            text += "\n" + std::string(indent, ' ');
            column = indent;
            first = true;
        }
        text += first ? "" : " ";
        column += end + (first ? 0 : 1);
        text += words.substr(0, end);
        words.remove_prefix(std::min(end + 1, words.size()));
        first = false;
    }
    return text;
}

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
        text += "  " + padded(command.name, width) +
                wrapped(command.summary, width + 2, width + 2) + "\n";
    text += "\noptions of every command:\n" + option_lines(global_options);
    text += "\nexit status: 0 on success, 2 for a wrong command line, 1 for anything else\n"
            "\nexample: gcx --driver sim:h100@13.0 verify --sms 108,24\n";
    return text;
}

std::string help_text(const Command& command) {
    const std::string name(command.name);
    std::string text = "usage: gcx " + name + " [OPTION...]";
    if (!command.operands.empty())
        (text += ' ') += command.operands;
    text += "\n\n" + wrapped(command.description, 0, 0) + "\n\noptions:\n";
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
