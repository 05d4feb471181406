#include "cli/sm_map.hpp"

#include "cli/output.hpp"

#include <gcx.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace gcx::cli {

std::string painted(const std::string& text, int owner, bool colours) {
    constexpr std::array kBackgrounds = {46, 43, 42, 45, 47, 104, 103, 102, 105, 106};
    if (!colours || owner == SmMap::kNone || owner == SmMap::kOutside)
        return text;
    if (owner == SmMap::kSeveral)
        return "\033[97;41m" + text + "\033[0m";
    const auto index = static_cast<std::size_t>(owner) % kBackgrounds.size();
    return format("\033[30;%dm%s\033[0m", kBackgrounds[index], text.c_str());
}

std::vector<int> SmMap::owners() const {
    // A driver may number SMs beyond the device's count; these are shown too.
    uint32_t cells = sm_count;
    for (const MapPartition& partition : partitions) {
        if (!partition.seen.empty())
            cells = std::max(cells, partition.seen.back() + 1);
    }
    if (!within.empty())
        cells = std::max(cells, within.back() + 1);
    std::vector<int> all(cells, within.empty() ? kNone : kOutside);
    for (const uint32_t sm : within)
        all[sm] = kNone;
    for (std::size_t i = 0; i < partitions.size(); i++) {
        for (const uint32_t sm : partitions[i].seen)
            all[sm] = all[sm] == kNone || all[sm] == kOutside ? static_cast<int>(i) : kSeveral;
    }
    return all;
}

std::string SmMap::legend(const MapPartition& partition) {
    std::string text = count_of(partition.sm_count, "SM");
    if (partition.requested != GCX_REST && partition.requested != partition.sm_count)
        text += format(" (asked for %u)", partition.requested);
    if (partition.seen.size() == partition.sm_count)
        return text + ", all seen";
    return text + format(", %zu seen", partition.seen.size());
}

std::string SmMap::cell_text(int owner) const {
    if (owner == kNone)
        return ".";
    if (owner == kOutside)
        return "-";
    return owner == kSeveral ? "!" : partitions[static_cast<std::size_t>(owner)].name;
}

std::vector<std::pair<int, std::string>> SmMap::unclear_legends() const {
    const std::vector<int> all = owners();
    std::vector<std::pair<int, std::string>> legends;
    for (const auto& [kind, where] :
         {std::pair(kNone, "no"), std::pair(kSeveral, "more than one")}) {
        const auto cells = static_cast<uint64_t>(std::count(all.begin(), all.end(), kind));
        if (cells != 0)
            legends.emplace_back(kind, count_of(cells, "SM") + ", seen in " + where + " partition");
    }
    if (std::ranges::find(all, kOutside) != all.end())
        legends.emplace_back(kOutside, "outside of the partition of gcx exec");
    return legends;
}

std::string terminal_map(const SmMap& map, bool colours) {
    const std::vector<int> all = map.owners();
    std::size_t width = 1;
    for (const MapPartition& partition : map.partitions)
        width = std::max(width, partition.name.size());
    const auto cell = [&](int owner) {
        return painted(format(" %*s", static_cast<int>(width), map.cell_text(owner).c_str()), owner,
                       colours);
    };
    std::string text;
    for (std::size_t row = 0; row < all.size(); row += kMapColumns) {
        text += format("  SM %4zu ", row);
        for (std::size_t sm = row; sm < std::min(row + kMapColumns, all.size()); sm++)
            text += cell(all[sm]);
        text += "\n";
    }
    for (std::size_t i = 0; i < map.partitions.size(); i++) {
        const MapPartition& partition = map.partitions[i];
        text += "  " + cell(static_cast<int>(i)) + "  " + SmMap::legend(partition) + ": " +
                ranges(partition.seen) + "\n";
    }
    for (const auto& [owner, legend] : map.unclear_legends())
        text += "  " + cell(owner) + "  " + legend + "\n";
    return text;
}

// The SVG picture.
namespace {

constexpr std::size_t kMargin = 24;
constexpr std::size_t kTop = 74;
constexpr std::size_t kCell = 34;
constexpr std::size_t kInner = kCell - 4;

// Has light and dark colours, of which the viewer chooses.
constexpr std::string_view kStyle =
    "<style>\n"
    "svg { font-family: system-ui, sans-serif; font-size: 14px }\n"
    ".paper { fill: #ffffff } text { fill: #1c1c1c }\n"
    ".title { font-size: 18px; font-weight: 600 } .note { fill: #5a5a5a }\n"
    ".free { fill: #dcdcdc } .several { fill: #d00000 }\n"
    ".name, .id, .free-id { text-anchor: middle }\n"
    ".name { fill: #ffffff; font-size: 12px; font-weight: 600 }\n"
    ".id { fill: #ffffff; font-size: 9px } .free-id { fill: #5a5a5a; font-size: 9px }\n"
    "@media (prefers-color-scheme: dark) {\n"
    ".paper { fill: #16181c } text { fill: #ececec } .note { fill: #a8a8a8 }\n"
    ".free { fill: #3a3d42 } .free-id { fill: #b8b8b8 } .name, .id { fill: #ffffff }\n"
    "}\n"
    "</style>\n";

std::string colour_of(std::size_t partition) {
    // White letters are readable on each, and colour-blind viewers can tell them apart.
    constexpr std::array<std::string_view, 6> kColours = {"#0067a5", "#b34700", "#00785a",
                                                          "#9c4079", "#6b5b00", "#4b4fa8"};
    if (partition < kColours.size())
        return std::string(kColours[partition]);
    // Further colours turn the hue by the golden angle, so that neighbours differ.
    return format("hsl(%zu,55%%,36%%)", partition * 137 % 360);
}

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else
            out += c;
    }
    return out;
}

// Returns the attributes that colour a cell.
std::string paint(int owner) {
    if (owner == SmMap::kNone)
        return "class=\"free\"";
    if (owner == SmMap::kOutside)
        return "class=\"free\" opacity=\"0.3\"";
    if (owner == SmMap::kSeveral)
        return "class=\"several\"";
    return format("fill=\"%s\"", colour_of(static_cast<std::size_t>(owner)).c_str());
}

// Returns the partitions that an SM was seen in, "A and B".
std::string names_at(const SmMap& map, std::size_t sm) {
    std::string names;
    for (const MapPartition& partition : map.partitions) {
        if (std::binary_search(partition.seen.begin(), partition.seen.end(), sm))
            (names += names.empty() ? "" : " and ") += partition.name;
    }
    return names;
}

std::string cell(const SmMap& map, std::size_t sm, int owner) {
    const std::size_t x = kMargin + sm % kMapColumns * kCell;
    const std::size_t y = kTop + sm / kMapColumns * kCell;
    const std::size_t middle = x + kInner / 2;
    const bool free = owner == SmMap::kNone || owner == SmMap::kOutside;
    const std::string name = free ? "" : map.cell_text(owner);
    std::string text =
        format("<g class=\"sm\" data-sm=\"%zu\" data-partition=\"%s\">"
               "<title>SM %zu%s%s</title>"
               "<rect %s x=\"%zu\" y=\"%zu\" width=\"%zu\" height=\"%zu\" rx=\"4\"/>",
               sm, name.c_str(), sm, free ? "" : ": ", names_at(map, sm).c_str(),
               paint(owner).c_str(), x, y, kInner, kInner);
    if (!free)
        text += format("<text class=\"name\" x=\"%zu\" y=\"%zu\">%s</text>", middle, y + 14,
                       name.c_str());
    text += format("<text class=\"%s\" x=\"%zu\" y=\"%zu\">%zu</text></g>\n",
                   free ? "free-id" : "id", middle, y + 25, sm);
    return text;
}

std::string key(std::size_t y, int owner, const std::string& text) {
    return format("<rect %s x=\"%zu\" y=\"%zu\" width=\"16\" height=\"16\" rx=\"3\"/>"
                  "<text x=\"%zu\" y=\"%zu\">%s</text>\n",
                  paint(owner).c_str(), kMargin, y - 13, kMargin + 26, y, escaped(text).c_str());
}

// Draws the legend and moves y below it.
std::string legend(const SmMap& map, std::size_t& y) {
    constexpr std::size_t kLine = 24;
    std::string text;
    for (std::size_t i = 0; i < map.partitions.size(); i++, y += kLine)
        text += key(y, static_cast<int>(i),
                    map.partitions[i].name + ": " + SmMap::legend(map.partitions[i]));
    for (const auto& [owner, words] : map.unclear_legends()) {
        text += key(y, owner, words);
        y += kLine;
    }
    return text;
}

} // namespace

std::string svg_map(const SmMap& map) {
    const std::vector<int> all = map.owners();
    std::string body;
    for (std::size_t sm = 0; sm < all.size(); sm++)
        body += cell(map, sm, all[sm]);
    const std::size_t rows = (all.size() + kMapColumns - 1) / kMapColumns;
    std::size_t bottom = kTop + rows * kCell + 30;
    body += legend(map, bottom);

    const std::size_t width = 2 * kMargin + kMapColumns * kCell;
    std::string svg = format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" "
                             "height=\"%zu\" viewBox=\"0 0 %zu %zu\" role=\"img\">\n",
                             width, bottom, width, bottom);
    svg += kStyle;
    svg += "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n";
    svg += format("<text class=\"title\" x=\"%zu\" y=\"34\">%s</text>\n", kMargin,
                  escaped(map.title).c_str());
    svg += format("<text class=\"note\" x=\"%zu\" y=\"56\">%s</text>\n", kMargin,
                  escaped(map.device).c_str());
    return svg + body + "</svg>\n";
}

} // namespace gcx::cli
