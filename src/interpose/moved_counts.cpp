// Inside gcx exec: the partition's SMs, before CUDA starts a context as well as after.
#include "interpose/counts.hpp"
#include "interpose/partition.hpp"
#include "interpose/real_driver.hpp"

namespace gcx::shim {
namespace {

// Whether the program asked, as one that uses gcx, for the counts of partitions of its own.
constinit std::atomic<bool> counts_own{false};

bool tells_device(Asker asker) {
    const exec::Told told = plan()->told;
    return told == exec::Told::kDevice || (told == exec::Told::kAuto && asker == Asker::kOldCublas);
}

} // namespace

CUresult find_told_count(CUdevice device, Asker asker, int* count) {
    Partition* partition = nullptr;
    const CUresult result = find_partition(device, &partition);
    *count = 0;
    if (partition == nullptr || tells_device(asker))
        return result;
    if (counts_own.load())
        *count = current_count(device);
    if (*count == 0)
        *count = static_cast<int>(partition->asked.sm_count);
    return result;
}

} // namespace gcx::shim

// As in the library that only counts. gcx stays with the facade here, by which its partitions nest.
extern "C" GCX_SHIM_EXPORT const char* gcx_count_partitions(const char*) {
    gcx::shim::counts_own.store(true);
    return nullptr;
}
