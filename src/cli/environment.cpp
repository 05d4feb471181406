#include "cli/environment.hpp"

#include "cli/text.hpp"

#include <array>
#include <cstdlib>

namespace gcx::cli {
namespace {

struct Variable {
    const char* name;
    const char* effect;
};
constexpr std::array kVariables = {
    Variable{"GCX_EXEC_PLAN",
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

} // namespace

Json environment_json() {
    Json json = Json::array();
    for (const Variable& variable : kVariables) {
        const char* const value = std::getenv(variable.name);
        json.add(Json::object()
                     .set("name", variable.name)
                     .set("value", value != nullptr ? Json(value) : Json())
                     .set("effect", variable.effect));
    }
    return json;
}

std::string environment_text() {
    std::string text;
    for (const Variable& variable : kVariables) {
        if (const char* const value = std::getenv(variable.name); value != nullptr)
            text += std::string("  ") + variable.name + "=" + visible(value) + "\n      " +
                    variable.effect + "\n";
    }
    return text.empty() ? "  nothing that limits SMs is set\n" : text;
}

} // namespace gcx::cli
