// How every driver function begins and ends.
//
//     GCX_SIM_API(cuStreamGetPriority, CUstream handle, int* out) {
//         GCX_SIM_BODY(give(out, stream_of(machine, handle).priority));
//     }
//
// defines the function cuStreamGetPriority. It gets its symbol by an assembler name, since headers
// of other versions declare some of these functions otherwise. Its body has the machine, and gives
// CUDA_SUCCESS where it neither returns nor throws anything else.
#pragma once

#include "sim/machine.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <utility>

#define GCX_SIM_EXPORT __attribute__((visibility("default")))

#define GCX_SIM_API(name, ...)                                                                     \
    extern "C" GCX_SIM_EXPORT CUresult CUDAAPI sim_##name(__VA_ARGS__) __asm__(#name);             \
    CUresult CUDAAPI sim_##name(__VA_ARGS__)

// The same, and the variant for programs compiled so that a NULL stream is the thread's own:
// name and suffix, with the same parameters.
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
// Of one that works before cuInit.
#define GCX_SIM_BODY_ANYTIME(...) GCX_SIM_BODY_IN(gcx::sim::call_anytime, __VA_ARGS__)
#define GCX_SIM_BODY_IN(entry, ...)                                                                \
    return entry(__func__, [&]([[maybe_unused]] Machine& machine) -> CUresult {                    \
        __VA_ARGS__;                                                                               \
        return CUDA_SUCCESS;                                                                       \
    })

namespace gcx::sim {

// What a call answers when it does not succeed; thrown from wherever that is found out.
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

// What a search has found.
template <class T>
T& known(T* found, CUresult otherwise = CUDA_ERROR_INVALID_VALUE) {
    require(found != nullptr, otherwise);
    return *found;
}

// Writes a result to where the caller wants it; a handle becomes the pointer that it is out there.
template <class T, class Value>
void give(T* out, const Value& value) {
    require(out != nullptr);
    if constexpr (std::is_pointer_v<T> && std::is_same_v<Value, Handle>)
        *out = to_pointer<T>(value);
    else
        *out = value;
}

// The function table: which symbol is which function, since which driver. functions.inc has the
// rows.
struct FunctionRow {
    const char* base;
    const char* symbol;
    int since;
    void (*address)();
    void (*per_thread_address)(); // for a NULL stream that means the thread's own, or null
};
extern const FunctionRow kFunctions[];
extern const std::size_t kFunctionCount;
const FunctionRow* find_function_row(std::string_view symbol);
bool is_known_function(std::string_view function); // with or without a variant's suffix
std::string_view base_name(std::string_view function);

// Takes the lock, counts, charges the call's cost, fails where that was ordered; then runs the
// body.
class Entry {
  public:
    explicit Entry(const char* function, bool anytime = false);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    CUresult result() const { return result_; }
    Machine& machine() { return *machine_; }

  private:
    CUresult begin(const char* function, bool anytime);

    std::unique_lock<std::mutex> lock_;
    Machine* machine_ = nullptr;
    CUresult result_ = CUDA_SUCCESS;
};

// What an unforeseen exception becomes, since none may leave a function of C: says what it was.
CUresult result_of_exception(const char* function);

template <class Body>
CUresult call(const char* function, const Body& body, bool anytime = false) {
    try {
        Entry entry(function, anytime);
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

// The machine, made from the environment's specification if there is none; null if that is wrong.
// The lock must be held.
Machine* current_machine();

// The lock for the functions of control.cpp.
std::unique_lock<std::mutex> lock_machine();
CUresult configure(const char* spec, std::string& error);
void order_failure(std::string_view function, uint64_t nth, CUresult result);

// Runs when the current call has given up the lock: user callbacks may call anything of their own.
void after_call(std::function<void()> callback);

// Where the real driver crashes: says so and aborts.
[[noreturn]] void crash(const char* what);

// Lives while a per-thread variant of a function runs.
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

// costs.cpp: what the call adds to the simulated clock.
uint64_t call_cost(std::string_view base);

} // namespace gcx::sim
