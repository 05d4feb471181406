#include "sim/profiles/profile.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>

namespace gcx::sim {
namespace {

constexpr long long kMostInt = std::numeric_limits<int>::max(); // of a device attribute

// The least values let the simulation's own kernels run: blocks of 1024 threads, 32 registers a
// thread, 48 KiB of shared memory.
constexpr NumberField kNumberFields[] = {
    {"clock_khz", 1'500'000, 0, kMostInt},
    {"memory_clock_khz", 1'500'000, 0, kMostInt},
    {"memory_bus_bits", 384, 0, kMostInt},
    {"l2_bytes", 33'554'432, 0, kMostInt},
    {"threads_per_sm", 2048, 1024, 65'536},
    {"blocks_per_sm", 32, 1, 1024},
    {"registers_per_sm", 65'536, 32'768, 16'777'216},
    {"shared_memory_per_sm", 102'400, 65'536, 16'777'216},
    {"shared_memory_per_block_optin", 101'376, 49'152, 16'777'216},
    {"max_cluster_size", 8, 1, 32},
    {"integrated", 0, 0, 1},
    {"pci_bus", -1, 0, 255}, // -1: by the device's place in the machine
    {"pageable_memory_access", 0, 0, 1},
};

} // namespace

const NumberField* find_number_field(std::string_view name) {
    const auto* const found = std::find_if(std::begin(kNumberFields), std::end(kNumberFields),
                                           [&](const auto& row) { return row.name == name; });
    return found == std::end(kNumberFields) ? nullptr : found;
}

long long Profile::number(std::string_view field) const {
    const auto found = given.find(field);
    if (found != given.end())
        return found->second;
    const NumberField* const known = find_number_field(field);
    assert(known != nullptr);
    return known->otherwise;
}

SmSet Profile::all() const {
    SmSet set;
    for (unsigned sm = 0; sm < sm_count; sm++)
        set.set(sm);
    return set;
}

} // namespace gcx::sim
