#include "api/library.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/random.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

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

// Only one copy of gcx in a process acquires leases. Its claim is an empty mapping whose name is in
// /proc/self/maps. Every copy of gcx finds it there, however it was linked or loaded and whatever
// its version; copies have no symbol or memory in common. A forked child does not have the mapping,
// and closing all descriptors leaves it in place. The name contains an address in the copy's code,
// which tells the copy's file. Other versions of gcx read it too, so it must not change.

constexpr char kClaimName[] = "gcx-leases-";
constexpr std::string_view kClaimMapsName = "/memfd:gcx-leases-";
constexpr std::size_t kClaimBytes = 1; // the kernel maps a page
// If two copies claim at the same time, both see the other and try again.
constexpr int kClaimTries = 5;
constexpr unsigned kLongestClaimPauseUs = 8000;

constinit std::mutex claiming;
constinit std::atomic<void*> claim{nullptr}; // the mapping; null: not claimed
constinit std::atomic<bool> unwatched{false};

const char claim_anchor = 0;

struct Mapping {
    uintptr_t begin;
    uintptr_t end;
    std::string path;
};

// Calls visit with each mapping of the process until it returns true. Returns false if they cannot
// be read.
template <class Visit>
bool visit_mappings(const Visit& visit) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/maps", "re"),
                                                               std::fclose);
    if (file == nullptr)
        return false;
    struct Line {
        ~Line() { std::free(text); }
        char* text = nullptr;
        std::size_t room = 0;
    } line;
    while (getline(&line.text, &line.room, file.get()) > 0) {
        // "begin-end permissions offset device inode path"
        char* rest = nullptr;
        const uintptr_t begin = std::strtoul(line.text, &rest, 16);
        if (*rest != '-')
            continue;
        const uintptr_t end = std::strtoul(rest + 1, &rest, 16);
        for (int field = 0; field < 4; field++) {
            rest += std::strspn(rest, " ");
            rest += std::strcspn(rest, " ");
        }
        std::string its_path = rest + std::strspn(rest, " ");
        if (!its_path.empty() && its_path.back() == '\n')
            its_path.pop_back();
        if (visit(Mapping{begin, end, std::move(its_path)}))
            break;
    }
    return true;
}

std::string file_at(uintptr_t address) {
    std::string found;
    visit_mappings([&](const Mapping& mapping) {
        if (address < mapping.begin || address >= mapping.end)
            return false;
        found = mapping.path;
        return true;
    });
    return found.empty() ? "a copy that was unloaded since" : found;
}

// Returns the suffix of another copy's claim, "" if there is none, or nothing if this cannot be
// determined.
std::optional<std::string> find_other_claim(const void* own) {
    std::string found;
    const bool known = visit_mappings([&](const Mapping& mapping) {
        if (!mapping.path.starts_with(kClaimMapsName) ||
            mapping.begin == reinterpret_cast<uintptr_t>(own))
            return false;
        found = mapping.path.substr(kClaimMapsName.size());
        return true;
    });
    return known ? std::optional(found) : std::nullopt;
}

struct Unmap {
    void operator()(void* mapping) const { munmap(mapping, kClaimBytes); }
};
using Claim = std::unique_ptr<void, Unmap>;

// Returns null if the system can't do it.
Claim map_claim() {
    const std::string name =
        format("%s%llx", kClaimName,
               static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(&claim_anchor)));
    const int file = memfd_create(name.c_str(), MFD_CLOEXEC);
    if (file < 0)
        return nullptr;
    void* const address = mmap(nullptr, kClaimBytes, PROT_NONE, MAP_PRIVATE, file, 0);
    close(file);
    Claim mapping(address != MAP_FAILED ? address : nullptr);
    if (mapping != nullptr && madvise(address, kClaimBytes, MADV_DONTFORK) != 0)
        return nullptr;
    return mapping;
}

// In sandboxes without memfd_create or /proc, copies do not find each other.
void warn_unwatched() {
    if (!unwatched.exchange(true))
        log::write(GCX_LOG_WARNING,
                   "this system has no memfd_create or no /proc/self/maps, so a second copy of gcx "
                   "in this process would not be noticed and would assign the same SMs");
}

// Releases the claim, so that another copy can have it.
void drop_claim_to_leases() noexcept {
    const Claim dropped(claim.exchange(nullptr));
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
    // secure_getenv: the caller of a setuid program must not choose which library it loads.
    const char* choice = secure_getenv("GCX_DRIVER");
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

void claim_leases() {
    const auto settled = [] {
        return claim.load(std::memory_order_acquire) != nullptr || unwatched.load();
    };
    if (settled())
        return;
    const std::lock_guard lock(claiming);
    if (settled())
        return;
    std::string other;
    for (int tries = 0; tries < kClaimTries; tries++) {
        Claim mapping = map_claim();
        const auto found = mapping != nullptr ? find_other_claim(mapping.get()) : std::nullopt;
        if (found && found->empty()) {
            claim.store(mapping.release(), std::memory_order_release);
            return;
        }
        if (!found) {
            warn_unwatched();
            return;
        }
        other = *found;
        mapping.reset();
        std::this_thread::sleep_for(
            std::chrono::microseconds(random_bits() % kLongestClaimPauseUs));
    }
    fail(GCX_ERROR_DUPLICATE_LIBRARY,
         format("this process has two copies of gcx, and each would assign the same SMs: %s "
                "acquires leases already, and this copy is %s; link and load only one of them, or "
                "acquire all leases through the first",
                file_at(std::strtoull(other.c_str(), nullptr, 16)).c_str(),
                file_at(reinterpret_cast<uintptr_t>(&claim_anchor)).c_str()));
}

} // namespace gcx
