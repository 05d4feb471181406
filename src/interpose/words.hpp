// The plan's text, word by word, without the C++ runtime: the auditor reads it too.
#pragma once

#include <cstddef>
#include <string_view>

namespace gcx::exec {

// The environment variable that holds the plan.
inline constexpr char kPlanVariable[] = "GCX_EXEC_PLAN";
// The plan's first word: what it is, and the version of the format.
inline constexpr std::string_view kPlanFormat = "gcx-exec-1";

// What is put before the driver's path, /usr/lib/libcuda.so.1, to load it by. The loader finds an
// object that is there by the name it was asked for, so the driver itself must go by a name that no
// program uses: else a program that opens it by its path would get it without the shim.
inline constexpr char kRealPrefix[] = "/./.";

// "driver=/usr/lib/libcuda.so.1"; value is encoded, see decode().
struct Word {
    std::string_view key;
    std::string_view value;
};

// Takes the next word off the text; false at its end. A word without = is a key.
inline bool next_word(std::string_view& text, Word& word) {
    while (!text.empty() && text.front() == ' ')
        text.remove_prefix(1);
    if (text.empty())
        return false;
    std::string_view whole = text;
    if (const std::size_t end = text.find(' '); end != std::string_view::npos)
        whole.remove_suffix(whole.size() - end);
    text.remove_prefix(whole.size());
    word = {whole, {}};
    if (const std::size_t equals = whole.find('='); equals != std::string_view::npos) {
        word.key.remove_suffix(whole.size() - equals);
        word.value = whole;
        word.value.remove_prefix(equals + 1);
    }
    return true;
}

inline int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Takes the next character off an encoded value, in which %20 is a space. False at the end, and
// where it is damaged: something is left of value then.
inline bool next_character(std::string_view& value, char& character) {
    if (value.empty())
        return false;
    if (value.front() != '%') {
        character = value.front();
        value.remove_prefix(1);
        return true;
    }
    const int high = value.size() < 3 ? -1 : hex_digit(value[1]);
    const int low = value.size() < 3 ? -1 : hex_digit(value[2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0))
        return false;
    character = static_cast<char>(high * 16 + low);
    value.remove_prefix(3);
    return true;
}

// Whether a character stands for itself in a value.
inline bool is_plain(char c) {
    return c > ' ' && c < 0x7f && c != '%';
}

} // namespace gcx::exec
