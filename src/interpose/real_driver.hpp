// The real libcuda behind the stub library: how hooks are defined, and how they call the driver.
#pragma once

#include "driver/cuda_api.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#define GCX_EXPORT __attribute__((visibility("default")))

// Defines a hook, the function that programs find under a driver function's symbol:
// GCX_HOOK(cuCtxGetCurrent, CUcontext* out) {...}. The C++ name is hook_cuCtxGetCurrent, since the
// headers of some CUDA versions declare the function with other types.
#define GCX_HOOK(name, ...)                                                                        \
    extern "C" GCX_EXPORT CUresult CUDAAPI hook_##name(__VA_ARGS__) __asm__(#name);                \
    CUresult CUDAAPI hook_##name(__VA_ARGS__)
// Removes the parentheses of parameters that are one argument of a macro.
#define GCX_UNPACK(...) __VA_ARGS__

// Calls the driver: GCX_REAL(cuCtxGetCurrent)(out).
// GCX_REAL    has the types of the hook of the same name.
// GCX_DRIVER  has the types of cuda.h.
// GCX_REAL_AS has the given type.
#define GCX_REAL(name) GCX_REAL_AS(name, decltype(&hook_##name))
#define GCX_DRIVER(name) GCX_REAL_AS(name, decltype(&::name))
#define GCX_REAL_AS(name, type) (gcx::interpose::real_function<type, #name>)

namespace gcx::interpose {

// Returns the name to load the real libcuda by, or null if it is unknown. libgcx-shim and
// libgcx-counts define it differently.
const char* driver_path();

// Returns the real libcuda, or null. Takes no lock: after a fork the child could find it locked.
void* driver_library();

// Returns a function of the real libcuda, or null.
void* driver_symbol(const char* symbol);

// Returns the result of a call to a function that the real libcuda lacks.
CUresult missing_function_result();

// Fails where CUDA is unusable, as in the child of a fork. Must be called before a lock is taken,
// since the thread that held it in the parent may not exist in the child.
CUresult check_driver_usable();

// A function of the real libcuda. It is looked up by the first call.
template <class Function>
class RealFunction;

template <class... Parameters>
class RealFunction<CUresult(CUDAAPI*)(Parameters...)> {
  public:
    using Function = CUresult(CUDAAPI*)(Parameters...);

    constexpr explicit RealFunction(const char* symbol) : symbol_(symbol) {}

    CUresult operator()(Parameters... arguments) {
        const Function function = find();
        return function != nullptr ? function(arguments...) : missing_function_result();
    }

    Function find() {
        Function function = found();
        if (function == nullptr) {
            function = reinterpret_cast<Function>(driver_symbol(symbol_));
            address_.store(function, std::memory_order_relaxed);
        }
        return function;
    }
    // Returns null before the first call.
    Function found() const { return address_.load(std::memory_order_relaxed); }

  private:
    const char* symbol_;
    std::atomic<Function> address_{nullptr};
};

// A function's name as a template argument.
template <std::size_t kSize>
struct Symbol {
    char text[kSize];
    // NOLINTNEXTLINE(google-explicit-constructor): converts a literal
    constexpr Symbol(const char (&literal)[kSize]) { std::copy_n(literal, kSize, text); }
};

// One instance per function, shared by all of its callers.
template <class Function, Symbol kSymbol>
inline constinit RealFunction<Function> real_function{kSymbol.text};

} // namespace gcx::interpose
