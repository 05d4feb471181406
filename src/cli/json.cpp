#include "cli/json.hpp"

#include "cli/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace gcx::cli {
namespace {

// The length of the UTF-8 character that text begins with; 0 if it begins with none. A path or an
// argument can hold any bytes, JSON can't.
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

std::string quoted(std::string_view text) {
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
        else if (static_cast<unsigned char>(c) < 0x20)
            out += format("\\u%04x", static_cast<unsigned>(c));
        else
            out += text.substr(0, length);
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out += '"';
}

} // namespace

// JSON has no infinities.
Json::Json(double value) : text_(std::isfinite(value) ? format("%.6g", value) : "null") {
}

Json::Json(std::string_view value) : text_(quoted(value)) {
}

Json::Json(const std::vector<uint32_t>& values) : kind_(Kind::array) {
    for (const uint32_t value : values)
        add(value);
}

Json Json::object() {
    Json json;
    json.kind_ = Kind::object;
    return json;
}

Json Json::array() {
    Json json;
    json.kind_ = Kind::array;
    return json;
}

Json& Json::set(std::string_view name, Json value) {
    items_.emplace_back(name, std::move(value));
    return *this;
}

Json& Json::add(Json value) {
    items_.emplace_back(std::string(), std::move(value));
    return *this;
}

bool Json::is_flat() const {
    return kind_ == Kind::array && std::all_of(items_.begin(), items_.end(), [](const auto& item) {
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
            (out += quoted(name)) += ": ";
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

} // namespace gcx::cli
