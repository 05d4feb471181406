#include "cli/output.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gcx::cli {
namespace {

// Returns the length of the UTF-8 character that the text begins with, 0 if it begins with none: a
// path or an argument may have any bytes.
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80)
        return 1;
    const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first < 0xc2 || first > 0xf4 || text.size() < length)
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

// Whether the UTF-8 character is a control character, of ASCII or U+0080 to U+009F.
bool is_control(std::string_view character) {
    const auto last = static_cast<unsigned char>(character.back());
    return character.size() == 1 ? last < 0x20 || last == 0x7f
                                 : character.size() == 2 && character[0] == '\xc2' && last < 0xa0;
}

std::string in_quotes(std::string_view text) {
    std::string out = "\"";
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const char c = text[0];
        if (length == 0)
            out += "\\ufffd";
        else if (c == '"' || c == '\\')
            (out += '\\') += c;
        else if (c == '\n')
            out += "\\n";
        else if (is_control(text.substr(0, length)))
            out += format("\\u%04x",
                          static_cast<unsigned>(static_cast<unsigned char>(text[length - 1])));
        else
            out += text.substr(0, length);
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out += '"';
}

// Environment variables, whose names users know.
constexpr std::array<std::string_view, 6> kEnvironment = {
    "GCX_DRIVER", "GCX_SIM", "GCX_RESERVATION_DIR", "GCX_PUBLISH", "GCX_EXEC_PLAN", "GCX_LOG",
};

// Whether the clause has a name of the C interface outside quotes.
bool names_c(std::string_view clause) {
    constexpr std::array<std::string_view, 5> kNames = {"gcx_", "->", "sm_count", "timeout_ms",
                                                        "NULL"};
    bool quoted = false;
    for (std::size_t at = 0; at < clause.size(); at++) {
        const std::string_view rest = clause.substr(at);
        const auto begins = [&](std::string_view name) { return rest.starts_with(name); };
        quoted = quoted != (clause[at] == '"');
        if (!quoted && (std::ranges::any_of(kNames, begins) ||
                        (begins("GCX_") && std::ranges::none_of(kEnvironment, begins))))
            return true;
    }
    return false;
}

// Returns where the clause that begins at first ends, behind its separator.
std::size_t end_of_clause(std::string_view text, std::size_t first) {
    bool quoted = false;
    for (std::size_t at = first; at < text.size(); at++) {
        quoted = quoted != (text[at] == '"');
        const std::string_view rest = text.substr(at);
        if (!quoted && (rest.starts_with("; ") || rest.starts_with(". ")))
            return at + 2;
    }
    return text.size();
}

} // namespace

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

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t end = 0; end != std::string_view::npos;) {
        end = text.find(separator);
        parts.emplace_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return parts;
}

std::string padded(std::string_view text, std::size_t width) {
    std::string result(text);
    if (result.size() < width)
        result.append(width - result.size(), ' ');
    return result;
}

std::string wrapped(std::string_view words, std::size_t column, std::size_t indent) {
    constexpr std::size_t kTextWidth = 80; // columns of a terminal
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

std::string version_text(int version) {
    return format("%d.%d", version / 1000, version % 1000 / 10);
}

std::string library_version_text(uint32_t version) {
    return format("%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
}

std::string visible(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
        if (length == 0 || is_control(character)) {
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
    // Bytes that visible() escapes need $'', which is newer than sh.
    const bool escapes = visible(text) != text;
    std::string quoted = escapes ? "$'" : "'";
    for (const char c : text) {
        if (escapes && (c == '\'' || c == '\\'))
            (quoted += '\\') += c;
        else if (c == '\'')
            quoted += "'\\''";
        else
            quoted += c;
    }
    return visible(quoted) + "'";
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

std::string name_column(std::string_view name) {
    constexpr std::size_t kWidth = 16;
    const std::string whole = visible(name);
    std::size_t characters = 0;
    for (std::size_t i = 0; i < whole.size(); i++) {
        if ((static_cast<unsigned char>(whole[i]) & 0xc0) == 0x80)
            continue;
        if (++characters > kWidth)
            return whole.substr(0, i) + "~";
    }
    return whole + std::string(kWidth - characters + 1, ' ');
}

std::string uuid_text(const uint8_t (&uuid)[16]) {
    std::string text = "GPU";
    for (std::size_t i = 0; i < sizeof uuid; i++) {
        const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        text += format(dash ? "-%02x" : "%02x", static_cast<unsigned>(uuid[i]));
    }
    return text;
}

std::string id_text(uint64_t id) {
    return format("%016llx", static_cast<unsigned long long>(id));
}

std::vector<uint32_t> bits_of(std::span<const uint64_t> words) {
    std::vector<uint32_t> found;
    for (uint32_t bit = 0; bit < words.size() * 64; bit++) {
        if ((words[bit / 64] >> (bit % 64) & 1) != 0)
            found.push_back(bit);
    }
    return found;
}

std::string without_mark(std::string_view device_name) {
    constexpr std::string_view kMark = "SIMULATED ";
    while (device_name.starts_with(kMark))
        device_name.remove_prefix(kMark.size());
    return std::string(device_name);
}

// JSON has no infinities.
Json::Json(double value) : text_(std::isfinite(value) ? format("%.6g", value) : "null") {
}

Json::Json(std::string_view value) : text_(in_quotes(value)) {
}

Json Json::object() {
    Json json;
    json.kind_ = Kind::object;
    return json;
}

Json& Json::set(std::string_view name, Json value) {
    items_.emplace_back(name, std::move(value));
    return *this;
}

bool Json::is_flat() const {
    return kind_ == Kind::array && std::ranges::all_of(items_, [](const auto& item) {
               return item.second.kind_ == Kind::scalar && item.second.text_[0] != '"';
           });
}

void Json::write(std::string& out, unsigned depth) const {
    if (kind_ == Kind::scalar) {
        out += text_;
        return;
    }
    const bool flat = is_flat();
    out += kind_ == Kind::object ? '{' : '[';
    const char* separator = "";
    for (const auto& [name, value] : items_) {
        out += separator;
        separator = flat ? ", " : ",";
        if (!flat)
            (out += '\n').append(std::size_t{2} * (depth + 1), ' ');
        if (kind_ == Kind::object)
            (out += in_quotes(name)) += ": ";
        value.write(out, depth + 1);
    }
    if (!flat && !items_.empty())
        (out += '\n').append(std::size_t{2} * depth, ' ');
    out += kind_ == Kind::object ? '}' : ']';
}

std::string Json::dump() const {
    std::string out;
    write(out, 0);
    return out += '\n';
}

Json count_json(uint32_t sm_count) {
    return sm_count == GCX_REST ? Json("rest") : Json(sm_count);
}

Json error_json(gcx_result result, const std::string& message) {
    return Json::object()
        .set("result", result_name(result))
        .set("code", static_cast<int>(result))
        .set("message", message);
}

// "gcx_sm_split: group 1: ...; call gcx_..." becomes "partition B: ...". The first clause says what
// is wrong; those after it advise.
std::string plain_message(std::string_view message) {
    const std::size_t colon = message.find(": ");
    if (message.starts_with("gcx_") && colon < message.find(' '))
        message.remove_prefix(colon + 2);
    std::size_t end = end_of_clause(message, 0);
    std::string text(message.substr(0, end));
    bool cut = false;
    while (end < message.size()) {
        const std::size_t first = end;
        end = end_of_clause(message, first);
        const std::string_view clause = message.substr(first, end - first);
        if (names_c(clause))
            cut = true;
        else
            text += clause;
    }
    while (cut && (text.ends_with(' ') || text.ends_with(';') || text.ends_with('.')))
        text.pop_back();
    constexpr std::string_view kGroup = "group ";
    if (text.starts_with(kGroup)) {
        unsigned group = 0;
        const char* const digits = text.data() + kGroup.size();
        const auto parsed = std::from_chars(digits, text.data() + text.size(), group);
        if (parsed.ec == std::errc())
            text.replace(0, static_cast<std::size_t>(parsed.ptr - text.data()),
                         "partition " + partition_name(group));
    }
    return text;
}

std::string message_of(const error& error) {
    const std::string_view message = error.what();
    const std::string mark = std::string(" [") + error.name() + ", ";
    return plain_message(message.substr(0, message.rfind(mark)));
}

Warnings::Warnings(std::vector<std::string>& to) {
    set_log(log_level::warning, [&to](gcx_log_level, std::string_view message) {
        const std::string plain = plain_message(message);
        if (std::ranges::find(to, plain) == to.end())
            to.push_back(plain);
    });
}

Warnings::~Warnings() {
    reset_log();
}

bool is_terminal() {
    const char* const terminal = std::getenv("TERM");
    return isatty(STDOUT_FILENO) != 0 && terminal != nullptr &&
           std::string_view(terminal) != "dumb";
}

bool wants_colours() {
    const char* const refused = std::getenv("NO_COLOR");
    return is_terminal() && (refused == nullptr || *refused == '\0');
}

void write_file(const std::string& path, const std::string& content) {
    const auto refuse = [&](const char* what, int reason) {
        throw Failure(GCX_ERROR_OPERATING_SYSTEM,
                      format("can't %s %s: %s", what, path.c_str(), std::strerror(reason)));
    };
    // Returns false if the file can't be opened.
    const auto write_to = [&](const std::string& target, const char* mode) {
        std::FILE* const file = std::fopen(target.c_str(), mode);
        if (file == nullptr)
            return false;
        bool done = std::fwrite(content.data(), 1, content.size(), file) == content.size();
        int reason = errno;
        // A full disk may show only here.
        if (std::fclose(file) != 0 && done) {
            done = false;
            reason = errno;
        }
        if (done)
            return true;
        if (target != path)
            unlink(target.c_str());
        refuse("write all of", reason);
        return false;
    };
    // A plain file is replaced by a complete one. A device, a pipe or a link is written to, as is a
    // file that can't be replaced: one that is a mount, or in a folder that is not writable.
    struct stat old = {};
    const bool exists = lstat(path.c_str(), &old) == 0;
    const bool replaces = !exists || (S_ISREG(old.st_mode) && access(path.c_str(), W_OK) == 0);
    const std::string complete = path + "." + std::to_string(getpid());
    if (replaces && write_to(complete, "wxe")) {
        if ((!exists || chmod(complete.c_str(), old.st_mode & 07777) == 0) &&
            std::rename(complete.c_str(), path.c_str()) == 0)
            return;
        unlink(complete.c_str());
    }
    if (!write_to(path, "we"))
        refuse("write", errno);
}

} // namespace gcx::cli
