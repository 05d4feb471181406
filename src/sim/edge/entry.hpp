// How every driver function begins and ends.
//
// GCX_SIM_API(cuStreamQuery, CUstream stream) { return call(__func__, ...); } defines the function
// cuStreamQuery. It gets its symbol by an assembler name, since headers of other versions
// declare some of these functions otherwise.
#pragma once

#include "sim/machine.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <utility>

#define GCX_SIM_EXPORT __attribute__((visibility("default")))

#define GCX_SIM_API(name, ...)                                                                     \
    extern "C" GCX_SIM_EXPORT CUresult CUDAAPI sim_##name(__VA_ARGS__) __asm__(#name);             \
    CUresult CUDAAPI sim_##name(__VA_ARGS__)

namespace gcx::sim {

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

template <class Body>
CUresult call(const char* function, const Body& body) {
    Entry entry(function);
    return entry.result() == CUDA_SUCCESS ? body(entry.machine()) : entry.result();
}

// The same for functions that work before cuInit.
template <class Body>
CUresult call_anytime(const char* function, const Body& body) {
    Entry entry(function, true);
    return entry.result() == CUDA_SUCCESS ? body(entry.machine()) : entry.result();
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

// True while a per-thread variant of a function runs.
bool& per_thread_stream();

// costs.cpp: what the call adds to the simulated clock.
uint64_t call_cost(std::string_view base);

} // namespace gcx::sim
