#include "interpose/count_reporting.hpp"

#include "driver/driver.hpp"
#include "interpose/exec_plan.hpp"
#include "interpose/stub_library.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace gcx::interpose {
namespace {

constexpr char kCache[] = "/etc/ld.so.cache";
constexpr std::string_view kCacheMagic = "glibc-ld.so.cache1.1";

#if defined(__x86_64__)
constexpr ElfW(Half) kLibraryMachine = EM_X86_64;
constexpr int32_t kCacheFlags = 0x0303; // FLAG_X8664_LIB64 | FLAG_ELF_LIBC6 of glibc's ldconfig.h
#elif defined(__aarch64__)
constexpr ElfW(Half) kLibraryMachine = EM_AARCH64;
constexpr int32_t kCacheFlags = 0x0a03; // FLAG_AARCH64_LIB64 | FLAG_ELF_LIBC6
#endif

// The format of /etc/ld.so.cache, from glibc's dl-cache.h. Offsets are relative to the magic.
struct CacheHeader {
    char magic[20];
    uint32_t count;
    uint32_t strings_size;
    uint32_t unused[5];
};
struct CacheEntry {
    int32_t flags;
    uint32_t name;
    uint32_t path;
    uint32_t os_version;
    uint64_t hardware; // not 0: the library is for certain processors only
};
static_assert(sizeof(CacheHeader) == 48 && sizeof(CacheEntry) == 24);

struct FileCloser {
    int file;
    ~FileCloser() {
        if (file >= 0)
            close(file);
    }
};

// Returns whether the loader would accept the file. It skips libraries for other processors, such
// as those of 32-bit programs.
bool is_library(const std::string& path) {
    const FileCloser opened{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    ElfW(Ehdr) header{};
    return opened.file >= 0 &&
           pread(opened.file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
           std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
           header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == kLibraryMachine;
}

// Returns the cache's bytes from its magic on, or nothing if there is no magic.
std::string read_cache() {
    const FileCloser opened{open(kCache, O_RDONLY | O_CLOEXEC)};
    struct stat info{};
    if (opened.file < 0 || fstat(opened.file, &info) != 0 || info.st_size <= 0)
        return "";
    std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
    const ssize_t got = pread(opened.file, bytes.data(), bytes.size(), 0);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    // A cache in the older format can precede it.
    const std::size_t begin = bytes.find(kCacheMagic);
    return begin == std::string::npos ? "" : bytes.substr(begin);
}

std::string find_in_cache(const std::string& name) {
    const std::string cache = read_cache();
    CacheHeader header{};
    if (cache.size() < sizeof header)
        return "";
    std::memcpy(&header, cache.data(), sizeof header);
    const auto text = [&](uint32_t at) {
        return at < cache.size() ? std::string(cache.c_str() + at) : "";
    };
    for (uint32_t i = 0; i < header.count; i++) {
        CacheEntry entry{};
        const std::size_t at = sizeof header + i * sizeof entry;
        if (at + sizeof entry > cache.size())
            break;
        std::memcpy(&entry, cache.data() + at, sizeof entry);
        if (entry.flags == kCacheFlags && entry.hardware == 0 && text(entry.name) == name &&
            is_library(text(entry.path)))
            return text(entry.path);
    }
    return "";
}

// Returns the path of the library that is already loaded under this name, or "".
std::string find_loaded(const std::string& name) {
    void* const library = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == nullptr)
        return "";
    std::string path = path_of(library);
    dlclose(library);
    return path;
}

// Returns the library that contains this code. dlopen searches that library's folders first.
void* own_library() {
    Dl_info info{};
    void* map = nullptr;
    static const char anchor = 0;
    return dladdr1(&anchor, &info, &map, RTLD_DL_LINKMAP) != 0 ? map : nullptr;
}

// gcx_count_partitions of a shim: starts reporting counts, given the name of the real libcuda.
// Returns the name that gcx then loads the driver by, or null if gcx uses the stub library too, as
// inside gcx exec.
using CountFn = const char* (*)(const char* real_path);
constexpr char kCountFunction[] = "gcx_count_partitions";

constinit std::mutex start_mutex;
constinit std::atomic<bool> reporting{false};

std::string absolute(const std::string& path) {
    char whole[PATH_MAX];
    return realpath(path.c_str(), whole) != nullptr ? whole : "";
}

std::string find_driver(const std::string& choice) {
    const std::string name = library_of(choice);
    const bool searched = name.find('/') == std::string::npos;
    const std::string path = absolute(searched ? find_library(name) : name);
    if (path.empty()) {
        fail(
            GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
            format("no CUDA driver: %s not found%s; install NVIDIA's driver, set GCX_DRIVER to the "
                   "path of libcuda, or set GCX_DRIVER=sim:h100@13.0 to use the simulated driver",
                   name.c_str(),
                   searched ? " in the folders of LD_LIBRARY_PATH, the loader's cache or the "
                              "system's folders"
                            : ""));
    }
    return path;
}

// Returns the library that is loaded as libcuda.so.1. Inside gcx exec it loads the stub library.
// Returns null if nothing is loaded.
void* loaded_libcuda() {
    const bool inside_exec = std::getenv(kPlanVariable) != nullptr;
    return dlopen(kDefaultLibrary, RTLD_LAZY | RTLD_LOCAL | (inside_exec ? 0 : RTLD_NOLOAD));
}

// Uses the shim that is loaded already, by another copy of gcx or by gcx exec.
void use_loaded(void* loaded) {
    const auto count = reinterpret_cast<CountFn>(dlsym(loaded, kCountFunction));
    if (count == nullptr)
        fail(GCX_ERROR_TOO_LATE,
             format("libcuda.so.1 is loaded in this process already, as %s; call this before "
                    "anything loads it, in Python before torch, cupy or jax is imported, or start "
                    "the process with gcx exec",
                    path_of(loaded).c_str()));
    if (const char* const real = count(nullptr); real != nullptr)
        set_default_library(real);
}

void load_stub_library(const std::string& choice) {
    const std::string counts =
        companion_path({"the library that reports SM counts", "libgcx-counts.so", "interpose", ""});
    const std::string real = find_driver(choice);
    void* const library = dlopen(counts.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const auto count =
        library != nullptr ? reinterpret_cast<CountFn>(dlsym(library, kCountFunction)) : nullptr;
    if (count == nullptr)
        fail(GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
             format("can't load %s: %s", counts.c_str(), dl_reason()));
    const std::string name = kRealPrefix + real;
    count(name.c_str());
    const int descriptor = make_stub_library(counts.c_str(), real.c_str());
    if (descriptor < 0)
        fail(GCX_ERROR_OPERATING_SYSTEM,
             format("can't create the stub library for libcuda: %s", std::strerror(errno)));
    void* const stub =
        dlopen(stub_library_path(descriptor).text, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    close(descriptor);
    if (stub == nullptr)
        fail(GCX_ERROR_SHARED_OBJECT_INIT_FAILED,
             format("can't load the stub library for libcuda: %s", dl_reason()));
    set_default_library(name);
}

} // namespace

std::string path_of(void* library) {
    const link_map* map = nullptr;
    return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr ? map->l_name : "";
}

std::string find_library(const std::string& name) {
    if (std::string loaded = find_loaded(name); !loaded.empty())
        return loaded;
    void* const own = own_library(); // in glibc a handle is a link map
    Dl_serinfo size{};
    if (own == nullptr || dlinfo(own, RTLD_DI_SERINFOSIZE, &size) != 0)
        return find_in_cache(name);
    const auto memory = std::make_unique<std::max_align_t[]>(
        size.dls_size / sizeof(std::max_align_t) + 1); // NOLINT(modernize-avoid-c-arrays)
    auto* const search = reinterpret_cast<Dl_serinfo*>(memory.get());
    search->dls_size = size.dls_size;
    search->dls_cnt = size.dls_cnt;
    if (dlinfo(own, RTLD_DI_SERINFO, search) != 0)
        return find_in_cache(name);
    bool cache_is_next = true;
    for (unsigned i = 0; i < search->dls_cnt; i++) {
        const Dl_serpath& folder = search->dls_serpath[i];
        // The loader searches its cache before the system's folders, after all others.
        if (folder.dls_flags == LA_SER_DEFAULT && cache_is_next) {
            cache_is_next = false;
            if (std::string path = find_in_cache(name); !path.empty())
                return path;
        }
        std::string path = *folder.dls_name != '\0' ? folder.dls_name : ".";
        path.append("/").append(name);
        if (is_library(path))
            return path;
    }
    return cache_is_next ? find_in_cache(name) : "";
}

void report_partition_counts(const std::string& choice) {
    const std::lock_guard lock(start_mutex);
    if (reporting.load())
        return;
    if (void* const loaded = loaded_libcuda(); loaded != nullptr)
        use_loaded(loaded);
    else if (Driver::started())
        fail(GCX_ERROR_TOO_LATE,
             "gcx has opened the driver in this process already; call this before anything that "
             "opens it, or start the process with gcx exec");
    else
        load_stub_library(choice);
    reporting.store(true);
}

} // namespace gcx::interpose
