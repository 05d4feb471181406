// Small helpers for the text that the command prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gcx::cli {

// As printf, into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

// "1 SM", "24 SMs".
std::string count_of(uint64_t count, std::string_view noun);

// "24", or "rest" for GCX_REST.
std::string count_text(uint32_t sm_count);

// Pads with spaces on the right up to width.
std::string padded(std::string_view text, std::size_t width);

// "13.0" for 13000, as cuDriverGetVersion numbers versions.
std::string version_text(int version);

// The length of the UTF-8 character that text begins with; 0 if it begins with none. A path or an
// argument can hold any bytes.
std::size_t utf8_length(std::string_view text);

// On one line and without a terminal's commands, whatever was given: "a\x1b[2J" for those bytes,
// and for what is no UTF-8.
std::string visible(std::string_view text);

// As a shell takes it for one word: in quotes if it needs them.
std::string shell_word(const std::string& text);

// Shell style: SM ids as "0-7 16 24-31", "none" if there are none. ids ascend.
std::string ranges(const std::vector<uint32_t>& ids);

// The name of the nth partition: A to Z, then AA, AB and so on.
std::string partition_name(std::size_t index);

} // namespace gcx::cli
