#include "core/split.hpp"

#include "base/error.hpp"
#include "core/structured.hpp"

#include <algorithm>
#include <cstring>

namespace gcx {
namespace {

constexpr uint32_t kFamilyFlags =
    GCX_SPLIT_IGNORE_SM_COSCHEDULING | GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
constexpr uint32_t kKnownFlags =
    kFamilyFlags | GCX_SPLIT_EXACT | GCX_SPLIT_EXCLUDE_LEASED | GCX_SPLIT_EXCLUDE_SHARED;
constexpr uint32_t kLocalityFlags =
    GCX_SM_REQUEST_LOCALITY_DOMAIN_ID | GCX_SM_REQUEST_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS;
constexpr uint32_t kKnownRequestFlags = GCX_SM_REQUEST_BACKFILL | kLocalityFlags;

bool is_structured(const gcx_sm_request& request) {
    return request.coscheduled_sm_count != 0 || request.preferred_coscheduled_sm_count != 0 ||
           request.flags != 0 || request.locality_domain_id != 0;
}

bool is_in_domain(const gcx_sm_request& request) {
    return (request.flags & kLocalityFlags) != 0 || request.locality_domain_id != 0;
}

void check_requests(std::span<const gcx_sm_request> requests, uint32_t flags) {
    if (requests.empty())
        fail(GCX_ERROR_INVALID_VALUE, "there are no requests; a split needs at least one");
    if ((flags & ~kKnownFlags) != 0)
        fail(GCX_ERROR_INVALID_VALUE,
             format("flags %#x: none but GCX_SPLIT_ flags are known", flags));
    if ((flags & kFamilyFlags) == kFamilyFlags)
        fail(GCX_ERROR_INVALID_VALUE, "GCX_SPLIT_IGNORE_SM_COSCHEDULING and "
                                      "GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE exclude each "
                                      "other");
    for (std::size_t i = 0; i < requests.size(); i++) {
        const gcx_sm_request& request = requests[i];
        if (std::any_of(std::begin(request.reserved), std::end(request.reserved),
                        [](uint32_t word) { return word != 0; }))
            fail(GCX_ERROR_INVALID_VALUE,
                 format("request %zu: reserved is not 0; set the whole request to zero first", i));
        if ((request.flags & ~kKnownRequestFlags) != 0)
            fail(GCX_ERROR_INVALID_VALUE,
                 format("request %zu: flags %#x: none but GCX_SM_REQUEST_ flags are known", i,
                        request.flags));
        if (request.sm_count == 0)
            fail(GCX_ERROR_INVALID_VALUE,
                 format(
                     "request %zu: sm_count is 0; GCX_REST requests all SMs that the other groups "
                     "leave",
                     i));
    }
}

gcx_sm_family family_for(const SmResource& input, uint32_t flags) {
    if ((flags & GCX_SPLIT_IGNORE_SM_COSCHEDULING) != 0)
        return GCX_SM_FAMILY_FINE;
    if ((flags & GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE) != 0)
        return GCX_SM_FAMILY_MAX_CLUSTER;
    return input.family->kind();
}

SplitResult in_family(const SmResource& input, const std::shared_ptr<Family>& family,
                      const std::vector<AtomSet>& groups, const AtomSet& remainder) {
    SplitResult result;
    result.groups.reserve(groups.size());
    for (const AtomSet& group : groups)
        result.groups.push_back({input.device, family, group});
    result.remainder = {input.device, family, remainder};
    return result;
}

// The atoms of a family that hold SMs which all partitions of the process share.
AtomSet shared_atoms(Device& device, const Family& family) {
    AtomSet atoms;
    if (!device.may_share_sms())
        return atoms;
    const std::vector<uint32_t> shared = device.shared_sms();
    if (shared.empty())
        fail(
            GCX_ERROR_NOT_READY,
            format("GCX_SPLIT_EXCLUDE_SHARED: the SMs that all partitions of this process share on "
                   "%s aren't known; load the module with dynamic parallelism and launch a kernel "
                   "of it, then call gcx_device_get_shared_sms(%d)",
                   device.label().c_str(), device.ordinal()));
    const SmMap* const map = family.sm_map();
    if (map == nullptr)
        fail(GCX_ERROR_NOT_READY,
             format("GCX_SPLIT_EXCLUDE_SHARED: it isn't known yet which SMs the atoms hold; call "
                    "gcx_device_map_sms(%d, %d), the %s family",
                    device.ordinal(), family.kind(), family_name(family.kind())));
    for (std::size_t atom = 0; atom < map->size(); atom++) {
        const std::vector<uint32_t>& sms = (*map)[atom];
        if (std::find_first_of(sms.begin(), sms.end(), shared.begin(), shared.end()) != sms.end())
            atoms.add(atom);
    }
    return atoms;
}

SplitResult split_structured(const SmResource& input, std::span<const gcx_sm_request> requests,
                             uint32_t flags) {
    Device& device = *input.device;
    const Driver& driver = device.driver();
    // The newest that is needed is told first, so that one new driver will do.
    if (std::any_of(requests.begin(), requests.end(), is_in_domain))
        driver.require(GCX_CAPABILITY_LOCALITY_DOMAINS, "a locality domain in a request");
    driver.require(GCX_CAPABILITY_STRUCTURED_SPLIT,
                   "a split with coscheduled counts, flags or locality domains in its requests");
    if ((flags & kFamilyFlags) != 0)
        fail(GCX_ERROR_INVALID_VALUE,
             "flags of a family and requests with coscheduled counts, flags or locality domains "
             "exclude each other");
    if (!(input.set == input.family->all()))
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("a structured split starts from a whole device; this resource has %u of the %u "
                    "SMs of %s",
                    input.family->sm_count(input.set), device.sm_count(), device.label().c_str()));
    if (requests.size() > device.sm_count())
        fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
             format("asked for %zu groups; %s has %u SMs", requests.size(), device.label().c_str(),
                    device.sm_count()));
    std::vector<cu::SmGroupParams> groups;
    for (const gcx_sm_request& request : requests) {
        if ((request.flags & GCX_SM_REQUEST_LOCALITY_DOMAIN_ID) != 0 &&
            request.locality_domain_id != GCX_LOCALITY_DOMAIN_ID_ANY &&
            request.locality_domain_id >= device.locality_domain_count())
            fail(GCX_ERROR_INVALID_VALUE,
                 format("request %zu: locality domain %u; %s has %u, counted from 0", groups.size(),
                        request.locality_domain_id, device.label().c_str(),
                        device.locality_domain_count()));
        cu::SmGroupParams group{};
        static_assert(sizeof group == sizeof request);
        std::memcpy(&group, &request, sizeof group);
        if (group.sm_count == kRest)
            group.sm_count = 0; // the driver's word for it
        groups.push_back(group);
    }
    const std::shared_ptr<Family> family = device.structured_family(pack_requests(groups));
    std::vector<AtomSet> sets(requests.size());
    for (std::size_t i = 0; i < sets.size(); i++)
        sets[i].add(i);
    return in_family(input, family, sets, family->all() - AtomSet::first(sets.size()));
}

} // namespace

SplitResult split(Leases& leases, const SmResource& input, std::span<const gcx_sm_request> requests,
                  uint32_t flags) {
    check_requests(requests, flags);
    const bool structured = std::any_of(requests.begin(), requests.end(), is_structured);
    const uint32_t by_count = flags & (GCX_SPLIT_EXCLUDE_LEASED | GCX_SPLIT_EXCLUDE_SHARED);
    if (structured && by_count != 0)
        fail(GCX_ERROR_INVALID_VALUE,
             format("%s is for splits by sm_count alone: which SMs a structured split gives is the "
                    "driver's to choose",
                    (by_count & GCX_SPLIT_EXCLUDE_LEASED) != 0 ? "GCX_SPLIT_EXCLUDE_LEASED"
                                                               : "GCX_SPLIT_EXCLUDE_SHARED"));
    if (structured)
        return split_structured(input, requests, flags);

    Device& device = *input.device;
    const gcx_sm_family kind = family_for(input, flags);
    SmResource from = input;
    const bool whole = input.set == input.family->all();
    if (kind != input.family->kind()) {
        if (!whole)
            fail(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 format(
                     "a resource of the %s family can't be split as %s: their atoms are different "
                     "SMs. Split the whole device so",
                     family_name(input.family->kind()), family_name(kind)));
        from.family = device.family(kind);
        from.set = from.family->all();
    }
    if (kind == GCX_SM_FAMILY_STRUCTURED)
        fail(
            GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
            "a group of a structured split can't be split further; split the whole device with all "
            "groups at once");
    std::vector<uint32_t> counts;
    counts.reserve(requests.size());
    for (const gcx_sm_request& request : requests)
        counts.push_back(request.sm_count);
    std::string where = whole ? device.label() : "this resource of " + device.label();
    if ((flags & GCX_SPLIT_EXCLUDE_LEASED) != 0) {
        from.set = from.set - leases.held(device, from.family);
        where = "what no lease has of " + where;
    }
    if ((flags & GCX_SPLIT_EXCLUDE_SHARED) != 0) {
        from.set = from.set - shared_atoms(device, *from.family);
        where += " without the atom of the shared SMs";
    }
    const Plan plan = make_plan(from.family->shape(), from.set, counts,
                                (flags & GCX_SPLIT_EXACT) != 0, where.c_str());
    return in_family(from, from.family, plan.groups, plan.remainder);
}

} // namespace gcx
