// Inside gcx exec: the partition's SMs, before CUDA starts a context as well as after.
#include "shim/counts.hpp"
#include "shim/partition.hpp"
#include "shim/real.hpp"

namespace gcx::shim {
namespace {

// Whether the program asked, as one that uses gcx, for the counts of partitions of its own.
constinit std::atomic<bool> counts_own{false};

} // namespace

int told_count(CUdevice device) {
    const Partition* const partition = partition_of(device);
    if (partition == nullptr || plan()->told != exec::Told::kPartition)
        return 0;
    const int own = counts_own.load() ? current_count(device) : 0;
    return own != 0 ? own : static_cast<int>(partition->asked.sm_count);
}

} // namespace gcx::shim

// As in the library that only counts. gcx stays with the facade here, by which its partitions nest.
extern "C" GCX_SHIM_EXPORT const char* gcx_count_partitions(const char*) {
    gcx::shim::counts_own.store(true);
    return nullptr;
}
