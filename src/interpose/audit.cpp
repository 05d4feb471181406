// The auditor: the loader of every program under `gcx exec` asks it (LD_AUDIT, see rtld-audit(7))
// where to find each library, and it answers with the facade whenever libcuda is looked for, by
// whatever name or path, now or later, whatever LD_LIBRARY_PATH says then.
//
// It is asked when libraries are loaded and never when functions are called. It lives in a
// namespace of its own with a libc of its own and must not need more: no C++ runtime, no malloc.
// The loader holds its lock whenever it calls, so nothing here needs one.
#include "interpose/stub_library.hpp"
#include "interpose/words.hpp"

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

namespace gcx::exec {
namespace {

// Out of the way of programs that count on the lowest numbers.
constexpr int kLeastDescriptor = 800;
// Of the driver itself, whose own searches are left alone.
constexpr uintptr_t kDriverCookie = 1;
// The loader must be given some name: without one glibc aborts.
constexpr char kRefused[] = "/nonexistent/gcx-exec/libcuda.so.1";
constexpr std::size_t kPrefixLength = sizeof kRealPrefix - 1;

enum class PlanState { kAbsent, kDamaged, kRead };
// Things that are said once in a process.
enum class Notice : unsigned { kPlan = 1, kFacade = 2, kPast = 4 };

struct File {
    dev_t device;
    ino_t inode;
    bool known;
};

// What is known in this process.
struct State {
    PlanState plan = PlanState::kAbsent;
    const char* plan_text = nullptr;
    char driver[kPrefixLength + PATH_MAX] = ""; // with the prefix
    char shim[PATH_MAX] = "";
    File driver_file{};
    int facade = -1; // kept, so that it is one file under all of libcuda's names
    File facade_file{};
    FacadePath facade_path{};
    unsigned said = 0;
};
constinit State state;

void say(Notice notice, const char* what, const char* more = "") {
    if ((state.said & static_cast<unsigned>(notice)) != 0)
        return;
    state.said |= static_cast<unsigned>(notice);
    char line[512] = "gcx exec: ";
    std::size_t used = std::strlen(line);
    for (const char* part : {what, more}) {
        const std::size_t room = sizeof line - 2 - used;
        const std::size_t length = std::strlen(part);
        std::memcpy(line + used, part, length < room ? length : room);
        used += length < room ? length : room;
    }
    line[used++] = '\n';
    // There is nobody to tell if this fails.
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

// An absolute path of the plan.
bool read_path(std::string_view value, char* text, std::size_t room) {
    std::size_t used = 0;
    for (char c = 0; next_character(value, c);) {
        if (used + 1 == room)
            return false;
        text[used++] = c;
    }
    text[used] = '\0';
    return value.empty() && *text == '/';
}

// A copy, for programs change their environment, and some write over it, before they open libcuda.
const char* kept(const char* text) {
    if (text == nullptr)
        return nullptr;
    const std::size_t size = std::strlen(text) + 1;
    void* const copy =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return copy != MAP_FAILED ? static_cast<const char*>(std::memcpy(copy, text, size)) : text;
}

// Keeps a reservation from the program's first instruction until its last process ends, without a
// descriptor: programs close those that they know nothing of, and start others without them. The
// mapping keeps the file open, and its lock with it; the children of a fork have both. What fails
// here is reported when the program makes its partition.
void keep_reservation(const char* token) {
    constexpr int kAttempts = 50;
    constexpr timespec kPause = {0, 1000000};
    const int file = open(token, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return;
    struct flock lock{};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    // A process that found no lock has the file locked for a moment, and removes it.
    bool locked = false;
    for (int i = 0; i < kAttempts && !locked; i++) {
        locked = fcntl(file, F_OFD_SETLK, &lock) == 0;
        if (!locked && errno != EAGAIN && errno != EACCES)
            break;
        if (!locked)
            nanosleep(&kPause, nullptr);
    }
    if (!locked || mmap(nullptr, 1, PROT_NONE, MAP_PRIVATE, file, 0) != MAP_FAILED) {
        close(file);
        return;
    }
    if (fcntl(file, F_DUPFD_CLOEXEC, kLeastDescriptor) >= 0) // where nothing can be mapped
        close(file);
}

PlanState read_plan(const char* plan) {
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
            driver = read_path(word.value, state.driver + kPrefixLength, PATH_MAX);
        else if (word.key == "shim")
            shim = read_path(word.value, state.shim, sizeof state.shim);
        else if (char token[PATH_MAX];
                 word.key == "token" && read_path(word.value, token, sizeof token))
            keep_reservation(token);
    }
    return driver && shim ? PlanState::kRead : PlanState::kDamaged;
}

const char* last_part(const char* path) {
    const char* const slash = std::strrchr(path, '/');
    return slash != nullptr ? slash + 1 : path;
}

// libcuda.so, libcuda.so.1, libcuda.so.580.159.04, in any folder.
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

// The driver's file by another name: a path that leads there, as a symbolic link does, or the name
// of the file alone, as of a simulated driver that a program was linked with.
bool leads_to_driver(const char* name) {
    if (state.plan != PlanState::kRead)
        return false;
    return std::strchr(name, '/') != nullptr ? same(file_named(name), state.driver_file)
                                             : std::strcmp(name, last_part(state.driver)) == 0;
}

// The facade's name for the loader; null, with a message, if there can be none.
char* open_facade() {
    // A program that closes all its descriptors has closed this one too, or has another file there.
    if (state.facade >= 0 && same(file_of_descriptor(state.facade), state.facade_file))
        return state.facade_path.text;
    const int made = make_facade(state.shim, state.driver + kPrefixLength, state.plan_text);
    if (made < 0) {
        say(Notice::kFacade,
            "can't make the library that stands before libcuda: ", std::strerror(errno));
        return nullptr;
    }
    state.facade = fcntl(made, F_DUPFD_CLOEXEC, kLeastDescriptor);
    if (state.facade >= 0)
        close(made);
    else
        state.facade = made;
    state.facade_file = file_of_descriptor(state.facade);
    state.facade_path = facade_path(state.facade);
    if (access(state.facade_path.text, R_OK) != 0) {
        say(Notice::kFacade, "can't open the library that stands before libcuda by /proc/self/fd: ",
            std::strerror(errno));
        return nullptr;
    }
    return state.facade_path.text;
}

// What the loader is to open in the place of name.
const char* answer(const char* name, bool for_driver) {
    if (for_driver || std::strcmp(name, state.driver) == 0 ||
        !(is_libcuda(name) || leads_to_driver(name)))
        return name;
    if (state.plan == PlanState::kAbsent) {
        say(Notice::kPlan, "GCX_EXEC_PLAN was taken from the environment: this program isn't in "
                           "the partition and can use the whole GPU");
        return name;
    }
    if (state.plan == PlanState::kDamaged) {
        say(Notice::kPlan, "GCX_EXEC_PLAN is damaged, or of another version of gcx: this program "
                           "gets no libcuda");
        return kRefused;
    }
    const char* const facade = open_facade();
    return facade != nullptr ? facade : kRefused;
}

void note_opened(const char* name, uintptr_t& cookie) {
    if (state.plan != PlanState::kRead)
        return;
    if (std::strcmp(name, state.driver) == 0)
        cookie = kDriverCookie;
    else if (is_libcuda(name) && same(file_named(name), state.driver_file))
        say(Notice::kPast,
            "this program's dlmopen opened libcuda past the partition: what it does "
            "there can use the whole GPU: ",
            name);
}

} // namespace
} // namespace gcx::exec

#define GCX_AUDIT extern "C" __attribute__((visibility("default")))

GCX_AUDIT unsigned la_version(unsigned version) {
    using namespace gcx::exec;
    state.plan_text = kept(std::getenv(kPlanVariable));
    state.plan = read_plan(state.plan_text);
    if (state.plan == PlanState::kRead)
        state.driver_file = file_named(state.driver);
    // What is used here is in every version of the interface.
    return version;
}

GCX_AUDIT unsigned la_objopen(link_map* map, Lmid_t, uintptr_t* cookie) {
    gcx::exec::note_opened(map->l_name, *cookie);
    return 0; // no function call is of interest, so none gets slower
}

GCX_AUDIT char* la_objsearch(const char* name, uintptr_t* cookie, unsigned flag) {
    // As it was asked for, before the places where it could be are tried one by one.
    if (flag != LA_SER_ORIG)
        return const_cast<char*>(name);
    return const_cast<char*>(gcx::exec::answer(name, *cookie == gcx::exec::kDriverCookie));
}
