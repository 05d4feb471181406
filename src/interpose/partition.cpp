#include "interpose/partition.hpp"

#include "interpose/real_driver.hpp"
#include "interpose/stub_library.hpp"
#include "interpose/thread_streams.hpp"
#include "interpose/words.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace gcx::shim {
namespace {

using exec::DevicePart;

// Never destroyed: calls come until the process has ended.
struct Partitions {
    exec::Plan plan;
    std::string real; // the name that the real libcuda goes by
    std::vector<std::unique_ptr<Partition>> all;
    std::array<std::atomic<Partition*>, 64> by_device{}; // once found; none() if there is none
};

constinit std::atomic<Partitions*> partitions{nullptr};
constinit std::atomic<bool> damaged{false};
// Stands for a device without a partition.
Partition* none() {
    static auto* const kNone = new Partition(DevicePart{});
    return kNone;
}

// As the facade has it from the auditor; of one that was made without, the environment's.
const char* plan_text() {
    void* const facade = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    const link_map* map = nullptr;
    const char* carried = nullptr;
    if (facade != nullptr && dlinfo(facade, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr)
        carried = exec::facade_plan(map->l_ld, map->l_addr);
    return carried != nullptr ? carried : std::getenv(exec::kPlanVariable);
}

Partitions* read_partitions() {
    const char* const text = plan_text();
    try {
        auto made = std::make_unique<Partitions>();
        made->plan = exec::read_plan(text != nullptr ? text : "");
        made->real = exec::kRealPrefix + made->plan.driver;
        for (const DevicePart& part : made->plan.devices)
            made->all.push_back(std::make_unique<Partition>(part));
        return made.release();
    } catch (const std::exception& error) {
        if (!damaged.exchange(true))
            say("%s. The program can't use CUDA", error.what());
        return nullptr;
    }
}

// Read once, by whoever comes first, without a lock that a child of a fork could find held.
Partitions* all_partitions() {
    Partitions* found = partitions.load(std::memory_order_acquire);
    if (found != nullptr || damaged.load())
        return found;
    Partitions* const made = read_partitions();
    if (made == nullptr || partitions.compare_exchange_strong(found, made))
        return made;
    delete made;
    return found;
}

Partition* find_by_uuid(Partitions& all, const CUuuid& uuid) {
    for (const auto& partition : all.all)
        if (std::memcmp(uuid.bytes, partition->asked.uuid.data(), sizeof uuid.bytes) == 0)
            return partition.get();
    return nullptr;
}

// gcx's own message with the device before it.
CUresult failed(const Partition& partition, gcx_result result) {
    say("device %d: no partition of %u SMs: %s", partition.device.load(), partition.asked.sm_count,
        gcx_last_error_message());
    return static_cast<CUresult>(result);
}

CUresult differs(const Partition& partition, const char* what, uint32_t found, uint32_t expected) {
    say("device %d: no partition of %u SMs: %s %u, and were %u when gcx exec divided the device; "
        "restart the program",
        partition.device.load(), partition.asked.sm_count, what, found, expected);
    return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

// All of a device in the plan's family, from which the atoms are taken.
gcx_result whole_family(const Partition& partition, gcx_resource* family) {
    gcx_resource device{};
    const gcx_result result =
        gcx_device_get_resource(partition.device.load(), GCX_RESOURCE_SM, &device);
    if (result != GCX_SUCCESS)
        return result;
    const uint32_t flags =
        partition.asked.family == GCX_SM_FAMILY_FINE          ? GCX_SPLIT_IGNORE_SM_COSCHEDULING
        : partition.asked.family == GCX_SM_FAMILY_MAX_CLUSTER ? GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE
                                                              : GCX_SPLIT_DEFAULT;
    const gcx_sm_request rest{.sm_count = GCX_REST};
    return gcx_sm_split(&device, &rest, 1, flags, family, nullptr);
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

// The driver that the plan names, in the copy of gcx that is in this library alone.
gcx_result open_gcx() {
    gcx_result result = gcx_driver_open(real_path());
    // What GCX_PUBLISH asks for are the leases of the program, which this copy has none of.
    if (result == GCX_SUCCESS)
        result = gcx_publish_stop();
    // A context that was given up has to be gone, so that the device can be reset.
    if (result == GCX_SUCCESS)
        result = gcx_cache_set_limit(0);
    return result;
}

// Joins the reservation of the SMs, so that they are this process's until it ends, whatever
// descriptors it has closed since it was started.
gcx_result keep_reservation(Partition& partition) {
    return partition.asked.token.empty() || partition.reservation != nullptr
               ? GCX_SUCCESS
               : gcx_reservation_join(partition.asked.token.c_str(), &partition.reservation);
}

CUresult make_context(Partition& partition) {
    gcx_resource family{};
    gcx_resource sms{};
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
    if (info.atom_count != partition.asked.family_atoms)
        return differs(partition, "its atoms are", info.atom_count, partition.asked.family_atoms);
    result = join_atoms(family, partition.asked.atoms, &sms);
    if (result == GCX_SUCCESS)
        result = gcx_resource_get_info(&sms, &info);
    if (result != GCX_SUCCESS)
        return failed(partition, result);
    if (info.sm_count != partition.asked.sm_count)
        return differs(partition, "its SMs are", info.sm_count, partition.asked.sm_count);
    result = gcx_context_create(&sms, 1, nullptr, &partition.context);
    return result == GCX_SUCCESS ? CUDA_SUCCESS : failed(partition, result);
}

// The handle of a device's primary context, which is alive.
CUresult ask_primary(CUdevice device, CUcontext* primary) {
    const CUresult result = GCX_REAL_ALONE(cuDevicePrimaryCtxRetain)(primary, device);
    if (result != CUDA_SUCCESS)
        return result;
    return GCX_REAL_ALONE(cuDevicePrimaryCtxRelease_v2)(device);
}

// Null if it isn't alive.
CUresult find_primary(CUdevice device, CUcontext* primary) {
    unsigned flags = 0;
    int active = 0;
    *primary = nullptr;
    const CUresult result = GCX_REAL_ALONE(cuDevicePrimaryCtxGetState)(device, &flags, &active);
    return result == CUDA_SUCCESS && active != 0 ? ask_primary(device, primary) : result;
}

// Set while the thread makes a partition: a driver that calls its own functions by their names
// comes here in the middle of it.
thread_local bool t_making = false;

struct Making {
    Making() { t_making = true; }
    ~Making() { t_making = false; }
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;
};

Former* find_former(Partition& partition, CUcontext context) {
    for (Former& former : partition.former)
        if (former.green.load() == context)
            return &former;
    return nullptr;
}

// Into which partition's green context a thread belongs that has a context current: null if it is
// in it, or in none.
CUresult find_to_enter(Partitions& all, CUcontext current, Partition** found) {
    *found = nullptr;
    for (const auto& partition : all.all)
        if (partition->green.load(std::memory_order_acquire) == current)
            return CUDA_SUCCESS;
    for (const auto& partition : all.all)
        if (find_former(*partition, current) != nullptr) {
            *found = partition->green.load() != nullptr ? partition.get() : nullptr;
            return CUDA_SUCCESS;
        }
    return find_by_primary(current, found);
}

// Whose primary context it is, of those that were asked for; null if of none.
Partition* known_by_primary(Partitions& all, CUcontext context) {
    for (const auto& partition : all.all)
        if (partition->primary.load(std::memory_order_acquire) == context)
            return partition.get();
    return nullptr;
}

} // namespace

const char* real_path() {
    const Partitions* const all = all_partitions();
    return all != nullptr ? all->real.c_str() : nullptr;
}

const exec::Plan* plan() {
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
    std::atomic<Partition*>& kept = all->by_device[static_cast<std::size_t>(device)];
    Partition* known = kept.load(std::memory_order_acquire);
    if (known == nullptr) {
        CUuuid uuid{};
        const CUresult result = GCX_REAL_ALONE(cuDeviceGetUuid_v2)(&uuid, device);
        if (result != CUDA_SUCCESS)
            return result;
        known = find_by_uuid(*all, uuid);
        if (known != nullptr)
            known->device.store(device);
        kept.store(known != nullptr ? known : none(), std::memory_order_release);
    }
    *found = known == none() ? nullptr : known;
    return CUDA_SUCCESS;
}

CUresult make(Partition& partition) {
    if (t_making || partition.green.load(std::memory_order_acquire) != nullptr)
        return CUDA_SUCCESS;
    const Making making;
    CUresult result = ask_usable();
    if (result != CUDA_SUCCESS)
        return result;
    const std::lock_guard lock(partition.making);
    if (partition.green.load() == nullptr)
        result = make_context(partition);
    if (result != CUDA_SUCCESS || partition.green.load() != nullptr)
        return result;
    CUcontext primary = nullptr;
    const CUcontext green = gcx_context_native(partition.context);
    if (green == nullptr)
        result = failed(partition, GCX_ERROR_CONTEXT_IS_DESTROYED);
    else if (result = ask_primary(partition.device.load(), &primary); result != CUDA_SUCCESS)
        say("device %d: its primary context can't be had, the driver answered %d",
            partition.device.load(), static_cast<int>(result));
    if (result != CUDA_SUCCESS) {
        gcx_context_destroy(partition.context);
        return result;
    }
    forget_former(green);
    partition.primary.store(primary);
    partition.green.store(green, std::memory_order_release);
    return CUDA_SUCCESS;
}

CUresult unmake(Partition& partition) {
    return partition.green.load() != nullptr
               ? static_cast<CUresult>(gcx_context_destroy(partition.context))
               : CUDA_SUCCESS;
}

void forget(Partition& partition) {
    const CUcontext green = partition.green.load();
    if (green == nullptr)
        return;
    Former& former = partition.former[partition.former_count++ % partition.former.size()];
    former.primary.store(partition.primary.load());
    former.green.store(green);
    partition.green.store(nullptr);
    partition.primary.store(nullptr);
    partition.context = nullptr;
    forget_thread_streams(partition);
}

CUresult find_by_primary(CUcontext context, Partition** found) {
    *found = nullptr;
    Partitions* const all = all_partitions();
    if (all == nullptr || context == nullptr)
        return CUDA_SUCCESS;
    *found = known_by_primary(*all, context);
    const bool all_known = known_by_primary(*all, nullptr) == nullptr;
    int count = 0;
    if (*found != nullptr || all_known)
        return CUDA_SUCCESS;
    CUresult result = GCX_REAL_ALONE(cuDeviceGetCount)(&count);
    for (CUdevice device = 0; device < count && result == CUDA_SUCCESS; device++) {
        Partition* partition = nullptr;
        CUcontext primary = nullptr;
        result = find_partition(device, &partition);
        if (result != CUDA_SUCCESS || partition == nullptr || partition->primary.load() != nullptr)
            continue;
        result = find_primary(device, &primary);
        if (result == CUDA_SUCCESS && primary == context)
            *found = partition;
    }
    return result;
}

Partition* partition_of(CUcontext green) {
    Partitions* const all = all_partitions();
    if (all == nullptr || green == nullptr)
        return nullptr;
    for (const auto& partition : all->all)
        if (partition->green.load(std::memory_order_acquire) == green)
            return partition.get();
    return nullptr;
}

CUcontext inner(CUcontext context) {
    Partitions* const all = all_partitions();
    if (all == nullptr || context == nullptr)
        return context;
    const Partition* const partition = known_by_primary(*all, context);
    const CUcontext green = partition != nullptr ? partition->green.load() : nullptr;
    return green != nullptr ? green : context;
}

CUcontext outer(CUcontext context) {
    Partitions* const all = all_partitions();
    if (all == nullptr || context == nullptr)
        return context;
    if (const Partition* const partition = partition_of(context); partition != nullptr)
        return partition->primary.load();
    for (const auto& partition : all->all)
        if (const Former* const former = find_former(*partition, context); former != nullptr)
            return former->primary.load();
    return context;
}

void forget_former(CUcontext context) {
    Partitions* const all = all_partitions();
    if (all == nullptr || context == nullptr)
        return;
    for (const auto& partition : all->all)
        if (Former* const former = find_former(*partition, context); former != nullptr)
            former->green.store(nullptr);
}

CUresult enter() {
    Partitions* const all = all_partitions();
    CUcontext current = nullptr;
    if (all == nullptr)
        return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
    CUresult result = GCX_REAL_ALONE(cuCtxGetCurrent)(&current);
    if (result != CUDA_SUCCESS || current == nullptr)
        return result;
    Partition* partition = nullptr;
    result = find_to_enter(*all, current, &partition);
    if (result == CUDA_SUCCESS && partition != nullptr)
        result = make(*partition);
    const CUcontext green = partition != nullptr ? partition->green.load() : nullptr;
    return result == CUDA_SUCCESS && green != nullptr ? GCX_REAL_ALONE(cuCtxSetCurrent)(green)
                                                      : result;
}

} // namespace gcx::shim
