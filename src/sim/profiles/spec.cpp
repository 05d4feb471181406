#include "sim/profiles/spec.hpp"

#include "sim/profiles/recording.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>

namespace gcx::sim {
namespace {

constexpr const char* kDefaultDriver = "13.0";
constexpr uint64_t kDefaultKernelNs = 10'000;
constexpr uint64_t kMostKernelNs = 1'000'000'000'000'000; // eleven days
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

void add_device(Machine& machine, const Profile& profile) {
    auto device = std::make_unique<Device>();
    device->index = static_cast<unsigned>(machine.devices.size());
    device->ordinal = static_cast<int>(device->index);
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
    if (trimmed_lower(gpus) == "none")
        return true;
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

// What a specification says, taken apart at its last @.
struct Parts {
    std::string what; // GPUs or a path
    std::string driver;
};

Parts split_at(const std::string& spec) {
    const auto at = spec.rfind('@');
    if (at == std::string::npos)
        return {spec, ""};
    return {spec.substr(0, at), trimmed_lower(std::string_view(spec).substr(at + 1))};
}

bool looks_like_driver(std::string_view text) {
    return text.find_first_not_of("0123456789.") == std::string_view::npos;
}

// A path may have an @ itself. So only one that nothing but a version, or nothing at all, follows
// begins the driver: a@b/gpu.profile and gpu@home.profile are paths, and gpu@13.0@ names gpu@13.0.
Parts split_path(const std::string& spec) {
    const Parts parts = split_at(spec);
    std::error_code ignored;
    // Else a misspelt version would be said to be part of a file's name.
    const bool misspelt =
        !std::filesystem::exists(spec, ignored) && std::filesystem::exists(parts.what, ignored);
    return looks_like_driver(parts.driver) || misspelt ? parts : Parts{spec, ""};
}

bool read_path(const Parts& parts, Machine& machine, std::string& driver, std::string& error) {
    std::string text;
    if (!read_recording(parts.what, text, error))
        return false;
    Profile profile;
    if (!parse_profile(text, parts.what, profile, error))
        return false;
    add_device(machine, profile);
    // The newest that is no newer than the recorded one.
    if (parts.driver.empty() && profile.driver_version != 0)
        for (std::size_t i = 0; i < kDriverVersionCount; i++)
            if (kDriverVersions[i].version <= profile.driver_version)
                driver = kDriverVersions[i].name;
    // The process may change its folder, and hand the specification to others.
    machine.spec = std::filesystem::absolute(parts.what).lexically_normal().string();
    if (!parts.driver.empty() || split_path(machine.spec).what != machine.spec)
        machine.spec += '@' + parts.driver;
    return true;
}

// The names of GPUs come first: a file called h100 in the working folder is ./h100.
bool read_machine(Machine& machine, std::string& driver, std::string& error) {
    Parts parts = split_at(machine.spec);
    const bool is_path = machine.spec.find('/') != std::string::npos;
    if (!is_path && read_gpus(parts.what, machine, error)) {
        driver = parts.driver;
        return true;
    }
    parts = split_path(machine.spec);
    std::error_code ignored;
    if (!is_path && !std::filesystem::exists(parts.what, ignored))
        return false;
    machine.devices.clear();
    driver = parts.driver;
    return read_path(parts, machine, driver, error);
}

bool read_kernel_ns(uint64_t& kernel_ns, std::string& error) {
    const char* const variable = std::getenv("GCX_SIM_KERNEL_NS");
    kernel_ns = kDefaultKernelNs;
    if (variable == nullptr || *variable == '\0')
        return true;
    const std::string_view text(variable);
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), kernel_ns);
    if (code == std::errc() && end == text.data() + text.size() && kernel_ns <= kMostKernelNs)
        return true;
    error = "GCX_SIM_KERNEL_NS=" + std::string(text) +
            ": what a kernel of unknown name lasts is a number of nanoseconds, 0 to " +
            std::to_string(kMostKernelNs) + ", e.g. " + std::to_string(kDefaultKernelNs);
    return false;
}

bool read_switch(const char* name, const char* what, bool& on, std::string& error) {
    const char* const variable = std::getenv(name);
    const std::string_view text(variable == nullptr ? "" : variable);
    on = text == "1";
    if (on || text.empty() || text == "0")
        return true;
    error = std::string(name) + "=" + std::string(text) + ": " + what + " is 0 or 1";
    return false;
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
    std::string driver;
    if (!read_kernel_ns(machine.kernel_ns, error) ||
        !read_switch("GCX_SIM_MPS", "whether the devices tell that they are shared by way of MPS",
                     machine.mps, error) ||
        !read_switch("GCX_SIM_DYNAMIC_PARALLELISM",
                     "whether a module with dynamic parallelism is loaded on the devices",
                     machine.dynamic_parallelism, error) ||
        !read_machine(machine, driver, error))
        return false;
    machine.driver =
        find_driver_version(driver.empty() ? std::string_view(kDefaultDriver) : driver);
    if (machine.driver == nullptr) {
        error = "no driver \"" + driver + "\" can be simulated; known are " + known_drivers();
        return false;
    }
    return true;
}

} // namespace gcx::sim
