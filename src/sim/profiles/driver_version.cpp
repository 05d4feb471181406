#include "sim/profiles/driver_version.hpp"

#include <algorithm>
#include <iterator>

namespace gcx::sim {

const DriverVersion kDriverVersions[] = {
    {"12.2", 12020, "too old: has no green contexts"},
    {"12.4", 12040, "the first with green contexts; no cuGreenCtxStreamCreate"},
    {"12.5", 12050, "adds cuGreenCtxStreamCreate"},
    {"12.8", 12080, "the last of CUDA 12 here; SM resources tell their count alone"},
    {"13.0", 13000,
     "as recorded on driver 580.159.04; adds cuGreenCtxGetId and the SM resource's fields"},
    {"13.1", 13010, "by the header's text: adds cuDevSmResourceSplit and workqueues"},
    {"13.4", 13040, "by the header's text: adds locality domains"},
    {"13.5", 13050, "by the header's text: the newest that is known"},
};
const std::size_t kDriverVersionCount = std::size(kDriverVersions);

const DriverVersion* find_driver_version(std::string_view name) {
    const auto* const found = std::ranges::find(kDriverVersions, name, &DriverVersion::name);
    return found == std::end(kDriverVersions) ? nullptr : found;
}

} // namespace gcx::sim
