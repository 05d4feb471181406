// gcx top: the leases of the processes that publish them.
#include "cli/live.hpp"
#include "cli/report.hpp"
#include "cli/sm_map.hpp"
#include "cli/text.hpp"
#include "cli/top_view.hpp"

namespace gcx::cli {
namespace {

constexpr std::size_t kColumns = 100; // where there is no terminal

std::string frame(const Screen& screen, unsigned interval_ms, bool colours) {
    return format("gcx top: every %u s; q ends it\n", interval_ms / 1000) +
           published_text(read_published(), screen.columns, colours);
}

} // namespace

Report run_top(const Arguments& arguments) {
    constexpr uint32_t kMostSeconds = 3600;
    const uint32_t seconds = arguments.number("--interval", 1, kMostSeconds, 1);
    const bool once = arguments.has("--once") || arguments.has("--json");
    const bool colours = wants_colours();
    Report report;
    if (!once && can_show_live()) {
        const unsigned interval = seconds * 1000;
        report.live =
            Live{interval, [=](const Screen& screen) { return frame(screen, interval, colours); }};
        return report;
    }
    const Published published = read_published();
    report.json = published_json(published);
    report.text = published_text(published, kColumns, colours);
    return report;
}

} // namespace gcx::cli
