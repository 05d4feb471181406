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
constexpr unsigned kMost = 32;

const std::vector<Row>& rows() {
    using enum Known;
    const auto branches = [](Branches how) {
        return [how](Neighbour& n) { return launch_branches(n, how); };
    };
    const auto streams = [](unsigned count) {
        return [count](Neighbour& n) { return waiting_streams(n, count); };
    };
    static const std::vector<Row> all = {
        {"nothing", holds, kMost, false, nothing},
        {"kernels that fill its SMs", holds, kMost, false, computing},
        {"cuMemAlloc and cuMemFree, 64 MiB", no, kMost, false, allocate_and_free},
        {"cuMemAlloc alone, 2 MiB", no, kMost, false, allocate_alone},
        {"cuMemFree alone, 2 MiB", no, kMost, false, free_alone},
        {"cuMemAllocAsync, pool gives back", no, kMost, false,
         [](Neighbour& n) { return stream_ordered(n, 0); }},
        {"cuMemAllocAsync, pool keeps", no, kMost, false,
         [](Neighbour& n) { return stream_ordered(n, UINT64_MAX); }},
        {"cuMemHostAlloc and cuMemFreeHost, 16 MiB", no, kMost, false, pinned},
        {"cuMemHostRegister, 32 MiB", no, kMost, false, registered},
        {"library loaded, first launch, unloaded", no, kMost, false, load_and_unload},
        {"first launches of loaded kernels", no, kMost, false, first_launches},
        {"kernels with ever more local memory", no, kMost, false, more_local_memory},
        {"copies from pageable memory", no, kMost, false, pageable_to_device},
        {"copies from pinned memory", no, kMost, false, pinned_to_device},
        {"copies to pinned memory", no, kMost, false, pinned_to_host},
        {"copies within the device", no, kMost, false, within_device},
        {"copies to a peer", no, kMost, false, to_a_peer},
        {"fills in its stream", no, kMost, false, fill_in_stream},
        {"fills in the default stream", no, kMost, false, fill_in_default_stream},
        {"kernels in the default stream", no, kMost, false, kernels_in_default_stream},
        {"cuCtxSynchronize", no, kMost, false, synchronize_context},
        {"graphs captured, 200 nodes", no, kMost, false, capture},
        {"graphs instantiated, 200 nodes", no, kMost, false, make_executables},
        {"graphs uploaded, 200 nodes", no, kMost, false, upload},
        {"linear graph of 60 kernels", holds, kDefault, false, launch_chain},
        {"15 branches that fill, first launch", holds, kDefault, false, branches({})},
        {"15 branches that fill, again", no, kDefault, false, branches({.again = true})},
        {"15 branches that fill, again, one root", no, kDefault, false,
         branches({.again = true, .one_root = true})},
        {"15 small branches, first launch", no, kDefault, false, branches({.small = true})},
        {"15 small branches, again", no, kDefault, false, branches({.small = true, .again = true})},
        {"15 small branches, again, one root", no, kDefault, false,
         branches({.small = true, .again = true, .one_root = true})},
        {"15 small branches, again, 32 queues", no, kMost, false,
         branches({.small = true, .again = true})},
        {"7 waiting streams, 8 queues", holds, kDefault, false, streams(7)},
        {"8 waiting streams, 8 queues", breaks, kDefault, false, streams(8)},
        {"16 waiting streams, 32 queues", holds, kMost, false, streams(16)},
        {"1 waiting stream, 1 queue", breaks, 1, false, streams(1)},
        {"events recorded and queried", no, kMost, false, events},
        {"events waited for, blocking", no, kMost, false, blocking_events},
        {"host callbacks", no, kMost, false, callbacks},
        {"streams made and destroyed", no, kMost, false, streams_made},
        {"gcx contexts, kept", holds, kMost, false, max_contexts},
        {"gcx leases resized", holds, kMost, false, resized_leases},
        {"cuGreenCtxCreate and cuGreenCtxDestroy", no, kMost, false, green_contexts},
        {"cuCtxCreate and cuCtxDestroy", no, kMost, false, plain_contexts},
        {"processes that start and end", no, kMost, false, other_processes},
        {"reads of 32 MiB, which L2 holds", no, kMost, true,
         [](Neighbour& n) { return reading(n, 32 * kMebibyte); }},
        {"reads of 256 MiB", no, kMost, true,
         [](Neighbour& n) { return reading(n, Neighbour::kBytes); }},
        {"copies within the device, beside reads", no, kMost, true, within_device},
    };
    return all;
}

} // namespace isolation
