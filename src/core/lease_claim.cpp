#include "core/lease_claim.hpp"

#include "base/error.hpp"
#include "base/log.hpp"

#include <fcntl.h>
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
#include <random>
#include <string>
#include <string_view>
#include <thread>

// The claim is an empty mapping whose name is in /proc/self/maps. Every copy of gcx finds it there,
// however it was linked or loaded and whatever its version; copies have no symbol or memory in
// common. A forked child does not have the mapping, and closing all descriptors leaves it in place.
// The name contains an address in the copy's code, which tells the copy's file. Other versions of
// gcx read it too, so it must not change.

namespace gcx {
namespace {

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
    char* line = nullptr;
    std::size_t room = 0;
    while (getline(&line, &room, file.get()) > 0) {
        // "begin-end permissions offset device inode path"
        char* rest = nullptr;
        const uintptr_t begin = std::strtoul(line, &rest, 16);
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
    std::free(line);
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

void* map_claim() {
    const std::string name =
        format("%s%llx", kClaimName,
               static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(&claim_anchor)));
    const int file = memfd_create(name.c_str(), MFD_CLOEXEC);
    if (file < 0)
        return MAP_FAILED;
    void* const mapping = mmap(nullptr, kClaimBytes, PROT_NONE, MAP_PRIVATE, file, 0);
    close(file);
    if (mapping != MAP_FAILED && madvise(mapping, kClaimBytes, MADV_DONTFORK) != 0) {
        munmap(mapping, kClaimBytes);
        return MAP_FAILED;
    }
    return mapping;
}

// In sandboxes without memfd_create or /proc, copies do not find each other.
void warn_unwatched() {
    if (!unwatched.exchange(true))
        log::write(GCX_LOG_WARNING,
                   "this system has no memfd_create or no /proc/self/maps, so a second copy of gcx "
                   "in this process would not be noticed and would assign the same SMs");
}

} // namespace

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
        void* const mapping = map_claim();
        const auto found = mapping != MAP_FAILED ? find_other_claim(mapping) : std::nullopt;
        if (found && found->empty()) {
            claim.store(mapping, std::memory_order_release);
            return;
        }
        if (mapping != MAP_FAILED)
            munmap(mapping, kClaimBytes);
        if (!found) {
            warn_unwatched();
            return;
        }
        other = *found;
        std::this_thread::sleep_for(
            std::chrono::microseconds(std::random_device{}() % kLongestClaimPauseUs));
    }
    fail(GCX_ERROR_DUPLICATE_LIBRARY,
         format("this process has two copies of gcx, and each would assign the same SMs: %s "
                "acquires leases already, and this copy is %s; link and load only one of them, or "
                "acquire all leases through the first",
                file_at(std::strtoull(other.c_str(), nullptr, 16)).c_str(),
                file_at(reinterpret_cast<uintptr_t>(&claim_anchor)).c_str()));
}

void drop_claim_to_leases() noexcept {
    if (void* const mapping = claim.exchange(nullptr); mapping != nullptr)
        munmap(mapping, kClaimBytes);
}

} // namespace gcx
