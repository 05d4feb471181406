// What gcx top reads of other processes, and the metrics that it makes of that.
#pragma once

#include "cli/ps.hpp"

#include <gcx.hpp>

#include <string>
#include <vector>

namespace gcx::cli {

struct Published {
    std::vector<gcx_published_process> processes;
    std::vector<gcx_published_lease> leases;
    Reservations reservations;
    std::vector<std::string> warnings; // of files that were not read
};

// Returns the exposition in the text format of OpenMetrics 1.0. It has only types and names that
// Prometheus's own text format has too, which textfile collectors read.
std::string metrics_text(const Published& published);

} // namespace gcx::cli
