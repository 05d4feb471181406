// The library that private_tables.py puts in front of libcuda, as libcuda.so.1. It counts the calls
// of every function that libcuda exports, by whatever way a program found the function, and the
// opened private tables (cuGetExportTable). With PRIVATE_TABLES_COUNT set it counts the calls of
// their functions too.
//
// Each function has a stub of a few instructions that increments a counter and jumps to the driver,
// so its parameters need not be known. names.inc, which the script writes, has one row for each
// exported function: NAME(index, symbol). PRIVATE_TABLES_DRIVER is the path of the driver.
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#ifndef __x86_64__
#error "the stubs are written for x86-64"
#endif

#define STUBS 16384
#define STUB_SIZE 32
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

extern "C" {
__attribute__((visibility("hidden"))) std::atomic<uint64_t> private_tables_calls[STUBS];
__attribute__((visibility("hidden"))) void* private_tables_targets[STUBS];
extern __attribute__((visibility("hidden"))) char private_tables_stubs[];
}

__asm__(
    ".text\n"
    ".balign " TEXT(
        STUB_SIZE) "\n"
                   ".globl private_tables_stubs\n"
                   ".hidden private_tables_stubs\n"
                   "private_tables_stubs:\n"
                   ".set .Lindex, 0\n"
                   ".rept " TEXT(
                       STUBS) "\n"
                              ".balign " TEXT(
                                  STUB_SIZE) "\n"
                                             "endbr64\n"
                                             "lock incq private_tables_calls + 8*.Lindex(%rip)\n"
                                             "jmp *private_tables_targets + 8*.Lindex(%rip)\n"
                                             ".set .Lindex, .Lindex + 1\n"
                                             ".endr\n");

#define NAME(index, symbol)                                                                        \
    __asm__(".globl " #symbol "\n.type " #symbol ", @function\n.set " #symbol                      \
            ", private_tables_stubs + " #index "*" TEXT(STUB_SIZE) "\n");
#include "names.inc"
#undef NAME

namespace {

using Uuid = unsigned char[16];

constexpr const char* kNames[] = {
#define NAME(index, symbol) #symbol,
#include "names.inc"
#undef NAME
};
constexpr std::size_t kNameCount = sizeof kNames / sizeof kNames[0];
static_assert(kNameCount < STUBS);

constexpr int kPerThread = 2;     // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
constexpr int kNotFound = 500;    // CUDA_ERROR_NOT_FOUND
constexpr int kFirstOfV2 = 12000; // the first version with cuGetProcAddress_v2

// What the stubs are for. Never destroyed, since programs call the driver while they end.
struct Stubs {
    std::mutex mutex;
    std::vector<std::string> labels{kNames, kNames + kNameCount};
    std::map<std::pair<std::string, void*>, std::size_t> found;
    std::map<const void*, std::string> tables;         // that were opened, with what became of them
    std::vector<std::pair<uintptr_t, uintptr_t>> code; // of the driver
    void* driver = nullptr;
};

void fail(const char* what) {
    std::fprintf(stderr, "private_tables: %s\n", what);
    _exit(70);
}

int note_code(dl_phdr_info* info, std::size_t, void* data) {
    auto& [stubs, base] = *static_cast<std::pair<Stubs*, uintptr_t>*>(data);
    for (int i = 0; info->dlpi_addr == base && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr)& part = info->dlpi_phdr[i];
        if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0)
            stubs->code.emplace_back(base + part.p_vaddr, base + part.p_vaddr + part.p_memsz);
    }
    return 0;
}

Stubs* open_driver() {
    auto* const stubs = new Stubs;
    const char* const path = std::getenv("PRIVATE_TABLES_DRIVER");
    stubs->driver = path != nullptr ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (stubs->driver == nullptr)
        fail(path != nullptr ? dlerror() : "PRIVATE_TABLES_DRIVER is not set");
    for (std::size_t i = 0; i < kNameCount; i++)
        private_tables_targets[i] = dlsym(stubs->driver, kNames[i]);
    link_map* map = nullptr;
    if (dlinfo(stubs->driver, RTLD_DI_LINKMAP, &map) == 0) {
        std::pair data(stubs, static_cast<uintptr_t>(map->l_addr));
        dl_iterate_phdr(note_code, &data);
    }
    return stubs;
}

Stubs& stubs() {
    static Stubs* const opened = open_driver();
    return *opened;
}

// The targets are needed before anybody calls a stub.
__attribute__((constructor)) void open_at_start() {
    stubs();
}

// Returns the stub that counts the calls of a function under a label; the function itself if there
// are no stubs left. The caller has the mutex.
void* stub_of(void* function, const std::string& label) {
    Stubs& all = stubs();
    const auto [entry, is_new] = all.found.try_emplace({label, function}, all.labels.size());
    if (is_new && all.labels.size() >= STUBS) {
        all.found.erase(entry);
        return function;
    }
    if (is_new) {
        private_tables_targets[all.labels.size()] = function;
        all.labels.push_back(label);
    }
    return private_tables_stubs + entry->second * STUB_SIZE;
}

bool is_code(const void* address) {
    for (const auto& [begin, end] : stubs().code) {
        if (reinterpret_cast<uintptr_t>(address) - begin < end - begin)
            return true;
    }
    return false;
}

// Puts stubs into a private table, in place: the runtime may compare the addresses of tables. Its
// first word is its size in bytes; tables without one are left alone. Returns what was done.
std::string count_table(const void* table, const std::string& name) {
    auto* const words = static_cast<void**>(const_cast<void*>(table));
    const auto size = reinterpret_cast<uintptr_t>(words[0]);
    constexpr uintptr_t kMost = 8192;
    if (size <= sizeof(void*) || size > kMost || size % sizeof(void*) != 0)
        return "has no size";
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t begin = reinterpret_cast<uintptr_t>(words) / page * page;
    const uintptr_t end = reinterpret_cast<uintptr_t>(words) + size;
    if (mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE) != 0)
        return "can't be written";
    for (std::size_t i = 1; i < size / sizeof(void*); i++) {
        if (is_code(words[i]))
            words[i] = stub_of(words[i], "table " + name + "[" + std::to_string(i) + "]");
    }
    return "counted";
}

std::string text_of(const Uuid& uuid) {
    std::string text;
    for (int i = 0; i < 4; i++) {
        char byte[3];
        std::snprintf(byte, sizeof byte, "%02x", uuid[i]);
        text += byte;
    }
    return text;
}

template <typename Function>
Function* real(const char* name) {
    return reinterpret_cast<Function*>(dlsym(stubs().driver, name));
}

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int cuGetExportTable(const void** table, const Uuid* uuid) {
    auto* const function = real<int(const void**, const Uuid*)>("cuGetExportTable");
    const int result = function != nullptr ? function(table, uuid) : kNotFound;
    if (result != 0 || table == nullptr || *table == nullptr || uuid == nullptr)
        return result;
    const std::lock_guard lock(stubs().mutex);
    auto [entry, is_new] = stubs().tables.try_emplace(*table, text_of(*uuid));
    if (is_new)
        entry->second += " " + (std::getenv("PRIVATE_TABLES_COUNT") != nullptr
                                    ? count_table(*table, entry->second)
                                    : std::string("opened"));
    return result;
}

EXPORTED int cuGetProcAddress(const char*, void**, int, uint64_t);
EXPORTED int cuGetProcAddress_v2(const char*, void**, int, uint64_t, int*);

// Replaces the address of a function by that of its stub.
static int counted(int result, const char* name, void** address, int version, uint64_t flags) {
    if (result != 0 || name == nullptr || address == nullptr || *address == nullptr)
        return result;
    if (std::strcmp(name, "cuGetProcAddress") == 0)
        *address = version < kFirstOfV2 ? reinterpret_cast<void*>(&cuGetProcAddress)
                                        : reinterpret_cast<void*>(&cuGetProcAddress_v2);
    else if (std::strcmp(name, "cuGetExportTable") == 0)
        *address = reinterpret_cast<void*>(&cuGetExportTable);
    else {
        const std::lock_guard lock(stubs().mutex);
        *address = stub_of(*address, std::string(name) + (flags == kPerThread ? "_ptsz" : ""));
    }
    return result;
}

EXPORTED int cuGetProcAddress(const char* name, void** address, int version, uint64_t flags) {
    auto* const function = real<int(const char*, void**, int, uint64_t)>("cuGetProcAddress");
    return function == nullptr
               ? kNotFound
               : counted(function(name, address, version, flags), name, address, version, flags);
}

EXPORTED int cuGetProcAddress_v2(const char* name, void** address, int version, uint64_t flags,
                                 int* status) {
    auto* const function =
        real<int(const char*, void**, int, uint64_t, int*)>("cuGetProcAddress_v2");
    return function == nullptr ? kNotFound
                               : counted(function(name, address, version, flags, status), name,
                                         address, version, flags);
}

// Writes one line "COUNT LABEL" for each function that was called since the last call of this one,
// as many as fit.
EXPORTED void private_tables_read(char* text, std::size_t size) {
    const std::lock_guard lock(stubs().mutex);
    std::string lines;
    for (std::size_t i = 0; i < stubs().labels.size(); i++) {
        if (const uint64_t calls = private_tables_calls[i].exchange(0); calls != 0)
            lines += std::to_string(calls) + " " + stubs().labels[i] + "\n";
    }
    std::snprintf(text, size, "%s", lines.c_str());
}

// Writes one line for each private table that was opened.
EXPORTED void private_tables_opened(char* text, std::size_t size) {
    const std::lock_guard lock(stubs().mutex);
    std::string lines;
    for (const auto& [table, line] : stubs().tables)
        lines += line + "\n";
    std::snprintf(text, size, "%s", lines.c_str());
}
