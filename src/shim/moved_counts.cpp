// Inside gcx exec: the partition's SMs, before CUDA starts a context as well as after.
#include "shim/counts.hpp"
#include "shim/partition.hpp"

int gcx::shim::told_count(CUdevice device) {
    const Partition* const partition = partition_of(device);
    return partition != nullptr && plan()->told == exec::Told::kPartition
               ? static_cast<int>(partition->asked.sm_count)
               : 0;
}
