// libgcx-audit.so, an audit library for the dynamic loader: see LD_AUDIT in rtld-audit(7). The
// loader of every program under `gcx exec` asks it where to find each library. When the program
// looks for libcuda, by any name or path and at any time, the answer is the stub library.
//
// The loader calls this code when it loads libraries, and never when functions are called. The code
// runs in a separate link namespace with a separate libc, so it uses neither the C++ runtime nor
// malloc. The loader holds its lock during each call, so no other lock is needed.
#include "interpose/exec_plan.hpp"
#include "interpose/stub_library.hpp"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace gcx::interpose {
namespace {

// Descriptors are moved here, since programs expect to get the lowest numbers.
constexpr int kMinDescriptor = 800;
// Marks the driver itself, whose searches for libraries are not redirected.
constexpr uintptr_t kDriverCookie = 1;
// The answer if libcuda is refused. glibc aborts if an audit library returns no name.
constexpr char kRefused[] = "/nonexistent/gcx-exec/libcuda.so.1";
constexpr std::size_t kPrefixLength = sizeof kRealPrefix - 1;

enum class PlanState { kAbsent, kDamaged, kRead };
// Messages that are printed once per process.
enum class Notice : unsigned { kPlan = 1, kStub = 2, kBypass = 4 };

struct File {
    dev_t device;
    ino_t inode;
    bool known;
};

struct State {
    PlanState plan = PlanState::kAbsent;
    const char* plan_text = nullptr;
    char driver[kPrefixLength + PATH_MAX] = ""; // with kRealPrefix
    char shim[PATH_MAX] = "";
    File driver_file{};
    int stub = -1; // stays open, so that all names of libcuda lead to the same file
    File stub_file{};
    StubLibraryPath stub_path{};
    unsigned printed = 0;
};
constinit State state;

void print_once(Notice notice, const char* what, const char* more = "") {
    if ((state.printed & static_cast<unsigned>(notice)) != 0)
        return;
    state.printed |= static_cast<unsigned>(notice);
    char line[512] = "gcx exec: ";
    std::size_t used = std::strlen(line);
    for (const char* part : {what, more}) {
        const std::size_t room = sizeof line - 2 - used;
        const std::size_t length = std::strlen(part);
        std::memcpy(line + used, part, length < room ? length : room);
        used += length < room ? length : room;
    }
    line[used++] = '\n';
    // A failure can't be reported.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, used);
}

File file_of(int result, const struct stat& status) {
    return result == 0 ? File{status.st_dev, status.st_ino, true} : File{};
}

bool same(const File& a, const File& b) {
    return a.known && b.known && a.device == b.device && a.inode == b.inode;
}

File file_named(const char* path) {
    struct stat status{};
    return file_of(stat(path, &status), status);
}

File file_of_descriptor(int descriptor) {
    struct stat status{};
    return file_of(fstat(descriptor, &status), status);
}

// Decodes a value of the plan. Returns false if it is not an absolute path or too long.
bool decode_path(std::string_view value, char* text, std::size_t room) {
    std::size_t used = 0;
    for (char c = 0; next_character(value, c);) {
        if (used + 1 == room)
            return false;
        text[used++] = c;
    }
    text[used] = '\0';
    return value.empty() && *text == '/';
}

// Returns a copy, since programs change or overwrite their environment before they open libcuda.
const char* copy_of(const char* text) {
    if (text == nullptr)
        return nullptr;
    const std::size_t size = std::strlen(text) + 1;
    void* const copy =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return copy != MAP_FAILED ? static_cast<const char*>(std::memcpy(copy, text, size)) : text;
}

struct flock lock_of(short type, off_t first, off_t size) {
    struct flock lock{};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = first;
    lock.l_len = size;
    return lock;
}

// Shares the bytes from the first one on. A process that removes the file locks it for a moment.
bool lock_from(off_t first, int file) {
    constexpr int kAttempts = 50;
    constexpr timespec kPause = {0, 1000000};
    for (int i = 0; i < kAttempts; i++) {
        struct flock lock = lock_of(F_RDLCK, first, 0);
        if (fcntl(file, F_OFD_SETLK, &lock) == 0)
            return true;
        if (errno != EAGAIN && errno != EACCES)
            return false;
        nanosleep(&kPause, nullptr);
    }
    return false;
}

// Returns whether a reservation was found dead: its file was marked, or removed and then its mark.
bool has_ended(const char* token, const char* mark, int file) {
    struct flock owners = lock_of(F_WRLCK, 0, 1);
    const bool has_owner = fcntl(file, F_OFD_GETLK, &owners) == 0 && owners.l_type != F_UNLCK;
    return (!has_owner && file_named(mark).known) ||
           !same(file_named(token), file_of_descriptor(file));
}

// Keeps a reservation from the program's first instruction until its last process ends. A
// descriptor is not enough, since programs close unknown descriptors and start other programs
// without them. A mapping keeps the file open and its lock held, and is inherited over fork. A
// failure is reported when the program creates its green context.
void keep_reservation(const char* token) {
    constexpr char kDead[] = ".dead"; // ipc/lock_dir.hpp, which also has the rules
    char mark[PATH_MAX + sizeof kDead];
    const std::size_t length = std::strlen(token);
    std::memcpy(mark, token, length + 1);
    std::memcpy(mark + length, kDead, sizeof kDead);
    const int file = open(token, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return;
    // The first look spares others the lock of a program whose environment is of an earlier time.
    const bool kept = !has_ended(token, mark, file) && lock_from(1, file) &&
                      !has_ended(token, mark, file) && lock_from(0, file);
    if (!kept || mmap(nullptr, 1, PROT_NONE, MAP_PRIVATE, file, 0) != MAP_FAILED) {
        close(file);
        return;
    }
    if (fcntl(file, F_DUPFD_CLOEXEC, kMinDescriptor) >= 0) // the file can't be mapped
        close(file);
}

PlanState parse_plan(const char* plan) {
    if (plan == nullptr)
        return PlanState::kAbsent;
    std::string_view text(plan);
    Word word;
    if (!next_word(text, word) || word.key != kPlanFormat)
        return PlanState::kDamaged;
    bool driver = false;
    bool shim = false;
    std::memcpy(state.driver, kRealPrefix, kPrefixLength);
    while (next_word(text, word)) {
        if (word.key == "driver")
            driver = decode_path(word.value, state.driver + kPrefixLength, PATH_MAX);
        else if (word.key == "shim")
            shim = decode_path(word.value, state.shim, sizeof state.shim);
        else if (char token[PATH_MAX];
                 word.key == "token" && decode_path(word.value, token, sizeof token))
            keep_reservation(token);
    }
    return driver && shim ? PlanState::kRead : PlanState::kDamaged;
}

const char* last_part(const char* path) {
    const char* const slash = std::strrchr(path, '/');
    return slash != nullptr ? slash + 1 : path;
}

// Returns true for libcuda.so, libcuda.so.1 and libcuda.so.580.159.04, in any folder.
bool is_libcuda(const char* path) {
    constexpr char kName[] = "libcuda.so";
    constexpr std::size_t kLength = sizeof kName - 1;
    const char* const name = last_part(path);
    if (std::strncmp(name, kName, kLength) != 0)
        return false;
    const char* const version = name + kLength;
    return *version == '\0' ||
           (*version == '.' && version[std::strspn(version, ".0123456789")] == '\0');
}

// Returns whether another name means the driver's file: a path to it, like that of a symbolic link,
// or its file name alone, as in a program that was linked with a simulated driver.
bool leads_to_driver(const char* name) {
    if (state.plan != PlanState::kRead)
        return false;
    return std::strchr(name, '/') != nullptr ? same(file_named(name), state.driver_file)
                                             : std::strcmp(name, last_part(state.driver)) == 0;
}

// Creates the stub library when it is first needed and returns its path for the loader. Prints a
// message and returns null on failure.
char* stub_library() {
    // A program that closes all its descriptors closes this one too, or opens another file there.
    if (state.stub >= 0 && same(file_of_descriptor(state.stub), state.stub_file))
        return state.stub_path.text;
    const int descriptor =
        make_stub_library(state.shim, state.driver + kPrefixLength, state.plan_text);
    if (descriptor < 0) {
        print_once(Notice::kStub,
                   "can't create the stub library for libcuda: ", std::strerror(errno));
        return nullptr;
    }
    state.stub = fcntl(descriptor, F_DUPFD_CLOEXEC, kMinDescriptor);
    if (state.stub >= 0)
        close(descriptor);
    else
        state.stub = descriptor;
    state.stub_file = file_of_descriptor(state.stub);
    state.stub_path = stub_library_path(state.stub);
    if (access(state.stub_path.text, R_OK) != 0) {
        print_once(Notice::kStub, "can't open the stub library for libcuda in /proc/self/fd: ",
                   std::strerror(errno));
        return nullptr;
    }
    return state.stub_path.text;
}

// Returns what the loader opens instead of the name.
const char* answer(const char* name, bool for_driver) {
    if (for_driver || std::strcmp(name, state.driver) == 0 ||
        !(is_libcuda(name) || leads_to_driver(name)))
        return name;
    if (state.plan == PlanState::kAbsent) {
        print_once(Notice::kPlan, "GCX_EXEC_PLAN was removed from the environment: this program is "
                                  "outside the partition and can use the whole GPU");
        return name;
    }
    if (state.plan == PlanState::kDamaged) {
        print_once(Notice::kPlan, "GCX_EXEC_PLAN is damaged or from another version of gcx: this "
                                  "program gets no libcuda");
        return kRefused;
    }
    const char* const stub = stub_library();
    return stub != nullptr ? stub : kRefused;
}

void note_opened(const char* name, uintptr_t& cookie) {
    if (state.plan != PlanState::kRead)
        return;
    if (std::strcmp(name, state.driver) == 0)
        cookie = kDriverCookie;
    else if (is_libcuda(name) || same(file_named(name), state.driver_file))
        print_once(Notice::kBypass,
                   "dlmopen opened libcuda outside the partition; its callers can use the whole "
                   "GPU: ",
                   name);
}

} // namespace
} // namespace gcx::interpose

#define GCX_AUDIT extern "C" __attribute__((visibility("default")))

GCX_AUDIT unsigned la_version(unsigned version) {
    using namespace gcx::interpose;
    state.plan_text = copy_of(std::getenv(kPlanVariable));
    state.plan = parse_plan(state.plan_text);
    if (state.plan == PlanState::kRead)
        state.driver_file = file_named(state.driver);
    // Every version of the audit interface has the functions below.
    return version;
}

GCX_AUDIT unsigned la_objopen(link_map* map, Lmid_t, uintptr_t* cookie) {
    gcx::interpose::note_opened(map->l_name, *cookie);
    return 0; // audits no function calls, so that none gets slower
}

GCX_AUDIT char* la_objsearch(const char* name, uintptr_t* cookie, unsigned flag) {
    // Answers the name that was asked for, before the loader tries one folder after another.
    if (flag != LA_SER_ORIG)
        return const_cast<char*>(name);
    return const_cast<char*>(
        gcx::interpose::answer(name, *cookie == gcx::interpose::kDriverCookie));
}
