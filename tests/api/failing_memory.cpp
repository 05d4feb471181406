#include "failing_memory.hpp"

#include <gcx.h>

#include <link.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace support::memory {
namespace {

thread_local uint64_t t_count = 0;
thread_local uint64_t t_failing = 0; // a count; 0: none
thread_local bool t_all_after = false;

// The addresses of libgcx, which calls malloc itself and contains its own operator new.
struct Range {
    uintptr_t begin = 0;
    uintptr_t end = 0;
};

Range find_library() {
    Range range;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            const auto symbol = reinterpret_cast<uintptr_t>(&gcx_driver_open);
            Range found;
            for (int i = 0; i < info->dlpi_phnum; i++) {
                if (info->dlpi_phdr[i].p_type != PT_LOAD)
                    continue;
                const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
                found.begin = found.begin == 0 ? begin : found.begin;
                found.end = begin + info->dlpi_phdr[i].p_memsz;
            }
            if (symbol < found.begin || symbol >= found.end)
                return 0;
            *static_cast<Range*>(out) = found;
            return 1;
        },
        &range);
    return range;
}

Range library;

} // namespace

void fail(uint64_t nth, bool all_after) {
    t_failing = nth != 0 ? t_count + nth : 0;
    t_all_after = all_after;
}

uint64_t allocations() {
    if (library.end == 0)
        library = find_library();
    return t_count;
}

#if CHECK_SANITIZED == 0

namespace {

bool fails(const void* caller) {
    const auto address = reinterpret_cast<uintptr_t>(caller);
    if (address < library.begin || address >= library.end)
        return false;
    t_count++;
    if (t_failing == 0 || (t_all_after ? t_count < t_failing : t_count != t_failing))
        return false;
    errno = ENOMEM;
    return true;
}

} // namespace

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
    return fails(__builtin_return_address(0)) ? nullptr : __libc_malloc(bytes);
}

void* calloc(std::size_t count, std::size_t bytes) {
    return fails(__builtin_return_address(0)) ? nullptr : __libc_calloc(count, bytes);
}

void* realloc(void* old, std::size_t bytes) {
    return fails(__builtin_return_address(0)) ? nullptr : __libc_realloc(old, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    return fails(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, bytes);
}

} // extern "C"

#endif

} // namespace support::memory
