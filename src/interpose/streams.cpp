// The functions of streams.inc. Each is the driver's, but where a stream means the thread's own.
#include "interpose/streams.hpp"

#include <cstddef>

namespace gcx::shim {
namespace {

// When a call that uses the thread's own stream waits for what it has put there.
enum class Waits { Always, Never, IfHost };

// Whether memory is the host's, or may be there: what is set there is set when the call is back.
bool may_be_host(CUdeviceptr memory) {
    unsigned managed = 0;
    CUmemorytype type = CU_MEMORYTYPE_HOST;
    const bool known =
        GCX_REAL_ALONE(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory) ==
            CUDA_SUCCESS &&
        GCX_REAL_ALONE(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, memory) ==
            CUDA_SUCCESS;
    return !known || type != CU_MEMORYTYPE_DEVICE || managed != 0;
}

template <Waits kWaits, class First, class... Others>
bool call_waits([[maybe_unused]] First first, const Others&...) {
    if constexpr (kWaits == Waits::IfHost)
        return may_be_host(first);
    return kWaits == Waits::Always;
}

// By the asynchronous function in the place of the one that has no stream among its arguments.
template <Waits kWaits, class Asynchronous, class... Parameters>
CUresult call_in_own(Real<CUresult(CUDAAPI*)(Parameters...)>& real, Asynchronous& asynchronous,
                     Parameters... arguments) {
    CUstream own = nullptr;
    CUresult result = find_thread_stream(&own);
    if (result != CUDA_SUCCESS)
        return result;
    if (own == nullptr)
        return real(arguments...);
    result = asynchronous(arguments..., own);
    return result == CUDA_SUCCESS && call_waits<kWaits>(arguments...)
               ? GCX_REAL_ALONE(cuStreamSynchronize)(own)
               : result;
}

template <class... Parameters>
CUresult call_in_legacy(Real<CUresult(CUDAAPI*)(Parameters...)>& real,
                        Real<CUresult(CUDAAPI*)(Parameters...)>& legacy, Parameters... arguments) {
    CUstream own = nullptr;
    const CUresult result = find_thread_stream(&own);
    if (result != CUDA_SUCCESS)
        return result;
    return own != nullptr ? legacy(arguments...) : real(arguments...);
}

} // namespace

// Parameters of given types, and their names. NOLINTBEGIN(bugprone-macro-parentheses)
#define COUNT(...) PICK(__VA_ARGS__, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define PICK(a, b, c, d, e, f, g, h, i, j, k, count, ...) count
#define JOIN(a, b) JOIN_AS_IS(a, b)
#define JOIN_AS_IS(a, b) a##b
#define PARAMETERS(...) JOIN(PARAMETERS_, COUNT(__VA_ARGS__))(__VA_ARGS__)
#define PARAMETERS_1(type) type a1
#define PARAMETERS_2(type, ...) type a2, PARAMETERS_1(__VA_ARGS__)
#define PARAMETERS_3(type, ...) type a3, PARAMETERS_2(__VA_ARGS__)
#define PARAMETERS_4(type, ...) type a4, PARAMETERS_3(__VA_ARGS__)
#define PARAMETERS_5(type, ...) type a5, PARAMETERS_4(__VA_ARGS__)
#define PARAMETERS_6(type, ...) type a6, PARAMETERS_5(__VA_ARGS__)
#define PARAMETERS_7(type, ...) type a7, PARAMETERS_6(__VA_ARGS__)
#define PARAMETERS_8(type, ...) type a8, PARAMETERS_7(__VA_ARGS__)
#define PARAMETERS_9(type, ...) type a9, PARAMETERS_8(__VA_ARGS__)
#define PARAMETERS_10(type, ...) type a10, PARAMETERS_9(__VA_ARGS__)
#define PARAMETERS_11(type, ...) type a11, PARAMETERS_10(__VA_ARGS__)
#define ARGUMENTS(...) JOIN(ARGUMENTS_, COUNT(__VA_ARGS__))
#define ARGUMENTS_1 a1
#define ARGUMENTS_2 a2, ARGUMENTS_1
#define ARGUMENTS_3 a3, ARGUMENTS_2
#define ARGUMENTS_4 a4, ARGUMENTS_3
#define ARGUMENTS_5 a5, ARGUMENTS_4
#define ARGUMENTS_6 a6, ARGUMENTS_5
#define ARGUMENTS_7 a7, ARGUMENTS_6
#define ARGUMENTS_8 a8, ARGUMENTS_7
#define ARGUMENTS_9 a9, ARGUMENTS_8
#define ARGUMENTS_10 a10, ARGUMENTS_9
#define ARGUMENTS_11 a11, ARGUMENTS_10

#define DEFINE(symbol, caller, ...)                                                                \
    GCX_SHIM_API(symbol, PARAMETERS(__VA_ARGS__)) {                                                \
        return caller(GCX_REAL(symbol), ARGUMENTS(__VA_ARGS__));                                   \
    }
#define S(base, symbol, since, ...)                                                                \
    DEFINE(symbol, call<false>, __VA_ARGS__)                                                       \
    DEFINE(symbol##_ptsz, call<true>, __VA_ARGS__)
#define N(base, symbol, since, ...) DEFINE(symbol, call<false>, __VA_ARGS__)
#define SE(base, symbol, since, ...)                                                               \
    DEFINE(symbol, enter_and_call<false>, __VA_ARGS__)                                             \
    DEFINE(symbol##_ptsz, enter_and_call<true>, __VA_ARGS__)
#define NE(base, symbol, since, ...) DEFINE(symbol, enter_and_call<false>, __VA_ARGS__)
#define D(base, symbol, asynchronous, waits, ...)                                                  \
    GCX_SHIM_API(symbol##_ptds, PARAMETERS(__VA_ARGS__)) {                                         \
        return call_in_own<Waits::waits>(                                                          \
            GCX_REAL(symbol##_ptds),                                                               \
            GCX_REAL_OF(asynchronous, CUresult(CUDAAPI*)(__VA_ARGS__, CUstream)),                  \
            ARGUMENTS(__VA_ARGS__));                                                               \
    }
#define L(base, symbol, ...)                                                                       \
    GCX_SHIM_API(symbol##_ptds, PARAMETERS(__VA_ARGS__)) {                                         \
        return call_in_legacy(GCX_REAL(symbol##_ptds),                                             \
                              GCX_REAL_OF(symbol, CUresult(CUDAAPI*)(__VA_ARGS__)),                \
                              ARGUMENTS(__VA_ARGS__));                                             \
    }
// NOLINTEND(bugprone-macro-parentheses)

#include "interpose/entry_points.inc"

} // namespace gcx::shim
