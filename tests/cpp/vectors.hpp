// Reads the fields of the vectors: words, numbers, lists.
#pragma once

#include <gcx.hpp>

#include <cstdint>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace vectors {

using Words = std::vector<std::string>;

// The file is wrong, or gcx is in a state that no step expects.
struct Broken {
    std::string why;
};

inline Words split_at(const std::string& text, char separator) {
    Words words;
    std::istringstream stream(text);
    for (std::string word; std::getline(stream, word, separator);)
        words.push_back(word);
    return words;
}

inline long number(const std::string& text) {
    std::size_t used = 0;
    long value = 0;
    try {
        value = std::stol(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    if (used == 0 || used != text.size())
        throw Broken{text + " is no number"};
    return value;
}

inline uint32_t count_of(const std::string& text) {
    return static_cast<uint32_t>(number(text));
}
// Reads a count of SMs, or "rest".
inline long sms_of(const std::string& text) {
    return text == "rest" ? long{gcx::rest} : number(text);
}
inline int32_t ordinal(const std::string& text) {
    return static_cast<int32_t>(number(text));
}

inline const std::map<std::string, int> kTypes = {{"sm", gcx::type::sm},
                                                  {"workqueue-config", gcx::type::workqueue_config},
                                                  {"workqueue", gcx::type::workqueue}};
inline const std::map<std::string, int> kFamilies = {{"none", gcx::family::none},
                                                     {"coscheduled", gcx::family::coscheduled},
                                                     {"fine", gcx::family::fine},
                                                     {"max-cluster", gcx::family::max_cluster},
                                                     {"structured", gcx::family::structured},
                                                     {"external", gcx::family::external}};
inline const std::map<std::string, int> kScopes = {
    {"device_ctx", gcx::scope::device_ctx}, {"green_ctx_balanced", gcx::scope::green_ctx_balanced}};
inline const std::map<std::string, int> kFlags = {
    {"-", 0},
    {"fine", static_cast<int>(gcx::split_flags::fine)},
    {"max-cluster", static_cast<int>(gcx::split_flags::max_cluster)},
    {"exact", static_cast<int>(gcx::split_flags::exact)},
    {"exclude_leased", static_cast<int>(gcx::split_flags::exclude_leased)},
    {"shared", static_cast<int>(gcx::lease_flags::shared)},
    {"at-once", static_cast<int>(gcx::resize_flags::deferred)},
    {"private", static_cast<int>(gcx::context_flags::private_)},
    {"timing", static_cast<int>(gcx::event_flags::timing)},
    {"blocking", static_cast<int>(gcx::event_flags::blocking_sync)}};

template <class Enum>
Enum from_word(const std::map<std::string, int>& words, const std::string& word) {
    const auto found = words.find(word);
    return static_cast<Enum>(found != words.end() ? found->second : static_cast<int>(number(word)));
}

inline std::string word_of(const std::map<std::string, int>& words, int value) {
    for (const auto& [word, number] : words)
        if (number == value)
            return word;
    return "?";
}

template <class Flags>
Flags flags(const std::string& text) {
    int all = 0;
    for (const std::string& word : split_at(text, '+'))
        all |= from_word<int>(kFlags, word);
    return static_cast<Flags>(all);
}

inline Words items(const std::string& list) {
    return list == "-" ? Words() : split_at(list, ',');
}

template <class Numbers>
inline std::string list_of(const Numbers& numbers) {
    std::string text;
    for (const auto value : numbers)
        text += (text.empty() ? "" : ",") + std::to_string(value);
    return text.empty() ? "-" : text;
}

inline std::string ranges(const std::vector<uint32_t>& ids) {
    std::string text;
    for (std::size_t first = 0, next = 0; first < ids.size(); first = next) {
        for (next = first + 1; next < ids.size() && ids[next] == ids[next - 1] + 1;)
            next++;
        text += (text.empty() ? "" : ",") + std::to_string(ids[first]);
        if (next - first > 1)
            text += "-" + std::to_string(ids[next - 1]);
    }
    return text.empty() ? "-" : text;
}

inline std::vector<gcx::request> requests(const std::string& list) {
    std::vector<gcx::request> wanted;
    for (const std::string& item : items(list)) {
        const Words fields = split_at(item, '/');
        gcx::request request(sms_of(fields.at(0)));
        if (fields.size() == 5) {
            request.coscheduled_sm_count = count_of(fields[1]);
            request.preferred_coscheduled_sm_count = count_of(fields[2]);
            request.flags = count_of(fields[3]);
            request.locality_domain_id = count_of(fields[4]);
        }
        wanted.push_back(request);
    }
    return wanted;
}

template <class... Fields>
inline Words outputs(const Fields&... fields) {
    const auto text = [](const auto& field) {
        std::ostringstream out;
        out << field;
        return out.str();
    };
    return {text(fields)...};
}

} // namespace vectors
