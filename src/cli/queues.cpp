#include "cli/queues.hpp"

#include "cli/checked.hpp"
#include "cli/text.hpp"

#include <gcx.h>

#include <cstdint>
#include <cstdlib>

namespace gcx::cli {
namespace {

constexpr const char* kVariable = "CUDA_DEVICE_MAX_CONNECTIONS";

struct Queues {
    const char* value = std::getenv(kVariable); // null: not set
    uint32_t connections = 0;                   // 0: unknown
    std::string warning;
};

Queues read_queues() {
    gcx_queue_info info = GCX_QUEUE_INFO_INIT;
    check(gcx_queue_get_info(&info));
    Queues queues;
    queues.connections = info.connections;
    if (info.connections == 0)
        queues.warning = format("%s=%s: CUDA takes 1 to %u; what it makes of this isn't documented",
                                kVariable, queues.value, GCX_MAX_CONNECTIONS);
    if (info.too_few != 0)
        queues.warning = format("with one connection all partitions wait as soon as one stream of "
                                "the process does; set %s=%u before CUDA starts",
                                kVariable, GCX_MAX_CONNECTIONS);
    return queues;
}

} // namespace

Json queues_json() {
    const Queues queues = read_queues();
    return Json::object()
        .set("variable", kVariable)
        .set("value", queues.value != nullptr ? Json(queues.value) : Json())
        .set("connections", queues.connections != 0 ? Json(queues.connections) : Json())
        .set("most", GCX_MAX_CONNECTIONS)
        .set("warning", queues.warning.empty() ? Json() : Json(queues.warning));
}

std::string queues_text() {
    const Queues queues = read_queues();
    const std::string number =
        queues.connections != 0 ? std::to_string(queues.connections) : "unknown";
    std::string text = "  connections           " + number + ", " + kVariable;
    text += queues.value != nullptr ? "=" + visible(queues.value) : " isn't set";
    text += format("; read when CUDA starts, at most %u\n", GCX_MAX_CONNECTIONS);
    text +=
        "  All partitions of a process share them. A stream holds one while the first thing in it\n"
        "  waits for something before it; while all are held, every other launch of the process\n"
        "  waits, whatever its SMs. The more connections, the more streams may wait.\n";
    if (!queues.warning.empty())
        text += "  WARNING: " + visible(queues.warning) + "\n";
    return text;
}

} // namespace gcx::cli
