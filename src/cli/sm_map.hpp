// A map of a device's SMs, coloured by the partitions that they were seen in: for the terminal and
// as SVG. The Python package draws the same map with the same texts; a test there compares them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gcx::cli {

struct MapPartition {
    std::string name;
    uint32_t requested = 0; // SMs, or GCX_REST
    uint32_t sm_count = 0;
    std::vector<uint32_t> seen; // SM numbers, ascending
};

struct SmMap {
    std::string title;  // "2 partitions of 132 SMs: as promised"
    std::string device; // "NVIDIA H100 80GB HBM3, CUDA 13.0"
    uint32_t sm_count = 0;
    std::vector<MapPartition> partitions;
    std::vector<uint32_t> within; // the SMs that the process has, ascending; empty for all

    // Values instead of a partition's index.
    static constexpr int kNone = -1;    // seen in no partition
    static constexpr int kSeveral = -2; // seen in more than one partition
    static constexpr int kOutside = -3; // not among the SMs that the process has

    // Returns the index of each SM's partition.
    std::vector<int> owners() const;

    // "108 SMs, all seen".
    static std::string legend(const MapPartition& partition);
    // Returns legends of the cells that belong to no single partition: "24 SMs, seen in no
    // partition".
    std::vector<std::pair<int, std::string>> unclear_legends() const;

    // Returns the letters in an owner's cells.
    std::string cell_text(int owner) const;
};

// SMs in a row. On an H100 the SMs of a GPC are 16 apart, so that rows of 16 show GPCs as columns.
inline constexpr std::size_t kMapColumns = 16;

// Colours a cell for the terminal: black on the owner's colour; white on red for several owners.
std::string painted(const std::string& text, int owner, bool colours);

// Returns a grid with one cell for each SM, and a legend.
std::string terminal_map(const SmMap& map, bool colours);

// Returns an SVG picture, which refers to no other file.
std::string svg_map(const SmMap& map);

} // namespace gcx::cli
