// Batches of copies, prefetches and discards, which drivers refuse in NULL.
#include "targets.hpp"

namespace conformance {
namespace {

using Kind = StreamKind;

// The layout and the types of cuda.h 13.0, as older headers lack them.
struct CopyAttributes {
    int source_access_order; // 1: in the order of the stream
    CUmemLocation source;
    CUmemLocation target;
    unsigned flags;
};
using CopyBatch = CUresult(CUDAAPI*)(CUdeviceptr*, CUdeviceptr*, std::size_t*, std::size_t,
                                     CopyAttributes*, std::size_t*, std::size_t, CUstream);
using PrefetchBatch = CUresult(CUDAAPI*)(CUdeviceptr*, std::size_t*, std::size_t, CUmemLocation*,
                                         std::size_t*, std::size_t, unsigned long long, CUstream);
using DiscardBatch = CUresult(CUDAAPI*)(CUdeviceptr*, std::size_t*, std::size_t, unsigned long long,
                                        CUstream);

CUdeviceptr managed(std::size_t bytes) {
    CUdeviceptr memory = 0;
    MUST(cuMemAllocManaged, &memory, bytes, CU_MEM_ATTACH_GLOBAL);
    return memory;
}

CUmemLocation on_device() {
    CUmemLocation location{};
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = gpu.device;
    return location;
}

std::string suffixed(const char* name, const Target& target) {
    return std::string(name) + (target.per_thread ? "_ptsz" : "");
}

CUresult copy(const Target& target) {
    CUdeviceptr from = device_words();
    CUdeviceptr to = device_words();
    std::size_t bytes = 64;
    CopyAttributes attributes{};
    attributes.source_access_order = 1;
    std::size_t first = 0;
    return find_function<CopyBatch>(suffixed("cuMemcpyBatchAsync_v2", target).c_str())(
        &to, &from, &bytes, 1, &attributes, &first, 1, target.stream);
}

constexpr std::size_t kManaged = 2 << 20;

CUresult prefetch(const Target& target) {
    CUdeviceptr memory = managed(kManaged);
    std::size_t bytes = kManaged;
    CUmemLocation location = on_device();
    std::size_t first = 0;
    return find_function<PrefetchBatch>(suffixed("cuMemPrefetchBatchAsync", target).c_str())(
        &memory, &bytes, 1, &location, &first, 1, 0, target.stream);
}

CUresult discard(const Target& target) {
    CUdeviceptr memory = managed(kManaged);
    std::size_t bytes = kManaged;
    return find_function<DiscardBatch>(suffixed("cuMemDiscardBatchAsync", target).c_str())(
        &memory, &bytes, 1, 0, target.stream);
}

CUresult discard_and_prefetch(const Target& target) {
    CUdeviceptr memory = managed(kManaged);
    std::size_t bytes = kManaged;
    CUmemLocation location = on_device();
    std::size_t first = 0;
    return find_function<PrefetchBatch>(
        suffixed("cuMemDiscardAndPrefetchBatchAsync", target).c_str())(
        &memory, &bytes, 1, &location, &first, 1, 0, target.stream);
}

std::string in_streams(CUresult (*batch)(const Target&)) {
    std::string answer;
    for (const Kind kind : {Kind::kNull, Kind::kLegacy, Kind::kPerThread, Kind::kPtsz,
                            Kind::kBlocking, Kind::kNonBlocking}) {
        answer += std::string(answer.empty() ? "" : ", ") + name_of(kind) + " " +
                  name_of(batch(make_target(kind)));
        settle();
    }
    return answer;
}

} // namespace

void add_batches(Checks& checks) {
    checks.add_both("batch_copy", [] { return in_streams(copy); });
    checks.add_both("batch_prefetch", [] { return in_streams(prefetch); });
    checks.add_both("batch_discard", [] { return in_streams(discard); });
    checks.add_both("batch_discard_and_prefetch", [] { return in_streams(discard_and_prefetch); });
}

} // namespace conformance
