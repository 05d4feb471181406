// A picture of a device's SMs, coloured by partition: for the terminal and as SVG. It shows what
// was seen and nothing else. The Python package draws the same, in the same words; a test there
// compares.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gcx::cli {

struct MapPartition {
    std::string name;
    uint32_t asked = 0; // SMs, or GCX_REST
    uint32_t sm_count = 0;
    std::vector<uint32_t> seen; // ids of its SMs, ascending
};

struct SmMap {
    std::string title;  // "2 partitions of 132 SMs: as promised"
    std::string device; // "NVIDIA H100 80GB HBM3, CUDA 13.0"
    uint32_t sm_count = 0;
    std::vector<MapPartition> partitions;
    std::vector<uint32_t> within; // the SMs that the process has, ascending; empty: the device's

    // Instead of a partition's index.
    static constexpr int kNobody = -1;
    static constexpr int kSeveral = -2; // seen in more than one partition
    static constexpr int kOutside = -3; // seen in none, and not among those that the process has

    // The index of each SM's partition.
    std::vector<int> owners() const;

    // "108 SMs, all seen".
    static std::string legend(const MapPartition& partition);
    // Of what is no single partition's, as far as there is any: "24 SMs, seen in no partition".
    std::vector<std::pair<int, std::string>> unclear_legends() const;

    // The letters in an owner's cells.
    std::string cell_text(int owner) const;
};

// SMs in a row. A GPC's SMs lie in steps of 16 on an H100, so that rows of 16 show them as columns.
inline constexpr std::size_t kMapColumns = 16;

// A cell as an owner's: black on one of the terminal's background colours; white on red for
// several.
std::string painted(const std::string& text, int owner, bool colours);

// A grid of one cell for each SM, and a legend. colours: with the terminal's.
std::string terminal_map(const SmMap& map, bool colours);

// A picture of its own, without outside references.
std::string svg_map(const SmMap& map);

// Whether standard output wants colours: it is a terminal, no dumb one, and NO_COLOR isn't set.
bool wants_colours();

} // namespace gcx::cli
