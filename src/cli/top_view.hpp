// What gcx top shows: the published leases of the user's processes and the reservations of all, as
// text and as JSON.
#pragma once

#include "cli/json.hpp"

#include <gcx.h>

#include <cstddef>
#include <string>
#include <vector>

namespace gcx::cli {

struct Published {
    std::vector<gcx_published_process> processes;
    std::vector<gcx_published_lease> leases;
    std::vector<gcx_live_reservation> reservations;
    std::vector<std::string> warnings; // of files that were not read
};
Published read_published();

Json published_json(const Published& published);
// columns: of the terminal, for the maps.
std::string published_text(const Published& published, std::size_t columns, bool colours);

} // namespace gcx::cli
