#include "cli/around.hpp"

#include "cli/checked.hpp"
#include "cli/layout.hpp"
#include "cli/partition.hpp"
#include "cli/text.hpp"
#include "interpose/exec_plan.hpp"

#include <cstdlib>

namespace gcx::cli {
namespace {

// Nothing: there is none, or it can't be read. The libcuda of a process with a plan that can't be
// read doesn't open.
std::optional<interpose::DevicePart> planned_part(int32_t device) {
    const char* const text = std::getenv(interpose::kPlanVariable);
    if (text == nullptr)
        return std::nullopt;
    interpose::Plan plan;
    try {
        plan = interpose::read_plan(text);
    } catch (const interpose::PlanError&) {
        return std::nullopt;
    }
    const interpose::DevicePart* const found = plan.find(device_info(device).uuid);
    return found == nullptr ? std::nullopt : std::optional(*found);
}

} // namespace

std::optional<AroundPartition> partition_around(int32_t device) {
    const auto part = planned_part(device);
    if (!part)
        return std::nullopt;
    const gcx_resource all = device_sms(device);
    AroundPartition around;
    around.planned_sm_count = part->sm_count;
    around.visible_sm_count = resource_info(all).sm_count;
    if (around.left())
        return around;
    Context context;
    Stream stream;
    check(gcx_context_create(&all, 1, nullptr, context.out()));
    check(gcx_stream_create(context.get(), nullptr, stream.out()));
    around.seen = probe(stream);
    return around;
}

std::string around_problem(const AroundPartition& around, int32_t device) {
    if (around.left())
        return format("%s gives this process %u SMs of device %d, and it has %u: it isn't in the "
                      "partition of gcx exec. A program that gcx exec runs must leave LD_AUDIT in "
                      "the environment of those that it starts",
                      interpose::kPlanVariable, around.planned_sm_count, device,
                      around.visible_sm_count);
    if (around.seen.size() != around.visible_sm_count)
        return format("the partition of gcx exec has %u SMs of device %d, and kernels in it were "
                      "seen on %zu (%s)",
                      around.visible_sm_count, device, around.seen.size(),
                      ranges(around.seen).c_str());
    return "";
}

std::string around_text(const AroundPartition& around, bool numbers) {
    if (around.left())
        return "";
    return format("inside gcx exec: this process has %s of the device%s%s\n",
                  count_of(around.visible_sm_count, "SM").c_str(), numbers ? ": " : "",
                  numbers ? ranges(around.seen).c_str() : "");
}

Json around_json(const std::optional<AroundPartition>& around) {
    if (!around)
        return {};
    return Json::object()
        .set("planned", around->planned_sm_count)
        .set("sm_count", around->visible_sm_count)
        .set("seen", around->seen);
}

} // namespace gcx::cli
