// gcx plan: what a split would give.
#include "cli/checked.hpp"
#include "cli/chosen_driver.hpp"
#include "cli/layout.hpp"
#include "cli/report.hpp"
#include "cli/text.hpp"

namespace gcx::cli {

Report run_plan(const Arguments& arguments) {
    const Layout layout = read_layout(arguments);
    const gcx_driver_info driver = open_driver(arguments);
    const gcx_resource whole = device_sms(layout.device);
    std::vector<uint32_t> sm_counts(layout.requests.size());
    uint32_t remainder = 0;
    check(gcx_sm_plan(&whole, layout.requests.data(), static_cast<uint32_t>(layout.requests.size()),
                      layout.split_flags(), sm_counts.data(), &remainder));

    Report report;
    report.json = report_start(driver);
    set_layout(report.json, layout);
    report.text = banner(driver) + layout_line(layout) + "partition  asked  SMs\n";
    Json groups = Json::array();
    for (std::size_t i = 0; i < sm_counts.size(); i++) {
        const uint32_t asked = layout.requests[i].sm_count;
        groups.add(
            Json::object().set("requested", count_json(asked)).set("sm_count", sm_counts[i]));
        report.text +=
            format("%-9s  %5s  %3u%s\n", partition_name(i).c_str(), count_text(asked).c_str(),
                   sm_counts[i], asked != GCX_REST && sm_counts[i] != asked ? "  rounded up" : "");
    }
    report.text += format("remainder         %3u\n", remainder);
    report.json.set("groups", std::move(groups)).set("remainder", remainder);
    return report;
}

} // namespace gcx::cli
