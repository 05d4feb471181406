#include "interpose/partition.hpp"

#include "interpose/created_contexts.hpp"
#include "interpose/real_driver.hpp"
#include "interpose/stub_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace gcx::interpose {
namespace {

// Never destroyed, since programs call the driver until the process has ended.
struct Partitions {
    Plan plan;
    std::string driver_path;
    std::vector<std::unique_ptr<Partition>> all;
    std::array<std::atomic<Partition*>, 64> by_device{}; // null: unknown, no_partition(): none
};

constinit std::atomic<Partitions*> partitions{nullptr};
constinit std::atomic<bool> damaged{false};

// Represents a device without a partition.
Partition* no_partition() {
    static auto* const kNone = new Partition(DevicePart{});
    return kNone;
}

// Returns the plan that the audit library stored in the stub library. The environment is used if
// the stub library has no plan.
const char* plan_text() {
    void* const stub = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    const link_map* map = nullptr;
    const char* stored = nullptr;
    if (stub != nullptr && dlinfo(stub, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr)
        stored = stub_library_plan(map->l_ld, map->l_addr);
    return stored != nullptr ? stored : std::getenv(kPlanVariable);
}

Partitions* read_partitions() {
    const char* const text = plan_text();
    try {
        auto created = std::make_unique<Partitions>();
        created->plan = read_plan(text != nullptr ? text : "");
        created->driver_path = kRealPrefix + created->plan.driver;
        for (const DevicePart& part : created->plan.devices)
            created->all.push_back(std::make_unique<Partition>(part));
        return created.release();
    } catch (const std::exception& error) {
        if (!damaged.exchange(true))
            log_line("%s; the program can't use CUDA", error.what());
        return nullptr;
    }
}

// The first caller reads the plan. Takes no lock: after a fork the child could find it locked.
Partitions* all_partitions() {
    Partitions* found = partitions.load(std::memory_order_acquire);
    if (found != nullptr || damaged.load())
        return found;
    Partitions* const created = read_partitions();
    if (created == nullptr || partitions.compare_exchange_strong(found, created))
        return created;
    delete created;
    return found;
}

Partition* find_by_uuid(Partitions& all, const CUuuid& uuid) {
    for (const auto& partition : all.all)
        if (std::memcmp(uuid.bytes, partition->planned.uuid.data(), sizeof uuid.bytes) == 0)
            return partition.get();
    return nullptr;
}

// Returns gcx's last error without the name of the C function that failed, which the program did
// not call.
const char* plain_error_message() {
    const char* const message = gcx_last_error_message();
    const char* const colon = std::strstr(message, ": ");
    return std::strncmp(message, "gcx_", 4) == 0 && colon != nullptr ? colon + 2 : message;
}

// Prints gcx's last error and returns its number, if CUDA has it.
CUresult failed(const Partition& partition, gcx_result result) {
    log_line("device %d: no partition of %u SMs: %s", partition.device.load(),
             partition.planned.sm_count, plain_error_message());
    return result < GCX_ERROR_CANCELLED ? static_cast<CUresult>(result) : CUDA_ERROR_UNKNOWN;
}

CUresult differs(const Partition& partition, const char* what, uint32_t found, uint32_t expected) {
    log_line(
        "device %d: no partition of %u SMs: %s %u, and were %u when gcx exec divided the device; "
        "restart the program",
        partition.device.load(), partition.planned.sm_count, what, found, expected);
    return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

// Returns all atoms of the device in the family of the plan.
gcx_result whole_family(const Partition& partition, gcx_resource* family) {
    gcx_resource device{};
    const gcx_result result =
        gcx_device_get_resource(partition.device.load(), GCX_RESOURCE_SM, &device);
    if (result != GCX_SUCCESS)
        return result;
    const uint32_t flags = partition.planned.family == GCX_SM_FAMILY_FINE
                               ? GCX_SPLIT_IGNORE_SM_COSCHEDULING
                           : partition.planned.family == GCX_SM_FAMILY_MAX_CLUSTER
                               ? GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE
                               : GCX_SPLIT_DEFAULT;
    const gcx_sm_request rest{.sm_count = GCX_REST};
    return gcx_sm_split(&device, &rest, 1, flags, family, nullptr, nullptr, nullptr);
}

gcx_result join_atoms(const gcx_resource& family, const std::vector<uint32_t>& atoms,
                      gcx_resource* joined) {
    gcx_result result = gcx_resource_get_atom(&family, atoms.front(), joined);
    for (std::size_t i = 1; i < atoms.size() && result == GCX_SUCCESS; i++) {
        gcx_resource atom{};
        result = gcx_resource_get_atom(&family, atoms[i], &atom);
        if (result == GCX_SUCCESS)
            result = gcx_resource_union(joined, &atom, joined);
    }
    return result;
}

// Opens the driver of the plan. This library contains a private copy of gcx.
gcx_result open_gcx() {
    gcx_result result = gcx_driver_open(driver_path());
    // GCX_PUBLISH is for the leases of the program. This copy of gcx has none.
    if (result == GCX_SUCCESS)
        result = gcx_publish_stop();
    // No context is cached, since a reset of the device fails while one exists.
    if (result == GCX_SUCCESS)
        result = gcx_cache_set_limit(0);
    return result;
}

// Joins the reservation of the SMs, which this process then keeps until it ends, even if the
// program has closed the descriptors that it inherited.
gcx_result keep_reservation(Partition& partition) {
    return partition.planned.token.empty() || partition.reservation != nullptr
               ? GCX_SUCCESS
               : gcx_reservation_join(partition.planned.token.c_str(), &partition.reservation);
}

// Finds the SMs of the plan, after checks that the driver still divides the device so. Requires the
// lock.
CUresult find_sms(Partition& partition, gcx_resource* sms) {
    gcx_resource family{};
    gcx_resource_info info = GCX_RESOURCE_INFO_INIT;
    gcx_result result = keep_reservation(partition);
    if (result == GCX_SUCCESS)
        result = open_gcx();
    if (result == GCX_SUCCESS)
        result = whole_family(partition, &family);
    if (result == GCX_SUCCESS)
        result = gcx_resource_get_info(&family, &info);
    if (result != GCX_SUCCESS)
        return failed(partition, result);
    if (info.atom_count != partition.planned.family_atoms)
        return differs(partition, "its atoms are", info.atom_count, partition.planned.family_atoms);
    result = join_atoms(family, partition.planned.atoms, sms);
    if (result == GCX_SUCCESS)
        result = gcx_resource_get_info(sms, &info);
    if (result != GCX_SUCCESS)
        return failed(partition, result);
    return info.sm_count == partition.planned.sm_count
               ? CUDA_SUCCESS
               : differs(partition, "its SMs are", info.sm_count, partition.planned.sm_count);
}

// Creates a context that shares its green context with no other one.
CUresult create_gcx_context(const Partition& partition, const gcx_resource& sms, gcx_context* out) {
    gcx_context_params params = GCX_CONTEXT_PARAMS_INIT;
    params.flags = GCX_CONTEXT_PRIVATE;
    const gcx_result result = gcx_context_create(&sms, 1, &params, out);
    return result == GCX_SUCCESS ? CUDA_SUCCESS : failed(partition, result);
}

// Finds the primary context of a device, which must be active.
CUresult get_active_primary(CUdevice device, CUcontext* primary) {
    const CUresult result = GCX_DRIVER(cuDevicePrimaryCtxRetain)(primary, device);
    if (result != CUDA_SUCCESS)
        return result;
    return GCX_DRIVER(cuDevicePrimaryCtxRelease_v2)(device);
}

// Finds the primary context of a device, or null if it is inactive.
CUresult find_primary(CUdevice device, CUcontext* primary) {
    unsigned flags = 0;
    int active = 0;
    *primary = nullptr;
    const CUresult result = GCX_DRIVER(cuDevicePrimaryCtxGetState)(device, &flags, &active);
    return result == CUDA_SUCCESS && active != 0 ? get_active_primary(device, primary) : result;
}

// Set while the thread creates a green context. A driver that calls its own functions by name calls
// hooks during that time.
thread_local bool t_creating = false;

struct Creating {
    Creating() { t_creating = true; }
    ~Creating() { t_creating = false; }
    Creating(const Creating&) = delete;
    Creating& operator=(const Creating&) = delete;
};

FormerContext* find_former(Partition& partition, CUcontext context) {
    for (FormerContext& former : partition.former)
        if (former.green.load() == context)
            return &former;
    return nullptr;
}

// Finds the partition of a primary context or of a former green one. Finds null if the context
// belongs to no partition.
CUresult find_partition_to_enter(Partitions& all, CUcontext current, Partition** found) {
    for (const auto& partition : all.all)
        if (find_former(*partition, current) != nullptr) {
            *found = partition->green.load() != nullptr ? partition.get() : nullptr;
            return CUDA_SUCCESS;
        }
    return find_partition_by_primary(current, found);
}

// Returns whether the primary context is known that the device has now.
bool is_known(const Partition& partition) {
    return !partition.resetting.load() && partition.primary.load() != nullptr;
}

bool all_known(const Partitions& all) {
    return std::all_of(all.all.begin(), all.all.end(),
                       [](const auto& partition) { return is_known(*partition); });
}

// Returns the partition with this primary context, among those that are known already, or null.
Partition* known_by_primary(Partitions& all, CUcontext context) {
    for (const auto& partition : all.all)
        if (partition->primary.load(std::memory_order_acquire) == context)
            return partition.get();
    return nullptr;
}

} // namespace

const char* driver_path() {
    const Partitions* const all = all_partitions();
    return all != nullptr ? all->driver_path.c_str() : nullptr;
}

const Plan* plan() {
    const Partitions* const all = all_partitions();
    return all != nullptr ? &all->plan : nullptr;
}

CUresult find_partition(CUdevice device, Partition** found) {
    *found = nullptr;
    Partitions* const all = all_partitions();
    if (all == nullptr)
        return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
    if (device < 0 || static_cast<std::size_t>(device) >= all->by_device.size())
        return CUDA_SUCCESS;
    std::atomic<Partition*>& entry = all->by_device[static_cast<std::size_t>(device)];
    Partition* known = entry.load(std::memory_order_acquire);
    if (known == nullptr) {
        CUuuid uuid{};
        const CUresult result = GCX_DRIVER(cuDeviceGetUuid_v2)(&uuid, device);
        if (result != CUDA_SUCCESS)
            return result;
        known = find_by_uuid(*all, uuid);
        if (known != nullptr)
            known->device.store(device);
        entry.store(known != nullptr ? known : no_partition(), std::memory_order_release);
    }
    *found = known == no_partition() ? nullptr : known;
    return CUDA_SUCCESS;
}

CUresult create_green_context(Partition& partition) {
    if (t_creating || partition.green.load(std::memory_order_acquire) != nullptr)
        return CUDA_SUCCESS;
    const Creating creating;
    CUresult result = check_driver_usable();
    if (result != CUDA_SUCCESS)
        return result;
    const std::lock_guard lock(partition.mutex);
    gcx_resource sms{};
    if (partition.green.load() == nullptr)
        result = find_sms(partition, &sms);
    if (result == CUDA_SUCCESS && partition.green.load() == nullptr)
        result = create_gcx_context(partition, sms, &partition.context);
    if (result != CUDA_SUCCESS || partition.green.load() != nullptr)
        return result;
    CUcontext primary = nullptr;
    const CUcontext green = gcx_context_native(partition.context);
    if (green == nullptr)
        result = failed(partition, GCX_ERROR_CONTEXT_IS_DESTROYED);
    else if (result = get_active_primary(partition.device.load(), &primary); result != CUDA_SUCCESS)
        log_line("device %d: can't get its primary context: the driver returned %d",
                 partition.device.load(), static_cast<int>(result));
    if (result != CUDA_SUCCESS) {
        gcx_context_destroy(partition.context);
        return result;
    }
    forget_former_context(green);
    partition.primary.store(primary);
    partition.green.store(green, std::memory_order_release);
    return CUDA_SUCCESS;
}

CUresult create_further_context(Partition& partition, gcx_context* out) {
    const Creating creating;
    gcx_resource sms{};
    CUresult result = check_driver_usable();
    if (result == CUDA_SUCCESS) {
        const std::lock_guard lock(partition.mutex);
        result = find_sms(partition, &sms);
    }
    // Without the lock: it waits for running kernels, which may wait for calls of other threads.
    return result == CUDA_SUCCESS ? create_gcx_context(partition, sms, out) : result;
}

CUresult destroy_green_context(ProgramContext& context) {
    return context.green.load() != nullptr
               ? static_cast<CUresult>(gcx_context_destroy(context.context))
               : CUDA_SUCCESS;
}

void forget_green_context(Partition& partition) {
    const CUcontext green = partition.green.load();
    if (green == nullptr)
        return;
    FormerContext& former = partition.former[partition.former_count++ % partition.former.size()];
    former.primary.store(partition.primary.load());
    former.green.store(green);
    partition.green.store(nullptr);
    partition.primary.store(nullptr);
    partition.context = nullptr;
    partition.order.clear();
    partition.thread_streams.clear();
    partition.generation++;
}

CUresult find_partition_by_primary(CUcontext context, Partition** found) {
    *found = nullptr;
    Partitions* const all = all_partitions();
    if (all == nullptr || context == nullptr)
        return CUDA_SUCCESS;
    // In this order: another thread can learn of a primary context in between.
    const bool known = all_known(*all);
    *found = known_by_primary(*all, context);
    int count = 0;
    if (*found != nullptr || known)
        return CUDA_SUCCESS;
    CUresult result = GCX_DRIVER(cuDeviceGetCount)(&count);
    for (CUdevice device = 0; device < count && result == CUDA_SUCCESS; device++) {
        Partition* partition = nullptr;
        CUcontext primary = nullptr;
        result = find_partition(device, &partition);
        if (result != CUDA_SUCCESS || partition == nullptr || is_known(*partition))
            continue;
        result = find_primary(device, &primary);
        if (result == CUDA_SUCCESS && primary == context)
            *found = partition;
    }
    if (*found == nullptr)
        *found = known_by_primary(*all, context);
    return result;
}

ProgramContext* find_program_context(CUcontext green) {
    Partitions* const all = all_partitions();
    if (all == nullptr || green == nullptr)
        return nullptr;
    for (const auto& partition : all->all)
        if (partition->green.load(std::memory_order_acquire) == green)
            return partition.get();
    return find_created(green);
}

ProgramContext* find_current_context() {
    CUcontext current = nullptr;
    if (GCX_DRIVER(cuCtxGetCurrent)(&current) != CUDA_SUCCESS)
        return nullptr;
    ProgramContext* const found = find_program_context(current);
    return found != nullptr && is_alive(*found) ? found : nullptr;
}

CUcontext to_driver(CUcontext context) {
    Partitions* const all = all_partitions();
    if (all == nullptr || context == nullptr)
        return context;
    const Partition* const partition = known_by_primary(*all, context);
    const CUcontext green = partition != nullptr ? partition->green.load() : nullptr;
    return green != nullptr ? green : context;
}

CUcontext to_program(CUcontext context) {
    Partitions* const all = all_partitions();
    if (all == nullptr || context == nullptr)
        return context;
    for (const auto& partition : all->all)
        if (partition->green.load(std::memory_order_acquire) == context)
            return partition->primary.load();
    for (const auto& partition : all->all)
        if (const FormerContext* const former = find_former(*partition, context); former != nullptr)
            return former->primary.load();
    return context;
}

void forget_former_context(CUcontext context) {
    Partitions* const all = all_partitions();
    if (all == nullptr || context == nullptr)
        return;
    for (const auto& partition : all->all)
        if (FormerContext* const former = find_former(*partition, context); former != nullptr)
            former->green.store(nullptr);
}

CUresult enter_partition(ProgramContext** entered) {
    Partitions* const all = all_partitions();
    CUcontext current = nullptr;
    Partition* partition = nullptr;
    if (all == nullptr)
        return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
    CUresult result = GCX_DRIVER(cuCtxGetCurrent)(&current);
    if (result != CUDA_SUCCESS || current == nullptr)
        return result;
    ProgramContext* found = find_program_context(current);
    if (found != nullptr && !is_alive(*found))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (found == nullptr) {
        result = find_partition_to_enter(*all, current, &partition);
        if (result == CUDA_SUCCESS && partition != nullptr)
            result = create_green_context(*partition);
        if (result != CUDA_SUCCESS || partition == nullptr)
            return result;
        found = partition;
        const CUcontext green = partition->green.load();
        if (green != nullptr)
            result = GCX_DRIVER(cuCtxSetCurrent)(green);
        if (result != CUDA_SUCCESS || green == nullptr)
            return result;
    }
    if (entered != nullptr)
        *entered = found;
    return CUDA_SUCCESS;
}

void log_line(const char* format, ...) {
    // A single write keeps the lines of several processes apart.
    char line[1024] = "gcx exec: ";
    constexpr std::size_t kStart = std::char_traits<char>::length("gcx exec: ");
    constexpr std::size_t kRoom = sizeof line - kStart - 1; // a newline replaces the terminator
    va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(line + kStart, kRoom, format, arguments);
    va_end(arguments);
    const std::size_t used = std::min(static_cast<std::size_t>(std::max(length, 0)), kRoom - 1);
    // Folders can have control characters in their names, which terminals obey.
    std::replace_if(
        line, line + kStart + used, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    line[kStart + used] = '\n';
    line[kStart + used + 1] = '\0';
    std::fputs(line, stderr);
}

} // namespace gcx::interpose
