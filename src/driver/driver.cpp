#include "driver/driver.hpp"

#include "base/log.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

namespace gcx {
namespace {

// By gcx_capability.
constexpr int kRequiredVersions[] = {12040, 12050, 13000, 13000, 13010, 13010, 13010, 13040};
static_assert(std::size(kRequiredVersions) == GCX_CAPABILITY_COUNT);

constexpr char kSimulatorPrefix[] = "sim:";

constinit std::atomic<bool> cuda_started{false};
// Never freed, since it may be used while the process exits. Null: kDefaultLibrary.
constinit std::atomic<const std::string*> default_library{nullptr};

bool names_simulation(const std::string& choice) {
    return choice.rfind(kSimulatorPrefix, 0) == 0;
}

float mps_percentage_of_environment() {
    const char* const text = std::getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    if (text == nullptr)
        return 0;
    float value = 0;
    const char* const end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, value);
    return error == std::errc() && rest == end && value > 0 && value <= 100 ? value : 0;
}

// The path of the library or program that contains this code; empty if unknown. An array, which is
// never destroyed.
constinit char own_path[2 * PATH_MAX] = "";

// Runs when the library is loaded: the loader keeps a relative path, which leads elsewhere after
// the working directory has changed.
[[gnu::constructor]] void note_own_path() {
    Dl_info info;
    if (dladdr(reinterpret_cast<const void*>(&find_simulator), &info) == 0 ||
        info.dli_fname == nullptr)
        return;
    char folder[PATH_MAX] = "";
    const bool relative = *info.dli_fname != '/' && getcwd(folder, sizeof folder) != nullptr;
    std::snprintf(own_path, sizeof own_path, "%s%s%s", folder, relative ? "/" : "", info.dli_fname);
}

// A program that Cargo built this library into has no installed gcx next to it.
#ifdef GCX_BUILT_BY_CARGO
constexpr char kSimulatorHint[] =
    "; enable the feature `simulator` of the crate gcx, which builds it, or set GCX_SIM_LIBRARY to "
    "the path of an installed one";
#else
constexpr char kSimulatorHint[] =
    "; in Python, `pip install gcx[sim]` installs it, or in gcx's sources `pip install "
    "./bindings/python/sim`; in Java, the jar of gcx with the classifier `sim` contains it; "
    "GCX_SIM_LIBRARY can name its path";
#endif

std::string own_folder() {
    const std::string path = own_path;
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash);
}

constexpr const char* kConnectionsVariable = "CUDA_DEVICE_MAX_CONNECTIONS";
// Documented by CUDA, as is GCX_MAX_CONNECTIONS; docs/measurements/log.md confirms both.
constexpr uint32_t kDefaultConnections = 8;

// The final answer in one word, since a lock could be taken when the process forks. 0: unknown.
constinit std::atomic<uint32_t> final_connections{0};
constexpr uint32_t kIsKnown = 1U << 8;
constexpr uint32_t kFromEnvironment = 1U << 9;
constexpr uint32_t kIsCertain = 1U << 10;

constinit std::atomic<bool> warned_of_few_connections{false};

std::optional<std::string> connections_value() {
    const char* const value = std::getenv(kConnectionsVariable);
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

// Returns the value that the process was started with.
std::optional<std::string> first_connections_value() {
    std::ifstream file("/proc/self/environ", std::ios::binary);
    const std::string start = std::string(kConnectionsVariable) + "=";
    for (std::string entry; std::getline(file, entry, '\0');) {
        if (entry.starts_with(start))
            return entry.substr(start.size());
    }
    return std::nullopt;
}

uint32_t count_of(const std::optional<std::string>& value) {
    if (!value)
        return kDefaultConnections;
    uint32_t count = 0;
    const char* const end = value->data() + value->size();
    const auto [rest, error] = std::from_chars(value->data(), end, count);
    return error == std::errc() && rest == end && count <= GCX_MAX_CONNECTIONS ? count : 0;
}

Connections read_connections(bool started) {
    const auto value = connections_value();
    return {count_of(value), value.has_value(), started,
            !started || value == first_connections_value()};
}

std::optional<Connections> known_connections() {
    const uint32_t word = final_connections.load();
    if (word == 0)
        return std::nullopt;
    return Connections{word & 0xffU, (word & kFromEnvironment) != 0, true,
                       (word & kIsCertain) != 0};
}

// Returns whether cuInit was called. Until then all other functions return NOT_INITIALIZED.
bool has_started(void* library) {
    using CurrentFn = CUresult(CUDAAPI*)(CUcontext*);
    const auto get_current = reinterpret_cast<CurrentFn>(dlsym(library, "cuCtxGetCurrent"));
    CUcontext current = nullptr;
    return get_current != nullptr && get_current(&current) != CUDA_ERROR_NOT_INITIALIZED;
}

bool has_started_by_name(const std::string& library) {
    void* const loaded = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (loaded == nullptr)
        return false;
    const bool started = has_started(loaded);
    dlclose(loaded);
    return started;
}

std::string connections_text(const Connections& now) {
    return now.count == 0 ? "an unknown number of connections"
                          : format("%u connection%s", now.count, now.count == 1 ? "" : "s");
}

// Returns what a driver will use or uses. Call it before cuInit, and pass the result to
// keep_connections() when cuInit has succeeded.
Connections connections_of(void* library) {
    return known_connections().value_or(read_connections(has_started(library)));
}

void keep_connections(Connections found) {
    uint32_t nothing = 0;
    final_connections.compare_exchange_strong(
        nothing, found.count | kIsKnown | (found.from_environment ? kFromEnvironment : 0) |
                     (found.certain ? kIsCertain : 0));
}

} // namespace

int required_version(gcx_capability capability) {
    return kRequiredVersions[static_cast<std::size_t>(capability)];
}

std::string version_text(int version) {
    return format("%d.%d", version / 1000, version % 1000 / 10);
}

std::string companion_path(const CompanionLibrary& companion) {
    const std::string folder = own_folder();
    // As installed, then as built.
    const std::string candidates[] = {folder + "/gcx/" + companion.file,
                                      folder + "/" + companion.build_dir + "/" + companion.file};
    for (const std::string& path : candidates) {
        if (access(path.c_str(), R_OK) == 0)
            return path;
    }
    fail(GCX_ERROR_FILE_NOT_FOUND,
         format("%s is not installed: looked for %s and %s%s", companion.what,
                candidates[0].c_str(), candidates[1].c_str(), companion.hint));
}

std::string find_simulator() {
    if (const char* chosen = secure_getenv("GCX_SIM_LIBRARY");
        chosen != nullptr && *chosen != '\0') {
        if (access(chosen, R_OK) != 0)
            fail(GCX_ERROR_FILE_NOT_FOUND,
                 format("GCX_SIM_LIBRARY=%s: there is no such file", chosen));
        return chosen;
    }
#ifdef GCX_BUILT_SIMULATOR
    if (access(GCX_BUILT_SIMULATOR, R_OK) == 0)
        return GCX_BUILT_SIMULATOR;
#endif
    return companion_path({"the simulated driver", "libgcx-sim.so", "sim", kSimulatorHint});
}

const char* dl_reason() {
    const char* reason = dlerror();
    return reason != nullptr ? reason : "no reason given";
}

std::string library_of(const std::string& choice) {
    if (choice.empty() || choice == kDefaultLibrary) {
        const std::string* const name = default_library.load();
        return name != nullptr ? *name : kDefaultLibrary;
    }
    return names_simulation(choice) ? find_simulator() : choice;
}

void set_default_library(const std::string& name) {
    default_library.store(new std::string(name));
}

Driver::Driver(const std::string& choice) : choice_(choice.empty() ? kDefaultLibrary : choice) {
    load();
    try {
        using VersionFn = CUresult(CUDAAPI*)(int*);
        const auto get_version = reinterpret_cast<VersionFn>(dlsym(handle_, "cuDriverGetVersion"));
        if (get_version == nullptr)
            fail(GCX_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
                 format("%s is no CUDA driver: it has no cuDriverGetVersion", library_.c_str()));
        if (const CUresult result = get_version(&version_); result != CUDA_SUCCESS)
            fail(static_cast<gcx_result>(result),
                 format("cuDriverGetVersion of %s returned %d", library_.c_str(), result));
        if (!has(GCX_CAPABILITY_GREEN_CONTEXTS))
            fail(
                GCX_ERROR_NOT_SUPPORTED,
                format("the driver %s is CUDA %s; green contexts need a driver of CUDA %s or newer",
                       library_.c_str(), version_text(version_).c_str(),
                       version_text(required_version(GCX_CAPABILITY_GREEN_CONTEXTS)).c_str()));
        resolve();
        const Connections queues = connections_of(handle_);
        const CUresult started = cuInit(0);
        int devices = 0;
        if (started == CUDA_SUCCESS) {
            cuda_started.store(true);
            keep_connections(queues);
            GCX_CALL(*this, cuDeviceGetCount, &devices);
        }
        if (started == CUDA_ERROR_NO_DEVICE || (started == CUDA_SUCCESS && devices == 0)) {
            const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
            fail(GCX_ERROR_NO_DEVICE,
                 format("the driver %s (CUDA %s) has no device%s%s", library_.c_str(),
                        version_text(version_).c_str(),
                        visible != nullptr ? "; the environment has CUDA_VISIBLE_DEVICES=" : "",
                        visible != nullptr ? visible : ""));
        }
        check(started, "cuInit");
    } catch (...) {
        dlclose(handle_);
        throw;
    }
    if (log::enabled(GCX_LOG_INFO))
        log::write(GCX_LOG_INFO,
                   format("opened %s, CUDA %s%s", library_.c_str(), version_text(version_).c_str(),
                          simulated_ ? ", SIMULATED" : ""));
}

Driver::~Driver() {
    dlclose(handle_);
}

bool Driver::is(const std::string& choice) const {
    if (choice == choice_)
        return true;
    if (names_simulation(choice) || names_simulation(choice_))
        return false;
    // The same library may have several names.
    void* const same = dlopen(library_of(choice).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (same != nullptr)
        dlclose(same);
    return same == handle_;
}

bool Driver::started() {
    return cuda_started.load();
}

void Driver::load() {
    std::string spec;
    if (names_simulation(choice_))
        spec = choice_.substr(sizeof kSimulatorPrefix - 1);
    library_ = library_of(choice_);
    // RTLD_LOCAL: symbols of the simulated driver must not replace those of another libcuda.
    handle_ = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr)
        fail(GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
             format(
                 "no CUDA driver: %s. Install NVIDIA's driver, or set GCX_DRIVER=sim:h100@13.0 to "
                 "run on the simulated one",
                 dl_reason()));
    using ConfigureFn = int (*)(const char*);
    using TextFn = const char* (*)();
    const auto configure = reinterpret_cast<ConfigureFn>(dlsym(handle_, "gcx_sim_configure"));
    const auto current = reinterpret_cast<TextFn>(dlsym(handle_, "gcx_sim_spec"));
    simulated_ = configure != nullptr;
    int result = 0;
    if (!spec.empty())
        result = simulated_ ? configure(spec.c_str()) : CUDA_ERROR_INVALID_VALUE;
    // Reads the environment before the first driver call, which would print what is wrong there.
    else if (current != nullptr && *current() == '\0')
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != 0) {
        const auto why = reinterpret_cast<TextFn>(dlsym(handle_, "gcx_sim_last_error"));
        const std::string reason = why != nullptr ? why() : "it is no simulated driver";
        const std::string what = spec.empty() ? "start" : "be set to \"" + spec + "\"";
        dlclose(handle_);
        fail(static_cast<gcx_result>(result),
             format("the simulated driver can't %s: %s", what.c_str(), reason.c_str()));
    }
}

void Driver::resolve() {
    using GetProcAddressFn =
        CUresult(CUDAAPI*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
    const auto get_address =
        reinterpret_cast<GetProcAddressFn>(dlsym(handle_, "cuGetProcAddress_v2"));
    if (get_address == nullptr)
        fail(GCX_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
             format("the driver %s says that it is CUDA %s, but lacks cuGetProcAddress_v2",
                    library_.c_str(), version_text(version_).c_str()));
    // Not dlsym: it finds the oldest variant, which may have other parameters.
    const auto find = [&](const char* name, int since) -> void* {
        if (version_ < since)
            return nullptr;
        void* address = nullptr;
        CUdriverProcAddressQueryResult query = CU_GET_PROC_ADDRESS_SUCCESS;
        const CUresult result =
            get_address(name, &address, since, CU_GET_PROC_ADDRESS_DEFAULT, &query);
        if (result != CUDA_SUCCESS)
            fail(static_cast<gcx_result>(result),
                 format("cuGetProcAddress of %s returned %d for %s", library_.c_str(), result,
                        name));
        if (address == nullptr)
            fail(GCX_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
                 format("the driver %s says that it is CUDA %s, but lacks %s of CUDA %s",
                        library_.c_str(), version_text(version_).c_str(), name,
                        version_text(since).c_str()));
        return address;
    };
#define GCX_RESOLVE(name, since, type) name = reinterpret_cast<type>(find(#name, since));
    GCX_DRIVER_FUNCTIONS(GCX_RESOLVE)
#undef GCX_RESOLVE
}

void Driver::require(gcx_capability capability, const char* what) const {
    if (!has(capability))
        fail(GCX_ERROR_NOT_SUPPORTED,
             format("%s: needs a driver of CUDA %s or newer, this one is CUDA %s", what,
                    version_text(required_version(capability)).c_str(),
                    version_text(version_).c_str()));
}

std::string Driver::describe(CUresult result, const char* function) const {
    const char* name = nullptr;
    const char* text = nullptr;
    if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
        name = "an unknown error";
    if (cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr)
        text = "no description";
    return format("%s returned %s (%d, %s)", function, name, static_cast<int>(result), text);
}

void Driver::fail_with(CUresult result, const char* function) const {
    fail(static_cast<gcx_result>(result), describe(result, function));
}

bool Driver::context_has_id(CUcontext context, unsigned long long id) const {
    unsigned long long its_id = 0;
    const CUresult result = cuCtxGetId(context, &its_id);
    if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT)
        return false;
    check(result, "cuCtxGetId");
    return its_id == id;
}

bool Driver::ended() const {
    CUcontext current = nullptr;
    return cuCtxGetCurrent(&current) == CUDA_ERROR_DEINITIALIZED;
}

Mps mps_of(const Driver& driver, CUdevice device) {
    int enabled = 0;
    const CUresult result =
        driver.cuDeviceGetAttribute(&enabled, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device);
    if (result == CUDA_ERROR_INVALID_VALUE) // a driver without this attribute
        return {GCX_MPS_UNKNOWN, mps_percentage_of_environment()};
    driver.check(result, "cuDeviceGetAttribute");
    return {enabled != 0 ? GCX_MPS_ON : GCX_MPS_OFF, mps_percentage_of_environment()};
}

std::string mps_limit_of(const Driver& driver, CUdevice device, bool has_groups) {
    const Mps mps = mps_of(driver, device);
    const char* const partition = std::getenv("CUDA_MPS_SM_PARTITION"); // read, not measured
    if (mps.state == GCX_MPS_OFF)
        return "";
    if (mps.thread_percentage > 0 && mps.thread_percentage < 100)
        return "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is set; unset it, and start the process again";
    if (partition != nullptr && *partition != '\0')
        return "CUDA_MPS_SM_PARTITION is set; unset it, and start the process again";
    return has_groups || mps.state != GCX_MPS_ON
               ? ""
               : "its daemon limits each client; enter set_default_active_thread_percentage 100 in "
                 "nvidia-cuda-mps-control, and start the process again";
}

Connections connections(const std::string& choice) {
    if (const auto found = known_connections())
        return *found;
    const bool started =
        has_started_by_name(kDefaultLibrary) || has_started_by_name(library_of(choice));
    const Connections found = read_connections(started);
    if (started)
        keep_connections(found);
    return found;
}

void request_connections(const std::string& choice, uint32_t count) {
    const Connections now = connections(choice);
    if (now.count >= count && now.certain)
        return;
    if (now.started)
        fail(GCX_ERROR_TOO_LATE,
             format("CUDA has started in this process%s with %s, so it is too late for %u; request "
                    "them before the first cuInit, or start the process with %s=%u",
                    now.certain ? "" : ", before the process set the variable again,",
                    now.certain ? connections_text(now).c_str() : "what it had then", count,
                    kConnectionsVariable, count));
    if (setenv(kConnectionsVariable, std::to_string(count).c_str(), 1) != 0)
        fail(GCX_ERROR_OUT_OF_MEMORY, format("no memory to set %s", kConnectionsVariable));
}

void warn_of_few_connections() {
    const auto found = known_connections();
    if (!found || found->count != 1 || warned_of_few_connections.exchange(true))
        return;
    log::write(GCX_LOG_WARNING, format("%s is 1: as soon as one stream of the process waits, all "
                                       "partitions wait, whatever SMs they have; set it to %u, or "
                                       "call gcx_queue_request_connections, before CUDA starts",
                                       kConnectionsVariable, GCX_MAX_CONNECTIONS));
}

} // namespace gcx
