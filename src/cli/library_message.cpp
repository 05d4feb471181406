#include "cli/library_message.hpp"

#include "cli/args.hpp"
#include "cli/text.hpp"

#include <gcx.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace gcx::cli {
namespace {

// What the command's options say of what the library calls by its C name.
struct Phrase {
    std::string_view c;
    std::string_view plain;
};
constexpr std::array kPhrases = {
    Phrase{"params->name has", "--name has"},
    Phrase{"the folder is an empty string; pass NULL for the default one",
           "the folder is an empty string; leave --folder out for the default one"},
    Phrase{"params->folder", "the folder"},
    Phrase{"set a timeout to wait for them, or min_sm_count to accept fewer", "or request fewer"},
    Phrase{"set a timeout to wait for them, or lower min_sm_count", "or request fewer"},
    Phrase{" by gcx_cancel_signal", ""},
};

// Variables of the environment, which users set.
constexpr std::array<std::string_view, 6> kVariables = {
    "GCX_DRIVER", "GCX_SIM", "GCX_RESERVATION_DIR", "GCX_PUBLISH", "GCX_EXEC_PLAN", "GCX_LOG",
};

constexpr std::array<std::string_view, 4> kFields = {"sm_count", "min_sm_count",
                                                     "exclusive_sm_count", "timeout_ms"};

bool is_word_character(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_c_name(std::string_view word) {
    if (word.starts_with("GCX_"))
        return std::none_of(kVariables.begin(), kVariables.end(), [&](std::string_view variable) {
            return word == variable || word.starts_with(std::string(variable) + "_");
        });
    return word.starts_with("gcx_") ||
           std::find(kFields.begin(), kFields.end(), word) != kFields.end();
}

bool names_c(std::string_view clause) {
    bool quoted = false;
    for (std::size_t at = 0; at < clause.size();) {
        const char c = clause[at];
        if (c == '"')
            quoted = !quoted;
        if (!quoted && clause.substr(at).starts_with("->"))
            return true;
        std::size_t end = at;
        while (end < clause.size() && is_word_character(clause[end]))
            end++;
        // A path may have any words.
        const bool in_path = at > 0 && clause[at - 1] == '/';
        if (end > at && !quoted && !in_path && is_c_name(clause.substr(at, end - at)))
            return true;
        at = std::max(end, at + 1);
    }
    return false;
}

std::string without_function(std::string_view message) {
    const std::size_t colon = message.find(": ");
    if (message.starts_with("gcx_") && colon != std::string_view::npos &&
        std::all_of(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(colon),
                    is_word_character))
        message.remove_prefix(colon + 2);
    return std::string(message);
}

// "partition B" of "group 1", as the command's output calls it.
std::string with_partition_names(std::string text) {
    constexpr std::string_view kGroup = "group ";
    if (!text.starts_with(kGroup))
        return text;
    const std::size_t end = text.find_first_not_of("0123456789", kGroup.size());
    const auto group = parse_number(std::string_view(text).substr(
        kGroup.size(), end == std::string::npos ? end : end - kGroup.size()));
    if (!group)
        return text;
    return "partition " + partition_name(*group) +
           (end == std::string::npos ? "" : text.substr(end));
}

// Where the clause that begins at first ends: behind its separator.
std::size_t end_of_clause(std::string_view text, std::size_t first) {
    bool quoted = false;
    for (std::size_t at = first; at < text.size(); at++) {
        if (text[at] == '"')
            quoted = !quoted;
        const std::string_view rest = text.substr(at);
        if (!quoted && (rest.starts_with("; ") || rest.starts_with(". ")))
            return at + 2;
    }
    return text.size();
}

// Advice that names a function is for programmers. The first clause says what is wrong: it stays.
std::string without_advice_to_programmers(std::string_view text) {
    std::size_t end = end_of_clause(text, 0);
    std::string result(text.substr(0, end));
    while (end < text.size()) {
        const std::size_t first = end;
        end = end_of_clause(text, first);
        const std::string_view clause = text.substr(first, end - first);
        if (!names_c(clause))
            result += clause;
    }
    while (result.ends_with(' ') || result.ends_with(';') || result.ends_with('.'))
        result.pop_back();
    return result;
}

} // namespace

std::string plain_message(std::string_view message) {
    std::string text = with_partition_names(without_function(message));
    for (const auto& [phrase, plain] : kPhrases) {
        for (std::size_t at = text.find(phrase); at != std::string::npos;
             at = text.find(phrase, at + plain.size()))
            text.replace(at, phrase.size(), plain);
    }
    return names_c(text) ? without_advice_to_programmers(text) : text;
}

std::string library_message() {
    return plain_message(gcx_last_error_message());
}

} // namespace gcx::cli
