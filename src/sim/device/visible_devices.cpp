// The rules are those of the CUDA Programming Guide, "CUDA Environment Variables". It says nothing
// of a device that is named twice, nor of what follows a number's digits: there this does what
// PyTorch's reading of the variable (torch/cuda/__init__.py) says that the driver does.
#include "sim/device/visible_devices.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace gcx::sim {
namespace {

constexpr std::string_view kUuidPrefix = "GPU-";

std::string uuid_text(const Device& device) {
    std::string text(kUuidPrefix);
    const CUuuid uuid = device_uuid(device);
    for (std::size_t i = 0; i < sizeof uuid.bytes; i++) {
        char digits[4];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
        text += i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        text += digits;
    }
    return text;
}

// "GPU-" and as many digits as no other device's begins with.
std::optional<unsigned> by_uuid(const Machine& machine, std::string_view name) {
    std::optional<unsigned> found;
    for (const auto& device : machine.devices) {
        if (!uuid_text(*device).starts_with(name))
            continue;
        if (found)
            return std::nullopt;
        found = device->index;
    }
    return found;
}

std::optional<unsigned> by_number(const Machine& machine, std::string_view text) {
    unsigned index = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), index);
    return code == std::errc() && index < machine.devices.size() ? std::optional(index)
                                                                 : std::nullopt;
}

// No simulated GPU is divided into MIG instances: MIG- names nothing.
std::optional<unsigned> find_device(const Machine& machine, std::string_view name) {
    name.remove_prefix(std::min(name.find_first_not_of(" \t"), name.size()));
    name = name.substr(0, name.find_last_not_of(" \t") + 1);
    return name.starts_with(kUuidPrefix) ? by_uuid(machine, name) : by_number(machine, name);
}

} // namespace

CUuuid device_uuid(const Device& device) {
    // FNV-1a: the first bytes differ, as a real GPU's do, so that a few digits name a device.
    uint32_t hash = 0x811c9dc5 ^ device.index;
    for (const char c : device.profile.name)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193;
    CUuuid uuid{};
    std::memcpy(uuid.bytes, &hash, sizeof hash);
    std::memcpy(uuid.bytes + sizeof hash, "SIMULATED", 9);
    uuid.bytes[15] = static_cast<char>(device.index);
    return uuid;
}

std::vector<unsigned> visible_indices(const Machine& machine, const char* text) {
    std::vector<unsigned> visible;
    if (text == nullptr) {
        for (const auto& device : machine.devices)
            visible.push_back(device->index);
        return visible;
    }
    std::string_view rest(text);
    while (true) {
        const auto comma = std::min(rest.find(','), rest.size());
        const std::optional<unsigned> device = find_device(machine, rest.substr(0, comma));
        // What names no device hides all that follow.
        if (!device)
            return visible;
        if (std::find(visible.begin(), visible.end(), *device) != visible.end())
            return {};
        visible.push_back(*device);
        if (comma == rest.size())
            return visible;
        rest.remove_prefix(comma + 1);
    }
}

} // namespace gcx::sim
