#include "api/library.hpp"

#include "base/log.hpp"
#include "core/lease_claim.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

namespace gcx {
namespace {

// Only close_library() destroys: other threads may use these while the process exits.
constinit std::atomic<Library*> instance{nullptr};
constinit std::mutex opening;
constinit std::atomic<bool> closed{false};
// Set while the library is being opened, since a child of a fork would find `opening` locked, and
// permanently once CUDA has started.
constinit std::atomic<bool> used{false};
constinit std::atomic<bool> forked{false};
constinit bool watching_forks = false; // guarded by opening
// Keeps a library that was not closed reachable, so that it does not count as leaked.
[[gnu::used]] constinit Library* left_open = nullptr;

void note_fork() {
    log::forget_other_threads();
    if (used.load())
        forked.store(true, std::memory_order_relaxed);
    if (Library* const parents = instance.load(); parents != nullptr)
        parents->leases.publisher().forget();
}

bool is_default(const char* choice) {
    return choice == nullptr || *choice == '\0';
}

Library& open_locked(const char* choice) {
    if (closed.load())
        fail(GCX_ERROR_DEINITIALIZED, "the process is exiting; gcx is closed");
    if (!watching_forks && pthread_atfork(nullptr, nullptr, note_fork) != 0)
        fail(GCX_ERROR_OUT_OF_MEMORY, "no memory to watch for forks");
    watching_forks = true;
    used.store(true);
    try {
        auto* fresh = new Library(is_default(choice) ? default_choice() : choice);
        instance.store(fresh, std::memory_order_release);
        publish_if_requested(*fresh);
        return *fresh;
    } catch (...) {
        used.store(Driver::started());
        throw;
    }
}

// Runs at dlclose and when the process exits.
[[gnu::destructor]] void close_library() {
    closed.store(true);
    Library* const old = instance.exchange(nullptr);
    if (old != nullptr)
        old->leases.publisher().remove_file();
    // While handles are alive, other code may be using them. After a fork, or once the driver has
    // ended, there is nothing to release.
    if (old == nullptr || forked.load() || old->in_use() || old->driver.ended()) {
        left_open = old;
        return;
    }
    delete old;
    drop_claim_to_leases();
    log::deliver();
}

} // namespace

std::string default_choice() {
    const char* choice = std::getenv("GCX_DRIVER");
    return choice != nullptr ? choice : "";
}

void refuse_after_fork() {
    if (forked.load(std::memory_order_relaxed))
        fail(
            GCX_ERROR_NOT_INITIALIZED,
            "this process was forked from one that used gcx, and CUDA does not work across a fork; "
            "start it with exec, or use gcx only in the child");
}

Library::Library(const std::string& choice) : driver(choice), cache(driver), probe(driver) {
    int count = 0;
    GCX_CALL(driver, cuDeviceGetCount, &count);
    for (int ordinal = 0; ordinal < count; ordinal++)
        devices_.push_back(std::make_unique<Device>(driver, ordinal));
}

Device& Library::device(int32_t ordinal) {
    if (ordinal < 0 || ordinal >= device_count())
        fail(GCX_ERROR_INVALID_DEVICE,
             format("there is no device %d; the driver has %d, counted from 0", ordinal,
                    device_count()));
    return *devices_[static_cast<std::size_t>(ordinal)];
}

SmResource Library::sm_resource(const gcx_resource* resource) {
    return sm_resource(unseal(resource));
}

SmResource Library::sm_resource(const ResourceWords& words) {
    if (words.type != GCX_RESOURCE_SM)
        fail(GCX_ERROR_INVALID_RESOURCE_TYPE,
             "the resource is a workqueue; this needs an SM resource");
    if (words.family == GCX_SM_FAMILY_EXTERNAL)
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("gcx did not create the green context of the resource's stream: it is not "
                    "known which atoms its %u SMs are; they can't be split or combined, and no "
                    "context can be created for them",
                    words.external.sm_count));
    Device& its_device = device(words.device);
    if (words.family != GCX_SM_FAMILY_STRUCTURED)
        return {&its_device, its_device.family(words.family), words.set};
    return {&its_device, its_device.structured_family(words.split), words.set};
}

bool Library::in_use() {
    return !contexts.empty() || !streams.empty() || !events.empty() || !lease_handles.empty() ||
           !cancels.empty() || !graphs.empty();
}

gcx_resource seal(const SmResource& resource) {
    ResourceWords words;
    words.type = GCX_RESOURCE_SM;
    words.device = resource.device->ordinal();
    words.family = resource.family->kind();
    words.set = resource.set;
    words.split = resource.family->split_id();
    return seal(words);
}

Library& library() {
    refuse_after_fork();
    if (Library* current = instance.load(std::memory_order_acquire); current != nullptr)
        return *current;
    const std::lock_guard lock(opening);
    if (Library* current = instance.load(std::memory_order_acquire); current != nullptr)
        return *current;
    return open_locked(nullptr);
}

bool library_answers() {
    return instance.load(std::memory_order_acquire) != nullptr &&
           !forked.load(std::memory_order_relaxed);
}

Library* library_unless_closed() {
    return closed.load() ? nullptr : &library();
}

Library* library_to_destroy_in() {
    Library* const lib = library_unless_closed();
    return lib == nullptr || lib->driver.ended() ? nullptr : lib;
}

void open_library(const char* choice) {
    refuse_after_fork();
    const std::lock_guard lock(opening);
    const Library* const current = instance.load();
    if (current == nullptr) {
        open_locked(choice);
        return;
    }
    if (!is_default(choice) && !current->driver.is(choice))
        fail(GCX_ERROR_DRIVER_ALREADY_OPEN,
             format("the driver %s is already open, and a process can open only one; open %s "
                    "before the first call that needs a driver",
                    current->driver.choice().c_str(), choice));
}

} // namespace gcx
