#include "sim/profiles/spec.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace gcx::sim {
namespace {

constexpr const char* kDefaultDriver = "13.0";
constexpr uint64_t kDefaultKernelNs = 10'000;
constexpr unsigned kMaxDevices = 64;

std::string trimmed_lower(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
        text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
        text.remove_suffix(1);
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return lower;
}

std::string known_gpus() {
    std::string list;
    for (std::size_t i = 0; i < kEmbeddedProfileCount; i++)
        list += std::string(i == 0 ? "" : ", ") + kEmbeddedProfiles[i].key;
    return list;
}

std::string known_drivers() {
    std::string list;
    for (std::size_t i = 0; i < kDriverVersionCount; i++)
        list += std::string(i == 0 ? "" : ", ") + kDriverVersions[i].name;
    return list;
}

bool load_profile(const std::string& gpu, Profile& profile, std::string& error) {
    for (std::size_t i = 0; i < kEmbeddedProfileCount; i++)
        if (gpu == kEmbeddedProfiles[i].key)
            return parse_profile(kEmbeddedProfiles[i].text, gpu, profile, error);
    error = "no GPU \"" + gpu + "\" can be simulated; known are " + known_gpus() +
            ", none, or the path of a recording";
    return false;
}

bool load_file(const std::string& path, Profile& profile, std::string& error) {
    const std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) {
        error = "cannot read the recording \"" + path + "\"";
        return false;
    }
    return parse_profile(text.str(), path, profile, error);
}

void add_device(Machine& machine, const Profile& profile) {
    auto device = std::make_unique<Device>();
    device->ordinal = static_cast<int>(machine.devices.size());
    device->profile = profile;
    device->workqueue = new_handle();
    machine.devices.push_back(std::move(device));
}

// "2xh100" or "2 x h100"
bool read_gpu(std::string item, Machine& machine, std::string& error) {
    unsigned count = 1;
    const auto digits = item.find_first_not_of("0123456789");
    if (digits != 0 && digits != std::string::npos) {
        const std::string rest = trimmed_lower(std::string_view(item).substr(digits));
        if (rest.starts_with('x')) {
            count = digits > 3 ? kMaxDevices + 1
                               : static_cast<unsigned>(std::strtoul(item.c_str(), nullptr, 10));
            item = trimmed_lower(std::string_view(rest).substr(1));
        }
    }
    if (count == 0 || machine.devices.size() + count > kMaxDevices) {
        error = "1 to " + std::to_string(kMaxDevices) + " GPUs can be simulated";
        return false;
    }
    Profile profile;
    if (!load_profile(item, profile, error))
        return false;
    for (unsigned i = 0; i < count; i++)
        add_device(machine, profile);
    return true;
}

bool read_gpus(const std::string& gpus, Machine& machine, std::string& error) {
    std::string_view rest(gpus);
    while (true) {
        const auto comma = std::min(rest.find(','), rest.size());
        if (!read_gpu(trimmed_lower(rest.substr(0, comma)), machine, error))
            return false;
        if (comma == rest.size())
            return true;
        rest.remove_prefix(comma + 1);
    }
}

bool is_path(const std::string& gpus) {
    return gpus.find('/') != std::string::npos || std::ifstream(gpus).good();
}

uint64_t kernel_ns_from_environment() {
    const char* text = std::getenv("GCX_SIM_KERNEL_NS");
    return text == nullptr || *text == '\0' ? kDefaultKernelNs : std::strtoull(text, nullptr, 10);
}

} // namespace

bool read_spec(const char* spec, Machine& machine, std::string& error) {
    static std::atomic<uint64_t> epochs{1};
    if (spec == nullptr)
        spec = std::getenv("GCX_SIM");
    if (spec == nullptr || *spec == '\0')
        spec = "h100@13.0";
    machine.spec = spec;
    machine.epoch = epochs++;
    machine.kernel_ns = kernel_ns_from_environment();

    std::string gpus(machine.spec);
    std::string driver;
    if (const auto at = gpus.rfind('@'); at != std::string::npos) {
        driver = trimmed_lower(std::string_view(gpus).substr(at + 1));
        gpus.resize(at);
    }
    if (trimmed_lower(gpus) != "none") {
        if (!is_path(gpus)) {
            if (!read_gpus(gpus, machine, error))
                return false;
        } else {
            Profile profile;
            if (!load_file(gpus, profile, error))
                return false;
            add_device(machine, profile);
            if (const DriverVersion* recorded = find_driver_version(profile.driver_version);
                recorded != nullptr && driver.empty())
                driver = recorded->name;
        }
    }
    machine.driver =
        find_driver_version(driver.empty() ? std::string_view(kDefaultDriver) : driver);
    if (machine.driver == nullptr) {
        error = "no driver \"" + driver + "\" can be simulated; known are " + known_drivers();
        return false;
    }
    return true;
}

} // namespace gcx::sim
