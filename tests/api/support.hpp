// Shared by the tests of the API: a process for each simulated machine, the simulation's controls
// and native functions, and short ways to create objects.
#pragma once

#include "check.hpp"

#include <gcx.h>
#include <gcx_sim.h>

#include <cuda.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace support {

// Runs the body in a child process and counts its checks. A process opens one driver, and gcx can't
// be used across a fork, so each simulated machine gets a child that is forked before gcx is used.
// A child that crashes, hangs or leaks is a failed check.
void in_child(const std::string& name, const std::function<void()>& body, unsigned seconds = 100);

// Opens the machine in a child, and runs the body. spec is as in "sim:SPEC".
void on_machine(const std::string& spec, const std::function<void()>& body);

// Returns the driver versions to test. An emulated processor tests one of them, since a version
// changes the same things on each processor.
std::vector<const char*> drivers(std::initializer_list<const char*> all = {"12.4", "13.0", "13.5"});
// Runs the body on a machine. Checks that no context is in use and no driver object left when its
// work has finished and nothing is cached.
void leaves_nothing(const std::string& spec, const std::function<void()>& body);
// Runs each test in a child, on an H100 with each of the driver versions.
void on_h100(std::initializer_list<void (*)()> tests,
             const std::vector<const char*>& versions = drivers());

// Returns the number that the body returns in a child.
uint64_t answer_of_child(const std::function<uint64_t()>& body);

// Calls the body in the child of a fork, also of a process that has used gcx, and checks that it
// returns true.
void check_child_of_fork(const std::function<bool()>& body);

// Lists the GPUs and driver versions that can be simulated.
struct Catalogue {
    std::vector<std::string> gpus;
    std::vector<std::string> drivers;
};
Catalogue catalogue();
// Returns 13010 for "13.1".
int version_of(const std::string& driver);

// Returns a function of the simulated driver by name, or null if it has none.
void* sim_symbol(const char* name);
template <class Function>
Function sim_function(const char* name) {
    return reinterpret_cast<Function>(sim_symbol(name));
}

#define SUPPORT_TEXT(x) #x
#define SUPPORT_NAME(x) SUPPORT_TEXT(x)
// Is the simulated driver's own function, for what other code in the process does:
// NATIVE(cuInit)(0). The headers rename functions to their newest variants by macros, so the name
// is expanded first.
#define NATIVE(function) support::sim_function<decltype(&::function)>(SUPPORT_NAME(function))
#define CHECK_NATIVE(function, ...) CHECK_EQ(NATIVE(function)(__VA_ARGS__), CUDA_SUCCESS)

namespace sim {
gcx_sim_counts counts();
uint64_t calls(const char* function = nullptr);
void fail(const char* function, uint64_t nth, CUresult result);
void advance(uint64_t nanoseconds); // the simulated clock
// Records up to max runs of kernels from now on, and discards earlier ones; 0 ends the recording.
void note_runs(std::size_t max);
std::vector<gcx_sim_run> runs();
} // namespace sim

// Names what differs from before once everything was destroyed; empty if nothing does. Ignores
// descriptors, which live as long as the process, and lost bytes.
std::string left_behind(const gcx_sim_counts& before, const gcx_sim_counts& after);

// Returns whether the last message has the text.
bool message_has(const std::string& text);
// Checks for this result with a message.
bool refused(gcx_result got, gcx_result expected, const char* file, int line, const char* call);
// Records the last message, see messages.cpp.
void note_message(gcx_result result);
// Replaces check::summary in a test with recorded messages of this name.
int summary(const char* name);
#define CHECK_REFUSED(call, expected)                                                              \
    support::refused((call), (expected), __FILE__, __LINE__, #call)

using SmIds = std::vector<uint32_t>;

gcx_resource whole_device(int32_t device = 0);

struct Split {
    gcx_result result = GCX_SUCCESS;
    std::vector<gcx_resource> groups;
    gcx_resource remainder{};
};
std::vector<gcx_sm_request> requests_for(const std::vector<uint32_t>& counts);
Split split_by_requests(const gcx_resource& from, const std::vector<gcx_sm_request>& requests,
                        uint32_t flags = GCX_SPLIT_DEFAULT);
Split try_split(const gcx_resource& from, const std::vector<uint32_t>& counts,
                uint32_t flags = GCX_SPLIT_DEFAULT);
Split split(const gcx_resource& from, const std::vector<uint32_t>& counts,
            uint32_t flags = GCX_SPLIT_DEFAULT);

gcx_resource_info info_of(const gcx_resource& resource);
uint32_t sms(const gcx_resource& resource);
std::vector<uint32_t> sizes(const Split& split); // of the groups, then the remainder
uint32_t overlap(const gcx_resource& a, const gcx_resource& b);
gcx_resource united(const gcx_resource& a, const gcx_resource& b);
gcx_resource without(const gcx_resource& a, const gcx_resource& b);
gcx_resource atom_of(const gcx_resource& resource, uint32_t index);
// Returns a set of each size; all begin with the first atom.
std::vector<gcx_resource> sets(const std::vector<uint32_t>& sizes, int32_t device = 0);

gcx_cache_stats cache_stats();
gcx_cache_trimmed trim(uint32_t keep);

// The following functions create an object or describe it, and check that this succeeds.
gcx_context make_context(const gcx_resource& resource, uint32_t flags = 0);
gcx_context make_context(const std::vector<gcx_resource>& resources, uint32_t flags = 0);
gcx_stream make_stream(gcx_context context, int32_t priority = 0);
gcx_stream handle_for(CUstream native);
gcx_event make_event(int32_t device = 0, uint32_t flags = 0);
gcx_cancel make_cancel();
gcx_context_info info_of(gcx_context context);
gcx_stream_info info_of(gcx_stream stream);
uint64_t id_of(gcx_context context);
SmIds probe(gcx_stream stream);

// Returns the numbers of the bits that are set.
template <std::size_t kWords>
SmIds sm_ids(const uint64_t (&words)[kWords]) {
    SmIds ids;
    for (uint32_t sm = 0; sm < kWords * 64; sm++) {
        if (((words[sm / 64] >> (sm % 64)) & 1) != 0)
            ids.push_back(sm);
    }
    return ids;
}
bool share_sms(const gcx_sim_run& a, const gcx_sim_run& b);

// Has a context over the resource and a stream of it.
class Partition {
  public:
    explicit Partition(const gcx_resource& resource);
    ~Partition();
    Partition(const Partition&) = delete;
    Partition& operator=(const Partition&) = delete;
    SmIds probe() const { return support::probe(stream); }

    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
};

// Makes a context of the driver current until the end of the scope.
class Current {
  public:
    explicit Current(CUcontext context);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
};

// Begins a capture; ends one, checks that it is intact, and destroys its graph.
void begin_capture(CUstream stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL);
void end_capture(CUstream stream);

// Captures what submit() launches.
template <class Submit>
CUgraph capture(CUstream stream, Submit&& submit) {
    CUgraph graph = nullptr;
    begin_capture(stream);
    submit();
    CHECK_NATIVE(cuStreamEndCapture, stream, &graph);
    return graph;
}

// Splits by the driver, as other code in the process does. The last resource is the remainder.
std::vector<CUdevResource> native_split(uint32_t sm_count, unsigned groups, unsigned flags = 0,
                                        int device = 0);
CUdevResource native_device(int device = 0);

// Has a stream and an event of the application, in the primary context or in a green context that
// gcx did not create, of this many SMs or of these resources.
class External {
  public:
    explicit External(uint32_t sm_count = 0, int device = 0);
    explicit External(std::vector<CUdevResource> resources, int device = 0);
    ~External();
    External(const External&) = delete;
    External& operator=(const External&) = delete;

    CUstream stream = nullptr;
    CUevent event = nullptr;

  private:
    int device_;
    CUgreenCtx green_ = nullptr;
};

// Writes a profile of an invented device, as `gcx info --record` does, until the end of the scope.
class Profile {
  public:
    explicit Profile(const std::string& text);
    ~Profile();
    Profile(const Profile&) = delete;
    Profile& operator=(const Profile&) = delete;
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

// Yields the same numbers on every machine for one seed.
class Random {
  public:
    explicit Random(unsigned seed) : engine_(seed) {}
    uint32_t next() { return static_cast<uint32_t>(engine_()); }
    uint32_t below(uint32_t bound) { return next() % bound; }
    bool one_in(uint32_t bound) { return below(bound) == 0; }

  private:
    std::mt19937 engine_;
};

// Runs body(0), body(1), ... in threads that start together, and waits for them.
void in_threads(unsigned count, const std::function<void(unsigned)>& body);

// Returns an empty struct of gcx's.
template <class T>
T sized() {
    T value{};
    value.struct_size = sizeof(T);
    return value;
}

// Returns a value outside of an enum, as C lets a caller pass it.
template <class Enum>
Enum no_such(int number) {
    static_assert(sizeof(Enum) == sizeof number);
    Enum value;
    std::memcpy(&value, &number, sizeof value);
    return value;
}

// NOLINTBEGIN(performance-no-int-to-ptr): handles aren't addresses
template <class Handle>
Handle forged(uint64_t bits) {
    return reinterpret_cast<Handle>(bits);
}
template <class To, class From>
To handle_cast(From handle) {
    return reinterpret_cast<To>(handle);
}
// NOLINTEND(performance-no-int-to-ptr)

} // namespace support
