#include "isolation_bodies.hpp"

#include <unistd.h>

#include <cstdio>

namespace isolation {

void need(CUresult result, const char* call) {
    if (result == CUDA_SUCCESS)
        return;
    std::fprintf(stderr, "%s: %s\n", call, raw::name_of(result));
    _exit(2);
}

void need(gcx_result result, const char* call) {
    if (result == GCX_SUCCESS)
        return;
    std::fprintf(stderr, "%s: %s: %s\n", call, gcx_result_name(result), gcx_last_error_message());
    _exit(2);
}

bool finish(const Neighbour& n) {
    NEED(raw::cuStreamSynchronize(n.stream()));
    return true;
}

// Two blocks of 1024 threads are all that an SM has room for.
void fill(const Neighbour& n, CUstream stream) {
    constexpr uint64_t kFillNs = 300'000;
    NEED(raw::launch_spin(stream, kFillNs, 2 * n.sms, 1024));
}

constexpr unsigned kDefault = 0; // connections: the variable isn't set, which is 8
constexpr unsigned kMax = 32;

const std::vector<Row>& rows() {
    using enum Known;
    const auto branches = [](Branches how) {
        return [how](Neighbour& n) { return launch_branches(n, how); };
    };
    const auto streams = [](unsigned count) {
        return [count](Neighbour& n) { return waiting_streams(n, count); };
    };
    static const std::vector<Row> all = {
        {"nothing", holds, kMax, false, nothing},
        {"kernels that fill its SMs", holds, kMax, false, computing},
        {"cuMemAlloc and cuMemFree, 64 MiB", no, kMax, false, allocate_and_free},
        {"cuMemAlloc alone, 2 MiB", no, kMax, false, allocate_alone},
        {"cuMemFree alone, 2 MiB", no, kMax, false, free_alone},
        {"cuMemAllocAsync, pool gives back", no, kMax, false,
         [](Neighbour& n) { return stream_ordered(n, 0); }},
        {"cuMemAllocAsync, pool keeps", no, kMax, false,
         [](Neighbour& n) { return stream_ordered(n, UINT64_MAX); }},
        {"cuMemHostAlloc and cuMemFreeHost, 16 MiB", no, kMax, false, pinned},
        {"cuMemHostRegister, 32 MiB", no, kMax, false, registered},
        {"library loaded, first launch, unloaded", no, kMax, false, load_and_unload},
        {"first launches of loaded kernels", no, kMax, false, first_launches},
        {"kernels with ever more local memory", no, kMax, false, more_local_memory},
        {"copies from pageable memory", no, kMax, false, pageable_to_device},
        {"copies from pinned memory", no, kMax, false, pinned_to_device},
        {"copies to pinned memory", no, kMax, false, pinned_to_host},
        {"copies within the device", no, kMax, false, within_device},
        {"copies to a peer", no, kMax, false, to_a_peer},
        {"fills in its stream", no, kMax, false, fill_in_stream},
        {"fills in the default stream", no, kMax, false, fill_in_default_stream},
        {"kernels in the default stream", no, kMax, false, kernels_in_default_stream},
        {"cuCtxSynchronize", no, kMax, false, synchronize_context},
        {"graphs captured, 200 nodes", no, kMax, false, capture},
        {"graphs instantiated, 200 nodes", no, kMax, false, make_executables},
        {"graphs uploaded, 200 nodes", no, kMax, false, upload},
        {"linear graph of 60 kernels", holds, kDefault, false, launch_chain},
        {"15 branches that fill, first launch", holds, kDefault, false, branches({})},
        {"15 branches that fill, again", no, kDefault, false, branches({.again = true})},
        {"15 branches that fill, again, one root", no, kDefault, false,
         branches({.again = true, .one_root = true})},
        {"15 small branches, first launch", no, kDefault, false, branches({.small = true})},
        {"15 small branches, again", no, kDefault, false, branches({.small = true, .again = true})},
        {"15 small branches, again, one root", no, kDefault, false,
         branches({.small = true, .again = true, .one_root = true})},
        {"15 small branches, again, 32 queues", no, kMax, false,
         branches({.small = true, .again = true})},
        {"7 waiting streams, 8 queues", holds, kDefault, false, streams(7)},
        {"8 waiting streams, 8 queues", breaks, kDefault, false, streams(8)},
        {"16 waiting streams, 32 queues", holds, kMax, false, streams(16)},
        {"1 waiting stream, 1 queue", breaks, 1, false, streams(1)},
        {"events recorded and queried", no, kMax, false, events},
        {"events waited for, blocking", no, kMax, false, blocking_events},
        {"host callbacks", no, kMax, false, callbacks},
        {"streams made and destroyed", no, kMax, false, streams_made},
        {"gcx contexts, kept", holds, kMax, false, max_contexts},
        {"gcx leases resized", holds, kMax, false, resized_leases},
        {"cuGreenCtxCreate and cuGreenCtxDestroy", no, kMax, false, green_contexts},
        {"cuCtxCreate and cuCtxDestroy", no, kMax, false, plain_contexts},
        {"processes that start and end", no, kMax, false, other_processes},
        {"reads of 32 MiB, which L2 holds", no, kMax, true,
         [](Neighbour& n) { return reading(n, 32 * kMebibyte); }},
        {"reads of 256 MiB", no, kMax, true,
         [](Neighbour& n) { return reading(n, Neighbour::kBytes); }},
        {"copies within the device, next to reads", no, kMax, true, within_device},
    };
    return all;
}

} // namespace isolation
