#include "sim/machine.hpp"

#include <sys/mman.h>

#include <atomic>

namespace gcx::sim {

Handle new_handle() {
    // Above the addresses that a program maps and below the kernel's half.
    static std::atomic<Handle> next{0x0000'5151'0000'0000};
    return next.fetch_add(0x40);
}

Machine::~Machine() {
    for (const auto& [address, allocation] : allocations)
        if (allocation.mapped != 0)
            munmap(allocation.data, allocation.mapped);
}

Device* Machine::device(CUdevice ordinal) {
    if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= devices.size())
        return nullptr;
    return devices[static_cast<std::size_t>(ordinal)].get();
}

} // namespace gcx::sim
