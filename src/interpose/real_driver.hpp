// The real libcuda behind the facade, and how a function of it is called.
#pragma once

#include "driver/cuda_api.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#define GCX_SHIM_EXPORT __attribute__((visibility("default")))

// Defines the driver function NAME as programs find it: GCX_SHIM_API(cuCtxGetCurrent, CUcontext*
// out) {...}. It gets its symbol by an assembler name, since headers of other versions declare some
// of these functions otherwise.
#define GCX_SHIM_API(name, ...)                                                                    \
    extern "C" GCX_SHIM_EXPORT CUresult CUDAAPI shim_##name(__VA_ARGS__) __asm__(#name);           \
    CUresult CUDAAPI shim_##name(__VA_ARGS__)

// The real function of the same symbol: GCX_REAL(cuCtxGetCurrent)(out). The second one is for those
// that only cuda.h declares.
#define GCX_REAL(name) GCX_REAL_OF(name, decltype(&shim_##name))
#define GCX_REAL_ALONE(name) GCX_REAL_OF(name, decltype(&::name))
#define GCX_REAL_OF(name, type) (gcx::shim::real<type, #name>)

namespace gcx::shim {

// Where the real libcuda is, a name for dlopen; null if nobody has told. Each library that is made
// of this folder has its own.
const char* real_path();

// That library, or null. No lock is taken that a child of a fork could find held.
void* real_library();

// What is answered in the place of a function that the real library lacks.
CUresult result_without_real();

// To be asked before a lock is taken: an error in a child of a fork that has no CUDA, as outside,
// where whoever held the lock may not be there to give it back.
CUresult ask_usable();

// A function of the real library, found at its first call.
template <class Function>
class Real;

template <class... Parameters>
class Real<CUresult(CUDAAPI*)(Parameters...)> {
  public:
    using Function = CUresult(CUDAAPI*)(Parameters...);

    constexpr explicit Real(const char* symbol) : symbol_(symbol) {}

    CUresult operator()(Parameters... arguments) {
        const Function function = find();
        return function != nullptr ? function(arguments...) : result_without_real();
    }

    Function find();
    Function found() const { return address_.load(std::memory_order_relaxed); } // null: not yet

  private:
    const char* symbol_;
    std::atomic<Function> address_{nullptr};
};

void* real_symbol(const char* symbol); // or null

template <class... Parameters>
typename Real<CUresult(CUDAAPI*)(Parameters...)>::Function
Real<CUresult(CUDAAPI*)(Parameters...)>::find() {
    Function function = address_.load(std::memory_order_relaxed);
    if (function == nullptr) {
        function = reinterpret_cast<Function>(real_symbol(symbol_));
        address_.store(function, std::memory_order_relaxed);
    }
    return function;
}

// A function's name as a template's argument.
template <std::size_t kSize>
struct Symbol {
    char text[kSize];
    // NOLINTNEXTLINE(google-explicit-constructor): a literal is what it is made of
    constexpr Symbol(const char (&literal)[kSize]) { std::copy_n(literal, kSize, text); }
};

// One for each function, wherever it is called.
template <class Function, Symbol kSymbol>
inline constinit Real<Function> real{kSymbol.text};

} // namespace gcx::shim
