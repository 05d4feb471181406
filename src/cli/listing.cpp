#include "cli/listing.hpp"

#include "cli/layout.hpp"
#include "cli/library_message.hpp"
#include "cli/text.hpp"

#include <algorithm>

namespace gcx::cli {
namespace {

constexpr std::size_t kMostName = 16;

void take_warning(gcx_log_level, const char* message, void* to) {
    auto& warnings = *static_cast<std::vector<std::string>*>(to);
    const std::string plain = plain_message(message);
    if (std::find(warnings.begin(), warnings.end(), plain) == warnings.end())
        warnings.push_back(plain);
}

} // namespace

Warnings::Warnings(std::vector<std::string>& to) {
    check(gcx_log_set_callback(GCX_LOG_WARNING, take_warning, &to));
}

Warnings::~Warnings() {
    gcx_log_set_callback(GCX_LOG_NONE, nullptr, nullptr);
}

std::string family_text(gcx_sm_family kind) {
    const auto found =
        std::find_if(family_names.begin(), family_names.end(),
                     [&](const FamilyName& family) { return family.family == kind; });
    return found == family_names.end() ? "another family" : std::string(found->name);
}

std::string uuid_text(const uint8_t (&uuid)[16]) {
    std::string text = "GPU";
    for (std::size_t i = 0; i < sizeof uuid; i++) {
        const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        text += format(dash ? "-%02x" : "%02x", static_cast<unsigned>(uuid[i]));
    }
    return text;
}

std::vector<uint32_t> bits_of(const uint64_t (&atoms)[8]) {
    std::vector<uint32_t> found;
    for (uint32_t atom = 0; atom < 512; atom++) {
        if ((atoms[atom / 64] >> (atom % 64) & 1) != 0)
            found.push_back(atom);
    }
    return found;
}

std::string name_column(const char* text) {
    const std::string whole = visible(text);
    std::size_t characters = 0;
    for (std::size_t i = 0; i < whole.size(); i++) {
        if ((static_cast<unsigned char>(whole[i]) & 0xc0) == 0x80)
            continue;
        if (++characters > kMostName)
            return whole.substr(0, i) + "~";
    }
    return whole + std::string(kMostName - characters + 1, ' ');
}

} // namespace gcx::cli
