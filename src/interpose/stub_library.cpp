#include "interpose/stub_library.hpp"

#include <elf.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <initializer_list>

// Linux 6.3. A kernel can be configured to refuse executable memfds.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace gcx::interpose {
namespace {

#if defined(__x86_64__)
constexpr ElfW(Half) kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr ElfW(Half) kMachine = EM_AARCH64;
#else
#error "gcx exec supports x86-64 and aarch64"
#endif

// The largest page size of Linux on these machines.
constexpr std::size_t kAlignment = 0x10000;
constexpr std::size_t kEntries = 11;
// The tag of the plan's address, which is gcx's own. The loader ignores unknown tags.
constexpr ElfW(Sxword) kPlanTag = DT_LOOS + 0x676378;
static_assert(kPlanTag < DT_HIOS);

// The file. It is mapped as it is, at any address, so all addresses in it are offsets. The plan
// follows the strings.
struct Image {
    ElfW(Ehdr) header;
    ElfW(Phdr) segments[3];
    ElfW(Sym) no_symbol; // the empty first entry of every symbol table
    ElfW(Dyn) dynamic[kEntries];
    uint32_t hash[4]; // one bucket, one symbol, no chain
    char strings[3 * PATH_MAX];
};

class Writer {
  public:
    bool write(const char* shim, const char* driver, std::size_t plan_size) {
        strings_used_ = 1; // the empty string
        add(DT_NEEDED, string(shim));
        add(DT_NEEDED, string(kRealPrefix, driver));
        add(DT_SONAME, string("libcuda.so.1"));
        // If the stub were unloaded and the driver not, libcuda.so.1 would mean the driver.
        add(DT_FLAGS_1, DF_1_NODELETE);
        add(DT_HASH, offsetof(Image, hash));
        add(DT_SYMTAB, offsetof(Image, no_symbol));
        add(DT_SYMENT, sizeof image_.no_symbol);
        add(DT_STRTAB, offsetof(Image, strings));
        add(DT_STRSZ, strings_used_);
        if (plan_size != 0)
            add(kPlanTag, size());
        add(DT_NULL, 0);
        image_.hash[0] = 1;
        image_.hash[1] = 1;
        write_header();
        write_segments(size() + plan_size);
        return fits_;
    }
    const Image& image() const { return image_; }
    std::size_t size() const { return offsetof(Image, strings) + strings_used_; }

  private:
    void add(ElfW(Sxword) tag, std::size_t value) {
        ElfW(Dyn)& entry = image_.dynamic[entries_used_++];
        entry.d_tag = tag;
        entry.d_un.d_val = value;
    }

    // Appends a string and returns its offset.
    std::size_t string(const char* text, const char* more = "") {
        const std::size_t at = strings_used_;
        for (const char* part : {text, more}) {
            const std::size_t length = std::strlen(part);
            if (length >= sizeof image_.strings - strings_used_) {
                fits_ = false;
                return 0;
            }
            std::memcpy(image_.strings + strings_used_, part, length);
            strings_used_ += length;
        }
        strings_used_++;
        return at;
    }

    void write_header() {
        ElfW(Ehdr)& header = image_.header;
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS64;
        header.e_ident[EI_DATA] = ELFDATA2LSB;
        header.e_ident[EI_VERSION] = EV_CURRENT;
        header.e_type = ET_DYN;
        header.e_machine = kMachine;
        header.e_version = EV_CURRENT;
        header.e_phoff = offsetof(Image, segments);
        header.e_ehsize = sizeof header;
        header.e_phentsize = sizeof image_.segments[0];
        header.e_phnum = sizeof image_.segments / sizeof image_.segments[0];
        header.e_shentsize = sizeof(ElfW(Shdr));
    }

    // No segment is executable. The loader writes addresses into the dynamic section.
    void write_segments(std::size_t whole) {
        segment(0, PT_LOAD, 0, whole, kAlignment);
        segment(1, PT_DYNAMIC, offsetof(Image, dynamic), sizeof image_.dynamic, alignof(ElfW(Dyn)));
        segment(2, PT_GNU_STACK, 0, 0, 16);
    }

    void segment(std::size_t index, ElfW(Word) type, std::size_t offset, std::size_t size,
                 std::size_t alignment) {
        ElfW(Phdr)& segment = image_.segments[index];
        segment.p_type = type;
        segment.p_flags = PF_R | PF_W;
        segment.p_offset = segment.p_vaddr = segment.p_paddr = offset;
        segment.p_filesz = segment.p_memsz = size;
        segment.p_align = alignment;
    }

    Image image_{};
    std::size_t entries_used_ = 0;
    std::size_t strings_used_ = 0;
    bool fits_ = true;
};

// Raises RLIMIT_FSIZE as far as permitted and blocks its signal SIGXFSZ, which would end the
// program. The limit applies to files in memory too.
class UnlimitedFileSize {
  public:
    UnlimitedFileSize() {
        getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
        const rlimit most{before_.rlim_max, before_.rlim_max};
        if (setrlimit(RLIMIT_FSIZE, &none) != 0)
            setrlimit(RLIMIT_FSIZE, &most);
        sigemptyset(&signal_);
        sigaddset(&signal_, SIGXFSZ);
        pthread_sigmask(SIG_BLOCK, &signal_, &mask_before_);
    }
    ~UnlimitedFileSize() {
        const timespec none{};
        sigtimedwait(&signal_, nullptr, &none);
        pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
        setrlimit(RLIMIT_FSIZE, &before_);
    }
    UnlimitedFileSize(const UnlimitedFileSize&) = delete;
    UnlimitedFileSize& operator=(const UnlimitedFileSize&) = delete;

  private:
    rlimit before_{};
    sigset_t signal_{};
    sigset_t mask_before_{};
};

bool write_all(int descriptor, const void* bytes, std::size_t size) {
    const ssize_t written = write(descriptor, bytes, size);
    if (written >= 0 && static_cast<std::size_t>(written) != size)
        errno = ENOSPC;
    return written == static_cast<ssize_t>(size);
}

} // namespace

int make_stub_library(const char* shim, const char* driver, const char* plan) {
    const std::size_t plan_size = plan != nullptr ? std::strlen(plan) + 1 : 0;
    Writer writer;
    if (!writer.write(shim, driver, plan_size)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int descriptor = memfd_create("gcx-libcuda.so.1", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    if (descriptor < 0 && errno == EINVAL)
        descriptor = memfd_create("gcx-libcuda.so.1", MFD_CLOEXEC);
    if (descriptor < 0)
        return -1;
    int reason = 0;
    {
        const UnlimitedFileSize unlimited;
        if (write_all(descriptor, &writer.image(), writer.size()) &&
            write_all(descriptor, plan, plan_size))
            return descriptor;
        reason = errno;
    }
    close(descriptor);
    errno = reason;
    return -1;
}

const char* stub_library_plan(const ElfW(Dyn) * dynamic, ElfW(Addr) base) {
    for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == kPlanTag)
            // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader has addresses as numbers
            return reinterpret_cast<const char*>(base + entry->d_un.d_val);
    return nullptr;
}

StubLibraryPath stub_library_path(int descriptor) {
    StubLibraryPath path = {"/proc/self/fd/"};
    char digits[12];
    std::size_t count = 0;
    for (unsigned rest = static_cast<unsigned>(descriptor); count == 0 || rest != 0; rest /= 10)
        digits[count++] = static_cast<char>('0' + rest % 10);
    char* end = path.text + std::strlen(path.text);
    while (count > 0)
        *end++ = digits[--count];
    *end = '\0';
    return path;
}

} // namespace gcx::interpose
