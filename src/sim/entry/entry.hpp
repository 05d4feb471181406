// How every driver function begins and ends.
//
//     GCX_SIM_API(cuStreamGetPriority, CUstream handle, int* out) {
//         GCX_SIM_BODY(give(out, stream_of(machine, handle).priority));
//     }
//
// defines the function cuStreamGetPriority. An assembler name gives it its symbol, since headers of
// other versions declare some functions differently. The body can use `machine` and returns
// CUDA_SUCCESS unless it returns or throws something else.
#pragma once

#include "sim/machine.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#define GCX_SIM_EXPORT __attribute__((visibility("default")))

#define GCX_SIM_API(name, ...)                                                                     \
    extern "C" GCX_SIM_EXPORT CUresult CUDAAPI sim_##name(__VA_ARGS__) __asm__(#name);             \
    CUresult CUDAAPI sim_##name(__VA_ARGS__)

// Also defines the variant for programs compiled with per-thread default streams: name and suffix,
// with the same parameters.
#define GCX_SIM_STREAM_API(name, suffix, parameters, arguments)                                    \
    extern "C" GCX_SIM_EXPORT CUresult CUDAAPI sim_##name parameters __asm__(#name);               \
    extern "C" GCX_SIM_EXPORT CUresult CUDAAPI sim_##name##suffix parameters __asm__(              \
        #name #suffix);                                                                            \
    CUresult CUDAAPI sim_##name##suffix parameters {                                               \
        const gcx::sim::PerThreadStream scope;                                                     \
        return sim_##name arguments;                                                               \
    }                                                                                              \
    CUresult CUDAAPI sim_##name parameters

// The body of a driver function: a statement, or a block of them.
#define GCX_SIM_BODY(...) GCX_SIM_BODY_IN(gcx::sim::call, __VA_ARGS__)
// The body of a function that only returns a value. A missing out is refused before the value is
// determined.
#define GCX_SIM_GIVE(out, ...)                                                                     \
    GCX_SIM_BODY({                                                                                 \
        require((out) != nullptr);                                                                 \
        give(out, __VA_ARGS__);                                                                    \
    })
// The body of a function that works before cuInit.
#define GCX_SIM_BODY_ANYTIME(...) GCX_SIM_BODY_IN(gcx::sim::call_anytime, __VA_ARGS__)
#define GCX_SIM_BODY_IN(entry, ...)                                                                \
    return entry(__func__, [&]([[maybe_unused]] Machine& machine) -> CUresult {                    \
        __VA_ARGS__;                                                                               \
        return CUDA_SUCCESS;                                                                       \
    })

namespace gcx::sim {

// Thrown to make the current call return a result.
struct Refusal {
    CUresult result;
};

[[noreturn]] inline void refuse(CUresult result) {
    throw Refusal{result};
}

inline void require(bool holds, CUresult otherwise = CUDA_ERROR_INVALID_VALUE) {
    if (!holds)
        refuse(otherwise);
}

// Returns what a search found; refuses if it found nothing.
template <class T>
T& known(T* found, CUresult otherwise = CUDA_ERROR_INVALID_VALUE) {
    require(found != nullptr, otherwise);
    return *found;
}

// Writes a result to the caller's variable; converts a handle to the caller's pointer type.
template <class T, class Value>
void give(T* out, const Value& value) {
    require(out != nullptr);
    if constexpr (std::is_pointer_v<T> && std::is_same_v<Value, Handle>)
        *out = to_pointer<T>(value);
    else
        *out = value;
}

// A row of the function table, which functions.inc lists.
struct FunctionRow {
    const char* base;
    const char* symbol;
    int since;
    void (*address)();
    void (*per_thread_address)(); // the variant with per-thread default streams, or null
};
extern const FunctionRow kFunctions[];
extern const std::size_t kFunctionCount;
const FunctionRow* find_function_row(std::string_view symbol);
// Accepts names with and without a variant's suffix.
bool is_known_function(std::string_view function);
// Returns the name without sim_, variant and version.
std::string_view base_name(std::string_view function);

// Locks the machine. Waits of the clock release the lock of their thread.
class MachineLock {
  public:
    MachineLock();
    ~MachineLock();
    MachineLock(const MachineLock&) = delete;
    MachineLock& operator=(const MachineLock&) = delete;

  private:
    std::unique_lock<std::mutex> lock_;
};
std::unique_lock<std::mutex>& held_lock(); // of the calling thread
std::mutex& machine_mutex();
bool is_unloaded(); // the process ends

// Locks the machine for one call, counts the call, adds its cost to the clock and applies ordered
// failures.
class CallScope {
  public:
    explicit CallScope(const char* function, bool anytime = false);

    CUresult result() const { return result_; }
    Machine& machine() { return *machine_; }

  private:
    CUresult begin(const char* function, bool anytime);

    std::optional<MachineLock> lock_;
    Machine* machine_ = nullptr;
    CUresult result_ = CUDA_SUCCESS;
};

// Converts an unexpected exception, which must not leave a C function, and prints it.
CUresult result_of_exception(const char* function);

template <class Body>
CUresult call(const char* function, const Body& body, bool anytime = false) {
    try {
        CallScope entry(function, anytime);
        return entry.result() == CUDA_SUCCESS ? body(entry.machine()) : entry.result();
    } catch (const Refusal& refusal) {
        return refusal.result;
    } catch (...) {
        return result_of_exception(function);
    }
}

template <class Body>
CUresult call_anytime(const char* function, const Body& body) {
    return call(function, body, true);
}

// Returns the machine; creates it from GCX_SIM if there is none. Returns null if GCX_SIM is wrong.
// The caller holds the lock.
Machine* current_machine();
Machine* existing_machine(); // creates none
// Returns what is wrong with GCX_SIM, or with another variable, if there is no machine.
const std::string& environment_error();

// For the functions of gcx_sim.h. The caller holds the lock.
CUresult configure(const char* spec, std::string& error);
void order_failure(std::string_view function, uint64_t nth, CUresult result);

// Keeps the library loaded as long as the calling thread lives, also after dlclose().
void keep_loaded();

// Prints that the real driver crashes here, and aborts.
[[noreturn]] void crash(const char* what);

// Marks the current call as a per-thread variant.
class PerThreadStream {
  public:
    PerThreadStream();
    ~PerThreadStream();
    PerThreadStream(const PerThreadStream&) = delete;
    PerThreadStream& operator=(const PerThreadStream&) = delete;
    static bool active();

  private:
    bool before_;
};

// Returns what a call adds to the simulated clock (costs.cpp).
uint64_t call_cost(std::string_view base);

} // namespace gcx::sim
