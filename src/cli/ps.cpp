// gcx ps: the reservations of all processes.
#include "cli/listing.hpp"
#include "cli/report.hpp"
#include "cli/reservations_view.hpp"
#include "cli/text.hpp"

#include <algorithm>

namespace gcx::cli {

Report run_ps(const Arguments& arguments) {
    const auto folder = arguments.get("--folder");
    std::vector<std::string> warnings;
    std::vector<gcx_live_reservation> reservations;
    {
        const Warnings taken(warnings);
        reservations = read_reservations(folder ? folder->c_str() : nullptr);
    }
    const std::string place = folder ? *folder : reservations_folder();
    Report report;
    report.text = reservations_text(reservations);
    if (report.text.empty())
        report.text = format(
            "nobody holds SMs in %s. gcx exec does, and programs that ask for a reservation\n",
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
        .set("simulated", std::any_of(reservations.begin(), reservations.end(),
                                      [](const gcx_live_reservation& reservation) {
                                          return reservation.simulated != 0;
                                      }))
        .set("folder", place)
        .set("reservations", reservations_json(reservations))
        .set("warnings", std::move(told));
    return report;
}

} // namespace gcx::cli
