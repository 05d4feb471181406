// gcx ps: the holds of all processes.
#include "cli/holds_view.hpp"
#include "cli/listing.hpp"
#include "cli/report.hpp"
#include "cli/text.hpp"

#include <algorithm>

namespace gcx::cli {

Report run_ps(const Arguments& arguments) {
    const auto folder = arguments.get("--folder");
    std::vector<std::string> warnings;
    std::vector<gcx_live_hold> holds;
    {
        const Warnings taken(warnings);
        holds = read_holds(folder ? folder->c_str() : nullptr);
    }
    const std::string place = folder ? *folder : holds_folder();
    Report report;
    report.text = holds_text(holds);
    if (report.text.empty())
        report.text =
            format("nobody holds SMs in %s. gcx exec does, and programs that ask for a hold\n",
                   visible(place).c_str());
    else
        report.text +=
            format("Holds of %s; those in other folders are not listed\n", visible(place).c_str());
    for (const std::string& warning : warnings)
        report.text += "warning: " + visible(warning) + "\n";
    Json told = Json::array();
    for (const std::string& warning : warnings)
        told.add(warning);
    report.json
        .set("simulated",
             std::any_of(holds.begin(), holds.end(),
                         [](const gcx_live_hold& hold) { return hold.simulated != 0; }))
        .set("folder", place)
        .set("holds", holds_json(holds))
        .set("warnings", std::move(told));
    return report;
}

} // namespace gcx::cli
