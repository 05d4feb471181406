// How a driver function that takes a stream is called: as it is, but for a stream that means the
// thread's own.
#pragma once

#include "interpose/real_driver.hpp"
#include "interpose/thread_streams.hpp"

namespace gcx::interpose {

// An argument, and what it is where the thread's own stream has that stream for it. Of those that
// have a stream in them, what is given is the program's.
template <bool kNullIsPerThread, class T>
struct Argument {
    static bool means(const T&) { return false; }
    Argument(T given, CUstream) : value(given) {}
    T get() { return value; }
    T value;
};

template <bool kNullIsPerThread>
struct Argument<kNullIsPerThread, CUstream> {
    static bool means(CUstream given) { return is_per_thread<kNullIsPerThread>(given); }
    Argument(CUstream given, CUstream own) : value(means(given) ? own : given) {}
    CUstream get() { return value; }
    CUstream value;
};

template <bool kNullIsPerThread>
struct Argument<kNullIsPerThread, const CUlaunchConfig*> {
    static bool means(const CUlaunchConfig* given) {
        return given != nullptr && is_per_thread<kNullIsPerThread>(given->hStream);
    }
    Argument(const CUlaunchConfig* given, CUstream own) : value(*given) { value.hStream = own; }
    const CUlaunchConfig* get() { return &value; }
    CUlaunchConfig value;
};

// The driver writes into it.
template <bool kNullIsPerThread>
struct Argument<kNullIsPerThread, CUDA_GRAPH_INSTANTIATE_PARAMS*> {
    static bool means(const CUDA_GRAPH_INSTANTIATE_PARAMS* given) {
        return given != nullptr && (given->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0 &&
               is_per_thread<kNullIsPerThread>(given->hUploadStream);
    }
    Argument(CUDA_GRAPH_INSTANTIATE_PARAMS* given, CUstream own) : theirs(given), value(*given) {
        value.hUploadStream = own;
    }
    ~Argument() {
        value.hUploadStream = theirs->hUploadStream;
        *theirs = value;
    }
    Argument(const Argument&) = delete;
    Argument& operator=(const Argument&) = delete;
    CUDA_GRAPH_INSTANTIATE_PARAMS* get() { return &value; }
    CUDA_GRAPH_INSTANTIATE_PARAMS* theirs;
    CUDA_GRAPH_INSTANTIATE_PARAMS value;
};

template <bool kNullIsPerThread, class... Parameters>
[[gnu::noinline, gnu::cold]] CUresult
call_with_own(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real, Parameters... arguments) {
    CUstream own = nullptr;
    if ((Argument<kNullIsPerThread, Parameters>::means(arguments) || ...))
        if (const CUresult result = get_thread_stream(&own); result != CUDA_SUCCESS)
            return result;
    return own != nullptr ? real(Argument<kNullIsPerThread, Parameters>(arguments, own).get()...)
                          : real(arguments...);
}

// What stands in the way of a launch: two comparisons and a jump.
template <bool kNullIsPerThread, class... Parameters>
[[gnu::always_inline]] inline CUresult call(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real,
                                            Parameters... arguments) {
    const auto function = real.found();
    const bool means_own = (Argument<kNullIsPerThread, Parameters>::means(arguments) || ...);
    if (function != nullptr && !means_own) [[likely]]
        return function(arguments...);
    return call_with_own<kNullIsPerThread>(real, arguments...);
}

template <bool kNullIsPerThread, class... Parameters>
CUresult enter_and_call(RealFunction<CUresult(CUDAAPI*)(Parameters...)>& real,
                        Parameters... arguments) {
    const CUresult entered = enter_partition();
    return entered == CUDA_SUCCESS ? call<kNullIsPerThread>(real, arguments...) : entered;
}

} // namespace gcx::interpose
