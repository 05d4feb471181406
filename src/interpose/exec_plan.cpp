#include "interpose/exec_plan.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <iterator>

namespace gcx::interpose {
namespace {

// An upper bound for the atoms of a family.
constexpr uint32_t kMaxAtoms = 512;

struct FamilyWord {
    gcx_sm_family family;
    std::string_view word;
};
constexpr FamilyWord kFamilies[] = {
    {GCX_SM_FAMILY_COSCHEDULED, "coscheduled"},
    {GCX_SM_FAMILY_FINE, "fine"},
    {GCX_SM_FAMILY_MAX_CLUSTER, "max-cluster"},
};

// In the order of ReportedCount.
constexpr std::array<std::string_view, 3> kReportedCountWords = {"auto", "partition", "device"};

// Returns whether a character stands for itself in a value.
bool is_plain(char c) {
    return c > ' ' && c < 0x7f && c != '%';
}

std::string encode(std::string_view value) {
    std::string text;
    for (const char c : value) {
        if (is_plain(c)) {
            text += c;
        } else {
            char escape[4];
            std::snprintf(escape, sizeof escape, "%%%02x",
                          static_cast<unsigned>(static_cast<unsigned char>(c)));
            text += escape;
        }
    }
    return text;
}

// Writes indexes like "0-2,5".
std::string write_atoms(const std::vector<uint32_t>& atoms) {
    std::string text;
    for (std::size_t i = 0; i < atoms.size();) {
        std::size_t last = i;
        while (last + 1 < atoms.size() && atoms[last + 1] == atoms[last] + 1)
            last++;
        if (!text.empty())
            text += ',';
        text += std::to_string(atoms[i]);
        if (last > i)
            text += "-" + std::to_string(atoms[last]);
        i = last + 1;
    }
    return text;
}

std::string write_uuid(const std::array<uint8_t, 16>& uuid) {
    std::string text;
    for (const uint8_t byte : uuid) {
        char pair[3];
        std::snprintf(pair, sizeof pair, "%02x", static_cast<unsigned>(byte));
        text += pair;
    }
    return text;
}

[[noreturn]] void refuse(const Word& word, const char* why) {
    std::string message = std::string(kPlanVariable) + ": ";
    message.append(word.key).append("=").append(word.value).append(" ").append(why);
    throw PlanError(message);
}

std::string decode(const Word& word) {
    std::string text;
    std::string_view rest = word.value;
    for (char c = 0; next_character(rest, c);)
        text += c;
    if (!rest.empty())
        refuse(word, "has an invalid %XX");
    return text;
}

std::string read_path(const Word& word) {
    std::string path = decode(word);
    if (!path.starts_with('/'))
        refuse(word, "is not an absolute path");
    return path;
}

uint32_t read_number(const Word& word, std::string_view text, uint32_t min, uint32_t max) {
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < min || value > max)
        refuse(word, "is out of range");
    return value;
}

std::vector<uint32_t> read_atoms(const Word& word) {
    std::vector<uint32_t> atoms;
    std::string_view rest = word.value;
    while (true) {
        const std::size_t comma = rest.find(',');
        const std::string_view range = rest.substr(0, comma);
        const std::size_t dash = range.find('-');
        const uint32_t min = atoms.empty() ? 0 : atoms.back() + 1;
        const uint32_t first = read_number(word, range.substr(0, dash), min, kMaxAtoms - 1);
        const uint32_t last = dash == std::string_view::npos
                                  ? first
                                  : read_number(word, range.substr(dash + 1), first, kMaxAtoms - 1);
        for (uint32_t atom = first; atom <= last; atom++)
            atoms.push_back(atom);
        if (comma == std::string_view::npos)
            return atoms;
        rest.remove_prefix(comma + 1);
    }
}

std::array<uint8_t, 16> read_uuid(const Word& word) {
    std::array<uint8_t, 16> uuid{};
    if (word.value.size() != 2 * uuid.size())
        refuse(word, "is not a UUID");
    for (std::size_t i = 0; i < uuid.size(); i++) {
        const int high = hex_digit(word.value[2 * i]);
        const int low = hex_digit(word.value[2 * i + 1]);
        if (high < 0 || low < 0)
            refuse(word, "is not a UUID");
        uuid[i] = static_cast<uint8_t>(high * 16 + low);
    }
    return uuid;
}

gcx_sm_family read_family(const Word& word) {
    const auto* const found =
        std::find_if(std::begin(kFamilies), std::end(kFamilies),
                     [&](const FamilyWord& family) { return family.word == word.value; });
    if (found == std::end(kFamilies))
        refuse(word, "is not a family");
    return found->family;
}

// Reads a word about the device that was named last. Returns false if it is another word.
bool read_device_word(const Word& word, DevicePart& part) {
    if (word.key == "family")
        part.family = read_family(word);
    else if (word.key == "sms")
        part.sm_count = read_number(word, word.value, 1, GCX_MAX_SMS);
    else if (word.key == "atoms")
        part.atoms = read_atoms(word);
    else if (word.key == "of")
        part.family_atoms = read_number(word, word.value, 1, kMaxAtoms);
    else if (word.key == "token")
        part.token = decode(word);
    else
        return false;
    return true;
}

void check(const Plan& plan) {
    const auto require = [](bool holds, const char* what) {
        if (!holds)
            throw PlanError(std::string(kPlanVariable) + " " + what);
    };
    require(!plan.driver.empty(), "names no driver");
    require(!plan.shim.empty(), "names no shim");
    require(!plan.devices.empty(), "names no device");
    for (auto part = plan.devices.begin(); part != plan.devices.end(); ++part) {
        require(part->sm_count != 0 && !part->atoms.empty() && part->family_atoms != 0,
                "has a device without sms, atoms or of");
        require(part->atoms.back() < part->family_atoms, "has an atom that its family lacks");
        require(std::none_of(plan.devices.begin(), part,
                             [&](const DevicePart& other) { return other.uuid == part->uuid; }),
                "names a device twice");
    }
}

} // namespace

std::string_view family_word(gcx_sm_family family) {
    for (const FamilyWord& known : kFamilies) {
        if (known.family == family)
            return known.word;
    }
    return {};
}

std::string_view reported_count_word(ReportedCount count) {
    return kReportedCountWords[static_cast<std::size_t>(count)];
}

bool read_reported_count(std::string_view text, ReportedCount& count) {
    const auto* const found =
        std::find(kReportedCountWords.begin(), kReportedCountWords.end(), text);
    if (found == kReportedCountWords.end())
        return false;
    count = static_cast<ReportedCount>(found - kReportedCountWords.begin());
    return true;
}

const DevicePart* Plan::find(const uint8_t (&uuid)[16]) const {
    const auto found = std::ranges::find_if(
        devices, [&](const DevicePart& part) { return std::ranges::equal(part.uuid, uuid); });
    return found == devices.end() ? nullptr : &*found;
}

std::string write_plan(const Plan& plan) {
    std::string text(kPlanFormat);
    const auto add = [&](const char* key, std::string_view value) {
        text.append(" ").append(key).append("=").append(value);
    };
    add("driver", encode(plan.driver));
    add("shim", encode(plan.shim));
    add("report", reported_count_word(plan.reported_count));
    add("contexts", plan.own_contexts ? "device" : "partition");
    for (const DevicePart& part : plan.devices) {
        add("device", write_uuid(part.uuid));
        add("family", family_word(part.family));
        add("sms", std::to_string(part.sm_count));
        add("atoms", write_atoms(part.atoms));
        add("of", std::to_string(part.family_atoms));
        if (!part.token.empty())
            add("token", encode(part.token));
    }
    return text;
}

Plan read_plan(std::string_view text) {
    Plan plan;
    Word word;
    if (!next_word(text, word) || word.key != kPlanFormat)
        throw PlanError(std::string(kPlanVariable) + " doesn't begin with " +
                        std::string(kPlanFormat) +
                        ": it is damaged or from another version of gcx");
    while (next_word(text, word)) {
        if (word.key == "driver")
            plan.driver = read_path(word);
        else if (word.key == "shim")
            plan.shim = read_path(word);
        else if (word.key == "report" && read_reported_count(word.value, plan.reported_count))
            continue;
        else if (word.key == "contexts" && (word.value == "partition" || word.value == "device"))
            plan.own_contexts = word.value == "device";
        else if (word.key == "device")
            plan.devices.emplace_back().uuid = read_uuid(word);
        else if (plan.devices.empty() || !read_device_word(word, plan.devices.back()))
            refuse(word, "is unknown here");
    }
    check(plan);
    return plan;
}

} // namespace gcx::interpose
