// A device's SMs as the atoms of each family.
#pragma once

#include "cli/layout.hpp"

#include <gcx.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace gcx::cli {

struct Family {
    gcx_resource all{};
    gcx_resource_info info{};
    std::vector<gcx_resource> atoms;
    std::vector<uint32_t> sm_counts; // of each atom
};

// Nothing if the device can't be divided so: clusters came with compute capability 9.0, and a small
// slice of a GPU has too few SMs for large ones. The reason is gcx's last message.
std::optional<Family> find_family(int32_t device, const FamilyName& family);

// How many atoms the driver gives as equal groups: all, or all but the odd last one.
std::size_t equal_atoms(const Family& family);

} // namespace gcx::cli
