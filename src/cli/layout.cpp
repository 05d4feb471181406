#include "cli/layout.hpp"

#include "cli/checked.hpp"
#include "cli/chosen_driver.hpp"
#include "cli/text.hpp"

#include <algorithm>

namespace gcx::cli {
namespace {

constexpr std::string_view kSmsExample =
    "give counts of SMs like --sms 108,24, or rest for what the others leave, like --sms 24,rest";

gcx_sm_request read_count(const std::string& all, std::string_view text, std::size_t position) {
    if (text == "rest")
        return {.sm_count = GCX_REST};
    std::string wrong;
    const uint32_t count = parse_number(text).value_or(0);
    if (text.empty())
        wrong = format("count %zu is empty", position);
    else if (!parse_number(text))
        wrong = format("\"%s\" is no count of SMs", std::string(text).c_str());
    else if (count == 0)
        wrong = "a partition of 0 SMs can run nothing";
    else if (count > GCX_MAX_SMS)
        wrong = format("%u SMs are more than any GPU has (%u at most)", count, GCX_MAX_SMS);
    if (!wrong.empty())
        throw UsageError("--sms " + all + ": " + wrong + "; " + std::string(kSmsExample));
    return {.sm_count = count};
}

std::vector<gcx_sm_request> read_sms(const Arguments& arguments) {
    const auto given = arguments.get("--sms");
    if (!given)
        throw UsageError("--sms is missing: " + std::string(kSmsExample));
    std::vector<gcx_sm_request> requests;
    std::string_view text = *given;
    while (true) {
        const std::size_t comma = text.find(',');
        requests.push_back(read_count(*given, text.substr(0, comma), requests.size() + 1));
        if (comma == std::string_view::npos)
            break;
        text.remove_prefix(comma + 1);
    }
    if (requests.size() > GCX_MAX_SMS)
        throw UsageError(format("--sms has %zu counts, more than any GPU has SMs (%u at most)",
                                requests.size(), GCX_MAX_SMS));
    return requests;
}

} // namespace

const std::array<FamilyName, 3> family_names = {{
    {"coscheduled", GCX_SPLIT_DEFAULT, GCX_SM_FAMILY_COSCHEDULED,
     "thread block clusters within an atom's size", "the driver's own partitions"},
    {"fine", GCX_SPLIT_IGNORE_SM_COSCHEDULING, GCX_SM_FAMILY_FINE,
     "the smallest steps, small clusters only", "the smallest steps"},
    {"max-cluster", GCX_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE, GCX_SM_FAMILY_MAX_CLUSTER,
     "picked by the driver for the largest clusters", ""},
}};

uint32_t Layout::split_flags() const {
    return family->split_flags | (exact ? GCX_SPLIT_EXACT : 0U);
}

const FamilyName* read_family(const Arguments& arguments) {
    const auto given = arguments.get("--family");
    if (!given)
        return &family_names[0];
    const auto* const found =
        std::find_if(family_names.begin(), family_names.end(),
                     [&](const FamilyName& family) { return family.name == *given; });
    if (found == family_names.end())
        throw UsageError("--family " + *given +
                         ": no such family; there are coscheduled, fine and max-cluster, e.g. "
                         "--family fine");
    return found;
}

Layout read_layout(const Arguments& arguments) {
    Layout layout;
    layout.requests = read_sms(arguments);
    layout.device = static_cast<int32_t>(arguments.number("--device", 0, 1023, 0));
    layout.family = read_family(arguments);
    layout.exact = arguments.has("--exact");
    return layout;
}

gcx_resource device_sms(int32_t device) {
    gcx_resource whole;
    check(gcx_device_get_resource(device, GCX_RESOURCE_SM, &whole));
    return whole;
}

Split split(const gcx_resource& whole, const Layout& layout) {
    Split result;
    result.groups.resize(layout.requests.size());
    check(gcx_sm_split(&whole, layout.requests.data(),
                       static_cast<uint32_t>(layout.requests.size()), layout.split_flags(),
                       result.groups.data(), &result.remainder));
    for (const gcx_resource& group : result.groups)
        result.sm_counts.push_back(resource_info(group).sm_count);
    result.remainder_sm_count = resource_info(result.remainder).sm_count;
    return result;
}

void set_layout(Json& json, const Layout& layout) {
    json.set("device", layout.device).set("family", layout.family->name);
}

std::string layout_line(const Layout& layout) {
    const gcx_device_info device = device_info(layout.device);
    return format("device %d: %s, %s, %s\n", layout.device, plain_name(device).c_str(),
                  count_of(resource_info(device_sms(layout.device)).sm_count, "SM").c_str(),
                  std::string(layout.family->name).c_str());
}

} // namespace gcx::cli
