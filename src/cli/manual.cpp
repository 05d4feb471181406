// gcx-manual FOLDER: writes the man pages and the completion of three shells from the tables of
// args.cpp. Only a build with tests has it. tools/regenerate.sh writes to src/cli/generated.
#include "cli/args.hpp"
#include "cli/output.hpp"

#include <gcx_sim.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>

namespace gcx::cli {
namespace {

constexpr std::string_view kOrigin = "Written by gcx-manual from src/cli/args.cpp: "
                                     "tools/regenerate.sh";

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
    std::string result(text);
    for (std::size_t at = 0; (at = result.find(from, at)) != std::string::npos; at += to.size())
        result.replace(at, from.size(), to);
    return result;
}

// Appends the words, with a space before each.
void append(std::string& list, std::string_view words) {
    if (!words.empty())
        (list += list.empty() ? "" : " ") += words;
}

// Values of an option, for completion.

// The simulator's names, each after the prefix.
std::string simulated(const char* (*name)(std::size_t), std::string_view prefix) {
    std::string names;
    for (std::size_t i = 0; name(i) != nullptr; i++)
        append(names, std::string(prefix) + name(i));
    return names;
}

std::string choices_of(const Option& option) {
    if (option.value == "SPEC")
        return simulated(gcx_sim_gpu_name, "sim:");
    if (option.value == "GPU")
        return simulated(gcx_sim_gpu_name, "");
    if (option.value == "VERSION")
        return simulated(gcx_sim_driver_name, "");
    return std::string(option.choices);
}

bool takes_folder(const Option& option) {
    return option.value == "PATH";
}

bool takes_file(const Option& option) {
    return option.value == "FILE" || option.value == "SPEC" || option.value == "GPU";
}

// Words of commands: "sim" is the first word of "sim list" and "sim run".

std::string_view first_word(std::string_view name) {
    return name.substr(0, name.find(' '));
}

std::string_view second_word(std::string_view name) {
    const std::size_t space = name.find(' ');
    return space == std::string_view::npos ? "" : name.substr(space + 1);
}

struct Word {
    std::string_view text;
    std::string_view summary;
};

// Returns the words that may follow a first word, or the first words for an empty text.
std::vector<Word> words_after(std::string_view first) {
    std::vector<Word> words;
    for (const Command& command : commands()) {
        const std::string_view word = first.empty() ? first_word(command.name)
                                      : first_word(command.name) == first
                                          ? second_word(command.name)
                                          : "";
        const bool known = !words.empty() && words.back().text == word;
        if (word.empty() || known)
            continue;
        const bool has_summary = !first.empty() || command_named(word) != nullptr; // "sim" has none
        words.push_back({word, has_summary ? command.summary : "the simulated driver"});
    }
    return words;
}

std::string texts_of(const std::vector<Word>& words) {
    std::string texts;
    for (const Word& word : words)
        append(texts, word.text);
    return texts;
}

// Returns the first words that others follow: "bench", "sim".
std::vector<std::string_view> groups() {
    std::vector<std::string_view> words;
    for (const Word& word : words_after("")) {
        if (!words_after(word.text).empty())
            words.push_back(word.text);
    }
    return words;
}

// Returns the options that may stand before a command.
std::vector<Option> first_options() {
    std::vector<Option> options(global_options().begin(), global_options().end());
    options.push_back({"--version", "", "print the version", ""});
    return options;
}

// Man pages.

std::string roff_word(std::string_view text) {
    return replaced(replaced(text, "\\", "\\e"), "-", "\\-");
}

// Escapes a text and breaks it into lines, so that each sentence begins one.
std::string roff(std::string_view text) {
    std::string lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(". "), text.size() - 1) + 1;
        const std::string sentence = wrapped(roff_word(text.substr(0, end)), 0, 0);
        (lines += lines.empty() ? "" : "\n") += sentence;
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return replaced(lines, "\n.", "\n\\&."); // a line that begins with a point is a request
}

// Escapes a text whose words in capitals stand for others.
std::string roff_usage(std::string_view text) {
    std::string result;
    bool italic = false;
    for (const char c : text) {
        const bool capital = std::isupper(static_cast<unsigned char>(c)) != 0;
        if (capital != italic)
            result += capital ? "\\fI" : "\\fR";
        italic = capital;
        result += roff_word(std::string_view(&c, 1));
    }
    return result + (italic ? "\\fR" : "");
}

std::string page_name(std::string_view command) {
    return "gcx-" + replaced(command, " ", "-");
}

std::string roff_options(std::span<const Option> options) {
    std::string text;
    for (const Option& option : options) {
        text += ".TP\n\\fB" + roff_word(option.name) + "\\fR";
        if (!option.value.empty())
            text += " " + roff_usage(option.value);
        if (option.name == "--help")
            text += ", \\fB\\-h\\fR";
        text += "\n" + roff(option.help) + "\n";
    }
    return text;
}

std::string roff_example(std::string_view example) {
    return ".SH EXAMPLE\n.EX\n" + roff_word(example) + "\n.EE\n";
}

std::string page(std::string_view name, std::string_view summary, const std::string& sections) {
    std::string title;
    for (const char c : name)
        title += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    // Without a date, which would be that of the build or a wrong one.
    return ".\\\" " + std::string(kOrigin) + "\n.TH " + title +
           " 1 \"\" gcx \"gcx manual\"\n.nh\n.ad l\n" + ".SH NAME\n" + roff_word(name) + " \\- " +
           roff(summary) + "\n" + sections;
}

std::string page_of(const Command& command) {
    std::string sections =
        ".SH SYNOPSIS\n\\fBgcx " + std::string(command.name) + "\\fR " + roff_usage("[OPTION...]");
    if (!command.operands.empty())
        sections += " " + roff_usage(command.operands);
    sections += "\n.SH DESCRIPTION\n" + roff(command.description) + "\n";
    sections += ".SH OPTIONS\n" + roff_options(options_of(command));
    if (!command.runs_another()) // whose description has the exit status
        sections += ".SH EXIT STATUS\n" + std::string(kExitStatus) + ".\n";
    sections += roff_example(command.example) + ".SH SEE ALSO\n.BR gcx (1)\n";
    return page(page_name(command.name), command.summary, sections);
}

std::string page_of_all() {
    std::string sections = ".SH SYNOPSIS\n";
    for (const std::string_view usage : kUsage)
        sections += (usage == kUsage[0] ? "" : ".br\n") + roff_usage(usage) + "\n";
    sections += ".SH COMMANDS\n";
    for (const Command& command : commands())
        sections += ".TP\n\\fB" + roff_word(command.name) + "\\fR\n" + roff(command.summary) + "\n";
    sections += ".SH OPTIONS\n" + roff_options(first_options());
    sections += ".SH EXIT STATUS\n" + std::string(kExitStatus) + ".\n" + roff_example(kExample);
    sections += ".SH SEE ALSO\n";
    for (const Command& command : commands())
        sections += ".BR " + roff_word(page_name(command.name)) + " (1)" +
                    (&command == &commands().back() ? "\n" : ",\n");
    return page("gcx", kSummary, sections);
}

// Completion in bash.

constexpr std::string_view kBash = R"(# Completion of gcx in bash. ORIGIN
_gcx() {
    local line=${COMP_LINE:0:COMP_POINT} value='' command='' option='' i
    local words=() options='' next='' choices='' files='' found=''
    read -ra words <<<"$line"
    if [[ $line != *[[:space:]] ]]; then
        value=${words[-1]}
        unset 'words[-1]'
    fi
    for ((i = 1; i < ${#words[@]}; i++)); do
        case ${words[i]} in
        --)
            _gcx_run "$value"
            return
            ;;
        VALUED) ((++i < ${#words[@]})) || option=${words[-1]} ;;
        -*) ;;
        *) command+=${command:+ }${words[i]} ;;
        esac
    done
    if [[ -z $option && $value == --*=* ]]; then
        option=${value%%=*}
        value=${value#*=}
    fi
    case $command in
CASES    esac
    if [[ -n $option ]]; then
        next=$choices
    elif [[ $value == -* || -z $next ]]; then
        next=
        for option in $options; do
            [[ " ${words[*]} " == *" $option"[\ =]* ]] || next+=" $option"
        done
        option=
    fi
    mapfile -t COMPREPLY < <(
        compgen -W "$next" -- "$value"
        [[ -n $option && -n $files ]] && compgen "$files" -- "$value"
    )
    [[ -n $option && -n $files ]] && compopt -o filenames
    # Readline replaces only what follows the last of COMP_WORDBREAKS, such as the colon of sim:h100.
    found=${COMP_WORDS[COMP_CWORD]}
    [[ $found == [=:@] ]] && found=
    if [[ $value == *"$found" ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${value%"$found"}"}")
    fi
}

# Completes the command that gcx runs, after "--".
_gcx_run() {
    local i
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -- ]] && break
    done
    if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
    elif ((i + 1 == COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$1")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$1")
        compopt -o filenames
    fi
}

complete -F _gcx gcx
)";

// Returns the alternatives of a pattern: all options that take a value.
std::string valued_options() {
    std::vector<std::string_view> names;
    const auto add = [&](std::span<const Option> options) {
        for (const Option& option : options) {
            if (!option.value.empty() && std::ranges::find(names, option.name) == names.end())
                names.push_back(option.name);
        }
    };
    for (const Command& command : commands())
        add(options_of(command));
    std::string list;
    for (const std::string_view name : names)
        append(list, name);
    return list;
}

std::string bash_case(std::string_view command, std::span<const Option> options,
                      const std::string& next) {
    std::string names;
    std::string values;
    for (const Option& option : options) {
        append(names, option.name);
        const std::string choices = choices_of(option);
        std::string value = choices.empty() ? "" : " choices='" + choices + "'";
        value += takes_file(option) ? " files=-f" : takes_folder(option) ? " files=-d" : "";
        if (!value.empty())
            values += "        " + std::string(option.name) + ")" + value + " ;;\n";
    }
    std::string text = "    '" + std::string(command) + "')\n";
    if (!names.empty())
        text += "        options='" + names + "'\n";
    if (!next.empty())
        text += "        next='" + next + "'\n";
    if (!values.empty())
        text += "        case $option in\n" + values + "        esac\n";
    return text + "        ;;\n";
}

std::string bash() {
    std::string cases = bash_case("", first_options(), texts_of(words_after("")));
    for (const Command& command : commands()) {
        std::string next = texts_of(words_after(command.name));
        if (command.operands == "[COMMAND]")
            next = texts_of(words_after(""));
        cases += bash_case(command.name, options_of(command), next);
    }
    for (const std::string_view word : groups()) {
        const std::string next = texts_of(words_after(word));
        if (command_named(word) == nullptr)
            cases += bash_case(word, {}, next);
        cases += bash_case("help " + std::string(word), {}, next);
    }
    return replaced(replaced(replaced(kBash, "ORIGIN", kOrigin), "VALUED",
                             replaced(valued_options(), " ", " | ")),
                    "CASES", cases);
}

// Completion in zsh.

constexpr std::string_view kZsh = R"(#compdef gcx
# Completion of gcx in zsh. ORIGIN
_gcx() {
    local curcontext=$curcontext state line
    typeset -A opt_args
    _arguments -C : FIRST'1: :->command' '*:: :->rest' && return
    if [[ $state == command ]]; then
        _gcx_words '' command
        return
    fi
    [[ $state == rest ]] || return
    local command=$words[1]
    if ((CURRENT > 2)) && [[ "$words[1] $words[2]" == (PAIRS) ]]; then
        command+=" $words[2]"
        shift words
        ((CURRENT--))
    fi
    case $command in
CASES    esac
}

_gcx_words() {
    local -a found
    case $1 in
WORDS    esac
    _describe $2 found
}

_gcx "$@"
)";

std::string in_quotes(std::string_view text) {
    return "'" + replaced(text, "'", "'\\''") + "'";
}

std::string zsh_option(const Option& option) {
    std::string spec(option.name);
    if (!option.value.empty())
        spec += "=";
    std::string help = replaced(option.help, "\\", "\\\\");
    help = replaced(replaced(help, "[", "\\["), "]", "\\]");
    spec += "[" + help + "]";
    if (!option.value.empty()) {
        const std::string choices = replaced(choices_of(option), ":", "\\:");
        std::string action = choices.empty() ? " " : "(" + choices + ")";
        if (takes_folder(option))
            action = "_files -/";
        else if (takes_file(option))
            action = choices.empty() ? "_files" : "{compadd -- " + choices + "; _files}";
        spec += ":" + std::string(option.value) + ":" + action;
    }
    return in_quotes(spec) + " ";
}

std::string zsh_options(std::span<const Option> options) {
    std::string text;
    for (const Option& option : options)
        text += zsh_option(option);
    return text;
}

std::string zsh_words(std::string_view pattern, const std::vector<Word>& words) {
    std::string text = "    " + in_quotes(pattern) + ")\n        found=(\n";
    for (const Word& word : words)
        text += "            " +
                in_quotes(std::string(word.text) + ":" + std::string(word.summary)) + "\n";
    return text + "        )\n        ;;\n";
}

std::string zsh() {
    std::string cases;
    std::string words = zsh_words("", words_after(""));
    for (const Command& command : commands()) {
        std::string operands;
        if (command.runs_another())
            operands = "'(-)1:command:_command_names -e' '*:: :_normal'";
        else if (command.operands == "[COMMAND]")
            operands = "\"1: : _gcx_words '' command\" \"2: : _gcx_words '$words[2]' command\"";
        else if (!words_after(command.name).empty())
            operands = "'1: : _gcx_words " + std::string(command.name) + " command'";
        cases += "    " + in_quotes(command.name) +
                 ") _arguments -S : " + zsh_options(options_of(command)) + operands + " ;;\n";
    }
    std::string pairs;
    for (const std::string_view word : groups()) {
        words += zsh_words(word, words_after(word));
        if (command_named(word) == nullptr)
            cases +=
                "    " + in_quotes(word) + ") _gcx_words " + std::string(word) + " command ;;\n";
        for (const Word& next : words_after(word))
            pairs += (pairs.empty() ? "'" : "|'") + std::string(word) + " " +
                     std::string(next.text) + "'";
    }
    std::string text = replaced(kZsh, "ORIGIN", kOrigin);
    text = replaced(replaced(text, "PAIRS", pairs), "FIRST", zsh_options(first_options()));
    return replaced(replaced(text, "CASES", cases), "WORDS", words);
}

// Completion in fish.

constexpr std::string_view kFish = R"(# Completion of gcx in fish. ORIGIN

# Prints the words of the command before the cursor, and "--" if that is before the cursor too.
function __gcx_command
    set -l words (commandline -opc)
    set -l command
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case --
                set -a command --
                break
            case VALUED
                set -e words[1]
            case '-*'
            case '*'
                set -a command $words[1]
        end
        set -e words[1]
    end
    echo "$command"
end

function __gcx_at
    test (__gcx_command) = "$argv[1]"
end

# Prints the completion of the command that gcx runs, after "--".
function __gcx_run
    set -l words (commandline -opc)
    while test "$words[1]" != --
        set -e words[1]
    end
    set -e words[1]
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end

complete -c gcx -f
LINES)";

std::string fish_words(std::string_view at, const std::vector<Word>& words) {
    std::string text;
    for (const Word& word : words)
        text += "complete -c gcx -n '__gcx_at \"" + std::string(at) + "\"' -a " +
                std::string(word.text) + " -d " +
                replaced(in_quotes(word.summary), "'\\''", "\\'") + "\n";
    return text;
}

std::string fish_options(std::string_view at, std::span<const Option> options) {
    std::string text;
    for (const Option& option : options) {
        text += "complete -c gcx -n '__gcx_at \"" + std::string(at) + "\"' -l " +
                std::string(option.name.substr(2));
        if (option.name == "--help")
            text += " -s h";
        const std::string choices = choices_of(option);
        if (takes_file(option))
            text += " -rF";
        else if (!option.value.empty())
            text += " -x";
        if (takes_folder(option))
            text += " -a '(__fish_complete_directories)'";
        if (!choices.empty())
            text += " -a '" + choices + "'";
        text += " -d " + replaced(in_quotes(option.help), "'\\''", "\\'") + "\n";
    }
    return text;
}

std::string fish() {
    std::string lines = fish_words("", words_after("")) + fish_options("", first_options());
    for (const Command& command : commands()) {
        lines += fish_options(command.name, options_of(command));
        if (command.runs_another())
            lines += "complete -c gcx -n '__gcx_at \"" + std::string(command.name) +
                     " --\"' -a '(__gcx_run)'\n";
        if (command.operands == "[COMMAND]")
            lines += fish_words(command.name, words_after(""));
    }
    for (const std::string_view word : groups()) {
        lines += fish_words(word, words_after(word));
        lines += fish_words("help " + std::string(word), words_after(word));
    }
    return replaced(replaced(replaced(kFish, "ORIGIN", kOrigin), "VALUED", valued_options()),
                    "LINES", lines);
}

void write_all(const std::string& folder) {
    write_file(folder + "/gcx.1", page_of_all());
    for (const Command& command : commands())
        write_file(folder + "/" + page_name(command.name) + ".1", page_of(command));
    write_file(folder + "/gcx.bash", bash());
    write_file(folder + "/gcx.fish", fish());
    write_file(folder + "/_gcx", zsh());
}

} // namespace
} // namespace gcx::cli

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: gcx-manual FOLDER\n");
        return 2;
    }
    try {
        gcx::cli::write_all(argv[1]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "gcx-manual: %s\n", error.what());
        return 1;
    }
    return 0;
}
