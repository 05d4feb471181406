#include "cli/exec_layout.hpp"

#include "cli/checked.hpp"
#include "cli/text.hpp"

#include <gcx.h>

#include <algorithm>
#include <string_view>

namespace gcx::cli {
namespace {

constexpr char kShares[] = "give SMs like --sms 24, a part of them like --sms 50%, or --sms rest";
constexpr char kLayouts[] = "give each device its SMs, like --layout 0=24,1=50%";
constexpr char kDevices[] =
    "give ordinals or UUIDs, like --device 0,2 or --device GPU-1b2c; all if not given";

// The parts between commas, of which none is empty.
std::vector<std::string> parts_of(const std::string& text, const char* option, const char* help) {
    std::vector<std::string> parts;
    std::string_view rest = text;
    while (true) {
        const std::size_t comma = rest.find(',');
        parts.emplace_back(rest.substr(0, comma));
        if (parts.back().empty())
            throw UsageError(
                format("%s %s: number %zu is empty; %s", option, text.c_str(), parts.size(), help));
        if (comma == std::string_view::npos)
            return parts;
        rest.remove_prefix(comma + 1);
    }
}

SmShare read_share(const std::string& text, const std::string& where, const char* help) {
    if (text == "rest")
        return {};
    SmShare share;
    std::string_view number = text;
    share.unit = SmShare::Unit::kSms;
    if (number.ends_with('%')) {
        share.unit = SmShare::Unit::kPercent;
        number.remove_suffix(1);
    }
    const auto value = parse_number(number);
    if (!value)
        throw UsageError(
            format("%s: \"%s\" is no count of SMs; %s", where.c_str(), text.c_str(), help));
    if (*value == 0)
        throw UsageError(
            format("%s: a partition of 0 SMs can run nothing; %s", where.c_str(), help));
    const bool percent = share.unit == SmShare::Unit::kPercent;
    if (*value > (percent ? 100 : GCX_MAX_SMS))
        throw UsageError(format("%s: %s is more than there can be (%s at most); %s", where.c_str(),
                                text.c_str(), percent ? "100%" : "1024 SMs", help));
    share.number = *value;
    return share;
}

void refuse_twice(const std::vector<DeviceShare>& devices, const std::string& device) {
    for (const DeviceShare& other : devices) {
        if (other.device == device)
            throw UsageError(format("device %s is given twice; give each once", device.c_str()));
    }
}

ExecLayout read_layout_option(const std::string& text) {
    ExecLayout layout;
    for (const std::string& part : parts_of(text, "--layout", kLayouts)) {
        const std::size_t equals = part.find('=');
        if (equals == std::string::npos || equals == 0)
            throw UsageError(format("--layout %s: \"%s\" is no DEVICE=SMS; %s", text.c_str(),
                                    part.c_str(), kLayouts));
        const std::string device = part.substr(0, equals);
        refuse_twice(layout.devices, device);
        layout.devices.push_back(
            {device, read_share(part.substr(equals + 1), "--layout " + text, kLayouts)});
    }
    return layout;
}

} // namespace

uint32_t SmShare::of(uint32_t sm_count, uint32_t atom_sm_count) const {
    switch (unit) {
    case Unit::kSms:
        return number;
    case Unit::kPercent:
        break;
    case Unit::kRest:
        return GCX_REST;
    }
    const uint32_t atoms = sm_count * number / 100 / atom_sm_count;
    if (atoms == 0)
        throw Failure(GCX_ERROR_INVALID_RESOURCE_CONFIGURATION,
                      format("%u%% of %u SMs is less than the smallest part, %u SMs; give %u%% or "
                             "more, or --sms %u",
                             number, sm_count, atom_sm_count,
                             (100 * atom_sm_count + sm_count - 1) / sm_count, atom_sm_count));
    return atoms * atom_sm_count;
}

ExecLayout read_exec_layout(const Arguments& arguments) {
    const auto sms = arguments.get("--sms");
    const auto devices = arguments.get("--device");
    if (const auto given = arguments.get("--layout")) {
        if (sms || devices)
            throw UsageError(format("--layout says the devices and their SMs; leave %s away",
                                    sms ? "--sms" : "--device"));
        return read_layout_option(*given);
    }
    if (!sms)
        throw UsageError(format("--sms is missing: %s", kShares));
    const SmShare share = read_share(*sms, "--sms " + *sms, kShares);
    ExecLayout layout;
    if (!devices) {
        layout.of_each = share;
        return layout;
    }
    for (const std::string& device : parts_of(*devices, "--device", kDevices)) {
        refuse_twice(layout.devices, device);
        layout.devices.push_back({device, share});
    }
    return layout;
}

} // namespace gcx::cli
