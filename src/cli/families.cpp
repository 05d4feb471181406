#include "cli/families.hpp"

#include "cli/checked.hpp"

namespace gcx::cli {

std::optional<Family> find_family(int32_t device, const FamilyName& family) {
    const gcx_resource whole = device_sms(device);
    // One group of all that there is: the whole device, as this family.
    const gcx_sm_request everything{.sm_count = GCX_REST};
    Family result;
    const gcx_result found =
        gcx_sm_split(&whole, &everything, 1, family.split_flags, &result.all, nullptr);
    if (found == GCX_ERROR_NOT_SUPPORTED || found == GCX_ERROR_INVALID_RESOURCE_CONFIGURATION)
        return std::nullopt;
    check(found);
    result.info = resource_info(result.all);
    for (uint32_t i = 0; i < result.info.atom_count; i++) {
        check(gcx_resource_get_atom(&result.all, i, &result.atoms.emplace_back()));
        result.sm_counts.push_back(resource_info(result.atoms.back()).sm_count);
    }
    return result;
}

std::size_t equal_atoms(const Family& family) {
    const bool odd = family.sm_counts.back() != family.sm_counts.front();
    return family.sm_counts.size() - (odd ? 1 : 0);
}

} // namespace gcx::cli
