// What commands return and how it is printed: text, JSON, messages, files.
#pragma once

#include <gcx.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gcx::cli {

// Formats as printf does.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

// "1 SM", "24 SMs".
std::string count_of(uint64_t count, std::string_view noun);

// "24", or "rest" for GCX_REST.
std::string count_text(uint32_t sm_count);

// Splits the text at each separator.
std::vector<std::string> split(std::string_view text, char separator);

// Pads with spaces on the right up to width.
std::string padded(std::string_view text, std::size_t width);

// Breaks the words into lines of 80 columns, of which all but the first are indented. column: where
// the first line begins.
std::string wrapped(std::string_view words, std::size_t column, std::size_t indent);

// "13.0" for 13000, as cuDriverGetVersion numbers versions.
std::string version_text(int version);

// "0.2.0" for 200, as gcx numbers its versions.
std::string library_version_text(uint32_t version);

// Returns the text on one line and without control characters: their bytes, and those that are not
// UTF-8, as "\x1b".
std::string visible(std::string_view text);

// Returns the visible text of a name, cut off and padded to the width of a column.
std::string name_column(std::string_view name);

// Quotes the text for a shell if it needs quotes.
std::string shell_word(const std::string& text);

// "0-7 16 24-31", or "none". ids ascend.
std::string ranges(const std::vector<uint32_t>& ids);

// Returns the name of the nth partition: A to Z, then AA, AB and so on.
std::string partition_name(std::size_t index);

// "GPU-1b2c3d4e-...", as nvidia-smi prints it.
std::string uuid_text(const uint8_t (&uuid)[16]);

// Returns an id as 16 hexadecimal digits: JSON's numbers hold only 53 bits.
std::string id_text(uint64_t id);

// Returns the numbers of the bits that are set.
std::vector<uint32_t> bits_of(std::span<const uint64_t> words);

// Returns a device's name without the mark that the simulated driver's names begin with.
std::string without_mark(std::string_view device_name);

// A JSON value to be printed. Objects keep the order in which their members were set.
class Json {
  public:
    Json() = default; // null
    Json(bool value) : text_(value ? "true" : "false") {}
    Json(double value);
    Json(std::integral auto value) : text_(std::to_string(value)) {}
    Json(std::string_view value);
    Json(const std::string& value) : Json(std::string_view(value)) {}
    Json(const char* value) : Json(std::string_view(value)) {}
    Json(const std::vector<uint32_t>& values) : Json(array(values)) {}
    Json(const std::vector<std::string>& values) : Json(array(values)) {}

    static Json object();
    // Returns an array of what json_of returns for each element.
    template <class Range, class Of = std::identity>
    static Json array(const Range& range, const Of& json_of = {}) {
        Json json;
        json.kind_ = Kind::array;
        for (const auto& element : range)
            json.items_.emplace_back(std::string(), json_of(element));
        return json;
    }

    // Sets a member that the object does not have yet.
    Json& set(std::string_view name, Json value);

    // Prints with indentation; arrays of numbers stay on one line.
    std::string dump() const;

  private:
    enum class Kind : uint8_t { scalar, object, array };

    void write(std::string& out, unsigned depth) const;
    bool is_flat() const;

    Kind kind_ = Kind::scalar;
    std::string text_ = "null";
    std::vector<std::pair<std::string, Json>> items_; // those of an array have no names
};

// A count of SMs: a number, or "rest" for GCX_REST.
Json count_json(uint32_t sm_count);

// "result", "code" and "message" of an error.
Json error_json(gcx_result result, const std::string& message);

// What a command returns to main, which prints it.
struct Report {
    Json json = Json::object();        // printed with --json
    std::string text;                  // printed without; ends with a newline
    std::vector<std::string> problems; // printed on standard error
    int status = 1;                    // the exit status if there is a problem
    // Shows a view in the terminal instead of the text; returns false if the terminal went away.
    std::function<bool()> show_live;
};

// A failure that the command found itself: exit status 1, as for gcx::error.
struct Failure : std::runtime_error {
    Failure(gcx_result code, const std::string& message)
        : std::runtime_error(message), result(code) {}
    gcx_result result;
};

// Returns a message of the library in the words of the command's options: without the name of the
// function, with partitions instead of groups, and without advice to call C functions.
std::string plain_message(std::string_view message);
std::string message_of(const error& error);

// Collects the library's warnings while it lives, each once.
class Warnings {
  public:
    explicit Warnings(std::vector<std::string>& to);
    ~Warnings();
    Warnings(const Warnings&) = delete;
    Warnings& operator=(const Warnings&) = delete;
};

// Whether standard output is a terminal that takes escape sequences, and whether it wants colours.
bool is_terminal();
bool wants_colours();

// Writes a file; an old one stays until the new one is complete. Throws Failure with the path and
// the reason.
void write_file(const std::string& path, const std::string& content);

} // namespace gcx::cli
