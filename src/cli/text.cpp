#include "cli/text.hpp"

#include <gcx.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace gcx::cli {

std::string format(const char* pattern, ...) {
    std::va_list measured;
    std::va_list printed;
    va_start(measured, pattern);
    va_copy(printed, measured);
    const int length = std::vsnprintf(nullptr, 0, pattern, measured);
    va_end(measured);
    std::string text(static_cast<std::size_t>(std::max(length, 0)), '\0');
    std::vsnprintf(text.data(), text.size() + 1, pattern, printed);
    va_end(printed);
    return text;
}

std::string count_of(uint64_t count, std::string_view noun) {
    std::string text = std::to_string(count);
    text += ' ';
    text += noun;
    if (count != 1)
        text += 's';
    return text;
}

std::string count_text(uint32_t sm_count) {
    return sm_count == GCX_REST ? "rest" : std::to_string(sm_count);
}

std::string padded(std::string_view text, std::size_t width) {
    std::string result(text);
    if (result.size() < width)
        result.append(width - result.size(), ' ');
    return result;
}

std::string version_text(int version) {
    return format("%d.%d", version / 1000, version % 1000 / 10);
}

std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    std::size_t length = 0;
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        length = 2;
    else if (first >= 0xe0 && first <= 0xef)
        length = 3;
    else if (first >= 0xf0 && first <= 0xf4)
        length = 4;
    if (length == 0 || text.size() < length)
        return 0;
    for (std::size_t i = 1; i < length; i++) {
        if ((byte(i) & 0xc0) != 0x80)
            return 0;
    }
    const unsigned char second = byte(1);
    const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool out_of_range = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
    return overlong || out_of_range ? 0 : length;
}

std::string visible(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const auto byte = static_cast<unsigned char>(text[0]);
        // Above 0x7f there are control characters too: U+0080 to U+009F.
        const bool control =
            byte < 0x20 || byte == 0x7f ||
            (length == 2 && byte == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0);
        const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
        if (length == 0 || control) {
            for (const char c : character)
                result += format("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
            result += character;
        }
        text.remove_prefix(character.size());
    }
    return result;
}

std::string shell_word(const std::string& text) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789_-+=./,:@%";
    if (text.find_first_not_of(kPlain) == std::string::npos)
        return text;
    std::string quoted = "'";
    for (const char c : text) {
        if (c == '\'')
            quoted += "'\\''";
        else
            quoted += c;
    }
    return quoted + "'";
}

std::string ranges(const std::vector<uint32_t>& ids) {
    std::string text;
    for (std::size_t first = 0; first < ids.size();) {
        std::size_t last = first;
        while (last + 1 < ids.size() && ids[last + 1] == ids[last] + 1)
            last++;
        if (!text.empty())
            text += ' ';
        text += std::to_string(ids[first]);
        if (last > first) {
            text += '-';
            text += std::to_string(ids[last]);
        }
        first = last + 1;
    }
    return text.empty() ? "none" : text;
}

std::string partition_name(std::size_t index) {
    std::string name;
    for (std::size_t rest = index + 1; rest > 0; rest = (rest - 1) / 26)
        name.insert(name.begin(), static_cast<char>('A' + (rest - 1) % 26));
    return name;
}

} // namespace gcx::cli
