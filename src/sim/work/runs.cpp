// Records of what ran where and when, for tests.
#include "gcx_sim.h"
#include "sim/entry/entry.hpp"
#include "sim/work/work.hpp"

#include <algorithm>

namespace gcx::sim {
namespace {

int kind_of(Work::Kind kind) {
    switch (kind) {
    case Work::Kind::Kernel:
        return GCX_SIM_RUN_KERNEL;
    case Work::Kind::Memcpy:
        return GCX_SIM_RUN_COPY;
    case Work::Kind::Memset:
        return GCX_SIM_RUN_FILL;
    case Work::Kind::Host:
        return GCX_SIM_RUN_HOST;
    default:
        return GCX_SIM_RUN_OTHER;
    }
}

gcx_sim_run to_public(const Run& run) {
    gcx_sim_run out{};
    out.kind = kind_of(run.kind);
    out.stream = run.stream;
    out.launch = run.launch;
    out.begin_ns = run.begin_ns;
    out.end_ns = run.end_ns;
    out.sm_count = static_cast<uint32_t>(run.sms.count());
    for (const unsigned sm : to_list(run.sms))
        out.sms[sm / 64] |= uint64_t{1} << sm % 64;
    run.kernel.copy(out.kernel, sizeof out.kernel - 1);
    return out;
}

} // namespace

void note_run(Machine& machine, const Stream& stream, const Work& work, uint64_t launch,
              uint64_t begin, uint64_t end) {
    const bool noted = work.kind == Work::Kind::Kernel || work.kind == Work::Kind::Memcpy ||
                       work.kind == Work::Kind::Memset || work.kind == Work::Kind::Host;
    if (!noted || machine.runs.size() >= machine.runs_room)
        return;
    Run run;
    run.kind = work.kind;
    run.stream = stream.handle;
    run.launch = launch;
    run.begin_ns = begin;
    run.end_ns = end;
    if (work.kind != Work::Kind::Host && work.context != nullptr)
        run.sms = work.kind == Work::Kind::Kernel ? kernel_sms(machine, *work.context)
                                                  : work.context->sms;
    if (const Function* const function = find_function(machine, work.function);
        work.kind == Work::Kind::Kernel && function != nullptr)
        run.kernel = function->code.name;
    machine.runs.push_back(std::move(run));
}

extern "C" {

GCX_SIM_EXPORT void gcx_sim_note_runs(std::size_t most) {
    const auto lock = lock_machine();
    if (Machine* const machine = current_machine(); machine != nullptr) {
        machine->runs.clear();
        machine->runs_room = most;
    }
}

GCX_SIM_EXPORT std::size_t gcx_sim_get_runs(gcx_sim_run* out, std::size_t most) {
    const auto lock = lock_machine();
    const Machine* const machine = current_machine();
    if (machine == nullptr)
        return 0;
    const std::size_t count = std::min(most, machine->runs.size());
    for (std::size_t i = 0; out != nullptr && i < count; i++)
        out[i] = to_public(machine->runs[i]);
    return machine->runs.size();
}

} // extern "C"

} // namespace gcx::sim
