// A picture of a device's SMs, coloured by partition: for the terminal and as SVG.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gcx::cli {

struct MapPartition {
    std::string name;
    std::string asked; // "108", "rest"
    uint32_t sm_count = 0;
    std::vector<uint32_t> seen; // ids of its SMs, ascending
};

struct SmMap {
    std::string title;  // "132 SMs in 2 partitions"
    std::string device; // "NVIDIA H100 80GB HBM3, CUDA 13.0"
    uint32_t sm_count = 0;
    uint32_t remainder = 0;
    std::vector<MapPartition> partitions;

    // Instead of a partition's index.
    static constexpr int kNobody = -1;
    static constexpr int kSeveral = -2; // seen in more than one partition

    // The index of each SM's partition.
    std::vector<int> owners() const;

    // "108 SMs, all seen", of a partition; "24 SMs in no partition".
    static std::string legend(const MapPartition& partition);
    std::string remainder_legend() const;

    // The letters in an owner's cells.
    std::string cell_text(int owner) const;
};

// SMs in a row. A GPC's SMs lie in steps of 16 on an H100, so that rows of 16 show them as columns.
inline constexpr std::size_t kMapColumns = 16;

// A grid of one cell for each SM, and a legend. colours: with the terminal's.
std::string terminal_map(const SmMap& map, bool colours);

// A picture of its own, without outside references.
std::string svg_map(const SmMap& map);

// Whether standard output wants colours: it is a terminal, no dumb one, and NO_COLOR isn't set.
bool wants_colours();

} // namespace gcx::cli
