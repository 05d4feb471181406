#include "cli/environment.hpp"

#include "cli/checked.hpp"
#include "cli/text.hpp"
#include "interpose/exec_plan.hpp"

#include <array>
#include <cstdlib>
#include <string_view>

namespace gcx::cli {
namespace {

struct Variable {
    const char* name;
    const char* effect;
};
constexpr std::array kVariables = {
    Variable{interpose::kPlanVariable,
             "a gcx exec around this command gives it the SMs that are shown above, and no others"},
    Variable{"CUDA_VISIBLE_DEVICES",
             "which devices the driver shows and in which order; ordinals count within it"},
    Variable{"NVIDIA_VISIBLE_DEVICES", "which GPUs the container runtime gives to this container"},
    Variable{"CUDA_MPS_PIPE_DIRECTORY",
             "where the MPS daemon is looked for; a client of MPS may get a part of the SMs"},
    Variable{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
             "under MPS, the share of the SMs that this process may use, in percent"},
    Variable{"CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING",
             "under MPS, 1 lets each context of a process have a share of the SMs of its own"},
};

// Whether the opened driver has the partition's SMs, and no others, of a device that the plan
// names. It is another driver if --driver chose it, or if the auditor of gcx exec is no longer
// loaded.
bool has_partition(const interpose::Plan& plan) {
    int32_t count = 0;
    check(gcx_device_get_count(&count));
    bool any = false;
    for (int32_t device = 0; device < count; device++) {
        const gcx_device_info info = device_info(device);
        const interpose::DevicePart* const part = plan.find(info.uuid);
        if (part == nullptr)
            continue;
        if (part->sm_count != info.sm_count)
            return false;
        any = true;
    }
    return any;
}

// value: null if the variable isn't set.
std::string effect_of(const Variable& variable, const char* value) {
    if (value == nullptr || variable.name != std::string_view(interpose::kPlanVariable))
        return variable.effect;
    try {
        if (has_partition(interpose::read_plan(value)))
            return variable.effect;
    } catch (const interpose::PlanError& error) {
        return "no partition: " + visible(error.what());
    }
    return "no partition: the driver that is shown above is not limited by it";
}

} // namespace

Json environment_json() {
    Json json = Json::array();
    for (const Variable& variable : kVariables) {
        const char* const value = std::getenv(variable.name);
        json.add(Json::object()
                     .set("name", variable.name)
                     .set("value", value != nullptr ? Json(value) : Json())
                     .set("effect", effect_of(variable, value)));
    }
    return json;
}

std::string environment_text() {
    std::string text;
    for (const Variable& variable : kVariables) {
        if (const char* const value = std::getenv(variable.name); value != nullptr)
            text += std::string("  ") + variable.name + "=" + visible(value) + "\n      " +
                    effect_of(variable, value) + "\n";
    }
    return text.empty() ? "  nothing that limits SMs is set\n" : text;
}

} // namespace gcx::cli
