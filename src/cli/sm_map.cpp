#include "cli/sm_map.hpp"

#include "cli/text.hpp"

#include <gcx.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace gcx::cli {

std::string painted(const std::string& text, int owner, bool colours) {
    constexpr std::array kBackgrounds = {46, 43, 42, 45, 47, 104, 103, 102, 105, 106};
    if (!colours || owner == SmMap::kNobody || owner == SmMap::kOutside)
        return text;
    if (owner == SmMap::kSeveral)
        return "\033[97;41m" + text + "\033[0m";
    const auto index = static_cast<std::size_t>(owner) % kBackgrounds.size();
    return format("\033[30;%dm%s\033[0m", kBackgrounds[index], text.c_str());
}

std::vector<int> SmMap::owners() const {
    // A driver may number SMs beyond the device's count; they are shown too.
    uint32_t cells = sm_count;
    for (const MapPartition& partition : partitions) {
        if (!partition.seen.empty())
            cells = std::max(cells, partition.seen.back() + 1);
    }
    if (!within.empty())
        cells = std::max(cells, within.back() + 1);
    std::vector<int> owner(cells, within.empty() ? kNobody : kOutside);
    for (const uint32_t sm : within)
        owner[sm] = kNobody;
    for (std::size_t i = 0; i < partitions.size(); i++) {
        for (const uint32_t sm : partitions[i].seen)
            owner[sm] =
                owner[sm] == kNobody || owner[sm] == kOutside ? static_cast<int>(i) : kSeveral;
    }
    return owner;
}

std::string SmMap::legend(const MapPartition& partition) {
    std::string text = count_of(partition.sm_count, "SM");
    if (partition.asked != GCX_REST && partition.asked != partition.sm_count)
        text += format(" (asked for %u)", partition.asked);
    if (partition.seen.size() == partition.sm_count)
        return text + ", all seen";
    return text + format(", %zu seen", partition.seen.size());
}

std::string SmMap::cell_text(int owner) const {
    if (owner == kNobody)
        return ".";
    if (owner == kOutside)
        return "-";
    return owner == kSeveral ? "!" : partitions[static_cast<std::size_t>(owner)].name;
}

std::vector<std::pair<int, std::string>> SmMap::unclear_legends() const {
    const std::vector<int> owner = owners();
    std::vector<std::pair<int, std::string>> legends;
    for (const auto& [who, where] :
         {std::pair(kNobody, "no"), std::pair(kSeveral, "more than one")}) {
        const auto cells = static_cast<uint64_t>(std::count(owner.begin(), owner.end(), who));
        if (cells != 0)
            legends.emplace_back(who, count_of(cells, "SM") + ", seen in " + where + " partition");
    }
    if (std::find(owner.begin(), owner.end(), kOutside) != owner.end())
        legends.emplace_back(kOutside, "outside of the partition of gcx exec");
    return legends;
}

std::string terminal_map(const SmMap& map, bool colours) {
    const std::vector<int> owner = map.owners();
    std::size_t width = 1;
    for (const MapPartition& partition : map.partitions)
        width = std::max(width, partition.name.size());
    const auto cell = [&](int who) {
        return painted(format(" %*s", static_cast<int>(width), map.cell_text(who).c_str()), who,
                       colours);
    };
    std::string text;
    for (std::size_t row = 0; row < owner.size(); row += kMapColumns) {
        text += format("  SM %4zu ", row);
        for (std::size_t sm = row; sm < std::min(row + kMapColumns, owner.size()); sm++)
            text += cell(owner[sm]);
        text += "\n";
    }
    for (std::size_t i = 0; i < map.partitions.size(); i++) {
        const MapPartition& partition = map.partitions[i];
        text += "  " + cell(static_cast<int>(i)) + "  " + SmMap::legend(partition) + ": " +
                ranges(partition.seen) + "\n";
    }
    for (const auto& [who, legend] : map.unclear_legends())
        text += "  " + cell(who) + "  " + legend + "\n";
    return text;
}

bool wants_colours() {
    const char* const refused = std::getenv("NO_COLOR");
    const char* const terminal = std::getenv("TERM");
    return isatty(STDOUT_FILENO) != 0 && (refused == nullptr || *refused == '\0') &&
           terminal != nullptr && std::string_view(terminal) != "dumb";
}

} // namespace gcx::cli
