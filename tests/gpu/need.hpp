// Ends a program with the name of the call that failed.
#pragma once

#include "raw.hpp"

#include <gcx.h>

#include <unistd.h>

#include <cstdio>

inline void need(CUresult result, const char* call) {
    if (result == CUDA_SUCCESS)
        return;
    std::fprintf(stderr, "%s: %s\n", call, raw::name_of(result));
    _exit(2);
}

inline void need(gcx_result result, const char* call) {
    if (result == GCX_SUCCESS)
        return;
    std::fprintf(stderr, "%s: %s: %s\n", call, gcx_result_name(result), gcx_last_error_message());
    _exit(2);
}

#define NEED(call) need(call, #call)
