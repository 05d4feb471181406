// Records of what ran where and when, for tests.
#include "gcx_sim.h"
#include "sim/entry/entry.hpp"
#include "sim/work/work.hpp"

#include <algorithm>
#include <optional>

namespace gcx::sim {
namespace {

std::optional<gcx_sim_run_kind> kind_of(Work::Kind kind) {
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
        return std::nullopt;
    }
}

// Corrects the times of a run when the host functions have returned that it waited for.
void correct_later(Machine& machine, const Moment& begin) {
    const std::size_t index = machine.runs.size() - 1;
    schedule(machine, begin, [index, begun = machine.runs_begun](Machine& later) {
        if (later.runs_begun != begun)
            return;
        gcx_sim_run& run = later.runs[index];
        run.end_ns += later.clock_ns - run.begin_ns;
        run.begin_ns = later.clock_ns;
    });
}

} // namespace

void note_run(Machine& machine, const Stream& stream, const Work& work, uint64_t launch,
              const Moment& begin, uint64_t duration) {
    const auto kind = kind_of(work.kind);
    if (!kind || machine.runs.size() >= machine.runs_room)
        return;
    gcx_sim_run run{};
    run.kind = *kind;
    run.stream = stream.handle;
    run.launch = launch;
    run.begin_ns = planned_ns(begin);
    run.end_ns = run.begin_ns + duration;
    SmSet sms;
    if (kind != GCX_SIM_RUN_HOST && work.context != nullptr)
        sms = kind == GCX_SIM_RUN_KERNEL ? kernel_sms(machine, *work.context) : work.context->sms;
    run.sm_count = static_cast<uint32_t>(sms.count());
    for (const unsigned sm : to_list(sms))
        run.sms[sm / 64] |= uint64_t{1} << sm % 64;
    if (const Function* const function = find_function(machine, work.function);
        kind == GCX_SIM_RUN_KERNEL && function != nullptr)
        function->code.name.copy(run.kernel, sizeof run.kernel - 1);
    machine.runs.push_back(run);
    if (!begin.after.empty())
        correct_later(machine, begin);
}

extern "C" {

GCX_SIM_EXPORT void gcx_sim_note_runs(std::size_t most) {
    const MachineLock lock;
    if (Machine* const machine = current_machine(); machine != nullptr) {
        machine->runs.clear();
        machine->runs_begun++;
        machine->runs_room = most;
    }
}

GCX_SIM_EXPORT std::size_t gcx_sim_get_runs(gcx_sim_run* out, std::size_t most) {
    const MachineLock lock;
    const Machine* const machine = current_machine();
    if (machine == nullptr)
        return 0;
    const std::size_t count = std::min(most, machine->runs.size());
    if (out != nullptr)
        std::copy_n(machine->runs.begin(), count, out);
    return machine->runs.size();
}

} // extern "C"

} // namespace gcx::sim
