// A JSON value to be printed. Objects keep the order in which their members were set.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gcx::cli {

class Json {
  public:
    Json() = default; // null
    Json(bool value) : text_(value ? "true" : "false") {}
    Json(double value);
    Json(std::integral auto value) : text_(std::to_string(value)) {}
    Json(std::string_view value);
    Json(const std::string& value) : Json(std::string_view(value)) {}
    Json(const char* value) : Json(std::string_view(value)) {}
    Json(const std::vector<uint32_t>& values);

    static Json object();
    static Json array();

    // Of an object: sets a member that it doesn't have yet.
    Json& set(std::string_view name, Json value);
    // Of an array.
    Json& add(Json value);

    // With indentation, but arrays of numbers on one line.
    std::string dump() const;

  private:
    enum class Kind : uint8_t { scalar, object, array };

    void write(std::string& out, unsigned depth) const;
    bool is_flat() const;

    Kind kind_ = Kind::scalar;
    std::string text_ = "null";
    std::vector<std::pair<std::string, Json>> items_; // an array's have no names
};

// A count of SMs: a number, or "rest" for GCX_REST.
Json count_json(uint32_t sm_count);

} // namespace gcx::cli
