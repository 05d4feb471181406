// Kinds of streams, as launches reach them.
#pragma once

#include "driver.hpp"

namespace conformance {

enum class StreamKind {
    kNull,
    kLegacy,     // CU_STREAM_LEGACY
    kPtszLegacy, // CU_STREAM_LEGACY in a _ptsz function
    kBlocking,
    kPriority, // a blocking stream of the highest priority
    kNonBlocking,
    kPerThread, // CU_STREAM_PER_THREAD
    kPtsz,      // NULL in a _ptsz function
};

const char* name_of(StreamKind kind);

// A stream, and whether _ptsz functions are called with it.
struct Target {
    CUstream stream = nullptr;
    bool per_thread = false;
};

// Creates the stream in the current context if the kind is of created streams.
Target make_target(StreamKind kind);
CUstream make_stream(StreamKind kind);
CUstream blocking_stream();
CUstream non_blocking_stream();

// A function with a stream, or its _ptsz variant.
#define CU_AT(target, symbol) CU_LIKE(symbol, (target).per_thread ? #symbol "_ptsz" : #symbol)

CUresult store(const Target& target, CUdeviceptr to, uint32_t value);
CUresult load(const Target& target, CUdeviceptr to, CUdeviceptr from);

// The graph of one launch: load, or store after a slow while.
CUgraphExec load_graph(CUdeviceptr to, CUdeviceptr from);
CUgraphExec store_graph(CUdeviceptr to, uint32_t value);

} // namespace conformance
