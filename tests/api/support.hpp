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

// Returns the number that the body returns in a child.
uint64_t answer_of_child(const std::function<uint64_t()>& body);

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

namespace sim {
gcx_sim_counts counts();
uint64_t calls(const char* function = nullptr);
void fail(const char* function, uint64_t nth, CUresult result);
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
Split try_split(const gcx_resource& from, const std::vector<uint32_t>& counts,
                uint32_t flags = GCX_SPLIT_DEFAULT);
Split split(const gcx_resource& from, const std::vector<uint32_t>& counts,
            uint32_t flags = GCX_SPLIT_DEFAULT);

gcx_resource_info info_of(const gcx_resource& resource);
uint32_t sms(const gcx_resource& resource);
std::vector<uint32_t> sizes(const Split& split); // of the groups, then the remainder
uint32_t overlap(const gcx_resource& a, const gcx_resource& b);
gcx_cache_stats cache_stats();

// Has a context over the resource and a stream of it.
class Partition {
  public:
    explicit Partition(const gcx_resource& resource);
    ~Partition();
    Partition(const Partition&) = delete;
    Partition& operator=(const Partition&) = delete;
    SmIds probe() const;

    gcx_context context = nullptr;
    gcx_stream stream = nullptr;
};

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
