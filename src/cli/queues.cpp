#include "cli/queues.hpp"

#include "cli/args.hpp"
#include "cli/text.hpp"

#include <cstdint>
#include <cstdlib>
#include <optional>

namespace gcx::cli {
namespace {

constexpr const char* kVariable = "CUDA_DEVICE_MAX_CONNECTIONS";
// CUDA's documentation has the least and the most; what is measured agrees, see
// docs/measurements.md.
constexpr uint32_t kDefault = 8;
constexpr uint32_t kMost = 32;

struct Queues {
    const char* value = std::getenv(kVariable); // null: not set
    std::optional<uint32_t> connections = kDefault;
    std::string warning;
};

Queues read_queues() {
    Queues queues;
    if (queues.value == nullptr)
        return queues;
    queues.connections = parse_number(queues.value);
    if (!queues.connections || *queues.connections < 1 || *queues.connections > kMost) {
        queues.connections.reset();
        queues.warning = format("%s=%s: CUDA takes 1 to %u; what it makes of this isn't documented",
                                kVariable, queues.value, kMost);
    }
    if (queues.connections == 1)
        queues.warning = format("with one connection all partitions wait as soon as one stream of "
                                "the process does; set %s=%u before CUDA starts",
                                kVariable, kMost);
    return queues;
}

} // namespace

Json queues_json() {
    const Queues queues = read_queues();
    return Json::object()
        .set("variable", kVariable)
        .set("value", queues.value != nullptr ? Json(queues.value) : Json())
        .set("connections", queues.connections ? Json(*queues.connections) : Json())
        .set("most", kMost)
        .set("warning", queues.warning.empty() ? Json() : Json(queues.warning));
}

std::string queues_text() {
    const Queues queues = read_queues();
    const std::string number = queues.connections ? std::to_string(*queues.connections) : "unknown";
    std::string text = "  connections           " + number + ", " + kVariable;
    text += queues.value != nullptr ? "=" + visible(queues.value) : " isn't set";
    text += format("; read when CUDA starts, at most %u\n", kMost);
    text +=
        "  All partitions of a process share them. A stream holds one while the first thing in it\n"
        "  waits for something before it; while all are held, every other launch of the process\n"
        "  waits, whatever its SMs. The more connections, the more streams may wait.\n";
    if (!queues.warning.empty())
        text += "  WARNING: " + visible(queues.warning) + "\n";
    return text;
}

} // namespace gcx::cli
