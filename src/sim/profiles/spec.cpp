// Reads specifications and the files and variables that they depend on.
#include "sim/profiles/spec.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace gcx::sim {

namespace {

constexpr off_t kMaxFileBytes = 1 << 20; // a recording of the largest device has about 10 KiB

class OpenFile {
  public:
    // Without O_NONBLOCK, opening a pipe would block until a process opens it for writing.
    explicit OpenFile(const std::string& path)
        : descriptor_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    ~OpenFile() {
        if (descriptor_ >= 0)
            close(descriptor_);
    }
    int get() const { return descriptor_; }

  private:
    int descriptor_;
};

// Reads to the end, even if the file is longer than its reported size.
bool read_all(int descriptor, std::string& text) {
    char buffer[65536];
    while (static_cast<off_t>(text.size()) <= kMaxFileBytes) {
        const ssize_t count = read(descriptor, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count == 0;
        text.append(buffer, static_cast<std::size_t>(count));
    }
    return true;
}

// Reads a whole file. On failure returns false and a reason: the file may be a folder, a pipe, or
// too large for a recording.
bool read_recording(const std::string& path, std::string& text, std::string& error) {
    const auto refuse = [&](const std::string& why) {
        error = "cannot read the recording \"" + path + "\": " + why;
        return false;
    };
    const OpenFile file(path);
    struct stat about = {};
    if (file.get() < 0 || fstat(file.get(), &about) != 0)
        return refuse(std::strerror(errno));
    if (S_ISDIR(about.st_mode))
        return refuse("it is a folder; name the file that gcx info --record wrote");
    if (!S_ISREG(about.st_mode))
        return refuse("it is not a regular file; name the file that gcx info --record wrote");
    if (!read_all(file.get(), text))
        return refuse(std::strerror(errno));
    if (static_cast<off_t>(text.size()) > kMaxFileBytes)
        return refuse("it is larger than 1 MiB, the limit for recordings");
    return true;
}

constexpr const char* kDefaultDriver = "13.0";
constexpr uint64_t kDefaultKernelNs = 10'000;
constexpr uint64_t kMaxKernelNs = 1'000'000'000'000'000; // eleven days
constexpr unsigned kMaxDevices = 64;

std::string trimmed_lower(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
        text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
        text.remove_suffix(1);
    std::string lower(text);
    std::ranges::transform(lower, lower.begin(),
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

// The parts of a specification, split at the last @.
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

// A path can contain @. So an @ begins the driver only if a version or nothing follows it:
// a@b/gpu.profile and gpu@home.profile are paths, and gpu@13.0@ names the file gpu@13.0.
Parts split_path(const std::string& spec) {
    const Parts parts = split_at(spec);
    std::error_code ignored;
    // Otherwise a misspelt version would be reported as part of a file's name.
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
    // Use the newest simulated version that is not newer than the recorded one.
    if (parts.driver.empty() && profile.driver_version != 0)
        for (std::size_t i = 0; i < kDriverVersionCount; i++)
            if (kDriverVersions[i].version <= profile.driver_version)
                driver = kDriverVersions[i].name;
    // The process may change its working folder or pass the specification to another process.
    machine.spec = std::filesystem::absolute(parts.what).lexically_normal().string();
    if (!parts.driver.empty() || split_path(machine.spec).what != machine.spec)
        machine.spec += '@' + parts.driver;
    return true;
}

// Names of GPUs take precedence: a file called h100 in the working folder is ./h100.
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
    if (to_number(text, kernel_ns) && kernel_ns <= kMaxKernelNs)
        return true;
    error = "GCX_SIM_KERNEL_NS=" + std::string(text) +
            ": the duration of kernels with unknown names must be 0 to " +
            std::to_string(kMaxKernelNs) + " nanoseconds, e.g. " + std::to_string(kDefaultKernelNs);
    return false;
}

bool read_switch(const char* name, bool& on, std::string& error) {
    const char* const variable = std::getenv(name);
    const std::string_view text(variable == nullptr ? "" : variable);
    on = text == "1";
    if (on || text.empty() || text == "0")
        return true;
    error = std::string(name) + "=" + std::string(text) + ": must be 0 or 1";
    return false;
}

// "1", or "50%" if the daemon limits each client to half of the SMs.
bool read_mps(Machine& machine, std::string& error) {
    const char* const variable = std::getenv("GCX_SIM_MPS");
    const std::string_view text(variable == nullptr ? "" : variable);
    machine.mps_limit = text == "50%";
    machine.mps = text == "1" || machine.mps_limit;
    if (machine.mps || text.empty() || text == "0")
        return true;
    error = "GCX_SIM_MPS=" + std::string(text) + ": must be 0, 1 or 50%";
    return false;
}

// Recorded on an H200 with set_default_active_thread_percentage 50: the device has half of its SMs,
// which kernels number from 0.
void limit_sms(Machine& machine) {
    for (const auto& device : machine.devices)
        device->profile.sm_count /= 2;
}

} // namespace

bool read_spec(const char* spec, Machine& machine, std::string& error) {
    static std::atomic<uint64_t> epochs{1};
    const char* const variable = std::getenv("GCX_SIM");
    const bool from_environment = spec == nullptr && variable != nullptr && *variable != '\0';
    if (from_environment)
        spec = variable;
    if (spec == nullptr || *spec == '\0')
        spec = "h100@13.0";
    machine.spec = spec;
    machine.epoch = epochs++;
    if (!read_kernel_ns(machine.kernel_ns, error) || !read_mps(machine, error) ||
        !read_switch("GCX_SIM_DYNAMIC_PARALLELISM", machine.dynamic_parallelism, error))
        return false;
    std::string driver;
    if (read_machine(machine, driver, error)) {
        machine.driver =
            find_driver_version(driver.empty() ? std::string_view(kDefaultDriver) : driver);
        if (machine.driver != nullptr && machine.mps_limit)
            limit_sms(machine);
        if (machine.driver != nullptr)
            return true;
        error = "no driver \"" + driver + "\" can be simulated; known are " + known_drivers();
    }
    if (from_environment)
        error = "GCX_SIM=" + std::string(variable) + ": " + error;
    return false;
}

} // namespace gcx::sim
