#include "cli/json.hpp"

#include "cli/text.hpp"

#include <gcx.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace gcx::cli {
namespace {

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

Json::Json(std::string_view value) : text_(in_quotes(value)) {
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

} // namespace gcx::cli
