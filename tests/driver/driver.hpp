// What the checks share: calls of libcuda by name, contexts, kernels, memory, and slow work.
#pragma once

#include "driver/cuda_api.h"

#include "kernels.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace conformance {

// Ends a check early. The text becomes its answer.
struct Stop : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The variable that names the driver's library, for the processes of checks. libcuda.so.1 without it.
constexpr char kLibraryVariable[] = "DRIVER_CONFORMANCE_LIBRARY";
// Returns a function of libcuda.so.1 as a program finds it with dlsym.
void* find_symbol(const char* name);
template <class Function>
Function find_function(const char* name) {
    return reinterpret_cast<Function>(find_symbol(name));
}

// A function by the name that libcuda exports, such as cuMemAlloc_v2.
#define CU(symbol) (conformance::find_function<decltype(&::symbol)>(#symbol))
// Another function of the same type, such as a per-thread variant, by its name as a string.
#define CU_LIKE(symbol, name) (conformance::find_function<decltype(&::symbol)>(name))
// Calls a function and ends the check if it fails.
#define MUST(symbol, ...) conformance::must(CU(symbol)(__VA_ARGS__), #symbol)

void must(CUresult result, const std::string& what);
// Returns CUDA's name without "CUDA_ERROR_", or "SUCCESS".
std::string name_of(CUresult result);

// What exists before a check begins.
enum class Needs {
    kNothing, // not even cuInit
    kPrimary, // the primary context is current, and the kernels have run in it
    kGreen,   // two green contexts of 24 SMs each, too
};

struct Gpu {
    CUdevice device = 0;
    CUcontext primary = nullptr;
    CUcontext green = nullptr; // the context of green_handle
    CUcontext other = nullptr; // the context of other_handle
    CUgreenCtx green_handle = nullptr;
    CUgreenCtx other_handle = nullptr;
};
extern Gpu gpu;

struct Kernels {
    CUfunction spin = nullptr;         // (u64 nanoseconds)
    CUfunction probe = nullptr;        // (u64 counts, u32 max_sms, u32 nanoseconds)
    CUfunction store = nullptr;        // (u64 to, u32 value, u64 after_nanoseconds)
    CUfunction load = nullptr;         // (u64 to, u64 from)
    CUfunction add = nullptr;          // (u64 to, u32 value): *to = *to * 3 + value
    CUfunction wait = nullptr;         // (u64 flag, u64 limit_nanoseconds): until *flag != 0
    CUfunction set_variable = nullptr; // (u32 value)
    CUfunction get_variable = nullptr; // (u64 to)
    CUfunction trap = nullptr;         // ()
};
extern Kernels kernels;

void start_driver(); // cuInit, and the primary context without making it current
void make_green_contexts();
CUmodule load_kernels(); // into the current context
void run_kernels_once(); // so that a later launch loads nothing
void prepare(Needs needs);

void make_current(CUcontext context);

// Launches one thread.
template <class... Arguments>
CUresult launch(CUfunction function, CUstream stream, Arguments... arguments) {
    void* list[] = {&arguments..., nullptr};
    return CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, list, nullptr);
}

constexpr uint64_t kMillisecond = 1'000'000; // nanoseconds
// How long slow work takes, from the environment or 5 ms: much longer than the calls that are made
// while it runs. On the simulated driver time costs nothing, and host functions take real time.
constexpr char kSlowVariable[] = "DRIVER_CONFORMANCE_SLOW_MS";
extern const uint64_t kSlow;

CUresult spin(CUstream stream, uint64_t nanoseconds = kSlow);
CUresult store(CUstream stream, CUdeviceptr to, uint32_t value, uint64_t after = kSlow);
CUresult load(CUstream stream, CUdeviceptr to, CUdeviceptr from);

// Zeroed device memory, which is never freed.
CUdeviceptr device_words(std::size_t bytes = 4096);
// Zeroed page-locked host memory, which kernels reach at the same address.
volatile uint32_t* host_words(std::size_t bytes = 4096);
inline CUdeviceptr address_of(const volatile void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

// Waits for all work of the device. Leaves the current context as it was.
void settle();
// Returns a word after all work has ended.
uint32_t read_word(CUdeviceptr from);
void write_word(CUdeviceptr to, uint32_t value);

CUevent make_event(unsigned flags = CU_EVENT_DISABLE_TIMING);
// An event recorded now.
CUevent mark(CUstream stream);

// Returns "waits" if the event has completed, that is if the call made since its record waited.
std::string waited_for(CUevent slow);
// Polls both until one ends. Returns "independent" if the query succeeds while the slow work runs,
// otherwise "ordered".
std::string order_of(const std::function<CUresult()>& query, CUevent slow);

// Runs the body in a thread in which the context is current, and waits for its end.
void in_thread(CUcontext context, const std::function<void()>& body);

// A call in a thread of its own, for one that may block. The thread may outlive the object.
class Attempt {
  public:
    Attempt(CUcontext context, std::function<CUresult()> call);
    bool ends_within(std::chrono::milliseconds limit) const;
    // "returns", the name of its error, or "blocks".
    std::string answer_within(std::chrono::milliseconds limit) const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

// Returns the numbers of the SMs on which blocks of a launch in the stream ran.
std::set<unsigned> sms_of(CUstream stream);
// Launches blocks that count themselves by %smid, and reads the counts.
CUresult probe(CUstream stream, CUdeviceptr counts, CUfunction function = kernels.probe);
constexpr std::size_t kMaxSms = 1024;
std::set<unsigned> sms_in(CUdeviceptr counts);
unsigned reported_sms(); // by the device's attribute

const char* yes_no(bool value);

using Body = std::function<std::string()>;

struct Check {
    std::string name;
    Needs needs = Needs::kNothing;
    CUcontext Gpu::* current = nullptr; // null: as prepare() leaves it
    Body body;
    // Checks of one family share a process. For those whose answer does not depend on the hardware
    // queues, which streams of the others would take.
    std::string family;
};

// The table of checks, in the order in which they are printed.
class Checks {
  public:
    void add(const std::string& name, Needs needs, Body body);
    // With the primary context current.
    void add_primary(const std::string& name, Body body);
    // With a green context current.
    void add_green(const std::string& name, Body body);
    // Both; the second name ends in _green.
    void add_both(const std::string& name, const Body& body);
    // Sets the family of the checks that are added from now on; "" for none.
    void begin_family(const std::string& family) { family_ = family; }
    const std::vector<Check>& all() const { return checks_; }

  private:
    std::vector<Check> checks_;
    std::string family_;
};

// One function for each subject, in the file of that name.
void add_first_calls(Checks& checks);
void add_order(Checks& checks);
void add_copies(Checks& checks);
void add_streams(Checks& checks);
void add_captures(Checks& checks);
void add_memory(Checks& checks);
void add_contexts(Checks& checks);
void add_graphs(Checks& checks);
void add_faults(Checks& checks);
void add_own_contexts(Checks& checks);
void add_batches(Checks& checks);
void add_ipc(Checks& checks);
void add_full_streams(Checks& checks);

// The process of a check of claim 29: ends by exit().
[[noreturn]] void exit_as(const std::string& role);
// The other process of claim 15: reads handles from standard input.
[[noreturn]] void answer_ipc();

} // namespace conformance
